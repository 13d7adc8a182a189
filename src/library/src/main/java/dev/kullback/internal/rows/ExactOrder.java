package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.plain.DoubleDoubleKl;
import dev.kullback.internal.plain.FullPair;
import dev.kullback.internal.plain.PairKl;
import dev.kullback.internal.plain.RoundingFilter;
import dev.kullback.internal.work.Worker;

/**
 * Decides between two candidates, or a candidate and a radius, where a kernel's error bound does not. A kernel's value v stands for an
 * exact one in {@code [v(1 − error), v(1 + error)]}. The contract allows a square of the error more, of which the kernels keep well clear.
 * 0 and ∞ count as exact.
 */
public final class ExactOrder {
  /** Contract of the float kernels. */
  private static final double FLOAT_ERROR = 1e-5;

  /** Contract of the double kernels. */
  private static final double DOUBLE_ERROR = 1e-12;

  /** Contract of the double kernels with a full covariance: it grows with the condition number, of which the kernels allow 100 at most. */
  private static final double FULL_ERROR = 1e-10;

  /** Relative error of {@link #precise}; with diagonal batches twice that, as both values that are compared have it. */
  static final double PRECISE_ERROR = 2e-13;

  /** Time of {@link #exact} relative to {@link #precise}, about. */
  private static final int EXACT = 32;

  /** Time of {@link RoundingFilter} relative to {@link #precise}, about. */
  private static final int ROUNDED = 4;

  private final Worker worker;
  private final FullPair pair;
  private final RoundingFilter rounded = new RoundingFilter();
  private final DoubleDoubleKl exact = new DoubleDoubleKl();

  public ExactOrder(Worker worker, FullPair pair) {
    this.worker = worker;
    this.pair = pair;
  }

  /** Greatest relative error of the kernels' values. */
  static double error(Batch q, Batch p) {
    if (!q.isDouble() && !p.isDouble()) {
      return FLOAT_ERROR;
    }
    return q instanceof DiagonalBatch && p instanceof DiagonalBatch ? DOUBLE_ERROR : FULL_ERROR;
  }

  /** Returns KL(q_i ‖ p_j), or in reverse KL(p_j ‖ q_i), to {@link #PRECISE_ERROR}, whatever the batches' precision. */
  double precise(Batch q, int i, Batch p, int j, boolean reverse) {
    if (reverse) {
      return precise(p, j, q, i, false);
    }
    worker.checkInterrupt(); // all entries of a tile may come here
    worker.pass(Batch.terms(q, p));
    return q instanceof DiagonalBatch a && p instanceof DiagonalBatch b
        ? PairKl.precise(a, i, b, j)
        : pair.kl(q, i, p, j);
  }

  /** Returns the divergence unrounded where it can be computed, else {@code kl}, which {@link #precise} gave; valid until the next call. */
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
   * Returns the divergence rounded to double, which depends on the two Gaussians alone, not on the kernel, its block or the machine's
   * vectors: the value of exact arithmetic wherever {@link RoundingFilter} or {@link DoubleDoubleKl} decide it, else {@link #precise}; 0 for
   * equal parameters.
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

  /** Returns the last result of {@link #exact}. */
  DoubleDoubleKl last() {
    return exact;
  }

  /** Whether two columns certainly have equal divergences. */
  static boolean isSame(Batch p, int i, int j) {
    return p instanceof DiagonalBatch d && d.isEqual(i, d, j);
  }
}
