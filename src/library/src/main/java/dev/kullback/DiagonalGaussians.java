package dev.kullback;

import static dev.kullback.ScaleKind.LOG_VARIANCE;
import static dev.kullback.ScaleKind.PRECISION;
import static dev.kullback.ScaleKind.STD;
import static dev.kullback.ScaleKind.VARIANCE;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.engine.Platform;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;

/**
 * A batch of N Gaussians {@code N(μ_i, diag(σ_i²))} of dimension D.
 *
 * <p>A factory takes the means μ, the scales that its name tells, both row-major {@code [N, D]}, and D; N is
 * {@code mean.length / D}. Arrays of {@code float} make a batch of float precision, and arrays of {@code double} one of double
 * precision. Segments hold the type that {@code element}, the layout of each of their values, is of:
 * {@link ValueLayout.OfFloat} or {@link ValueLayout.OfDouble}, of either byte order; without it, {@code float} in native
 * order. Values are copied and checked; the caller's memory is neither kept nor modified, except that {@code owning} keeps
 * the arrays themselves.
 *
 * <p>Scales other than log-variances must be positive, and all values finite; a {@link ScalePolicy} says what else is done with
 * other scales, and without one, {@link ScalePolicy#STRICT} holds. For invalid values, every factory throws an
 * {@link InvalidGaussianException}, which tells the array, the Gaussian and the dimension. For arrays that are not
 * {@code [N, D]} or too large, and for a layout that is neither float nor double, it throws another
 * {@link IllegalArgumentException}. Empty arrays make an empty batch, which a {@link KlIndex} takes, as a change of nothing, and a
 * {@link KlEngine} refuses.
 *
 * <p>What the kernels need (packed panels, inverse variances) is made when a batch is used, and kept with it: panels
 * from its second use on, a few numbers for each Gaussian from the first. So a batch that is made once is reused by every call of every engine. It takes {@code 2·N·D} values
 * for the copy, as many for the panels, and up to 96 bytes for each Gaussian, of which there are 32 at least. Where many entries of a {@code float} batch need
 * recomputing, it takes {@code N·D}, {@code 2·N·D} or {@code 3·N·D} doubles and {@code 4·N·D} floats more. {@code (N + 31)·D} is limited to
 * {@code 2²⁹ − 3}, so that panels fit an array; D is therefore at most 16,777,215.
 *
 * <p>Moments of shape {@code [B, C, H, W]}, as an image VAE gives them, are a batch of B Gaussians of dimension
 * {@code C·H·W}: pass the arrays as they are with {@code dimension = C*H*W}.
 *
 * @since 0.1.0
 */
public final class DiagonalGaussians implements Gaussians {
  final DiagonalBatch batch;

  private DiagonalGaussians(DiagonalBatch batch) {
    this.batch = batch;
  }

  /** {@return a batch from means and standard deviations σ, both row-major {@code [N, D]}} */
  public static DiagonalGaussians ofStd(float[] mean, float[] std, int dimension) {
    return ofStd(mean, std, dimension, ScalePolicy.STRICT);
  }

  /** {@return a batch from means and standard deviations σ, with a policy for invalid ones} */
  public static DiagonalGaussians ofStd(
      float[] mean, float[] std, int dimension, ScalePolicy policy) {
    return (DiagonalGaussians) Gaussians.of(STD, mean, std, dimension, policy);
  }

  /** {@return a batch of double precision from means and standard deviations σ} */
  public static DiagonalGaussians ofStd(double[] mean, double[] std, int dimension) {
    return ofStd(mean, std, dimension, ScalePolicy.STRICT);
  }

  /** {@return a batch of double precision from means and standard deviations σ, with a policy for invalid ones} */
  public static DiagonalGaussians ofStd(
      double[] mean, double[] std, int dimension, ScalePolicy policy) {
    return (DiagonalGaussians) Gaussians.of(STD, mean, std, dimension, policy);
  }

  /** {@return a batch from means and standard deviations σ, in segments of {@code float} in native order} */
  public static DiagonalGaussians ofStd(MemorySegment mean, MemorySegment std, int dimension) {
    return ofStd(mean, std, dimension, ValueLayout.JAVA_FLOAT, ScalePolicy.STRICT);
  }

  /** {@return a batch from means and standard deviations σ, in segments of a layout, with a policy for invalid ones} */
  public static DiagonalGaussians ofStd(
      MemorySegment mean,
      MemorySegment std,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return (DiagonalGaussians) Gaussians.of(STD, mean, element, std, element, dimension, policy);
  }

  /** {@return a batch from means and variances σ², both row-major {@code [N, D]}} */
  public static DiagonalGaussians ofVariance(float[] mean, float[] variance, int dimension) {
    return ofVariance(mean, variance, dimension, ScalePolicy.STRICT);
  }

  /** {@return a batch from means and variances σ², with a policy for invalid ones} */
  public static DiagonalGaussians ofVariance(
      float[] mean, float[] variance, int dimension, ScalePolicy policy) {
    return (DiagonalGaussians) Gaussians.of(VARIANCE, mean, variance, dimension, policy);
  }

  /** {@return a batch of double precision from means and variances σ²} */
  public static DiagonalGaussians ofVariance(double[] mean, double[] variance, int dimension) {
    return ofVariance(mean, variance, dimension, ScalePolicy.STRICT);
  }

  /** {@return a batch of double precision from means and variances σ², with a policy for invalid ones} */
  public static DiagonalGaussians ofVariance(
      double[] mean, double[] variance, int dimension, ScalePolicy policy) {
    return (DiagonalGaussians) Gaussians.of(VARIANCE, mean, variance, dimension, policy);
  }

  /** {@return a batch from means and variances σ², in segments of {@code float} in native order} */
  public static DiagonalGaussians ofVariance(
      MemorySegment mean, MemorySegment variance, int dimension) {
    return ofVariance(mean, variance, dimension, ValueLayout.JAVA_FLOAT, ScalePolicy.STRICT);
  }

  /** {@return a batch from means and variances σ², in segments of a layout, with a policy for invalid ones} */
  public static DiagonalGaussians ofVariance(
      MemorySegment mean,
      MemorySegment variance,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return (DiagonalGaussians)
        Gaussians.of(VARIANCE, mean, element, variance, element, dimension, policy);
  }

  /** {@return a batch from means and log-variances ln σ², both row-major {@code [N, D]}} */
  public static DiagonalGaussians ofLogVariance(float[] mean, float[] logVariance, int dimension) {
    return ofLogVariance(mean, logVariance, dimension, ScalePolicy.STRICT);
  }

  /** {@return a batch from means and log-variances ln σ², with a policy for invalid ones} */
  public static DiagonalGaussians ofLogVariance(
      float[] mean, float[] logVariance, int dimension, ScalePolicy policy) {
    return (DiagonalGaussians) Gaussians.of(LOG_VARIANCE, mean, logVariance, dimension, policy);
  }

  /** {@return a batch of double precision from means and log-variances ln σ²} */
  public static DiagonalGaussians ofLogVariance(
      double[] mean, double[] logVariance, int dimension) {
    return ofLogVariance(mean, logVariance, dimension, ScalePolicy.STRICT);
  }

  /** {@return a batch of double precision from means and log-variances ln σ², with a policy for invalid ones} */
  public static DiagonalGaussians ofLogVariance(
      double[] mean, double[] logVariance, int dimension, ScalePolicy policy) {
    return (DiagonalGaussians) Gaussians.of(LOG_VARIANCE, mean, logVariance, dimension, policy);
  }

  /** {@return a batch from means and log-variances ln σ², in segments of {@code float} in native order} */
  public static DiagonalGaussians ofLogVariance(
      MemorySegment mean, MemorySegment logVariance, int dimension) {
    return ofLogVariance(mean, logVariance, dimension, ValueLayout.JAVA_FLOAT, ScalePolicy.STRICT);
  }

  /** {@return a batch from means and log-variances ln σ², in segments of a layout, with a policy for invalid ones} */
  public static DiagonalGaussians ofLogVariance(
      MemorySegment mean,
      MemorySegment logVariance,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return (DiagonalGaussians)
        Gaussians.of(LOG_VARIANCE, mean, element, logVariance, element, dimension, policy);
  }

  /** {@return a batch from means and precisions 1/σ², both row-major {@code [N, D]}} */
  public static DiagonalGaussians ofPrecision(float[] mean, float[] precision, int dimension) {
    return ofPrecision(mean, precision, dimension, ScalePolicy.STRICT);
  }

  /** {@return a batch from means and precisions 1/σ², with a policy for invalid ones} */
  public static DiagonalGaussians ofPrecision(
      float[] mean, float[] precision, int dimension, ScalePolicy policy) {
    return (DiagonalGaussians) Gaussians.of(PRECISION, mean, precision, dimension, policy);
  }

  /** {@return a batch of double precision from means and precisions 1/σ²} */
  public static DiagonalGaussians ofPrecision(double[] mean, double[] precision, int dimension) {
    return ofPrecision(mean, precision, dimension, ScalePolicy.STRICT);
  }

  /** {@return a batch of double precision from means and precisions 1/σ², with a policy for invalid ones} */
  public static DiagonalGaussians ofPrecision(
      double[] mean, double[] precision, int dimension, ScalePolicy policy) {
    return (DiagonalGaussians) Gaussians.of(PRECISION, mean, precision, dimension, policy);
  }

  /** {@return a batch from means and precisions 1/σ², in segments of {@code float} in native order} */
  public static DiagonalGaussians ofPrecision(
      MemorySegment mean, MemorySegment precision, int dimension) {
    return ofPrecision(mean, precision, dimension, ValueLayout.JAVA_FLOAT, ScalePolicy.STRICT);
  }

  /** {@return a batch from means and precisions 1/σ², in segments of a layout, with a policy for invalid ones} */
  public static DiagonalGaussians ofPrecision(
      MemorySegment mean,
      MemorySegment precision,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return (DiagonalGaussians)
        Gaussians.of(PRECISION, mean, element, precision, element, dimension, policy);
  }

  /**
   * {@return a batch that takes the arrays over instead of copying them}
   *
   * <p>The caller must not modify them afterwards, on pain of wrong results. They are checked as by the other factories,
   * which make the same batch of copies; where an exception is thrown, the caller keeps them.
   *
   * @param kind what {@code scale} holds, one of the diagonal kinds
   */
  public static DiagonalGaussians owning(
      float[] mean, float[] scale, int dimension, ScaleKind kind) {
    Objects.requireNonNull(kind, "kind");
    Elements means = Elements.of(mean, "mean").owned();
    Elements scales = Elements.of(scale, kind.argument()).owned();
    return of(kind, means, scales, dimension, ScalePolicy.STRICT);
  }

  /** {@return a batch of double precision that takes the arrays over, as {@link #owning(float[], float[], int, ScaleKind)}} */
  public static DiagonalGaussians owning(
      double[] mean, double[] scale, int dimension, ScaleKind kind) {
    Objects.requireNonNull(kind, "kind");
    Elements means = Elements.of(mean, "mean").owned();
    Elements scales = Elements.of(scale, kind.argument()).owned();
    return of(kind, means, scales, dimension, ScalePolicy.STRICT);
  }

  static DiagonalGaussians of(
      ScaleKind kind, Elements mean, Elements scale, int dimension, ScalePolicy policy) {
    if (kind.scale == null) {
      throw new IllegalArgumentException("kind " + kind + " is one of matrices, not of scales");
    }
    return new DiagonalGaussians(
        DiagonalBatch.of(mean, scale, dimension, kind.scale, policy, Platform.rangeCheck()));
  }

  @Override
  public String toString() {
    return "DiagonalGaussians[%d x %d, %s, %s]"
        .formatted(size(), dimension(), isDouble() ? "double" : "float", batch.kind().argument);
  }
}
