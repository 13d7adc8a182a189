package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import dev.kullback.testing.Share;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.CancellationException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Reductions of fewer bands of rows than there are threads, which then share the columns: the bits of one thread. */
class FewRowsTest {
  private static final int[] THREADS = {2, 5};

  /** Likeness of the references: how many of them no kernel tells apart from another. */
  private enum Alike {
    NOT,
    /** Copies of a few. */
    COPIES,
    /** All within the error of the kernels. */
    ALL,
    /** Some 60 of each 1000, which are the nearest. */
    SOME
  }

  private static Batch references(Alike alike, boolean isDouble, int m, int d) {
    Random random = new Random(d);
    double[] mean = new double[m * d];
    double[] std = new double[m * d];
    double near = isDouble ? 1e-14 : 3e-7;
    for (int j = 0; j < m; j++) {
      boolean close = alike == Alike.ALL || (alike == Alike.SOME && random.nextInt(1000) < 60);
      for (int h = 0; h < d; h++) {
        int k = j * d + h;
        mean[k] = close ? 1 + near * random.nextGaussian() : 3 * random.nextGaussian();
        std[k] = close ? 1 : Math.exp(0.3 * random.nextGaussian());
        if (alike == Alike.COPIES && j >= 7) {
          int from = (int) (j * 31L % 7);
          mean[k] = mean[from * d + h];
          std[k] = std[from * d + h];
        }
      }
    }
    return Batch.ofStd(Batch.Kind.STD, isDouble, mean, std, d);
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void sameBitsForEveryThreadCount(Backend backend) {
    sameBitsForEveryThreadCount(backend, Share.SOME);
  }

  @Tag("long")
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void sameBitsForEveryThreadCountOfOthers(Backend backend) {
    sameBitsForEveryThreadCount(backend, Share.OTHERS);
  }

  private static void sameBitsForEveryThreadCount(Backend backend, Share share) {
    for (Alike alike : Alike.values()) {
      for (boolean isDouble : new boolean[] {false, true}) {
        if (!share.has(backend.ordinal() + alike.ordinal() + (isDouble ? 1 : 0))) {
          continue;
        }
        int n = isDouble ? 9 : 1;
        int d = isDouble ? 17 : 83;
        int m = isDouble ? 7001 : 13_001; // a million terms: fewer are not shared
        DiagonalGaussians p = references(alike, isDouble, m, d).gaussians();
        DiagonalGaussians q = Batch.random(isDouble, n, d, 0, new Random(n)).gaussians();
        check(backend, alike + (isDouble ? ", double" : ", float"), q, p);
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void fullBatches(Backend backend) {
    Random random = new Random(1);
    Gaussians many = FullBatch.random(false, 9000, 12, 10, 0, random).gaussians();
    Gaussians few = FullBatch.random(false, 10, 12, 10, 1, random).gaussians();
    check(backend, "full", few, many);
  }

  @Tag("long")
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void mixedBatches(Backend backend) {
    Random random = new Random(1);
    Gaussians full = FullBatch.random(true, 2, 12, 10, 0, random).gaussians();
    Gaussians diagonal = Batch.random(false, 45_000, 12, 0, random).gaussians();
    check(backend, "mixed", full, diagonal);
  }

  private static void check(Backend backend, String what, Gaussians q, Gaussians p) {
    Object[] expected;
    try (KlEngine engine = Engines.on(backend)) {
      expected = all(engine, q, p);
    }
    for (int threads : THREADS) {
      try (KlEngine engine = Engines.on(backend, threads)) {
        Object[] actual = all(engine, q, p);
        for (int i = 0; i < actual.length; i++) {
          assertThat(Arrays.deepEquals(new Object[] {actual[i]}, new Object[] {expected[i]}))
              .as("%s, result %d, %d threads", what, i, threads)
              .isTrue();
        }
      }
    }
  }

  private static Object[] all(KlEngine engine, Gaussians q, Gaussians p) {
    double[] weights = new Random(1).doubles(p.size(), -3, 3).toArray();
    for (int j = 0; j < 5000; j++) {
      weights[j] = Double.NEGATIVE_INFINITY; // a block and more of no weight
    }
    int n = q.size();
    int[] indices = new int[n * 300];
    double[] values = new double[n * 300];
    engine.search(q, p, Query.nearest(300), indices, values);
    int[] one = new int[n];
    double[] least = new double[n];
    engine.search(q, p, Query.nearest(1), one, least);
    int[] most = new int[n * 5000];
    double[] far = new double[n * 5000];
    engine.search(q, p, Query.nearest(5000), most, far);
    double radius = values[n * 300 - 1];
    Neighbors reverse = engine.search(q, p, Query.nearest(20).reverse());
    Neighbors within = engine.within(q, p, radius);
    Neighbors withinReverse = engine.search(q, p, Query.within(radius).reverse());
    return new Object[] {
      indices,
      values,
      one,
      least,
      most,
      far,
      reverse.indices(),
      reverse.values(),
      within.indices(),
      within.values(),
      withinReverse.indices(),
      withinReverse.values(),
      engine.logSumExp(q, p),
      engine.weightedLogSumExp(q, p, weights),
      engine.rowMin(q, p),
      engine.rowSum(q, p)
    };
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void whatEndsACall(Backend backend) {
    DiagonalGaussians p = references(Alike.NOT, false, 20_000, 64).gaussians();
    DiagonalGaussians q = Batch.random(false, 1, 64, 0, new Random(1)).gaussians();
    try (KlEngine engine = Engines.on(backend, 3)) {
      int[] expected = engine.nearest(q, p, 5).indices();
      for (int i = 0; i < 20; i++) {
        assertThatIllegalArgumentException()
            .isThrownBy(() -> engine.search(q, p, Query.within(1e30).maxPairs(10_000)))
            .withMessageContaining("more than 10000 pairs");
        Thread.currentThread().interrupt();
        assertThatExceptionOfType(CancellationException.class)
            .isThrownBy(() -> engine.nearest(q, p, 5));
        assertThat(Thread.interrupted()).isTrue();
        assertThat(engine.nearest(q, p, 5).indices()).isEqualTo(expected);
      }
    }
  }
}
