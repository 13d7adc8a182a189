package dev.kullback;

import dev.kullback.internal.rows.NeighborLists;
import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.internal.work.TimeLimit;
import java.time.Duration;
import java.util.Arrays;
import java.util.Objects;
import java.util.StringJoiner;
import java.util.function.LongPredicate;

/**
 * What a search looks for, in an engine ({@link KlEngine#search(Gaussians, Gaussians, Query)}) or an index ({@link KlIndex#search}): the k
 * nearest references of each query, or all within a radius, and options. A query is immutable: each method returns one that asks what it
 * says besides what this one asks.
 *
 * <pre>
 * var query = Query.nearest(10).reverse().filter(id -&gt; id % 2 == 0).timeout(Duration.ofMillis(20));
 * Neighbors columns = engine.search(q, p, query);
 * IndexNeighbors ids = index.search(q, query);
 * </pre>
 *
 * <p>The divergence is {@code KL(q_i ‖ p_j)} or another one of the engine, in nats, and q_i the queries. In an engine, the id of a reference
 * p_j is its column j, to which {@link #offset} may add. An index has ids of its own and no rows of p, so it refuses {@link #excludeSelf()},
 * {@link #offset} and {@link #resumeAfter}, with an {@link IllegalArgumentException}; an engine, which computes every divergence, refuses
 * {@link #approximate}, {@link #after} and {@link #excluding(long[][])}. All other options hold in both, and for both kinds of search.
 *
 * <p>A search of an engine in blocks of references, one after the other or merged, gives exactly the lists of the whole:
 *
 * <pre>
 * var exact = Query.nearest(10).exact();
 * Neighbors a = engine.search(q, block0, exact);
 * Neighbors b = engine.search(q, block1, exact.offset(block0.size()));
 * Neighbors merged = Neighbors.merge(10, a, b);
 * Neighbors same = engine.search(q, block1, exact.resumeAfter(a, block0.size()));
 * </pre>
 *
 * @since 0.1.0
 */
public final class Query {
  final SearchOptions options;

  private Query(SearchOptions options) {
    this.options = options;
  }

  /**
   * {@return a query for the k smallest of {@code KL(q_i ‖ p_j)} over the references p_j, or for all if they are fewer} They are found
   * nearest first, and those of equal divergences by id.
   *
   * @param k the number of neighbors, at least 1
   * @throws IllegalArgumentException if k is less than 1
   */
  public static Query nearest(int k) {
    if (k < 1) {
      throw new IllegalArgumentException("k must be at least 1, is " + k);
    }
    return new Query(SearchOptions.nearest(k));
  }

  /**
   * {@return a query for all references p_j with {@code KL(q_i ‖ p_j) ≤ radius}} They are found by ascending id.
   *
   * @param radius in nats, at least 0; 0 finds equal Gaussians and those whose divergence underflows, and +∞ finds all
   * @throws IllegalArgumentException if radius is negative or NaN
   */
  public static Query within(double radius) {
    if (!(radius >= 0)) {
      throw new IllegalArgumentException("radius must be >= 0, is " + radius);
    }
    return new Query(SearchOptions.within(radius));
  }

  /**
   * {@return a query of {@linkplain DiagonalGaussians#ofPoints(float[], int) points} for the references p_j of the greatest density, in the place of the
   * least Mahalanobis distance} Values are negative log-densities {@code −ln p_j(x_i)}, in nats, ascending; they may be below 0. A
   * radius is the greatest negative log-density.
   *
   * <p>Values that differ by no more than rounding of the log-determinants in double may come in either order. So this query is neither
   * {@link #exact} nor {@link #resumeAfter}, which are refused then.
   */
  public Query byLogDensity() {
    return new Query(options.rankedByDensity());
  }

  /**
   * {@return a query of {@linkplain DiagonalGaussians#ofPoints(float[], int) points} for all references of at least this density, {@code ln
   * p_j(x_i) ≥ logDensity}} They are found by ascending id, with negative log-densities as values, as of {@link #byLogDensity}.
   *
   * @param logDensity the least log-density, in nats; −∞ finds all
   * @throws IllegalArgumentException if it is NaN
   */
  public static Query denserThan(double logDensity) {
    if (Double.isNaN(logDensity)) {
      throw new IllegalArgumentException("logDensity must be a number, is NaN");
    }
    return new Query(SearchOptions.within(0 - logDensity).rankedByDensity());
  }

  /** {@return a query by the reverse divergence, {@code KL(p_j ‖ q_i)}; a second time changes nothing} */
  public Query reverse() {
    return new Query(options.reversed());
  }

  /**
   * {@return a query in which q_i does not find the reference with its own index, j = i} It is meant for batches whose Gaussians correspond
   * one to one, above all for a batch and itself, where the nearest of a Gaussian is itself. An index refuses it: its
   * {@link #excluding(long[][])} leaves out each query's own, and so does a search by its id, as that of {@link KlIndex#nearest(long, int)}.
   */
  public Query excludeSelf() {
    return excludeSelf(0);
  }

  /**
   * {@return a query in which q_i does not find the reference with its own index, where q is a block of a larger batch:
   * {@code j = firstRow + i}, with j as {@link #offset} has it}
   *
   * <p>Each row leaves out one reference: a later call replaces firstRow.
   *
   * @param firstRow the index of the first query, at least 0
   * @throws IllegalArgumentException if firstRow is negative
   */
  public Query excludeSelf(int firstRow) {
    check("firstRow", firstRow);
    return new Query(options.excludingSelf(firstRow));
  }

  /**
   * {@return a query among those of this query's references that have none of these ids, such as that of a single query itself}
   *
   * <p>Ids are left out for every query of the call. {@link #excluding(long[][])} leaves out each query's own; in an engine, {@link #excludeSelf()} does it
   * where q and p correspond. What was excluded before stays so.
   *
   * @param ids of the references to leave out, in any order; those that no reference has, or that come twice, do no harm. The array is
   *     neither kept nor modified
   */
  public Query excluding(long... ids) {
    return new Query(options.without(Objects.requireNonNull(ids, "ids")));
  }

  /**
   * {@return a query of an index in which query i does not find the references with the ids of {@code ids[i]}} What was excluded before stays so.
   *
   * @param ids for each query of the call the ids to leave out, in any order; those that no reference has, or that come twice, do no harm. The arrays are
   *     neither kept nor modified
   * @throws IllegalArgumentException if ids were excluded for another number of queries before
   */
  public Query excluding(long[][] ids) {
    for (int i = 0; i < Objects.requireNonNull(ids, "ids").length; i++) {
      if (ids[i] == null) {
        throw new NullPointerException("ids[" + i + ']');
      }
    }
    int rows = options.rowsWithExcluded();
    if (rows >= 0 && rows != ids.length) {
      throw new IllegalArgumentException(
          "ids has %d rows, but ids were excluded for %d before; they must be of the same queries"
              .formatted(ids.length, rows));
    }
    return new Query(options.withoutOf(ids));
  }

  /**
   * {@return a query of an index for what comes after a page of results: it finds none of the references in the same row of that result}
   *
   * <p>With the same queries and k, each call finds the next k references. To go on, take the next page to the query that found it:
   *
   * <pre>
   * var query = Query.nearest(10);
   * var page = index.search(q, query);       // 1 to 10
   * query = query.after(page);
   * page = index.search(q, query);           // 11 to 20
   * query = query.after(page);
   * </pre>
   *
   * <p>References are left out by their ids, as by {@link #excluding(long[][])}: where the index changes in between, none comes twice. In one
   * {@link KlIndex#reader()}, pages are exactly parts of the list of all, as long as each row of a page {@linkplain IndexNeighbors#isComplete is
   * complete}; what an incomplete one lacks comes later.
   *
   * @param page the result of the same queries, in the same order
   * @throws IllegalArgumentException as of {@link #excluding(long[][])}
   */
  public Query after(IndexNeighbors page) {
    long[][] found = new long[Objects.requireNonNull(page, "page").size()][];
    for (int i = 0; i < found.length; i++) {
      found[i] = Arrays.copyOfRange(page.ids(), page.start(i), page.start(i + 1));
    }
    return excluding(found);
  }

  /**
   * {@return a query among those of this query's references that have one of these ids}
   *
   * <p>An index finds few ids by themselves and reads these references alone; of many it goes over all references, as of a {@link #filter}. The result is the
   * same. If this query is among other ids already, a reference must have one of both.
   *
   * @param ids of the references that may be found, in any order; those that no reference has, or that come twice, do no harm. The array is neither kept nor
   *     modified
   */
  public Query among(long... ids) {
    return new Query(options.amongIds(Objects.requireNonNull(ids, "ids")));
  }

  /**
   * {@return a query whose values do not depend on anything but the two Gaussians: not on the other references, nor on the number of
   * threads, the backend, or k} Those of an index never do, so there this changes nothing.
   *
   * <p>Neighbors are ordered by value, and those of equal values by id. So {@link Neighbors#merge} makes of the lists of any blocks exactly
   * the list of the whole.
   *
   * <p>For diagonal batches, a value is that of exact arithmetic rounded to double, to within {@code ½ + 2⁻³⁰} units in the last place up to
   * 8192 dimensions, and the same whatever the processor. Where the batches state their scales in different ways, other than as σ and σ²,
   * its relative error may be {@code 2⁻⁹⁵·√(D/KL)} more, which shows below a divergence of some 1e-25 a dimension. For divergences below
   * 2.2e-308, log-variances beyond ±10⁵, and where a covariance is full, a value has the relative errors that
   * {@link KlEngine#nearest(Gaussians, Gaussians, int)} states for what double leaves uncertain.
   */
  public Query exact() {
    return new Query(options.exactly());
  }

  /**
   * {@return a query among those of this query's references whose ids a filter accepts}
   *
   * <p>If this query has a filter, both must accept an id; the new one is asked only where that did. An engine asks about every column once,
   * on the calling thread. An index asks about references that could be in the result, any number of times and, if it has several threads,
   * on several at once. What a filter throws ends the search.
   *
   * @param accepted tells of an id whether the result may contain it
   */
  public Query filter(LongPredicate accepted) {
    return new Query(options.filteredBy(Objects.requireNonNull(accepted, "accepted")));
  }

  /**
   * {@return a query that ends when its time is up: in an index with what it has found, in an engine with a {@link SearchTimeoutException}}
   *
   * <p>A search of an index whose time is up returns rows of which {@link IndexNeighbors#isComplete} is false, with exact values. For these,
   * {@link IndexNeighbors#provenUpTo} tells how near the references can be that were not found. A search of an engine has no proof of what it did not see, so
   * it throws.
   *
   * <p>Of several timeouts the shortest counts. A search looks at the clock as often as at its thread's interruption: it ends some
   * milliseconds after its time, or in an index, which decides what it has found, an eighth of the time, more with a k of thousands; or when a filter that runs then returns, or a CUDA device has done what it
   * was given. What the first searches of an engine prepare of a batch looks at the clock only between its parts; {@link Gaussians#prepare()} does it before.
   *
   * @param timeout from the call of the search on, more than zero
   * @throws IllegalArgumentException if timeout is not positive
   */
  public Query timeout(Duration timeout) {
    if (!Objects.requireNonNull(timeout, "timeout").isPositive()) {
      throw new IllegalArgumentException("timeout must be positive, is " + timeout);
    }
    String search =
        options.isWithin()
            ? "all within " + options.radius()
            : "the %d nearest".formatted(options.k());
    return new Query(options.limitedTo(TimeLimit.of(timeout, search)));
  }

  /**
   * {@return a query of an index that computes few values: for each q_i, those of this share of the references at most, and of some k more}
   *
   * <p>It bounds all divergences from below by their codes, or by floats where there are none, and computes those of the least bounds. Rows that are not the exact
   * result have {@link IndexNeighbors#isComplete} false, and {@link IndexNeighbors#provenUpTo} tells how near the references can be that were not found; values are
   * exact. The same index and number of threads give the same result. A search {@link #among} few ids computes them all.
   *
   * <p>Of several shares the smallest counts. Where bounds are tight, as of most data, an exact search computes fewer values itself, and this one is exact, too.
   *
   * @param share of the references, in (0, 1]; 1 for an exact search
   * @throws IllegalArgumentException if the share is not in (0, 1]
   */
  public Query approximate(double share) {
    if (!(share > 0 && share <= 1)) {
      throw new IllegalArgumentException("share must be in (0, 1], is " + share);
    }
    return new Query(options.withShare(share));
  }

  /**
   * {@return a query that fails with an {@link IllegalArgumentException} if it finds more pairs of a query and a reference than this, summed
   * over its q_i} This bounds the memory if a radius turns out to be too large. A search for the nearest fails before it computes anything, but
   * in an index with a filter or excluded ids.
   *
   * <p>Of several numbers the smallest counts.
   *
   * @param maxPairs the most pairs to find, in [0, 2³¹ − 9]
   * @throws IllegalArgumentException if maxPairs is not in [0, 2³¹ − 9]
   */
  public Query maxPairs(int maxPairs) {
    if (maxPairs < 0 || maxPairs > SearchOptions.MOST_PAIRS) {
      throw new IllegalArgumentException(
          "maxPairs must be in [0, %d], is %d".formatted(SearchOptions.MOST_PAIRS, maxPairs));
    }
    return new Query(options.withMostPairs(maxPairs));
  }

  /**
   * {@return a query of an engine in a block of a larger batch of references, whose first has index {@code firstIndex} there} All ids are
   * those of the larger batch then: those found, filtered and excluded. A later call replaces firstIndex.
   *
   * @param firstIndex what to add to column indices, at least 0
   * @throws IllegalArgumentException if firstIndex is negative
   */
  public Query offset(int firstIndex) {
    check("firstIndex", firstIndex);
    return new Query(options.from(firstIndex));
  }

  /**
   * {@return a query of an engine that continues an {@link #exact} search for the nearest: it finds the k nearest of p's references and the
   * earlier ones, with indices as of {@link #offset}} It is {@link #exact} itself, without the call of it, and sets the offset as well, in the
   * place of one that was set before.
   *
   * <p>The list replaces one that was given before, which it should contain: the result of the block before does, and
   * {@link Neighbors#merge} joins several. References that the earlier list's k-th value excludes cost nothing beyond their divergence. A search
   * within a radius is refused; its blocks' rows need only be joined. The earlier list is taken as it is: what this query's filter, excluded
   * ids and {@link #excludeSelf} leave out is left out of p alone.
   *
   * @param earlier the result of an exact search of the same q, direction, k and options among other references, or
   *     {@link Neighbors#merge} of such; after one of a smaller k, neighbors are lost without an error
   * @param firstIndex the index of p's first Gaussian in the whole batch, at least 0
   * @throws IllegalArgumentException if firstIndex is negative, or this query is for all within a radius
   */
  public Query resumeAfter(Neighbors earlier, int firstIndex) {
    Objects.requireNonNull(earlier, "earlier");
    check("firstIndex", firstIndex);
    if (options.isWithin()) {
      throw new IllegalArgumentException(
          "Query.resumeAfter continues a search for the nearest; this one is within a radius, so search each block with Query.offset and join their rows");
    }
    return new Query(options.after(earlier.lists, firstIndex));
  }

  private static void check(String argument, int index) {
    if (index < 0) {
      throw new IllegalArgumentException(argument + " must be at least 0, is " + index);
    }
  }

  /** Throws if an engine cannot answer this query. */
  void checkEngine(boolean arePoints) {
    if (options.rowsWithExcluded() >= 0) {
      throw new IllegalArgumentException(
          "KlEngine.search leaves out the same columns in every row, or each row's own, by excludeSelf(); Query.after and excluding(long[][]) are for KlIndex.search");
    }
    checkDensity(arePoints);
    if (options.share() < 1) {
      throw new IllegalArgumentException(
          "KlEngine.search computes every divergence; Query.approximate is for KlIndex.search");
    }
  }

  private void checkDensity(boolean arePoints) {
    if (options.byDensity() && !arePoints) {
      throw new IllegalArgumentException(
          "Gaussians have no density in others: Query.byLogDensity and denserThan are for points, which DiagonalGaussians.ofPoints makes");
    }
    if (options.byDensity() && options.exact()) {
      throw new IllegalArgumentException(
          "log-densities are known to double, not exactly; leave out Query.exact and resumeAfter, or take Mahalanobis distances");
    }
  }

  /** Throws if an index cannot answer this query, of so many Gaussians or points. */
  void checkIndex(int queries, boolean arePoints) {
    checkDensity(arePoints);
    int rows = options.rowsWithExcluded();
    if (rows >= 0 && rows != queries) {
      throw new IllegalArgumentException(
          "there are %d queries, but ids are excluded for %d; each needs its own"
              .formatted(queries, rows));
    }
    if (options.reverse() && arePoints) {
      throw new IllegalArgumentException(
          "points have no density to search in: Query.reverse is for Gaussians");
    }
    if (options.excludesSelf()) {
      throw refused(
          "excludeSelf",
          "excluding(ids) leaves out ids of each query's own, and nearest(id, k) a reference itself");
    }
    if (options.earlier() != null) {
      throw refused("resumeAfter", "an index searches all of its references at once");
    }
    if (options.firstColumn() != 0) {
      throw refused("offset", "an index finds references by their own ids");
    }
  }

  private static IllegalArgumentException refused(String option, String advice) {
    return new IllegalArgumentException(
        "KlIndex.search has no rows and columns for Query.%s, which is for KlEngine.search; %s"
            .formatted(option, advice));
  }

  /** {@return the kind of search and the options that are set; of excluded ids and earlier lists, how many} */
  @Override
  public String toString() {
    StringJoiner text = new StringJoiner(", ", "Query[", "]");
    text.add(options.isWithin() ? "within " + options.radius() : "nearest " + options.k());
    if (options.reverse()) {
      text.add("reverse");
    }
    if (options.exact()) {
      text.add("exact");
    }
    if (options.byDensity()) {
      text.add("byLogDensity");
    }
    if (options.excludesSelf()) {
      text.add("excludeSelf" + (options.firstRow() == 0 ? "" : " " + options.firstRow()));
    }
    if (options.excluded().length > 0) {
      text.add("excluding %d ids".formatted(options.excluded().length));
    }
    if (options.rowsWithExcluded() >= 0) {
      text.add("excluding ids of %d rows".formatted(options.rowsWithExcluded()));
    }
    long[] among = options.among();
    if (among != null) {
      text.add("among %d ids".formatted(among.length));
    }
    if (options.filter() != null) {
      text.add("filter");
    }
    TimeLimit timeout = options.timeout();
    if (timeout != null) {
      text.add("timeout " + Duration.ofNanos(timeout.nanos()));
    }
    if (options.share() < 1) {
      text.add("approximate " + options.share());
    }
    if (options.mostPairs() != SearchOptions.MOST_PAIRS) {
      text.add("maxPairs " + options.mostPairs());
    }
    if (options.firstColumn() != 0) {
      text.add("offset " + options.firstColumn());
    }
    NeighborLists earlier = options.earlier();
    if (earlier != null) {
      text.add("resumeAfter %d rows".formatted(earlier.start().length - 1));
    }
    return text.toString();
  }
}
