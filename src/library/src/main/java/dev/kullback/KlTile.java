package dev.kullback;

/**
 * A rectangle of the matrix {@code KL(q_i ‖ p_j)}, in nats, as {@link KlEngine#forEachTile} hands it out: rows {@code [row0, row0 +
 * rows)}, columns {@code [column0, column0 + columns)}. Its values are valid during the callback, on its thread.
 */
public final class KlTile {
  private final int row0;
  private final int rows;
  private final int column0;
  private final int columns;
  private final double[] values;

  KlTile(int row0, int row1, int column0, int column1, double[] values) {
    this.row0 = row0;
    this.rows = row1 - row0;
    this.column0 = column0;
    this.columns = column1 - column0;
    this.values = values;
  }

  /** First row in the matrix. */
  public int row0() {
    return row0;
  }

  /** Number of rows, at least 1. */
  public int rows() {
    return rows;
  }

  /** First column in the matrix. */
  public int column0() {
    return column0;
  }

  /** Number of columns, at least 1. */
  public int columns() {
    return columns;
  }

  /**
   * {@code KL(q_{row0 + i} ‖ p_{column0 + j})}.
   *
   * @param i in [0, rows)
   * @param j in [0, columns)
   */
  public double value(int i, int j) {
    if (i < 0 || i >= rows || j < 0 || j >= columns) {
      throw new IndexOutOfBoundsException(
          "i is %d and j is %d in a tile of %d x %d".formatted(i, j, rows, columns));
    }
    return values[i * columns + j];
  }

  /** The engine's own array, {@code values[i * columns + j]}: at least as long, free to be changed, reused after the callback. */
  public double[] values() {
    return values;
  }
}
