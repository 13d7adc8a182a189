package dev.kullback.internal.mixture;

import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.formula.MergerBounds;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The components that are left, in a tree of boxes around their means, with bounds below what merging costs: with {@code t = ab d_h²},
 *
 * <pre>
 * cost ≥ ½ w ln(1 + x),  x = ab dᵀ(a P_i + b P_j)⁻¹d ≥ t/(a P_i,hh + b P_j,hh)
 * cost ≥ ½ w_i ln(1 + z),  z = b dᵀP_i⁻¹d ≥ b d_h²/P_i,hh
 * </pre>
 *
 * <p>The cost is the least {@code w_i KL(N_i ‖ q) + w_j KL(N_j ‖ q)} of any q, which does not fall where a weight is raised. The first bound
 * holds as {@code ln|a P_i + b P_j|} is concave; of diagonal components, for the sum over the dimensions, too. The second is the
 * least of any P_j: that is q's covariance Λ⁻¹ then, and what is left, {@code ½[w_i(tr ΛP_i − ln|ΛP_i| − D) + w ab dᵀΛd]}, is convex
 * in Λ and least at {@code Λ⁻¹ = P_i + b ddᵀ}. So a wide component does not open its box to narrow ones. The components of a node
 * have their least weight, greatest variances and least distances in these bounds. Leaves hold their components by dimension, for loops that
 * C2 compiles to vectors. Used by one thread.
 */
final class PartnerTree {
  /**
   * The most components of a leaf. Milliseconds of CPU at 64, 128, 256 (D = 4, full; Zen 4, busy): 200 to 20 components 3.87, 3.63, 3.77;
   * 1,000 to 50 57, 44, 43; 5,000 to 50 729, 692, 733; of weights .99^i 1,921, 2,044, 1,842.
   */
  static final int LEAF = MergerBounds.STRIDE;

  private final Components components;
  private final int dimension;

  /** Leaves, a power of two. Node 1 is the root, node k has the children 2k and 2k + 1, and leaf l is node {@code leaves + l}. */
  private int leaves;

  private int size;

  /** Number of components in each leaf. */
  private int[] count = {};

  /** Components of each leaf, whose places begin at a multiple of {@link #LEAF}; and the place of each component. */
  private int[] component = {};

  private int[] place = {};

  /** Weights of each leaf, and its means and variances of each dimension: arrays of their own, as C2 makes vectors of equal indices alone. */
  private double[][] weight = {};

  private double[][] mean = {};
  private double[][] variance = {};

  /** What makes bounds of costs by their definition, if anything does; of the panel of each leaf, and the numbers of a row's component. */
  private @Nullable MergerBounds mergers;

  private double[][] panel = {};
  private double[] taken = {};
  private final double[] bounds = new double[LEAF];

  /** Boxes of nodes: least and greatest means, greatest variances, and least weight. */
  private double[] low = {};

  private double[] high = {};
  private double[] widest = {};
  private double[] lightest = {};

  /** Shares of the merged weight that a row and the components of a leaf have, and 2/w times the limit of their costs. */
  private final double[] share = new double[LEAF];

  private final double[] other = new double[LEAF];
  private final double[] exponent = new double[LEAF];

  /** What x is multiplied by, times the shares, what it is compared with, and what is positive where it is greater. */
  private final double[] power = new double[LEAF];

  private final double[] own = new double[LEAF];
  private final double[] others = new double[LEAF];
  private final double[] verdict = new double[LEAF];

  /** x, where bounds of dimensions are added, and what tells which partner may cost least. */
  private final double[] excess = new double[LEAF];

  private final double[] promise = new double[LEAF];

  PartnerTree(Components components) {
    this.components = components;
    dimension = components.dimension();
  }

  /** Finds out what makes bounds of the components' costs, for trees to be built from now on. */
  void begin() {
    boolean hasBounds = components.hasBounds() && dimension <= MergerBounds.MOST;
    mergers = hasBounds ? Platform.mergerBounds(dimension) : null;
    if (hasBounds && taken.length == 0) {
      taken = new double[MergerBounds.rows(dimension)];
    }
    Arrays.fill(bounds, MergerBounds.LEAST);
  }

  /** Makes the tree of the first {@code size} of these components, which it puts in another order. */
  void build(int[] left, int size) {
    this.size = size;
    leaves = 1;
    while (Math.ceilDiv(size, leaves) > LEAF) {
      leaves *= 2;
    }
    if (place.length < left.length) {
      place = new int[left.length];
    }
    int most = Math.min(LEAF, left.length);
    if (count.length < leaves || mean.length < leaves * dimension || weight[0].length < most) {
      count = new int[leaves];
      component = new int[leaves * LEAF];
      weight = new double[leaves][most];
      mean = new double[leaves * dimension][most];
      variance = new double[leaves * dimension][most];
      low = new double[2 * leaves * dimension];
      high = new double[low.length];
      widest = new double[low.length];
      lightest = new double[2 * leaves];
    }
    if (mergers != null && panel.length < leaves) {
      panel = new double[leaves][taken.length * LEAF];
    }
    split(left, 0, leaves);
    for (int l = 0; l < leaves; l++) {
      count[l] = start(l + 1) - start(l);
      for (int p = 0; p < count[l]; p++) {
        put(left[start(l) + p], l * LEAF + p);
      }
      enclose(l);
    }
    for (int k = leaves - 1; k > 0; k--) {
      unite(k);
    }
  }

  private int start(int leaf) {
    return (int) ((long) size * leaf / leaves);
  }

  /** Orders the components of leaves [from, to): by the dimension in which their means extend most, over the mean variance. */
  private void split(int[] left, int from, int to) {
    if (to - from == 1) {
      return;
    }
    int a = start(from);
    int b = start(to);
    int widest = 0;
    double most = -1;
    for (int h = 0; h < dimension; h++) {
      double least = Double.POSITIVE_INFINITY;
      double greatest = Double.NEGATIVE_INFINITY;
      double variances = 0;
      for (int p = a; p < b; p++) {
        double m = components.center(left[p], h);
        least = Math.min(least, m);
        greatest = Math.max(greatest, m);
        variances += components.spread(left[p], h);
      }
      double extent = (greatest - least) / Math.sqrt(variances);
      if (extent > most) {
        most = extent;
        widest = h;
      }
    }
    int middle = (from + to) >>> 1;
    select(left, a, b - 1, start(middle), widest);
    split(left, from, middle);
    split(left, middle, to);
  }

  /** Orders the components at places from a to b so that the one at {@code k} has its place in the order of means, by C. A. R. Hoare's FIND. */
  private void select(int[] left, int a, int b, int k, int h) {
    while (a < b) {
      double pivot = components.center(left[(a + b) >>> 1], h);
      int i = a;
      int j = b;
      while (i <= j) {
        while (components.center(left[i], h) < pivot) {
          i++;
        }
        while (components.center(left[j], h) > pivot) {
          j--;
        }
        if (i <= j) {
          int t = left[i];
          left[i++] = left[j];
          left[j--] = t;
        }
      }
      if (k <= j) {
        b = j;
      } else if (k >= i) {
        a = i;
      } else {
        return;
      }
    }
  }

  private void put(int i, int at) {
    int leaf = at / LEAF;
    int p = at % LEAF;
    component[at] = i;
    place[i] = at;
    weight[leaf][p] = components.mass(i);
    for (int h = 0; h < dimension; h++) {
      mean[leaf * dimension + h][p] = components.center(i, h);
      variance[leaf * dimension + h][p] = components.spread(i, h);
    }
    if (mergers != null) {
      components.copyNumbers(i, panel[leaf], p, LEAF);
    }
  }

  /** Sets the box of a leaf. */
  private void enclose(int leaf) {
    int node = leaves + leaf;
    lightest[node] = Double.POSITIVE_INFINITY;
    for (int p = 0; p < count[leaf]; p++) {
      lightest[node] = Math.min(lightest[node], weight[leaf][p]);
    }
    for (int h = 0; h < dimension; h++) {
      double[] means = mean[leaf * dimension + h];
      double[] variances = variance[leaf * dimension + h];
      double least = Double.POSITIVE_INFINITY;
      double greatest = Double.NEGATIVE_INFINITY;
      double most = 0;
      for (int p = 0; p < count[leaf]; p++) {
        least = Math.min(least, means[p]);
        greatest = Math.max(greatest, means[p]);
        most = Math.max(most, variances[p]);
      }
      low[node * dimension + h] = least;
      high[node * dimension + h] = greatest;
      widest[node * dimension + h] = most;
    }
  }

  /** Sets the box of a node to that of its children's. */
  private void unite(int node) {
    int a = 2 * node;
    int b = a + 1;
    lightest[node] = Math.min(lightest[a], lightest[b]);
    for (int h = 0; h < dimension; h++) {
      int k = node * dimension + h;
      low[k] = Math.min(low[a * dimension + h], low[b * dimension + h]);
      high[k] = Math.max(high[a * dimension + h], high[b * dimension + h]);
      widest[k] = Math.max(widest[a * dimension + h], widest[b * dimension + h]);
    }
  }

  /** Takes the moments of a component that was merged: boxes around it grow, and shrink when the tree is built anew. */
  void update(int i) {
    put(i, place[i]);
    for (int k = leaves + place[i] / LEAF; k > 0; k /= 2) {
      lightest[k] = Math.min(lightest[k], components.mass(i));
      for (int h = 0, e = k * dimension; h < dimension; h++, e++) {
        low[e] = Math.min(low[e], components.center(i, h));
        high[e] = Math.max(high[e], components.center(i, h));
        widest[e] = Math.max(widest[e], components.spread(i, h));
      }
    }
  }

  void remove(int i) {
    int leaf = place[i] / LEAF;
    put(component[leaf * LEAF + --count[leaf]], place[i]);
  }

  /** Returns the leaf that a node is, or −1. */
  int leaf(int node) {
    return node < leaves ? -1 : node - leaves;
  }

  /** Returns a bound below what merging component i with one of a node costs, but for rounding, or NaN. */
  double bound(int i, int node) {
    double own = components.mass(i);
    double w = own + lightest[node];
    double a = own / w;
    double b = lightest[node] / w;
    double common = 0;
    double free = 0;
    for (int h = 0, k = node * dimension; h < dimension; h++, k++) {
      double m = components.center(i, h);
      double d = Math.max(0, Math.max(low[k] - m, m - high[k]));
      double p = components.spread(i, h);
      double t = b * (d * d);
      double x = a * t / (a * p + b * widest[k]);
      double z = t / p;
      common = components.hasSums() ? common + x + common * x : Math.max(common, x);
      free = components.hasSums() ? free + z + free * z : Math.max(free, z);
    }
    double bound = ofExcess(common, w);
    return components.isAboveRunnalls() ? Math.max(bound, ofExcess(free, own)) : bound;
  }

  /**
   * Returns a bound below {@code ½ w ln(1 + x)}: {@code y = (1 + x)^⅛ − 1}, without cancellation, and
   * {@code ln(1 + y) ≥ y(6 + 3y)/(6 + 6y + y²)}, as the difference has the derivative {@code y⁴/(1 + y)/(6 + 6y + y²)²}. It is 0.9 % less at
   * {@code x = 1e4}, as sparse mixtures have it; one without roots is never above w, and rules nothing out there.
   */
  private static double ofExcess(double x, double w) {
    double half = x / (1 + Math.sqrt(1 + x));
    double fourth = half / (1 + Math.sqrt(1 + half));
    double y = fourth / (1 + Math.sqrt(1 + fourth));
    return w * (4 * y * (6 + 3 * y) / (6 + 6 * y + y * y));
  }

  /** Takes a component whose mergers are to have bounds. */
  void take(int i) {
    if (mergers != null) {
      components.copyNumbers(i, taken, 0, 1);
    }
  }

  /** Whether bounds take less time for all components of a leaf than for a list. */
  boolean takesAll() {
    return mergers != null && mergers.takesAll();
  }

  /** Sets the bounds of merging the component taken with those of a leaf: at all places in a range, or those in that range of a list. */
  void setBounds(int leaf, int from, int to, int[] places) {
    if (mergers != null) {
      mergers.set(dimension, taken, panel[leaf], from, to, places, bounds);
    }
  }

  /** Returns the bound that was set for a place, or a number not above {@link MergerBounds#LEAST}, or NaN, that says nothing. */
  double bound(int p) {
    return bounds[p];
  }

  /** Returns how many components a leaf has. */
  int count(int leaf) {
    return count[leaf];
  }

  /**
   * Lists the places of a leaf, from one on, of components whose merging with component i may cost no more than a limit: whose bound
   * {@code ½ w ln(1 + x)} is not above it, but for rounding, or NaN. That is {@code x > (1 − e^−z)/e^−z} with {@code z = 2 most/w}, compared
   * without divisions. Returns how many there are.
   */
  int list(int i, int leaf, int from, double most, int[] places) {
    int n = count[leaf];
    shares(components.mass(i), weight[leaf], from, n, 2 * most);
    powers(from, n);
    boolean hasSums = components.hasSums();
    if (hasSums) {
      Arrays.fill(excess, from, n, 0);
    } else {
      Arrays.fill(verdict, from, n, Double.NEGATIVE_INFINITY);
      compare(from, n);
    }
    for (int h = 0; h < dimension; h++) {
      double[] means = mean[leaf * dimension + h];
      double[] variances = variance[leaf * dimension + h];
      double m = components.center(i, h);
      double v = components.spread(i, h);
      if (hasSums) {
        add(means, variances, from, n, m, v);
      } else {
        raise(means, variances, from, n, m, v);
      }
    }
    if (hasSums) {
      judge(from, n);
    }
    int m = 0;
    for (int p = from; p < n; p++) { // without branches, which would often be mispredicted
      places[m] = p;
      m += verdict[p] > 0 ? 0 : 1;
    }
    return m;
  }

  private void shares(double mass, double[] weights, int from, int n, double limit) {
    for (int p = from; p < n; p++) {
      double inverse = 1 / (mass + weights[p]);
      share[p] = mass * inverse;
      other[p] = weights[p] * inverse;
      exponent[p] = limit * inverse;
    }
  }

  /** Makes {@code e^−z} from below. */
  private void powers(int from, int n) {
    for (int p = from; p < n; p++) {
      power[p] = belowExp(-exponent[p]);
    }
  }

  /** Returns {@code 1 − e^−z}, from above, and at most z. */
  private static double rest(double z, double power) {
    return Math.min(z, 1 + 0x1p-20 - power);
  }

  /** Multiplies {@code e^−z}, and {@link #rest}, by the shares. */
  private void compare(int from, int n) {
    for (int p = from; p < n; p++) {
      double least = rest(exponent[p], power[p]);
      power[p] *= share[p] * other[p];
      own[p] = least * share[p];
      others[p] = least * other[p];
    }
  }

  /** Returns a number not above {@code exp(x)}, but for rounding: {@code (1 + y + … + y⁵/5!)^64} with {@code y = x/64}, or 0. */
  private static double belowExp(double x) {
    double y = x * 0x1p-6;
    double t = 1 + y * (1 + y * (1 / 2d + y * (1 / 6d + y * (1 / 24d + y * (1 / 120d)))));
    t = 0.5 * (t + Math.abs(t));
    t *= t;
    t *= t;
    t *= t;
    t *= t;
    t *= t;
    return t * t;
  }

  private void raise(double[] means, double[] variances, int from, int n, double m, double v) {
    for (int p = from; p < n; p++) {
      double d = means[p] - m;
      double x = power[p] * (d * d) - (own[p] * v + others[p] * variances[p]);
      verdict[p] = Math.max(verdict[p], x);
    }
  }

  /** Multiplies 1 + x of the dimensions. */
  private void add(double[] means, double[] variances, int from, int n, double m, double v) {
    for (int p = from; p < n; p++) {
      double d = means[p] - m;
      double x = share[p] * other[p] * (d * d) / (share[p] * v + other[p] * variances[p]);
      excess[p] = x + (excess[p] + excess[p] * x);
    }
  }

  private void judge(int from, int n) {
    for (int p = from; p < n; p++) {
      verdict[p] = excess[p] * power[p] - rest(exponent[p], power[p]);
    }
  }

  /**
   * Makes estimates, for the places of a leaf from one on, of what tells which partner may cost least: of the squared distance of the means that a merger with component i
   * costs, or the bounds where all were set.
   */
  void promise(int i, int leaf, int from) {
    int n = count[leaf];
    if (takesAll()) {
      System.arraycopy(bounds, from, promise, from, n - from);
      return;
    }
    Arrays.fill(promise, from, n, 0);
    for (int h = 0; h < dimension; h++) {
      addSquares(
          mean[leaf * dimension + h],
          from,
          n,
          components.center(i, h),
          1 / components.spread(i, h));
    }
    multiply(weight[leaf], from, n, components.mass(i));
  }

  private void addSquares(double[] means, int from, int n, double m, double precision) {
    for (int p = from; p < n; p++) {
      double d = means[p] - m;
      promise[p] += d * d * precision;
    }
  }

  private void multiply(double[] weights, int from, int n, double mass) {
    for (int p = from; p < n; p++) {
      promise[p] *= mass * weights[p] / (mass + weights[p]);
    }
  }

  /** Returns the p-th estimate of the leaf that {@link #promise(int, int, int)} was called for. */
  double promise(int p) {
    return promise[p];
  }

  /** Returns the place behind that of component i in a leaf, 0 in those that come after its own, and their end in those before. */
  int after(int i, int leaf) {
    return place[i] / LEAF > leaf ? count[leaf] : place[i] / LEAF < leaf ? 0 : place[i] % LEAF + 1;
  }

  /** Returns the p-th component of a leaf. */
  int component(int leaf, int p) {
    return component[leaf * LEAF + p];
  }
}
