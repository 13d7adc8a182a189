package dev.kullback.internal.index;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.work.Job;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A search for a batch of queries, in tasks: a group of queries goes through a chunk of all panels. The thread that does the last chunk of
 * a group ranks what all of them left.
 */
final class SearchCall implements Job.Task<Searcher> {
  /** Terms of a chunk at least: 0.2 ms. */
  private static final long LEAST_TERMS = 1 << 20;

  private static final int TASKS_OF_THREAD = 4;

  /** Entries of all lists, which are to fit an array. */
  private static final int MOST_ENTRIES = Integer.MAX_VALUE - 8;

  private final Snapshot snapshot;
  private final DiagonalBatch queries;
  private final SearchOptions options;
  private final int k;
  private final int groups;
  private final int chunks;
  private final long panels;
  private final Group[] shared;
  private final long[][] ids;
  private final double[][] values;
  private final AtomicLong pairs = new AtomicLong();

  /** What several threads found for a group. */
  private static final class Group {
    final SharedLimits limits;
    final Survivors[] survivors;
    int done;

    Group(int n) {
      limits = new SharedLimits(n);
      survivors = new Survivors[n];
    }
  }

  SearchCall(Snapshot snapshot, DiagonalBatch queries, int k, SearchOptions options, int threads) {
    this.k = k;
    this.snapshot = snapshot;
    this.queries = queries;
    this.options = options;
    int n = queries.size();
    if (!options.isWithin() && options.takesAll()) {
      checkEntries(n * Math.min(k, snapshot.size())); // before the work
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
        threads == 1
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

  private int first(int group) {
    return (int) ((long) queries.size() * group / groups);
  }

  private int count(int group) {
    return first(group + 1) - first(group);
  }

  @Override
  public void run(long index, Searcher searcher) {
    int group = (int) (index / chunks);
    long chunk = index % chunks;
    searcher.start(snapshot, options, k);
    searcher.ask(queries, first(group), count(group));
    long from = panels * chunk / chunks;
    long to = panels * (chunk + 1) / chunks;
    if (chunks == 1) {
      searcher.scan(from, to, SharedLimits.NONE);
      finish(group, searcher);
    } else {
      searcher.scan(from, to, shared[group].limits);
      if (isLast(shared[group], searcher)) {
        finish(group, searcher);
      }
    }
  }

  /** Merges a thread's survivors into its group's; the last thread gets all of them, and {@code true}. */
  private boolean isLast(Group group, Searcher searcher) {
    synchronized (group) {
      boolean last = ++group.done == chunks;
      for (int i = 0; i < searcher.queries(); i++) {
        Survivors own = searcher.survivors(i);
        Survivors all = group.survivors[i];
        if (all == null) {
          all = new Survivors();
          all.start(searcher.nearest(), options.radius());
          group.survivors[i] = all;
        }
        all.addAll(own);
        if (last) {
          own.restart();
          own.addAll(all);
        }
      }
      return last;
    }
  }

  private void finish(int group, Searcher searcher) {
    for (int i = 0; i < searcher.queries(); i++) {
      searcher.rank(i);
      Survivors found = searcher.survivors(i);
      if (options.isWithin()) {
        options.checkPairs(pairs.addAndGet(found.count));
      }
      long[] id = new long[found.count];
      double[] value = new double[found.count];
      System.arraycopy(found.id, 0, id, 0, found.count);
      System.arraycopy(found.lower, 0, value, 0, found.count);
      ids[first(group) + i] = id;
      values[first(group) + i] = value;
    }
  }

  private static void checkEntries(long entries) {
    if (entries > MOST_ENTRIES) {
      throw new IllegalArgumentException(
          "%d references do not fit an array; ask fewer queries at once, or for fewer references"
              .formatted(entries));
    }
  }

  /** Joins the lists of all queries. */
  Found found() {
    int[] start = new int[ids.length + 1];
    for (int i = 0; i < ids.length; i++) {
      checkEntries((long) start[i] + ids[i].length);
      start[i + 1] = start[i] + ids[i].length;
    }
    long[] id = new long[start[ids.length]];
    double[] value = new double[start[ids.length]];
    for (int i = 0; i < ids.length; i++) {
      System.arraycopy(ids[i], 0, id, start[i], ids[i].length);
      System.arraycopy(values[i], 0, value, start[i], ids[i].length);
    }
    return new Found(id, value, start);
  }
}
