package dev.kullback.internal.numerics;

/**
 * Sums of many blocks, to the error of one: what rounding takes from an addition of two blocks' sums is kept, and added at the
 * end (A. Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", ZAMM 54, 1974). The loops that do
 * so hold both sums in local variables.
 */
public final class Compensation {
  /** Terms that are added up as they are. */
  public static final int BLOCK = 64;

  private Compensation() {}

  /** a + b − sum, exactly, where sum is the rounded one (D. E. Knuth, The Art of Computer Programming 2, 4.2.2, theorem B). */
  public static double error(double a, double b, double sum) {
    double back = sum - a;
    return (a - (sum - back)) + (b - back);
  }

  /** The sum with what rounding took; one that overflowed has no errors. */
  public static double total(double sum, double errors) {
    return sum == Double.POSITIVE_INFINITY ? sum : sum + errors;
  }
}
