package dev.kullback;

/**
 * {@link FullPair} for every entry: the scalar backend of pairs that are not both diagonal, and the vector backend's way where
 * a diagonal batch is too large to be written out as full factors.
 */
final class FullScalarKernel implements BlockKernel<Gaussians> {
  @Override
  public void prepare(Gaussians q, Gaussians p, Tile t) {}

  @Override
  public void block(
      Gaussians q, Gaussians p, int row0, int row1, int column0, int column1, Tile t) {
    long terms = FullPair.terms(q.dimension());
    for (int i = row0; i < row1; i++) {
      for (int j = column0; j < column1; j++) {
        t.pass(terms);
        t.put(i, j, q == p && i == j ? 0 : t.full.pair.kl(q, i, p, j));
      }
    }
  }
}
