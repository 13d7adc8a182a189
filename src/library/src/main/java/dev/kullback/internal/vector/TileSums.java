package dev.kullback.internal.vector;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Sums R of a tile in one precision, and the operands that turn them into KL and bound its error, see {@link Packed}: an entry is settled
 * where {@code KL·margin ≥ noiseQ[i] + noiseP[j]}. One thread's.
 */
abstract class TileSums<A> {
  /** Columns of a panel in this precision. */
  final int width;

  /**
   * R, by panel of the tile's columns, row-major {@code [rows, width]}; a vector longer than a tile, for the fences of micro-kernels. Valid
   * for the rows that were computed last, and promoted.
   */
  final double[][] r;

  private @Nullable Packed<A> q;
  private @Nullable Packed<A> p;

  /** Tolerance − unit; valid during a block. */
  double margin;

  TileSums(int panels, int width) {
    this.width = width;
    r = new double[panels][Tile.CAPACITY + VectorWidth.BITS / Double.SIZE];
  }

  void begin(Packed<A> q, Packed<A> p, double tolerance) {
    this.q = q;
    this.p = p;
    margin = tolerance - q.unit();
  }

  /** Drops the batches. */
  void end() {
    q = null;
    p = null;
  }

  boolean isBegun() {
    return q != null;
  }

  Packed<A> q() {
    return Objects.requireNonNull(q);
  }

  Packed<A> p() {
    return Objects.requireNonNull(p);
  }
}
