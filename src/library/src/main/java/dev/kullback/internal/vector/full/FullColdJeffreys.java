package dev.kullback.internal.vector.full;

import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.work.Worker;

/** {@link FullJeffreysKernel} without vectors, entry by entry: the same operations on the same panels in the same order, so the same bits. */
public final class FullColdJeffreys implements BlockKernel<FullOperands> {
  private static final int COLUMNS = FullColdKernel.COLUMNS;
  private static final int ROWS = FullColdKernel.ROWS;

  private final Worker worker;
  private final Pair pair;

  /** A of some rows of q, and of one of p. */
  private double[] packed = {};

  private final double[] boundQ = new double[BlockKernel.MOST_ROWS];
  private final double[] boundP = new double[BlockKernel.MOST_ROWS];
  private final double[] sums = new double[COLUMNS];

  /** Products of some columns, as rows, with some rows, as columns. */
  private final double[] back = new double[COLUMNS * ROWS];

  public FullColdJeffreys(Worker worker, Pair pair) {
    this.worker = worker;
    this.pair = pair;
  }

  @Override
  public void block(
      FullOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    FullRows q = operands.rows();
    FullColumns p = operands.columns();
    int length = FullColumns.length(p.centre().length);
    if (packed.length < (ROWS + 1) * length) {
      packed = new double[(ROWS + 1) * length];
    }
    FullPacking.weigh(q, row0, row1, p.centre(), boundQ);
    for (int first = row0; first < row1; first += ROWS) {
      int end = Math.min(first + ROWS, row1);
      for (int i = first; i < end; i++) {
        FullColdKernel.packRow(q, i, p.centre(), packed, (i - first) * length);
      }
      for (int column = column0; column < column1; column += COLUMNS) {
        int last = Math.min(column + COLUMNS, column1);
        computeBackward(operands, first, end, column, last, length);
        for (int i = first; i < end; i++) {
          worker.pass(2L * COLUMNS * length);
          FullColdKernel.sums(packed, (i - first) * length, p.values(), column, length, sums);
          for (int j = column; j < last; j++) {
            double other = back[(j - column) * ROWS + i - first];
            double value =
                value(
                    operands, i, j, sums[j - column], other, boundQ[i - row0], boundP[j - column]);
            out.put(
                i,
                j,
                value < Double.POSITIVE_INFINITY
                    ? value
                    : pair.of(operands.q(), i, operands.p(), j));
          }
        }
      }
    }
  }

  private void computeBackward(
      FullOperands operands, int first, int end, int column, int last, int length) {
    FullRows p = operands.otherRows();
    FullColumns q = operands.otherColumns();
    FullPacking.weigh(p, column, last, q.centre(), boundP);
    int at = ROWS * length;
    for (int j = column; j < last; j++) {
      FullColdKernel.packRow(p, j, q.centre(), packed, at);
      for (int i = first; i < end; i += COLUMNS) {
        FullColdKernel.sums(packed, at, q.values(), i, length, sums);
        System.arraycopy(sums, 0, back, (j - column) * ROWS + i - first, COLUMNS);
      }
    }
  }

  /** J by the products, or +∞ where its error bound exceeds the tolerance. */
  private static double value(
      FullOperands operands, int i, int j, double sum, double back, double boundQ, double boundP) {
    FullRows q = operands.rows();
    FullRows p = operands.otherRows();
    FullColumns a = operands.otherColumns();
    FullColumns b = operands.columns();
    double jeffreys = FullColdKernel.kl(q, i, b, j, sum) + FullColdKernel.kl(p, j, a, i, back);
    double error =
        FullColdKernel.error(q, i, b, j, sum, boundQ)
            + FullColdKernel.error(p, j, a, i, back, boundP);
    double tolerance = Math.max(b.tolerance()[j], a.tolerance()[i]) + operands.moreTolerance();
    double room = jeffreys * tolerance - error;
    return room >= 0 && room < Double.POSITIVE_INFINITY ? jeffreys : Double.POSITIVE_INFINITY;
  }
}
