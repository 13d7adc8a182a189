package dev.kullback.internal.rows;

import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.kernel.RowAnswer;
import dev.kullback.internal.kernel.RowScan;
import java.util.Arrays;

/** The state of a reduction in the band of rows that a thread is at, and its working memory. */
public final class BandState {
  /** A {@link #span} that is all columns. */
  public static final int WHOLE = -1;

  /** First row of the band. */
  int first;

  /** Number of the span of the band's columns, if the call cuts bands so, or {@link #WHOLE}. */
  int span;

  RowScan scan;

  final double[] least = new double[NearestRows.MOST_GROUPS];

  /** Divergences of the row that is asked for, from columns. */
  final Source source;

  private int[] positions = {};
  private double[] values = {};
  private final KeySort sorting;
  private Ranking[] rankings = {};

  /** Rankings that the call has used. */
  private int used;

  private double[] state = {};

  public BandState(RowScan scan, Pair pair) {
    this.scan = scan;
    source = new Source(pair);
    sorting = new KeySort(scan);
  }

  /** Begins a band, or a span of its columns; {@code exchanged}, of a call that exchanges the roles of rows and columns. */
  public void begin(int row, int span, boolean exchanged) {
    first = row;
    this.span = span;
    source.turn(exchanged);
  }

  /** Goes through rows by another scan from now on: with vectors, say, once they are compiled. */
  public void use(RowScan scan) {
    this.scan = scan;
    sorting.use(scan);
  }

  boolean isWhole() {
    return span == WHOLE;
  }

  /** The ranking of row i of the band. */
  Ranking ranking(int i) {
    if (rankings.length <= i) {
      int length = rankings.length;
      rankings = Arrays.copyOf(rankings, Math.max(i + 1, RowReduction.BLOCK_ROWS));
      for (int k = length; k < rankings.length; k++) {
        rankings[k] = new Ranking(sorting);
      }
    }
    used = Math.max(used, i + 1);
    return rankings[i];
  }

  /** Scratch for that many positions. */
  int[] positions(int length) {
    if (positions.length < length) {
      positions = new int[length];
    }
    return positions;
  }

  /** Takes a row's entries. */
  interface Entries {
    void add(int j, double kl);
  }

  /** Hands over an answer's entries of row i in a piece; returns whether the answer has them all. */
  boolean take(RowAnswer answer, int i, int piece, Entries entries) {
    int count = answer.count(i, piece);
    if (count > values.length) {
      values = new double[count];
    }
    int[] index = positions(count);
    if (count > 0) {
      answer.copy(i, piece, index, values);
    }
    for (int s = 0; s < count; s++) {
      entries.add(index[s], values[s]);
    }
    return count >= 0;
  }

  /** Returns at least {@code length} numbers, which last as long as the band. */
  double[] state(int length) {
    if (state.length < length) {
      state = new double[length];
    }
    return state;
  }

  /** Drops large arrays and the batches after a call. */
  public void trim() {
    for (; used > 0; used--) {
      rankings[used - 1].trim(KeySort.MOST_KEPT);
    }
    sorting.trim();
    source.clear();
  }
}
