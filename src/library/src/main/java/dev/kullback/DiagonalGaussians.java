package dev.kullback;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.engine.Platform;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;

/**
 * A batch of N Gaussians {@code N(μ_i, diag(σ_i²))} of dimension D.
 *
 * <p>The factories take means and standard deviations ({@code ofStd}), variances ({@code ofVariance}), log-variances
 * ({@code ofLogVariance}) or precisions ({@code ofPrecision}), all row-major {@code [N, D]}. Values are copied and
 * checked; the caller's memory is neither kept nor modified, except that {@code owning} keeps the arrays themselves. The
 * precision of a batch is that of its values. Without a policy, {@link ScalePolicy#STRICT} holds. Segments without a layout
 * hold {@code float} in native order; a layout is {@link ValueLayout.OfFloat} or {@link ValueLayout.OfDouble}, of either byte
 * order.
 *
 * <p>Scales other than log-variances must be positive, and all values finite. For others, every factory throws an
 * {@link InvalidGaussianException}, which tells the array, the Gaussian and the dimension. For arrays that are not
 * {@code [N, D]} or too large, and for a layout that is neither float nor double, it throws another
 * {@link IllegalArgumentException}.
 *
 * <p>What the kernels need (packed panels, inverse variances) is made when a batch is used, and kept with it from its
 * second use on. So a batch that is made once is reused by every call of every engine. It takes {@code 2·N·D} values
 * for the copy, as many for the panels, and {@code 6·N} doubles. Where many entries of a {@code float} batch need
 * recomputing, it takes {@code N·D}, {@code 2·N·D} or {@code 3·N·D} doubles and {@code 4·N·D} floats more. {@code (N + 31)·D} is limited to
 * {@code 2²⁹ − 3}, so that panels fit an array; D is therefore at most 16,777,215.
 *
 * <p>Moments of shape {@code [B, C, H, W]}, as an image VAE gives them, are a batch of B Gaussians of dimension
 * {@code C·H·W}: pass the arrays as they are with {@code dimension = C*H*W}.
 */
public final class DiagonalGaussians implements Gaussians {
  final DiagonalBatch batch;

  private DiagonalGaussians(DiagonalBatch batch) {
    this.batch = batch;
  }

  /**
   * {@return a new batch of float precision from means and standard deviations σ}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param std σ, row-major {@code [N, D]}, finite and > 0
   * @param dimension D; N is {@code mean.length / D}
   * @throws IllegalArgumentException if the arrays are not {@code [N, D]} or too large, or a value is invalid
   */
  public static DiagonalGaussians ofStd(float[] mean, float[] std, int dimension) {
    return of(ScaleKind.STD, mean, std, dimension, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofStd(float[], float[], int)} makes, with a policy for invalid scales}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param std σ, row-major {@code [N, D]}
   * @param dimension D
   * @param policy what to do with invalid scales
   */
  public static DiagonalGaussians ofStd(
      float[] mean, float[] std, int dimension, ScalePolicy policy) {
    return of(ScaleKind.STD, mean, std, dimension, policy);
  }

  /**
   * {@return a batch as {@link #ofStd(float[], float[], int)} makes, but of double precision}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param std σ, row-major {@code [N, D]}, finite and > 0
   * @param dimension D
   */
  public static DiagonalGaussians ofStd(double[] mean, double[] std, int dimension) {
    return of(ScaleKind.STD, mean, std, dimension, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofStd(double[], double[], int)} makes, with a policy for invalid scales}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param std σ, row-major {@code [N, D]}
   * @param dimension D
   * @param policy what to do with invalid scales
   */
  public static DiagonalGaussians ofStd(
      double[] mean, double[] std, int dimension, ScalePolicy policy) {
    return of(ScaleKind.STD, mean, std, dimension, policy);
  }

  /**
   * {@return a batch as {@link #ofStd(float[], float[], int)} makes, from segments of native {@code float}}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param std σ, row-major {@code [N, D]}, finite and > 0
   * @param dimension D
   */
  public static DiagonalGaussians ofStd(MemorySegment mean, MemorySegment std, int dimension) {
    return of(ScaleKind.STD, mean, std, dimension, ValueLayout.JAVA_FLOAT, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofStd(float[], float[], int, ScalePolicy)} makes, from segments of any layout}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param std σ, row-major {@code [N, D]}
   * @param dimension D
   * @param element the layout of each value; its type decides the precision of the batch
   * @param policy what to do with invalid scales
   */
  public static DiagonalGaussians ofStd(
      MemorySegment mean,
      MemorySegment std,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return of(ScaleKind.STD, mean, std, dimension, element, policy);
  }

  /**
   * {@return a new batch of float precision from means and variances σ²}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param variance σ², row-major {@code [N, D]}, finite and > 0
   * @param dimension D; N is {@code mean.length / D}
   * @throws IllegalArgumentException if the arrays are not {@code [N, D]} or too large, or a value is invalid
   */
  public static DiagonalGaussians ofVariance(float[] mean, float[] variance, int dimension) {
    return of(ScaleKind.VARIANCE, mean, variance, dimension, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofVariance(float[], float[], int)} makes, with a policy for invalid scales}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param variance σ², row-major {@code [N, D]}
   * @param dimension D
   * @param policy what to do with invalid scales
   */
  public static DiagonalGaussians ofVariance(
      float[] mean, float[] variance, int dimension, ScalePolicy policy) {
    return of(ScaleKind.VARIANCE, mean, variance, dimension, policy);
  }

  /**
   * {@return a batch as {@link #ofVariance(float[], float[], int)} makes, but of double precision}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param variance σ², row-major {@code [N, D]}, finite and > 0
   * @param dimension D
   */
  public static DiagonalGaussians ofVariance(double[] mean, double[] variance, int dimension) {
    return of(ScaleKind.VARIANCE, mean, variance, dimension, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofVariance(double[], double[], int)} makes, with a policy for invalid scales}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param variance σ², row-major {@code [N, D]}
   * @param dimension D
   * @param policy what to do with invalid scales
   */
  public static DiagonalGaussians ofVariance(
      double[] mean, double[] variance, int dimension, ScalePolicy policy) {
    return of(ScaleKind.VARIANCE, mean, variance, dimension, policy);
  }

  /**
   * {@return a batch as {@link #ofVariance(float[], float[], int)} makes, from segments of native {@code float}}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param variance σ², row-major {@code [N, D]}, finite and > 0
   * @param dimension D
   */
  public static DiagonalGaussians ofVariance(
      MemorySegment mean, MemorySegment variance, int dimension) {
    return of(
        ScaleKind.VARIANCE, mean, variance, dimension, ValueLayout.JAVA_FLOAT, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofVariance(float[], float[], int, ScalePolicy)} makes, from segments of any layout}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param variance σ², row-major {@code [N, D]}
   * @param dimension D
   * @param element the layout of each value; its type decides the precision of the batch
   * @param policy what to do with invalid scales
   */
  public static DiagonalGaussians ofVariance(
      MemorySegment mean,
      MemorySegment variance,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return of(ScaleKind.VARIANCE, mean, variance, dimension, element, policy);
  }

  /**
   * {@return a new batch of float precision from means and log-variances ln σ²}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param logVariance ln σ², row-major {@code [N, D]}, finite
   * @param dimension D; N is {@code mean.length / D}
   * @throws IllegalArgumentException if the arrays are not {@code [N, D]} or too large, or a value is invalid
   */
  public static DiagonalGaussians ofLogVariance(float[] mean, float[] logVariance, int dimension) {
    return of(ScaleKind.LOG_VARIANCE, mean, logVariance, dimension, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofLogVariance(float[], float[], int)} makes, with a policy for invalid scales}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param logVariance ln σ², row-major {@code [N, D]}
   * @param dimension D
   * @param policy what to do with invalid scales
   */
  public static DiagonalGaussians ofLogVariance(
      float[] mean, float[] logVariance, int dimension, ScalePolicy policy) {
    return of(ScaleKind.LOG_VARIANCE, mean, logVariance, dimension, policy);
  }

  /**
   * {@return a batch as {@link #ofLogVariance(float[], float[], int)} makes, but of double precision}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param logVariance ln σ², row-major {@code [N, D]}, finite
   * @param dimension D
   */
  public static DiagonalGaussians ofLogVariance(
      double[] mean, double[] logVariance, int dimension) {
    return of(ScaleKind.LOG_VARIANCE, mean, logVariance, dimension, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofLogVariance(double[], double[], int)} makes, with a policy for invalid scales}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param logVariance ln σ², row-major {@code [N, D]}
   * @param dimension D
   * @param policy what to do with invalid scales
   */
  public static DiagonalGaussians ofLogVariance(
      double[] mean, double[] logVariance, int dimension, ScalePolicy policy) {
    return of(ScaleKind.LOG_VARIANCE, mean, logVariance, dimension, policy);
  }

  /**
   * {@return a batch as {@link #ofLogVariance(float[], float[], int)} makes, from segments of native {@code float}}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param logVariance ln σ², row-major {@code [N, D]}, finite
   * @param dimension D
   */
  public static DiagonalGaussians ofLogVariance(
      MemorySegment mean, MemorySegment logVariance, int dimension) {
    return of(
        ScaleKind.LOG_VARIANCE,
        mean,
        logVariance,
        dimension,
        ValueLayout.JAVA_FLOAT,
        ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofLogVariance(float[], float[], int, ScalePolicy)} makes, from segments of any layout}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param logVariance ln σ², row-major {@code [N, D]}
   * @param dimension D
   * @param element the layout of each value; its type decides the precision of the batch
   * @param policy what to do with invalid scales
   */
  public static DiagonalGaussians ofLogVariance(
      MemorySegment mean,
      MemorySegment logVariance,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return of(ScaleKind.LOG_VARIANCE, mean, logVariance, dimension, element, policy);
  }

  /**
   * {@return a new batch of float precision from means and precisions 1/σ²}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param precision 1/σ², row-major {@code [N, D]}, finite and > 0
   * @param dimension D; N is {@code mean.length / D}
   * @throws IllegalArgumentException if the arrays are not {@code [N, D]} or too large, or a value is invalid
   */
  public static DiagonalGaussians ofPrecision(float[] mean, float[] precision, int dimension) {
    return of(ScaleKind.PRECISION, mean, precision, dimension, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofPrecision(float[], float[], int)} makes, with a policy for invalid scales}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param precision 1/σ², row-major {@code [N, D]}
   * @param dimension D
   * @param policy what to do with invalid scales
   */
  public static DiagonalGaussians ofPrecision(
      float[] mean, float[] precision, int dimension, ScalePolicy policy) {
    return of(ScaleKind.PRECISION, mean, precision, dimension, policy);
  }

  /**
   * {@return a batch as {@link #ofPrecision(float[], float[], int)} makes, but of double precision}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param precision 1/σ², row-major {@code [N, D]}, finite and > 0
   * @param dimension D
   */
  public static DiagonalGaussians ofPrecision(double[] mean, double[] precision, int dimension) {
    return of(ScaleKind.PRECISION, mean, precision, dimension, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofPrecision(double[], double[], int)} makes, with a policy for invalid scales}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param precision 1/σ², row-major {@code [N, D]}
   * @param dimension D
   * @param policy what to do with invalid scales
   */
  public static DiagonalGaussians ofPrecision(
      double[] mean, double[] precision, int dimension, ScalePolicy policy) {
    return of(ScaleKind.PRECISION, mean, precision, dimension, policy);
  }

  /**
   * {@return a batch as {@link #ofPrecision(float[], float[], int)} makes, from segments of native {@code float}}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param precision 1/σ², row-major {@code [N, D]}, finite and > 0
   * @param dimension D
   */
  public static DiagonalGaussians ofPrecision(
      MemorySegment mean, MemorySegment precision, int dimension) {
    return of(
        ScaleKind.PRECISION,
        mean,
        precision,
        dimension,
        ValueLayout.JAVA_FLOAT,
        ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofPrecision(float[], float[], int, ScalePolicy)} makes, from segments of any layout}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param precision 1/σ², row-major {@code [N, D]}
   * @param dimension D
   * @param element the layout of each value; its type decides the precision of the batch
   * @param policy what to do with invalid scales
   */
  public static DiagonalGaussians ofPrecision(
      MemorySegment mean,
      MemorySegment precision,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return of(ScaleKind.PRECISION, mean, precision, dimension, element, policy);
  }

  /**
   * {@return a batch of float precision that takes the arrays over instead of copying them}
   *
   * <p>The caller must not modify them afterwards, on pain of wrong results. They are checked as by the other factories,
   * which make the same batch of copies; where an exception is thrown, the caller keeps them.
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param scale row-major {@code [N, D]}, finite, and > 0 unless they are log-variances
   * @param dimension D; N is {@code mean.length / D}
   * @param kind what {@code scale} holds, one of the diagonal kinds
   * @throws InvalidGaussianException if a value is invalid
   * @throws IllegalArgumentException if the arrays are not {@code [N, D]}, or too large, or the kind is one of matrices
   */
  public static DiagonalGaussians owning(
      float[] mean, float[] scale, int dimension, ScaleKind kind) {
    Objects.requireNonNull(kind, "kind");
    Elements scales = Elements.of(scale, kind.argument()).owned();
    return of(kind, Elements.of(mean, "mean").owned(), scales, dimension, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #owning(float[], float[], int, ScaleKind)} makes, but of double precision}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param scale row-major {@code [N, D]}, finite, and > 0 unless they are log-variances
   * @param dimension D
   * @param kind what {@code scale} holds, one of the diagonal kinds
   */
  public static DiagonalGaussians owning(
      double[] mean, double[] scale, int dimension, ScaleKind kind) {
    Objects.requireNonNull(kind, "kind");
    Elements scales = Elements.of(scale, kind.argument()).owned();
    return of(kind, Elements.of(mean, "mean").owned(), scales, dimension, ScalePolicy.STRICT);
  }

  private static DiagonalGaussians of(
      ScaleKind kind, float[] mean, float[] scale, int dimension, ScalePolicy policy) {
    return of(
        kind, Elements.of(mean, "mean"), Elements.of(scale, kind.argument()), dimension, policy);
  }

  private static DiagonalGaussians of(
      ScaleKind kind, double[] mean, double[] scale, int dimension, ScalePolicy policy) {
    return of(
        kind, Elements.of(mean, "mean"), Elements.of(scale, kind.argument()), dimension, policy);
  }

  private static DiagonalGaussians of(
      ScaleKind kind,
      MemorySegment mean,
      MemorySegment scale,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return of(
        kind,
        Elements.of(mean, element, "mean"),
        Elements.of(scale, element, kind.argument()),
        dimension,
        policy);
  }

  static DiagonalGaussians of(
      ScaleKind kind, Elements mean, Elements scale, int dimension, ScalePolicy policy) {
    Objects.requireNonNull(policy, "policy");
    if (kind.scale == null) {
      throw new IllegalArgumentException("kind " + kind + " is one of matrices, not of scales");
    }
    return new DiagonalGaussians(DiagonalBatch.of(mean, scale, dimension, kind.scale, policy));
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
    return "DiagonalGaussians[%d x %d, %s, %s]"
        .formatted(size(), dimension(), isDouble() ? "double" : "float", batch.kind().argument);
  }
}
