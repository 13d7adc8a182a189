package dev.kullback;

/** KL of a deterministic q: 0 by convention, see {@link ScalePolicy}. */
final class ZeroKernel implements BlockKernel<Gaussians> {
  @Override
  public void prepare(Gaussians q, Gaussians p, Tile t) {}

  @Override
  public void block(
      Gaussians q, Gaussians p, int row0, int row1, int column0, int column1, Tile t) {
    for (int i = row0; i < row1; i++) {
      for (int j = column0; j < column1; j++) {
        t.put(i, j, 0);
      }
    }
  }
}
