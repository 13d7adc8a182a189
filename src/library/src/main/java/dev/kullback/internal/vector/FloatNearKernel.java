package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.PairKl;
import java.util.Arrays;

/** Computes tiles of {@link FloatNearForm} by vectors. One thread's. */
final class FloatNearKernel {
  private static final int V = FloatNearForm.V;
  private static final int NR = FloatPanels.NR;

  private final FloatNearForm form;

  /** The KL of a block of dimensions, row-major {@code [rows, NR]}. */
  private final float[] acc = new float[Tile.CAPACITY];

  /** KL, likewise; valid for {@link #rows}. */
  private final double[] kl = new double[Tile.CAPACITY];

  /** Rows of the tile that are computed, the last repeated to make up a group of four. */
  private final int[] rows = new int[Tile.ROWS + 3];

  FloatNearKernel(FloatNearForm form) {
    this.form = form;
  }

  /** Computes {@link #kl} of the first {@code count} of {@link #rows}, NaN where the form does not hold. */
  private void compute(Tile t, DiagonalBatch q, DiagonalBatch p, int count) {
    int d = q.dimension();
    boolean isMixed = FloatNearForm.areMixed(q, p);
    int fields = FloatNearForm.fields(isMixed);
    FloatNearForm.Rows values = form.rows(q, isMixed);
    float[] columns = form.panel(p, isMixed, t.column / NR);
    float[] series = form.coefficients(FloatNearForm.kind(q, p));
    Arrays.fill(rows, count, count + 3, rows[count - 1]);
    for (int h = 0; h < d; h += PairKl.BLOCK) {
      int length = Math.min(PairKl.BLOCK, d - h);
      for (int c = 0; c < t.columns; c += V) {
        // a block of dimensions stays in the L1 cache for all rows
        int at = (c / V * d + h) * fields * V;
        for (int k = 0; k < count; k += 4) {
          NearMicroKernel.tile4x1(
              form.term,
              q.kind(),
              isMixed,
              values.mean(),
              values.scale(),
              values.weights(),
              values.spreads(),
              values.rests(),
              t.row * d + h,
              d,
              rows[k],
              rows[k + 1],
              rows[k + 2],
              rows[k + 3],
              columns,
              at,
              length,
              form.weight,
              form.factor,
              series,
              acc,
              c);
        }
      }
      Epilogue.promote(acc, kl, 0, t.rows * NR, h == 0);
    }
  }

  /** Stores the KL of a tile as wide as a panel; whether this form settles every entry, and neither float nor double any. */
  boolean store(Tile t, DiagonalBatch q, DiagonalBatch p, TileSums<?> floats, TileSums<?> doubles) {
    Arrays.setAll(rows, i -> i);
    compute(t, q, p, t.rows);
    double least = leastKl(q, p);
    int stored = Epilogue.storeNear(t, kl, floats, doubles, least);
    return stored > 0 || (stored == 0 && areLowEqual(t, q, p, least));
  }

  private static double leastKl(DiagonalBatch q, DiagonalBatch p) {
    return FloatNearForm.leastKl(q.dimension(), FloatNearForm.areMixed(q, p));
  }

  /** Whether the entries below {@code least} are those of equal parameters. */
  private boolean areLowEqual(Tile t, DiagonalBatch q, DiagonalBatch p, double least) {
    t.forgetEqual();
    for (int i = 0; i < t.rows; i++) {
      long zeros = 0;
      for (int j = 0; j < NR; j++) {
        double value = kl[i * NR + j];
        if (value == 0) {
          zeros |= 1L << j;
        } else if (value < least) {
          return false;
        }
      }
      if (t.equal(q, p, i, zeros) != zeros) {
        return false;
      }
    }
    return true;
  }

  /**
   * Settles the open entries that this form is right for, and before, where there are few or the first of the tile is one, those of equal
   * parameters; how many stay open. Of a batch and a copy of it, these are all that is open of most tiles, and comparing takes far less than this
   * form.
   *
   * @param left how many are open; few are computed one by one, to the same bits
   * @param vectors whether vectors may compute the others
   */
  int settle(Tile t, DiagonalBatch q, DiagonalBatch p, int left, boolean vectors) {
    boolean mayBeEqual = left < FloatNearForm.MANY || q.isEqual(t.row, p, t.column);
    int open = mayBeEqual ? t.settleEqual(q, p) : left;
    if (open == 0) {
      return 0;
    }
    boolean isPacked = form.isPacked(q, p, t.column / NR, open);
    if (!vectors && isPacked) { // pairs read it, too
      form.panel(p, FloatNearForm.areMixed(q, p), t.column / NR);
    }
    if (!vectors || !isPacked) {
      return settlePairs(t, q, p);
    }
    int count = 0;
    for (int i = 0; i < t.rows; i++) {
      if (t.hasOpen(i)) {
        rows[count++] = i;
      }
    }
    compute(t, q, p, count);
    putBeyond(t, q, p);
    return t.settle(kl, leastKl(q, p));
  }

  /** Puts NaN where this precision does not hold the scales. */
  private void putBeyond(Tile t, DiagonalBatch q, DiagonalBatch p) {
    int end = t.row + t.rows;
    for (int i = q.beyond32().nextSetBit(t.row); i >= 0 && i < end; ) {
      Arrays.fill(kl, (i - t.row) * NR, (i - t.row + 1) * NR, Double.NaN);
      i = q.beyond32().nextSetBit(i + 1);
    }
    end = t.column + t.columns;
    for (int j = p.beyond32().nextSetBit(t.column); j >= 0 && j < end; ) {
      for (int i = 0; i < t.rows; i++) {
        kl[i * NR + j - t.column] = Double.NaN;
      }
      j = p.beyond32().nextSetBit(j + 1);
    }
  }

  private int settlePairs(Tile t, DiagonalBatch q, DiagonalBatch p) {
    int open = 0;
    for (int i = 0; i < t.rows; i++) {
      for (int j = 0; j < t.columns; j++) {
        if (t.isOpen(i, j)) {
          double value = form.value(q, t.row + i, p, t.column + j);
          if (Double.isNaN(value)) {
            open++;
          } else {
            t.settle(i, j, value);
          }
        }
      }
    }
    return open;
  }
}
