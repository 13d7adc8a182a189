package dev.kullback.internal.numerics;

/** ln Π s of positive s, over mantissas with the exponents summed apart: one logarithm, and no over- or underflow. */
public final class LogProduct {
  private static final double LN2 = 0.6931471805599453;
  private static final long MANTISSA = 0x000F_FFFF_FFFF_FFFFL;
  private static final long ONE = 0x3FF0_0000_0000_0000L;

  private LogProduct() {}

  /** Of these and {@code a·2^exponent}. */
  public static double of(float[] s, int from, int to, double a, long exponent) {
    double b = 1;
    double c = 1;
    double d = 1;
    int h = from;
    for (;
        h + 16 <= to;
        h += 16) { // four chains; four float factors and a mantissa stay within double's range
      a *= (double) s[h] * s[h + 1] * ((double) s[h + 2] * s[h + 3]);
      b *= (double) s[h + 4] * s[h + 5] * ((double) s[h + 6] * s[h + 7]);
      c *= (double) s[h + 8] * s[h + 9] * ((double) s[h + 10] * s[h + 11]);
      d *= (double) s[h + 12] * s[h + 13] * ((double) s[h + 14] * s[h + 15]);
      exponent +=
          Math.getExponent(a) + Math.getExponent(b) + Math.getExponent(c) + Math.getExponent(d);
      a = mantissa(a);
      b = mantissa(b);
      c = mantissa(c);
      d = mantissa(d);
    }
    for (; h < to; h++) {
      a *= s[h];
      exponent += Math.getExponent(a);
      a = mantissa(a);
    }
    return Math.log(a * b * (c * d)) + exponent * LN2;
  }

  public static double of(double[] s, int from, int to) {
    double product = 1;
    long exponent = 0;
    for (int h = from; h < to; h++) {
      double x = s[h];
      if (x < Double.MIN_NORMAL) {
        x *= 0x1p54;
        exponent -= 54;
      }
      exponent += Math.getExponent(x);
      product *= mantissa(x);
      exponent += Math.getExponent(product);
      product = mantissa(product);
    }
    return Math.log(product) + exponent * LN2;
  }

  private static double mantissa(double x) {
    return Double.longBitsToDouble((Double.doubleToRawLongBits(x) & MANTISSA) | ONE);
  }
}
