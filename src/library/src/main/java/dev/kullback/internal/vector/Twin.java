package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.kernel.Window;
import dev.kullback.internal.plain.PairKl;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;

/**
 * {@link VectorKernel} without vectors, entry by entry: the same operations on the same panels in the same order, so the same bits. An
 * order of magnitude slower once both are compiled, and far faster before.
 */
final class Twin {
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
  private final double[] shorter = new double[COLUMNS];

  /** For the batches and forms of this kernel's calls. */
  Twin(VectorKernel kernel, Worker worker) {
    this.kernel = kernel;
    this.worker = worker;
  }

  /** {@link VectorKernel#block}. */
  void block(int row0, int row1, int column0, int column1, Window out) {
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
          sums64(r, column, d);
        } else {
          sums32(r, column, d, sums, FloatPanels.KC, FloatPanels.PROMOTED);
        }
        for (int c = 0; c < columns; c++) {
          int j = column + c;
          out.put(i, j, q == p && i == j ? 0 : wide ? kl64(c, i, j) : kl32(c, r, i, j));
        }
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

  private void sums32(int r, int column, int d, double[] to, int chunk, int promoted) {
    FloatPanels.sums(rows32, r, kernel.p32().values(), column, d, to, chunk, promoted);
  }

  private void sums64(int r, int column, int d) {
    double[] columns = kernel.p64().values();
    DoublePanels.sums(rows64, r, columns, column, d, sums, DoublePanels.KC, DoublePanels.PROMOTED);
  }

  /** The ladder of batches of float: each rung for what those before it do not settle. */
  private double kl32(int c, int r, int i, int j) {
    DiagonalBatch q = kernel.q();
    DiagonalBatch p = kernel.p();
    double offset = kernel.p32().offsetP()[j] + kernel.q32().offsetQ()[i];
    double noise = kernel.p32().noiseP()[j] + kernel.q32().noiseQ()[i];
    double kl = Math.fma(sums[c], 0.5, offset);
    if (PairKl.isCertain(kl, noise, VectorKernel.margin(q, p))) {
      return kl;
    }
    if (kl * (1 - PairKl.unit32()) <= noise + NearKernel.LIMIT && q.kind() == p.kind()) {
      double near = NearKernel.kl(q, i, p, j, !Double.isNaN(offset));
      if (!Double.isNaN(near)) {
        return near;
      }
    }
    if (isForeseen(kl, i, j)) {
      sums32(r, j - c, q.dimension(), shorter, PairKl.SHORT_BLOCK, PairKl.SHORT_BLOCK);
      return Math.fma(shorter[c], 0.5, offset);
    }
    worker.pass((long) Checkpoint.PLAIN * q.dimension());
    return PairKl.of(q, i, p, j);
  }

  private boolean isForeseen(double kl, int i, int j) {
    double noise =
        VectorKernel.SHORT.of(kernel.p()).noiseP()[j]
            + VectorKernel.SHORT.of(kernel.q()).noiseQ()[i];
    return PairKl.isCertain(kl, noise, PairKl.FORESEEN_TOLERANCE - PairKl.unitShort());
  }

  /** That of batches of double. */
  private double kl64(int c, int i, int j) {
    DiagonalBatch q = kernel.q();
    DiagonalBatch p = kernel.p();
    double offset = kernel.p64().offsetP()[j] + kernel.q64().offsetQ()[i];
    double noise = kernel.p64().noiseP()[j] + kernel.q64().noiseQ()[i];
    double kl = Math.fma(sums[c], 0.5, offset);
    if (PairKl.isCertain(kl, noise, VectorKernel.margin(q, p))) {
      return kl;
    }
    worker.pass((long) Checkpoint.PLAIN * q.dimension());
    return PairKl.stable(q, i, p, j);
  }
}
