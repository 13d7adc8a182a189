package dev.kullback;

import static dev.kullback.ScaleKind.COVARIANCE;
import static dev.kullback.ScaleKind.PRECISION_MATRIX;
import static dev.kullback.ScaleKind.SCALE_TRIL;
import static dev.kullback.ScalePolicy.STRICT;

import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.batch.Factors;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.engine.Platform;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A batch of N Gaussians {@code N(μ_i, Σ_i)} of dimension D with full covariance: {@code Σ = LLᵀ}, with L lower
 * triangular and a positive diagonal.
 *
 * <p>A factory takes the means μ, row-major {@code [N, D]}, the matrices that its name tells, and D; N is
 * {@code mean.length / D}. All values that are read must be finite.
 * <ul>
 *   <li>{@code ofScaleTril}: factors L, row-major {@code [N, D, D]}, positive on the diagonal and zero above it: a
 *       covariance or an upper factor is refused. {@code ofScaleTrilIgnoringUpper} does not look above the diagonal.
 *   <li>{@code ofPackedScaleTril}: factors L, row-major {@code [N, D(D+1)/2]} in the order of {@code tril_indices}: (0,0),
 *       (1,0), (1,1), (2,0), …. With {@code logDiagonal}, or without a choice, the diagonal holds {@code ln L_kk}, within
 *       ±700; else it holds {@code L_kk}, positive.
 *   <li>{@code ofCovariance}, {@code ofPrecision}: Σ or {@code Σ⁻¹}, row-major {@code [N, D, D]}, positive definite, and
 *       symmetric up to rounding: {@code |Σ_rc − Σ_cr| ≤ 1e-6 √(Σ_rr Σ_cc)}, or 1e-5 in its place for {@code float}.
 *       The Gaussian is that of the mean {@code (Σ + Σᵀ)/2}, which is factored in twice the precision of double.
 * </ul>
 *
 * <p>Values are copied and checked; the caller's memory is neither kept nor modified. Arrays of {@code float} make a batch of
 * float precision, and arrays of {@code double} one of double precision; both are held, and computed with, in double.
 * Segments hold the type that {@code element}, the layout of each of their values, is of: {@link ValueLayout.OfFloat} or
 * {@link ValueLayout.OfDouble}, of either byte order; without it, {@code float} in native order.
 *
 * <p>For an invalid value or matrix, every factory throws an {@link InvalidGaussianException}, which tells the array, the
 * Gaussian, the row and the column. For arrays that do not have these shapes or are too large, and for a layout that is
 * neither float nor double, it throws another {@link IllegalArgumentException}.
 *
 * <p>What the kernels need is made when a batch is used, and kept with it from its second use on. So a batch that is
 * made once is reused by every call of every engine. In doubles, it takes {@code N·D(D+1)/2} for the factors L, and
 * twice that where they are computed. After use as {@code q} it takes as much again, and after use as {@code p} once
 * more, for N rounded up to 8 and to 16. {@code (N + 32)·D(D+3)/2} is limited to {@code 2³¹ − 9}, so that panels fit an
 * array; D is therefore at most 11,406.
 *
 * @since 0.1.0
 */
public final class FullGaussians implements Gaussians {
  final FullBatch batch;

  private FullGaussians(FullBatch batch) {
    this.batch = batch;
  }

  /** {@return a batch from means {@code [N, D]} and factors L {@code [N, D, D]}, row-major} */
  public static FullGaussians ofScaleTril(float[] mean, float[] scaleTril, int dimension) {
    return (FullGaussians) Gaussians.of(SCALE_TRIL, mean, scaleTril, dimension, STRICT);
  }

  /** {@return a batch of double precision from means and factors L} */
  public static FullGaussians ofScaleTril(double[] mean, double[] scaleTril, int dimension) {
    return (FullGaussians) Gaussians.of(SCALE_TRIL, mean, scaleTril, dimension, STRICT);
  }

  /** {@return a batch from means and factors L, in segments of {@code float} in native order} */
  public static FullGaussians ofScaleTril(
      MemorySegment mean, MemorySegment scaleTril, int dimension) {
    return ofScaleTril(mean, scaleTril, dimension, ValueLayout.JAVA_FLOAT);
  }

  /** {@return a batch from means and factors L, in segments of a layout} */
  public static FullGaussians ofScaleTril(
      MemorySegment mean, MemorySegment scaleTril, int dimension, ValueLayout element) {
    return (FullGaussians)
        Gaussians.of(SCALE_TRIL, mean, element, scaleTril, element, dimension, STRICT);
  }

  /**
   * {@return a batch as {@code ofScaleTril} makes it, of matrices that may have anything above the diagonal, which is ignored}
   *
   * <p>LAPACK's {@code potrf} leaves what was there. A covariance or an upper factor that is given by mistake makes wrong Gaussians here.
   */
  public static FullGaussians ofScaleTrilIgnoringUpper(
      float[] mean, float[] scaleTril, int dimension) {
    return ignoringUpper(
        Elements.of(mean, "mean"), Elements.of(scaleTril, SCALE_TRIL.argument()), dimension);
  }

  /** {@return a batch of double precision, as of {@link #ofScaleTrilIgnoringUpper(float[], float[], int)}} */
  public static FullGaussians ofScaleTrilIgnoringUpper(
      double[] mean, double[] scaleTril, int dimension) {
    return ignoringUpper(
        Elements.of(mean, "mean"), Elements.of(scaleTril, SCALE_TRIL.argument()), dimension);
  }

  /** {@return a batch as of {@link #ofScaleTrilIgnoringUpper(float[], float[], int)}, from segments of a layout} */
  public static FullGaussians ofScaleTrilIgnoringUpper(
      MemorySegment mean, MemorySegment scaleTril, int dimension, ValueLayout element) {
    return ignoringUpper(
        Elements.of(mean, element, "mean"),
        Elements.of(scaleTril, element, SCALE_TRIL.argument()),
        dimension);
  }

  private static FullGaussians ignoringUpper(Elements mean, Elements scaleTril, int dimension) {
    return new FullGaussians(
        Factors.of(mean, scaleTril, dimension, SCALE_TRIL, Platform::factorization, false));
  }

  /**
   * {@return a batch from means {@code [N, D]} and packed factors L {@code [N, D(D+1)/2]}, row-major, with {@code ln L_kk} on
   * the diagonal}
   */
  public static FullGaussians ofPackedScaleTril(float[] mean, float[] packed, int dimension) {
    return ofPackedScaleTril(mean, packed, dimension, true);
  }

  /** {@return a batch from means and packed factors L, with {@code ln L_kk} or {@code L_kk} on the diagonal} */
  public static FullGaussians ofPackedScaleTril(
      float[] mean, float[] packed, int dimension, boolean logDiagonal) {
    return (FullGaussians) Gaussians.of(packed(logDiagonal), mean, packed, dimension, STRICT);
  }

  /** {@return a batch of double precision from means and packed factors L, with {@code ln L_kk} on the diagonal} */
  public static FullGaussians ofPackedScaleTril(double[] mean, double[] packed, int dimension) {
    return ofPackedScaleTril(mean, packed, dimension, true);
  }

  /** {@return a batch of double precision from means and packed factors L, with {@code ln L_kk} or {@code L_kk}} */
  public static FullGaussians ofPackedScaleTril(
      double[] mean, double[] packed, int dimension, boolean logDiagonal) {
    return (FullGaussians) Gaussians.of(packed(logDiagonal), mean, packed, dimension, STRICT);
  }

  /** {@return a batch from means and packed factors L, with {@code ln L_kk}, in segments of {@code float} in native order} */
  public static FullGaussians ofPackedScaleTril(
      MemorySegment mean, MemorySegment packed, int dimension) {
    return ofPackedScaleTril(mean, packed, dimension, ValueLayout.JAVA_FLOAT, true);
  }

  /** {@return a batch from means and packed factors L, with {@code ln L_kk} or {@code L_kk}, in segments of a layout} */
  public static FullGaussians ofPackedScaleTril(
      MemorySegment mean,
      MemorySegment packed,
      int dimension,
      ValueLayout element,
      boolean logDiagonal) {
    return (FullGaussians)
        Gaussians.of(packed(logDiagonal), mean, element, packed, element, dimension, STRICT);
  }

  /** {@return a batch from means {@code [N, D]} and covariances Σ {@code [N, D, D]}, row-major} */
  public static FullGaussians ofCovariance(float[] mean, float[] covariance, int dimension) {
    return (FullGaussians) Gaussians.of(COVARIANCE, mean, covariance, dimension, STRICT);
  }

  /** {@return a batch of double precision from means and covariances Σ} */
  public static FullGaussians ofCovariance(double[] mean, double[] covariance, int dimension) {
    return (FullGaussians) Gaussians.of(COVARIANCE, mean, covariance, dimension, STRICT);
  }

  /** {@return a batch from means and covariances Σ, in segments of {@code float} in native order} */
  public static FullGaussians ofCovariance(
      MemorySegment mean, MemorySegment covariance, int dimension) {
    return ofCovariance(mean, covariance, dimension, ValueLayout.JAVA_FLOAT);
  }

  /** {@return a batch from means and covariances Σ, in segments of a layout} */
  public static FullGaussians ofCovariance(
      MemorySegment mean, MemorySegment covariance, int dimension, ValueLayout element) {
    return (FullGaussians)
        Gaussians.of(COVARIANCE, mean, element, covariance, element, dimension, STRICT);
  }

  /** {@return a batch from means {@code [N, D]} and precisions {@code Σ⁻¹} {@code [N, D, D]}, row-major} */
  public static FullGaussians ofPrecision(float[] mean, float[] precision, int dimension) {
    return (FullGaussians) Gaussians.of(PRECISION_MATRIX, mean, precision, dimension, STRICT);
  }

  /** {@return a batch of double precision from means and precisions {@code Σ⁻¹}} */
  public static FullGaussians ofPrecision(double[] mean, double[] precision, int dimension) {
    return (FullGaussians) Gaussians.of(PRECISION_MATRIX, mean, precision, dimension, STRICT);
  }

  /** {@return a batch from means and precisions {@code Σ⁻¹}, in segments of {@code float} in native order} */
  public static FullGaussians ofPrecision(
      MemorySegment mean, MemorySegment precision, int dimension) {
    return ofPrecision(mean, precision, dimension, ValueLayout.JAVA_FLOAT);
  }

  /** {@return a batch from means and precisions {@code Σ⁻¹}, in segments of a layout} */
  public static FullGaussians ofPrecision(
      MemorySegment mean, MemorySegment precision, int dimension, ValueLayout element) {
    return (FullGaussians)
        Gaussians.of(PRECISION_MATRIX, mean, element, precision, element, dimension, STRICT);
  }

  private static ScaleKind packed(boolean logDiagonal) {
    return logDiagonal ? ScaleKind.PACKED_SCALE_TRIL : ScaleKind.PLAIN_PACKED_SCALE_TRIL;
  }

  static FullGaussians of(ScaleKind kind, Elements mean, Elements matrix, int dimension) {
    return new FullGaussians(Factors.of(mean, matrix, dimension, kind, Platform::factorization));
  }

  @Override
  public String toString() {
    return "FullGaussians[%d x %d, %s]"
        .formatted(size(), dimension(), isDouble() ? "double" : "float");
  }
}
