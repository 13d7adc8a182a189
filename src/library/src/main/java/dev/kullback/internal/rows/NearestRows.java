package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.Output;
import dev.kullback.internal.plain.ExactKl;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The k nearest columns of each row. A row keeps what may be among them by the kernels' error bound, k candidates and the
 * uncertain ones; at the end those that the bound does not tell apart are recomputed.
 */
public final class NearestRows extends RowReduction {
  private static final int[] NONE = {};

  /**
   * For each neighbor, in how many groups the first block of a row is dealt to bound the search: some 1.2 k of its values then pass,
   * instead of the first k and k ln(width / k) after them. One that passes costs as much as 100 that do not (Zen 5).
   */
  private static final int GROUPS = 3;

  /** As four vectors of 512 bits have. */
  private static final int GROUPS_AT_A_TIME = 32;

  static final int MOST_GROUPS = BLOCK_COLUMNS / 4;

  /** Of a band, 4 MiB of them; a band has 8 rows at least. */
  private static final int MOST_CANDIDATES = 1 << 18;

  /** Candidates beyond k, or k if that is more, from which on they are settled, so that a list has an end whatever the columns. */
  private static final int MOST_UNCERTAIN = 4096;

  /** Candidates that all spans of a call keep, 48 MiB. */
  private static final long MOST_PARTIAL = 1 << 22;

  private @Nullable Batch q;
  private @Nullable Batch p;
  private int k;
  private boolean others;
  private boolean reverse;
  private int[] indices = NONE;
  private @Nullable Output values;
  private double error;

  /** Where bands are cut into spans: of each row and span {@code room} columns, their values, and how many there are or −1 for too many. */
  private int spans;

  private int room;
  private int[] partialIndex = NONE;
  private double[] partialValue = {};
  private int[] partialCount = NONE;

  /** Describes a call; {@code others} leaves out j = i, {@code reverse} ranks by {@code KL(p_j ‖ q_i)}. */
  public void set(
      Batch q, Batch p, int k, boolean others, boolean reverse, int[] indices, Output values) {
    this.q = q;
    this.p = p;
    this.k = k;
    this.others = others;
    this.reverse = reverse;
    this.indices = indices;
    this.values = values;
    error = Ranks.error(q, p);
  }

  /** Drops the caller's arrays and batches. */
  public void clear() {
    q = p = null;
    indices = NONE;
    values = null;
    if (partialIndex.length > KeySort.MOST_KEPT) {
      partialIndex = NONE;
      partialValue = new double[0];
    }
  }

  /** Candidates that a row may have without being settled. */
  private int most() {
    return (int) Math.min(Integer.MAX_VALUE, k + (long) Math.max(MOST_UNCERTAIN, k));
  }

  /** So many that those of all spans together are not settled: whether a row is must not depend on the spans. */
  @Override
  public int mostSpans() {
    long room = 4L * Candidates.room(Math.min(k, MOST_UNCERTAIN)) * batch(q).size();
    return Math.clamp(MOST_PARTIAL / room, 1, Math.max(1, most() / Candidates.room(k)));
  }

  @Override
  public void cut(int rows, int spans) {
    this.spans = spans;
    room = Math.min(most() / spans, 4 * Candidates.room(Math.min(k, MOST_UNCERTAIN)));
    int length = rows * spans;
    if (spans > 1 && partialCount.length < length) {
      partialCount = new int[length];
    }
    if (spans > 1 && partialIndex.length < length * room) {
      double[] value = new double[length * room]; // may be too large; then both stay
      partialIndex = new int[length * room];
      partialValue = value;
    }
  }

  @Override
  public boolean isReverse() {
    return reverse;
  }

  @Override
  public int bandRows() {
    int rows = Math.clamp(MOST_CANDIDATES / k, BlockKernel.ROW_PANEL, BAND_ROWS);
    return rows - rows % BlockKernel.ROW_PANEL;
  }

  @Override
  public void begin(int row0, int row1, Band band) {
    int columns = batch(p).size();
    for (int i = 0; i < row1 - row0; i++) {
      band.candidates(i).search(k, columns, error);
    }
  }

  @Override
  public void block(int row0, int row1, int column0, int column1, double[] kl, Band band) {
    int width = column1 - column0;
    for (int i = row0; i < row1; i++) {
      Candidates c = band.candidates(i - band.first);
      if (isTooMany(c, band)) {
        continue;
      }
      int from = (i - row0) * width;
      if (others && i >= column0 && i < column1) {
        scan(kl, from, i, column0, i, c, band);
        scan(kl, from + i + 1 - column0, i, i + 1, column1, c, band);
      } else {
        scan(kl, from, i, column0, column1, c, band);
      }
    }
  }

  /** {@code kl[from…]} is of row i, columns [column0, column1). */
  private void scan(
      double[] kl, int from, int i, int column0, int column1, Candidates c, Band band) {
    int width = column1 - column0;
    long groups = Math.ceilDiv((long) GROUPS * k, GROUPS_AT_A_TIME) * GROUPS_AT_A_TIME;
    if (c.count == 0 && groups <= width / 4) {
      band.scan.leastOfGroups(kl, from, from + width, (int) groups, band.least);
      c.bound(band.least, (int) groups);
    }
    int[] at = band.positions(width);
    int count = band.scan.atMost(c.limit(), kl, from, from + width, at);
    for (int s = 0; s < count; s++) {
      c.offer(column0 + at[s], kl[from + at[s]]);
    }
    if (c.count > most() && band.isWhole()) {
      c.finish();
      if (c.count > most()) {
        settle(c, i, band);
        c.keepNearest();
      }
    }
  }

  /** Whether a span has more candidates of a row than it may. */
  private boolean isTooMany(Candidates c, Band band) {
    return !band.isWhole() && c.room() > room;
  }

  /** Keeps what a span has. */
  private void endSpan(int row0, int row1, Band band) {
    for (int i = row0; i < row1; i++) {
      Candidates c = band.candidates(i - row0);
      int part = i * spans + band.span;
      partialCount[part] = -1;
      if (!isTooMany(c, band)) {
        c.finishPart();
        partialCount[part] = c.count;
        System.arraycopy(c.index, 0, partialIndex, part * room, c.count);
        System.arraycopy(c.value, 0, partialValue, part * room, c.count);
      }
    }
  }

  @Override
  public boolean merge(int row0, int row1, Band band) {
    for (int part = row0 * spans; part < row1 * spans; part++) {
      if (partialCount[part] < 0) {
        return false;
      }
    }
    begin(row0, row1, band);
    for (int i = row0; i < row1; i++) {
      Candidates c = band.candidates(i - row0);
      for (int part = i * spans; part < (i + 1) * spans; part++) {
        for (int at = part * room; at < part * room + partialCount[part]; at++) {
          c.offer(partialIndex[at], partialValue[at]);
        }
      }
    }
    end(row0, row1, band);
    return true;
  }

  @Override
  public void end(int row0, int row1, Band band) {
    if (!band.isWhole()) {
      endSpan(row0, row1, band);
      return;
    }
    Output out = Objects.requireNonNull(values);
    for (int i = row0; i < row1; i++) {
      Candidates c = band.candidates(i - row0);
      c.finish();
      settle(c, i, band);
      int to = i * k;
      System.arraycopy(c.index, 0, indices, to, k);
      for (int r = 0; r < k; r++) {
        out.put(to + r, c.value[r]);
      }
    }
  }

  /** Recomputes the candidates, sorted, whose order is uncertain, and those it still is of once more. */
  private void settle(Candidates c, int i, Band band) {
    if (recompute(c, i, error, false, band)) {
      c.sort();
      c.beginUnrounded();
      if (recompute(c, i, Ranks.PRECISE_ERROR, true, band)) {
        c.sortUnrounded(ExactKl.tolerance(batch(p).dimension()));
      }
    }
  }

  /** Recomputes those that are not farther from a neighbor than the error; whether there are any. */
  private boolean recompute(Candidates c, int i, double error, boolean exact, Band band) {
    Batch a = batch(q);
    Batch b = batch(p);
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
          ExactKl x = repeats ? band.ranks.last() : band.ranks.exact(a, i, b, j, reverse, kl);
          c.setUnrounded(s, x.value, x.rest);
        } else {
          c.value[s] = repeats ? c.value[s - 1] : band.ranks.precise(a, i, b, j, reverse);
        }
        last = j;
        any = true;
      }
      touchesLast = touchesNext;
    }
    return any;
  }

  private static Batch batch(@Nullable Batch batch) {
    return Objects.requireNonNull(batch);
  }
}
