package dev.kullback;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Check;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Reference;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every tail of rows, columns and dimensions, with guard zones behind the output. */
@Tag("device")
@Tag("vector")
class ShapeTest {
  private static final int MOST_ROWS = 40;
  private static final int MOST_COLUMNS = 98;

  /**
   * One dimension, all rows up to 40 by all columns up to 98: each residue of tiles of 8, 10, 16,
   * 32 and 48 occurs.
   */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void allRowsByAllColumns(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      Inputs inputs = new Inputs(isDouble, 3);
      try (KlEngine engine = Engines.on(backend)) {
        for (int n = 1; n <= MOST_ROWS; n++) {
          for (int m = 1; m <= MOST_COLUMNS; m += n % 8 < 2 ? 1 : 7) {
            inputs.check(engine, backend, n, m);
          }
        }
      }
    }
  }

  /** All tails of dimensions, with rows and columns on either side of a tile. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void allDimensions(Backend backend) {
    int[] dimensions =
        IntStream.concat(
                IntStream.rangeClosed(1, 36),
                IntStream.of(47, 48, 49, 63, 64, 65, 66, 95, 96, 97, 127, 128, 129, 255, 257))
            .toArray();
    for (boolean isDouble : new boolean[] {false, true}) {
      for (int dimension : dimensions) {
        Inputs inputs = new Inputs(isDouble, dimension);
        try (KlEngine engine = Engines.on(backend)) {
          for (int[] shape : new int[][] {{1, 1}, {7, 9}, {11, 33}, {21, 65}, {40, 17}}) {
            inputs.check(engine, backend, shape[0], shape[1]);
          }
        }
      }
    }
  }

  /** The largest batch of a test, its whole expected matrix, and checks of corners of it. */
  private static final class Inputs {
    private static final int GUARD = 37;
    private static final float SENTINEL = -12345.678f;

    final Batch q;
    final Batch p;
    final double[] expected;

    Inputs(boolean isDouble, int dimension) {
      this(isDouble, dimension, MOST_ROWS, MOST_COLUMNS);
    }

    Inputs(boolean isDouble, int dimension, int rows, int columns) {
      Random random = new Random(dimension);
      q = Batch.random(isDouble, rows, dimension, 0, random);
      p = Batch.random(isDouble, columns, dimension, 3, random); // apart: the reference is exact
      expected = Reference.pairwise(q, p);
    }

    void check(KlEngine engine, Backend backend, int n, int m) {
      DiagonalGaussians rows = q.rows(0, n).gaussians();
      DiagonalGaussians columns = p.rows(0, m).gaussians();
      double[] corner = new double[n * m];
      for (int i = 0; i < n; i++) {
        System.arraycopy(expected, i * p.size(), corner, i * m, m);
      }
      String what =
          "%s %s, %dx%d, D=%d"
              .formatted(backend, q.isDouble() ? "double" : "float", n, m, q.dimension());
      if (q.isDouble()) {
        double[] out = new double[n * m + GUARD];
        Arrays.fill(out, SENTINEL);
        engine.pairwise(rows, columns, out);
        Check.matrix(what, m, corner, out, Check.Precision.DOUBLE);
        double[] guard = new double[GUARD];
        Arrays.fill(guard, SENTINEL);
        Check.sameBits(
            what + ", behind the output", GUARD, guard, Arrays.copyOfRange(out, n * m, out.length));
      } else {
        float[] out = new float[n * m + GUARD];
        Arrays.fill(out, SENTINEL);
        engine.pairwise(rows, columns, out);
        Check.matrix(what, m, corner, out);
        float[] guard = new float[GUARD];
        Arrays.fill(guard, SENTINEL);
        Check.sameBits(
            what + ", behind the output", GUARD, guard, Arrays.copyOfRange(out, n * m, out.length));
      }
    }
  }
}
