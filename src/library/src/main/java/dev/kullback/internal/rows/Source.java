package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.Unrounded;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The divergences of one query from the candidates of its {@link Ranking}. It gives the divergence of a place at three precisions: relative
 * error 1e-13 ({@link Pair#PRECISE_ERROR}), rounded to double, and unrounded, the slowest. Places are rows of a batch, unless a subclass
 * redefines them. Used by one thread.
 */
public class Source {
  private final Pair forward;

  /** Computes in the direction of {@link #turn}. */
  private Pair pair;

  private @Nullable Batch query;
  private @Nullable Batch all;
  private int row;

  /** Bounds that {@link #bound} found. */
  protected double lower;

  protected double upper;

  protected Source(Pair pair) {
    forward = pair;
    this.pair = pair;
  }

  /** Turns to the divergences of the query from candidates, or if the roles are {@code exchanged}, of candidates from the query. */
  protected final void turn(boolean exchanged) {
    pair = exchanged ? forward.reversed() : forward;
  }

  /** Asks for divergences of row i of q and the rows of p from now on. */
  protected final Source ask(Batch q, int i, Batch p) {
    query = q;
    row = i;
    all = p;
    return this;
  }

  /** Drops the batches. */
  public void clear() {
    query = null;
    all = null;
  }

  /** Returns a batch that has the Gaussian of a place, in row {@link #row}. */
  protected Batch batch(long place) {
    return Objects.requireNonNull(all);
  }

  protected int row(long place) {
    return (int) place;
  }

  /** Whether two places certainly have equal divergences. */
  protected boolean isSame(long place, long other) {
    return Pair.isSame(batch(place), row(place), row(other));
  }

  /** Whether {@link #precise} takes less time than {@link #rounded}. */
  final boolean isPreciseFaster() {
    return pair.isPreciseFaster(query(), Objects.requireNonNull(all));
  }

  /** Returns the number by which candidates of equal divergences are ordered, and that stands for the place in a result. */
  protected long id(long place) {
    return place;
  }

  /** Returns what {@link #precise} and {@link #rounded} add to what the pair gives of a place's batch. */
  protected double offset(long place) {
    return 0;
  }

  private Batch query() {
    return Objects.requireNonNull(query);
  }

  /** Returns the divergence as {@link Pair#precise} does. */
  final double precise(long place) {
    return pair.precise(query(), row, batch(place), row(place)) + offset(place);
  }

  /** Returns the divergence as {@link Pair#rounded} does. */
  final double rounded(long place) {
    return pair.rounded(query(), row, batch(place), row(place)) + offset(place);
  }

  /** Returns the divergence as {@link Pair#exact} does, valid until the next call. */
  final Unrounded exact(long place, double value) {
    return pair.exact(query(), row, batch(place), row(place), value);
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

  /** Asks for places [from, to) of a list, whose divergences are computed next, so that memory has them on the way to the cache at once. */
  protected void touch(long[] places, int from, int to) {}

  /** Whether the search is to end at a time. */
  protected boolean isTimed() {
    return false;
  }

  /** Whether that time is up: only what is found already is decided. */
  protected boolean isOver() {
    return false;
  }

  /** Whether that time has been up for so long that nothing is decided any more. */
  protected boolean isAtEnd() {
    return false;
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
