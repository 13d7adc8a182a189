package dev.kullback;

import static dev.kullback.testing.Refusal.refusedAs;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Divergences of pairs by index. */
@Tag("device")
class PairsTest {
  /** The matrix's diagonal, to the bit, and so the same for all numbers of threads. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void areThoseOfAligned(Backend backend) {
    int n = 60_000;
    Batch a = Batch.random(false, n, 3, 0, new Random(2));
    Batch b = Batch.random(true, n, 3, 0, new Random(3));
    FullBatch full = FullBatch.random(true, 9, 4, 30, 0, new Random(4));
    int[] all = IntStream.range(0, n).toArray();
    int[] few = IntStream.range(0, 9).toArray();
    for (int threads : new int[] {1, 3}) {
      try (KlEngine engine = Engines.on(backend, threads);
          KlEngine plain = Engines.on(Backend.SCALAR)) {
        double[] out = new double[n];
        engine.pairs(a.gaussians(), all, b.gaussians(), all, out);
        assertThat(out).isEqualTo(plain.aligned(a.gaussians(), b.gaussians(), new double[n]));
        double[] fulls = new double[9];
        FullBatch q = full.rows(0, 9);
        engine.pairs(
            q.gaussians(), few, full.as(FullBatch.Kind.COVARIANCE).gaussians(), few, fulls);
        assertThat(fulls)
            .isEqualTo(
                plain.aligned(
                    q.gaussians(), full.as(FullBatch.Kind.COVARIANCE).gaussians(), new double[9]));
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void specialCases(Backend backend) {
    DiagonalGaussians p = Batch.random(false, 4, 3, 0, new Random(5)).gaussians();
    Gaussians zero =
        Gaussians.of(
            ScaleKind.STD, new float[3], new float[3], 3, ScalePolicy.DETERMINISTIC_IF_ZERO);
    try (KlEngine engine = Engines.on(backend)) {
      double[] out = {-1, -1};
      engine.pairs(p, new int[] {2, 2}, p, new int[] {2, 3}, out);
      assertThat(out[0]).isZero();
      assertThat(out[1]).isPositive();
      engine.pairs(zero, new int[] {0}, p, new int[] {1}, out);
      assertThat(out[0]).isZero();
      engine.pairs(p, new int[0], p, new int[0], new double[0]);
      Thread.currentThread().interrupt();
      int[] many = new int[3_000_000];
      assertThatThrownBy(
              () -> engine.pairs(p, many, p, new int[many.length], new double[many.length]))
          .isInstanceOf(CancellationException.class);
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  /** What the laws of arguments do not try. */
  @Test
  void errors() {
    DiagonalGaussians q = Batch.random(false, 4, 3, 0, new Random(6)).gaussians();
    DiagonalGaussians p = Batch.random(false, 2, 3, 0, new Random(7)).gaussians();
    double[] out = new double[2];
    try (KlEngine engine = KlEngine.builder().build()) {
      refusedAs(
          "rows[1] is 4; it must be in [0, 4), the Gaussians of q",
          () -> engine.pairs(q, new int[] {0, 4}, p, new int[2], out));
      refusedAs(
          "columns[0] is -1; it must be in [0, 2), the Gaussians of p",
          () -> engine.pairs(q, new int[2], p, new int[] {-1, 0}, out));
    }
  }
}
