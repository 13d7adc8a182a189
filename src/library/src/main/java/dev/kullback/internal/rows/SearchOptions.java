package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.kernel.RowQuery;
import dev.kullback.internal.work.TimeLimit;
import java.util.Arrays;
import java.util.Collections;
import java.util.function.LongPredicate;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * Which references a search of an engine or an index ranks, and how. The ids of an engine's references are their columns, from
 * {@code firstColumn} on; an index has none of the options that concern rows and columns.
 *
 * @param k neighbors of a query that a search for the nearest finds at most; 0 for a search within a radius
 * @param radius greatest divergence that a search within a radius finds
 * @param reverse ranks by {@code KL(p_j ‖ q_i)}
 * @param exact values do not depend on the block: {@link Pair#rounded}; those of an index never do
 * @param byDensity ranks references by the density that they have at points, the greatest first, not by Mahalanobis distance
 * @param block what an engine's rows and columns are a part of
 * @param ids which ids count
 * @param timeout null for none
 * @param share of an index's references whose values a search computes at most, some of each query's apart; 1 for as many as it takes
 * @param mostPairs pairs that the search may find
 */
@SuppressWarnings("ArrayRecordComponent") // searched by each candidate
public record SearchOptions(
    int k,
    double radius,
    boolean reverse,
    boolean exact,
    boolean byDensity,
    Block block,
    Ids ids,
    @Nullable TimeLimit timeout,
    double share,
    int mostPairs) {
  /** Greatest number of pairs, that of an array's elements. */
  public static final int MOST_PAIRS = Batch.MOST_ELEMENTS;

  /**
   * Rows and columns of larger batches, which number them.
   *
   * @param excludesSelf each row leaves out the column with its number
   * @param firstRow number of row 0, where rows leave out themselves
   * @param firstColumn number of column 0
   * @param earlier exact lists that a search for the nearest continues
   */
  private record Block(
      boolean excludesSelf, int firstRow, int firstColumn, @Nullable NeighborLists earlier) {}

  private static final Block WHOLE = new Block(false, 0, 0, null);

  /**
   * The ids that count.
   *
   * @param filter asked by several threads in an index; null for all
   * @param excluded do not count, ascending
   * @param among count alone, ascending and each once; null for all
   * @param excludedOf do not count for the query of a row, ascending; null for none
   */
  @SuppressWarnings("ArrayRecordComponent") // searched by each candidate
  private record Ids(
      @Nullable LongPredicate filter,
      long[] excluded,
      long @Nullable [] among,
      long @Nullable [][] excludedOf) {}

  private static final Ids ALL = new Ids(null, new long[0], null, null);

  /** For the nearest one. */
  public static final SearchOptions FORWARD = nearest(1);

  public static SearchOptions nearest(int k) {
    return of(k, Double.POSITIVE_INFINITY);
  }

  public static SearchOptions within(double radius) {
    return of(0, radius);
  }

  private static SearchOptions of(int k, double radius) {
    return new SearchOptions(k, radius, false, false, false, WHOLE, ALL, null, 1, MOST_PAIRS);
  }

  // --- the same with one option more

  public SearchOptions reversed() {
    return new SearchOptions(
        k, radius, true, exact, byDensity, block, ids, timeout, share, mostPairs);
  }

  public SearchOptions exactly() {
    return new SearchOptions(
        k, radius, reverse, true, byDensity, block, ids, timeout, share, mostPairs);
  }

  public SearchOptions rankedByDensity() {
    return new SearchOptions(
        k, radius, reverse, exact, true, block, ids, timeout, share, mostPairs);
  }

  /** Both this one's filter and another. */
  public SearchOptions filteredBy(LongPredicate other) {
    LongPredicate both = ids.filter == null ? other : ids.filter.and(other);
    return of(new Ids(both, ids.excluded, ids.among, ids.excludedOf));
  }

  /** Without these ids, too. */
  public SearchOptions without(long... others) {
    return of(new Ids(ids.filter, joined(ids.excluded, others), ids.among, ids.excludedOf));
  }

  /** Without these ids in a row, too. */
  public SearchOptions withoutOf(long[][] others) {
    long[][] all = new long[others.length][];
    for (int i = 0; i < all.length; i++) {
      all[i] = joined(ids.excludedOf == null ? new long[0] : ids.excludedOf[i], others[i]);
    }
    return of(new Ids(ids.filter, ids.excluded, ids.among, all));
  }

  private static long[] joined(long[] some, long[] others) {
    return LongStream.concat(Arrays.stream(some), Arrays.stream(others)).sorted().toArray();
  }

  /** Among those of these ids that count for this one. */
  public SearchOptions amongIds(long... some) {
    LongStream both = Arrays.stream(some).distinct().sorted();
    long[] earlier = ids.among;
    if (earlier != null) {
      both = both.filter(id -> Arrays.binarySearch(earlier, id) >= 0);
    }
    return of(new Ids(ids.filter, ids.excluded, both.toArray(), ids.excludedOf));
  }

  private SearchOptions of(Ids others) {
    return new SearchOptions(
        k, radius, reverse, exact, byDensity, block, others, timeout, share, mostPairs);
  }

  /** At most that long, or as long as this one. */
  public SearchOptions limitedTo(TimeLimit other) {
    TimeLimit shorter = timeout == null || other.nanos() < timeout.nanos() ? other : timeout;
    return new SearchOptions(
        k, radius, reverse, exact, byDensity, block, ids, shorter, share, mostPairs);
  }

  /** However long it takes, and however many pairs there are. */
  public SearchOptions withoutLimits() {
    return new SearchOptions(
        k, radius, reverse, exact, byDensity, block, ids, null, share, MOST_PAIRS);
  }

  /** For that many queries, each without the ids that one query goes without. */
  public SearchOptions forRows(int n) {
    long[][] one = ids.excludedOf;
    return one == null
        ? this
        : of(
            new Ids(
                ids.filter,
                ids.excluded,
                ids.among,
                Collections.nCopies(n, one[0]).toArray(long[][]::new)));
  }

  /** At most that share of the references, or as many as this one. */
  public SearchOptions withShare(double other) {
    double less = Math.min(share, other);
    return new SearchOptions(
        k, radius, reverse, exact, byDensity, block, ids, timeout, less, mostPairs);
  }

  /** At most that many pairs, or as many as this one. */
  public SearchOptions withMostPairs(int most) {
    int less = Math.min(most, mostPairs);
    return new SearchOptions(
        k, radius, reverse, exact, byDensity, block, ids, timeout, share, less);
  }

  public SearchOptions excludingSelf(int firstRow) {
    return in(new Block(true, firstRow, firstColumn(), earlier()));
  }

  public SearchOptions from(int firstColumn) {
    return in(new Block(excludesSelf(), firstRow(), firstColumn, earlier()));
  }

  public SearchOptions after(NeighborLists lists, int firstColumn) {
    return exactly().in(new Block(excludesSelf(), firstRow(), firstColumn, lists));
  }

  private SearchOptions in(Block other) {
    return new SearchOptions(
        k, radius, reverse, exact, byDensity, other, ids, timeout, share, mostPairs);
  }

  public boolean excludesSelf() {
    return block.excludesSelf;
  }

  public int firstRow() {
    return block.firstRow;
  }

  public int firstColumn() {
    return block.firstColumn;
  }

  public @Nullable NeighborLists earlier() {
    return block.earlier;
  }

  // --- what they say

  /**
   * Returns the radius of values to which {@code shift} is yet to be added, the greatest whose sum, rounded, is at most the radius: so a search
   * within a value that another has found finds its reference, too.
   */
  public double radiusWithout(double shift) {
    double most = radius - shift;
    if (shift == 0 || !Double.isFinite(most)) {
      return most;
    }
    // near where sums begin to be rounded up: few numbers are between, however small
    most += (Math.nextUp(radius) - radius) / 2;
    while (most + shift > radius) {
      most = Math.nextDown(most);
    }
    while (Math.nextUp(most) + shift <= radius) {
      most = Math.nextUp(most);
    }
    return most;
  }

  /** Whether the search is for all within the radius. */
  public boolean isWithin() {
    return k == 0;
  }

  public @Nullable LongPredicate filter() {
    return ids.filter;
  }

  /** Ids that do not count, ascending. */
  public long[] excluded() {
    return ids.excluded;
  }

  /** The ids that alone count, ascending and each once; null for all. The array is not to be changed. */
  public long @Nullable [] among() {
    return ids.among;
  }

  /** Number of rows that have ids of their own that do not count; −1 if none has. */
  public int rowsWithExcluded() {
    return ids.excludedOf == null ? -1 : ids.excludedOf.length;
  }

  /** Whether every id counts. */
  public boolean takesAll() {
    return ids.filter == null
        && ids.excluded.length == 0
        && ids.among == null
        && ids.excludedOf == null;
  }

  /** Whether an id counts for the query of a row. */
  public boolean accepts(long id, int row) {
    return contains(ids.among, id, true)
        && !contains(ids.excluded, id, false)
        && (ids.excludedOf == null || !contains(ids.excludedOf[row], id, false))
        && (ids.filter == null || ids.filter.test(id));
  }

  private static boolean contains(long @Nullable [] sorted, long id, boolean ofNull) {
    return sorted == null ? ofNull : Arrays.binarySearch(sorted, id) >= 0;
  }

  /** Row i leaves out column {@code i + skip}, if there is one. */
  long skip() {
    return excludesSelf() ? (long) firstRow() - firstColumn() : RowQuery.NONE;
  }

  /** Returns the {@link System#nanoTime} at which a search that begins now times out, if it does. */
  public long end() {
    return timeout == null ? 0 : timeout.end();
  }

  /** Throws if the search has found too many pairs. */
  public void checkPairs(long found) {
    if (found > mostPairs) {
      throw new IllegalArgumentException(
          isWithin()
              ? "more than %d pairs are within the radius %s; take a smaller one, or split the queries"
                  .formatted(mostPairs, radius)
              : mostPairs == MOST_PAIRS
                  ? found + " neighbors do not fit an array; take a smaller k, or split the queries"
                  : "%d neighbors are more than maxPairs, %d; take a smaller k, or split the queries"
                      .formatted(found, mostPairs));
    }
  }
}
