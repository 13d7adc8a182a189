package dev.kullback.internal.vector;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.Window;
import org.jspecify.annotations.Nullable;

/** The tile of a block that {@link VectorKernel} is at, with its accumulators and what is known of its entries. Of one thread. */
final class Tile {
  static final int ROWS = 16;

  static final int CAPACITY = ROWS * Batch.WIDEST_PANEL;

  // Where the block goes, as a Window has it: through one more reference the matrix took 1.05 times
  // as long at D = 3 (Zen 3).

  float @Nullable [] out32;
  double @Nullable [] out64;
  private int base;
  int stride;

  /** Corner and valid extent of the tile in the matrix. */
  int row;

  int column;
  int rows;
  int columns;

  /** Accumulators of a micro-kernel, and behind them what its fence takes. */
  final float[] acc32 = new float[CAPACITY + VectorWidth.FLOAT.length()];

  final double[] acc64 = new double[CAPACITY + VectorWidth.DOUBLE.length()];

  /** The tile's S by the fast kernel, row-major, and by the one that refines it. */
  final double[] sum = new double[CAPACITY];

  final double[] refined = new double[CAPACITY];

  /** A block's rows, packed; grown on demand. */
  float[] rows32 = {};

  double[] rows64 = {};

  /** Per row, one bit a column: the entries that the last judgement found within the contract, and possibly near. */
  final long[] certain = new long[ROWS];

  final long[] close = new long[ROWS];

  /** Per row, one bit a column: the entries that float settles by shorter chunks. */
  final long[] foreseen = new long[ROWS];

  /** Per row, one bit a column: the entries still to be recomputed. */
  final long[] open = new long[ROWS];

  /** Whether the last tile was near throughout, so that the next one probably is. */
  boolean near;

  /** Begins a block. */
  void begin(Window out) {
    out32 = out.out32;
    out64 = out.out64;
    base = out.base;
    stride = out.stride;
  }

  /** After a call. */
  void clear() {
    near = false;
    out32 = null;
    out64 = null;
  }

  int at(int i, int j) {
    return base + i * stride + j;
  }

  void put(int i, int j, double kl) {
    if (out32 != null) {
      out32[at(i, j)] = (float) kl;
    } else if (out64 != null) {
      out64[at(i, j)] = kl;
    }
  }
}
