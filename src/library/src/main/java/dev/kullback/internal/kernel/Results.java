package dev.kullback.internal.kernel;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Where a call's results go: an array, or a segment, of float or double. Set anew for each call, so that none allocates. */
public final class Results {
  /** Tells a confined segment from one that helpers can write to. */
  private static final Thread HELPER = Thread.ofPlatform().unstarted(() -> {});

  // one of the three is not null during a call
  private float @Nullable [] floats;
  private double @Nullable [] doubles;
  private @Nullable MemorySegment segment;

  /** Whether elements are doubles. */
  private boolean wide;

  public void set(float[] out) {
    floats = out;
    wide = false;
  }

  public void set(double[] out) {
    doubles = out;
    wide = true;
  }

  /** A segment of doubles, if it is wide, or of floats. */
  public void set(MemorySegment out, boolean wide) {
    segment = out;
    this.wide = wide;
  }

  /** Drops the caller's memory. */
  public void clear() {
    floats = null;
    doubles = null;
    segment = null;
  }

  public void put(int i, double kl) {
    if (floats != null) {
      floats[i] = (float) kl;
    } else if (doubles != null) {
      doubles[i] = kl;
    } else if (wide) {
      segment().set(ValueLayout.JAVA_DOUBLE_UNALIGNED, 8L * i, kl);
    } else {
      segment().set(ValueLayout.JAVA_FLOAT_UNALIGNED, 4L * i, (float) kl);
    }
  }

  /** Stores 0 n times. */
  public void zero(long n) {
    if (floats != null) {
      Arrays.fill(floats, 0, (int) n, 0);
    } else if (doubles != null) {
      Arrays.fill(doubles, 0, (int) n, 0);
    } else {
      segment().asSlice(0, n * width()).fill((byte) 0);
    }
  }

  /** Whether threads other than the caller's may write there. */
  public boolean isShared() {
    return segment == null || segment.isAccessibleBy(HELPER);
  }

  /** All of it, as a segment. */
  public MemorySegment memory() {
    return floats != null
        ? MemorySegment.ofArray(floats)
        : doubles != null ? MemorySegment.ofArray(doubles) : segment();
  }

  /** Bytes of an element. */
  public int width() {
    return wide ? Double.BYTES : Float.BYTES;
  }

  /**
   * Opens a window on a block of the row-major matrix: on the array itself, or on a piece of memory that {@link #close} copies to the
   * segment.
   *
   * @param stride columns of the matrix
   * @param mostRows, mostColumns of a block
   */
  public void open(
      BlockTarget window, int row0, int column0, int stride, int mostRows, int mostColumns) {
    if (segment == null) {
      window.set(floats, doubles, 0, stride);
    } else {
      window.useBlock(wide, mostRows * mostColumns, row0, column0, mostColumns);
    }
  }

  /** Ends what {@link #open} began. */
  public void close(BlockTarget window, int row0, int row1, int column0, int column1, int stride) {
    MemorySegment to = segment;
    if (to == null) {
      return;
    }
    int width = column1 - column0;
    for (int i = row0; i < row1; i++) {
      int from = window.at(i, column0);
      long at = (long) i * stride + column0;
      if (wide) {
        MemorySegment.copy(
            Objects.requireNonNull(window.out64),
            from,
            to,
            ValueLayout.JAVA_DOUBLE_UNALIGNED,
            8 * at,
            width);
      } else {
        MemorySegment.copy(
            Objects.requireNonNull(window.out32),
            from,
            to,
            ValueLayout.JAVA_FLOAT_UNALIGNED,
            4 * at,
            width);
      }
    }
  }

  private MemorySegment segment() {
    return Objects.requireNonNull(segment);
  }
}
