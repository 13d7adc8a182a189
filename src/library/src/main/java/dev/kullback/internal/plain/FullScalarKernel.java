package dev.kullback.internal.plain;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;

/**
 * Computes every entry by {@link FullPair}: the scalar backend's pairs that are not both diagonal, and the vector backend's where a diagonal
 * batch is too large to be written out as full factors.
 */
public final class FullScalarKernel implements BlockKernel<Operands<Batch>> {
  private final Worker worker;
  private final FullPair pair;

  public FullScalarKernel(Worker worker, FullPair pair) {
    this.worker = worker;
    this.pair = pair;
  }

  @Override
  public void block(
      Operands<Batch> operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    Batch q = operands.q();
    Batch p = operands.p();
    long terms = Checkpoint.ofSolve(q.dimension());
    for (int i = row0; i < row1; i++) {
      for (int j = column0; j < column1; j++) {
        worker.pass(terms);
        out.put(i, j, q == p && i == j ? 0 : pair.kl(q, i, p, j));
      }
    }
  }
}
