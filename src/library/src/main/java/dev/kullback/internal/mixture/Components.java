package dev.kullback.internal.mixture;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
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
public abstract class Components {
  /** Norm of X up to which G is used: there, no more than two bits cancel, and the logarithms would lose more. */
  static final double SMALL = 0.5;

  final int dimension;

  /** Numbers that hold a covariance: variances, or a packed triangle. */
  final int length;

  /** Each component's weight, mean and covariance, as merged so far. */
  final double[] weight;

  final double[] mean;
  final double[] covariance;

  private final double[] originalWeight;
  private final double[] originalMean;
  private final double[] originalCovariance;

  /** The component that each original one is now part of: of those merged, the one of the lowest index. */
  private final int[] owner;

  /** Row and column of each number of a covariance. */
  private final int[] row;

  private final int[] column;

  /** Looks whether the work is to end, in the midst of a cost or of a merger, too. */
  final Checkpoint checkpoint = new Checkpoint();

  /** Sums of products of shares of a weight, and their rounding errors. */
  private final double[] sum;

  private final double[] error;
  private final double[] shift;

  /** Owners, and a component's mean and covariance, before a merger that may be undone. */
  private final int[] ownerBefore;

  private final double[] meanBefore;
  private final double[] covarianceBefore;

  /** Makes the components of means, which it copies, as it does weights, and of covariances, which it keeps. */
  Components(double[] weights, double[] mean, double[] covariance) {
    int n = weights.length;
    dimension = mean.length / n;
    length = covariance.length / n;
    weight = weights.clone();
    this.mean = mean.clone();
    this.covariance = covariance;
    originalWeight = weights;
    originalMean = mean;
    originalCovariance = covariance.clone();
    owner = new int[n];
    Arrays.setAll(owner, i -> i);
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
    sum = new double[length];
    error = new double[length];
    shift = new double[dimension];
    ownerBefore = new int[n];
    meanBefore = new double[dimension];
    covarianceBefore = new double[length];
  }

  public static Components of(Batch batch, double[] weights) {
    return switch (batch) {
      case DiagonalBatch d -> new DiagonalComponents(d, weights);
      case FullBatch f -> new FullComponents(f, weights);
    };
  }

  public final int dimension() {
    return dimension;
  }

  /** Whether covariances are matrices, not variances. */
  public abstract boolean isFull();

  public final double weight(int i) {
    return weight[i];
  }

  /** Copies a component's mean. */
  public final void copyMean(int i, double[] to, int at) {
    System.arraycopy(mean, i * dimension, to, at, dimension);
  }

  /**
   * Writes a component's variances, or its packed factor and what rounding took from it: as they were given, where it was not merged.
   */
  public abstract void copyScale(int i, double[] to, double[] low, int at);

  /** Numbers that {@link #copyScale} writes. */
  public final int scaleLength() {
    return length;
  }

  /** Whether a component's covariance was raised to be positive definite. */
  public boolean isRaised(int i) {
    return false;
  }

  /** Counts a cost for a {@link Checkpoint}. */
  final long terms() {
    return isFull() ? Checkpoint.ofSolve(dimension) : Checkpoint.ofPlain(dimension);
  }

  /** Returns the component that an original one is part of. */
  public final int owner(int original) {
    return owner[original];
  }

  /** Returns the cost of merging two components. */
  public final double cost(int i, int j) {
    int heavy = weight[j] > weight[i] || (weight[j] == weight[i] && isWider(j, i)) ? j : i;
    int light = i + j - heavy;
    if (weight[light] == 0) {
      return 0;
    }
    double cost = 0.5 * doubleCost(heavy, light);
    return cost >= 0 ? cost : Double.POSITIVE_INFINITY; // a NaN of ∞ − ∞
  }

  private boolean isWider(int i, int j) {
    return Arrays.compare(
            covariance, i * length, (i + 1) * length, covariance, j * length, (j + 1) * length)
        > 0;
  }

  /** Returns twice the cost of merging a component into one that is not lighter. */
  abstract double doubleCost(int heavy, int light);

  /**
   * Whether merging two components certainly costs more than {@code most}, by a bound first that takes no factorization. It holds as
   * {@code ln|a P_i + b P_j|} is concave:
   *
   * <pre>
   * cost ≥ ½ w ln(1 + x) ≥ w x/(2 + x),  x = ab dᵀ(a P_i + b P_j)⁻¹d ≥ ab d_h²/(a P_i,hh + b P_j,hh)
   * </pre>
   */
  abstract boolean costsMore(int i, int j, double most);

  /**
   * Merges component j into component i, and returns true; or does nothing, and returns false, where their covariance is not positive
   * definite in double.
   *
   * @param mayRaise whether such a covariance is raised instead
   */
  final boolean merge(int i, int j, boolean mayRaise) {
    double weightBefore = weight[i];
    System.arraycopy(owner, 0, ownerBefore, 0, owner.length);
    System.arraycopy(mean, i * dimension, meanBefore, 0, dimension);
    System.arraycopy(covariance, i * length, covarianceBefore, 0, length);
    combine(i, j);
    if (weight[i] == 0 || factor(i, mayRaise)) {
      return true;
    }
    weight[i] = weightBefore;
    System.arraycopy(ownerBefore, 0, owner, 0, owner.length);
    System.arraycopy(meanBefore, 0, mean, i * dimension, dimension);
    System.arraycopy(covarianceBefore, 0, covariance, i * length, length);
    return false;
  }

  /** Makes what costs need of a merged component; returns whether its covariance is positive definite in double, or was raised. */
  boolean factor(int i, boolean mayRaise) {
    return true;
  }

  private void combine(int i, int j) {
    int heaviest = -1;
    for (int k = 0; k < owner.length; k++) {
      if (owner[k] == j) {
        owner[k] = i;
      }
      if (owner[k] == i && (heaviest < 0 || originalWeight[k] > originalWeight[heaviest])) {
        heaviest = k;
      }
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
    for (int k = 0; k < owner.length; k++) {
      if (owner[k] == i) {
        double next = total + originalWeight[k];
        errors += Compensation.error(total, originalWeight[k], next);
        total = next;
      }
    }
    return total + errors;
  }

  /** Sets the mean as that of the heaviest original component and the mean difference from it, which is 0 where all are equal. */
  private void mergeMean(int i, int heaviest) {
    clearSums();
    for (int k = 0; k < owner.length; k++) {
      if (owner[k] == i) {
        double share =
            originalWeight[k] / weight[i]; // first, as small weights of small squares underflow
        for (int h = 0; h < dimension; h++) {
          add(
              h,
              share * (originalMean[k * dimension + h] - originalMean[heaviest * dimension + h]));
        }
      }
    }
    for (int h = 0; h < dimension; h++) {
      mean[i * dimension + h] = originalMean[heaviest * dimension + h] + (sum[h] + error[h]);
    }
  }

  private void mergeCovariance(int i, int heaviest) {
    clearSums();
    for (int k = 0; k < owner.length; k++) {
      if (owner[k] == i) {
        checkpoint.pass(Checkpoint.ofPlain(length));
        double share = originalWeight[k] / weight[i];
        for (int h = 0; h < dimension; h++) {
          shift[h] = originalMean[k * dimension + h] - mean[i * dimension + h];
        }
        for (int e = 0; e < length; e++) {
          add(
              e,
              share
                  * (originalCovariance[k * length + e]
                      - originalCovariance[heaviest * length + e]));
          add(e, share * (shift[row[e]] * shift[column[e]]));
        }
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
    double next = sum[k] + x;
    error[k] += Compensation.error(sum[k], x, next);
    sum[k] = next;
  }
}
