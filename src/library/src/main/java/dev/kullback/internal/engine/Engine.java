package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.cuda.CudaDevice;
import dev.kullback.internal.cuda.HostBatch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.Results;
import dev.kullback.internal.plain.Pairs;
import dev.kullback.internal.plain.Sampler;
import dev.kullback.internal.plain.ScalarScan;
import dev.kullback.internal.rows.NearestQuery;
import dev.kullback.internal.rows.NearestRows;
import dev.kullback.internal.rows.NeighborLists;
import dev.kullback.internal.rows.RowReduction;
import dev.kullback.internal.rows.RowStatistic;
import dev.kullback.internal.rows.TileStream;
import dev.kullback.internal.rows.WithinRows;
import dev.kullback.internal.vector.Readiness;
import dev.kullback.internal.vector.ReadyScan;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Job;
import java.util.Locale;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * Calls on batches that were checked: a call takes a {@link Workspace} from the pool, has its kernels compute blocks, and gives it back.
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

  /**
   * What a part of {@link #aligned} counts at a {@link Checkpoint}: 0.3 ms, or 30 µs in lanes (Zen 3, AVX2), where a helper begins in 10.
   */
  private static final long PART_TERMS = 1 << 22;

  /** In which sums add up without vectors. */
  private static final int LANES = 4;

  private final Platform.Choice backend;
  private final @Nullable CudaDevice device;
  private final boolean vectors;
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
    backend = Platform.select(asked);
    device = backend == Platform.Choice.CUDA ? new CudaDevice(thrown) : null;
    vectors = backend == Platform.Choice.VECTOR || (device != null && Platform.mayHaveVectors());
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

  /** For one call of this thread: one of the methods below that take it, which also gives it back. */
  public Workspace begin() {
    Workspace workspace = take();
    workspace.begin();
    return workspace;
  }

  private Workspace take() {
    for (int i = 0; i < pool.length(); i++) {
      Workspace workspace = pool.getAndSet(i, null);
      if (workspace != null) {
        return workspace;
      }
    }
    return new Workspace(this, vectors, device, vectors ? new ReadyScan() : new ScalarScan(LANES));
  }

  private void end(Workspace workspace) {
    workspace.clear();
    for (int i = 0; i < pool.length(); i++) {
      if (pool.compareAndSet(i, null, workspace)) {
        return;
      }
    }
  }

  @Override
  public Workspace join(Workspace lead) {
    Workspace own = take();
    own.kernels.join(lead.kernels);
    return own;
  }

  @Override
  public void leave(Workspace own) {
    end(own);
  }

  int threads() {
    return threads;
  }

  /** Whether a call of so many parts is its caller's alone. */
  boolean isAlone(long parts) {
    return executor == null || threads == 1 || parts == 1;
  }

  void share(Job<Workspace> job) {
    job.run(Objects.requireNonNull(executor), threads);
  }

  // --- the matrix, and its diagonal

  /** {@code KL(q_i ‖ p_j)} to the workspace's output, row-major. */
  public void pairwise(Batch q, Batch p, Workspace w) {
    try {
      Results out = w.output;
      BlockKernel<?> kernel = w.kernels.begin(q, p);
      if (kernel.matrix(out)) {
        return;
      }
      long blocks =
          (long) Math.ceilDiv(q.size(), blockRows(q.dimension()))
              * Math.ceilDiv(p.size(), BLOCK_COLUMNS);
      if (isAlone(blocks) || !out.isShared()) {
        for (long b = 0; b < blocks; b++) {
          block(b, out, w);
        }
      } else {
        share(new Job<>(this, blocks, w, (b, own) -> block(b, out, own)));
      }
    } finally {
      end(w);
    }
  }

  private static void block(long index, Results out, Workspace w) {
    w.checkInterrupt();
    BlockKernel<?> kernel = w.kernels.chosen();
    int n = kernel.q().size();
    int m = kernel.p().size();
    int height = blockRows(kernel.q().dimension());
    int across = Math.ceilDiv(m, BLOCK_COLUMNS);
    int row0 = (int) (index / across) * height;
    int column0 = (int) (index % across) * BLOCK_COLUMNS;
    int row1 = Math.min(row0 + height, n);
    int column1 = Math.min(column0 + BLOCK_COLUMNS, m);
    out.open(w.window, row0, column0, m, BLOCK_ROWS, BLOCK_COLUMNS);
    kernel.block(row0, row1, column0, column1, w.window);
    out.close(w.window, row0, row1, column0, column1, m);
  }

  /** Rows of a block. */
  static int blockRows(int dimension) {
    int rows = (int) Math.min(BLOCK_ROWS, (long) BLOCK_ROWS * TALL_DIMENSION / dimension);
    return Math.max(Batch.WIDEST_PANEL, rows / Batch.WIDEST_PANEL * Batch.WIDEST_PANEL);
  }

  /** {@code KL(q_i ‖ p_i)} to the workspace's output. */
  public void aligned(Batch q, Batch p, Workspace w) {
    try {
      Results out = w.output;
      if (device != null && !q.isDeterministic() && q.getClass() == p.getClass()) {
        device.aligned(HostBatch.of(q), HostBatch.of(p), out.memory(), out.width());
        return;
      }
      int rows = partRows(Batch.terms(q, p));
      int n = q.size();
      int parts = Math.ceilDiv(n, rows);
      if (isAlone(parts) || !out.isShared()) {
        w.kernels.aligned(q).aligned(q, p, 0, n, out);
      } else {
        share(
            new Job<>(
                this,
                parts,
                w,
                (k, own) -> {
                  int from = (int) k * rows;
                  own.kernels.aligned(q).aligned(q, p, from, Math.min(from + rows, n), out);
                }));
      }
    } finally {
      end(w);
    }
  }

  /** {@code KL(q_i ‖ N(0, I))} to the workspace's output. */
  public void toStandardNormal(Batch q, Workspace w) {
    try {
      Results out = w.output;
      if (device != null && !q.isDeterministic()) {
        device.standard(HostBatch.of(q), out.memory(), out.width());
        return;
      }
      int rows = partRows(Pairs.standardTerms(q));
      int n = q.size();
      int parts = Math.ceilDiv(n, rows);
      if (isAlone(parts) || !out.isShared()) {
        w.kernels.aligned(q).standard(q, 0, n, out);
      } else {
        share(
            new Job<>(
                this,
                parts,
                w,
                (k, own) -> {
                  int from = (int) k * rows;
                  own.kernels.aligned(q).standard(q, from, Math.min(from + rows, n), out);
                }));
      }
    } finally {
      end(w);
    }
  }

  /** {@code KL(q_{i[r]} ‖ p_{j[r]})} to the workspace's output, on the host whatever the backend. */
  public void pairs(Batch q, int[] i, Batch p, int[] j, Workspace w) {
    try {
      Results out = w.output;
      int rows = partRows(Batch.terms(q, p));
      int n = i.length;
      int parts = Math.ceilDiv(n, rows);
      if (isAlone(parts)) {
        w.kernels.pairs().pairs(q, i, p, j, 0, n, out);
      } else {
        share(
            new Job<>(
                this,
                parts,
                w,
                (k, own) -> {
                  int from = (int) k * rows;
                  int to = (int) Math.min((long) from + rows, n);
                  own.kernels.pairs().pairs(q, i, p, j, from, to, out);
                }));
      }
    } finally {
      end(w);
    }
  }

  /** Gaussians of a part of {@link #aligned} and {@link #toStandardNormal}. */
  private static int partRows(long terms) {
    int rows = (int) Math.min(Integer.MAX_VALUE / 2, Math.ceilDiv(PART_TERMS, terms));
    return Math.ceilDiv(rows, BlockKernel.ROW_PANEL) * BlockKernel.ROW_PANEL;
  }

  // --- reductions of its rows

  /** Finds the k nearest columns of each row, which must have as many: row i's go to {@code i*k …} of both arrays. */
  public void nearest(Batch q, Batch p, int k, NearestQuery query, int[] indices, Workspace w) {
    w.nearest.set(q, p, k, query, NearestRows.EVEN, indices, w.output);
    reduce(q, p, w.nearest, w);
  }

  /** Finds the k nearest columns of each row, or all if they are fewer. The lists must fit an array. */
  public NeighborLists nearest(Batch q, Batch p, int k, NearestQuery query) {
    int[] start = new int[q.size() + 1];
    for (int i = 0; i < q.size(); i++) {
      start[i + 1] = start[i] + query.count(i, p.size(), k);
    }
    NeighborLists found = NeighborLists.ofStart(start);
    Workspace w = begin().to(found.values());
    w.nearest.set(q, p, k, query, start, found.indices(), w.output);
    reduce(q, p, w.nearest, w);
    return found;
  }

  /** The columns of each row within a radius; throws if there are more than {@code most}. */
  public NeighborLists within(Batch q, Batch p, boolean reverse, double radius, int most) {
    WithinRows rows = new WithinRows(q, p, reverse, radius, most);
    reduce(q, p, rows, begin());
    return rows.result();
  }

  /** One number of each row. */
  public void statistic(
      RowStatistic.Kind kind, Batch q, Batch p, double @Nullable [] logWeights, double[] out) {
    Workspace w = begin();
    w.statistic.set(kind, p.size(), logWeights, out);
    reduce(q, p, w.statistic, w);
  }

  /** Every block of the matrix, once, in no order. */
  public void forEachTile(Batch q, Batch p, TileStream.Consumer consumer) {
    reduce(q, p, new TileStream(consumer), begin());
  }

  private void reduce(Batch q, Batch p, RowReduction reduction, Workspace w) {
    try {
      if (vectors) {
        BackgroundWarmUp.begin(Readiness.KernelGroup.SCANS, p.dimension());
      }
      bands.reduce(q, p, reduction, w);
    } finally {
      end(w);
    }
  }

  /** {@code KL(q_i ‖ p_i)} from samples of q_i, and standard errors; pair i draws from the i-th split of the seed's generator. */
  public static void monteCarlo(
      Batch q, Batch p, int samples, long seed, double[] estimates, double[] errors) {
    if (q.isDeterministic()) {
      return; // 0
    }
    SplittableRandom random = new SplittableRandom(seed);
    Sampler sampler = new Sampler(q, p);
    for (int i = 0; i < estimates.length; i++) {
      Checkpoint.checkInterrupt(Thread.currentThread());
      sampler.sample(i, samples, random.split());
      estimates[i] = sampler.mean();
      errors[i] = sampler.standardError();
    }
  }

  // --- before the first request

  /** Until all calls use vectors, if they are to. */
  public void awaitVectors(int dimension) {
    if (vectors) {
      BackgroundWarmUp.awaitAll(dimension);
    }
  }

  /** Calls with made-up batches of this shape until the VM has compiled what they run. */
  public void warmUp(int n, int m, int dimension) {
    if (vectors) {
      BackgroundWarmUp.await(dimension);
    }
    WarmUp.run(this, n, m, dimension);
  }

  /** The same with the caller's batches, after making all that calls need of them. */
  public void warmUp(Batch q, Batch p) {
    if (vectors) {
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
