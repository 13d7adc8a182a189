package dev.kullback.internal.numerics;

/**
 * Tells whether many numbers lie between two bounds, by minima and maxima: they carry a NaN along, and C2 makes vectors of the loop. 4096
 * floats take 0.17 ns each and 128 take 0.3 to 0.4, as with the Vector API (0.18, 0.29), which takes 5 µs an operation before C2 has
 * compiled it. By comparisons it is 0.62, by the bits as integers 0.23 to 0.32, which made a batch of 100 x 256 1.12 to 1.39 times as long
 * in the making instead of 1.04 to 1.12 (Zen 3, AVX2). With AVX-512 it is 0.24, which {@link RangeCheck} lets a batch replace (Zen 4). The
 * build derives {@code DoubleRange} from this text.
 */
public final class FloatRange {
  private FloatRange() {}

  /** Whether {@code least ≤ values[i] ≤ most} for i in [from, to); false for NaN. */
  public static boolean contains(double least, double most, float[] values, int from, int to) {
    float lowest = Float.POSITIVE_INFINITY;
    float highest = Float.NEGATIVE_INFINITY;
    for (int i = from; i < to; i++) {
      lowest = Math.min(lowest, values[i]);
      highest = Math.max(highest, values[i]);
    }
    return lowest >= least && highest <= most;
  }
}
