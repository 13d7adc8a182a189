package dev.kullback.internal.vector;

/**
 * Hellinger's distance {@code √(1 − e^−B)} of a Bhattacharyya distance B: with {@code B = n ln 2 − ρ}, |ρ| ≤ ½ ln 2, it is the root of {@code
 * (1 − 2^−n) − 2^−n (e^ρ − 1)}, of which the second part comes from a series; nothing cancels for n = 0, and at most two bits do for n = 1.
 */
final class Exponential {
  /** B from which on the distance is 1. */
  static final double MOST = 60;

  static final double LOG2_E = 1 / Math.log(2);

  /** A number whose last place is 1, to which integers are added to round numbers and to have them in the bits of a sum. */
  static final double ROUND = 0x1.8p52;

  /** Coefficients 1/n! of {@code e^ρ − 1 = ρ + ρ² (1/2! + ρ/3! + …)}, of n = 2 on; the next term is below 2⁻⁵⁷ of the sum. */
  static final double[] INVERSE_FACTORIALS = new double[14];

  static {
    double factorial = 1;
    for (int n = 0; n < INVERSE_FACTORIALS.length; n++) {
      factorial *= n + 2;
      INVERSE_FACTORIALS[n] = 1 / factorial;
    }
  }

  private Exponential() {}

  /** Returns the distance by the operations of a lane of {@link Tile#toHellinger}. */
  static double hellinger(double b) {
    double x = Math.min(b, MOST);
    double rounded = Math.fma(x, LOG2_E, ROUND);
    double n = rounded - ROUND;
    double r = Math.fma(n, Logarithm.LN2_LOW, Math.fma(n, Logarithm.LN2_HIGH, -x));
    double p = INVERSE_FACTORIALS[INVERSE_FACTORIALS.length - 1];
    for (int k = INVERSE_FACTORIALS.length - 2; k >= 0; k--) {
      p = Math.fma(p, r, INVERSE_FACTORIALS[k]);
    }
    p = Math.fma(p * r, r, r);
    double power = Double.longBitsToDouble((1023 - Double.doubleToRawLongBits(rounded)) << 52);
    return Math.sqrt(Math.fma(-power, p, 1 - power));
  }
}
