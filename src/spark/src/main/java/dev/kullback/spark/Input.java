package dev.kullback.spark;

import dev.kullback.DiagonalGaussians;
import dev.kullback.Gaussians;
import dev.kullback.ScaleKind;
import dev.kullback.ScalePolicy;
import java.io.Serializable;
import java.lang.reflect.Array;

/**
 * Properties that all rows of one input share.
 *
 * @param side "references" or "queries", for messages
 * @param isDouble whether arrays are read as double[], not float[]
 * @param measured the id of the reference whose dimension that is
 */
record Input(String side, Columns columns, boolean isDouble, int dimension, long measured)
    implements Serializable {
  int scaleLength() {
    return Math.toIntExact(columns.kind().length(dimension));
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
          ? Gaussians.of(kind, m, s, dimension, ScalePolicy.STRICT)
          : DiagonalGaussians.owning(m, s, dimension, kind);
    }
    float[] m = (float[]) mean;
    float[] s = (float[]) scale;
    return kind.isFull()
        ? Gaussians.of(kind, m, s, dimension, ScalePolicy.STRICT)
        : DiagonalGaussians.owning(m, s, dimension, kind);
  }

  IllegalArgumentException error(long id, String message) {
    return new IllegalArgumentException("%s: id %d: %s".formatted(side, id, message));
  }

  /** Copies an array to one of another length. */
  Object resized(Object values, int length) {
    Object resized = array(length);
    System.arraycopy(values, 0, resized, 0, Math.min(length, Array.getLength(values)));
    return resized;
  }
}
