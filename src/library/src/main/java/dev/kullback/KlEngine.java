package dev.kullback;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.engine.Arguments;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.engine.WarmUp;
import dev.kullback.internal.engine.Workspace;
import dev.kullback.internal.rows.RowStatistic;
import dev.kullback.internal.rows.WithinRows;
import dev.kullback.internal.verify.Verify;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Computes Kullback–Leibler divergences, in nats, between batches of Gaussians.
 *
 * <p>For diagonal Gaussians of dimension D,
 *
 * <pre>
 * KL(q ‖ p) = ½ Σ_h [ (σq² − σp²)/σp² + (μq − μp)²/σp² ] + Σ_h (ln σp − ln σq)
 * </pre>
 *
 * <p>for full covariances {@code Σ = LLᵀ}, with {@code L_p y = μ_p − μ_q} and {@code L_p X = L_q},
 *
 * <pre>
 * KL(q ‖ p) = ½ (‖y‖² + ‖X‖² − D) + Σ_k (ln L_p,kk − ln L_q,kk)
 * </pre>
 *
 * <p>Either side may be {@link DiagonalGaussians} or {@link FullGaussians}; a diagonal batch is written out as full factors for
 * a full one, and kept so, up to 128 MiB of factors, beyond which pairs are computed one by one.
 *
 * <p><b>Shapes.</b> {@code pairwise} fills {@code out[i*M + j] = KL(q_i ‖ p_j)} for N rows q and M columns p; {@code aligned}
 * gives {@code out[i] = KL(q_i ‖ p_i)}; {@code toStandardNormal} gives {@code out[i] = KL(q_i ‖ N(0, I))}. Nothing of size
 * N·M·D is ever made: besides the batches' packed forms the engine holds, for each thread at work, {@code 128·D} floats and 16 KiB
 * (where entries are recomputed, {@code 16·D} doubles more), up to 4 MiB for each batch that the thread was the first to use,
 * 0.5 or 1 MiB if it writes to a memory segment, 1 MiB (with a CUDA device 8) if it reduces rows, as much again in reverse, besides what {@link #nearest} says, and, where a covariance is full, 200 KiB and {@code 16·D²}
 * bytes, or {@code 120·D²} once entries were recomputed.
 *
 * <p><b>Values.</b> Relative error at most 1e-5 for batches of float and 1e-12 when either is of double, for every finite
 * entry that is a normal number of the output's type. With a full covariance, that of double is 1e-12 times the condition
 * number {@code ‖L_p‖‖L_p⁻¹‖}, and that of float holds for {@code Σ_p} of condition numbers up to 1e6. Never negative; exactly 0 for identical parameters; +∞ where the value, or at the end of the
 * range twice it, overflows; never NaN.
 *
 * <p><b>Reductions.</b> {@code nearest}, {@code within}, {@code logSumExp}, {@code rowMin}, {@code rowSum}, {@code rowMean} and {@code
 * forEachTile} compute the same entries, a tile of at most {@code 32 × 4096} at a time, and keep none. A thread owns whole rows, at least
 * 8 (in reverse 32), so a call of fewer is one thread's; only {@code forEachTile} shares out columns, too. {@code nearest} and {@code within} decide as exact arithmetic does, as far as {@link #nearest} says.
 *
 * <p><b>Outputs.</b> Elements past the result are left as they are. A {@code float[]} rounds the results of double batches; a
 * {@code double[]} keeps all that was computed. A {@link MemorySegment} receives native-order {@code double} when either batch
 * is of double, else {@code float}.
 *
 * <p><b>Threads.</b> An engine is safe for use by any number of threads at once. By default it computes on the calling thread
 * alone and starts none. With {@code threads(n)} the caller and n − 1 helpers share a call's work. Results are bitwise the
 * same for every number of threads.
 *
 * <p><b>Interruption.</b> A call that computes entries of the matrix looks at its caller's interrupt status before each tile, of at most
 * {@code 64 × 2048} entries in {@code pairwise}, and ends with a {@link CancellationException}, the status still set and the output
 * incomplete, when helpers have ended theirs. {@code aligned}, {@code toStandardNormal} and the first preparation of a batch look every few milliseconds. What is not interrupted is
 * {@code pairwise}, {@code aligned} and {@code toStandardNormal} on a CUDA device, and a pair of full covariances that is solved for by itself: 0.1 s at D = 1000.
 *
 * <p><b>Virtual threads.</b> A call, the making of a batch and its preparation yield their carrier every few milliseconds, so that other virtual threads
 * run beside calls however long, but for what is not interrupted either; each yield may allocate, and takes a permit of {@link
 * java.util.concurrent.locks.LockSupport#unpark} if the thread has one.
 *
 * <p><b>Allocation.</b> A warm call (batches used twice before, caller's output) allocates nothing with one thread, and
 * a few hundred bytes with several, or on a CUDA device.
 *
 * <p><b>CUDA.</b> With {@link Backend#CUDA} the device computes all but pairs of a diagonal with a full Gaussian in {@code aligned}, and such pairs of
 * batches too large to be written out. The number of threads does not matter; four calls run at once, further ones wait, and a
 * call blocks its thread (a virtual one's carrier, too) while it waits for the device. Batches stay on the device from their
 * first use until they are unreachable, their memory is needed, or the engine is closed. A call holds up to 16 MiB of pinned and 16
 * MiB of device memory for strips of the result (of {@code aligned} and {@code toStandardNormal} all of it), kept for the next. Reductions take {@code 256 × 4096} entries at a time from the device, on as many threads as the
 * engine has, which reduce them. What computes throws {@link CudaException} when the device fails.
 *
 * <p>The methods that compute throw {@link IllegalStateException} after {@link #close()}, and {@link IllegalArgumentException} for
 * dimensions that differ, an output that is too small, a deterministic second argument of the divergence (see {@link ScalePolicy}) with a first that
 * is not, and log-variances beyond ±1400 against a full covariance.
 */
public final class KlEngine implements AutoCloseable {
  private static final int MOST_THREADS = 1024;

  private final Engine engine;

  private KlEngine(Builder builder) {
    engine =
        new Engine(
            builder.backend.choice(), builder.threads(), builder.executor, CudaException::new);
  }

  /** A builder of engines; its defaults are one thread and {@link Backend#AUTO}. */
  public static Builder builder() {
    return new Builder();
  }

  /** Settings of an engine. Not safe for use by several threads. */
  public static final class Builder {
    private int threads; // 0: not told
    private @Nullable Executor executor;
    private Backend backend = Backend.AUTO;

    private Builder() {}

    private int threads() {
      if (threads > 0) {
        return threads;
      }
      return executor == null
          ? 1
          : Math.min(Runtime.getRuntime().availableProcessors(), MOST_THREADS);
    }

    /**
     * The number of threads that share a call's work, the caller included; by default 1, with an {@link #executor} as many as there are processors.
     * Unless an executor is given, the engine owns the n − 1 others: daemon threads, started when first needed, ended by {@link KlEngine#close()}.
     *
     * @throws IllegalArgumentException if n is not in [1, 1024]
     */
    public Builder threads(int n) {
      if (n < 1 || n > MOST_THREADS) {
        throw new IllegalArgumentException(
            "threads must be in [1, %d], is %d".formatted(MOST_THREADS, n));
      }
      threads = n;
      return this;
    }

    /**
     * Runs the n − 1 helpers of {@link #threads} there instead of on own threads. An executor may queue helpers for longer than their call takes; what
     * it holds then is empty. The caller never waits for a helper that has
     * not begun, so a busy or refusing executor costs time only. {@link KlEngine#close()} leaves it alone.
     */
    public Builder executor(Executor e) {
      executor = Objects.requireNonNull(e, "executor");
      return this;
    }

    /** The implementation to use; one that cannot run here is refused by {@link #build()}. */
    public Builder backend(Backend b) {
      backend = Objects.requireNonNull(b, "backend");
      return this;
    }

    /**
     * A new engine.
     *
     * @throws IllegalStateException if {@link Backend#VECTOR} or {@link Backend#CUDA} was asked for and cannot run, saying why
     */
    public KlEngine build() {
      return new KlEngine(this);
    }
  }

  /** {@code KL(q_i ‖ p_j)} as a new row-major array {@code [N, M]}. */
  public float[] pairwise(Gaussians q, Gaussians p) {
    return pairwise(q, p, new float[arrayLength(q, p)]);
  }

  /** {@code KL(q_i ‖ p_j)} into {@code out}, row-major {@code [N, M]}; returns {@code out}. */
  public float[] pairwise(Gaussians q, Gaussians p, float[] out) {
    Arguments.checkOut(arrayLength(q, p), out);
    engine.pairwise(batch(q), batch(p), engine.begin().to(out));
    return out;
  }

  /** {@code KL(q_i ‖ p_j)} into {@code out}, row-major {@code [N, M]}; returns {@code out}. */
  public double[] pairwise(Gaussians q, Gaussians p, double[] out) {
    Arguments.checkOut(arrayLength(q, p), out);
    engine.pairwise(batch(q), batch(p), engine.begin().to(out));
    return out;
  }

  /**
   * {@code KL(q_i ‖ p_j)} into {@code out}, row-major {@code [N, M]}, of any size, mapped files included; returns {@code out}. A
   * segment confined to the calling thread is filled by that thread alone.
   */
  public MemorySegment pairwise(Gaussians q, Gaussians p, MemorySegment out) {
    check(q, p);
    boolean wide = q.isDouble() || p.isDouble();
    Arguments.checkSegment((long) q.size() * p.size(), wide, out);
    engine.pairwise(batch(q), batch(p), engine.begin().to(out, wide));
    return out;
  }

  /** {@code KL(q_i ‖ p_i)} as a new array of N; both batches have N Gaussians. */
  public float[] aligned(Gaussians q, Gaussians p) {
    return aligned(q, p, new float[rows(q)]);
  }

  /** {@code KL(q_i ‖ p_i)} into {@code out}; returns {@code out}. */
  public float[] aligned(Gaussians q, Gaussians p, float[] out) {
    checkAligned(q, p);
    Arguments.checkOut(q.size(), out);
    engine.aligned(batch(q), batch(p), engine.begin().to(out));
    return out;
  }

  /** {@code KL(q_i ‖ p_i)} into {@code out}; returns {@code out}. */
  public double[] aligned(Gaussians q, Gaussians p, double[] out) {
    checkAligned(q, p);
    Arguments.checkOut(q.size(), out);
    engine.aligned(batch(q), batch(p), engine.begin().to(out));
    return out;
  }

  /** {@code KL(q_i ‖ p_i)} into {@code out}; returns {@code out}. */
  public MemorySegment aligned(Gaussians q, Gaussians p, MemorySegment out) {
    checkAligned(q, p);
    boolean wide = q.isDouble() || p.isDouble();
    Arguments.checkSegment(q.size(), wide, out);
    engine.aligned(batch(q), batch(p), engine.begin().to(out, wide));
    return out;
  }

  /**
   * {@code KL(q_i ‖ N(0, I)) = ½ Σ_h (μ² + σ² − 1 − ln σ²)}, for full covariances {@code ½ (‖μ‖² + ‖L‖² − D) − Σ_k ln L_kk}, as a
   * new array of N.
   */
  public float[] toStandardNormal(Gaussians q) {
    return toStandardNormal(q, new float[rows(q)]);
  }

  /** {@code KL(q_i ‖ N(0, I))} into {@code out}; returns {@code out}. */
  public float[] toStandardNormal(Gaussians q, float[] out) {
    engine.checkOpen();
    Arguments.checkOut(rows(q), out);
    engine.toStandardNormal(batch(q), engine.begin().to(out));
    return out;
  }

  /** {@code KL(q_i ‖ N(0, I))} into {@code out}; returns {@code out}. */
  public double[] toStandardNormal(Gaussians q, double[] out) {
    engine.checkOpen();
    Arguments.checkOut(rows(q), out);
    engine.toStandardNormal(batch(q), engine.begin().to(out));
    return out;
  }

  /** {@code KL(q_i ‖ N(0, I))} into {@code out}; returns {@code out}. */
  public MemorySegment toStandardNormal(Gaussians q, MemorySegment out) {
    engine.checkOpen();
    Arguments.checkSegment(rows(q), q.isDouble(), out);
    engine.toStandardNormal(batch(q), engine.begin().to(out, q.isDouble()));
    return out;
  }

  /**
   * The k smallest of {@code KL(q_i ‖ p_j)} over j, for every row i, nearest first, ties to the lower index. The order is that of
   * exact arithmetic, not of rounded values: candidates that the kernels' error bound does not tell apart are recomputed before they are
   * ordered or cut, for batches of float, too: to 1e-13, and where that does not tell either, of diagonal batches in twice double's
   * precision. Values that nothing is near are the kernels', to the contract.
   *
   * <p>In twice double's precision equal divergences always count as equal, and have one value. Others do only if they differ by at most
   * {@code (D + 8192)·2⁻⁹⁵} of their value, 2e-25 where D is small, or if those between them join them by such steps. This holds for divergences
   * from 1e-300 to where they overflow, log-variances within ±10⁵, and batches that state their scales in one way, or one σ and the other σ²; where they do
   * not, equal divergences count as equal if their terms are the same, and {@code 2⁻⁹⁵·√(D/KL)} comes on top. A full covariance leaves
   * some {@code D·‖L_p‖‖L_p⁻¹‖} roundings of double.
   *
   * <p>Memory besides the result: for each thread {@code k + max(64, k/2)} candidates of 12 bytes for each of 256 rows, of fewer if k is above 1000; where many are uncertain,
   * {@code k + max(4096, k)} and those of another block. Calls with k beyond some 40,000 allocate them anew.
   *
   * @param k in [1, M]
   * @return N rows of k neighbors
   * @throws IllegalArgumentException if k is not in [1, M] or the result does not fit an array
   */
  public Neighbors nearest(Gaussians q, Gaussians p, int k) {
    return neighbors(q, p, k, false, false);
  }

  /**
   * {@link #nearest(Gaussians, Gaussians, int)} into the caller's arrays, row-major {@code [N, k]}: {@code values[i*k + r] = KL(q_i ‖
   * p_j)} for {@code j = indices[i*k + r]}. Rounded to float, values may be equal whose indices are in the order of the exact ones.
   */
  public void nearest(Gaussians q, Gaussians p, int k, int[] indices, float[] values) {
    checkNearest(q, p, k, false, indices, Objects.requireNonNull(values, "values").length);
    Workspace out = engine.begin().to(values);
    engine.nearest(batch(q), batch(p), k, false, false, indices, out);
  }

  /** {@link #nearest(Gaussians, Gaussians, int)} into the caller's arrays, row-major {@code [N, k]}. */
  public void nearest(Gaussians q, Gaussians p, int k, int[] indices, double[] values) {
    checkNearest(q, p, k, false, indices, Objects.requireNonNull(values, "values").length);
    Workspace out = engine.begin().to(values);
    engine.nearest(batch(q), batch(p), k, false, false, indices, out);
  }

  /**
   * {@link #nearest(Gaussians, Gaussians, int)} among {@code j ≠ i}: for batches whose Gaussians correspond one to one, above all
   * a batch and itself, where a Gaussian's nearest is itself.
   *
   * @param k in [1, M − 1]
   * @throws IllegalArgumentException if the batches' sizes differ, k is not in [1, M − 1] or the result does not fit an array
   */
  public Neighbors nearestOthers(Gaussians q, Gaussians p, int k) {
    return neighbors(q, p, k, true, false);
  }

  /** {@link #nearestOthers(Gaussians, Gaussians, int)} into the caller's arrays, row-major {@code [N, k]}. */
  public void nearestOthers(Gaussians q, Gaussians p, int k, int[] indices, float[] values) {
    checkNearest(q, p, k, true, indices, Objects.requireNonNull(values, "values").length);
    Workspace out = engine.begin().to(values);
    engine.nearest(batch(q), batch(p), k, true, false, indices, out);
  }

  /** {@link #nearestOthers(Gaussians, Gaussians, int)} into the caller's arrays, row-major {@code [N, k]}. */
  public void nearestOthers(Gaussians q, Gaussians p, int k, int[] indices, double[] values) {
    checkNearest(q, p, k, true, indices, Objects.requireNonNull(values, "values").length);
    Workspace out = engine.begin().to(values);
    engine.nearest(batch(q), batch(p), k, true, false, indices, out);
  }

  /**
   * The k smallest of {@code KL(p_j ‖ q_i)} over j, for every row i: {@link #nearest(Gaussians, Gaussians, int)} with the arguments of the
   * divergence the other way round. Values are those divergences. A call of fewer than 32 rows takes as long as one of 32.
   *
   * @param k in [1, M]
   * @return N rows of k neighbors
   * @throws IllegalArgumentException if k is not in [1, M] or the result does not fit an array
   */
  public Neighbors nearestReverse(Gaussians q, Gaussians p, int k) {
    return neighbors(q, p, k, false, true);
  }

  /** {@link #nearestReverse} among {@code j ≠ i}, with the arguments and errors of {@link #nearestOthers(Gaussians, Gaussians, int)}. */
  public Neighbors nearestOthersReverse(Gaussians q, Gaussians p, int k) {
    return neighbors(q, p, k, true, true);
  }

  /**
   * All j with {@code KL(q_i ‖ p_j) ≤ radius}, for every row i, by ascending j. Decided as in exact arithmetic: entries that the
   * kernels' error bound does not tell from the radius are recomputed as {@link #nearest} does, and what counts as equal there is within. A
   * value of {@link #nearest} as radius may leave out its own pair, if it was rounded down. Memory: 12 bytes a pair found, at the end twice.
   *
   * @param radius in nats, ≥ 0; 0 finds equal Gaussians, and those whose divergence underflows, +∞ all
   * @throws IllegalArgumentException if the radius is negative or NaN, or more than 2³¹ − 9 pairs are found
   */
  public Neighbors within(Gaussians q, Gaussians p, double radius) {
    return within(q, p, radius, Arguments.MOST_PAIRS);
  }

  /**
   * {@link #within(Gaussians, Gaussians, double)} of at most so many pairs, for a radius that may turn out to be too large: memory, as said there, is
   * bounded by their number.
   *
   * @param maxPairs in [0, 2³¹ − 9]
   * @throws IllegalArgumentException also if there are more pairs, as soon as they are found, or maxPairs is not in its range
   */
  public Neighbors within(Gaussians q, Gaussians p, double radius, int maxPairs) {
    return within(q, p, false, radius, maxPairs);
  }

  /**
   * All j with {@code KL(p_j ‖ q_i) ≤ radius}, for every row i, by ascending j: {@link #within(Gaussians, Gaussians, double)} with the
   * arguments of the divergence the other way round. Values are those divergences.
   */
  public Neighbors withinReverse(Gaussians q, Gaussians p, double radius) {
    return withinReverse(q, p, radius, Arguments.MOST_PAIRS);
  }

  /** {@link #withinReverse(Gaussians, Gaussians, double)} of at most so many pairs, as {@link #within(Gaussians, Gaussians, double, int)}. */
  public Neighbors withinReverse(Gaussians q, Gaussians p, double radius, int maxPairs) {
    return within(q, p, true, radius, maxPairs);
  }

  private Neighbors within(Gaussians q, Gaussians p, boolean reverse, double radius, int maxPairs) {
    engine.checkOpen();
    Batch a = batch(q, "q");
    Batch b = batch(p, "p");
    Arguments.checkWithin(a, b, reverse, radius, maxPairs);
    WithinRows.Found found = engine.within(a, b, reverse, radius, maxPairs);
    return new Neighbors(found.start(), found.indices(), found.values());
  }

  /**
   * {@code ln Σ_j exp(−KL(q_i ‖ p_j))} as a new array of N. The error is that of a KL: absolute, at most the contract's relative
   * error times the KL of the terms that count.
   */
  public double[] logSumExp(Gaussians q, Gaussians p) {
    return logSumExp(q, p, new double[rows(q)]);
  }

  /** {@code ln Σ_j exp(−KL(q_i ‖ p_j))} into {@code out}; returns {@code out}. */
  public double[] logSumExp(Gaussians q, Gaussians p, double[] out) {
    return statistic(RowStatistic.Kind.LOG_SUM_EXP, q, p, null, out);
  }

  /**
   * {@code ln Σ_j exp(w_j − KL(q_i ‖ p_j))} as a new array of N. For a mixture, {@code w_j} is the logarithm of the weight of {@code p_j}.
   * The error is that of {@link #logSumExp(Gaussians, Gaussians)}.
   *
   * @param logWeights w, M of them; −∞ leaves a term out, and all −∞ give −∞
   * @throws IllegalArgumentException if a weight is NaN or +∞, or there are not M
   */
  public double[] weightedLogSumExp(Gaussians q, Gaussians p, double[] logWeights) {
    return weightedLogSumExp(q, p, logWeights, new double[rows(q)]);
  }

  /**
   * {@link #weightedLogSumExp(Gaussians, Gaussians, double[])} into {@code out}; returns {@code out}.
   *
   * @throws IllegalArgumentException also if {@code out} is {@code logWeights}
   */
  public double[] weightedLogSumExp(Gaussians q, Gaussians p, double[] logWeights, double[] out) {
    check(q, p);
    Arguments.checkLogWeights(batch(p), logWeights, out);
    return statistic(RowStatistic.Kind.LOG_SUM_EXP, q, p, logWeights, out);
  }

  /** {@code min_j KL(q_i ‖ p_j)} as a new array of N. */
  public double[] rowMin(Gaussians q, Gaussians p) {
    return rowMin(q, p, new double[rows(q)]);
  }

  /** {@code min_j KL(q_i ‖ p_j)} into {@code out}; returns {@code out}. */
  public double[] rowMin(Gaussians q, Gaussians p, double[] out) {
    return statistic(RowStatistic.Kind.MIN, q, p, null, out);
  }

  /** {@code Σ_j KL(q_i ‖ p_j)} as a new array of N; +∞ where a term or the sum is. */
  public double[] rowSum(Gaussians q, Gaussians p) {
    return rowSum(q, p, new double[rows(q)]);
  }

  /** {@code Σ_j KL(q_i ‖ p_j)} into {@code out}, +∞ where a term or the sum is; returns {@code out}. */
  public double[] rowSum(Gaussians q, Gaussians p, double[] out) {
    return statistic(RowStatistic.Kind.SUM, q, p, null, out);
  }

  /** {@code Σ_j KL(q_i ‖ p_j) / M} as a new array of N; +∞ where the sum is. */
  public double[] rowMean(Gaussians q, Gaussians p) {
    return rowMean(q, p, new double[rows(q)]);
  }

  /** {@code Σ_j KL(q_i ‖ p_j) / M} into {@code out}, +∞ where the sum is; returns {@code out}. */
  public double[] rowMean(Gaussians q, Gaussians p, double[] out) {
    return statistic(RowStatistic.Kind.MEAN, q, p, null, out);
  }

  /**
   * Computes the matrix tile by tile, each handed to the consumer once, in no order, while it is in the cache. Memory is that of a tile
   * for each thread, 1 MiB (on a CUDA device 8), whatever the matrix's size. The consumer runs on the thread that computed the tile, which
   * computes no other before it returns: with several threads it must be safe for use by them at once. What it throws ends
   * the call, when the tiles under way are done, and is thrown on.
   */
  public void forEachTile(Gaussians q, Gaussians p, Consumer<? super KlTile> consumer) {
    Objects.requireNonNull(consumer, "consumer");
    check(q, p);
    engine.forEachTile(
        batch(q),
        batch(p),
        (row0, row1, column0, column1, values) ->
            consumer.accept(new KlTile(row0, row1, column0, column1, values)));
  }

  /**
   * {@code KL(q_i ‖ p_i)} estimated as the mean of {@code ln q_i(x) − ln p_i(x)} over samples x of q_i: a check of the closed form,
   * or of a program that samples. In double, on the calling thread whatever the backend; {@code O(N·S·D)}, with a full covariance
   * {@code O(N·S·D²)}. A sample is computed from what q and p differ by, so the standard error, which includes a bound on rounding, holds for
   * divergences of 1e-31, too. A deterministic q gives 0; where a sample overflows, estimate and error are +∞.
   *
   * <p>Reproducible: pair i draws from the i-th {@link java.util.SplittableRandom#split()} of a {@link java.util.SplittableRandom} of the seed, D values of
   * {@code nextGaussian()} a sample. So the bits depend on the seed and the JDK's generator alone, and pair i's not on later pairs.
   *
   * @param samples S, of each pair, at least 2
   * @throws IllegalArgumentException if the batches' sizes differ or there are fewer than 2 samples
   */
  public MonteCarlo monteCarlo(Gaussians q, Gaussians p, int samples, long seed) {
    checkAligned(q, p);
    if (samples < 2) {
      throw new IllegalArgumentException("samples must be at least 2, is " + samples);
    }
    double[] estimates = new double[q.size()];
    double[] errors = new double[q.size()];
    Engine.monteCarlo(batch(q), batch(p), samples, seed, estimates, errors);
    return new MonteCarlo(samples, estimates, errors);
  }

  /**
   * Prepares a service for queries of this shape before its first request: calls {@code pairwise} (of at most 2²² entries), {@code nearest} with k = 10,
   * {@code logSumExp} and {@code rowMin} with made-up diagonal batches of float, the query made anew for each call, until the VM has compiled what they
   * run, as told by calls that get no faster for half a second. Takes one to five seconds, longer only where eight calls do. Results are the
   * same cold and warm. What belongs to the references themselves is built by {@link Gaussians#prepare()}.
   *
   * @param n rows of q, those of a query; no more of q and of p are made than have 2²⁴ elements
   * @param m rows of p
   * @throws IllegalArgumentException if a number is less than 1, or dimension more than 2²⁴
   */
  public void warmUp(int n, int m, int dimension) {
    engine.checkOpen();
    if (n < 1 || m < 1 || dimension < 1 || dimension > WarmUp.MOST_ELEMENTS) {
      throw new IllegalArgumentException(
          "n = %d, m = %d and dimension = %d must be at least 1, dimension at most %d"
              .formatted(n, m, dimension, WarmUp.MOST_ELEMENTS));
    }
    engine.warmUp(n, m, dimension);
  }

  /**
   * {@link #warmUp(int, int, int)} with the caller's batches, of whatever kind and precision, after {@link Gaussians#prepare()} of both; where one is
   * diagonal and the other full, also of the full factors that a diagonal batch of up to 128 MiB of them is written out as. Diagonal
   * batches of float are preceded by made-up ones of their shape, for what the code does with Gaussians that the caller's do not have.
   */
  public void warmUp(Gaussians q, Gaussians p) {
    check(q, p);
    engine.warmUp(batch(q), batch(p));
  }

  /**
   * Runs every operation, but {@link #monteCarlo}, on made-up batches of all kinds and many shapes until the VM has compiled it, and
   * compares each result with plain arithmetic in double, and with that of the same call before: what a compiler makes of vector code
   * depends on the processor and the VM's build. For a service's start, or a test on the machine that it will run on. Allocates some MB.
   *
   * @param time how long to take, about: ten seconds see every kernel compiled. Each operation is tried on each kind and shape whatever
   *     the time, which takes some seconds
   * @throws IllegalArgumentException if the time is not positive
   */
  public Verification verify(Duration time) {
    engine.checkOpen();
    if (!Objects.requireNonNull(time, "time").isPositive()) {
      throw new IllegalArgumentException("time must be positive, is " + time);
    }
    long nanos = TimeUnit.NANOSECONDS.convert(time);
    return new Verification(Verify.run(engine, nanos, Verification.Operation::new));
  }

  /** What runs, with how many threads, and why the vector backend does not where it does not. */
  public String describe() {
    return engine.describe();
  }

  /**
   * Ends the engine's own threads and releases what it has on a CUDA device, which an engine that is not closed keeps; calls under
   * way finish. Closing twice is harmless.
   */
  @Override
  public void close() {
    engine.close();
  }

  private Neighbors neighbors(Gaussians q, Gaussians p, int k, boolean others, boolean reverse) {
    engine.checkOpen();
    Batch a = batch(q, "q");
    Batch b = batch(p, "p");
    Arguments.checkNearest(a, b, k, others, reverse);
    int[] start = new int[q.size() + 1];
    Arrays.setAll(start, i -> i * k);
    int[] indices = new int[q.size() * k];
    double[] values = new double[indices.length];
    engine.nearest(a, b, k, others, reverse, indices, engine.begin().to(values));
    return new Neighbors(start, indices, values);
  }

  private double[] statistic(
      RowStatistic.Kind kind,
      Gaussians q,
      Gaussians p,
      double @Nullable [] logWeights,
      double[] out) {
    check(q, p);
    Arguments.checkOut(q.size(), out);
    engine.statistic(kind, batch(q), batch(p), logWeights, out);
    return out;
  }

  private void check(Gaussians q, Gaussians p) {
    engine.checkOpen();
    Arguments.check(batch(q, "q"), batch(p, "p"));
  }

  private void checkAligned(Gaussians q, Gaussians p) {
    engine.checkOpen();
    Arguments.checkAligned(batch(q, "q"), batch(p, "p"));
  }

  private int arrayLength(Gaussians q, Gaussians p) {
    engine.checkOpen();
    return Arguments.arrayLength(batch(q, "q"), batch(p, "p"));
  }

  private void checkNearest(
      Gaussians q, Gaussians p, int k, boolean others, int[] indices, int values) {
    engine.checkOpen();
    Arguments.checkNearest(batch(q, "q"), batch(p, "p"), k, others, false);
    int length = q.size() * k;
    Arguments.checkLength("indices", length, Objects.requireNonNull(indices, "indices").length);
    Arguments.checkLength("values", length, values);
  }

  private static int rows(Gaussians q) {
    return batch(q, "q").size();
  }

  static Batch batch(Gaussians batch, String name) {
    return batch(Objects.requireNonNull(batch, name));
  }

  private static Batch batch(Gaussians batch) {
    return switch (batch) {
      case DiagonalGaussians d -> d.batch;
      case FullGaussians f -> f.batch;
    };
  }
}
