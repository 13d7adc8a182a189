package dev.kullback.internal.vector;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Sums R of a tile in one precision, and the operands that turn them into divergences {@code factor·R + offsetQ[i] + offsetP[j]} and bound
 * the error, see {@link Packed}: an entry is settled where {@code divergence·margin ≥ noiseQ[i] + noiseP[j]}. One thread's.
 */
abstract class TileSums<A> {
  /** Columns of a panel in this precision. */
  final int width;

  /**
   * R, by panel of the tile's columns, row-major {@code [rows, width]}; a vector longer than a tile, for the fences of micro-kernels. Valid
   * for the rows that were computed last, and promoted.
   */
  final double[][] r;

  private @Nullable A valuesQ;
  private @Nullable A valuesP;

  static final double[] NONE = {};

  // Valid during a block; by row of q or p, padded to whole panels.
  double[] offsetQ = NONE;
  double[] offsetP = NONE;
  double[] noiseQ = NONE;
  double[] noiseP = NONE;

  /** Tolerance − unit; valid during a block. */
  double margin;

  final double factor;

  TileSums(int panels, int width, double factor) {
    this.width = width;
    this.factor = factor;
    r = new double[panels][Tile.CAPACITY + VectorWidth.BITS / Double.SIZE];
  }

  void begin(Packed<A> q, Packed<A> p, double tolerance) {
    valuesQ = q.values();
    valuesP = p.values();
    offsetQ = q.offsetQ();
    offsetP = p.offsetP();
    noiseQ = q.noiseQ();
    noiseP = p.noiseP();
    margin = tolerance - q.unit();
  }

  /** Begins a block of a divergence other than KL, whose offsets and noises stand apart from its panels. */
  void begin(A q, A p, MeasureOperands.Rows rowsQ, MeasureOperands.Rows rowsP, double newMargin) {
    valuesQ = q;
    valuesP = p;
    offsetQ = rowsQ.offset();
    offsetP = rowsP.offset();
    noiseQ = rowsQ.noise();
    noiseP = rowsP.noise();
    margin = newMargin;
  }

  /** Drops the batches. */
  void end() {
    valuesQ = null;
    valuesP = null;
    offsetQ = NONE;
    offsetP = NONE;
    noiseQ = NONE;
    noiseP = NONE;
  }

  boolean isBegun() {
    return valuesQ != null;
  }

  A valuesQ() {
    return Objects.requireNonNull(valuesQ);
  }

  A valuesP() {
    return Objects.requireNonNull(valuesP);
  }
}
