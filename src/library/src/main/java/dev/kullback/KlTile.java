package dev.kullback;

/**
 * A rectangle of the matrix {@code KL(q_i ‖ p_j)}, in nats, which {@link KlEngine#forEachTile} passes to its consumer.
 * It covers the rows {@code [row0, row0 + rows)} and the columns {@code [column0, column0 + columns)}. Its values are
 * valid during the callback, on the thread of the callback.
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

  /** {@return the first row, counted in the matrix} */
  public int row0() {
    return row0;
  }

  /** {@return the number of rows, at least 1} */
  public int rows() {
    return rows;
  }

  /** {@return the first column, counted in the matrix} */
  public int column0() {
    return column0;
  }

  /** {@return the number of columns, at least 1} */
  public int columns() {
    return columns;
  }

  /**
   * {@return the entry {@code KL(q_{row0 + i} ‖ p_{column0 + j})}, in nats}
   *
   * @param i the row in the tile, in [0, rows)
   * @param j the column in the tile, in [0, columns)
   * @throws IndexOutOfBoundsException if i or j is not in its range
   */
  public double value(int i, int j) {
    if (i < 0 || i >= rows || j < 0 || j >= columns) {
      throw new IndexOutOfBoundsException(
          "i is %d and j is %d in a tile of %d x %d".formatted(i, j, rows, columns));
    }
    return values[i * columns + j];
  }

  /**
   * {@return the engine's own array, with entry (i, j) of the tile at {@code values[i * columns + j]}} It may be longer
   * than the tile needs. The callback may change it, and the engine reuses it afterwards.
   */
  public double[] values() {
    return values;
  }
}
