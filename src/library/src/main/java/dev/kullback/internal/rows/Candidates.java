package dev.kullback.internal.rows;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * A growing list of columns of one row and their values. A search for the k nearest adds the columns that may be among them. Whenever
 * the list is full, it drops those that cannot be: the k smallest values remain and those that the values' error leaves as near.
 */
final class Candidates {
  /** Added to a rest, at most half an ulp, to make it positive, as sorting needs it. */
  private static final double REST_SHIFT = 0x1p-52;

  int[] index = {};
  double[] value = {};
  int count;

  /** Value from which on a column is not among the nearest k, however the errors fall; ∞ when not known. */
  double cut;

  private final KeySort scratch;
  private int k;

  /** Columns that the list holds before it grows, or a search drops some; the arrays of an earlier search may be longer. */
  int room;

  private double error;

  Candidates(KeySort scratch) {
    this.scratch = scratch;
  }

  /** Begins a list. */
  void clear() {
    count = 0;
    room = index.length;
  }

  /**
   * Begins a search, whose columns come in order.
   *
   * @param columns number of columns at most
   * @param error relative error of the values
   */
  void search(int k, int columns, double error) {
    this.k = k;
    this.error = error;
    count = 0;
    cut = Double.POSITIVE_INFINITY;
    // The longer the list the fewer selections, each of which takes time in its length.
    room = Math.min(columns, room(k));
    ensureCapacity(room);
  }

  /** Columns that a search holds at first. */
  static int room(int k) {
    return (int) Math.min(Integer.MAX_VALUE - 8, k + Math.max(64, k / 2L));
  }

  void append(int j, double kl) {
    if (count == room) {
      enlarge();
    }
    index[count] = j;
    value[count++] = kl;
  }

  private void ensureCapacity(int capacity) {
    if (index.length < capacity) {
      index = Arrays.copyOf(index, capacity);
      value = Arrays.copyOf(value, capacity);
    }
  }

  /** Greatest value that counts in the search. */
  double limit() {
    return isOpen() ? Double.POSITIVE_INFINITY : Math.nextDown(cut);
  }

  private boolean isOpen() {
    return count < k && cut == Double.POSITIVE_INFINITY;
  }

  /** Sets the cut of an empty search from minima of groups of values to come: their k-th smallest bounds the k-th nearest value. */
  void bound(double[] least, int n) {
    scratch.ensureCapacity(n);
    for (int g = 0; g < n; g++) {
      scratch.keys[g] = bits(least[g]);
    }
    scratch.sort(n);
    cut = cut(Double.longBitsToDouble(scratch.keys[k - 1]), error);
  }

  /** The {@link #cut} of a search whose k-th nearest value is at most that one; greater than it even if that is 0 or subnormal. */
  static double cut(double farthest, double error) {
    return Math.max(cutBehind(farthest, error), Math.nextUp(farthest));
  }

  /** The {@link #cut} behind a k-th nearest value that the list has: columns as far as it come later, and lose to it. */
  private static double cutBehind(double farthest, double error) {
    return farthest * (1 + error) / (1 - error);
  }

  /** Whether a search has neither a column nor a cut. */
  boolean isUnbounded() {
    return count == 0 && cut == Double.POSITIVE_INFINITY;
  }

  /** Adds a column to a search if it may be among the nearest k. */
  void offer(int j, double kl) {
    if (kl < cut || isOpen()) {
      if (count == room && count > k) {
        drop();
      }
      append(j, kl);
    }
  }

  private void enlarge() {
    room = (int) Math.min(count + (count >> 1) + 64L, Integer.MAX_VALUE - 8);
    ensureCapacity(room);
  }

  /** Sorts, and drops the columns that are not among the nearest k, however the errors fall. */
  private void drop() {
    sort();
    cut = cutBehind(value[k - 1], error);
    keepBelow(cut);
    if (count > room - (room >> 2)) { // or it would be full again at once
      enlarge();
    }
  }

  /** Drops from a sorted list the columns behind the nearest k that are not below a cut. */
  private void keepBelow(double cut) {
    int kept = k;
    while (kept < count && value[kept] < cut) {
      kept++;
    }
    count = kept;
  }

  /** Sorts the list and keeps the nearest k, or all if they are fewer, and those that may be among them. */
  void finish() {
    if (count >= k) {
      drop();
    } else {
      sort();
    }
  }

  /** Drops all but the nearest k from a list whose order is certain. */
  void keepNearest() {
    count = k;
    cut = cutBehind(value[k - 1], error);
  }

  /** Drops from a sorted list of values with this error the columns that are not among the nearest k. */
  void keepNearest(double error) {
    keepBelow(cutBehind(value[k - 1], error));
  }

  /** Drops the arrays of a list that is done, if they are large. */
  void trim() {
    if (index.length > KeySort.MOST_KEPT) {
      count = 0;
      index = new int[0];
      value = new double[0];
    }
  }

  /** Prepares for {@link #setUnrounded}: all rests are 0. */
  void beginUnrounded() {
    scratch.ensureCapacity(count);
    Arrays.fill(scratch.rest, 0, count, REST_SHIFT);
  }

  /** Gives the column at s the value {@code kl·(1 + rest)}. */
  void setUnrounded(int s, double kl, double rest) {
    value[s] = kl;
    scratch.rest[s] = REST_SHIFT + rest;
  }

  /**
   * Sorts by the unrounded values, ascending. Neighbors within the relative tolerance count as equal, and so do chains of such neighbors:
   * they are sorted by index and get one value.
   */
  void sortUnrounded(double tolerance) {
    sort(value, scratch.rest, 0, count);
    for (int s = 0, end; s < count; s = end) {
      end = s + 1;
      while (end < count && distance(end - 1, end) <= tolerance) {
        end++;
      }
      if (end - s > 1) {
        Arrays.fill(value, s, end, value[s]);
        sortIndex(s, end);
      }
    }
  }

  /** Relative distance of two neighboring values; NaN for zeros and infinities. */
  private double distance(int a, int b) {
    return (value[b] - value[a]) / value[a] + (scratch.rest[b] - scratch.rest[a]);
  }

  /** Sorts by value, ascending, and equal values by index. */
  void sort() {
    if (NeighborLists.disorder(value, index, 0, count) >= 0) { // a device's answer is sorted
      sort(value, null, 0, count);
    }
  }

  /**
   * Sorts by {@code by}: first by the leading bits in which the values differ, with their places in the low bits of the keys. Values that
   * agree in these are sorted by the bits behind, and equal ones by their rests, if there are any, and by index.
   */
  private void sort(double[] by, double @Nullable [] rest, int from, int to) {
    int n = to - from;
    long least = Long.MAX_VALUE;
    long greatest = 0;
    for (int s = from; s < to; s++) {
      long bits = bits(by[s]);
      least = Math.min(least, bits);
      greatest = Math.max(greatest, bits);
    }
    scratch.ensureCapacity(n);
    if (least >= greatest) {
      if (rest == null || by == rest) {
        sortIndex(from, to);
      } else {
        sort(rest, rest, from, to);
      }
      return;
    }
    int place = 32 - Integer.numberOfLeadingZeros(n);
    int range = 64 - Long.numberOfLeadingZeros(greatest - least);
    int dropped = Math.max(0, range + place - 63);
    for (int s = 0; s < n; s++) {
      scratch.keys[s] = (bits(by[from + s]) - least) >>> dropped << place | s;
    }
    scratch.sort(n);
    int mask = (1 << place) - 1;
    for (int s = 0; s < n; s++) {
      int at = from + ((int) scratch.keys[s] & mask);
      scratch.index[s] = index[at];
      scratch.value[s] = value[at];
    }
    System.arraycopy(scratch.index, 0, index, from, n);
    System.arraycopy(scratch.value, 0, value, from, n);
    if (rest != null) {
      for (int s = 0; s < n; s++) {
        scratch.value[s] = rest[from + ((int) scratch.keys[s] & mask)];
      }
      System.arraycopy(scratch.value, 0, rest, from, n);
    }
    for (int s = from, end; s < to; s = end) {
      long leading = (bits(by[s]) - least) >>> dropped;
      end = s + 1;
      while (end < to && (bits(by[end]) - least) >>> dropped == leading) {
        end++;
      }
      if (end - s > 1) {
        sort(by, rest, s, end);
      }
    }
  }

  private void sortIndex(int from, int to) {
    for (int s = from; s < to; s++) {
      scratch.keys[s - from] = index[s];
    }
    scratch.sort(to - from);
    for (int s = from; s < to; s++) {
      index[s] = (int) scratch.keys[s - from];
    }
  }

  /** Bits that are ordered as the values are, none of which is negative; −0 would be. */
  private static long bits(double kl) {
    return Double.doubleToRawLongBits(kl + 0.0);
  }
}
