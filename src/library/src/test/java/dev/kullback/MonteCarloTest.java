package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.internal.mixture.Estimate;
import dev.kullback.internal.mixture.PairSampler;
import dev.kullback.testing.Batch;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import dev.kullback.testing.Share;
import java.util.Arrays;
import java.util.Random;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Sampled divergences agree with the closed form, by their own standard errors. */
class MonteCarloTest {
  private static final int N = 40;
  private static final int D = 5;

  private static Gaussians[] batches(boolean isDouble) {
    return new Gaussians[] {
      Batch.random(isDouble, N, D, 0, new Random(1)).gaussians(),
      Batch.ofStd(
              Batch.Kind.LOG_VARIANCE,
              isDouble,
              new Random(2).doubles(N * D).toArray(),
              new Random(3).doubles(N * D, 0.5, 2).toArray(),
              D)
          .gaussians(),
      FullBatch.random(isDouble, N, D, 20, 0, new Random(4)).gaussians(),
      FullBatch.random(isDouble, N, D, 5, 0.5, new Random(5))
          .as(FullBatch.Kind.COVARIANCE)
          .gaussians(),
    };
  }

  @Test
  void withinFiveStandardErrors() {
    int samples = 2000;
    try (KlEngine engine = KlEngine.builder().build()) {
      for (boolean isDouble : new boolean[] {false, true}) {
        Gaussians[] batches = batches(isDouble);
        for (Gaussians q : batches) {
          for (Gaussians p : batches) {
            double[] exact = engine.aligned(q, p, new double[N]);
            MonteCarloEstimates sampled = engine.monteCarlo(q, p, samples, 42);
            assertThat(sampled.size()).isEqualTo(N);
            for (int i = 0; i < N; i++) {
              assertThat(sampled.estimate(i))
                  .as("%s, %s, pair %d", q, p, i)
                  .isCloseTo(exact[i], within(5 * sampled.standardError(i)));
              // the spread of ln q − ln p over √S
              assertThat(sampled.standardError(i)).isLessThan(0.3 * (exact[i] + 0.5));
            }
          }
        }
      }
    }
  }

  /** The standard error is known for equal covariances: ln q − ln p is normal of variance 2 KL. */
  @Test
  void standardErrorIsRight() {
    DiagonalGaussians q = DiagonalGaussians.ofStd(new double[] {0, 0}, new double[] {1, 1}, 2);
    DiagonalGaussians p = DiagonalGaussians.ofStd(new double[] {1, -2}, new double[] {1, 1}, 2);
    try (KlEngine engine = KlEngine.builder().build()) {
      MonteCarloEstimates sampled = engine.monteCarlo(q, p, 40_000, 7);
      assertThat(sampled.standardError(0)).isCloseTo(Math.sqrt(2 * 2.5 / 40_000), within(2e-4));
    }
  }

  /** Pairs that rounding alone, or little more, tells apart: the same Gaussians stated otherwise, and near-duplicates. */
  @Test
  void standardErrorIsRightHoweverSmall() {
    standardErrorIsRightHoweverSmall(Share.SOME);
  }

  @Tag("long")
  @Test
  void standardErrorOfOthersIsRightHoweverSmall() {
    standardErrorIsRightHoweverSmall(Share.OTHERS);
  }

  private static void standardErrorIsRightHoweverSmall(Share share) {
    int n = 400;
    for (int d : new int[] {1, D}) {
      Random random = new Random(d);
      double[] mean = random.doubles((long) n * d).toArray();
      double[] std = random.doubles((long) n * d, 0.5, 1.5).toArray();
      for (Batch.Kind a : Batch.Kind.values()) {
        if (!share.has(d + a.ordinal())) {
          continue;
        }
        Batch batch = Batch.ofStd(a, true, mean, std, d);
        DiagonalGaussians q = batch.gaussians();
        for (Batch.Kind b : Batch.Kind.values()) {
          if (a != b) {
            Batch other = Batch.ofStd(b, true, mean, std, d);
            checkSpread(q, other.gaussians(), 1e-29);
            checkSpread(FullBatch.of(batch).gaussians(), other.gaussians(), 1e-29);
          }
        }
        for (double change : new double[] {1e-15, 1e-13, 1e-10, 1e-1}) {
          double[] nearMean = perturbed(mean, change, random);
          double[] nearScale = perturbed(batch.scale(), change, random);
          Batch near = new Batch(a, true, nearMean, nearScale, d);
          double largest = 100 * change * change;
          checkSpread(q, near.gaussians(), largest);
          checkSpread(FullBatch.of(near).gaussians(), q, largest);
        }
      }
      FullBatch tril = FullBatch.random(true, n, d, 100, 0, random);
      FullGaussians full = tril.gaussians();
      if (d > 1) { // the one factor is 1, exactly
        checkSpread(full, tril.as(FullBatch.Kind.COVARIANCE).gaussians(), 1e-25);
        checkSpread(tril.as(FullBatch.Kind.PRECISION).gaussians(), full, 1e-25);
      }
      double[] matrix = perturbed(tril.matrix(), 1e-13, random);
      checkSpread(full, FullGaussians.ofScaleTril(tril.mean(), matrix, d), 1e-22);
    }
  }

  private static double[] perturbed(double[] values, double change, Random random) {
    return Arrays.stream(values).map(x -> x * (1 + change * random.nextGaussian())).toArray();
  }

  /** Over many pairs the errors, in standard errors, have a variance of about 1. */
  private static void checkSpread(Gaussians q, Gaussians p, double largest) {
    int samples = 1000;
    try (KlEngine engine = KlEngine.builder().build()) {
      double[] exact = engine.aligned(q, p, new double[q.size()]);
      MonteCarloEstimates sampled = engine.monteCarlo(q, p, samples, 7);
      PairSampler sampler = PairSampler.of(KlEngine.batch(q, "q"), KlEngine.batch(p, "p"));
      double squares = 0;
      int pairs = 0;
      for (int i = 0; i < exact.length; i++) {
        if (exact[i] == 0) {
          assertThat(sampled.estimate(i)).isZero();
          continue;
        }
        assertThat(exact[i]).isLessThan(largest);
        double error = (sampled.estimate(i) - exact[i]) / sampled.standardError(i);
        squares += error * error;
        if (pairs++ < 10) { // what rounding adds does not show
          Estimate estimate = sampler.sample(i, samples, new SplittableRandom(i));
          assertThat(estimate.floor()).isLessThan(1e-6 * estimate.standardError());
        }
      }
      assertThat(squares / pairs).as("%s, %s", q, p).isBetween(0.7, 1.4);
    }
  }

  @Test
  void equalGaussians() {
    double[] mean = {1, 2, 3};
    double[] variance = {2, 3, 5};
    DiagonalGaussians q = DiagonalGaussians.ofVariance(mean, variance, 3);
    DiagonalGaussians same = DiagonalGaussians.ofVariance(mean, variance, 3);
    Batch batch = new Batch(Batch.Kind.VARIANCE, true, mean, variance, 3);
    try (KlEngine engine = KlEngine.builder().build()) {
      assertThat(engine.monteCarlo(q, same, 9, 0).estimate(0)).isZero();
      assertThat(engine.monteCarlo(q, same, 9, 0).standardError(0)).isZero();
      // twice the precision of double, which is what the square roots have
      MonteCarloEstimates full = engine.monteCarlo(q, FullBatch.of(batch).gaussians(), 9, 0);
      assertThat(full.estimate(0)).isZero();
      assertThat(full.standardError(0)).isBetween(1e-32, 1e-28);
    }
  }

  @Test
  void reproducible() {
    Batch batch = Batch.random(true, N, D, 0, new Random(1));
    Gaussians q = batch.gaussians();
    Gaussians p = Batch.random(true, N, D, 0, new Random(2)).gaussians();
    try (KlEngine engine = KlEngine.builder().build();
        KlEngine other = KlEngine.builder().threads(3).backend(Backend.SCALAR).build()) {
      MonteCarloEstimates first = engine.monteCarlo(q, p, 10, 1);
      MonteCarloEstimates again = other.monteCarlo(q, p, 10, 1);
      MonteCarloEstimates seeded = engine.monteCarlo(q, p, 10, 2);
      MonteCarloEstimates part =
          engine.monteCarlo(
              batch.rows(0, 3).gaussians(),
              Batch.random(true, N, D, 0, new Random(2)).rows(0, 3).gaussians(),
              10,
              1);
      for (int i = 0; i < N; i++) {
        assertThat(again.estimate(i)).isEqualTo(first.estimate(i));
        assertThat(seeded.estimate(i)).isNotEqualTo(first.estimate(i));
        assertThat(i >= 3 || part.estimate(i) == first.estimate(i)).isTrue();
      }
    }
  }

  @Test
  void rejected() {
    Batch batch = Batch.random(true, 3, D, 0, new Random(1));
    Gaussians q = batch.gaussians();
    DiagonalGaussians zero =
        (DiagonalGaussians)
            Gaussians.of(
                ScaleKind.STD,
                new float[3 * D],
                new float[3 * D],
                D,
                ScalePolicy.DETERMINISTIC_IF_ZERO);
    try (KlEngine engine = KlEngine.builder().build()) {
      assertThatIllegalArgumentException().isThrownBy(() -> engine.monteCarlo(q, q, 1, 0));
      try (KlEngine other = KlEngine.builder().divergence(Divergence.JEFFREYS).build()) {
        assertThatIllegalArgumentException()
            .isThrownBy(() -> other.monteCarlo(q, q, 9, 0))
            .withMessageStartingWith("the engine computes jeffreys; samples estimate KL");
      }
      assertThatIllegalArgumentException()
          .isThrownBy(() -> engine.monteCarlo(q, batch.rows(0, 2).gaussians(), 9, 0));
      assertThat(engine.monteCarlo(zero, q, 9, 0).estimate(2)).isZero();
    }
  }

  @Test
  void endsOfTheRange() {
    try (KlEngine engine = Engines.on(Backend.AUTO)) {
      DiagonalGaussians far = DiagonalGaussians.ofStd(new double[] {1e200}, new double[] {1}, 1);
      DiagonalGaussians zero = DiagonalGaussians.ofStd(new double[1], new double[] {1}, 1);
      MonteCarloEstimates infinite = engine.monteCarlo(far, zero, 100, 1);
      assertThat(infinite.estimate(0)).isPositive().isInfinite();
      assertThat(infinite.standardError(0)).isInfinite();
      DiagonalGaussians q = DiagonalGaussians.ofLogVariance(new double[1], new double[] {-800}, 1);
      DiagonalGaussians p = DiagonalGaussians.ofLogVariance(new double[1], new double[] {-801}, 1);
      MonteCarloEstimates narrow = engine.monteCarlo(q, p, 100_000, 1);
      assertThat(Math.abs(narrow.estimate(0) - 0.5 * (Math.E - 1 - 1)))
          .isLessThan(5 * narrow.standardError(0));
    }
  }
}
