package dev.kullback;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.mixture.ReducedMixtures;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.IntConsumer;

/**
 * Mixtures {@code Σ_i w_i N(μ_i, P_i)} of Gaussians that were reduced, each by itself, to fewer components, by merging two of them at a time
 * into the Gaussian of their weight, mean and covariance:
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
 * weights, whose sum need not be 1 ({@link Mixtures#unnormalized(Gaussians, double[]) unnormalized}): a tracker's intensity has the number of targets.
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
 * <p><b>Far components.</b> Where means are some 1e7 standard deviations apart, double does not hold the covariance of both: rounded, it
 * is singular. Such a merger is put off until no other is left, and then, if it costs no more than the limit, the covariance is raised: its
 * diagonal is multiplied by {@code 1 + ε}, ε no more than twice the least with which {@link FullGaussians#ofCovariance(double[], double[],
 * int)} takes it, some 1e-15. {@link #raised()} and {@code toString} tell of it.
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

  private final Mixtures mixtures;
  private final int[] assignments;
  private final double[] costs;

  private final int raised;

  private MixtureReduction(Mixtures from, ReducedMixtures reduced) {
    int d = from.components().dimension();
    Gaussians components =
        reduced.isFull()
            ? FullGaussians.of(
                new FullBatch(reduced.means, reduced.scales, reduced.low, d, true, false))
            : Gaussians.owning(ScaleKind.VARIANCE, reduced.means, reduced.scales, d);
    assignments = reduced.assignments;
    costs = reduced.costs;
    raised = reduced.raised;
    mixtures = Mixtures.owning(components, reduced.weights, reduced.offsets, from.isNormalized());
  }

  /**
   * Reduces each mixture to at most K components.
   *
   * @param mixtures N mixtures. Components of weight 0 cost nothing to merge, and are merged first
   * @param size K, at least 1
   * @return the reduced mixtures
   * @throws IllegalArgumentException if size is below 1; if components have means, variances or factors too large or too small for squares
   *     in double (beyond 2^±250, variances of diagonal ones beyond 2^±500)
   * @throws java.util.concurrent.CancellationException if the calling thread is interrupted
   */
  public static MixtureReduction runnalls(Mixtures mixtures, int size) {
    return runnalls(mixtures, size, Double.POSITIVE_INFINITY, _ -> {});
  }

  /**
   * Reduces mixtures as {@link #runnalls(Mixtures, int)} does, but each only until a merger would cost more than {@code maxCost}, and tells
   * how far it is.
   *
   * @param mixtures N mixtures
   * @param size K, at least 1
   * @param maxCost the most that a merger may cost, in nats, ≥ 0; +∞ for no limit. With a limit, a mixture may keep more than K components
   * @param progress takes the number of components left in all mixtures on the calling thread, before the first merger and after each;
   *     what it throws ends the reduction
   * @return the reduced mixtures
   * @throws IllegalArgumentException if maxCost is negative or NaN, and as {@link #runnalls(Mixtures, int)} does
   * @throws java.util.concurrent.CancellationException if the calling thread is interrupted
   */
  public static MixtureReduction runnalls(
      Mixtures mixtures, int size, double maxCost, IntConsumer progress) {
    Objects.requireNonNull(mixtures, "mixtures");
    Objects.requireNonNull(progress, "progress");
    if (size < 1) {
      throw new IllegalArgumentException("size must be at least 1, is " + size);
    }
    if (!(maxCost >= 0)) {
      throw new IllegalArgumentException("maxCost must be >= 0, is " + maxCost);
    }
    checkRange(KlEngine.batch(mixtures.components()));
    ReducedMixtures reduced =
        new ReducedMixtures(
            KlEngine.batch(mixtures.components()),
            mixtures.weights(),
            mixtures.offsets(),
            size,
            maxCost,
            progress);
    return new MixtureReduction(mixtures, reduced);
  }

  private static void checkRange(Batch batch) {
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

  /**
   * {@return the reduced mixtures, of components of double precision} Those of a mixture come by the lowest index of the original ones in
   * each. The sum of its weights is that of the original ones.
   */
  public Mixtures mixtures() {
    return mixtures;
  }

  /** {@return for each original component, the index of the one of {@code mixtures().components()} that it is part of, its own array} */
  public int[] assignments() {
    return assignments;
  }

  /**
   * {@return the cost of each merger, in nats, in the order in which they were made, the first mixture's at first: as many for a
   * mixture as it has lost components; its own array} For weights of sum 1, a mixture's costs have a sum of at least {@code KL(mixture ‖
   * reduced mixture)}: the divergence of the mixtures is at most that of their components, each from the one that it is part of.
   */
  public double[] costs() {
    return costs;
  }

  /** {@return the sum of {@link #costs()}, in nats, over all mixtures} */
  public double totalCost() {
    return Arrays.stream(costs).sum();
  }

  /**
   * {@return the number of components whose covariance was raised, as double does not hold it} Weights, means and costs are right; the
   * variances are too great by what rounding takes from them or a few times it, some 1e-15 of them.
   */
  public int raised() {
    return raised;
  }

  @Override
  public String toString() {
    return "MixtureReduction[%d to %d, cost %s%s]"
        .formatted(
            assignments.length,
            mixtures.components().size(),
            totalCost(),
            raised == 0 ? "" : ", covariances raised: " + raised);
  }
}
