package dev.kullback.internal.index.search;

import java.util.Arrays;
import java.util.concurrent.CancellationException;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/**
 * Which references a search ranks, and how.
 *
 * @param k neighbors of a query that a search for the nearest finds at most; 0 for a search within a radius
 * @param radius greatest divergence that a search within a radius finds
 * @param reverse ranks by {@code KL(p_j ‖ q)}
 * @param filter ids that count, asked by several threads; null for all
 * @param excluded ids that do not count, ascending
 * @param deadline {@link System#nanoTime} at which the search ends; null for none
 * @param mostPairs pairs that a search within a radius may find
 */
@SuppressWarnings("ArrayRecordComponent") // searched by each candidate
public record SearchOptions(
    int k,
    double radius,
    boolean reverse,
    @Nullable LongPredicate filter,
    long[] excluded,
    @Nullable Long deadline,
    int mostPairs) {
  private static final long[] NO_IDS = {};

  static final SearchOptions FORWARD = nearest(1);

  public static SearchOptions nearest(int k) {
    return new SearchOptions(k, Double.POSITIVE_INFINITY, false, null, NO_IDS, null, 0);
  }

  public static SearchOptions within(double radius, int mostPairs) {
    return new SearchOptions(0, radius, false, null, NO_IDS, null, mostPairs);
  }

  /** Whether the search is for all within the radius. */
  boolean isWithin() {
    return k == 0;
  }

  /** Throws if a search within the radius has found too many pairs. */
  void checkPairs(long found) {
    if (found > mostPairs) {
      throw new IllegalArgumentException(
          "more than %d pairs are within the radius %s; take a smaller one, or ask fewer queries at once"
              .formatted(mostPairs, radius));
    }
  }

  /** Whether every id counts. */
  public boolean takesAll() {
    return filter == null && excluded.length == 0;
  }

  boolean accepts(long id) {
    return Arrays.binarySearch(excluded, id) < 0 && (filter == null || filter.test(id));
  }

  void checkDeadline() {
    if (deadline != null && System.nanoTime() - deadline >= 0) {
      throw new CancellationException("the deadline has passed; what was computed is incomplete");
    }
  }
}
