package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.Results;
import dev.kullback.internal.kernel.RowAnswer;
import dev.kullback.internal.kernel.RowQuery;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Finds the k nearest columns of each row. A row keeps the candidates that may be among them by the kernels' error bound. At the row's end,
 * those whose order is uncertain are recomputed; in an exact search, all are.
 */
public final class NearestRows extends RowSearch {
  /** Start of lists of k neighbors in every row: row i begins at {@code i*k}. */
  public static final int[] EVEN = {};

  private static final int[] NONE = {};

  /**
   * Groups for each neighbor into which a row's first block is dealt to bound the search. Some 1.2 k of its values then pass the bound;
   * without it the first k pass and k ln(width / k) after them. One that passes costs as much as 100 that do not (Zen 5).
   */
  private static final int GROUPS = 3;

  /** The number of groups is a multiple of this, the doubles of four vectors of 512 bits, as {@code RowScan.leastOfGroups} asks for. */
  private static final int GROUPS_AT_A_TIME = 32;

  static final int MOST_GROUPS = BLOCK_COLUMNS / 4;

  /** Candidates of a band, 4 MiB; a band has 8 rows at least. */
  private static final int MOST_CANDIDATES = 1 << 18;

  /** Candidates beyond k, or k if that is more, from which on they are ordered at once, so that a list ends whatever the columns. */
  private static final int MOST_UNCERTAIN = 4096;

  /** Candidates that all spans of a call keep, 48 MiB. */
  private static final long MOST_PARTIAL = 1 << 22;

  /** The greatest number of a row's neighbors among p's, at least 1. */
  private int k;

  private int[] start = EVEN;
  private int[] indices = NONE;
  private @Nullable Results values;
  private int spans;

  /** Candidates that a span may keep of a row. */
  private int room;

  /** Candidates that each span keeps of each row: how many, −1 if there is no room for them; columns; values. */
  private int[] partialCount = NONE;

  private int[] partialIndex = NONE;
  private double[] partialValue = {};

  /** Describes a call; {@link #into} is to follow. */
  @Override
  public void set(Batch q, Batch p, SearchOptions options, double shift, Runnable look) {
    super.set(q, p, options, shift, look);
    k = Math.clamp(columns.accepted(), 1, options.k());
  }

  /** Number of neighbors of row i: as many as the options ask for, or all if they are fewer. */
  public int count(int i) {
    NeighborLists earlier = options.earlier();
    long all = columns.count(i) + (earlier == null ? 0L : earlier.count(i));
    return (int) Math.min(options.k(), all);
  }

  /**
   * Sets where the neighbors go.
   *
   * @param start row i goes to {@code start[i] … start[i + 1] − 1}, or {@link #EVEN}
   */
  public void into(int[] start, int[] indices, Results values) {
    this.start = start;
    this.indices = indices;
    this.values = values;
  }

  /** Drops the caller's arrays, batches and options. */
  @Override
  public void clear() {
    super.clear();
    start = EVEN;
    indices = NONE;
    values = null;
    if (partialIndex.length > KeySort.MOST_KEPT) {
      partialIndex = NONE;
      partialValue = new double[0];
    }
  }

  private int start(int i) {
    return start == EVEN ? i * options.k() : start[i];
  }

  /** Candidates up to which a row need not order them before its end. */
  private int most() {
    return (int) Math.min(Integer.MAX_VALUE, k + (long) Math.max(MOST_UNCERTAIN, k));
  }

  /** Bounds the spans so that a row's candidates of all are at most {@link #most()}: its early ordering must not depend on the spans. */
  @Override
  public int mostSpans() {
    long room = 4L * Ranking.roomOfValues(Math.min(k, MOST_UNCERTAIN)) * q().size();
    return Math.clamp(MOST_PARTIAL / room, 1, Math.max(1, most() / Ranking.roomOfValues(k)));
  }

  @Override
  public void cut(int rows, int spans) {
    this.spans = spans;
    room = Math.min(most() / spans, 4 * Ranking.roomOfValues(Math.min(k, MOST_UNCERTAIN)));
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
  public int bandRows() {
    int rows = Math.clamp(MOST_CANDIDATES / k, BlockKernel.ROW_PANEL, BAND_ROWS);
    return rows - rows % BlockKernel.ROW_PANEL;
  }

  @Override
  public void begin(int row0, int row1, BandState band) {
    int most = p().size();
    for (int i = 0; i < row1 - row0; i++) {
      band.ranking(i).startNearest(k, most, error, cut(row0 + i));
    }
  }

  /** A kernel would bound rows by columns that are refused, too. */
  @Override
  public @Nullable RowQuery query() {
    return columns.areAll() ? RowQuery.nearest(k, error, options.skip(), this::cut) : null;
  }

  /** Value that an entry of row i must be below to count, by the earlier lists. */
  private double cut(int i) {
    NeighborLists earlier = options.earlier();
    return earlier == null || earlier.count(i) < options.k()
        ? Double.POSITIVE_INFINITY
        : Ranking.cutOfAll(earlier.values()[earlier.start()[i] + options.k() - 1], error);
  }

  @Override
  public boolean take(RowAnswer answer, int i, int piece, BandState band) {
    Ranking c = band.ranking(i - band.first);
    boolean all = band.take(answer, i, piece, c::offer);
    orderMany(c, i, band);
    return all;
  }

  @Override
  public void block(int row0, int row1, int column0, int column1, double[] kl, BandState band) {
    int width = column1 - column0;
    for (int i = row0; i < row1; i++) {
      Ranking c = band.ranking(i - band.first);
      if (isTooMany(c, band)) {
        continue;
      }
      int from = (i - row0) * width;
      int own = columns.leftOut(i);
      if (own >= column0 && own < column1) {
        scan(kl, from, i, column0, own, c, band);
        scan(kl, from + own + 1 - column0, i, own + 1, column1, c, band);
      } else {
        scan(kl, from, i, column0, column1, c, band);
      }
    }
  }

  /** Takes the entries of row i and columns [column0, column1), {@code kl[from…]}. */
  private void scan(
      double[] kl, int from, int i, int column0, int column1, Ranking c, BandState band) {
    int width = column1 - column0;
    long groups = Math.ceilDiv((long) GROUPS * k, GROUPS_AT_A_TIME) * GROUPS_AT_A_TIME;
    if (c.isUnbounded() && groups <= Math.min(width / 4, MOST_GROUPS)) {
      columns.blank(kl, from, column0, column1);
      band.scan.leastOfGroups(kl, from, from + width, (int) groups, band.least);
      c.limitByGroups(band.least, (int) groups);
    }
    int[] at = band.positions(width);
    int count = band.scan.atMost(c.limit(), kl, from, from + width, at);
    for (int s = 0; s < count; s++) {
      if (columns.accepts(column0 + at[s])) {
        c.offer(column0 + at[s], kl[from + at[s]]);
      }
    }
    orderMany(c, i, band);
  }

  /** Orders a row's candidates, if there are too many to keep, and drops all but the nearest k. */
  private void orderMany(Ranking c, int i, BandState band) {
    if (c.count() > most() && band.isWhole()) {
      c.prune();
      if (c.count() > most()) {
        order(c, i, band);
        c.keepNearest();
      }
    }
  }

  /** Puts candidates, sorted by the kernels' values, in their order. */
  private void order(Ranking c, int i, BandState band) {
    if (options.exact()) {
      c.decideNearest(source(i, band));
    } else {
      c.order(source(i, band));
    }
  }

  /** Whether a span has more candidates of a row than it may. */
  private boolean isTooMany(Ranking c, BandState band) {
    return !band.isWhole() && c.room > room;
  }

  /** Keeps a span's candidates for {@link #merge}. */
  private void endSpan(int row0, int row1, BandState band) {
    for (int i = row0; i < row1; i++) {
      Ranking c = band.ranking(i - row0);
      int part = i * spans + band.span;
      partialCount[part] = -1;
      if (!isTooMany(c, band)) {
        c.prune();
        partialCount[part] = c.count();
        c.copy(partialIndex, partialValue, part * room);
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
      Ranking c = band.ranking(i - row0);
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
    for (int i = row0; i < row1; i++) {
      Ranking c = band.ranking(i - row0);
      c.prune();
      order(c, i, band);
      put(c, i);
    }
  }

  /** Writes the nearest of the candidates, in order, and the earlier list. */
  private void put(Ranking c, int i) {
    Results out = Objects.requireNonNull(values);
    int first = options.firstColumn();
    NeighborLists earlier = options.earlier();
    int a = earlier == null ? 0 : earlier.start()[i];
    int s = 0;
    int found = c.count();
    for (int to = start(i), end = to + count(i); to < end; to++) {
      if (earlier != null
          && a < earlier.start()[i + 1]
          && (s == found
              || NeighborLists.isBefore(
                  earlier.values()[a],
                  earlier.indices()[a],
                  c.value(s),
                  first + (int) c.place(s)))) {
        indices[to] = earlier.indices()[a];
        out.put(to, earlier.values()[a++]);
      } else if (s < found) {
        indices[to] = first + (int) c.place(s);
        out.put(to, c.value(s++) + shift);
      } else {
        throw new AssertionError("row %d has fewer than it should".formatted(i));
      }
    }
  }
}
