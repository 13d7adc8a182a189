package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.cuda.CudaDevice;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.kernel.Results;
import dev.kullback.internal.plain.Pair;
import dev.kullback.internal.plain.Sampler;
import dev.kullback.internal.rows.NearestQuery;
import dev.kullback.internal.rows.NearestRows;
import dev.kullback.internal.rows.NeighborLists;
import dev.kullback.internal.rows.RowReduction;
import dev.kullback.internal.rows.RowStatistic;
import dev.kullback.internal.rows.TileStream;
import dev.kullback.internal.rows.WithinRows;
import dev.kullback.internal.vector.Readiness;
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
 * Computes calls on batches that were checked: a call takes a {@link Workspace} from the pool, has its kernels compute blocks, and gives it back.
 * Safe for use by any number of threads.
 */
public final class Engine implements Job.Workers<Workspace>, AutoCloseable {
  /**
   * A block is the unit of work: its rows' panels stay in the L2 cache while the columns' panels stream past, and there are
   * enough blocks to keep several threads evenly busy. Multiples of every panel's width.
   */
  private static final int BLOCK_ROWS = BlockKernel.MOST_ROWS;

  private static final int BLOCK_COLUMNS = 2048;

  /** Dimension from which on blocks are made lower, to hold a block's rows to 256 KiB. */
  private static final int TALL_DIMENSION = 512;

  private final Platform.Choice backend;
  private final @Nullable CudaDevice device;

  /** Tells which vectors are to be used; null for none. */
  private final @Nullable Predicate<KernelGroup> ready;

  private final int threads;
  private final @Nullable Executor executor;
  private final @Nullable ExecutorService ownExecutor;
  private final AtomicReferenceArray<@Nullable Workspace> pool;
  private final ReductionRunner bands = new ReductionRunner(this);
  private volatile boolean closed;

  /**
   * An engine.
   *
   * @param executor where helpers run; null for threads of its own, if there are to be any
   * @param thrown makes what a failure of the device throws
   * @throws IllegalStateException if the backend cannot run
   */
  public Engine(
      Platform.Choice asked, int threads, @Nullable Executor executor, CudaDevice.Thrown thrown) {
    this(asked, threads, executor, thrown, null);
  }

  /** An engine that uses the vectors that {@code ready} tells of, compiled or not; if null, the compiled ones. */
  public Engine(
      Platform.Choice asked,
      int threads,
      @Nullable Executor executor,
      CudaDevice.Thrown thrown,
      @Nullable Predicate<KernelGroup> ready) {
    backend = Platform.select(asked);
    device = backend == Platform.Choice.CUDA ? new CudaDevice(thrown) : null;
    boolean vectors =
        backend == Platform.Choice.VECTOR || (device != null && Platform.mayHaveVectors());
    // Readiness is named here alone, so that the scalar backend loads no class of vector kernels
    this.ready = !vectors ? null : ready != null ? ready : Readiness::isCompiled;
    this.threads = threads;
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

  /** Takes a workspace for a call of this thread; the methods below that are passed it give it back. */
  private Workspace begin() {
    Workspace workspace = take();
    workspace.startCall();
    return workspace;
  }

  private Workspace begin(float[] out) {
    Workspace workspace = begin();
    workspace.results.set(out);
    return workspace;
  }

  private Workspace begin(double[] out) {
    Workspace workspace = begin();
    workspace.results.set(out);
    return workspace;
  }

  private Workspace begin(MemorySegment out, boolean wide) {
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

  int threads() {
    return threads;
  }

  /** Tells whether a call of so many parts is its caller's alone. */
  boolean isAlone(long parts) {
    return executor == null || threads == 1 || parts == 1;
  }

  void share(Job<Workspace> job) {
    job.run(Objects.requireNonNull(executor), threads);
  }

  // --- the matrix, and its diagonal

  /** Computes {@code KL(q_i ‖ p_j)}, row-major. */
  public void pairwise(Batch q, Batch p, float[] out) {
    pairwise(q, p, begin(out));
  }

  public void pairwise(Batch q, Batch p, double[] out) {
    pairwise(q, p, begin(out));
  }

  public void pairwise(Batch q, Batch p, MemorySegment out, boolean wide) {
    pairwise(q, p, begin(out, wide));
  }

  private void pairwise(Batch q, Batch p, Workspace w) {
    try {
      Results out = w.results;
      Operands<?> operands = w.kernels.prepare(q, p);
      if (w.kernels.of(operands).matrix(operands, out)) {
        return;
      }
      long blocks =
          (long) Math.ceilDiv(q.size(), blockRows(q.dimension()))
              * Math.ceilDiv(p.size(), BLOCK_COLUMNS);
      if (isAlone(blocks) || !out.isShared()) {
        for (long b = 0; b < blocks; b++) {
          block(operands, b, out, w);
        }
      } else {
        share(new Job<>(this, blocks, w, (b, own) -> block(operands, b, out, own)));
      }
    } finally {
      giveBack(w);
    }
  }

  private static void block(Operands<?> operands, long index, Results out, Workspace w) {
    w.checkInterrupt();
    int n = operands.q().size();
    int m = operands.p().size();
    int height = blockRows(operands.q().dimension());
    int across = Math.ceilDiv(m, BLOCK_COLUMNS);
    int row0 = (int) (index / across) * height;
    int column0 = (int) (index % across) * BLOCK_COLUMNS;
    int row1 = Math.min(row0 + height, n);
    int column1 = Math.min(column0 + BLOCK_COLUMNS, m);
    out.open(w.target, row0, column0, m, BLOCK_ROWS, BLOCK_COLUMNS);
    w.kernels.of(operands).block(operands, row0, row1, column0, column1, w.target);
    out.close(w.target, row0, row1, column0, column1, m);
  }

  /** Rows of a block. */
  static int blockRows(int dimension) {
    int rows = (int) Math.min(BLOCK_ROWS, (long) BLOCK_ROWS * TALL_DIMENSION / dimension);
    return Math.max(Batch.WIDEST_PANEL, rows / Batch.WIDEST_PANEL * Batch.WIDEST_PANEL);
  }

  /** Computes {@code KL(q_i ‖ p_i)}. */
  public void aligned(Batch q, Batch p, float[] out) {
    aligned(q, p, begin(out));
  }

  public void aligned(Batch q, Batch p, double[] out) {
    aligned(q, p, begin(out));
  }

  public void aligned(Batch q, Batch p, MemorySegment out, boolean wide) {
    aligned(q, p, begin(out, wide));
  }

  private void aligned(Batch q, Batch p, Workspace w) {
    try {
      Results out = w.results;
      if (device != null && !q.isDeterministic() && q.getClass() == p.getClass()) {
        device.aligned(q, p, out.memory(), out.width());
        return;
      }
      int rows = Checkpoint.taskRows(Batch.terms(q, p), BlockKernel.ROW_PANEL);
      int n = q.size();
      int parts = Math.ceilDiv(n, rows);
      if (isAlone(parts) || !out.isShared()) {
        w.kernels.pairs(q).aligned(q, p, 0, n, out);
      } else {
        share(
            new Job<>(
                this,
                parts,
                w,
                (k, own) -> {
                  int from = (int) k * rows;
                  own.kernels.pairs(q).aligned(q, p, from, Math.min(from + rows, n), out);
                }));
      }
    } finally {
      giveBack(w);
    }
  }

  /** Computes {@code KL(q_i ‖ N(0, I))}. */
  public void toStandardNormal(Batch q, float[] out) {
    toStandardNormal(q, begin(out));
  }

  public void toStandardNormal(Batch q, double[] out) {
    toStandardNormal(q, begin(out));
  }

  public void toStandardNormal(Batch q, MemorySegment out, boolean wide) {
    toStandardNormal(q, begin(out, wide));
  }

  private void toStandardNormal(Batch q, Workspace w) {
    try {
      Results out = w.results;
      if (device != null && !q.isDeterministic()) {
        device.standard(q, out.memory(), out.width());
        return;
      }
      int rows = Checkpoint.taskRows(Pair.standardTerms(q), BlockKernel.ROW_PANEL);
      int n = q.size();
      int parts = Math.ceilDiv(n, rows);
      if (isAlone(parts) || !out.isShared()) {
        w.kernels.pairs(q).standard(q, 0, n, out);
      } else {
        share(
            new Job<>(
                this,
                parts,
                w,
                (k, own) -> {
                  int from = (int) k * rows;
                  own.kernels.pairs(q).standard(q, from, Math.min(from + rows, n), out);
                }));
      }
    } finally {
      giveBack(w);
    }
  }

  /** Computes {@code KL(q_{i[r]} ‖ p_{j[r]})}, on the host whatever the backend. */
  public void pairs(Batch q, int[] i, Batch p, int[] j, float[] out) {
    pairs(q, i, p, j, begin(out));
  }

  public void pairs(Batch q, int[] i, Batch p, int[] j, double[] out) {
    pairs(q, i, p, j, begin(out));
  }

  private void pairs(Batch q, int[] i, Batch p, int[] j, Workspace w) {
    try {
      Results out = w.results;
      int rows = Checkpoint.taskRows(Batch.terms(q, p), BlockKernel.ROW_PANEL);
      int n = i.length;
      int parts = Math.ceilDiv(n, rows);
      if (isAlone(parts)) {
        w.kernels.anyPairs().pairs(q, i, p, j, 0, n, out);
      } else {
        share(
            new Job<>(
                this,
                parts,
                w,
                (k, own) -> {
                  int from = (int) k * rows;
                  int to = (int) Math.min((long) from + rows, n);
                  own.kernels.anyPairs().pairs(q, i, p, j, from, to, out);
                }));
      }
    } finally {
      giveBack(w);
    }
  }

  // --- reductions of its rows

  /** Finds the k nearest columns of each row, which must have as many: row i's go to {@code i*k …} of both arrays. */
  public void nearest(Batch q, Batch p, int k, NearestQuery query, int[] indices, float[] values) {
    nearest(q, p, k, query, indices, begin(values));
  }

  public void nearest(Batch q, Batch p, int k, NearestQuery query, int[] indices, double[] values) {
    nearest(q, p, k, query, indices, begin(values));
  }

  private void nearest(Batch q, Batch p, int k, NearestQuery query, int[] indices, Workspace w) {
    w.nearest.set(q, p, k, query, NearestRows.EVEN, indices, w.results);
    reduce(q, p, w.nearest, w);
  }

  /** Finds the k nearest columns of each row, or all if they are fewer. The lists must fit an array. */
  public NeighborLists nearest(Batch q, Batch p, int k, NearestQuery query) {
    NeighborLists found = NeighborLists.ofCounts(q.size(), i -> query.count(i, p.size(), k));
    Workspace w = begin(found.values());
    w.nearest.set(q, p, k, query, found.start(), found.indices(), w.results);
    reduce(q, p, w.nearest, w);
    return found;
  }

  /** Finds the columns of each row within a radius; throws if there are more than {@code most}. */
  public NeighborLists within(Batch q, Batch p, boolean reverse, double radius, int most) {
    WithinRows rows = new WithinRows(q, p, reverse, radius, most);
    reduce(q, p, rows, begin());
    return rows.result();
  }

  /** Computes one number of each row. */
  public void statistic(
      RowStatistic.Kind kind, Batch q, Batch p, double @Nullable [] logWeights, double[] out) {
    Workspace w = begin();
    w.statistic.set(kind, p.size(), logWeights, out);
    reduce(q, p, w.statistic, w);
  }

  /** Hands over every block of the matrix, once, in no order. */
  public void forEachTile(Batch q, Batch p, TileStream.Consumer consumer) {
    reduce(q, p, new TileStream(consumer), begin());
  }

  private void reduce(Batch q, Batch p, RowReduction reduction, Workspace w) {
    try {
      if (ready != null) {
        BackgroundWarmUp.begin(KernelGroup.SCANS, p.dimension());
      }
      bands.reduce(q, p, reduction, w);
    } finally {
      giveBack(w);
    }
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
