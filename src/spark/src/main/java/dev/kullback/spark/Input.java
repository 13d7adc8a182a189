package dev.kullback.spark;

import dev.kullback.Gaussians;
import dev.kullback.InvalidGaussianException;
import dev.kullback.ScaleKind;
import java.io.Serializable;
import java.lang.reflect.Array;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.util.ArrayData;

/**
 * Properties that all rows of one input share.
 *
 * @param side "references" or "queries", for messages
 * @param isDouble whether arrays are read as double[], not float[]
 * @param measured names the row whose dimension that is: "id 7 of the references"
 */
record Input(String side, Columns columns, boolean isDouble, int dimension, String measured)
    implements Serializable {
  int scaleLength() {
    return columns.kind().isFull() ? Math.multiplyExact(dimension, dimension) : dimension;
  }

  /** An array of the input's precision. */
  Object array(int length) {
    return isDouble ? new double[length] : new float[length];
  }

  /** Makes a batch, which may keep the arrays as its own. */
  Gaussians batch(Object mean, Object scale) {
    ScaleKind kind = columns.kind();
    if (isDouble) {
      double[] m = (double[]) mean;
      double[] s = (double[]) scale;
      return kind.isFull()
          ? Gaussians.of(kind, m, s, dimension)
          : Gaussians.owning(kind, m, s, dimension);
    }
    float[] m = (float[]) mean;
    float[] s = (float[]) scale;
    return kind.isFull()
        ? Gaussians.of(kind, m, s, dimension)
        : Gaussians.owning(kind, m, s, dimension);
  }

  /**
   * Makes a batch of rows, which may keep the arrays as its own.
   *
   * @param label names a row
   * @throws IllegalArgumentException naming the row and the column that is wrong
   */
  Gaussians batch(Object mean, Object scale, IntFunction<String> label) {
    try {
      return batch(mean, scale);
    } catch (InvalidGaussianException e) {
      boolean isMean = e.argument().equals("mean");
      String column = isMean ? columns.mean() : columns.scale();
      throw error(
          label.apply(e.gaussian()),
          "column %s: %s%s"
              .formatted(column, description(e, columns.kind(), dimension), advice(e, scale)));
    }
  }

  /** What is wrong with a Gaussian, and where within it, as {@code std[3] is 0.0; it must be finite and > 0}. */
  static String description(InvalidGaussianException e, ScaleKind kind, int dimension) {
    boolean isVector = e.argument().equals("mean") || !kind.isFull();
    String place = "";
    if (e.element().isPresent()) {
      int k = e.element().getAsInt();
      place = isVector ? "[" + k + "]" : "[%d][%d]".formatted(k / dimension, k % dimension);
    }
    return "%s%s %s".formatted(e.argument(), place, e.reason());
  }

  /** Returns what else a scale may be that is none of its kind, or nothing. */
  private String advice(InvalidGaussianException e, Object scale) {
    if (e.argument().equals("mean")) {
      return "";
    }
    int k = e.element().orElse(0);
    boolean isAboveDiagonal =
        columns.kind() == ScaleKind.SCALE_TRIL && k % dimension > k / dimension;
    return isAboveDiagonal
        ? "; is it a covariance, or an upper factor, to be transposed?"
        : isNegative(e, scale) ? "; are these log-variances (logVariance)?" : "";
  }

  /** Whether a scale is negative and finite that is no logarithm. */
  private boolean isNegative(InvalidGaussianException e, Object scale) {
    ScaleKind kind = columns.kind();
    if (kind.isFull() || kind == ScaleKind.LOG_VARIANCE) {
      return false;
    }
    double value = Array.getDouble(scale, e.gaussian() * dimension + e.element().orElseThrow());
    return value < 0 && value >= -Double.MAX_VALUE;
  }

  static String label(Object id) {
    return "id " + id;
  }

  /**
   * @param label names a row
   */
  IllegalArgumentException error(String label, String message) {
    return new IllegalArgumentException("%s: %s: %s".formatted(side, label, message));
  }

  IllegalArgumentException nullId() {
    return new IllegalArgumentException(
        "%s: an id is null, in column %s".formatted(side, columns.id()));
  }

  IllegalArgumentException twice(Object id) {
    return error(label(id), "is there more than once, in column %s".formatted(columns.id()));
  }

  /** Copies a row's array to the place of Gaussian i among those of all. */
  void copy(
      ArrayData values, boolean isFloat, boolean isMean, Object to, int i, Supplier<String> label) {
    String name = isMean ? columns.mean() : columns.scale();
    int length = isMean ? dimension : scaleLength();
    if (values.numElements() != length) {
      throw error(
          label.get(),
          "column %s has %d elements%s; it must have %d, as dimension %d needs, that of %s"
              .formatted(
                  name,
                  values.numElements(),
                  length > dimension && values.numElements() == 0
                      ? ", or not as many rows as columns"
                      : "",
                  length,
                  dimension,
                  measured));
    }
    int h = ArrayReader.firstNull(values);
    if (h >= 0) {
      throw error(label.get(), "column %s: element %d is null".formatted(name, h));
    }
    if (isDouble) {
      ArrayReader.copyDoubles(values, isFloat, (double[]) to, i * length);
    } else {
      ArrayReader.copyFloats(values, (float[]) to, i * length);
    }
  }

  /** Whether an array is of the input's precision and long enough. */
  boolean holds(Object array, int length) {
    return array instanceof double[] == isDouble && Array.getLength(array) >= length;
  }

  /** Copies an array to one of another length. */
  Object resized(Object values, int length) {
    Object resized = array(length);
    if (holds(values, 1)) {
      System.arraycopy(values, 0, resized, 0, Math.min(length, Array.getLength(values)));
    }
    return resized;
  }
}
