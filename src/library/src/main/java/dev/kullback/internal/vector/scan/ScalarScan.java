package dev.kullback.internal.vector.scan;

import dev.kullback.internal.kernel.RowScan;
import dev.kullback.internal.numerics.Fma;
import dev.kullback.internal.numerics.Series;
import java.util.Arrays;

/**
 * Scans rows without vectors. It adds in the order of vectors of a number of lanes, to the same bits. Scans with vectors use it for
 * their tails. Where there is no fma, {@link Fma} takes its place. Holds the working memory of one thread.
 *
 * <p>It has no text in common with {@code VectorScan} but the 12 lines of e^x, which that takes by two vectors: sums of V lanes are loops
 * here, and what is a branch here is a sign there.
 */
public final class ScalarScan implements RowScan {
  /** Exponent below which 2³¹ terms do not reach half an ulp of the greatest, 1. */
  static final double NEGLIGIBLE = -60;

  static final double LOG2_E = 1 / Math.log(2);

  /** ln 2 = HIGH + LOW; multiples of HIGH up to 2¹¹ are exact (fdlibm's e_exp.c). */
  static final double LN2_HIGH = 0x1.62e42feep-1;

  static final double LN2_LOW = 0x1.a39ef35793c76p-33;

  /** Added to a number, it rounds it to an integer, which is then in the lowest bits. */
  static final double ROUND = 0x1.8p52;

  /** Taylor coefficients 1/n! of e^r from n = 12 down. For |r| ≤ ½ ln 2 the rest is 2e-16. */
  private static final double[] EXP = Series.exponential(12, 0);

  private final int lanes;

  /** Sums of four vectors. */
  private final double[] sums;

  public ScalarScan(int lanes) {
    this.lanes = lanes;
    sums = new double[4 * lanes];
  }

  /** Coefficients of the polynomial of e^r, the highest first. */
  static double[] exponential() {
    return EXP.clone();
  }

  @Override
  public int atMost(double limit, double[] values, int from, int to, int[] at) {
    return atMost(limit, values, from, from, to, at, 0);
  }

  /** Continues {@link #atMost(double, double[], int, int, int[])} at position {@code j}, {@code count} values having been found before. */
  static int atMost(double limit, double[] values, int from, int j, int to, int[] at, int count) {
    int found = count;
    for (; j < to; j++) {
      if (values[j] <= limit) {
        at[found++] = j - from;
      }
    }
    return found;
  }

  @Override
  public void leastOfGroups(double[] values, int from, int to, int groups, double[] least) {
    int some = sums.length;
    for (int g = 0; g < groups; g += some) {
      System.arraycopy(values, from + g, least, g, some);
      for (int j = from + g + groups; j + some <= to; j += groups) {
        for (int k = 0; k < some; k++) {
          double x = values[j + k];
          least[g + k] = x < least[g + k] ? x : least[g + k];
        }
      }
    }
  }

  @Override
  public double min(double[] values, int from, int to) {
    double min = Double.POSITIVE_INFINITY;
    for (int j = from; j < to; j++) {
      min = Math.min(min, values[j]);
    }
    return min;
  }

  @Override
  public double sum(double[] values, int from, int to) {
    Arrays.fill(sums, 0);
    int some = sums.length;
    int j = from;
    for (; j + some <= to; j += some) {
      for (int k = 0; k < some; k++) {
        sums[k] += values[j + k];
      }
    }
    double total = 0;
    for (int k = 0; k < lanes; k++) {
      total += (sums[k] + sums[k + lanes]) + (sums[k + 2 * lanes] + sums[k + 3 * lanes]);
    }
    double rest = 0;
    for (; j < to; j++) {
      rest += values[j];
    }
    return total + rest;
  }

  @Override
  public double sumExp(double shift, double[] values, int from, int to) {
    Arrays.fill(sums, 0, lanes, 0);
    int whole = to - (to - from) % lanes;
    for (int j = from, k = 0; j < whole; j++, k = k + 1 == lanes ? 0 : k + 1) {
      sums[k] += exp(shift - values[j]);
    }
    double total = 0;
    for (int k = 0; k < lanes; k++) {
      total += sums[k];
    }
    double rest = 0;
    for (int j = whole; j < to; j++) {
      rest += exp(shift - values[j]);
    }
    return total + rest;
  }

  /** Returns e^x for x ≤ 0, by operations that vectors have; 0 where it is negligible. */
  private static double exp(double x) {
    if (!(x > NEGLIGIBLE)) {
      return 0;
    }
    double rounded = x * LOG2_E + ROUND;
    double k = rounded - ROUND;
    double r = Fma.of(k, -LN2_LOW, Fma.of(k, -LN2_HIGH, x));
    double y = EXP[0];
    for (int n = 1; n < EXP.length; n++) {
      y = Fma.of(y, r, EXP[n]);
    }
    long power = (Double.doubleToRawLongBits(rounded) + Double.MAX_EXPONENT) << 52;
    return Double.longBitsToDouble(power) * y;
  }

  @Override
  public void sortFew(long[] keys, int from, int to) {
    for (int s = from + 1; s < to; s++) {
      long key = keys[s]; // by insertion
      int at = s;
      for (; at > from && keys[at - 1] > key; at--) {
        keys[at] = keys[at - 1];
      }
      keys[at] = key;
    }
  }
}
