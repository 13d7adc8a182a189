package dev.kullback.internal.mixture;

import dev.kullback.internal.mixture.ReductionOptions.Rule;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Merges the two components that cost least, again and again. Each pair is in the row of the one that was merged last, or else of the
 * lower one. A row has the least cost of its pairs or, once that partner was merged or is gone, a bound below it: pairs only leave a row.
 * So it is gone through again only when its component was merged, or when its bound is the least of all rows' values. Costs that may be
 * equal go to the lower i, then to the lower j. A merger whose covariance double does not hold waits until there are no others. Used by one
 * thread, again and again: once its arrays are long enough, it allocates only for mergers that wait.
 */
final class Reduction {
  /** What a bound must exceed a cost by, relatively, to count as greater: far more than rounding does to either. */
  private static final double MARGIN = 1 + 0x1p-10;

  /** Greatest quotient of two costs that may be equal, of which each is within 1e-12. */
  private static final double TIE = 1 + 0x1p-38;

  private static final int NONE = -1;

  /** Step at which a component was merged that is gone: after all. */
  private static final int GONE = Integer.MAX_VALUE;

  final Components components;
  private final PartnerTree tree;
  private int total;
  private int size;

  /**
   * Size at which the tree is built anew: 0.8 of that at which it was. Where it was 0.5, sparse mixtures took 1.1 to 1.2 times the CPU
   * (5,000 and 20,000 components to a hundredth, D = 3, full).
   */
  private int rebuild;

  private int steps;

  /** Whether the lightest component alone merges, with any. */
  private boolean isWest;

  /** The components of a tree to be built. */
  private int[] left = {};

  /** The step at which a component was last merged, 0 if never, and that at which its row was last gone through. */
  private int[] merged = {};

  private int[] scanned = {};

  /**
   * Each row's least cost, or a bound below it; +∞ where there is no pair. They are the leaves, from {@link #width} on, of a tree of which
   * each node k has the least of 2k and 2k + 1.
   */
  private double[] least = {};

  private int width;

  /** The lowest component of such a cost, or of one that may be equal, and its cost. */
  private int[] partner = {};

  private double[] cost = {};

  /** Costs of the mergers, in their order. */
  private double[] costs = {};

  /** The row whose pair is the lowest of the least cost so far, or one that is to be gone through. */
  private int best;

  private boolean isStale;
  private Runnable look = () -> {};

  /** Mergers that wait, of components that are left, by {@link #key}. */
  private final Map<Long, Waiting> waiting = new HashMap<>();

  private record Waiting(int i, int j, double cost) {}

  Reduction(Components components) {
    this.components = components;
    tree = new PartnerTree(components);
  }

  /**
   * Reduces a mixture, whose components were loaded.
   *
   * @param look runs now and then, and ends the call by an exception
   * @param progress runs after each merger
   */
  void run(ReductionOptions options, Runnable look, Runnable progress) {
    this.look = look;
    int wanted = options.size();
    isWest = options.rule() == Rule.WEST;
    start(options.minWeight(), progress);
    for (int i = next(0); size > wanted && !isWest && i < total; i = next(i + 1)) {
      scan(i);
    }
    while (size > wanted) {
      int r = isWest ? scannedLightest() : cheapest();
      Waiting last = r == NONE ? cheapestWaiting() : null;
      int i = last != null ? last.i : r == NONE ? next(0) : Math.min(r, partner[r]);
      int j = last != null ? last.j : r == NONE ? next(i + 1) : Math.max(r, partner[r]);
      double next = last != null ? last.cost : r == NONE ? Double.POSITIVE_INFINITY : cost[r];
      if (next > options.maxCost()) {
        break;
      }
      if (components.merge(i, j, last != null)) {
        costs[steps++] = next;
        follow(i, j);
        progress.run();
      } else {
        waiting.put(key(i, j), new Waiting(i, j, next));
        if (r != NONE) {
          scan(r);
        }
      }
    }
    while (options.isCapped() && size > wanted) {
      drop(lightest(), progress);
    }
    components.scale();
  }

  private void drop(int i, Runnable progress) {
    components.drop(i);
    merged[i] = GONE;
    size--;
    progress.run();
  }

  /** Returns the lightest component that is left, the first of equal ones. */
  private int lightest() {
    int lightest = next(0);
    for (int i = lightest; i < total; i = next(i + 1)) {
      lightest = components.weight(i) < components.weight(lightest) ? i : lightest;
    }
    return lightest;
  }

  /** Returns the row of the lightest component after going through it, or {@link #NONE} where all pairs of it wait. */
  private int scannedLightest() {
    int i = lightest();
    scan(i);
    return cost[i] < Double.POSITIVE_INFINITY ? i : NONE;
  }

  private void start(double minWeight, Runnable progress) {
    total = components.size();
    size = total;
    steps = 0;
    waiting.clear();
    if (left.length < total) {
      left = new int[total];
      merged = new int[total];
      scanned = new int[total];
      partner = new int[total];
      cost = new double[total];
      costs = new double[total];
    }
    Arrays.fill(merged, 0, total, 0);
    double floor = minWeight * components.totalWeight();
    int heaviest = 0;
    for (int i = 1; i < total; i++) {
      heaviest = components.weight(i) > components.weight(heaviest) ? i : heaviest;
    }
    for (int i = 0; minWeight > 0 && i < total; i++) {
      if (components.weight(i) < floor && i != heaviest) {
        drop(i, progress);
      }
    }
    width = Math.max(2, Integer.highestOneBit(2 * total - 1));
    if (least.length < 2 * width) {
      least = new double[2 * width];
    }
    Arrays.fill(least, 0, 2 * width, Double.POSITIVE_INFINITY);
    build();
  }

  private void build() {
    int n = 0;
    for (int i = next(0); i < total; i = next(i + 1)) {
      left[n++] = i;
    }
    tree.build(left, n);
    rebuild = n - n / 5;
  }

  /** Returns the number of components that are left. */
  int size() {
    return size;
  }

  /** Returns the first component from i on that is left, or the number of all. */
  int next(int i) {
    int k = i;
    while (k < total && merged[k] == GONE) {
      k++;
    }
    return k;
  }

  /** Returns the number of mergers. */
  int steps() {
    return steps;
  }

  /** Copies the costs of the mergers. */
  void copyCosts(double[] to, int at) {
    System.arraycopy(costs, 0, to, at, steps);
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
    return (long) Math.min(i, j) << Integer.SIZE | Math.max(i, j);
  }

  /** Returns the row that has the lowest pair of the least cost, or of one that may be equal; {@link #NONE} where all cost +∞. */
  private int cheapest() {
    while (least[1] < Double.POSITIVE_INFINITY) {
      best = NONE;
      isStale = false;
      compare(1, TIE * least[1]);
      if (!isStale) {
        return best;
      }
      scan(best);
    }
    return NONE;
  }

  private void compare(int node, double most) {
    if (isStale || least[node] > most) {
      return;
    }
    if (node < width) {
      compare(2 * node, most);
      compare(2 * node + 1, most);
      return;
    }
    int r = node - width;
    isStale = merged[partner[r]] > scanned[r];
    if (isStale || best == NONE || key(r, partner[r]) < key(best, partner[best])) {
      best = r;
    }
  }

  /** Finds the partner of a row. */
  private void scan(int i) {
    look.run();
    scanned[i] = steps;
    least[width + i] = Double.POSITIVE_INFINITY;
    cost[i] = Double.POSITIVE_INFINITY;
    visit(i, 1);
    for (int k = (width + i) / 2; k > 0; k /= 2) {
      least[k] = Math.min(least[2 * k], least[2 * k + 1]);
    }
  }

  /** Goes through a node of the tree, the nearer child first. */
  private void visit(int i, int node) {
    int leaf = tree.leaf(node);
    if (leaf >= 0) {
      offerAll(i, leaf);
      return;
    }
    double a = tree.bound(i, 2 * node);
    double b = tree.bound(i, 2 * node + 1);
    int first = b < a ? 1 : 0;
    if (!(Math.min(a, b) > MARGIN * least[width + i])) {
      visit(i, 2 * node + first);
    }
    if (!(Math.max(a, b) > MARGIN * least[width + i])) {
      visit(i, 2 * node + 1 - first);
    }
  }

  /** Goes through a leaf, beginning with the component of the least bound, after which few are left to be looked at. */
  private void offerAll(int i, int leaf) {
    int n = tree.bounds(i, leaf);
    int first = NONE;
    double lowest = MARGIN * least[width + i];
    for (int p = 0; p < n; p++) {
      if (tree.bound(p) < lowest && isOf(i, tree.component(leaf, p))) {
        lowest = tree.bound(p);
        first = p;
      }
    }
    if (first != NONE) {
      offer(i, tree.component(leaf, first));
    }
    for (int p = 0; p < n; p++) {
      if (!(tree.bound(p) > MARGIN * least[width + i])
          && p != first
          && isOf(i, tree.component(leaf, p))) {
        offer(i, tree.component(leaf, p));
      }
    }
    components.checkpoint.pass(Checkpoint.ofPlain((long) n * components.dimension()));
  }

  /** Whether the pair of i and j is in row i. */
  private boolean isOf(int i, int j) {
    return isWest ? i != j : merged[i] > merged[j] || (merged[i] == merged[j] && i < j);
  }

  /** Takes j as a row's partner if it costs less than {@link #least}, or perhaps as much and is lower. */
  private void offer(int i, int j) {
    if (!components.costsMore(i, j, MARGIN * least[width + i])
        && (waiting.isEmpty() || !waiting.containsKey(key(i, j)))) {
      double offered = components.cost(i, j);
      boolean isTie = offered <= TIE * cost[i] && cost[i] <= TIE * offered;
      if (isTie ? j < partner[i] : offered < cost[i]) {
        cost[i] = offered;
        partner[i] = j;
      }
      least[width + i] = Math.min(least[width + i], offered);
      components.checkpoint.pass(components.terms());
    }
  }

  /** Follows a merger of j into i. */
  private void follow(int i, int j) {
    if (!waiting.isEmpty()) {
      waiting.values().removeIf(w -> w.i == i || w.i == j || w.j == i || w.j == j);
    }
    size--;
    merged[i] = steps;
    merged[j] = GONE;
    if (size <= rebuild) {
      build();
    } else {
      tree.update(i);
      tree.remove(j);
    }
    for (int k = width + j; k > 0; k /= 2) {
      least[k] = k < width ? Math.min(least[2 * k], least[2 * k + 1]) : Double.POSITIVE_INFINITY;
    }
    if (!isWest) {
      scan(i);
    }
  }
}
