package dev.kullback;

import java.util.Arrays;

/**
 * The Vector API backend: walks a block tile by tile through the fast kernel and refines the entries whose error bound exceeds
 * the contract.
 */
final class VectorKernel implements BlockKernel {
  /**
   * From so many entries a tile on, the double kernel computes the tile whole instead of single entries: by the kernels' rates it
   * takes as long as some 10 of them (D = 256).
   */
  private static final int DENSE = 10;

  @Override
  public void prepare(DiagonalGaussians q, DiagonalGaussians p) {
    if (isWide(q, p)) {
      q.rows64();
      p.columns64();
    } else {
      q.rows32();
      p.columns32();
    }
  }

  private static boolean isWide(DiagonalGaussians q, DiagonalGaussians p) {
    return q.isDouble() || p.isDouble();
  }

  @Override
  public void block(
      DiagonalGaussians q,
      DiagonalGaussians p,
      int row0,
      int row1,
      int column0,
      int column1,
      Tile t) {
    boolean wide = isWide(q, p);
    int mr = FloatKernels.MR;
    int nr = wide ? DoubleKernels.NR : FloatKernels.NR;
    for (int column = column0; column < column1; column += nr) {
      t.column = column;
      t.columns = Math.min(nr, column1 - column);
      for (int row = row0; row < row1; row += mr) {
        t.row = row;
        t.rows = Math.min(mr, row1 - row);
        if (t.near && near(q, p, t)) {
          continue;
        }
        if (wide) {
          tile64(q, p, t, column, t.columns, t.sum);
        } else {
          tile32(q, p, t);
        }
        boolean diagonal = q == p && row < column + t.columns && column < row + t.rows;
        if (diagonal) {
          exclude(t, nr);
        }
        if (!store(q, p, t)) {
          refine(q, p, t, nr);
        }
        if (diagonal) {
          zero(t);
        }
      }
    }
  }

  private static void tile32(DiagonalGaussians q, DiagonalGaussians p, Tile t) {
    FloatKernels.tile(
        q.rows32().values(),
        t.row / FloatKernels.MR,
        p.columns32().values(),
        t.column / FloatKernels.NR,
        q.dimension(),
        t.columns,
        t.acc32,
        t.sum);
  }

  private static void tile64(
      DiagonalGaussians q, DiagonalGaussians p, Tile t, int column, int columns, double[] sum) {
    DoubleKernels.tile(
        q.rows64().values(),
        t.row / DoubleKernels.MR,
        p.columns64().values(),
        column / DoubleKernels.NR,
        q.dimension(),
        columns,
        t.acc64,
        sum);
  }

  private static boolean store(DiagonalGaussians q, DiagonalGaussians p, Tile t) {
    int d = q.dimension();
    if (isWide(q, p)) {
      double unit = PairKl.doubleUnit(d);
      return Epilogue.store(
          t, DoubleKernels.NR, q.rows64(), p.columns64(), d, unit, PairKl.DOUBLE_TOLERANCE);
    }
    double unit = PairKl.FLOAT_UNIT;
    return Epilogue.store(
        t, FloatKernels.NR, q.rows32(), p.columns32(), d, unit, PairKl.FLOAT_TOLERANCE);
  }

  /** Keeps the diagonal of KL(q‖q), which is 0, from counting as uncertain. */
  private static void exclude(Tile t, int nr) {
    for (int i = Math.max(t.row, t.column);
        i < Math.min(t.row + t.rows, t.column + t.columns);
        i++) {
      t.sum[(i - t.row) * nr + i - t.column] = 0x1p100;
    }
  }

  private static void zero(Tile t) {
    for (int i = Math.max(t.row, t.column);
        i < Math.min(t.row + t.rows, t.column + t.columns);
        i++) {
      t.put(i, i, 0);
    }
  }

  /** Tries the near form for the whole tile; whether it settled every entry. */
  private static boolean near(DiagonalGaussians q, DiagonalGaussians p, Tile t) {
    Arrays.fill(t.open, 0, t.rows, valid(t));
    t.near = settleNear(q, p, t) == 0;
    return t.near;
  }

  private static long valid(Tile t) {
    return -1L >>> -t.columns;
  }

  /**
   * Recomputes the uncertain entries by the near form, in double, and by the stable form, in this order, each settling what it
   * is right for. Only open entries are stored, so a value does not depend on what else its tile needs.
   */
  private static void refine(DiagonalGaussians q, DiagonalGaussians p, Tile t, int nr) {
    boolean wide = isWide(q, p);
    double unit = wide ? PairKl.doubleUnit(q.dimension()) : PairKl.FLOAT_UNIT;
    Epilogue.judge(
        t,
        t.sum,
        nr,
        0,
        t.columns,
        wide ? q.rows64() : q.rows32(),
        wide ? p.columns64() : p.columns32(),
        q.dimension(),
        unit,
        wide ? PairKl.DOUBLE_TOLERANCE : PairKl.FLOAT_TOLERANCE);
    boolean all = true;
    long close = 0;
    for (int i = 0; i < t.rows; i++) {
      t.open[i] = ~t.certain[i] & valid(t);
      all &= t.open[i] == valid(t);
      close |= t.open[i] & t.close[i];
    }
    if (!wide) {
      if (close != 0 && q.kind == p.kind) {
        t.near = settleNear(q, p, t) == 0 && all;
      }
      settleWide(q, p, t);
    }
    for (int i = 0; i < t.rows; i++) {
      for (long bits = t.open[i]; bits != 0; bits &= bits - 1) {
        int column = t.column + Long.numberOfTrailingZeros(bits);
        t.put(t.row + i, column, PairKl.stable(q, t.row + i, p, column));
      }
    }
  }

  /** Stores the open entries that are near; how many stay open. */
  private static int settleNear(DiagonalGaussians q, DiagonalGaussians p, Tile t) {
    NearKernel.tile(q, p, t, t.refined);
    Epilogue.judgeNear(t, t.refined, FloatKernels.NR, q.rows32(), p.columns32());
    int open = 0;
    for (int i = 0; i < t.rows; i++) {
      long settled = t.open[i] & t.certain[i];
      if (settled != 0) {
        Epilogue.put(t, i, settled, 0, t.columns, t.refined, i * FloatKernels.NR);
      }
      t.open[i] &= ~settled;
      open += Long.bitCount(t.open[i]);
    }
    return open;
  }

  /** Stores the open entries that double settles. */
  private static void settleWide(DiagonalGaussians q, DiagonalGaussians p, Tile t) {
    int open = 0;
    for (int i = 0; i < t.rows; i++) {
      open += Long.bitCount(t.open[i]);
    }
    if (open < DENSE) {
      settleEntries(q, p, t);
      return;
    }
    int nr = DoubleKernels.NR;
    double unit = PairKl.doubleUnit(q.dimension());
    for (int first = 0; first < t.columns; first += nr) {
      int columns = Math.min(nr, t.columns - first);
      tile64(q, p, t, t.column + first, columns, t.refined);
      Epilogue.judge(
          t,
          t.refined,
          nr,
          first,
          columns,
          q.rows64(),
          p.columns64(),
          q.dimension(),
          unit,
          PairKl.REFINED_TOLERANCE);
      for (int i = 0; i < t.rows; i++) {
        long settled = t.open[i] & t.certain[i];
        if (settled != 0) {
          Epilogue.put(t, i, settled, first, columns, t.refined, i * nr);
        }
        t.open[i] &= ~settled;
      }
    }
  }

  /** The same one by one, to the same bits. */
  private static void settleEntries(DiagonalGaussians q, DiagonalGaussians p, Tile t) {
    double unit = PairKl.doubleUnit(q.dimension());
    for (int i = 0; i < t.rows; i++) {
      int row = t.row + i;
      for (long bits = t.open[i]; bits != 0; bits &= bits - 1) {
        int j = Long.numberOfTrailingZeros(bits);
        double half = 0.5 * PairKl.ratioSum(q, row, p, t.column + j);
        double kl = half + (p.logDet[t.column + j] - q.logDet[row]);
        double bound = p.logDetBound[t.column + j] + (q.logDetBound[row] + unit * q.dimension());
        if (PairKl.isCertain(half, kl, unit, PairKl.REFINED_TOLERANCE, bound)) {
          t.put(row, t.column + j, kl);
          t.open[i] &= ~(1L << j);
        }
      }
    }
  }
}
