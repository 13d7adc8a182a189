package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.plain.PairKl;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;

/**
 * {@link VectorKernel} and {@link SmallKernel} without vectors, entry by entry: the same operations on the same panels in the same order,
 * so the same bits. An order of magnitude slower once both are compiled, and far faster before.
 */
final class ColdKernel {
  /** Columns at a time. */
  private static final int COLUMNS = 4;

  /** What a term counts at a {@link Checkpoint}: 0.4 ns (Zen 3). */
  private static final long TERM = 8;

  private final VectorKernel kernel;
  private final Worker worker;

  /** A block's rows. */
  private float[] rows32 = {};

  private double[] rows64 = {};
  private final double[] sums = new double[COLUMNS];

  /** For the batches and forms of this kernel's calls. */
  ColdKernel(VectorKernel kernel, Worker worker) {
    this.kernel = kernel;
    this.worker = worker;
  }

  /** {@link VectorKernel#block}. */
  void block(int row0, int row1, int column0, int column1, BlockTarget out) {
    DiagonalBatch q = kernel.q();
    DiagonalBatch p = kernel.p();
    int d = q.dimension();
    boolean wide = VectorKernel.isWide(q, p);
    packRows(row0, row1, d, wide);
    for (int column = column0; column < column1; column += COLUMNS) {
      int columns = Math.min(COLUMNS, column1 - column);
      for (int i = row0; i < row1; i++) {
        worker.pass(TERM * COLUMNS * d);
        int r = (i - row0) * 2 * d;
        if (wide) {
          DoublePanels.sums(rows64, r, kernel.p64().values(), column, d, sums);
        } else {
          FloatPanels.sums(rows32, r, kernel.p32().values(), column, d, sums);
        }
        for (int c = 0; c < columns; c++) {
          int j = column + c;
          out.put(i, j, q == p && i == j ? 0 : wide ? kl64(c, i, j) : kl32(c, i, j));
        }
      }
    }
  }

  /** {@link SmallKernel#block}. */
  static void pairs(
      DiagonalBatch q,
      DiagonalBatch p,
      int row0,
      int row1,
      int column0,
      int column1,
      BlockTarget out,
      Worker worker) {
    for (int i = row0; i < row1; i++) {
      for (int j = column0; j < column1; j++) {
        worker.pass((long) Checkpoint.PLAIN * q.dimension());
        out.put(i, j, q == p && i == j ? 0 : PairKl.of(q, i, p, j));
      }
    }
  }

  private void packRows(int row0, int row1, int d, boolean wide) {
    int needed = (row1 - row0) * 2 * d;
    if (wide && rows64.length < needed) {
      rows64 = new double[needed];
    } else if (!wide && rows32.length < needed) {
      rows32 = new float[needed];
    }
    for (int i = row0, r = 0; i < row1; i++, r += 2 * d) {
      if (wide) {
        DoublePanels.packRow(kernel.q64().values(), d, i, rows64, r);
      } else {
        FloatPanels.packRow(kernel.q32().values(), d, i, rows32, r);
      }
    }
  }

  /** The ladder of batches of float: each rung for what those before it do not settle. */
  private double kl32(int c, int i, int j) {
    DiagonalBatch q = kernel.q();
    DiagonalBatch p = kernel.p();
    int d = q.dimension();
    double kl = Math.fma(sums[c], 0.5, kernel.p32().offsetP()[j] + kernel.q32().offsetQ()[i]);
    double noise = kernel.p32().noiseP()[j] + kernel.q32().noiseQ()[i];
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

  /** That of batches of double. */
  private double kl64(int c, int i, int j) {
    DiagonalBatch q = kernel.q();
    DiagonalBatch p = kernel.p();
    double offset = kernel.p64().offsetP()[j] + kernel.q64().offsetQ()[i];
    double noise = kernel.p64().noiseP()[j] + kernel.q64().noiseQ()[i];
    double kl = Math.fma(sums[c], 0.5, offset);
    if (PairKl.isCertain(kl, noise, PairKl.DOUBLE_TOLERANCE - PairKl.unit64(q.dimension()))) {
      return kl;
    }
    worker.pass((long) Checkpoint.PLAIN * q.dimension());
    return PairKl.stable(q, i, p, j);
  }
}
