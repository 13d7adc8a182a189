package dev.kullback.internal.kernel;

import dev.kullback.internal.work.Poll;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/** The destination of a call's results: an array, or a segment, of float or double. Set anew for each call, so that none allocates. */
public final class Results {
  /** Tells a confined segment from one that helpers can write to. */
  private static final Thread HELPER = Thread.ofPlatform().unstarted(() -> {});

  private static final float[] NO_FLOATS = {};
  private static final double[] NO_DOUBLES = {};

  private float[] floats = NO_FLOATS;
  private double[] doubles = NO_DOUBLES;
  private MemorySegment segment = MemorySegment.NULL;

  /** Whether elements are doubles. */
  private boolean wide;

  /** Whether they go to the segment, else to the array of their width. */
  private boolean toSegment;

  public void set(float[] out) {
    clear();
    floats = out;
    wide = false;
    toSegment = false;
  }

  public void set(double[] out) {
    clear();
    doubles = out;
    wide = true;
    toSegment = false;
  }

  /** Takes a segment of doubles, if it is wide, or of floats. */
  public void set(MemorySegment out, boolean wide) {
    clear();
    segment = out;
    this.wide = wide;
    toSegment = true;
  }

  /** Drops the caller's memory. */
  public void clear() {
    floats = NO_FLOATS;
    doubles = NO_DOUBLES;
    segment = MemorySegment.NULL;
  }

  public void put(int i, double kl) {
    if (toSegment && wide) {
      segment.set(ValueLayout.JAVA_DOUBLE_UNALIGNED, 8L * i, kl);
    } else if (toSegment) {
      segment.set(ValueLayout.JAVA_FLOAT_UNALIGNED, 4L * i, (float) kl);
    } else if (wide) {
      doubles[i] = kl;
    } else {
      floats[i] = (float) kl;
    }
  }

  /** Stores n elements of an array, from {@code first} on, at an index and behind it. */
  public void write(long at, int n, double[] from, int first) {
    if (wide && toSegment) {
      MemorySegment.copy(from, first, segment, ValueLayout.JAVA_DOUBLE_UNALIGNED, 8L * at, n);
    } else if (wide) {
      System.arraycopy(from, first, doubles, (int) at, n);
    } else if (toSegment) {
      for (int k = 0; k < n; k++) {
        segment.set(ValueLayout.JAVA_FLOAT_UNALIGNED, 4L * (at + k), (float) from[first + k]);
      }
    } else {
      float[] to = floats;
      for (int k = 0; k < n; k++) {
        to[(int) at + k] = (float) from[first + k];
      }
    }
  }

  /** Stores 0 n times. */
  public void zero(long n) {
    if (toSegment) {
      segment.asSlice(0, n * width()).fill((byte) 0);
      settle();
    } else if (wide) {
      Arrays.fill(doubles, 0, (int) n, 0);
    } else {
      Arrays.fill(floats, 0, (int) n, 0);
    }
  }

  /** Whether threads other than the caller's may write there. */
  public boolean isShared() {
    return !toSegment || segment.isAccessibleBy(HELPER);
  }

  /** Makes a fault of storing to a mapped file show now, as an {@link InternalError}, and not after the call has ended. */
  public void settle() {
    if (toSegment && segment.isMapped()) {
      Poll.now();
    }
  }

  /** Returns what to throw for a fault while results were stored: if they go to a mapped file, an exception that says so. */
  public RuntimeException failed(InternalError fault) {
    if (!toSegment || !segment.isMapped()) {
      throw fault;
    }
    return new UncheckedIOException(
        "out is mapped to a file that does not hold it, and has some of the results at most: its disk is full, or it was cut off",
        new IOException(fault));
  }

  /** All of it, as a segment. */
  public MemorySegment memory() {
    return toSegment
        ? segment
        : wide ? MemorySegment.ofArray(doubles) : MemorySegment.ofArray(floats);
  }

  /** Bytes of an element. */
  public int width() {
    return wide ? Double.BYTES : Float.BYTES;
  }

  /**
   * Points a target at a block of the row-major matrix: at the array itself, or at a piece of memory that {@link #close} copies to the
   * segment. The stride is the matrix's number of columns.
   */
  public void open(
      BlockTarget target, int row0, int column0, int stride, int mostRows, int mostColumns) {
    if (toSegment) {
      target.useBlock(wide, mostRows * mostColumns, row0, column0, mostColumns);
    } else {
      target.set(wide, floats, doubles, stride);
    }
  }

  /** Ends what {@link #open} began. */
  public void close(BlockTarget target, int row0, int row1, int column0, int column1, int stride) {
    int width = column1 - column0;
    for (int i = row0; i < row1 && toSegment; i++) {
      int from = target.at(i, column0);
      long at = ((long) i * stride + column0) * width();
      if (wide) {
        MemorySegment.copy(
            target.out64, from, segment, ValueLayout.JAVA_DOUBLE_UNALIGNED, at, width);
      } else {
        MemorySegment.copy(
            target.out32, from, segment, ValueLayout.JAVA_FLOAT_UNALIGNED, at, width);
      }
    }
    settle();
  }
}
