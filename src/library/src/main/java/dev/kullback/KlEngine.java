package dev.kullback;

import dev.kullback.internal.cuda.CudaDevice;
import dev.kullback.internal.cuda.HostBatch;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.CancellationException;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
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
  /**
   * A block is the unit of work: its rows' panels stay in the L2 cache while the columns' panels stream past, and there are
   * enough blocks to keep several threads evenly busy. Multiples of every panel's width.
   */
  static final int BLOCK_ROWS = 64;

  static final int BLOCK_COLUMNS = 2048;

  /**
   * A block of a reduction, 1 MiB of doubles as the others are at most. The fewer blocks a row has, the fewer of its entries pass for near before
   * the search knows better: nearest(k = 10) over pairwise, 8192 x 8192 x 32, takes 1.24 times its time, with 64 x 2048 1.29,
   * and k = 100 2.4 and 2.9 times; at D = 256 and 512 they are level (Zen 5).
   */
  static final int REDUCED_ROWS = 32;

  static final int REDUCED_COLUMNS = 4096;

  /**
   * Rows of a band, for all of which a block's columns pass at once: with bands of a block's height 100,000 columns of D = 32, 26 MB, came
   * from the memory too often, at two thirds of the rate. On a device also the rows of a block: 8 MiB come off it at once.
   */
  static final int BAND_ROWS = 256;

  /** What the kernels' starts of rows are multiples of. */
  static final int ROW_PANEL = 8;

  /** Dimension from which on blocks are made lower, to hold a block's rows to 256 KiB. */
  private static final int TALL_DIMENSION = 512;

  private static final int MOST_THREADS = 1024;

  /** As many as an array holds. */
  private static final int MOST_PAIRS = Integer.MAX_VALUE - 8;

  /** Tells a confined segment from one that helpers can write to. */
  private static final Thread HELPER = Thread.ofPlatform().unstarted(() -> {});

  private final int threads;
  private final Backend backend;
  private final BlockKernel<DiagonalGaussians> diagonal;

  /** For pairs that are not both diagonal; without vectors {@link #pairs} does. */
  private final @Nullable BlockKernel<FullGaussians> full;

  private final boolean vectors;
  private final @Nullable CudaDevice cuda;
  private final @Nullable CudaKernel device;
  private final BlockKernel<Gaussians> pairs = new FullScalarKernel();
  private final BlockKernel<Gaussians> zeros = new ZeroKernel();
  private final @Nullable Executor executor;
  private final @Nullable ExecutorService ownExecutor;
  private final AtomicReferenceArray<@Nullable Tile> tiles;
  private volatile boolean closed;

  private KlEngine(Builder builder) {
    backend = Backend.select(builder.backend);
    diagonal = backend == Backend.VECTOR ? new VectorKernel() : new ScalarKernel();
    full = backend == Backend.VECTOR ? new FullVectorKernel() : null;
    vectors = backend == Backend.VECTOR || (backend == Backend.CUDA && Backend.hasVectors());
    cuda = backend == Backend.CUDA ? new CudaDevice() : null;
    device = cuda != null ? new CudaKernel(cuda) : null;
    threads = builder.threads();
    ownExecutor = builder.executor == null && threads > 1 ? helpers(threads - 1) : null;
    executor = builder.executor != null ? builder.executor : ownExecutor;
    tiles =
        new AtomicReferenceArray<>(2 * (threads + Runtime.getRuntime().availableProcessors()) + 16);
  }

  private static ExecutorService helpers(int n) {
    AtomicInteger count = new AtomicInteger();
    return Executors.newFixedThreadPool(
        n,
        task ->
            Thread.ofPlatform()
                .daemon()
                .name("kullback-" + count.incrementAndGet())
                .unstarted(task));
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
    checkOut(arrayLength(q, p), out);
    pairwise(q, p, out, null, null);
    return out;
  }

  /** {@code KL(q_i ‖ p_j)} into {@code out}, row-major {@code [N, M]}; returns {@code out}. */
  public double[] pairwise(Gaussians q, Gaussians p, double[] out) {
    checkOut(arrayLength(q, p), out);
    pairwise(q, p, null, out, null);
    return out;
  }

  /**
   * {@code KL(q_i ‖ p_j)} into {@code out}, row-major {@code [N, M]}, of any size, mapped files included; returns {@code out}. A
   * segment confined to the calling thread is filled by that thread alone.
   */
  public MemorySegment pairwise(Gaussians q, Gaussians p, MemorySegment out) {
    check(q, p);
    checkSegment((long) q.size() * p.size(), q.isDouble() || p.isDouble(), out);
    pairwise(q, p, null, null, out);
    return out;
  }

  /** {@code KL(q_i ‖ p_i)} as a new array of N; both batches have N Gaussians. */
  public float[] aligned(Gaussians q, Gaussians p) {
    return aligned(q, p, new float[rows(q)]);
  }

  /** {@code KL(q_i ‖ p_i)} into {@code out}; returns {@code out}. */
  public float[] aligned(Gaussians q, Gaussians p, float[] out) {
    checkAligned(q, p);
    checkOut(q.size(), out);
    aligned(q, p, out, null, null);
    return out;
  }

  /** {@code KL(q_i ‖ p_i)} into {@code out}; returns {@code out}. */
  public double[] aligned(Gaussians q, Gaussians p, double[] out) {
    checkAligned(q, p);
    checkOut(q.size(), out);
    aligned(q, p, null, out, null);
    return out;
  }

  /** {@code KL(q_i ‖ p_i)} into {@code out}; returns {@code out}. */
  public MemorySegment aligned(Gaussians q, Gaussians p, MemorySegment out) {
    checkAligned(q, p);
    checkSegment(q.size(), q.isDouble() || p.isDouble(), out);
    aligned(q, p, null, null, out);
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
    checkOpen();
    checkOut(rows(q), out);
    standard(q, out, null, null);
    return out;
  }

  /** {@code KL(q_i ‖ N(0, I))} into {@code out}; returns {@code out}. */
  public double[] toStandardNormal(Gaussians q, double[] out) {
    checkOpen();
    checkOut(rows(q), out);
    standard(q, null, out, null);
    return out;
  }

  /** {@code KL(q_i ‖ N(0, I))} into {@code out}; returns {@code out}. */
  public MemorySegment toStandardNormal(Gaussians q, MemorySegment out) {
    checkOpen();
    checkSegment(rows(q), q.isDouble(), out);
    standard(q, null, null, out);
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
    checkNearest(q, p, k, false, indices, lengthOf(values));
    nearest(q, p, k, false, false, indices, values, null);
  }

  /** {@link #nearest(Gaussians, Gaussians, int)} into the caller's arrays, row-major {@code [N, k]}. */
  public void nearest(Gaussians q, Gaussians p, int k, int[] indices, double[] values) {
    checkNearest(q, p, k, false, indices, lengthOf(values));
    nearest(q, p, k, false, false, indices, null, values);
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
    checkNearest(q, p, k, true, indices, lengthOf(values));
    nearest(q, p, k, true, false, indices, values, null);
  }

  /** {@link #nearestOthers(Gaussians, Gaussians, int)} into the caller's arrays, row-major {@code [N, k]}. */
  public void nearestOthers(Gaussians q, Gaussians p, int k, int[] indices, double[] values) {
    checkNearest(q, p, k, true, indices, lengthOf(values));
    nearest(q, p, k, true, false, indices, null, values);
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
    return within(q, p, radius, MOST_PAIRS);
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
    return withinReverse(q, p, radius, MOST_PAIRS);
  }

  /** {@link #withinReverse(Gaussians, Gaussians, double)} of at most so many pairs, as {@link #within(Gaussians, Gaussians, double, int)}. */
  public Neighbors withinReverse(Gaussians q, Gaussians p, double radius, int maxPairs) {
    return within(q, p, true, radius, maxPairs);
  }

  private Neighbors within(Gaussians q, Gaussians p, boolean reverse, double radius, int maxPairs) {
    check(q, p, reverse);
    if (!(radius >= 0)) {
      throw new IllegalArgumentException("radius must be >= 0, is " + radius);
    }
    if (maxPairs < 0 || maxPairs > MOST_PAIRS) {
      throw new IllegalArgumentException(
          "maxPairs must be in [0, %d], is %d".formatted(MOST_PAIRS, maxPairs));
    }
    WithinRows rows = new WithinRows(q, p, reverse, radius, maxPairs);
    reduce(q, p, rows);
    return rows.result();
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
    Objects.requireNonNull(logWeights, "logWeights");
    if (logWeights.length != p.size()) {
      throw new IllegalArgumentException(
          "logWeights has %d elements but p has %d Gaussians"
              .formatted(logWeights.length, p.size()));
    }
    if (logWeights == out) {
      throw new IllegalArgumentException(
          "logWeights and out are the same array; weights are read until all rows are done");
    }
    for (int j = 0; j < logWeights.length; j++) {
      if (!(logWeights[j] < Double.POSITIVE_INFINITY)) {
        throw new IllegalArgumentException(
            "logWeights[%d] is %s; it must be finite or -Infinity".formatted(j, logWeights[j]));
      }
    }
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
    reduce(q, p, new TileStream(consumer));
  }

  /**
   * {@code KL(q_i ‖ p_i)} estimated as the mean of {@code ln q_i(x) − ln p_i(x)} over samples x of q_i: a check of the closed form,
   * or of a program that samples. In double, on the calling thread whatever the backend; {@code O(N·S·D)}, with a full covariance
   * {@code O(N·S·D²)}. A sample is computed from what q and p differ by, so the standard error, which includes a bound on rounding, holds for
   * divergences of 1e-31, too. A deterministic q gives 0; where a sample overflows, estimate and error are +∞.
   *
   * <p>Reproducible: pair i draws from the i-th {@link SplittableRandom#split()} of a {@link SplittableRandom} of the seed, D values of
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
    if (!isDeterministic(q)) {
      SplittableRandom random = new SplittableRandom(seed);
      Sampler sampler = new Sampler(q, p);
      for (int i = 0; i < estimates.length; i++) {
        Tile.checkInterrupt(Thread.currentThread());
        sampler.sample(i, samples, random.split());
        estimates[i] = sampler.mean();
        errors[i] = sampler.standardError();
      }
    }
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
    checkOpen();
    if (n < 1 || m < 1 || dimension < 1 || dimension > WarmUp.MOST_ELEMENTS) {
      throw new IllegalArgumentException(
          "n = %d, m = %d and dimension = %d must be at least 1, dimension at most %d"
              .formatted(n, m, dimension, WarmUp.MOST_ELEMENTS));
    }
    WarmUp.run(this, n, m, dimension);
  }

  /**
   * {@link #warmUp(int, int, int)} with the caller's batches, of whatever kind and precision, after {@link Gaussians#prepare()} of both; where one is
   * diagonal and the other full, also of the full factors that a diagonal batch of up to 128 MiB of them is written out as. Diagonal
   * batches of float are preceded by made-up ones of their shape, for what the code does with Gaussians that the caller's do not have.
   */
  public void warmUp(Gaussians q, Gaussians p) {
    check(q, p);
    q.prepare();
    p.prepare();
    if (q.getClass() != p.getClass()
        && full != null
        && FullGaussians.isExpandable(q)
        && FullGaussians.isExpandable(p)) {
      FullGaussians.of(q).prepare();
      FullGaussians.of(p).prepare();
    }
    if (q instanceof DiagonalGaussians
        && p instanceof DiagonalGaussians
        && !q.isDouble()
        && !p.isDouble()) {
      WarmUp.run(this, q.size(), p.size(), p.dimension());
    }
    WarmUp.run(this, q, p);
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
    checkOpen();
    if (!Objects.requireNonNull(time, "time").isPositive()) {
      throw new IllegalArgumentException("time must be positive, is " + time);
    }
    return Verify.run(this, TimeUnit.NANOSECONDS.convert(time));
  }

  /** What runs, with how many threads, and why the vector backend does not where it does not. */
  public String describe() {
    String workers =
        threads == 1
            ? "the calling thread"
            : threads + " threads" + (ownExecutor == null ? ", helpers on an executor given" : "");
    return cuda != null
        ? Backend.CUDA.describe()
        : "%s on %s; %s"
            .formatted(backend.name().toLowerCase(Locale.ROOT), workers, Backend.VECTOR.describe());
  }

  /**
   * Ends the engine's own threads and releases what it has on a CUDA device, which an engine that is not closed keeps; calls under
   * way finish. Closing twice is harmless.
   */
  @Override
  public void close() {
    closed = true;
    if (ownExecutor != null) {
      ownExecutor.shutdown();
    }
    if (cuda != null) {
      cuda.close();
    }
  }

  private Neighbors neighbors(Gaussians q, Gaussians p, int k, boolean others, boolean reverse) {
    checkNearest(q, p, k, others, reverse);
    int[] start = new int[q.size() + 1];
    Arrays.setAll(start, i -> i * k);
    Neighbors result = new Neighbors(start, new int[q.size() * k], new double[q.size() * k]);
    nearest(q, p, k, others, reverse, result.indices(), null, result.values());
    return result;
  }

  private void nearest(
      Gaussians q,
      Gaussians p,
      int k,
      boolean others,
      boolean reverse,
      int[] indices,
      float @Nullable [] out32,
      double @Nullable [] out64) {
    Tile tile = acquire();
    try {
      tile.nearest.set(q, p, k, others, reverse, indices, out32, out64);
      reduce(q, p, tile.nearest, tile);
    } finally {
      release(tile);
    }
  }

  private double[] statistic(
      RowStatistic.Kind kind,
      Gaussians q,
      Gaussians p,
      double @Nullable [] logWeights,
      double[] out) {
    check(q, p);
    checkOut(q.size(), out);
    Tile tile = acquire();
    try {
      tile.statistic.set(kind, p.size(), logWeights, out);
      reduce(q, p, tile.statistic, tile);
    } finally {
      release(tile);
    }
    return out;
  }

  private void reduce(Gaussians q, Gaussians p, RowReduction reduction) {
    Tile tile = acquire();
    try {
      reduce(q, p, reduction, tile);
    } finally {
      release(tile);
    }
  }

  private void aligned(
      Gaussians q,
      Gaussians p,
      float @Nullable [] out32,
      double @Nullable [] out64,
      @Nullable MemorySegment segment) {
    if (cuda != null && !isDeterministic(q) && q.getClass() == p.getClass()) {
      cuda.aligned(host(q), host(p), memory(out32, out64, segment), width(q, p, out32, out64));
      return;
    }
    boolean wide = q.isDouble() || p.isDouble();
    long terms = Checkpoint.ofPair(q, p);
    Tile tile = acquire();
    try {
      for (int i = 0; i < q.size(); i++) {
        tile.pass(terms);
        put(out32, out64, segment, wide, i, alignedKl(q, p, i, tile));
      }
    } finally {
      release(tile);
    }
  }

  private void standard(
      Gaussians q,
      float @Nullable [] out32,
      double @Nullable [] out64,
      @Nullable MemorySegment segment) {
    if (cuda != null && !isDeterministic(q)) {
      cuda.standard(host(q), memory(out32, out64, segment), width(q, q, out32, out64));
      return;
    }
    long d = q.dimension();
    long terms = Checkpoint.PLAIN * (q instanceof FullGaussians ? d * d : d);
    Tile tile = acquire();
    try {
      for (int i = 0; i < q.size(); i++) {
        tile.pass(terms);
        put(out32, out64, segment, q.isDouble(), i, standardKl(q, i));
      }
    } finally {
      release(tile);
    }
  }

  /** The batch as it goes to the device. */
  static HostBatch host(Gaussians batch) {
    return switch (batch) {
      case DiagonalGaussians d -> d.host();
      case FullGaussians f -> f.host();
    };
  }

  private static MemorySegment memory(
      float @Nullable [] out32, double @Nullable [] out64, @Nullable MemorySegment segment) {
    return out32 != null
        ? MemorySegment.ofArray(out32)
        : out64 != null ? MemorySegment.ofArray(out64) : Objects.requireNonNull(segment);
  }

  /** Bytes of an element of the output. */
  private static int width(
      Gaussians q, Gaussians p, float @Nullable [] out32, double @Nullable [] out64) {
    return out64 != null || (out32 == null && (q.isDouble() || p.isDouble()))
        ? Double.BYTES
        : Float.BYTES;
  }

  private static double alignedKl(Gaussians q, Gaussians p, int i, Tile t) {
    if (isDeterministic(q) || q == p) {
      return 0;
    }
    return q instanceof DiagonalGaussians a && p instanceof DiagonalGaussians b
        ? PairKl.of(a, i, b, i)
        : t.full.pair.kl(q, i, p, i);
  }

  private static double standardKl(Gaussians q, int i) {
    return switch (q) {
      case DiagonalGaussians d -> d.deterministic ? 0 : PairKl.standard(d, i);
      case FullGaussians f -> FullPair.standard(f, i);
    };
  }

  /** Stores a result in the output that is not null; {@code wide} tells what a segment holds. */
  private static void put(
      float @Nullable [] out32,
      double @Nullable [] out64,
      @Nullable MemorySegment segment,
      boolean wide,
      int i,
      double kl) {
    if (out32 != null) {
      out32[i] = (float) kl;
    } else if (out64 != null) {
      out64[i] = kl;
    } else if (segment != null) {
      if (wide) {
        segment.set(ValueLayout.JAVA_DOUBLE_UNALIGNED, 8L * i, kl);
      } else {
        segment.set(ValueLayout.JAVA_FLOAT_UNALIGNED, 4L * i, (float) kl);
      }
    }
  }

  private void pairwise(
      Gaussians q,
      Gaussians p,
      float @Nullable [] out32,
      double @Nullable [] out64,
      @Nullable MemorySegment segment) {
    check(q, p);
    if (isDeterministic(q)) {
      zero((long) q.size() * p.size(), q.isDouble() || p.isDouble(), out32, out64, segment);
    } else if (cuda != null && q.getClass() == p.getClass()) {
      cuda.pairwise(host(q), host(p), memory(out32, out64, segment), width(q, p, out32, out64));
    } else if (cuda != null && FullGaussians.isExpandable(q) && FullGaussians.isExpandable(p)) {
      cuda.pairwise(
          FullGaussians.of(q).host(),
          FullGaussians.of(p).host(),
          memory(out32, out64, segment),
          width(q, p, out32, out64));
    } else if (q instanceof DiagonalGaussians a && p instanceof DiagonalGaussians b) {
      pairwise(diagonal, a, b, out32, out64, segment);
    } else if (full != null && FullGaussians.isExpandable(q) && FullGaussians.isExpandable(p)) {
      pairwise(full, FullGaussians.of(q), FullGaussians.of(p), out32, out64, segment);
    } else {
      pairwise(pairs, q, p, out32, out64, segment);
    }
  }

  private <G extends Gaussians> void pairwise(
      BlockKernel<G> kernel,
      G q,
      G p,
      float @Nullable [] out32,
      double @Nullable [] out64,
      @Nullable MemorySegment segment) {
    int height = blockRows(q.dimension());
    long across = Math.ceilDiv(p.size(), BLOCK_COLUMNS);
    long blocks = Math.ceilDiv(q.size(), height) * across;
    Executor helpers = executor;
    Tile tile = acquire();
    try {
      kernel.prepare(q, p, tile);
      if (helpers == null
          || threads == 1
          || blocks == 1
          || (segment != null && !segment.isAccessibleBy(HELPER))) {
        for (long b = 0; b < blocks; b++) {
          block(kernel, q, p, out32, out64, segment, b, tile);
        }
      } else {
        new Job(this, (b, t) -> block(kernel, q, p, out32, out64, segment, b, t), blocks, tile)
            .run(helpers);
      }
    } finally {
      release(tile);
    }
  }

  private static <G extends Gaussians> void block(
      BlockKernel<G> kernel,
      G q,
      G p,
      float @Nullable [] out32,
      double @Nullable [] out64,
      @Nullable MemorySegment segment,
      long index,
      Tile t) {
    t.checkInterrupt();
    int height = blockRows(q.dimension());
    int across = Math.ceilDiv(p.size(), BLOCK_COLUMNS);
    int row0 = (int) (index / across) * height;
    int column0 = (int) (index % across) * BLOCK_COLUMNS;
    int row1 = Math.min(row0 + height, q.size());
    int column1 = Math.min(column0 + BLOCK_COLUMNS, p.size());
    if (segment == null) {
      t.out32 = out32;
      t.out64 = out64;
      t.base = 0;
      t.stride = p.size();
      kernel.block(q, p, row0, row1, column0, column1, t);
      return;
    }
    boolean wide = q.isDouble() || p.isDouble();
    t.useBlock(wide, BLOCK_ROWS * BLOCK_COLUMNS);
    t.stride = BLOCK_COLUMNS;
    t.base = -(row0 * t.stride + column0);
    kernel.block(q, p, row0, row1, column0, column1, t);
    int width = column1 - column0;
    for (int i = row0; i < row1; i++) {
      int from = (i - row0) * t.stride;
      long to = (long) i * p.size() + column0;
      if (wide) {
        MemorySegment.copy(
            t.out64, from, segment, ValueLayout.JAVA_DOUBLE_UNALIGNED, 8 * to, width);
      } else {
        MemorySegment.copy(t.out32, from, segment, ValueLayout.JAVA_FLOAT_UNALIGNED, 4 * to, width);
      }
    }
  }

  /** Hands the blocks of the matrix to a reduction; {@code tile} leads the call. */
  private void reduce(Gaussians q, Gaussians p, RowReduction reduction, Tile tile) {
    if (reduction.isReverse()) {
      reduceOf(p, q, reduction, tile);
    } else {
      reduceOf(q, p, reduction, tile);
    }
  }

  /** With the kernel of {@code KL(a ‖ b)}. */
  private void reduceOf(Gaussians a, Gaussians b, RowReduction reduction, Tile tile) {
    if (isDeterministic(a)) {
      reduceBy(zeros, a, b, reduction, tile);
    } else if (device != null && a.getClass() == b.getClass()) {
      reduceBy(device, a, b, reduction, tile);
    } else if (device != null && FullGaussians.isExpandable(a) && FullGaussians.isExpandable(b)) {
      reduceBy(device, FullGaussians.of(a), FullGaussians.of(b), reduction, tile);
    } else if (a instanceof DiagonalGaussians c && b instanceof DiagonalGaussians d) {
      reduceBy(diagonal, c, d, reduction, tile);
    } else if (full != null && FullGaussians.isExpandable(a) && FullGaussians.isExpandable(b)) {
      reduceBy(full, FullGaussians.of(a), FullGaussians.of(b), reduction, tile);
    } else {
      reduceBy(pairs, a, b, reduction, tile);
    }
  }

  private <G extends Gaussians> void reduceBy(
      BlockKernel<G> kernel, G a, G b, RowReduction reduction, Tile tile) {
    if (reduction.isReverse()) {
      int height = kernel == device ? REDUCED_COLUMNS : blockRows(a.dimension());
      reduce(new ReverseKernel<>(kernel, height), b, a, reduction, tile);
    } else {
      reduce(kernel, a, b, reduction, tile);
    }
  }

  private <G extends Gaussians> void reduce(
      BlockKernel<G> kernel, G q, G p, RowReduction reduction, Tile tile) {
    // as many for each thread
    int bands = Math.ceilDiv(Math.ceilDiv(q.size(), reduction.bandRows()), threads) * threads;
    int panel = reduction.isReverse() ? DiagonalGaussians.WIDEST_PANEL : ROW_PANEL;
    int height = Math.ceilDiv(Math.ceilDiv(q.size(), bands), panel) * panel;
    long parts =
        (long) Math.ceilDiv(q.size(), height)
            * (reduction.isByBlock() ? Math.ceilDiv(p.size(), REDUCED_COLUMNS) : 1);
    Executor helpers = executor;
    kernel.begin();
    try {
      kernel.prepare(q, p, tile);
      if (helpers == null || threads == 1 || parts == 1) {
        for (long b = 0; b < parts; b++) {
          band(kernel, q, p, reduction, height, b, tile);
        }
      } else {
        new Job(this, (b, t) -> band(kernel, q, p, reduction, height, b, t), parts, tile)
            .run(helpers);
      }
    } finally {
      kernel.end();
    }
  }

  /** Part {@code index} of the work: a band of rows, or its blocks of some columns. */
  private <G extends Gaussians> void band(
      BlockKernel<G> kernel, G q, G p, RowReduction reduction, int height, long index, Tile t) {
    int across = reduction.isByBlock() ? Math.ceilDiv(p.size(), REDUCED_COLUMNS) : 1;
    int row0 = (int) (index / across) * height;
    int row1 = Math.min(row0 + height, q.size());
    int from = (int) (index % across) * REDUCED_COLUMNS;
    int to = reduction.isByBlock() ? Math.min(from + REDUCED_COLUMNS, p.size()) : p.size();
    int rows = Math.min(height, kernel == device ? BAND_ROWS : REDUCED_ROWS);
    t.band = row0;
    reduction.begin(row0, row1, t);
    for (int column0 = from; column0 < to; column0 += REDUCED_COLUMNS) {
      int column1 = Math.min(column0 + REDUCED_COLUMNS, to);
      for (int row = row0; row < row1; row += rows) {
        t.checkInterrupt();
        t.useBlock(true, rows * Math.min(REDUCED_COLUMNS, p.size()));
        t.stride = column1 - column0;
        t.base = -(row * t.stride + column0);
        int end = Math.min(row + rows, row1);
        kernel.block(q, p, row, end, column0, column1, t);
        reduction.block(row, end, column0, column1, t);
      }
    }
    reduction.end(row0, row1, t);
  }

  private static int blockRows(int dimension) {
    int rows = (int) Math.min(BLOCK_ROWS, (long) BLOCK_ROWS * TALL_DIMENSION / dimension);
    int panel = DiagonalGaussians.WIDEST_PANEL;
    return Math.max(panel, rows / panel * panel);
  }

  /** Part of a call, by number; any thread may do any. */
  private interface Work {
    void part(long index, Tile t);
  }

  /** One call's work, shared between its caller and helpers. */
  private static final class Job implements Runnable {
    private final long parts;
    private final AtomicLong next = new AtomicLong();

    /** These, and the caller's tile, which holds what the call prepared, are null at its end: an executor may queue this for longer. */
    private @Nullable KlEngine engine;

    private @Nullable Work work;

    private @Nullable Tile lead;
    private volatile @Nullable Throwable failure;
    private int active;
    private boolean finished;

    Job(KlEngine engine, Work work, long parts, Tile lead) {
      this.engine = engine;
      this.work = work;
      this.parts = parts;
      this.lead = lead;
    }

    /** Works with whatever helpers begin in time, and returns when all that began have ended. */
    void run(Executor helpers) {
      try {
        for (long k = Math.min(Objects.requireNonNull(engine).threads, parts); k > 1; k--) {
          helpers.execute(this);
        }
      } catch (RejectedExecutionException e) {
        // fewer helpers; the caller does what they would have done
      } catch (Throwable e) { // an executor may throw anything
        fail(e); // thrown on when the helpers that did begin have ended
      }
      work(Objects.requireNonNull(work), Objects.requireNonNull(lead));
      awaitHelpers();
      Throwable failed = failure;
      release();
      if (failed != null) {
        throw KlEngine.<RuntimeException>any(failed);
      }
    }

    @Override
    public void run() {
      KlEngine owner;
      Work shared;
      Tile caller;
      synchronized (this) {
        if (finished) {
          return;
        }
        active++;
        owner = Objects.requireNonNull(engine);
        shared = Objects.requireNonNull(work);
        caller = Objects.requireNonNull(lead);
      }
      try {
        Tile own = owner.acquire();
        try {
          own.share(caller);
          ScopedValue.where(Checkpoint.CALLER, Objects.requireNonNull(caller.caller))
              .run(() -> work(shared, own));
        } finally {
          owner.release(own);
        }
      } catch (Throwable e) { // consumers of other languages throw checked exceptions, too
        fail(e);
      } finally {
        synchronized (this) {
          active--;
          notifyAll();
        }
      }
    }

    private void work(Work work, Tile t) {
      try {
        for (long b = next.getAndIncrement();
            b < parts && failure == null;
            b = next.getAndIncrement()) {
          work.part(b, t);
        }
      } catch (Throwable e) {
        fail(e);
      }
    }

    /** Ends the call: nobody begins another tile. The first failure is the one thrown. */
    private synchronized void fail(Throwable e) {
      if (failure == null) {
        failure = e;
      }
      Objects.requireNonNull(lead).ended = true;
    }

    private synchronized void awaitHelpers() {
      finished = true;
      boolean interrupted = false;
      while (active > 0) {
        try {
          wait();
        } catch (InterruptedException e) {
          interrupted = true;
          fail(Tile.interrupted());
        }
      }
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }

    /** Holds nothing of the call any more. */
    private synchronized void release() {
      engine = null;
      work = null;
      lead = null;
      failure = null;
    }
  }

  /** Throws it as it is, checked or not. */
  @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
  private static <E extends Throwable> E any(Throwable e) throws E {
    throw (E) e;
  }

  private Tile acquire() {
    Tile tile = null;
    for (int i = 0; i < tiles.length() && tile == null; i++) {
      tile = tiles.getAndSet(i, null);
    }
    if (tile == null) {
      tile = new Tile(vectors ? new VectorScan() : new ScalarScan());
    }
    tile.caller = Thread.currentThread();
    return tile;
  }

  private void release(Tile tile) {
    tile.clear();
    for (int i = 0; i < tiles.length(); i++) {
      if (tiles.compareAndSet(i, null, tile)) {
        return;
      }
    }
  }

  private static void zero(
      long n,
      boolean wide,
      float @Nullable [] out32,
      double @Nullable [] out64,
      @Nullable MemorySegment segment) {
    if (out32 != null) {
      Arrays.fill(out32, 0, (int) n, 0);
    } else if (out64 != null) {
      Arrays.fill(out64, 0, (int) n, 0);
    } else if (segment != null) {
      segment.asSlice(0, n * (wide ? 8 : 4)).fill((byte) 0);
    }
  }

  private static boolean isDeterministic(Gaussians batch) {
    return batch instanceof DiagonalGaussians d && d.deterministic;
  }

  private void checkOpen() {
    if (closed) {
      throw new IllegalStateException("this KlEngine is closed");
    }
  }

  private void check(Gaussians q, Gaussians p) {
    check(q, p, false);
  }

  /** For {@code KL(q ‖ p)}, or in reverse for {@code KL(p ‖ q)}. */
  private void check(Gaussians q, Gaussians p, boolean reverse) {
    checkOpen();
    Objects.requireNonNull(q, "q");
    Objects.requireNonNull(p, "p");
    if (q.dimension() != p.dimension()) {
      throw new IllegalArgumentException(
          "q has dimension %d but p has %d; they must be equal"
              .formatted(q.dimension(), p.dimension()));
    }
    if (q instanceof DiagonalGaussians d && p instanceof FullGaussians) {
      d.checkStd("q");
    } else if (q instanceof FullGaussians && p instanceof DiagonalGaussians d) {
      d.checkStd("p");
    }
    if (isDeterministic(reverse ? q : p) && !isDeterministic(reverse ? p : q)) {
      throw new IllegalArgumentException(
          reverse
              ? "q is deterministic (std 0) and p is not, so KL(p‖q) is undefined"
              : "p is deterministic (std 0) and q is not, so KL(q‖p) is undefined");
    }
  }

  private void checkAligned(Gaussians q, Gaussians p) {
    check(q, p);
    if (q.size() != p.size()) {
      throw new IllegalArgumentException(
          "q has %d Gaussians but p has %d; aligned needs as many of each"
              .formatted(q.size(), p.size()));
    }
  }

  private void checkNearest(
      Gaussians q, Gaussians p, int k, boolean others, int[] indices, int values) {
    checkNearest(q, p, k, others, false);
    checkLength("indices", q.size() * k, Objects.requireNonNull(indices, "indices").length);
    checkLength("values", q.size() * k, values);
  }

  private void checkNearest(Gaussians q, Gaussians p, int k, boolean others, boolean reverse) {
    check(q, p, reverse);
    if (others && q.size() != p.size()) {
      throw new IllegalArgumentException(
          "q has %d Gaussians but p has %d; nearestOthers needs as many of each"
              .formatted(q.size(), p.size()));
    }
    int most = others ? p.size() - 1 : p.size();
    if (k < 1 || k > most) {
      throw new IllegalArgumentException(
          "k must be in [1, %d], the %sGaussians of p, is %d"
              .formatted(most, others ? "other " : "", k));
    }
    if ((long) q.size() * k > Integer.MAX_VALUE - 8) {
      throw new IllegalArgumentException(
          "%d x %d neighbors do not fit an array; split q by rows".formatted(q.size(), k));
    }
  }

  private int arrayLength(Gaussians q, Gaussians p) {
    check(q, p);
    long n = (long) q.size() * p.size();
    if (n > Integer.MAX_VALUE - 8) {
      throw new IllegalArgumentException(
          "%d x %d = %d entries do not fit an array; write to a MemorySegment"
              .formatted(q.size(), p.size(), n));
    }
    return (int) n;
  }

  /** N, of a batch that is not null. */
  private static int rows(Gaussians q) {
    return Objects.requireNonNull(q, "q").size();
  }

  private static int lengthOf(float[] values) {
    return Objects.requireNonNull(values, "values").length;
  }

  private static int lengthOf(double[] values) {
    return Objects.requireNonNull(values, "values").length;
  }

  private static void checkOut(int needed, float[] out) {
    checkLength("out", needed, Objects.requireNonNull(out, "out").length);
  }

  private static void checkOut(int needed, double[] out) {
    checkLength("out", needed, Objects.requireNonNull(out, "out").length);
  }

  private static void checkLength(String array, int needed, int length) {
    if (length < needed) {
      throw new IllegalArgumentException(
          "%s has %d elements but %d are needed".formatted(array, length, needed));
    }
  }

  private static void checkSegment(long n, boolean wide, MemorySegment out) {
    Objects.requireNonNull(out, "out");
    long bytes = n * (wide ? 8 : 4); // n < 2^62/8: sizes of batches held in arrays
    if (out.byteSize() < bytes) {
      throw new IllegalArgumentException(
          "out has %d bytes but %d are needed, %d %s values"
              .formatted(out.byteSize(), bytes, n, wide ? "double" : "float"));
    }
    if (out.isReadOnly()) {
      throw new IllegalArgumentException("out is a read-only segment");
    }
    DiagonalGaussians.checkAccessible(out, "out");
  }
}
