package dev.kullback.internal.plain;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.work.Worker;

/** Computes every entry of diagonal pairs by {@link PairKl}. */
public final class ScalarKernel implements BlockKernel<Operands<DiagonalBatch>> {
  private final Worker worker;

  public ScalarKernel(Worker worker) {
    this.worker = worker;
  }

  @Override
  public void block(
      Operands<DiagonalBatch> operands,
      int row0,
      int row1,
      int column0,
      int column1,
      BlockTarget out) {
    DiagonalBatch q = operands.q();
    DiagonalBatch p = operands.p();
    long terms = Batch.terms(q, p);
    for (int i = row0; i < row1; i++) {
      for (int j = column0; j < column1; j++) {
        worker.pass(terms);
        out.put(i, j, q == p && i == j ? 0 : PairKl.of(q, i, p, j));
      }
    }
  }
}
