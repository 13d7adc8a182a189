package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.PairKl;
import java.util.Arrays;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/** Computes tiles of {@link NearForm} by vectors. One thread's. */
final class NearKernel {
  private static final VectorSpecies<Float> HALF = Species.HALF_FLOAT;
  private static final VectorSpecies<Double> D = Species.DOUBLE;
  private static final VectorSpecies<Long> L = Species.LONG;
  private static final DoubleVector LIMITS = DoubleVector.broadcast(D, 2 * NearForm.LIMIT);
  private static final LongVector ZERO = LongVector.zero(L);
  private static final int V = VectorWidth.BITS / Float.SIZE;
  private static final int NR = FloatPanels.NR;

  /** Twice the KL of a block of dimensions, row-major {@code [rows, NR]}. */
  private final float[] acc = new float[Tile.CAPACITY];

  /** KL, likewise; valid for {@link #rows}. */
  private final double[] kl = new double[Tile.CAPACITY];

  /** Rows of the tile that are computed, the last repeated to make up a group of four. */
  private final int[] rows = new int[Tile.ROWS + 3];

  /** Columns, as bits, whose parameters equal a column's; 0 where it is not known. */
  private final long[] same = new long[NR];

  /** Computes {@link #kl} of the first {@code count} of {@link #rows}, NaN where 64 dimensions have more than {@link NearForm#LIMIT}. */
  private void compute(Tile t, DiagonalBatch q, DiagonalBatch p, int count) {
    int d = q.dimension();
    float[] rowWeights = NearForm.ROW_WEIGHTS.of(q);
    float[] columns = NearForm.COLUMNS.of(p).panel(p, t.column / NR);
    Arrays.fill(rows, count, count + 3, rows[count - 1]);
    Arrays.fill(same, 0);
    for (int h = 0; h < d; h += PairKl.BLOCK) {
      int length = Math.min(PairKl.BLOCK, d - h);
      for (int c = 0; c < t.columns; c += V) {
        // a block of dimensions stays in the L1 cache for all rows
        int at = (c / V * d + h) * NearForm.FIELDS * V;
        for (int k = 0; k < count; k += 4) {
          NearMicroKernel.tile4x1(
              q.mean32(),
              q.scale32(),
              rowWeights,
              t.row * d + h,
              d,
              rows[k],
              rows[k + 1],
              rows[k + 2],
              rows[k + 3],
              columns,
              at,
              length,
              acc,
              c);
        }
      }
      promote(t.rows * NR, h == 0);
    }
  }

  /** Adds a block of dimensions to {@link #kl}, NaN where it has more than {@link NearForm#LIMIT}. */
  private void promote(int n, boolean first) {
    for (int i = 0; i < n; i += D.length()) {
      DoubleVector part =
          (DoubleVector)
              FloatVector.fromArray(HALF, acc, i).convertShape(VectorOperators.F2D, D, 0);
      LongVector beyond =
          ZERO.sub(
              ((LongVector) LIMITS.sub(part).reinterpretShape(L, 0))
                  .lanewise(VectorOperators.LSHR, 63));
      part =
          (DoubleVector)
              ((LongVector) part.reinterpretShape(L, 0)).or(beyond).reinterpretShape(D, 0);
      part = part.mul(0.5);
      (first ? part : part.add(DoubleVector.fromArray(D, kl, i))).intoArray(kl, i);
    }
  }

  /** Stores the KL of a tile as wide as a panel; whether this form settles every entry, and neither float nor double any. */
  boolean store(Tile t, DiagonalBatch q, DiagonalBatch p, TileSums<?> floats, TileSums<?> doubles) {
    Arrays.setAll(rows, i -> i);
    compute(t, q, p, t.rows);
    double least = NearForm.leastKl(q.dimension());
    int stored = Epilogue.storeNear(t, kl, floats, doubles, least);
    return stored > 0 || (stored == 0 && areLowEqual(t, q, p, least));
  }

  /** Whether the entries below {@code least} are those of equal parameters. */
  private boolean areLowEqual(Tile t, DiagonalBatch q, DiagonalBatch p, double least) {
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
      if (equal(t, q, p, i, zeros) != zeros) {
        return false;
      }
    }
    return true;
  }

  /**
   * Settles the open entries that this form is right for, and those of equal parameters; how many stay open.
   *
   * @param left how many are open
   * @param pairs computes few of them one by one, to the same bits
   */
  int settle(Tile t, DiagonalBatch q, DiagonalBatch p, int left, NearForm pairs) {
    if (!NearForm.isPacked(q, p, t.column / NR, left)) {
      return settlePairs(t, q, p, pairs);
    }
    int count = 0;
    for (int i = 0; i < t.rows; i++) {
      if (t.hasOpen(i)) {
        rows[count++] = i;
      }
    }
    compute(t, q, p, count);
    int open = 0;
    for (int k = 0; k < count; k++) {
      int i = rows[k];
      long zeros = 0;
      for (int j = 0; j < t.columns; j++) {
        double value = kl[i * NR + j];
        if (!t.isOpen(i, j)) {
          continue;
        }
        if (value == 0) {
          zeros |= 1L << j;
        } else if (NearForm.isRight(value, q, t.row + i, p, t.column + j)) {
          t.settle(i, j, value);
        } else {
          open++;
        }
      }
      long equal = equal(t, q, p, i, zeros);
      open += Long.bitCount(zeros ^ equal);
      for (; equal != 0; equal &= equal - 1) {
        t.settle(i, Long.numberOfTrailingZeros(equal), 0);
      }
    }
    return open;
  }

  private static int settlePairs(Tile t, DiagonalBatch q, DiagonalBatch p, NearForm pairs) {
    int open = 0;
    for (int i = 0; i < t.rows; i++) {
      for (int j = 0; j < t.columns; j++) {
        if (t.isOpen(i, j)) {
          double value = pairs.kl(q, t.row + i, p, t.column + j);
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

  /** Returns those of some columns, given as bits, that have row i's parameters; equal columns are compared with it once. */
  private long equal(Tile t, DiagonalBatch q, DiagonalBatch p, int i, long columns) {
    long equal = 0;
    for (long bits = columns & (-1L >>> -t.columns); bits != 0; ) {
      int j = Long.numberOfTrailingZeros(bits);
      if (same[j] == 0) {
        for (int k = 0; k < t.columns; k++) {
          same[j] |= p.isEqual(t.column + j, p, t.column + k) ? 1L << k : 0;
        }
      }
      if (q.isEqual(t.row + i, p, t.column + j)) {
        equal |= bits & same[j];
      }
      bits &= ~same[j];
    }
    return equal;
  }
}
