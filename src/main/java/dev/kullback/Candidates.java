package dev.kullback;

import java.util.Arrays;

/**
 * Columns of one row and their values: a list that grows. In a search for the nearest k, the first k are a heap of the nearest so
 * far, the farthest at its root, and behind it lie those that the error of the values leaves as near.
 */
final class Candidates {
  int[] index = {};
  double[] value = {};
  int count;

  /** In a search: what is not less is not among the nearest k, however the errors fall. */
  double cut;

  void clear() {
    count = 0;
    cut = Double.POSITIVE_INFINITY;
  }

  void ensureCapacity(int capacity) {
    if (index.length < capacity) {
      index = Arrays.copyOf(index, capacity);
      value = Arrays.copyOf(value, capacity);
    }
  }

  void append(int j, double kl) {
    if (count == index.length) {
      ensureCapacity(Math.max(64, (int) Math.min(2L * count, Integer.MAX_VALUE - 8)));
    }
    index[count] = j;
    value[count++] = kl;
  }

  /**
   * Adds one of the columns, which come in order: of the first k any, later one less than {@link #cut}.
   *
   * @param error relative error of the values
   */
  void offer(int j, double kl, int k, double error) {
    if (count < k) {
      append(j, kl);
      if (count == k) {
        heapify(k);
        setCut(error);
      }
    } else if (kl < value[0]) { // an equal one has a greater index
      int last = index[0];
      double farthest = value[0];
      index[0] = j;
      value[0] = kl;
      sift(0, k);
      setCut(error);
      appendUncertain(last, farthest, k);
    } else {
      appendUncertain(j, kl, k);
    }
  }

  private void setCut(double error) {
    cut = value[0] * (1 + error) / (1 - error);
  }

  private void appendUncertain(int j, double kl, int k) {
    if (kl < cut) {
      if (count == index.length) {
        dropCertain(k);
        ensureCapacity((int) Math.min(count + (count >> 1) + 64L, Integer.MAX_VALUE - 8));
      }
      append(j, kl);
    }
  }

  private void dropCertain(int k) {
    int kept = k;
    for (int s = k; s < count; s++) {
      if (value[s] < cut) {
        index[kept] = index[s];
        value[kept++] = value[s];
      }
    }
    count = kept;
  }

  /** Ends a search: the nearest k and those that may be, ascending. */
  void finish(int k) {
    dropCertain(k);
    sort();
  }

  /** Heapsort, ascending, ties by index: in place, and never slow. */
  void sort() {
    heapify(count);
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

  private void heapify(int end) {
    for (int i = end / 2 - 1; i >= 0; i--) {
      sift(i, end);
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
