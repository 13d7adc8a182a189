package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.kernel.RowQuery;
import dev.kullback.internal.work.TimeLimit;
import java.util.Arrays;
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
 * @param block what an engine's rows and columns are a part of
 * @param filter ids that count, asked by several threads in an index; null for all
 * @param excluded ids that do not count, ascending
 * @param timeout null for none
 * @param mostPairs pairs that the search may find
 */
@SuppressWarnings("ArrayRecordComponent") // searched by each candidate
public record SearchOptions(
    int k,
    double radius,
    boolean reverse,
    boolean exact,
    Block block,
    @Nullable LongPredicate filter,
    long[] excluded,
    @Nullable TimeLimit timeout,
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
  private static final long[] NO_IDS = {};

  /** For the nearest one. */
  public static final SearchOptions FORWARD = nearest(1);

  public static SearchOptions nearest(int k) {
    return of(k, Double.POSITIVE_INFINITY);
  }

  public static SearchOptions within(double radius) {
    return of(0, radius);
  }

  private static SearchOptions of(int k, double radius) {
    return new SearchOptions(k, radius, false, false, WHOLE, null, NO_IDS, null, MOST_PAIRS);
  }

  // --- the same with one option more

  public SearchOptions reversed() {
    return with(true, exact, block, filter, excluded, timeout, mostPairs);
  }

  public SearchOptions exactly() {
    return with(reverse, true, block, filter, excluded, timeout, mostPairs);
  }

  /** Both this one's filter and another. */
  public SearchOptions filteredBy(LongPredicate other) {
    LongPredicate both = filter == null ? other : filter.and(other);
    return with(reverse, exact, block, both, excluded, timeout, mostPairs);
  }

  /** Without these ids, too. */
  public SearchOptions without(long... ids) {
    long[] all = LongStream.concat(Arrays.stream(excluded), Arrays.stream(ids)).sorted().toArray();
    return with(reverse, exact, block, filter, all, timeout, mostPairs);
  }

  /** At most that long, or as long as this one. */
  public SearchOptions limitedTo(TimeLimit other) {
    TimeLimit shorter = timeout == null || other.nanos() < timeout.nanos() ? other : timeout;
    return with(reverse, exact, block, filter, excluded, shorter, mostPairs);
  }

  /** At most that many pairs, or as many as this one. */
  public SearchOptions withMostPairs(int most) {
    return with(reverse, exact, block, filter, excluded, timeout, Math.min(most, mostPairs));
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
    return with(reverse, exact, other, filter, excluded, timeout, mostPairs);
  }

  private SearchOptions with(
      boolean reverse,
      boolean exact,
      Block block,
      @Nullable LongPredicate filter,
      long[] excluded,
      @Nullable TimeLimit timeout,
      int mostPairs) {
    return new SearchOptions(
        k, radius, reverse, exact, block, filter, excluded, timeout, mostPairs);
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

  /** Whether the search is for all within the radius. */
  public boolean isWithin() {
    return k == 0;
  }

  /** Whether every id counts. */
  public boolean takesAll() {
    return filter == null && excluded.length == 0;
  }

  public boolean accepts(long id) {
    return Arrays.binarySearch(excluded, id) < 0 && (filter == null || filter.test(id));
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
