package dev.kullback.internal.formula;

import dev.kullback.ScalePolicy;
import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.numerics.Measure;
import dev.kullback.internal.numerics.RangeCheck;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Computes a divergence of one pair of Gaussians, whatever their kinds: the scalar kernel of a {@link Measure}, one class for each formula.
 * Pairs, searches and verification use it; it also decides what a kernel's error bound does not: the order of two candidates, or of a
 * candidate and a radius. As a kernel it computes all blocks of the scalar backend, and those that no kernel with vectors does. Holds the
 * working memory of one thread.
 */
public abstract class Pair implements BlockKernel<Operands<?>> {
  /** Contract of the float kernels. */
  private static final double FLOAT_ERROR = 1e-5;

  /** Contract of the double kernels with a full covariance: it grows with the condition number, of which the kernels allow 100 at most. */
  private static final double FULL_ERROR = 1e-10;

  /** Relative difference up to which two values of {@link #precise} may be equal: diagonal ones err by 1e-13 each. */
  public static final double PRECISE_ERROR = 2e-13;

  final Worker worker;

  /** N(0, I) in the terms of the batch that was last compared with it. */
  private @Nullable DiagonalBatch normal;

  Pair(Worker worker) {
    this.worker = worker;
  }

  /** Makes the pair of a measure. */
  public static Pair of(Measure measure, Worker worker) {
    return switch (measure.family()) {
      case KL -> new KlPair(worker);
      case REVERSE_KL -> new ReverseKlPair(worker);
      case JEFFREYS -> new JeffreysPair(worker);
      case CHERNOFF, RENYI, HELLINGER -> new ChernoffPair(measure, worker);
      case WASSERSTEIN_2 -> new WassersteinPair(worker);
    };
  }

  /** Drops the caller's batches. */
  public abstract void clear();

  /** Returns the divergence of q_i and p_j, to the contract of the batches' precision. */
  public abstract double of(Batch q, int i, Batch p, int j);

  /** Returns the divergence by a form that reads nothing that is prepared: the reference of all others. */
  public abstract double stable(Batch q, int i, Batch p, int j);

  /** Returns the divergence of q_i and N(0, I). */
  public abstract double toStandardNormal(Batch q, int i);

  /** Returns the divergence to {@link #PRECISE_ERROR}, whatever the batches' precision; with a full covariance, as {@link #of} does. */
  public abstract double precise(Batch q, int i, Batch p, int j);

  /** Returns the divergence unrounded where it can be computed, else {@code value}, which {@link #precise} gave; valid until the next call. */
  public abstract Unrounded exact(Batch q, int i, Batch p, int j, double value);

  /** Returns the last result of {@link #exact}. */
  public abstract Unrounded lastExact();

  /**
   * Returns the divergence rounded to double, which depends on the two Gaussians alone, not on the kernel, its block or the machine's
   * vectors: the value of exact arithmetic wherever that is decided, else {@link #precise}; 0 for equal parameters.
   */
  public abstract double rounded(Batch q, int i, Batch p, int j);

  /** Whether {@link #precise} takes less time than {@link #rounded}. */
  public abstract boolean isPreciseFaster(Batch q, Batch p);

  /** Greatest relative distance of two unrounded divergences that count as equal. */
  public abstract double tolerance(int dimension);

  /** Counts the terms of {@link #toStandardNormal}, for a {@link Checkpoint}. */
  public static long standardTerms(Batch q) {
    long d = q.dimension();
    return Checkpoint.ofPlain(q instanceof FullBatch ? d * d : d);
  }

  /**
   * Greatest relative error of a kernel's value v, which stands for an exact one in {@code [v(1 − error), v(1 + error)]}. The contract
   * allows a square of the error more, of which the kernels keep well clear. 0 and ∞ count as exact.
   */
  public static double error(Batch q, Batch p) {
    if (!q.isDouble() && !p.isDouble()) {
      return FLOAT_ERROR;
    }
    return areDiagonal(q, p) ? PairKl.DOUBLE_TOLERANCE : FULL_ERROR;
  }

  static boolean areDiagonal(Batch q, Batch p) {
    return q instanceof DiagonalBatch && p instanceof DiagonalBatch;
  }

  /** Whether rows i and j of p certainly have equal divergences from any other. */
  public static boolean isSame(Batch p, int i, int j) {
    return p instanceof DiagonalBatch d && d.isEqual(i, d, j);
  }

  /** Returns N(0, I) of a batch's dimension and kind of scales, of float as it has no part in the precision. */
  final DiagonalBatch normal(Batch q) {
    Scale kind = q instanceof DiagonalBatch d ? d.kind() : Scale.STD;
    DiagonalBatch last = normal;
    if (last == null || last.dimension() != q.dimension() || last.kind() != kind) {
      float[] scale = new float[q.dimension()];
      Arrays.fill(scale, (float) kind.unit());
      last =
          DiagonalBatch.of(
              Elements.of(new float[scale.length], "mean").owned(),
              Elements.of(scale, kind.argument).owned(),
              scale.length,
              kind,
              ScalePolicy.STRICT,
              RangeCheck.PLAIN);
      normal = last;
    }
    return last;
  }
}
