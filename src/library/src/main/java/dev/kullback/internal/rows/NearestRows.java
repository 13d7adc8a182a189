package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.Results;
import dev.kullback.internal.kernel.RowAnswer;
import dev.kullback.internal.kernel.RowQuery;
import dev.kullback.internal.plain.DoubleDoubleKl;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The k nearest columns of each row. A row keeps what may be among them by the kernels' error bound, k candidates and the
 * uncertain ones; at the end those that the bound does not tell apart are recomputed, or in an exact search all.
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

  /** What else is asked, if anything, and where each row's neighbors then go. */
  private @Nullable NearestQuery search;

  private int[] start = NONE;
  private int[] indices = NONE;
  private @Nullable Results values;
  private double error;

  /** Where bands are cut into spans: of each row and span {@code room} columns, their values, and how many there are or −1 for too many. */
  private int spans;

  private int room;
  private int[] partialIndex = NONE;
  private double[] partialValue = {};
  private int[] partialCount = NONE;

  /** Describes a call; {@code others} leaves out j = i, {@code reverse} ranks by {@code KL(p_j ‖ q_i)}. */
  public void set(
      Batch q, Batch p, int k, boolean others, boolean reverse, int[] indices, Results values) {
    this.q = q;
    this.p = p;
    this.k = k;
    this.others = others;
    this.reverse = reverse;
    this.indices = indices;
    this.values = values;
    error = ExactOrder.error(q, p);
  }

  /** Describes a call whose row i goes to {@code start[i] … start[i + 1] − 1}. */
  public void set(
      Batch q, Batch p, NearestQuery search, int[] start, int[] indices, Results values) {
    set(q, p, Math.min(search.k(), p.size()), search.others(), search.reverse(), indices, values);
    this.search = search;
    this.start = start;
  }

  /** Drops the caller's arrays and batches. */
  public void clear() {
    q = p = null;
    search = null;
    start = NONE;
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
  public void begin(int row0, int row1, BandState band) {
    int columns = batch(p).size();
    for (int i = 0; i < row1 - row0; i++) {
      Candidates c = band.candidates(i);
      c.search(k, columns, error);
      c.cut = limit(row0 + i);
    }
  }

  @Override
  public RowQuery query() {
    long skip =
        !others ? RowQuery.NONE : search == null ? 0 : (long) search.firstRow() - search.first();
    return RowQuery.nearest(k, error, skip, this::limit);
  }

  /** What an entry of row i is at most to count, as far as is known before the search. */
  private double limit(int i) {
    NeighborLists earlier = earlier();
    return earlier == null || earlier.count(i) < wanted()
        ? Double.POSITIVE_INFINITY
        : Candidates.bound(earlier.values()[earlier.start()[i] + wanted() - 1], error);
  }

  @Override
  public boolean take(RowAnswer answer, int i, int piece, BandState band) {
    Candidates c = band.candidates(i - band.first);
    boolean all = band.take(answer, i, piece, c::offer);
    settleMany(c, i, band);
    return all;
  }

  @Override
  public void block(int row0, int row1, int column0, int column1, double[] kl, BandState band) {
    int width = column1 - column0;
    for (int i = row0; i < row1; i++) {
      Candidates c = band.candidates(i - band.first);
      if (isTooMany(c, band)) {
        continue;
      }
      int from = (i - row0) * width;
      int own = leftOut(i);
      if (own >= column0 && own < column1) {
        scan(kl, from, i, column0, own, c, band);
        scan(kl, from + own + 1 - column0, i, own + 1, column1, c, band);
      } else {
        scan(kl, from, i, column0, column1, c, band);
      }
    }
  }

  /** {@code kl[from…]} is of row i, columns [column0, column1). */
  private void scan(
      double[] kl, int from, int i, int column0, int column1, Candidates c, BandState band) {
    int width = column1 - column0;
    long groups = Math.ceilDiv((long) GROUPS * k, GROUPS_AT_A_TIME) * GROUPS_AT_A_TIME;
    if (c.isUnbounded() && groups <= Math.min(width / 4, MOST_GROUPS)) {
      band.scan.leastOfGroups(kl, from, from + width, (int) groups, band.least);
      c.bound(band.least, (int) groups);
    }
    int[] at = band.positions(width);
    int count = band.scan.atMost(c.limit(), kl, from, from + width, at);
    for (int s = 0; s < count; s++) {
      c.offer(column0 + at[s], kl[from + at[s]]);
    }
    settleMany(c, i, band);
  }

  private void settleMany(Candidates c, int i, BandState band) {
    if (c.count > most() && band.isWhole()) {
      c.finish();
      if (c.count > most()) {
        decide(c, i, band);
        c.keepNearest();
      }
    }
  }

  /** Whether a span has more candidates of a row than it may. */
  private boolean isTooMany(Candidates c, BandState band) {
    return !band.isWhole() && c.room() > room;
  }

  /** Keeps what a span has. */
  private void endSpan(int row0, int row1, BandState band) {
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
  public boolean merge(int row0, int row1, BandState band) {
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
  public void end(int row0, int row1, BandState band) {
    if (!band.isWhole()) {
      endSpan(row0, row1, band);
      return;
    }
    Results out = Objects.requireNonNull(values);
    for (int i = row0; i < row1; i++) {
      Candidates c = band.candidates(i - row0);
      if (search == null) {
        c.finish();
      } else {
        c.finishFewer();
      }
      decide(c, i, band);
      if (search == null) {
        put(c, i * k, k, out);
      } else {
        put(c, i, search, out);
      }
    }
  }

  /** The n nearest. */
  private void put(Candidates c, int to, int n, Results out) {
    System.arraycopy(c.index, 0, indices, to, n);
    for (int r = 0; r < n; r++) {
      out.put(to + r, c.value[r]);
    }
  }

  /** The nearest of these and the earlier ones. */
  private void put(Candidates c, int i, NearestQuery search, Results out) {
    int first = search.first();
    NeighborLists earlier = search.earlier();
    int a = earlier == null ? 0 : earlier.start()[i];
    int end = earlier == null ? 0 : earlier.start()[i + 1];
    int s = 0;
    for (int to = start[i]; to < start[i + 1]; to++) {
      if (earlier != null
          && a < end
          && (s == c.count
              || NeighborLists.isBefore(
                  earlier.values()[a], earlier.indices()[a], c.value[s], first + c.index[s]))) {
        indices[to] = earlier.indices()[a];
        out.put(to, earlier.values()[a++]);
      } else if (s < c.count) {
        indices[to] = first + c.index[s];
        out.put(to, c.value[s++]);
      } else {
        throw new AssertionError("row %d has fewer than it should".formatted(i));
      }
    }
  }

  private @Nullable NeighborLists earlier() {
    return search == null ? null : search.earlier();
  }

  /** How many neighbors a row gets where there are as many. */
  private int wanted() {
    return search == null ? k : search.k();
  }

  /** The column that row i leaves out, or −1. */
  private int leftOut(int i) {
    return search != null ? search.leftOut(i, batch(p).size()) : others ? i : -1;
  }

  /** Puts the candidates, sorted, in the order that they have. */
  private void decide(Candidates c, int i, BandState band) {
    if (search != null && search.exact()) {
      round(c, i, band);
    } else {
      settle(c, i, band);
    }
  }

  /** Gives the nearest candidates their exact values, rounded. */
  private void round(Candidates c, int i, BandState band) {
    Batch a = batch(q);
    Batch b = batch(p);
    if (c.count > 2 * (long) k && ExactOrder.isPreciseFaster(a, b)) {
      for (int s = 0; s < c.count; s++) {
        c.value[s] =
            repeats(c, s, b) ? c.value[s - 1] : band.ranks.precise(a, i, b, c.index[s], reverse);
      }
      c.sort();
      c.keepNearest(ExactOrder.PRECISE_ERROR);
    }
    for (int s = 0; s < c.count; s++) {
      c.value[s] =
          repeats(c, s, b) ? c.value[s - 1] : band.ranks.rounded(a, i, b, c.index[s], reverse);
    }
    c.sort();
    c.count = Math.min(c.count, k);
  }

  /** Whether a candidate is certainly as far as the one before it. */
  private static boolean repeats(Candidates c, int s, Batch p) {
    return s > 0 && ExactOrder.isSame(p, c.index[s - 1], c.index[s]);
  }

  /** Recomputes the candidates, sorted, whose order is uncertain, and those it still is of once more. */
  private void settle(Candidates c, int i, BandState band) {
    if (recompute(c, i, error, false, band)) {
      c.sort();
      c.beginUnrounded();
      if (recompute(c, i, ExactOrder.PRECISE_ERROR, true, band)) {
        c.sortUnrounded(DoubleDoubleKl.tolerance(batch(p).dimension()));
      }
    }
  }

  /** Recomputes those that are not farther from a neighbor than the error; whether there are any. */
  private boolean recompute(Candidates c, int i, double error, boolean exact, BandState band) {
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
        boolean repeats = touchesLast && last >= 0 && ExactOrder.isSame(b, last, j);
        if (exact) {
          DoubleDoubleKl x =
              repeats ? band.ranks.last() : band.ranks.exact(a, i, b, j, reverse, kl);
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
