package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.plain.PairKl;
import dev.kullback.internal.vector.SmallKernel;
import dev.kullback.internal.work.Worker;
import dev.kullback.testing.Batch;
import dev.kullback.testing.Batch.Kind;
import dev.kullback.testing.Check;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Share;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Up to four dimensions an entry is {@link PairKl#of}, to the bit, wherever it stands. */
@Tag("vector")
class SmallDimensionsTest {
  private static final double GUARD = -1;

  /** Every remainder of rows and columns, alone in a larger matrix. */
  @ParameterizedTest
  @EnumSource
  void everySize(Kind kind) {
    int most = 20;
    int first = 32; // column of a block
    BlockTarget window = new BlockTarget();
    for (int d = 1; d <= SmallKernel.MOST_DIMENSIONS; d++) {
      for (boolean isDouble : new boolean[] {false, true}) {
        Random random = new Random(d);
        Batch batch = batch(kind, isDouble, first + most, d, random);
        for (int n = 1; n <= most; n++) {
          for (int m = 1; m <= most; m++) {
            DiagonalBatch q = batch.rows(random.nextInt(9), 9 + n).gaussians().batch;
            DiagonalBatch p = batch.rows(0, first + m).gaussians().batch;
            int columns = first + m;
            int stride = columns + n % 3;
            SmallKernel kernel = new SmallKernel(new Worker());
            kernel.begin(q, p);
            for (int column0 : new int[] {0, first}) {
              window.useBlock(true, (n + 1) * stride, 0, 0, stride);
              Arrays.fill(window.block(), GUARD);
              kernel.block(0, n, column0, columns, window);
              for (int i = 0; i < n; i++) {
                for (int j = 0; j < stride; j++) {
                  boolean inside = j >= column0 && j < columns;
                  double expected = inside ? PairKl.of(q, i, p, j) : GUARD;
                  check(kind, d, i, j, expected, window.block()[i * stride + j]);
                }
              }
              assertThat(Arrays.stream(window.block()).skip((long) n * stride)).containsOnly(GUARD);
            }
          }
        }
      }
    }
  }

  /** Across the edges of blocks, by two threads, until it is compiled; float and double results, and a batch with itself. */
  @ParameterizedTest
  @EnumSource
  void everyBlock(Kind kind) {
    everyBlock(kind, Share.SOME);
  }

  @Tag("long")
  @ParameterizedTest
  @EnumSource
  void everyBlockOfOtherPairs(Kind kind) {
    everyBlock(kind, Share.OTHERS);
  }

  private static void everyBlock(Kind kind, Share share) {
    int n = 67;
    int m = 2101;
    try (KlEngine engine = Engines.on(Backend.VECTOR, 2)) {
      for (int d = 1; d <= SmallKernel.MOST_DIMENSIONS; d++) {
        for (boolean isDouble : new boolean[] {false, true}) {
          Random random = new Random(d);
          DiagonalGaussians q = batch(kind, isDouble, n, d, random).gaussians();
          for (Kind other : Kind.values()) {
            if (!share.has(kind.ordinal() + other.ordinal() + d + (isDouble ? 1 : 0))) {
              continue;
            }
            boolean mixed = kind != other;
            Batch columns = batch(other, mixed ? d % 2 == 0 : isDouble, m, d, random);
            DiagonalGaussians p = columns.gaussians();
            double[] expected = expected(q, p);
            for (int repetition = 0; repetition < (mixed ? 1 : 5); repetition++) {
              float[] floats = engine.pairwise(q, p);
              Check.sameBits(kind + ", D=" + d, m, Batch.narrowed(expected), floats);
              double[] doubles = new double[n * m];
              engine.pairwise(q, p, doubles);
              Check.sameBits(kind + ", D=" + d, m, expected, doubles);
            }
          }
          double[] itself = new double[n * n];
          engine.pairwise(q, q, itself);
          Check.sameBits(kind + " with itself, D=" + d, n, expected(q, q), itself);
        }
      }
    }
  }

  private static double[] expected(DiagonalGaussians q, DiagonalGaussians p) {
    double[] kl = new double[q.size() * p.size()];
    for (int i = 0; i < q.size(); i++) {
      for (int j = 0; j < p.size(); j++) {
        kl[i * p.size() + j] = PairKl.of(q.batch, i, p.batch, j);
      }
    }
    return kl;
  }

  private static void check(Kind kind, int d, int i, int j, double expected, double actual) {
    assertThat(Double.doubleToRawLongBits(actual))
        .as("%s, D=%d, [%d, %d]: %s, not %s", kind, d, i, j, actual, expected)
        .isEqualTo(Double.doubleToRawLongBits(expected));
  }

  /** Row by row usual, alike, nearly or quite the same, and of every magnitude that the kind holds, in turn. */
  private static Batch batch(Kind kind, boolean isDouble, int n, int d, Random random) {
    double[] mean = new double[n * d];
    double[] std = new double[n * d];
    double most = isDouble ? 300 : 18;
    for (int k = 0; k < mean.length; k++) {
      double spread =
          switch (k / d % 5) {
            case 0 -> 1;
            case 1 -> 0.1;
            case 2 -> 1e-4;
            case 3 -> 0;
            default -> random.nextInt(8) == 0 ? -1 : 1;
          };
      mean[k] = 1 + spread * random.nextGaussian();
      std[k] = Math.exp(0.5 * spread * random.nextGaussian());
      if (spread < 0) {
        mean[k] = Math.pow(10, most * (2 * random.nextDouble() - 1));
        std[k] = Math.pow(10, most / 2 * (2 * random.nextDouble() - 1));
      }
    }
    return Batch.ofStd(kind, isDouble, mean, std, d);
  }
}
