package dev.kullback.internal.rows;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Columns of one row and their values: a list that grows. A search for the k nearest adds what may be among them, and drops what
 * cannot whenever the list is full: the nearest k come first then, and behind them those that the error of the values leaves as
 * near.
 */
final class Candidates {
  /** Makes a rest, of half an ulp at most, positive, as sorting needs it. */
  private static final double REST_SHIFT = 0x1p-52;

  int[] index = {};
  double[] value = {};
  int count;

  /** In a search: what is not less is not among the nearest k, however the errors fall; ∞ when not known. */
  double cut;

  private final KeySort scratch;
  private int k;

  /** How many a search holds before it drops some, whatever memory an earlier one has left. */
  private int room;

  private double error;

  Candidates(KeySort scratch) {
    this.scratch = scratch;
  }

  /** Begins a list. */
  void clear() {
    count = 0;
  }

  /**
   * Begins a search, whose columns come in order.
   *
   * @param columns how many at most
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

  /** What a search begins with. */
  static int room(int k) {
    return (int) Math.min(Integer.MAX_VALUE - 8, k + Math.max(64, k / 2L));
  }

  /** How many it may hold by now. */
  int room() {
    return room;
  }

  void append(int j, double kl) {
    if (count == index.length) {
      ensureCapacity((int) Math.min(count + Math.max(64, count / 2L), Integer.MAX_VALUE - 8));
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

  /** What an entry of a search must be at most to count. */
  double limit() {
    return isOpen() ? Double.POSITIVE_INFINITY : Math.nextDown(cut);
  }

  private boolean isOpen() {
    return count < k && cut == Double.POSITIVE_INFINITY;
  }

  /** Tells a search, still empty, of values no greater than some of those to come, one each: the k-th smallest bounds the search. */
  void bound(double[] least, int n) {
    scratch.ensureCapacity(n);
    for (int g = 0; g < n; g++) {
      scratch.keys[g] = bits(least[g]);
    }
    scratch.sort(n);
    cut = bound(Double.longBitsToDouble(scratch.keys[k - 1]), error);
  }

  /** The {@link #cut} of a search in which nothing beyond that value counts. */
  static double bound(double farthest, double error) {
    // the greater of 0 and of subnormal numbers
    return Math.max(cut(farthest, error), Math.nextUp(farthest));
  }

  /** Whether a search has nothing yet, nor a bound. */
  boolean isUnbounded() {
    return count == 0 && cut == Double.POSITIVE_INFINITY;
  }

  private double cut(double farthest) {
    return cut(farthest, error);
  }

  private static double cut(double farthest, double error) {
    return farthest * (1 + error) / (1 - error);
  }

  /** Adds an entry to a search if it may be among the nearest k. */
  void offer(int j, double kl) {
    if (kl < cut || isOpen()) {
      if (count == room && count > k) {
        drop();
      }
      if (count == room) {
        enlarge();
      }
      append(j, kl);
    }
  }

  private void enlarge() {
    room = (int) Math.min(count + (count >> 1) + 64L, Integer.MAX_VALUE - 8);
    ensureCapacity(room);
  }

  /** Sorts, and drops what is not among the nearest k, however the errors fall. */
  private void drop() {
    sort();
    cut = cut(value[k - 1]);
    keepBelow(cut);
    if (count > room - (room >> 2)) { // or it would be full again at once
      enlarge();
    }
  }

  /** Drops, of a sorted list, all behind the nearest k that are not below. */
  private void keepBelow(double cut) {
    int kept = k;
    while (kept < count && value[kept] < cut) {
      kept++;
    }
    count = kept;
  }

  /** The nearest k and those that may be, ascending. */
  void finish() {
    if (count < k) {
      throw new AssertionError(count + " of " + k + " found");
    }
    drop();
  }

  /** The same of a search that may find fewer than k. */
  void finishFewer() {
    if (count >= k) {
      drop();
    } else {
      sort();
    }
  }

  /** The same of a part of a search, in any order where it found fewer. */
  void finishPart() {
    if (count >= k) {
      drop();
    }
  }

  /** After {@link #finish}, if the values were made certain: drops all but the nearest k. */
  void keepNearest() {
    count = k;
    cut = cut(value[k - 1]);
  }

  /** Drops, of a sorted list of values with this error, what is not among the nearest k. */
  void keepNearest(double error) {
    keepBelow(cut(value[k - 1], error));
  }

  /** Lets go of arrays that are large, for a list that is done. */
  void trim() {
    if (index.length > KeySort.MOST_KEPT) {
      count = 0;
      index = new int[0];
      value = new double[0];
    }
  }

  /** Before {@link #setUnrounded}: no value leaves a rest. */
  void beginUnrounded() {
    scratch.ensureCapacity(count);
    Arrays.fill(scratch.rest, 0, count, REST_SHIFT);
  }

  /** Gives the candidate at s the value {@code kl·(1 + rest)}. */
  void setUnrounded(int s, double kl, double rest) {
    value[s] = kl;
    scratch.rest[s] = REST_SHIFT + rest;
  }

  /**
   * Ascending by the unrounded values. Neighbors within the tolerance, relative, count as equal, and so do all that these join: they come
   * by index, and have one value.
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

  /** Relative distance of two that are next to each other; NaN for zeros and infinities. */
  private double distance(int a, int b) {
    return (value[b] - value[a]) / value[a] + (scratch.rest[b] - scratch.rest[a]);
  }

  /** Ascending, ties by index. */
  void sort() {
    if (!isSorted()) {
      sort(value, null, 0, count);
    }
  }

  /** As what a device has sorted is. */
  private boolean isSorted() {
    for (int s = 1; s < count; s++) {
      if (!NeighborLists.isBefore(value[s - 1], index[s - 1], value[s], index[s])) {
        return false;
      }
    }
    return true;
  }

  /**
   * What is sorted is the leading bits of each value, those in which they differ first, with its place behind them; then what agrees in
   * those by the bits behind, and equal ones by their rests if they have any, and by index.
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

  /** In the order of the values, none of which is negative; −0 would be. */
  private static long bits(double kl) {
    return Double.doubleToRawLongBits(kl + 0.0);
  }
}
