package dev.kullback.internal.kernel;

import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Where a kernel stores a block of the matrix: {@code KL(q_i ‖ p_j)} goes to {@code out[base + i·stride + j]}, modulo 2³², of the array
 * that is not null. Of one thread; the memory of blocks that go elsewhere is kept for its next call.
 */
public final class BlockTarget {
  /**
   * Doubles of a cache line. Line by line instead of row by row makes nearestReverse over nearest 1.42 instead of 2.19, 4096 x 4096 x 32
   * (Zen 3).
   */
  private static final int LINE = 8;

  public float @Nullable [] out32;
  public double @Nullable [] out64;
  public int base;
  public int stride;

  private float[] block32 = {};
  private double[] block64 = {};

  /** Where a block is transposed to. */
  private double[] spare = {};

  void set(float @Nullable [] floats, double @Nullable [] doubles, int base, int stride) {
    out32 = floats;
    out64 = doubles;
    this.base = base;
    this.stride = stride;
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
    out32 = wide ? null : block32;
    out64 = wide ? block64 : null;
    aim(row0, column0, stride);
  }

  /** That memory, of doubles. */
  public double[] block() {
    return Objects.requireNonNull(out64);
  }

  /** Drops the caller's arrays. */
  public void clear() {
    out32 = null;
    out64 = null;
  }

  public int at(int i, int j) {
    return base + i * stride + j;
  }

  public void put(int i, int j, double kl) {
    if (out32 != null) {
      out32[at(i, j)] = (float) kl;
    } else if (out64 != null) {
      out64[at(i, j)] = kl;
    }
  }

  /** Stores 0 at columns [column0, column1) of row i. */
  public void zero(int i, int column0, int column1) {
    if (out32 != null) {
      Arrays.fill(out32, at(i, column0), at(i, column1), 0);
    } else if (out64 != null) {
      Arrays.fill(out64, at(i, column0), at(i, column1), 0);
    }
  }

  /** Transposes what {@link #block} holds, row-major {@code [rows, columns]}. */
  public void transposeBlock(int rows, int columns) {
    double[] from = block();
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
