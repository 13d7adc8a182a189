package dev.kullback.internal.numerics;

/** What is done with every number of a batch when it is made: in plain Java, or with vectors, to the same results but for last digits. */
public interface Arithmetic {
  /** Whether {@code least ≤ values[i] ≤ most} for i in [from, to), with vectors the bounds rounded to float; false for NaN. */
  boolean isWithin(float[] values, int from, int to, double least, double most);

  /** Whether {@code least ≤ values[i] ≤ most} for i in [from, to); false for NaN. */
  boolean isWithin(double[] values, int from, int to, double least, double most);

  /** {@code ln Π s[i]} of positive numbers, i in [from, to). */
  double logProduct(float[] s, int from, int to);

  /** Something to factor matrices with, for one thread. */
  Factorization factorization();

  /**
   * Cholesky factors of several matrices at once, in double-double: packed lower triangles, row-major, one array of high and one of
   * low parts, entry k of matrix i at {@code [k·lanes + i]}.
   */
  interface Factorization {
    /** How many matrices at once. */
    int lanes();

    /** Replaces symmetric matrices by their factors; whether all pivots are positive and finite. */
    boolean factor(double[] high, double[] low, int d);

    /** The first row of matrix i whose pivot is not positive and finite, or −1. */
    int failed(int i);

    /** That pivot. */
    double pivot(int i);

    /** Replaces factors by their inverses. */
    void invert(double[] high, double[] low, int d);
  }
}
