package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.cuda.CudaDevice;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.kernel.Readiness.KernelGroup;
import dev.kullback.internal.kernel.Results;
import dev.kullback.internal.observe.CallEvent;
import dev.kullback.internal.rows.BandState;
import dev.kullback.internal.rows.NearestRows;
import dev.kullback.internal.rows.NeighborLists;
import dev.kullback.internal.rows.Responsibilities;
import dev.kullback.internal.rows.RowReduction;
import dev.kullback.internal.rows.RowStatistic;
import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.internal.rows.WithinRows;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Job;
import dev.kullback.internal.work.Worker;
import java.util.function.IntConsumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Kernels, targets and working memory of one thread in a call, which it leads or helps with; pooled, so that warm calls allocate nothing.
 * {@link Engine} takes one for a call, which gives it back.
 */
public final class Workspace extends Worker {
  /** Log-densities that a thread keeps of some rows, 2 MiB, or of eight rows that are longer. */
  private static final int MOST_OF_ROWS = 1 << 18;

  /** Destination of the results of the call that it leads, and its reductions. */
  final Results results = new Results();

  private final NearestRows nearest = new NearestRows();
  final RowStatistic statistic = new RowStatistic();

  private final Pair pair;
  final BlockTarget target = new BlockTarget();
  final Kernels kernels;
  final BandState band;

  /** Of the call that it leads; null if that is not recorded. */
  @Nullable CallEvent event;

  /** Whether the call that it leads has done its work. */
  boolean succeeded;

  private final Engine engine;
  private final @Nullable CudaDevice device;
  private final MatrixRunner matrix = new MatrixRunner(this);
  private final ReductionRunner rows;
  private @Nullable BlockTarget transposed;
  private @Nullable GradientRunner gradients;

  /** Made once, so that warm calls allocate nothing. */
  private final Runnable look = this::checkInterrupt;

  Workspace(Engine engine, @Nullable Predicate<KernelGroup> ready, @Nullable CudaDevice device) {
    this.engine = engine;
    this.device = device;
    pair = new Pair(engine.formula, this);
    kernels = new Kernels(engine.formula, ready, engine.user, device, this, pair);
    band = new BandState(kernels.scan(), pair.forward());
    rows = new ReductionRunner(engine.crew, this);
  }

  /** Returns memory for a block that is to be transposed, made when it is first needed. */
  BlockTarget transposed() {
    if (transposed == null) {
      transposed = new BlockTarget();
    }
    return transposed;
  }

  /** Computes {@code KL(q_i ‖ p_j)}, row-major. */
  public void pairwise(Batch q, Batch p) {
    try {
      matrix.run(q, p, engine.formula.isExchanged(false));
      succeeded = true;
    } catch (InternalError e) {
      throw results.failed(e);
    } finally {
      end("pairwise", q, p, (long) q.size() * p.size());
    }
  }

  /** Computes {@code KL(q_i ‖ p_i)}. */
  public void aligned(Batch q, Batch p) {
    try {
      int n = q.size();
      int step = Checkpoint.taskRows(Batch.terms(q, p), BlockKernel.ROW_PANEL);
      if (device != null && !q.isDeterministic() && q.getClass() == p.getClass()) {
        device.aligned(q, p, results.memory(), results.width());
      } else if (isAlone(Math.ceilDiv(n, step))) {
        kernels.pairs(q).aligned(q, p, 0, n, results);
      } else {
        share(n, step, (from, to, w) -> w.kernels.pairs(q).aligned(q, p, from, to, results));
      }
      results.settle();
      succeeded = true;
    } catch (InternalError e) {
      throw results.failed(e);
    } finally {
      end("aligned", q, p, q.size());
    }
  }

  /** Computes {@code KL(q_i ‖ N(0, I))}. */
  public void toStandardNormal(Batch q) {
    try {
      int n = q.size();
      int step = Checkpoint.taskRows(Pair.standardTerms(q), BlockKernel.ROW_PANEL);
      if (device != null && !q.isDeterministic()) {
        device.standard(q, results.memory(), results.width());
      } else if (isAlone(Math.ceilDiv(n, step))) {
        kernels.pairs(q).standard(q, 0, n, results);
      } else {
        share(n, step, (from, to, w) -> w.kernels.pairs(q).standard(q, from, to, results));
      }
      results.settle();
      succeeded = true;
    } catch (InternalError e) {
      throw results.failed(e);
    } finally {
      engine.end(this, "toStandardNormal", q.size(), 1, q.dimension(), q.size());
    }
  }

  /** Computes the gradient of a number made of divergences, whose p is null for N(0, I). */
  public void gradient(String operation, GradientCall call, Batch q, @Nullable Batch p) {
    int columns = p == null || call.of() == GradientCall.Of.PAIRS ? 1 : p.size();
    try {
      gradients().run(call, q, p);
      succeeded = true;
    } finally {
      engine.end(this, operation, q.size(), columns, q.dimension(), (long) q.size() * columns);
    }
  }

  /** Returns what computes gradients, or helps with it. */
  GradientRunner gradients() {
    if (gradients == null) {
      gradients = new GradientRunner(this);
    }
    return gradients;
  }

  /** Computes {@code KL(q_{i[r]} ‖ p_{j[r]})}, on the host whatever the backend. */
  public void pairs(Batch q, int[] i, Batch p, int[] j) {
    try {
      int n = i.length;
      int step = Checkpoint.taskRows(Batch.terms(q, p), BlockKernel.ROW_PANEL);
      if (isAlone(Math.ceilDiv(n, step))) {
        kernels.pairs.pairs(q, i, p, j, 0, n, results);
      } else {
        share(n, step, (from, to, w) -> w.kernels.pairs.pairs(q, i, p, j, from, to, results));
      }
      succeeded = true;
    } finally {
      end("pairs", q, p, i.length);
    }
  }

  /** Finds the k nearest columns of each row, which must have as many: row i's go to {@code i*k …} of the indices and the results. */
  public void nearest(Batch q, Batch p, SearchOptions options, int[] indices) {
    try {
      limit(options.timeout(), options.end());
      nearest.set(q, p, options, engine.formula.shift(p), look);
      int least = options.k();
      for (int i = 0; i < q.size(); i++) {
        least = Math.min(least, nearest.count(i));
      }
      Arguments.checkEvery(options, least, p.size());
      nearest.into(NearestRows.EVEN, indices, results);
      compute(q, p, options.reverse(), nearest);
      succeeded = true;
    } finally {
      end("search", q, p, (long) q.size() * p.size());
    }
  }

  /** Finds columns of each row, as many as there are. */
  NeighborLists search(Batch q, Batch p, SearchOptions options) {
    try {
      limit(options.timeout(), options.end());
      NeighborLists found = options.isWithin() ? within(q, p, options) : nearest(q, p, options);
      succeeded = true;
      return found;
    } finally {
      end("search", q, p, (long) q.size() * p.size());
    }
  }

  private NeighborLists nearest(Batch q, Batch p, SearchOptions options) {
    nearest.set(q, p, options, engine.formula.shift(p), look);
    long length = 0;
    for (int i = 0; i < q.size(); i++) {
      length += nearest.count(i);
    }
    options.checkPairs(length);
    NeighborLists found = NeighborLists.ofCounts(q.size(), nearest::count);
    results.set(found.values());
    nearest.into(found.start(), found.indices(), results);
    compute(q, p, options.reverse(), nearest);
    return found;
  }

  private NeighborLists within(Batch q, Batch p, SearchOptions options) {
    WithinRows rows = new WithinRows();
    rows.set(q, p, options, engine.formula.shift(p), look);
    compute(q, p, options.reverse(), rows);
    return rows.result();
  }

  /** Computes one number of each row. */
  public void statistic(
      RowStatistic.Kind kind, Batch q, Batch p, double @Nullable [] logWeights, double[] out) {
    statistic.set(kind, p.size(), logWeights, out);
    reduce(logWeights == null ? kind.operation() : "weightedLogSumExp", q, p, statistic);
  }

  /** Computes {@code ln Σ_j exp(w_j − KL(q_i ‖ p_j))} of each row and the columns j of each mixture, from {@code offsets[m]} on. */
  public void logLikelihood(Batch q, Batch p, double[] logWeights, int[] offsets, double[] out) {
    statistic.set(RowStatistic.Kind.LOG_SUM_EXP, offsets, logWeights, out);
    reduce("logLikelihood", q, p, statistic);
  }

  /** Computes rows of log-densities, in double whatever the results are, and makes of each what each component of a mixture has of it. */
  public void responsibilities(Batch q, Batch p, double[] weights, int[] offsets) {
    try {
      KernelTable row = kernels.choose(q, p);
      Operands<?> operands = kernels.pack(row, q, p);
      int n = q.size();
      int rows = Math.clamp(MOST_OF_ROWS / p.size(), BlockKernel.ROW_PANEL, BlockKernel.MOST_ROWS);
      int step = rows - rows % BlockKernel.ROW_PANEL;
      if (isAlone(Math.ceilDiv(n, step))) {
        for (int i = 0; i < n; i += step) {
          normalize(row, operands, i, Math.min(n, i + step), weights, offsets, results);
        }
      } else {
        share(
            n,
            step,
            (from, to, w) -> w.normalize(row, operands, from, to, weights, offsets, results));
      }
      results.settle();
      succeeded = true;
    } catch (InternalError e) {
      throw results.failed(e);
    } finally {
      end("responsibilities", q, p, (long) q.size() * p.size());
    }
  }

  private void normalize(
      KernelTable row,
      Operands<?> operands,
      int from,
      int to,
      double[] weights,
      int[] offsets,
      Results out) {
    int m = weights.length;
    double[] rows = rows(row, operands, from, to, m);
    for (int i = from; i < to; i++) {
      pass(Checkpoint.ofPlain(m));
      Responsibilities.normalize(rows, (i - from) * m, weights, offsets);
      out.write((long) i * m, m, rows, (i - from) * m);
    }
  }

  /** Computes rows [from, to) of a matrix of m columns, and returns them from index 0 on. */
  double[] rows(KernelTable row, Operands<?> operands, int from, int to, int m) {
    target.useBlock(true, Math.multiplyExact(to - from, m), from, 0, m);
    for (int column = 0; column < m; column += RowReduction.BLOCK_COLUMNS) {
      checkInterrupt();
      int end = Math.min(m - column, RowReduction.BLOCK_COLUMNS) + column;
      kernels.of(row).block(operands, from, to, column, end, target);
    }
    return target.block();
  }

  /** Reduces {@code KL(q_i ‖ p_j)}. */
  void reduce(String operation, Batch q, Batch p, RowReduction reduction) {
    try {
      compute(q, p, false, reduction);
      succeeded = true;
    } finally {
      end(operation, q, p, (long) q.size() * p.size());
    }
  }

  private void end(String operation, Batch q, Batch p, long entries) {
    engine.end(this, operation, q.size(), p.size(), q.dimension(), entries);
  }

  private void compute(Batch q, Batch p, boolean reverse, RowReduction reduction) {
    kernels.beginScans(p.dimension());
    rows.reduce(q, p, engine.formula.isExchanged(reverse), reduction);
  }

  /** Computes results [from, to) of a call on a thread of it. */
  private interface Range {
    void compute(int from, int to, Workspace w);
  }

  private void share(int n, int step, Range range) {
    engine.crew.share(
        Math.ceilDiv(n, step),
        this,
        (index, w) -> {
          int from = (int) index * step;
          range.compute(from, Math.min(n - from, step) + from, w);
          results.settle();
        });
  }

  /** Does tasks that store results, with the helpers that may. */
  void share(long tasks, Job.Task<Workspace> task) {
    if (isAlone(tasks)) {
      Job.alone(tasks, this, task);
    } else {
      engine.crew.share(tasks, this, task);
    }
  }

  private boolean isAlone(long tasks) {
    return engine.crew.isAlone(tasks) || !results.isShared();
  }

  @Override
  public void share(int tasks, IntConsumer task) {
    if (engine.crew.isAlone(tasks)) {
      super.share(tasks, task); // allocates nothing
      return;
    }
    engine.crew.share(
        tasks,
        this,
        (index, w) -> {
          w.checkInterrupt(); // a task may take long: a panel of large matrices
          w.pass(Checkpoint.LOOK);
          task.accept((int) index);
        });
  }

  /** Drops the caller's arrays and batches before it goes back to the pool. */
  void clear() {
    kernels.clear();
    pair.clear();
    target.clear();
    results.clear();
    nearest.clear();
    statistic.clear();
    rows.clear();
    if (gradients != null) {
      gradients.clear();
    }
    band.trim();
    event = null;
    succeeded = false;
    reset();
  }
}
