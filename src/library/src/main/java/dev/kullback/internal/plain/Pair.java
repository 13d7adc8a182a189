package dev.kullback.internal.plain;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;

/**
 * Computes the divergence of one pair of Gaussians, whatever their kinds: of diagonal ones by {@link PairKl}, of others by
 * {@link FullPair}. Pairs, searches and verification use it; it also decides what a kernel's error bound does not: the order of two
 * candidates, or of a candidate and a radius. As a kernel it computes all blocks of the scalar backend; of the vector backend those of few
 * dimensions until C2 has compiled the vectors, and those of a diagonal batch that is too large to be written out as full factors. Holds
 * the working memory of one thread.
 */
public final class Pair implements BlockKernel<Operands<?>> {
  /** Contract of the float kernels. */
  private static final double FLOAT_ERROR = 1e-5;

  /** Contract of the double kernels with a full covariance: it grows with the condition number, of which the kernels allow 100 at most. */
  private static final double FULL_ERROR = 1e-10;

  /** Relative difference up to which two values of {@link #precise} may be equal: diagonal ones err by 1e-13 each. */
  public static final double PRECISE_ERROR = 2e-13;

  private final Worker worker;
  private final FullPair full = new FullPair();
  private final RoundingFilter filter = new RoundingFilter();
  private final DoubleDoubleKl exact = new DoubleDoubleKl();

  public Pair(Worker worker) {
    this.worker = worker;
  }

  /** Drops the caller's batches. */
  public void clear() {
    full.clear();
    filter.clear();
  }

  /** Returns KL(q_i ‖ p_j), to the contract of the batches' precision. */
  public double of(Batch q, int i, Batch p, int j) {
    worker.pass(Batch.terms(q, p));
    if (q.isDeterministic() || (q == p && i == j)) {
      return 0;
    }
    return q instanceof DiagonalBatch a && p instanceof DiagonalBatch b
        ? PairKl.of(a, i, b, j)
        : full.kl(q, i, p, j);
  }

  /** Puts the entries of a block, whose kind it asks for once: asking for each entry takes 1.5 ns, of 10 at D = 1 (Zen 5). */
  @Override
  public void block(
      Operands<?> operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    Batch q = operands.q();
    Batch p = operands.p();
    if (q instanceof DiagonalBatch a && p instanceof DiagonalBatch b) {
      diagonalBlock(a, b, row0, row1, column0, column1, out);
      return;
    }
    for (int i = row0; i < row1; i++) {
      for (int j = column0; j < column1; j++) {
        out.put(i, j, of(q, i, p, j));
      }
    }
  }

  private void diagonalBlock(
      DiagonalBatch q,
      DiagonalBatch p,
      int row0,
      int row1,
      int column0,
      int column1,
      BlockTarget out) {
    long terms = Batch.terms(q, p);
    for (int i = row0; i < row1; i++) {
      for (int j = column0; j < column1; j++) {
        worker.pass(terms);
        out.put(i, j, q == p && i == j ? 0 : PairKl.of(q, i, p, j));
      }
    }
  }

  /** Returns KL(q_i ‖ p_j) by a form that reads nothing that is prepared: the reference of all others. */
  public double stable(Batch q, int i, Batch p, int j) {
    return q instanceof DiagonalBatch a && p instanceof DiagonalBatch b
        ? PairKl.stable(a, i, b, j)
        : full.kl(q, i, p, j);
  }

  /** Returns KL(q_i ‖ N(0, I)). */
  public double toStandardNormal(Batch q, int i) {
    worker.pass(standardTerms(q));
    return switch (q) {
      case DiagonalBatch d -> d.isDeterministic() ? 0 : PairKl.standard(d, i);
      case FullBatch f -> FullPair.standard(f, i);
    };
  }

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

  private static boolean areDiagonal(Batch q, Batch p) {
    return q instanceof DiagonalBatch && p instanceof DiagonalBatch;
  }

  /** Returns KL(q_i ‖ p_j) to {@link #PRECISE_ERROR}, whatever the batches' precision. */
  public double precise(Batch q, int i, Batch p, int j) {
    worker.checkInterrupt(); // all entries of a block may come here
    worker.pass(Batch.terms(q, p));
    return q instanceof DiagonalBatch a && p instanceof DiagonalBatch b
        ? PairKl.precise(a, i, b, j)
        : full.kl(q, i, p, j);
  }

  /** Returns the divergence unrounded where it can be computed, else {@code kl}, which {@link #precise} gave; valid until the next call. */
  public DoubleDoubleKl exact(Batch q, int i, Batch p, int j, double kl) {
    worker.checkInterrupt();
    worker.pass(Batch.terms(q, p));
    if (!(q instanceof DiagonalBatch a
        && p instanceof DiagonalBatch b
        && kl >= Double.MIN_NORMAL
        && exact.compute(a, i, b, j))) {
      exact.set(kl);
    }
    return exact;
  }

  /** Returns the last result of {@link #exact}. */
  public DoubleDoubleKl lastExact() {
    return exact;
  }

  /**
   * Returns the divergence rounded to double, which depends on the two Gaussians alone, not on the kernel, its block or the machine's
   * vectors: the value of exact arithmetic wherever {@link RoundingFilter} or {@link DoubleDoubleKl} decide it, else {@link #precise}; 0
   * for equal parameters.
   */
  public double rounded(Batch q, int i, Batch p, int j) {
    if (q.isDeterministic()) {
      return 0;
    }
    if (q instanceof DiagonalBatch a && p instanceof DiagonalBatch b) {
      worker.checkInterrupt();
      worker.pass(Batch.terms(q, p));
      double kl = filter.kl(a, i, b, j);
      if (kl >= 0) {
        return kl;
      }
    }
    double kl = precise(q, i, p, j);
    return kl < Double.POSITIVE_INFINITY ? exact(q, i, p, j, kl).value : kl;
  }

  /** Whether {@link #precise} takes less time than {@link #rounded}. */
  public static boolean isPreciseFaster(Batch q, Batch p) {
    return areDiagonal(q, p) && !q.isDeterministic() && !p.isDeterministic();
  }

  /** Greatest relative distance of two unrounded divergences that count as equal. */
  public static double tieTolerance(int dimension) {
    return DoubleDoubleKl.tolerance(dimension);
  }

  /** Whether rows i and j of p certainly have equal divergences from any other. */
  public static boolean isSame(Batch p, int i, int j) {
    return p instanceof DiagonalBatch d && d.isEqual(i, d, j);
  }
}
