package dev.kullback;

/** The backend without vectors: {@link PairKl} for every entry. Runs on every JVM; the plainest text of the algorithm. */
final class ScalarKernel implements BlockKernel<DiagonalGaussians> {
  @Override
  public void prepare(DiagonalGaussians q, DiagonalGaussians p, Tile t) {
    q.precisions();
    p.precisions();
  }

  @Override
  public void block(
      DiagonalGaussians q,
      DiagonalGaussians p,
      int row0,
      int row1,
      int column0,
      int column1,
      Tile t) {
    long terms = Checkpoint.ofPair(q, p);
    for (int i = row0; i < row1; i++) {
      for (int j = column0; j < column1; j++) {
        t.pass(terms);
        t.put(i, j, q == p && i == j ? 0 : PairKl.of(q, i, p, j));
      }
    }
  }
}
