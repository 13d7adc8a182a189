package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.plain.PairKl;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The Vector API backend: walks a block panel by panel through the fast kernel and refines the entries whose error bound exceeds the
 * contract.
 */
public final class VectorKernel implements BlockKernel<TileOperands> {
  /** Of the micro-kernel for float. */
  public static final int TILE_ROWS = FloatPanels.MR;

  public static final int TILE_COLUMNS = FloatPanels.NR;

  /**
   * From so many open entries a panel on, the double kernel computes it whole: it takes as long as 3 of them, by the rates at D = 256 (Zen
   * 3).
   */
  private static final int DENSE = 4;

  private final Worker worker;
  private final ColdKernel cold;
  private final BooleanSupplier isRefinementReady;
  private final Tile tile = new Tile();

  /** Holds the operands of the last block. */
  private @Nullable TileOperands operands;

  /**
   * A kernel.
   *
   * @param cold computes tiles with entries to be recomputed until refinement is ready
   */
  public VectorKernel(Worker worker, ColdKernel cold, BooleanSupplier isRefinementReady) {
    this.worker = worker;
    this.cold = cold;
    this.isRefinementReady = isRefinementReady;
  }

  /** Lets go of a call's memory, and of what its tiles had in common. */
  public void clear() {
    operands = null;
    tile.clear();
  }

  private TileOperands operands() {
    return Objects.requireNonNull(operands);
  }

  private DiagonalBatch q() {
    return operands().q();
  }

  private DiagonalBatch p() {
    return operands().p();
  }

  private Packed<float[]> q32() {
    return operands().q32();
  }

  private Packed<float[]> p32() {
    return operands().p32();
  }

  private Packed<double[]> q64() {
    return operands().q64();
  }

  private Packed<double[]> p64() {
    return operands().p64();
  }

  @Override
  public void block(
      TileOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    this.operands = operands;
    DiagonalBatch q = q();
    DiagonalBatch p = p();
    Tile t = tile;
    boolean wide = operands.isWide();
    int nr = wide ? DoubleKernels.NR : FloatKernels.NR;
    t.begin(out, row0, row1, nr);
    if (!wide) {
      packRows32(q, row0, row1, t);
    }
    for (int column = column0; column < column1; column += nr) {
      t.begin(column, Math.min(nr, column1 - column));
      worker.pass((long) t.rows * nr * q.dimension());
      boolean diagonal = q == p && row0 < column + t.columns && column < row1;
      if (wide) {
        doubles(q, p, t, diagonal);
      } else {
        floats(q, p, t, diagonal);
      }
    }
  }

  /** Packs the block's rows. */
  private void packRows32(DiagonalBatch q, int row0, int row1, Tile t) {
    int needed = Math.ceilDiv(row1 - row0, FloatKernels.MR) * FloatKernels.MR * 2 * q.dimension();
    if (t.rows32.length < needed) {
      t.rows32 = new float[needed];
    }
    FloatKernels.packRows(q32().values(), q.dimension(), row0, row1, t.rows32);
  }

  /** The same in double, the first time that the block needs them. */
  private void packRows64(DiagonalBatch q, Tile t) {
    if (t.arePacked64) {
      return;
    }
    int needed = Math.ceilDiv(t.rows, DoubleKernels.MR) * DoubleKernels.MR * 2 * q.dimension();
    if (t.rows64.length < needed) {
      t.rows64 = new double[needed];
    }
    DoubleKernels.packRows(q64().values(), q.dimension(), t.row, t.row + t.rows, t.rows64);
    t.arePacked64 = true;
  }

  /** A tile of batches of double. */
  private void doubles(DiagonalBatch q, DiagonalBatch p, Tile t, boolean diagonal) {
    int nr = DoubleKernels.NR;
    double margin = PairKl.DOUBLE_TOLERANCE - PairKl.unit64(q.dimension());
    tile64(q, t, 0, t.rows, 0, t.sum);
    t.exclude(diagonal);
    if (Epilogue.store(t, nr, q64(), p64(), margin)) {
      if (diagonal) {
        t.storeDiagonal();
      }
      return;
    }
    if (Epilogue.judge(t, 0, t.rows, 0, t.columns, t.sum, 0, nr, q64(), p64(), margin) > 0) {
      settleStable(q, p, t);
    }
    finish(t, diagonal);
  }

  /**
   * A tile of batches of float. The form that settled the last tile is tried first: if it settles every entry, and its values tell that no
   * form before it does, they are stored. Otherwise each form in turn settles what it is right for, so an entry does not depend on its
   * tile.
   */
  private void floats(DiagonalBatch q, DiagonalBatch p, Tile t, boolean diagonal) {
    int nr = FloatKernels.NR;
    int d = q.dimension();
    double margin32 = PairKl.FLOAT_TOLERANCE - PairKl.unit32(d);
    double margin64 = PairKl.REFINED_TOLERANCE - PairKl.unit64(d);
    boolean whole = !diagonal && t.columns == nr;
    Tile.Rung first = whole ? t.likely : Tile.Rung.FLOAT;
    boolean mayBeFloat = true;
    switch (first) {
      case FLOAT -> {
        boolean promote = t.columns < nr || !t.isUniform || d > FloatKernels.PROMOTED;
        tile32(d, t, promote);
        if (promote) {
          t.exclude(diagonal);
        } else if (diagonal) {
          t.exclude32();
        }
        if (t.isUniform
            && (promote
                ? Epilogue.store(t, nr, q32(), p32(), margin32)
                : Epilogue.storeWhole(t, q32(), p32(), margin32))) {
          if (diagonal) {
            t.storeDiagonal();
          }
          return;
        }
        if (!isRefinementReady.getAsBoolean()) {
          cold.block(operands(), t.row, t.row + t.rows, t.column, t.column + t.columns, t.out());
          return;
        }
        if (!promote) {
          Epilogue.promote(t.acc32, t.sum, t.rows * nr, true);
        }
      }
      case DOUBLE -> {
        for (int k = 0; k < t.sum64.length; k++) {
          tile64(q, t, 0, t.rows, k, t.sum64[k]);
        }
        int found = Epilogue.storeDouble(t, q32(), p32(), q64(), p64(), margin32, margin64);
        if (found == (Epilogue.SETTLED | Epilogue.NO_FLOAT)) {
          return;
        }
        mayBeFloat = (found & Epilogue.NO_FLOAT) == 0;
        if (mayBeFloat) {
          tile32(d, t, true);
        }
      }
      case NEAR -> {
        Arrays.fill(t.open, true);
        NearKernel.tile(q, p, t);
        double least = NearKernel.leastKl(d);
        if (Epilogue.storeNear(t, q32(), p32(), q64(), p64(), margin32, margin64, least)
            && areZerosEqual(q, p, t)) {
          return;
        }
        tile32(d, t, true);
      }
    }
    int all = t.rows * t.columns;
    int open = all;
    if (mayBeFloat) {
      open = judgeFloat(t, margin32);
    }
    int afterFloat = open;
    if (open > 0) {
      open = settleDouble(q, p, t, first == Tile.Rung.DOUBLE, !mayBeFloat, margin64);
    }
    int afterDouble = open;
    if (open > 0 && q.kind() == p.kind()) {
      settleNear(q, p, t);
    }
    if (open > 0) {
      settleStable(q, p, t);
    }
    finish(t, diagonal);
    if (whole) {
      if (afterFloat < all) {
        t.likely = Tile.Rung.FLOAT;
        t.isUniform = afterFloat == 0;
      } else {
        t.likely = afterDouble < all || q.kind() != p.kind() ? Tile.Rung.DOUBLE : Tile.Rung.NEAR;
        t.isUniform = true;
      }
    }
  }

  /** Settles what float is right for, and opens the others; how many are open. */
  private int judgeFloat(Tile t, double margin) {
    int open = 0;
    for (int i = 0; i < t.rows; i += FloatKernels.MR) {
      int to = Math.min(i + FloatKernels.MR, t.rows);
      int here =
          Epilogue.judge(
              t,
              i,
              to,
              0,
              t.columns,
              t.sum,
              i * FloatKernels.NR,
              FloatKernels.NR,
              q32(),
              p32(),
              margin);
      t.openIn[i / FloatKernels.MR] = here;
      open += here;
    }
    return open;
  }

  /** Stores a tile that is settled. */
  private static void finish(Tile t, boolean diagonal) {
    if (diagonal) {
      t.settleDiagonal();
    }
    Epilogue.store(t);
  }

  private void tile32(int d, Tile t, boolean promote) {
    FloatKernels.tile(
        t.rows32,
        0,
        t.rows,
        p32().values(),
        t.column / FloatKernels.NR,
        t.columns,
        d,
        t.acc32,
        t.sum,
        promote);
  }

  /** {@code sum} of rows [from, to) of the tile by panel k of its columns. */
  private void tile64(DiagonalBatch q, Tile t, int from, int to, int k, double[] sum) {
    int nr = DoubleKernels.NR;
    int d = q.dimension();
    boolean promote = d > DoubleKernels.PROMOTED;
    packRows64(q, t);
    DoubleKernels.tile(
        t.rows64,
        from / DoubleKernels.MR,
        to - from,
        p64().values(),
        t.column / nr + k,
        Math.min(nr, t.columns - k * nr),
        d,
        promote ? t.acc64 : sum,
        sum,
        promote);
  }

  /**
   * Settles the open entries that double is right for.
   *
   * @param isComputed whether the tile's sums are there
   * @param areAllOpen whether no form has been asked before
   * @return how many are open
   */
  private int settleDouble(
      DiagonalBatch q,
      DiagonalBatch p,
      Tile t,
      boolean isComputed,
      boolean areAllOpen,
      double margin) {
    int nr = DoubleKernels.NR;
    int step = isComputed ? t.rows : DoubleKernels.MR;
    int open = 0;
    for (int from = 0; from < t.rows; from += step) {
      int to = Math.min(from + step, t.rows);
      int before = isComputed ? t.rows * t.columns : t.openIn[from / DoubleKernels.MR];
      if (before < DENSE) {
        open += before > 0 ? settleEntries(q, p, t, from, to, margin) : 0;
        continue;
      }
      for (int k = 0; k * nr < t.columns; k++) {
        double[] sum = t.sum64[k];
        int columns = Math.min(nr, t.columns - k * nr);
        if (!isComputed) {
          tile64(q, t, from, to, k, sum);
        }
        open +=
            areAllOpen
                ? Epilogue.judge(t, from, to, k * nr, columns, sum, 0, nr, q64(), p64(), margin)
                : Epilogue.settle(t, from, to, k * nr, columns, sum, 0, nr, q64(), p64(), margin);
      }
    }
    return open;
  }

  /** The same one by one, to the same bits. */
  private static int settleEntries(
      DiagonalBatch q, DiagonalBatch p, Tile t, int from, int to, double margin) {
    double unit = PairKl.unit64(q.dimension());
    int open = 0;
    for (int i = from; i < to; i++) {
      int row = t.row + i;
      for (int j = 0; j < t.columns; j++) {
        if (t.isOpen(i, j)) {
          double kl = PairKl.difference(q, row, p, t.column + j);
          double noise = PairKl.noiseQ(q, row, unit) + PairKl.noiseP(p, t.column + j, unit);
          if (PairKl.isCertain(kl, noise, margin)) {
            t.settle(i, j, kl);
          } else {
            open++;
          }
        }
      }
    }
    return open;
  }

  /** Settles the open entries that are near, and those of equal parameters. */
  private void settleNear(DiagonalBatch q, DiagonalBatch p, Tile t) {
    Epilogue.findOpen(t);
    NearKernel.tile(q, p, t);
    Epilogue.settleNear(t, q32(), p32(), NearKernel.leastKl(q.dimension()));
    for (int i = 0; i < t.rows; i++) {
      for (long bits = equal(q, p, t, i); bits != 0; bits &= bits - 1) {
        t.settle(i, Long.numberOfTrailingZeros(bits), 0);
      }
    }
  }

  /** Whether the entries whose near form is 0 are those of equal parameters. */
  private static boolean areZerosEqual(DiagonalBatch q, DiagonalBatch p, Tile t) {
    boolean equal = true;
    for (int i = 0; i < t.rows && equal; i++) {
      equal = equal(q, p, t, i) == t.zero[i];
    }
    return equal;
  }

  /**
   * Those of the columns with a bit in {@code t.zero} that have row i's parameters; columns that equal each other are compared with it
   * once.
   */
  private static long equal(DiagonalBatch q, DiagonalBatch p, Tile t, int i) {
    long equal = 0;
    for (long bits = t.zero[i] & (-1L >>> -t.columns); bits != 0; ) {
      int j = Long.numberOfTrailingZeros(bits);
      if (t.same[j] == 0) {
        for (int k = 0; k < t.columns; k++) {
          t.same[j] |= p.isEqual(t.column + j, p, t.column + k) ? 1L << k : 0;
        }
      }
      if (q.isEqual(t.row + i, p, t.column + j)) {
        equal |= bits & t.same[j];
      }
      bits &= ~t.same[j];
    }
    return equal;
  }

  /** Settles what is left, by the stable form. */
  private void settleStable(DiagonalBatch q, DiagonalBatch p, Tile t) {
    for (int i = 0; i < t.rows; i++) {
      for (int j = 0; j < t.columns; j++) {
        if (t.isOpen(i, j)) {
          worker.pass((long) Checkpoint.PLAIN * q.dimension());
          t.settle(i, j, PairKl.stable(q, t.row + i, p, t.column + j));
        }
      }
    }
  }
}
