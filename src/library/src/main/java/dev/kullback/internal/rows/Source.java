package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.Unrounded;
import org.jspecify.annotations.Nullable;

/**
 * The divergences of one query from the candidates of its {@link Ranking}, each by its place: to {@link Pair#PRECISE_ERROR}, rounded to
 * double, and unrounded, which takes the longest. Used by one thread.
 */
public abstract class Source {
  private final Pair pair;
  private @Nullable Batch query;
  private int row;
  private boolean reverse;

  /** Bounds that {@link #bound} found. */
  protected double lower;

  protected double upper;

  protected Source(Pair pair) {
    this.pair = pair;
  }

  /** Asks for divergences of row i of q from now on; {@code reverse}, for those of the candidates from it. */
  protected final void ask(Batch q, int i, boolean reverse) {
    query = q;
    row = i;
    this.reverse = reverse;
  }

  /** Drops the query. */
  public void clear() {
    query = null;
  }

  /** Returns a batch that has the Gaussian of a place, in row {@link #row}. */
  protected abstract Batch batch(long place);

  protected abstract int row(long place);

  /** Whether two places certainly have equal divergences. */
  protected abstract boolean isSame(long place, long other);

  /** Whether {@link #precise} takes less time than {@link #rounded}. */
  protected abstract boolean isPreciseFaster();

  /** Returns the number by which candidates of equal divergences are ordered, and that stands for the place in a result. */
  protected long id(long place) {
    return place;
  }

  /** Returns the query's batch. */
  protected final Batch query() {
    if (query == null) {
      throw new IllegalStateException("no query");
    }
    return query;
  }

  /** Returns the divergence as {@link Pair#precise} does. */
  final double precise(long place) {
    Batch p = batch(place);
    int j = row(place);
    return reverse ? pair.precise(p, j, query(), row) : pair.precise(query(), row, p, j);
  }

  /** Returns the divergence as {@link Pair#rounded} does. */
  final double rounded(long place) {
    Batch p = batch(place);
    int j = row(place);
    return reverse ? pair.rounded(p, j, query(), row) : pair.rounded(query(), row, p, j);
  }

  /** Returns the divergence as {@link Pair#exact} does, valid until the next call. */
  final Unrounded exact(long place, double value) {
    Batch p = batch(place);
    int j = row(place);
    return reverse ? pair.exact(p, j, query(), row, value) : pair.exact(query(), row, p, j, value);
  }

  /**
   * Sets {@link #lower} and {@link #upper} to bounds of a divergence.
   *
   * @param isFirst whether no upper bound is known yet, so that looser ones than those of {@link #precise} help, if they take less time
   */
  protected void bound(long place, boolean isFirst) {
    double value = precise(place);
    lower = Ranking.atLeast(value, Pair.PRECISE_ERROR);
    upper = Ranking.atMost(value, Pair.PRECISE_ERROR);
  }

  /** Greatest relative distance of two unrounded divergences that count as equal. */
  final double tolerance() {
    return pair.tolerance(query().dimension());
  }

  /**
   * Decides whether a divergence is within a radius: by a value to {@link Pair#PRECISE_ERROR}, which {@link #precise} or {@link #rounded}
   * gave, and unrounded if that is as near to the radius. Returns the divergence; ∞ if it exceeds the radius by less than its rounding.
   */
  final double decide(long place, double value, double radius) {
    if (!(Math.abs(value - radius) <= Pair.PRECISE_ERROR * radius)
        || radius == Double.POSITIVE_INFINITY) {
      return value;
    }
    Unrounded exact = exact(place, value);
    return exact.isBeyond(radius, tolerance()) ? Double.POSITIVE_INFINITY : exact.value;
  }
}
