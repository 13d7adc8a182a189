package dev.kullback.internal.numerics;

/**
 * Compensated summation of blocks: the rounding errors of adding blocks' sums are summed apart and added at the end, so that a long sum
 * has the error of one block (A. Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", ZAMM 54, 1974). The
 * loops hold both sums in local variables.
 */
public final class Compensation {
  /** Terms of a block, which are summed plainly. */
  public static final int BLOCK = 64;

  private Compensation() {}

  /** Returns a + b − sum exactly, where sum is a + b rounded (D. E. Knuth, The Art of Computer Programming 2, 4.2.2, theorem B). */
  public static double error(double a, double b, double sum) {
    double back = sum - a;
    return (a - (sum - back)) + (b - back);
  }

  /** Returns the sum with its errors; one that overflowed stays infinite, as its errors are NaN. */
  public static double total(double sum, double errors) {
    return sum == Double.POSITIVE_INFINITY ? sum : sum + errors;
  }
}
