package dev.kullback.internal.mixture;

import dev.kullback.internal.numerics.Compensation;

/**
 * Mean of samples and its standard error, by B. P. Welford's recurrence, 1962, with the mean in two parts. Both are infinite if a sample
 * is.
 */
public final class Estimate {
  private static final double HALF_ULP = 0x1p-53;

  /** Roundings of a term at most; its sum has D more. */
  private static final int ROUNDINGS = 16;

  private long count;
  private double sum;
  private double rest;
  private double squares;
  private double floor;

  /** Bounds the rounding error of a sample whose D terms have a sum of magnitudes. */
  static double rounding(int dimension, double magnitudes) {
    return HALF_ULP * (dimension + ROUNDINGS) * magnitudes;
  }

  /** Whether the rounding error of sample s, from 1 on, is bounded: that of the first, and of ever fewer. */
  static boolean isBounded(long s) {
    return Long.bitCount(s) == 1;
  }

  void addSample(double x) {
    double change = x - sum - rest;
    double next = sum + change / ++count;
    rest += Compensation.error(sum, change / count, next);
    sum = next;
    squares += change * (x - sum - rest);
  }

  /** Takes a bound on the rounding error of one sample, of which the greatest is that of the mean. */
  void addRounding(double bound) {
    floor = bound >= 0 ? Math.max(floor, bound) : Double.POSITIVE_INFINITY;
  }

  public double mean() {
    double mean = sum + rest;
    return Math.abs(mean) <= Double.MAX_VALUE ? mean : Double.POSITIVE_INFINITY;
  }

  /** Returns the bound on the rounding error of the mean. */
  public double floor() {
    return floor;
  }

  /** Returns the standard error of the mean of at least two samples, rounding included. */
  public double standardError() {
    double error = Math.sqrt(squares / (count - 1) / count);
    return error >= 0 ? Math.hypot(error, floor) : Double.POSITIVE_INFINITY;
  }
}
