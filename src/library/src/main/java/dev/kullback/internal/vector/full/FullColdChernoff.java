package dev.kullback.internal.vector.full;

import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.stream.IntStream;

/** {@link FullChernoffKernel} without vectors, pair by pair: the same operations in the same order, so the same bits. */
public final class FullColdChernoff implements BlockKernel<FullOperands> {
  private static final int MR = ProductKernels.MR;
  private static final int NR = FullColumns.NR;

  private final Worker worker;
  private final Pair pair;
  private final ChernoffTerms terms;
  private final ChernoffRows rows = new ChernoffRows();

  /** A column's packed {@code −scale·Σ}, μ, and the diagonal of {@code Σ⁻¹/scale} times w_k. */
  private double[] column = {};

  /** The factor by columns of D + 1 entries, the last of which is the means'; the pivots. */
  private double[] factor = {};

  private double[] pivots = {};

  /** Entries of the packed Σ and of μ as they lie. */
  private int[] order = {};

  public FullColdChernoff(Formula formula, Worker worker, Pair pair) {
    this.worker = worker;
    this.pair = pair;
    terms = new ChernoffTerms(formula);
  }

  @Override
  public void block(
      FullOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    int d = operands.q().dimension();
    if (pivots.length != d) {
      order = IntStream.range(0, FullColumns.length(d)).toArray();
      column = new double[FullColumns.length(d) + d];
      factor = new double[d * (d + 1)];
      pivots = new double[d];
    }
    for (int first = row0; first < row1; ) {
      int end = rows.pack(operands, order, first, row1);
      for (int j = column0; j < column1; j++) {
        packColumn(operands.otherRows(), operands.columns(), j, d);
        for (int i = first; i < end; i++) {
          worker.pass(Checkpoint.ofSolve(d));
          factor(rows.at(i), d);
          double value = value(operands, rows.at(i), i, j, d);
          out.put(
              i,
              j,
              value < Double.POSITIVE_INFINITY
                  ? terms.finish(value)
                  : pair.of(operands.q(), i, operands.p(), j));
        }
      }
      first = end;
    }
  }

  private void packColumn(FullRows rows, FullColumns columns, int j, int d) {
    int triangle = Cholesky.packedLength(d);
    int to = 0;
    int from = j / MR * MR * triangle + j % MR;
    for (int k = 0; k < triangle; k++) {
      column[to++] = rows.covariance()[from + k * MR] * -terms.scale;
    }
    from = j / MR * MR * d + j % MR;
    for (int h = 0; h < d; h++) {
      column[to++] = rows.mean()[from + h * MR];
    }
    from = j / NR * NR * FullColumns.length(d) + j % NR;
    for (int h = 0, k = 0; h < d; k += ++h + 1) {
      column[to++] = columns.values()[from + k * NR] / terms.scale * ChernoffTerms.weight(d, h);
    }
  }

  private void factor(int at, int d) {
    double[] q = rows.values;
    double[] p = column;
    double[] l = factor;
    for (int c = 0; c < d; c++) {
      int to = c * (d + 1);
      for (int r = c, k = Cholesky.packedLength(c) + c; r < d; k += ++r) {
        l[to + r] = p[k] + q[at + k];
      }
      int means = Cholesky.packedLength(d) + c;
      l[to + d] = p[means] + q[at + means];
      for (int k = 0; k < to; k += d + 1) {
        double f = l[k + c];
        for (int r = c; r <= d; r++) {
          l[to + r] = Math.fma(f, l[k + r], l[to + r]);
        }
      }
      double pivot = -l[to + c];
      double inverse = -1 / Math.sqrt(pivot);
      pivots[c] = pivot;
      for (int r = c; r <= d; r++) {
        l[to + r] *= inverse;
      }
    }
  }

  private double value(FullOperands operands, int at, int i, int j, int d) {
    double[] q = rows.values;
    int more = FullColumns.length(d);
    double squares = 0;
    double change = 0;
    double changeQ = 0;
    double changeP = 0;
    double mantissa = 1;
    double exponent = 0;
    for (int h = 0, k = 0; h < d; k += ++h + 1) {
      double x = factor[h * (d + 1) + d];
      squares = Math.fma(x, x, squares);
      double s = -(column[k] + q[at + k]);
      double a = q[at + more + d + h];
      double b = column[more + h];
      changeQ = Math.fma(s, a, changeQ);
      changeP = Math.fma(s, b, changeP);
      change = Math.fma(s, Math.min(a, b), change);
    }
    for (int h = 0; h < d; h++) {
      long bits = Double.doubleToRawLongBits(pivots[h]);
      exponent += ChernoffTerms.exponent(bits);
      mantissa *= ChernoffTerms.mantissa(bits);
    }
    double half = ChernoffTerms.half(mantissa, exponent);
    return terms.value(operands, i, j, half, squares, change, changeQ, changeP);
  }
}
