package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.vector.FloatNearForm.Way;
import java.util.Arrays;
import java.util.BitSet;

/** Computes tiles of {@link FloatNearForm} by vectors. One thread's. */
final class FloatNearKernel {
  private static final int V = FloatNearForm.V;
  private static final int NR = FloatPanels.NR;

  private final FloatNearForm form;

  /** Whether the first way settled nothing of the last tile, and {@link Way#scaledUp} may settle the next. */
  private boolean isUpLikely;

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
  private void compute(Tile t, Way way, DiagonalBatch q, DiagonalBatch p, int count) {
    int d = q.dimension();
    FloatNearForm.Rows values = form.rows(q, way);
    float[] columns = form.panel(p, way, t.column / NR);
    float[] series = form.coefficients(way.kind(q), way);
    Arrays.fill(rows, count, count + 3, rows[count - 1]);
    for (int h = 0; h < d; h += PairKl.BLOCK) {
      int length = Math.min(PairKl.BLOCK, d - h);
      for (int c = 0; c < t.columns; c += V) {
        // a block of dimensions stays in the L1 cache for all rows
        int at = (c / V * d + h) * way.fields * V;
        for (int k = 0; k < count; k += 4) {
          NearMicroKernel.tile4x1(
              form.term,
              q.kind(),
              way.isMixed(),
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
              form.limit(way),
              series,
              acc,
              c);
        }
      }
      Epilogue.promote(acc, kl, 0, t.rows * NR, h == 0);
    }
    double most = FloatNearForm.mostKl(d, way);
    for (int k = 0; k < t.rows * NR && way.down != 1; k++) {
      kl[k] *= way.down;
      kl[k] = kl[k] < most ? kl[k] : Double.NaN;
    }
  }

  /** Stores the KL of a tile as wide as a panel; whether this form settles every entry, and neither float nor double any. */
  boolean store(Tile t, DiagonalBatch q, DiagonalBatch p, TileSums<?> floats, TileSums<?> doubles) {
    int d = q.dimension();
    Way way = Way.of(q, p);
    if (isUpLikely) {
      way = way.scaledUp();
    }
    boolean isExact = way.isMixed() && isExact(t, q, p);
    if (way == Way.MIXED_UP_SCALED && !isExact) {
      return false;
    }
    Arrays.setAll(rows, i -> i);
    compute(t, way, q, p, t.rows);
    double least = FloatNearForm.leastKl(d, way, isExact);
    int stored = Epilogue.storeNear(t, kl, floats, doubles, least);
    return stored > 0 || (stored == 0 && areLowEqual(t, q, p, least));
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
    Way way = Way.of(q, p);
    if (!FloatNearForm.IS_FOLLOWED || (way.isMixed() && !mayBeExact(t, q, p))) {
      isUpLikely = false;
      return settle(t, way, q, p, open, vectors);
    }
    Way first = isUpLikely ? way.scaledUp() : way; // the other may take long, by what underflows
    Way second = isUpLikely ? way : way.scaledUp();
    int rest = settle(t, first, q, p, open, vectors);
    isUpLikely = isUpLikely == rest < open;
    rest = rest == 0 ? 0 : t.settleEqual(q, p);
    return rest == 0 ? 0 : settle(t, second, q, p, rest, vectors);
  }

  private int settle(Tile t, Way way, DiagonalBatch q, DiagonalBatch p, int open, boolean vectors) {
    boolean isPacked = form.isPacked(q, p, way, t.column / NR, open);
    if (!vectors && isPacked) { // pairs read it, too
      form.panel(p, way, t.column / NR);
    }
    if (!vectors || !isPacked) {
      return settlePairs(t, way, q, p);
    }
    int count = 0;
    for (int i = 0; i < t.rows; i++) {
      if (t.hasOpen(i)) {
        rows[count++] = i;
      }
    }
    compute(t, way, q, p, count);
    putNaN(t, q.beyond32(), p.beyond32());
    int d = q.dimension();
    int left = open;
    if (way != Way.MIXED_UP_SCALED) {
      left = t.settle(kl, FloatNearForm.leastKl(d, way, false));
    }
    if (left > 0 && FloatNearForm.IS_FOLLOWED && way.isMixed() && mayBeExact(t, q, p)) {
      putNaN(t, FloatNearForm.inexactRows(q), FloatNearForm.inexactRows(p));
      left = t.settle(kl, FloatNearForm.leastKl(d, way, true));
    }
    return left;
  }

  /** Whether the variances of some of a tile's rows, and of some of its columns, are exact in two parts. */
  private static boolean mayBeExact(Tile t, DiagonalBatch q, DiagonalBatch p) {
    return FloatNearForm.inexactRows(q).nextClearBit(t.row) < t.row + t.rows
        && FloatNearForm.inexactRows(p).nextClearBit(t.column) < t.column + t.columns;
  }

  /** Whether those of all are. */
  private static boolean isExact(Tile t, DiagonalBatch q, DiagonalBatch p) {
    int row = FloatNearForm.inexactRows(q).nextSetBit(t.row);
    int column = FloatNearForm.inexactRows(p).nextSetBit(t.column);
    return (row < 0 || row >= t.row + t.rows) && (column < 0 || column >= t.column + t.columns);
  }

  /** Puts NaN in some rows and columns, as this precision does not hold their scales. */
  private void putNaN(Tile t, BitSet someRows, BitSet someColumns) {
    int end = t.row + t.rows;
    for (int i = someRows.nextSetBit(t.row); i >= 0 && i < end; ) {
      Arrays.fill(kl, (i - t.row) * NR, (i - t.row + 1) * NR, Double.NaN);
      i = someRows.nextSetBit(i + 1);
    }
    end = t.column + t.columns;
    for (int j = someColumns.nextSetBit(t.column); j >= 0 && j < end; ) {
      for (int i = 0; i < t.rows; i++) {
        kl[i * NR + j - t.column] = Double.NaN;
      }
      j = someColumns.nextSetBit(j + 1);
    }
  }

  private int settlePairs(Tile t, Way way, DiagonalBatch q, DiagonalBatch p) {
    int open = 0;
    for (int i = 0; i < t.rows; i++) {
      for (int j = 0; j < t.columns; j++) {
        if (t.isOpen(i, j)) {
          double value = form.value(way, q, t.row + i, p, t.column + j);
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
