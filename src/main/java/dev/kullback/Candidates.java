package dev.kullback;

import java.util.Arrays;

/** Columns of one row and their values: a list that grows. Of a search for the nearest k, those that may still be among them. */
final class Candidates {
  int[] index = {};
  double[] value = {};
  int count;

  /** What the exact values of k candidates do not exceed. */
  double bound;

  void clear() {
    count = 0;
    bound = Double.POSITIVE_INFINITY;
  }

  void ensureCapacity(int capacity) {
    if (index.length < capacity) {
      index = Arrays.copyOf(index, capacity);
      value = Arrays.copyOf(value, capacity);
    }
  }

  void add(int j, double kl) {
    if (count == index.length) {
      ensureCapacity(Math.max(64, (int) Math.min(2L * count, Integer.MAX_VALUE - 8)));
    }
    index[count] = j;
    value[count++] = kl;
  }

  /**
   * Sorts, and drops what is not among the k nearest.
   *
   * @param error relative error of the values
   */
  void prune(int k, double error) {
    sort();
    if (count > k) {
      bound = value[k - 1] * (1 + error);
      int kept = k;
      while (kept < count && value[kept] * (1 - error) < bound) {
        kept++;
      }
      count = kept;
    }
  }

  /** Heapsort, ascending, ties by index: in place, and never slow. */
  void sort() {
    for (int i = count / 2 - 1; i >= 0; i--) {
      sift(i, count);
    }
    for (int end = count - 1; end > 0; end--) {
      int j = index[0];
      double kl = value[0];
      index[0] = index[end];
      value[0] = value[end];
      index[end] = j;
      value[end] = kl;
      sift(0, end);
    }
  }

  private void sift(int root, int end) {
    int j = index[root];
    double kl = value[root];
    int at = root;
    for (int child = 2 * at + 1; child < end; child = 2 * at + 1) {
      if (child + 1 < end
          && isBefore(value[child], index[child], value[child + 1], index[child + 1])) {
        child++;
      }
      if (!isBefore(kl, j, value[child], index[child])) {
        break;
      }
      index[at] = index[child];
      value[at] = value[child];
      at = child;
    }
    index[at] = j;
    value[at] = kl;
  }

  private static boolean isBefore(double a, int i, double b, int j) {
    return a < b || (a == b && i < j);
  }
}
