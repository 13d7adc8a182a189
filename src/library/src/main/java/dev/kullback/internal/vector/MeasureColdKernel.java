package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;

/** {@link MeasureKernel} without vectors, entry by entry: the same operations on the same panels in the same order, so the same bits. */
public final class MeasureColdKernel implements BlockKernel<MeasureOperands> {
  private final Worker worker;
  private final Pair pair;

  public MeasureColdKernel(Worker worker, Pair pair) {
    this.worker = worker;
    this.pair = pair;
  }

  @Override
  public void block(
      MeasureOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    DiagonalBatch q = operands.q();
    DiagonalBatch p = operands.p();
    boolean isBounded = operands.formula().isBounded();
    for (int i = row0; i < row1; i++) {
      for (int j = column0; j < column1; j++) {
        worker.pass(Checkpoint.ofPlain(q.dimension()));
        double value = q == p && i == j ? 0 : certain(operands, i, j);
        if (Double.isNaN(value)) {
          worker.pass(Checkpoint.ofPlain(q.dimension()));
          value = MeasureKernel.value(pair, q, i, p, j);
        } else if (isBounded) {
          value = Exponential.hellinger(value);
        }
        out.put(i, j, value);
      }
    }
  }

  /** Returns the value of the first form whose error bound allows it, or NaN. */
  private static double certain(MeasureOperands operands, int i, int j) {
    DiagonalBatch q = operands.q();
    DiagonalBatch p = operands.p();
    if (!operands.isWide()) {
      MeasureOperands.Rows a = operands.rows32(q);
      MeasureOperands.Rows b = operands.rows32(p);
      double sum = FloatMeasurePanels.sum(operands, operands.q32(), a, i, operands.p32(), b, j);
      double value = certain(operands, sum, a, i, b, j, operands.margin32());
      if (!Double.isNaN(value)) {
        return value;
      }
    }
    MeasureOperands.Rows a = operands.rows64(q);
    MeasureOperands.Rows b = operands.rows64(p);
    double sum = DoubleMeasurePanels.sum(operands, operands.q64(), a, i, operands.p64(), b, j);
    return certain(operands, sum, a, i, b, j, operands.margin64());
  }

  private static double certain(
      MeasureOperands operands,
      double sum,
      MeasureOperands.Rows q,
      int i,
      MeasureOperands.Rows p,
      int j,
      double margin) {
    double value = Math.fma(sum, operands.formula().factor(), p.offset()[j] + q.offset()[i]);
    return PairKl.isCertain(value, p.noise()[j] + q.noise()[i], margin) ? value : Double.NaN;
  }
}
