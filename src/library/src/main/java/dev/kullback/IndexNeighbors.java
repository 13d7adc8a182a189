package dev.kullback;

import java.util.Objects;

/**
 * The references that a {@link KlIndex} found for each query, by their ids, and the divergences, in nats, as compressed sparse
 * rows: query i has the entries {@code start(i)} to {@code start(i + 1) − 1} of {@link #ids()} and {@link #values()}. Those
 * of a search for the nearest are ascending by divergence, and where divergences are equal by id; those within a radius are ascending
 * by id.
 *
 * <p>A divergence is that of exact arithmetic rounded to double, as {@link NearestOptions#exact()} describes.
 *
 * @since 0.1.0
 */
public final class IndexNeighbors {
  private final int[] start;
  private final long[] ids;
  private final double[] values;

  IndexNeighbors(int[] start, long[] ids, double[] values) {
    this.start = start;
    this.ids = ids;
    this.values = values;
  }

  /** {@return the number of queries} */
  public int size() {
    return start.length - 1;
  }

  /**
   * {@return the number of references found for query i}
   *
   * @param i the query, in [0, size())
   * @throws IndexOutOfBoundsException if i is not in [0, size())
   */
  public int count(int i) {
    Objects.checkIndex(i, size());
    return start[i + 1] - start[i];
  }

  /**
   * {@return where query i begins in the arrays; for i = size(), where the last one ends}
   *
   * @param i the query, in [0, size()]
   * @throws IndexOutOfBoundsException if i is not in [0, size()]
   */
  public int start(int i) {
    return start[Objects.checkIndex(i, start.length)];
  }

  /**
   * {@return the id of the r-th reference of query i}
   *
   * @param i the query, in [0, size())
   * @param r the reference, in [0, count(i))
   * @throws IndexOutOfBoundsException if i or r is not in its range
   */
  public long id(int i, int r) {
    return ids[at(i, r)];
  }

  /**
   * {@return the divergence of the r-th reference of query i, in nats}
   *
   * @param i the query, in [0, size())
   * @param r the reference, in [0, count(i))
   * @throws IndexOutOfBoundsException if i or r is not in its range
   */
  public double value(int i, int r) {
    return values[at(i, r)];
  }

  /** {@return the ids of all queries, as this object's own array} */
  public long[] ids() {
    return ids;
  }

  /** {@return the divergences of all queries, in nats, as this object's own array} */
  public double[] values() {
    return values;
  }

  private int at(int i, int r) {
    return start[i] + Objects.checkIndex(r, count(i));
  }

  @Override
  public String toString() {
    return "IndexNeighbors[%d queries, %d entries]".formatted(size(), ids.length);
  }
}
