package dev.kullback.internal.kernel;

import java.util.Arrays;

/**
 * The destination of a block of the matrix: {@code KL(q_i ‖ p_j)} goes to {@code out[base + i·stride + j]}, modulo 2³², of {@link
 * #out64} if it is {@link #wide}, else of {@link #out32}. Used by one thread, which keeps its own memory for the next call.
 */
public final class BlockTarget {
  /** Doubles of a cache line: by lines instead of rows, a reverse search takes 1.42 of nearest's time, not 2.19, 4096 x 4096 x 32 (Zen 3). */
  private static final int LINE = 8;

  /** Doubles that last from call to call, those of a device's block. */
  private static final int MOST_KEPT = 1 << 20;

  private static final float[] NO_FLOATS = {};
  private static final double[] NO_DOUBLES = {};

  public boolean wide;
  public float[] out32 = NO_FLOATS;
  public double[] out64 = NO_DOUBLES;
  public int base;
  public int stride;

  private float[] block32 = NO_FLOATS;
  private double[] block64 = NO_DOUBLES;

  /** Receives the transposed block. */
  private double[] spare = NO_DOUBLES;

  void set(boolean wide, float[] floats, double[] doubles, int stride) {
    this.wide = wide;
    out32 = floats;
    out64 = doubles;
    this.stride = stride;
    base = 0;
  }

  /** Turns to a block that begins elsewhere, in the same memory. */
  public void aim(int row0, int column0, int stride) {
    this.stride = stride;
    base = -(row0 * stride + column0);
  }

  /** Uses memory of its own for a block that begins at [row0, column0], its rows {@code stride} elements apart. */
  public void useBlock(boolean wide, int capacity, int row0, int column0, int stride) {
    if (wide && block64.length < capacity) {
      block64 = new double[capacity];
    } else if (!wide && block32.length < capacity) {
      block32 = new float[capacity];
    }
    this.wide = wide;
    out32 = block32;
    out64 = block64;
    aim(row0, column0, stride);
  }

  /** The doubles of {@link #useBlock}. */
  public double[] block() {
    return block64;
  }

  /** Drops the caller's arrays, and memory for rows that are longer than those of any block. */
  public void clear() {
    if (block64.length > MOST_KEPT) {
      block64 = NO_DOUBLES;
    }
    out32 = NO_FLOATS;
    out64 = NO_DOUBLES;
  }

  public int at(int i, int j) {
    return base + i * stride + j;
  }

  public void put(int i, int j, double kl) {
    if (wide) {
      out64[at(i, j)] = kl;
    } else {
      out32[at(i, j)] = (float) kl;
    }
  }

  /** Stores 0 at columns [column0, column1) of row i. */
  public void zero(int i, int column0, int column1) {
    if (wide) {
      Arrays.fill(out64, at(i, column0), at(i, column1), 0);
    } else {
      Arrays.fill(out32, at(i, column0), at(i, column1), 0);
    }
  }

  /** Transposes {@link #block}, row-major {@code [rows, columns]}. */
  public void transposeBlock(int rows, int columns) {
    double[] from = block64;
    if (spare.length < from.length) {
      spare = new double[from.length];
    }
    for (int first = 0; first < rows; first += LINE) {
      int end = Math.min(first + LINE, rows);
      for (int j = 0; j < columns; j++) {
        for (int i = first; i < end; i++) {
          spare[j * rows + i] = from[i * columns + j];
        }
      }
    }
    block64 = spare;
    spare = from;
    out64 = block64;
  }
}
