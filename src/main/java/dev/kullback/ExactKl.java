package dev.kullback;

/**
 * The divergence of diagonal Gaussians in twice the precision of double, by error-free transformations (T. J. Dekker 1971, D. E.
 * Knuth): for the order of candidates that double does not tell apart.
 */
final class ExactKl {
  /** A few of the 100 bits that {@link Variance} has, relative to the sum of all terms. */
  private static final double UNIT = 0x1p-96;

  /** Half an ulp, and some: what a result may be off by to be the exact one rounded, but for a tie. */
  private static final double ROUNDED = 0x1p-58;

  /** Exponents of variances, and of differences of means, whose squares and quotients keep both parts. */
  private static final int MOST_EXPONENT = 400;

  /** Of the sum S + D and of the products of variances: high and low part. */
  private double high;

  private double low;
  private long exponent;

  private ExactKl() {}

  /** {@code KL = ½ (Σ_h [(μq − μp)² + vq]/vp − D + ln Π vp/vq)}, rounded; NaN where cancellation or range do not let it be so. */
  static double kl(DiagonalGaussians q, int i, DiagonalGaussians p, int j) {
    int d = q.dimension();
    ExactKl sum = new ExactKl();
    ExactKl ratio = new ExactKl();
    ratio.high = 1;
    for (int h = 0; h < d; h++) {
      Variance vq = Variance.of(q.kind, q.scale(i * d + h));
      Variance vp = Variance.of(p.kind, p.scale(j * d + h));
      double x = q.mean(i * d + h) - p.mean(j * d + h);
      if (Math.abs(vq.exponent()) > MOST_EXPONENT
          || Math.abs(vp.exponent()) > MOST_EXPONENT
          || (x != 0 && Math.abs(Math.getExponent(x)) > MOST_EXPONENT)) {
        return Double.NaN;
      }
      sum.addTerm(q.mean(i * d + h), p.mean(j * d + h), vq, vp);
      ratio.multiply(vp);
      ratio.divide(vq);
      ratio.normalize();
    }
    if (Math.abs(ratio.exponent) > Variance.MOST_MULTIPLES) {
      return Double.NaN;
    }
    double magnitude = sum.high + d + Math.abs((double) ratio.exponent);
    sum.add(-d, 0);
    sum.addLog(ratio);
    double kl = 0.5 * (sum.high + sum.low);
    return magnitude * d * UNIT <= kl * ROUNDED ? kl : Double.NaN;
  }

  private void addTerm(double mq, double mp, Variance vq, Variance vp) {
    double x = mq - mp;
    double back = x - mq;
    double xLow = mq - (x - back) - (mp + back);
    double square = x * x;
    double squareLow = Math.fma(x, x, -square) + 2 * x * xLow;
    ExactKl term = new ExactKl();
    term.add(Math.scalb(vq.high(), vq.exponent()), Math.scalb(vq.low(), vq.exponent()));
    term.add(square, squareLow);
    term.divide(vp);
    int e = (int) term.exponent;
    add(Math.scalb(term.high, e), Math.scalb(term.low, e));
  }

  private void add(double x, double xLow) {
    double s = high + x;
    double back = s - high;
    double error = high - (s - back) + (x - back);
    set(s, error + low + xLow);
  }

  /** Of these s is the greater. */
  private void set(double s, double error) {
    high = s + error;
    low = s - high + error;
  }

  private void multiply(Variance v) {
    double product = high * v.high();
    set(product, Math.fma(high, v.high(), -product) + high * v.low() + low * v.high());
    exponent += v.exponent();
  }

  private void divide(Variance v) {
    double quotient = high / v.high();
    double rest = Math.fma(-quotient, v.high(), high) + low - quotient * v.low();
    set(quotient, rest / v.high());
    exponent -= v.exponent();
  }

  private void normalize() {
    int e = Math.getExponent(high);
    high = Math.scalb(high, -e);
    low = Math.scalb(low, -e);
    exponent += e;
  }

  /** ln x = y + ln(1 + δ) with y = ln x in double and {@code δ = x e^−y − 1}. */
  private void addLog(ExactKl x) {
    double y = Math.log(x.high);
    Variance inverse = Variance.of(Scale.LOG_VARIANCE, -y);
    double a = Math.scalb(inverse.high(), inverse.exponent());
    double b = Math.scalb(inverse.low(), inverse.exponent());
    double product = x.high * a;
    double rest = Math.fma(x.high, a, -product) + x.high * b + x.low * a;
    double delta = product - 1 + rest;
    add(y, delta - 0.5 * delta * delta);
    add(x.exponent * Variance.LN2_HIGH, 0);
    add(x.exponent * Variance.LN2_MIDDLE, x.exponent * Variance.LN2_LOW);
  }
}
