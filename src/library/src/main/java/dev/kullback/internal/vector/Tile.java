package dev.kullback.internal.vector;

import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import java.util.Arrays;
import java.util.Objects;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;
import org.jspecify.annotations.Nullable;

/** Tile of the matrix: a block's rows by a panel of columns. It holds the entries while rung after rung settles some. One thread's. */
final class Tile {
  /**
   * Rows of a whole block: 16 at a time took 1.05 of the time at D = 64 and 1.02 at D = 256, with 1024 columns, and up to 1.4 where rungs
   * are mixed; 128 took 1.00 to 1.05 (Zen 3, AVX2).
   */
  static final int ROWS = BlockKernel.MOST_ROWS;

  static final int CAPACITY = ROWS * FloatPanels.NR;

  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final VectorSpecies<Float> HALF = Species.HALF_FLOAT;
  private static final VectorSpecies<Long> L = Species.LONG;
  private static final DoubleVector ONE = DoubleVector.broadcast(S, 1);
  private static final LongVector ZERO = LongVector.zero(L);

  /** Value of an open entry: a NaN whose sign bit is set. */
  private static final double OPEN = Double.longBitsToDouble(-1);

  private static final int MR = FloatPanels.MR;

  private @Nullable BlockTarget out;

  /** Corner and extent of the tile in the matrix; the rows are the block's. */
  int row;

  int column;
  int rows;
  int columns;

  /** Columns of a panel; fewer than these are valid where the batch ends. */
  int width;

  /** Whether the tile has entries of the diagonal of a batch against itself, which are 0. */
  boolean isDiagonal;

  /** KL, row-major {@code [rows, width]}, {@link #OPEN} where no rung has settled it; valid from {@link #open} on. */
  private final double[] kl = new double[CAPACITY];

  /** Open entries of each row panel, as {@link #settle(TileSums)} left them. */
  private final int[] open = new int[ROWS / MR];

  /** Begins a block. */
  void begin(BlockTarget target, int firstRow, int endRow, int panelWidth) {
    out = target;
    row = firstRow;
    rows = endRow - firstRow;
    width = panelWidth;
  }

  /** Begins a panel of columns, which end at {@code endColumn} or with the panel. */
  void begin(int firstColumn, int endColumn, boolean isSquare) {
    column = firstColumn;
    columns = Math.min(width, endColumn - firstColumn);
    isDiagonal = isSquare && row < column + columns && column < row + rows;
  }

  /** Drops the caller's arrays. */
  void end() {
    out = null;
  }

  BlockTarget out() {
    return Objects.requireNonNull(out);
  }

  /** Opens all entries but those of the diagonal; how many there are. */
  int open() {
    Arrays.fill(kl, 0, rows * width, OPEN);
    int count = rows * columns;
    for (int i = 0; i < rows; i++) {
      Arrays.fill(kl, i * width + columns, (i + 1) * width, 0);
      int j = row + i - column;
      if (isDiagonal && j >= 0 && j < columns) {
        settle(i, j, 0);
        count--;
      }
    }
    return count;
  }

  boolean isOpen(int i, int j) {
    return Double.isNaN(kl[i * width + j]);
  }

  boolean hasOpen(int i) {
    for (int j = 0; j < columns; j++) {
      if (isOpen(i, j)) {
        return true;
      }
    }
    return false;
  }

  /** Open entries of the row panel that begins at row i, as {@link #settle(TileSums)} left them. */
  int open(int i) {
    return open[i / MR];
  }

  void settle(int i, int j, double value) {
    kl[i * width + j] = value;
  }

  /** Settles the open entries whose error bound is within tolerance; how many stay open. */
  int settle(TileSums<?> sums) {
    int left = 0;
    for (int i = 0; i < rows; i += MR) {
      open[i / MR] = settle(sums, i, Math.min(i + MR, rows));
      left += open[i / MR];
    }
    return left;
  }

  /** Settles those of rows [from, to), by the very operations of {@link Epilogue#store}. */
  int settle(TileSums<?> sums, int from, int to) {
    double[] offsetQ = sums.offsetQ;
    double[] offsetP = sums.offsetP;
    double[] noiseQ = sums.noiseQ;
    double[] noiseP = sums.noiseP;
    double margin = sums.margin;
    DoubleVector factors = DoubleVector.broadcast(S, sums.factor);
    int nr = sums.width;
    LongVector open = LongVector.zero(L);
    for (int j = 0; j < columns; j += S.length()) {
      DoubleVector offsets = DoubleVector.fromArray(S, offsetP, column + j);
      DoubleVector noises = DoubleVector.fromArray(S, noiseP, column + j);
      double[] r = sums.r[j / nr];
      int k = from * nr + j % nr;
      int at = from * width + j;
      for (int i = from; i < to; i++, k += nr, at += width) {
        DoubleVector now =
            DoubleVector.fromArray(S, r, k).fma(factors, offsets.add(offsetQ[row + i]));
        LongVector rest =
            (LongVector) now.mul(margin).sub(noises.add(noiseQ[row + i])).reinterpretShape(L, 0);
        LongVector isOpen =
            ZERO.sub(rest.or(rest.add(Epilogue.UP_TO_INFINITY)).lanewise(VectorOperators.LSHR, 63));
        LongVector before = (LongVector) DoubleVector.fromArray(S, kl, at).reinterpretShape(L, 0);
        LongVector wasOpen = ZERO.sub(before.lanewise(VectorOperators.LSHR, 63));
        LongVector bits = ((LongVector) now.reinterpretShape(L, 0)).or(isOpen);
        ((DoubleVector) before.bitwiseBlend(bits, wasOpen).reinterpretShape(S, 0))
            .intoArray(kl, at);
        open = open.sub(isOpen.and(wasOpen));
      }
    }
    return (int) open.reduceLanes(VectorOperators.ADD);
  }

  void store() {
    BlockTarget target = out();
    int vectors = columns / S.length() * S.length();
    for (int j = 0; j < vectors; j += S.length()) {
      int to = target.at(row, column + j);
      for (int i = 0; i < rows; i++, to += target.stride) {
        DoubleVector values = DoubleVector.fromArray(S, kl, i * width + j);
        if (target.wide) {
          values.intoArray(target.out64, to);
        } else {
          ((FloatVector) values.convertShape(VectorOperators.D2F, HALF, 0))
              .intoArray(target.out32, to);
        }
      }
    }
    for (int j = vectors; j < columns; j++) { // scalar tail
      for (int i = 0; i < rows; i++) {
        target.put(row + i, column + j, kl[i * width + j]);
      }
    }
  }

  /** Makes Hellinger's distances of the entries that are settled, by the operations of {@link Exponential#hellinger}. */
  void toHellinger() {
    DoubleVector most = DoubleVector.broadcast(S, Exponential.MOST);
    DoubleVector round = DoubleVector.broadcast(S, Exponential.ROUND);
    double[] coefficients = Exponential.INVERSE_FACTORIALS;
    for (int at = 0; at < rows * width; at += S.length()) {
      DoubleVector x = DoubleVector.fromArray(S, kl, at).min(most);
      DoubleVector rounded = x.fma(DoubleVector.broadcast(S, Exponential.LOG2_E), round);
      DoubleVector n = rounded.sub(round);
      DoubleVector r =
          n.fma(
              DoubleVector.broadcast(S, Logarithm.LN2_LOW),
              n.fma(DoubleVector.broadcast(S, Logarithm.LN2_HIGH), x.neg()));
      DoubleVector p = DoubleVector.broadcast(S, coefficients[coefficients.length - 1]);
      for (int k = coefficients.length - 2; k >= 0; k--) {
        p = p.fma(r, DoubleVector.broadcast(S, coefficients[k]));
      }
      p = p.mul(r).fma(r, r);
      DoubleVector power =
          (DoubleVector)
              LongVector.broadcast(L, 1023)
                  .sub((LongVector) rounded.reinterpretShape(L, 0))
                  .lanewise(VectorOperators.LSHL, 52)
                  .reinterpretShape(S, 0);
      power.neg().fma(p, ONE.sub(power)).sqrt().intoArray(kl, at);
    }
  }

  /** Stores the entries of the diagonal. */
  void storeDiagonal() {
    int end = isDiagonal ? Math.min(row + rows, column + columns) : 0;
    for (int i = Math.max(row, column); i < end; i++) {
      out().put(i, i, 0);
    }
  }
}
