package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.Results;

/** Computes divergences pair by pair: the matrix's diagonal, chosen pairs, and divergences from N(0, I). Used by one thread. */
public class Pairs {
  protected final Pair pair;

  public Pairs(Pair pair) {
    this.pair = pair;
  }

  /** Stores {@code KL(q_i ‖ p_i)} for i in [from, to). */
  public void aligned(Batch q, Batch p, int from, int to, Results out) {
    for (int i = from; i < to; i++) {
      out.put(i, pair.of(q, i, p, i));
    }
  }

  /** Stores {@code KL(q_{i[r]} ‖ p_{j[r]})} for r in [from, to). */
  public final void pairs(Batch q, int[] i, Batch p, int[] j, int from, int to, Results out) {
    for (int r = from; r < to; r++) {
      out.put(r, pair.of(q, i[r], p, j[r]));
    }
  }

  /** Stores {@code KL(q_i ‖ N(0, I))} for i in [from, to). */
  public void standard(Batch q, int from, int to, Results out) {
    for (int i = from; i < to; i++) {
      out.put(i, pair.toStandardNormal(q, i));
    }
  }
}
