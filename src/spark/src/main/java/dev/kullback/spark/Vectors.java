package dev.kullback.spark;

import org.apache.spark.ml.functions;
import org.apache.spark.sql.Column;

/** MLlib's vectors. A class of its own, which is loaded only where there are any. */
final class Vectors {
  private Vectors() {}

  /** Makes an array of double of a vector, dense or sparse. */
  static Column toArray(Column vector) {
    return functions.vector_to_array(vector, "float64");
  }
}
