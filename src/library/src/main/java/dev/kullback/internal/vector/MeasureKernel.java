package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;

/**
 * Computes blocks of the divergences other than KL, tile by tile by the Vector API; entries whose error bound exceeds the contract are
 * computed again in double, and what that leaves open by the pair.
 */
public final class MeasureKernel implements BlockKernel<MeasureOperands> {
  private final Worker worker;
  private final Pair pair;
  private final boolean isBounded;
  private final Tile tile = new Tile();
  private final FloatMeasureSums floats;
  private final DoubleMeasureSums doubles;

  public MeasureKernel(Formula formula, Worker worker, Pair pair) {
    this.worker = worker;
    this.pair = pair;
    isBounded = formula.isBounded();
    floats = new FloatMeasureSums(formula);
    doubles = new DoubleMeasureSums(formula);
  }

  /** Drops a call's batches and arrays. */
  @Override
  public void clear() {
    tile.end();
    floats.end();
    doubles.end();
  }

  @Override
  public void block(
      MeasureOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    int d = operands.q().dimension();
    boolean wide = operands.isWide();
    tile.begin(out, row0, row1, wide ? DoublePanels.NR : FloatPanels.NR);
    doubles.end();
    if (wide) {
      doubles.begin(operands);
    } else {
      floats.begin(operands);
    }
    for (int column = column0; column < column1; column += tile.width) {
      tile.begin(column, column1, operands.q() == operands.p());
      worker.pass((long) tile.rows * tile.width * d);
      if (wide) {
        doubles.compute(tile, 0, tile.rows);
        settle(operands, doubles, false);
      } else {
        settleFloats(operands);
      }
    }
  }

  private void settleFloats(MeasureOperands operands) {
    if (floats.isWhole(tile)) {
      floats.computeWhole(tile);
      if (Epilogue.storeWhole(tile, floats, floats.acc)) {
        tile.storeDiagonal();
        return;
      }
      floats.promote(tile);
      settle(operands, floats, true);
    } else {
      floats.compute(tile, 0, tile.rows);
      settle(operands, floats, false);
    }
  }

  /**
   * Stores a tile, by the sums of its first form as far as their error bounds allow.
   *
   * @param hasOpen whether they are known not to allow it of every entry
   */
  private void settle(MeasureOperands operands, TileSums<?> sums, boolean hasOpen) {
    if (!hasOpen && !isBounded && Epilogue.store(tile, sums)) {
      tile.storeDiagonal();
      return;
    }
    tile.open();
    int open = tile.settle(sums);
    if (open > 0 && sums != doubles) {
      if (!doubles.isBegun()) {
        doubles.begin(operands);
      }
      open = 0;
      for (int from = 0; from < tile.rows; from += FloatPanels.MR) {
        if (tile.open(from) > 0) {
          int to = Math.min(from + FloatPanels.MR, tile.rows);
          doubles.compute(tile, from, to);
          open += tile.settle(doubles, from, to);
        }
      }
    }
    if (isBounded) {
      tile.toHellinger();
    }
    if (open > 0) {
      settlePairs(operands);
    }
    tile.store();
  }

  private void settlePairs(MeasureOperands operands) {
    DiagonalBatch q = operands.q();
    DiagonalBatch p = operands.p();
    for (int i = 0; i < tile.rows; i++) {
      for (int j = 0; j < tile.columns; j++) {
        if (tile.isOpen(i, j)) {
          worker.pass(Checkpoint.ofPlain(q.dimension()));
          tile.settle(i, j, value(pair, q, tile.row + i, p, tile.column + j));
        }
      }
    }
  }

  /** Returns the divergence of a pair, and 0 of equal parameters in the time of comparing them. */
  static double value(Pair pair, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    boolean isEqual = q.kind() == p.kind() && q.isDouble() == p.isDouble() && q.isEqual(i, p, j);
    return isEqual ? 0 : pair.stable(q, i, p, j);
  }
}
