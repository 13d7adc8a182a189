package dev.kullback;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.numerics.Scale;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A batch of N Gaussians {@code N(μ_i, diag(σ_i²))} of dimension D.
 *
 * <p>A factory takes the means μ and the scales that its name tells, both row-major {@code [N, D]}, and D. {@link Gaussians} says
 * how values are checked and copied; scales other than log-variances must be positive.
 * {@link Gaussians#of(ScaleKind, float[], float[], int, ScalePolicy)} makes the same batches with another {@link ScalePolicy} than
 * {@link ScalePolicy#STRICT}, or from memory segments, and
 * {@link Gaussians#owning(ScaleKind, float[], float[], int)} without a copy. Empty arrays make an empty batch, which a
 * {@link KlIndex} takes, as a change of nothing, and a {@link KlEngine} refuses.
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

  DiagonalGaussians(DiagonalBatch batch) {
    this.batch = batch;
  }

  /**
   * {@return a batch of float precision from means and standard deviations σ}
   *
   * @param mean μ, row-major {@code [N, D]}
   * @param std σ, row-major {@code [N, D]}, positive
   * @param dimension D
   * @throws InvalidGaussianException if a value is invalid
   * @throws IllegalArgumentException if the arrays do not have these shapes, or are too large
   */
  public static DiagonalGaussians ofStd(float[] mean, float[] std, int dimension) {
    return (DiagonalGaussians) Gaussians.of(ScaleKind.STD, mean, std, dimension);
  }

  /** {@return a batch of double precision, otherwise as {@link #ofStd(float[], float[], int)} makes it} */
  public static DiagonalGaussians ofStd(double[] mean, double[] std, int dimension) {
    return (DiagonalGaussians) Gaussians.of(ScaleKind.STD, mean, std, dimension);
  }

  /**
   * {@return a batch of float precision from means and variances σ²}
   *
   * @param mean μ, row-major {@code [N, D]}
   * @param variance σ², row-major {@code [N, D]}, positive
   * @param dimension D
   * @throws InvalidGaussianException if a value is invalid
   * @throws IllegalArgumentException if the arrays do not have these shapes, or are too large
   */
  public static DiagonalGaussians ofVariance(float[] mean, float[] variance, int dimension) {
    return (DiagonalGaussians) Gaussians.of(ScaleKind.VARIANCE, mean, variance, dimension);
  }

  /** {@return a batch of double precision, otherwise as {@link #ofVariance(float[], float[], int)} makes it} */
  public static DiagonalGaussians ofVariance(double[] mean, double[] variance, int dimension) {
    return (DiagonalGaussians) Gaussians.of(ScaleKind.VARIANCE, mean, variance, dimension);
  }

  /**
   * {@return a batch of float precision from means and log-variances ln σ²}
   *
   * @param mean μ, row-major {@code [N, D]}
   * @param logVariance ln σ², row-major {@code [N, D]}
   * @param dimension D
   * @throws InvalidGaussianException if a value is not finite
   * @throws IllegalArgumentException if the arrays do not have these shapes, or are too large
   */
  public static DiagonalGaussians ofLogVariance(float[] mean, float[] logVariance, int dimension) {
    return (DiagonalGaussians) Gaussians.of(ScaleKind.LOG_VARIANCE, mean, logVariance, dimension);
  }

  /** {@return a batch of double precision, otherwise as {@link #ofLogVariance(float[], float[], int)} makes it} */
  public static DiagonalGaussians ofLogVariance(
      double[] mean, double[] logVariance, int dimension) {
    return (DiagonalGaussians) Gaussians.of(ScaleKind.LOG_VARIANCE, mean, logVariance, dimension);
  }

  /**
   * {@return a batch of float precision from means and precisions 1/σ²}
   *
   * @param mean μ, row-major {@code [N, D]}
   * @param precision 1/σ², row-major {@code [N, D]}, positive
   * @param dimension D
   * @throws InvalidGaussianException if a value is invalid
   * @throws IllegalArgumentException if the arrays do not have these shapes, or are too large
   */
  public static DiagonalGaussians ofPrecision(float[] mean, float[] precision, int dimension) {
    return (DiagonalGaussians) Gaussians.of(ScaleKind.PRECISION, mean, precision, dimension);
  }

  /** {@return a batch of double precision, otherwise as {@link #ofPrecision(float[], float[], int)} makes it} */
  public static DiagonalGaussians ofPrecision(double[] mean, double[] precision, int dimension) {
    return (DiagonalGaussians) Gaussians.of(ScaleKind.PRECISION, mean, precision, dimension);
  }

  /**
   * {@return a batch of float precision of points, Gaussians of variance 0, at which a {@link KlEngine} computes densities:
   * {@link KlEngine#logDensity(Gaussians, Gaussians) logDensity}, {@link KlEngine#mahalanobis(Gaussians, Gaussians) mahalanobis},
   * {@link KlEngine#logLikelihood(Gaussians, Mixtures) logLikelihood}, {@link KlEngine#responsibilities(Gaussians, Mixtures)
   * responsibilities}, and searches}
   *
   * <p>A point has no divergence from a Gaussian, so all else refuses the batch. Its {@link #mean(int)} is the point, and its
   * {@link #scale(int)} are zeros.
   *
   * @param points x, row-major {@code [N, D]}, finite
   * @param dimension D
   * @throws InvalidGaussianException if a value is not finite
   * @throws IllegalArgumentException if the array does not have this shape, or is too large
   */
  public static DiagonalGaussians ofPoints(float[] points, int dimension) {
    return points(Elements.of(points, "points"), dimension);
  }

  /** {@return a batch of points of double precision, otherwise as {@link #ofPoints(float[], int)} makes it} */
  public static DiagonalGaussians ofPoints(double[] points, int dimension) {
    return points(Elements.of(points, "points"), dimension);
  }

  /**
   * {@return a batch of points as {@link #ofPoints(float[], int)} makes it, from a memory segment}
   *
   * @param element what {@code points} consists of, {@link ValueLayout.OfFloat} or
   *     {@link ValueLayout.OfDouble}, of either byte order; values need not be aligned
   * @throws IllegalArgumentException also if the layout is of another type, or the segment does not hold whole values
   * @throws IllegalStateException if the segment's arena is closed
   * @throws WrongThreadException if the segment is confined to another thread
   */
  public static DiagonalGaussians ofPoints(
      MemorySegment points, ValueLayout element, int dimension) {
    return points(Elements.of(points, element, "points"), dimension);
  }

  private static DiagonalGaussians points(Elements points, int dimension) {
    return new DiagonalGaussians(DiagonalBatch.ofPoints(points, dimension, Platform.rangeCheck()));
  }

  static DiagonalGaussians of(
      Scale form, Elements mean, Elements scale, int dimension, ScalePolicy policy) {
    return new DiagonalGaussians(
        DiagonalBatch.of(mean, scale, dimension, form, policy, Platform.rangeCheck()));
  }

  /**
   * {@return vectors b of references, row-major {@code [N, 2·D + 1]}, by which an index for the greatest inner products finds candidates for the smallest KL} With
   * those of {@link #toInnerProductQueries}, {@code KL(x ‖ p) = c(x) − a(x)ᵀb(p)}, where
   *
   * <pre>
   * a(x) = (σ_x² + μ_x²,  μ_x,          1)
   * b(p) = (−1/(2σ_p²),   μ_p / σ_p²,   −Σ μ_p²/(2σ_p²) − Σ ln σ_p)
   * </pre>
   *
   * and c(x) is the same for all p. They are rounded to float, so candidates are about those of the smallest KL, which {@link KlIndex#rank} puts in exact
   * order. Where means are large beside σ and lie around one point, the sums cancel: subtract that point from the means of both batches,
   * which changes no KL. An element that is too small for float becomes 0, which changes an inner product by less than 2⁻²².
   *
   * @throws InvalidGaussianException if an element is beyond float, as where σ is 0; the message says what to scale
   */
  public float[] toInnerProducts() {
    return batch.toInnerProducts(false);
  }

  /**
   * {@return the vectors a of queries, of {@link #toInnerProducts}, row-major {@code [N, 2·D + 1]} as those of references}
   *
   * @throws InvalidGaussianException if an element is beyond float; the message says what to scale
   */
  public float[] toInnerProductQueries() {
    return batch.toInnerProducts(true);
  }

  DiagonalGaussians rows(int[] indices) {
    return new DiagonalGaussians(batch.select(indices, Platform.rangeCheck()));
  }

  @Override
  public String toString() {
    return "DiagonalGaussians[%d x %d, %s, %s]"
        .formatted(
            size(),
            dimension(),
            isDouble() ? "double" : "float",
            batch.arePoints() ? "points" : kind());
  }
}
