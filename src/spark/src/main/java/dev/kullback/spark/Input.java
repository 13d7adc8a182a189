package dev.kullback.spark;

import dev.kullback.Gaussians;
import java.io.Serializable;
import java.lang.reflect.Array;

/**
 * What all rows of one input have in common.
 *
 * @param side "references" or "queries", for messages
 * @param isDouble whether arrays are read as double[], not float[]
 * @param measured the id of the reference whose dimension that is
 */
record Input(String side, Columns columns, boolean isDouble, int dimension, long measured)
    implements Serializable {
  int scaleLength() {
    return columns.kind().length(dimension);
  }

  /** An array of the input's precision. */
  Object array(int length) {
    return isDouble ? new double[length] : new float[length];
  }

  Gaussians batch(Object mean, Object scale) {
    return isDouble
        ? columns.kind().batch((double[]) mean, (double[]) scale, dimension)
        : columns.kind().batch((float[]) mean, (float[]) scale, dimension);
  }

  IllegalArgumentException error(long id, String message) {
    return new IllegalArgumentException("%s: id %d: %s".formatted(side, id, message));
  }

  /** The error of a batch by the id of the row at fault, the first that makes no batch by itself. */
  IllegalArgumentException culprit(Block block, IllegalArgumentException whole) {
    for (int i = 0; i < block.size(); i++) {
      try {
        batch(row(block.mean(), i, dimension), row(block.scale(), i, scaleLength()));
      } catch (IllegalArgumentException e) {
        String message = String.valueOf(e.getMessage());
        String column = message.startsWith("mean") ? columns.mean() : columns.scale();
        // "std[0][3] (Gaussian 0, dimension 3)" of the batch of one is std[3] of the row
        String element =
            message
                .replaceFirst("\\[0](\\[.*?])? \\(Gaussian 0(, [a-z]+ \\d+)*\\)", "$1")
                .replaceFirst(" \\((ScalePolicy\\.CLAMPED [^)]*|of[A-Z]\\w*)\\)", "");
        return error(block.ids()[i], "column %s: %s".formatted(column, element));
      }
    }
    return whole; // too many, or too large
  }

  private Object row(Object values, int i, int length) {
    Object row = array(length);
    System.arraycopy(values, i * length, row, 0, length);
    return row;
  }

  /** As many elements, or fewer. */
  Object resized(Object values, int length) {
    Object resized = array(length);
    System.arraycopy(values, 0, resized, 0, Math.min(length, Array.getLength(values)));
    return resized;
  }
}
