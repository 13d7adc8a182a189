package dev.kullback.internal.numerics;

import static org.assertj.core.api.Assertions.assertThat;

import java.math.BigDecimal;
import java.math.MathContext;
import java.util.Random;
import org.junit.jupiter.api.Test;

class DoubleDoubleTest {
  private static final MathContext DIGITS = new MathContext(60);

  /** The promised relative error. */
  private static final BigDecimal TOLERANCE = new BigDecimal(0x1p-98);

  /** e^x − 1 by its series, after halving x. */
  private static BigDecimal expm1(BigDecimal x) {
    int halvings = 40;
    BigDecimal r = x.divide(BigDecimal.TWO.pow(halvings), DIGITS);
    BigDecimal term = r;
    BigDecimal p = BigDecimal.ZERO;
    for (int n = 2; n < 12; n++) {
      p = p.add(term, DIGITS);
      term = term.multiply(r, DIGITS).divide(BigDecimal.valueOf(n), DIGITS);
    }
    for (int i = 0; i < halvings; i++) {
      p = p.multiply(BigDecimal.TWO).add(p.pow(2, DIGITS), DIGITS);
    }
    return p;
  }

  private static BigDecimal value(DoubleDouble x) {
    BigDecimal sum = new BigDecimal(x.high()).add(new BigDecimal(x.low()));
    BigDecimal power = BigDecimal.TWO.pow(Math.abs(x.exponent()));
    return x.exponent() < 0 ? sum.divide(power, DIGITS) : sum.multiply(power, DIGITS);
  }

  private static void check(double x, BigDecimal actual, BigDecimal expected) {
    BigDecimal error = actual.subtract(expected).abs();
    assertThat(error)
        .as("x = %s", x)
        .isLessThanOrEqualTo(expected.abs().multiply(TOLERANCE, DIGITS));
  }

  @Test
  void exponentials() {
    Random random = new Random(1);
    for (int k = 0; k < 4000; k++) {
      double x =
          switch (k) {
            case 0 -> 0.35;
            case 1 -> -0.35;
            case 2 -> 0x1p-109;
            case 3 -> Math.nextDown(0x1p-109);
            default -> random.nextDouble(-0.35, 0.35) * Math.pow(2, -random.nextInt(120));
          };
      DoubleDouble y = new DoubleDouble();
      y.set(x);
      y.expm1();
      check(x, value(y), expm1(new BigDecimal(x)));
      double large = 40 * x;
      y.set(large);
      y.exp();
      check(large, value(y), expm1(new BigDecimal(large)).add(BigDecimal.ONE));
    }
  }

  /** Numbers any number of powers of 2 apart, in both orders, and one that is added to what has cancelled. */
  @Test
  void sums() {
    Random random = new Random(3);
    for (int k = 0; k < 2000; k++) {
      int gap = k < 20 ? 1014 + k : random.nextInt(5000);
      DoubleDouble small = new DoubleDouble();
      small.set(random.nextDouble(-2, 2));
      small.scale(-3000);
      DoubleDouble large = new DoubleDouble();
      large.set(random.nextDouble(1, 2));
      large.scale(gap - 3000);
      BigDecimal expected = value(small).add(value(large));
      DoubleDouble sum = new DoubleDouble();
      sum.set(small);
      sum.add(large);
      check(gap, value(sum), expected);
      sum.set(large);
      sum.add(small);
      check(gap, value(sum), expected);
      sum.set(large);
      sum.subtract(large);
      sum.add(small);
      check(gap, value(sum), value(small));
    }
  }

  @Test
  void powersOf2AreThoseOfScalb() {
    Random random = new Random(2);
    for (int k = 0; k < 100_000; k++) {
      double x = Double.longBitsToDouble(random.nextLong());
      int by = k < 20 ? -1030 + k : k < 40 ? 1010 + k : random.nextInt(-4096, 4097);
      Double expected = Math.scalb(x, by);
      assertThat(DoubleDouble.timesPowerOf2(x, by)).isEqualTo(expected);
    }
  }
}
