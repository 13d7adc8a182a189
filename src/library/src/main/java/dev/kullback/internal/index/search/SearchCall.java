package dev.kullback.internal.index.search;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.index.store.LiveSegment;
import dev.kullback.internal.index.store.Segment;
import dev.kullback.internal.index.store.Snapshot;
import dev.kullback.internal.rows.Ranking;
import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.internal.work.Job;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * A search for a batch of queries, in tasks: a group of queries goes through a chunk of all panels. The thread that does the last chunk of
 * a group decides between the candidates of all of them.
 */
final class SearchCall implements Job.Task<Searcher> {
  /** Terms of a chunk at least: 0.2 ms. */
  private static final long LEAST_TERMS = 1 << 20;

  private static final int TASKS_OF_THREAD = 4;

  private final Snapshot snapshot;
  private final DiagonalBatch queries;
  private final SearchOptions options;

  /** The ids that each query ranks; null for all. */
  private final long @Nullable [][] candidates;

  private final int groups;
  private final int chunks;
  private final long panels;
  private final Group[] shared;
  private final long[][] ids;
  private final double[][] values;
  private final AtomicLong pairs = new AtomicLong();

  private final AtomicInteger passes = new AtomicInteger();

  /** The work of its tasks, also of one that failed. */
  private final AtomicLong survivors = new AtomicLong();

  private final AtomicLong bytesRead = new AtomicLong();

  /** What several threads found for a group. */
  private static final class Group {
    final SharedLimits limits;
    final Ranking[] rankings;
    int done;

    Group(int n) {
      limits = new SharedLimits(n);
      rankings = new Ranking[n];
    }
  }

  /** A search among the references that are candidates of each query, or among all where these are null. */
  SearchCall(
      Snapshot snapshot,
      DiagonalBatch queries,
      SearchOptions options,
      long @Nullable [][] candidates,
      int threads) {
    this.snapshot = snapshot;
    this.queries = queries;
    this.options = options;
    this.candidates = candidates;
    int n = queries.size();
    if (!options.isWithin() && options.takesAll() && candidates == null) {
      options.checkPairs(n * Math.min(options.k(), snapshot.size())); // before the work
    }
    long all = 0;
    for (LiveSegment part : snapshot.segments()) {
      all += part.segment().panels();
    }
    panels = all;
    int size = Math.clamp(Math.ceilDiv(n, threads), 1, Searcher.MOST_QUERIES);
    groups = Math.ceilDiv(n, size);
    long terms = size * all * Segment.LANES * queries.dimension();
    chunks =
        threads == 1 || candidates != null
            ? 1
            : (int)
                Math.clamp(
                    Math.min(Math.ceilDiv(TASKS_OF_THREAD * threads, groups), terms / LEAST_TERMS),
                    1,
                    Math.max(1, all));
    shared = new Group[chunks == 1 ? 0 : groups];
    for (int g = 0; g < shared.length; g++) {
      shared[g] = new Group(count(g));
    }
    ids = new long[n][];
    values = new double[n][];
  }

  long tasks() {
    return (long) groups * chunks;
  }

  /** How often all panels were gone through. */
  int passes() {
    return passes.get();
  }

  long survivors() {
    return survivors.get();
  }

  long bytesRead() {
    return bytesRead.get();
  }

  private int first(int group) {
    return (int) ((long) queries.size() * group / groups);
  }

  private int count(int group) {
    return first(group + 1) - first(group);
  }

  @Override
  public void run(long index, Searcher searcher) {
    long decided = searcher.decided;
    long read = searcher.bytesRead();
    try {
      search((int) (index / chunks), index % chunks, searcher);
    } finally {
      survivors.addAndGet(searcher.decided - decided);
      bytesRead.addAndGet(searcher.bytesRead() - read);
    }
  }

  private void search(int group, long chunk, Searcher searcher) {
    searcher.start(snapshot, options);
    searcher.ask(queries, first(group), count(group));
    if (candidates != null) {
      for (int i = 0; i < searcher.queries(); i++) {
        searcher.offer(i, candidates[first(group) + i]);
      }
      finish(group, searcher);
      return;
    }
    boolean isLast = true;
    long from = panels * chunk / chunks;
    long to = panels * (chunk + 1) / chunks;
    if (chunks == 1) {
      searcher.scan(from, to, SharedLimits.NONE);
    } else {
      searcher.scan(from, to, shared[group].limits);
      isLast = isLast(shared[group], searcher);
    }
    if (isLast) {
      passes.incrementAndGet();
      finish(group, searcher);
    }
  }

  /** Merges a thread's candidates into its group's; the last thread gets all of them, and {@code true}. */
  private boolean isLast(Group group, Searcher searcher) {
    synchronized (group) {
      boolean last = ++group.done == chunks;
      for (int i = 0; i < searcher.queries(); i++) {
        Ranking own = searcher.ranking(i);
        Ranking all = group.rankings[i];
        if (all == null) {
          all = searcher.newRanking();
          group.rankings[i] = all;
        }
        all.offerAll(own);
        if (last) {
          own.restart();
          own.offerAll(all);
        }
      }
      return last;
    }
  }

  private void finish(int group, Searcher searcher) {
    for (int i = 0; i < searcher.queries(); i++) {
      searcher.decide(i);
      Ranking found = searcher.ranking(i);
      options.checkPairs(pairs.addAndGet(found.count()));
      long[] id = new long[found.count()];
      double[] value = new double[found.count()];
      found.copy(id, value);
      ids[first(group) + i] = id;
      values[first(group) + i] = value;
    }
  }

  /** Joins the lists of all queries. */
  NeighborIds found() {
    int[] start = new int[ids.length + 1];
    for (int i = 0; i < ids.length; i++) {
      start[i + 1] = start[i] + ids[i].length;
    }
    long[] id = new long[start[ids.length]];
    double[] value = new double[start[ids.length]];
    for (int i = 0; i < ids.length; i++) {
      System.arraycopy(ids[i], 0, id, start[i], ids[i].length);
      System.arraycopy(values[i], 0, value, start[i], ids[i].length);
    }
    return new NeighborIds(id, value, start);
  }
}
