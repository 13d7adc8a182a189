package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.work.Job;

/** Cuts the matrix of a call into blocks, the tasks that its threads share. The call's workspace keeps it for its next call. */
final class MatrixRunner implements Job.Task<Workspace> {
  /**
   * A block is the unit of work: its rows' panels stay in the L2 cache while the columns' panels stream past, and there are
   * enough blocks to keep several threads evenly busy. Multiples of every panel's width.
   */
  private static final int BLOCK_ROWS = BlockKernel.MOST_ROWS;

  private static final int BLOCK_COLUMNS = 2048;

  /**
   * Dimension from which on blocks are made narrower, to hold a block's columns, which all rows pass one after the other, to 2 MiB of the
   * L3 cache: 4096 x 256 took 0.93 of the time so, and 2048 x 64 1.03 with as few columns (Zen 4).
   */
  private static final int WIDE_DIMENSION = 256;

  /** Dimension from which on blocks are made lower, to hold a block's rows to 256 KiB. */
  private static final int TALL_DIMENSION = 512;

  private final Workspace lead;
  private KernelTable row = KernelTable.SCALAR;
  private Operands<?> operands = new Operands<>();

  /** Rows and columns of the matrix. */
  private int n;

  private int m;

  /** Whether rows are the kernel's columns, as its operands have the roles exchanged. */
  private boolean exchanged;

  MatrixRunner(Workspace lead) {
    this.lead = lead;
  }

  void run(Batch q, Batch p, boolean exchanged) {
    this.exchanged = exchanged;
    n = q.size();
    m = p.size();
    row = lead.kernels.choose(exchanged ? p : q, exchanged ? q : p);
    operands = lead.kernels.pack(row, exchanged ? p : q, exchanged ? q : p);
    if (!lead.kernels.of(row).matrix(operands, lead.results)) {
      long bands = Math.ceilDiv(n, blockRows(q.dimension()));
      lead.share(bands * Math.ceilDiv(m, blockColumns(q.dimension())), this);
    }
  }

  @Override
  public void run(long index, Workspace w) {
    w.checkInterrupt();
    int height = blockRows(operands.q().dimension());
    int width = blockColumns(operands.q().dimension());
    int bands = Math.ceilDiv(n, height);
    int row0 = (int) (index % bands) * height;
    int column0 = (int) (index / bands) * width;
    int row1 = Math.min(row0 + height, n);
    int column1 = Math.min(column0 + width, m);
    lead.results.open(w.target, row0, column0, m, BLOCK_ROWS, BLOCK_COLUMNS);
    if (exchanged) {
      putTransposed(row0, row1, column0, column1, w);
    } else {
      w.kernels.of(row).block(operands, row0, row1, column0, column1, w.target);
    }
    lead.results.close(w.target, row0, row1, column0, column1, m);
  }

  private void putTransposed(int row0, int row1, int column0, int column1, Workspace w) {
    BlockTarget block = w.transposed();
    int width = column1 - column0;
    block.useBlock(true, (row1 - row0) * width, column0, row0, row1 - row0);
    BlockKernel<Operands<?>> kernel = w.kernels.of(row);
    int rows = blockRows(operands.q().dimension());
    transpose(kernel, operands, rows, row0, row1, column0, column1, block);
    for (int i = row0, k = 0; i < row1; i++) {
      for (int j = column0; j < column1; j++, k++) {
        w.target.put(i, j, block.block()[k]);
      }
    }
  }

  /**
   * Puts {@code KL(p_j ‖ q_i)} at row i, column j of a block: one of the kernel of {@code KL(p ‖ q)}, {@code height} rows at a time,
   * transposed in the cache.
   */
  static void transpose(
      BlockKernel<Operands<?>> kernel,
      Operands<?> operands,
      int height,
      int row0,
      int row1,
      int column0,
      int column1,
      BlockTarget block) {
    int rows = row1 - row0;
    block.aim(column0, row0, rows);
    for (int j = column0; j < column1; j += height) {
      kernel.block(operands, j, Math.min(j + height, column1), row0, row1, block);
    }
    block.transposeBlock(column1 - column0, rows);
  }

  private static int blockColumns(int dimension) {
    return dimension < WIDE_DIMENSION ? BLOCK_COLUMNS : BLOCK_COLUMNS / 2;
  }

  static int blockRows(int dimension) {
    int rows = (int) Math.min(BLOCK_ROWS, (long) BLOCK_ROWS * TALL_DIMENSION / dimension);
    return Math.max(Batch.WIDEST_PANEL, rows / Batch.WIDEST_PANEL * Batch.WIDEST_PANEL);
  }
}
