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
 * <p>Values are copied and checked at construction; the caller's arrays are neither kept nor modified. What the kernels need
 * (packed panels, inverse variances) is made when a batch is used, at its second use to be kept with it, so a batch made once is
 * reused by every call of every engine. Memory: {@code 2·N·D} values for the copy and as many for the panels; where entries of
 * a {@code float} batch need recomputing, {@code 2·N·D} or {@code 3·N·D} doubles and {@code 4·N·D} floats more. {@code (N + 31)·D} is limited to
 * {@code 2²⁹ − 3}, for panels that fit an array: D to 16,777,215.
 *
 * <p>Moments of shape {@code [B, C, H, W]}, as an image VAE gives them, are a batch of B Gaussians of dimension {@code C·H·W}:
 * pass the arrays as they are with {@code dimension = C*H*W}.
 */
public final class DiagonalGaussians implements Gaussians {
  final DiagonalBatch batch;

  private DiagonalGaussians(DiagonalBatch batch) {
    this.batch = batch;
  }

  /**
   * A batch from means and standard deviations σ.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param std row-major {@code [N, D]}, finite and > 0
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with float precision; the arrays are copied
   * @throws IllegalArgumentException naming the array, the Gaussian and the dimension at fault
   */
  public static DiagonalGaussians ofStd(float[] mean, float[] std, int dimension) {
    return of(mean, std, dimension, Scale.STD, ScalePolicy.STRICT);
  }

  /** As {@link #ofStd(float[], float[], int)}, with a policy for scales that it would reject. */
  public static DiagonalGaussians ofStd(
      float[] mean, float[] std, int dimension, ScalePolicy policy) {
    return of(mean, std, dimension, Scale.STD, policy);
  }

  /**
   * A batch from means and standard deviations σ.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param std row-major {@code [N, D]}, finite and > 0
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with double precision; the arrays are copied
   * @throws IllegalArgumentException naming the array, the Gaussian and the dimension at fault
   */
  public static DiagonalGaussians ofStd(double[] mean, double[] std, int dimension) {
    return of(mean, std, dimension, Scale.STD, ScalePolicy.STRICT);
  }

  /** As {@link #ofStd(double[], double[], int)}, with a policy for scales that it would reject. */
  public static DiagonalGaussians ofStd(
      double[] mean, double[] std, int dimension, ScalePolicy policy) {
    return of(mean, std, dimension, Scale.STD, policy);
  }

  /** As {@link #ofStd(float[], float[], int)}, from segments of native-order {@code float}. */
  public static DiagonalGaussians ofStd(MemorySegment mean, MemorySegment std, int dimension) {
    return of(mean, std, ValueLayout.JAVA_FLOAT, dimension, Scale.STD, ScalePolicy.STRICT);
  }

  /**
   * As {@link #ofStd(float[], float[], int, ScalePolicy)}, from segments.
   *
   * @param element {@link ValueLayout.OfFloat} or {@link ValueLayout.OfDouble}, of either byte order
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
   * A batch from means and variances σ².
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param variance row-major {@code [N, D]}, finite and > 0
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with float precision; the arrays are copied
   * @throws IllegalArgumentException naming the array, the Gaussian and the dimension at fault
   */
  public static DiagonalGaussians ofVariance(float[] mean, float[] variance, int dimension) {
    return of(mean, variance, dimension, Scale.VARIANCE, ScalePolicy.STRICT);
  }

  /** As {@link #ofVariance(float[], float[], int)}, with a policy for scales that it would reject. */
  public static DiagonalGaussians ofVariance(
      float[] mean, float[] variance, int dimension, ScalePolicy policy) {
    return of(mean, variance, dimension, Scale.VARIANCE, policy);
  }

  /**
   * A batch from means and variances σ².
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param variance row-major {@code [N, D]}, finite and > 0
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with double precision; the arrays are copied
   * @throws IllegalArgumentException naming the array, the Gaussian and the dimension at fault
   */
  public static DiagonalGaussians ofVariance(double[] mean, double[] variance, int dimension) {
    return of(mean, variance, dimension, Scale.VARIANCE, ScalePolicy.STRICT);
  }

  /** As {@link #ofVariance(double[], double[], int)}, with a policy for scales that it would reject. */
  public static DiagonalGaussians ofVariance(
      double[] mean, double[] variance, int dimension, ScalePolicy policy) {
    return of(mean, variance, dimension, Scale.VARIANCE, policy);
  }

  /** As {@link #ofVariance(float[], float[], int)}, from segments of native-order {@code float}. */
  public static DiagonalGaussians ofVariance(
      MemorySegment mean, MemorySegment variance, int dimension) {
    return of(
        mean, variance, ValueLayout.JAVA_FLOAT, dimension, Scale.VARIANCE, ScalePolicy.STRICT);
  }

  /**
   * As {@link #ofVariance(float[], float[], int, ScalePolicy)}, from segments.
   *
   * @param element {@link ValueLayout.OfFloat} or {@link ValueLayout.OfDouble}, of either byte order
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
   * A batch from means and log-variances ln σ².
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param logVariance row-major {@code [N, D]}, finite
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with float precision; the arrays are copied
   * @throws IllegalArgumentException naming the array, the Gaussian and the dimension at fault
   */
  public static DiagonalGaussians ofLogVariance(float[] mean, float[] logVariance, int dimension) {
    return of(mean, logVariance, dimension, Scale.LOG_VARIANCE, ScalePolicy.STRICT);
  }

  /** As {@link #ofLogVariance(float[], float[], int)}, with a policy for scales that it would reject. */
  public static DiagonalGaussians ofLogVariance(
      float[] mean, float[] logVariance, int dimension, ScalePolicy policy) {
    return of(mean, logVariance, dimension, Scale.LOG_VARIANCE, policy);
  }

  /**
   * A batch from means and log-variances ln σ².
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param logVariance row-major {@code [N, D]}, finite
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with double precision; the arrays are copied
   * @throws IllegalArgumentException naming the array, the Gaussian and the dimension at fault
   */
  public static DiagonalGaussians ofLogVariance(
      double[] mean, double[] logVariance, int dimension) {
    return of(mean, logVariance, dimension, Scale.LOG_VARIANCE, ScalePolicy.STRICT);
  }

  /** As {@link #ofLogVariance(double[], double[], int)}, with a policy for scales that it would reject. */
  public static DiagonalGaussians ofLogVariance(
      double[] mean, double[] logVariance, int dimension, ScalePolicy policy) {
    return of(mean, logVariance, dimension, Scale.LOG_VARIANCE, policy);
  }

  /** As {@link #ofLogVariance(float[], float[], int)}, from segments of native-order {@code float}. */
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
   * As {@link #ofLogVariance(float[], float[], int, ScalePolicy)}, from segments.
   *
   * @param element {@link ValueLayout.OfFloat} or {@link ValueLayout.OfDouble}, of either byte order
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
   * A batch from means and precisions 1/σ².
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param precision row-major {@code [N, D]}, finite and > 0
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with float precision; the arrays are copied
   * @throws IllegalArgumentException naming the array, the Gaussian and the dimension at fault
   */
  public static DiagonalGaussians ofPrecision(float[] mean, float[] precision, int dimension) {
    return of(mean, precision, dimension, Scale.PRECISION, ScalePolicy.STRICT);
  }

  /** As {@link #ofPrecision(float[], float[], int)}, with a policy for scales that it would reject. */
  public static DiagonalGaussians ofPrecision(
      float[] mean, float[] precision, int dimension, ScalePolicy policy) {
    return of(mean, precision, dimension, Scale.PRECISION, policy);
  }

  /**
   * A batch from means and precisions 1/σ².
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param precision row-major {@code [N, D]}, finite and > 0
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with double precision; the arrays are copied
   * @throws IllegalArgumentException naming the array, the Gaussian and the dimension at fault
   */
  public static DiagonalGaussians ofPrecision(double[] mean, double[] precision, int dimension) {
    return of(mean, precision, dimension, Scale.PRECISION, ScalePolicy.STRICT);
  }

  /** As {@link #ofPrecision(double[], double[], int)}, with a policy for scales that it would reject. */
  public static DiagonalGaussians ofPrecision(
      double[] mean, double[] precision, int dimension, ScalePolicy policy) {
    return of(mean, precision, dimension, Scale.PRECISION, policy);
  }

  /** As {@link #ofPrecision(float[], float[], int)}, from segments of native-order {@code float}. */
  public static DiagonalGaussians ofPrecision(
      MemorySegment mean, MemorySegment precision, int dimension) {
    return of(
        mean, precision, ValueLayout.JAVA_FLOAT, dimension, Scale.PRECISION, ScalePolicy.STRICT);
  }

  /**
   * As {@link #ofPrecision(float[], float[], int, ScalePolicy)}, from segments.
   *
   * @param element {@link ValueLayout.OfFloat} or {@link ValueLayout.OfDouble}, of either byte order
   */
  public static DiagonalGaussians ofPrecision(
      MemorySegment mean,
      MemorySegment precision,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return of(mean, precision, element, dimension, Scale.PRECISION, policy);
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
    return new DiagonalGaussians(
        DiagonalBatch.of(mean, scale, dimension, kind, zeros, Platform.arithmetic()));
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
