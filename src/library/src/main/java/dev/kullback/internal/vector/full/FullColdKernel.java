package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;

/** {@link FullVectorKernel} without vectors, entry by entry: the same operations on the same panels in the same order, so the same bits. */
public final class FullColdKernel implements BlockKernel<FullOperands> {
  static final int COLUMNS = 4;

  /** Rows at a time: those go through a panel of columns while it is in the cache. */
  static final int ROWS = 8;

  private static final int NR = FullColumns.NR;

  private final Worker worker;
  private final Pair pair;

  /** A of some rows, {@code [i][k]}. */
  private double[] packed = {};

  private final double[] bound = new double[BlockKernel.MOST_ROWS];
  private final double[] sums = new double[COLUMNS];

  public FullColdKernel(Worker worker, Pair pair) {
    this.worker = worker;
    this.pair = pair;
  }

  @Override
  public void block(
      FullOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    FullBatch q = operands.q();
    FullBatch p = operands.p();
    FullRows a = operands.rows();
    FullColumns b = operands.columns();
    int length = FullColumns.length(q.dimension());
    if (packed.length < ROWS * length) {
      packed = new double[ROWS * length];
    }
    FullPacking.weigh(a, row0, row1, b.centre(), bound);
    double more = operands.moreTolerance();
    for (int first = row0; first < row1; first += ROWS) {
      int end = Math.min(first + ROWS, row1);
      for (int i = first; i < end; i++) {
        packRow(a, i, b.centre(), packed, (i - first) * length);
      }
      for (int column = column0; column < column1; column += COLUMNS) {
        int columns = Math.min(COLUMNS, column1 - column);
        for (int i = first; i < end; i++) {
          worker.pass((long) COLUMNS * length);
          sums(packed, (i - first) * length, b.values(), column, length, sums);
          for (int c = 0; c < columns; c++) {
            int j = column + c;
            double kl = kl(a, i, b, j, sums[c]);
            double error = error(a, i, b, j, sums[c], bound[i - row0]);
            double room = kl * (b.tolerance()[j] + more) - error;
            boolean isCertain = room >= 0 && room < Double.POSITIVE_INFINITY;
            out.put(i, j, isCertain ? kl : pair.of(q, i, p, j));
          }
        }
      }
    }
  }

  /** A of row i to {@code out[to…]}. */
  static void packRow(FullRows q, int i, double[] centre, double[] out, int to) {
    int mr = ProductKernels.MR;
    int d = centre.length;
    int mean = i / mr * mr * d + i % mr;
    int covariance = i / mr * mr * Cholesky.packedLength(d) + i % mr;
    int k = to;
    for (int r = 0; r < d; r++) {
      double x = q.mean()[mean + r * mr] - centre[r];
      for (int c = 0; c <= r; c++, k++, covariance += mr) {
        double y = q.mean()[mean + c * mr] - centre[c];
        out[k] = Math.fma(x, y, q.covariance()[covariance]);
      }
    }
    for (int h = 0; h < d; h++, k++) {
      out[k] = q.mean()[mean + h * mr] - centre[h];
    }
  }

  /** {@code A · B} of one row with columns j … j + 3, chunk by chunk. */
  static void sums(double[] row, int r, double[] columns, int j, int length, double[] sum) {
    int from = j / NR * NR * length + j % NR;
    Arrays.fill(sum, 0);
    for (int chunk = 0; chunk < length; chunk += ProductKernels.KC) {
      double a0 = 0;
      double a1 = 0;
      double a2 = 0;
      double a3 = 0;
      for (int k = chunk, end = Math.min(length, chunk + ProductKernels.KC); k < end; k++) {
        double x = row[r + k];
        int at = from + k * NR;
        a0 = Math.fma(x, columns[at], a0);
        a1 = Math.fma(x, columns[at + 1], a1);
        a2 = Math.fma(x, columns[at + 2], a2);
        a3 = Math.fma(x, columns[at + 3], a3);
      }
      sum[0] += a0;
      sum[1] += a1;
      sum[2] += a2;
      sum[3] += a3;
    }
  }

  /** KL by the product. */
  static double kl(FullRows q, int i, FullColumns p, int j, double sum) {
    return sum * 0.5 + (p.offset()[j] + q.offset()[i]);
  }

  /** Bounds the error of {@link #kl}. */
  static double error(FullRows q, int i, FullColumns p, int j, double sum, double bound) {
    double error = Math.fma(p.inverseError()[j], sum, p.noise()[j] + q.noise()[i]);
    return Math.fma(p.weight()[j], bound, error);
  }
}
