package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Tile of the matrix: a block's rows by a panel of columns. It holds the entries while rung after rung settles some. One thread's. */
final class Tile {
  /**
   * Rows of a whole block: 16 at a time took 1.05 of the time at D = 64 and 1.02 at D = 256, with 1024 columns, and up to 1.4 where rungs
   * are mixed; 128 took 1.00 to 1.05 (Zen 3, AVX2).
   */
  static final int ROWS = BlockKernel.MOST_ROWS;

  static final int CAPACITY = ROWS * FloatPanels.NR;

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

  /** Columns, as bits, whose parameters equal a column's; 0 where that is not known. */
  private final long[] same = new long[FloatPanels.NR];

  void startBlock(BlockTarget target, int firstRow, int endRow, int panelWidth) {
    out = target;
    row = firstRow;
    rows = endRow - firstRow;
    width = panelWidth;
  }

  /** Starts a panel of columns, which end at {@code endColumn} or with the panel. */
  void startPanel(int firstColumn, int endColumn, boolean isSquare) {
    column = firstColumn;
    columns = Math.min(width, endColumn - firstColumn);
    isDiagonal = isSquare && row < column + columns && column < row + rows;
  }

  /** Drops the caller's arrays. */
  void dropTarget() {
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

  /** Settles those of rows [from, to). */
  int settle(TileSums<?> sums, int from, int to) {
    return Epilogue.settle(this, kl, sums, from, to);
  }

  /** Settles the open entries whose value of another form is at least {@code least}, and finite; how many stay open. */
  int settle(double[] values, double least) {
    return Epilogue.settle(this, kl, values, least);
  }

  /** Settles the open entries of equal parameters; how many stay open. */
  int settleEqual(DiagonalBatch q, DiagonalBatch p) {
    forgetEqual();
    int left = 0;
    for (int i = 0; i < rows; i++) {
      long bits = 0;
      for (int j = 0; j < columns; j++) {
        bits |= isOpen(i, j) ? 1L << j : 0;
      }
      long equal = equal(q, p, i, bits);
      left += Long.bitCount(bits & ~equal);
      for (; equal != 0; equal &= equal - 1) {
        settle(i, Long.numberOfTrailingZeros(equal), 0);
      }
    }
    return left;
  }

  /** Starts anew for {@link #equal}. */
  void forgetEqual() {
    Arrays.fill(same, 0);
  }

  /** Returns which of some columns, given as bits, have row i's parameters; of columns that equal each other one is compared with it. */
  long equal(DiagonalBatch q, DiagonalBatch p, int i, long some) {
    long equal = 0;
    for (long bits = some; bits != 0; ) {
      int j = Long.numberOfTrailingZeros(bits);
      bits &= bits - 1;
      if (q.isEqual(row + i, p, column + j)) {
        equal |= 1L << j;
        if (bits != 0) {
          equal |= bits & same(p, j);
          bits &= ~same[j];
        }
      }
    }
    return equal;
  }

  private long same(DiagonalBatch p, int j) {
    if (same[j] == 0) {
      for (int k = 0; k < columns; k++) {
        same[j] |= p.isEqual(column + j, p, column + k) ? 1L << k : 0;
      }
    }
    return same[j];
  }

  void store() {
    Epilogue.store(this, kl);
  }

  /** Takes the last step of the entries that are settled. */
  void finish(Formula.LastStep step) {
    switch (step) {
      case ROOT -> Elementary.toRoots(kl, rows * width);
      case HELLINGER -> Elementary.toHellinger(kl, rows * width);
      case NONE -> {}
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
