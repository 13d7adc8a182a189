package dev.kullback.internal.rows;

import dev.kullback.internal.kernel.RowScan;
import java.util.Arrays;

/**
 * Sorts keys, and holds the working memory that the {@link Candidates} of a thread share for it. {@link Arrays#sort(long[])} allocates from
 * 44 keys on.
 */
final class KeySort {
  /** Capacity that lasts from call to call. */
  static final int MOST_KEPT = 1 << 16;

  private RowScan scan;

  /** Keys to sort, none negative. */
  long[] keys = {};

  private long[] merged = {};
  int[] index = {};
  double[] value = {};

  /** Relative remainders of a list's rounded values, shifted to be positive. */
  double[] rest = {};

  KeySort(RowScan scan) {
    this.scan = scan;
  }

  void use(RowScan other) {
    scan = other;
  }

  void ensureCapacity(int capacity) {
    if (index.length < capacity) {
      int length = Math.max(capacity, Math.min(2 * index.length, 1 << 30));
      keys = new long[length];
      merged = new long[length];
      index = new int[length];
      value = new double[length];
      rest = new double[length];
    }
  }

  /** Drops the arrays, if they are large. */
  void trim() {
    if (index.length > MOST_KEPT) {
      keys = new long[0];
      merged = new long[0];
      index = new int[0];
      value = new double[0];
      rest = new double[0];
    }
  }

  /** Sorts the first n keys. */
  void sort(int n) {
    for (int low = 0; low < n; low += RowScan.FEW) {
      scan.sortFew(keys, low, Math.min(low + RowScan.FEW, n));
    }
    for (int width = RowScan.FEW; width < n; width *= 2) {
      for (int low = 0; low < n; low += 2 * width) {
        merge(keys, low, Math.min(low + width, n), Math.min(low + 2 * width, n), merged);
      }
      long[] sorted = merged;
      merged = keys;
      keys = sorted;
    }
  }

  /** Merges without a branch on the keys, which would be mispredicted every other time. */
  private static void merge(long[] from, int low, int middle, int high, long[] to) {
    int i = low;
    int j = middle;
    int s = low;
    while (i < middle && j < high) {
      long a = from[i];
      long b = from[j];
      long less = (a - b) >> 63; // −1 if a < b, else 0
      to[s++] = b + ((a - b) & less);
      i -= (int) less;
      j += 1 + (int) less;
    }
    System.arraycopy(from, i, to, s, middle - i);
    System.arraycopy(from, j, to, s + middle - i, high - j);
  }
}
