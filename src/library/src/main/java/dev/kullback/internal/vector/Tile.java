package dev.kullback.internal.vector;

import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The tile that {@link VectorKernel} is at, a block's rows by a panel of columns, with its accumulators and what is known of its entries.
 * Of one thread.
 */
final class Tile {
  /**
   * Those of a whole block: 16 at a time took 1.05 of the time at D = 64 and 1.02 at D = 256, with 1024 columns, and up to 1.4 where forms
   * are mixed; 128 took 1.00 to 1.05 (Zen 3, AVX2).
   */
  private static final int ROWS = BlockKernel.MOST_ROWS;

  /** Entries of a tile. What kernels accumulate in is a vector longer: for their fences. */
  static final int CAPACITY = ROWS * FloatPanels.NR;

  private static final int FENCED32 = CAPACITY + VectorWidth.BITS / Float.SIZE;
  private static final int FENCED64 = CAPACITY + VectorWidth.BITS / Double.SIZE;

  /** Panels of the double kernel in one of the float kernel. */
  private static final int PANELS64 = FloatPanels.NR / DoublePanels.NR;

  /** S + D that every form settles. */
  private static final double CERTAIN = 0x1p100;

  /** The forms of an entry, in the order in which they are asked for it. */
  enum Rung {
    FLOAT,
    DOUBLE,
    NEAR
  }

  /** Where the block goes. */
  private @Nullable BlockTarget out;

  /** Corner and valid extent of the tile in the matrix. */
  int row;

  int column;
  int rows;
  int columns;

  /** Columns of a panel, in which {@link #sum} and {@link #kl} are laid out. */
  int width;

  /** Accumulators of a micro-kernel. */
  final float[] acc32 = new float[FENCED32];

  final double[] acc64 = new double[FENCED64];

  /** The tile's S + D by the fast kernel, row-major; later twice its KL by the near form. */
  final double[] sum = new double[FENCED64];

  /** By the double kernel where it refines, panel by panel. */
  final double[][] sum64 = new double[PANELS64][FENCED64];

  /** The tile's KL, row-major, as far as it is settled: NaN with a sign where it is open. */
  final double[] kl = new double[CAPACITY];

  /** The rows that have an open entry. */
  final boolean[] open = new boolean[ROWS];

  /** How many entries of a row panel float left open. */
  final int[] openIn = new int[ROWS / FloatPanels.MR];

  /** Per row, one bit a column: the entries whose near form is 0. */
  final long[] zero = new long[ROWS];

  /** Per column of the panel that begins at {@link #column}, one bit for each whose parameters equal its; 0 where it is not known. */
  final long[] same = new long[FloatPanels.NR];

  /** A block's rows, packed; grown on demand. */
  float[] rows32 = {};

  double[] rows64 = {};

  /** Whether {@link #rows64} are the block's. */
  boolean arePacked64;

  /** The first form that settled an entry of the last tile, and whether it settled all, so that it probably does in the next. */
  Rung likely = Rung.FLOAT;

  boolean isUniform = true;

  /** Begins a block. */
  void begin(BlockTarget window, int firstRow, int endRow, int panelWidth) {
    out = window;
    row = firstRow;
    rows = endRow - firstRow;
    width = panelWidth;
    arePacked64 = false;
  }

  /** After a call. */
  void clear() {
    out = null;
    likely = Rung.FLOAT;
    isUniform = true;
  }

  /** Begins a panel of columns. */
  void begin(int firstColumn, int count) {
    column = firstColumn;
    columns = count;
    Arrays.fill(same, 0);
  }

  BlockTarget out() {
    return Objects.requireNonNull(out);
  }

  boolean isOpen(int i, int j) {
    return Double.isNaN(kl[i * width + j]);
  }

  void settle(int i, int j, double value) {
    kl[i * width + j] = value;
  }

  /** Keeps what lies beyond the tile's columns, and a diagonal of zeros, from passing for open. */
  void exclude(boolean diagonal) {
    for (int i = 0; i < rows; i++) {
      for (int j = columns; j < width; j++) {
        sum[i * width + j] = CERTAIN;
      }
      int j = row + i - column;
      if (diagonal && j >= 0 && j < columns) {
        sum[i * width + j] = CERTAIN;
      }
    }
  }

  /** The same of the diagonal, before {@link #acc32} is promoted. */
  void exclude32() {
    for (int i = Math.max(row, column); i < Math.min(row + rows, column + columns); i++) {
      acc32[(i - row) * width + i - column] = (float) CERTAIN;
    }
  }

  /** Stores the entries of the diagonal, which are 0. */
  void storeDiagonal() {
    for (int i = Math.max(row, column); i < Math.min(row + rows, column + columns); i++) {
      out().put(i, i, 0);
    }
  }

  /** Settles them. */
  void settleDiagonal() {
    for (int i = Math.max(row, column); i < Math.min(row + rows, column + columns); i++) {
      settle(i - row, i - column, 0);
    }
  }
}
