package dev.kullback;

/**
 * A rectangle of the matrix {@code KL(q_i ‖ p_j)}, in nats, which {@link KlEngine#forEachTile} passes to its consumer.
 * It covers the rows {@code [row0, row0 + rows)} and the columns {@code [column0, column0 + columns)}. Its values are
 * valid during the callback, on the thread of the callback.
 *
 * @param row0 the first row, counted in the matrix
 * @param rows the number of rows, at least 1
 * @param column0 the first column, counted in the matrix
 * @param columns the number of columns, at least 1
 * @param values the engine's own array, with entry (i, j) of the tile at {@code values[i * columns + j]}. It may be
 *     longer than the tile needs. The callback may change it, and the engine reuses it afterwards.
 * @since 0.1.0
 */
public record KlTile(int row0, int rows, int column0, int columns, double[] values) {
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
}
