package dev.kullback.internal.mixture;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.mixture.ReductionOptions.Rule;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Compensation;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;

/**
 * The components of a mixture that is being reduced. Two of them merge into the Gaussian of their common weight and moments,
 *
 * <pre>
 * w = w_i + w_j,  a = w_i/w,  b = w_j/w,  d = μ_j − μ_i
 * μ = μ_i + b d,  P = a P_i + b P_j + ab ddᵀ
 * </pre>
 *
 * <p>at the cost {@code ½[w ln|P| − w_i ln|P_i| − w_j ln|P_j|]}, a bound on what the merger adds to the divergence of the mixture from the
 * reduced one (A. R. Runnalls, "Kullback-Leibler approach to Gaussian mixture reduction", IEEE Transactions on Aerospace and Electronic
 * Systems 43, 2007, equation 21).
 *
 * <p>The logarithms cancel where components are alike, so the cost is computed in the coordinates in which the heavier one, i, is
 * N(0, I); of equal weights, the covariances decide which that is, so that no bit depends on the components' order. With {@code P_i = LLᵀ}, {@code X = L⁻¹(P_j − P_i)L⁻ᵀ}, {@code y = L⁻¹d} and {@code ln|I + X| = tr X − G(X)} it is
 *
 * <pre>
 * ½[w ln(1 + ab yᵀ(I + bX)⁻¹y) + w_j G(X) − w G(bX)]
 * </pre>
 *
 * <p>since the traces cancel exactly. G has terms ≥ 0 alone (see {@link FullComponents}), and as b ≤ ½, the last difference is at least a
 * third of {@code w_j G(X)} for small X. Where X is not small, {@code w ln|I + bX| − w_j ln(|P_j|/|P_i|)} stands for it.
 *
 * <p>A component that was merged has the moments of the original ones that it is made of, computed of these: errors do not add up from one
 * merger to the next. Used by one thread.
 */
abstract class Components {
  /** Norm of X up to which G is used: there, no more than two bits cancel, and the logarithms would lose more. */
  static final double SMALL = 0.5;

  private static final int NONE = -1;

  final int dimension;

  /** Numbers that hold a covariance: variances, or a packed triangle. */
  final int length;

  private int size;

  private boolean hasDropped;

  /** What a merger costs. */
  private Rule rule = Rule.RUNNALLS;

  /** Means in the coordinates in which the whole mixture has the covariance I, by Salmond's rule alone. */
  private double[] white = {};

  /** The factor of that covariance: standard deviations, or a packed triangle. */
  private final double[] whole;

  /** Each component's weight, mean and covariance, as merged so far. */
  double[] weight = {};

  double[] mean = {};
  double[] covariance = {};

  private double[] originalWeight = {};
  private double[] originalMean = {};
  private double[] originalCovariance = {};

  /** The component that each original one is now part of: of those merged, the one of the lowest index. */
  private int[] owner = {};

  /** The next original one of the same component, of a higher index, or {@link #NONE}. */
  private int[] next = {};

  /** Row and column of each number of a covariance. */
  private final int[] row;

  private final int[] column;

  /** Looks whether the work is to end, in the midst of a cost or of a merger, too. */
  final Checkpoint checkpoint = new Checkpoint();

  /** Sums of products of shares of a weight, and their rounding errors. */
  private final double[] sum;

  private final double[] error;
  private final double[] shift;

  /** A component's mean and covariance before a merger that may be undone. */
  private final double[] meanBefore;

  private final double[] covarianceBefore;

  /** Makes room for components, of {@code length} numbers a covariance. */
  Components(int dimension, int length) {
    this.dimension = dimension;
    this.length = length;
    row = new int[length];
    column = new int[length];
    for (int k = 0, r = 0, c = 0; k < length; k++) {
      row[k] = r;
      column[k] = length == dimension ? r : c;
      if (length == dimension || c++ == r) {
        r++;
        c = 0;
      }
    }
    whole = new double[length];
    sum = new double[length];
    error = new double[length];
    shift = new double[dimension];
    meanBefore = new double[dimension];
    covarianceBefore = new double[length];
  }

  /** Makes room for components of a batch's kind. */
  static Components of(Batch batch) {
    return switch (batch) {
      case DiagonalBatch d -> new DiagonalComponents(d.dimension());
      case FullBatch f -> new FullComponents(f.dimension());
      case LowRankBatch _ -> throw new AssertionError("written out");
    };
  }

  /** Whether this one has room for components of a batch's kind. */
  final boolean isFor(Batch batch) {
    return batch.dimension() == dimension && batch instanceof FullBatch == isFull();
  }

  /** Takes the components [from, to) of a batch, with these weights, to be merged by a rule. */
  final void load(Batch batch, double[] weights, int from, int to, Rule by) {
    size = to - from;
    rule = by;
    hasDropped = false;
    if (owner.length < size) {
      grow(size);
    }
    System.arraycopy(weights, from, weight, 0, size);
    for (int i = 0; i < size; i++) {
      take(batch, from + i, i);
      owner[i] = i;
      next[i] = NONE;
    }
    System.arraycopy(weight, 0, originalWeight, 0, size);
    System.arraycopy(mean, 0, originalMean, 0, size * dimension);
    System.arraycopy(covariance, 0, originalCovariance, 0, size * length);
    if (rule == Rule.SALMOND) {
      setWhole();
    }
  }

  /** Makes room for {@code n} components. */
  void grow(int n) {
    weight = new double[n];
    mean = new double[n * dimension];
    covariance = new double[n * length];
    originalWeight = new double[n];
    originalMean = new double[mean.length];
    originalCovariance = new double[covariance.length];
    owner = new int[n];
    next = new int[n];
    white = new double[mean.length];
  }

  /** Takes a Gaussian of a batch as component i. */
  abstract void take(Batch batch, int from, int i);

  final int dimension() {
    return dimension;
  }

  /** Returns the number of components before the first merger. */
  final int size() {
    return size;
  }

  // what a PartnerTree makes bounds of: that of Runnalls' cost is below the other rules', too

  /** Returns a component's mean in a dimension; by Salmond's rule, in those in which the whole mixture has the covariance I. */
  final double center(int i, int h) {
    return (rule == Rule.SALMOND ? white : mean)[i * dimension + h];
  }

  /** Returns a component's variance in a dimension; by Salmond's rule ½, as {@code t ≥ ½ ln(1 + 2t)}. */
  final double spread(int i, int h) {
    return rule == Rule.SALMOND ? 0.5 : covariance[i * length + variance(h)];
  }

  /** Returns a component's weight, or 1 by a rule that takes no account of weights, as {@code ½ d²/p ≥ ln(1 + d²/2/(p + q))}. */
  final double mass(int i) {
    return rule == Rule.RUNNALLS || rule == Rule.SALMOND ? weight[i] : 1;
  }

  /** Whether no cost is below that of Runnalls' rule with {@link #mass}, which knows of covariances that are not alike. */
  final boolean isAboveRunnalls() {
    return rule == Rule.RUNNALLS || rule == Rule.WEST;
  }

  /** Whether the bounds of dimensions may be added. */
  final boolean hasSums() {
    return !isFull() || rule == Rule.SALMOND;
  }

  /** Sets the factor of the covariance of all, and the means in its coordinates. */
  private void setWhole() {
    double total = totalWeight();
    Arrays.fill(shift, 0);
    for (int i = 0; i < size; i++) {
      for (int h = 0; h < dimension; h++) {
        shift[h] += weight[i] / total * mean[i * dimension + h];
      }
    }
    Arrays.fill(whole, 0);
    for (int i = 0; i < size; i++) {
      checkpoint.pass(Checkpoint.ofPlain(length));
      for (int k = 0; k < length; k++) {
        double d = mean[i * dimension + row[k]] - shift[row[k]];
        double e = mean[i * dimension + column[k]] - shift[column[k]];
        whole[k] += weight[i] / total * (covariance[i * length + k] + d * e);
      }
    }
    factorWhole(whole);
    for (int i = 0; i < size; i++) {
      whiten(i);
    }
  }

  /** Makes a covariance its factor. */
  abstract void factorWhole(double[] covariance);

  private void whiten(int i) {
    for (int r = 0; r < dimension; r++) {
      double t = mean[i * dimension + r];
      int k = variance(r);
      for (int c = 0; c < r && length > dimension; c++) {
        t -= whole[k - r + c] * white[i * dimension + c];
      }
      white[i * dimension + r] = t / whole[k];
    }
  }

  /** Returns the index of a variance in a covariance. */
  private int variance(int h) {
    return length == dimension ? h : Cholesky.packedLength(h) + h;
  }

  /** Whether covariances are matrices, not variances. */
  abstract boolean isFull();

  final double weight(int i) {
    return weight[i];
  }

  /** Copies a component's mean. */
  final void copyMean(int i, double[] to, int at) {
    System.arraycopy(mean, i * dimension, to, at, dimension);
  }

  /** Copies a component's variances, or its packed covariance. */
  final void copyCovariance(int i, double[] to, int at) {
    System.arraycopy(covariance, i * length, to, at, length);
  }

  /**
   * Writes a component's variances, or its packed factor and what rounding took from it: as they were given, where it was not merged.
   */
  abstract void copyScale(int i, double[] to, double[] low, int at);

  /** Whether a component's covariance was raised to be positive definite. */
  boolean isRaised(int i) {
    return false;
  }

  /** Counts a cost for a {@link Checkpoint}. */
  final long terms() {
    return isFull() ? Checkpoint.ofSolve(dimension) : Checkpoint.ofPlain(dimension);
  }

  /** Whether it costs nothing to merge a component of weight 0. */
  final boolean areWeightlessFree() {
    return rule == Rule.RUNNALLS || rule == Rule.SALMOND || rule == Rule.WILLIAMS;
  }

  /** Returns the component that an original one is part of, or {@link #NONE} if it was dropped. */
  final int owner(int original) {
    return owner[original];
  }

  /** Returns the cost of merging two components, of which West's rule takes the first as the lightest. */
  final double cost(int i, int j) {
    int heavy = weight[j] > weight[i] || (weight[j] == weight[i] && isWider(j, i)) ? j : i;
    int light = i + j - heavy;
    double cost =
        switch (rule) {
          // Williams' cost is a SquaredError's; 0 where weights are, and of equal components, is of
          // both
          case RUNNALLS, WILLIAMS -> weight[light] == 0 ? 0 : 0.5 * doubleCost(heavy, light);
          case SALMOND -> weight[light] == 0 ? 0 : salmond(heavy, light);
          case WEST -> 0.5 * doubleDivergence(i, j);
          case MAHALANOBIS -> squares(heavy, light);
        };
    return cost >= 0 ? cost : Double.POSITIVE_INFINITY; // a NaN of ∞ − ∞
  }

  private double salmond(int heavy, int light) {
    double squares = 0;
    for (int h = 0; h < dimension; h++) {
      double d = white[light * dimension + h] - white[heavy * dimension + h];
      squares += d * d;
    }
    return weight[heavy] / (weight[heavy] + weight[light]) * weight[light] * squares;
  }

  /** Returns the squared Mahalanobis distance of j's mean from i. */
  abstract double squares(int i, int j);

  /** Returns twice {@code KL(N_i ‖ N_j)}. */
  abstract double doubleDivergence(int i, int j);

  private boolean isWider(int i, int j) {
    return Arrays.compare(
            covariance, i * length, (i + 1) * length, covariance, j * length, (j + 1) * length)
        > 0;
  }

  /** Returns twice the cost of merging a component into one that is not lighter. */
  abstract double doubleCost(int heavy, int light);

  /** Whether {@link #bound} takes less time than {@link #cost}. */
  final boolean hasBounds() {
    return isFull() && rule == Rule.RUNNALLS;
  }

  /** Returns a bound below a cost, or NaN: the cost where there is no other. */
  final double bound(int i, int j) {
    checkpoint.pass(terms());
    return hasBounds() ? boundByDefinition(i, j) : cost(i, j);
  }

  /** Returns a bound below Runnalls' cost, or NaN. */
  double boundByDefinition(int i, int j) {
    throw new AssertionError("has none");
  }

  /** Copies the numbers of a component of which {@link dev.kullback.internal.formula.MergerBounds} makes bounds. */
  void copyNumbers(int i, double[] to, int at, int stride) {
    throw new AssertionError("has none");
  }

  /**
   * Merges component j into component i, and returns true; or does nothing, and returns false, where their covariance is not positive
   * definite in double.
   *
   * @param mayRaise whether such a covariance is raised instead
   */
  final boolean merge(int i, int j, boolean mayRaise) {
    double weightBefore = weight[i];
    System.arraycopy(mean, i * dimension, meanBefore, 0, dimension);
    System.arraycopy(covariance, i * length, covarianceBefore, 0, length);
    join(i, j);
    combine(i);
    if (weight[i] == 0 || factor(i, mayRaise)) {
      for (int k = j; k != NONE; k = next[k]) {
        owner[k] = i;
      }
      if (rule == Rule.SALMOND) {
        whiten(i);
      }
      return true;
    }
    weight[i] = weightBefore;
    System.arraycopy(meanBefore, 0, mean, i * dimension, dimension);
    System.arraycopy(covarianceBefore, 0, covariance, i * length, length);
    part(i);
    return false;
  }

  /** Merges all components into the first. */
  final void mergeAll() {
    for (int k = 0; k < size; k++) {
      next[k] = k + 1 < size ? k + 1 : NONE;
    }
    combine(0);
    factor(0, true);
  }

  /** Makes one list of the original ones of two components, in their order. */
  private void join(int i, int j) {
    int last = i;
    for (int a = next[i], b = j; a != NONE || b != NONE; last = next[last]) {
      if (b == NONE || (a != NONE && a < b)) {
        next[last] = a;
        a = next[a];
      } else {
        next[last] = b;
        b = next[b];
      }
    }
  }

  /** Undoes {@link #join}. */
  private void part(int i) {
    int k = next[i];
    int a = i;
    int b = NONE;
    next[i] = NONE;
    while (k != NONE) {
      int after = next[k];
      next[k] = NONE;
      if (owner[k] == i) {
        next[a] = k;
        a = k;
      } else {
        if (b != NONE) {
          next[b] = k;
        }
        b = k;
      }
      k = after;
    }
  }

  /** Returns the sum of the original weights. */
  final double totalWeight() {
    double total = 0;
    for (int i = 0; i < size; i++) {
      total += originalWeight[i];
    }
    return total;
  }

  /** Leaves a component out, whose weight {@link #scale} gives to those that are left. */
  final void drop(int i) {
    for (int k = i; k != NONE; k = next[k]) {
      owner[k] = NONE;
    }
    weight[i] = 0;
    hasDropped = true;
  }

  /** Has the weights of the components that are left the sum of all again. */
  final void scale() {
    double left = 0;
    for (int i = 0; hasDropped && i < size; i++) {
      left += owner[i] == i ? weight[i] : 0;
    }
    double factor = hasDropped ? totalWeight() / left : 1;
    for (int i = 0; hasDropped && i < size; i++) {
      weight[i] *= factor;
    }
  }

  /** Makes what costs need of a merged component; returns whether its covariance is positive definite in double, or was raised. */
  boolean factor(int i, boolean mayRaise) {
    return true;
  }

  private void combine(int i) {
    int heaviest = i;
    for (int k = next[i]; k != NONE; k = next[k]) {
      heaviest = originalWeight[k] > originalWeight[heaviest] ? k : heaviest;
    }
    weight[i] = totalWeight(i);
    if (weight[i] > 0) {
      mergeMean(i, heaviest);
      mergeCovariance(i, heaviest);
    }
  }

  private double totalWeight(int i) {
    double total = 0;
    double errors = 0;
    for (int k = i; k != NONE; k = next[k]) {
      double more = total + originalWeight[k];
      errors += Compensation.error(total, originalWeight[k], more);
      total = more;
    }
    return total + errors;
  }

  /** Sets the mean as that of the heaviest original component and the mean difference from it, which is 0 where all are equal. */
  private void mergeMean(int i, int heaviest) {
    clearSums();
    for (int k = i; k != NONE; k = next[k]) {
      double share =
          originalWeight[k] / weight[i]; // first, as small weights of small squares underflow
      for (int h = 0; h < dimension; h++) {
        add(h, share * (originalMean[k * dimension + h] - originalMean[heaviest * dimension + h]));
      }
    }
    for (int h = 0; h < dimension; h++) {
      mean[i * dimension + h] = originalMean[heaviest * dimension + h] + (sum[h] + error[h]);
    }
  }

  private void mergeCovariance(int i, int heaviest) {
    clearSums();
    for (int k = i; k != NONE; k = next[k]) {
      checkpoint.pass(Checkpoint.ofPlain(length));
      double share = originalWeight[k] / weight[i];
      for (int h = 0; h < dimension; h++) {
        shift[h] = originalMean[k * dimension + h] - mean[i * dimension + h];
      }
      for (int e = 0; e < length; e++) {
        add(
            e,
            share
                * (originalCovariance[k * length + e] - originalCovariance[heaviest * length + e]));
        add(e, share * (shift[row[e]] * shift[column[e]]));
      }
    }
    for (int e = 0; e < length; e++) {
      covariance[i * length + e] = originalCovariance[heaviest * length + e] + (sum[e] + error[e]);
    }
  }

  private void clearSums() {
    Arrays.fill(sum, 0);
    Arrays.fill(error, 0);
  }

  private void add(int k, double x) {
    double more = sum[k] + x;
    error[k] += Compensation.error(sum[k], x, more);
    sum[k] = more;
  }
}
