package dev.kullback;

import dev.kullback.internal.numerics.Scale;
import org.jspecify.annotations.Nullable;

/**
 * Kinds of scales, by which an array states the variances or covariances of a batch.
 *
 * @since 0.1.0
 */
public enum ScaleKind {
  /** Standard deviations σ, {@code [N, D]}: {@link DiagonalGaussians#ofStd(float[], float[], int) ofStd}. */
  STD(Scale.STD),

  /** Variances σ², {@code [N, D]}: {@link DiagonalGaussians#ofVariance(float[], float[], int) ofVariance}. */
  VARIANCE(Scale.VARIANCE),

  /**
   * Log-variances ln σ², {@code [N, D]}: {@link DiagonalGaussians#ofLogVariance(float[], float[], int) ofLogVariance}.
   */
  LOG_VARIANCE(Scale.LOG_VARIANCE),

  /** Precisions 1/σ², {@code [N, D]}: {@link DiagonalGaussians#ofPrecision(float[], float[], int) ofPrecision}. */
  PRECISION(Scale.PRECISION),

  /**
   * Factors L of {@code Σ = LLᵀ}, {@code [N, D, D]}, zero above the diagonal:
   * {@link FullGaussians#ofScaleTril(float[], float[], int) ofScaleTril}.
   */
  SCALE_TRIL("scaleTril"),

  /**
   * Factors L packed by rows, {@code [N, D(D+1)/2]}, with {@code ln L_kk} on the diagonal:
   * {@link FullGaussians#ofPackedScaleTril(float[], float[], int) ofPackedScaleTril}.
   */
  PACKED_SCALE_TRIL("packed"),

  /** Factors L packed by rows, {@code [N, D(D+1)/2]}, with {@code L_kk} itself on the diagonal. */
  PLAIN_PACKED_SCALE_TRIL("packed"),

  /** Covariances Σ, {@code [N, D, D]}: {@link FullGaussians#ofCovariance(float[], float[], int) ofCovariance}. */
  COVARIANCE("covariance"),

  /** Precisions {@code Σ⁻¹}, {@code [N, D, D]}: {@link FullGaussians#ofPrecision(float[], float[], int) ofPrecision}. */
  PRECISION_MATRIX("precision");

  /** The mathematics of a diagonal kind; null for matrices. */
  final @Nullable Scale scale;

  private final String argument;

  ScaleKind(Scale scale) {
    this.scale = scale;
    argument = scale.argument;
  }

  ScaleKind(String argument) {
    scale = null;
    this.argument = argument;
  }

  /** {@return the name of the factories' parameter, as {@link InvalidGaussianException#argument()} has it} */
  public String argument() {
    return argument;
  }

  /** {@return whether a Gaussian has a matrix instead of a vector of scales} */
  public boolean isFull() {
    return scale == null;
  }

  /**
   * {@return the number of values that state one Gaussian's scales: D, D² or D(D+1)/2}
   *
   * @param dimension D
   */
  public long length(int dimension) {
    return switch (this) {
      case STD, VARIANCE, LOG_VARIANCE, PRECISION -> dimension;
      case SCALE_TRIL, COVARIANCE, PRECISION_MATRIX -> (long) dimension * dimension;
      case PACKED_SCALE_TRIL, PLAIN_PACKED_SCALE_TRIL -> dimension * (dimension + 1L) / 2;
    };
  }
}
