package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;

/**
 * {@link VectorKernel} without vectors, entry by entry: the same operations on the same panels in the same order, so the same bits. An
 * order of magnitude slower than compiled vectors, and far faster than interpreted ones.
 */
public final class ColdKernel implements BlockKernel<TileOperands> {
  private static final int COLUMNS = 4;

  private final Worker worker;

  /** Rows of a block, packed; grown on demand. */
  private float[] rows32 = {};

  private double[] rows64 = {};
  private final double[] sums = new double[COLUMNS];

  public ColdKernel(Worker worker) {
    this.worker = worker;
  }

  @Override
  public void block(
      TileOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    DiagonalBatch q = operands.q();
    DiagonalBatch p = operands.p();
    int d = q.dimension();
    boolean wide = operands.isWide();
    Packed<?> a = wide ? operands.q64() : operands.q32();
    Packed<?> b = wide ? operands.p64() : operands.p32();
    double margin = (wide ? PairKl.DOUBLE_TOLERANCE : PairKl.FLOAT_TOLERANCE) - a.unit();
    packRows(a, row0, row1, d);
    for (int column = column0; column < column1; column += COLUMNS) {
      int end = Math.min(column + COLUMNS, column1);
      for (int i = row0; i < row1; i++) {
        worker.pass((long) COLUMNS * d);
        int r = (i - row0) * 2 * d;
        if (b.values() instanceof double[] columns) {
          DoublePanels.sums(rows64, r, columns, column, d, sums);
        } else {
          FloatPanels.sums(rows32, r, (float[]) b.values(), column, d, sums);
        }
        for (int j = column; j < end; j++) {
          double kl = Math.fma(sums[j - column], 0.5, b.offsetP()[j] + a.offsetQ()[i]);
          if (q == p && i == j) {
            kl = 0;
          } else if (!PairKl.isCertain(kl, b.noiseP()[j] + a.noiseQ()[i], margin)) {
            worker.pass(Checkpoint.ofPlain(d));
            kl = wide ? PairKl.stable(q, i, p, j) : refined(q, i, p, j);
          }
          out.put(i, j, kl);
        }
      }
    }
  }

  private void packRows(Packed<?> q, int row0, int row1, int d) {
    int needed = (row1 - row0) * 2 * d;
    if (q.values() instanceof double[] panels) {
      rows64 = rows64.length < needed ? new double[needed] : rows64;
      for (int i = row0; i < row1; i++) {
        DoublePanels.packRow(panels, d, i, rows64, (i - row0) * 2 * d);
      }
    } else {
      rows32 = rows32.length < needed ? new float[needed] : rows32;
      for (int i = row0; i < row1; i++) {
        FloatPanels.packRow((float[]) q.values(), d, i, rows32, (i - row0) * 2 * d);
      }
    }
  }

  /** Climbs the rungs after float, each for the entries that those before it do not settle. */
  private static double refined(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    double kl = PairKl.certain(PairKl.REFINED_TOLERANCE, q, i, p, j);
    if (Double.isNaN(kl) && q.kind() == p.kind()) {
      kl = NearKernel.kl(q, i, p, j);
    }
    return Double.isNaN(kl) ? PairKl.stable(q, i, p, j) : kl;
  }
}
