package dev.kullback.internal.index;

import java.util.Arrays;

/**
 * The references that may be among those one query looks for, with bounds of their divergences. A search for the nearest keeps the k
 * smallest upper bounds, the greatest of which limits the others' lower bounds.
 */
final class Survivors {
  private static final int FIRST = 256;

  /** Steps of sorting between two looks: less than a millisecond. */
  private static final int STEPS = 1024;

  int count;

  /** Bounds; of a search that is done, the values. Never NaN. */
  double[] lower = new double[FIRST];

  double[] upper = new double[FIRST];

  /** Ids, of a search that is done; 0 before. */
  long[] id = new long[FIRST];

  /** The segment's number and the row, in the high and the low half. */
  long[] place = new long[FIRST];

  /** Survivors from which on they are to be made fewer, before the arrays grow. */
  int room;

  /** The k smallest upper bounds, as a heap whose root is the greatest. */
  private double[] least = new double[FIRST];

  private int leasts;
  private int k;

  /** Greatest lower bound that counts. */
  private double limit;

  /** Begins a search for the nearest k, or for all within the radius if k is 0. */
  void start(int k, double radius) {
    this.k = k;
    limit = k == 0 ? radius : Double.POSITIVE_INFINITY;
    restart();
    room = Math.max(1024, (int) Math.min(4L * k, 1 << 28));
    if (least.length < k) {
      least = new double[k];
    }
  }

  /** Drops arrays of more numbers than are to be kept. */
  void trim(int mostKept) {
    if (lower.length > mostKept || least.length > mostKept) {
      lower = new double[FIRST];
      upper = new double[FIRST];
      id = new long[FIRST];
      place = new long[FIRST];
      least = new double[FIRST];
    }
  }

  double limit() {
    return limit;
  }

  /** Tells of a limit that other threads found. */
  void limit(double other) {
    limit = Math.min(limit, other);
  }

  /** Empties the list and keeps the limit; the caller adds each survivor again. */
  void restart() {
    count = 0;
    leasts = 0;
  }

  /** Adds a survivor, if its lower bound counts. */
  void add(double low, double high, long itsPlace) {
    if (low > limit) {
      return;
    }
    if (count == lower.length) {
      int length = (int) Math.min(2L * count, Integer.MAX_VALUE - 8);
      lower = Arrays.copyOf(lower, length);
      upper = Arrays.copyOf(upper, length);
      id = Arrays.copyOf(id, length);
      place = Arrays.copyOf(place, length);
    }
    lower[count] = low;
    upper[count] = high;
    id[count] = 0;
    place[count++] = itsPlace;
    push(high);
  }

  void addAll(Survivors others) {
    for (int s = 0; s < others.count; s++) {
      add(others.lower[s], others.upper[s], others.place[s]);
    }
  }

  private void push(double high) {
    if (leasts < k) {
      raise(leasts++, high);
    } else if (k > 0 && high < least[0]) {
      sinkRoot(high);
    }
    if (k > 0 && leasts == k) {
      limit = Math.min(limit, least[0]);
    }
  }

  private void raise(int from, double high) {
    int at = from;
    while (at > 0 && least[(at - 1) / 2] < high) {
      least[at] = least[(at - 1) / 2];
      at = (at - 1) / 2;
    }
    least[at] = high;
  }

  /** Replaces the greatest of the k by another. */
  private void sinkRoot(double high) {
    int at = 0;
    for (int down = 1; down < k; down = 2 * at + 1) {
      if (down + 1 < k && least[down + 1] > least[down]) {
        down++;
      }
      if (least[down] <= high) {
        break;
      }
      least[at] = least[down];
      at = down;
    }
    least[at] = high;
  }

  /** Copies ids and lower bounds to the caller's arrays, and returns how many there are. */
  int copy(long[] ids, float[] values) {
    System.arraycopy(id, 0, ids, 0, count);
    for (int s = 0; s < count; s++) {
      values[s] = (float) lower[s];
    }
    return count;
  }

  /** Drops survivors whose lower bounds have come to exceed the limit. */
  void drop() {
    int kept = 0;
    for (int s = 0; s < count; s++) {
      if (lower[s] <= limit) {
        move(s, kept++);
      }
    }
    count = kept;
  }

  private void move(int from, int to) {
    lower[to] = lower[from];
    upper[to] = upper[from];
    id[to] = id[from];
    place[to] = place[from];
  }

  /**
   * Sorts by lower bounds and then ids, or by ids alone; before there are ids, by places in their stead.
   *
   * @param look called now and then, as a million take a second; it may throw, and the survivors are lost
   */
  void sort(boolean byId, Runnable look) {
    for (int s = count / 2 - 1; s >= 0; s--) {
      if (s % STEPS == 0) {
        look.run();
      }
      sink(s, count, byId);
    }
    for (int end = count - 1; end > 0; end--) {
      if (end % STEPS == 0) {
        look.run();
      }
      swap(0, end);
      sink(0, end, byId);
    }
  }

  private void sink(int s, int end, boolean byId) {
    int at = s;
    for (int down = 2 * at + 1; down < end; down = 2 * at + 1) {
      if (down + 1 < end && isBefore(down, down + 1, byId)) {
        down++;
      }
      if (!isBefore(at, down, byId)) {
        return;
      }
      swap(at, down);
      at = down;
    }
  }

  private boolean isBefore(int a, int b, boolean byId) {
    if (!byId && lower[a] != lower[b]) {
      return lower[a] < lower[b];
    }
    return id[a] == id[b] ? place[a] < place[b] : id[a] < id[b];
  }

  private void swap(int a, int b) {
    double low = lower[a];
    double high = upper[a];
    long itsId = id[a];
    long itsPlace = place[a];
    move(b, a);
    lower[b] = low;
    upper[b] = high;
    id[b] = itsId;
    place[b] = itsPlace;
  }
}
