package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.testing.DivergenceOracle;
import dev.kullback.testing.FullBatch;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
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

  /** Pairs near and far, to the contract with the condition number. */
  @ParameterizedTest
  @ValueSource(ints = {3, 4, 7})
  void nearAndFar(int d) {
    Random random = new Random(d);
    for (boolean isDouble : new boolean[] {true, false}) {
      for (double condition : new double[] {4, 1e3, 1e6}) {
        FullBatch q = FullBatch.random(isDouble, 1, d, condition, 0, random);
        for (double change : new double[] {0.7, 0.2, 0.03, 1e-3, 1e-6, 1e-12}) {
          FullBatch p =
              new FullBatch(q.kind(), isDouble, q.mean(), changed(q.matrix(), change, random), d);
          p = new FullBatch(p.kind(), isDouble, p.mean(), positive(p.matrix(), d), d);
          double expected = DivergenceOracle.pairwise(Divergence.SQUARED_WASSERSTEIN_2, q, p)[0];
          double bound = isDouble ? 1e-13 * DivergenceOracle.conditions(q, p)[0] : 1e-6;
          assertThat(matrix(Divergence.SQUARED_WASSERSTEIN_2, q.gaussians(), p.gaussians())[0])
              .as("double: %s, condition %s, change %s", isDouble, condition, change)
              .isCloseTo(expected, within(bound * expected));
        }
      }
    }
  }

  private static double[] positive(double[] factor, int d) {
    for (int k = 0; k < factor.length; k += d + 1) {
      factor[k] = Math.abs(factor[k]);
    }
    return factor;
  }

  /** Covariances of common axes, of many dimensions and any rank, as near to each other as to be told: {@code Σ (s − t)²}. */
  @ParameterizedTest
  @ValueSource(ints = {8, 33, 64, 130, 300})
  void manyDimensions(int d) {
    Random random = new Random(d);
    for (double change : new double[] {1, 0.1, 1e-3, 1e-7}) {
      for (int zeros : new int[] {0, 3}) {
        // blocks of two dimensions, one after another and with permuted places, of which the closed
        // form gives the parts
        double[] a = new double[d * d];
        double[] b = new double[d * d];
        double expected = 0;
        for (int h = 0; h + 1 < d; h += 2) {
          double[] x = {
            random.nextDouble(0.3, 2), 0, random.nextGaussian(), random.nextDouble(0.3, 2)
          };
          if (h / 2 < zeros) {
            x[2] = 0;
            x[3] = 0;
          }
          double[] y = positive(changed(x, change, random), 2);
          expected += square(x, y);
          put(a, x, h, d);
          put(b, y, h, d);
        }
        if (d % 2 == 1) {
          a[d * d - 1] = b[d * d - 1] = 1;
        }
        double actual =
            matrix(Divergence.SQUARED_WASSERSTEIN_2, semidefinite(a, d), semidefinite(b, d))[0];
        assertThat(actual)
            .as("change %s, zeros %d", change, zeros)
            .isCloseTo(expected, within(1e-12 * expected));
      }
    }
  }

  /** Sums of equal numbers, which round alike: {@code D (a − b)²}. */
  @Test
  void manyEqualSingularValues() {
    int d = 300;
    double a = 1.5246765735565833;
    double b = 1.1435074301674375;
    double[] one = new double[d * d];
    double[] other = new double[d * d];
    for (int h = 0; h < d; h++) {
      one[h * d + h] = a;
      other[h * d + h] = b;
    }
    double due = d * (a - b) * (a - b);
    assertThat(
            matrix(
                Divergence.SQUARED_WASSERSTEIN_2,
                factors(one).gaussians(),
                factors(other).gaussians())[0])
        .isCloseTo(due, within(1e-13 * due));
  }

  /** {@code I} and {@code (I + X)²}, with a dense X of norm 0.11 whose row sums are 0.6: the square is {@code ‖X‖²}. */
  @Test
  void smallDenseChangesOfManyDimensions() {
    int d = 128;
    Random random = new Random(3);
    double[] map = new double[d * d];
    double[] one = new double[d * d];
    double due = 0;
    for (int r = 0; r < d; r++) {
      for (int c = 0; c <= r; c++) {
        double x = 0.005 * random.nextGaussian();
        map[r * d + c] = map[c * d + r] = x + (r == c ? 1 : 0);
        due += (r == c ? 1 : 2) * x * x;
      }
      one[r * d + r] = 1;
    }
    double[] factor = new double[d * d]; // of (I + X)², by Cholesky
    for (int r = 0; r < d; r++) {
      for (int c = 0; c <= r; c++) {
        double sum = 0;
        for (int k = 0; k < d; k++) {
          sum += map[r * d + k] * map[k * d + c];
        }
        for (int k = 0; k < c; k++) {
          sum -= factor[r * d + k] * factor[c * d + k];
        }
        factor[r * d + c] = r == c ? Math.sqrt(sum) : sum / factor[c * d + c];
      }
    }
    assertThat(
            matrix(
                Divergence.SQUARED_WASSERSTEIN_2,
                factors(one).gaussians(),
                factors(factor).gaussians())[0])
        .isCloseTo(due, within(1e-12 * due));
  }

  /**
   * A matrix is computed in lanes and by the scalar form: both err by at most {@code 6 √D·2⁻⁵³} of the traces. Of these factors, a bound of
   * eigenvalues that is none shows in the first.
   */
  @ParameterizedTest
  @ValueSource(ints = {3, 4, 9, 33})
  void lanesAndPairs(int d) {
    int n = d < 9 ? 40 : 11;
    Random random = new Random(d);
    for (double powers : new double[] {0, 8, 40}) {
      double[][] factors = new double[2][n * d * d];
      double[][] traces = new double[2][n];
      for (int k = 0; k < 2 * n * d * d; k++) {
        int side = k % 2;
        int at = k / 2;
        int r = at / d % d;
        int c = at % d;
        if (c <= r) {
          double x = r == c ? 0.5 + random.nextDouble() : random.nextGaussian() / Math.sqrt(d);
          x *= Math.pow(10, -powers * random.nextDouble());
          factors[side][at] = x;
          traces[side][at / (d * d)] += x * x;
        }
      }
      Gaussians q = Gaussians.of(ScaleKind.SCALE_TRIL, new double[n * d], factors[0], d);
      Gaussians p = Gaussians.of(ScaleKind.SCALE_TRIL, new double[n * d], factors[1], d);
      double[] lanes = matrix(Divergence.SQUARED_WASSERSTEIN_2, q, p);
      double[] pairs;
      try (KlEngine engine =
          KlEngine.builder()
              .divergence(Divergence.SQUARED_WASSERSTEIN_2)
              .backend(Backend.SCALAR)
              .build()) {
        pairs = engine.pairwise(q, p, new double[n * n]);
      }
      for (int at = 0; at < lanes.length; at++) {
        double bound = 12 * Math.sqrt(d) * 0x1p-53 * (traces[0][at / n] + traces[1][at % n]);
        assertThat(lanes[at]).isCloseTo(pairs[at], within(bound));
      }
    }
  }

  private static double square(double[] x, double[] y) {
    return matrix(Divergence.SQUARED_WASSERSTEIN_2, semidefinite(x, 2), semidefinite(y, 2))[0];
  }

  private static Gaussians semidefinite(double[] factor, int d) {
    return Gaussians.of(ScaleKind.SCALE_TRIL, new double[d], factor, d, ScalePolicy.SEMIDEFINITE);
  }

  /** Puts a block of two dimensions to places half of all dimensions apart. */
  private static void put(double[] to, double[] block, int h, int d) {
    int first = h / 2;
    int second = d / 2 + h / 2;
    to[first * d + first] = block[0];
    to[second * d + first] = block[2];
    to[second * d + second] = block[3];
  }
}
