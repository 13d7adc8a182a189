package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.work.Worker;

/**
 * Computes KL(q_i ‖ p_j): of diagonal Gaussians by {@link PairKl}, of others by {@link FullPair}. As a kernel it serves the vector backend
 * for few dimensions until C2 has compiled the vectors, and for a diagonal batch that is too large to be written out as full factors.
 */
public final class KlPair extends Pair {
  private final FullPair full;
  private final RoundingFilter filter = new RoundingFilter();
  private final DoubleDoubleKl exact = new DoubleDoubleKl();

  public KlPair(Worker worker) {
    super(worker);
    full = new FullPair(worker);
  }

  @Override
  public void clear() {
    full.clear();
    filter.clear();
  }

  @Override
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

  @Override
  public double stable(Batch q, int i, Batch p, int j) {
    return q instanceof DiagonalBatch a && p instanceof DiagonalBatch b
        ? PairKl.stable(a, i, b, j)
        : full.kl(q, i, p, j);
  }

  @Override
  public double toStandardNormal(Batch q, int i) {
    worker.pass(standardTerms(q));
    return switch (q) {
      case DiagonalBatch d -> d.isDeterministic() ? 0 : PairKl.standard(d, i);
      case FullBatch f -> FullPair.standard(f, i);
    };
  }

  @Override
  public double precise(Batch q, int i, Batch p, int j) {
    worker.checkInterrupt(); // all entries of a block may come here
    worker.pass(Batch.terms(q, p));
    return q instanceof DiagonalBatch a && p instanceof DiagonalBatch b
        ? PairKl.precise(a, i, b, j)
        : full.kl(q, i, p, j);
  }

  @Override
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

  @Override
  public DoubleDoubleKl lastExact() {
    return exact;
  }

  /**
   * {@inheritDoc}
   *
   * <p>{@link RoundingFilter} decides it mostly, and {@link DoubleDoubleKl} what that leaves.
   */
  @Override
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
    // of ∞, too, which precise may give a little early
    return exact(q, i, p, j, precise(q, i, p, j)).value;
  }

  @Override
  public boolean isPreciseFaster(Batch q, Batch p) {
    return areDiagonal(q, p) && !q.isDeterministic() && !p.isDeterministic();
  }

  @Override
  public double tolerance(int dimension) {
    return tieTolerance(dimension);
  }

  /** Greatest relative distance of two unrounded KL that count as equal. */
  public static double tieTolerance(int dimension) {
    return DoubleDoubleKl.tolerance(dimension);
  }
}
