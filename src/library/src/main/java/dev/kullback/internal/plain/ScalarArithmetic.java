package dev.kullback.internal.plain;

import dev.kullback.internal.numerics.Arithmetic;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.LogProduct;

/** In plain Java. */
public class ScalarArithmetic implements Arithmetic {
  @Override
  public boolean isWithin(float[] values, int from, int to, double least, double most) {
    boolean all = true;
    for (int k = from; k < to; k++) {
      all &= values[k] >= least && values[k] <= most;
    }
    return all;
  }

  @Override
  public boolean isWithin(double[] values, int from, int to, double least, double most) {
    boolean all = true;
    for (int k = from; k < to; k++) {
      all &= values[k] >= least && values[k] <= most;
    }
    return all;
  }

  @Override
  public double logProduct(float[] s, int from, int to) {
    return LogProduct.of(s, from, to, 1, 0);
  }

  @Override
  public Factorization factorization() {
    return new Cholesky();
  }
}
