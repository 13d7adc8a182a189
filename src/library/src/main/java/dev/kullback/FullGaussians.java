package dev.kullback;

import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.batch.Factors;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.numerics.MatrixForm;

/**
 * A batch of N Gaussians {@code N(μ_i, Σ_i)} of dimension D with full covariance: {@code Σ = LLᵀ}, with L lower
 * triangular and a positive diagonal. N is at least 1.
 *
 * <p>A factory takes the means μ, row-major {@code [N, D]}, the matrices that its name tells, and D. {@link Gaussians} says how
 * values are checked and copied, and {@link ScaleKind} what matrices must be.
 * {@link Gaussians#of(ScaleKind, float[], float[], int)} makes the same batches of other kinds, precisions among them, and from memory
 * segments. Batches of float precision, too, are held, and computed with, in double.
 *
 * <p>What the kernels need is made when a batch is used, and kept with it from its second use on. So a batch that is
 * made once is reused by every call of every engine. In doubles, it takes {@code N·D(D+1)/2} for the factors L, and
 * twice that where they are computed. After use as {@code q} it takes as much again, and after use as {@code p} once
 * more, for N rounded up to 8 and to 16. {@code (N + 32)·D(D+3)/2} is limited to {@code 2³¹ − 9}, so that panels fit an
 * array; D is therefore at most 11,406. A matrix that all Gaussians share is kept once, and so is what is made of it: then
 * {@code N·D + 16·D(D+3)} is limited, and D likewise.
 *
 * @since 0.1.0
 */
public final class FullGaussians implements Gaussians {
  final FullBatch batch;

  private FullGaussians(FullBatch batch) {
    this.batch = batch;
  }

  /**
   * {@return a batch of float precision from means and factors L, as {@link ScaleKind#SCALE_TRIL} has them}
   *
   * @param mean μ, row-major {@code [N, D]}
   * @param scaleTril L, row-major {@code [N, D, D]}, not 0 on the diagonal and zero above it
   * @param dimension D
   * @throws InvalidGaussianException if a value or a matrix is invalid
   * @throws IllegalArgumentException if the arrays do not have these shapes, or are empty or too large
   */
  public static FullGaussians ofScaleTril(float[] mean, float[] scaleTril, int dimension) {
    return (FullGaussians) Gaussians.of(ScaleKind.SCALE_TRIL, mean, scaleTril, dimension);
  }

  /** {@return a batch of double precision, otherwise as {@link #ofScaleTril(float[], float[], int)} makes it} */
  public static FullGaussians ofScaleTril(double[] mean, double[] scaleTril, int dimension) {
    return (FullGaussians) Gaussians.of(ScaleKind.SCALE_TRIL, mean, scaleTril, dimension);
  }

  /**
   * {@return a batch of float precision from means and packed factors L with {@code ln L_kk} on the diagonal, as
   * {@link ScaleKind#PACKED_SCALE_TRIL} has them} {@link ScaleKind#PLAIN_PACKED_SCALE_TRIL} takes those with {@code L_kk} itself.
   *
   * @param mean μ, row-major {@code [N, D]}
   * @param packed L, row-major {@code [N, D(D+1)/2]}, with logarithms within ±700 on the diagonal
   * @param dimension D
   * @throws InvalidGaussianException if a value is invalid
   * @throws IllegalArgumentException if the arrays do not have these shapes, or are empty or too large
   */
  public static FullGaussians ofPackedScaleTril(float[] mean, float[] packed, int dimension) {
    return (FullGaussians) Gaussians.of(ScaleKind.PACKED_SCALE_TRIL, mean, packed, dimension);
  }

  /**
   * {@return a batch of double precision, of factors with {@code ln L_kk} on the diagonal, otherwise as
   * {@link #ofPackedScaleTril(float[], float[], int)} makes it}
   */
  public static FullGaussians ofPackedScaleTril(double[] mean, double[] packed, int dimension) {
    return (FullGaussians) Gaussians.of(ScaleKind.PACKED_SCALE_TRIL, mean, packed, dimension);
  }

  /**
   * {@return a batch of float precision from means and covariances Σ, as {@link ScaleKind#COVARIANCE} has them}
   *
   * @param mean μ, row-major {@code [N, D]}
   * @param covariance Σ, row-major {@code [N, D, D]}, positive definite, and symmetric up to rounding
   * @param dimension D
   * @throws InvalidGaussianException if a value or a matrix is invalid
   * @throws IllegalArgumentException if the arrays do not have these shapes, or are empty or too large
   */
  public static FullGaussians ofCovariance(float[] mean, float[] covariance, int dimension) {
    return (FullGaussians) Gaussians.of(ScaleKind.COVARIANCE, mean, covariance, dimension);
  }

  /** {@return a batch of double precision, otherwise as {@link #ofCovariance(float[], float[], int)} makes it} */
  public static FullGaussians ofCovariance(double[] mean, double[] covariance, int dimension) {
    return (FullGaussians) Gaussians.of(ScaleKind.COVARIANCE, mean, covariance, dimension);
  }

  static FullGaussians of(
      MatrixForm form, Elements mean, Elements matrix, int dimension, ScalePolicy policy) {
    return new FullGaussians(
        Factors.of(mean, matrix, dimension, form, policy, Platform::factorization));
  }

  static FullGaussians of(FullBatch batch) {
    return new FullGaussians(batch);
  }

  /**
   * {@return whether the factors L were computed, as of covariances and precisions, not given} Then L is rounded, and {@link #covariance(int)}, which counts what
   * that took, tells the Gaussians to the bit where they were given as covariances; otherwise {@link #scale(int)} tells them to the bit.
   */
  public boolean hasComputedFactors() {
    return batch.scaleTrilLow() != null;
  }

  FullGaussians rows(int[] indices) {
    return new FullGaussians(batch.select(indices));
  }

  @Override
  public String toString() {
    return "FullGaussians[%d x %d, %s]"
        .formatted(size(), dimension(), isDouble() ? "double" : "float");
  }
}
