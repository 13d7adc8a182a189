package dev.kullback.testing;

import static org.junit.jupiter.api.Assertions.fail;

/** Compares results with the oracle by the accuracy contract, with messages that name the entry. */
public final class Check {
  public static final double FLOAT_CONTRACT = 1e-5;
  static final double DOUBLE_CONTRACT = 1e-12;

  private Check() {}

  /**
   * Range in which relative accuracy is due: below it an entry need only be as small, above it +∞
   * is right.
   *
   * @param contract the largest relative error
   */
  public record Precision(double contract, double smallest, double largest) {
    /** A float result. */
    public static final Precision FLOAT =
        new Precision(FLOAT_CONTRACT, Float.MIN_NORMAL, Float.MAX_VALUE);

    /** A double result where either batch is of double. */
    public static final Precision DOUBLE =
        new Precision(DOUBLE_CONTRACT, Double.MIN_NORMAL, Double.MAX_VALUE);

    /** A double result from float parameters: float's accuracy in double's range. */
    public static final Precision WIDENED =
        new Precision(FLOAT_CONTRACT, Float.MIN_NORMAL, Double.MAX_VALUE);

    public static Precision ofDoubleResult(Batch q, Batch p) {
      return q.isDouble() || p.isDouble() ? DOUBLE : WIDENED;
    }

    /** Infinite when the entry is wrong without measure: NaN, negative, not zero, not infinite. */
    public double error(double expected, double actual) {
      if (Double.isNaN(actual) || actual < 0 || Double.doubleToRawLongBits(actual) < 0) {
        return Double.POSITIVE_INFINITY;
      }
      if (expected == 0) {
        return actual == 0 ? 0 : Double.POSITIVE_INFINITY;
      }
      if (expected < smallest) {
        return actual <= smallest ? 0 : Double.POSITIVE_INFINITY;
      }
      if (actual == Double.POSITIVE_INFINITY) {
        return expected > largest * (1 - contract) ? 0 : Double.POSITIVE_INFINITY;
      }
      if (expected > largest) {
        return expected < largest * (1 + contract) ? 0 : Double.POSITIVE_INFINITY;
      }
      return Math.abs(actual / expected - 1);
    }
  }

  /** The largest relative error of a row-major matrix; fails where an entry breaks the contract. */
  public static double matrix(
      String what, int columns, double[] expected, double[] actual, Precision precision) {
    double worst = 0;
    int worstAt = -1;
    int wrong = 0;
    for (int at = 0; at < expected.length; at++) {
      double error = precision.error(expected[at], actual[at]);
      if (error > worst) {
        worst = error;
        worstAt = at;
      }
      if (error > precision.contract) {
        wrong++;
      }
    }
    if (wrong > 0) {
      fail(
          ("%s: %d of %d entries outside %.0e; worst [i=%d, j=%d]: "
                  + "expected %s, actual %s, relative error %.3g")
              .formatted(
                  what,
                  wrong,
                  expected.length,
                  precision.contract,
                  worstAt / columns,
                  worstAt % columns,
                  expected[worstAt],
                  actual[worstAt],
                  worst));
    }
    return worst;
  }

  public static double matrix(String what, int columns, double[] expected, float[] actual) {
    return matrix(what, columns, expected, Batch.widened(actual), Precision.FLOAT);
  }

  /** Fails at the first entry that differs in its bits. */
  public static void sameBits(String what, int columns, float[] expected, float[] actual) {
    for (int at = 0; at < expected.length; at++) {
      if (Float.floatToRawIntBits(expected[at]) != Float.floatToRawIntBits(actual[at])) {
        fail(differing(what, at, columns, expected[at], actual[at]));
      }
    }
  }

  /** Fails at the first entry that differs in its bits. */
  public static void sameBits(String what, int columns, double[] expected, double[] actual) {
    for (int at = 0; at < expected.length; at++) {
      if (Double.doubleToRawLongBits(expected[at]) != Double.doubleToRawLongBits(actual[at])) {
        fail(differing(what, at, columns, expected[at], actual[at]));
      }
    }
  }

  private static String differing(
      String what, int at, int columns, double expected, double actual) {
    return "%s: bits differ at [i=%d, j=%d]: expected %s, actual %s"
        .formatted(what, at / columns, at % columns, expected, actual);
  }
}
