package dev.kullback;

import org.jspecify.annotations.Nullable;

/** One thread's working memory for full covariances; arrays grow on demand, so that warm calls allocate nothing. */
final class FullScratch {
  final FullPair pair = new FullPair();

  private @Nullable FullSolveKernel solve;

  /** The batches of a call as the product reads them. */
  @Nullable FullRows q;

  @Nullable FullColumns p;

  /** Memory for those of batches used for the first time, which may never be again; grown on demand. */
  double[] firstRows = {};

  double[] firstColumns = {};

  /** A chunk of a block's rows, packed; and their products with a group of columns. */
  double[] rows = {};

  double[] product = {};

  /** Per row of a block: its share of the error bound. */
  double[] bound = {};

  /** Per row of a block, one bit a column of a panel: the entries to be recomputed. */
  long[] open = {};

  /** Made where there are vectors and it is needed. */
  FullSolveKernel solve() {
    FullSolveKernel kernel = solve;
    if (kernel == null) {
      kernel = new FullSolveKernel();
      solve = kernel;
    }
    return kernel;
  }

  /** Drops the caller's batches. */
  void clear() {
    q = null;
    p = null;
    pair.clear();
  }
}
