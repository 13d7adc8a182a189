package dev.kullback;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.mixture.Components;
import dev.kullback.internal.mixture.Reduction;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.IntConsumer;

/**
 * A mixture {@code Σ_i w_i N(μ_i, P_i)} of N Gaussians that was reduced to fewer, by merging two of them at a time into the Gaussian of
 * their weight, mean and covariance:
 *
 * <pre>
 * w_ij = w_i + w_j
 * μ_ij = (w_i μ_i + w_j μ_j) / w_ij
 * P_ij = (w_i P_i + w_j P_j) / w_ij + w_i w_j / w_ij² (μ_i − μ_j)(μ_i − μ_j)ᵀ
 * </pre>
 *
 * <p>The two are those of the least cost
 *
 * <pre>
 * B(i, j) = ½ [(w_i + w_j) ln|P_ij| − w_i ln|P_i| − w_j ln|P_j|]
 * </pre>
 *
 * <p>of A. R. Runnalls, "Kullback-Leibler approach to Gaussian mixture reduction", IEEE Transactions on Aerospace and Electronic Systems 43
 * (2007) 989–999, equation 21. It is {@code w_i KL(N_i ‖ N_ij) + w_j KL(N_j ‖ N_ij)}, in nats, never negative, and 0 for equal Gaussians.
 * For weights of sum 1, it bounds how much further the mixture is from the reduced one, by KL, than it was. It is proportional to the
 * weights, whose sum need not be 1: a tracker's intensity has the number of targets.
 *
 * <p>Of diagonal components, P is diagonal: variances are those of the merged component, and covariances between dimensions are dropped.
 * The cost is that of the diagonal P_ij.
 *
 * <p><b>Accuracy.</b> Everything is computed in double, of the components' means and covariances rounded to double; what was given as
 * covariances or variances of double is used as given. A cost has a relative error of at most 1e-12 up to D = 100, with full covariances
 * times the condition number of the heavier component's covariance, however alike the components are. A component that was merged
 * is computed of the original ones in it, so that errors do not grow with the number of mergers: the weight, the mean and the second moment
 * {@code E[xxᵀ]} of the mixture are preserved to 1e-12 of the sums of their terms' absolute values.
 *
 * <p>Results do not depend on anything but the arguments. Costs that differ by less than 3.6e-12 of themselves, as computed, count as
 * equal, and go to the lower i, then to the lower j. This holds for all costs that are equal in exact arithmetic, within the accuracy above: those of
 * mirrored, permuted or translated pairs, for instance. Full covariances of large condition numbers and merged components, whose means and
 * covariances are rounded, may fall short of it. It runs on the calling thread, needs {@code O(N D²)} memory, and goes through all pairs once and through those of a component again when it has changed: in
 * practice {@code O(N² D)} time, and {@code O(D³)} for each cost that a bound does not rule out. A {@code MixtureReduction} is immutable
 * and safe for use by any number of threads.
 *
 * @since 0.1.0
 */
public final class MixtureReduction {
  /** Largest absolute value of a mean: its square, over or under a variance, is within double's range. */
  private static final double MOST_MEAN = 0x1p250;

  /** Largest sum of weights, and its inverse the least: costs are in double's range. */
  private static final double MOST_SUM = 0x1p500;

  private final Gaussians components;
  private final double[] weights;
  private final double[] means;
  private final double[] scales;
  private final int[] assignments;
  private final double[] costs;

  private MixtureReduction(Components merged, Reduction reduction, double[] costs, int n) {
    boolean isFull = merged.isFull();
    int size = reduction.size();
    int d = merged.dimension();
    int length = isFull ? d * d : d;
    weights = new double[size];
    means = new double[size * d];
    scales = new double[size * length];
    int[] places = new int[n];
    for (int p = 0; p < size; p++) {
      int i = reduction.component(p);
      places[i] = p;
      weights[p] = merged.weight(i);
      merged.copyMean(i, means, p * d);
      merged.copyCovariance(i, scales, p * length);
    }
    assignments = new int[n];
    Arrays.setAll(assignments, i -> places[merged.owner(i)]);
    this.costs = costs;
    components =
        isFull
            ? FullGaussians.ofCovariance(means, scales, d)
            : Gaussians.owning(ScaleKind.VARIANCE, means, scales, d);
  }

  /**
   * Reduces a mixture to at most K components.
   *
   * @param components N Gaussians
   * @param weights w, N finite numbers ≥ 0 of a sum in [2⁻⁵⁰⁰, 2⁵⁰⁰]. Components of weight 0 cost nothing to merge, and are merged first
   * @param size K, at least 1
   * @return the reduced mixture
   * @throws IllegalArgumentException if the arguments are not such; if the components are deterministic, or have means, variances or
   *     factors too large or too small for squares in double (beyond 2^±250, variances of diagonal ones beyond 2^±500); or if a covariance
   *     becomes singular in double when components merge
   * @throws java.util.concurrent.CancellationException if the calling thread is interrupted
   */
  public static MixtureReduction runnalls(Gaussians components, double[] weights, int size) {
    return runnalls(components, weights, size, Double.POSITIVE_INFINITY);
  }

  /**
   * Reduces a mixture as {@link #runnalls(Gaussians, double[], int)} does, and stops before the first merger that costs more than
   * {@code maxCost}.
   *
   * @param maxCost the most that a merger may cost, in nats, ≥ 0; +∞ for no limit
   * @return the reduced mixture, which may have more than K components
   */
  public static MixtureReduction runnalls(
      Gaussians components, double[] weights, int size, double maxCost) {
    return runnalls(components, weights, size, maxCost, _ -> {});
  }

  /**
   * Reduces a mixture as {@link #runnalls(Gaussians, double[], int, double)} does, and tells how far it is.
   *
   * @param progress takes the number of components left on the calling thread, before the first merger and after each; what it throws
   *     ends the reduction
   * @return the reduced mixture
   */
  public static MixtureReduction runnalls(
      Gaussians components, double[] weights, int size, double maxCost, IntConsumer progress) {
    Batch batch = KlEngine.batch(components, "components");
    Objects.requireNonNull(weights, "weights");
    Objects.requireNonNull(progress, "progress");
    if (size < 1) {
      throw new IllegalArgumentException("size must be at least 1, is " + size);
    }
    if (!(maxCost >= 0)) {
      throw new IllegalArgumentException("maxCost must be >= 0, is " + maxCost);
    }
    checkWeights(weights, batch.size());
    checkRange(batch);
    Components merged = Components.of(batch, weights.clone());
    Reduction reduction = new Reduction(merged, batch.size());
    double[] costs = reduction.run(size, maxCost, progress);
    return new MixtureReduction(merged, reduction, costs, batch.size());
  }

  private static void checkWeights(double[] weights, int n) {
    Mixture.checkLength(weights, n);
    double sum = 0;
    for (int i = 0; i < n; i++) {
      if (!(weights[i] >= 0 && weights[i] <= Double.MAX_VALUE)) {
        throw new IllegalArgumentException(
            "weights[%d] is %s; it must be finite and >= 0%s"
                .formatted(i, weights[i], weights[i] < 0 ? "; is it a logarithm?" : ""));
      }
      sum += weights[i];
    }
    if (sum == 0) {
      throw new IllegalArgumentException("the weights are all 0: the mixture has no component");
    }
    if (!(sum >= 1 / MOST_SUM && sum <= MOST_SUM)) {
      throw new IllegalArgumentException(
          "the sum of weights is "
              + sum
              + "; it must be in [2^-500, 2^500]: scale them all by one number");
    }
  }

  private static void checkRange(Batch batch) {
    if (batch.isDeterministic()) {
      throw new IllegalArgumentException(
          "components are deterministic (std 0); only Gaussians with variances > 0 can be merged");
    }
    for (int i = 0; i < batch.size(); i++) {
      switch (batch) {
        case DiagonalBatch d -> checkRange(d, i);
        case FullBatch f -> {
          if (f.isBeyond(i)) {
            throw new IllegalArgumentException(
                "components[%d] has a mean or a factor beyond 2^±250; rescale the data"
                    .formatted(i));
          }
        }
      }
    }
  }

  private static void checkRange(DiagonalBatch batch, int i) {
    if (batch.beyond64().get(i)) {
      throw new IllegalArgumentException(
          "components[%d] has a variance outside [2^-500, 2^500]; rescale the data".formatted(i));
    }
    for (int h = 0; h < batch.dimension(); h++) {
      double mean = batch.mean(i * batch.dimension() + h);
      if (!(Math.abs(mean) <= MOST_MEAN)) {
        throw new IllegalArgumentException(
            "components[%d] has mean %s in dimension %d, outside [-2^250, 2^250]; rescale the data"
                .formatted(i, mean, h));
      }
    }
  }

  /** {@return the number of components that are left} */
  public int size() {
    return weights.length;
  }

  /** {@return the components that are left, of double precision, by the lowest index of the original ones in each} */
  public Gaussians components() {
    return components;
  }

  /** {@return the weights of {@link #components()}, a new array; their sum is that of the original ones} */
  public double[] weights() {
    return weights.clone();
  }

  /** {@return the means of {@link #components()}, row-major {@code [size, D]}, a new array} */
  public double[] means() {
    return means.clone();
  }

  /**
   * {@return the covariances of {@link #components()}, row-major {@code [size, D, D]}, or of diagonal components the variances
   * {@code [size, D]}, a new array}
   */
  public double[] covariances() {
    return scales.clone();
  }

  /** {@return for each of the N original components, the index of the one of {@link #components()} that it is part of, a new array} */
  public int[] assignments() {
    return assignments.clone();
  }

  /** {@return the cost of each merger, in nats, in the order in which they were made: N − size numbers, a new array} */
  public double[] costs() {
    return costs.clone();
  }

  /**
   * {@return the sum of {@link #costs()}, in nats} For weights of sum 1 it is {@code ≥ KL(mixture ‖ reduced mixture)}: the divergence of
   * the mixtures is at most that of their components, each from the one that it is part of.
   */
  public double totalCost() {
    return Arrays.stream(costs).sum();
  }

  @Override
  public String toString() {
    return "MixtureReduction[%d to %d, cost %s]"
        .formatted(assignments.length, weights.length, totalCost());
  }
}
