package dev.kullback.internal.mixture;

import dev.kullback.internal.formula.MergerBounds;
import dev.kullback.internal.mixture.ReductionOptions.Rule;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Merges the two components that cost least, again and again. Each pair is in the row of the one that was merged last, or else of the
 * one that comes first in the tree as it was at first. A row keeps the partners of the least bounds below their costs, and a bound below all
 * others, which holds as long as pairs only leave the row. It is settled, with the least cost of its pairs, only when its least bound is the
 * least of all rows' values, and gone through again only when its component was merged or what it keeps does not settle it. Costs that may be
 * equal go to the lower i, then to the lower j. A merger whose covariance double does not hold waits until there are no others. Used by one
 * thread, again and again: once its arrays are long enough, it allocates only for mergers that wait.
 */
final class Reduction {
  /** What a bound must exceed a cost by, relatively, to count as greater: far more than rounding does to either. */
  private static final double MARGIN = 1 + 0x1p-10;

  /** Greatest quotient of two costs that may be equal, of which each is within 1e-12. */
  private static final double TIE = 1 + 0x1p-38;

  /** Partners that a row keeps, at most. */
  private static final int KEPT = 8;

  /**
   * Greatest quotient of the bounds of partners that a row keeps and that of the first one found. Milliseconds of CPU at 2, 1.5, 1.3, 1.15 (200
   * to 20 components, D = 4, full; Zen 4, busy): 1.91, 1.76, 1.70, 1.64.
   */
  private static final double SPREAD = 1.3;

  private static final int NONE = -1;

  /** Step at which a component was merged that is gone: after all. */
  private static final int GONE = Integer.MAX_VALUE;

  final Components components;
  private final PartnerTree tree;
  private final SquaredError error;
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

  /** Whether rows are gone through for the first time, and have the pairs with those that come later in the tree. */
  private boolean isFirst;

  /** The components of a tree to be built, or that merge by another search. */
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

  /** Whether a row has its partner. */
  private boolean[] isSettled = {};

  /** Place of each component in the tree at first. */
  private int[] rank = {};

  /** The partners that each row keeps, how many they are, bounds below their costs, ascending, and one below those of all others. */
  private int[] kept = {};

  private int[] keptCount = {};
  private double[] bound = {};
  private double[] rest = {};

  /** What a bound must not exceed to be of use in the row that is gone through, and whether that one keeps partners, or is settled at once. */
  private double most;

  private boolean isKeeping;

  /** Places of components of a leaf that a list of it does not rule out. */
  private final int[] offered = new int[PartnerTree.LEAF];

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
    error = new SquaredError(components);
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
    if (components.areWeightlessFree()) {
      mergeWeightless(wanted, progress);
    }
    if (size > wanted && options.rule() == Rule.WILLIAMS) {
      mergeByError(wanted, options.maxCost(), progress);
    } else if (size > wanted) {
      mergeByPartners(wanted, options.maxCost(), progress);
    }
    while (options.isCapped() && size > wanted) {
      drop(lightest(), progress);
    }
    components.scale();
  }

  private void mergeByPartners(int wanted, double maxCost, Runnable progress) {
    begin();
    isFirst = true;
    for (int i = next(0); !isWest && i < total; i = next(i + 1)) {
      keep(i);
    }
    isFirst = false;
    while (size > wanted) {
      int r = isWest ? scannedLightest() : cheapest();
      Waiting last = r == NONE ? cheapestWaiting() : null;
      int i = last != null ? last.i : r == NONE ? next(0) : Math.min(r, partner[r]);
      int j = last != null ? last.j : r == NONE ? next(i + 1) : Math.max(r, partner[r]);
      double next = last != null ? last.cost : r == NONE ? Double.POSITIVE_INFINITY : cost[r];
      if (next > maxCost) {
        return;
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
  }

  private void mergeByError(int wanted, double maxCost, Runnable progress) {
    listLeft();
    error.begin(left, size);
    while (size > wanted) {
      look.run();
      error.find();
      if (error.cost() > maxCost) {
        return;
      }
      if (components.merge(error.first(), error.second(), error.isLast())) {
        costs[steps++] = error.cost();
        merged[error.second()] = GONE;
        size--;
        error.follow();
        progress.run();
      } else {
        error.postpone();
      }
    }
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
      isSettled = new boolean[total];
      rank = new int[total];
      kept = new int[total * KEPT];
      keptCount = new int[total];
      bound = new double[total * KEPT];
      rest = new double[total];
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
  }

  /**
   * Merges components of weight 0, which cost nothing, as the search for partners would, but not with it: each would be the partner of all others,
   * and they would look for another after each merger (300 components, a third of weight 0, D = 4: 5 ms instead of 110; Zen 4).
   */
  private void mergeWeightless(int wanted, Runnable progress) {
    int weightless = 0;
    for (int i = next(0); i < total; i = next(i + 1)) {
      weightless += components.weight(i) == 0 ? 1 : 0;
    }
    int i = next(0);
    for (int j = next(i + 1); size > wanted && weightless > 0 && j < total; j = next(j + 1)) {
      boolean isWeightless = components.weight(i) == 0 || components.weight(j) == 0;
      if (components.cost(i, j) > 0) {
        continue;
      }
      if (!components.merge(i, j, false)) {
        return;
      }
      weightless -= isWeightless ? 1 : 0;
      costs[steps++] = 0;
      merged[j] = GONE;
      size--;
      progress.run();
      j = isWeightless ? j : i;
    }
  }

  /** Makes the tree, and the order of pairs. */
  private void begin() {
    tree.begin();
    build();
    for (int k = 0; k < size; k++) {
      rank[left[k]] = k;
    }
  }

  private void build() {
    listLeft();
    tree.build(left, size);
    rebuild = size - size / 5;
  }

  private void listLeft() {
    int n = 0;
    for (int i = next(0); i < total; i = next(i + 1)) {
      left[n++] = i;
    }
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
      settle(best);
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
    isStale = !isSettled[r] || merged[partner[r]] > scanned[r];
    if (isStale || best == NONE || key(r, partner[r]) < key(best, partner[best])) {
      best = r;
    }
  }

  /** Raises the bound of a row, or finds its partner, among those that it keeps if they are enough. */
  private void settle(int i) {
    if (!tryKept(i)) {
      if (scanned[i] < steps) {
        keep(i);
      } else {
        scan(i);
      }
    }
  }

  /** Raises the bound of a row or finds its partner by what it keeps; returns false where that is not enough. */
  private boolean tryKept(int i) {
    int first = i * KEPT;
    int end = first;
    for (int k = first; k < first + keptCount[i]; k++) {
      if (merged[kept[k]] <= scanned[i]) {
        kept[end] = kept[k];
        bound[end++] = bound[k];
      }
    }
    keptCount[i] = end - first;
    double now = Math.min(rest[i], end > first ? bound[first] : Double.POSITIVE_INFINITY);
    if (now > least[width + i]) {
      setLeast(i, now);
      return true;
    }
    cost[i] = Double.POSITIVE_INFINITY;
    keptCount[i] = 0;
    for (int k = first; k < end; k++) {
      int j = kept[k];
      double value = bound[k];
      if (!(value > MARGIN * cost[i])) {
        value = components.cost(i, j);
        take(i, j, value);
        components.checkpoint.pass(components.terms());
      }
      insert(i, j, value);
    }
    isSettled[i] = rest[i] > MARGIN * cost[i];
    if (isSettled[i]) {
      setLeast(i, cost[i]);
    }
    return isSettled[i];
  }

  /** Keeps a partner of a row by its bound, or drops the one of the greatest. */
  private void insert(int i, int j, double value) {
    int from = i * KEPT;
    int k = keptCount[i] < KEPT ? from + keptCount[i]++ : from + KEPT - 1;
    for (; k > from && bound[k - 1] > value; k--) {
      bound[k] = bound[k - 1];
      kept[k] = kept[k - 1];
    }
    bound[k] = value;
    kept[k] = j;
  }

  /** Keeps the partners of a row that have the least bounds. */
  private void keep(int i) {
    isKeeping = true;
    isSettled[i] = false;
    keptCount[i] = 0;
    goThrough(i);
    rest[i] = most < Double.POSITIVE_INFINITY ? most / MARGIN : most;
    setLeast(i, keptCount[i] > 0 ? bound[i * KEPT] : rest[i]);
  }

  /** Finds the partner of a row among all. */
  private void scan(int i) {
    isKeeping = false;
    isSettled[i] = true;
    keptCount[i] = 0;
    cost[i] = Double.POSITIVE_INFINITY;
    goThrough(i);
    rest[i] = cost[i];
    setLeast(i, cost[i]);
  }

  private void goThrough(int i) {
    look.run();
    scanned[i] = steps;
    most = Double.POSITIVE_INFINITY;
    tree.take(i);
    visit(i, 1);
  }

  private void setLeast(int i, double value) {
    least[width + i] = value;
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
    if (!(Math.min(a, b) > most)) {
      visit(i, 2 * node + first);
    }
    if (!(Math.max(a, b) > most)) {
      visit(i, 2 * node + 1 - first);
    }
  }

  /** Goes through a leaf; begins with the component that promises most where there is no limit yet. */
  private void offerAll(int i, int leaf) {
    int from = isFirst && !isWest ? tree.after(i, leaf) : 0;
    int n = tree.count(leaf);
    boolean takesAll = tree.takesAll();
    if (takesAll) {
      tree.setBounds(leaf, from, n, offered);
    }
    int first = most == Double.POSITIVE_INFINITY ? firstOffer(i, leaf, from, n) : NONE;
    if (takesAll) {
      for (int p = from; p < n; p++) {
        if (tree.bound(p) <= most && p != first) {
          offer(i, leaf, p);
        }
      }
    } else {
      int m = tree.list(i, leaf, from, most, offered);
      tree.setBounds(leaf, 0, m, offered);
      for (int k = 0; k < m; k++) {
        if (offered[k] != first) {
          offer(i, leaf, offered[k]);
        }
      }
    }
    components.checkpoint.pass(Checkpoint.ofPlain((long) (n - from) * components.dimension()));
  }

  /** Offers the component of a leaf that promises most, and returns its place. */
  private int firstOffer(int i, int leaf, int from, int n) {
    tree.promise(i, leaf, from);
    int first = NONE;
    double lowest = Double.POSITIVE_INFINITY;
    for (int p = from; p < n; p++) {
      if (tree.promise(p) < lowest && isOffered(i, tree.component(leaf, p))) {
        lowest = tree.promise(p);
        first = p;
      }
    }
    if (first != NONE) {
      offered[0] = first;
      if (!tree.takesAll()) {
        tree.setBounds(leaf, 0, 1, offered);
      }
      offer(i, leaf, first);
    }
    return first;
  }

  /** Whether the pair of i and j is in row i, and does not wait. */
  private boolean isOffered(int i, int j) {
    return isOf(i, j) && (waiting.isEmpty() || !waiting.containsKey(key(i, j)));
  }

  /** Whether the pair of i and j is in row i. */
  private boolean isOf(int i, int j) {
    return isWest ? i != j : merged[i] > merged[j] || (merged[i] == merged[j] && rank[i] < rank[j]);
  }

  /** Offers the component at a place of a leaf to a row, which keeps those of the least bounds, or takes the one of the least cost. */
  private void offer(int i, int leaf, int p) {
    double bound = tree.bound(p);
    if (bound > most) {
      return;
    }
    int j = tree.component(leaf, p);
    if (!isOffered(i, j)) {
      return;
    }
    if (!(bound > MergerBounds.LEAST)) {
      bound = isKeeping || components.hasBounds() ? components.bound(i, j) : 0;
      if (bound > most) {
        return;
      }
    }
    if (isKeeping) {
      keep(i, j, bound);
    } else {
      take(i, j, components.cost(i, j));
      components.checkpoint.pass(components.terms());
      most = MARGIN * cost[i];
    }
  }

  /** Keeps a partner of a row, whose bound may be NaN, or drops the one of the greatest bound. */
  private void keep(int i, int j, double value) {
    boolean isFirst = most == Double.POSITIVE_INFINITY;
    double positive = value > 0 ? value : isFirst ? components.cost(i, j) : 0;
    if (positive == Double.POSITIVE_INFINITY) {
      return;
    }
    int last = i * KEPT + KEPT - 1;
    if (keptCount[i] < KEPT || positive < bound[last]) {
      most = keptCount[i] < KEPT ? most : Math.min(most, MARGIN * bound[last]);
      insert(i, j, positive);
    } else {
      most = Math.min(most, MARGIN * positive);
    }
    most = isFirst ? MARGIN * SPREAD * positive : most;
  }

  /** Takes j as a row's partner if it costs less, or perhaps as much and is lower. */
  private void take(int i, int j, double offered) {
    boolean isTie = offered <= TIE * cost[i] && cost[i] <= TIE * offered;
    if (isTie ? j < partner[i] : offered < cost[i]) {
      cost[i] = offered;
      partner[i] = j;
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
      keep(i);
    }
  }
}
