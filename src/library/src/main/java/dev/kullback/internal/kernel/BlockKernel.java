package dev.kullback;

/** Computes rectangular blocks of the pairwise matrix. Stateless; one instance serves all threads. */
interface BlockKernel<G extends Gaussians> {
  /** Makes what {@link #block} reads of the batches, so that worker threads find it ready in {@code tile} or the batches. */
  void prepare(G q, G p, Tile tile);

  /** Before the first block of a call, and after the last: what it uses stays open. */
  default void begin() {}

  default void end() {}

  /**
   * {@code KL(q_i ‖ p_j)} for rows [row0, row1) and columns [column0, column1) of the call that {@code tile} describes. The
   * first row is a multiple of {@link KlEngine#ROW_PANEL}, the first column one of {@link DiagonalGaussians#WIDEST_PANEL}; there are at most
   * {@link KlEngine#BLOCK_ROWS} rows, for a device {@link KlEngine#REDUCED_COLUMNS}.
   */
  void block(G q, G p, int row0, int row1, int column0, int column1, Tile tile);
}
