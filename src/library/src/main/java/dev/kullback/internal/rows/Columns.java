package dev.kullback.internal.rows;

import java.util.Arrays;
import java.util.BitSet;
import java.util.function.LongPredicate;

/** The columns that each row of a search may find: those whose ids the options accept, but for its own if it leaves that out. */
final class Columns {
  private final BitSet refused = new BitSet();

  /** Number of columns, and of those that are not refused. */
  private int size;

  private int accepted;
  private long skip;

  /**
   * Asks the options' filter, if they have one, about each column.
   *
   * @param look called before each question, as a filter may take long; it may throw
   */
  void set(SearchOptions options, int columns, Runnable look) {
    size = columns;
    skip = options.skip();
    refused.clear();
    long first = options.firstColumn();
    for (long id : options.excluded()) {
      if (id >= first && id < first + columns) {
        refused.set((int) (id - first));
      }
    }
    long[] among = options.among();
    if (among != null) {
      refused.set(0, columns);
      for (long id : among) {
        if (id >= first
            && id < first + columns
            && Arrays.binarySearch(options.excluded(), id) < 0) {
          refused.clear((int) (id - first));
        }
      }
    }
    LongPredicate filter = options.filter();
    for (int j = 0; j < columns && filter != null; j++) {
      look.run();
      if (!refused.get(j) && !filter.test(first + j)) {
        refused.set(j);
      }
    }
    accepted = columns - refused.cardinality();
  }

  /** Whether none is refused, be it a row's own. */
  boolean areAll() {
    return accepted == size;
  }

  int accepted() {
    return accepted;
  }

  boolean accepts(int j) {
    return areAll() || !refused.get(j);
  }

  /** Whether row i may find column j. */
  boolean has(int i, int j) {
    return j != i + skip && accepts(j);
  }

  /** Number of columns that row i may find. */
  int count(int i) {
    int own = leftOut(i);
    return own >= 0 && accepts(own) ? accepted - 1 : accepted;
  }

  /** The column that row i leaves out, or −1. */
  int leftOut(int i) {
    long j = i + skip;
    return j >= 0 && j < size ? (int) j : -1;
  }

  /** Puts +∞ in the place of refused columns among the values of [column0, column1), {@code kl[from…]}. */
  void blank(double[] kl, int from, int column0, int column1) {
    for (int j = areAll() ? -1 : refused.nextSetBit(column0);
        j >= 0 && j < column1;
        j = refused.nextSetBit(j + 1)) {
      kl[from + j - column0] = Double.POSITIVE_INFINITY;
    }
  }
}
