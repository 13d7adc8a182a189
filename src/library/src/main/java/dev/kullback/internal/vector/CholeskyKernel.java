package dev.kullback.internal.vector;

import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Factorization;
import java.util.Arrays;
import java.util.function.LongConsumer;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/** {@link Cholesky} of a matrix in each lane, by the same operations, to the same bits. Entry k of matrix i is at {@code [k·V + i]}. */
public final class CholeskyKernel implements Factorization {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final VectorSpecies<Long> L = Species.LONG;
  private static final int V = S.length();

  private final int[] failed = new int[V];
  private final double[] pivots = new double[V];

  @Override
  public int lanes() {
    return V;
  }

  @Override
  public int failed(int i) {
    return failed[i];
  }

  @Override
  public double pivot(int i) {
    return pivots[i];
  }

  @Override
  public boolean factor(double[] high, double[] low, int d, LongConsumer progress) {
    Arrays.fill(failed, -1);
    boolean complete = true;
    for (int i = 0, row = 0; i < d; row += ++i) {
      progress.accept((long) i * i / 2);
      for (int j = 0, column = 0; j < i; column += ++j) {
        subtractProducts(high, low, row + j, row, column, 1, 0, j);
        divide(high, low, row + j, column + j, false);
      }
      subtractProducts(high, low, row + i, row, row, 1, 0, i);
      complete &= squareRoot(high, low, row + i, i);
    }
    return complete;
  }

  @Override
  public void invert(double[] high, double[] low, int d, LongConsumer progress) {
    for (int i = 0, row = 0; i < d; row += ++i) {
      progress.accept((long) i * i / 2);
      int pivot = row + i;
      for (int j = 0; j < i; j++) { // X_ij = −(Σ L_ik X_kj) / L_ii, over rows k of X above
        int above = Cholesky.packedLength(j) + j;
        subtractProducts(high, low, row + j, row + j, above, j + 1, 1, i - j);
        divide(high, low, row + j, pivot, false);
      }
      divide(high, low, pivot, pivot, true);
    }
  }

  /** Subtracts n products of entries a, a + 1, … and b, b + step, b + 2·step + growth, … from entry {@code to}, or with growth from 0. */
  private static void subtractProducts(
      double[] high, double[] low, int to, int a, int b, int step, int growth, int n) {
    boolean from = growth == 0;
    DoubleVector hi = from ? DoubleVector.fromArray(S, high, to * V) : DoubleVector.zero(S);
    DoubleVector lo = from ? DoubleVector.fromArray(S, low, to * V) : DoubleVector.zero(S);
    for (int k = 0, i = a * V, j = b * V; k < n; i += V, j += (step + growth * k++) * V) {
      DoubleVector ah = DoubleVector.fromArray(S, high, i);
      DoubleVector bh = DoubleVector.fromArray(S, high, j);
      DoubleVector p = ah.mul(bh);
      DoubleVector minus = p.neg();
      DoubleVector crossed =
          ah.mul(DoubleVector.fromArray(S, low, j)).add(DoubleVector.fromArray(S, low, i).mul(bh));
      DoubleVector rest = ah.fma(bh, minus).add(crossed);
      DoubleVector s = minus.add(hi);
      DoubleVector t = s.sub(hi);
      DoubleVector error = hi.sub(s.sub(t)).sub(p.add(t));
      hi = s;
      lo = error.sub(rest).add(lo);
    }
    DoubleVector sum = hi.add(lo);
    sum.intoArray(high, to * V);
    lo.sub(sum.sub(hi)).intoArray(low, to * V);
  }

  /** Divides entry {@code to}, or with {@code inverse} 1 in its place, by a pivot. */
  private static void divide(double[] high, double[] low, int to, int pivot, boolean inverse) {
    DoubleVector dh = DoubleVector.fromArray(S, high, pivot * V);
    DoubleVector dl = DoubleVector.fromArray(S, low, pivot * V);
    DoubleVector hi =
        inverse ? DoubleVector.broadcast(S, 1) : DoubleVector.fromArray(S, high, to * V);
    DoubleVector lo = inverse ? DoubleVector.zero(S) : DoubleVector.fromArray(S, low, to * V);
    DoubleVector x = hi.div(dh);
    DoubleVector p = x.mul(dh);
    DoubleVector rest = hi.sub(p).sub(x.fma(dh, p.neg())).add(lo.sub(x.mul(dl))).div(dh);
    DoubleVector sum = x.add(rest);
    sum.intoArray(high, to * V);
    rest.sub(sum.sub(x)).intoArray(low, to * V);
  }

  private boolean squareRoot(double[] high, double[] low, int entry, int row) {
    DoubleVector hi = DoubleVector.fromArray(S, high, entry * V);
    DoubleVector lo = DoubleVector.fromArray(S, low, entry * V);
    LongVector bits = (LongVector) hi.reinterpretShape(L, 0);
    boolean complete = // 0 < pivot < ∞, as integers
        bits.or(bits.sub(1)).or(bits.add(Epilogue.UP_TO_INFINITY)).reduceLanes(VectorOperators.OR)
            >= 0;
    if (!complete) {
      for (int i = 0; i < V; i++) {
        double pivot = high[entry * V + i];
        if (!(pivot > 0 && pivot <= Double.MAX_VALUE) && failed[i] < 0) {
          failed[i] = row;
          pivots[i] = pivot;
        }
      }
    }
    DoubleVector x = hi.sqrt();
    DoubleVector p = x.mul(x);
    DoubleVector rest = hi.sub(p).sub(x.fma(x, p.neg())).add(lo).div(x.mul(2));
    DoubleVector sum = x.add(rest);
    sum.intoArray(high, entry * V);
    rest.sub(sum.sub(x)).intoArray(low, entry * V);
    return complete;
  }
}
