package dev.kullback.internal.numerics;

/**
 * A number {@code high + low} of some 75 bits in double's range, faster than {@link DoubleDouble}. {@code |low| ≤ 2⁻⁵³ |high|} except after
 * sums that cancel. Arguments of two parts need only have a low part that is small beside the high one.
 */
public final class FastDoubleDouble {
  /** Cuts [1, 2) into 2⁸ intervals. In each, ln m is {@code ln(m c) − ln c} with c near 1/m, so that {@code |m c − 1| ≤ 2⁻⁸·⁵}. */
  private static final int LOG_BITS = 8;

  private static final double[] C = new double[1 << LOG_BITS];
  private static final double[] MINUS_LOG_C = new double[C.length];
  private static final double[] MINUS_LOG_C_LOW = new double[C.length];

  /** 2^(k/64), for {@code e^x = 2^(k/64) e^r}. */
  private static final int EXP_BITS = 6;

  private static final double[] ROOT = new double[1 << EXP_BITS];
  private static final double[] ROOT_LOW = new double[ROOT.length];

  /** ln 2/64 in two parts, the first with 20 bits to spare for a factor. */
  private static final double STEP_HIGH = 0x1.62e42fef00000p-7;

  private static final double STEP_LOW = 0x1.473de6af278edp-40;
  private static final double STEPS = ROOT.length / DoubleDouble.LN2;

  static {
    DoubleDouble x = new DoubleDouble();
    for (int k = 0; k < C.length; k++) {
      double m = 1 + (k + 0.5) / C.length;
      C[k] = Math.rint(2048 / m) / 2048;
      double y = StrictMath.log(C[k]);
      x.set(-y); // ln c = y + (c e^−y − 1), but for 2⁻¹⁰⁶
      x.exp();
      x.multiply(C[k]);
      x.add(-1);
      MINUS_LOG_C[k] = -y;
      MINUS_LOG_C_LOW[k] = -x.toDouble();
    }
    for (int k = 0; k < ROOT.length; k++) {
      x.setLn2();
      x.multiply((double) k / ROOT.length);
      x.exp();
      ROOT[k] = x.high();
      ROOT_LOW[k] = x.low();
    }
  }

  private double high;
  private double low;

  public double high() {
    return high;
  }

  public double low() {
    return low;
  }

  public void set(double h, double l) {
    high = h + l;
    low = h - high + l;
  }

  /** Adds {@code h + l}. */
  public void add(double h, double l) {
    double s = high + h;
    double t = s - high;
    set(s, high - (s - t) + (h - t) + (low + l));
  }

  /** Returns 2^exponent, within double's normal range. */
  public static double power(long exponent) {
    return Double.longBitsToDouble((exponent + Double.MAX_EXPONENT) << 52);
  }

  /**
   * Sets e^x to a relative error of 2⁻⁷⁵·⁵, |x| ≤ 100, by {@code x = k ln 2/64 + r}, {@code |r| ≤ 2⁻⁷·⁵}. The series is in double from r³
   * on, which is 2⁻²⁵ of it.
   */
  public void setExp(double x) {
    double k = Math.rint(x * STEPS);
    double a = x - k * STEP_HIGH; // exact
    double b = -k * STEP_LOW;
    double r = a + b;
    double rLow = a - r + b;
    double square = r * r;
    double squareLow = Math.fma(r, r, -square) + 2 * r * rLow;
    double series = 1 / 120.0 + r * (1 / 720.0 + r * (1 / 5040.0 + r / 40320));
    double tail = square * r * (1 / 6.0 + r * (1 / 24.0 + r * series));
    double y = r + 0.5 * square; // e^r − 1
    double yLow = r - y + 0.5 * square + (rLow + 0.5 * squareLow + tail);
    int root = (int) k & (ROOT.length - 1);
    double t = ROOT[root];
    double product = t * y;
    double productLow = Math.fma(t, y, -product) + (t * yLow + ROOT_LOW[root] * y) + ROOT_LOW[root];
    double s = t + product;
    double power = power((int) k >> EXP_BITS);
    set(s * power, (t - s + product + productLow) * power);
  }

  /**
   * Adds {@code factor·ln((h + l)·2^exponent)} of {@code 1 ≤ h < 2}, whose logarithm is good to 2⁻⁷⁵. The series of ln(1 + z), |z| ≤ 2⁻⁸·⁵,
   * is in double from z³ on, which is 2⁻²⁷ of it.
   *
   * @return the approximate absolute value of the addend
   */
  public double addLog(int factor, double h, double l, long exponent) {
    int k = (int) (Double.doubleToRawLongBits(h) >>> (52 - LOG_BITS)) & (C.length - 1);
    double c = C[k];
    double product = h * c;
    double a = product - 1; // exact
    double b = Math.fma(h, c, -product) + l * c;
    double z = a + b;
    double t = z - a;
    double zLow = a - (z - t) + (b - t);
    double square = z * z;
    double squareLow = Math.fma(z, z, -square) + 2 * z * zLow;
    double series = 1 / 5.0 + z * (-1 / 6.0 + z * (1 / 7.0 + z * (-1 / 8.0 + z / 9)));
    double tail = square * z * (1 / 3.0 + z * (-1 / 4.0 + z * series));
    double y = z - 0.5 * square;
    double yLow = z - y - 0.5 * square + (zLow - 0.5 * squareLow + tail);
    double e = (double) exponent * DoubleDouble.LN2;
    double eLow =
        Math.fma((double) exponent, DoubleDouble.LN2, -e) + exponent * DoubleDouble.LN2_REST;
    add(factor * e, factor * eLow);
    add(factor * MINUS_LOG_C[k], factor * MINUS_LOG_C_LOW[k]);
    add(factor * y, factor * yLow);
    return Math.abs(factor * (e + MINUS_LOG_C[k] + y));
  }
}
