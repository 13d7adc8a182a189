package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Modifier;
import java.util.OptionalInt;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** The parts of the exception for an invalid Gaussian, which say the same as its message. */
class InvalidGaussianExceptionTest {
  private static final double[] MEAN = new double[4];
  private static final double[] ONES = {1, 1, 1, 1};

  @Test
  void scales() {
    Expected at = new Expected("std", 1, 0, "is 0.0; it must be finite and > 0");
    at.of(
        () -> DiagonalGaussians.ofStd(MEAN, new double[] {1, 1, 0, 1}, 2),
        "std[1][0] (Gaussian 1, dimension 0) is 0.0; it must be finite and > 0 (ScalePolicy.CLAMPED raises small ones)");
    at = new Expected("precision", 1, 1, "is -0.1; it must be finite and > 0");
    at.of(
        () -> DiagonalGaussians.ofPrecision(new float[4], new float[] {1, 1, 1, -0.1f}, 2),
        "precision[1][1] (Gaussian 1, dimension 1) is -0.1; it must be finite and > 0; are these log-variances (ofLogVariance)?");
    at = new Expected("mean", 2, 0, "is NaN; it must be finite");
    at.of(
        () -> DiagonalGaussians.ofLogVariance(new double[] {1, 2, Double.NaN}, new double[3], 1),
        "mean[2][0] (Gaussian 2, dimension 0) is NaN; it must be finite");
  }

  /** Values are printed in the precision of their own array, not in that of the batch. */
  @Test
  void arraysOfTwoTypes() {
    MemorySegment mean = MemorySegment.ofArray(MEAN);
    MemorySegment std = MemorySegment.ofArray(new float[] {1, 1, 1, -0.1f});
    new Expected("std", 1, 1, "is -0.1; it must be finite and > 0")
        .of(
            () ->
                Gaussians.of(
                    ScaleKind.STD,
                    mean,
                    ValueLayout.JAVA_DOUBLE,
                    std,
                    ValueLayout.JAVA_FLOAT,
                    2,
                    ScalePolicy.STRICT),
            "std[1][1] (Gaussian 1, dimension 1) is -0.1; it must be finite and > 0; are these log-variances (ofLogVariance)?");
  }

  @Test
  void matrices() {
    new Expected("covariance", 1, -1, "is not positive definite: pivot 1 is -3.0")
        .of(
            () -> FullGaussians.ofCovariance(MEAN, new double[] {1, 0, 0, 1, 1, 2, 2, 1}, 2),
            "covariance[1] (Gaussian 1) is not positive definite: pivot 1 is -3.0");
    new Expected(
            "covariance",
            0,
            -1,
            "is not symmetric: [1][0] is 0.1 but [0][1] is 0.2"
                + ", a difference of 0.1000 √([1][1]·[0][0]); up to 1e-06 passes for rounding: if it is that, give (C + Cᵀ)/2")
        .of(
            () -> FullGaussians.ofCovariance(MEAN, new double[] {1, .2, .1, 1, 1, 0, 0, 1}, 2),
            "covariance[0] (Gaussian 0) is not symmetric: [1][0] is 0.1 but [0][1] is 0.2"
                + ", a difference of 0.1000 √([1][1]·[0][0]); up to 1e-06 passes for rounding: if it is that, give (C + Cᵀ)/2");
    new Expected("scaleTril", 1, 2, "is Infinity; it must be finite")
        .of(
            () -> FullGaussians.ofScaleTril(MEAN, new double[] {1, 0, 0, 1, 1, 0, 1 / 0.0, 1}, 2),
            "scaleTril[1][1][0] (Gaussian 1, row 1, column 0) is Infinity; it must be finite");
    new Expected("packed", 1, 1, "is NaN; it must be finite")
        .of(
            () ->
                FullGaussians.ofPackedScaleTril(MEAN, new double[] {0, 0, 0, 0, Double.NaN, 0}, 2),
            "packed[1][1] (Gaussian 1, row 1, column 0) is NaN; it must be finite");
    new Expected("mean", 1, 0, "is NaN; it must be finite")
        .of(
            () -> FullGaussians.ofPackedScaleTril(new double[] {1, Double.NaN}, new double[2], 1),
            "mean[1][0] (Gaussian 1, dimension 0) is NaN; it must be finite");
  }

  /** What rounding makes of a matrix without full rank is told apart from one that is far from positive definite. */
  @Test
  void singularMatrices() {
    String advice = ": it is singular, or nearly; add a small multiple of I";
    for (double last : new double[] {4 - 1e-7, 4 - 1e-3}) {
      InvalidGaussianException e =
          catchThrowableOfType(
              InvalidGaussianException.class,
              () -> FullGaussians.ofCovariance(new double[2], new double[] {1, 2, 2, last}, 2));
      String reason = "is not positive definite: pivot 1 is " + (last - 4);
      assertThat(e.reason()).isEqualTo(last > 3.9999 ? reason + advice : reason);
    }
    InvalidGaussianException e =
        catchThrowableOfType(
            InvalidGaussianException.class,
            () ->
                Gaussians.of(
                    ScaleKind.PRECISION_MATRIX, new float[2], new float[] {1, 0, 0, 0}, 2));
    assertThat(e.reason())
        .isEqualTo(
            "has rank 1 of 2 (infinite variances): add 1e-04·I, on which the result depends");
  }

  @Test
  void batchesThatMeet() {
    DiagonalGaussians diagonal =
        DiagonalGaussians.ofLogVariance(MEAN, new double[] {0, 0, 0, -1500}, 2);
    FullGaussians full = FullGaussians.ofScaleTril(new double[2], new double[] {1, 0, 1, 1}, 2);
    String reason =
        " has log-variance -1500.0; with a full covariance it must be in [-1400.0, 1400.0]";
    try (KlEngine engine = KlEngine.builder().build()) {
      new Expected("q", 1, 1, reason.strip())
          .of(() -> engine.pairwise(diagonal, full), "q[1] (Gaussian 1, dimension 1)" + reason);
      new Expected("p", 1, 1, reason.strip())
          .of(() -> engine.rowMin(full, diagonal), "p[1] (Gaussian 1, dimension 1)" + reason);
    }
  }

  /** Internal code has its exceptions from a class that the API's hands its constructor to. */
  @Test
  void noConstructorIsPublic() {
    assertThat(InvalidGaussianException.class.getConstructors()).isEmpty();
    assertThat(InvalidGaussianException.class.getModifiers()).matches(Modifier::isFinal);
  }

  /** The parts that an exception is expected to have; element −1 stands for none. */
  private record Expected(String argument, int gaussian, int element, String reason) {
    void of(ThrowingCallable call, String message) {
      InvalidGaussianException e = catchThrowableOfType(InvalidGaussianException.class, call);
      assertThat(e).isNotNull().hasMessage(message);
      assertThat(e.argument()).isEqualTo(argument);
      assertThat(e.gaussian()).isEqualTo(gaussian);
      assertThat(e.element())
          .isEqualTo(element < 0 ? OptionalInt.empty() : OptionalInt.of(element));
      assertThat(e.reason()).isEqualTo(reason);
    }
  }
}
