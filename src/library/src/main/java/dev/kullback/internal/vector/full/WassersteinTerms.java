package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.formula.FullPair;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.Wasserstein2;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import java.util.Arrays;

/**
 * What the kernels of the Wasserstein distance do lane by lane: they copy factors, and make the distance of the sum of singular values,
 * or leave the pair to the scalar form. For one thread.
 */
final class WassersteinTerms {
  /**
   * Bounds of the greatest element of a factor, within which nothing overflows, of eigenvalues that are its fourth power. What underflows of a
   * pair within them does not count beside the traces.
   */
  private static final double LEAST = 0x1p-100;

  private static final double MOST = 0x1p100;

  private final Wasserstein2 formula;
  private final Pair pair;
  private final FullPair.Factor factorQ = new FullPair.Factor();
  private final FullPair.Factor factorP = new FullPair.Factor();

  /** Factor of the row by rows of n elements, zeros above the diagonal. */
  double[] row = {};

  /** All bits of the lanes whose matrix is to be transposed, as the other factor is a. */
  final long[] exchanged;

  private final double[] tracesQ = new double[BlockKernel.MOST_ROWS];
  private final double[] tracesP;
  private final boolean[] isFar;
  private int d;
  private int n;
  private int firstRow;
  private int i;
  private int j;
  private int count;

  /** Part of the traces that B exceeds where their difference from the singular values' sum is right. */
  private double least;

  WassersteinTerms(Wasserstein2 formula, Pair pair, int lanes) {
    this.formula = formula;
    this.pair = pair;
    exchanged = new long[lanes];
    tracesP = new double[lanes];
    isFar = new boolean[lanes];
  }

  /** Takes the rows of a block, with factors padded to n dimensions. */
  void begin(FullOperands operands, int row0, int row1, int n) {
    d = operands.q().dimension();
    least = Wasserstein2.leastPart(d);
    firstRow = row0;
    if (this.n != n) {
      row = new double[n * n];
      this.n = n;
    }
    for (int i = row0; i < row1; i++) {
      tracesQ[i - row0] = trace(operands.q().full(), i);
    }
  }

  /** Returns the trace of a covariance, or NaN if lanes cannot hold its factor. */
  private static double trace(FullBatch g, int i) {
    double[] l = g.scaleTril();
    double most = 0;
    double trace = 0;
    for (int r = 0, k = g.factorFrom(i); r < g.dimension(); r++) {
      double sum = 0;
      for (int end = k + r + 1; k < end; k++) {
        most = Math.max(most, Math.abs(l[k]));
        sum += l[k] * l[k];
      }
      trace += sum;
    }
    return most >= LEAST && most <= MOST ? trace : Double.NaN;
  }

  /** Copies the factors of columns from j on, {@code [r][c][lane]}; lanes beyond their number hold the last one. */
  void pack(FullOperands operands, int j, int count, double[] panel) {
    FullBatch p = operands.p().full();
    int lanes = tracesP.length;
    this.j = j;
    this.count = count;
    for (int lane = 0; lane < lanes; lane++) {
      int column = j + Math.min(lane, count - 1);
      tracesP[lane] = trace(p, column);
      for (int r = 0, k = p.factorFrom(column); r < d; r++) {
        for (int to = r * n * lanes + lane, c = 0; c <= r; c++, to += lanes) {
          panel[to] = p.scaleTril()[k++];
        }
      }
    }
  }

  /** Copies the factor of a row. */
  void setRow(FullOperands operands, int i) {
    FullBatch q = operands.q().full();
    this.i = i;
    for (int r = 0, k = q.factorFrom(i); r < d; k += ++r) {
      System.arraycopy(q.scaleTril(), k, row, r * n, r + 1);
    }
  }

  /**
   * Whether lanes are to go on with any pair: B is at most {@code ‖L_q − L_p‖²}.
   *
   * @param products {@code tr L_qᵀL_p}
   */
  boolean areAnyFar(double[] products) {
    boolean any = false;
    for (int lane = 0; lane < count; lane++) {
      isFar[lane] = isFar(lane, products[lane]);
      any |= isFar[lane];
    }
    return any;
  }

  private boolean isFar(int lane, double half) {
    double traces = tracesQ[i - firstRow] + tracesP[lane];
    return traces - 2 * half > least * traces;
  }

  /** Looks in which lanes q comes first in the order of all parameters, so that no bit depends on the roles; returns whether in any. */
  boolean areAnyExchanged(FullOperands operands) {
    Arrays.fill(exchanged, 0);
    factorQ.set(operands.q().full(), i);
    boolean any = false;
    for (int lane = 0; lane < count; lane++) {
      factorP.set(operands.p().full(), j + lane);
      if (factorQ.isBefore(factorP, d)) {
        exchanged[lane] = -1;
        any = true;
      }
    }
    return any;
  }

  /** Stores the divergences of the row and the columns, of which these are the sums of singular values. */
  void store(FullOperands operands, double[] sums, BlockTarget out) {
    for (int lane = 0; lane < count; lane++) {
      double value = isFar[lane] && isFar(lane, sums[lane]) ? far(operands, lane, sums[lane]) : -1;
      out.put(i, j + lane, value >= 0 ? value : pair.of(operands.q(), i, operands.p(), j + lane));
    }
  }

  /** Returns the divergence, or a negative number if it is beyond the range of lanes. */
  private double far(FullOperands operands, int lane, double sum) {
    double[] q = operands.q().full().mean();
    double[] p = operands.p().full().mean();
    double square = tracesQ[i - firstRow] + tracesP[lane] - 2 * sum;
    for (int h = 0; h < d; h++) {
      double x = q[i * d + h] - p[(j + lane) * d + h];
      square += x * x;
    }
    return square <= Double.MAX_VALUE && !formula.isBeyondRange(square)
        ? formula.finish(square)
        : -1;
  }

  /** Drops the callers' batches. */
  void clear() {
    factorQ.clear();
    factorP.clear();
  }
}
