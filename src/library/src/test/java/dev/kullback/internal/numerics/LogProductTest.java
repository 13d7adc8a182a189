package dev.kullback.internal.numerics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Against the logarithm of the exact product, at all lengths, between numbers that would show. */
class LogProductTest {
  private static final BigDecimal LN2 =
      new BigDecimal("0.69314718055994530941723212145817656807550013436026");

  @Test
  void ofNumbersAbout1() {
    forAll(0.3, 0, true);
  }

  /** Products of eight such numbers leave float's range. */
  @Test
  void ofTheFloatKernelsRange() {
    forAll(20, 0, true);
    forAll(0, 100, true);
    forAll(0, -100, true);
  }

  @Test
  void ofAllFloats() {
    forAll(30, -148, false);
    forAll(0, 127, false);
  }

  @Test
  void ofAllDoubles() {
    Random random = new Random(3);
    for (int n = 1; n < 80; n++) {
      double[] s =
          random.doubles(n, -1074, 1024).map(e -> Math.max(Math.pow(2, e), 0x1p-1074)).toArray();
      assertThat(DoubleLogProduct.of(s, 0, n, false))
          .isCloseTo(exact(s), within(bound(n, exact(s))));
    }
  }

  /** Numbers of about 2^exponent, of so much spread. */
  private static void forAll(double spread, int exponent, boolean ordinary) {
    Random random = new Random(2);
    for (int n = 1; n < 150; n++) {
      int from = n % 5;
      float[] s = new float[from + n + 3];
      Arrays.fill(s, Float.NaN);
      for (int h = from; h < from + n; h++) {
        double x = Math.scalb(Math.exp(spread * random.nextGaussian()), exponent);
        s[h] =
            ordinary
                ? (float) Math.clamp(x, 0x1p-100, 0x1p100)
                : (float) Math.clamp(x, Float.MIN_VALUE, Float.MAX_VALUE);
      }
      double[] wide = new double[s.length];
      for (int h = 0; h < s.length; h++) {
        wide[h] = s[h];
      }
      double exact = exact(Arrays.copyOfRange(wide, from, from + n));
      double bound = bound(n, exact);
      int to = from + n;
      assertThat(FloatLogProduct.of(s, from, to, false))
          .as("%d", n)
          .isCloseTo(exact, within(bound));
      assertThat(DoubleLogProduct.of(wide, from, to, false))
          .as("%d", n)
          .isCloseTo(exact, within(bound));
      if (ordinary) {
        double log = FloatLogProduct.of(s, from, to, true);
        assertThat(log).as("%d", n).isCloseTo(exact, within(bound));
        assertThat(DoubleLogProduct.of(wide, from, to, true)).as("%d", n).isEqualTo(log);
      }
    }
  }

  /** Error bound: what batches assume for the sum of the logarithms, and the oracle's last digits. */
  private static double bound(int n, double log) {
    return 0x1p-53 * (2 * n + 16 + 4 * Math.abs(log)) + 0x1p-52 * (1 + Math.abs(log));
  }

  private static double exact(double[] s) {
    BigInteger product = BigInteger.ONE;
    int exponent = 0;
    for (double x : s) {
      int e = Math.max(Math.getExponent(x), Double.MIN_EXPONENT) - 52;
      exponent += e;
      product =
          product.multiply(
              BigInteger.valueOf((long) Math.scalb(Math.scalb(x, -e / 2), -e - -e / 2)));
    }
    int shift = product.bitLength() - 1;
    double mantissa =
        Math.scalb(product.shiftRight(Math.max(0, shift - 62)).doubleValue(), -Math.min(shift, 62));
    return LN2.multiply(BigDecimal.valueOf((long) shift + exponent))
        .add(BigDecimal.valueOf(Math.log(mantissa)))
        .doubleValue();
  }
}
