package dev.kullback.internal.plain;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.kernel.Results;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;

/** Computes divergences pair by pair: the matrix's diagonal, chosen pairs, and divergences from N(0, I). Used by one thread. */
public class Pairs {
  private final Worker worker;
  private final FullPair pair;

  public Pairs(Worker worker, FullPair pair) {
    this.worker = worker;
    this.pair = pair;
  }

  /** Stores {@code KL(q_i ‖ p_i)} for i in [from, to). */
  public void aligned(Batch q, Batch p, int from, int to, Results out) {
    for (int i = from; i < to; i++) {
      alignedPair(q, p, i, out);
    }
  }

  protected final void alignedPair(Batch q, Batch p, int i, Results out) {
    out.put(i, kl(q, i, p, i));
  }

  /** Stores {@code KL(q_{i[r]} ‖ p_{j[r]})} for r in [from, to). */
  public void pairs(Batch q, int[] i, Batch p, int[] j, int from, int to, Results out) {
    for (int r = from; r < to; r++) {
      out.put(r, kl(q, i[r], p, j[r]));
    }
  }

  private double kl(Batch q, int i, Batch p, int j) {
    worker.pass(Batch.terms(q, p));
    return q.isDeterministic() || (q == p && i == j)
        ? 0
        : q instanceof DiagonalBatch a && p instanceof DiagonalBatch b
            ? PairKl.of(a, i, b, j)
            : pair.kl(q, i, p, j);
  }

  /** Stores {@code KL(q_i ‖ N(0, I))} for i in [from, to). */
  public void standard(Batch q, int from, int to, Results out) {
    for (int i = from; i < to; i++) {
      pass(standardTerms(q));
      out.put(i, standardKl(q, i));
    }
  }

  private static double standardKl(Batch q, int i) {
    return switch (q) {
      case DiagonalBatch d -> d.isDeterministic() ? 0 : PairKl.standard(d, i);
      case FullBatch f -> FullPair.standard(f, i);
    };
  }

  /** Terms that a divergence of {@link #standard} counts at a {@link Checkpoint}. */
  public static long standardTerms(Batch q) {
    long d = q.dimension();
    return Checkpoint.PLAIN * (q instanceof FullBatch ? d * d : d);
  }

  protected final void pass(long terms) {
    worker.pass(terms);
  }
}
