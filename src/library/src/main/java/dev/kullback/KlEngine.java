package dev.kullback;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.engine.Arguments;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.engine.Workspace;
import dev.kullback.internal.formula.Density;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.PairGradient;
import dev.kullback.internal.mixture.PairSampler;
import dev.kullback.internal.rows.RowStatistic;
import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.internal.rows.TileStream;
import dev.kullback.internal.verify.Verify;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Computes Kullback–Leibler divergences, in nats, between batches of Gaussians, or another {@link Divergence}.
 *
 * <p>The batch q has N Gaussians, p has M, and both have dimension D. Either may be {@link DiagonalGaussians} or
 * {@link FullGaussians}. {@code pairwise} computes the matrix {@code KL(q_i ‖ p_j)}, {@code aligned} its diagonal, and
 * {@code toStandardNormal} the divergences from {@code N(0, I)}. The other operations search or sum the rows of the
 * matrix without storing it.
 *
 * <p>An engine is safe for use by any number of threads at once. The {@linkplain dev.kullback package description}
 * states what holds for all methods: equations, accuracy, outputs, when two batches match, threads, interruption,
 * memory and CUDA. Where several methods share a name, the first describes the parameters that they share.
 *
 * <p>A method throws {@link IllegalArgumentException} if its batches do not match, an argument is not as its description
 * says, a result would have more than the 2³¹ − 9 elements of an array, or the memory that it writes to is too small or
 * read-only. It throws {@link AlreadyClosedException} if the engine is closed, {@link CancellationException} if the calling
 * thread is interrupted, and {@link CudaException} if the device fails.
 *
 * @since 0.1.0
 */
public final class KlEngine implements AutoCloseable {
  private static final int MOST_THREADS = 1024;

  final Engine engine;
  private final Divergence divergence;
  private final Formula formula;

  KlEngine(Engine engine, Divergence divergence) {
    this.engine = engine;
    this.divergence = divergence;
    formula = divergence.formula;
  }

  /** {@return a builder of engines; each of its methods states the default of what it sets} */
  public static Builder builder() {
    return new Builder();
  }

  static int checkThreads(int count) {
    if (count < 1 || count > MOST_THREADS) {
      throw new IllegalArgumentException(
          "threads must be in [1, %d], is %d".formatted(MOST_THREADS, count));
    }
    return count;
  }

  /** The number of threads by what a builder was told: 0 if nothing. */
  static int threads(int told, @Nullable Executor executor) {
    int most = Math.min(Runtime.getRuntime().availableProcessors(), MOST_THREADS);
    return told > 0 ? told : executor == null ? 1 : most;
  }

  /**
   * The settings of an engine. A builder is not safe for use by several threads.
   *
   * @since 0.1.0
   */
  public static final class Builder {
    private int threads; // 0: not set
    private @Nullable Executor executor;
    private Backend backend = Backend.AUTO;
    private Divergence divergence = Divergence.KL;
    private boolean backgroundWarmUp = Platform.IS_DEFERRED;

    private Builder() {}

    /**
     * Sets how many threads share the work of a call, the caller included. The default is 1, or with an
     * {@link #executor} the number of processors, up to 1024. Without an executor, the engine owns the helpers, one less:
     * daemon threads that it starts when they are first needed and that {@link KlEngine#close()} ends.
     *
     * @param count the number of threads, in [1, 1024]
     * @return this builder
     * @throws IllegalArgumentException if count is not in [1, 1024]
     */
    public Builder threads(int count) {
      threads = checkThreads(count);
      return this;
    }

    /**
     * Runs the helpers of {@link #threads} on an executor instead of threads of the engine. The caller never
     * waits for a helper that has not begun, so a busy or refusing executor only costs time. A helper that stays queued
     * after the end of its call holds nothing of the call. {@link KlEngine#close()} does not shut the executor down.
     *
     * @param executor where helpers run
     * @return this builder
     */
    public Builder executor(Executor executor) {
      this.executor = Objects.requireNonNull(executor, "executor");
      return this;
    }

    /**
     * Sets the implementation that computes. The default is {@link Backend#AUTO}.
     *
     * @param backend the backend; {@link #build()} refuses one that cannot run here
     * @return this builder
     */
    public Builder backend(Backend backend) {
      this.backend = Objects.requireNonNull(backend, "backend");
      return this;
    }

    /**
     * Sets the divergence that the engine computes, in every operation but {@link KlEngine#monteCarlo}. The default is
     * {@link Divergence#KL}. KL is the fastest. A CUDA device computes nothing else.
     *
     * @param divergence the divergence
     * @return this builder
     */
    public Builder divergence(Divergence divergence) {
      this.divergence = Objects.requireNonNull(divergence, "divergence");
      return this;
    }

    /**
     * Sets whether calls may start the daemon thread that has the JVM compile vector code, while plain code computes to the same bits. All
     * engines and indexes of the process share one thread, which ends when what their calls have asked for is compiled.
     *
     * <p>The default is {@code true}, unless system property {@code dev.kullback.background} is {@code false}. Without the thread,
     * {@link #build()} finds out whether the JVM compiles vectors at all, once a process, in 0.2 s, or 3 s if it does not; the engine then
     * uses vectors from its first call on, which are interpreted in the first seconds: {@link KlEngine#warmUp(int, int, int)} gets over
     * that. {@link FullGaussians} are factored by plain code, to the same bits, until a thread of others has had vectors compiled; only the
     * system property changes that, as a batch knows no engine.
     *
     * @param enabled whether this engine's calls may start the thread
     * @return this builder
     */
    public Builder backgroundWarmUp(boolean enabled) {
      backgroundWarmUp = enabled;
      return this;
    }

    /**
     * Makes an engine with these settings.
     *
     * @return a new engine
     * @throws IllegalArgumentException if a system property of the library, such as {@code dev.kullback.backend}, has a
     *     value that it cannot have, or if {@link Backend#CUDA} was asked for with another divergence than KL
     * @throws IllegalStateException if {@link Backend#VECTOR} or {@link Backend#CUDA} was asked for and cannot run; the message says why
     */
    public KlEngine build() {
      return new KlEngine(
          new Engine(
              divergence.formula,
              backend.choice(),
              KlEngine.threads(threads, executor),
              executor,
              backgroundWarmUp,
              divergence.name()),
          divergence);
    }
  }

  /**
   * Computes the matrix {@code out[i*M + j] = KL(q_i ‖ p_j)}, in nats.
   *
   * @param q N Gaussians, the rows
   * @param p M Gaussians, the columns
   * @return a new array, row-major {@code [N, M]}
   */
  public float[] pairwise(Gaussians q, Gaussians p) {
    float[] out = new float[arrayLength(q, p)];
    engine.into(out).pairwise(batch(q), batch(p));
    return out;
  }

  /** {@return {@code out}, with the row-major {@code [N, M]} matrix of {@link #pairwise(Gaussians, Gaussians)}} */
  public float[] pairwise(Gaussians q, Gaussians p, float[] out) {
    Arguments.checkOut(arrayLength(q, p), out);
    engine.into(out).pairwise(batch(q), batch(p));
    return out;
  }

  /** {@return {@code out}, with the row-major {@code [N, M]} matrix of {@link #pairwise(Gaussians, Gaussians)}} */
  public double[] pairwise(Gaussians q, Gaussians p, double[] out) {
    Arguments.checkOut(arrayLength(q, p), out);
    engine.into(out).pairwise(batch(q), batch(p));
    return out;
  }

  /**
   * Computes the matrix of {@link #pairwise(Gaussians, Gaussians)} into a segment of any size, a mapped file for
   * instance. A segment that is confined to the calling thread is filled by that thread alone.
   *
   * @param out receives the matrix, row-major {@code [N, M]}
   * @return {@code out}
   * @throws java.io.UncheckedIOException if {@code out} is mapped to a file whose disk is full, or that was cut off
   */
  public MemorySegment pairwise(Gaussians q, Gaussians p, MemorySegment out) {
    check(q, p);
    boolean wide = q.isDouble() || p.isDouble();
    Arguments.checkSegment((long) q.size() * p.size(), wide, out);
    engine.into(out, wide).pairwise(batch(q), batch(p));
    return out;
  }

  /**
   * Computes {@code out[i] = KL(q_i ‖ p_i)}, in nats, for two batches of N Gaussians.
   *
   * @param q N Gaussians
   * @param p N Gaussians
   * @return a new array of N divergences
   */
  public float[] aligned(Gaussians q, Gaussians p) {
    return aligned(q, p, new float[rows(q)]);
  }

  /** {@return {@code out}, with the N divergences of {@link #aligned(Gaussians, Gaussians)}} */
  public float[] aligned(Gaussians q, Gaussians p, float[] out) {
    checkAligned(q, p);
    Arguments.checkOut(q.size(), out);
    engine.into(out).aligned(batch(q), batch(p));
    return out;
  }

  /** {@return {@code out}, with the N divergences of {@link #aligned(Gaussians, Gaussians)}} */
  public double[] aligned(Gaussians q, Gaussians p, double[] out) {
    checkAligned(q, p);
    Arguments.checkOut(q.size(), out);
    engine.into(out).aligned(batch(q), batch(p));
    return out;
  }

  /** {@return {@code out}, with the N divergences of {@link #aligned(Gaussians, Gaussians)}} */
  public MemorySegment aligned(Gaussians q, Gaussians p, MemorySegment out) {
    checkAligned(q, p);
    boolean wide = q.isDouble() || p.isDouble();
    Arguments.checkSegment(q.size(), wide, out);
    engine.into(out, wide).aligned(batch(q), batch(p));
    return out;
  }

  /**
   * Computes {@code out[r] = KL(q_i ‖ p_j)} for {@code i = rows[r]} and {@code j = columns[r]}, in nats, for R pairs in any order and with repetitions. The pairs
   * are computed one by one in plain code, on the engine's threads, also where the backend is a device.
   *
   * @param q N Gaussians
   * @param rows R indices of q, in [0, N)
   * @param p M Gaussians
   * @param columns R indices of p, in [0, M)
   * @param out receives the R divergences
   */
  public void pairs(Gaussians q, int[] rows, Gaussians p, int[] columns, double[] out) {
    checkPairs(q, rows, p, columns);
    Arguments.checkOut(rows.length, out);
    engine.into(out).pairs(batch(q), rows, batch(p), columns);
  }

  /**
   * Computes {@code out[i] = KL(q_i ‖ N(0, I))}, in nats: {@code ½ Σ_h (μ² + σ² − 1 − ln σ²)}, or for full covariances
   * {@code ½ (‖μ‖² + ‖L‖² − D) − Σ_k ln L_kk}.
   *
   * @param q N Gaussians
   * @return a new array of N divergences
   */
  public float[] toStandardNormal(Gaussians q) {
    return toStandardNormal(q, new float[rows(q)]);
  }

  /** {@return {@code out}, with the N divergences of {@link #toStandardNormal(Gaussians)}} */
  public float[] toStandardNormal(Gaussians q, float[] out) {
    checkStandard(q);
    Arguments.checkOut(rows(q), out);
    engine.into(out).toStandardNormal(batch(q));
    return out;
  }

  /** {@return {@code out}, with the N divergences of {@link #toStandardNormal(Gaussians)}} */
  public double[] toStandardNormal(Gaussians q, double[] out) {
    checkStandard(q);
    Arguments.checkOut(rows(q), out);
    engine.into(out).toStandardNormal(batch(q));
    return out;
  }

  /** {@return {@code out}, with the N divergences of {@link #toStandardNormal(Gaussians)}} */
  public MemorySegment toStandardNormal(Gaussians q, MemorySegment out) {
    checkStandard(q);
    Arguments.checkSegment(rows(q), q.isDouble(), out);
    engine.into(out, q.isDouble()).toStandardNormal(batch(q));
    return out;
  }

  /**
   * Computes the log-densities {@code out[i*M + j] = ln p_j(x_i)}, in nats, at points, whatever the engine's divergence:
   *
   * <pre>
   * ln p(x) = −½ Σ_h (x_h − μ_h)²/σ_h² − Σ_h ln σ_h − ½ D ln 2π
   * ln p(x) = −½ ‖L⁻¹(x − μ)‖² − Σ_k ln L_kk − ½ D ln 2π          of a full covariance LLᵀ
   * </pre>
   *
   * <p>The error is at most 1e-5 of {@code ½ ‖L⁻¹(x − μ)‖² + |ln det L| + D}, and 1e-12 of it if either batch is of double, for full
   * covariances times the condition number. A point that is so far that its log-density is beyond the numbers of {@code out} has −∞; none is
   * NaN. Calls with points run on the host where the backend is a device.
   *
   * @param points N points, of {@link DiagonalGaussians#ofPoints(float[], int)}, the rows
   * @param p M Gaussians, the columns
   * @return a new array, row-major {@code [N, M]}
   */
  public float[] logDensity(Gaussians points, Gaussians p) {
    return logDensity(points, p, new float[pointsLength(points, p)]);
  }

  /** {@return {@code out}, with the row-major {@code [N, M]} matrix of {@link #logDensity(Gaussians, Gaussians)}} */
  public float[] logDensity(Gaussians points, Gaussians p, float[] out) {
    into(Density.LOG_DENSITY, points, p, out).pairwise(batch(points), batch(p));
    return out;
  }

  /** {@return {@code out}, with the row-major {@code [N, M]} matrix of {@link #logDensity(Gaussians, Gaussians)}} */
  public double[] logDensity(Gaussians points, Gaussians p, double[] out) {
    into(Density.LOG_DENSITY, points, p, out).pairwise(batch(points), batch(p));
    return out;
  }

  /** {@return {@code out}, with the row-major {@code [N, M]} matrix of {@link #logDensity(Gaussians, Gaussians)}, of any size} */
  public MemorySegment logDensity(Gaussians points, Gaussians p, MemorySegment out) {
    into(Density.LOG_DENSITY, points, p, out).pairwise(batch(points), batch(p));
    return out;
  }

  /**
   * Computes the squared Mahalanobis distances {@code out[i*M + j] = Σ_h (x_ih − μ_jh)²/σ_jh²}, or {@code ‖L_j⁻¹(x_i − μ_j)‖²} of full
   * covariances, whatever the engine's divergence. The relative error is that of KL; one that overflows is +∞, none is NaN. Where x is of
   * p_j, the distance has the χ² distribution of D degrees of freedom, whose quantiles are gates: {@link #within(Gaussians, Gaussians, double)}.
   *
   * @param points N points, of {@link DiagonalGaussians#ofPoints(float[], int)}, the rows
   * @param p M Gaussians, the columns
   * @return a new array, row-major {@code [N, M]}
   */
  public float[] mahalanobis(Gaussians points, Gaussians p) {
    return mahalanobis(points, p, new float[pointsLength(points, p)]);
  }

  /** {@return {@code out}, with the row-major {@code [N, M]} matrix of {@link #mahalanobis(Gaussians, Gaussians)}} */
  public float[] mahalanobis(Gaussians points, Gaussians p, float[] out) {
    into(Density.MAHALANOBIS, points, p, out).pairwise(batch(points), batch(p));
    return out;
  }

  /** {@return {@code out}, with the row-major {@code [N, M]} matrix of {@link #mahalanobis(Gaussians, Gaussians)}} */
  public double[] mahalanobis(Gaussians points, Gaussians p, double[] out) {
    into(Density.MAHALANOBIS, points, p, out).pairwise(batch(points), batch(p));
    return out;
  }

  /** {@return {@code out}, with the row-major {@code [N, M]} matrix of {@link #mahalanobis(Gaussians, Gaussians)}, of any size} */
  public MemorySegment mahalanobis(Gaussians points, Gaussians p, MemorySegment out) {
    into(Density.MAHALANOBIS, points, p, out).pairwise(batch(points), batch(p));
    return out;
  }

  /**
   * Computes the log-likelihoods {@code out[i*S + m] = ln Σ_j w_j p_j(x_i)}, in nats, of S mixtures at points, the sum over the components j of
   * mixture m: by their log-densities, none of which underflows. The error is that of the log-densities that count.
   *
   * @param points N points, of {@link DiagonalGaussians#ofPoints(float[], int)}, the rows
   * @param mixtures S mixtures, the columns; their weights may have any sum
   * @return a new array, row-major {@code [N, S]}
   */
  public double[] logLikelihood(Gaussians points, Mixtures mixtures) {
    return logLikelihood(points, mixtures, new double[length(points, mixtures)]);
  }

  /** {@return {@code out}, with the row-major {@code [N, S]} matrix of {@link #logLikelihood(Gaussians, Mixtures)}} */
  public double[] logLikelihood(Gaussians points, Mixtures mixtures, double[] out) {
    int length = length(points, mixtures);
    Gaussians p = mixtures.components();
    checkPoints(points, p);
    Arguments.checkOut(length, out);
    engine
        .ofPoints(Density.EXCESS)
        .begin()
        .logLikelihood(batch(points), batch(p), mixtures.logWeights(), mixtures.offsets(), out);
    double shift = Density.EXCESS.shift(batch(p));
    for (int i = 0; i < length; i++) {
      out[i] -= shift;
    }
    return out;
  }

  /**
   * Computes the responsibilities {@code out[i*M + j] = w_j p_j(x_i) / Σ_k w_k p_k(x_i)} of the M components of all mixtures for points, the
   * sum over the components k of j's mixture: the probabilities that a point of the mixture comes of each. Those of a mixture have the sum 1 to 4 units in the last
   * place. They are computed in place of the log-densities, by differences from the greatest, so that far points have them, too. Where all
   * log-densities are −∞, they are the weights' shares.
   *
   * @param points N points, of {@link DiagonalGaussians#ofPoints(float[], int)}, the rows
   * @param mixtures mixtures of M components together, the columns; their weights may have any sum
   * @return a new array, row-major {@code [N, M]}
   */
  public float[] responsibilities(Gaussians points, Mixtures mixtures) {
    return responsibilities(
        points, mixtures, new float[pointsLength(points, components(mixtures))]);
  }

  /** {@return {@code out}, with the row-major {@code [N, M]} matrix of {@link #responsibilities(Gaussians, Mixtures)}} */
  public float[] responsibilities(Gaussians points, Mixtures mixtures, float[] out) {
    responsibilities(
        into(Density.LOG_DENSITY, points, components(mixtures), out), points, mixtures);
    return out;
  }

  /** {@return {@code out}, with the row-major {@code [N, M]} matrix of {@link #responsibilities(Gaussians, Mixtures)}} */
  public double[] responsibilities(Gaussians points, Mixtures mixtures, double[] out) {
    responsibilities(
        into(Density.LOG_DENSITY, points, components(mixtures), out), points, mixtures);
    return out;
  }

  /** {@return {@code out}, with the row-major {@code [N, M]} matrix of {@link #responsibilities(Gaussians, Mixtures)}, of any size} */
  public MemorySegment responsibilities(Gaussians points, Mixtures mixtures, MemorySegment out) {
    Workspace workspace = into(Density.LOG_DENSITY, points, components(mixtures), out);
    responsibilities(workspace, points, mixtures);
    return out;
  }

  private static Gaussians components(Mixtures mixtures) {
    return Objects.requireNonNull(mixtures, "mixtures").components();
  }

  private static void responsibilities(Workspace workspace, Gaussians points, Mixtures mixtures) {
    workspace.responsibilities(
        batch(points), batch(mixtures.components()), mixtures.ownWeights(), mixtures.offsets());
  }

  private Workspace into(Density density, Gaussians points, Gaussians p, float[] out) {
    Arguments.checkOut(pointsLength(points, p), out);
    return engine.ofPoints(density).into(out);
  }

  private Workspace into(Density density, Gaussians points, Gaussians p, double[] out) {
    Arguments.checkOut(pointsLength(points, p), out);
    return engine.ofPoints(density).into(out);
  }

  private Workspace into(Density density, Gaussians points, Gaussians p, MemorySegment out) {
    checkPoints(points, p);
    boolean wide = points.isDouble() || p.isDouble();
    Arguments.checkSegment((long) points.size() * p.size(), wide, out);
    return engine.ofPoints(density).into(out, wide);
  }

  /**
   * Finds, for every row i, the k smallest of {@code KL(q_i ‖ p_j)} over j, nearest first and ties to the lower index.
   *
   * <p>The order is that of exact arithmetic, not of rounded values. Candidates that the kernels' error bound does not
   * tell apart are recomputed before they are ordered or cut, for batches of float, too: first to 1e-13, and where that
   * does not tell them apart, for diagonal batches in twice the precision of double. A value that no other is near is
   * as the kernels computed it, with the promised accuracy.
   *
   * <p>In twice the precision of double, equal divergences always count as equal, and have one value. Different ones
   * count as equal only if they differ by at most {@code (D + 8192)·2⁻⁹⁵} of their value (2e-25 where D is small), or
   * if a chain of divergences links them in such steps. This holds for divergences from 1e-300 to where they overflow,
   * for log-variances within ±10⁵, and for batches that state their scales in one way, or the one as σ and the other as
   * σ². If they state them in other ways, equal divergences count as equal if their terms are the same, and
   * {@code 2⁻⁹⁵·√(D/KL)} is added to the difference. With a full covariance, what is left uncertain is some
   * {@code D·‖L_p‖‖L_p⁻¹‖} roundings of double.
   *
   * <p>If q are {@linkplain DiagonalGaussians#ofPoints(float[], int) points}, all this is of the squared Mahalanobis distance
   * {@code ‖L_j⁻¹(x_i − μ_j)‖²} in the place of KL, whatever the engine's divergence; {@link Query#byLogDensity} ranks by density.
   *
   * <p>Besides the result, each thread holds {@code k + max(64, k/2)} candidates of 16 bytes for each of 256 rows, or
   * of fewer rows if k is above 1000. Where many candidates are uncertain, it holds {@code k + max(4096, k)} and those
   * of another block. Calls with k above some 40,000 allocate them anew. Where few rows divide their columns among threads,
   * the engine holds up to {@code 4·(k + max(64, k/2))} more for each row and each of its spans of columns.
   *
   * @param q N Gaussians, the rows
   * @param p M Gaussians, the columns
   * @param k the number of neighbors, in [1, M]
   * @return N rows of k neighbors
   * @throws IllegalArgumentException also if k is above M, which the message names; {@link #search(Gaussians, Gaussians, Query)} returns all M
   *     then, as it does where a query leaves out some
   */
  public Neighbors nearest(Gaussians q, Gaussians p, int k) {
    Query query = Query.nearest(Math.max(1, k));
    check(q, p, query);
    Arguments.checkNeighbors(k, p.size());
    return search(q, p, query);
  }

  /**
   * Finds, for every row i, all j with {@code KL(q_i ‖ p_j) ≤ radius}, by ascending j.
   *
   * <p>If q are {@linkplain DiagonalGaussians#ofPoints(float[], int) points}, it finds all whose squared Mahalanobis distance is at most the radius: a gate, as
   * {@code within(points, p, 9.21)} for 99 % of two dimensions.
   *
   * <p>The decision is that of exact arithmetic. Entries that the kernels' error bound does not tell from the radius
   * are recomputed as in {@link #nearest(Gaussians, Gaussians, int)}, and what counts as equal there is within the
   * radius. A value that {@code nearest} returned may, as a radius, exclude its own pair, if it was rounded down. Each
   * pair found takes 12 bytes, and up to 36 more while they are collected.
   *
   * @param q N Gaussians, the rows
   * @param p M Gaussians, the columns
   * @param radius in nats, ≥ 0; 0 finds equal Gaussians and those whose divergence underflows, and +∞ finds all
   * @return N rows of the pairs found
   */
  public Neighbors within(Gaussians q, Gaussians p, double radius) {
    return search(q, p, Query.within(radius));
  }

  /**
   * Finds references as a query says: the nearest, or all within a radius, with options such as {@link Query#reverse()},
   * {@link Query#excludeSelf()}, {@link Query#exact()} and {@link Query#timeout}.
   *
   * <p>It is {@link #nearest(Gaussians, Gaussians, int)} or {@link #within(Gaussians, Gaussians, double)} among the columns that the query
   * leaves, and takes as long, whatever their number. A call of fewer than 32 rows by the reverse divergence takes as long as one of 32.
   *
   * @param q N Gaussians, the rows
   * @param p M Gaussians, the columns
   * @param query what to look for; the ids that it is about are the columns, plus its {@link Query#offset}
   * @return N rows of k neighbors, or of all that there are if they are fewer, or of the pairs within the radius
   * @throws IllegalArgumentException also if an index would be more than 2³¹ − 1, there are more pairs than {@link Query#maxPairs} or
   *     2³¹ − 9, or the list that the search continues is of another number of rows, is not ascending, or has an index of p's
   * @throws SearchTimeoutException if the query's {@link Query#timeout} passes
   */
  public Neighbors search(Gaussians q, Gaussians p, Query query) {
    SearchOptions options = check(q, p, query);
    return new Neighbors(engine(q, query).search(batch(q), batch(p), options));
  }

  /**
   * Finds the neighbors of {@link #search(Gaussians, Gaussians, Query)} for a query for the nearest, and writes them into arrays. A warm call
   * with one thread allocates nothing. Where values are equal after rounding to float, their indices are still in the order of the exact
   * ones.
   *
   * @param query what to look for, {@link Query#nearest}; every row must have k neighbors, as rows have no lengths here
   * @param indices receives the columns j, row-major {@code [N, k]}
   * @param values receives {@code values[i*k + r] = KL(q_i ‖ p_j)} for {@code j = indices[i*k + r]}
   * @throws IllegalArgumentException also if the query is for all within a radius, or leaves a row fewer than k neighbors
   */
  public void search(Gaussians q, Gaussians p, Query query, int[] indices, float[] values) {
    SearchOptions options =
        checkEvery(q, p, query, indices, Objects.requireNonNull(values, "values").length);
    engine(q, query).into(values).nearest(batch(q), batch(p), options, indices);
  }

  /**
   * Writes the neighbors into arrays as {@link #search(Gaussians, Gaussians, Query, int[], float[])} does, without rounding the values.
   */
  public void search(Gaussians q, Gaussians p, Query query, int[] indices, double[] values) {
    SearchOptions options =
        checkEvery(q, p, query, indices, Objects.requireNonNull(values, "values").length);
    engine(q, query).into(values).nearest(batch(q), batch(p), options, indices);
  }

  /**
   * Computes {@code out[i] = ln Σ_j exp(−KL(q_i ‖ p_j))}. The error is that of a divergence: absolute, and at most the
   * relative error that is promised times the divergence of the terms that count.
   *
   * @param q N Gaussians, the rows
   * @param p M Gaussians, the columns
   * @return a new array of N numbers
   */
  public double[] logSumExp(Gaussians q, Gaussians p) {
    return logSumExp(q, p, new double[rows(q)]);
  }

  /** {@return {@code out}, with the N numbers of {@link #logSumExp(Gaussians, Gaussians)}} */
  public double[] logSumExp(Gaussians q, Gaussians p, double[] out) {
    return statistic(RowStatistic.Kind.LOG_SUM_EXP, q, p, null, out);
  }

  /**
   * Computes {@code out[i] = ln Σ_j exp(w_j − KL(q_i ‖ p_j))}. For a mixture, {@code w_j} is the logarithm of the
   * weight of {@code p_j}. The error is that of {@link #logSumExp(Gaussians, Gaussians)}.
   *
   * @param q N Gaussians, the rows
   * @param p M Gaussians, the columns
   * @param logWeights w, M numbers, none NaN or +∞; −∞ leaves a term out, and if all are −∞, so are the results
   * @return a new array of N numbers
   */
  public double[] weightedLogSumExp(Gaussians q, Gaussians p, double[] logWeights) {
    return weightedLogSumExp(q, p, logWeights, new double[rows(q)]);
  }

  /**
   * {@return {@code out}, with the numbers of {@link #weightedLogSumExp(Gaussians, Gaussians, double[])}}
   *
   * @param out receives the N numbers; another array than {@code logWeights}
   */
  public double[] weightedLogSumExp(Gaussians q, Gaussians p, double[] logWeights, double[] out) {
    check(q, p);
    Arguments.checkLogWeights(batch(p), logWeights, out);
    return statistic(RowStatistic.Kind.LOG_SUM_EXP, q, p, logWeights, out);
  }

  /** {@return a new array of N numbers, {@code out[i] = min_j KL(q_i ‖ p_j)}, in nats} */
  public double[] rowMin(Gaussians q, Gaussians p) {
    return rowMin(q, p, new double[rows(q)]);
  }

  /** {@return {@code out}, with the N numbers of {@link #rowMin(Gaussians, Gaussians)}} */
  public double[] rowMin(Gaussians q, Gaussians p, double[] out) {
    return statistic(RowStatistic.Kind.MIN, q, p, null, out);
  }

  /** {@return a new array of N numbers, {@code out[i] = Σ_j KL(q_i ‖ p_j)}, in nats; +∞ where a term or the sum is} */
  public double[] rowSum(Gaussians q, Gaussians p) {
    return rowSum(q, p, new double[rows(q)]);
  }

  /** {@return {@code out}, with the N numbers of {@link #rowSum(Gaussians, Gaussians)}} */
  public double[] rowSum(Gaussians q, Gaussians p, double[] out) {
    return statistic(RowStatistic.Kind.SUM, q, p, null, out);
  }

  /**
   * Computes the matrix tile by tile and hands each tile to a consumer once, in no order, while it is in the cache. The
   * memory is that of a tile for each thread, 1 MiB (on a CUDA device 8 MiB), whatever the size of the matrix.
   *
   * <p>The consumer runs on the thread that computed the tile, which computes no other before the consumer returns.
   * With several threads, it must be safe for use by them at once. What the consumer throws ends the call when the
   * tiles under way are done, and is thrown to the caller.
   *
   * @param q N Gaussians, the rows
   * @param p M Gaussians, the columns
   * @param consumer receives each tile, which is valid until it returns
   */
  public void forEachTile(Gaussians q, Gaussians p, Consumer<? super KlTile> consumer) {
    Objects.requireNonNull(consumer, "consumer");
    check(q, p);
    engine.forEachTile(
        batch(q),
        batch(p),
        new TileStream() {
          @Override
          protected void tile(int row0, int rows, int column0, int columns, double[] kl) {
            consumer.accept(new KlTile(row0, rows, column0, columns, kl));
          }
        });
  }

  /**
   * Makes what computes gradients of this engine's operations.
   *
   * @return a new object, for one thread at a time; it computes with this engine's threads until that is closed
   * @throws IllegalArgumentException if the divergence has no gradient here, or the backend is a CUDA device
   */
  public KlGradient gradient() {
    engine.checkOpen();
    if (PairGradient.Term.of(formula) == null) {
      throw new IllegalArgumentException(
          "%s has no gradient here: give kl, jeffreys or squared-wasserstein-2 as the divergence"
              .formatted(divergence.name()));
    }
    if (backend() == Backend.CUDA) {
      throw new IllegalArgumentException(
          "a CUDA device computes no gradients; give an engine of Backend.VECTOR or Backend.SCALAR");
    }
    return new KlGradient(this);
  }

  /**
   * Estimates {@code KL(q_i ‖ p_i)}, in nats, as the mean of {@code ln q_i(x) − ln p_i(x)} over S samples x of q_i.
   * This checks the closed form, or a program that samples.
   *
   * <p>It runs in double on the calling thread, whatever the backend, and takes {@code O(N·S·D)} time, with a full
   * covariance {@code O(N·S·D²)}. A sample is computed from the differences of q and p, so that the standard error,
   * which includes a bound on rounding, holds for divergences of 1e-31, too. A deterministic q gives 0. Where a sample
   * overflows, estimate and error are +∞.
   *
   * <p>Results are reproducible. Pair i draws from the i-th {@link SplittableRandom#split()} of a
   * {@link SplittableRandom} of the seed, D values of {@code nextGaussian()} for each sample. So the bits depend on the
   * seed and the JDK's generator alone, and those of pair i do not depend on later pairs.
   *
   * @param q N Gaussians, which are sampled
   * @param p N Gaussians
   * @param samples S, the samples of each pair, at least 2
   * @param seed the seed of the generator
   * @return N estimates and their standard errors
   * @throws IllegalArgumentException if the engine computes another divergence than KL
   */
  public MonteCarloEstimates monteCarlo(Gaussians q, Gaussians p, int samples, long seed) {
    requireKl("samples estimate KL");
    checkAligned(q, p);
    if (samples < 2) {
      throw new IllegalArgumentException("samples must be at least 2, is " + samples);
    }
    double[] estimates = new double[q.size()];
    double[] errors = new double[q.size()];
    PairSampler.sample(batch(q), batch(p), samples, seed, estimates, errors);
    return new MonteCarloEstimates(samples, estimates, errors);
  }

  /**
   * Refuses an engine of another divergence, for what is of KL alone.
   *
   * @param why what needs KL
   */
  void requireKl(String why) {
    if (!divergence.equals(Divergence.KL)) {
      throw new IllegalArgumentException(
          "the engine computes %s; %s: give an engine of KL".formatted(divergence.name(), why));
    }
  }

  /**
   * Prepares a service for queries of a shape before its first request. Calls {@code pairwise} (if the matrix has at
   * most 2²² entries), {@code nearest} with k = 10, {@code logSumExp} and {@code rowMin} with made-up diagonal batches
   * of float until calls stop getting faster for half a second. The query is made anew for each round of these calls.
   *
   * <p>This takes one to five seconds on an idle machine, up to six times as long beside other work, and longer only if eight calls do. Results are the same cold and warm. What
   * belongs to the references themselves is built by {@link Gaussians#prepare()}.
   *
   * @param n the rows of q, those of a query, at least 1; no more rows of q and of p are made than have 2²⁰ elements,
   *     and no more than 2¹⁹ dimensions
   * @param m the rows of p, at least 1
   * @param dimension D, in [1, 2²⁴ − 1]
   * @return whether calls on such batches use a device or vector code that the JVM has compiled from now on; without it, they compute the same,
   *     far slower, and the log says why
   */
  public boolean warmUp(int n, int m, int dimension) {
    engine.checkOpen();
    if (n < 1 || m < 1 || dimension < 1 || dimension > DiagonalBatch.MOST_DIMENSIONS) {
      throw new IllegalArgumentException(
          "n = %d, m = %d and dimension = %d must be at least 1, dimension at most %d"
              .formatted(n, m, dimension, DiagonalBatch.MOST_DIMENSIONS));
    }
    return engine.warmUp(n, m, dimension);
  }

  /**
   * Prepares a service as {@link #warmUp(int, int, int)} does, with the caller's batches, of any kind and precision.
   * Both batches keep what these calls read of them by this engine's divergence and in these roles, and nothing else: what other divergences
   * and reverse searches read is made when they first do. If one is diagonal and the other full, the diagonal one keeps the full factors that
   * it is written out as, up to 128 MiB, too. Before diagonal batches of float, made-up ones of their shape run, to have code compiled for
   * Gaussians that the caller's batches do not have.
   *
   * @param q N Gaussians, those of a query
   * @param p M Gaussians, the references
   * @return as of {@link #warmUp(int, int, int)}
   */
  public boolean warmUp(Gaussians q, Gaussians p) {
    check(q, p);
    return engine.warmUp(batch(q), batch(p));
  }

  /**
   * {@return whether calls wait for compiled vector code no longer}
   *
   * <p>It is true from the time on at which what calls had asked for until then was compiled, or was found not to be compiled by this JVM, and
   * no {@link #warmUp(int, int, int)} was under way; before the first call, and once the engine is closed, it is false. Calls are right at any time,
   * and faster from then on. An engine that does not wait is ready until it is closed: on the scalar backend, or with
   * {@link Builder#backgroundWarmUp} false. It takes no time to ask.
   *
   * <p>What computes entries again, as those of similar Gaussians are, is asked for by the first call that has such entries: unless {@link #warmUp(int, int, int)}
   * or {@link #ready()} had it compiled before, such calls wait for it though the engine is ready.
   */
  public boolean isReady() {
    return engine.isReady();
  }

  /**
   * Tells when the engine {@linkplain #isReady is ready}. If no call was made, the JVM is made to compile the vector code for diagonal batches of
   * float from now on, beside the caller: for their shapes, and for other kinds of batches, {@link #warmUp(int, int, int)} does more.
   *
   * @return a stage that completes then, on a thread of its own; or exceptionally, by a {@link CancellationException}, if the engine is closed before
   */
  public CompletionStage<Void> ready() {
    engine.checkOpen();
    return engine.ready();
  }

  /**
   * Runs every operation on made-up batches of all kinds and many shapes until the VM has compiled it. Each result is
   * compared with plain arithmetic in double, and with the result of the same call before.
   * What a compiler makes of vector code depends on the processor and the VM's build, so this is meant for the start of
   * a service, or for a test on the machine that it will run on. It allocates some MB.
   *
   * <p>An engine of KL also tries what calls with points compute, and a {@link KlIndex} in memory: searches of batches for the nearest and within a radius, both in reverse, too, and
   * {@code query}, with and without codes. An index takes vectors wherever they run, so an engine that is asked to go without them, or
   * to use a device, leaves it out. It tries the methods of {@link MixtureKl}, the entropies of {@link Mixtures}, and {@link MixtureReduction}
   * likewise.
   *
   * @param time about how long to take, more than 0; in ten seconds on a machine with nothing else to do most kernels get compiled.
   *     {@link Verification.Operation#allocatedBytes} tells of those that were not, and {@link #isReady} whether vectors have taken over, for
   *     which it waits for half of the time at most. Each operation is tried with each kind of batches whatever the time, which takes some
   *     seconds; {@code toString} of what is returned says with how many shapes of them
   * @return the findings for each operation
   */
  public Verification verify(Duration time) {
    engine.checkOpen();
    if (!Objects.requireNonNull(time, "time").isPositive()) {
      throw new IllegalArgumentException("time must be positive, is " + time);
    }
    long nanos = TimeUnit.NANOSECONDS.convert(time);
    return new Verification(Verify.run(engine, nanos));
  }

  /** {@return what the calls of this engine have done since it was built; a closed engine tells it, too} */
  public EngineStats stats() {
    return new EngineStats(
        engine.calls().count(), engine.coldCalls(), engine.entries(), engine.calls().time());
  }

  /** {@return the divergence that it computes} */
  public Divergence divergence() {
    return divergence;
  }

  /** {@return the backend that runs, never {@link Backend#AUTO}} */
  public Backend backend() {
    return Backend.of(engine.backend());
  }

  /** {@return how many threads share the work of a call, the caller included} */
  public int threads() {
    return engine.threads();
  }

  /**
   * {@return a line for people that says which backend runs, with how many threads, and why the vector backend cannot, if so}
   *
   * <p>The first call may take as long as that of {@link Backend#reason()}.
   */
  @Override
  public String toString() {
    return engine.describe();
  }

  /**
   * Ends the engine's own threads and releases what it holds on a CUDA device, which an engine that is not closed
   * keeps. Calls under way finish. Closing an engine again has no effect.
   */
  @Override
  public void close() {
    engine.close();
  }

  private double[] statistic(
      RowStatistic.Kind kind,
      Gaussians q,
      Gaussians p,
      double @Nullable [] logWeights,
      double[] out) {
    check(q, p);
    Arguments.checkOut(q.size(), out);
    engine.begin().statistic(kind, batch(q), batch(p), logWeights, out);
    return out;
  }

  private void check(Gaussians q, Gaussians p) {
    engine.checkOpen();
    Arguments.check(formula, batch(q, "q"), batch(p, "p"), false);
  }

  private void checkStandard(Gaussians q) {
    engine.checkOpen();
    Arguments.checkStandard(formula, batch(q, "q"));
  }

  private void checkAligned(Gaussians q, Gaussians p) {
    engine.checkOpen();
    Arguments.checkAligned(formula, batch(q, "q"), batch(p, "p"));
  }

  private void checkPairs(Gaussians q, int[] rows, Gaussians p, int[] columns) {
    engine.checkOpen();
    Arguments.checkPairs(formula, batch(q, "q"), rows, batch(p, "p"), columns);
  }

  private int arrayLength(Gaussians q, Gaussians p) {
    engine.checkOpen();
    return Arguments.arrayLength(formula, batch(q, "q"), batch(p, "p"));
  }

  private SearchOptions check(Gaussians q, Gaussians p, Query query) {
    SearchOptions options = Objects.requireNonNull(query, "query").options;
    engine.checkOpen();
    query.checkEngine(batch(q, "q").arePoints());
    Arguments.checkSearch(engine(q, query).formula(), batch(q, "q"), batch(p, "p"), options);
    return options;
  }

  /** The engine of a search: of points, what they are ranked by. */
  private Engine engine(Gaussians q, Query query) {
    boolean isByDensity = query.options.byDensity();
    return isByDensity || batch(q, "q").arePoints()
        ? engine.ofPoints(isByDensity ? Density.EXCESS : Density.MAHALANOBIS)
        : engine;
  }

  private int pointsLength(Gaussians points, Gaussians p) {
    engine.checkOpen();
    return Arguments.arrayLength(Density.LOG_DENSITY, batch(points, "points"), batch(p, "p"));
  }

  private void checkPoints(Gaussians points, Gaussians p) {
    engine.checkOpen();
    Arguments.check(Density.LOG_DENSITY, batch(points, "points"), batch(p, "p"), false);
  }

  private static int length(Gaussians points, Mixtures mixtures) {
    long n = (long) rows(points) * Objects.requireNonNull(mixtures, "mixtures").size();
    if (n > Batch.MOST_ELEMENTS) {
      throw new IllegalArgumentException(
          "%d x %d log-likelihoods do not fit an array; split the points"
              .formatted(points.size(), mixtures.size()));
    }
    return (int) n;
  }

  private SearchOptions checkEvery(
      Gaussians q, Gaussians p, Query query, int[] indices, int values) {
    SearchOptions options = check(q, p, query);
    Arguments.checkEntries(batch(q), options);
    int length = q.size() * options.k();
    Arguments.checkLength("indices", length, Objects.requireNonNull(indices, "indices").length);
    Arguments.checkLength("values", length, values);
    return options;
  }

  private static int rows(Gaussians q) {
    return batch(q, "q").size();
  }

  static Batch batch(Gaussians batch, String name) {
    return batch(Objects.requireNonNull(batch, name));
  }

  static Batch batch(Gaussians batch) {
    return switch (batch) {
      case DiagonalGaussians d -> d.batch;
      case FullGaussians f -> f.batch;
      case LowRankGaussians g -> g.batch;
    };
  }
}
