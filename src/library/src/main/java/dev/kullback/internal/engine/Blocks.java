package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.Output;
import dev.kullback.internal.rows.RowReduction;
import dev.kullback.internal.work.Job;

/** Cuts the matrix of a call into blocks, and shares them between the threads of an engine. */
final class Blocks {
  /**
   * A block is the unit of work: its rows' panels stay in the L2 cache while the columns' panels stream past, and there are
   * enough blocks to keep several threads evenly busy. Multiples of every panel's width.
   */
  private static final int ROWS = BlockKernel.MOST_ROWS;

  private static final int COLUMNS = 2048;

  /** Dimension from which on blocks are made lower, to hold a block's rows to 256 KiB. */
  private static final int TALL_DIMENSION = 512;

  private final Engine engine;

  Blocks(Engine engine) {
    this.engine = engine;
  }

  /** Computes {@code KL(q_i ‖ p_j)} into the workspace's output. */
  void store(Batch q, Batch p, Workspace lead) {
    BlockKernel<?> kernel = lead.kernels.begin(q, p);
    Output output = lead.output;
    if (kernel.matrix(output)) {
      return;
    }
    long blocks =
        (long) Math.ceilDiv(q.size(), rows(q.dimension())) * Math.ceilDiv(p.size(), COLUMNS);
    if (engine.isAlone(blocks) || !output.isShared()) {
      for (long b = 0; b < blocks; b++) {
        store(output, b, lead);
      }
    } else {
      engine.share(new Job<>(engine, blocks, lead, (b, w) -> store(output, b, w)));
    }
  }

  private static void store(Output output, long index, Workspace w) {
    w.checkInterrupt();
    BlockKernel<?> kernel = w.kernels.chosen();
    int n = kernel.q().size();
    int m = kernel.p().size();
    int height = rows(kernel.q().dimension());
    int across = Math.ceilDiv(m, COLUMNS);
    int row0 = (int) (index / across) * height;
    int column0 = (int) (index % across) * COLUMNS;
    int row1 = Math.min(row0 + height, n);
    int column1 = Math.min(column0 + COLUMNS, m);
    output.open(w.window, row0, column0, m, ROWS, COLUMNS);
    kernel.block(row0, row1, column0, column1, w.window);
    output.close(w.window, row0, row1, column0, column1, m);
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
    int height = kernel.wantsLargeBlocks() ? column1 - column0 : rows(kernel.q().dimension());
    w.window.aim(column0, row0, n);
    for (int j = column0; j < column1; j += height) {
      kernel.block(j, Math.min(j + height, column1), row0, row1, w.window);
    }
    w.window.transposeBlock(column1 - column0, n);
  }

  /** Rows of a block. */
  private static int rows(int dimension) {
    int rows = (int) Math.min(ROWS, (long) ROWS * TALL_DIMENSION / dimension);
    return Math.max(Batch.WIDEST_PANEL, rows / Batch.WIDEST_PANEL * Batch.WIDEST_PANEL);
  }
}
