package dev.kullback;

import dev.kullback.internal.index.search.SearchOptions;
import java.time.Duration;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.LongPredicate;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * What {@link KlIndex#search} looks for: the k nearest references, or all within a radius. Immutable: each method returns a
 * query that asks what it says besides what this one asks. So options that are given twice add up.
 *
 * <pre>
 * var query = IndexQuery.nearest(10).filter(id -&gt; id % 2 == 0).deadline(Duration.ofMillis(20));
 * IndexNeighbors found = index.search(queries, query);
 * </pre>
 *
 * @since 0.1.0
 */
public final class IndexQuery {
  private static final int MOST_PAIRS = Integer.MAX_VALUE - 8;

  /** Nanoseconds of 146 years: times of a clock that wraps around can be compared up to twice as far apart. */
  private static final long LONGEST = Long.MAX_VALUE / 2;

  private final SearchOptions options;
  private final @Nullable Duration patience;

  private IndexQuery(SearchOptions options, @Nullable Duration patience) {
    this.options = options;
    this.patience = patience;
  }

  /**
   * {@return a query for the k smallest of {@code KL(x_i ‖ p)} over the references p, or for all if there are fewer}
   *
   * @param k the number of references, at least 1
   * @throws IllegalArgumentException if k is less than 1
   */
  public static IndexQuery nearest(int k) {
    if (k < 1) {
      throw new IllegalArgumentException("k must be at least 1, is " + k);
    }
    return new IndexQuery(SearchOptions.nearest(k), null);
  }

  /**
   * {@return a query for all references p with {@code KL(x_i ‖ p) ≤ radius}}
   *
   * @param radius in nats, at least 0
   * @throws IllegalArgumentException if radius is negative or NaN
   */
  public static IndexQuery within(double radius) {
    if (!(radius >= 0)) {
      throw new IllegalArgumentException("radius must be >= 0, is " + radius);
    }
    return new IndexQuery(SearchOptions.within(radius, MOST_PAIRS), null);
  }

  /** {@return a query by the reverse divergence, {@code KL(p ‖ x_i)}; a second time changes nothing} */
  public IndexQuery reverse() {
    return with(true, options.filter(), options.excluded(), options.mostPairs());
  }

  /**
   * {@return a query among those of this query's references whose ids a filter accepts}
   *
   * <p>If this query has a filter, both must accept an id; the new one is asked only where that did. A filter is asked about references that
   * could be in the result, any number of times and, where the index has several threads, by several at once. What it throws ends the
   * search.
   *
   * @param accepted tells of an id whether the result may contain it
   */
  public IndexQuery filter(LongPredicate accepted) {
    Objects.requireNonNull(accepted, "accepted");
    LongPredicate before = options.filter();
    LongPredicate both = before == null ? accepted : before.and(accepted);
    return with(options.reverse(), both, options.excluded(), options.mostPairs());
  }

  /**
   * {@return a query among those of this query's references that have none of these ids, such as that of the query itself}
   *
   * <p>What was excluded before stays so.
   *
   * @param ids of the references to leave out, in any order; those that are not in the index, or come twice, do no harm. The array is
   *     neither kept nor modified
   */
  public IndexQuery excluding(long... ids) {
    Objects.requireNonNull(ids, "ids");
    long[] all =
        LongStream.concat(Arrays.stream(options.excluded()), Arrays.stream(ids)).sorted().toArray();
    return with(options.reverse(), options.filter(), all, options.mostPairs());
  }

  /**
   * {@return a query that fails if more than this many references are within its radius, summed over its x_i; searches for the nearest
   * are not affected}
   *
   * <p>Of several limits the smallest counts.
   *
   * @param maxPairs the most pairs to find, in [0, 2³¹ − 9]
   * @throws IllegalArgumentException if maxPairs is not in [0, 2³¹ − 9]
   */
  public IndexQuery limit(int maxPairs) {
    if (maxPairs < 0 || maxPairs > MOST_PAIRS) {
      throw new IllegalArgumentException(
          "maxPairs must be in [0, %d], is %d".formatted(MOST_PAIRS, maxPairs));
    }
    return with(
        options.reverse(),
        options.filter(),
        options.excluded(),
        Math.min(maxPairs, options.mostPairs()));
  }

  /**
   * {@return a query that ends with a {@link java.util.concurrent.CancellationException} if it takes longer}
   *
   * <p>Of several deadlines the soonest counts.
   *
   * @param patience from the call of the search on, more than zero; the search ends some milliseconds after it at the latest, or when a
   *     filter that runs then returns
   * @throws IllegalArgumentException if patience is not positive
   */
  public IndexQuery deadline(Duration patience) {
    if (!Objects.requireNonNull(patience, "patience").isPositive()) {
      throw new IllegalArgumentException("patience must be positive, is " + patience);
    }
    Duration before = this.patience;
    return before == null || patience.compareTo(before) < 0
        ? new IndexQuery(options, patience)
        : this;
  }

  private IndexQuery with(
      boolean reverse, @Nullable LongPredicate filter, long[] excluded, int mostPairs) {
    return new IndexQuery(
        new SearchOptions(
            options.k(), options.radius(), reverse, filter, excluded, null, mostPairs),
        patience);
  }

  /** Returns the options for a search that begins now. */
  SearchOptions begin() {
    if (patience == null) {
      return options;
    }
    long nanos = TimeUnit.NANOSECONDS.convert(patience); // at most Long.MAX_VALUE
    return new SearchOptions(
        options.k(),
        options.radius(),
        options.reverse(),
        options.filter(),
        options.excluded(),
        System.nanoTime() + Math.min(nanos, LONGEST),
        options.mostPairs());
  }
}
