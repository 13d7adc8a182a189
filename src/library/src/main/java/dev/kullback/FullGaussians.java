package dev.kullback;

import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.batch.Factors;
import dev.kullback.internal.batch.Factors.Kind;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.engine.Platform;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A batch of N Gaussians {@code N(μ_i, Σ_i)} of dimension D with full covariance, {@code Σ = LLᵀ}, L lower triangular with
 * positive diagonal.
 *
 * <p>Values are copied and checked at construction; the caller's arrays are neither kept nor modified. A batch of {@code float}
 * is held, and computed with, in double. What the kernels need is made when the batch is used, at its second use to be kept
 * with it, so a batch made once is reused by every call of every engine. Memory, in doubles: {@code N·D(D+1)/2} for the factors
 * L, twice that where they are computed, as much again after use as {@code q}, and again after use as {@code p}, for N rounded up
 * to 8 and to 16. {@code (N + 32)·D(D+3)/2} is limited to {@code 2³¹ − 9}, for panels that fit an array: D to 11,406.
 *
 * <p>Every factory takes {@code float[]}, {@code double[]} or {@link MemorySegment}; those of segments without a layout read
 * native-order {@code float}. A layout is {@link ValueLayout.OfFloat} or {@link ValueLayout.OfDouble}, of either byte order.
 * All throw {@link IllegalArgumentException} naming the array, the Gaussian, the row and the column at fault.
 */
public final class FullGaussians implements Gaussians {
  final FullBatch batch;

  private FullGaussians(FullBatch batch) {
    this.batch = batch;
  }

  /**
   * A batch from means and the factors L of {@code Σ = LLᵀ}.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param scaleTril row-major {@code [N, D, D]}, lower triangular: finite, with a positive diagonal; what lies above the diagonal is not read
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with float precision; the arrays are copied
   */
  public static FullGaussians ofScaleTril(float[] mean, float[] scaleTril, int dimension) {
    return of(mean, scaleTril, dimension, Kind.SCALE_TRIL);
  }

  /**
   * A batch from means and the factors L of {@code Σ = LLᵀ}.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param scaleTril row-major {@code [N, D, D]}, lower triangular: finite, with a positive diagonal; what lies above the diagonal is not read
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with double precision; the arrays are copied
   */
  public static FullGaussians ofScaleTril(double[] mean, double[] scaleTril, int dimension) {
    return of(mean, scaleTril, dimension, Kind.SCALE_TRIL);
  }

  /** As {@link #ofScaleTril(float[], float[], int)}, from segments of native-order {@code float}. */
  public static FullGaussians ofScaleTril(
      MemorySegment mean, MemorySegment scaleTril, int dimension) {
    return of(mean, scaleTril, ValueLayout.JAVA_FLOAT, dimension, Kind.SCALE_TRIL);
  }

  /** As {@link #ofScaleTril(float[], float[], int)}, from segments of {@code element}. */
  public static FullGaussians ofScaleTril(
      MemorySegment mean, MemorySegment scaleTril, int dimension, ValueLayout element) {
    return of(mean, scaleTril, element, dimension, Kind.SCALE_TRIL);
  }

  /**
   * A batch from means and packed factors L of {@code Σ = LLᵀ}, with {@code ln L_kk} on the diagonal.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param packed row-major {@code [N, D(D+1)/2]} in the order of {@code tril_indices}: (0,0), (1,0), (1,1), (2,0), …; finite, the diagonal's logarithms within ±700
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with float precision; the arrays are copied
   */
  public static FullGaussians ofPackedScaleTril(float[] mean, float[] packed, int dimension) {
    return of(mean, packed, dimension, Kind.PACKED_LOG);
  }

  /**
   * A batch from means and packed factors L of {@code Σ = LLᵀ}, with {@code ln L_kk} on the diagonal.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param packed row-major {@code [N, D(D+1)/2]} in the order of {@code tril_indices}: (0,0), (1,0), (1,1), (2,0), …; finite, the diagonal's logarithms within ±700
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with double precision; the arrays are copied
   */
  public static FullGaussians ofPackedScaleTril(double[] mean, double[] packed, int dimension) {
    return of(mean, packed, dimension, Kind.PACKED_LOG);
  }

  /** As {@link #ofPackedScaleTril(float[], float[], int)}; unless {@code logDiagonal}, the diagonal holds {@code L_kk} itself. */
  public static FullGaussians ofPackedScaleTril(
      float[] mean, float[] packed, int dimension, boolean logDiagonal) {
    Kind kind = logDiagonal ? Kind.PACKED_LOG : Kind.PACKED;
    return of(mean, packed, dimension, kind);
  }

  /** As {@link #ofPackedScaleTril(double[], double[], int)}; unless {@code logDiagonal}, the diagonal holds {@code L_kk} itself. */
  public static FullGaussians ofPackedScaleTril(
      double[] mean, double[] packed, int dimension, boolean logDiagonal) {
    Kind kind = logDiagonal ? Kind.PACKED_LOG : Kind.PACKED;
    return of(mean, packed, dimension, kind);
  }

  /** As {@link #ofPackedScaleTril(float[], float[], int)}, from segments of native-order {@code float}. */
  public static FullGaussians ofPackedScaleTril(
      MemorySegment mean, MemorySegment packed, int dimension) {
    return of(mean, packed, ValueLayout.JAVA_FLOAT, dimension, Kind.PACKED_LOG);
  }

  /** As {@link #ofPackedScaleTril(float[], float[], int, boolean)}, from segments of {@code element}. */
  public static FullGaussians ofPackedScaleTril(
      MemorySegment mean,
      MemorySegment packed,
      int dimension,
      ValueLayout element,
      boolean logDiagonal) {
    Kind kind = logDiagonal ? Kind.PACKED_LOG : Kind.PACKED;
    return of(mean, packed, element, dimension, kind);
  }

  /**
   * A batch from means and covariances Σ, which are factored in twice the precision of double.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param covariance row-major {@code [N, D, D]}, symmetric up to rounding and positive definite; the lower triangle is what counts
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with float precision; the arrays are copied
   */
  public static FullGaussians ofCovariance(float[] mean, float[] covariance, int dimension) {
    return of(mean, covariance, dimension, Kind.COVARIANCE);
  }

  /**
   * A batch from means and covariances Σ, which are factored in twice the precision of double.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param covariance row-major {@code [N, D, D]}, symmetric up to rounding and positive definite; the lower triangle is what counts
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with double precision; the arrays are copied
   */
  public static FullGaussians ofCovariance(double[] mean, double[] covariance, int dimension) {
    return of(mean, covariance, dimension, Kind.COVARIANCE);
  }

  /** As {@link #ofCovariance(float[], float[], int)}, from segments of native-order {@code float}. */
  public static FullGaussians ofCovariance(
      MemorySegment mean, MemorySegment covariance, int dimension) {
    return of(mean, covariance, ValueLayout.JAVA_FLOAT, dimension, Kind.COVARIANCE);
  }

  /** As {@link #ofCovariance(float[], float[], int)}, from segments of {@code element}. */
  public static FullGaussians ofCovariance(
      MemorySegment mean, MemorySegment covariance, int dimension, ValueLayout element) {
    return of(mean, covariance, element, dimension, Kind.COVARIANCE);
  }

  /**
   * A batch from means and precisions {@code Σ⁻¹}, which are factored in twice the precision of double.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param precision row-major {@code [N, D, D]}, symmetric up to rounding and positive definite; the lower triangle is what counts
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with float precision; the arrays are copied
   */
  public static FullGaussians ofPrecision(float[] mean, float[] precision, int dimension) {
    return of(mean, precision, dimension, Kind.PRECISION);
  }

  /**
   * A batch from means and precisions {@code Σ⁻¹}, which are factored in twice the precision of double.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param precision row-major {@code [N, D, D]}, symmetric up to rounding and positive definite; the lower triangle is what counts
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with double precision; the arrays are copied
   */
  public static FullGaussians ofPrecision(double[] mean, double[] precision, int dimension) {
    return of(mean, precision, dimension, Kind.PRECISION);
  }

  /** As {@link #ofPrecision(float[], float[], int)}, from segments of native-order {@code float}. */
  public static FullGaussians ofPrecision(
      MemorySegment mean, MemorySegment precision, int dimension) {
    return of(mean, precision, ValueLayout.JAVA_FLOAT, dimension, Kind.PRECISION);
  }

  /** As {@link #ofPrecision(float[], float[], int)}, from segments of {@code element}. */
  public static FullGaussians ofPrecision(
      MemorySegment mean, MemorySegment precision, int dimension, ValueLayout element) {
    return of(mean, precision, element, dimension, Kind.PRECISION);
  }

  private static FullGaussians of(float[] mean, float[] matrix, int dimension, Kind kind) {
    return of(Elements.of(mean, "mean"), Elements.of(matrix, kind.argument), dimension, kind);
  }

  private static FullGaussians of(double[] mean, double[] matrix, int dimension, Kind kind) {
    return of(Elements.of(mean, "mean"), Elements.of(matrix, kind.argument), dimension, kind);
  }

  private static FullGaussians of(
      MemorySegment mean, MemorySegment matrix, ValueLayout element, int dimension, Kind kind) {
    return of(
        Elements.of(mean, element, "mean"),
        Elements.of(matrix, element, kind.argument),
        dimension,
        kind);
  }

  private static FullGaussians of(Elements mean, Elements matrix, int dimension, Kind kind) {
    return new FullGaussians(Factors.of(mean, matrix, dimension, kind, Platform.arithmetic()));
  }

  @Override
  public int size() {
    return batch.size();
  }

  @Override
  public int dimension() {
    return batch.dimension();
  }

  @Override
  public boolean isDouble() {
    return batch.isDouble();
  }

  @Override
  public void prepare() {
    Platform.prepare(batch);
  }

  @Override
  public long memoryBytes() {
    return batch.memoryBytes();
  }

  @Override
  public String toString() {
    return "FullGaussians[%d x %d, %s]"
        .formatted(size(), dimension(), isDouble() ? "double" : "float");
  }
}
