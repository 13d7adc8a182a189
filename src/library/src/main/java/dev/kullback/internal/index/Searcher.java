package dev.kullback.internal.index;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.engine.Kernels;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.kernel.CodeScan;
import dev.kullback.internal.kernel.PanelScan;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A thread at work on searches. It scans panels, block by block, for up to {@link #MOST_QUERIES} queries at a time, and keeps the references
 * that their {@link Bounds} leave; then it computes these references' exact values, as far as they decide. A warm one allocates nothing.
 */
final class Searcher extends Worker {
  /** Queries that share the reading of a block. */
  static final int MOST_QUERIES = 16;

  /** Survivors for which the first query, the only one of a call without a batch, keeps memory. */
  private static final int MOST_KEPT = 1 << 16;

  /** Survivors for which each of the other queries keeps memory. */
  private static final int MOST_KEPT_OF_BATCH = 1 << 12;

  private static final int LANES = PanelScan.LANES;
  private static final int CODED = CodeScan.LANES;

  /** If codes leave more than 1/{@value} of a block's rows, a scan of floats is cheaper than these rows' values. */
  private static final int FEW = 16;

  /** {@link #FEW} of the sample, whose limit is still loose. */
  private static final int FEW_OF_SAMPLE = 4;

  /** Survivors without an upper bound that are kept before their values are computed, the most promising first. */
  private static final int MOST_UNBOUNDED = 32;

  /** The sample is 1/{@value} of the panels, but between {@link #LEAST_SAMPLED} and {@link #MOST_SAMPLED}. */
  private static final int SAMPLED = 16;

  private static final int LEAST_SAMPLED = 32;
  private static final int MOST_SAMPLED = 256;

  /** Bytes of floats of the panels of a sample, at most; their codes take 0.2 ms. */
  private static final long MOST_SAMPLE_BYTES = 1 << 24;

  /** Rows of a sample for each of the nearest, at least. */
  private static final int SAMPLE_OF_ONE = 16;

  private static final DiagonalBatch[] NONE = {};

  private final Pair pair = new Pair(Kl.FORWARD, this);
  private final Runnable look = this::look; // made once, as it is allocated
  private final Kernels kernels = Kernels.ofIndex(this, pair);
  private final Block block = new Block();
  private float[] most = {};
  private float[] sum = {};
  private int[] kept = {};
  private int[] left = {};

  /** Rows that promise most, and how much: the less, the more. */
  private int[] promised = {};

  private float[] promises = {};

  /** Bounds of those rows. */
  private double[] lows = {};

  private double[] highs = {};

  /** Bounds of the divergence that was looked at last. */
  private double low;

  private double high;

  /** The last word of the codes that were read; kept so that no compiler leaves out reading it. */
  int lastWord;

  private final Query[] queries = new Query[MOST_QUERIES];
  private int count;

  /** Slots for references of each kind and precision, two of each. */
  private final List<DiagonalBatch[]> slots = new ArrayList<>();

  private DiagonalBatch[] last = NONE;

  private final DiagonalBatch querySlot;

  private Snapshot snapshot = Snapshot.EMPTY;
  private SearchOptions options = SearchOptions.NONE;
  private int nearest;

  // of this call
  long survived;
  long bytesRead;

  Searcher(int dimension) {
    querySlot = DiagonalBatch.ofSlot(dimension, Scale.STD, false);
    Arrays.setAll(queries, i -> new Query());
  }

  /** Begins a search for the nearest k, or for all within a radius if k is 0. */
  void start(Snapshot from, SearchOptions how, int k) {
    snapshot = from;
    options = how;
    nearest = k == 0 ? 0 : Math.clamp(from.size(), 1, k);
  }

  /** Takes the rows [first, first + n) of a batch as queries. */
  void ask(DiagonalBatch batch, int first, int n) {
    count = n;
    for (int i = 0; i < n; i++) {
      queries[i].start(batch, first + i, nearest, options);
    }
  }

  /** Takes a query of floats. */
  void ask(float[] mean, int meanAt, float[] std, int stdAt) {
    querySlot.fill(mean, meanAt, std, stdAt);
    ask(querySlot, 0, 1);
  }

  /** The query that {@link #ask(float[], int, float[], int)} took. */
  DiagonalBatch querySlot() {
    return querySlot;
  }

  /** Neighbors that are wanted, of those that there are; 0 in a search within a radius. */
  int nearest() {
    return nearest;
  }

  Survivors survivors(int i) {
    return queries[i].survivors;
  }

  int queries() {
    return count;
  }

  /** Forgets the call. */
  void clear() {
    snapshot = Snapshot.EMPTY;
    options = SearchOptions.NONE;
    pair.clear();
    for (int i = 0; i < MOST_QUERIES; i++) { // an earlier task may have had more queries
      queries[i].clear(i == 0 ? MOST_KEPT : MOST_KEPT_OF_BATCH);
    }
    count = 0;
    survived = 0;
    bytesRead = 0;
    reset();
  }

  // --- scan

  /** Scans the panels [from, to) of all segments, in their order. */
  void scan(long from, long to, SharedLimits limits) {
    long first = 0;
    LiveSegment[] segments = snapshot.segments();
    for (int k = 0; k < segments.length; k++) {
      int panels = segments[k].segment().panels();
      int begin = part(from - first, panels);
      int end = part(to - first, panels);
      scan(k, begin, end, limits);
      first += panels;
    }
  }

  /** Puts the end of a part where a panel of codes ends. */
  private static int part(long end, int panels) {
    return end >= panels ? panels : Math.clamp(end, 0, panels) & -2;
  }

  void scanAll() {
    scan(0, Long.MAX_VALUE, SharedLimits.NONE);
  }

  private void scan(int index, int begin, int end, SharedLimits limits) {
    Segment segment = snapshot.segments()[index].segment();
    int step = Block.mostPanels(segment);
    if (begin == end) {
      return;
    }
    boolean areCoded = true;
    for (int i = 0; i < count; i++) {
      queries[i].bounds.order(segment);
      queries[i].survivors.limit(limits.get(i));
      areCoded &= queries[i].enter(segment);
    }
    int from = begin;
    if (areCoded && !options.isWithin()) {
      from += sample(index, begin, end, limits);
    }
    for (int p = from; p < end; p += step) {
      int n = Math.min(step, end - p);
      boolean isLoaded = false;
      for (int i = 0; i < count; i++) {
        checkTime();
        Query query = queries[i];
        query.survivors.limit(limits.get(i));
        if (!query.readsCodes() || !scanCodes(query, index, p, n)) {
          if (!isLoaded) {
            load(segment, p, n);
            isLoaded = true;
          }
          scanBlock(query, index);
        }
        limits.put(i, query.survivors.limit());
      }
      pass((long) count * n * LANES * segment.dimension());
    }
  }

  /**
   * Begins a part of a segment for queries that nothing limits yet: sums all codes of some panels, and limits each query by the divergences
   * of the rows that promise most. Returns how many panels are done.
   */
  private int sample(int index, int begin, int end, SharedLimits limits) {
    Segment segment = snapshot.segments()[index].segment();
    int n = Math.clamp((end - begin) / SAMPLED, LEAST_SAMPLED, MOST_SAMPLED) & -2;
    if (n > end - begin
        || n * segment.panelBytes() > MOST_SAMPLE_BYTES
        || nearest > n * LANES / SAMPLE_OF_ONE) {
      return 0;
    }
    for (int i = 0; i < count; i++) {
      if (queries[i].survivors.limit() < Double.POSITIVE_INFINITY) {
        return 0;
      }
    }
    for (int i = 0; i < count; i++) {
      checkTime();
      sample(queries[i], index, begin, n);
      limits.put(i, queries[i].survivors.limit());
    }
    return n;
  }

  private void sample(Query query, int index, int begin, int n) {
    LiveSegment part = snapshot.segments()[index];
    Segment segment = part.segment();
    Codes codes = query.coded.codes();
    if (promises.length < nearest) {
      promises = new float[nearest];
      promised = new int[nearest];
      lows = new double[nearest];
      highs = new double[nearest];
    }
    query.coded.limit(Double.POSITIVE_INFINITY, query.bounds);
    sumCodes(query, segment, begin / 2, n / 2);
    int found = 0;
    int first = begin * LANES;
    int rows = Math.min(segment.size() - first, n * LANES);
    for (int r = 0; r < rows; r++) {
      float promise = sum[r] - codes.logs(first + r);
      if ((found < nearest || promise < promises[found - 1]) && counts(part, first + r)) {
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
    if (found < nearest) { // no other row counts
      for (int s = 0; s < found; s++) {
        considerCoded(query, index, first + promised[s], sum[promised[s]]);
      }
      return;
    }
    double limit = 0;
    for (int s = 0; s < found; s++) {
      bound(query, (long) index << 32 | first + promised[s]);
      lows[s] = low;
      highs[s] = high;
      limit = Math.max(limit, high);
    }
    query.survivors.limit(limit);
    int lefts = leaves(query, first, rows);
    if (lefts < 0) {
      scanPanels(query, index, begin, n);
      return;
    }
    for (int s = 0; s < found; s++) {
      int row = first + promised[s];
      query.survivors.add(lows[s], highs[s], (long) index << 32 | row);
      sum[promised[s]] = Float.POSITIVE_INFINITY; // not again
    }
    for (int s = 0; s < lefts; s++) {
      if (sum[left[s]] < Float.POSITIVE_INFINITY) {
        considerCoded(query, index, first + left[s], sum[left[s]]);
      }
    }
    refine(query);
  }

  /** Collects the rows that the sums of codes leave; returns their number, or −1 if they are too many. */
  private int leaves(Query query, int first, int rows) {
    Codes codes = query.coded.codes();
    int room = makeRoomForLeft(rows / FEW_OF_SAMPLE);
    int lefts = 0;
    for (int r = 0; r < rows; r++) {
      double least =
          query.coded.lower(sum[r], codes.slack(first + r), codes.logs(first + r), query.bounds);
      if (least <= query.survivors.limit()) {
        if (lefts == room) {
          return -1;
        }
        left[lefts++] = r;
      }
    }
    return lefts;
  }

  private void scanPanels(Query query, int index, int begin, int n) {
    Segment segment = snapshot.segments()[index].segment();
    int step = Block.mostPanels(segment);
    for (int p = begin; p < begin + n; p += step) {
      checkTime();
      load(segment, p, Math.min(step, begin + n - p));
      scanBlock(query, index);
    }
  }

  private void load(Segment segment, int panel, int n) {
    block.load(segment, panel, n);
    bytesRead += n * segment.panelBytes();
  }

  /**
   * Scans the codes of the panels [first, first + n) for one query; returns false if they leave so many rows that floats, which are to be
   * scanned then, exclude more in the time.
   */
  private boolean scanCodes(Query query, int index, int first, int n) {
    Segment segment = snapshot.segments()[index].segment();
    query.coded.limit(query.survivors.limit(), query.bounds);
    int keeps = sumCodes(query, segment, first / 2, Math.ceilDiv(n, 2));
    int rows = Math.min(segment.size() - first * LANES, n * LANES);
    int room = makeRoomForLeft(rows / FEW);
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
    query.codesLeft(lefts, rows);
    for (int s = 0; s < lefts; s++) {
      considerCoded(query, index, first * LANES + left[s], sum[left[s]]);
    }
    return true;
  }

  private int sumCodes(Query query, Segment segment, int panel, int n) {
    Codes codes = query.coded.codes();
    makeRoom(n * CODED);
    lastWord = codes.last(panel + n - 1);
    Poll.now();
    bytesRead += n * codes.panelBytes();
    return kernels
        .codes(segment.dimension())
        .sums(
            query.coded.terms,
            codes.words(),
            query.coded.limit,
            segment.image(),
            codes.panelAt(panel),
            n,
            most,
            sum,
            kept);
  }

  private void considerCoded(Query query, int index, int row, float s) {
    LiveSegment part = snapshot.segments()[index];
    Codes codes = query.coded.codes();
    double low = query.coded.lower(s, codes.slack(row), codes.logs(row), query.bounds);
    if (low > query.survivors.limit() || !counts(part, row)) {
      return;
    }
    query.survivors.add(low, Double.POSITIVE_INFINITY, (long) index << 32 | row);
    if (!options.isWithin() && ++query.unbounded >= MOST_UNBOUNDED) {
      query.unbounded = 0;
      refine(query);
    }
    if (query.survivors.count >= query.survivors.room) {
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

  /** Scans a block for one query, of the first panels only a few at a time, as nothing limits what survives of these. */
  private void scanBlock(Query query, int index) {
    Segment segment = snapshot.segments()[index].segment();
    makeRoom(block.panels * LANES);
    for (int p = 0, n; p < block.panels; p += n) {
      n = block.panels - p;
      if (query.survivors.limit() == Double.POSITIVE_INFINITY) {
        n = Math.clamp(query.scanned, 1, n);
      }
      query.bounds.most(block, p * LANES, n * LANES, query.survivors.limit(), most);
      int keeps =
          kernels
              .panels(segment.dimension())
              .sums(
                  query.bounds.query,
                  options.reverse(),
                  segment.dimension(),
                  segment.image(),
                  segment.panelAt(block.firstPanel + p),
                  n,
                  most,
                  sum,
                  kept);
      query.scanned += n;
      for (int s = 0; s < keeps; s++) {
        collect(query, index, p, kept[s]);
      }
    }
  }

  /** Looks at the references of a panel that was kept, the one after {@code before} of the block. */
  private void collect(Query query, int index, int before, int panel) {
    int from = panel * LANES;
    int n = Math.min(LANES, block.rows - (before * LANES + from));
    for (int l = from; l < from + n; l++) {
      if (!(sum[l] > most[l])) {
        consider(query, index, before * LANES + l, sum[l]);
      }
    }
  }

  private void consider(Query query, int index, int r, float s) {
    Survivors survivors = query.survivors;
    double low = query.bounds.lower(block, r, s);
    if (low > survivors.limit()) {
      return;
    }
    LiveSegment part = snapshot.segments()[index];
    int row = block.firstRow() + r;
    if (!counts(part, row)) {
      return;
    }
    long place = (long) index << 32 | row;
    double high = query.bounds.upper(block, r, s);
    if (high < Double.POSITIVE_INFINITY || options.isWithin()) {
      survivors.add(low > Double.NEGATIVE_INFINITY ? low : -Double.MAX_VALUE, high, place);
    } else {
      addPrecise(query, place);
    }
    if (survivors.count >= survivors.room) {
      makeFewer(query);
    }
  }

  /** Whether a row may be found; its id is read only if it decides, as it is far from what else is read. */
  private boolean counts(LiveSegment part, int row) {
    if (!part.isLive(row) || options.takesAll()) {
      return part.isLive(row);
    }
    boolean accepted = options.accepts(part.segment().id(row));
    if (options.filter() != null) {
      checkTime(); // it may take long
    }
    return accepted;
  }

  private void makeFewer(Query query) {
    Survivors survivors = query.survivors;
    if (options.isWithin()) {
      for (int s = 0; s < survivors.count; s++) {
        if (survivors.upper[s] == Double.POSITIVE_INFINITY) {
          bound(query, survivors.place[s]);
          survivors.upper[s] = high;
        }
      }
      checkPairs(survivors);
    } else {
      refine(query);
    }
    if (survivors.count > survivors.room / 2) {
      survivors.room = (int) Math.min(2L * survivors.room, Integer.MAX_VALUE);
    }
  }

  // --- values

  /** Leaves the nearest k, or those within the radius, in their order, with their values as lower bounds. */
  void rank(int i) {
    Query query = queries[i];
    Survivors survivors = query.survivors;
    survivors.drop();
    if (!options.isWithin() && (query.unbounded > 0 || survivors.count > 2L * nearest)) {
      refine(query);
    }
    survived += survivors.count;
    round(query);
    survivors.sort(options.isWithin(), look);
    if (options.isWithin()) {
      checkPairs(survivors);
    } else {
      survivors.count = Math.min(survivors.count, nearest);
    }
  }

  private void checkPairs(Survivors survivors) {
    int certain = 0;
    for (int s = 0; s < survivors.count; s++) {
      certain += survivors.upper[s] <= options.radius() ? 1 : 0;
    }
    options.checkPairs(certain);
  }

  /** Bounds survivors by values, the most promising first, until the limit excludes the others. */
  private void refine(Query query) {
    Survivors survivors = query.survivors;
    survivors.drop();
    survivors.sort(false, look);
    int n = survivors.count;
    survivors.restart();
    for (int s = 0; s < n && survivors.lower[s] <= survivors.limit(); s++) {
      double low = survivors.lower[s];
      double high = survivors.upper[s];
      if (isPrecise(low, high)) {
        survivors.add(low, high, survivors.place[s]);
      } else if (high == Double.POSITIVE_INFINITY) {
        bound(query, survivors.place[s]);
        survivors.add(this.low, this.high, survivors.place[s]);
      } else {
        addPrecise(query, survivors.place[s]);
      }
    }
  }

  /** Bounds a reference's divergence, by {@link DoubleBounds} if it can. */
  private void bound(Query query, long place) {
    checkTime();
    if (!options.reverse() && query.sums.of(reference(place))) {
      low = query.sums.lower;
      high = query.sums.upper;
    } else {
      double kl = precise(query, place);
      low = atLeast(kl);
      high = atMost(kl);
    }
  }

  private static boolean isPrecise(double low, double high) {
    return high <= low * (1 + 4 * Pair.PRECISE_ERROR);
  }

  private void addPrecise(Query query, long place) {
    double kl = precise(query, place);
    query.survivors.add(atLeast(kl), atMost(kl), place);
  }

  /** A reference's divergence to {@link Pair#PRECISE_ERROR}. */
  private double precise(Query query, long place) {
    checkTime();
    DiagonalBatch reference = reference(place);
    Batch q = options.reverse() ? reference : query.batch();
    Batch p = options.reverse() ? query.batch() : reference;
    return options.reverse() ? pair.precise(q, 0, p, query.row) : pair.precise(q, query.row, p, 0);
  }

  private static double atLeast(double precise) {
    double low = precise * (1 - Pair.PRECISE_ERROR);
    return isSubnormal(precise) ? Math.nextDown(low) : low;
  }

  private static double atMost(double precise) {
    double high = precise * (1 + Pair.PRECISE_ERROR);
    return isSubnormal(precise) ? Math.nextUp(high) : high;
  }

  private static boolean isSubnormal(double precise) {
    return precise > 0 && precise < Double.MIN_NORMAL;
  }

  /** Gives the survivors their exact values and their ids, and drops those that are not within the radius. */
  private void round(Query query) {
    Survivors survivors = query.survivors;
    double value = Double.NaN;
    DiagonalBatch[] before = NONE;
    int n = survivors.count;
    survivors.restart();
    for (int s = 0; s < n; s++) {
      checkTime();
      DiagonalBatch reference = reference(survivors.place[s]);
      if (last != before || !last[0].isEqual(0, last[1], 0)) {
        value = value(query, reference);
      }
      before = last;
      survivors.add(value, value, survivors.place[s]);
    }
    for (int s = 0; s < survivors.count; s++) {
      survivors.id[s] = segment(survivors.place[s]).id((int) survivors.place[s]);
    }
  }

  /** The exact value; in a search within a radius ∞ if it exceeds that, be it by less than its rounding. */
  private double value(Query query, DiagonalBatch reference) {
    boolean reverse = options.reverse();
    Batch q = reverse ? reference : query.batch();
    Batch p = reverse ? query.batch() : reference;
    int i = reverse ? 0 : query.row;
    int j = reverse ? query.row : 0;
    double kl = pair.rounded(q, i, p, j);
    double radius = options.radius();
    if (options.isWithin()
        && radius < Double.POSITIVE_INFINITY
        && Math.abs(kl - radius) <= Pair.PRECISE_ERROR * radius
        && pair.exact(q, i, p, j, kl).isBeyond(radius, pair.tolerance(q.dimension()))) {
      return Double.POSITIVE_INFINITY;
    }
    return kl;
  }

  /** Reads a reference into a slot; the one before, if it was of its kind and precision, is in the other. */
  private DiagonalBatch reference(long place) {
    Segment segment = segment(place);
    DiagonalBatch[] two = slots(segment);
    DiagonalBatch older = two[0];
    two[0] = two[1];
    two[1] = older;
    segment.fill(older, (int) place);
    bytesRead += 2 * segment.rowBytes();
    last = two;
    return older;
  }

  private Segment segment(long place) {
    return snapshot.segments()[(int) (place >>> 32)].segment();
  }

  private DiagonalBatch[] slots(Segment segment) {
    for (int k = 0; k < slots.size(); k++) { // an iterator would be allocated
      DiagonalBatch[] two = slots.get(k);
      if (two[0].kind() == segment.kind() && two[0].isDouble() == segment.isDouble()) {
        return two;
      }
    }
    DiagonalBatch[] two = new DiagonalBatch[2];
    Arrays.setAll(
        two, k -> DiagonalBatch.ofSlot(segment.dimension(), segment.kind(), segment.isDouble()));
    slots.add(two);
    return two;
  }

  private void look() {
    checkTime();
    pass(Checkpoint.LOOK);
  }

  private void checkTime() {
    checkInterrupt();
    options.checkDeadline();
  }
}
