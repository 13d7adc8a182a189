package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.rows.RowReduction;
import dev.kullback.internal.work.Job;

/** Cuts the matrix of a reduction into bands of rows and these into blocks, and shares the bands between the threads of an engine. */
final class Bands {
  private final Engine engine;

  Bands(Engine engine) {
    this.engine = engine;
  }

  /** Hands the blocks of {@code KL(q_i ‖ p_j)}, or of {@code KL(p_j ‖ q_i)}, to a reduction. */
  void reduce(Batch q, Batch p, RowReduction reduction, Workspace lead) {
    boolean reverse = reduction.isReverse();
    int threads = engine.threads();
    // as many for each thread
    int bands = Math.ceilDiv(Math.ceilDiv(q.size(), reduction.bandRows()), threads) * threads;
    int panel = reverse ? Batch.WIDEST_PANEL : BlockKernel.ROW_PANEL;
    int height = Math.ceilDiv(Math.ceilDiv(q.size(), bands), panel) * panel;
    long parts =
        (long) Math.ceilDiv(q.size(), height)
            * (reduction.isByBlock() ? Math.ceilDiv(p.size(), RowReduction.BLOCK_COLUMNS) : 1);
    lead.kernels.begin(reverse ? p : q, reverse ? q : p);
    if (engine.isAlone(parts)) {
      for (long b = 0; b < parts; b++) {
        band(reduction, height, b, lead);
      }
    } else {
      engine.share(new Job<>(engine, parts, lead, (b, w) -> band(reduction, height, b, w)));
    }
  }

  /** Part {@code index} of the work: a band of rows, or its blocks of some columns. */
  private static void band(RowReduction reduction, int height, long index, Workspace w) {
    BlockKernel<?> kernel = w.kernels.chosen();
    boolean reverse = reduction.isReverse();
    int n = (reverse ? kernel.p() : kernel.q()).size();
    int m = (reverse ? kernel.q() : kernel.p()).size();
    int most = RowReduction.BLOCK_COLUMNS;
    int across = reduction.isByBlock() ? Math.ceilDiv(m, most) : 1;
    int row0 = (int) (index / across) * height;
    int row1 = Math.min(row0 + height, n);
    int from = (int) (index % across) * most;
    int to = reduction.isByBlock() ? Math.min(from + most, m) : m;
    boolean large = kernel.wantsLargeBlocks() && !reverse;
    int rows = Math.min(height, large ? RowReduction.BAND_ROWS : RowReduction.BLOCK_ROWS);
    w.band.begin(row0);
    reduction.begin(row0, row1, w.band);
    for (int column0 = from; column0 < to; column0 += most) {
      int column1 = Math.min(column0 + most, to);
      for (int row = row0; row < row1; row += rows) {
        int end = Math.min(row + rows, row1);
        w.checkInterrupt();
        w.window.useBlock(true, rows * Math.min(most, m), row, column0, column1 - column0);
        if (reverse) {
          reverse(kernel, row, end, column0, column1, w);
        } else {
          kernel.block(row, end, column0, column1, w.window);
        }
        reduction.block(row, end, column0, column1, w.window.block(), w.band);
      }
    }
    reduction.end(row0, row1, w.band);
  }

  /**
   * Puts {@code KL(p_j ‖ q_i)} at row i, column j: a block of the kernel of {@code KL(p ‖ q)}, transposed in the cache. As its columns
   * the rows begin at a multiple of {@link Batch#WIDEST_PANEL}.
   */
  private static void reverse(
      BlockKernel<?> kernel, int row0, int row1, int column0, int column1, Workspace w) {
    int n = row1 - row0;
    int height =
        kernel.wantsLargeBlocks() ? column1 - column0 : Engine.blockRows(kernel.q().dimension());
    w.window.aim(column0, row0, n);
    for (int j = column0; j < column1; j += height) {
      kernel.block(j, Math.min(j + height, column1), row0, row1, w.window);
    }
    w.window.transposeBlock(column1 - column0, n);
  }
}
