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

/**
 * The oracle against closed forms, and against a second implementation by another formula in
 * BigDecimal.
 */
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

  @Test
  void matchesTermwiseBigDecimal() {
    Random random = new Random(2);
    Batch.Kind[] kinds = Batch.Kind.values();
    for (int k = 0; k < 300; k++) {
      Batch.Kind kind = kinds[k % kinds.length];
      int dimension = 1 + random.nextInt(4);
      // the closest distance is one unit in the last place of double: KL about 1e-32
      double distance = Math.pow(10, -(k % 17));
      double[] mean = random.doubles(dimension, -2, 2).toArray();
      double[] std = random.doubles(dimension, 0.1, 3).toArray();
      Batch q = Batch.ofStd(kind, true, mean, std, dimension);
      Batch p =
          Batch.ofStd(
              k % 3 == 0 ? kinds[random.nextInt(kinds.length)] : kind,
              true,
              nudged(mean, distance, random),
              nudged(std, distance, random),
              dimension);
      assertClose(termwise(q, p), kl(q, p));
    }
  }

  private static double[] nudged(double[] values, double distance, Random random) {
    double[] result = values.clone();
    for (int i = 0; i < result.length; i++) {
      result[i] *= 1 + distance * random.nextDouble();
    }
    return result;
  }

  private static Batch batch(Batch.Kind kind, double mean, double scale) {
    return new Batch(kind, true, new double[] {mean}, new double[] {scale}, 1);
  }

  private static BigDecimal kl(Batch q, Batch p) {
    return new Oracle(q, p).kl(0, 0).toBigDecimal();
  }

  /**
   * The sum over dimensions of (x - ln(1 + x) + d^2 / v_p) / 2 with x = v_q / v_p - 1, the
   * logarithm by its series near 0.
   */
  private static BigDecimal termwise(Batch q, Batch p) {
    BigDecimal sum = BigDecimal.ZERO;
    for (int h = 0; h < q.dimension(); h++) {
      BigDecimal vp = variance(p, h);
      BigDecimal x = variance(q, h).subtract(vp).divide(vp, DIGITS);
      BigDecimal d = new BigDecimal(q.mean()[h]).subtract(new BigDecimal(p.mean()[h]));
      sum = sum.add(xMinusLog1p(x)).add(d.multiply(d).divide(vp, DIGITS));
    }
    return sum.divide(BigDecimal.TWO, DIGITS);
  }

  private static BigDecimal variance(Batch batch, int h) {
    BigDecimal scale = new BigDecimal(batch.scale()[h]);
    return switch (batch.kind()) {
      case STD -> scale.multiply(scale);
      case VARIANCE -> scale;
      case LOG_VARIANCE -> exp(scale);
      case PRECISION -> BigDecimal.ONE.divide(scale, DIGITS);
    };
  }

  private static BigDecimal xMinusLog1p(BigDecimal x) {
    if (x.abs().compareTo(new BigDecimal("0.1")) > 0) {
      return x.subtract(ln(x.add(BigDecimal.ONE)));
    }
    BigDecimal sum = BigDecimal.ZERO;
    BigDecimal power = x.multiply(x, DIGITS);
    for (int k = 2; k < 70; k++) {
      BigDecimal term = power.divide(BigDecimal.valueOf(k), DIGITS);
      sum = k % 2 == 0 ? sum.add(term) : sum.subtract(term);
      power = power.multiply(x, DIGITS);
    }
    return sum;
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
