package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.testing.Batch;
import dev.kullback.testing.DivergenceOracle;
import dev.kullback.testing.Engines;
import dev.kullback.testing.GradientOracle;
import dev.kullback.testing.OtherCases;
import dev.kullback.testing.Regime;
import dev.kullback.testing.Share;
import dev.kullback.testing.WarmCalls;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Gradients against derivatives in 77 digits, whose error is relative to the sum of the magnitudes of their terms. */
@Tag("vector")
class GradientTest {
  private static final List<Divergence> DIVERGENCES =
      List.of(Divergence.KL, Divergence.JEFFREYS, Divergence.SQUARED_WASSERSTEIN_2);

  private static final String[] NAMES = {"q's mean", "q's scale", "p's mean", "p's scale"};

  /** Numbers below which products underflow on the way, in batches of float and of double. */
  private static final double LEAST32 = 1e-30;

  private static final double LEAST64 = 1e-290;

  /** The gradients of a call. */
  private record Arrays4(double[] qMean, double[] qScale, double[] pMean, double[] pScale) {
    static Arrays4 of(Batch q, Batch p) {
      return new Arrays4(nan(q), nan(q), nan(p), nan(p));
    }

    private static double[] nan(Batch batch) {
      double[] array = new double[batch.mean().length + 1];
      Arrays.fill(array, Double.NaN);
      return array;
    }

    KlGradient of(KlEngine engine) {
      return engine.gradient().q(qMean, qScale).p(pMean, pScale);
    }

    double[][] all() {
      return new double[][] {qMean, qScale, pMean, pScale};
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void regimes(Backend backend) {
    regimes(backend, Share.SOME);
  }

  @OtherCases
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void otherRegimes(Backend backend) {
    regimes(backend, Share.OTHERS);
  }

  private static void regimes(Backend backend, Share share) {
    int number = 0;
    for (Divergence divergence : DIVERGENCES) {
      try (KlEngine engine = KlEngine.builder().divergence(divergence).backend(backend).build()) {
        for (Regime regime : Regime.values()) {
          for (Regime.Pair kinds : regime.kindPairs()) {
            for (boolean isDouble : new boolean[] {false, true}) {
              if (regime.appliesTo(isDouble) && share.has(number++)) {
                Regime.Case drawn = regime.draw(kinds, isDouble, 5, 6, 3);
                String what = divergence.name() + " " + regime + " " + kinds + " " + isDouble;
                checkAll(engine, what, drawn.q(), drawn.p());
              }
            }
          }
        }
      }
    }
  }

  private static void checkAll(KlEngine engine, String what, Batch q, Batch p) {
    DiagonalGaussians a = q.gaussians();
    DiagonalGaussians b = p.gaussians();
    int n = q.size();
    int m = p.size();
    Random random = new Random(7);
    double[] g = random.doubles((long) n * m, -1, 1).toArray();
    g[1] = 0;
    Arrays4 out = Arrays4.of(q, p);
    out.of(engine).pairwise(a, b, g);
    check(what, engine.divergence(), q, p, g, out);

    double[] rows = random.doubles(n, -1, 1).toArray();
    double[] ofRows = new double[n * m];
    for (int i = 0; i < n; i++) {
      Arrays.fill(ofRows, i * m, (i + 1) * m, rows[i]);
    }
    out.of(engine).rowSum(a, b, rows);
    check(what + ", rowSum", engine.divergence(), q, p, ofRows, out);

    checkPairs(engine, what, q, p.rows(0, n), rows);
  }

  private static void checkPairs(KlEngine engine, String what, Batch q, Batch p, double[] rows) {
    DiagonalGaussians a = q.gaussians();
    int n = q.size();
    double[] diagonal = new double[n * n];
    for (int i = 0; i < n; i++) {
      diagonal[i * n + i] = rows[i];
    }
    Arrays4 pairs = Arrays4.of(q, p);
    pairs.of(engine).aligned(a, p.gaussians(), rows);
    check(what + ", aligned", engine.divergence(), q, p, diagonal, pairs);

    double unit = q.kind() == Batch.Kind.LOG_VARIANCE ? 0 : 1;
    double[] units = new double[q.mean().length];
    Arrays.fill(units, unit);
    Batch normal =
        new Batch(q.kind(), q.isDouble(), new double[units.length], units, q.dimension());
    Arrays4 standard = Arrays4.of(q, normal);
    engine.gradient().q(standard.qMean, standard.qScale).toStandardNormal(a, rows);
    check(what + ", standard", engine.divergence(), q, normal, diagonal, standard, 2);
  }

  private static void check(
      String what, Divergence divergence, Batch q, Batch p, double[] g, Arrays4 out) {
    check(what, divergence, q, p, g, out, 4);
  }

  private static void check(
      String what, Divergence divergence, Batch q, Batch p, double[] g, Arrays4 out, int parts) {
    GradientOracle expected = GradientOracle.of(divergence, q, p, g);
    boolean wide = q.isDouble() || p.isDouble();
    for (int k = 0; k < parts; k++) {
      double[] actual = out.all()[k];
      for (int at = 0; at < expected.values[k].length; at++) {
        double most =
            (wide ? 1e-12 : 1e-5) * expected.magnitudes[k][at] + (wide ? LEAST64 : LEAST32);
        Batch batch = k < 2 ? q : p;
        boolean byScale = k % 2 == 1 && batch.kind() != Batch.Kind.LOG_VARIANCE;
        double unit = byScale ? Math.max(1, Math.abs(batch.scale()[at])) : 1;
        if (expected.magnitudes[k][at] * unit > 1e295) { // v ∂/∂v is beyond double
          assertThat(actual[at]).as("%s, %s [%d]", what, NAMES[k], at).isNotNaN();
        } else if (!(Math.abs(actual[at] - expected.values[k][at]) <= most)) {
          assertThat(actual[at])
              .as(
                  "%s, %s [%d], error %s of the terms",
                  what,
                  NAMES[k],
                  at,
                  Math.abs(actual[at] - expected.values[k][at]) / expected.magnitudes[k][at])
              .isEqualTo(expected.values[k][at]);
        }
      }
      assertThat(actual[actual.length - 1]).as("what is behind").isNaN();
    }
  }

  /**
   * Pairs of rows, some elements at a time: of a part of a row, of several rows, of which one may be beyond double's kernels, and some as far
   * apart as where log-variances change their form.
   */
  @Test
  void partsOfPairs() {
    for (Divergence divergence : DIVERGENCES) {
      try (KlEngine engine = KlEngine.builder().divergence(divergence).build()) {
        for (Batch.Kind kind : Batch.Kind.values()) {
          for (int[] shape : new int[][] {{2, 401}, {231, 3}}) {
            for (boolean isDouble : new boolean[] {false, true}) {
              Regime.Pair kinds = new Regime.Pair(kind, kind);
              Regime.Case drawn = Regime.ALIKE.draw(kinds, isDouble, shape[0], shape[0], shape[1]);
              Batch q = drawn.q();
              Batch p = drawn.p();
              for (int k = 0; k < q.scale().length && kind == Batch.Kind.LOG_VARIANCE; k += 3) {
                double near =
                    q.scale()[k] + 0x1p-7 * (k % 2 == 0 ? 1 : -1) * (1 + (k % 5 - 2) * 0.1);
                p.scale()[k] = isDouble ? near : (float) near;
              }
              double[] rows = new Random(7).doubles(q.size(), -1, 1).toArray();
              String what = divergence.name() + Arrays.toString(shape) + kind + isDouble;
              checkPairs(engine, what, q, p, rows);
              if (isDouble) {
                q.scale()[7] = kind.fromStd.applyAsDouble(1e-100);
                checkPairs(engine, what + ", beyond", q, p, rows);
              }
            }
          }
        }
      }
    }
  }

  /**
   * Log-variances so near 0 that parts of variances do not tell them apart: of all Gaussians in one dimension and of two of them in another, or
   * of all but one that is far from 0, of q or of p, so that all sums of the other batch are large, but only one of its own is.
   */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void logVariancesNearZero(Backend backend) {
    int n = 6;
    for (Divergence divergence : DIVERGENCES) {
      try (KlEngine engine = KlEngine.builder().divergence(divergence).backend(backend).build()) {
        for (boolean isDouble : new boolean[] {false, true}) {
          for (int far : new int[] {-1, 0, 1}) {
            int d = far < 0 ? 3 : 1;
            Batch[] drawn = new Batch[2];
            for (int side = 0; side < 2; side++) {
              Random random = new Random(2L * far + side);
              double[] scale = random.doubles(d * n, -3, 3).toArray();
              for (int i = 0; i < n; i++) {
                double tiny = nearZero(isDouble, random);
                scale[d * i] = tiny;
                scale[d * i + d / 3] = far >= 0 || i == 0 ? tiny : scale[d * i + d / 3];
              }
              scale[d * n - 1] = side == far ? 2 : scale[d * n - 1];
              double[] mean = new double[d * n];
              drawn[side] = new Batch(Batch.Kind.LOG_VARIANCE, isDouble, mean, scale, d);
            }
            double[] g = new Random(7).doubles(n * n, 0.5, 1).toArray();
            Arrays4 out = Arrays4.of(drawn[0], drawn[1]);
            out.of(engine).pairwise(drawn[0].gaussians(), drawn[1].gaussians(), g);
            String what = "%s, near 0, %s, far %d".formatted(divergence.name(), isDouble, far);
            check(what, divergence, drawn[0], drawn[1], g, out);
          }
        }
      }
    }
  }

  /** One of four log-variances, roundings apart, which the parts of variances do not tell apart. */
  private static double nearZero(boolean isDouble, Random random) {
    int k = random.nextInt(4);
    return isDouble ? 0x1.5555555555555p-30 + k * 0x1p-82 : 0x1.5554p-13 + k * 0x1p-36;
  }

  /** Cotangents so large or small that float or double kernels do not take them. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void cotangentsOfAllSizes(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      Regime.Case drawn = Regime.VAE.draw(isDouble, 6, 7, 3);
      Batch q = drawn.q();
      Batch p = drawn.p();
      double[] sizes = {1, 0, 1e-20, 1e20, -1e25, 1e-40, 1e100, -1e-200};
      double[] g = new double[q.size() * p.size()];
      for (int k = 0; k < g.length; k++) {
        g[k] = sizes[k * 5 % 8];
      }
      Arrays4 out = Arrays4.of(q, p);
      try (KlEngine engine = Engines.on(backend)) {
        out.of(engine).pairwise(q.gaussians(), p.gaussians(), g);
        check("large", Divergence.KL, q, p, g, out);
        double[] alike = new double[g.length];
        for (double size : new double[] {1e-35, 1e-25, 1e-15, 1e15, 1e60, 1e200}) {
          Arrays.fill(alike, size);
          out.of(engine).pairwise(q.gaussians(), p.gaussians(), alike);
          check("all " + size, Divergence.KL, q, p, alike, out);
        }
      }
    }
  }

  /** Where a cotangent is 0 in float, its derivatives are not. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void cotangentsBelowFloats(Backend backend) {
    Regime.Case drawn = Regime.VAE.draw(false, 1, 1, 3);
    DiagonalGaussians q = drawn.q().gaussians();
    DiagonalGaussians p = drawn.p().gaussians();
    Arrays4 one = Arrays4.of(drawn.q(), drawn.p());
    Arrays4 tiny = Arrays4.of(drawn.q(), drawn.p());
    try (KlEngine engine = Engines.on(backend)) {
      one.of(engine).pairwise(q, p, new double[] {1});
      for (boolean ofMatrix : new boolean[] {false, true}) {
        double[] cotangent = {-1e-60};
        if (ofMatrix) {
          tiny.of(engine).pairwise(q, p, cotangent);
        } else {
          tiny.of(engine).rowSum(q, p, cotangent);
        }
        for (int k = 0; k < 4; k++) {
          for (int h = 0; h < 3; h++) {
            double expected = -1e-60 * one.all()[k][h];
            assertThat(tiny.all()[k][h])
                .as(NAMES[k])
                .isCloseTo(expected, Offset.offset(1e-5 * Math.abs(expected)));
          }
        }
      }
    }
  }

  /** The weights are those of the exact divergences; the error is that of the derivatives, and what a weight's exponent loses. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void logSumExp(Backend backend) {
    for (Divergence divergence : DIVERGENCES) {
      try (KlEngine engine = KlEngine.builder().divergence(divergence).backend(backend).build()) {
        for (Regime regime : new Regime[] {Regime.VAE, Regime.COLLAPSED}) {
          for (boolean isDouble : new boolean[] {false, true}) {
            for (int[] shape : new int[][] {{7, 5, 3}, {3, 70, 2}, {40, 5, 2}}) {
              Regime.Case drawn = regime.draw(isDouble, shape[0], shape[1], shape[2]);
              checkLogSumExp(
                  engine, divergence.name() + " " + regime + isDouble, drawn.q(), drawn.p());
            }
          }
        }
      }
    }
  }

  /** Columns of which no row has more than a share far below float's range, down to the end of double's: the derivatives by them are as right as others. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void logSumExpOfFarColumns(Backend backend) {
    int m = 45;
    int d = 3;
    for (Divergence divergence : DIVERGENCES) {
      try (KlEngine engine = KlEngine.builder().divergence(divergence).backend(backend).build()) {
        for (boolean isDouble : new boolean[] {false, true}) {
          Batch q = Regime.VAE.draw(isDouble, 6, 1, d).q();
          double[] mean = new double[m * d];
          double[] scale = new double[m * d];
          Random random = new Random(2);
          for (int k = 0; k < mean.length; k++) {
            double distance = Math.sqrt(10.0 * (k / d)); // KL is about 15 more each time
            mean[k] = (float) (random.nextBoolean() ? distance : -distance);
            scale[k] = (float) random.nextDouble(0.9, 1.1);
          }
          Batch p = new Batch(Batch.Kind.STD, isDouble, mean, scale, d);
          checkLogSumExp(engine, divergence.name() + " far " + isDouble, q, p);
        }
      }
    }
  }

  private static double[] ofWeights(
      KlEngine engine, DiagonalGaussians q, DiagonalGaussians p, double[] logWeights, double... g) {
    int n = q.size() * q.dimension();
    int m = p.size() * p.dimension();
    double[][] out = {new double[n], new double[n], new double[m], new double[m]};
    engine.gradient().q(out[0], out[1]).p(out[2], out[3]).weightedLogSumExp(q, p, logWeights, g);
    return Arrays.stream(out).flatMapToDouble(Arrays::stream).toArray();
  }

  /** A row of which no term is left has no derivatives, and cotangents beyond what products of four numbers take have the others' times them. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void logSumExpOfNoTermsAndOfHugeCotangents(Backend backend) {
    double none = Double.NEGATIVE_INFINITY;
    DiagonalGaussians p =
        DiagonalGaussians.ofStd(new double[] {0, 1e-13, 2e-6}, new double[] {1e-6, 2e-6, 1e-6}, 1);
    DiagonalGaussians q = DiagonalGaussians.ofStd(new double[] {2e-13}, new double[] {1e-6}, 1);
    DiagonalGaussians far =
        DiagonalGaussians.ofStd(new double[] {2e-13, 1e200}, new double[] {1e-6, 1e-6}, 1);
    try (KlEngine engine = KlEngine.builder().backend(backend).build()) {
      double[] one = ofWeights(engine, q, p, new double[3], 1);
      double[] two = ofWeights(engine, far, p, new double[3], 1, 1);
      assertThat(two[1]).isZero();
      assertThat(two[3]).isZero();
      assertThat(new double[] {two[0], two[2]}).containsExactly(one[0], one[1]);
      assertThat(Arrays.copyOfRange(two, 4, 10)).isEqualTo(Arrays.copyOfRange(one, 2, 8));
      assertThat(ofWeights(engine, far, p, new double[] {none, none, none}, 1, 1))
          .containsOnly(0.0);
      double[] huge = ofWeights(engine, q, p, new double[3], 1e300);
      for (int k = 0; k < huge.length; k++) {
        assertThat(huge[k]).isCloseTo(1e300 * one[k], within(1e-10 * Math.abs(1e300 * one[k])));
      }
    }
  }

  private static void checkLogSumExp(KlEngine engine, String what, Batch q, Batch p) {
    int n = q.size();
    int m = p.size();
    Random random = new Random(5);
    double[] rows = random.doubles(n, -1, 1).toArray();
    double[] logWeights = random.doubles(m, -3, 0).toArray();
    logWeights[m / 2] = Double.NEGATIVE_INFINITY;
    double[] exact = DivergenceOracle.pairwise(engine.divergence(), q, p);
    for (double[] w : new double[][] {new double[m], logWeights}) {
      double[] g = new double[n * m];
      for (int i = 0; i < n; i++) {
        double most = Double.NEGATIVE_INFINITY;
        for (int j = 0; j < m; j++) {
          most = Math.max(most, w[j] - exact[i * m + j]);
        }
        double sum = 0;
        for (int j = 0; j < m; j++) {
          g[i * m + j] = Math.exp(w[j] - exact[i * m + j] - most);
          sum += g[i * m + j];
        }
        for (int j = 0; j < m; j++) {
          g[i * m + j] *= -rows[i] / sum;
        }
      }
      Arrays4 out = Arrays4.of(q, p);
      if (w == logWeights) {
        out.of(engine).weightedLogSumExp(q.gaussians(), p.gaussians(), w, rows);
      } else {
        out.of(engine).logSumExp(q.gaussians(), p.gaussians(), rows);
      }
      // an exponent of 1e4 loses some 1e-12 of its term in double
      checkLoosely(what + ", logSumExp", engine.divergence(), q, p, g, out);
    }
  }

  private static void checkLoosely(
      String what, Divergence divergence, Batch q, Batch p, double[] g, Arrays4 out) {
    GradientOracle expected = GradientOracle.of(divergence, q, p, g);
    boolean wide = q.isDouble();
    for (int k = 0; k < 4; k++) {
      for (int at = 0; at < expected.values[k].length; at++) {
        double error = Math.abs(out.all()[k][at] - expected.values[k][at]);
        assertThat(error)
            .as("%s, %s [%d]: %s", what, NAMES[k], at, expected.values[k][at])
            .isLessThanOrEqualTo((wide ? 1e-11 : 1e-5) * expected.magnitudes[k][at] + LEAST64);
      }
    }
  }

  /** A gradient of equal Gaussians is exactly 0, and that of q and itself the sum of both. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void equalGaussiansAndOneBatch(Backend backend) {
    for (Divergence divergence : DIVERGENCES) {
      for (boolean isDouble : new boolean[] {false, true}) {
        Batch q = Regime.VAE.draw(isDouble, 9, 3, 5).q();
        double[] g = new Random(1).doubles(81, -1, 1).toArray();
        try (KlEngine engine = KlEngine.builder().divergence(divergence).backend(backend).build()) {
          Arrays4 apart = Arrays4.of(q, q);
          apart.of(engine).pairwise(q.gaussians(), q.gaussians(), g);
          Arrays4 sum = Arrays4.of(q, q);
          DiagonalGaussians same = q.gaussians();
          engine.gradient().q(sum.qMean, sum.qScale).pairwise(same, same, g);
          for (int k = 0; k < q.mean().length; k++) {
            assertThat(sum.qMean[k]).isEqualTo(apart.qMean[k] + apart.pMean[k]);
            assertThat(sum.qScale[k])
                .isCloseTo(
                    apart.qScale[k] + apart.pScale[k],
                    Offset.offset(1e-14 * (Math.abs(apart.qScale[k]) + Math.abs(apart.pScale[k]))));
          }
          Batch one = q.rows(new int[] {2, 2, 2});
          Arrays4 zero = Arrays4.of(one, one);
          zero.of(engine).rowSum(one.gaussians(), one.gaussians(), new double[] {1, -2, 3});
          for (double[] part : zero.all()) {
            assertThat(Arrays.copyOf(part, 15)).containsOnly(0); // nor −0
          }
          for (Batch.Kind kind : Batch.Kind.values()) {
            double[] scale = one.scale().clone();
            Arrays.setAll(scale, k -> kind.fromStd.applyAsDouble(scale[k]));
            DiagonalGaussians equal = kind.of(one.mean(), scale, 5, ScalePolicy.STRICT);
            engine
                .gradient()
                .q(zero.qMean, zero.qScale)
                .p(zero.pMean, zero.pScale)
                .aligned(equal, equal.select(0, 1, 2), new double[] {1, -2, 3});
            for (double[] part : zero.all()) {
              assertThat(Arrays.copyOf(part, 15)).containsOnly(0);
            }
          }
        }
      }
    }
  }

  /** Bits do not depend on threads or on the backend, nor results of float on the type of the arrays. */
  @Test
  void bits() {
    for (boolean isDouble : new boolean[] {false, true}) {
      Regime.Case drawn = Regime.VAE.draw(isDouble, 100, 60, 20);
      DiagonalGaussians q = drawn.q().gaussians();
      DiagonalGaussians p = drawn.p().gaussians();
      double[] g = new Random(1).doubles(100 * 60, -1, 1).toArray();
      double[] rows = Arrays.copyOf(g, 100);
      double[][][] first = null;
      for (Backend backend : Engines.backends().toList()) {
        for (int threads : Engines.threadCounts(backend)) {
          try (KlEngine engine = Engines.on(backend, threads)) {
            for (int round = 0; round < 2; round++) {
              Arrays4 matrix = Arrays4.of(drawn.q(), drawn.p());
              Arrays4 sums = Arrays4.of(drawn.q(), drawn.p());
              matrix.of(engine).pairwise(q, p, g);
              sums.of(engine).logSumExp(q, p, rows);
              double[][][] both = {matrix.all(), sums.all()};
              first = first == null ? both : first;
              assertThat(both).as("%s, %d threads", backend, threads).isDeepEqualTo(first);
            }
            float[][] narrow = new float[4][];
            Arrays.setAll(narrow, k -> Batch.narrowed(Arrays4.of(drawn.q(), drawn.p()).all()[k]));
            engine.gradient().q(narrow[0], narrow[1]).p(narrow[2], narrow[3]).pairwise(q, p, g);
            for (int k = 0; k < 4; k++) {
              assertThat(narrow[k]).isEqualTo(Batch.narrowed(first[0][k]));
            }
          }
        }
      }
    }
  }

  /** A clamp passes no gradient where it acts. */
  @Test
  void clamps() {
    for (Batch.Kind kind : Batch.Kind.values()) {
      double far = kind == Batch.Kind.LOG_VARIANCE ? -40 : kind == Batch.Kind.PRECISION ? 1e20 : 0;
      DiagonalGaussians q =
          kind.of(
              new double[] {1, 2, 3, 4}, new double[] {0.5, far, 0.5, 0.5}, 2, ScalePolicy.CLAMPED);
      double[] mean = new double[4];
      double[] scale = new double[4];
      try (KlEngine engine = KlEngine.builder().build()) {
        engine.gradient().q(mean, scale).toStandardNormal(q, new double[] {1, 1});
        assertThat(mean).containsExactly(1, 2, 3, 4);
        assertThat(scale[1]).isZero();
        assertThat(new double[] {scale[0], scale[2], scale[3]}).doesNotContain(0);
      }
    }
  }

  /** Random Gaussians p of a kind, and means, scales and cotangents of as many q. */
  private record Drawn(double[] mean, double[] scale, DiagonalGaussians p, double[] cotangent) {
    static Drawn of(Batch.Kind kind, int n, int d) {
      double[] mean = new Random(1).doubles(n * d, -1, 1).toArray();
      double[] scale = new Random(2).doubles(n * d, 0.5, 2).toArray();
      double[] other = new Random(3).doubles(n * d, -1, 1).toArray();
      double[] scales = new Random(4).doubles(n * d, 0.5, 2).toArray();
      return new Drawn(
          mean,
          scale,
          kind.of(other, scales, d, ScalePolicy.CLAMPED),
          new Random(5).doubles(n, -1, 1).toArray());
    }
  }

  /** Rows of 7 elements, so that pieces of the loops end within rows; the element that is clamped is in the middle of each. */
  @ParameterizedTest
  @EnumSource
  void sharedScalesAreAsWrittenOut(Batch.Kind kind) {
    int n = 100;
    int d = 7;
    Drawn drawn = Drawn.of(kind, n, d);
    double[] shared = Arrays.copyOf(drawn.scale, d);
    shared[3] = kind == Batch.Kind.LOG_VARIANCE ? -40 : kind == Batch.Kind.PRECISION ? 1e20 : 0;
    double[] written = new double[n * d];
    for (int i = 0; i < n; i++) {
      System.arraycopy(shared, 0, written, i * d, d);
    }
    for (Divergence divergence : DIVERGENCES) {
      try (KlEngine engine = KlEngine.builder().divergence(divergence).build()) {
        double[][][] found = new double[2][4][n * d];
        for (int k = 0; k < 2; k++) {
          double[][] to = found[k];
          DiagonalGaussians q =
              kind.of(drawn.mean, k == 0 ? shared : written, d, ScalePolicy.CLAMPED);
          engine.gradient().q(to[0], to[1]).aligned(q, drawn.p, drawn.cotangent);
          engine.gradient().q(to[2], to[3]).rowSum(q, drawn.p, drawn.cotangent);
        }
        assertThat(found[0]).isDeepEqualTo(found[1]);
        assertThat(found[0][1][3]).isZero();
        assertThat(found[0][1][4]).isNotZero();
      }
    }
  }

  /** Twice a difference is beyond double where its part is not, and nothing times a cotangent of 0. */
  @Test
  void wassersteinOfFarMeans() {
    for (double far : new double[] {1e308, 1.7e308}) {
      DiagonalGaussians q = DiagonalGaussians.ofStd(new double[] {far}, new double[] {1}, 1);
      DiagonalGaussians p = DiagonalGaussians.ofStd(new double[] {0}, new double[] {2}, 1);
      try (KlEngine engine =
          KlEngine.builder().divergence(Divergence.SQUARED_WASSERSTEIN_2).build()) {
        for (double g : new double[] {0, 0.25}) {
          double[][] to = new double[4][1];
          engine.gradient().q(to[0], to[1]).p(to[2], to[3]).aligned(q, p, new double[] {g});
          assertThat(to[0][0]).isEqualTo(2 * (g * far));
          assertThat(to[2][0]).isEqualTo(-2 * (g * far));
        }
      }
    }
  }

  /** A Gaussian beyond the loops' range, beside which others have the digits that they have alone. */
  @ParameterizedTest
  @EnumSource
  void digitsDoNotDependOnNeighbours(Batch.Kind kind) {
    int n = 40;
    int d = 3;
    Drawn drawn = Drawn.of(kind, n, d);
    double[] tiny = drawn.scale.clone();
    tiny[n * d - 1] =
        kind == Batch.Kind.STD
            ? 1e-90
            : kind == Batch.Kind.LOG_VARIANCE ? -414 : kind == Batch.Kind.VARIANCE ? 1e-180 : 1e180;
    for (Divergence divergence : DIVERGENCES) {
      try (KlEngine engine = KlEngine.builder().divergence(divergence).build()) {
        double[][][] found = new double[2][4][n * d];
        for (int k = 0; k < 2; k++) {
          double[][] to = found[k];
          double[] scale = k == 0 ? drawn.scale : tiny;
          DiagonalGaussians q = kind.of(drawn.mean, scale, d, ScalePolicy.STRICT);
          engine.gradient().q(to[0], to[1]).p(to[2], to[3]).aligned(q, drawn.p, drawn.cotangent);
          for (double[] values : to) {
            Arrays.fill(values, (n - 1) * d, n * d, 0);
          }
        }
        assertThat(found[1]).isDeepEqualTo(found[0]);
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void warmCallsAllocateNothing(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      Regime.Case drawn = Regime.VAE.draw(isDouble, 21, 35, 19);
      DiagonalGaussians q = drawn.q().gaussians();
      DiagonalGaussians p = drawn.p().gaussians();
      DiagonalGaussians first = drawn.p().rows(0, 21).gaussians();
      Arrays4 out = Arrays4.of(drawn.q(), drawn.p());
      double[] matrix = new double[21 * 35];
      double[] g = new double[21];
      Arrays.fill(matrix, 1);
      Arrays.fill(g, 1);
      try (KlEngine engine = Engines.on(backend)) {
        KlGradient gradient = out.of(engine);
        WarmCalls.allocateNothing("pairwise", 50, () -> gradient.pairwise(q, p, matrix));
        WarmCalls.allocateNothing("logSumExp", 50, () -> gradient.logSumExp(q, p, g));
        WarmCalls.allocateNothing("rowSum", 50, () -> gradient.rowSum(q, p, g));
        WarmCalls.allocateNothing("standard", 50, () -> gradient.toStandardNormal(q, g));
        WarmCalls.allocateNothing("aligned", 50, () -> gradient.aligned(q, first, g));
      }
    }
  }

  /** Products of cotangents and derivatives beyond double's range, by log-variances of a σ below it, where ∞ · 0 would be NaN. */
  @Test
  void overflowIsNotNan() {
    double[] zero = {0};
    DiagonalGaussians q = DiagonalGaussians.ofLogVariance(zero, new double[] {1400}, 1);
    DiagonalGaussians p = DiagonalGaussians.ofLogVariance(zero, new double[] {-2000}, 1);
    double[] mean = new double[1];
    double[] scale = {Double.NaN};
    try (KlEngine engine =
        KlEngine.builder().divergence(Divergence.SQUARED_WASSERSTEIN_2).build()) {
      engine.gradient().p(mean, scale).aligned(q, p, new double[] {1e30});
      assertThat(scale[0]).isZero();
    }
  }

  /** The Wasserstein distance has a gradient where σ is 0, whatever policy let it be. */
  @Test
  void zeroStd() {
    double[] mean = {1, 2};
    DiagonalGaussians p = DiagonalGaussians.ofStd(new double[2], new double[] {1, 2}, 2);
    try (KlEngine engine =
        KlEngine.builder().divergence(Divergence.SQUARED_WASSERSTEIN_2).build()) {
      for (ScalePolicy policy :
          new ScalePolicy[] {ScalePolicy.SEMIDEFINITE, ScalePolicy.DETERMINISTIC_IF_ZERO}) {
        DiagonalGaussians q = Batch.Kind.STD.of(mean, new double[2], 2, policy);
        double[] byMean = new double[2];
        double[] byStd = new double[2];
        engine.gradient().q(byMean, byStd).pairwise(q, p, new double[] {1});
        assertThat(byMean).containsExactly(2, 4);
        assertThat(byStd).containsExactly(-2, -4);
      }
    }
  }

  /** What the laws of arguments do not try. */
  @Test
  void errors() {
    DiagonalGaussians q = DiagonalGaussians.ofStd(new float[4], new float[] {1, 1, 1, 1}, 2);
    float[] four = new float[4];
    double[] g = {1, 1, 1, 1};
    double[] two = {1, 1};
    try (KlEngine engine = KlEngine.builder().build()) {
      KlGradient gradient = engine.gradient().q(four, new float[4]);
      assertRejected(
          () -> gradient.pairwise(q, q, new double[] {1, 1, Double.NaN, 1}),
          "cotangent, row 1, column 0, is NaN; it must be finite");
      assertRejected(
          () -> gradient.pairwise(q, q, new float[] {1, 1, Float.NaN, 1}),
          "cotangent, row 1, column 0, is NaN; it must be finite");
      assertRejected(
          () -> gradient.pairwise(q, q, new double[5]), "cotangent has 5 elements; it must have 4");
      assertRejected(
          () -> gradient.rowSum(q, q, new double[] {1, Double.POSITIVE_INFINITY}),
          "cotangent[1] is Infinity; it must be finite");
      FullGaussians full =
          FullGaussians.ofScaleTril(new double[4], new double[] {1, 0, 0, 1, 1, 0, 0, 1}, 2);
      assertRejected(() -> gradient.rowSum(q, full, two), "p has full covariances and q has");
      assertRejected(() -> engine.gradient().q(four, four), "same array");
      assertRejected(
          () -> engine.gradient().q(four, new float[4]).p(new float[4], four).aligned(q, q, two),
          "an array for q's gradient is one for p's, too");
      LowRankGaussians lowRank =
          LowRankGaussians.of(ScaleKind.STD, new float[2], new float[2], new float[] {1, 1}, 2);
      assertRejected(() -> gradient.pairwise(lowRank, q, g), "q has low-rank covariances");
      assertRejected(
          () -> engine.gradient().q(new float[3], four).rowSum(q, q, two),
          "q's gradient by means has 3 elements but 4");
      assertRejected(
          () -> engine.gradient().p(four, new float[4]).rowSum(q, q, two),
          "q is p, whose gradient");
      KlGradient none = engine.gradient();
      assertThat(none).hasToString("KlGradient[%s, gradients not stored yet]".formatted(engine));
      assertThat(none.p(new float[4], new float[4])).asString().endsWith("gradients of p]");
      for (ThrowingCallable call :
          List.<ThrowingCallable>of(
              () -> engine.gradient().rowSum(q, q, two),
              () -> engine.gradient().aligned(q, q, two),
              () -> engine.gradient().pairwise(q, q, g),
              () -> none.toStandardNormal(q, two))) {
        assertThatThrownBy(call)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageStartingWith("nowhere to store");
      }
      DiagonalGaussians zero =
          Batch.Kind.STD.of(four, new float[4], 2, ScalePolicy.DETERMINISTIC_IF_ZERO);
      assertRejected(() -> gradient.rowSum(zero, q, two), "q is deterministic (std 0)");
    }
    KlEngine closed = KlEngine.builder().build();
    closed.close();
    assertThatThrownBy(closed::gradient).isInstanceOf(AlreadyClosedException.class);
    try (KlEngine engine = KlEngine.builder().divergence(Divergence.HELLINGER).build()) {
      assertRejected(
          engine::gradient,
          "hellinger has no gradient here: give kl, jeffreys or squared-wasserstein-2 as the divergence");
    }
  }

  private static void assertRejected(ThrowingCallable call, String message) {
    assertThatThrownBy(call)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(message);
  }
}
