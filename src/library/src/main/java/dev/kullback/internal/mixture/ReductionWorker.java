package dev.kullback.internal.mixture;

import static java.util.Objects.requireNonNull;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.work.Crew;
import dev.kullback.internal.work.Job;
import dev.kullback.internal.work.Worker;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * A thread that reduces mixtures, each by itself. The one that leads a call has what became of all mixtures of it, and keeps its arrays for
 * other calls.
 */
public final class ReductionWorker extends Worker implements Job.Task<ReductionWorker> {
  /** That of the last mixture, which serves others of its dimension. */
  private @Nullable Reduction reduction;

  private static final double[] NO_WEIGHTS = {};
  private static final int[] NO_OFFSETS = {};

  // of the call that this one leads

  private @Nullable Batch batch;
  private double[] originalWeights = NO_WEIGHTS;
  private int[] originalOffsets = NO_OFFSETS;
  private @Nullable ReductionOptions options;
  private boolean hasFactors;
  private @Nullable Thread caller;

  /** Components that are left in all mixtures, and as many as the caller was told. */
  private final AtomicInteger left = new AtomicInteger();

  private int told;
  private final Runnable progress = this::merged;
  private final Runnable look = this::checkInterrupt;

  /** Numbers of a covariance, as they are kept here: variances, or a packed triangle. */
  private int length;

  /**
   * What is left of each mixture, from the place of its first original component on: weights, means, variances or packed factors with what
   * rounding took from them or packed covariances, and costs.
   */
  private double[] weights = {};

  private double[] means = {};
  private double[] scales = {};
  private double[] low = {};
  private double[] costs = {};

  /** Component that each original one is part of, of those left of its mixture; −1 if it was dropped. */
  private int[] assignments = {};

  /** Of each mixture, how many components are left, mergers were made, and covariances raised. */
  private int[] sizes = {};

  private int[] steps = {};
  private int[] raised = {};

  /**
   * Reduces mixtures with the threads of a crew.
   *
   * @param weights of the components, and not changed
   * @param offsets index of the first component of each mixture, and the number of components
   * @param hasFactors whether factors are kept, not covariances
   */
  public void reduce(
      Crew<ReductionWorker> crew,
      Batch components,
      double[] weights,
      int[] offsets,
      ReductionOptions options,
      boolean hasFactors) {
    startCall();
    batch = components;
    originalWeights = weights;
    originalOffsets = offsets;
    this.options = options;
    this.hasFactors = hasFactors;
    int d = components.dimension();
    boolean isFull = components instanceof FullBatch;
    length = isFull ? Cholesky.packedLength(d) : d;
    makeRoom(weights.length, d, isFull && hasFactors, offsets.length - 1);
    caller = Thread.currentThread();
    left.set(weights.length);
    told = weights.length;
    options.progress().accept(told);
    crew.share(offsets.length - 1, this, this);
    if (told > left.get()) {
      options.progress().accept(left.get());
    }
  }

  private void makeRoom(int n, int d, boolean hasLow, int mixtures) {
    if (weights.length < n) {
      weights = new double[n];
      costs = new double[n];
      assignments = new int[n];
    }
    means = means.length < n * d ? new double[n * d] : means;
    scales = scales.length < n * length ? new double[n * length] : scales;
    low = hasLow && low.length < n * length ? new double[n * length] : low;
    if (sizes.length < mixtures) {
      sizes = new int[mixtures];
      steps = new int[mixtures];
      raised = new int[mixtures];
    }
  }

  private void merged() {
    int now = left.decrementAndGet();
    if (Thread.currentThread() == caller) {
      told = now;
      requireNonNull(options).progress().accept(now);
    }
  }

  /** Reduces a mixture of the call that this one leads, on the thread of {@code worker}. */
  @Override
  public void run(long index, ReductionWorker worker) {
    worker.checkInterrupt();
    int m = (int) index;
    Batch from = requireNonNull(batch);
    ReductionOptions by = requireNonNull(options);
    Reduction reduction = worker.reduction;
    if (reduction == null || !reduction.components.isFor(from)) {
      reduction = new Reduction(Components.of(from));
      worker.reduction = reduction;
    }
    reduction.components.load(
        from, originalWeights, originalOffsets[m], originalOffsets[m + 1], by.rule());
    reduction.run(by, worker.look, progress);
    keep(m, reduction);
  }

  private void keep(int m, Reduction reduction) {
    Components own = reduction.components;
    int d = own.dimension();
    int at = originalOffsets[m];
    int n = 0;
    raised[m] = 0;
    for (int i = reduction.next(0); i < own.size(); i = reduction.next(i + 1), n++) {
      weights[at + n] = own.weight(i);
      own.copyMean(i, means, (at + n) * d);
      if (hasFactors) {
        own.copyScale(i, scales, low, (at + n) * length);
      } else {
        own.copyCovariance(i, scales, (at + n) * length);
      }
      raised[m] += own.isRaised(i) ? 1 : 0;
      assignments[at + i] = n;
    }
    for (int i = 0; i < own.size(); i++) {
      assignments[at + i] = own.owner(i) < 0 ? -1 : assignments[at + own.owner(i)];
    }
    sizes[m] = n;
    steps[m] = reduction.steps();
    reduction.copyCosts(costs, at);
  }

  // what is handed over

  /** Returns the number of components that are left in all mixtures. */
  public int size() {
    return left.get();
  }

  /** Returns the number of covariances that were raised. */
  public int raised() {
    return sum(raised);
  }

  private int sum(int[] numbers) {
    int sum = 0;
    for (int m = 0; m < originalOffsets.length - 1; m++) {
      sum += numbers[m];
    }
    return sum;
  }

  /** Writes the index of the first component of each mixture, and the number of components. */
  public int[] offsets(int[] to) {
    to[0] = 0;
    for (int m = 0; m < originalOffsets.length - 1; m++) {
      to[m + 1] = to[m] + sizes[m];
    }
    return to;
  }

  public double[] weights(double[] to) {
    return copy(weights, sizes, 1, to);
  }

  public double[] means(double[] to) {
    return copy(means, sizes, requireNonNull(batch).dimension(), to);
  }

  /** Returns how many numbers of a component {@link #scales} writes. */
  public int scaleLength() {
    return length;
  }

  /** Writes variances, or packed factors. */
  public double[] scales(double[] to) {
    return copy(scales, sizes, length, to);
  }

  /** Writes what rounding took from the factors. */
  public double[] low(double[] to) {
    return copy(low, sizes, length, to);
  }

  /** Returns the costs of all mergers, mixture by mixture. */
  public double[] costs() {
    return copy(costs, steps, 1, new double[sum(steps)]);
  }

  private double[] copy(double[] from, int[] counts, int stride, double[] to) {
    for (int m = 0, at = 0; m < originalOffsets.length - 1; m++) {
      System.arraycopy(from, originalOffsets[m] * stride, to, at, counts[m] * stride);
      at += counts[m] * stride;
    }
    return to;
  }

  /** Writes the covariances, which were kept, as matrices. */
  public void covariances(double[] to) {
    int d = requireNonNull(batch).dimension();
    for (int m = 0, at = 0; m < originalOffsets.length - 1; m++) {
      for (int p = 0, k = originalOffsets[m] * length; p < sizes[m]; p++, at += d * d) {
        for (int r = 0; r < d; r++) {
          for (int c = 0; c <= r; c++, k++) {
            to[at + r * d + c] = scales[k];
            to[at + c * d + r] = scales[k];
          }
        }
      }
    }
  }

  /** Returns the component of all that are left that each original one is part of. */
  public int[] assignments() {
    int[] all = new int[originalWeights.length];
    for (int m = 0, first = 0; m < originalOffsets.length - 1; first += sizes[m++]) {
      for (int i = originalOffsets[m]; i < originalOffsets[m + 1]; i++) {
        all[i] = assignments[i] < 0 ? -1 : first + assignments[i];
      }
    }
    return all;
  }

  /** Forgets a call. */
  public static void clear(ReductionWorker worker) {
    worker.reset();
    worker.batch = null;
    worker.options = null;
    worker.caller = null;
    worker.originalWeights = NO_WEIGHTS;
    worker.originalOffsets = NO_OFFSETS;
  }
}
