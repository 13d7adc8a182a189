package dev.kullback.internal.numerics;

import java.util.function.LongConsumer;

/**
 * Cholesky factors of several matrices at once, in double-double: packed lower triangles, row-major, one array of high and one of
 * low parts, entry k of matrix i at {@code [k·lanes + i]}. For one thread.
 */
public interface Factorization {
  /** Number of matrices at once. */
  int lanes();

  /**
   * Replaces symmetric matrices by their factors, and returns whether all pivots are positive and finite.
   *
   * @param progress takes the number of multiplications of each row before it is computed, of one matrix
   */
  boolean factor(double[] high, double[] low, int d, LongConsumer progress);

  /** First row of matrix i whose pivot is not positive and finite, or −1. */
  int failed(int i);

  /** Pivot of the row that {@link #failed} tells. */
  double pivot(int i);

  /** Replaces factors by their inverses. */
  void invert(double[] high, double[] low, int d, LongConsumer progress);
}
