package dev.kullback;

/**
 * A rectangle of the matrix {@code KL(q_i ‖ p_j)}, in nats, which {@link KlEngine#forEachTile} passes to its consumer.
 * It covers the rows {@code [rowOffset, rowOffset + rows)} and the columns {@code [columnOffset, columnOffset + columns)}.
 * Its values are valid during the callback, on the thread of the callback.
 *
 * @since 0.1.0
 */
public final class KlTile {
  private final int rowOffset;
  private final int rows;
  private final int columnOffset;
  private final int columns;
  private final double[] values;

  KlTile(int rowOffset, int rows, int columnOffset, int columns, double[] values) {
    this.rowOffset = rowOffset;
    this.rows = rows;
    this.columnOffset = columnOffset;
    this.columns = columns;
    this.values = values;
  }

  /** {@return the tile's first row, counted in the matrix} */
  public int rowOffset() {
    return rowOffset;
  }

  /** {@return the number of the tile's rows, at least 1} */
  public int rows() {
    return rows;
  }

  /** {@return the tile's first column, counted in the matrix} */
  public int columnOffset() {
    return columnOffset;
  }

  /** {@return the number of the tile's columns, at least 1} */
  public int columns() {
    return columns;
  }

  /**
   * {@return the entry {@code KL(q_{rowOffset + i} ‖ p_{columnOffset + j})}, in nats}
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
   * {@return the engine's own array, with entry (i, j) of the tile at {@code values[i * columns + j]}}
   *
   * <p>It may be longer than the tile needs. The callback may change it, and the engine reuses it afterwards.
   */
  public double[] values() {
    return values;
  }

  /** {@return the rows and columns that it covers} */
  @Override
  public String toString() {
    return "KlTile[rows %d to %d, columns %d to %d]"
        .formatted(rowOffset, rowOffset + rows - 1, columnOffset, columnOffset + columns - 1);
  }
}
