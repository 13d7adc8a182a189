package dev.kullback.internal.kernel;

/** Operations of reductions on a piece {@code values[from…to)} of a row, none of which is NaN. */
public interface RowScan {
  /** Stores the positions of the values ≤ {@code limit}, less {@code from}, ascending, and returns their number. */
  int atMost(double limit, double[] values, int from, int to, int[] at);

  /**
   * Deals the values into groups and stores the least of each: the k-th smallest of these is no less than that of the values. Values
   * of an incomplete last deal may be left out. The number of groups is a multiple of 32, at most {@code to − from}.
   */
  void leastOfGroups(double[] values, int from, int to, int groups, double[] least);

  double min(double[] values, int from, int to);

  double sum(double[] values, int from, int to);

  /** {@code Σ exp(shift − values[j])} for a shift that is at most their minimum; terms below e⁻⁶⁰ may be left out. */
  double sumExp(double shift, double[] values, int from, int to);

  /** Keys that {@link #sortFew} sorts at most. */
  int FEW = 64;

  /** Sorts {@code keys[from…to)}, none of them negative. */
  void sortFew(long[] keys, int from, int to);
}
