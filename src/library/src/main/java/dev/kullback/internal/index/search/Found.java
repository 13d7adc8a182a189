package dev.kullback.internal.index.search;

import dev.kullback.internal.rows.Ranking;
import dev.kullback.internal.rows.SearchOptions;

/**
 * What a search has found for one query: ids and exact divergences in their order, and what is certain of all other references. An object that is
 * used again allocates nothing.
 */
final class Found {
  /** What is to be added to all values here, of points ranked by density. */
  double shift;

  long[] ids = {};
  double[] values = {};
  int count;

  /** Whether this is what there is to find. */
  boolean isComplete;

  /** Least divergence of references that are not among these, as far as is known. */
  double proven;

  /** The same of those that the search has left out though they may count; ∞ if there are none. */
  private double unseen;

  private long[] otherIds = {};
  private double[] otherValues = {};

  /** Greatest divergence of another neighbor that could be among the nearest; ∞ if there may be any. */
  double limit(SearchOptions options, int most) {
    return options.isWithin()
        ? options.radiusWithout(shift)
        : count == most ? values[count - 1] : Double.POSITIVE_INFINITY;
  }

  /**
   * Takes what a search has decided.
   *
   * @param most neighbors that it could find
   * @param all number of references that it was among
   */
  void set(Ranking found, SearchOptions options, int most, long all) {
    count = found.count();
    makeRoom(count);
    found.copy(ids, values);
    unseen = found.unseen();
    isComplete = found.isComplete();
    prove(options, most, all);
  }

  /** Takes what a second search of the query has decided, besides what the first has. */
  void add(Ranking found, SearchOptions options, int most, long all) {
    if (found.isComplete()) {
      set(found, options, most, all);
      return;
    }
    int n = count;
    long[] firstIds = ids;
    double[] firstValues = values;
    ids = otherIds;
    values = otherValues;
    otherIds = firstIds;
    otherValues = firstValues;
    makeRoom(n + found.count());
    int end = options.isWithin() ? ids.length : most;
    int i = 0;
    int j = 0;
    count = 0;
    while (count < end && (i < n || j < found.count())) {
      int order =
          i == n
              ? 1
              : j == found.count()
                  ? -1
                  : order(options, firstValues[i], firstIds[i], found.value(j), found.place(j));
      ids[count] = order <= 0 ? firstIds[i] : found.place(j);
      values[count++] = order <= 0 ? firstValues[i] : found.value(j);
      i += order <= 0 ? 1 : 0;
      j += order >= 0 ? 1 : 0;
    }
    unseen = Math.max(unseen, found.unseen());
    isComplete = unseen > limit(options, most);
    prove(options, most, all);
  }

  private static int order(
      SearchOptions options, double value, long id, double otherValue, long otherId) {
    int byValue = options.isWithin() ? 0 : Double.compare(value, otherValue);
    return byValue != 0 ? byValue : Long.compare(id, otherId);
  }

  private void prove(SearchOptions options, int most, long all) {
    proven =
        isComplete && count == all
            ? Double.POSITIVE_INFINITY
            : Math.min(unseen, limit(options, most));
  }

  private void makeRoom(int n) {
    if (ids.length < n) {
      ids = new long[n];
      values = new double[n];
    }
  }

  /** Drops the arrays if they have more elements than are to be kept. */
  void trim(int mostKept) {
    if (Math.max(ids.length, otherIds.length) > mostKept) {
      ids = new long[0];
      values = new double[0];
      otherIds = new long[0];
      otherValues = new double[0];
    }
  }
}
