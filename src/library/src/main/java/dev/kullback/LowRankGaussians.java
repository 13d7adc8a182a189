package dev.kullback;

import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.engine.Arguments;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.numerics.Scale;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;

/**
 * A batch of N Gaussians {@code N(μ_i, diag(v_i) + W_i W_iᵀ)} of dimension D: a diagonal and a factor W of r columns, as a factor analyser, SWAG or
 * PyTorch's {@code LowRankMultivariateNormal} has them. N is at least 1, and r from 0, which are diagonal Gaussians, to D.
 *
 * <p>A {@link KlEngine} computes KL, its reverse and Jeffreys' divergence of them, by
 *
 * <pre>
 * Σ⁻¹ = V⁻¹ − BᵀB,   ln det Σ = Σ ln v + 2 Σ ln C_kk,   I + WᵀV⁻¹W = CCᵀ,   B = C⁻¹WᵀV⁻¹
 * </pre>
 *
 * <p>(M. A. Woodbury, "Inverting modified matrices", 1950), in {@code O(D·r²)} a pair, in double, or of batches of float in float where
 * that is within the contract. The other batch may be of another rank or precision, or diagonal; beside one of full covariances, this one is written out as such. {@link Mixtures}
 * write it out but for their KL and entropies. Other divergences, a {@link KlIndex}, densities and a CUDA device do not take it: {@link #full()} makes a
 * batch that they take.
 *
 * <p>An entry is within 1e-5 of its value for batches of {@code float}, down to 1e-25 of the sum of the sizes of the terms from which it is
 * computed, such as D and {@code Σ_h W_h²/v_h}. For those of {@code double} it is within 1e-12, times the condition number of {@code I + WᵀV⁻¹W} of p,
 * down to 1e-18 of that sum. Below that, where W of p and q span the same but differ, or W is far larger than the diagonal, the error is 1e-30 of
 * that sum. It is 0 for equal parameters, at least 0, and never NaN.
 *
 * <p>The arrays are copied; W is held in double. It takes {@code 8·N·D·r} bytes beside the diagonal Gaussians.
 *
 * @since 0.1.0
 */
public final class LowRankGaussians implements Gaussians {
  final LowRankBatch batch;

  private LowRankGaussians(LowRankBatch batch) {
    this.batch = batch;
  }

  /**
   * {@return a batch of float precision, with {@link ScalePolicy#STRICT}}
   *
   * @param kind what {@code diagonal} holds, one of the diagonal kinds: {@link ScaleKind#VARIANCE} of v
   * @param mean μ, row-major {@code [N, D]}
   * @param factor W, row-major {@code [N, D, r]}, finite; its length tells r
   * @param diagonal scales of the diagonal part, row-major {@code [N, D]}, positive, or {@code [D]}, which all share, or {@code [N]}, one number for
   *     each; see {@link Gaussians}
   * @param dimension D
   * @throws InvalidGaussianException if a value is invalid, or {@code Σ_h W_h²/v_h} of a column is beyond 2⁶⁰
   * @throws IllegalArgumentException if the arrays do not have these shapes, or are empty or too large, or {@code kind} is of matrices
   */
  public static LowRankGaussians of(
      ScaleKind kind, float[] mean, float[] factor, float[] diagonal, int dimension) {
    Objects.requireNonNull(kind, "kind");
    return of(
        kind,
        Elements.of(mean, "mean"),
        Elements.of(factor, "factor"),
        Elements.of(diagonal, kind.form.argument()),
        dimension,
        ScalePolicy.STRICT);
  }

  /** {@return a batch of double precision, otherwise as {@link #of(ScaleKind, float[], float[], float[], int)} makes it} */
  public static LowRankGaussians of(
      ScaleKind kind, double[] mean, double[] factor, double[] diagonal, int dimension) {
    Objects.requireNonNull(kind, "kind");
    return of(
        kind,
        Elements.of(mean, "mean"),
        Elements.of(factor, "factor"),
        Elements.of(diagonal, kind.form.argument()),
        dimension,
        ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #of(ScaleKind, float[], float[], float[], int)} makes it, from memory segments, each of its own layout, and with a policy}
   * If any is of double, the batch is of double precision.
   *
   * @param meanElement what {@code mean} consists of, {@link ValueLayout.OfFloat} or {@link ValueLayout.OfDouble}, of either byte
   *     order; values need not be aligned
   * @param policy {@link ScalePolicy#STRICT}, or {@link ScalePolicy#CLAMPED} for the diagonal
   * @throws IllegalArgumentException also if a layout is of another type, a segment does not hold whole values, or the policy is another
   * @throws IllegalStateException if a segment's arena is closed
   * @throws WrongThreadException if a segment is confined to another thread
   */
  public static LowRankGaussians of(
      ScaleKind kind,
      MemorySegment mean,
      ValueLayout meanElement,
      MemorySegment factor,
      ValueLayout factorElement,
      MemorySegment diagonal,
      ValueLayout diagonalElement,
      int dimension,
      ScalePolicy policy) {
    Objects.requireNonNull(kind, "kind");
    return of(
        kind,
        Elements.of(mean, meanElement, "mean"),
        Elements.of(factor, factorElement, "factor"),
        Elements.of(diagonal, diagonalElement, kind.form.argument()),
        dimension,
        Objects.requireNonNull(policy, "policy"));
  }

  private static LowRankGaussians of(
      ScaleKind kind,
      Elements mean,
      Elements factor,
      Elements diagonal,
      int dimension,
      ScalePolicy policy) {
    if (!(kind.form instanceof Scale form)) {
      throw new IllegalArgumentException(
          "the diagonal is of kind %s, which is of matrices; take STD, VARIANCE, LOG_VARIANCE or PRECISION"
              .formatted(kind));
    }
    return new LowRankGaussians(
        LowRankBatch.of(mean, factor, diagonal, dimension, form, policy, Platform.rangeCheck()));
  }

  /** {@return r, the number of columns of each W} */
  public int rank() {
    return batch.rank();
  }

  /**
   * {@return W_i, in a new array, row-major {@code [D, r]}, to the bit as it was given; {@link #scale(int)} gives the diagonal}
   *
   * @param i the index of a Gaussian
   * @throws IndexOutOfBoundsException if i is not in [0, N)
   */
  public double[] factor(int i) {
    Arguments.checkIndex("i", i, size());
    return batch.factor(i);
  }

  /**
   * {@return the same Gaussians with full covariances, of the same precision} Covariances are computed and factored in twice the precision of double.
   * It takes {@code 8·N·D(D+1)} bytes. The batch keeps it.
   *
   * @throws IllegalArgumentException if it is too large for a batch of full covariances
   * @throws InvalidGaussianException if a covariance is singular to twice the precision of double
   * @throws java.util.concurrent.CancellationException if the calling thread is interrupted meanwhile; its status stays set
   */
  public FullGaussians full() {
    return FullGaussians.of(batch.full());
  }

  LowRankGaussians rows(int[] indices) {
    return new LowRankGaussians(batch.select(indices, Platform.rangeCheck()));
  }

  @Override
  public String toString() {
    return "LowRankGaussians[%d x %d, rank %d, %s, %s]"
        .formatted(size(), dimension(), rank(), isDouble() ? "double" : "float", kind());
  }
}
