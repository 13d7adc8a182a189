package dev.kullback.internal.rows;

import dev.kullback.internal.kernel.RowScan;
import java.util.Arrays;

/**
 * Sorts keys, and holds the working memory that the {@link Ranking}s of a thread share for it. {@link Arrays#sort(long[])} allocates from
 * 44 keys on.
 */
public final class KeySort {
  /** Capacity that lasts from call to call. */
  public static final int MOST_KEPT = 1 << 16;

  /** Keys that are merged between two looks: some µs. */
  private static final int STEPS = 1 << 10;

  private RowScan scan;
  private final Runnable look;

  /** Keys to sort, none negative. */
  long[] keys = {};

  private long[] merged = {};
  long[] place = {};
  double[] value = {};

  /** Relative remainders of a list's rounded values, shifted to be positive. */
  double[] rest = {};

  public KeySort(RowScan scan) {
    this(scan, () -> {});
  }

  /**
   * Sorts with a scan.
   *
   * @param look called now and then, as millions of keys take a second; it may throw, and what is sorted is lost
   */
  public KeySort(RowScan scan, Runnable look) {
    this.scan = scan;
    this.look = look;
  }

  /** Sorts by another scan from now on. */
  public void use(RowScan other) {
    scan = other;
  }

  void ensureCapacity(int capacity) {
    if (place.length < capacity) {
      int most =
          capacity <= MOST_KEPT ? MOST_KEPT : 1 << 30; // what is kept is to do for the next call
      int length = Math.max(capacity, Math.min(2 * place.length, most));
      keys = new long[length];
      merged = new long[length];
      place = new long[length];
      value = new double[length];
      rest = new double[length];
    }
  }

  /** Drops the arrays, if they are large. */
  public void trim() {
    if (place.length > MOST_KEPT) {
      keys = new long[0];
      merged = new long[0];
      place = new long[0];
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
  private void merge(long[] from, int low, int middle, int high, long[] to) {
    int i = low;
    int j = middle;
    int s = low;
    while (i < middle && j < high) {
      int steps = Math.min(Math.min(middle - i, high - j), STEPS);
      for (int end = s + steps; s < end; s++) {
        long a = from[i];
        long b = from[j];
        long less = (a - b) >> 63; // −1 if a < b, else 0
        to[s] = b + ((a - b) & less);
        i -= (int) less;
        j += 1 + (int) less;
      }
      if (steps == STEPS) {
        look.run();
      }
    }
    System.arraycopy(from, i, to, s, middle - i);
    System.arraycopy(from, j, to, s + middle - i, high - j);
  }
}
