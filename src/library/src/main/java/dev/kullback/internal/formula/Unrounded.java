package dev.kullback.internal.formula;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.numerics.DoubleDouble;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.Variance;

/**
 * A divergence of diagonal Gaussians in twice the precision of double, to order candidates that double does not tell apart: a sum of terms,
 * one for each dimension, none of which is negative. So the relative error is that of a term and of the sum, however small the divergence
 * is and whatever its exponent. Holds the working memory of one thread.
 */
public abstract class Unrounded {
  /** Greatest |x| whose {@code f(x) = x − ln(1+x)} comes from its series, to 2⁻⁸⁴·⁷. */
  static final double MOST_IN_SERIES = 0x1p-5;

  private static final double THIRD_REST = Math.fma(-3, 1 / 3.0, 1) / 3;
  private static final double FIFTH_REST = Math.fma(-5, 1 / 5.0, 1) / 5;

  final Variance vq = new Variance();
  final Variance vp = new Variance();

  /** {@code σq²/σp² − 1}, by {@link #setExcess}, where a formula does not say otherwise. */
  final DoubleDouble x = new DoubleDouble();

  /** 1 + x, by {@link #setAnyExcess}: of a ratio beyond 2^±970, x alone does not have it. */
  final DoubleDouble ratio = new DoubleDouble();

  final DoubleDouble w = new DoubleDouble();
  final DoubleDouble sum = new DoubleDouble();
  private final DoubleDouble z = new DoubleDouble();
  private final DoubleDouble series = new DoubleDouble();

  /** The divergence rounded to double, and the relative remainder: it is {@code value·(1 + rest)}, |rest| ≤ 2⁻⁵³. */
  public double value;

  public double rest;

  /** Whether the divergence is greater than x, beyond the tolerance. */
  public final boolean isBeyond(double x, double tolerance) {
    return value > x || (value == x && rest > tolerance);
  }

  /** Sets a divergence that is known to double only. */
  final void setRounded(double divergence) {
    value = divergence;
    rest = 0;
  }

  /**
   * Returns twice the relative error, so that equal divergences are within it. The 2D sums, each to 3·2⁻¹⁰⁶ of 66 KL at most, make D·2⁻⁹⁷,
   * and the terms {@code 2⁻⁸⁴·⁷ + 66·2⁻⁹⁶ + 2⁻⁹⁷/f < 2⁻⁸⁴}. Where {@link #setExcess} reaches only 2⁻⁹⁷, {@code ½ Σ|x| 2⁻⁹⁷ < 2⁻⁹⁶ √(D KL)}
   * come on top.
   */
  public static double tolerance(int dimension) {
    return (dimension + 8192.0) * 0x1p-96;
  }

  /** Returns the divergence rounded to nearest where that is decided in less time, or NaN. */
  double rounded(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return Double.NaN;
  }

  /** Drops the caller's batches. */
  void clear() {}

  /** Computes the divergence of q_i and p_j, a positive normal number; returns false if log-variances are beyond ±10⁵. */
  public final boolean compute(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    sum.set(0);
    startSum();
    int d = q.dimension();
    int a = i * d;
    int b = j * d;
    for (int h = 0; h < d; h++) {
      if (!addTerm(
          q.kind(), q.mean(a + h), q.scale(a + h), p.kind(), p.mean(b + h), p.scale(b + h))) {
        return false;
      }
    }
    finishSum();
    value = sum.toDouble();
    rest = sum.low() / sum.high();
    return value > 0;
  }

  /** Sets what a formula has beside the sum. */
  void startSum() {}

  /** Adds a dimension's part to {@link #sum}, or to what {@link #finishSum} adds at once; returns false where it cannot be held. */
  abstract boolean addTerm(Scale kind, double mq, double sq, Scale other, double mp, double sp);

  /** Makes the sum the divergence. */
  abstract void finishSum();

  /**
   * Sets x. If both batches state their scales in one way, or as σ and σ², x is a difference of exact numbers and accurate however small it
   * is; otherwise 1 + x is, to 2⁻⁹⁷.
   */
  final void setExcess(Scale kind, double sq, Scale other, double sp) {
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
   * Sets x = σq²/σp² − 1 of the greater variance and the smaller, which are q's and p's from here on, so that exchanging q and p changes no
   * bit; returns false where one cannot be held.
   */
  final boolean setOrdered(Scale kind, double sq, Scale other, double sp) {
    vq.set(kind, sq);
    vp.set(other, sp);
    if (!vq.isHeld() || !vp.isHeld()) {
      return false;
    }
    if (isLess(vq, vp)) {
      vq.set(other, sp);
      vp.set(kind, sq);
      setAnyExcess(other, sp, kind, sq);
    } else {
      setAnyExcess(kind, sq, other, sp);
    }
    return true;
  }

  private static boolean isLess(Variance a, Variance b) {
    return a.exponent() != b.exponent()
        ? a.exponent() < b.exponent()
        : a.high() != b.high() ? a.high() < b.high() : a.low() < b.low();
  }

  /** Sets x, of any size, and 1 + x to 2⁻⁹⁶; vq and vp are set. */
  final void setAnyExcess(Scale kind, double sq, Scale other, double sp) {
    x.set(vq);
    x.divide(vp);
    ratio.set(x);
    if (Math.abs(x.toDouble() - 1) < MOST_IN_SERIES) {
      setExcess(kind, sq, other, sp);
    } else {
      x.add(-1);
    }
  }

  /**
   * Replaces y by {@code f(y) = y − ln(1+y) = y − 2 artanh z = z (y − 2 (z²/3 + z⁴/5 + z⁶/7 + …))} with {@code z = y/(2 + y)}. The powers
   * from {@code z⁶} on, at most 2⁻³²·⁷ of it, are in double; those left out make 2⁻⁹³.
   */
  final void lessLog(DoubleDouble y) {
    w.set(y);
    w.add(2);
    z.set(y);
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
    y.subtract(series);
    y.multiply(z);
  }

  /** Replaces a product by its logarithm. */
  final void log(DoubleDouble product) {
    product.log(w);
  }
}
