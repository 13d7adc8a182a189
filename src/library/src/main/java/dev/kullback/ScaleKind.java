package dev.kullback;

import dev.kullback.internal.numerics.MatrixForm;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.ScaleForm;
import java.util.Arrays;

/**
 * What an array of scales holds, by which it states the variances or covariances of a batch's N Gaussians of dimension D.
 * Arrays are row-major, and all values finite. An array of the scales of one Gaussian, {@code [D]}, {@code [D, D]} or
 * {@code [D(D+1)/2]}, is shared by all N, and {@code [N]} numbers of a diagonal kind are one for each. {@link Gaussians#of(ScaleKind, float[], float[], int) Gaussians.of} takes any
 * kind, and methods of {@link DiagonalGaussians} and {@link FullGaussians} are named after the frequent ones.
 *
 * @since 0.1.0
 */
public enum ScaleKind {
  /** Standard deviations σ, {@code [N, D]}, positive, or what a {@link ScalePolicy} takes beside. */
  STD(Scale.STD),

  /** Variances σ², {@code [N, D]}, positive. */
  VARIANCE(Scale.VARIANCE),

  /** Log-variances ln σ², {@code [N, D]}. */
  LOG_VARIANCE(Scale.LOG_VARIANCE),

  /** Precisions 1/σ², {@code [N, D]}, positive. */
  PRECISION(Scale.PRECISION),

  /**
   * Factors L of {@code Σ = LLᵀ}, {@code [N, D, D]}, not 0 on the diagonal and zero above it: a covariance or an upper factor
   * is refused. A negative diagonal element, such as a QR factorization leaves, turns the sign of its column, which changes no Σ: the batch
   * is that of the turned L, to the bit.
   */
  SCALE_TRIL(MatrixForm.SCALE_TRIL),

  /**
   * Factors L of {@code Σ = LLᵀ}, {@code [N, D, D]}, not 0 on the diagonal as {@link #SCALE_TRIL}, with anything above it, which is
   * ignored, even NaN. LAPACK's {@code potrf} leaves what was there. A covariance or an upper factor that is given by mistake makes wrong Gaussians.
   */
  SCALE_TRIL_IGNORING_UPPER(MatrixForm.SCALE_TRIL_IGNORING_UPPER),

  /**
   * Factors L packed by rows with {@code ln L_kk}, within ±700, on the diagonal: {@code [N, D(D+1)/2]} in the order of {@code
   * tril_indices}: (0,0), (1,0), (1,1), (2,0), ….
   */
  PACKED_SCALE_TRIL(MatrixForm.PACKED_SCALE_TRIL),

  /**
   * Factors L packed by rows with {@code L_kk} itself on the diagonal, not 0 as of {@link #SCALE_TRIL}: otherwise as
   * {@link #PACKED_SCALE_TRIL}.
   */
  PLAIN_PACKED_SCALE_TRIL(MatrixForm.PLAIN_PACKED_SCALE_TRIL),

  /**
   * Covariances Σ, {@code [N, D, D]}, positive definite, and symmetric up to rounding: {@code |Σ_rc − Σ_cr| ≤ 1e-6 √(Σ_rr Σ_cc)},
   * or 1e-5 in its place for {@code float}. The Gaussian is that of the mean {@code (Σ + Σᵀ)/2}, which is factored in twice the
   * precision of double. A Σ that may be definite only by the rounding of its elements is refused as singular: one with a combination
   * of coordinates, each scaled to the variance 1, of coefficients whose squares sum to 1, that has a variance of at most {@code (4 + √D) u},
   * u = 2⁻⁵³ or 2⁻²⁴ for {@code float}. Condition numbers up to 1e14, or 1e6 for {@code float}, are taken.
   */
  COVARIANCE(MatrixForm.COVARIANCE),

  /** Precisions {@code Σ⁻¹}, {@code [N, D, D]}, which must be as covariances must, and are factored as those are. */
  PRECISION_MATRIX(MatrixForm.PRECISION),

  /**
   * Upper factors U of precisions {@code Σ⁻¹ = UUᵀ}, {@code [N, D, D]}, not 0 on the diagonal and zero below it: what scikit-learn has as
   * {@code precisions_cholesky_}. {@code L = U⁻ᵀ} is computed in twice the precision of double. A negative diagonal element turns the sign of
   * its column, as of {@link #SCALE_TRIL}.
   */
  PRECISION_CHOLESKY(MatrixForm.PRECISION_CHOLESKY);

  @SuppressWarnings("ImmutableEnumChecker") // the two that are permitted are enums
  final ScaleForm form;

  ScaleKind(ScaleForm form) {
    this.form = form;
  }

  static ScaleKind of(ScaleForm form) {
    return Arrays.stream(values()).filter(kind -> kind.form == form).findFirst().orElseThrow();
  }

  /** {@return whether a Gaussian has a matrix instead of a vector of scales, so that its batch is a {@link FullGaussians}} */
  public boolean isFull() {
    return form instanceof MatrixForm;
  }
}
