package dev.kullback.internal.vector.scan;

import dev.kullback.internal.kernel.PanelScan;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * Computes the sums in plain Java. Products are rounded, as there may be no fma where there are no vectors: sums have other last digits than
 * those of {@code PanelScanKernel}, within the same bound. Holds the working memory of one thread.
 */
public final class ScalarPanelScan implements PanelScan {
  private static final ValueLayout.OfFloat FLOAT =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  /** Dimensions between two looks whether a panel can be left. */
  private static final int CHUNK = 16;

  private final float[] chunk = new float[2 * LANES * CHUNK];
  private final float[] acc = new float[LANES];

  @Override
  public int sums(
      float[] query,
      boolean reverse,
      int d,
      MemorySegment panels,
      long at,
      int count,
      float[] most,
      float[] sum,
      int[] kept) {
    int n = 0;
    for (int c = 0; c < count; c++) {
      long panel = at + 2L * Float.BYTES * LANES * d * c;
      if (isKept(query, reverse, d, panels, panel, most, LANES * c)) {
        kept[n++] = c;
      }
      System.arraycopy(acc, 0, sum, LANES * c, LANES);
    }
    return n;
  }

  private boolean isKept(
      float[] query,
      boolean reverse,
      int d,
      MemorySegment panels,
      long at,
      float[] most,
      int first) {
    Arrays.fill(acc, 0);
    for (int h = 0; h < d; h += CHUNK) {
      int n = Math.min(CHUNK, d - h);
      MemorySegment.copy(panels, FLOAT, at + 2L * Float.BYTES * LANES * h, chunk, 0, 2 * LANES * n);
      for (int k = 0; k < n; k++) {
        float x = query[2 * (h + k)];
        float s = query[2 * (h + k) + 1];
        int m = 2 * LANES * k;
        if (reverse) {
          for (int l = 0; l < LANES; l++) {
            float y = x - chunk[m + l];
            float p = chunk[m + LANES + l];
            acc[l] += (y * y + 1 / Math.max(p, Float.MIN_NORMAL)) * s;
          }
        } else {
          for (int l = 0; l < LANES; l++) {
            float y = x - chunk[m + l];
            acc[l] += (y * y + s) * chunk[m + LANES + l];
          }
        }
      }
      if (areBeyond(acc, 0, most, first, LANES)) {
        return false;
      }
    }
    return true;
  }

  /** Whether each of {@code lanes} sums from {@code at} on exceeds its most. */
  static boolean areBeyond(float[] sum, int at, float[] most, int first, int lanes) {
    for (int l = 0; l < lanes; l++) {
      if (!(sum[at + l] > most[first + l])) {
        return false;
      }
    }
    return true;
  }
}
