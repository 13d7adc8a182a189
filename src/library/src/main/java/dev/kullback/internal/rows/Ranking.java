package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.Unrounded;
import java.util.Arrays;

/**
 * The candidates of one search: places, such as columns of a matrix or rows of an index, that may be among the nearest k, or within a radius,
 * with bounds of their divergences. One whose lower bound exceeds the limit is no candidate: the limit is the radius, or comes from the k
 * least upper bounds.
 *
 * <p>The bounds come in one of two forms. A kernel's values have one relative error, and their places ascend: they are kept as they are, 16
 * bytes for each. They lower the limit when the list is full; the minima of groups of a row's first values may set it before. A reference
 * of an index has a lower and an upper bound of its own, and each upper bound may lower the limit at once.
 *
 * <p>Where bounds overlap, the {@link Source} decides, for as few candidates as it takes:
 *
 * <ul>
 *   <li>{@link #narrow} asks the source for tighter bounds, beginning with the least lower bound, and stops at the first candidate that the
 *       limit excludes. These are bounds of a value to {@link Pair#PRECISE_ERROR}, or at first looser ones of an index that take less time;
 *       values below double's least normal number may be wrong by a unit in the last place, too.
 *   <li>{@link #decideNearest} rounds what remains to double, for exact lists of batches and an index's nearest: they are ordered by these
 *       values and by place or id alone.
 *   <li>{@link #decideWithin} rounds likewise, and asks for the unrounded value where the rounded one is as near to the radius as its
 *       error.
 *   <li>{@link #order} is for lists of batches that are not exact: where two values next to each other are closer than their errors, it
 *       computes both to 1e-13, and if they are still too close, unrounded.
 * </ul>
 *
 * <p>A search of an index may end before it is complete, as its time is up or as it is to compute few values. Then the list drops candidates that
 * the limit does not exclude, those of the greatest lower bounds first, and keeps the least of these bounds: see {@link #unseen}.
 *
 * <p>Unrounded values within their tolerance count as equal: the one with the lower place comes first, and a search within a radius finds
 * both.
 */
public final class Ranking {
  /** Added to a rest, at most half an ulp, to make it positive, as sorting needs it. */
  private static final double REST_SHIFT = 0x1p-52;

  /** What an offset's own roundings, and those of a sum with it, may be of it, with some to spare. */
  private static final double ROUNDING = 0x1p-50;

  /** Candidates of a search with bounds of their own that are kept at first before they are made fewer. */
  private static final int LEAST_ROOM = 1024;

  /** Candidates without an upper bound that are kept before they get one, the most promising first. */
  private static final int MOST_UNBOUNDED = 32;

  /**
   * Candidates of a search within a radius that are read at once before each is decided: 100,000 of 1,000,000 × 64 took 1.90 times as long as {@code
   * KlEngine.within} instead of 2.21, and with 8 and every line 1.99 (one
   * thread, Intel, CPU family 6, JDK 25.0.3).
   */
  private static final int TOUCHED = 16;

  /** What a list is sorted by; where numbers are equal, by that of the next constant. */
  private enum Key {
    VALUE,
    REST,
    PLACE
  }

  private long[] place = {};
  private double[] value = {};

  /** Upper bounds, of candidates with bounds of their own; their lower ones are the values. */
  private double[] upper = {};

  private int count;

  /** Candidates that the list holds before it grows, or a search drops some; the arrays of an earlier search may be longer. */
  int room;

  /** Whether candidates have bounds of their own. */
  private boolean areApart;

  /** Relative error of a kernel's values. */
  private double error;

  /** Neighbors that are searched for; 0 in a search within a radius. */
  private int k;

  /** Greatest value that counts, or lower bound. */
  private double limit;

  /** The k least upper bounds, as a heap whose root is the greatest. */
  private double[] least = {};

  private int leasts;

  /** Candidates that were offered without an upper bound since the last {@link #narrow}. */
  private int unbounded;

  /** Values that are computed at most: of candidates that are bounded as they come, and of those that wait for the end. */
  private int mostBounded;

  private int mostWaiting;

  /** Candidates that were bounded as they came. */
  private int bounded;

  /** Whether candidates were dropped that the limit does not exclude, and the least of their lower bounds. */
  private boolean hasDropped;

  private double unseen;

  /** Lower bound beyond which candidates are dropped, though they may count. */
  private double cut;

  private final KeySort scratch;

  public Ranking(KeySort scratch) {
    this.scratch = scratch;
  }

  // --- beginning

  /**
   * Begins a search for the nearest k by a kernel's values, whose places ascend.
   *
   * @param places number of places at most
   * @param error relative error of the values
   * @param cut value from which on none counts
   */
  void startNearest(int k, int places, double error, double cut) {
    start(k, below(cut), false, Math.min(places, roomOfValues(k)));
    this.error = error;
  }

  private static double below(double cut) {
    return cut == Double.POSITIVE_INFINITY ? cut : Math.nextDown(cut);
  }

  /** Candidates that a search by a kernel's values keeps at first: the more, the fewer selections, each of which takes time in their number. */
  static int roomOfValues(int k) {
    return (int) Math.min(Batch.MOST_ELEMENTS, k + Math.max(64, k / 2L));
  }

  /**
   * Begins a search for the nearest k whose candidates have bounds of their own.
   *
   * @param values computed at most, k apart; {@link Integer#MAX_VALUE} for as many as it takes
   * @param parts of which each has a list of its own, before they are joined
   */
  public void startNearest(int k, int values, int parts) {
    start(k, Double.POSITIVE_INFINITY, true, Math.clamp(4L * k, LEAST_ROOM, 1 << 28));
    limitValues(values, parts);
    if (least.length < k) {
      least = new double[k];
    }
  }

  /** Begins a search for all within a radius whose candidates have bounds of their own, of which so many values are computed at most. */
  public void startWithin(double radius, int values) {
    start(0, radius, true, LEAST_ROOM);
    limitValues(values, 1);
  }

  private void limitValues(int values, int parts) {
    if (values < Integer.MAX_VALUE) {
      mostWaiting = values;
      mostBounded = values / 2 / parts;
      room = Math.clamp(2L * (k + (long) values), room, Batch.MOST_ELEMENTS);
    }
  }

  /** Begins a list of columns whose values are decided. */
  void startDecided() {
    start(0, Double.POSITIVE_INFINITY, false, place.length);
  }

  private void start(int k, double limit, boolean areApart, int room) {
    this.k = k;
    this.limit = limit;
    this.areApart = areApart;
    this.room = room;
    mostBounded = Integer.MAX_VALUE;
    mostWaiting = Integer.MAX_VALUE;
    bounded = 0;
    hasDropped = false;
    unseen = Double.POSITIVE_INFINITY;
    cut = Double.POSITIVE_INFINITY;
    restart();
    ensureCapacity(areApart ? 0 : room);
  }

  /** Becomes a copy of another list of the same search, and keeps the lower of both limits. */
  public void become(Ranking other) {
    restart();
    bounded = 0;
    offerAll(other);
  }

  /** Empties the list and keeps the limit; the caller offers each candidate again. */
  public void restart() {
    count = 0;
    leasts = 0;
    unbounded = 0;
  }

  /** Drops the arrays of a search that is done, if they have more candidates than are to be kept. */
  public void trim(int mostKept) {
    if (place.length > mostKept || least.length > mostKept) {
      count = 0;
      place = new long[0];
      value = new double[0];
      upper = new double[0];
      least = new double[0];
    }
  }

  // --- what is there

  public int count() {
    return count;
  }

  public long place(int s) {
    return place[s];
  }

  /** The s-th candidate's value, or lower bound. */
  public double value(int s) {
    return value[s];
  }

  /** Candidates that the arrays hold. */
  public int capacity() {
    return place.length;
  }

  /** Greatest value that counts in the search, or lower bound. */
  public double limit() {
    return limit;
  }

  /** Greatest lower bound of a candidate that is kept. */
  public double reach() {
    return Math.min(limit, cut);
  }

  /** Whether each candidate that the limit did not exclude was kept, or at least none that is nearer than the last of a full list. */
  public boolean isComplete() {
    double last = k == 0 ? limit : count == k ? value[k - 1] : Double.POSITIVE_INFINITY;
    return !hasDropped || (unseen > last && (k == 0 || count == k));
  }

  /** Least divergence that candidates that were dropped may have; ∞ if there are none. */
  public double unseen() {
    return unseen;
  }

  /** Whether values are to be computed for few candidates alone. */
  public boolean isApproximate() {
    return mostWaiting < Integer.MAX_VALUE;
  }

  /** Whether a search by a kernel's values has neither a candidate nor a limit. */
  boolean isUnbounded() {
    return count == 0 && limit == Double.POSITIVE_INFINITY;
  }

  /** Copies places and values to the starts of arrays. */
  public void copy(long[] places, double[] values) {
    System.arraycopy(place, 0, places, 0, count);
    System.arraycopy(value, 0, values, 0, count);
  }

  /** Copies columns and values to arrays from an index on. */
  void copy(int[] columns, double[] values, int at) {
    for (int s = 0; s < count; s++) {
      columns[at + s] = (int) place[s];
    }
    System.arraycopy(value, 0, values, at, count);
  }

  // --- bounds

  /** Returns the least number that a value with a relative error may stand for; 0 and ∞ are exact. */
  static double atLeast(double value, double error) {
    double low = value * (1 - error);
    return isSubnormal(value) ? Math.nextDown(low) : low;
  }

  /** Returns the greatest number that a value with a relative error may stand for. */
  static double atMost(double value, double error) {
    double high = value * (1 + error);
    return isSubnormal(value) ? Math.nextUp(high) : high;
  }

  private static boolean isSubnormal(double value) {
    return value > 0 && value < Double.MIN_NORMAL;
  }

  /** Returns the value from which on a later place is not among the nearest k if the k-th nearest has this value, however the errors fall. */
  private static double cut(double farthest, double error) {
    double cut = farthest * (1 + error) / (1 - error);
    return isSubnormal(farthest) ? Math.nextUp(Math.nextUp(cut)) : cut;
  }

  /** Returns the value from which on no place is among the nearest k, be it an earlier one, if the k-th nearest is at most that far. */
  static double cutOfAll(double farthest, double error) {
    return Math.max(cut(farthest, error), Math.nextUp(farthest));
  }

  // --- offering

  /** Takes a limit that others found. */
  public void limit(double other) {
    limit = Math.min(limit, other);
  }

  /** Limits an empty search by minima of groups of values to come: their k-th smallest bounds the k-th nearest value. */
  void limitByGroups(double[] minima, int n) {
    scratch.ensureCapacity(n);
    for (int g = 0; g < n; g++) {
      scratch.keys[g] = bits(minima[g]);
    }
    scratch.sort(n);
    limit = below(cutOfAll(Double.longBitsToDouble(scratch.keys[k - 1]), error));
  }

  /** Offers a kernel's value. */
  void offer(long itsPlace, double itsValue) {
    if (itsValue <= limit) {
      if (count == room && count > k) {
        prune();
        makeRoom();
      }
      append(itsPlace, itsValue);
      if (count == k) {
        limit = Math.min(limit, Double.MAX_VALUE);
      }
    }
  }

  /** Adds a candidate, of a decided value or before its bounds. */
  void append(long itsPlace, double itsValue) {
    if (areApart && count == place.length) {
      ensureCapacity(enlarged()); // the room is the caller's to mind
    } else if (!areApart && count == room) {
      enlarge();
    }
    place[count] = itsPlace;
    value[count++] = itsValue;
  }

  /** Offers a candidate with bounds of its own, which may come in any order; the caller asks {@link #isFull} then. */
  public void offer(long itsPlace, double low, double high) {
    if (!(low > limit)) { // NaN is no bound
      append(itsPlace, low > 0 ? low : 0);
      upper[count - 1] = high;
      if (k > 0) {
        lowerLimit(high);
      }
    }
  }

  /** Returns the greatest of a kernel's values that may stand for one of at most this. */
  public static double mostOf(double limit, double error) {
    return Math.nextUp(Math.nextUp(limit / (1 - error)));
  }

  /** The same of values to which {@code offset} is added: one that is negative leaves less than what the error is relative to. */
  public static double mostOf(double limit, double error, double offset) {
    return mostOf(limit - offset + ROUNDING * Math.abs(offset), error);
  }

  /**
   * Offers a candidate with a kernel's value of this error, in a search whose candidates have bounds of their own.
   *
   * @param offset is added to the value, not to its error
   */
  public void offerValue(long itsPlace, double itsValue, double error, double offset) {
    double rounding = ROUNDING * Math.abs(offset);
    double low = atLeast(itsValue, error) + (offset - rounding);
    offer(itsPlace, low, atMost(itsValue, error) + (offset + rounding));
  }

  /** Offers a candidate of which only a lower bound is known; the caller asks {@link #isFull} then. */
  public void offerUnbounded(long itsPlace, double low) {
    offer(itsPlace, low, Double.POSITIVE_INFINITY);
    unbounded++;
  }

  /** Offers a candidate with bounds that it asks for; the caller asks {@link #isFull} then. */
  public void offerBounded(Source source, long itsPlace) {
    source.bound(itsPlace, true);
    offer(itsPlace, source.lower, source.upper);
  }

  /** Tells that candidates are not offered that may have this divergence, or a greater one. */
  public void drop(double low) {
    hasDropped = true;
    // a computed divergence may be below the exact one by as much
    unseen = Math.min(unseen, Math.max(0, atLeast(low, 2 * Pair.PRECISE_ERROR)));
  }

  /** Drops the candidates from the n-th on, which are to be offered again, and keeps the limit. */
  public void withdraw(int n) {
    restart();
    for (int s = 0; s < n; s++) {
      offer(place[s], value[s], upper[s]);
    }
  }

  /** Offers all of another list. */
  public void offerAll(Ranking other) {
    for (int s = 0; s < other.count; s++) {
      offer(other.place[s], other.value[s], other.upper[s]);
      unbounded += other.upper[s] == Double.POSITIVE_INFINITY ? 1 : 0;
    }
    bounded += other.bounded;
    limit(other.limit);
    hasDropped |= other.hasDropped;
    unseen = Math.min(unseen, other.unseen);
    cut = Math.min(cut, other.cut);
  }

  /** Whether candidates are to be made fewer before others are offered. */
  public boolean isFull() {
    return count >= room || (k > 0 && unbounded >= MOST_UNBOUNDED && bounded < mostBounded);
  }

  private void lowerLimit(double high) {
    if (leasts < k) {
      raise(leasts++, high);
    } else if (high < least[0]) {
      sinkRoot(high);
    }
    if (leasts == k) {
      limit = Math.min(limit, least[0]);
    }
  }

  private void raise(int from, double high) {
    int at = from;
    while (at > 0 && least[(at - 1) / 2] < high) {
      least[at] = least[(at - 1) / 2];
      at = (at - 1) / 2;
    }
    least[at] = high;
  }

  /** Replaces the greatest of the k by another. */
  private void sinkRoot(double high) {
    int at = 0;
    for (int down = 1; down < k; down = 2 * at + 1) {
      if (down + 1 < k && least[down + 1] > least[down]) {
        down++;
      }
      if (least[down] <= high) {
        break;
      }
      least[at] = least[down];
      at = down;
    }
    least[at] = high;
  }

  private void ensureCapacity(int capacity) {
    if (place.length < capacity) {
      place = Arrays.copyOf(place, capacity);
      value = Arrays.copyOf(value, capacity);
    }
    if (areApart && upper.length < place.length) {
      upper = Arrays.copyOf(upper, place.length);
    }
  }

  private void enlarge() {
    room = enlarged();
    ensureCapacity(room);
  }

  private int enlarged() {
    return (int) Math.min(count + (count >> 1) + 64L, Batch.MOST_ELEMENTS);
  }

  /** Enlarges a list that would be full again at once, unless it drops candidates instead. */
  private void makeRoom() {
    if (!isApproximate() && count > room - (room >> 2)) {
      enlarge();
    }
  }

  // --- pruning

  /** Drops what the limit excludes, after it was lowered to what a kernel's values, which this sorts, say of the nearest k. */
  public void prune() {
    int from = 0;
    if (!areApart) {
      sort();
      if (count < k) {
        return;
      }
      limit = Math.nextDown(cut(value[k - 1], error));
      from = k;
    }
    int kept = from;
    for (int s = from; s < count; s++) {
      if (value[s] <= limit) {
        place[kept] = place[s];
        value[kept] = value[s];
        if (areApart) {
          upper[kept] = upper[s];
        }
        kept++;
      }
    }
    count = kept;
  }

  /** Drops all but the nearest k from a list whose order is certain. */
  void keepNearest() {
    count = k;
    limit = Math.nextDown(cut(value[k - 1], error));
  }

  /** Makes candidates of a search for the nearest fewer: bounds them by values, the most promising first, until the limit excludes the others. */
  public void narrow(Source source) {
    prune();
    boolean mayRepeat = !areApart; // an index would read both references
    takeApart();
    sort();
    int n = count;
    restart();
    long last = -1;
    for (int s = 0; s < n && value[s] <= limit; s++) {
      boolean isPrecise = upper[s] <= value[s] * (1 + 4 * Pair.PRECISE_ERROR);
      boolean stays = isPrecise || bounded >= mostBounded || source.isOver();
      if (!stays) {
        bounded++;
        if (!mayRepeat || last < 0 || !source.isSame(last, place[s])) {
          source.bound(place[s], upper[s] == Double.POSITIVE_INFINITY);
        }
        last = place[s];
      }
      unbounded += stays && !isPrecise && upper[s] == Double.POSITIVE_INFINITY ? 1 : 0;
      offer(place[s], stays ? value[s] : source.lower, stays ? upper[s] : source.upper);
    }
    makeRoom();
  }

  /** Drops candidates for good if they are many: all but those of the least lower bounds, and those that are known to be the nearest. */
  public void keepFew() {
    if (isApproximate() && count > room - (room >> 2)) {
      keep(mostWaiting);
    }
  }

  private void keep(int most) {
    sort();
    int kept = 0;
    int known = 0;
    int waiting = 0;
    for (int s = 0; s < count; s++) {
      if (known < k && upper[s] <= limit) {
        known++;
      } else if (waiting < most) {
        waiting++;
      } else {
        drop(value[s]);
        cut = Math.min(cut, value[s]);
        continue;
      }
      place[kept] = place[s];
      value[kept] = value[s];
      upper[kept++] = upper[s];
    }
    count = kept;
  }

  /** Drops the candidates from the n-th on for good. */
  private void dropFrom(int n) {
    for (int s = n; s < count; s++) {
      drop(value[s]);
    }
    count = n;
  }

  /** Gives a kernel's values bounds of their own. */
  private void takeApart() {
    if (!areApart) {
      areApart = true;
      ensureCapacity(count);
      least = least.length < k ? new double[k] : least;
      limit = Double.POSITIVE_INFINITY;
      for (int s = 0; s < count; s++) {
        upper[s] = atMost(value[s], error);
        value[s] = atLeast(value[s], error);
      }
    }
  }

  /** Gives each candidate of a search within a radius an upper bound. */
  public void boundAll(Source source) {
    for (int s = 0; s < count && !source.isOver(); s++) {
      if (upper[s] == Double.POSITIVE_INFINITY) {
        source.bound(place[s], true);
        upper[s] = source.upper;
      }
    }
    makeRoom();
  }

  /** Counts the candidates that are certainly within a radius. */
  public int countWithin(double radius) {
    int certain = 0;
    for (int s = 0; s < count; s++) {
      certain += upper[s] <= radius ? 1 : 0;
    }
    return certain;
  }

  // --- deciding

  /**
   * Leaves the nearest k with their values, rounded to double, and ids in the place of places, in their order.
   *
   * @return how many candidates' exact values that took
   */
  public int decideNearest(Source source) {
    prune();
    if (isApproximate()) {
      keep(Math.max(0, mostWaiting - bounded));
      mostBounded = Integer.MAX_VALUE;
    }
    if (source.isPreciseFaster() && (unbounded > 0 || count > 2L * k)) {
      narrow(source);
      prune();
    }
    if (source.isOver()) {
      keep(0); // what is known
    }
    for (int s = 0; s < count; s++) {
      if (source.isAtEnd()) {
        dropFrom(s);
        break;
      }
      if (s % TOUCHED == 0) {
        source.touch(place, s, Math.min(s + TOUCHED, count));
      }
      value[s] = repeats(source, s) ? value[s - 1] : source.rounded(place[s]);
    }
    int decided = count;
    takeIds(source);
    sort();
    count = Math.min(count, k);
    return decided;
  }

  /**
   * Leaves what is within a radius with its values, rounded to double, and ids in the place of places, by ascending id.
   *
   * @return how many candidates' exact values that took
   */
  public int decideWithin(Source source, double radius) {
    prune();
    if (isApproximate()) {
      keep(mostWaiting);
    } else if (source.isTimed()) {
      sort(); // the least bounds first
    }
    int kept = 0;
    int decided = 0;
    double divergence = 0;
    for (int s = 0; s < count; s++, decided++) {
      if (source.isAtEnd()) {
        dropFrom(s);
        break;
      }
      if (s % TOUCHED == 0) {
        source.touch(place, s, Math.min(s + TOUCHED, count));
      }
      if (!repeats(source, s)) {
        divergence = source.decide(place[s], source.rounded(place[s]), radius);
      }
      if (divergence <= radius) {
        place[kept] = place[s];
        value[kept++] = divergence;
      }
    }
    count = kept;
    takeIds(source);
    sort(Key.PLACE, false, 0, count);
    return decided;
  }

  /** Whether a candidate certainly has the divergence of the one before it. */
  private boolean repeats(Source source, int s) {
    return s > 0 && source.isSame(place[s - 1], place[s]);
  }

  private void takeIds(Source source) {
    areApart = false; // the values are all that counts
    for (int s = 0; s < count; s++) {
      place[s] = source.id(place[s]);
    }
  }

  /** Puts candidates, sorted by a kernel's values, in their order: recomputes those that are within the error of a neighbor. */
  void order(Source source) {
    if (recompute(source, error, false)) {
      sort();
      clearRests();
      if (recompute(source, Pair.PRECISE_ERROR, true)) {
        sortUnrounded(source.tolerance());
      }
    }
  }

  /** Recomputes the candidates that are within the error of a neighbor; returns whether there are any. */
  private boolean recompute(Source source, double error, boolean exact) {
    boolean any = false;
    boolean touchesLast = false;
    int last = -1;
    Unrounded unrounded = null;
    for (int s = 0; s < count; s++) {
      double itsValue = value[s];
      boolean touchesNext =
          s + 1 < count && atLeast(value[s + 1], error) <= atMost(itsValue, error);
      if ((touchesLast || touchesNext) && itsValue > 0 && itsValue < Double.POSITIVE_INFINITY) {
        boolean repeats = touchesLast && last >= 0 && source.isSame(place[last], place[s]);
        if (!exact) {
          value[s] = repeats ? value[s - 1] : source.precise(place[s]);
        } else {
          if (!repeats || unrounded == null) {
            unrounded = source.exact(place[s], itsValue);
          }
          setUnrounded(s, unrounded.value, unrounded.rest);
        }
        last = s;
        any = true;
      }
      touchesLast = touchesNext;
    }
    return any;
  }

  /** Prepares for {@link #setUnrounded}: all rests are 0. */
  void clearRests() {
    scratch.ensureCapacity(count);
    Arrays.fill(scratch.rest, 0, count, REST_SHIFT);
  }

  /** Gives the candidate at s the value {@code x·(1 + rest)}. */
  void setUnrounded(int s, double x, double rest) {
    value[s] = x;
    scratch.rest[s] = REST_SHIFT + rest;
  }

  /**
   * Sorts by the unrounded values, ascending. Neighbors within the relative tolerance count as equal, and so do chains of such neighbors:
   * they are sorted by place and get one value.
   */
  void sortUnrounded(double tolerance) {
    sort(Key.VALUE, true, 0, count);
    for (int s = 0, end; s < count; s = end) {
      end = s + 1;
      while (end < count && distance(end - 1, end) <= tolerance) {
        end++;
      }
      if (end - s > 1) {
        Arrays.fill(value, s, end, value[s]);
        sort(Key.PLACE, false, s, end);
      }
    }
  }

  /** Relative distance of two neighboring values; NaN for zeros and infinities. */
  private double distance(int a, int b) {
    return (value[b] - value[a]) / value[a] + (scratch.rest[b] - scratch.rest[a]);
  }

  // --- sorting

  /** Sorts by value, ascending, and equal values by place. */
  private void sort() {
    for (int s = 1; s < count; s++) { // a device's answer is sorted
      if (!(value[s - 1] < value[s] || (value[s - 1] == value[s] && place[s - 1] < place[s]))) {
        sort(Key.VALUE, false, 0, count);
        return;
      }
    }
  }

  /**
   * Sorts candidates [from, to): first by the leading bits in which the numbers of the key differ, with their places in the list in the low
   * bits. Candidates that agree in these are sorted by the bits behind, and equal ones by their rests, if they have such, and by place.
   */
  private void sort(Key by, boolean haveRests, int from, int to) {
    int n = to - from;
    long first = Long.MAX_VALUE;
    long last = Long.MIN_VALUE;
    for (int s = from; s < to; s++) {
      long bits = bits(by, s);
      first = Math.min(first, bits);
      last = Math.max(last, bits);
    }
    if (first >= last) {
      if (by != Key.PLACE) {
        sort(by == Key.VALUE && haveRests ? Key.REST : Key.PLACE, haveRests, from, to);
      }
      return;
    }
    scratch.ensureCapacity(n);
    int low = 32 - Integer.numberOfLeadingZeros(n);
    int range = 64 - Long.numberOfLeadingZeros(last - first); // unsigned, as ids may be far apart
    int dropped = Math.max(0, range + low - 63);
    for (int s = 0; s < n; s++) {
      scratch.keys[s] = (bits(by, from + s) - first) >>> dropped << low | s;
    }
    scratch.sort(n);
    permute(from, n, (1 << low) - 1, haveRests);
    for (int s = from, end; s < to; s = end) {
      long leading = (bits(by, s) - first) >>> dropped;
      end = s + 1;
      while (end < to && (bits(by, end) - first) >>> dropped == leading) {
        end++;
      }
      if (end - s > 1) {
        sort(by, haveRests, s, end);
      }
    }
  }

  /** Puts n candidates into the order of the sorted keys, whose low bits are where they were. */
  private void permute(int from, int n, int mask, boolean haveRests) {
    for (int s = 0; s < n; s++) {
      int at = from + ((int) scratch.keys[s] & mask);
      scratch.place[s] = place[at];
      scratch.value[s] = value[at];
    }
    System.arraycopy(scratch.place, 0, place, from, n);
    System.arraycopy(scratch.value, 0, value, from, n);
    if (areApart) {
      permute(upper, from, n, mask);
    }
    if (haveRests) {
      permute(scratch.rest, from, n, mask);
    }
  }

  private void permute(double[] numbers, int from, int n, int mask) {
    for (int s = 0; s < n; s++) {
      scratch.value[s] = numbers[from + ((int) scratch.keys[s] & mask)];
    }
    System.arraycopy(scratch.value, 0, numbers, from, n);
  }

  /** Bits that are ordered as the key's numbers are. */
  private long bits(Key by, int s) {
    return switch (by) {
      case VALUE -> bits(value[s]);
      case REST -> bits(scratch.rest[s]);
      case PLACE -> place[s];
    };
  }

  /** Bits that are ordered as numbers are none of which is negative; −0 would be. */
  private static long bits(double number) {
    return Double.doubleToRawLongBits(number + 0.0);
  }
}
