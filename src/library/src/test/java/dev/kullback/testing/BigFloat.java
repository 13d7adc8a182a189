package dev.kullback.testing;

import java.math.BigDecimal;
import java.math.BigInteger;

/**
 * A binary floating-point number {@code mantissa * 2^exponent} of {@value #BITS} significant bits
 * (77 decimal digits) and unbounded exponent. Results are truncated, so each operation errs by less
 * than 2^-255 of its result.
 */
public record BigFloat(BigInteger mantissa, int exponent) {
  static final int BITS = 256;
  private static final int GUARD = BITS + 64;

  public static final BigFloat ZERO = new BigFloat(BigInteger.ZERO, 0);
  public static final BigFloat ONE = new BigFloat(BigInteger.ONE, 0);
  private static final BigFloat LN2 = lnOfUnit(BigInteger.TWO.shiftLeft(GUARD));

  /** The exact value of a finite double. */
  public static BigFloat of(double value) {
    if (value == 0) {
      return ZERO;
    }
    int exponent = Math.max(Math.getExponent(value), Double.MIN_EXPONENT) - 52;
    BigInteger magnitude = BigInteger.valueOf((long) Math.scalb(Math.abs(value), -exponent));
    return new BigFloat(value < 0 ? magnitude.negate() : magnitude, exponent);
  }

  public BigFloat plus(BigFloat other) {
    if (signum() == 0) {
      return other;
    }
    if (other.signum() == 0) {
      return this;
    }
    BigFloat high = exponent >= other.exponent ? this : other;
    BigFloat low = exponent >= other.exponent ? other : this;
    long gap = (long) high.exponent - low.exponent;
    if (gap > low.mantissa.bitLength() + 2L * BITS) {
      return high; // low is below the last bit kept
    }
    return rounded(high.mantissa.shiftLeft((int) gap).add(low.mantissa), low.exponent);
  }

  public BigFloat minus(BigFloat other) {
    return plus(other.negate());
  }

  public BigFloat times(BigFloat other) {
    return rounded(mantissa.multiply(other.mantissa), exponent + other.exponent);
  }

  public BigFloat dividedBy(BigFloat other) {
    int shift = Math.max(0, BITS + 8 + other.mantissa.bitLength() - mantissa.bitLength());
    return rounded(
        mantissa.shiftLeft(shift).divide(other.mantissa), exponent - shift - other.exponent);
  }

  /** Root of a number that is not negative. */
  public BigFloat sqrt() {
    int shift = Math.max(0, 2 * (BITS + 8) - mantissa.bitLength());
    shift += (exponent - shift) & 1; // so that the exponent is even
    return rounded(mantissa.shiftLeft(shift).sqrt(), (exponent - shift) / 2);
  }

  public BigFloat negate() {
    return new BigFloat(mantissa.negate(), exponent);
  }

  public BigFloat half() {
    return new BigFloat(mantissa, exponent - 1);
  }

  public int signum() {
    return mantissa.signum();
  }

  /** Whether the magnitude is below {@code 2^power}. */
  boolean below(int power) {
    return signum() == 0 || mantissa.bitLength() + exponent <= power;
  }

  /** Natural logarithm of a positive number. */
  public BigFloat ln() {
    if (signum() <= 0) {
      throw new ArithmeticException("logarithm of " + this);
    }
    int power = mantissa.bitLength() + exponent;
    BigInteger unit = fixed(mantissa, mantissa.bitLength() - GUARD); // in [1/2, 1)
    return lnOfUnit(unit).plus(LN2.times(new BigFloat(BigInteger.valueOf(power), 0)));
  }

  /** e to this power. */
  public BigFloat exp() {
    BigFloat turns = dividedBy(LN2);
    int power = fixed(turns.mantissa, -turns.exponent).intValueExact();
    BigFloat rest = minus(LN2.times(new BigFloat(BigInteger.valueOf(power), 0)));
    // exp(rest) = (1 + expm1(rest / 2^16))^(2^16)
    BigInteger x = fixed(rest.mantissa, -rest.exponent - GUARD + 16);
    BigInteger sum = BigInteger.ONE.shiftLeft(GUARD);
    BigInteger term = sum;
    for (int k = 1; term.signum() != 0 && !term.equals(BigInteger.ONE.negate()); k++) {
      term = term.multiply(x).shiftRight(GUARD).divide(BigInteger.valueOf(k));
      sum = sum.add(term);
    }
    for (int k = 0; k < 16; k++) {
      sum = sum.multiply(sum).shiftRight(GUARD);
    }
    return rounded(sum, power - GUARD);
  }

  /** Nearest double up to one unit in the last place; infinite beyond its range. */
  public double toDouble() {
    int drop = mantissa.bitLength() - 62;
    double leading = drop > 0 ? mantissa.shiftRight(drop).longValue() : mantissa.longValue();
    return Math.scalb(leading, exponent + Math.max(drop, 0));
  }

  public BigDecimal toBigDecimal() {
    BigDecimal whole = new BigDecimal(mantissa);
    return exponent >= 0
        ? whole.multiply(new BigDecimal(BigInteger.TWO.pow(exponent)))
        : whole.divide(new BigDecimal(BigInteger.TWO.pow(-exponent)));
  }

  /**
   * ln of the fixed-point number {@code value / 2^GUARD}, by 2 artanh z with z = (x - 1) / (x + 1).
   */
  private static BigFloat lnOfUnit(BigInteger value) {
    BigInteger one = BigInteger.ONE.shiftLeft(GUARD);
    BigInteger z = value.subtract(one).shiftLeft(GUARD).divide(value.add(one));
    BigInteger square = z.multiply(z).shiftRight(GUARD);
    BigInteger sum = BigInteger.ZERO;
    BigInteger power = z;
    for (int k = 1; power.signum() != 0 && !power.equals(BigInteger.ONE.negate()); k += 2) {
      sum = sum.add(power.divide(BigInteger.valueOf(k)));
      power = power.multiply(square).shiftRight(GUARD);
    }
    return rounded(sum.shiftLeft(1), -GUARD);
  }

  private static BigInteger fixed(BigInteger value, int drop) {
    return drop >= 0 ? value.shiftRight(drop) : value.shiftLeft(-drop);
  }

  private static BigFloat rounded(BigInteger mantissa, int exponent) {
    int drop = mantissa.bitLength() - BITS;
    return drop > 0
        ? new BigFloat(mantissa.shiftRight(drop), exponent + drop)
        : new BigFloat(mantissa, exponent);
  }
}
