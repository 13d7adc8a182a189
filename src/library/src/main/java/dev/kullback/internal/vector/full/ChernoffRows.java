package dev.kullback.internal.vector.full;

import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.numerics.Cholesky;

/** Some rows of q as Chernoff kernels read them, one after the other: {@code −Σ} packed, {@code −μ}, and the diagonal of Σ⁻¹ times w_k. For one thread. */
final class ChernoffRows {
  private static final int MR = ProductKernels.MR;
  private static final int NR = FullColumns.NR;

  /** Doubles of rows that are packed at a time: with a panel of columns they fit the L2 cache. */
  private static final int MOST = 1 << 15;

  double[] values = {};
  private int first;
  private int length;

  /** Packs rows from {@code first} on, as many as fit, and returns their end. */
  int pack(FullOperands operands, int first, int most) {
    FullRows rows = operands.rows();
    FullColumns columns = operands.otherColumns();
    int d = columns.centre().length;
    int triangle = Cholesky.packedLength(d);
    this.first = first;
    length = triangle + 2 * d;
    int count = Math.min(Math.clamp(MOST / length, 1, BlockKernel.MOST_ROWS), most - first);
    if (values.length < count * length) {
      values = new double[count * length];
    }
    for (int i = first, to = 0; i < first + count; i++) {
      int from = i / MR * MR * triangle + i % MR;
      for (int k = 0; k < triangle; k++) {
        values[to++] = -rows.covariance()[from + k * MR];
      }
      from = i / MR * MR * d + i % MR;
      for (int h = 0; h < d; h++) {
        values[to++] = -rows.mean()[from + h * MR];
      }
      from = i / NR * NR * FullColumns.length(d) + i % NR;
      for (int h = 0, k = 0; h < d; k += ++h + 1) {
        values[to++] = columns.values()[from + k * NR] * ChernoffTerms.weight(d, h);
      }
    }
    return first + count;
  }

  /** Where a row begins. */
  int at(int i) {
    return (i - first) * length;
  }
}
