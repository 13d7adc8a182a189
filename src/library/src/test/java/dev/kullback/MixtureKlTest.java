package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.testing.Batch;
import dev.kullback.testing.BigFloat;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Divergences of mixtures against their formulas in exact arithmetic, integrals, sampling and published values. */
class MixtureKlTest {
  /** The mixture of ten of KLDistApproxGaussMix.m, example 1, in the Tracker Component Library of the U.S. Naval Research Laboratory. */
  private static final Mixtures TEN =
      Mixtures.of(
          DiagonalGaussians.ofVariance(
              new double[] {1.45, 2.20, 0.67, 0.48, 1.49, 0.91, 1.01, 1.42, 2.77, 0.89},
              new double[] {
                0.0487, 0.0305, 0.1171, 0.0174, 0.0295, 0.0102, 0.0323, 0.0380, 0.0115, 0.0679
              },
              1),
          new double[] {0.03, 0.18, 0.12, 0.19, 0.02, 0.16, 0.06, 0.1, 0.08, 0.06});

  /** The first without its five lightest components, and without two more; that example's second and third. */
  private static final Mixtures SIX_AND_FOUR =
      Mixtures.of(
          DiagonalGaussians.ofVariance(
              new double[] {2.20, 0.67, 0.48, 0.91, 1.42, 2.77, 2.20, 0.67, 0.48, 0.917},
              new double[] {
                0.0305, 0.1171, 0.0174, 0.0102, 0.0380, 0.0115, 0.0305, 0.1171, 0.0174, 0.0102
              },
              1),
          DoubleStream.concat(
                  DoubleStream.of(0.18, 0.12, 0.19, 0.16, 0.1, 0.08).map(w -> w / 0.83),
                  DoubleStream.of(0.18, 0.12, 0.19, 0.16).map(w -> w / 0.65))
              .toArray(),
          new int[] {0, 6, 10});

  private static double[] weights(int n, Random random) {
    double[] weights = random.doubles(n, 0.1, 1).toArray();
    double sum = DoubleStream.of(weights).sum();
    return DoubleStream.of(weights).map(w -> w / sum).toArray();
  }

  private static Mixtures diagonal(int k, int d, double spread, Random random) {
    double[] mean = new double[k * d];
    Arrays.setAll(mean, _ -> spread * random.nextGaussian());
    double[] std = random.doubles((long) k * d, 0.5, 1.5).toArray();
    return Mixtures.of(DiagonalGaussians.ofStd(mean, std, d), weights(k, random));
  }

  /** Equal weights in each mixture. */
  private static double[] equal(int[] offsets) {
    double[] weights = new double[offsets[offsets.length - 1]];
    for (int m = 0; m < offsets.length - 1; m++) {
      Arrays.fill(weights, offsets[m], offsets[m + 1], 1.0 / (offsets[m + 1] - offsets[m]));
    }
    return weights;
  }

  private static Mixtures full(int k, int d, Random random) {
    return Mixtures.of(
        FullBatch.random(true, k, d, d == 1 ? 1 : 10, 0, random).gaussians(), weights(k, random));
  }

  // --- the formulas

  @Test
  void publishedExample() {
    // proxymix 0.2.0, gmm_kld.Rd: variational -0.123072; Monte Carlo of 500 samples 0.1067818,
    // standard error 0.01585305
    double[] eye = {1, 0, 0, 1, 1, 0, 0, 1};
    Mixtures p =
        Mixtures.of(
            FullGaussians.ofCovariance(new double[] {-1, 0, 1, 0}, eye, 2),
            new double[] {0.5, 0.5});
    Mixtures q =
        Mixtures.of(
            FullGaussians.ofCovariance(new double[2], new double[] {2, 0, 0, 2}, 2),
            new double[] {1});
    try (KlEngine engine = KlEngine.builder().build()) {
      MixtureKl kl = MixtureKl.of(p, q);
      assertThat(kl.variational(engine)[0]).isCloseTo(-0.123072, within(5e-7));
      MonteCarloEstimates sampled = kl.monteCarlo(100_000, 1);
      assertThat(sampled.estimate(0)).isCloseTo(0.1067818, within(3 * 0.01585305));
      // that error of 500 samples, with ours of as many as 200 times
      assertThat(sampled.standardError(0) * Math.sqrt(200)).isCloseTo(0.0158, within(0.002));
    }
  }

  /** The variational approximation, matched pairs and the product, of exact arithmetic on the parameters in 256 bits. */
  @ParameterizedTest
  @ValueSource(doubles = {1e-3, 0.3, 3, 30})
  void formulas(double spread) {
    Random random = new Random(3);
    int d = 2;
    Mixtures f = diagonal(4, d, spread, random);
    Mixtures g = diagonal(3, d, spread, random);
    try (KlEngine engine = KlEngine.builder().build()) {
      MixtureKl kl = MixtureKl.of(f, g);
      BigFloat[][] own = kls(f, f);
      BigFloat[][] other = kls(f, g);
      double scale =
          Arrays.stream(other)
              .flatMap(Arrays::stream)
              .mapToDouble(BigFloat::toDouble)
              .max()
              .orElseThrow();
      assertThat(kl.variational(engine)[0])
          .isCloseTo(quotients(f, g, own, other), within(1e-13 * Math.max(1, scale)));
      double matched = 0;
      double[] pi = f.weights();
      double[] omega = g.weights();
      for (int a = 0; a < 4; a++) {
        double least = Double.POSITIVE_INFINITY;
        for (int b = 0; b < 3; b++) {
          least = Math.min(least, other[a][b].toDouble() + Math.log(pi[a] / omega[b]));
        }
        matched += pi[a] * least;
      }
      assertThat(kl.matchedPairs(engine)[0]).isCloseTo(matched, within(1e-12 * Math.max(1, scale)));
      double product = quotients(f, g, overlaps(f, f), overlaps(f, g));
      assertThat(kl.productOfGaussians()[0]).isCloseTo(product, within(1e-12 * Math.max(1, scale)));
      double lower =
          quotients(f, g, own, overlaps(f, g))
              + 0.5 * d * Math.log(2 * Math.PI); // which those lack
      double[] entropies = f.componentEntropies();
      for (int a = 0; a < 4; a++) {
        lower -= pi[a] * entropies[a];
      }
      assertThat(lower > 0).isEqualTo(spread >= 3);
      assertThat(kl.lowerBound(engine)[0])
          .isCloseTo(Math.max(0, lower), within(1e-12 * Math.max(1, scale)));
    }
  }

  private static double[][] moments(Mixtures mixture) {
    Gaussians g = mixture.components();
    boolean isVariance = g.kind() == ScaleKind.VARIANCE; // or a standard deviation
    return new double[][] {
      IntStream.range(0, g.size()).mapToObj(g::mean).flatMapToDouble(DoubleStream::of).toArray(),
      IntStream.range(0, g.size())
          .mapToObj(g::scale)
          .flatMapToDouble(DoubleStream::of)
          .map(x -> isVariance ? x : x * x)
          .toArray()
    };
  }

  private static BigFloat[][] kls(Mixtures f, Mixtures g) {
    return pairs(
        f,
        g,
        (d, v, u) -> {
          BigFloat ratio = v.dividedBy(u);
          return ratio.plus(d.times(d).dividedBy(u)).minus(BigFloat.ONE).minus(ratio.ln()).half();
        });
  }

  /** Minus the logarithms of the overlaps, but for the constant that cancels in the quotient. */
  private static BigFloat[][] overlaps(Mixtures f, Mixtures g) {
    return pairs(
        f,
        g,
        (d, v, u) -> {
          BigFloat sum = v.plus(u);
          return sum.ln().plus(d.times(d).dividedBy(sum)).half();
        });
  }

  private interface Term {
    BigFloat of(BigFloat difference, BigFloat v, BigFloat u);
  }

  private static BigFloat[][] pairs(Mixtures f, Mixtures g, Term term) {
    double[][] p = moments(f);
    double[][] q = moments(g);
    int d = f.components().dimension();
    BigFloat[][] out = new BigFloat[f.components().size()][g.components().size()];
    for (int a = 0; a < out.length; a++) {
      for (int b = 0; b < out[a].length; b++) {
        BigFloat sum = BigFloat.ZERO;
        for (int h = 0; h < d; h++) {
          BigFloat m = BigFloat.of(p[0][a * d + h]).minus(BigFloat.of(q[0][b * d + h]));
          sum = sum.plus(term.of(m, BigFloat.of(p[1][a * d + h]), BigFloat.of(q[1][b * d + h])));
        }
        out[a][b] = sum;
      }
    }
    return out;
  }

  private static double quotients(Mixtures f, Mixtures g, BigFloat[][] own, BigFloat[][] other) {
    BigFloat sum = BigFloat.ZERO;
    double[] pi = f.weights();
    for (int a = 0; a < pi.length; a++) {
      BigFloat quotient = mean(pi, own[a]).dividedBy(mean(g.weights(), other[a]));
      sum = sum.plus(BigFloat.of(pi[a]).times(quotient.ln()));
    }
    return sum.toDouble();
  }

  private static BigFloat mean(double[] weights, BigFloat[] exponents) {
    BigFloat sum = BigFloat.ZERO;
    for (int b = 0; b < weights.length; b++) {
      sum = sum.plus(BigFloat.of(weights[b]).times(exponents[b].negate().exp()));
    }
    return sum;
  }

  /** Rows of more mixtures than columns, of unlike sizes and with components of weight 0, are those of each mixture without them. */
  @Test
  void entriesAreThoseOfTheMixturesByThemselves() {
    Random random = new Random(8);
    Gaussians g = diagonal(7, 2, 1, random).components();
    Mixtures all =
        Mixtures.of(g, new double[] {1, 0, 0.5, 0.5, 0.75, 0.25, 0}, new int[] {0, 1, 4, 7});
    Mixtures[] single = {
      Mixtures.of(g.slice(0, 1)),
      Mixtures.of(g.slice(2, 4)),
      Mixtures.of(g.slice(4, 6), new double[] {0.75, 0.25})
    };
    Mixtures some = Mixtures.of(g.slice(0, 4), new double[] {1, 0, 0.5, 0.5}, new int[] {0, 1, 4});
    try (KlEngine engine = KlEngine.builder().build()) {
      double[][] found = methods(MixtureKl.of(all, some), engine);
      double[] transport = all.transport(some, engine);
      for (int m = 0; m < 3; m++) {
        for (int n = 0; n < 2; n++) {
          double[][] one = methods(MixtureKl.of(single[m], single[n]), engine);
          for (int method = 0; method < one.length; method++) {
            assertThat(found[method][2 * m + n])
                .as("method %d of %d and %d", method, m, n)
                .isCloseTo(one[method][0], within(method == 0 ? 2e-6 : 1e-11));
          }
          assertThat(transport[2 * m + n])
              .isCloseTo(single[m].transport(single[n], engine)[0], within(1e-11));
        }
      }
    }
  }

  private static double[][] methods(MixtureKl kl, KlEngine engine) {
    return new double[][] {
      kl.upperBound(engine),
      kl.variational(engine),
      kl.matchedPairs(engine),
      kl.lowerBound(engine),
      kl.productOfGaussians()
    };
  }

  // --- properties

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void singleComponentsAreExact(Backend backend) {
    Random random = new Random(1);
    try (KlEngine engine = Engines.on(backend)) {
      Mixtures[] all = {diagonal(1, 3, 1, random), full(1, 3, random), full(1, 3, random)};
      for (Mixtures f : all) {
        for (Mixtures g : all) {
          double exact = engine.aligned(f.components(), g.components(), new double[1])[0];
          MixtureKl kl = MixtureKl.of(f, g);
          assertThat(kl.variational(engine)[0]).isCloseTo(exact, within(1e-14 * exact));
          assertThat(kl.matchedPairs(engine)[0]).isCloseTo(exact, within(1e-14 * exact));
          assertThat(kl.upperBound(engine)[0]).isCloseTo(exact, within(1e-14 * exact));
          assertThat(kl.lowerBound(engine)[0]).isBetween(0.0, exact);
          MonteCarloEstimates sampled = kl.monteCarlo(2000, 3);
          assertThat(sampled.estimate(0)).isCloseTo(exact, within(5 * sampled.standardError(0)));
        }
      }
    }
  }

  @Test
  void equalMixtures() {
    Random random = new Random(2);
    try (KlEngine engine = KlEngine.builder().build()) {
      for (Mixtures f : new Mixtures[] {TEN, diagonal(7, 3, 0.3, random), full(5, 4, random)}) {
        MixtureKl kl = MixtureKl.of(f, f);
        assertThat(kl.variational(engine)[0]).isCloseTo(0, within(1e-14));
        assertThat(kl.productOfGaussians()[0]).isCloseTo(0, within(1e-14));
        assertThat(kl.upperBound(engine)[0]).isBetween(0.0, 1e-15);
        MonteCarloEstimates sampled = kl.monteCarlo(100, 1);
        assertThat(sampled.estimate(0)).isZero();
        assertThat(sampled.standardError(0)).isBetween(1e-17, 1e-12);
      }
    }
  }

  /** The Tracker Component Library's example: integrals are between the bounds, as sampling finds. */
  @Test
  void integralsOfTheLibrarysExample() {
    try (KlEngine engine = KlEngine.builder().build()) {
      MixtureKl kl = MixtureKl.of(TEN, SIX_AND_FOUR);
      double[] upper = kl.upperBound(engine);
      MonteCarloEstimates sampled = kl.monteCarlo(40_000, 5);
      double[] exact = {integral(0), integral(1)};
      for (int n = 0; n < 2; n++) {
        assertThat(exact[n]).isPositive();
        assertThat(upper[n]).isGreaterThan(exact[n]);
        assertThat(sampled.estimate(n)).isCloseTo(exact[n], within(4 * sampled.standardError(n)));
      }
      assertThat(exact[1]).isGreaterThan(exact[0]);
      assertThat(exact[0]).isCloseTo(kl.variational(engine)[0], within(0.05));
    }
  }

  private static double integral(int n) {
    double[][] p = moments(TEN);
    double[][] q = moments(SIX_AND_FOUR);
    double sum = 0;
    double step = 1e-3;
    for (double x = -2; x < 5; x += step) {
      double f = density(p, TEN, 0, x);
      sum += f == 0 ? 0 : f * Math.log(f / density(q, SIX_AND_FOUR, n, x)) * step;
    }
    return sum;
  }

  private static double density(double[][] moments, Mixtures mixture, int n, double x) {
    double[] w = mixture.weights();
    double sum = 0;
    for (int i = mixture.offset(n); i < mixture.offset(n + 1); i++) {
      double z = x - moments[0][i];
      double v = moments[1][i];
      sum += w[i] * Math.exp(-0.5 * z * z / v) / Math.sqrt(2 * Math.PI * v);
    }
    return sum;
  }

  /** The divergences of components are 1e10, 1e306 or infinite, and do not count. */
  @ParameterizedTest
  @ValueSource(doubles = {1e5, 1e153, 1e200})
  void farComponents(double far) {
    double[] ones = {1, 1};
    Mixtures f =
        Mixtures.of(
            DiagonalGaussians.ofStd(new double[] {0, far}, ones, 1), new double[] {0.5, 0.5});
    Mixtures g =
        Mixtures.of(
            DiagonalGaussians.ofStd(new double[] {1, far}, ones, 1), new double[] {0.25, 0.75});
    double exact = 0.5 * (0.5 + Math.log(2)) + 0.5 * Math.log(0.5 / 0.75);
    try (KlEngine engine = KlEngine.builder().build()) {
      MixtureKl kl = MixtureKl.of(f, g);
      for (double[] got :
          new double[][] {kl.variational(engine), kl.matchedPairs(engine), kl.upperBound(engine)}) {
        assertThat(got[0]).isCloseTo(exact, within(1e-12));
      }
    }
  }

  @Test
  void allComponentsAreFar() {
    double[] ones = {1, 1};
    Mixtures f =
        Mixtures.of(
            DiagonalGaussians.ofStd(new double[] {0, 1e5}, ones, 1), new double[] {0.5, 0.5});
    try (KlEngine engine = KlEngine.builder().build()) {
      Mixtures none =
          Mixtures.of(
              DiagonalGaussians.ofStd(new double[] {1e200}, new double[] {1}, 1), new double[] {1});
      MixtureKl infinite = MixtureKl.of(f, none);
      assertThat(infinite.variational(engine)).containsExactly(Double.POSITIVE_INFINITY);
      assertThat(infinite.upperBound(engine)).containsExactly(Double.POSITIVE_INFINITY);
      assertThat(infinite.matchedPairs(engine)).containsExactly(Double.POSITIVE_INFINITY);
      assertThat(infinite.monteCarlo(10, 1).estimate(0)).isInfinite();
      assertThat(infinite.monteCarlo(10, 1).standardError(0)).isInfinite();
    }
  }

  /** Weights whose products are 0 in double, of components that are near ones and infinitely far ones. */
  @ParameterizedTest
  @ValueSource(doubles = {3, 1e200})
  void tinyWeights(double far) {
    double[] ones = {1, 1};
    double[] w = {1, 1e-200};
    Mixtures f = Mixtures.of(DiagonalGaussians.ofStd(new double[] {0, 5}, ones, 1), w);
    Mixtures g = Mixtures.of(DiagonalGaussians.ofStd(new double[] {1, far}, ones, 1), w);
    try (KlEngine engine = KlEngine.builder().build()) {
      MixtureKl kl = MixtureKl.of(f, g);
      assertThat(kl.variational(engine)[0]).isCloseTo(0.5, within(1e-6));
      assertThat(kl.matchedPairs(engine)[0]).isCloseTo(0.5, within(1e-6));
      assertThat(kl.upperBound(engine)[0]).isCloseTo(0.5, within(1e-6));
    }
  }

  /** The unit of the data does not matter, even where variances are beyond double's range. */
  @ParameterizedTest
  @ValueSource(doubles = {1e-300, 1e-160, 1e160, 1e300})
  void extremeScales(double unit) {
    double[] w = {0.5, 0.5};
    double[] mean = {0, 1, 1, 3};
    double[] std = {1, 2, 1, 1};
    double[] scaledMean = DoubleStream.of(mean).map(m -> unit * m).toArray();
    double[] scaledStd = DoubleStream.of(std).map(s -> unit * s).toArray();
    double[] logs = DoubleStream.of(std).map(s -> 2 * (Math.log(s) + Math.log(unit))).toArray();
    Mixtures f = Mixtures.of(DiagonalGaussians.ofStd(mean, std, 2), w);
    Mixtures stated = Mixtures.of(DiagonalGaussians.ofStd(scaledMean, scaledStd, 2), w);
    Mixtures byLogs = Mixtures.of(DiagonalGaussians.ofLogVariance(scaledMean, logs, 2), w);
    Mixtures g = Mixtures.of(DiagonalGaussians.ofStd(new double[] {1, 1, 0, 5}, std, 2), w);
    Mixtures other =
        Mixtures.of(
            DiagonalGaussians.ofStd(new double[] {unit, unit, 0, 5 * unit}, scaledStd, 2), w);
    try (KlEngine engine = KlEngine.builder().build()) {
      double expected = MixtureKl.of(f, g).productOfGaussians()[0];
      double[] far = {20, 1, 0, 25};
      double[] scaledFar = DoubleStream.of(far).map(m -> unit * m).toArray();
      double lower =
          MixtureKl.of(f, Mixtures.of(DiagonalGaussians.ofStd(far, std, 2), w))
              .lowerBound(engine)[0];
      assertThat(lower).isPositive();
      Mixtures farther = Mixtures.of(DiagonalGaussians.ofStd(scaledFar, scaledStd, 2), w);
      for (Mixtures scaled : new Mixtures[] {stated, byLogs}) {
        assertThat(MixtureKl.of(scaled, other).productOfGaussians()[0])
            .isCloseTo(expected, within(1e-11));
        assertThat(MixtureKl.of(scaled, farther).lowerBound(engine)[0])
            .isCloseTo(lower, within(1e-11 * lower));
      }
    }
    MonteCarloEstimates sampled = MixtureKl.of(f, g).monteCarlo(100, 1);
    assertThat(MixtureKl.of(stated, other).monteCarlo(100, 1).estimate(0))
        .isCloseTo(sampled.estimate(0), within(1e-12));
  }

  /** The standard error says how estimates of different seeds spread about the integral. */
  @Test
  void standardErrorIsRight() {
    MixtureKl kl = MixtureKl.of(TEN, SIX_AND_FOUR);
    double exact = integral(0);
    double squares = 0;
    int seeds = 300;
    for (int seed = 0; seed < seeds; seed++) {
      MonteCarloEstimates sampled = kl.monteCarlo(400, seed);
      double z = (sampled.estimate(0) - exact) / sampled.standardError(0);
      squares += z * z;
    }
    assertThat(squares / seeds).isBetween(0.75, 1.35);
  }

  /** Where mixtures differ by rounding alone, the error says so. */
  @Test
  void standardErrorCoversRounding() {
    double[] mean = {1e6, 1e6 + 1};
    double[] std = {1e-3, 2e-3};
    double[] precision = {1e6, 1 / (2e-3 * 2e-3)};
    double[] w = {0.5, 0.5};
    Mixtures f = Mixtures.of(DiagonalGaussians.ofStd(mean, std, 1), w);
    Mixtures g = Mixtures.of(DiagonalGaussians.ofPrecision(mean, precision, 1), w);
    MonteCarloEstimates sampled = MixtureKl.of(f, g).monteCarlo(1000, 1);
    assertThat(Math.abs(sampled.estimate(0))).isLessThan(3 * sampled.standardError(0));
    assertThat(sampled.standardError(0)).isBetween(1e-16, 1e-12);
  }

  /** A sample keeps its distance from a mean whose last bit is more than a standard deviation. */
  @Test
  void samplesOfLargeMeans() {
    for (boolean isFull : new boolean[] {false, true}) {
      Mixtures f = large(isFull, 1e-17);
      Mixtures g = large(isFull, 2e-17);
      MonteCarloEstimates sampled = MixtureKl.of(f, g).monteCarlo(10_000, 1);
      double exact = Math.log(2) + 0.125 - 0.5;
      assertThat(sampled.estimate(0))
          .isCloseTo(exact, within(4 * sampled.standardError(0)))
          .isCloseTo(exact, within(0.03));
    }
  }

  private static Mixtures large(boolean isFull, double std) {
    double[] mean = {1, 1e6};
    double[] stds = {std, 1e6 * std};
    return Mixtures.of(
        isFull ? FullGaussians.ofScaleTril(mean, stds, 1) : DiagonalGaussians.ofStd(mean, stds, 1),
        new double[] {0.5, 0.5});
  }

  @Test
  void reproducible() {
    MixtureKl kl = MixtureKl.of(TEN, SIX_AND_FOUR);
    MonteCarloEstimates first = kl.monteCarlo(50, 7);
    MonteCarloEstimates again = kl.monteCarlo(50, 7);
    for (int n = 0; n < 2; n++) {
      assertThat(again.estimate(n)).isEqualTo(first.estimate(n));
      assertThat(again.standardError(n)).isEqualTo(first.standardError(n));
      assertThat(kl.monteCarlo(50, 8).estimate(n)).isNotEqualTo(first.estimate(n));
    }
    assertThat(first).hasToString("MonteCarloEstimates[2 pairs, 50 samples]");
    assertThat(kl).hasToString("MixtureKl[1 x 2]");
  }

  /** Mixtures of one to some hundred components, of several blocks of rows, of which one has a single mixture that is longer than a block. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void threadsDoNotMatter(boolean isFull) {
    int[] sizes = {200, 1, 1, 3, 40, 40, 40, 1, 2, 30};
    int[] offsets = new int[sizes.length + 1];
    for (int m = 0; m < sizes.length; m++) {
      offsets[m + 1] = offsets[m] + sizes[m];
    }
    int n = offsets[sizes.length];
    Random random = new Random(5);
    Mixtures all = isFull ? full(n, 2, random) : diagonal(n, 2, 1, random);
    Mixtures mixtures = Mixtures.of(all.components(), equal(offsets), offsets);
    MixtureKl kl = MixtureKl.of(mixtures, mixtures);
    List<double[]> expected = new ArrayList<>();
    for (int threads : new int[] {1, 3}) {
      try (KlEngine engine = KlEngine.builder().threads(threads).build()) {
        MonteCarloEstimates sampled = kl.monteCarlo(10, 1, engine);
        List<double[]> got =
            List.of(
                kl.variational(engine),
                kl.lowerBound(engine),
                kl.upperBound(engine),
                kl.matchedPairs(engine),
                kl.productOfGaussians(engine),
                mixtures.transport(mixtures, engine),
                IntStream.range(0, 100).mapToDouble(sampled::estimate).toArray(),
                IntStream.range(0, 100).mapToDouble(sampled::standardError).toArray());
        expected.addAll(expected.isEmpty() ? got : List.of());
        for (int k = 0; k < got.size(); k++) {
          assertThat(got.get(k)).as("method %d", k).containsExactly(expected.get(k));
        }
      }
    }
    assertThat(kl.productOfGaussians()).containsExactly(expected.get(4));
    assertThat(kl.monteCarlo(10, 1).estimate(7)).isEqualTo(expected.get(6)[7]);
  }

  /** One pair of mixtures, and one mixture with several, are cut into blocks of components and of samples, and of columns. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void threadsShareFewMixtures(boolean isFull) {
    Random random = new Random(7);
    Mixtures q = isFull ? full(300, 3, random) : diagonal(300, 3, 1, random);
    Mixtures other = isFull ? full(301, 3, random) : diagonal(301, 3, 1, random);
    Mixtures three =
        Mixtures.of(
            other.components(), equal(new int[] {0, 7, 100, 301}), new int[] {0, 7, 100, 301});
    for (Mixtures p : new Mixtures[] {other, three}) {
      MixtureKl kl = MixtureKl.of(q, p);
      MixtureKl back = MixtureKl.of(p, q);
      List<double[]> expected = new ArrayList<>();
      for (int threads : new int[] {1, 2, 5}) {
        try (KlEngine engine = KlEngine.builder().threads(threads).build()) {
          MonteCarloEstimates sampled = kl.monteCarlo(1000, 1, engine);
          List<double[]> got =
              List.of(
                  kl.variational(engine),
                  back.variational(engine),
                  kl.lowerBound(engine),
                  back.lowerBound(engine),
                  kl.matchedPairs(engine),
                  kl.productOfGaussians(engine),
                  back.productOfGaussians(engine),
                  q.transport(three, engine),
                  three.transport(q, engine),
                  IntStream.range(0, p.size()).mapToDouble(sampled::estimate).toArray(),
                  IntStream.range(0, p.size()).mapToDouble(sampled::standardError).toArray());
          expected.addAll(expected.isEmpty() ? got : List.of());
          for (int k = 0; k < got.size(); k++) {
            assertThat(got.get(k)).as("method %d", k).containsExactly(expected.get(k));
          }
        }
      }
    }
  }

  /** Few divergences that take long, of samples and within q's mixtures, are shared, too. */
  @Test
  void helpersAreAskedForSmallMixtures() {
    Random random = new Random(6);
    Mixtures all = diagonal(400, 2, 1, random);
    int[] offsets = IntStream.rangeClosed(0, 10).map(m -> 40 * m).toArray();
    double[] weights = new double[400];
    Arrays.fill(weights, 1.0 / 40);
    MixtureKl kl =
        MixtureKl.of(Mixtures.of(all.components(), weights, offsets), diagonal(1, 2, 1, random));
    AtomicInteger asked = new AtomicInteger();
    try (KlEngine engine =
        KlEngine.builder().threads(2).executor(_ -> asked.getAndIncrement()).build()) {
      kl.monteCarlo(1000, 1, engine);
      assertThat(asked.getAndSet(0)).isPositive();
      kl.productOfGaussians(engine);
      assertThat(asked.get()).isPositive();
    }
  }

  /** Weights and offsets of three components, and what is wrong with them. */
  @ParameterizedTest
  @CsvSource({
    "0 0, 0 3, weights has 2 elements but there are 3 components",
    "1 -0.5 0.5, 0 3, weights[1] is -0.5; it must be finite and >= 0",
    "NaN 0 1, 0 3, weights[0] is NaN; it must be finite and >= 0",
    "1 0.5 0.5, 0 3, 'the sum of weights is 2.0; it must be 1; divide them by it, or take Mixtures.unnormalized for a MixtureReduction'",
    "0 0 0, 0 3, the sum of weights is 0.0; it must be 1",
    "0.5 0.5 0.5, 0 2 3, the sum of weights of mixture 1 is 0.5; it must be 1",
    "0.5 0.25 0.25, 0, offsets are too few; they must begin with 0 and end with",
    "0.5 0.25 0.25, 1 3, offsets are 1 to 3; they must begin with 0",
    "0.5 0.25 0.25, 0 2, 'offsets are 0 to 2; they must begin with 0 and end with the number of components, 3'",
    "0.5 0.25 0.25, 0 1 1 3, 'offsets[2] is 1; it must be greater than offsets[1], which is 1'"
  })
  void badWeights(String weights, String offsets, String message) {
    double[] w = Batch.numbers(weights);
    int[] from = Stream.of(offsets.split(" ")).mapToInt(Integer::parseInt).toArray();
    Gaussians g = DiagonalGaussians.ofStd(new double[3], new double[] {1, 1, 1}, 1);
    rejects(message, () -> Mixtures.of(g, w, from));
  }

  @Test
  void badArguments() {
    Gaussians g = DiagonalGaussians.ofStd(new double[3], new double[] {1, 1, 1}, 1);
    double[] w = {0.5, 0.25, 0.25};
    Mixtures f = Mixtures.of(g, w);
    assertThat(f.weights()).containsExactly(w);
    assertThat(f.offset(1)).isEqualTo(3);
    for (int m : new int[] {-1, 2}) {
      assertThatExceptionOfType(IndexOutOfBoundsException.class)
          .isThrownBy(() -> f.offset(m))
          .withMessage("m is %d; it must be in [0, 2)", m);
    }
    double[] zero = new double[3];
    Gaussians none = Gaussians.of(ScaleKind.STD, zero, zero, 1, ScalePolicy.DETERMINISTIC_IF_ZERO);
    rejects("components are deterministic", () -> Mixtures.of(none, w));
    Mixtures other = Mixtures.of(DiagonalGaussians.ofStd(new double[2], new double[] {1, 1}, 2));
    rejects("q has dimension 1 but p has 2; they must be the same", () -> MixtureKl.of(f, other));
    rejects("samples must be at least 2, is 1", () -> MixtureKl.of(f, f).monteCarlo(1, 1));
    double[] tiny = {1, 0x1p-1010, 1};
    for (Gaussians extreme :
        List.of(
            DiagonalGaussians.ofStd(new double[3], tiny, 1),
            FullGaussians.ofScaleTril(new double[3], tiny, 1))) {
      Mixtures unsampled = Mixtures.of(extreme, w);
      rejects(
          "q's components[1] has a standard deviation outside [2^-1000, 2^1000] in dimension 0, so it cannot be sampled; rescale the data",
          () -> MixtureKl.of(unsampled, f).monteCarlo(100, 1));
    }
    double[] std = new double[50_000];
    Arrays.fill(std, 1);
    Mixtures many = Mixtures.of(DiagonalGaussians.ofStd(new double[50_000], std, 1));
    try (KlEngine engine = KlEngine.builder().build()) {
      rejects(
          "2500000000 divergences of q's components from p's do not fit an array; give fewer at once",
          () -> MixtureKl.of(many, many).upperBound(engine));
    }
    try (KlEngine jeffreys = KlEngine.builder().divergence(Divergence.JEFFREYS).build()) {
      for (Consumer<KlEngine> method :
          List.<Consumer<KlEngine>>of(
              e -> MixtureKl.of(f, f).variational(e),
              e -> MixtureKl.of(f, f).matchedPairs(e),
              e -> MixtureKl.of(f, f).upperBound(e),
              e -> MixtureKl.of(f, f).lowerBound(e),
              f::entropyUpperBound,
              e -> e.monteCarlo(f.components(), f.components(), 2, 0))) {
        assertThatIllegalArgumentException()
            .isThrownBy(() -> method.accept(jeffreys))
            .withMessageMatching("the engine computes jeffreys; .* KL.*|.*: give an engine of KL");
      }
    }
  }

  private static void rejects(String message, ThrowingCallable call) {
    assertThatIllegalArgumentException().isThrownBy(call).withMessageContaining(message);
  }
}
