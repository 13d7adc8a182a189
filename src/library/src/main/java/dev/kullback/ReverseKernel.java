package dev.kullback;

/** Puts {@code KL(p_j ‖ q_i)} at row i, column j: another kernel's blocks, transposed in the cache. For reductions alone. */
final class ReverseKernel<G extends Gaussians> implements BlockKernel<G> {
  private final BlockKernel<G> kernel;
  private final int height;

  /**
   * Of a kernel that computes so many rows at once.
   *
   * @param height a multiple of {@link KlEngine#ROW_PANEL}
   */
  ReverseKernel(BlockKernel<G> kernel, int height) {
    this.kernel = kernel;
    this.height = height;
  }

  @Override
  public void prepare(G q, G p, Tile t) {
    kernel.prepare(p, q, t);
  }

  @Override
  public void begin() {
    kernel.begin();
  }

  @Override
  public void end() {
    kernel.end();
  }

  /** As the other's columns these rows begin at a multiple of {@link DiagonalGaussians#WIDEST_PANEL}. */
  @Override
  public void block(G q, G p, int row0, int row1, int column0, int column1, Tile t) {
    int n = row1 - row0;
    t.stride = n;
    t.base = -(column0 * n + row0);
    for (int j = column0; j < column1; j += height) {
      kernel.block(p, q, j, Math.min(j + height, column1), row0, row1, t);
    }
    t.transposeBlock(column1 - column0, n);
  }
}
