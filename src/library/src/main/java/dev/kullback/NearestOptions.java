package dev.kullback;

import dev.kullback.internal.rows.NearestQuery;
import dev.kullback.internal.rows.NeighborLists;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Options of {@link KlEngine#nearest(Gaussians, Gaussians, NearestOptions)}. Immutable: each method returns new options,
 * and its arguments replace those of an earlier call, so that the options of one block make those of the next. A search in
 * blocks of references, one after the other or merged, gives exactly the list of the whole:
 *
 * <pre>
 * var exact = NearestOptions.of(10).exact();
 * Neighbors a = engine.nearest(q, block0, exact);
 * Neighbors b = engine.nearest(q, block1, exact.from(block0.size()));
 * Neighbors merged = Neighbors.merge(10, a, b);
 * Neighbors same = engine.nearest(q, block1, exact.after(a, block0.size()));
 * </pre>
 *
 * @since 0.1.0
 */
public final class NearestOptions {
  final int k;
  final NearestQuery query;

  private NearestOptions(int k, NearestQuery query) {
    this.k = k;
    this.query = query;
  }

  private NearestOptions with(
      boolean exact, boolean others, int firstRow, int first, @Nullable NeighborLists earlier) {
    return new NearestOptions(
        k, new NearestQuery(query.reverse(), exact, others, firstRow, first, earlier));
  }

  /**
   * {@return options for the k smallest of {@code KL(q_i ‖ p_j)} over j, as
   * {@link KlEngine#nearest(Gaussians, Gaussians, int)} finds them, or for all if there are fewer}
   *
   * @param k the number of neighbors, at least 1
   * @throws IllegalArgumentException if k is less than 1
   */
  public static NearestOptions of(int k) {
    if (k < 1) {
      throw new IllegalArgumentException("k must be at least 1, is " + k);
    }
    return new NearestOptions(k, NearestQuery.ALL);
  }

  /** {@return options to rank by {@code KL(p_j ‖ q_i)}; a second time changes nothing} */
  public NearestOptions reverse() {
    return new NearestOptions(k, query.reversed());
  }

  /** {@return options to leave out the reference with the index of the query: j = i, in the numbering of {@link #from}} */
  public NearestOptions others() {
    return others(0);
  }

  /**
   * {@return options to leave out the reference with the index of the query, where the queries are a block of a larger
   * set: {@code j = firstRow + i}, in the numbering of {@link #from}}
   *
   * <p>It is the only one that each query leaves out: a later call replaces firstRow.
   *
   * @param firstRow the index of the first query, at least 0
   * @throws IllegalArgumentException if firstRow is negative
   */
  public NearestOptions others(int firstRow) {
    check("firstRow", firstRow);
    return with(query.exact(), true, firstRow, query.first(), query.earlier());
  }

  /**
   * {@return options for lists whose values do not depend on anything but the two Gaussians: not on the other
   * references, nor on the number of threads, the backend, or k}
   *
   * <p>Neighbors are ordered by value, and those of equal values by index. So {@link Neighbors#merge} makes of the lists
   * of any blocks exactly the list of the whole.
   *
   * <p>For diagonal batches, a value is that of exact arithmetic rounded to double, to within {@code ½ + 2⁻³⁰} units in
   * the last place up to 8192 dimensions, and the same whatever the processor. Where the batches state their scales in
   * different ways, other than as σ and σ², its relative error may be {@code 2⁻⁹⁵·√(D/KL)} more, which shows below a
   * divergence of some 1e-25 a dimension. For divergences below 2.2e-308, log-variances beyond ±10⁵, and where a covariance is
   * full, a value has the relative errors that {@link KlEngine#nearest(Gaussians, Gaussians, int)} states for what
   * double leaves uncertain.
   */
  public NearestOptions exact() {
    return with(true, query.others(), query.firstRow(), query.first(), query.earlier());
  }

  /**
   * {@return options for a block of a larger set of references, whose first has index {@code firstIndex} there}
   *
   * @param firstIndex what to add to indices, at least 0
   * @throws IllegalArgumentException if firstIndex is negative
   */
  public NearestOptions from(int firstIndex) {
    check("firstIndex", firstIndex);
    return with(query.exact(), query.others(), query.firstRow(), firstIndex, query.earlier());
  }

  /**
   * {@return options to continue an {@link #exact} search: the result is the k nearest of p's and the earlier ones, with
   * indices in the whole set's numbering}
   *
   * <p>The list replaces one that was given before, which it should contain: the result of the block before does, and
   * {@link Neighbors#merge} joins others. References that the earlier list's k-th value excludes cost nothing beyond their divergence.
   *
   * @param earlier the result of an exact search of the same q, direction and k among other references, or
   *     {@link Neighbors#merge} of such; after one of a smaller k, neighbors are lost without an error
   * @param firstIndex the index of p's first Gaussian in the whole set, at least 0
   * @throws IllegalArgumentException if firstIndex is negative
   */
  public NearestOptions after(Neighbors earlier, int firstIndex) {
    check("firstIndex", firstIndex);
    NeighborLists lists = Objects.requireNonNull(earlier, "earlier").lists;
    return with(true, query.others(), query.firstRow(), firstIndex, lists);
  }

  private static void check(String argument, int index) {
    if (index < 0) {
      throw new IllegalArgumentException(argument + " must be at least 0, is " + index);
    }
  }
}
