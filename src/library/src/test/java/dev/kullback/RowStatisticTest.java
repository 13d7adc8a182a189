package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Check;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import dev.kullback.testing.Regime;
import java.io.IOException;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** One number of each row, and the stream of tiles, against the matrix. */
@Tag("device")
@Tag("vector")
class RowStatisticTest {
  private record Pair(String name, Gaussians q, Gaussians p) {}

  /** Sizes that leave tails; several bands of rows, or several blocks of columns. */
  private static Pair[] pairs() {
    Random random = new Random(1);
    Batch small = Batch.random(false, 300, 7, 0, random);
    Batch wide = Batch.random(true, 4200, 3, 5, random);
    FullBatch full = FullBatch.random(false, 70, 7, 10, 0, random);
    return new Pair[] {
      new Pair("float", small.gaussians(), small.rows(0, 77).gaussians()),
      new Pair("double", wide.rows(3, 43).gaussians(), wide.gaussians()),
      new Pair("full", full.gaussians(), full.rows(1, 30).gaussians()),
      new Pair("mixed", small.gaussians(), full.gaussians()),
      new Pair("one", small.rows(0, 1).gaussians(), small.rows(1, 2).gaussians()),
      new Pair(
          "near",
          Regime.NEAR_1E_6.draw(false, 70, 33, 5).q().gaussians(),
          Regime.NEAR_1E_6.draw(false, 70, 33, 5).p().gaussians()),
    };
  }

  /** Weights above the divergences make KL − w negative, the least of them first. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void weightsMayExceedDivergences(Backend backend) {
    for (Pair pair : pairs()) {
      int m = pair.p.size();
      for (double step : new double[] {1, 60, 600}) {
        double[] w = IntStream.range(0, m).mapToDouble(j -> 1000 + step * (m - j)).toArray();
        try (KlEngine engine = Engines.on(backend)) {
          double[] kl = engine.pairwise(pair.q, pair.p, new double[pair.q.size() * m]);
          double[] weighted = engine.weightedLogSumExp(pair.q, pair.p, w);
          for (int i = 0; i < weighted.length; i++) {
            double expected = logSumExp(Arrays.copyOfRange(kl, i * m, (i + 1) * m), w);
            assertThat(weighted[i]).as(pair.name).isCloseTo(expected, within(1e-12 * expected));
          }
        }
      }
    }
  }

  private static double logSumExp(double[] kl, double[] w) {
    double max = Double.NEGATIVE_INFINITY;
    for (int j = 0; j < kl.length; j++) {
      max = Math.max(max, w[j] - kl[j]);
    }
    double sum = 0;
    for (int j = 0; j < kl.length; j++) {
      sum += Math.exp(w[j] - kl[j] - max);
    }
    return max + Math.log(sum);
  }

  /** Terms that exp underflows on, infinite divergences, weights of nothing. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void extremes(Backend backend) {
    DiagonalGaussians q =
        DiagonalGaussians.ofLogVariance(new double[] {0, 1e5}, new double[] {0, 0}, 1);
    DiagonalGaussians p =
        DiagonalGaussians.ofLogVariance(new double[] {0, 0}, new double[] {0, -800}, 1);
    double none = Double.NEGATIVE_INFINITY;
    try (KlEngine engine = Engines.on(backend)) {
      assertThat(engine.pairwise(q, p, new double[4])[3]).isEqualTo(Double.POSITIVE_INFINITY);
      assertThat(engine.logSumExp(q, p)[0]).isZero();
      assertThat(engine.logSumExp(q, p)[1]).isCloseTo(-5e9, within(5e9 * 1e-12));
      assertThat(engine.rowSum(q, p)[1]).isEqualTo(Double.POSITIVE_INFINITY);
      assertThat(engine.rowMin(q, p)[1]).isCloseTo(5e9, within(5e9 * 1e-12));
      assertThat(engine.weightedLogSumExp(q, p, new double[] {none, none}, new double[2]))
          .containsOnly(none);
      assertThat(engine.weightedLogSumExp(q, p, new double[] {none, 0}, new double[2])[1])
          .isEqualTo(none);
      refused(
          () -> engine.weightedLogSumExp(q, p, new double[] {0, Double.NaN}, new double[2]),
          "logWeights[1]");
      assertThatIllegalArgumentException()
          .isThrownBy(() ->
              engine.weightedLogSumExp(
                  q, p, new double[] {Double.POSITIVE_INFINITY, 0}, new double[2]));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> engine.weightedLogSumExp(q, p, new double[3], new double[2]));
      double[] both = {-1, -2};
      refused(() -> engine.weightedLogSumExp(q, p, both, both), "same array");
      assertThat(both).containsExactly(-1, -2);
      assertThatIllegalArgumentException().isThrownBy(() -> engine.rowMin(q, p, new double[1]));
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void tilesCoverTheMatrixOnce(Backend backend) {
    for (Pair pair : pairs()) {
      int n = pair.q.size();
      int m = pair.p.size();
      for (int threads : new int[] {1, 4}) {
        try (KlEngine engine = Engines.on(backend, threads)) {
          double[] kl = engine.pairwise(pair.q, pair.p, new double[n * m]);
          double[] seen = new double[n * m];
          LongAdder entries = new LongAdder();
          engine.forEachTile(
              pair.q,
              pair.p,
              tile -> {
                for (int i = 0; i < tile.rows(); i++) {
                  for (int j = 0; j < tile.columns(); j++) {
                    seen[(tile.rowOffset() + i) * m + tile.columnOffset() + j] = tile.value(i, j);
                  }
                }
                assertThat(tile.values()[tile.columns() * tile.rows() - 1])
                    .isEqualTo(tile.value(tile.rows() - 1, tile.columns() - 1));
                entries.add((long) tile.rows() * tile.columns());
              });
          assertThat(entries.sum()).isEqualTo((long) n * m);
          Check.sameBits(pair.name, m, kl, seen);
        }
      }
    }
  }

  /** Of the caller's thread or of another, a checked exception, too, as a consumer of another language may throw. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void whatTheConsumerThrowsEndsTheCall(Backend backend) {
    DiagonalGaussians q = Batch.random(false, 4096, 1, 0, new Random(1)).gaussians();
    DiagonalGaussians few = Batch.random(false, 99, 1, 0, new Random(2)).gaussians();
    Thread caller = Thread.currentThread();
    for (int turn = 0; turn < 6; turn++) {
      int threads = turn < 2 ? 1 : 3;
      boolean isOfCaller = turn < 4;
      Exception thrown = turn % 2 == 0 ? new IllegalStateException() : new IOException("checked");
      AtomicInteger running = new AtomicInteger();
      AtomicInteger failed = new AtomicInteger();
      try (KlEngine engine = Engines.on(backend, threads)) {
        assertThatThrownBy(() ->
                engine.forEachTile(
                    q,
                    q,
                    tile -> {
                      running.incrementAndGet();
                      try {
                        if ((Thread.currentThread() == caller) == isOfCaller) {
                          failed.incrementAndGet();
                          RowStatisticTest.<RuntimeException>sneak(thrown);
                        }
                        Thread.sleep(1);
                      } catch (InterruptedException e) {
                        throw new AssertionError(e);
                      } finally {
                        running.decrementAndGet();
                      }
                    }))
            .isSameAs(thrown);
        assertThat(running.get()).isZero();
        assertThat(failed.get()).isBetween(1, threads);
        assertThat(engine.rowMin(few, few)).containsOnly(0); // the engine is as good as before
      }
    }
  }

  /** One row, whose columns threads share. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void whatEndsACall(Backend backend) {
    DiagonalGaussians p = Batch.random(false, 20_000, 64, 0, new Random(2)).gaussians();
    DiagonalGaussians q = Batch.random(false, 1, 64, 0, new Random(1)).gaussians();
    try (KlEngine engine = Engines.on(backend, 3)) {
      int[] expected = engine.nearest(q, p, 5).indices();
      for (int i = 0; i < 20; i++) {
        refused(
            () -> engine.search(q, p, Query.within(1e30).maxPairs(10_000)),
            "more than 10000 pairs");
        Thread.currentThread().interrupt();
        assertThatExceptionOfType(CancellationException.class)
            .isThrownBy(() -> engine.nearest(q, p, 5));
        assertThat(Thread.interrupted()).isTrue();
        assertThat(engine.nearest(q, p, 5).indices()).isEqualTo(expected);
      }
    }
  }

  @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
  private static <E extends Throwable> void sneak(Throwable e) throws E {
    throw (E) e;
  }
}
