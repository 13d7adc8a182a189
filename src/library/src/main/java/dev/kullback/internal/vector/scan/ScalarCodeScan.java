package dev.kullback.internal.vector.scan;

import dev.kullback.internal.kernel.CodeScan;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Computes the sums of codes in plain Java, rounded as by {@link ScalarPanelScan}. Holds the working memory of one thread. */
public final class ScalarCodeScan implements CodeScan {
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  /** Words between two looks whether a panel can be left. */
  private static final int CHUNK = 8;

  private final int[] chunk = new int[LANES * CHUNK];
  private final int[] leading = new int[LANES * LEADING];

  @Override
  public int sums(
      float[] terms,
      int words,
      Limit limit,
      MemorySegment panels,
      long at,
      int count,
      float[] most,
      float[] sum,
      int[] kept) {
    int n = 0;
    for (int c = 0; c < count; c++) {
      long panel = at + c * CodeScan.panelBytes(words);
      MemorySegment.copy(panels, INT, panel, leading, 0, leading.length);
      for (int j = 0; j < LANES; j++) {
        float r = Float.intBitsToFloat(leading[j]);
        float l = Float.intBitsToFloat(leading[LANES + j]);
        double root = Math.sqrt(Math.max(0, limit.base + l));
        float x = (float) root + r;
        float y = x * x * limit.factor + limit.more;
        most[LANES * c + j] = Float.isNaN(y) ? Float.POSITIVE_INFINITY : y;
      }
      long codes = panel + (long) Integer.BYTES * leading.length;
      if (isKept(terms, words, panels, codes, most, sum, LANES * c)) {
        kept[n++] = c;
      }
    }
    return n;
  }

  private boolean isKept(
      float[] terms,
      int words,
      MemorySegment panels,
      long at,
      float[] most,
      float[] sum,
      int first) {
    Arrays.fill(sum, first, first + LANES, 0);
    for (int from = 0; from < words; from += CHUNK) {
      int n = Math.min(CHUNK, words - from);
      long codes = at + (long) Integer.BYTES * LANES * from;
      MemorySegment.copy(panels, INT, codes, chunk, 0, LANES * n);
      for (int w = 0; w < n; w++) {
        int k = 2 * TERMS * (from + w);
        for (int j = 0; j < LANES; j++) {
          int word = chunk[LANES * w + j];
          float y0 = terms[k] + terms[k + 1] * CodeScan.firstMean(word);
          float y1 = terms[k + 3] + terms[k + 4] * CodeScan.secondMean(word);
          sum[first + j] +=
              (y0 * y0 + terms[k + 2]) * CodeScan.firstPrecision(word)
                  + (y1 * y1 + terms[k + 5]) * CodeScan.secondPrecision(word);
        }
      }
      if (ScalarPanelScan.areBeyond(sum, first, most, first, LANES)) {
        return false;
      }
    }
    return true;
  }
}
