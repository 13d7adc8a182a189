package dev.kullback.internal.index.search;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.index.store.LiveSegment;
import dev.kullback.internal.index.store.Snapshot;
import dev.kullback.internal.rows.Ranking;
import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.internal.work.Job;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * A search for a batch of queries, in tasks: a group of queries goes through a chunk of all panels. The thread that does the last chunk of
 * a group decides between the candidates of all of them.
 *
 * <p>A search that is to end at a time has two passes where there are codes. The first reads these alone and computes few values: from its end on, it is
 * certain how near other references can be. Queries that it leaves open are searched for once more, from the nearest that it found.
 */
final class SearchCall implements Job.Task<Searcher> {
  /** Terms of a chunk at least: 0.2 ms. */
  private static final long LEAST_TERMS = 1 << 20;

  private static final int TASKS_OF_THREAD = 4;

  /** Rows that a scan goes over in the time in which one is found by its id and read: 0.7 µs at 64 dimensions. */
  private static final int ROWS_OF_ONE = 64;

  /** Ids that are found in less time than a scan begins. */
  private static final int FEW = 16;

  /** Values that the first pass of a search computes that is to end at a time: 1 ms at 64 dimensions. */
  private static final int FIRST_VALUES = 1024;

  private final Snapshot snapshot;
  private final Batch queries;
  private final SearchOptions options;

  /** The ids that each query ranks; null for all. */
  private final long @Nullable [][] candidates;

  /** When the time is up, if the options say so. */
  private final long end;

  /** Values that are computed for each query at most. */
  private int values;

  private boolean isSecond;

  /** Whether there are so many queries that tiles sum all terms, or kernels for matrices compute all divergences. */
  private final boolean areMany;

  /** Queries of a group come by so many: rows of the kernels' panels. */
  private final int unit;

  private final int groups;
  private final int chunks;
  private final long panels;
  private final @Nullable Group[] shared;
  private final Found[] found;
  private final AtomicLong pairs = new AtomicLong();

  /** Whether a query was left open when the time was up. */
  private volatile boolean isCutOff;

  private final AtomicInteger passes = new AtomicInteger();

  /** The work of its tasks, also of one that failed. */
  private final AtomicLong survivors = new AtomicLong();

  private final AtomicLong bytesRead = new AtomicLong();

  /** What several threads found for a group. */
  private static final class Group {
    final SharedLimits limits;
    final Ranking[] rankings;
    int done;
    boolean hasSkipped;

    Group(int n) {
      limits = new SharedLimits(n);
      rankings = new Ranking[n];
    }
  }

  /**
   * A search among the references that are candidates of each query, or among all where these are null.
   *
   * @param end when the time is up, if the options say so
   * @param shift what is to be added to the values that are found
   */
  SearchCall(
      Snapshot snapshot,
      Batch queries,
      SearchOptions options,
      long @Nullable [][] candidates,
      int threads,
      long end,
      double shift) {
    this.snapshot = snapshot;
    this.queries = queries;
    this.options = options;
    this.candidates = candidates == null ? named(snapshot, options, queries.size()) : candidates;
    this.end = end;
    values = values(snapshot, options, this.candidates != null, queries.arePoints());
    int n = queries.size();
    if (!options.isWithin() && options.takesAll() && candidates == null) {
      options.checkPairs(n * Math.min(options.k(), snapshot.size())); // before the work
    }
    long all = 0;
    long terms = 0;
    for (LiveSegment part : snapshot.segments()) {
      all += part.segment().panels();
      terms += part.segment().panels() * part.segment().panelTerms();
    }
    panels = all;
    LiveSegment[] parts = snapshot.segments(); // of one divergence
    boolean mayBeByKernels =
        parts.length > 0 && this.candidates == null && values == Integer.MAX_VALUE;
    areMany = mayBeByKernels && Searcher.areMany(queries, parts[0].segment());
    boolean areByKernels =
        areMany
            || (mayBeByKernels && Searcher.hasNoBounds(parts[0].segment(), queries.arePoints()));
    boolean areByTiles = areMany && parts[0].segment().hasPanels();
    unit = areByKernels ? Searcher.PANEL : 1;
    int most =
        areByTiles
            ? Searcher.MOST_OF_TILES
            : areByKernels ? Searcher.MOST_OF_KERNELS : Searcher.MOST_QUERIES;
    int size = areMany && !areByTiles ? most : Math.clamp(Math.ceilDiv(n, threads), 1, most);
    groups = Math.ceilDiv(n, Math.ceilDiv(size, unit) * unit);
    chunks =
        threads == 1
                || this.candidates != null
                || (areByTiles && groups % threads == 0 && 4 * count(groups - 1) >= 3 * count(0))
            ? 1
            : (int)
                Math.clamp(
                    Math.min(
                        Math.ceilDiv(TASKS_OF_THREAD * threads, groups),
                        size * terms / LEAST_TERMS),
                    1,
                    Math.max(1, all));
    shared = new Group[chunks == 1 ? 0 : groups];
    found = new Found[n];
    Arrays.setAll(found, i -> new Found());
    for (Found one : found) {
      one.shift = shift;
    }
  }

  /** Returns the ids that each query is searched among, if the options name so few that reading them takes less time than a scan. */
  private static long @Nullable [][] named(Snapshot snapshot, SearchOptions options, int queries) {
    long[] among = namedIds(snapshot, options);
    if (among == null) {
      return null;
    }
    long[][] same = new long[queries][];
    Arrays.fill(same, among);
    return same;
  }

  /** Returns the ids that the options name, ascending, if they are few; else null. */
  static long @Nullable [] namedIds(Snapshot snapshot, SearchOptions options) {
    long[] among = options.among();
    return among != null && among.length <= Math.max(FEW, snapshot.size() / ROWS_OF_ONE)
        ? among
        : null;
  }

  /** Returns how many values the first pass computes for each query at most. */
  static int values(Snapshot snapshot, SearchOptions options, boolean areNamed, boolean arePoints) {
    if (areNamed) {
      return Integer.MAX_VALUE;
    }
    if (options.share() < 1) {
      return (int) Math.min(Integer.MAX_VALUE - 1, Math.ceil(options.share() * snapshot.size()));
    }
    return options.timeout() != null && Searcher.readsCodes(snapshot, options, arePoints)
        ? FIRST_VALUES
        : Integer.MAX_VALUE;
  }

  /** Has the next pass done by {@link #tasks}, if there is need and time; returns whether. */
  boolean isToGoOn() {
    boolean goesOn = !isSecond && !isCutOff && hasSecond(options, values) && incomplete() > 0;
    if (goesOn) {
      isSecond = true;
      values = Integer.MAX_VALUE;
      pairs.set(pairsOfDone());
      Arrays.fill(shared, null);
    }
    return goesOn;
  }

  /** Whether another pass computes as many values as it takes. */
  static boolean hasSecond(SearchOptions options, int values) {
    return values < Integer.MAX_VALUE && options.share() == 1;
  }

  /** Whether some queries were left open when the time was up. */
  boolean isCutOff() {
    return isCutOff;
  }

  /** Number of queries that were left open, by the time or by the share of the work. */
  int incomplete() {
    int open = 0;
    for (Found one : found) {
      open += one.isComplete ? 0 : 1;
    }
    return open;
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
    int n = queries.size();
    return (int) Math.min(n, (long) Math.ceilDiv(n, unit) * group / groups * unit);
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
    if (isSecond && isDone(group)) {
      return;
    }
    searcher.start(snapshot, options, values, chunks, areMany, end);
    if (chunks == 1 && searcher.isOver()) { // nothing more is found: many groups may be left
      isCutOff = true;
      return;
    }
    searcher.ask(queries, first(group), count(group));
    if (candidates != null) {
      for (int i = 0; i < searcher.queries(); i++) {
        searcher.offer(i, candidates[first(group) + i]);
      }
      finish(group, searcher);
      return;
    }
    if (isSecond) {
      for (int i = 0; i < searcher.queries(); i++) {
        searcher.ranking(i).limit(found[first(group) + i].limit(options, most()));
      }
    }
    boolean isLast = true;
    boolean hasSkipped;
    long from = panels * chunk / chunks;
    long to = panels * (chunk + 1) / chunks;
    if (chunks == 1) {
      searcher.scan(from, to, SharedLimits.NONE);
      hasSkipped = searcher.hasSkipped();
    } else {
      Group all = shared(group);
      // what is to depend on the references alone must not on who is the first to tell
      searcher.scan(from, to, options.share() < 1 ? SharedLimits.NONE : all.limits);
      isLast = isLast(all, searcher);
      hasSkipped = all.hasSkipped;
    }
    if (isLast) {
      passes.addAndGet(hasSkipped ? 0 : 1);
      finish(group, searcher);
    }
  }

  private boolean isDone(int group) {
    boolean isDone = true;
    for (int i = first(group); i < first(group + 1); i++) {
      isDone &= found[i].isComplete;
    }
    return isDone;
  }

  /** Returns how many references the groups have found that are not searched again. */
  private long pairsOfDone() {
    long all = 0;
    for (int group = 0; group < groups; group++) {
      int end = isDone(group) ? first(group + 1) : first(group);
      for (int i = first(group); i < end; i++) {
        all += found[i].count;
      }
    }
    return all;
  }

  private int most() {
    return Searcher.mostFound(snapshot, options);
  }

  private synchronized Group shared(int group) {
    Group all = shared[group];
    if (all == null) {
      all = new Group(count(group));
      shared[group] = all;
    }
    return all;
  }

  /** Merges a thread's candidates into its group's; the last thread gets all of them, and {@code true}. */
  private boolean isLast(Group group, Searcher searcher) {
    synchronized (group) {
      boolean last = ++group.done == chunks;
      group.hasSkipped |= searcher.hasSkipped();
      for (int i = 0; i < searcher.queries(); i++) {
        Ranking own = searcher.ranking(i);
        Ranking all = group.rankings[i];
        if (all == null) {
          all = searcher.newRanking();
          group.rankings[i] = all;
        }
        all.offerAll(own);
        if (last) {
          own.become(all);
        }
      }
      return last;
    }
  }

  private void finish(int group, Searcher searcher) {
    for (int i = 0; i < searcher.queries(); i++) {
      Found its = found[first(group) + i];
      searcher.decide(i);
      Ranking decided = searcher.ranking(i);
      options.checkPairs(pairs.addAndGet(decided.count()));
      long all = candidates == null ? snapshot.size() : searcher.named(i);
      if (!isSecond) {
        its.set(decided, options, most(), all);
      } else if (!its.isComplete) {
        its.add(decided, options, most(), all);
      }
      isCutOff |= !its.isComplete && searcher.isOver();
    }
  }

  /** Joins the lists of all queries. */
  NeighborIds found() {
    return NeighborIds.of(found);
  }

  /** What the only query has found. */
  Found first() {
    return found[0];
  }
}
