package dev.kullback;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.mixture.ReductionOptions;
import dev.kullback.internal.mixture.ReductionOptions.Rule;
import dev.kullback.internal.mixture.ReductionWorker;
import dev.kullback.internal.work.Crew;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

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
 * mirrored, permuted or translated pairs, for instance. Full covariances of large condition numbers, merged components, whose means and
 * covariances are rounded, and costs near the least normal number or below it, as of components of subnormal weight, may fall short of it. It needs
 * {@code O(N D²)} memory, and {@code O(N²)}, in {@code O(N³)} time, of components so far from each other that double does not hold what most
 * mergers give. A component's cheapest partner is looked for in a tree of boxes around means, at first and when one of the two has changed: {@code O(N D)} time at most, and {@code O(D³)} for each cost that bounds
 * do not rule out. A {@code MixtureReduction} is immutable and safe for use by any number of threads.
 *
 * <p>{@link #reducer} is for a filter that reduces at every time step: it keeps its memory, writes to the caller's arrays, and shares
 * mixtures among threads.
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

  private MixtureReduction(Mixtures from, ReductionWorker reduced) {
    int n = reduced.size();
    int d = from.components().dimension();
    double[] means = reduced.means(new double[n * d]);
    double[] scales = reduced.scales(new double[n * reduced.scaleLength()]);
    Gaussians components =
        from.components() instanceof DiagonalGaussians
            ? Gaussians.owning(ScaleKind.VARIANCE, means, scales, d)
            : FullGaussians.of(
                new FullBatch(
                    means, scales, reduced.low(new double[scales.length]), d, true, false));
    assignments = reduced.assignments();
    costs = reduced.costs();
    raised = reduced.raised();
    mixtures =
        Mixtures.owning(
            components,
            reduced.weights(new double[n]),
            reduced.offsets(new int[from.size() + 1]),
            from.isNormalized());
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
    return reducer(size).maxCost(maxCost).progress(progress).reduce(mixtures);
  }

  /**
   * Makes a reducer, which keeps its working memory from one call to the next: for a filter, which reduces at every time step.
   *
   * @param size K, the most components that are left of a mixture, at least 1
   * @return the reducer, by Runnalls' cost, on the calling thread; its other rules preserve the same moments, where they drop nothing
   * @throws IllegalArgumentException if size is below 1
   */
  public static Reducer reducer(int size) {
    if (size < 1) {
      throw new IllegalArgumentException("size must be at least 1, is " + size);
    }
    return new Reducer(new ReductionOptions(size), null);
  }

  /**
   * Reduces mixtures, again and again. Each setting returns another reducer, and leaves this one as it is. A reducer is safe for use by any
   * number of threads; it keeps working memory for each that calls it at once, as the largest mixtures needed so far. Of full covariances, the first
   * call in a process has a daemon thread compile vectors, unless the system property {@code dev.kullback.background} is {@code false}: it
   * takes some seconds, in which reductions take longer, with the same results.
   *
   * @since 0.1.0
   */
  public static final class Reducer {
    private final ReductionOptions options;
    private final @Nullable KlEngine engine;
    private final Crew<ReductionWorker> crew;

    private Reducer(ReductionOptions options, @Nullable KlEngine engine) {
      this.options = options;
      this.engine = engine;
      crew =
          new Crew<>(
              "kullback",
              engine == null ? 1 : engine.engine.threads(),
              engine == null ? null : engine.engine.executor(),
              ReductionWorker::new,
              ReductionWorker::clear);
    }

    /**
     * Limits what a merger may cost: a mixture is left as it is before the first one that costs more, and may keep more than K components.
     *
     * @param cost the most by this reducer's rule, in nats by Runnalls' and West's, ≥ 0; +∞, the default, for no limit
     * @return a reducer with this limit
     * @throws IllegalArgumentException if it is negative or NaN
     */
    public Reducer maxCost(double cost) {
      return new Reducer(options.withRule(options.rule(), limit("maxCost", cost)), engine);
    }

    private static double limit(String name, double limit) {
      if (!(limit >= 0)) {
        throw new IllegalArgumentException(name + " must be >= 0, is " + limit);
      }
      return limit;
    }

    /**
     * Merges by the cost of D. J. Salmond, "Mixture reduction algorithms for target tracking in clutter", SPIE 1305 (1990) 434–445:
     * {@code w_i w_j/w_ij (μ_i − μ_j)ᵀ P⁻¹ (μ_i − μ_j)}, P the covariance of the whole mixture, of diagonal components its diagonal. With
     * weights of sum 1, it is the share of P's trace, in the coordinates of {@code P = I}, that a merger adds to the components. Such
     * costs do not tell of the components' covariances.
     *
     * @return a reducer by this cost; of {@code reduce}, the {@link IllegalArgumentException} that P is singular in double is one more
     */
    public Reducer salmond() {
      return new Reducer(options.withRule(Rule.SALMOND, options.maxCost()), engine);
    }

    /**
     * Merges the lightest component with the nearest, again and again, as M. West, "Approximating posterior distributions by mixtures",
     * Journal of the Royal Statistical Society B 55 (1993) 409–422, section 2.3. Nearest is the j of least {@code KL(N_i ‖ N_j)}, i the
     * lightest, as D. F. Crouse et al., "A look at Gaussian mixture reduction algorithms", Fusion 2011, have it, and that is the cost, in
     * nats, of no account of weights.
     *
     * @return a reducer by this rule
     */
    public Reducer west() {
      return new Reducer(options.withRule(Rule.WEST, options.maxCost()), engine);
    }

    /**
     * Merges the two whose merger adds least to the integral squared error {@code J = ∫ (f − g)²} of the mixture g from the one that was given, f: J. L.
     * Williams and P. S. Maybeck, "Cost-function-based Gaussian mixture reduction for target tracking", Fusion 2003, whose greedy start D. F. Crouse
     * et al., "A look at Gaussian mixture reduction algorithms", Fusion 2011, have, too. The cost is what a merger adds to J, as a share of {@code ∫ f²}, so
     * neither units nor the sum of weights matter, and the sum of costs is {@code J / ∫ f²}. It may be negative, and as it is that of g as a whole, a merger
     * changes the costs of all others. Where {@link #minWeight} leaves components out, f is what is left.
     *
     * <p>A cost is right to 1e-12 of the sum of its integrals' absolute values, of dimensions up to 100 and times the condition number of covariances; costs that differ by less than 3.6e-12 of
     * that are equal. That is so of components that do not overlap, neither before nor after a merger, in many dimensions for instance; and costs below 1e-308 are 0.
     * A reduction of N components, after {@link #minWeight}, takes {@code O(N²)} memory, 30 N² bytes for pairs, which the reducer keeps, and {@code O(N³)} integrals at most.
     *
     * @return a reducer by this cost; of {@code reduce}, the {@link IllegalArgumentException} that the pairs of a mixture exceed an array, as those of more than 65,536 components do, or
     *     the heap is one more
     */
    public Reducer williams() {
      return new Reducer(options.withRule(Rule.WILLIAMS, options.maxCost()), engine);
    }

    /**
     * Merges the two whose means are nearest, again and again, as long as they are within a gate: the cost is the squared Mahalanobis
     * distance {@code (μ_i − μ_j)ᵀ P_i⁻¹ (μ_i − μ_j)}, i the heavier of the two, and the gate is the {@link #maxCost}.
     *
     * @param squaredDistance the gate, ≥ 0: of D = 2, 9.21 for instance holds 99 % of a Gaussian
     * @return a reducer by this rule
     * @throws IllegalArgumentException if the gate is negative or NaN
     */
    public Reducer gate(double squaredDistance) {
      double limit = limit("squaredDistance", squaredDistance);
      return new Reducer(options.withRule(Rule.MAHALANOBIS, limit), engine);
    }

    /**
     * Leaves components of little weight out before the first merger. Their weight goes to those that are left, in proportion, so the sum
     * of weights is preserved, but neither the mean nor the covariance of the mixture. {@link #assignments} has −1 for them.
     *
     * @param share the least weight, as a share of the mixture's, in [0, 1]; 0, the default, for any. The heaviest component stays
     * @return a reducer that prunes
     * @throws IllegalArgumentException if the share is not such
     */
    public Reducer minWeight(double share) {
      if (!(share >= 0 && share <= 1)) {
        throw new IllegalArgumentException("minWeight must be in [0, 1], is " + share);
      }
      return new Reducer(options.withMinWeight(share), engine);
    }

    /**
     * Leaves the lightest components out after the last merger, where a limit has left more than K: exactly K are left, or fewer. Their weight
     * goes to those that are left, as that of {@link #minWeight}. {@code maxCost(0).cap()} drops all but the K heaviest, after merging equal ones.
     *
     * @return a reducer that drops
     */
    public Reducer cap() {
      return new Reducer(options.capped(), engine);
    }

    /**
     * Tells how far a call is.
     *
     * @param left takes the number of components left in all mixtures on the calling thread, before the first merger and after each of that
     *     thread; those of an engine's other threads are told with the next one of that thread, or at the end. What it throws ends the reduction
     * @return a reducer that tells
     */
    public Reducer progress(IntConsumer left) {
      return new Reducer(options.withProgress(Objects.requireNonNull(left, "progress")), engine);
    }

    /**
     * Shares the mixtures of a call among the threads of an engine; one mixture is one thread's. Results are the same to the bit.
     *
     * @param engine an engine of any divergence, whose threads help until it is closed
     * @return a reducer with these threads
     */
    public Reducer engine(KlEngine engine) {
      return new Reducer(options, Objects.requireNonNull(engine, "engine"));
    }

    /**
     * Reduces each mixture to at most K components.
     *
     * @param mixtures N mixtures
     * @return the reduced mixtures
     * @throws IllegalArgumentException if components have means, variances or factors too large or too small for squares in double (beyond
     *     2^±250, variances of diagonal ones beyond 2^±500)
     * @throws java.util.concurrent.CancellationException if the calling thread is interrupted
     */
    public MixtureReduction reduce(Mixtures mixtures) {
      ReductionWorker worker = begin(mixtures, true);
      try {
        return new MixtureReduction(mixtures, worker);
      } finally {
        crew.giveBack(worker);
      }
    }

    /**
     * Reduces each mixture to at most K components, into the caller's arrays, the first mixture's components at first. A warm call on one
     * thread allocates nothing, if its components have the kind and the dimension of those before, unless a merger waits as double does not
     * hold its covariance. Assignments and costs are {@link #reduce(Mixtures)}'s alone.
     *
     * @param mixtures N mixtures, whose arrays may be these: they have copies
     * @param weights where the weights of the R components that are left go, {@code [R]} or longer; R is at most N·K, or with a limit to costs
     *     the number of all components
     * @param means where their means go, {@code [R, D]} or longer
     * @param covariances where their covariances go, {@code [R, D, D]}, both triangles; of diagonal components variances, {@code [R, D]}
     * @param offsets where the index of the first component of each mixture goes, and R, {@code [N + 1]}
     * @return R
     * @throws IllegalArgumentException if an array is too short, which leaves all as they are, and as {@link #reduce(Mixtures)} does
     * @throws java.util.concurrent.CancellationException if the calling thread is interrupted
     */
    public int reduce(
        Mixtures mixtures, double[] weights, double[] means, double[] covariances, int[] offsets) {
      ReductionWorker worker = begin(mixtures, false);
      try {
        int n = worker.size();
        long d = mixtures.components().dimension();
        boolean isFull = !(mixtures.components() instanceof DiagonalGaussians);
        checkRoom("weights", weights.length, n);
        checkRoom("means", means.length, n * d);
        checkRoom("covariances", covariances.length, isFull ? n * d * d : n * d);
        checkRoom("offsets", offsets.length, mixtures.size() + 1);
        worker.weights(weights);
        worker.means(means);
        if (isFull) {
          worker.covariances(covariances);
        } else {
          worker.scales(covariances);
        }
        worker.offsets(offsets);
        return n;
      } finally {
        crew.giveBack(worker);
      }
    }

    private static void checkRoom(String name, int length, long needed) {
      if (length < needed) {
        throw new IllegalArgumentException(
            "%s has %d elements, but the reduced mixtures need %d".formatted(name, length, needed));
      }
    }

    @Override
    public String toString() {
      return "Reducer[%s%s]".formatted(options, engine == null ? "" : ", " + engine);
    }

    /** Reduces mixtures; returns the worker that has them, which is to be given back. */
    private ReductionWorker begin(Mixtures mixtures, boolean hasFactors) {
      Gaussians components = Objects.requireNonNull(mixtures, "mixtures").components();
      Batch batch = LowRankBatch.writtenOut(KlEngine.batch(components));
      checkRange(batch);
      ReductionWorker worker = crew.take();
      boolean isDone = false;
      try {
        worker.reduce(crew, batch, mixtures.ownWeights(), mixtures.offsets(), options, hasFactors);
        isDone = true;
        return worker;
      } finally {
        if (!isDone) {
          crew.giveBack(worker);
        }
      }
    }
  }

  /** Checks that squares of means and factors are within double's range. */
  static void checkRange(Batch batch) {
    for (int i = 0; i < batch.size(); i++) {
      switch (batch) {
        case DiagonalBatch d -> checkRange(d, i);
        case LowRankBatch _ -> throw new AssertionError("written out");
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

  /** {@return for each original component, the index of the one of {@code mixtures().components()} that it is part of, or −1 if it was dropped; its own array} */
  public int[] assignments() {
    return assignments;
  }

  /**
   * {@return the cost of each merger by the reducer's rule, in the order in which they were made, the first mixture's at first: as many for a
   * mixture as it has lost components, but for those left out; its own array} By Runnalls' rule and West's they are in nats. By Runnalls', for weights of sum 1, a mixture's
   * costs have a sum of at least {@code KL(mixture ‖ reduced mixture)}: the divergence of the mixtures is at most that of their components, each from the one that it is part of.
   */
  public double[] costs() {
    return costs;
  }

  /** {@return the sum of {@link #costs()} over all mixtures} */
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
