package dev.kullback.internal.plain;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.numerics.DoubleDouble;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.Variance;

/**
 * Computes the divergence of diagonal Gaussians in twice the precision of double, to order candidates that double does not tell apart:
 *
 * <pre>
 * KL = ½ Σ_h [x − ln(1+x) + y²], x = σq²/σp² − 1, y = (μq − μp)/σp
 * </pre>
 *
 * <p>No term is negative, so the relative error is that of a term and of the sum, however small KL is and whatever its exponent. Holds the
 * working memory of one thread.
 */
public final class DoubleDoubleKl {
  /**
   * Greatest |x| whose term {@code f = x − ln(1+x)} comes from its series, to 2⁻⁸⁴·⁷. Beyond it {@code |x| ≤ 66 f} and {@code f ≥ 2⁻¹¹·¹}:
   * the x are summed, and the 1 + x, each to 2⁻⁹⁶, are multiplied for one logarithm, to 2⁻⁹⁷.
   */
  private static final double MOST_IN_SERIES = 0x1p-5;

  private static final double THIRD_REST = Math.fma(-3, 1 / 3.0, 1) / 3;
  private static final double FIFTH_REST = Math.fma(-5, 1 / 5.0, 1) / 5;

  private final Variance vq = new Variance();
  private final Variance vp = new Variance();
  private final DoubleDouble x = new DoubleDouble();
  private final DoubleDouble z = new DoubleDouble();
  private final DoubleDouble w = new DoubleDouble();
  private final DoubleDouble series = new DoubleDouble();
  private final DoubleDouble product = new DoubleDouble();
  private final DoubleDouble sum = new DoubleDouble();

  /** KL rounded to double, and the relative remainder: {@code KL = value·(1 + rest)}, |rest| ≤ 2⁻⁵³. */
  public double value;

  public double rest;

  /**
   * Twice the relative error, so that equal divergences are within it. The 2D sums, each to 3·2⁻¹⁰⁶ of 66 KL at most, make D·2⁻⁹⁷, and the
   * terms {@code 2⁻⁸⁴·⁷ + 66·2⁻⁹⁶ + 2⁻⁹⁷/f < 2⁻⁸⁴}. Where {@link #setExcess} reaches only 2⁻⁹⁷, {@code ½ Σ|x| 2⁻⁹⁷ < 2⁻⁹⁶ √(D KL)} come on
   * top.
   */
  public static double tolerance(int dimension) {
    return (dimension + 8192.0) * 0x1p-96;
  }

  /** Whether KL is greater than x, beyond the tolerance. */
  public boolean isBeyond(double x, double tolerance) {
    return value > x || (value == x && rest > tolerance);
  }

  /** Sets a KL that is known to double only. */
  public void set(double kl) {
    value = kl;
    rest = 0;
  }

  /** Computes {@code KL(q_i ‖ p_j) > 0}, a normal number; returns false if log-variances are beyond ±10⁵. */
  public boolean compute(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    sum.set(0);
    product.set(1);
    int d = q.dimension();
    int a = i * d;
    int b = j * d;
    for (int h = 0; h < d; h++) {
      if (!addTerm(
          q.kind(), q.mean(a + h), q.scale(a + h), p.kind(), p.mean(b + h), p.scale(b + h))) {
        return false;
      }
    }
    subtractLog();
    sum.scale(-1);
    value = sum.toDouble();
    rest = sum.low() / sum.high();
    return value > 0;
  }

  private boolean addTerm(Scale kind, double mq, double sq, Scale other, double mp, double sp) {
    boolean same = kind == other && sq == sp;
    if (same && mq == mp) {
      return true;
    }
    vq.set(kind, sq);
    vp.set(other, sp);
    if (!vq.isHeld() || !vp.isHeld()) {
      return false;
    }
    if (!same) {
      x.set(vq);
      x.divide(vp);
      if (Math.abs(x.toDouble() - 1) < MOST_IN_SERIES) {
        setExcess(kind, sq, other, sp);
        addSeries();
      } else {
        product.multiply(x);
        x.add(-1);
        sum.add(x);
      }
    }
    if (mq != mp) {
      x.setDifference(mq, mp);
      x.multiply(x);
      x.divide(vp);
      sum.add(x);
    }
    return true;
  }

  /**
   * Sets x. If both batches state their scales in one way, or as σ and σ², x is a difference of exact numbers and accurate however small it
   * is; otherwise 1 + x is, to 2⁻⁹⁷.
   */
  private void setExcess(Scale kind, double sq, Scale other, double sp) {
    if (kind == other && kind == Scale.LOG_VARIANCE) {
      x.setDifference(sq, sp);
      x.expm1();
    } else if (kind == other && kind == Scale.PRECISION) {
      x.setDifference(sp, sq);
      w.set(sq);
      x.divide(w);
    } else {
      x.set(vq);
      x.subtract(vp);
      x.divide(vp);
    }
  }

  /**
   * Adds {@code x − ln(1+x) = x − 2 artanh z = z (x − 2 (z²/3 + z⁴/5 + z⁶/7 + …))} with {@code z = x/(2 + x)}. The powers from {@code z⁶}
   * on, at most 2⁻³²·⁷ of it, are in double; those left out make 2⁻⁹³.
   */
  private void addSeries() {
    w.set(x);
    w.add(2);
    z.set(x);
    z.divide(w);
    w.set(z);
    w.multiply(z);
    double t = w.toDouble();
    series.set(w);
    series.multiply(1 / 7.0 + t * (1 / 9.0 + t * (1 / 11.0 + t * (1 / 13.0 + t / 15))));
    series.add(1 / 5.0, FIFTH_REST);
    series.multiply(w);
    series.add(1 / 3.0, THIRD_REST);
    series.multiply(w);
    series.scale(1);
    x.subtract(series);
    x.multiply(z);
    sum.add(x);
  }

  /**
   * Subtracts the logarithm of the product: {@code e ln 2 + ln m}, and {@code ln m = y + δ} with y in double and {@code δ = m e^−y − 1}.
   */
  private void subtractLog() {
    long e = product.takeExponent();
    double y = Math.log(product.high());
    w.set(-y);
    w.exp();
    w.multiply(product);
    w.add(-1);
    sum.add(-y);
    sum.subtract(w);
    w.setLn2();
    w.multiply((double) e);
    sum.subtract(w);
  }
}
