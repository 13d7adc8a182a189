package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Barycenters against closed forms of one dimension and of commuting covariances, and against their neighbours. */
class BarycenterTest {
  private static final double[] WEIGHTS = {0.5, 0.2, 0.3};
  private static final double[] MEANS = {1, -2, 4};
  private static final double[] VARIANCES = {1, 4, 0.25};

  private static Gaussians of(boolean isFull, double[] means, double[] variances) {
    return isFull
        ? FullGaussians.ofCovariance(means, variances, 1)
        : DiagonalGaussians.ofVariance(means, variances, 1);
  }

  /** {@code P = 7.24 + 0.75}: of deviations 0.3, −3.3 and 2.7 from 1.3, and of the mean variance 1.375. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void oneDimension(boolean isFull) {
    Mixtures mixtures = Mixtures.of(of(isFull, MEANS, VARIANCES), WEIGHTS);
    check(mixtures.barycenters(Divergence.KL), 1.3, 1.375 + 0.5 * 0.09 + 0.2 * 10.89 + 0.3 * 7.29);
    check(mixtures.barycenters(Divergence.REVERSE_KL), 5.2 / 1.75, 1 / 1.75);
    check(mixtures.barycenters(Divergence.SQUARED_WASSERSTEIN_2), 1.3, 1.05 * 1.05);
  }

  private static void check(Gaussians q, double mean, double variance) {
    assertThat(q.size()).isEqualTo(1);
    assertThat(q.mean(0)[0]).isCloseTo(mean, within(1e-14 * Math.abs(mean)));
    assertThat(q.covariance(0)[0]).isCloseTo(variance, within(1e-14 * variance));
  }

  /** Rotated diagonal covariances, which commute: {@code P^½ = Σ π_a P_a^½}. */
  @Test
  void covariancesThatCommute() {
    double cos = 0.8;
    double sin = 0.6;
    double[] first = {1, 4, 1e-6};
    double[] second = {9, 1e4, 0.25};
    double[] covariances = new double[12];
    for (int i = 0; i < 3; i++) {
      rotated(covariances, 4 * i, cos, sin, first[i], second[i]);
    }
    double a = 0.5 + 0.4 + 0.3e-3;
    double b = 1.5 + 20 + 0.15;
    double[] expected = new double[4];
    rotated(expected, 0, cos, sin, a * a, b * b);
    Mixtures mixtures =
        Mixtures.of(FullGaussians.ofCovariance(new double[6], covariances, 2), WEIGHTS);
    Gaussians q = mixtures.barycenters(Divergence.SQUARED_WASSERSTEIN_2);
    assertThat(q.covariance(0)).containsExactly(expected, within(1e-10 * b * b));
  }

  private static void rotated(double[] to, int at, double cos, double sin, double x, double y) {
    to[at] = cos * cos * x + sin * sin * y;
    to[at + 1] = to[at + 2] = cos * sin * (x - y);
    to[at + 3] = sin * sin * x + cos * cos * y;
  }

  /** The sum of divergences is less at the barycenter than beside it, in each direction of mean and covariance, by second order. */
  @ParameterizedTest
  @CsvSource({
    "kl, 1",
    "kl, 5",
    "reverse-kl, 5",
    "squared-wasserstein-2, 3",
    "squared-wasserstein-2, 5"
  })
  void neighboursAreFurther(String name, int d) {
    Divergence divergence = Divergence.of(name);
    Random random = new Random(d);
    Gaussians components = random(4, d, random);
    double[] weights = {3, 0, 1, 4};
    Mixtures mixtures = Mixtures.unnormalized(components, weights);
    Gaussians q = mixtures.barycenters(divergence);
    double least = sum(components, weights, q, divergence);
    double step = 1e-4;
    for (int h = 0; h < d; h++) {
      for (int sign = -1; sign <= 1; sign += 2) {
        double[] mean = q.mean(0);
        mean[h] += sign * step;
        assertThat(
                sum(
                    components,
                    weights,
                    FullGaussians.ofCovariance(mean, q.covariance(0), d),
                    divergence))
            .isGreaterThan(least);
        for (int c = 0; c <= h; c++) {
          double[] covariance = q.covariance(0);
          covariance[h * d + c] += sign * step;
          covariance[c * d + h] += c < h ? sign * step : 0;
          assertThat(
                  sum(
                      components,
                      weights,
                      FullGaussians.ofCovariance(q.mean(0), covariance, d),
                      divergence))
              .isGreaterThan(least);
        }
      }
    }
  }

  private static double sum(Gaussians f, double[] weights, Gaussians q, Divergence divergence) {
    try (KlEngine engine = KlEngine.builder().threads(1).divergence(divergence).build()) {
      double[] values = engine.pairwise(f, q, new double[f.size()]);
      return IntStream.range(0, weights.length).mapToDouble(i -> weights[i] * values[i]).sum();
    }
  }

  private static FullGaussians random(int n, int d, Random random) {
    double[] l = new double[n * d * d];
    for (int i = 0; i < n; i++) {
      for (int r = 0; r < d; r++) {
        for (int c = 0; c < r; c++) {
          l[(i * d + r) * d + c] = 0.4 * random.nextGaussian();
        }
        l[(i * d + r) * d + r] = random.nextDouble(0.3, 2);
      }
    }
    return FullGaussians.ofScaleTril(random.doubles(n * d, -2, 2).toArray(), l, d);
  }

  /** Each mixture's is that of its components, whatever its weights' sum; of one component, that component. */
  @ParameterizedTest
  @ValueSource(strings = {"kl", "reverse-kl", "squared-wasserstein-2"})
  void batches(String name) {
    Divergence divergence = Divergence.of(name);
    FullGaussians f = random(4, 3, new Random(1));
    Gaussians q =
        Mixtures.unnormalized(f, new double[] {2, 6, 4, 7}, new int[] {0, 3, 4})
            .barycenters(divergence);
    double[] means = IntStream.range(0, 9).mapToDouble(k -> f.mean(k / 3)[k % 3]).toArray();
    double[] covariances =
        IntStream.range(0, 27).mapToDouble(k -> f.covariance(k / 9)[k % 9]).toArray();
    Gaussians first =
        Mixtures.of(
                FullGaussians.ofCovariance(means, covariances, 3),
                Arrays.stream(new double[] {2, 6, 4}).map(w -> w / 12).toArray())
            .barycenters(divergence);
    assertThat(q.mean(0)).containsExactly(first.mean(0), within(1e-13));
    assertThat(q.covariance(0)).containsExactly(first.covariance(0), within(1e-10));
    assertThat(q.mean(1)).containsExactly(f.mean(3), within(1e-13));
    assertThat(q.covariance(1)).containsExactly(f.covariance(3), within(1e-12));
  }

  /** A component of weight 0 and singular covariances in double: the former does not count, and the latter are refused. */
  @Test
  void limits() {
    Gaussians f = of(true, new double[] {1, 5}, new double[] {2, 3});
    Mixtures first = Mixtures.of(f, new double[] {1, 0});
    for (String name : new String[] {"kl", "reverse-kl", "squared-wasserstein-2"}) {
      check(first.barycenters(Divergence.of(name)), 1, 2);
    }
    double tiny = 1e-15;
    double[] covariances = {1, 1 - tiny, 1 - tiny, 1, 1, tiny - 1, tiny - 1, 1};
    Mixtures needles = Mixtures.of(FullGaussians.ofCovariance(new double[4], covariances, 2));
    double[] moments = needles.barycenters(Divergence.KL).covariance(0);
    assertThat(moments).containsExactly(new double[] {1, 0, 0, 1}, within(1e-14));
  }

  @ParameterizedTest
  @ValueSource(strings = {"kl", "reverse-kl", "squared-wasserstein-2"})
  void interruptionEndsIt(String name) {
    Mixtures mixtures = Mixtures.of(random(200, 40, new Random(1)));
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> mixtures.barycenters(Divergence.of(name)))
        .isInstanceOf(CancellationException.class);
    assertThat(Thread.interrupted()).isTrue();
  }

  @Test
  void momentsBeyondDoubleAreRefused() {
    Mixtures mixtures = Mixtures.of(of(true, new double[] {0, 0x1p600}, new double[] {1, 1}));
    refused(
        () -> mixtures.barycenters(Divergence.KL),
        "components[1] has a mean or a factor beyond 2^±250");
  }

  @Test
  void otherDivergencesAreRefused() {
    Mixtures mixtures = Mixtures.of(of(false, MEANS, VARIANCES), WEIGHTS);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> mixtures.barycenters(Divergence.WASSERSTEIN_2))
        .withMessageContaining("wasserstein-2")
        .withMessageContaining("take kl");
  }
}
