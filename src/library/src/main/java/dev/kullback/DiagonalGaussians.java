package dev.kullback;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.numerics.Scale;
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
 * order. Scales other than log-variances must be positive, and all values finite. Exceptions name the array, the Gaussian and
 * the dimension at fault.
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
    return of(mean, std, dimension, Scale.STD, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofStd(float[], float[], int)} makes, with a policy for invalid scales}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param std σ, row-major {@code [N, D]}
   * @param dimension D
   * @param policy what to do with invalid scales
   * @throws IllegalArgumentException under the same conditions, except for scales that the policy accepts
   */
  public static DiagonalGaussians ofStd(
      float[] mean, float[] std, int dimension, ScalePolicy policy) {
    return of(mean, std, dimension, Scale.STD, policy);
  }

  /**
   * {@return a batch as {@link #ofStd(float[], float[], int)} makes, but of double precision}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param std σ, row-major {@code [N, D]}, finite and > 0
   * @param dimension D
   * @throws IllegalArgumentException under the same conditions
   */
  public static DiagonalGaussians ofStd(double[] mean, double[] std, int dimension) {
    return of(mean, std, dimension, Scale.STD, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofStd(double[], double[], int)} makes, with a policy for invalid scales}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param std σ, row-major {@code [N, D]}
   * @param dimension D
   * @param policy what to do with invalid scales
   * @throws IllegalArgumentException under the same conditions, except for scales that the policy accepts
   */
  public static DiagonalGaussians ofStd(
      double[] mean, double[] std, int dimension, ScalePolicy policy) {
    return of(mean, std, dimension, Scale.STD, policy);
  }

  /**
   * {@return a batch as {@link #ofStd(float[], float[], int)} makes, from segments of native {@code float}}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param std σ, row-major {@code [N, D]}, finite and > 0
   * @param dimension D
   * @throws IllegalArgumentException under the same conditions
   */
  public static DiagonalGaussians ofStd(MemorySegment mean, MemorySegment std, int dimension) {
    return of(mean, std, ValueLayout.JAVA_FLOAT, dimension, Scale.STD, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofStd(float[], float[], int, ScalePolicy)} makes, from segments of any layout}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param std σ, row-major {@code [N, D]}
   * @param dimension D
   * @param element the layout of each value; its type decides the precision of the batch
   * @param policy what to do with invalid scales
   * @throws IllegalArgumentException under the same conditions, or if the layout is neither float nor double
   */
  public static DiagonalGaussians ofStd(
      MemorySegment mean,
      MemorySegment std,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return of(mean, std, element, dimension, Scale.STD, policy);
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
    return of(mean, variance, dimension, Scale.VARIANCE, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofVariance(float[], float[], int)} makes, with a policy for invalid scales}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param variance σ², row-major {@code [N, D]}
   * @param dimension D
   * @param policy what to do with invalid scales
   * @throws IllegalArgumentException under the same conditions, except for scales that the policy accepts
   */
  public static DiagonalGaussians ofVariance(
      float[] mean, float[] variance, int dimension, ScalePolicy policy) {
    return of(mean, variance, dimension, Scale.VARIANCE, policy);
  }

  /**
   * {@return a batch as {@link #ofVariance(float[], float[], int)} makes, but of double precision}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param variance σ², row-major {@code [N, D]}, finite and > 0
   * @param dimension D
   * @throws IllegalArgumentException under the same conditions
   */
  public static DiagonalGaussians ofVariance(double[] mean, double[] variance, int dimension) {
    return of(mean, variance, dimension, Scale.VARIANCE, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofVariance(double[], double[], int)} makes, with a policy for invalid scales}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param variance σ², row-major {@code [N, D]}
   * @param dimension D
   * @param policy what to do with invalid scales
   * @throws IllegalArgumentException under the same conditions, except for scales that the policy accepts
   */
  public static DiagonalGaussians ofVariance(
      double[] mean, double[] variance, int dimension, ScalePolicy policy) {
    return of(mean, variance, dimension, Scale.VARIANCE, policy);
  }

  /**
   * {@return a batch as {@link #ofVariance(float[], float[], int)} makes, from segments of native {@code float}}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param variance σ², row-major {@code [N, D]}, finite and > 0
   * @param dimension D
   * @throws IllegalArgumentException under the same conditions
   */
  public static DiagonalGaussians ofVariance(
      MemorySegment mean, MemorySegment variance, int dimension) {
    return of(
        mean, variance, ValueLayout.JAVA_FLOAT, dimension, Scale.VARIANCE, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofVariance(float[], float[], int, ScalePolicy)} makes, from segments of any layout}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param variance σ², row-major {@code [N, D]}
   * @param dimension D
   * @param element the layout of each value; its type decides the precision of the batch
   * @param policy what to do with invalid scales
   * @throws IllegalArgumentException under the same conditions, or if the layout is neither float nor double
   */
  public static DiagonalGaussians ofVariance(
      MemorySegment mean,
      MemorySegment variance,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return of(mean, variance, element, dimension, Scale.VARIANCE, policy);
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
    return of(mean, logVariance, dimension, Scale.LOG_VARIANCE, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofLogVariance(float[], float[], int)} makes, with a policy for invalid scales}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param logVariance ln σ², row-major {@code [N, D]}
   * @param dimension D
   * @param policy what to do with invalid scales
   * @throws IllegalArgumentException under the same conditions, except for scales that the policy accepts
   */
  public static DiagonalGaussians ofLogVariance(
      float[] mean, float[] logVariance, int dimension, ScalePolicy policy) {
    return of(mean, logVariance, dimension, Scale.LOG_VARIANCE, policy);
  }

  /**
   * {@return a batch as {@link #ofLogVariance(float[], float[], int)} makes, but of double precision}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param logVariance ln σ², row-major {@code [N, D]}, finite
   * @param dimension D
   * @throws IllegalArgumentException under the same conditions
   */
  public static DiagonalGaussians ofLogVariance(
      double[] mean, double[] logVariance, int dimension) {
    return of(mean, logVariance, dimension, Scale.LOG_VARIANCE, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofLogVariance(double[], double[], int)} makes, with a policy for invalid scales}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param logVariance ln σ², row-major {@code [N, D]}
   * @param dimension D
   * @param policy what to do with invalid scales
   * @throws IllegalArgumentException under the same conditions, except for scales that the policy accepts
   */
  public static DiagonalGaussians ofLogVariance(
      double[] mean, double[] logVariance, int dimension, ScalePolicy policy) {
    return of(mean, logVariance, dimension, Scale.LOG_VARIANCE, policy);
  }

  /**
   * {@return a batch as {@link #ofLogVariance(float[], float[], int)} makes, from segments of native {@code float}}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param logVariance ln σ², row-major {@code [N, D]}, finite
   * @param dimension D
   * @throws IllegalArgumentException under the same conditions
   */
  public static DiagonalGaussians ofLogVariance(
      MemorySegment mean, MemorySegment logVariance, int dimension) {
    return of(
        mean,
        logVariance,
        ValueLayout.JAVA_FLOAT,
        dimension,
        Scale.LOG_VARIANCE,
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
   * @throws IllegalArgumentException under the same conditions, or if the layout is neither float nor double
   */
  public static DiagonalGaussians ofLogVariance(
      MemorySegment mean,
      MemorySegment logVariance,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return of(mean, logVariance, element, dimension, Scale.LOG_VARIANCE, policy);
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
    return of(mean, precision, dimension, Scale.PRECISION, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofPrecision(float[], float[], int)} makes, with a policy for invalid scales}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param precision 1/σ², row-major {@code [N, D]}
   * @param dimension D
   * @param policy what to do with invalid scales
   * @throws IllegalArgumentException under the same conditions, except for scales that the policy accepts
   */
  public static DiagonalGaussians ofPrecision(
      float[] mean, float[] precision, int dimension, ScalePolicy policy) {
    return of(mean, precision, dimension, Scale.PRECISION, policy);
  }

  /**
   * {@return a batch as {@link #ofPrecision(float[], float[], int)} makes, but of double precision}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param precision 1/σ², row-major {@code [N, D]}, finite and > 0
   * @param dimension D
   * @throws IllegalArgumentException under the same conditions
   */
  public static DiagonalGaussians ofPrecision(double[] mean, double[] precision, int dimension) {
    return of(mean, precision, dimension, Scale.PRECISION, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofPrecision(double[], double[], int)} makes, with a policy for invalid scales}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param precision 1/σ², row-major {@code [N, D]}
   * @param dimension D
   * @param policy what to do with invalid scales
   * @throws IllegalArgumentException under the same conditions, except for scales that the policy accepts
   */
  public static DiagonalGaussians ofPrecision(
      double[] mean, double[] precision, int dimension, ScalePolicy policy) {
    return of(mean, precision, dimension, Scale.PRECISION, policy);
  }

  /**
   * {@return a batch as {@link #ofPrecision(float[], float[], int)} makes, from segments of native {@code float}}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param precision 1/σ², row-major {@code [N, D]}, finite and > 0
   * @param dimension D
   * @throws IllegalArgumentException under the same conditions
   */
  public static DiagonalGaussians ofPrecision(
      MemorySegment mean, MemorySegment precision, int dimension) {
    return of(
        mean, precision, ValueLayout.JAVA_FLOAT, dimension, Scale.PRECISION, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #ofPrecision(float[], float[], int, ScalePolicy)} makes, from segments of any layout}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param precision 1/σ², row-major {@code [N, D]}
   * @param dimension D
   * @param element the layout of each value; its type decides the precision of the batch
   * @param policy what to do with invalid scales
   * @throws IllegalArgumentException under the same conditions, or if the layout is neither float nor double
   */
  public static DiagonalGaussians ofPrecision(
      MemorySegment mean,
      MemorySegment precision,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return of(mean, precision, element, dimension, Scale.PRECISION, policy);
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
   * @param kind how {@code scale} states the scales
   * @throws IllegalArgumentException if the arrays are not {@code [N, D]} or too large, or a value is invalid
   */
  public static DiagonalGaussians owning(
      float[] mean, float[] scale, int dimension, ScaleKind kind) {
    Scale stated = Objects.requireNonNull(kind, "kind").scale;
    return of(
        Elements.owned(mean, "mean"),
        Elements.owned(scale, stated.argument),
        dimension,
        stated,
        ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #owning(float[], float[], int, ScaleKind)} makes, but of double precision}
   *
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param scale row-major {@code [N, D]}, finite, and > 0 unless they are log-variances
   * @param dimension D; N is {@code mean.length / D}
   * @param kind how {@code scale} states the scales
   * @throws IllegalArgumentException under the same conditions
   */
  public static DiagonalGaussians owning(
      double[] mean, double[] scale, int dimension, ScaleKind kind) {
    Scale stated = Objects.requireNonNull(kind, "kind").scale;
    return of(
        Elements.owned(mean, "mean"),
        Elements.owned(scale, stated.argument),
        dimension,
        stated,
        ScalePolicy.STRICT);
  }

  private static DiagonalGaussians of(
      float[] mean, float[] scale, int dimension, Scale kind, ScalePolicy policy) {
    return of(
        Elements.of(mean, "mean"), Elements.of(scale, kind.argument), dimension, kind, policy);
  }

  private static DiagonalGaussians of(
      double[] mean, double[] scale, int dimension, Scale kind, ScalePolicy policy) {
    return of(
        Elements.of(mean, "mean"), Elements.of(scale, kind.argument), dimension, kind, policy);
  }

  private static DiagonalGaussians of(
      MemorySegment mean,
      MemorySegment scale,
      ValueLayout element,
      int dimension,
      Scale kind,
      ScalePolicy policy) {
    return of(
        Elements.of(mean, element, "mean"),
        Elements.of(scale, element, kind.argument),
        dimension,
        kind,
        policy);
  }

  private static DiagonalGaussians of(
      Elements mean, Elements scale, int dimension, Scale kind, ScalePolicy policy) {
    DiagonalBatch.Zeros zeros =
        switch (Objects.requireNonNull(policy, "policy")) {
          case STRICT -> DiagonalBatch.Zeros.REJECTED;
          case CLAMPED -> DiagonalBatch.Zeros.CLAMPED;
          case DETERMINISTIC_IF_ZERO -> DiagonalBatch.Zeros.DETERMINISTIC;
        };
    return new DiagonalGaussians(DiagonalBatch.of(mean, scale, dimension, kind, zeros));
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
