package dev.kullback.internal.vector.full;

import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.work.Worker;

/** Products of some rows with a group of columns, and each row's share of their error bound. For one thread. */
final class FullProducts {
  /** Columns whose products are accumulated together: their memory, 128 KiB, and a chunk of their panels, 256 KiB, fit the L2 cache. */
  static final int GROUP = 256;

  private static final int NR = FullColumns.NR;
  private static final int KC = ProductKernels.KC;

  private final ProductKernels kernels = new ProductKernels();

  /** {@code [b][row][NR]}. */
  final double[] values = new double[BlockKernel.MOST_ROWS * GROUP];

  /** Adds the products of rows [row0, row1) and columns [column, end), of whole panels. */
  void compute(FullRows q, int row0, int row1, FullColumns p, int column, int end, Worker worker) {
    for (int k = 0, length = FullColumns.length(p.centre().length); k < length; k += KC) {
      worker.pass(2L * (row1 - row0) * (end - column) * Math.min(KC, length - k));
      kernels.pack(q, row0, row1, p.centre(), k);
      for (int j = column; j < end; j += NR) {
        kernels.multiply(p.values(), j, end - j, values, (j - column) * BlockKernel.MOST_ROWS);
      }
    }
  }
}
