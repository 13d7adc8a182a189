package dev.kullback;

/**
 * Some columns j of each row i of the matrix {@code KL(q_i ‖ p_j)}, or of {@code KL(p_j ‖ q_i)}, in nats, as compressed sparse rows: row i has
 * the entries {@code start(i)} to {@code start(i + 1) − 1} of {@link #indices()} and {@link #values()}. Made by {@link KlEngine#nearest} and {@link
 * KlEngine#nearestReverse} (k in every row, nearest first), {@link KlEngine#within} and {@link KlEngine#withinReverse} (as many as there are, by ascending column).
 *
 * <p>Values are double also where the batches are of float: rounding them would make ties of what is ordered.
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

  /** Number N of rows. */
  public int size() {
    return start.length - 1;
  }

  /**
   * Number of neighbors of row i.
   *
   * @throws IndexOutOfBoundsException if i is not in [0, N), as do the methods below
   */
  public int count(int i) {
    check(i, size());
    return start[i + 1] - start[i];
  }

  /** The column of row i's neighbor r, r in [0, count(i)). */
  public int index(int i, int r) {
    return indices[at(i, r)];
  }

  /** The divergence of row i's neighbor r, of column {@code index(i, r)}. */
  public double value(int i, int r) {
    return values[at(i, r)];
  }

  /** Where row i begins in the arrays; i up to N, where the last row ends. */
  public int start(int i) {
    check(i, start.length);
    return start[i];
  }

  /** The columns of all rows: this object's own array. */
  public int[] indices() {
    return indices;
  }

  /** The divergences of all rows: this object's own array. */
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
