package dev.kullback;

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
 * <p>The factories take means, row-major {@code [N, D]}, and factors ({@code ofScaleTril}, {@code ofPackedScaleTril}),
 * covariances ({@code ofCovariance}) or precisions ({@code ofPrecision}). Values are copied and checked; the caller's
 * memory is neither kept nor modified. {@code float} values make a batch of float precision, and {@code double} values
 * one of double precision; both are held, and computed with, in double. Segments without a layout hold {@code float} in
 * native order; a layout is {@link ValueLayout.OfFloat} or {@link ValueLayout.OfDouble}, of either byte order.
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
 */
public final class FullGaussians implements Gaussians {
  final FullBatch batch;

  private FullGaussians(FullBatch batch) {
    this.batch = batch;
  }

  /**
   * {@return a new batch of float precision from means and the factors L of {@code Σ = LLᵀ}}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param scaleTril L, row-major {@code [N, D, D]}: finite on and below the diagonal, and positive on it; what lies
   *     above the diagonal is not read
   * @param dimension D; N is {@code mean.length / D}
   * @throws IllegalArgumentException if the arrays do not have these shapes or are too large, or a value is invalid
   */
  public static FullGaussians ofScaleTril(float[] mean, float[] scaleTril, int dimension) {
    return of(ScaleKind.SCALE_TRIL, mean, scaleTril, dimension);
  }

  /**
   * {@return a batch as {@link #ofScaleTril(float[], float[], int)} makes, but of double precision}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param scaleTril L, row-major {@code [N, D, D]}
   * @param dimension D
   */
  public static FullGaussians ofScaleTril(double[] mean, double[] scaleTril, int dimension) {
    return of(ScaleKind.SCALE_TRIL, mean, scaleTril, dimension);
  }

  /**
   * {@return a batch as {@link #ofScaleTril(float[], float[], int)} makes, from segments of native {@code float}}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param scaleTril L, row-major {@code [N, D, D]}
   * @param dimension D
   */
  public static FullGaussians ofScaleTril(
      MemorySegment mean, MemorySegment scaleTril, int dimension) {
    return of(ScaleKind.SCALE_TRIL, mean, scaleTril, dimension, ValueLayout.JAVA_FLOAT);
  }

  /**
   * {@return a batch as {@link #ofScaleTril(float[], float[], int)} makes, from segments of any layout}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param scaleTril L, row-major {@code [N, D, D]}
   * @param dimension D
   * @param element the layout of each value; its type decides the precision of the batch
   */
  public static FullGaussians ofScaleTril(
      MemorySegment mean, MemorySegment scaleTril, int dimension, ValueLayout element) {
    return of(ScaleKind.SCALE_TRIL, mean, scaleTril, dimension, element);
  }

  /**
   * {@return a new batch of float precision from means and packed factors L of {@code Σ = LLᵀ}, with {@code ln L_kk} on
   * the diagonal}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param packed L, row-major {@code [N, D(D+1)/2]} in the order of {@code tril_indices}: (0,0), (1,0), (1,1), (2,0),
   *     …; finite, with the logarithms of the diagonal within ±700
   * @param dimension D; N is {@code mean.length / D}
   * @throws IllegalArgumentException if the arrays do not have these shapes or are too large, or a value is invalid
   */
  public static FullGaussians ofPackedScaleTril(float[] mean, float[] packed, int dimension) {
    return of(ScaleKind.PACKED_SCALE_TRIL, mean, packed, dimension);
  }

  /**
   * {@return a batch as {@link #ofPackedScaleTril(float[], float[], int)} makes, but of double precision}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param packed L, row-major {@code [N, D(D+1)/2]}
   * @param dimension D
   */
  public static FullGaussians ofPackedScaleTril(double[] mean, double[] packed, int dimension) {
    return of(ScaleKind.PACKED_SCALE_TRIL, mean, packed, dimension);
  }

  /**
   * {@return a batch as {@link #ofPackedScaleTril(float[], float[], int)} makes, with a choice for the diagonal}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param packed L, row-major {@code [N, D(D+1)/2]}
   * @param dimension D
   * @param logDiagonal whether the diagonal holds {@code ln L_kk}, within ±700; else it holds {@code L_kk}, positive
   */
  public static FullGaussians ofPackedScaleTril(
      float[] mean, float[] packed, int dimension, boolean logDiagonal) {
    return of(packed(logDiagonal), mean, packed, dimension);
  }

  /**
   * {@return a batch as {@link #ofPackedScaleTril(double[], double[], int)} makes, with a choice for the diagonal}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param packed L, row-major {@code [N, D(D+1)/2]}
   * @param dimension D
   * @param logDiagonal whether the diagonal holds {@code ln L_kk}, within ±700; else it holds {@code L_kk}, positive
   */
  public static FullGaussians ofPackedScaleTril(
      double[] mean, double[] packed, int dimension, boolean logDiagonal) {
    return of(packed(logDiagonal), mean, packed, dimension);
  }

  /**
   * {@return a batch as {@link #ofPackedScaleTril(float[], float[], int)} makes, from segments of native {@code float}}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param packed L, row-major {@code [N, D(D+1)/2]}
   * @param dimension D
   */
  public static FullGaussians ofPackedScaleTril(
      MemorySegment mean, MemorySegment packed, int dimension) {
    return of(ScaleKind.PACKED_SCALE_TRIL, mean, packed, dimension, ValueLayout.JAVA_FLOAT);
  }

  /**
   * {@return a batch as {@link #ofPackedScaleTril(float[], float[], int, boolean)} makes, from segments of any layout}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param packed L, row-major {@code [N, D(D+1)/2]}
   * @param dimension D
   * @param element the layout of each value; its type decides the precision of the batch
   * @param logDiagonal whether the diagonal holds {@code ln L_kk}, within ±700; else it holds {@code L_kk}, positive
   */
  public static FullGaussians ofPackedScaleTril(
      MemorySegment mean,
      MemorySegment packed,
      int dimension,
      ValueLayout element,
      boolean logDiagonal) {
    return of(packed(logDiagonal), mean, packed, dimension, element);
  }

  /**
   * {@return a new batch of float precision from means and covariances Σ, which are factored in twice the precision of
   * double}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param covariance Σ, row-major {@code [N, D, D]}, positive definite, and symmetric up to rounding; the lower
   *     triangle is what counts
   * @param dimension D; N is {@code mean.length / D}
   * @throws IllegalArgumentException if the arrays do not have these shapes or are too large, or a value is invalid
   */
  public static FullGaussians ofCovariance(float[] mean, float[] covariance, int dimension) {
    return of(ScaleKind.COVARIANCE, mean, covariance, dimension);
  }

  /**
   * {@return a batch as {@link #ofCovariance(float[], float[], int)} makes, but of double precision}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param covariance Σ, row-major {@code [N, D, D]}
   * @param dimension D
   */
  public static FullGaussians ofCovariance(double[] mean, double[] covariance, int dimension) {
    return of(ScaleKind.COVARIANCE, mean, covariance, dimension);
  }

  /**
   * {@return a batch as {@link #ofCovariance(float[], float[], int)} makes, from segments of native {@code float}}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param covariance Σ, row-major {@code [N, D, D]}
   * @param dimension D
   */
  public static FullGaussians ofCovariance(
      MemorySegment mean, MemorySegment covariance, int dimension) {
    return of(ScaleKind.COVARIANCE, mean, covariance, dimension, ValueLayout.JAVA_FLOAT);
  }

  /**
   * {@return a batch as {@link #ofCovariance(float[], float[], int)} makes, from segments of any layout}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param covariance Σ, row-major {@code [N, D, D]}
   * @param dimension D
   * @param element the layout of each value; its type decides the precision of the batch
   */
  public static FullGaussians ofCovariance(
      MemorySegment mean, MemorySegment covariance, int dimension, ValueLayout element) {
    return of(ScaleKind.COVARIANCE, mean, covariance, dimension, element);
  }

  /**
   * {@return a new batch of float precision from means and precisions {@code Σ⁻¹}, which are factored in twice the
   * precision of double}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param precision {@code Σ⁻¹}, row-major {@code [N, D, D]}, positive definite, and symmetric up to rounding; the
   *     lower triangle is what counts
   * @param dimension D; N is {@code mean.length / D}
   * @throws IllegalArgumentException if the arrays do not have these shapes or are too large, or a value is invalid
   */
  public static FullGaussians ofPrecision(float[] mean, float[] precision, int dimension) {
    return of(ScaleKind.PRECISION_MATRIX, mean, precision, dimension);
  }

  /**
   * {@return a batch as {@link #ofPrecision(float[], float[], int)} makes, but of double precision}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param precision {@code Σ⁻¹}, row-major {@code [N, D, D]}
   * @param dimension D
   */
  public static FullGaussians ofPrecision(double[] mean, double[] precision, int dimension) {
    return of(ScaleKind.PRECISION_MATRIX, mean, precision, dimension);
  }

  /**
   * {@return a batch as {@link #ofPrecision(float[], float[], int)} makes, from segments of native {@code float}}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param precision {@code Σ⁻¹}, row-major {@code [N, D, D]}
   * @param dimension D
   */
  public static FullGaussians ofPrecision(
      MemorySegment mean, MemorySegment precision, int dimension) {
    return of(ScaleKind.PRECISION_MATRIX, mean, precision, dimension, ValueLayout.JAVA_FLOAT);
  }

  /**
   * {@return a batch as {@link #ofPrecision(float[], float[], int)} makes, from segments of any layout}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param precision {@code Σ⁻¹}, row-major {@code [N, D, D]}
   * @param dimension D
   * @param element the layout of each value; its type decides the precision of the batch
   */
  public static FullGaussians ofPrecision(
      MemorySegment mean, MemorySegment precision, int dimension, ValueLayout element) {
    return of(ScaleKind.PRECISION_MATRIX, mean, precision, dimension, element);
  }

  /**
   * Checks that matrices are zero above their diagonals, where {@code ofScaleTril} does not read them: covariances that
   * are taken for factors would pass.
   *
   * @param scaleTril L, row-major {@code [N, D, D]}
   * @param dimension D
   * @param element the layout of each value
   * @throws InvalidGaussianException naming the first element above a diagonal that is not zero
   */
  public static void checkLowerTriangular(
      MemorySegment scaleTril, int dimension, ValueLayout element) {
    Factors.checkLowerTriangular(Elements.of(scaleTril, element, "scaleTril"), dimension);
  }

  private static ScaleKind packed(boolean logDiagonal) {
    return logDiagonal ? ScaleKind.PACKED_SCALE_TRIL : ScaleKind.PLAIN_PACKED_SCALE_TRIL;
  }

  private static FullGaussians of(ScaleKind kind, float[] mean, float[] matrix, int dimension) {
    return of(kind, Elements.of(mean, "mean"), Elements.of(matrix, kind.argument()), dimension);
  }

  private static FullGaussians of(ScaleKind kind, double[] mean, double[] matrix, int dimension) {
    return of(kind, Elements.of(mean, "mean"), Elements.of(matrix, kind.argument()), dimension);
  }

  private static FullGaussians of(
      ScaleKind kind,
      MemorySegment mean,
      MemorySegment matrix,
      int dimension,
      ValueLayout element) {
    return of(
        kind,
        Elements.of(mean, element, "mean"),
        Elements.of(matrix, element, kind.argument()),
        dimension);
  }

  static FullGaussians of(ScaleKind kind, Elements mean, Elements matrix, int dimension) {
    return new FullGaussians(Factors.of(mean, matrix, dimension, kind, Platform::factorization));
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
