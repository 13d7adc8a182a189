package dev.kullback.internal.vector;

/** Sums of a tile by vectors; the build makes a class of each formula and precision. */
abstract class TileSums<A> extends BlockSums<A> {
  /** R of an entry that no error bound leaves open, put where the diagonal's would be. */
  static final float CERTAIN = 0x1p100f;

  /** No tile's first column. */
  static final int NONE = -1;

  /** Where sums add up in this precision. */
  final A acc;

  /** Columns of a panel in this precision. */
  final int width;

  /**
   * R, by panel of the tile's columns, row-major {@code [rows, width]}; a vector longer than a tile, for the fences of micro-kernels. Valid
   * for the rows that were computed last, and promoted.
   */
  final double[][] r;

  /** Makes sums that add up in {@code acc}, laid out as {@code r[k]}: R before it is promoted, or what was summed since the last promotion. */
  TileSums(A acc, int panels, int width, double factor) {
    super(factor);
    this.acc = acc;
    this.width = width;
    r = new double[panels][Tile.CAPACITY + VectorWidth.BITS / Double.SIZE];
  }

  /** Starts a block, whose first row is a multiple of MR. */
  abstract void startBlock(TileOperands operands);

  /** Computes rows [from, to) of the tile, unless it was computed whole; {@code from} is a multiple of MR. */
  abstract void compute(Tile t, int from, int to);

  /** Whether sums are promoted as they are computed, and none is left in {@link #acc}. */
  abstract boolean isPromoted();

  /**
   * Calls every micro-kernel, on one dimension: C2 compiles a method after some thousand calls, whatever it does in them, and until
   * then each vector operation takes 0.1 to 5 µs and has C2 compile what stands in for it. Chernoff's do not: Rényi's divergence was ready
   * after 2.6 s instead of 2.4 with it.
   */
  void exercise(int calls) {}

  /** Promotes a tile that was computed whole, if that has left it in {@link #acc}. */
  abstract void promote(Tile t);
}
