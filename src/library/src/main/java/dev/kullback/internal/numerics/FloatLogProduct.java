package dev.kullback.internal.numerics;

/**
 * Computes ln Π s of positive s by one logarithm: of the product of the mantissas, with the exponents summed apart, so that nothing over-
 * or underflows. Plain code in four chains takes 0.44 ns a float where the Vector API took 0.26 (D = 256; Zen 3, AVX2), gives the same
 * bits everywhere, and is not slow before C2 has compiled it. The build derives {@code DoubleLogProduct} from this text.
 */
public final class FloatLogProduct {
  private static final long MANTISSA = 0x000F_FFFF_FFFF_FFFFL;
  private static final long ONE = 0x3FF0_0000_0000_0000L;

  private FloatLogProduct() {}

  /**
   * Sums the logarithms of {@code s[from]} to {@code s[to − 1]}.
   *
   * @param ordinary whether all are in [2⁻¹⁰⁰, 2¹⁰⁰]: eight and a mantissa stay within double's range
   */
  public static double of(float[] s, int from, int to, boolean ordinary) {
    return ordinary ? ofOrdinary(s, from, to) : ofAny(s, from, to);
  }

  private static double ofOrdinary(float[] s, int from, int to) {
    double a = 1;
    double b = 1;
    double c = 1;
    double d = 1;
    long exponent = 0;
    int h = from;
    for (; h + 32 <= to; h += 32) {
      a *= eight(s, h);
      b *= eight(s, h + 8);
      c *= eight(s, h + 16);
      d *= eight(s, h + 24);
      exponent +=
          Math.getExponent(a) + Math.getExponent(b) + Math.getExponent(c) + Math.getExponent(d);
      a = mantissa(a);
      b = mantissa(b);
      c = mantissa(c);
      d = mantissa(d);
    }
    for (; h + 8 <= to; h += 8) {
      a *= eight(s, h);
      exponent += Math.getExponent(a);
      a = mantissa(a);
    }
    for (; h < to; h++) {
      a *= s[h];
    }
    exponent += Math.getExponent(a);
    return Math.log(mantissa(a) * b * (c * d)) + exponent * DoubleDouble.LN2;
  }

  private static double ofAny(float[] s, int from, int to) {
    double product = 1;
    long exponent = 0;
    for (int h = from; h < to; h++) {
      double x = s[h];
      if (x < Double.MIN_NORMAL) { // only in double
        x *= 0x1p54;
        exponent -= 54;
      }
      exponent += Math.getExponent(x);
      product *= mantissa(x);
      exponent += Math.getExponent(product);
      product = mantissa(product);
    }
    return Math.log(product) + exponent * DoubleDouble.LN2;
  }

  @SuppressWarnings("cast") // redundant in double
  private static double eight(float[] s, int h) {
    return ((double) s[h] * s[h + 1])
        * ((double) s[h + 2] * s[h + 3])
        * (((double) s[h + 4] * s[h + 5]) * ((double) s[h + 6] * s[h + 7]));
  }

  private static double mantissa(double x) {
    return Double.longBitsToDouble((Double.doubleToRawLongBits(x) & MANTISSA) | ONE);
  }
}
