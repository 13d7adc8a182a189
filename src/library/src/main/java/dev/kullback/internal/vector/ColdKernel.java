package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.plain.PairKl;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;

/**
 * {@link VectorKernel} without vectors, entry by entry: the same operations on the same panels in the same order, so the same bits. An
 * order of magnitude slower than compiled vectors, and far faster than interpreted ones.
 */
public final class ColdKernel implements BlockKernel<TileOperands> {
  /** Columns at a time. */
  private static final int COLUMNS = 4;

  /** Weight of a term at a {@link Checkpoint}: 0.4 ns (Zen 3). */
  private static final long TERM = 8;

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
    packRows(operands, row0, row1);
    for (int column = column0; column < column1; column += COLUMNS) {
      int end = Math.min(column + COLUMNS, column1);
      for (int i = row0; i < row1; i++) {
        worker.pass(TERM * COLUMNS * d);
        int r = (i - row0) * 2 * d;
        if (wide) {
          DoublePanels.sums(rows64, r, operands.p64().values(), column, d, sums);
        } else {
          FloatPanels.sums(rows32, r, operands.p32().values(), column, d, sums);
        }
        for (int j = column; j < end; j++) {
          double sum = sums[j - column];
          double kl = wide ? kl64(operands, i, j, sum) : kl32(operands, i, j, sum);
          out.put(i, j, q == p && i == j ? 0 : kl);
        }
      }
    }
  }

  private void packRows(TileOperands operands, int row0, int row1) {
    int d = operands.q().dimension();
    int needed = (row1 - row0) * 2 * d;
    if (operands.isWide() && rows64.length < needed) {
      rows64 = new double[needed];
    } else if (!operands.isWide() && rows32.length < needed) {
      rows32 = new float[needed];
    }
    for (int i = row0, r = 0; i < row1; i++, r += 2 * d) {
      if (operands.isWide()) {
        DoublePanels.packRow(operands.q64().values(), d, i, rows64, r);
      } else {
        FloatPanels.packRow(operands.q32().values(), d, i, rows32, r);
      }
    }
  }

  /** Climbs the ladder of batches of float: each rung for the entries that those before it do not settle. */
  private double kl32(TileOperands operands, int i, int j, double sum) {
    DiagonalBatch q = operands.q();
    DiagonalBatch p = operands.p();
    Packed<float[]> a = operands.q32();
    Packed<float[]> b = operands.p32();
    int d = q.dimension();
    double kl = Math.fma(sum, 0.5, b.offsetP()[j] + a.offsetQ()[i]);
    double noise = b.noiseP()[j] + a.noiseQ()[i];
    if (PairKl.isCertain(kl, noise, PairKl.FLOAT_TOLERANCE - PairKl.unit32(d))) {
      return kl;
    }
    worker.pass((long) Checkpoint.PLAIN * d);
    double unit = PairKl.unit64(d);
    kl = PairKl.difference(q, i, p, j);
    noise = PairKl.noiseQ(q, i, unit) + PairKl.noiseP(p, j, unit);
    if (PairKl.isCertain(kl, noise, PairKl.REFINED_TOLERANCE - unit)) {
      return kl;
    }
    double near = q.kind() == p.kind() ? NearKernel.kl(q, i, p, j) : Double.NaN;
    return Double.isNaN(near) ? PairKl.stable(q, i, p, j) : near;
  }

  /** Climbs the ladder of batches of double. */
  private double kl64(TileOperands operands, int i, int j, double sum) {
    DiagonalBatch q = operands.q();
    DiagonalBatch p = operands.p();
    Packed<double[]> a = operands.q64();
    Packed<double[]> b = operands.p64();
    double kl = Math.fma(sum, 0.5, b.offsetP()[j] + a.offsetQ()[i]);
    double noise = b.noiseP()[j] + a.noiseQ()[i];
    if (PairKl.isCertain(kl, noise, PairKl.DOUBLE_TOLERANCE - PairKl.unit64(q.dimension()))) {
      return kl;
    }
    worker.pass((long) Checkpoint.PLAIN * q.dimension());
    return PairKl.stable(q, i, p, j);
  }
}
