package dev.kullback.internal.vector;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.formula.TileBound;
import dev.kullback.internal.formula.TileBound.Precision;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.work.Worker;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Sums R of a block in one precision, and the operands that turn them into divergences {@code factor·R + offsetQ[i] + offsetP[j]} and bound
 * the error, see {@link TileBound}: an entry is settled where {@code divergence·margin ≥ noiseQ[i] + noiseP[j]}. One thread's.
 */
abstract class BlockSums<A> {
  private static final double[] NONE = {};

  final double factor;

  private @Nullable A valuesQ;
  private @Nullable A valuesP;

  // Valid during a block; by row of q or p, padded to whole panels.
  double[] offsetQ = NONE;
  double[] offsetP = NONE;
  double[] noiseQ = NONE;
  double[] noiseP = NONE;
  double[] logQ = NONE;
  double[] logP = NONE;

  /** Tolerance − unit; valid during a block, as the dimension is. */
  double margin;

  int d;

  BlockSums(double factor) {
    this.factor = factor;
  }

  final void startBlock(TileOperands operands, A q, A p, Precision precision) {
    TileBound.Rows rowsQ = operands.rows(operands.q(), precision);
    TileBound.Rows rowsP = operands.rows(operands.p(), precision);
    valuesQ = q;
    valuesP = p;
    offsetQ = rowsQ.offsetQ();
    offsetP = rowsP.offsetP();
    noiseQ = rowsQ.noiseQ();
    noiseP = rowsP.noiseP();
    logQ = rowsQ.logs();
    logP = rowsP.logs();
    margin = operands.margin(precision);
    d = operands.q().dimension();
  }

  final void dropBatches() {
    valuesQ = null;
    valuesP = null;
    offsetQ = NONE;
    offsetP = NONE;
    noiseQ = NONE;
    noiseP = NONE;
    logQ = NONE;
    logP = NONE;
  }

  /** Whether a block was started since the batches were dropped. */
  final boolean isStarted() {
    return valuesQ != null;
  }

  final A valuesQ() {
    return Objects.requireNonNull(valuesQ);
  }

  final A valuesP() {
    return Objects.requireNonNull(valuesP);
  }

  /** Sums without vectors, of rows and some columns at a time, by loops over columns. */
  abstract static class Scalar<A> extends BlockSums<A> {
    static final int ROWS = BlockKernel.MOST_ROWS;

    /**
     * Most columns at a time, whose fields of a chunk take half of a small L2 cache in double. C2's loops of 32, 64, 128 and 256 ran at 4.8, 6.3, 7.7
     * and 9.3·10⁹ (i,j,h)/s, as a vector's worth and more of each goes one by one (KL in float, Zen 4, JDK 25.0.3).
     */
    static final int COLUMNS = 128;

    /** First row of the block. */
    int row0;

    /** R of the rows and columns that were computed last. */
    final double[][] r = new double[ROWS][COLUMNS];

    Scalar(double factor) {
      super(factor);
    }

    abstract void startBlock(TileOperands operands, int row0, int row1);

    /** Computes R of rows [from, to) of the block, and of up to COLUMNS columns, of which the first is a multiple of {@link Batch#WIDEST_PANEL}. */
    abstract void compute(Worker worker, int from, int to, int column, int count);
  }
}
