package dev.kullback.internal.index;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.engine.IndexKernels;
import dev.kullback.internal.work.Job;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * Searches of snapshots, by any number of threads at once. Results depend on the Gaussians, their ids and the options alone: values are
 * those of {@link dev.kullback.internal.plain.Pair#rounded}, ranked by themselves and then by id.
 */
public final class Searches implements Job.Workers<Searcher>, AutoCloseable {
  private final int dimension;
  private final int threads;
  private final @Nullable Executor executor;
  private final @Nullable ExecutorService ownExecutor;
  private final AtomicReferenceArray<@Nullable Searcher> pool;
  private final LongAdder queries = new LongAdder();
  private final LongAdder survivors = new LongAdder();
  private final LongAdder bytesRead = new LongAdder();

  /**
   * Searches among Gaussians of one dimension, in which a call has so many threads.
   *
   * @param executor where helpers run; null for threads of its own, if there are to be any
   */
  public Searches(int dimension, int threads, @Nullable Executor executor) {
    this.dimension = dimension;
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
                .name("kullback-index-" + count.incrementAndGet())
                .unstarted(task));
  }

  /** Ends its own threads; searches under way finish. */
  @Override
  public void close() {
    if (ownExecutor != null) {
      ownExecutor.shutdown();
    }
  }

  /** Queries that were answered. */
  public long queries() {
    return queries.sum();
  }

  /** References whose exact values were computed. */
  public long survivors() {
    return survivors.sum();
  }

  /** Bytes of panels that were read at most: a panel can be left before its end. */
  public long bytesRead() {
    return bytesRead.sum();
  }

  /** Finds the nearest of each query. */
  public Found nearest(Snapshot snapshot, DiagonalBatch batch, SearchOptions options) {
    return search(snapshot, batch, options);
  }

  /** Finds the references within the radius of each query. */
  public Found within(Snapshot snapshot, DiagonalBatch batch, SearchOptions options) {
    return search(snapshot, batch, options);
  }

  /**
   * Finds the nearest k of one query, given by σ, and returns how many there are. With one thread a warm call allocates nothing.
   *
   * @param options k apart
   * @throws dev.kullback.InvalidGaussianException as for a batch of one row
   */
  @SuppressWarnings("TooManyParameters") // arrays with where they begin
  public int query(
      Snapshot snapshot,
      float[] mean,
      int meanAt,
      float[] std,
      int stdAt,
      int k,
      SearchOptions options,
      long[] ids,
      float[] kl) {
    Searcher lead = take();
    try {
      lead.startCall();
      lead.start(snapshot, options, k);
      lead.ask(mean, meanAt, std, stdAt);
      queries.increment();
      if (executor != null && threads > 1) {
        SearchCall call = new SearchCall(snapshot, lead.querySlot(), k, options, threads);
        run(call, lead);
        return call.copy(ids, kl);
      }
      lead.scanAll();
      lead.rank(0);
      return lead.survivors(0).copy(ids, kl);
    } finally {
      giveBack(lead);
    }
  }

  private Found search(Snapshot snapshot, DiagonalBatch batch, SearchOptions options) {
    SearchCall call =
        new SearchCall(snapshot, batch, options.k(), options, executor == null ? 1 : threads);
    Searcher lead = take();
    try {
      lead.startCall();
      run(call, lead);
    } finally {
      giveBack(lead);
    }
    queries.add(batch.size());
    return call.found();
  }

  private void run(SearchCall call, Searcher lead) {
    if (executor == null || threads == 1 || call.tasks() == 1) {
      Job.alone(call.tasks(), lead, call);
    } else {
      new Job<>(this, call.tasks(), lead, call).run(executor, threads);
    }
  }

  @Override
  public Searcher take() {
    for (int i = 0; i < pool.length(); i++) {
      Searcher searcher = pool.getAndSet(i, null);
      if (searcher != null) {
        return searcher;
      }
    }
    return new Searcher(dimension);
  }

  @Override
  public void giveBack(Searcher searcher) {
    IndexKernels.callEnded();
    survivors.add(searcher.survived);
    bytesRead.add(searcher.bytesRead);
    searcher.clear();
    for (int i = 0; i < pool.length(); i++) {
      if (pool.compareAndSet(i, null, searcher)) {
        return;
      }
    }
  }
}
