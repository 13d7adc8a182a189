package dev.kullback.internal.vector;

import dev.kullback.internal.formula.TileBound;
import dev.kullback.internal.formula.TileBound.Precision;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Sums R of a block in one precision, and the operands that turn them into divergences {@code factor·R + offsetQ[i] + offsetP[j]} and bound
 * the error, see {@link TileBound}: an entry is settled where {@code divergence·margin ≥ noiseQ[i] + noiseP[j]}. One thread's.
 */
abstract class BlockSums<A> {
  private static final double[] NONE = {};

  /** Where sums add up in this precision. */
  final A acc;

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

  BlockSums(A acc, double factor) {
    this.acc = acc;
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

  /** Sums without vectors, of a row and some columns at a time. */
  abstract static class Scalar<A> extends BlockSums<A> {
    static final int COLUMNS = 4;

    /** R of the columns that were computed last. */
    final double[] r = new double[COLUMNS];

    Scalar(A acc, double factor) {
      super(acc, factor);
    }

    abstract void startBlock(TileOperands operands, int row0, int row1);

    /** Computes R of row {@code row0 + i}, row0 the block's first, and of the columns from {@code column} on, a multiple of COLUMNS. */
    abstract void compute(int row0, int i, int column);
  }
}
