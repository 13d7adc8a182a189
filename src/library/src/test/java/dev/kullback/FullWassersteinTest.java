package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.testing.DivergenceOracle;
import dev.kullback.testing.FullBatch;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The 2-Wasserstein distance of full covariances: closed forms, near pairs and far ones, to the promise that accuracy.md makes. */
class FullWassersteinTest {
  private static final double[] CHANGES = {0.7, 0.1, 1e-3, 1e-8, 1e-14};

  private static double[] matrix(Divergence divergence, Gaussians q, Gaussians p) {
    try (KlEngine engine = KlEngine.builder().divergence(divergence).build()) {
      double[] forth = engine.pairwise(q, p, new double[q.size() * p.size()]);
      double[] back = engine.pairwise(p, q, new double[forth.length]);
      for (int at = 0; at < forth.length; at++) {
        assertThat(back[at % p.size() * q.size() + at / p.size()]).isEqualTo(forth[at]);
      }
      return forth;
    }
  }

  private static FullBatch factors(double[] factor) {
    int d = (int) Math.sqrt(factor.length);
    return new FullBatch(FullBatch.Kind.SCALE_TRIL, true, new double[d], factor, d);
  }

  private static double[] changed(double[] factor, double change, Random random) {
    return Arrays.stream(factor).map(x -> x * (1 + change * random.nextGaussian())).toArray();
  }

  private static double[] scaled(double[] factor, double scale) {
    return Arrays.stream(factor).map(x -> x * scale).toArray();
  }

  /** One and two dimensions, of factors of any condition and size, near to each other and far. */
  @ParameterizedTest
  @ValueSource(doubles = {1, 0x1p-498, 0x1p498, 0x1p-200, 0x1p200})
  void closedForms(double size) {
    Random random = new Random(5);
    for (int trial = 0; trial < 60; trial++) {
      int d = trial % 4 == 0 ? 1 : 2;
      double[] factor = new double[d * d];
      Arrays.setAll(
          factor, k -> k == 1 ? 0 : k == 2 ? random.nextGaussian() : random.nextDouble(0.1, 2));
      factor[trial % 3 == 0 ? 0 : d * d - 1] *= Math.pow(10, -(trial % 7));
      for (double change : CHANGES) {
        double[] other = changed(factor, change, random);
        other[0] = Math.abs(other[0]);
        other[d * d - 1] = Math.abs(other[d * d - 1]);
        FullBatch a = factors(factor);
        FullBatch b = factors(other);
        FullGaussians q = factors(scaled(factor, size)).gaussians();
        FullGaussians p = factors(scaled(other, size)).gaussians();
        double square = DivergenceOracle.pairwise(Divergence.SQUARED_WASSERSTEIN_2, a, b)[0];
        double error = 8e-16 * DivergenceOracle.conditions(a, b)[0];
        String what = "D = %d, trial %d, change %s".formatted(d, trial, change);
        double due = square * size * size;
        assertThat(matrix(Divergence.SQUARED_WASSERSTEIN_2, q, p)[0])
            .as(what)
            .isCloseTo(due, within(error * due + Double.MIN_NORMAL));
        double root = Math.sqrt(square) * size;
        assertThat(matrix(Divergence.WASSERSTEIN_2, q, p)[0])
            .as(what)
            .isCloseTo(root, within(error * root));
        assertThat(matrix(Divergence.WASSERSTEIN_2, q, q.select(0))[0]).isZero();
      }
    }
  }

  /** A small B beside a large covariance, and a covariance beside nothing. */
  @ParameterizedTest
  @ValueSource(doubles = {1e-200, 1e-100, 1, 1e100, 1e200})
  void partsOfDifferentSizes(double size) {
    FullGaussians q = factors(new double[] {size, 0, 0, 3}).gaussians();
    FullGaussians p = factors(new double[] {size, 0, 0, 5}).gaussians();
    assertThat(matrix(Divergence.WASSERSTEIN_2, q, p)[0]).isCloseTo(2, within(1e-15));
    FullGaussians one = factors(new double[] {3 * size, 0, 4 * size, 1e-3 * size}).gaussians();
    Gaussians nothing =
        Gaussians.of(
            ScaleKind.SCALE_TRIL, new double[2], new double[4], 2, ScalePolicy.SEMIDEFINITE);
    double expected = Math.sqrt(25 + 1e-6) * size;
    assertThat(matrix(Divergence.WASSERSTEIN_2, one, nothing)[0])
        .isCloseTo(expected, within(1e-15 * expected));
  }

  /** Two dimensions, and beside them one in which both are alike. */
  @ParameterizedTest
  @ValueSource(doubles = {0.7, 0.1, 1e-3, 1e-8})
  void closedFormsAgreeWithTheOthers(double change) {
    Random random = new Random(9);
    for (int trial = 0; trial < 100; trial++) {
      double[] a = {1, 0, random.nextGaussian(), random.nextDouble(0.3, 2)};
      double[] b = changed(a, change, random);
      b[0] = Math.abs(b[0]);
      b[3] = Math.abs(b[3]);
      double planar =
          matrix(Divergence.SQUARED_WASSERSTEIN_2, factors(a).gaussians(), factors(b).gaussians())[
              0];
      double[] more = {a[0], 0, 0, a[2], a[3], 0, 0, 0, 1};
      double[] other = {b[0], 0, 0, b[2], b[3], 0, 0, 0, 1};
      assertThat(
              matrix(
                  Divergence.SQUARED_WASSERSTEIN_2,
                  factors(more).gaussians(),
                  factors(other).gaussians())[0])
          .isCloseTo(planar, within(1e-12 * planar));
    }
  }
}
