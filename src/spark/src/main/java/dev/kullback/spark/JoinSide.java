package dev.kullback.spark;

import dev.kullback.ScaleKind;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;

/**
 * One side of a join: where the Gaussian is in its rows, and how the library takes it.
 *
 * @param name "queries" or "references", for messages
 * @param types of all columns
 * @param mean ordinal of the mean
 * @param scale ordinal of the scales
 * @param id ordinal of a column that names rows in messages, or −1
 * @param kind what the scales are
 * @param isDouble whether Gaussians are read as double
 */
record JoinSide(
    String name, DataType[] types, int mean, int scale, int id, ScaleKind kind, boolean isDouble)
    implements Serializable {
  boolean isFloat(int column) {
    return isFloat(types[column]);
  }

  static boolean isFloat(DataType array) {
    return array.catalogString().equals("array<float>");
  }

  /**
   * Properties of this side's Gaussians.
   *
   * @param measured names the row whose dimension that is
   */
  Input input(int dimension, String measured) {
    return new Input(
        name,
        new Columns("id", "mean", ModelParams.name(kind), kind),
        isDouble,
        dimension,
        measured);
  }

  /** Names a row by its own column, or else by its number. */
  String label(UnsafeRow row, long number) {
    String own = id < 0 ? null : Labels.text(row, id, types[id]);
    return Input.label(own == null ? Long.toString(number) : own);
  }
}
