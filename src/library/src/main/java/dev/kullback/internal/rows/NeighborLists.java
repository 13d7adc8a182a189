package dev.kullback.internal.rows;

import java.util.Arrays;
import java.util.function.IntUnaryOperator;

/**
 * Some columns of each row and their values, as compressed sparse rows: row i has the entries {@code start[i]} to
 * {@code start[i + 1] − 1}.
 */
public record NeighborLists(int[] start, int[] indices, double[] values) {
  /** Lists of n rows of these lengths, to be filled. */
  public static NeighborLists ofCounts(int n, IntUnaryOperator count) {
    int[] start = new int[n + 1];
    for (int i = 0; i < n; i++) {
      start[i + 1] = start[i] + count.applyAsInt(i);
    }
    return new NeighborLists(start, new int[start[n]], new double[start[n]]);
  }

  public int size() {
    return start.length - 1;
  }

  public int count(int i) {
    return start[i + 1] - start[i];
  }

  /** The first entry of row i that is not behind the one before it by value and then index; −1 if all are. */
  public int disorder(int i) {
    return disorder(values, indices, start[i], start[i + 1]);
  }

  /** The first entry of [from, to) that is not behind the one before it; −1 if all are. */
  static int disorder(double[] values, int[] indices, int from, int to) {
    for (int s = from + 1; s < to; s++) {
      if (!isBefore(values[s - 1], indices[s - 1], values[s], indices[s])) {
        return s;
      }
    }
    return -1;
  }

  /** Whether neighbor i of value a comes before j of value b: by value, and then index. */
  static boolean isBefore(double a, int i, double b, int j) {
    return a < b || (a == b && i < j);
  }

  /** Number of neighbors of row i in all lists, or k if that is less. */
  public static int count(int i, int k, NeighborLists... lists) {
    long count = 0;
    for (NeighborLists list : lists) {
      count += list.count(i);
    }
    return (int) Math.min(k, count);
  }

  /** Merges lists whose rows are in order; keeps the first k of each row. */
  public static NeighborLists merge(int k, NeighborLists... lists) {
    int n = lists[0].size();
    NeighborLists merged = ofCounts(n, i -> count(i, k, lists));
    int[] at = new int[lists.length];
    for (int i = 0; i < n; i++) {
      for (int l = 0; l < lists.length; l++) {
        at[l] = lists[l].start[i];
      }
      for (int to = merged.start[i]; to < merged.start[i + 1]; to++) {
        int first = -1;
        for (int l = 0; l < lists.length; l++) {
          if (at[l] < lists[l].start[i + 1]
              && (first < 0 || lists[l].isBefore(at[l], lists[first], at[first]))) {
            first = l;
          }
        }
        merged.indices[to] = lists[first].indices[at[first]];
        merged.values[to] = lists[first].values[at[first]++];
      }
    }
    return merged;
  }

  private boolean isBefore(int s, NeighborLists other, int t) {
    return isBefore(values[s], indices[s], other.values[t], other.indices[t]);
  }

  /** An index that row i of several lists has twice, or −1. */
  public static int duplicate(int i, NeighborLists... lists) {
    int count = 0;
    for (NeighborLists list : lists) {
      count = Math.addExact(count, list.count(i));
    }
    int[] all = new int[count];
    int to = 0;
    for (NeighborLists list : lists) {
      System.arraycopy(list.indices, list.start[i], all, to, list.count(i));
      to += list.count(i);
    }
    Arrays.sort(all);
    for (int s = 1; s < all.length; s++) {
      if (all[s] == all[s - 1]) {
        return all[s];
      }
    }
    return -1;
  }
}
