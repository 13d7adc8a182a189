package dev.kullback;

import java.util.AbstractList;
import java.util.Collections;
import java.util.List;
import java.util.RandomAccess;

/**
 * The references that a search found for each of N queries, and their divergences, in nats, as compressed sparse rows: row i, of query i,
 * has the entries {@code start(i)} to {@code start(i + 1) − 1} of {@link #values()} and of the array of ids that a subclass has.
 *
 * <p>A row of a search for the nearest is ascending by divergence, and where divergences are equal by id; one of a search within a radius is
 * ascending by id. Values are double even for batches of float, since rounding would turn what is ordered into ties.
 *
 * @since 0.1.0
 */
public abstract sealed class SearchResult permits Neighbors, IndexNeighbors {
  private final int[] start;
  private final double[] values;

  SearchResult(int[] start, double[] values) {
    this.start = start;
    this.values = values;
  }

  /** {@return the number N of rows, one a query} */
  public final int size() {
    return start.length - 1;
  }

  /**
   * {@return the number of neighbors of row i}
   *
   * @param i the row, in [0, N)
   * @throws IndexOutOfBoundsException if i is not in [0, N)
   */
  public final int count(int i) {
    check(i, size());
    return start[i + 1] - start[i];
  }

  /**
   * {@return where row i begins in the arrays; for i = N, where the last row ends}
   *
   * @param i the row, in [0, N]
   * @throws IndexOutOfBoundsException if i is not in [0, N]
   */
  public final int start(int i) {
    check(i, start.length);
    return start[i];
  }

  /**
   * {@return the id of neighbor r of row i: in an index the one that it was added under, in an engine its column}
   *
   * @param i the row, in [0, N)
   * @param r the neighbor, in [0, count(i))
   * @throws IndexOutOfBoundsException if i or r is not in its range
   */
  public final long id(int i, int r) {
    return idAt(at(i, r));
  }

  /**
   * {@return the divergence of neighbor r of row i, in nats}
   *
   * @param i the row, in [0, N)
   * @param r the neighbor, in [0, count(i))
   * @throws IndexOutOfBoundsException if i or r is not in its range
   */
  public final double value(int i, int r) {
    return values[at(i, r)];
  }

  /** {@return the divergences of all rows, in nats, as this object's own array} */
  public final double[] values() {
    return values;
  }

  /**
   * {@return the neighbors of row i in their order, as a list that cannot be changed} The list is a view: it takes no memory of its own, and
   * makes each {@link Neighbor} when it is asked for.
   *
   * @param i the row, in [0, N)
   * @throws IndexOutOfBoundsException if i is not in [0, N)
   */
  public final List<Neighbor> row(int i) {
    check(i, size());
    return Collections.unmodifiableList(new Row(this, i));
  }

  abstract long idAt(int entry);

  final int at(int i, int r) {
    int count = count(i);
    if (r < 0 || r >= count) {
      throw new IndexOutOfBoundsException(
          "neighbor r is %d; row %d has %d of them".formatted(r, i, count));
    }
    return start[i] + r;
  }

  private static void check(int i, int length) {
    if (i < 0 || i >= length) {
      throw new IndexOutOfBoundsException(
          "row i is %d; it must be in [0, %d)".formatted(i, length));
    }
  }

  @Override
  public String toString() {
    return "%s[%d rows, %d entries]".formatted(getClass().getSimpleName(), size(), values.length);
  }

  private static final class Row extends AbstractList<Neighbor> implements RandomAccess {
    private final SearchResult all;
    private final int i;

    Row(SearchResult all, int i) {
      this.all = all;
      this.i = i;
    }

    @Override
    public int size() {
      return all.count(i);
    }

    @Override
    public Neighbor get(int r) {
      return new Neighbor(all.id(i, r), all.value(i, r));
    }
  }
}
