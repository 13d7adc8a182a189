package dev.kullback.internal.index.search;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.engine.BackgroundWarmUp;
import dev.kullback.internal.engine.Kernels;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.engine.WarmUp;
import dev.kullback.internal.formula.Density;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.index.store.Coordinates;
import dev.kullback.internal.index.store.LiveSegment;
import dev.kullback.internal.index.store.Segment;
import dev.kullback.internal.index.store.Snapshot;
import dev.kullback.internal.kernel.Readiness.KernelGroup;
import dev.kullback.internal.numerics.RangeCheck;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.observe.Events;
import dev.kullback.internal.observe.IndexSearchEvent;
import dev.kullback.internal.observe.Tally;
import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.internal.work.Crew;
import dev.kullback.internal.work.TimeLimit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Searches of snapshots, by any number of threads at once. Results depend on the Gaussians, their ids and the options alone: values are
 * those of {@link dev.kullback.internal.formula.Pair#rounded}, ranked by themselves and then by id. Searches for points are others, of a
 * {@link Density}, on the same threads and with the same counts.
 */
public final class Searches implements AutoCloseable {
  /** Its name in events. */
  static final String OPERATION = "KlIndex.search";

  /** Queries of a warm-up, and the rows from one reference that these are near to the next. */
  private static final int WARM_UP_QUERIES = 8;

  private static final int WARM_UP_STEP = 1009;

  private static final int WARM_UP_NEIGHBORS = 10;

  /** Takes no proof. */
  public static final double[] NO_PROOF = {};

  private final Formula formula;
  private final String name;
  private final boolean isFull;
  private final int dimension;
  private final Crew<Searcher> crew;

  /** The share in the thread that has vectors compiled; null for none. */
  private final BackgroundWarmUp.@Nullable User user;

  /** Groups of vectors that searches use. */
  private final Set<KernelGroup> groups;

  /** Points have none. */
  private static final float[] NO_STD = {};

  /** Searches for points by Mahalanobis distance, and by density; made when they are first asked for. */
  private final Map<Density, Searches> ofPoints = new ConcurrentHashMap<>();

  private volatile boolean closed;

  private final Tally calls;
  private final LongAdder queries;
  private final LongAdder decided;
  private final LongAdder bytesRead;

  /**
   * Searches by KL among Gaussians of one dimension, in which a call has {@code threads} threads.
   *
   * @param executor where helpers run; null for threads of its own, if there are to be any
   */
  public Searches(int dimension, int threads, @Nullable Executor executor) {
    this(dimension, threads, executor, Platform.IS_DEFERRED);
  }

  /** The same, whether vectors are left to the thread in the background, or used from the first search on. */
  public Searches(int dimension, int threads, @Nullable Executor executor, boolean deferred) {
    this(Kl.FORWARD, "kl", false, dimension, threads, executor, deferred);
  }

  /**
   * The same by another divergence.
   *
   * @param name of the divergence in events
   * @param isFull whether the Gaussians have full covariances
   */
  public Searches(
      Formula formula,
      String name,
      boolean isFull,
      int dimension,
      int threads,
      @Nullable Executor executor,
      boolean deferred) {
    this.formula = formula;
    this.name = name;
    this.isFull = isFull;
    this.dimension = dimension;
    boolean isCoded = Coordinates.of(name, isFull) != Coordinates.NONE;
    groups = Kernels.indexGroups(formula, isCoded, isFull, dimension);
    user = deferred ? BackgroundWarmUp.join(formula, threads) : null;
    calls = new Tally();
    queries = new LongAdder();
    decided = new LongAdder();
    bytesRead = new LongAdder();
    crew = crew(threads, executor);
  }

  /** Searches for points among the references of others. */
  private Searches(Density density, Searches owner) {
    formula = density;
    name = density.toString();
    isFull = owner.isFull;
    dimension = owner.dimension;
    boolean isOfKl = owner.formula.forward() == density.kernels();
    groups = Kernels.indexGroups(density, isOfKl && !isFull, isFull, dimension);
    user =
        owner.user == null || isOfKl
            ? owner.user
            : BackgroundWarmUp.join(density.kernels(), owner.crew.threads());
    calls = owner.calls;
    queries = owner.queries;
    decided = owner.decided;
    bytesRead = owner.bytesRead;
    crew = crew(owner.crew.threads(), owner.crew.executor());
  }

  private Crew<Searcher> crew(int threads, @Nullable Executor executor) {
    return new Crew<>(
        "kullback-index",
        threads,
        executor,
        () -> new Searcher(formula, dimension, user),
        this::end);
  }

  /** Returns those that rank references of points by density, or by Mahalanobis distance. */
  private Searches ofPoints(boolean areByDensity) {
    Density density = areByDensity ? Density.EXCESS : Density.MAHALANOBIS;
    Searches made = ofPoints.get(density);
    return made != null ? made : makeOfPoints(density);
  }

  private synchronized Searches makeOfPoints(Density density) {
    Searches made = ofPoints.get(density); // perhaps by another thread
    if (made == null) {
      made = new Searches(density, this);
      if (closed) { // meanwhile; the search is under way
        made.close();
      }
      ofPoints.put(density, made);
    }
    return made;
  }

  /** Ends its own threads; searches under way finish. */
  @Override
  public synchronized void close() {
    closed = true;
    ofPoints.values().forEach(Searches::close);
    crew.close();
    if (user != null) {
      user.close();
    }
  }

  /** Searches, and the time that they took, without what gathering waits. */
  public Tally calls() {
    return calls;
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
   * Searches near some of the references until the VM has compiled what searches run; returns whether it has compiled vectors. The searches
   * count as others do.
   *
   * @param asked what searches look for, without limits; null for the nearest, of points also by density
   */
  public boolean warmUp(Snapshot snapshot, @Nullable SearchOptions asked) {
    SearchOptions nearest = SearchOptions.nearest(WARM_UP_NEIGHBORS);
    List<SearchOptions> each =
        asked != null
            ? List.of(asked)
            : formula instanceof Kl
                ? List.of(nearest, nearest.rankedByDensity())
                : List.of(nearest);
    boolean isByDensity = each.getFirst().byDensity();
    Searches asking = isByDensity ? ofPoints(true) : this;
    BooleanSupplier isFast =
        () -> {
          searchNear(snapshot, each);
          return Kernels.isIndexFast(asking.groups, asking.user != null);
        };
    BackgroundWarmUp.User vectors = asking.vectors();
    return vectors == null
        ? isFast.getAsBoolean()
        : vectors.warmUp(asking.groups, dimension, isFast);
  }

  private void searchNear(Snapshot snapshot, List<SearchOptions> each) {
    List<DiagonalBatch> near = nearReferences(snapshot);
    if (near.isEmpty()) {
      return;
    }
    WarmUp.untilStable(() -> {
      for (DiagonalBatch query : near) {
        for (SearchOptions options : each) {
          searchOne(snapshot, query, options);
        }
      }
    });
    SearchOptions first = each.getFirst();
    long most = dimension;
    for (DiagonalBatch query : near) {
      most = Math.max(most, searchOne(snapshot, query, first));
    }
    if (snapshot.segments()[0].segment().hasPanels()
        && Searcher.MANY * most <= WarmUp.MOST_ELEMENTS) {
      // No single query reaches Searcher.scanByTiles. In a round of both, tiles whose vectors are
      // boxed yet would take the time of single queries.
      DiagonalBatch gaussians =
          Gathering.joined(
              IntStream.range(0, Searcher.MANY).mapToObj(i -> near.get(i % near.size())).toList());
      Batch many = first.byDensity() ? means(gaussians) : gaussians;
      SearchOptions options = first.forRows(Searcher.MANY);
      WarmUp.untilStable(() -> search(snapshot, many, options, 0));
    }
  }

  private DiagonalBatch means(DiagonalBatch gaussians) {
    Elements means = Elements.of(gaussians.mean32(), "mean");
    return DiagonalBatch.ofPoints(means, dimension, RangeCheck.PLAIN);
  }

  /**
   * Searches near a Gaussian, or its mean as a point, or both where the options do for both, into arrays if they have room for what is found, and
   * otherwise. Returns how many were found by the options' own kind of query.
   */
  private int searchOne(Snapshot snapshot, DiagonalBatch near, SearchOptions options) {
    int room = (int) Math.min(options.k(), snapshot.size());
    long[] ids = new long[room];
    float[] values = new float[room];
    int found = 0;
    if (!options.byDensity()) {
      if (!options.isWithin()) {
        query(snapshot, near.mean32(), 0, near.scale32(), 0, options, ids, values, NO_PROOF);
      }
      found = search(snapshot, isFull ? near.full() : near, options, 0).ids().length;
    }
    if (options.byDensity() || (formula instanceof Kl && !options.reverse())) {
      if (!options.isWithin()) {
        query(snapshot, near.mean32(), 0, options, ids, values, NO_PROOF);
      } else {
        int points = search(snapshot, means(near), options, 0).ids().length;
        found = options.byDensity() ? points : found;
      }
    }
    return Math.max(found, room);
  }

  /** Returns the share in the thread that has vectors compiled, or null where searches are not to have any from it. */
  private BackgroundWarmUp.@Nullable User vectors() {
    return Kernels.mayHaveVectors() ? user : null;
  }

  /** Whether searches wait for vectors no longer: they are compiled, found not to be, or none of the thread's business. */
  public boolean isReady() {
    BackgroundWarmUp.User vectors = vectors();
    return !closed && (vectors == null || vectors.isReady());
  }

  /** Returns a stage that is completed when {@link #isReady}. Without searches, their vectors are tried all the same. */
  public CompletionStage<Void> ready(int dimension) {
    BackgroundWarmUp.User vectors = vectors();
    return vectors == null
        ? CompletableFuture.completedStage(null)
        : vectors.ready(groups, dimension);
  }

  /** Makes queries of the spread of some references, and a third of it away from them. */
  private static List<DiagonalBatch> nearReferences(Snapshot snapshot) {
    List<DiagonalBatch> near = new ArrayList<>();
    for (LiveSegment part : snapshot.segments()) {
      Segment segment = part.segment();
      int d = segment.dimension();
      for (int row = 0;
          row < segment.size() && near.size() < WARM_UP_QUERIES;
          row += WARM_UP_STEP) {
        float[] mean = new float[d];
        float[] std = new float[d];
        segment.readStd(row, mean, std);
        for (int h = 0; h < d; h++) {
          std[h] = Math.clamp(std[h], Float.MIN_NORMAL, Float.MAX_VALUE);
          mean[h] = Math.clamp(mean[h] + std[h] / 3, -Float.MAX_VALUE, Float.MAX_VALUE);
        }
        DiagonalBatch query = DiagonalBatch.ofSlot(d, Scale.STD, false);
        query.fill(mean, 0, std, 0);
        near.add(query);
      }
    }
    return near;
  }

  /**
   * Finds the nearest of each query, or the references within its radius, as the options say.
   *
   * @param end when the time of the search is up, if it has one
   */
  public NeighborIds search(Snapshot snapshot, Batch batch, SearchOptions options, long end) {
    return search(snapshot, batch, options, end, Events.indexSearch());
  }

  /** The same, which an event that has begun records, if there is one. */
  NeighborIds search(
      Snapshot snapshot,
      Batch batch,
      SearchOptions options,
      long end,
      @Nullable IndexSearchEvent event) {
    return search(snapshot, batch, null, options, end, event);
  }

  /**
   * Finds, for each query, the nearest of the references of some ids.
   *
   * @param candidates for each query ids, of which those that are not there do no harm
   */
  public NeighborIds rank(
      Snapshot snapshot, Batch batch, long[][] candidates, SearchOptions options) {
    long[][] sorted = new long[candidates.length][];
    for (int i = 0; i < sorted.length; i++) {
      sorted[i] = candidates[i].clone();
      Arrays.sort(sorted[i]);
    }
    return search(snapshot, batch, sorted, options, 0, Events.indexSearch());
  }

  private NeighborIds search(
      Snapshot snapshot,
      Batch batch,
      long @Nullable [][] candidates,
      SearchOptions options,
      long end,
      @Nullable IndexSearchEvent event) {
    int n = batch.size();
    if (n == 0) {
      return NeighborIds.of(new Found[0]);
    }
    if (batch.arePoints() && !formula.isOfPoints()) {
      return ofPoints(options.byDensity()).search(snapshot, batch, candidates, options, end, event);
    }
    SearchCall call =
        new SearchCall(snapshot, batch, options, candidates, crew.threads(), end, shift(snapshot));
    Searcher lead = crew.take();
    boolean failed = true;
    try {
      lead.startCall();
      share(call, lead, options);
      failed = false;
    } finally {
      calls.addSince(lead.started());
      crew.giveBack(lead);
      if (event != null) {
        did(event, call);
        end(event, options.k(), options.radius(), n, failed);
      }
    }
    queries.add(n);
    return call.found();
  }

  /** Returns what is to be added to the values that are ranked. */
  private double shift(Snapshot snapshot) {
    return formula.shift(References.least(formula, snapshot), dimension);
  }

  /** Does the passes of a call. */
  private void share(SearchCall call, Searcher lead, SearchOptions options) {
    do {
      crew.share(call.tasks(), lead, call);
    } while (call.isToGoOn());
    recordEnd(options, call.isCutOff());
  }

  /** Records that a search was ended by its timeout, if it was. */
  static void recordEnd(SearchOptions options, boolean isCutOff) {
    TimeLimit timeout = options.timeout();
    if (isCutOff && timeout != null) {
      Events.timeout(OPERATION, timeout.nanos());
    }
  }

  /** Finds the references of one point, as {@link #query(Snapshot, float[], int, float[], int, SearchOptions, long[], float[], double[])}. */
  @SuppressWarnings("TooManyParameters") // arrays with where they begin
  public int query(
      Snapshot snapshot,
      float[] point,
      int at,
      SearchOptions options,
      long[] ids,
      float[] values,
      double[] proven) {
    Searches points = ofPoints(options.byDensity());
    return points.query(snapshot, point, at, NO_STD, 0, options, ids, values, proven);
  }

  /**
   * Finds the references of one query, given by σ, and returns how many there are, or if the search is not complete {@code ~} of that. With one
   * thread a warm call allocates nothing.
   *
   * @param std of a point nothing is read of it
   * @param proven takes the least divergence of other references, as far as is known, if it has an element
   * @throws dev.kullback.InvalidGaussianException as for a batch of one row
   * @throws IllegalArgumentException if the arrays are too short
   */
  @SuppressWarnings("TooManyParameters") // arrays with where they begin
  public int query(
      Snapshot snapshot,
      float[] mean,
      int meanAt,
      float[] std,
      int stdAt,
      SearchOptions options,
      long[] ids,
      float[] kl,
      double[] proven) {
    long end = options.end();
    IndexSearchEvent event = Events.indexSearch();
    Searcher lead = crew.take();
    SearchCall call = null;
    boolean failed = true;
    try {
      lead.startCall();
      int values = SearchCall.values(snapshot, options, false, formula.isOfPoints());
      lead.start(snapshot, options, values, 1, false, end);
      lead.ask(mean, meanAt, std, stdAt);
      Found found = lead.found;
      if (crew.threads() > 1) {
        call =
            new SearchCall(
                snapshot, lead.querySlot(), options, null, crew.threads(), end, shift(snapshot));
        share(call, lead, options);
        found = call.first();
      } else {
        lead.searchAlone(end);
        recordEnd(options, !found.isComplete && lead.isOver());
      }
      int count =
          NeighborIds.copy(
              found.ids,
              found.values,
              found.count,
              found.isComplete,
              found.proven,
              found.shift,
              options,
              ids,
              kl,
              proven);
      queries.increment();
      failed = false;
      return count;
    } finally {
      calls.addSince(lead.started());
      if (event != null) {
        if (call == null) {
          event.did(lead.passes, lead.decided, lead.bytesRead());
          event.incomplete(lead.found.isComplete ? 0 : 1);
        } else {
          did(event, call);
        }
      }
      crew.giveBack(lead);
      if (event != null) {
        end(event, options.k(), options.radius(), 1, failed);
      }
    }
  }

  private static void did(IndexSearchEvent event, SearchCall call) {
    event.did(call.passes(), call.survivors(), call.bytesRead());
    event.incomplete(call.incomplete());
  }

  /** Ends the event of a search of {@code queries} Gaussians, which has none of them answered where it failed. */
  void end(IndexSearchEvent event, int k, double radius, int queries, boolean failed) {
    boolean isCold = !Kernels.isIndexFast(groups, user != null);
    if (failed) {
      event.incomplete(0);
    }
    event.end(name, k, radius, failed ? 0 : queries, crew.threads(), isCold, failed);
  }

  /** Counts what a searcher has done, and has it forget the call. */
  private void end(Searcher searcher) {
    Kernels.callEnded();
    decided.add(searcher.decided);
    bytesRead.add(searcher.bytesRead());
    searcher.clear();
  }
}
