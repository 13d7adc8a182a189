package dev.kullback.internal.index.search;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.engine.BackgroundWarmUp;
import dev.kullback.internal.engine.Kernels;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.index.store.Snapshot;
import dev.kullback.internal.rows.Ranking;
import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.internal.work.Crew;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * Searches of snapshots, by any number of threads at once. Results depend on the Gaussians, their ids and the options alone: values are
 * those of {@link dev.kullback.internal.formula.Pair#rounded}, ranked by themselves and then by id.
 */
public final class Searches implements AutoCloseable {
  private final Crew<Searcher> crew;

  /** The share in the thread that has vectors compiled; null for none. */
  private final BackgroundWarmUp.@Nullable User warmUp;

  private final LongAdder queries = new LongAdder();
  private final LongAdder decided = new LongAdder();
  private final LongAdder bytesRead = new LongAdder();

  /**
   * Searches among Gaussians of one dimension, in which a call has {@code threads} threads.
   *
   * @param executor where helpers run; null for threads of its own, if there are to be any
   */
  public Searches(int dimension, int threads, @Nullable Executor executor) {
    this(dimension, threads, executor, Platform.IS_DEFERRED);
  }

  /** The same, whether vectors are left to the thread in the background, or used from the first search on. */
  public Searches(int dimension, int threads, @Nullable Executor executor, boolean deferred) {
    warmUp = deferred ? BackgroundWarmUp.join() : null;
    crew =
        new Crew<>(
            "kullback-index",
            threads,
            executor,
            () -> new Searcher(dimension, deferred),
            this::end);
  }

  /** Ends its own threads; searches under way finish. */
  @Override
  public void close() {
    crew.close();
    if (warmUp != null) {
      warmUp.close();
    }
  }

  /** Queries that were answered. */
  public long queries() {
    return queries.sum();
  }

  /** References whose exact values were computed, as no bound excluded them: the survivors of {@code IndexStats}. */
  public long survivors() {
    return decided.sum();
  }

  /** Bytes of codes, panels and given values that were read at most: a panel can be left before its end. */
  public long bytesRead() {
    return bytesRead.sum();
  }

  /**
   * Finds the nearest of each query, or the references within its radius, as the options say.
   *
   * @param end when the search times out, if it does
   */
  public NeighborIds search(
      Snapshot snapshot, DiagonalBatch batch, SearchOptions options, long end) {
    if (batch.size() == 0) {
      return new NeighborIds(new long[0], new double[0], new int[1]);
    }
    SearchCall call = new SearchCall(snapshot, batch, options, crew.threads());
    Searcher lead = crew.take();
    try {
      lead.startCall();
      lead.limit(options.timeout(), end);
      crew.share(call.tasks(), lead, call);
    } finally {
      crew.giveBack(lead);
    }
    queries.add(batch.size());
    return call.found();
  }

  /**
   * Finds the nearest k of one query, given by σ, and returns how many there are. With one thread a warm call allocates nothing.
   *
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
      long[] ids,
      float[] kl) {
    Searcher lead = crew.take();
    try {
      lead.startCall();
      lead.startNearest(snapshot, k);
      lead.ask(mean, meanAt, std, stdAt);
      queries.increment();
      if (crew.threads() > 1) {
        SearchOptions options = SearchOptions.nearest(k);
        SearchCall call = new SearchCall(snapshot, lead.querySlot(), options, crew.threads());
        crew.share(call.tasks(), lead, call);
        return call.found().copy(ids, kl);
      }
      lead.scanAll();
      lead.decide(0);
      Ranking found = lead.ranking(0);
      for (int r = 0; r < found.count(); r++) {
        ids[r] = found.place(r);
        kl[r] = (float) found.value(r);
      }
      return found.count();
    } finally {
      crew.giveBack(lead);
    }
  }

  /** Counts what a searcher has done, and has it forget the call. */
  private void end(Searcher searcher) {
    Kernels.callEnded();
    decided.add(searcher.decided);
    bytesRead.add(searcher.bytesRead());
    searcher.clear();
  }
}
