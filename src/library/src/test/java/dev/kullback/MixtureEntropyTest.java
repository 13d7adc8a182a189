package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Bounds on a mixture's entropy against what sampling finds, and where they are exact. */
@Tag("device")
class MixtureEntropyTest {
  private static final double UNIT = 0.5 * (1 + Math.log(2 * Math.PI));

  /** The bounds enclose the sampled entropies of 100 random mixtures, diagonal and full, of all degrees of overlap. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void boundsBracketMonteCarlo(Backend backend) {
    Random random = new Random(1);
    try (KlEngine engine = Engines.on(backend)) {
      for (int trial = 0; trial < 100; trial++) {
        int m = 1 + random.nextInt(8);
        int d = 1 + random.nextInt(4);
        double spread = Math.pow(10, random.nextDouble(-1, 1));
        FullBatch drawn = FullBatch.random(true, m, d, d == 1 ? 1 : 10, 0, random);
        double[] mean = new double[m * d];
        double[] matrix = drawn.matrix().clone();
        for (int k = 0; k < mean.length; k++) {
          mean[k] = spread * random.nextGaussian();
        }
        boolean full = trial % 2 == 0;
        for (int k = 0; k < matrix.length; k++) {
          matrix[k] *= full || k % (d * d) % (d + 1) == 0 ? 1 : 0;
        }
        double[] weights = random.doubles(m, 0, 1).toArray();
        double sum = Arrays.stream(weights).sum();
        for (int i = 0; i < m; i++) {
          weights[i] /= sum;
        }
        double[] std = new double[m * d];
        for (int k = 0; k < std.length; k++) {
          std[k] = matrix[k / d * d * d + k % d * (d + 1)];
        }
        Gaussians components =
            full
                ? FullGaussians.ofScaleTril(mean, matrix, d)
                : DiagonalGaussians.ofStd(mean, std, d);
        Mixtures entropy = Mixtures.of(components, weights);
        double upper = entropy.entropyUpperBound(engine)[0];
        double[] sampled = sampled(mean, matrix, d, weights, random);
        String what = "%s, trial %d: %s".formatted(backend, trial, components);
        double slack = 5 * sampled[1] + 1e-12;
        assertThat(upper).as(what).isGreaterThanOrEqualTo(sampled[0] - slack);
        assertThat(entropy.entropyLowerBound(0)[0])
            .as(what)
            .isLessThanOrEqualTo(sampled[0] + slack);
        for (double alpha : new double[] {0, 0.2, 0.5, 0.9, 1}) {
          assertThat(entropy.entropyLowerBound(alpha)[0])
              .as(what)
              .isLessThanOrEqualTo(sampled[0] + slack);
        }
        assertThat(entropy.entropyLowerBound(0.5)[0])
            .isGreaterThanOrEqualTo(entropy.entropyLowerBound(0)[0] - 1e-12);
        assertThat(entropy.entropyLowerBound(1)[0])
            .isCloseTo(entropy.entropyLowerBound(0)[0], within(1e-9));
      }
    }
  }

  /** Mean of {@code −ln p(x)} over samples x of the mixture, and its standard error. */
  private static double[] sampled(
      double[] mean, double[] tril, int d, double[] weights, Random random) {
    int samples = 1500;
    double sum = 0;
    double squares = 0;
    double[] x = new double[d];
    double[] z = new double[d];
    for (int s = 0; s < samples; s++) {
      double u = random.nextDouble();
      int i = 0;
      for (; i < weights.length - 1 && u >= weights[i]; i++) {
        u -= weights[i];
      }
      for (int r = 0; r < d; r++) {
        z[r] = random.nextGaussian();
        x[r] = mean[i * d + r];
        for (int c = 0; c <= r; c++) {
          x[r] += tril[(i * d + r) * d + c] * z[c];
        }
      }
      double density = 0;
      for (int j = 0; j < weights.length; j++) {
        double exponent = 0;
        for (int r = 0; r < d; r++) {
          double y = x[r] - mean[j * d + r];
          for (int c = 0; c < r; c++) {
            y -= tril[(j * d + r) * d + c] * z[c];
          }
          z[r] = y / tril[(j * d + r) * d + r];
          exponent -=
              0.5 * z[r] * z[r] + Math.log(tril[(j * d + r) * d + r] * Math.sqrt(2 * Math.PI));
        }
        density += weights[j] * Math.exp(exponent);
      }
      double h = -Math.log(density);
      sum += h;
      squares += h * h;
    }
    double average = sum / samples;
    return new double[] {
      average, Math.sqrt(Math.max(0, squares / samples - average * average) / samples)
    };
  }

  /** Both bounds are exact for one component, equal components, and components far apart. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void exactCases(Backend backend) {
    try (KlEngine engine = Engines.on(backend)) {
      for (boolean full : new boolean[] {false, true}) {
        check(engine, mixture(full, 1, 2, 0), 2 * UNIT + 2 * Math.log(3));
        check(engine, mixture(full, 5, 2, 0), 2 * UNIT + 2 * Math.log(3));
        check(engine, mixture(full, 5, 2, 1e4), 2 * UNIT + 2 * Math.log(3) + Math.log(5));
      }
      double[] weights = {0.25, 0, 0.75};
      Gaussians apart =
          DiagonalGaussians.ofStd(new double[] {0, 1, 1e6}, new double[] {1, 1e-9, 2}, 1);
      double expected = UNIT + 0.75 * Math.log(2) - 0.25 * Math.log(0.25) - 0.75 * Math.log(0.75);
      check(engine, Mixtures.of(apart, weights), expected);
    }
  }

  private static void check(KlEngine engine, Mixtures entropy, double expected) {
    assertThat(entropy.entropyUpperBound(engine)[0]).isCloseTo(expected, within(1e-12));
    assertThat(entropy.entropyLowerBound(0.5)[0]).isCloseTo(expected, within(1e-12));
  }

  /** Components of std 3 throughout, a distance apart along every axis. */
  private static Mixtures mixture(boolean full, int m, int d, double distance) {
    double[] mean = new double[m * d];
    double[] std = new double[m * d];
    double[] tril = new double[m * d * d];
    for (int k = 0; k < mean.length; k++) {
      mean[k] = k / d * distance;
      std[k] = 3;
      tril[k * d + k % d] = 3;
    }
    return Mixtures.of(
        full ? FullGaussians.ofScaleTril(mean, tril, d) : DiagonalGaussians.ofStd(mean, std, d));
  }

  /** Two components, diagonal and full alike, against the formula by hand. */
  @Test
  void chernoffByHand() {
    double[] mean = {0, 0, 1, 2};
    double[] std = {1, 2, 3, 0.5};
    double alpha = 0.3;
    double c = 0;
    double back = 0;
    for (int h = 0; h < 2; h++) {
      double a = std[h] * std[h];
      double b = std[2 + h] * std[2 + h];
      double mixed = (1 - alpha) * a + alpha * b;
      double other = (1 - alpha) * b + alpha * a;
      double d = mean[2 + h] * mean[2 + h];
      c +=
          0.5 * alpha * (1 - alpha) * d / mixed
              + 0.5 * Math.log(mixed / Math.pow(a, 1 - alpha) / Math.pow(b, alpha));
      back +=
          0.5 * alpha * (1 - alpha) * d / other
              + 0.5 * Math.log(other / Math.pow(b, 1 - alpha) / Math.pow(a, alpha));
    }
    double expected =
        2 * UNIT
            + 0.5 * Math.log(1 * 2 * 3 * 0.5)
            - 0.5 * Math.log(0.5 + 0.5 * Math.exp(-c))
            - 0.5 * Math.log(0.5 + 0.5 * Math.exp(-back));
    double[] tril = {1, 0, 0, 2, 3, 0, 0, 0.5};
    assertThat(Mixtures.of(DiagonalGaussians.ofStd(mean, std, 2)).entropyLowerBound(alpha)[0])
        .isCloseTo(expected, within(1e-14));
    assertThat(Mixtures.of(FullGaussians.ofScaleTril(mean, tril, 2)).entropyLowerBound(alpha)[0])
        .isCloseTo(expected, within(1e-14));
  }

  /** The entropies of each mixture of a batch are those that it has by itself. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void batchesHaveTheEntropiesOfEach(Backend backend) {
    Random random = new Random(3);
    int d = 3;
    int[] offsets = {0, 4, 5, 12};
    FullBatch drawn = FullBatch.random(true, 12, d, 10, 0, random);
    double[] std = random.doubles(12 * d, 0.5, 2).toArray();
    double[] weights = random.doubles(12, 0.1, 1).toArray();
    for (int m = 0; m < 3; m++) {
      double sum = Arrays.stream(weights, offsets[m], offsets[m + 1]).sum();
      for (int i = offsets[m]; i < offsets[m + 1]; i++) {
        weights[i] /= sum;
      }
    }
    try (KlEngine engine = Engines.on(backend)) {
      for (boolean full : new boolean[] {false, true}) {
        Mixtures all = Mixtures.of(part(drawn, std, full, 0, 12), weights, offsets);
        for (int m = 0; m < 3; m++) {
          int from = offsets[m];
          int to = offsets[m + 1];
          Mixtures one =
              Mixtures.of(part(drawn, std, full, from, to), Arrays.copyOfRange(weights, from, to));
          assertThat(Arrays.copyOfRange(all.componentEntropies(), from, to))
              .containsExactly(one.componentEntropies());
          assertThat(all.entropyLowerBound(0)[m]).isEqualTo(one.entropyLowerBound(0)[0]);
          assertThat(all.entropyUpperBound(engine)[m])
              .isCloseTo(one.entropyUpperBound(engine)[0], within(1e-12));
          assertThat(all.entropyLowerBound(0.3)[m])
              .isCloseTo(one.entropyLowerBound(0.3)[0], within(1e-12));
        }
        assertThat(all.entropyLowerBound(0.5)).hasSize(3);
      }
    }
  }

  private static Gaussians part(FullBatch drawn, double[] std, boolean full, int from, int to) {
    int d = drawn.dimension();
    double[] mean = Arrays.copyOfRange(drawn.mean(), from * d, to * d);
    return full
        ? FullGaussians.ofScaleTril(
            mean, Arrays.copyOfRange(drawn.matrix(), from * d * d, to * d * d), d)
        : DiagonalGaussians.ofStd(mean, Arrays.copyOfRange(std, from * d, to * d), d);
  }

  @Test
  void rejected() {
    DiagonalGaussians two = DiagonalGaussians.ofStd(new double[] {0, 1}, new double[] {1, 1}, 1);
    for (double[] weights :
        new double[][] {{1}, {0.5, 0.6}, {-0.5, 1.5}, {Double.NaN, 1}, {0, 0}, {0.3, 0.3, 0.4}}) {
      assertThatIllegalArgumentException().isThrownBy(() -> Mixtures.of(two, weights));
    }
    for (double alpha : new double[] {-0.1, 1.1, Double.NaN}) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> Mixtures.of(two).entropyLowerBound(alpha));
    }
    Gaussians zero =
        Gaussians.of(
            ScaleKind.STD, new float[2], new float[2], 1, ScalePolicy.DETERMINISTIC_IF_ZERO);
    assertThatIllegalArgumentException().isThrownBy(() -> Mixtures.of(zero));
  }

  @Test
  void extremeAlpha() {
    Mixtures apart =
        Mixtures.of(DiagonalGaussians.ofStd(new double[] {0, 1e200}, new double[] {1, 1}, 1));
    for (double alpha : new double[] {0, 1}) {
      double[] given = apart.componentEntropies();
      assertThat(apart.entropyLowerBound(alpha)).containsExactly(0.5 * given[0] + 0.5 * given[1]);
    }
  }
}
