package dev.kullback;

import org.jspecify.annotations.Nullable;

/**
 * The k nearest columns of each row. A row keeps what may be among them by the kernels' error bound, k candidates and the
 * uncertain ones; at the end those that the bound does not tell apart are recomputed.
 */
final class NearestRows extends RowReduction {
  private static final int[] NONE = {};

  private @Nullable Gaussians q;
  private @Nullable Gaussians p;
  private int k;
  private boolean others;
  private int[] indices = NONE;
  private float @Nullable [] out32;
  private double @Nullable [] out64;
  private double error;

  /** Describes a call; {@code others} leaves out j = i. */
  void set(
      Gaussians q,
      Gaussians p,
      int k,
      boolean others,
      int[] indices,
      float @Nullable [] out32,
      double @Nullable [] out64) {
    this.q = q;
    this.p = p;
    this.k = k;
    this.others = others;
    this.indices = indices;
    this.out32 = out32;
    this.out64 = out64;
    error = Ranks.error(q, p);
  }

  /** Drops the caller's arrays and batches. */
  void clear() {
    q = p = null;
    indices = NONE;
    out32 = null;
    out64 = null;
  }

  @Override
  void begin(int row0, int row1, Tile t) {
    int most = batch(p).size();
    for (int i = 0; i < row1 - row0; i++) {
      Candidates c = t.candidates(i);
      c.clear();
      c.ensureCapacity((int) Math.min(most, k + 64L));
    }
  }

  @Override
  void block(int row0, int row1, int column0, int column1, Tile t) {
    double[] kl = t.block64();
    for (int i = row0; i < row1; i++) {
      Candidates c = t.candidates(i - row0);
      int shift = (i - row0) * (column1 - column0) - column0;
      if (others && i >= column0 && i < column1) {
        scan(kl, shift, column0, i, c);
        scan(kl, shift, i + 1, column1, c);
      } else {
        scan(kl, shift, column0, column1, c);
      }
    }
  }

  /** {@code kl[shift + j]} for columns j in [from, to). */
  private void scan(double[] kl, int shift, int from, int to, Candidates c) {
    int j = from;
    for (; j < to && c.count < k; j++) {
      c.offer(j, kl[shift + j], k, error);
    }
    double cut = c.cut;
    while (j < to) {
      while (j + 8 <= to && isNoneLess(kl, shift + j, cut)) {
        j += 8;
      }
      for (int end = Math.min(j + 8, to); j < end; j++) {
        if (kl[shift + j] < cut) {
          c.offer(j, kl[shift + j], k, error);
          cut = c.cut;
        }
      }
    }
  }

  /** Of eight: one branch instead of one each saves up to 1.5 ns an entry (Zen 5). */
  @SuppressWarnings("ShortCircuitBoolean")
  private static boolean isNoneLess(double[] kl, int at, double cut) {
    return !(kl[at] < cut
        | kl[at + 1] < cut
        | kl[at + 2] < cut
        | kl[at + 3] < cut
        | kl[at + 4] < cut
        | kl[at + 5] < cut
        | kl[at + 6] < cut
        | kl[at + 7] < cut);
  }

  @Override
  void end(int row0, int row1, Tile t) {
    Gaussians a = batch(q);
    Gaussians b = batch(p);
    for (int i = row0; i < row1; i++) {
      Candidates c = t.candidates(i - row0);
      c.finish(k);
      if (decide(c, a, i, b, t)) {
        c.sort();
      }
      int to = i * k;
      System.arraycopy(c.index, 0, indices, to, k);
      for (int r = 0; r < k; r++) {
        if (out32 != null) {
          out32[to + r] = (float) c.value[r];
        } else if (out64 != null) {
          out64[to + r] = c.value[r];
        }
      }
    }
  }

  /** Recomputes the candidates, sorted, whose order is uncertain; whether there are any. */
  private boolean decide(Candidates c, Gaussians q, int i, Gaussians p, Tile t) {
    boolean any = false;
    boolean touchesLast = false;
    for (int s = 0; s < c.count; s++) {
      double kl = c.value[s];
      boolean touchesNext = s + 1 < c.count && c.value[s + 1] * (1 - error) <= kl * (1 + error);
      if ((touchesLast || touchesNext) && kl > 0 && kl < Double.POSITIVE_INFINITY) {
        c.value[s] = Ranks.kl(q, i, p, c.index[s], t);
        any = true;
      }
      touchesLast = touchesNext;
    }
    return any;
  }

  private static Gaussians batch(@Nullable Gaussians batch) {
    if (batch == null) {
      throw new AssertionError("no call");
    }
    return batch;
  }
}
