package dev.kullback;

/**
 * The Vector API backend: walks a block tile by tile through the fast kernel and refines the entries whose error bound exceeds
 * the contract.
 */
final class VectorKernel implements BlockKernel {
  // States of an entry while its tile is refined.
  private static final byte DONE = 0;
  private static final byte NEAR = 1;
  private static final byte WIDE = 2;
  private static final byte STABLE = 3;

  /** From so many entries a tile on, the double kernel computes the tile whole instead of single entries. */
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
        t.columns <= FloatKernels.S.length(),
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
        columns <= DoubleKernels.S.length(),
        t.acc64,
        sum);
  }

  private static boolean store(DiagonalGaussians q, DiagonalGaussians p, Tile t) {
    int d = q.dimension();
    if (isWide(q, p)) {
      double unit = PairKl.doubleUnit(d);
      return Epilogue.store(
          t, DoubleKernels.NR, q.rows64(), p.columns64(), unit * d, unit, PairKl.DOUBLE_TOLERANCE);
    }
    double unit = PairKl.FLOAT_UNIT;
    return Epilogue.store(
        t, FloatKernels.NR, q.rows32(), p.columns32(), unit * d, unit, PairKl.FLOAT_TOLERANCE);
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

  /** Recomputes the uncertain entries: close pairs by the near form, others in double, and the rest by the stable form. */
  private static void refine(DiagonalGaussians q, DiagonalGaussians p, Tile t, int nr) {
    boolean wide = isWide(q, p);
    Packed<?> rows = wide ? q.rows64() : q.rows32();
    Packed<?> columns = wide ? p.columns64() : p.columns32();
    double unit = wide ? PairKl.doubleUnit(q.dimension()) : PairKl.FLOAT_UNIT;
    double tolerance = wide ? PairKl.DOUBLE_TOLERANCE : PairKl.FLOAT_TOLERANCE;
    byte otherwise = wide ? STABLE : WIDE;
    boolean near = !wide && q.kind == p.kind;
    int wides = 0;
    for (int i = 0; i < t.rows; i++) {
      double bound = rows.bound()[t.row + i] + unit * q.dimension();
      for (int j = 0; j < t.columns; j++) {
        double half = 0.5 * t.sum[i * nr + j];
        double kl = half + (columns.logDet()[t.column + j] - rows.logDet()[t.row + i]);
        byte state =
            judge(
                half, kl, unit, tolerance, columns.bound()[t.column + j] + bound, near, otherwise);
        t.state[i * nr + j] = state;
        wides += state == WIDE ? 1 : 0;
      }
    }
    if (wides > 0) {
      refineWide(q, p, t, nr, wides >= DENSE);
    }
    for (int i = 0; i < t.rows; i++) {
      boolean computed = false;
      for (int j = 0; j < t.columns; j++) {
        byte state = t.state[i * nr + j];
        if (state == NEAR) {
          if (!computed) {
            NearKernel.row(q, t.row + i, p, t.column / nr, t.acc32, t.refined);
            computed = true;
          }
          t.put(t.row + i, t.column + j, 0.5 * t.refined[j]);
        } else if (state == STABLE) {
          t.put(t.row + i, t.column + j, PairKl.stable(q, t.row + i, p, t.column + j));
        }
      }
    }
  }

  private static byte judge(
      double half,
      double kl,
      double unit,
      double tolerance,
      double bound,
      boolean near,
      byte otherwise) {
    if (PairKl.isCertain(half, kl, unit, tolerance, bound)) {
      return DONE;
    }
    return near && kl + (half * unit + bound) <= NearKernel.LIMIT ? NEAR : otherwise;
  }

  /** Settles the entries marked WIDE in double, or marks them NEAR or STABLE. */
  private static void refineWide(
      DiagonalGaussians q, DiagonalGaussians p, Tile t, int nr, boolean dense) {
    int d = q.dimension();
    double unit = PairKl.doubleUnit(d);
    int step = dense ? DoubleKernels.NR : nr;
    for (int from = 0; from < t.columns; from += step) {
      int to = Math.min(from + step, t.columns);
      if (dense) {
        tile64(q, p, t, t.column + from, to - from, t.refined);
      }
      for (int i = 0; i < t.rows; i++) {
        int row = t.row + i;
        double bound = q.logDetBound[row] + unit * d;
        for (int j = from; j < to; j++) {
          int column = t.column + j;
          if (t.state[i * nr + j] != WIDE) {
            continue;
          }
          double half =
              0.5 * (dense ? t.refined[i * step + j - from] : PairKl.difference(q, row, p, column));
          double kl = half + (p.logDet[column] - q.logDet[row]);
          if (dense && Double.isNaN(q.rows64().logDet()[row] + p.columns64().logDet()[column])) {
            kl = Double.NaN; // a variance is out of the kernel's range
          }
          boolean near =
              q.kind == p.kind
                  && !Double.isNaN(q.rows32().logDet()[row] + p.columns32().logDet()[column]);
          byte state =
              judge(
                  half,
                  kl,
                  unit,
                  PairKl.REFINED_TOLERANCE,
                  p.logDetBound[column] + bound,
                  near,
                  STABLE);
          t.state[i * nr + j] = state;
          if (state == DONE) {
            t.put(row, column, kl);
          }
        }
      }
    }
  }
}
