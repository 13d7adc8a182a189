package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.BlockKernel;
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

  /** Dimension from which on blocks are made lower, to hold a block's rows to 256 KiB. */
  private static final int TALL_DIMENSION = 512;

  private final Workspace lead;
  private Operands<?> operands = new Operands<>();

  MatrixRunner(Workspace lead) {
    this.lead = lead;
  }

  void run(Batch q, Batch p) {
    operands = lead.kernels.prepare(q, p);
    if (!lead.kernels.of(operands).matrix(operands, lead.results)) {
      long bands = Math.ceilDiv(q.size(), blockRows(q.dimension()));
      lead.share(bands * Math.ceilDiv(p.size(), BLOCK_COLUMNS), this);
    }
  }

  /** Computes a block. */
  @Override
  public void run(long index, Workspace w) {
    w.checkInterrupt();
    int n = operands.q().size();
    int m = operands.p().size();
    int height = blockRows(operands.q().dimension());
    int across = Math.ceilDiv(m, BLOCK_COLUMNS);
    int row0 = (int) (index / across) * height;
    int column0 = (int) (index % across) * BLOCK_COLUMNS;
    int row1 = Math.min(row0 + height, n);
    int column1 = Math.min(column0 + BLOCK_COLUMNS, m);
    lead.results.open(w.target, row0, column0, m, BLOCK_ROWS, BLOCK_COLUMNS);
    w.kernels.of(operands).block(operands, row0, row1, column0, column1, w.target);
    lead.results.close(w.target, row0, row1, column0, column1, m);
  }

  /** Rows of a block. */
  static int blockRows(int dimension) {
    int rows = (int) Math.min(BLOCK_ROWS, (long) BLOCK_ROWS * TALL_DIMENSION / dimension);
    return Math.max(Batch.WIDEST_PANEL, rows / Batch.WIDEST_PANEL * Batch.WIDEST_PANEL);
  }
}
