package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.plain.DoubleDoubleKl;
import dev.kullback.internal.plain.FullPair;
import dev.kullback.internal.plain.PairKl;
import dev.kullback.internal.plain.RoundingFilter;
import dev.kullback.internal.work.Worker;

/**
 * What decides between two candidates, or a candidate and a radius, that a kernel's error bound leaves undecided. A kernel's value
 * v stands for an exact one in {@code [v(1 − error), v(1 + error)]}: the contract allows a square of the error more, of which the kernels
 * keep well clear. 0 and ∞ count as exact.
 */
public final class ExactOrder {
  /** The contract of the float kernels, and of the double ones. */
  private static final double FLOAT_ERROR = 1e-5;

  private static final double DOUBLE_ERROR = 1e-12;

  /** With a full covariance that of double grows with the condition number, of which the kernels allow 100 at most. */
  private static final double FULL_ERROR = 1e-10;

  /** Of {@link #precise}, with diagonal batches twice over, as both that are compared have it. */
  static final double PRECISE_ERROR = 2e-13;

  /** How many times as long as {@link #precise} the unrounded value takes, about. */
  private static final int EXACT = 32;

  /** And {@link RoundingFilter}. */
  private static final int ROUNDED = 4;

  private final Worker worker;
  private final FullPair pair;
  private final RoundingFilter rounded = new RoundingFilter();
  private final DoubleDoubleKl exact = new DoubleDoubleKl();

  public ExactOrder(Worker worker, FullPair pair) {
    this.worker = worker;
    this.pair = pair;
  }

  /** Relative error of the kernels' values at most. */
  static double error(Batch q, Batch p) {
    if (!q.isDouble() && !p.isDouble()) {
      return FLOAT_ERROR;
    }
    return q instanceof DiagonalBatch && p instanceof DiagonalBatch ? DOUBLE_ERROR : FULL_ERROR;
  }

  /** KL(q_i ‖ p_j), or in reverse KL(p_j ‖ q_i), to {@link #PRECISE_ERROR}, whatever the batches' precision. */
  double precise(Batch q, int i, Batch p, int j, boolean reverse) {
    if (reverse) {
      return precise(p, j, q, i, false);
    }
    worker.checkInterrupt(); // of a tile all entries may come here
    worker.pass(Batch.terms(q, p));
    return q instanceof DiagonalBatch a && p instanceof DiagonalBatch b
        ? PairKl.precise(a, i, b, j)
        : pair.kl(q, i, p, j);
  }

  /** The same unrounded where it is to be had, else {@code kl}, which {@link #precise} gave; valid until the next. */
  DoubleDoubleKl exact(Batch q, int i, Batch p, int j, boolean reverse, double kl) {
    if (reverse) {
      return exact(p, j, q, i, false, kl);
    }
    worker.checkInterrupt();
    worker.pass(EXACT * Batch.terms(q, p));
    if (!(q instanceof DiagonalBatch a
        && p instanceof DiagonalBatch b
        && kl >= Double.MIN_NORMAL
        && exact.compute(a, i, b, j))) {
      exact.set(kl);
    }
    return exact;
  }

  /**
   * The same rounded to double: a function of the two Gaussians alone, whatever the kernel, its block and the machine's vectors. That
   * of exact arithmetic wherever {@link RoundingFilter} or {@link DoubleDoubleKl} decide it, else what {@link #precise} gives; 0 for equal parameters.
   */
  double rounded(Batch q, int i, Batch p, int j, boolean reverse) {
    if (reverse) {
      return rounded(p, j, q, i, false);
    }
    if (q.isDeterministic()) {
      return 0;
    }
    if (q instanceof DiagonalBatch a && p instanceof DiagonalBatch b) {
      worker.checkInterrupt();
      worker.pass(ROUNDED * Batch.terms(q, p));
      double kl = rounded.kl(a, i, b, j);
      if (kl >= 0) {
        return kl;
      }
    }
    double kl = precise(q, i, p, j, false);
    return kl < Double.POSITIVE_INFINITY ? exact(q, i, p, j, false, kl).value : kl;
  }

  /** Drops the caller's batches. */
  void clear() {
    rounded.clear();
  }

  /** Whether {@link #precise} takes less time than {@link #rounded}. */
  static boolean isPreciseFaster(Batch q, Batch p) {
    return q instanceof DiagonalBatch
        && p instanceof DiagonalBatch
        && !q.isDeterministic()
        && !p.isDeterministic();
  }

  /** What {@link #exact} gave last. */
  DoubleDoubleKl last() {
    return exact;
  }

  /** Whether two columns certainly have the same divergences. */
  static boolean isSame(Batch p, int i, int j) {
    return p instanceof DiagonalBatch d && d.isEqual(i, d, j);
  }
}
