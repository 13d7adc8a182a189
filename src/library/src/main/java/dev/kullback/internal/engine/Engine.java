package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.cuda.CudaDevice;
import dev.kullback.internal.plain.Sampler;
import dev.kullback.internal.rows.NearestQuery;
import dev.kullback.internal.rows.NeighborLists;
import dev.kullback.internal.rows.RowStatistic;
import dev.kullback.internal.rows.TileStream;
import dev.kullback.internal.rows.WithinRows;
import dev.kullback.internal.vector.Readiness.KernelGroup;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Job;
import java.lang.foreign.MemorySegment;
import java.util.Locale;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Computes calls on batches that were checked: a call takes a {@link Workspace} from the pool, has its kernels compute blocks, and gives
 * it back. Safe for use by any number of threads.
 */
public final class Engine implements Job.Workers<Workspace>, AutoCloseable {
  private final Platform.Choice backend;
  private final @Nullable CudaDevice device;

  /** Tells which vectors are to be used; null for none. */
  private final @Nullable Predicate<KernelGroup> ready;

  private final int threads;
  private final @Nullable Executor executor;
  private final @Nullable ExecutorService ownExecutor;
  private final AtomicReferenceArray<@Nullable Workspace> pool;
  private volatile boolean closed;

  /**
   * An engine.
   *
   * @param executor where helpers run; null for threads of its own, if there are to be any
   * @throws IllegalStateException if the backend cannot run
   */
  public Engine(Platform.Choice asked, int threads, @Nullable Executor executor) {
    this(asked, threads, executor, null);
  }

  /** An engine that uses the vectors that {@code ready} tells of, compiled or not; if null, the compiled ones. */
  public Engine(
      Platform.Choice asked,
      int threads,
      @Nullable Executor executor,
      @Nullable Predicate<KernelGroup> ready) {
    backend = Platform.select(asked);
    device = backend == Platform.Choice.CUDA ? new CudaDevice() : null;
    boolean vectors =
        backend == Platform.Choice.VECTOR || (device != null && Platform.mayHaveVectors());
    // a method reference at its use, so that the scalar backend loads no class of vector kernels
    this.ready = !vectors ? null : ready != null ? ready : KernelGroup::isCompiled;
    this.threads = threads;
    if (vectors) {
      BackgroundWarmUp.expect(threads);
    }
    ownExecutor = executor == null && threads > 1 ? helpers(threads - 1) : null;
    this.executor = executor != null ? executor : ownExecutor;
    pool =
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

  public void checkOpen() {
    if (closed) {
      throw new IllegalStateException("this KlEngine is closed");
    }
  }

  /** Ends its own threads and what it has on a device; calls under way finish. */
  @Override
  public void close() {
    closed = true;
    if (ownExecutor != null) {
      ownExecutor.shutdown();
    }
    if (device != null) {
      device.close();
    }
  }

  public String describe() {
    if (device != null) {
      return Platform.describe(Platform.Choice.CUDA);
    }
    String workers =
        threads == 1
            ? "the calling thread"
            : threads + " threads" + (ownExecutor == null ? ", helpers on an executor given" : "");
    return "%s on %s; %s"
        .formatted(
            backend.name().toLowerCase(Locale.ROOT),
            workers,
            Platform.describe(Platform.Choice.VECTOR));
  }

  // --- workspaces and threads

  /** Takes a workspace for a call of this thread, which gives it back. */
  private Workspace begin() {
    Workspace workspace = take();
    workspace.startCall();
    return workspace;
  }

  private Workspace into(float[] out) {
    Workspace workspace = begin();
    workspace.results.set(out);
    return workspace;
  }

  private Workspace into(double[] out) {
    Workspace workspace = begin();
    workspace.results.set(out);
    return workspace;
  }

  /** Takes one whose results go to a segment, as doubles or as floats. */
  private Workspace into(MemorySegment out, boolean wide) {
    Workspace workspace = begin();
    workspace.results.set(out, wide);
    return workspace;
  }

  @Override
  public Workspace take() {
    for (int i = 0; i < pool.length(); i++) {
      Workspace workspace = pool.getAndSet(i, null);
      if (workspace != null) {
        return workspace;
      }
    }
    return new Workspace(this, ready, device);
  }

  @Override
  public void giveBack(Workspace workspace) {
    workspace.clear();
    for (int i = 0; i < pool.length(); i++) {
      if (pool.compareAndSet(i, null, workspace)) {
        return;
      }
    }
  }

  /** Ends the call that a workspace leads. */
  void end(Workspace lead) {
    giveBack(lead);
    if (ready != null) {
      BackgroundWarmUp.callEnded();
    }
  }

  int threads() {
    return threads;
  }

  /** Tells whether a call of so many tasks is its caller's alone. */
  boolean isAlone(long tasks) {
    return executor == null || threads == 1 || tasks == 1;
  }

  /** Does the tasks 0 … n − 1 of the call that a workspace leads, with helpers if there are any. */
  void share(long tasks, Workspace lead, Job.Task<Workspace> task) {
    if (isAlone(tasks)) {
      Job.alone(tasks, lead, task);
    } else {
      new Job<>(this, tasks, lead, task).run(Objects.requireNonNull(executor), threads);
    }
  }

  // --- calls whose results go to arrays and segments

  /** Computes {@code KL(q_i ‖ p_j)}, row-major. */
  public void pairwise(Batch q, Batch p, float[] out) {
    into(out).pairwise(q, p);
  }

  public void pairwise(Batch q, Batch p, double[] out) {
    into(out).pairwise(q, p);
  }

  public void pairwise(Batch q, Batch p, MemorySegment out, boolean wide) {
    into(out, wide).pairwise(q, p);
  }

  /** Computes {@code KL(q_i ‖ p_i)}. */
  public void aligned(Batch q, Batch p, float[] out) {
    into(out).aligned(q, p);
  }

  public void aligned(Batch q, Batch p, double[] out) {
    into(out).aligned(q, p);
  }

  public void aligned(Batch q, Batch p, MemorySegment out, boolean wide) {
    into(out, wide).aligned(q, p);
  }

  /** Computes {@code KL(q_i ‖ N(0, I))}. */
  public void toStandardNormal(Batch q, float[] out) {
    into(out).toStandardNormal(q);
  }

  public void toStandardNormal(Batch q, double[] out) {
    into(out).toStandardNormal(q);
  }

  public void toStandardNormal(Batch q, MemorySegment out, boolean wide) {
    into(out, wide).toStandardNormal(q);
  }

  /** Computes {@code KL(q_{i[r]} ‖ p_{j[r]})}, on the host whatever the backend. */
  public void pairs(Batch q, int[] i, Batch p, int[] j, float[] out) {
    into(out).pairs(q, i, p, j);
  }

  public void pairs(Batch q, int[] i, Batch p, int[] j, double[] out) {
    into(out).pairs(q, i, p, j);
  }

  /** Finds the k nearest columns of each row, which must have as many: row i's go to {@code i*k …} of both arrays. */
  public void nearest(Batch q, Batch p, int k, NearestQuery query, int[] indices, float[] out) {
    into(out).nearest(q, p, k, query, indices);
  }

  public void nearest(Batch q, Batch p, int k, NearestQuery query, int[] indices, double[] out) {
    into(out).nearest(q, p, k, query, indices);
  }

  // --- reductions to results of their own

  /** Finds the k nearest columns of each row, or all if they are fewer. The lists must fit an array. */
  public NeighborLists nearest(Batch q, Batch p, int k, NearestQuery query) {
    NeighborLists found = NeighborLists.ofCounts(q.size(), i -> query.count(i, p.size(), k));
    into(found.values()).nearest(q, p, k, query, found);
    return found;
  }

  /** Finds the columns of each row within a radius; throws if there are more than {@code most}. */
  public NeighborLists within(Batch q, Batch p, boolean reverse, double radius, int most) {
    WithinRows rows = new WithinRows(q, p, reverse, radius, most);
    begin().reduce(q, p, rows);
    return rows.result();
  }

  /** Computes one number of each row. */
  public void statistic(
      RowStatistic.Kind kind, Batch q, Batch p, double @Nullable [] logWeights, double[] out) {
    begin().statistic(kind, q, p, logWeights, out);
  }

  /** Hands over every block of the matrix, once, in no order. */
  public void forEachTile(Batch q, Batch p, TileStream.Consumer consumer) {
    begin().reduce(q, p, new TileStream(consumer));
  }

  /** {@code KL(q_i ‖ p_i)} from samples of q_i, and standard errors; pair i draws from the i-th split of the seed's generator. */
  public static void monteCarlo(
      Batch q, Batch p, int samples, long seed, double[] estimates, double[] errors) {
    if (q.isDeterministic()) {
      return; // 0
    }
    SplittableRandom random = new SplittableRandom(seed);
    Sampler sampler = Sampler.of(q, p);
    for (int i = 0; i < estimates.length; i++) {
      Checkpoint.checkInterrupt(Thread.currentThread());
      sampler.sample(i, samples, random.split());
      estimates[i] = sampler.mean();
      errors[i] = sampler.standardError();
    }
  }

  // --- before the first request

  /** Waits until all calls use vectors, if they are to. */
  public void awaitVectors(int dimension) {
    if (ready != null) {
      BackgroundWarmUp.awaitAll(dimension);
    }
  }

  /** Calls with made-up batches of this shape until the VM has compiled what they run. */
  public void warmUp(int n, int m, int dimension) {
    if (ready != null) {
      BackgroundWarmUp.await(dimension);
    }
    WarmUp.run(this, n, m, dimension);
  }

  /** Makes all that calls need of the caller's batches, and calls with them until the VM has compiled what they run. */
  public void warmUp(Batch q, Batch p) {
    if (ready != null) {
      BackgroundWarmUp.await(q, p);
    }
    Platform.prepare(q);
    Platform.prepare(p);
    if (backend == Platform.Choice.VECTOR
        && q.getClass() != p.getClass()
        && q.isExpandable()
        && p.isExpandable()) {
      Platform.prepare(q.full());
      Platform.prepare(p.full());
    }
    if (q instanceof DiagonalBatch
        && p instanceof DiagonalBatch
        && !q.isDouble()
        && !p.isDouble()) {
      WarmUp.run(this, q.size(), p.size(), p.dimension());
    }
    WarmUp.run(this, q, p);
  }
}
