package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import dev.kullback.testing.Interruption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.function.Consumer;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Divergences of mixtures against integrals, sampling and published values, at the ends of the range, and by threads; the laws have their formulas. */
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

  private static Mixtures full(int k, int d, Random random) {
    return Mixtures.of(
        FullBatch.random(true, k, d, d == 1 ? 1 : 10, 0, random).gaussians(), weights(k, random));
  }

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
    double sum = 0;
    double step = 1e-3;
    for (double x = -2; x < 5; x += step) {
      double f = density(TEN, 0, x);
      sum += f == 0 ? 0 : f * Math.log(f / density(SIX_AND_FOUR, n, x)) * step;
    }
    return sum;
  }

  private static double density(Mixtures mixture, int n, double x) {
    Gaussians g = mixture.components();
    double[] w = mixture.weights();
    double sum = 0;
    for (int i = mixture.offset(n); i < mixture.offset(n + 1); i++) {
      double z = x - g.mean(i)[0];
      double v = g.scale(i)[0];
      sum += w[i] * Math.exp(-0.5 * z * z / v) / Math.sqrt(2 * Math.PI * v);
    }
    return sum;
  }

  /**
   * Two components of σ = 1 each, of whose divergences those that are 1e10, 1e306 or infinite do not count, unless all are infinite, nor do weights whose
   * products are 0 in double.
   */
  @ParameterizedTest
  @CsvSource({
    "0 1e5,   0.5 0.5,  1 1e5,       0.25 0.75, 0.3938410362258905",
    "0 1e153, 0.5 0.5,  1 1e153,     0.25 0.75, 0.3938410362258905",
    "0 1e200, 0.5 0.5,  1 1e200,     0.25 0.75, 0.3938410362258905", // ½ (½ + ln 2 + ln ⅔)
    "0 1e5,   0.5 0.5,  1e200 1e200, 0.5 0.5,   Infinity",
    "0 5,     1 1e-200, 1 3,         1 1e-200,  0.5",
    "0 5,     1 1e-200, 1 1e200,     1 1e-200,  0.5"
  })
  void farAndLightComponents(String f, String pi, String g, String omega, double exact) {
    try (KlEngine engine = KlEngine.builder().build()) {
      MixtureKl kl = MixtureKl.of(units(f, pi), units(g, omega));
      for (double[] got :
          List.of(kl.variational(engine), kl.matchedPairs(engine), kl.upperBound(engine))) {
        assertThat(got).containsExactly(new double[] {exact}, within(1e-12));
      }
      if (exact == Double.POSITIVE_INFINITY) {
        assertThat(kl.monteCarlo(10, 1).estimate(0)).isInfinite();
        assertThat(kl.monteCarlo(10, 1).standardError(0)).isInfinite();
      }
    }
  }

  private static Mixtures units(String means, String weights) {
    double[] ones = {1, 1};
    return Mixtures.of(
        DiagonalGaussians.ofStd(Batch.numbers(means), ones, 1), Batch.numbers(weights));
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

  /**
   * Mixtures of one to some hundred components, of several blocks of rows, of which one has a single mixture that is longer than a block; and one pair of
   * mixtures, and one mixture with several, which are cut into blocks of components and of samples, and of columns.
   */
  @Tag("long")
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void threadsDoNotMatter(boolean isFull) {
    Mixtures many = mixtures(isFull, 200, 1, 1, 3, 40, 40, 40, 1, 2, 30);
    Mixtures q = mixtures(isFull, 300);
    Mixtures three = mixtures(isFull, 7, 93, 201);
    List<MixtureKl> all =
        List.of(
            MixtureKl.of(many, many),
            MixtureKl.of(q, mixtures(isFull, 301)),
            MixtureKl.of(q, three),
            MixtureKl.of(three, q));
    List<double[]> expected = results(null, all, q, three);
    for (int threads : new int[] {1, 4}) {
      List<double[]> got = results(threads, all, q, three);
      for (int k = 0; k < got.size(); k++) {
        assertThat(got.get(k)).as("%d threads, %d", threads, k).containsExactly(expected.get(k));
      }
    }
  }

  /** Equal weights in each mixture of so many components. */
  private static Mixtures mixtures(boolean isFull, int... sizes) {
    int n = IntStream.of(sizes).sum();
    Random random = new Random(n);
    int[] offsets = new int[sizes.length + 1];
    double[] weights = new double[n];
    for (int m = 0; m < sizes.length; m++) {
      offsets[m + 1] = offsets[m] + sizes[m];
      Arrays.fill(weights, offsets[m], offsets[m + 1], 1.0 / sizes[m]);
    }
    Mixtures all = isFull ? full(n, 3, random) : diagonal(n, 3, 1, random);
    return Mixtures.of(all.components(), weights, offsets);
  }

  /** Computes all by so many threads, or by one, where some methods need no engine. */
  private static List<double[]> results(
      @Nullable Integer threads, List<MixtureKl> all, Mixtures q, Mixtures p) {
    List<double[]> results = new ArrayList<>();
    try (KlEngine engine = KlEngine.builder().threads(threads == null ? 1 : threads).build()) {
      for (MixtureKl kl : all) {
        results.addAll(Arrays.asList(methods(kl, engine)));
        results.add(threads == null ? kl.productOfGaussians() : kl.productOfGaussians(engine));
        MonteCarloEstimates sampled =
            threads == null ? kl.monteCarlo(200, 1) : kl.monteCarlo(200, 1, engine);
        int size = sampled.size();
        results.add(IntStream.range(0, size).mapToDouble(sampled::estimate).toArray());
        results.add(IntStream.range(0, size).mapToDouble(sampled::standardError).toArray());
      }
      results.add(q.transport(p, engine));
      results.add(p.transport(q, engine));
    }
    return results;
  }

  private static double[][] methods(MixtureKl kl, KlEngine engine) {
    return new double[][] {
      kl.upperBound(engine), kl.variational(engine), kl.matchedPairs(engine), kl.lowerBound(engine)
    };
  }

  /** Two threads that add the terms of many small blocks of one mixture lose none. */
  @Test
  void blocksOfOneMixture() {
    MixtureKl kl = MixtureKl.of(mixtures(false, 128), mixtures(false, 1));
    double[] expected = kl.productOfGaussians();
    try (KlEngine engine = KlEngine.builder().threads(2).build()) {
      for (int round = 0; round < 3000; round++) {
        assertThat(kl.productOfGaussians(engine)[0]).isEqualTo(expected[0]);
      }
    }
  }

  /** Few divergences that take long, of samples and within q's mixtures, are shared, too; here by an executor that interrupts the caller instead. */
  @Test
  void helpersAreAskedForSmallMixtures() {
    MixtureKl kl =
        MixtureKl.of(
            mixtures(false, IntStream.generate(() -> 40).limit(10).toArray()),
            diagonal(1, 3, 1, new Random(6)));
    try (KlEngine engine =
        KlEngine.builder().threads(2).executor(_ -> Thread.currentThread().interrupt()).build()) {
      ends(() -> kl.monteCarlo(1000, 1, engine));
      ends(() -> kl.productOfGaussians(engine));
    }
  }

  private static void ends(ThrowingCallable call) {
    assertThatExceptionOfType(CancellationException.class).isThrownBy(call);
    assertThat(Thread.interrupted()).isTrue();
  }

  /**
   * A block that takes long, of eight rows and a million mixtures, ends between its rows when its thread is interrupted, as the stack of the
   * exception tells. Interrupts come at any time of the call, and most are met elsewhere.
   */
  @ParameterizedTest
  @ValueSource(strings = {"setQuotients", "matchedPairs"})
  void interruptionWithinABlock(String method) {
    int[] ones = new int[1_000_000];
    Arrays.fill(ones, 1);
    MixtureKl kl = MixtureKl.of(mixtures(false, 8), mixtures(false, ones));
    try (KlEngine engine = KlEngine.builder().build()) {
      Runnable call =
          method.equals("matchedPairs")
              ? () -> kl.matchedPairs(engine)
              : () -> kl.variational(engine);
      assertThat(
              Interruption.isMet(call, stack -> stack.getFirst().getMethodName().contains(method)))
          .isTrue();
    }
  }

  /** Rounding is bounded in the samples 1, 2, 4, 8, …, which of so many columns are drawn eight at a time. */
  @Test
  void samplesWhoseRoundingIsBounded() {
    int columns = 30_000;
    double[] one = new double[columns];
    Arrays.fill(one, 1);
    Gaussians g = DiagonalGaussians.ofStd(one, one, 1);
    MixtureKl kl =
        MixtureKl.of(
            Mixtures.of(g.slice(0, 1)),
            Mixtures.of(g, one, IntStream.rangeClosed(0, columns).toArray()));
    int more = 0;
    for (int seed = 0; seed < 10; seed++) {
      double[] error = new double[16];
      for (int samples : new int[] {2, 3, 4, 8, 15}) {
        error[samples] = kl.monteCarlo(samples, seed).standardError(0);
      }
      assertThat(error[3]).isEqualTo(error[2]);
      assertThat(error[15]).isEqualTo(error[8]);
      more += error[4] > error[3] ? 1 : 0;
    }
    assertThat(more).isPositive();
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
    refused(call, message);
  }
}
