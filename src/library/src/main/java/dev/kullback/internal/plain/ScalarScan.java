package dev.kullback.internal.plain;

import dev.kullback.internal.kernel.RowScan;

/** Without vectors; scans with vectors use it for what remains. */
public final class ScalarScan implements RowScan {
  /** Of terms beyond, 2³¹ do not reach half an ulp of the greatest, 1. */
  public static final double NEGLIGIBLE = -60;

  @Override
  public int atMost(double limit, double[] values, int from, int to, int[] at) {
    return atMost(limit, values, from, from, to, at, 0);
  }

  /** From position {@code j} on, where {@code count} were found before. */
  public static int atMost(
      double limit, double[] values, int from, int j, int to, int[] at, int count) {
    int found = count;
    for (; j < to; j++) {
      if (values[j] <= limit) {
        at[found++] = j - from;
      }
    }
    return found;
  }

  @Override
  public void leastOfGroups(double[] values, int from, int to, int groups, double[] least) {
    System.arraycopy(values, from, least, 0, groups);
    for (int j = from + groups; j + groups <= to; j += groups) {
      for (int g = 0; g < groups; g++) {
        least[g] = Math.min(least[g], values[j + g]);
      }
    }
  }

  @Override
  public double min(double[] values, int from, int to) {
    double min = Double.POSITIVE_INFINITY;
    for (int j = from; j < to; j++) {
      min = Math.min(min, values[j]);
    }
    return min;
  }

  @Override
  public double sum(double[] values, int from, int to) {
    double sum = 0;
    for (int j = from; j < to; j++) {
      sum += values[j];
    }
    return sum;
  }

  @Override
  public double sumExp(double shift, double[] values, int from, int to) {
    double sum = 0;
    for (int j = from; j < to; j++) {
      double x = shift - values[j];
      if (x > NEGLIGIBLE) {
        sum += Math.exp(x);
      }
    }
    return sum;
  }

  /** By insertion. */
  @Override
  public void sortFew(long[] keys, int from, int to) {
    for (int s = from + 1; s < to; s++) {
      long key = keys[s];
      int at = s;
      for (; at > from && keys[at - 1] > key; at--) {
        keys[at] = keys[at - 1];
      }
      keys[at] = key;
    }
  }
}
