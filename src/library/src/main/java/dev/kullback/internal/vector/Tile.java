package dev.kullback.internal.vector;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.kernel.Window;

/** The tile of a block that {@link VectorKernel} is at, with its accumulators and what is known of its entries. Of one thread. */
final class Tile {
  static final int ROWS = 16;

  private static final int CAPACITY = ROWS * Batch.WIDEST_PANEL;

  private static final Window NOWHERE = new Window();

  /** Where the block goes. */
  Window out = NOWHERE;

  /** Corner and valid extent of the tile in the matrix. */
  int row;

  int column;
  int rows;
  int columns;

  /** Accumulators of a micro-kernel. */
  final float[] acc32 = new float[CAPACITY];

  final double[] acc64 = new double[CAPACITY];

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

  /** After a call. */
  void clear() {
    near = false;
    out = NOWHERE;
  }

  void put(int i, int j, double kl) {
    out.put(i, j, kl);
  }
}
