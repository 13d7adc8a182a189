package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.kullback.testing.Batch;
import dev.kullback.testing.BigFloat;
import dev.kullback.testing.Oracle;
import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The oracle against closed forms, and its arithmetic against BigDecimal's; {@code WitnessTest} has values of another program for the library. */
class OracleTest {
  private static final MathContext DIGITS = new MathContext(60, RoundingMode.HALF_EVEN);

  @Test
  void bigDecimalReferenceMatchesKnownConstants() {
    assertClose(
        new BigDecimal("0.693147180559945309417232121458176568075500134360255254120680"),
        ln(BigDecimal.TWO));
    assertClose(
        new BigDecimal("2.302585092994045684017991454684364207601101488628772976033328"),
        ln(BigDecimal.TEN));
    assertClose(
        new BigDecimal("2.718281828459045235360287471352662497757247093699959574966968"),
        exp(BigDecimal.ONE));
  }

  @Test
  void bigFloatMatchesBigDecimal() {
    Random random = new Random(1);
    for (int k = 0; k < 200; k++) {
      double a = Math.exp(random.nextGaussian() * 20);
      double b = random.nextGaussian();
      BigFloat x = BigFloat.of(a);
      BigFloat y = BigFloat.of(b);
      BigDecimal u = new BigDecimal(a);
      BigDecimal v = new BigDecimal(b);
      assertClose(u.add(v), x.plus(y).toBigDecimal());
      assertClose(u.subtract(v), x.minus(y).toBigDecimal());
      assertClose(u.multiply(v), x.times(y).toBigDecimal());
      assertClose(u.divide(v, DIGITS), x.dividedBy(y).toBigDecimal());
      assertClose(ln(u), x.ln().toBigDecimal());
      assertClose(exp(v), y.exp().toBigDecimal());
      assertEquals(a, x.toDouble());
      assertEquals(b, y.toDouble());
    }
    for (double edge : new double[] {Double.MIN_VALUE, 1e-310, Double.MAX_VALUE, Float.MIN_VALUE}) {
      assertEquals(edge, BigFloat.of(edge).toDouble());
      assertClose(new BigDecimal(edge), BigFloat.of(edge).toBigDecimal());
    }
    assertEquals(Double.POSITIVE_INFINITY, BigFloat.of(1000).exp().toDouble());
    assertEquals(1000, BigFloat.of(1000).exp().ln().toDouble());
    assertEquals(-1000, BigFloat.of(-1000).exp().ln().toDouble());
  }

  @Test
  void matchesClosedForms() {
    // KL(N(1, 2^2), N(0, 1)) = 2 - ln 2, in each parameterization that holds it exactly
    BigDecimal expected = BigDecimal.TWO.subtract(ln(BigDecimal.TWO));
    Batch standard = batch(Batch.Kind.STD, 0, 1);
    assertClose(expected, kl(batch(Batch.Kind.STD, 1, 2), standard));
    assertClose(expected, kl(batch(Batch.Kind.VARIANCE, 1, 4), standard));
    assertClose(expected, kl(batch(Batch.Kind.PRECISION, 1, 0.25), standard));
    // log-variance l, -l: (e^2l - 1) / 2 - l
    assertClose(
        exp(BigDecimal.TWO)
            .subtract(BigDecimal.ONE)
            .divide(BigDecimal.TWO)
            .subtract(BigDecimal.ONE),
        kl(batch(Batch.Kind.LOG_VARIANCE, 5, 1), batch(Batch.Kind.LOG_VARIANCE, 5, -1)));
    assertEquals(0, kl(batch(Batch.Kind.VARIANCE, 3, 9), batch(Batch.Kind.STD, 3, 3)).signum());
    // Equal scales: d^2 / (2 s^2), however small
    assertClose(
        BigDecimal.ONE.divide(BigDecimal.TWO.pow(501), DIGITS),
        kl(batch(Batch.Kind.STD, 0x1p-250, 1), standard));
  }

  private static Batch batch(Batch.Kind kind, double mean, double scale) {
    return new Batch(kind, true, new double[] {mean}, new double[] {scale}, 1);
  }

  private static BigDecimal kl(Batch q, Batch p) {
    return new Oracle(q, p).kl(0, 0).toBigDecimal();
  }

  /** Computes e^x by the Taylor series of exp(x / 2^k), squared k times. */
  private static BigDecimal exp(BigDecimal x) {
    MathContext wide = new MathContext(90);
    int halvings = 24;
    BigDecimal small = x.divide(BigDecimal.TWO.pow(halvings), wide);
    BigDecimal sum = BigDecimal.ONE;
    BigDecimal term = BigDecimal.ONE;
    for (int k = 1; k < 30; k++) {
      term = term.multiply(small, wide).divide(BigDecimal.valueOf(k), wide);
      sum = sum.add(term);
    }
    for (int k = 0; k < halvings; k++) {
      sum = sum.multiply(sum, wide);
    }
    return sum;
  }

  /** Computes ln x by Newton's iteration y += x e^-y - 1 from the double logarithm: digits double with each step. */
  private static BigDecimal ln(BigDecimal x) {
    BigDecimal y = new BigDecimal(Math.log(x.doubleValue()));
    for (int k = 0; k < 3; k++) {
      y = y.add(x.multiply(exp(y.negate()), new MathContext(85)).subtract(BigDecimal.ONE));
    }
    return y;
  }

  private static void assertClose(BigDecimal expected, BigDecimal actual) {
    BigDecimal allowed = expected.abs().multiply(new BigDecimal("1e-26"));
    assertThat(actual.subtract(expected).abs())
        .as("expected %s, actual %s", expected, actual)
        .isLessThanOrEqualTo(allowed);
  }
}
