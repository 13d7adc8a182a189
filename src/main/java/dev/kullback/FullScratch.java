package dev.kullback;

/** One thread's working memory for full covariances; arrays grow on demand, so that warm calls allocate nothing. */
final class FullScratch {
  final FullPair pair = new FullPair();

  /** A chunk of a block's rows, packed; and their products with a group of columns. */
  double[] rows = {};

  double[] product = {};

  /** Per row of a block: its share of the error bound. */
  double[] bound = {};

  /** Per row of a block, one bit a column of a panel: the entries to be recomputed. */
  long[] open = {};
}
