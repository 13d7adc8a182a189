package dev.kullback.internal.mixture;

import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Merges the two components that cost least, again and again. Each row i has the least cost of merging component i with one of a higher
 * index or, once that partner was merged with another, a bound below it. A row is gone through again only when it was merged, or when its
 * bound is the least of all rows' values. Costs that may be equal go to the lower i, then to the lower j. A merger whose covariance double
 * does not hold waits until there are no others.
 */
public final class Reduction {
  /** What a bound must exceed a cost by, relatively, to count as greater: far more than rounding does to either. */
  private static final double MARGIN = 1 + 0x1p-10;

  /** Greatest quotient of two costs that may be equal, of which each is within 1e-12. */
  private static final double TIE = 1 + 0x1p-38;

  private static final int NONE = -1;

  private final Components components;

  /** The components that are left, ascending: the first {@code size} of these. */
  private final int[] left;

  private int size;

  /** Each row's least cost, or a bound below it where the partner is {@link #NONE}; +∞ of the last row, which has no partner. */
  private final double[] least;

  /** The lowest component of such a cost, or of one that may be equal, and its cost. */
  private final int[] partner;

  private final double[] cost;

  /** Mergers that wait, of components that are left, by {@link #key}. */
  private final Map<Long, Waiting> waiting = new HashMap<>();

  private record Waiting(int i, int j, double cost) {}

  public Reduction(Components components, int size) {
    this.components = components;
    this.size = size;
    left = new int[size];
    Arrays.setAll(left, i -> i);
    least = new double[size];
    partner = new int[size];
    cost = new double[size];
  }

  /**
   * Merges until {@code wanted} components are left or a merger would cost more than {@code most}, and returns the costs in their order.
   *
   * @param progress runs after each merger
   */
  public double[] run(int wanted, double most, Runnable progress) {
    double[] costs = new double[Math.max(0, size - wanted)];
    int steps = 0;
    for (int p = 0; steps < costs.length && p < size - 1; p++) {
      scan(p);
    }
    while (steps < costs.length) {
      int p = cheapest();
      int i = left[p];
      Waiting last = cost[i] < Double.POSITIVE_INFINITY ? null : cheapestWaiting();
      double next = last == null ? cost[i] : last.cost;
      if (next > most) {
        break;
      }
      if (last != null) {
        merge(last.i, last.j, true);
      } else if (!merge(i, partner[i], false)) {
        waiting.put(key(i, partner[i]), new Waiting(i, partner[i], next));
        scan(p);
        continue;
      }
      costs[steps++] = next;
      progress.run();
    }
    return Arrays.copyOf(costs, steps);
  }

  public int size() {
    return size;
  }

  /** Returns the p-th component that is left. */
  public int component(int p) {
    return left[p];
  }

  private @Nullable Waiting cheapestWaiting() {
    return waiting.values().stream()
        .min(
            Comparator.comparingDouble(Waiting::cost)
                .thenComparingInt(Waiting::i)
                .thenComparingInt(Waiting::j))
        .orElse(null);
  }

  private static long key(int i, int j) {
    return (long) i << Integer.SIZE | j;
  }

  /** Returns the place of the first row of least cost, or of one that may be equal, with its partner. */
  private int cheapest() {
    while (true) {
      double most = Double.POSITIVE_INFINITY;
      for (int p = 0; p < size - 1; p++) {
        most = Math.min(most, TIE * least[left[p]]);
      }
      int best = 0;
      while (least[left[best]] > most) {
        best++;
      }
      if (partner[left[best]] != NONE) {
        return best;
      }
      scan(best);
    }
  }

  /** Finds the partner of the row at a place, which is not the last. */
  private void scan(int place) {
    int i = left[place];
    least[i] = Double.POSITIVE_INFINITY;
    cost[i] = Double.POSITIVE_INFINITY;
    partner[i] = left[place + 1];
    for (int p = place + 1; p < size; p++) {
      offer(i, left[p]);
    }
    components.checkpoint.pass(Checkpoint.ofPlain((long) (size - place) * components.dimension()));
  }

  /** Takes j as a row's partner if it costs less than {@link #least}, or perhaps as much and is lower. */
  private void offer(int i, int j) {
    if (!components.costsMore(i, j, MARGIN * least[i])
        && (waiting.isEmpty() || !waiting.containsKey(key(i, j)))) {
      double offered = components.cost(i, j);
      boolean isTie = offered <= TIE * cost[i] && cost[i] <= TIE * offered;
      if (partner[i] == NONE
          ? TIE * offered < least[i]
          : isTie ? j < partner[i] : offered < cost[i]) {
        cost[i] = offered;
        partner[i] = j;
      }
      least[i] = Math.min(least[i], offered);
      components.checkpoint.pass(components.terms());
    }
  }

  /** Merges j into i, which is lower, if that is to be done: see {@link Components#merge}. */
  private boolean merge(int i, int j, boolean mayRaise) {
    if (!components.merge(i, j, mayRaise)) {
      return false;
    }
    waiting.values().removeIf(w -> w.i == i || w.i == j || w.j == i || w.j == j);
    int place = Arrays.binarySearch(left, 0, size, i);
    int removed = Arrays.binarySearch(left, 0, size, j);
    System.arraycopy(left, removed + 1, left, removed, --size - removed);
    for (int p = 0; p < removed; p++) {
      int r = left[p];
      if (partner[r] == i || partner[r] == j) {
        partner[r] = NONE;
      }
      if (p < place) {
        offer(r, i); // never at a bound's cost: there may be a lower partner of it, or none
      }
    }
    if (place < size - 1) {
      scan(place);
    }
    return true;
  }
}
