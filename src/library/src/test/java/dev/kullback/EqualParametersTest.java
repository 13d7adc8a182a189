package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.testing.Batch;
import dev.kullback.testing.Batch.Kind;
import dev.kullback.testing.Check;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Regime;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** KL is exactly 0 for equal parameters, however given; batches are copies. */
@Tag("device")
class EqualParametersTest {
  /**
   * Scales that each kind holds exactly: standard deviations that are powers of two; 1 alone is
   * exact as a logarithm.
   */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void zeroAcrossKinds(Backend backend) {
    Random random = new Random(1);
    for (int dimension : new int[] {1, 3, 32, 47, 300}) {
      double[] mean = random.doubles(7L * dimension, -1000, 1000).toArray();
      double[] powers =
          random.ints(7L * dimension, -9, 10).mapToDouble(e -> Math.scalb(1.0, e)).toArray();
      double[] ones = new double[mean.length];
      Arrays.fill(ones, 1);
      for (Kind a : Kind.values()) {
        for (Kind b : Kind.values()) {
          boolean logarithm = a == Kind.LOG_VARIANCE || b == Kind.LOG_VARIANCE;
          double[] std = logarithm ? ones : powers;
          for (boolean isDouble : new boolean[] {false, true}) {
            DiagonalGaussians q = Batch.ofStd(a, isDouble, mean, std, dimension).gaussians();
            DiagonalGaussians p = Batch.ofStd(b, isDouble, mean, std, dimension).gaussians();
            assertZeroDiagonal(backend, a + " of " + b, q, p);
          }
        }
      }
    }
  }

  /**
   * KL is 0 for the same object, for equal copies, and for values whose squares or quotients overflow, where inf - inf would give NaN.
   */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void zeroForEqualCopiesOfAnyMagnitude(Backend backend) {
    double[] means = {0, 1e-45, 1, 1000, 1e19, 3.4e38, -3.4e38};
    double[] stds = {1e-45, 1e-38, 1e-20, 1e-8, 1, 1e8, 1e20, 3.4e38};
    for (int dimension : new int[] {1, 33}) {
      for (double mean : means) {
        for (double std : stds) {
          for (boolean isDouble : new boolean[] {false, true}) {
            double[] mu = new double[5 * dimension];
            double[] sigma = new double[5 * dimension];
            Arrays.fill(mu, mean);
            Arrays.fill(sigma, std);
            Batch batch = new Batch(Kind.STD, isDouble, mu, sigma, dimension);
            DiagonalGaussians q = batch.gaussians();
            String what = "mean " + mean + ", std " + std;
            assertZeroDiagonal(backend, what + ", same object", q, q);
            assertZeroDiagonal(backend, what + ", equal copies", q, batch.gaussians());
          }
        }
      }
    }
  }

  @Test
  void negativeZeroMeansZero() {
    float[] one = {1, 1};
    DiagonalGaussians q = DiagonalGaussians.ofStd(new float[] {0f, -0f}, one, 1);
    try (KlEngine engine = KlEngine.builder().build()) {
      assertThat(engine.pairwise(q, q)).containsExactly(0f, 0f, 0f, 0f);
    }
  }

  /** Zeros of either sign are told by comparing them, in the time of equal bits, however many precede another number. */
  @Test
  void negativeZerosAreEqual() {
    double[] mean = {0, 1, -0.0, 2, -0.0, 1, 0.0, 2, 0, 1, 0, 3};
    double[] logVariance = {-0.0, 0, 0, 5, 0, -0.0, 0, 5, 0, 0, 0, 5};
    for (boolean isDouble : new boolean[] {false, true}) {
      var g =
          (DiagonalBatch)
              KlEngine.batch(
                  new Batch(Kind.LOG_VARIANCE, isDouble, mean, logVariance, 4).gaussians());
      assertThat(g.isEqual(0, g, 1)).isTrue();
      assertThat(g.isEqual(0, g, 2)).isFalse();
      assertThat(g.isEqual(1, g, 2)).isFalse();
    }
    double[] w = {0, 1, -0.0, 1, 0, 2};
    double[] equal = new double[6];
    double[] one = {1, 1, 1, 1, 1, 1};
    var low =
        (LowRankBatch) KlEngine.batch(LowRankGaussians.of(ScaleKind.VARIANCE, equal, w, one, 2));
    assertThat(low.isEqual(0, low, 1)).isTrue();
    assertThat(low.isEqual(0, low, 2)).isFalse();
    double[] means = {0, 3, -0.0, 3, 0, 3};
    double[] factor = {1, 0, 0.3, 1, 1, 0, 0.3, 1, 1, 0, 0.3, 1};
    var full = FullGaussians.ofScaleTril(means, factor, 2);
    var weights = new double[] {0.3, 0.2, 0.5};
    var reduced = MixtureReduction.reducer(1).williams().reduce(Mixtures.of(full, weights));
    assertThat(reduced.costs()).containsExactly(0, 0);
  }

  /**
   * Finite differences whose squares overflow float, with deviations that make them overflow or
   * not.
   */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void overflowIsInfinite(Backend backend) {
    for (int dimension : new int[] {1, 2, 17, 64}) {
      for (int h = 0; h < dimension; h += 16) {
        float[] mean = new float[dimension];
        float[] far = new float[dimension];
        float[] std = new float[dimension];
        Arrays.fill(std, 1);
        far[h] = Float.MAX_VALUE;
        DiagonalGaussians q = DiagonalGaussians.ofStd(mean, std, dimension);
        DiagonalGaussians p = DiagonalGaussians.ofStd(far, std, dimension);
        std[h] = 1e-30f;
        DiagonalGaussians narrow = DiagonalGaussians.ofStd(mean, std, dimension);
        try (KlEngine engine = Engines.on(backend)) {
          assertThat(engine.pairwise(q, p)).containsExactly(Float.POSITIVE_INFINITY);
          assertThat(engine.aligned(p, q)).containsExactly(Float.POSITIVE_INFINITY);
          assertThat(engine.toStandardNormal(p)).containsExactly(Float.POSITIVE_INFINITY);
          assertThat(engine.pairwise(q, narrow)).containsExactly(Float.POSITIVE_INFINITY);
          // In double the same divergences are finite: max^2 / 2 and 1e60 / 2.
          double largest = (double) Float.MAX_VALUE * Float.MAX_VALUE / 2;
          double ratio = 0.5 / ((double) 1e-30f * 1e-30f);
          Check.Precision precision = Check.Precision.WIDENED;
          double[] out = new double[1];
          double[] expected = {largest};
          Check.matrix("largest mean", 1, expected, engine.pairwise(q, p, out), precision);
          expected[0] = ratio;
          Check.matrix("narrow", 1, expected, engine.pairwise(q, narrow, out), precision);
        }
      }
    }
  }

  /** Construction copies: changing the caller's arrays afterwards changes nothing; no call changes them. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void batchesAreCopies(Backend backend) {
    for (Kind kind : Kind.values()) {
      Batch batch = Regime.VAE.draw(new Regime.Pair(kind, kind), true, 9, 1, 21).q();
      double[] mean = batch.mean().clone();
      double[] scale = batch.scale().clone();
      float[] narrowMean = Batch.narrowed(mean);
      float[] narrowScale = Batch.narrowed(scale);
      DiagonalGaussians q = kind.of(mean, scale, 21);
      DiagonalGaussians p = kind.of(narrowMean, narrowScale, 21);
      try (KlEngine engine = Engines.on(backend)) {
        double[] expected = engine.pairwise(q, p, new double[81]);
        double[] standard = engine.toStandardNormal(p, new double[9]);
        assertThat(mean).containsExactly(batch.mean());
        assertThat(scale).containsExactly(batch.scale());
        assertThat(narrowMean).containsExactly(Batch.narrowed(batch.mean()));
        assertThat(narrowScale).containsExactly(Batch.narrowed(batch.scale()));
        Arrays.fill(mean, Double.NaN);
        Arrays.fill(scale, Double.NaN);
        Arrays.fill(narrowMean, Float.NaN);
        Arrays.fill(narrowScale, Float.NaN);
        Check.sameBits(kind.toString(), 9, expected, engine.pairwise(q, p, new double[81]));
        Check.sameBits("standard", 1, standard, engine.toStandardNormal(p, new double[9]));
      }
    }
  }

  private static void assertZeroDiagonal(
      Backend backend, String what, DiagonalGaussians q, DiagonalGaussians p) {
    try (KlEngine engine = Engines.on(backend)) {
      float[] matrix = engine.pairwise(q, p);
      double[] twice = engine.pairwise(q, p, new double[matrix.length]);
      float[] aligned = engine.aligned(q, p);
      for (int i = 0; i < q.size(); i++) {
        String row = backend + ", " + what + ", D=" + q.dimension() + ", row " + i;
        assertThat(matrix[i * q.size() + i]).as(row).isEqualTo(0f);
        assertThat(twice[i * q.size() + i]).as(row).isEqualTo(0.0);
        assertThat(aligned[i]).as(row).isEqualTo(0f);
      }
    }
  }
}
