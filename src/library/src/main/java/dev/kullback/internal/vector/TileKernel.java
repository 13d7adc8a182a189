package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.function.IntPredicate;
import org.jspecify.annotations.Nullable;

/** Computes blocks tile by tile by the Vector API; entries whose error bound exceeds the contract are computed again by other forms. */
public final class TileKernel implements BlockKernel<TileOperands> {
  /** Open entries of a row panel from which on the double kernel computes it whole, in the time of 3 entries (D = 256; Zen 3). */
  private static final int DENSE = 4;

  /** Forms of an entry, in the order in which they are tried; the stable form settles what is left. */
  enum Rung {
    FLOAT,
    DOUBLE,
    NEAR
  }

  private final Formula formula;
  private final Worker worker;
  private final Pair pair;
  private final ColdKernel cold;
  private final IntPredicate isRefinementReady;
  private final IntPredicate areOtherKindsReady;
  private final Tile tile = new Tile();
  private final TileSums<float[]> floats;

  /** Sums of batches of double, or where those of float are recomputed: started then. */
  private final TileSums<double[]> doubles;

  private final Formula.LastStep lastStep;

  /** Whether values are made of sums at last; bounds are of the sums, so no rung stores a tile by itself. */
  private final boolean hasLastStep;

  /** Whether values may be negative. A tile of which vectors do not store all at once is the cold kernel's then, as signs mark open entries. */
  private final boolean isSigned;

  /** Whether double computes few entries one by one. */
  private final boolean hasDifferenceForm;

  private final @Nullable FloatNearKernel near32;

  private final @Nullable DoubleNearKernel near64;

  /** First rung that settled an entry of the last tile, tried first by the next; null if float settled some entries, but not all. */
  private @Nullable Rung likely = Rung.FLOAT;

  /**
   * Makes a kernel of one thread, for which {@code cold} computes tiles that need refinement until that is ready. Near forms go through pairs one
   * by one until vectors of their kinds of scales are.
   */
  public TileKernel(
      Formula formula,
      Worker worker,
      Pair pair,
      ColdKernel cold,
      IntPredicate isRefinementReady,
      IntPredicate areOtherKindsReady) {
    this.formula = formula;
    this.worker = worker;
    this.pair = pair;
    this.cold = cold;
    this.isRefinementReady = isRefinementReady;
    this.areOtherKindsReady = areOtherKindsReady;
    floats = FloatSums.of(formula);
    doubles = DoubleSums.of(formula);
    lastStep = formula.lastStep();
    hasLastStep = lastStep != Formula.LastStep.NONE;
    isSigned = formula.isSigned();
    hasDifferenceForm = formula.hasDifferenceForm();
    FloatNearForm form32 = cold.near32();
    DoubleNearForm form64 = cold.near64();
    near32 = form32 != null ? new FloatNearKernel(form32) : null;
    near64 = form64 != null ? new DoubleNearKernel(form64) : null;
  }

  /** Drops a call's batches and arrays, and the rung of its last tile. */
  @Override
  public void clear() {
    tile.dropTarget();
    floats.dropBatches();
    doubles.dropBatches();
    cold.clear();
    likely = Rung.FLOAT;
  }

  @Override
  public void block(
      TileOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    int d = operands.q().dimension();
    operands.countEntries(row1 - row0, column1 - column0);
    boolean wide = operands.isWide();
    tile.startBlock(out, row0, row1, wide ? DoublePanels.NR : FloatPanels.NR);
    doubles.dropBatches();
    if (wide) {
      doubles.startBlock(operands);
    } else {
      floats.startBlock(operands);
    }
    for (int column = column0; column < column1; column += tile.width) {
      tile.startPanel(column, column1, operands.q() == operands.p());
      worker.pass((long) tile.rows * tile.width * d);
      if (wide) {
        settleWide(operands);
      } else {
        Rung from = likely == null ? Rung.FLOAT : speculate(operands, likely);
        if (from != null) {
          climb(operands, from);
        } else if (likely != Rung.FLOAT) {
          countStored();
        }
      }
    }
  }

  /** Counts the entries of a tile that was stored by another form than float's. */
  private void countStored() {
    long entries = (long) tile.rows * tile.columns;
    worker.countAgain(likely == Rung.DOUBLE ? entries : 0, likely == Rung.NEAR ? entries : 0);
  }

  /** Computes a tile whose first form is in double. */
  private void settleWide(TileOperands operands) {
    doubles.compute(tile, 0, tile.rows);
    if (!hasLastStep && Epilogue.store(tile, doubles)) {
      tile.storeDiagonal();
      return;
    }
    if (isSigned) {
      settleCold(operands);
      return;
    }
    tile.open();
    int open = tile.settle(doubles);
    worker.countAgain(0, open);
    DiagonalBatch q = operands.q();
    DiagonalBatch p = operands.p();
    if (near64 != null && open > 0) {
      boolean vectors = isNearReady(q, p, true);
      open = near64.settle(tile, q, p, open, vectors);
    }
    storeRest(operands, open);
  }

  /** Whether near forms use vectors. */
  private boolean isNearReady(DiagonalBatch q, DiagonalBatch p, boolean isDouble) {
    return !formula.isOfOtherKinds(q, p, isDouble) || areOtherKindsReady.test(q.dimension());
  }

  /** Calls the micro-kernels of floats, for a trial: keeps nothing. */
  public void exercise(int calls) {
    floats.exercise(calls);
  }

  /** Computes all pairs of two such batches by the near form alone, for a trial: keeps nothing. */
  public void tryNear(DiagonalBatch q, DiagonalBatch p, BlockTarget spare, boolean vectors) {
    boolean wide = q.isDouble() || p.isDouble();
    tile.startBlock(spare, 0, q.size(), wide ? DoublePanels.NR : FloatPanels.NR);
    for (int column = 0; column < p.size(); column += tile.width) {
      tile.startPanel(column, p.size(), false);
      int open = tile.open();
      if (wide && near64 != null) {
        near64.settle(tile, q, p, open, vectors);
      } else if (!wide && near32 != null) {
        near32.settle(tile, q, p, open, vectors);
      }
    }
  }

  /** Stores a tile of which {@code open} entries are still open. */
  private void storeRest(TileOperands operands, int open) {
    if (hasLastStep) {
      tile.finish(lastStep);
    }
    if (open > 0 && tile.settleEqual(operands.q(), operands.p()) > 0) {
      settleStable(operands);
    }
    tile.store();
  }

  /**
   * Stores a tile of batches of float by one rung, if that settles every entry and its values tell that no rung before it settles any, so
   * that no entry depends on its tile. Returns null if stored, or the rung to climb from.
   */
  private @Nullable Rung speculate(TileOperands operands, Rung rung) {
    if (hasLastStep) {
      return Rung.FLOAT;
    }
    boolean whole = tile.columns == FloatPanels.NR;
    boolean stored = false;
    if (rung == Rung.FLOAT) {
      floats.compute(tile, 0, tile.rows);
      if (whole && !floats.isPromoted()) {
        stored = Epilogue.storeWhole(tile, floats, floats.acc);
      } else {
        floats.promote(tile);
        stored = Epilogue.store(tile, floats);
      }
      tile.storeDiagonal();
    } else if (whole && !tile.isDiagonal) {
      if (rung == Rung.DOUBLE) {
        refinement(operands).compute(tile, 0, tile.rows);
        return Epilogue.storeDouble(tile, floats, doubles);
      }
      DiagonalBatch q = operands.q();
      DiagonalBatch p = operands.p();
      stored =
          near32 != null
              && isNearReady(q, p, false)
              && near32.store(tile, q, p, floats, refinement(operands));
    }
    return stored ? null : Rung.FLOAT;
  }

  /** Settles each entry of a tile of batches of float by the first rung that is right for it; no rung before {@code from} is for any. */
  private void climb(TileOperands operands, Rung from) {
    DiagonalBatch q = operands.q();
    DiagonalBatch p = operands.p();
    Tile t = tile;
    // float did not store it
    if (!hasLastStep && (isSigned || !isRefinementReady.test(q.dimension()))) {
      settleCold(operands);
      return;
    }
    int all = t.open();
    int afterFloat = all;
    if (from == Rung.FLOAT) {
      floats.compute(t, 0, t.rows);
      floats.promote(t);
      afterFloat = t.settle(floats);
    }
    if (afterFloat > 0 && !isRefinementReady.test(q.dimension())) {
      settleCold(operands);
      return;
    }
    int afterDouble = afterFloat == 0 ? 0 : settleDouble(operands, afterFloat, afterFloat == all);
    worker.countAgain(afterFloat - afterDouble, afterDouble);
    boolean mayBeNear = near32 != null && afterDouble > 0;
    int afterNear = afterDouble;
    if (near32 != null && mayBeNear) {
      boolean vectors = isNearReady(q, p, false);
      afterNear = near32.settle(t, q, p, afterDouble, vectors);
    }
    storeRest(operands, afterNear);
    if (all == 0) {
      return; // only a diagonal, which tells nothing of the next tile
    }
    if (afterFloat < all || !operands.hasPanels64()) {
      likely = afterFloat == 0 ? Rung.FLOAT : null; // the others are tried with panels alone
    } else {
      likely = afterDouble < all || !mayBeNear ? Rung.DOUBLE : Rung.NEAR;
    }
  }

  /** Settles a tile without vectors. */
  private void settleCold(TileOperands operands) {
    Tile t = tile;
    cold.block(operands, t.row, t.row + t.rows, t.column, t.column + t.columns, t.out());
  }

  /** Returns the sums in double of batches of float, started at a block's first need. */
  private TileSums<double[]> refinement(TileOperands operands) {
    if (!doubles.isStarted()) {
      doubles.startBlock(operands);
    }
    return doubles;
  }

  /** Settles the open entries that double is right for; how many stay open. */
  private int settleDouble(TileOperands operands, int left, boolean areAllOpen) {
    Tile t = tile;
    if (hasDifferenceForm && !operands.isWorthPanels64(left)) {
      operands.countEntries(
          1, DiagonalBatch.SHARE); // one alone takes no longer than its panel would
      return settleEntries(operands, 0, t.rows);
    }
    if (areAllOpen) {
      refinement(operands).compute(t, 0, t.rows);
      return t.settle(doubles);
    }
    int open = 0;
    int dense = hasDifferenceForm ? DENSE : 1; // others have no form in double of an entry alone
    for (int from = 0; from < t.rows; from += FloatPanels.MR) {
      int to = Math.min(from + FloatPanels.MR, t.rows);
      if (t.open(from) >= dense) {
        refinement(operands).compute(t, from, to);
        open += t.settle(doubles, from, to);
      } else if (t.open(from) > 0) {
        open += settleEntries(operands, from, to);
      }
    }
    return open;
  }

  /** Settles entries of KL in rows [from, to) one by one, to the bits of {@link Tile#settle}; how many stay open. */
  private int settleEntries(TileOperands operands, int from, int to) {
    DiagonalBatch q = operands.q();
    DiagonalBatch p = operands.p();
    Tile t = tile;
    int open = 0;
    for (int i = from; i < to; i++) {
      for (int j = 0; j < t.columns; j++) {
        if (t.isOpen(i, j)) {
          worker.pass(Checkpoint.ofPlain(q.dimension()));
          double kl = PairKl.certain(PairKl.REFINED_TOLERANCE, q, t.row + i, p, t.column + j);
          if (Double.isNaN(kl)) {
            open++;
          } else {
            t.settle(i, j, kl);
          }
        }
      }
    }
    return open;
  }

  /** Settles what is left, of parameters that differ, by the stable form. */
  private void settleStable(TileOperands operands) {
    DiagonalBatch q = operands.q();
    DiagonalBatch p = operands.p();
    for (int i = 0; i < tile.rows; i++) {
      for (int j = 0; j < tile.columns; j++) {
        if (tile.isOpen(i, j)) {
          worker.pass(Checkpoint.ofPlain(q.dimension()));
          tile.settle(i, j, pair.stable(q, tile.row + i, p, tile.column + j));
        }
      }
    }
  }
}
