package dev.kullback.internal.index.search;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.engine.BackgroundWarmUp;
import dev.kullback.internal.engine.Kernels;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.index.store.Codes;
import dev.kullback.internal.index.store.Coordinates;
import dev.kullback.internal.index.store.LiveSegment;
import dev.kullback.internal.index.store.Segment;
import dev.kullback.internal.index.store.Snapshot;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.CodeScan;
import dev.kullback.internal.kernel.PanelScan;
import dev.kullback.internal.kernel.RowScan;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.rows.KeySort;
import dev.kullback.internal.rows.Ranking;
import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Poll;
import dev.kullback.internal.work.TimeLimit;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * What one thread needs to search: its queries, up to {@link #MOST_QUERIES} at a time, kernels and memory. It goes through the panels of
 * all segments, block by block:
 *
 * <ol>
 *   <li>It sums terms of each row of a block, by {@link CodedQuery} or {@link Bounds}, up to where the sum shows that the row's divergence
 *       exceeds the limit of the query's {@link Ranking}.
 *   <li>It offers the other rows to the ranking, with the bounds that their sums give.
 *   <li>When the ranking is full, and when all panels are done, the ranking asks {@link References} where bounds overlap. It asks at once
 *       for a row of which floats give no upper bound, in a search for the nearest, and for the most promising rows of a sample.
 * </ol>
 *
 * <p>A search that is to compute few values reads codes alone, where a segment has them: it keeps the rows of the least lower bounds, and computes
 * the values of these. One that is to end at a time reads no block after it, and says so to the rankings.
 *
 * <p>After its first searches, a searcher allocates nothing.
 */
final class Searcher extends Worker {
  /** Queries that share the reading of a block. */
  static final int MOST_QUERIES = 16;

  /**
   * Queries of a batch from which on tiles sum all terms of the floats of KL, in 0.040 to 0.046 ns a term (Intel, CPU family 6 model 167, 512 bits,
   * JDK 25.0.3). Reading codes took 0.097 (1,000,000 × 64, Zen 4).
   */
  static final int MANY = 32;

  /**
   * Queries from which on kernels for matrices compute all divergences, where codes have two coordinates for each dimension: reading codes took
   * 0.18 ns a term, and kernels 0.052 to 0.081 and once for all queries 1.3 (1,000,000 × 64, Zen 4).
   */
  private static final int MANY_OF_TWO = 16;

  /** Queries that share what such a kernel reads of a segment, whose packing takes the time of 20 of them. */
  static final int MOST_OF_KERNELS = 256;

  /** Queries that share a block's tiles, whose sums take 128 KiB at 64 dimensions; 256 took as long for each, and are not kept. */
  static final int MOST_OF_TILES = 64;

  /** Rows of the kernels' matrix at a time. */
  static final int PANEL = Batch.WIDEST_PANEL;

  /** Values of a row that are looked at before its limit is asked for again; then four times as many, and so on. */
  private static final int FIRST_VALUES = 64;

  /** Candidates for which the first query, the only one of a call without a batch, keeps memory. */
  private static final int MOST_KEPT = KeySort.MOST_KEPT;

  /** Candidates for which each of the other queries keeps memory, and those from {@link #MOST_QUERIES} on. */
  private static final int MOST_KEPT_OF_BATCH = 1 << 12;

  private static final int MOST_KEPT_OF_MANY = 1 << 10;

  /** Queries that are kept. */
  private static final int MOST_QUERIES_KEPT = 64;

  private static final int LANES = PanelScan.LANES;
  private static final int CODED = CodeScan.LANES;

  /** If codes leave more than 1/{@value} of a block's rows, a scan of floats is cheaper than these rows' values. */
  private static final int FEW = 16;

  /** The same for the sample, of which more rows may be left, as its limit is still loose. */
  private static final int FEW_OF_SAMPLE = 4;

  /** The sample is 1/{@value} of the panels, but between {@link #LEAST_SAMPLED} and {@link #MOST_SAMPLED}. */
  private static final int SAMPLED = 16;

  private static final int LEAST_SAMPLED = 32;
  private static final int MOST_SAMPLED = 256;

  /** Bytes of floats of the panels of a sample, at most; their codes take 0.2 ms. */
  private static final long MOST_SAMPLE_BYTES = 1 << 24;

  /** Rows of a sample for each of the nearest, at least. */
  private static final int SAMPLE_OF_ONE = 16;

  /** What a search may take to decide what it has found when its time is up, in parts of that time, and at least. */
  private static final int GRACE = 8;

  private static final long LEAST_GRACE = 1_000_000;

  private final References references;
  private final Formula formula;
  private final Kernels kernels;
  private final KeySort sorting;
  private final Block block = new Block();

  /** Of each row of a block, the greatest sum that its limit allows, and its sum; panels whose sums may be within the limit. */
  private float[] most = {};

  private float[] sum = {};
  private int[] kept = {};

  /** Numbers of queries in groups, and their sums with a block's rows. */
  private float[] packed = {};

  private float[] sums = {};

  /** {@link Bounds#rests} of a block's rows. */
  private float[] rests = {};

  /** Rows of a block that bounds neither exclude nor show to be within the limit. */
  private long doubtful;

  /** Rows that codes leave. */
  private int[] left = {};

  /** The most promising rows of a sample. */
  private int[] promised = {};

  /** Their estimates, ascending: a small estimate promises a small divergence. */
  private float[] promises = {};

  /** The last word of the codes that were read; kept so that no compiler leaves out reading it. */
  int lastWord;

  private Query[] queries = {};
  private int count;
  private final DiagonalBatch querySlot;

  private Snapshot snapshot = Snapshot.EMPTY;
  private SearchOptions options = SearchOptions.FORWARD;

  /** The radius of the values that are ranked. */
  private double radius;

  /** Neighbors that are wanted, of those that there are, in a search for the nearest. */
  private int nearest;

  /** Values that are computed at most for each query; {@link Integer#MAX_VALUE} for as many as it takes. */
  private int values;

  /** Threads' parts of which each has rankings of its own. */
  private int parts;

  /** The {@link System#nanoTime} at which the time of a search is up that has one. */
  private boolean isTimed;

  private long end;
  private long grace;

  /** Whether the time was up, and whether rows were not looked at for it. */
  private boolean isOver;

  private boolean hasSkipped;

  /** Whether tiles are to sum all terms, or kernels for matrices to compute all divergences. */
  private boolean areMany;

  private final BlockTarget values64 = new BlockTarget();
  private int[] positions = {};

  /** References of the last block that was read once. */
  private @Nullable Batch spare;

  /** What the query of arrays has found, and how often it has gone through all panels. */
  final Found found = new Found();

  int passes;

  /** Number of the segment whose panels are scanned. */
  private int number;

  /** References whose exact values were computed in this call. */
  long decided;

  /** Bytes of codes and panels that were read in this call. */
  private long bytesScanned;

  Searcher(Formula formula, int dimension, BackgroundWarmUp.@Nullable User user) {
    this.formula = formula;
    references = new References(this, formula);
    kernels = Kernels.ofIndex(formula, this, references.pair, user);
    sorting = new KeySort(kernels.scan(), this::look);
    querySlot =
        formula.isOfPoints()
            ? DiagonalBatch.ofPointSlot(dimension)
            : DiagonalBatch.ofSlot(dimension, Scale.STD, false, !formula.needsInverse());
    makeQueries(1);
  }

  private void makeQueries(int n) {
    int made = queries.length;
    if (made < n) {
      queries = Arrays.copyOf(queries, n);
      for (int i = made; i < n; i++) {
        queries[i] = new Query(formula, new Ranking(sorting));
      }
    }
  }

  // --- queries

  /**
   * Begins a search as the options say.
   *
   * @param values computed at most for each query; {@link Integer#MAX_VALUE} for as many as it takes
   * @param parts of the references, of which each has rankings of its own
   * @param areMany whether there are so many queries that tiles sum all terms, or kernels for matrices compute all divergences
   * @param end when its time is up, if it has one
   */
  void start(Snapshot from, SearchOptions how, int values, int parts, boolean areMany, long end) {
    this.areMany = areMany;
    TimeLimit timeout = how.timeout();
    isTimed = timeout != null;
    grace = timeout == null ? 0 : Math.max(LEAST_GRACE, timeout.nanos() / GRACE);
    this.end = end;
    isOver = false;
    hasSkipped = false;
    this.values = values;
    this.parts = parts;
    snapshot = from;
    options = how;
    nearest = mostFound(from, how);
    references.use(from, how.reverse());
    found.shift = formula.shift(references.least(), querySlot.dimension());
    radius = how.radiusWithout(found.shift);
    sorting.use(kernels.scan());
  }

  /** Returns how many neighbors a search for the nearest can find, at least 1; 0 for one within a radius. */
  static int mostFound(Snapshot from, SearchOptions options) {
    return options.isWithin() ? 0 : Math.clamp(from.size(), 1, options.k());
  }

  private boolean isApproximate() {
    return values < Integer.MAX_VALUE;
  }

  /** Whether the search is to end at a time. */
  boolean isTimed() {
    return isTimed;
  }

  /** Whether that time is up. */
  boolean isOver() {
    if (isTimed && !isOver) {
      isOver = System.nanoTime() - end >= 0;
    }
    return isOver;
  }

  /** Whether the time is up that a search may take to decide what it has found. */
  boolean isAtEnd() {
    return isOver() && System.nanoTime() - end >= grace;
  }

  /** Whether rows were not looked at, as the time was up. */
  boolean hasSkipped() {
    return hasSkipped;
  }

  /** Whether no row is looked at any more, as the time is up. */
  private boolean skips() {
    hasSkipped |= isOver();
    return hasSkipped;
  }

  /** Takes the rows [first, first + n) of a batch as queries. */
  void ask(Batch batch, int first, int n) {
    count = n;
    makeQueries(n);
    for (int i = 0; i < n; i++) {
      queries[i].start(batch, first + i, isExchanged(), references.least());
      start(queries[i].ranking);
    }
  }

  /** Whether the divergences are those of {@link Formula#forward} with the roles exchanged. */
  private boolean isExchanged() {
    return formula.isExchanged(options.reverse());
  }

  /** Takes a query of floats, of a point without σ. */
  void ask(float[] mean, int meanAt, float[] std, int stdAt) {
    querySlot.fill(mean, meanAt, std, stdAt);
    ask(querySlot, 0, 1);
  }

  /** The query that {@link #ask(float[], int, float[], int)} took. */
  DiagonalBatch querySlot() {
    return querySlot;
  }

  /** Makes a ranking of this search, for what several threads find. */
  Ranking newRanking() {
    Ranking made = new Ranking(new KeySort(kernels.scan()));
    start(made);
    return made;
  }

  private void start(Ranking ranking) {
    if (options.isWithin()) {
      ranking.startWithin(radius, values);
    } else {
      ranking.startNearest(nearest, values, parts);
    }
  }

  Ranking ranking(int i) {
    return queries[i].ranking;
  }

  int queries() {
    return count;
  }

  /** Bytes that were read in this call. */
  long bytesRead() {
    return bytesScanned + references.bytesRead;
  }

  /** Forgets the call. */
  void clear() {
    snapshot = Snapshot.EMPTY;
    options = SearchOptions.FORWARD;
    references.clear();
    kernels.clear();
    for (int i = 0; i < queries.length; i++) { // an earlier task may have had more queries
      queries[i].clear(
          i == 0 ? MOST_KEPT : i < MOST_QUERIES ? MOST_KEPT_OF_BATCH : MOST_KEPT_OF_MANY);
    }
    if (queries.length > MOST_QUERIES_KEPT) {
      queries = Arrays.copyOf(queries, MOST_QUERIES_KEPT);
    }
    sorting.trim();
    found.trim(MOST_KEPT);
    count = 0;
    decided = 0;
    passes = 0;
    bytesScanned = 0;
    reset();
  }

  // --- references that are named

  /** Offers the references of some ids, ascending, to a query, in the place of a scan; ids that are not there do no harm, nor do repeated ones. */
  void offer(int i, long[] ids) {
    Query query = queries[i];
    query.named = 0;
    for (int s = 0; s < ids.length && !skips(); s++) {
      long place = s > 0 && ids[s] == ids[s - 1] ? -1 : snapshot.find(ids[s]);
      if (place >= 0 && options.accepts(ids[s], query.row)) {
        query.named++;
        query.ranking.offerBounded(references.of(query), place);
        makeFewer(query);
      }
      look();
    }
    if (hasSkipped) {
      query.ranking.drop(0);
    }
  }

  /** References among which {@link #offer(int, long[])} has found those of a query. */
  long named(int i) {
    return queries[i].named;
  }

  // --- panels

  void scanAll() {
    scan(0, Long.MAX_VALUE, SharedLimits.NONE);
  }

  /** Searches all references for the only query, as often as it takes, and leaves what it {@link #found}. */
  void searchAlone(long end) {
    Query query = queries[0];
    Ranking ranking = query.ranking;
    long[] named = SearchCall.namedIds(snapshot, options);
    int first = SearchCall.values(snapshot, options, named != null, formula.isOfPoints());
    if (named == null) {
      scanAll();
      passes += hasSkipped ? 0 : 1;
    } else {
      values = first;
      start(ranking);
      offer(0, named);
    }
    long all = named == null ? snapshot.size() : query.named;
    decide(0);
    found.set(ranking, options, nearest, all);
    if (!found.isComplete && !isOver() && SearchCall.hasSecond(options, first)) {
      start(snapshot, options, Integer.MAX_VALUE, 1, false, end);
      query.start(query.batch(), query.row, isExchanged(), references.least());
      start(ranking);
      ranking.limit(found.limit(options, nearest));
      scanAll();
      passes += hasSkipped ? 0 : 1;
      decide(0);
      found.add(ranking, options, nearest, all);
    }
  }

  /** Whether codes bound what the options ask for, of points or else of Gaussians. */
  static boolean readsCodes(Snapshot snapshot, SearchOptions options, boolean arePoints) {
    boolean areCoded = false;
    for (LiveSegment part : snapshot.segments()) {
      Segment segment = part.segment();
      areCoded |=
          segment.codes() != null && (segment.hasPanels() ? !options.reverse() : !arePoints);
    }
    return areCoded;
  }

  /** Scans the panels [from, to) of all segments, in their order. */
  void scan(long from, long to, SharedLimits limits) {
    long first = 0;
    for (number = 0; number < snapshot.segments().length; number++) {
      int panels = segment().panels();
      int begin = panelWithin(from - first, panels);
      int end = panelWithin(to - first, panels);
      if (begin < end) {
        scanSegment(begin, end, limits);
      }
      first += panels;
    }
    for (int i = 0; i < count && hasSkipped; i++) {
      queries[i].ranking.drop(0);
    }
  }

  /** Puts the end of a part where a panel of codes ends. */
  private static int panelWithin(long end, int panels) {
    return end >= panels ? panels : Math.clamp(end, 0, panels) & -2;
  }

  private LiveSegment part() {
    return snapshot.segments()[number];
  }

  private Segment segment() {
    return part().segment();
  }

  private long place(int row) {
    return (long) number << 32 | row;
  }

  private void scanSegment(int begin, int end, SharedLimits limits) {
    Segment segment = segment();
    int from = begin;
    if (isByTiles(segment)) {
      from = scanByTiles(segment, begin, end, limits);
    }
    if (from == end) {
      return;
    }
    if (!isApproximate() && isByKernels(segment)) {
      scanByKernels(segment, from * LANES, Math.min(segment.size(), end * LANES), limits);
      return;
    }
    boolean areCoded = true;
    for (int i = 0; i < count; i++) {
      if (segment.hasPanels()) {
        queries[i].bounds.order(segment);
      }
      queries[i].ranking.limit(limits.get(i));
      areCoded &= queries[i].enter(segment);
    }
    if (areCoded && !options.isWithin() && !skips()) {
      from += sample(from, end, limits);
    }
    int step = Block.mostPanels(segment);
    for (int p = from; p < end && !skips(); p += step) {
      int n = Math.min(step, end - p);
      boolean isLoaded = false;
      for (int i = 0; i < count; i++) {
        checkInterrupt();
        Query query = queries[i];
        query.ranking.limit(limits.get(i));
        if (!query.readsCodes(isApproximate()) || !scanCodes(query, p, n)) {
          if (!isLoaded) {
            load(p, n);
            isLoaded = true;
          }
          scanBlock(query);
        }
        limits.put(i, query.ranking.limit());
      }
      pass((long) count * n * LANES * segment.dimension());
    }
  }

  /** Whether a query may find a row; its id is read only if it decides, as it is far from what else is read. */
  private boolean counts(Query query, int row) {
    if (!part().isLive(row) || options.takesAll()) {
      return part().isLive(row);
    }
    if (options.filter() != null) {
      checkInterrupt(); // it may take long
      if (skips()) {
        return false;
      }
    }
    return options.accepts(segment().id(row), query.row);
  }

  // --- tiles of queries and panels

  /**
   * Whether floats are read once for many queries. Kernels for matrices, which read and pack the values of all references first and leave the last values of a group to one
   * thread, took 1.26 and 1.05 of the time of {@code KlEngine.nearest} of a prepared batch with 64 and 256 queries, and by two threads 1.46 and 1.31; tiles take 0.77 and
   * 0.97, and 0.88 and 1.01 (100,000 × 64, k = 10, interleaved; Intel, CPU family 6 model 167, 512 bits, JDK 25.0.3). With {@code UseAVX=2} 1.20 and 1.04, 1.55 and 1.21 became
   * 0.88 and 1.06, 1.09 and 1.17.
   */
  private boolean isByTiles(Segment segment) {
    return areMany && segment.hasPanels() && !isApproximate();
  }

  /**
   * Scans the floats of panels [begin, end) for all queries, {@link PanelScan#GROUP} at a time. Returns the first panel that is not done: bounds
   * of so many rows are too wide to decide that values are the faster way.
   */
  private int scanByTiles(Segment segment, int begin, int end, SharedLimits limits) {
    packQueries(segment);
    int step = Block.mostPanels(segment);
    int d = segment.dimension();
    for (int p = begin; p < end; p += step) {
      if (skips()) {
        return end;
      }
      int n = Math.min(step, end - p);
      load(p, n);
      PanelScan scan = kernels.panels(d);
      doubtful = 0;
      if (rests.length < n * LANES) {
        rests = new float[n * LANES];
      }
      float greatest = queries[0].bounds.rests(block, queries[0].batch().isDouble(), rests);
      checkInterrupt();
      sumAll(scan, segment);
      for (int i = 0; i < count; i++) {
        Ranking ranking = queries[i].ranking;
        ranking.limit(limits.get(i));
        offerSums(scan, queries[i], i * n * LANES, greatest);
        limits.put(i, ranking.limit());
      }
      pass((long) count * n * LANES * d);
      if (doubtful > (long) count * block.rows / FEW) {
        return p + n;
      }
    }
    return end;
  }

  /** Puts the queries' numbers into the groups of {@link PanelScan#sumsOfAll}; what fills the last group are zeros, or numbers of earlier queries. */
  private void packQueries(Segment segment) {
    int terms = 2 * segment.dimension();
    int length = Math.ceilDiv(count, PanelScan.GROUP) * PanelScan.GROUP * terms;
    if (packed.length < length) {
      packed = new float[length];
    }
    for (int i = 0; i < count; i++) {
      Bounds bounds = queries[i].bounds;
      bounds.order(segment);
      int at = i / PanelScan.GROUP * PanelScan.GROUP * terms + i % PanelScan.GROUP;
      for (int k = 0; k < terms; k++) {
        packed[at + k * PanelScan.GROUP] = bounds.query[k];
      }
    }
  }

  /** Sums all terms of the queries and of the block's rows. */
  private void sumAll(PanelScan scan, Segment segment) {
    int d = segment.dimension();
    int groups = Math.ceilDiv(count, PanelScan.GROUP);
    int stride = block.panels * LANES;
    if (sums.length < groups * PanelScan.GROUP * stride) {
      sums = new float[groups * PanelScan.GROUP * stride];
    }
    makeRoom(stride);
    scan.sumsOfAll(
        packed,
        0,
        groups,
        isExchanged(),
        d,
        segment.image(),
        segment.panelAt(block.firstPanel),
        block.panels,
        sums,
        stride);
  }

  /**
   * Offers the block's rows to a query by their sums, which begin at {@code at}: as many at a time as were offered before, so that these limit
   * others.
   */
  private void offerSums(PanelScan scan, Query query, int at, float greatestRest) {
    Ranking ranking = query.ranking;
    for (int p = 0, n; p < block.panels; p += n) {
      n = Math.clamp(query.scanned, 1, block.panels - p);
      query.scanned += n;
      float limit = query.bounds.mostOfQuery(block, ranking.reach(), greatestRest);
      int first = p * LANES;
      int keeps = scan.keep(sums, at + first, rests, first, n, limit, kept);
      for (int s = 0; s < keeps; s++) {
        int from = first + kept[s] * LANES;
        for (int r = from; r < Math.min(from + LANES, block.rows); r++) {
          if (!(sums[at + r] - rests[r] > limit)) {
            offer(query, r, sums[at + r]);
          }
        }
      }
    }
  }

  // --- kernels for matrices

  /**
   * Whether kernels for matrices compute the divergences of all rows of a segment. Of doubles those recompute too many where Gaussians are alike,
   * while bounds exclude them.
   */
  private boolean isByKernels(Segment segment) {
    return hasNoBounds(segment, formula.isOfPoints())
        ? segment.hasRoomForBatches()
        : areMany && !segment.isDouble() && !queries[0].batch().isDouble();
  }

  /** Whether so many queries have tiles, or kernels for matrices, go over a segment like this. */
  static boolean areMany(Batch queries, Segment like) {
    return like.hasPanels()
        ? queries.size() >= MANY
        : queries.size() >= MANY_OF_TWO && !queries.isDouble();
  }

  /** Whether nothing bounds what is asked for of a segment's rows, of points or else of Gaussians, but the values. */
  static boolean hasNoBounds(Segment segment, boolean arePoints) {
    return arePoints ? !segment.hasPanels() : segment.coordinates() == Coordinates.NONE;
  }

  private void scanByKernels(Segment segment, int begin, int end, SharedLimits limits) {
    int most = segment.rowsOfBatch();
    for (int row = begin; row < end && !skips(); ) {
      int first = row / most * most;
      boolean keeps = hasNoBounds(segment, formula.isOfPoints()) && !segment.isOpen();
      Batch batch;
      if (keeps) {
        batch = segment.kept(row / most, !formula.needsInverse());
      } else {
        spare = segment.batch(row, Math.min(most, end - row), spare, !formula.needsInverse());
        batch = spare;
      }
      int from = keeps ? row - first : 0;
      int to = keeps ? Math.min(end - first, batch.size()) : batch.size();
      bytesScanned += (to - from) * segment.rowBytes();
      offerAll(batch, from, to, row, limits);
      row += to - from;
    }
  }

  /** Offers rows [from, to) of a batch of references to all queries, of which the first is the row {@code row} of the segment. */
  private void offerAll(Batch batch, int from, int to, int row, SharedLimits limits) {
    Batch asked = queries[0].batch();
    int first = queries[0].row;
    int width = to - from;
    double error = Pair.error(asked, batch);
    double offset = references.offset(batch);
    for (int i = 0; i < count && !skips(); i += PANEL) {
      int n = Math.min(PANEL, count - i);
      checkInterrupt();
      if (!compute(asked, first + i, first + i + n, batch, from, to, i == 0)) {
        return;
      }
      for (int s = 0; s < n; s++) {
        Query query = queries[i + s];
        query.ranking.limit(limits.get(i + s));
        offerValues(query, s * width, width, row, error, offset);
        limits.put(i + s, query.ranking.limit());
      }
    }
  }

  /** Computes a block of divergences, of a matrix that {@code begins} with it or has begun; returns false if the time is up before its end. */
  private boolean compute(
      Batch asked, int row0, int row1, Batch batch, int from, int to, boolean begins) {
    if (isTimed) {
      stopAt(end);
    }
    try {
      if (begins) {
        kernels.begin(asked, batch, isExchanged());
      }
      kernels.block(row0, row1, from, to, values64);
      return true;
    } catch (Stopped e) {
      hasSkipped = true;
      return false;
    } finally {
      goOn();
    }
  }

  /** Offers the references of a block's row to its query; {@code offset} is added to their values. */
  private void offerValues(Query query, int at, int width, int row, double error, double offset) {
    if (positions.length < width) {
      positions = new int[width];
    }
    Ranking ranking = query.ranking;
    RowScan scan = kernels.scan();
    int n = FIRST_VALUES;
    for (int from = 0; from < width; from += n, n *= 4) {
      int to = from + Math.min(n, width - from);
      double most = Ranking.mostOf(ranking.reach(), error, offset);
      int found = scan.atMost(most, values64.block(), at + from, at + to, positions);
      for (int s = 0; s < found; s++) {
        int place = row + from + positions[s];
        double value = values64.block()[at + from + positions[s]];
        if (value <= Ranking.mostOf(ranking.reach(), error, offset) && counts(query, place)) {
          ranking.offerValue(place(place), value, error, offset);
          makeFewer(query);
        }
      }
    }
  }

  // --- sums of codes

  /**
   * Begins a part of a segment for queries that nothing limits yet: sums all codes of some panels, and limits each query by the divergences
   * of the rows that promise most. Returns how many panels are done.
   */
  private int sample(int begin, int end, SharedLimits limits) {
    int n = Math.clamp((end - begin) / SAMPLED, LEAST_SAMPLED, MOST_SAMPLED) & -2;
    if (n > end - begin
        || n * segment().panelBytes() > MOST_SAMPLE_BYTES
        || nearest > n * LANES / SAMPLE_OF_ONE) {
      return 0;
    }
    for (int i = 0; i < count; i++) {
      if (queries[i].ranking.limit() < Double.POSITIVE_INFINITY) {
        return 0;
      }
    }
    for (int i = 0; i < count; i++) {
      checkInterrupt();
      sample(queries[i], begin, n);
      limits.put(i, queries[i].ranking.limit());
    }
    return n;
  }

  private void sample(Query query, int begin, int n) {
    query.coded.limit(Double.POSITIVE_INFINITY);
    sumCodes(query, begin / 2, n / 2);
    int first = begin * LANES;
    int rows = Math.min(segment().size() - first, n * LANES);
    int found = choosePromising(query, first, rows);
    Ranking ranking = query.ranking;
    int before = ranking.count();
    for (int s = 0; s < found; s++) {
      ranking.offerBounded(references.of(query), place(first + promised[s]));
    }
    if (found < nearest) { // no other row counts
      return;
    }
    int lefts = collectLeft(query, first, rows);
    if (lefts < 0) {
      ranking.withdraw(before);
      scanPanels(query, begin, n);
      return;
    }
    for (int s = 0; s < found; s++) {
      sum[promised[s]] = Float.POSITIVE_INFINITY; // not again
    }
    for (int s = 0; s < lefts; s++) {
      if (sum[left[s]] < Float.POSITIVE_INFINITY) {
        offerCoded(query, first + left[s], sum[left[s]]);
      }
    }
    ranking.narrow(references.of(query));
  }

  /** Chooses as many rows as neighbors are wanted, or all that count: those whose sums of codes promise most. Returns their number. */
  private int choosePromising(Query query, int first, int rows) {
    Codes codes = query.coded.codes();
    if (promises.length < nearest) {
      promises = new float[nearest];
      promised = new int[nearest];
    }
    int found = 0;
    for (int r = 0; r < rows; r++) {
      float promise = sum[r] - query.coded.counted(codes.logs(first + r));
      if ((found < nearest || promise < promises[found - 1]) && counts(query, first + r)) {
        found = Math.min(found + 1, nearest);
        int at = found - 1;
        for (; at > 0 && promises[at - 1] > promise; at--) {
          promises[at] = promises[at - 1];
          promised[at] = promised[at - 1];
        }
        promises[at] = promise;
        promised[at] = r;
      }
    }
    return found;
  }

  /** Collects the rows of a sample that the sums of codes leave; returns their number, or −1 if they are too many. */
  private int collectLeft(Query query, int first, int rows) {
    Codes codes = query.coded.codes();
    int room = makeRoomForLeft(keepsAllLeft() ? rows : rows / FEW_OF_SAMPLE);
    int lefts = 0;
    for (int r = 0; r < rows; r++) {
      double least = query.coded.lower(sum[r], codes.slack(first + r), codes.logs(first + r));
      if (least <= query.ranking.reach()) {
        if (lefts == room) {
          return -1;
        }
        left[lefts++] = r;
      }
    }
    return lefts;
  }

  /**
   * Scans the codes of the panels [first, first + n) for one query; returns false if they leave so many rows that floats, which are to be
   * scanned then, exclude more in the time.
   */
  private boolean scanCodes(Query query, int first, int n) {
    query.coded.limit(query.ranking.reach());
    int keeps = sumCodes(query, first / 2, Math.ceilDiv(n, 2));
    int rows = Math.min(segment().size() - first * LANES, n * LANES);
    int room = makeRoomForLeft(keepsAllLeft() ? rows : rows / FEW);
    int lefts = 0;
    for (int s = 0; s < keeps; s++) {
      int end = Math.min(rows, (kept[s] + 1) * CODED);
      for (int r = kept[s] * CODED; r < end; r++) {
        if (!(sum[r] > most[r])) {
          if (lefts == room) {
            query.codesLeft(rows, rows);
            return false;
          }
          left[lefts++] = r;
        }
      }
    }
    if (segment().hasPanels()) {
      query.codesLeft(lefts, rows);
    }
    for (int s = 0; s < lefts; s++) {
      offerCoded(query, first * LANES + left[s], sum[left[s]]);
    }
    return true;
  }

  private int sumCodes(Query query, int panel, int n) {
    Codes codes = query.coded.codes();
    makeRoom(n * CODED);
    lastWord = codes.last(panel + n - 1);
    Poll.now();
    bytesScanned += n * codes.panelBytes();
    return kernels
        .codes(segment().dimension())
        .sums(
            query.coded.terms,
            codes.words(),
            query.coded.limit,
            segment().image(),
            codes.panelAt(panel),
            n,
            most,
            sum,
            kept);
  }

  /** Offers a row that the sum of its codes leaves. */
  private void offerCoded(Query query, int row, float s) {
    Codes codes = query.coded.codes();
    double low = query.coded.lower(s, codes.slack(row), codes.logs(row));
    if (low <= query.ranking.reach() && counts(query, row)) {
      query.ranking.offerUnbounded(place(row), low);
      makeFewer(query);
    }
  }

  private int makeRoomForLeft(int rows) {
    int room = Math.max(1, rows);
    if (left.length < room) {
      left = new int[room];
    }
    return room;
  }

  private void makeRoom(int rows) {
    if (most.length < rows) {
      most = new float[rows];
      sum = new float[rows];
      kept = new int[rows / LANES];
    }
  }

  // --- sums of floats

  private void load(int panel, int n) {
    block.load(segment(), panel, n);
    bytesScanned += segment().hasPanels() ? n * segment().panelBytes() : 0;
  }

  private void scanBlock(Query query) {
    if (segment().hasPanels()) {
      scanFloats(query);
    } else {
      scanValues(query);
    }
  }

  /** Whether rows that codes leave are all offered: there are no floats to exclude more, or no values are computed yet. */
  private boolean keepsAllLeft() {
    return isApproximate() || !segment().hasPanels();
  }

  /** Offers all rows of the block, by their values, if these may be computed. */
  private void scanValues(Query query) {
    References source = references.of(query);
    for (int row = block.firstRow(); row < block.firstRow() + block.rows; row++) {
      if (counts(query, row)) {
        if (isApproximate()) {
          query.ranking.offerUnbounded(place(row), 0);
        } else {
          query.ranking.offerBounded(source, place(row));
        }
        makeFewer(query);
      }
    }
  }

  private void scanPanels(Query query, int begin, int n) {
    int step = Block.mostPanels(segment());
    for (int p = begin; p < begin + n; p += step) {
      checkInterrupt();
      load(p, Math.min(step, begin + n - p));
      scanBlock(query);
    }
  }

  /** Scans the block for one query, of the first panels only a few at a time, as nothing limits what these leave. */
  private void scanFloats(Query query) {
    makeRoom(block.panels * LANES);
    for (int p = 0, n; p < block.panels; p += n) {
      n = block.panels - p;
      if (query.ranking.reach() == Double.POSITIVE_INFINITY) {
        n = Math.clamp(query.scanned, 1, n);
      }
      query.bounds.most(block, p * LANES, n * LANES, query.ranking.reach(), most);
      int keeps =
          kernels
              .panels(segment().dimension())
              .sums(
                  query.bounds.query,
                  isExchanged(),
                  segment().dimension(),
                  segment().image(),
                  segment().panelAt(block.firstPanel + p),
                  n,
                  most,
                  sum,
                  kept);
      query.scanned += n;
      for (int s = 0; s < keeps; s++) {
        offerPanel(query, p, kept[s]);
      }
    }
  }

  /** Offers the rows of a panel that its sums leave, the one after {@code before} of the block. */
  private void offerPanel(Query query, int before, int panel) {
    int from = panel * LANES;
    int n = Math.min(LANES, block.rows - (before * LANES + from));
    for (int l = from; l < from + n; l++) {
      if (!(sum[l] > most[l])) {
        offer(query, before * LANES + l, sum[l]);
      }
    }
  }

  /** Offers a row of the block, by its sum. */
  private void offer(Query query, int r, float s) {
    Ranking ranking = query.ranking;
    double low = query.bounds.lower(block, r, s);
    int row = block.firstRow() + r;
    if (low > ranking.reach() || !counts(query, row)) {
      return;
    }
    double high = query.bounds.upper(block, r, s);
    doubtful += high > ranking.reach() ? 1 : 0;
    if (high < Double.POSITIVE_INFINITY || options.isWithin()) {
      ranking.offer(place(row), low, high);
    } else if (isApproximate()) {
      ranking.offerUnbounded(place(row), low);
    } else {
      ranking.offerBounded(references.of(query), place(row));
    }
    makeFewer(query);
  }

  // --- what bounds leave undecided

  /** Makes a query's candidates fewer, if they are too many to be kept. */
  private void makeFewer(Query query) {
    Ranking ranking = query.ranking;
    if (!ranking.isFull()) {
      return;
    }
    if (options.isWithin() && !isApproximate()) {
      ranking.boundAll(references.of(query));
      options.checkPairs(ranking.countWithin(radius));
    } else if (!options.isWithin()) {
      ranking.narrow(references.of(query));
    }
    ranking.keepFew();
  }

  /** Decides between a query's candidates: leaves the nearest, or those within the radius, with their ids and exact values. */
  void decide(int i) {
    Ranking ranking = queries[i].ranking;
    References source = references.of(queries[i]);
    if (options.isWithin()) {
      decided += ranking.decideWithin(source, radius);
      options.checkPairs(ranking.count());
    } else {
      decided += ranking.decideNearest(source);
    }
  }

  private void look() {
    checkInterrupt();
    pass(Checkpoint.LOOK);
  }
}
