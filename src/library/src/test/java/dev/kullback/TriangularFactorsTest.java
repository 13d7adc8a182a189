package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.testing.Batch;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Factors as factorizations leave them: with negative diagonal elements, or of a precision, upper ones. */
class TriangularFactorsTest {
  private static double toStandardNormal(Gaussians g) {
    try (KlEngine engine = KlEngine.builder().build()) {
      return engine.toStandardNormal(g, new double[g.size()])[0];
    }
  }

  /** L = [[−2,0],[1,−½]], μ = (1,1): ½(tr LLᵀ + |μ|² − 2 − ln det) = ½(5.25 + 2 − 2 − 0). */
  @Test
  void negativeDiagonal() {
    double[] mean = {1, 1};
    double[] l = {-2, 0, 1, -.5};
    assertThat(toStandardNormal(FullGaussians.ofScaleTril(mean, l, 2))).isEqualTo(2.625);
    assertThat(
            toStandardNormal(FullGaussians.ofScaleTril(Batch.narrowed(mean), Batch.narrowed(l), 2)))
        .isEqualTo(2.625);
    double[] garbage = {-2, Double.NaN, 1, -.5};
    assertThat(
            toStandardNormal(Gaussians.of(ScaleKind.SCALE_TRIL_IGNORING_UPPER, mean, garbage, 2)))
        .isEqualTo(2.625);
    double[] packed = {-2, 1, -.5};
    assertThat(toStandardNormal(Gaussians.of(ScaleKind.PLAIN_PACKED_SCALE_TRIL, mean, packed, 2)))
        .isEqualTo(2.625);
  }

  /** Some columns of some matrices are turned; some have zeros, which shall get no sign. */
  @ParameterizedTest
  @EnumSource(
      names = {
        "SCALE_TRIL",
        "SCALE_TRIL_IGNORING_UPPER",
        "PLAIN_PACKED_SCALE_TRIL",
        "PRECISION_CHOLESKY"
      })
  void turnedColumnsMakeTheSameBatch(ScaleKind kind) {
    Random random = new Random(4);
    for (int d : new int[] {1, 2, 3, 8, 17}) {
      int n = 9;
      boolean isPacked = kind == ScaleKind.PLAIN_PACKED_SCALE_TRIL;
      int length = isPacked ? d * (d + 1) / 2 : d * d;
      double[] mean = random.doubles((long) n * d, -1, 1).toArray();
      double[] matrices = new double[n * length];
      double[] turned = new double[n * length];
      for (int i = 0; i < n; i++) {
        boolean[] isTurned = new boolean[d];
        for (int c = 0; c < d; c++) {
          isTurned[c] = i > 0 && random.nextBoolean();
        }
        for (int r = 0; r < d; r++) {
          for (int c = 0; c < d; c++) {
            if (kind == ScaleKind.PRECISION_CHOLESKY ? c < r : c > r) {
              continue;
            }
            double value =
                r == c ? 0.5 + random.nextFloat() : random.nextInt(3) == 0 ? 0 : random.nextFloat();
            int k = i * length + (isPacked ? r * (r + 1) / 2 + c : r * d + c);
            matrices[k] = value;
            turned[k] = isTurned[c] ? -value : value;
          }
        }
      }
      assertSame(Gaussians.of(kind, mean, matrices, d), Gaussians.of(kind, mean, turned, d));
      float[] narrow = Batch.narrowed(mean);
      assertSame(
          Gaussians.of(kind, narrow, Batch.narrowed(matrices), d),
          Gaussians.of(kind, narrow, Batch.narrowed(turned), d));
      ValueLayout.OfDouble swapped = ValueLayout.JAVA_DOUBLE.withOrder(ByteOrder.BIG_ENDIAN);
      MemorySegment segment = MemorySegment.ofArray(new double[turned.length]);
      for (int k = 0; k < turned.length; k++) {
        segment.setAtIndex(swapped, k, turned[k]);
      }
      assertSame(
          Gaussians.of(kind, mean, matrices, d),
          Gaussians.of(
              kind,
              MemorySegment.ofArray(mean),
              ValueLayout.JAVA_DOUBLE,
              segment,
              swapped,
              d,
              ScalePolicy.STRICT));
    }
  }

  private static void assertSame(Gaussians expected, Gaussians actual) {
    for (int i = 0; i < expected.size(); i++) {
      assertThat(actual.scale(i)).isEqualTo(expected.scale(i));
      assertThat(actual.covariance(i)).isEqualTo(expected.covariance(i));
    }
    try (KlEngine engine = KlEngine.builder().build()) {
      double[] out = new double[expected.size() * expected.size()];
      assertThat(engine.pairwise(actual, actual, out.clone()))
          .isEqualTo(engine.pairwise(expected, expected, out));
    }
  }

  @ParameterizedTest
  @EnumSource(
      names = {
        "SCALE_TRIL",
        "SCALE_TRIL_IGNORING_UPPER",
        "PLAIN_PACKED_SCALE_TRIL",
        "PRECISION_CHOLESKY"
      })
  void zeroOnTheDiagonalIsRefused(ScaleKind kind) {
    boolean isPacked = kind == ScaleKind.PLAIN_PACKED_SCALE_TRIL;
    for (double zero : new double[] {0, -0.0}) {
      double[] matrix = isPacked ? new double[] {-1, 0, zero} : new double[] {-1, 0, 0, zero};
      assertThatExceptionOfType(InvalidGaussianException.class)
          .isThrownBy(() -> Gaussians.of(kind, new double[2], matrix, 2))
          .withMessageEndingWith(
              "(Gaussian 0, row 1, column 1) is "
                  + zero
                  + "; a diagonal element, it must be finite and not 0: the matrix is singular; a small positive number there mends it")
          .satisfies(e -> assertThat(e.element()).hasValue(isPacked ? 2 : 3));
    }
    // an element of a turned column is shown as it was given
    double[] matrix = isPacked ? new double[] {-1, 1 / 0.0, 1} : new double[] {-1, 0, 1 / 0.0, 1};
    if (kind == ScaleKind.PRECISION_CHOLESKY) {
      matrix = new double[] {1, 1 / 0.0, 0, -1};
    }
    double[] infinite = matrix;
    assertThatExceptionOfType(InvalidGaussianException.class)
        .isThrownBy(() -> Gaussians.of(kind, new double[2], infinite, 2))
        .withMessageContaining(
            kind == ScaleKind.PRECISION_CHOLESKY
                ? "precisionCholesky[0][0][1] (Gaussian 0, row 0, column 1) is Infinity; it must be finite"
                : "(Gaussian 0, row 1, column 0) is Infinity; it must be finite");
  }

  /** U = [[2,1],[0,½]], Λ = UUᵀ, μ = (1,0): KL(N(0,I) ‖ ·) = ½(tr Λ + μᵀΛμ − 2 − ln det Λ) = 4.125; UᵀU would give 3.625. */
  @ParameterizedTest
  @ValueSource(ints = {1, -1})
  void upperFactorOfAPrecision(int sign) {
    double[] u = {2, sign, 0, sign * .5};
    double[] zero = {0, 0};
    Gaussians p = Gaussians.of(ScaleKind.PRECISION_CHOLESKY, new double[] {1, 0}, u, 2);
    Gaussians p32 =
        Gaussians.of(ScaleKind.PRECISION_CHOLESKY, new float[] {1, 0}, Batch.narrowed(u), 2);
    Gaussians matrix =
        Gaussians.of(
            ScaleKind.PRECISION_MATRIX, new double[] {1, 0}, new double[] {5, .5, .5, .25}, 2);
    FullGaussians q = FullGaussians.ofScaleTril(zero, new double[] {1, 0, 0, 1}, 2);
    try (KlEngine engine = KlEngine.builder().build()) {
      assertThat(engine.pairwise(q, p, new double[1])).containsExactly(4.125);
      assertThat(engine.pairwise(q, p32, new double[1])).containsExactly(4.125);
      assertThat(engine.pairwise(p, matrix, new double[1])[0]).isCloseTo(0, within(1e-15));
    }
    assertThat(p.kind()).isEqualTo(ScaleKind.SCALE_TRIL);
    assertThat(p.scale(0)).containsExactly(.5, 0, -1, 2); // U⁻ᵀ
    assertThat(p.covariance(0)).containsExactly(.25, -.5, -.5, 5);
  }

  /** Of integers and a diagonal of ±1, the inverse is of integers, so exact. */
  @Test
  void inverseOfIntegers() {
    Random random = new Random(8);
    for (int d : new int[] {1, 2, 5, 9}) {
      int n = 11;
      double[] upper = new double[n * d * d];
      double[] lower = new double[n * d * d];
      for (int i = 0; i < n; i++) {
        int at = i * d * d;
        for (int r = 0; r < d; r++) {
          for (int c = r; c < d; c++) {
            upper[at + r * d + c] = c == r ? 1 : random.nextInt(5) - 2;
          }
        }
        for (int c = 0; c < d; c++) { // Uᵀ L = I, column by column
          for (int r = c; r < d; r++) {
            double sum = r == c ? 1 : 0;
            for (int k = c; k < r; k++) {
              sum -= upper[at + k * d + r] * lower[at + k * d + c];
            }
            lower[at + r * d + c] = sum;
          }
        }
      }
      Gaussians expected = FullGaussians.ofScaleTril(new double[n * d], lower, d);
      Gaussians actual = Gaussians.of(ScaleKind.PRECISION_CHOLESKY, new double[n * d], upper, d);
      assertSame(expected, actual);
    }
  }

  /** Standard deviations of 1e±200, correlated: U of the unit Gaussian, with rows divided by them. */
  @Test
  void farMagnitudes() {
    double a = 0x1p-665;
    double b = 0x1p665;
    double[] u = {2 * a, a, 0, .5 * b};
    Gaussians g = Gaussians.of(ScaleKind.PRECISION_CHOLESKY, new double[2], u, 2);
    assertThat(g.scale(0)).containsExactly(.5 / a, 0, -1 / b, 2 / b);
    double[] least = {Double.MIN_VALUE, 0, 0, 1};
    assertThatExceptionOfType(InvalidGaussianException.class)
        .isThrownBy(() -> Gaussians.of(ScaleKind.PRECISION_CHOLESKY, new double[2], least, 2))
        .withMessage(
            "precisionCholesky[0] (Gaussian 0) is singular, or nearly: double does not hold its covariance");
    double[] most = {Double.MAX_VALUE, 0, 0, Double.MIN_NORMAL};
    Gaussians extreme = Gaussians.of(ScaleKind.PRECISION_CHOLESKY, new double[2], most, 2);
    assertThat(extreme.scale(0)).containsExactly(1 / Double.MAX_VALUE, 0, 0, 1 / Double.MIN_NORMAL);
  }

  @Test
  void lowerFactorOfAPrecision() {
    double[] lower = {1, 0, 0, 1, 2, 0, 1, 3};
    assertThatExceptionOfType(InvalidGaussianException.class)
        .isThrownBy(() -> Gaussians.of(ScaleKind.PRECISION_CHOLESKY, new double[4], lower, 2))
        .withMessage(
            "precisionCholesky[1][1][0] (Gaussian 1, row 1, column 0) is 1.0: not upper triangular"
                + "; is it a covariance's lower factor (ofScaleTril), or a precision's, L of LLᵀ? Of that, give LLᵀ"
                + " (ScaleKind.PRECISION_MATRIX)");
  }
}
