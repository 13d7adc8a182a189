package dev.kullback;

/**
 * Some columns j of each row i of the matrix {@code KL(q_i ‖ p_j)}, or of {@code KL(p_j ‖ q_i)}, in nats, as compressed
 * sparse rows: row i has the entries {@code start(i)} to {@code start(i + 1) − 1} of {@link #indices()} and
 * {@link #values()}.
 *
 * <p>The {@code nearest} methods of {@link KlEngine} return k neighbors in every row, nearest first. Its {@code within}
 * methods return as many as there are, by ascending column. Values are double even for batches of float, since rounding
 * would turn what is ordered into ties.
 */
public final class Neighbors {
  private final int[] start;
  private final int[] indices;
  private final double[] values;

  Neighbors(int[] start, int[] indices, double[] values) {
    this.start = start;
    this.indices = indices;
    this.values = values;
  }

  /** {@return the number N of rows} */
  public int size() {
    return start.length - 1;
  }

  /**
   * {@return the number of neighbors of row i}
   *
   * @param i the row, in [0, N)
   * @throws IndexOutOfBoundsException if i is not in [0, N)
   */
  public int count(int i) {
    check(i, size());
    return start[i + 1] - start[i];
  }

  /**
   * {@return the column of neighbor r of row i}
   *
   * @param i the row, in [0, N)
   * @param r the neighbor, in [0, count(i))
   * @throws IndexOutOfBoundsException if i or r is not in its range
   */
  public int index(int i, int r) {
    return indices[at(i, r)];
  }

  /**
   * {@return the divergence of neighbor r of row i, in nats: the matrix at row i, column {@code index(i, r)}}
   *
   * @param i the row, in [0, N)
   * @param r the neighbor, in [0, count(i))
   * @throws IndexOutOfBoundsException if i or r is not in its range
   */
  public double value(int i, int r) {
    return values[at(i, r)];
  }

  /**
   * {@return where row i begins in the arrays; for i = N, where the last row ends}
   *
   * @param i the row, in [0, N]
   * @throws IndexOutOfBoundsException if i is not in [0, N]
   */
  public int start(int i) {
    check(i, start.length);
    return start[i];
  }

  /** {@return the columns of all rows, as this object's own array} */
  public int[] indices() {
    return indices;
  }

  /** {@return the divergences of all rows, in nats, as this object's own array} */
  public double[] values() {
    return values;
  }

  private static void check(int i, int length) {
    if (i < 0 || i >= length) {
      throw new IndexOutOfBoundsException(
          "row i is %d; it must be in [0, %d)".formatted(i, length));
    }
  }

  private int at(int i, int r) {
    int count = count(i);
    if (r < 0 || r >= count) {
      throw new IndexOutOfBoundsException(
          "neighbor r is %d; row %d has %d of them".formatted(r, i, count));
    }
    return start[i] + r;
  }

  @Override
  public String toString() {
    return "Neighbors[%d rows, %d entries]".formatted(size(), indices.length);
  }
}
