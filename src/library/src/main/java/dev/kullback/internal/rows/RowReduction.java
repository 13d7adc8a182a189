package dev.kullback;

/**
 * What a call makes of the matrix instead of storing it. Its blocks come as they are computed, in the cache. Whoever computes a
 * band of rows computes all of its columns, each row's in order, so that nothing depends on the number of threads. Shared by the threads of
 * a call: what belongs to a band is in the {@link Tile}.
 */
abstract class RowReduction {
  /** Whether a band's blocks need not come in order, nor to one thread; then {@link #begin} and {@link #end} are by block. */
  boolean isByBlock() {
    return false;
  }

  /** Whether its blocks hold {@code KL(p_j ‖ q_i)} instead, at the same places. */
  boolean isReverse() {
    return false;
  }

  /** How many rows a band has at most, a multiple of {@link KlEngine#ROW_PANEL}. */
  int bandRows() {
    return KlEngine.BAND_ROWS;
  }

  /** Before the first block of rows [row0, row1). */
  abstract void begin(int row0, int row1, Tile t);

  /** {@code t.block64()} holds {@code KL(q_i ‖ p_j)} for rows [row0, row1) and columns [column0, column1), row-major without gaps, of
   * the band that begins at {@code t.band}. */
  abstract void block(int row0, int row1, int column0, int column1, Tile t);

  /** After the last block of rows [row0, row1). */
  abstract void end(int row0, int row1, Tile t);
}
