package dev.kullback;

import org.jspecify.annotations.Nullable;

/**
 * The k nearest columns of each row. A row keeps what may be among them by the kernels' error bound, k candidates and the
 * uncertain ones; at the end those that the bound does not tell apart are recomputed.
 */
final class NearestRows extends RowReduction {
  private static final int[] NONE = {};

  /**
   * For each neighbor, in how many groups the first block of a row is dealt to bound the search: some 1.2 k of its values then pass, instead
   * of the first k and k ln(width / k) after them. One that passes costs as much as 100 that do not (Zen 5).
   */
  private static final int GROUPS = 3;

  /** As four vectors of 512 bits have. */
  private static final int GROUPS_AT_A_TIME = 32;

  static final int MOST_GROUPS = KlEngine.REDUCED_COLUMNS / 4;

  /** Of a band, 4 MiB of them; a band has 8 rows at least. */
  private static final int MOST_CANDIDATES = 1 << 18;

  /** Candidates beyond k from which on they are settled, so that a list has an end whatever the columns. */
  private static final int MOST_UNCERTAIN = 4096;

  private @Nullable Gaussians q;
  private @Nullable Gaussians p;
  private int k;
  private boolean others;
  private boolean reverse;
  private int[] indices = NONE;
  private float @Nullable [] out32;
  private double @Nullable [] out64;
  private double error;

  /** Describes a call; {@code others} leaves out j = i, {@code reverse} ranks by {@code KL(p_j ‖ q_i)}. */
  void set(
      Gaussians q,
      Gaussians p,
      int k,
      boolean others,
      boolean reverse,
      int[] indices,
      float @Nullable [] out32,
      double @Nullable [] out64) {
    this.q = q;
    this.p = p;
    this.k = k;
    this.others = others;
    this.reverse = reverse;
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
  boolean isReverse() {
    return reverse;
  }

  @Override
  int bandRows() {
    int rows = Math.clamp(MOST_CANDIDATES / k, KlEngine.ROW_PANEL, KlEngine.BAND_ROWS);
    return rows - rows % KlEngine.ROW_PANEL;
  }

  @Override
  void begin(int row0, int row1, Tile t) {
    int columns = batch(p).size();
    for (int i = 0; i < row1 - row0; i++) {
      t.candidates(i).search(k, columns, error);
    }
  }

  @Override
  void block(int row0, int row1, int column0, int column1, Tile t) {
    double[] kl = t.block64();
    int width = column1 - column0;
    for (int i = row0; i < row1; i++) {
      Candidates c = t.candidates(i - t.band);
      int from = (i - row0) * width;
      if (others && i >= column0 && i < column1) {
        scan(kl, from, i, column0, i, c, t);
        scan(kl, from + i + 1 - column0, i, i + 1, column1, c, t);
      } else {
        scan(kl, from, i, column0, column1, c, t);
      }
    }
  }

  /** {@code kl[from…]} is of row i, columns [column0, column1). */
  private void scan(double[] kl, int from, int i, int column0, int column1, Candidates c, Tile t) {
    int width = column1 - column0;
    long groups = Math.ceilDiv((long) GROUPS * k, GROUPS_AT_A_TIME) * GROUPS_AT_A_TIME;
    if (c.count == 0 && groups <= width / 4) {
      t.scan.leastOfGroups(kl, from, from + width, (int) groups, t.least);
      c.bound(t.least, (int) groups);
    }
    int[] at = t.positions(width);
    int count = t.scan.atMost(c.limit(), kl, from, from + width, at);
    for (int s = 0; s < count; s++) {
      c.offer(column0 + at[s], kl[from + at[s]]);
    }
    if (c.count - k > Math.max(MOST_UNCERTAIN, k)) {
      c.finish();
      settle(c, i, t);
      c.keepNearest();
    }
  }

  @Override
  void end(int row0, int row1, Tile t) {
    for (int i = row0; i < row1; i++) {
      Candidates c = t.candidates(i - row0);
      c.finish();
      settle(c, i, t);
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

  /** Recomputes the candidates, sorted, whose order is uncertain, and those it still is of once more. */
  private void settle(Candidates c, int i, Tile t) {
    if (recompute(c, i, error, false, t)) {
      c.sort();
      c.beginUnrounded();
      if (recompute(c, i, Ranks.PRECISE_ERROR, true, t)) {
        c.sortUnrounded(ExactKl.tolerance(batch(p).dimension()));
      }
    }
  }

  /** Recomputes those that are not farther from a neighbor than the error; whether there are any. */
  private boolean recompute(Candidates c, int i, double error, boolean exact, Tile t) {
    Gaussians a = batch(q);
    Gaussians b = batch(p);
    boolean any = false;
    boolean touchesLast = false;
    int last = -1;
    for (int s = 0; s < c.count; s++) {
      double kl = c.value[s];
      boolean touchesNext = s + 1 < c.count && c.value[s + 1] * (1 - error) <= kl * (1 + error);
      if ((touchesLast || touchesNext) && kl > 0 && kl < Double.POSITIVE_INFINITY) {
        int j = c.index[s];
        boolean repeats = touchesLast && last >= 0 && Ranks.isSame(b, last, j);
        if (exact) {
          ExactKl x = repeats ? t.exact : Ranks.exact(a, i, b, j, reverse, kl, t);
          c.setUnrounded(s, x.value, x.rest);
        } else {
          c.value[s] = repeats ? c.value[s - 1] : Ranks.precise(a, i, b, j, reverse, t);
        }
        last = j;
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
