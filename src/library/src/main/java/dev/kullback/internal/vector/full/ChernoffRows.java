package dev.kullback.internal.vector.full;

import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.numerics.Cholesky;

/**
 * Some rows of q as Chernoff kernels read them, one after the other: {@code −Σ} and {@code −μ} in an order of the kernel, and then of each
 * dimension −Σ_kk and {@code w_k (Σ⁻¹)_kk}. For one thread.
 */
final class ChernoffRows {
  private static final int MR = ProductKernels.MR;
  private static final int NR = FullColumns.NR;

  /** Doubles of rows that are packed at a time: with a panel of columns they fit the L2 cache. */
  private static final int MOST = 1 << 15;

  double[] values = {};
  private int first;
  private int length;

  /**
   * Packs rows from {@code first} on, a multiple of MR, as many as fit, and returns their end.
   *
   * @param order entries of the packed Σ and, after them, of μ; −1 for 0, and −2 for −1
   */
  int pack(FullOperands operands, int[] order, int first, int most) {
    FullRows rows = operands.rows();
    FullColumns columns = operands.otherColumns();
    int d = columns.centre().length;
    this.first = first;
    length = order.length + 2 * d;
    int count = MR * Math.clamp(MOST / (MR * length), 1, BlockKernel.MOST_ROWS / MR);
    int end = Math.min(first + count, most);
    if (values.length < count * length) {
      values = new double[count * length];
    }
    for (int row = first; row < end; row += MR) { // the rows of a panel at once, which share lines
      pack(rows, columns, order, row, Math.min(row + MR, end), d);
    }
    return end;
  }

  private void pack(FullRows rows, FullColumns columns, int[] order, int row, int end, int d) {
    int triangle = Cholesky.packedLength(d);
    int begin = at(row);
    int stop = at(end);
    int covariance = rows.panel(row);
    int mean = row / MR * MR * d - triangle * MR;
    int s = begin;
    for (int k : order) {
      double[] in = k < triangle ? rows.covariance() : rows.mean();
      int from = (k < triangle ? covariance : mean) + k * MR;
      for (int to = s++; to < stop; to += length) {
        values[to] = k < 0 ? k + 1 : -in[from++];
      }
    }
    int precision = columns.precision(row) + row % NR;
    for (int h = 0, k = 0; h < d; k += ++h + 1, s++) {
      double weight = ChernoffTerms.weight(d, h);
      int from = covariance + k * MR;
      int inverse = precision + k * NR;
      for (int to = s; to < stop; to += length) {
        values[to] = -rows.covariance()[from++];
        values[to + d] = columns.values()[inverse++] * weight;
      }
    }
  }

  /** Where a row begins. */
  int at(int i) {
    return (i - first) * length;
  }
}
