package dev.kullback.internal.vector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.engine.Platform;
import java.util.Arrays;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** All small shapes, before and after C2 has compiled it; nothing is read beyond the input nor written but lanes of panels. */
@Tag("vector")
class TransposeTest {
  private static final int REPETITIONS = 40;
  private static final int STRIDE = 48;

  @Test
  void floats() {
    Assumptions.assumeTrue(Platform.mayHaveVectors(), "no vectors");
    FloatTranspose transpose = new FloatTranspose(true);
    for (int k = 0; k < REPETITIONS; k++) {
      for (int rows = 1; rows <= 33; rows++) {
        for (int columns = 1; columns <= 37; columns++) {
          float[] in = new float[2 + rows * columns];
          for (int i = 0; i < in.length; i++) {
            in[i] = i;
          }
          float[] out = new float[3 + columns * STRIDE];
          Arrays.fill(out, -1);
          transpose.toLanes(in, 2, columns, rows, columns, out, 3, STRIDE);
          for (int at = 0; at < out.length; at++) {
            check(in[2], at - 3, rows, columns, out[at], 16);
          }
        }
      }
    }
  }

  @Test
  void doubles() {
    Assumptions.assumeTrue(Platform.mayHaveVectors(), "no vectors");
    DoubleTranspose transpose = new DoubleTranspose(true);
    for (int k = 0; k < REPETITIONS; k++) {
      for (int rows = 1; rows <= 33; rows++) {
        for (int columns = 1; columns <= 37; columns++) {
          double[] in = new double[2 + rows * columns];
          for (int i = 0; i < in.length; i++) {
            in[i] = i;
          }
          double[] out = new double[3 + columns * STRIDE];
          Arrays.fill(out, -1);
          transpose.toLanes(in, 2, columns, rows, columns, out, 3, STRIDE);
          for (int at = 0; at < out.length; at++) {
            check(in[2], at - 3, rows, columns, out[at], 8);
          }
        }
      }
    }
  }

  /** Checks the value at an index counted from the transposed matrix's first element. */
  private static void check(
      double first, int at, int rows, int columns, double value, int mostPadding) {
    int i = at % STRIDE;
    int j = at / STRIDE;
    if (at < 0) {
      assertThat(value).isEqualTo(-1);
    } else if (i < rows) {
      if (value != first + i * columns + j) {
        assertThat(value)
            .as("row %d, column %d of %d x %d", i, j, rows, columns)
            .isEqualTo(first + i * columns + j);
      }
    } else if (i >= Math.ceilDiv(rows, mostPadding) * mostPadding && value != -1) {
      assertThat(value).as("beyond the lanes of %d x %d", rows, columns).isEqualTo(-1);
    }
  }
}
