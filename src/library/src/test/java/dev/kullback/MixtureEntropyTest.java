package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.testing.Engines;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Bounds on a mixture's entropy against what sampling finds, and where they are exact. */
@Tag("device")
class MixtureEntropyTest {
  private static final double UNIT = 0.5 * (1 + Math.log(2 * Math.PI));

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
