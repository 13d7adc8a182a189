package dev.kullback.internal.formula;

import dev.kullback.internal.numerics.Compensation;
import dev.kullback.internal.numerics.DoubleDouble;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.Variance;

/**
 * Compares the variances of a dimension, the smaller one to the greater: {@code v ≤ V}. What it gives does not cancel however near they are,
 * does not overflow where they leave double's range, and is the same to the bit for p's and q's exchanged. For one thread.
 */
public final class ScaleRatio {
  /** Difference of log-variances beyond which v/V underflows, with room to spare. */
  private static final double MOST_LOG = 800;

  /** Working memory of comparisons of scales that are stated differently, {@link PairKl}'s as well. */
  final Variance first = new Variance();

  final Variance second = new Variance();
  private final DoubleDouble rest = new DoubleDouble();
  private final DoubleDouble weight = new DoubleDouble();

  /** Whether V is q's. */
  boolean isGreaterQ;

  /** v/V and 1 − v/V, each to some roundings; 0 and 1 where v/V underflows. */
  double ratio;

  double less;

  /** Scale of V and its kind, that of v and its kind. */
  private Scale kind = Scale.STD;

  private double greater;
  private Scale otherKind = Scale.STD;
  private double smaller;

  void compare(Scale kindQ, double sq, Scale kindP, double sp) {
    if (kindQ != kindP) {
      setMixed(kindQ, sq, kindP, sp);
      return;
    }
    order(kindQ == Scale.PRECISION ? sq <= sp : sq >= sp, kindQ, sq, kindP, sp);
    double high = greater;
    double low = smaller;
    switch (kindQ) {
      case STD -> {
        double r = low / high;
        less = (high - low) / high * (1 + r);
        ratio = r * r;
      }
      case VARIANCE -> {
        less = (high - low) / high;
        ratio = low / high;
      }
      case LOG_VARIANCE -> {
        double d = low - high;
        double e = Math.exp(d);
        double more = d > -MOST_LOG ? e * Compensation.error(low, -high, d) : 0;
        less = -Math.expm1(d) - more;
        ratio = e + more;
      }
      case PRECISION -> {
        less = (low - high) / low;
        ratio = high / low;
      }
    }
  }

  private void order(boolean isGreater, Scale kindQ, double sq, Scale kindP, double sp) {
    isGreaterQ = isGreater;
    kind = isGreater ? kindQ : kindP;
    greater = isGreater ? sq : sp;
    otherKind = isGreater ? kindP : kindQ;
    smaller = isGreater ? sp : sq;
  }

  /** Compares scales that are stated differently. */
  private void setMixed(Scale kindQ, double sq, Scale kindP, double sp) {
    boolean isZero = kindP.isZero(sp);
    if (isZero || kindQ.isZero(sq)) {
      order(isZero, kindQ, sq, kindP, sp);
      less = kindQ.isZero(sq) && isZero ? 0 : 1;
      ratio = 1 - less;
      return;
    }
    first.set(kindQ, sq);
    second.set(kindP, sp);
    double x = Variance.excess(first, second);
    order(x > 0 || (x == 0 && kindQ.compareTo(kindP) > 0), kindQ, sq, kindP, sp);
    Variance v = isGreaterQ ? second : first;
    Variance most = isGreaterQ ? first : second;
    less = -Variance.excess(v, most);
    ratio =
        less < 0.5
            ? 1 - less
            : DoubleDouble.timesPowerOf2(v.high() / most.high(), v.exponent() - most.exponent());
  }

  /** Returns {@code ln(V/v)}. */
  double log() {
    if (less < 0.5) {
      return -Math.log1p(-less);
    }
    if (kind == otherKind) {
      return kind.logRatio(greater, smaller);
    }
    Variance v = isGreaterQ ? second : first;
    Variance most = isGreaterQ ? first : second;
    return Variance.logRatio(most, kind, greater, v, otherKind, smaller);
  }

  /**
   * Returns {@code (α vp + (1 − α) vq)/vp} of an {@code α > 1}, to some roundings however much of it cancels. Log-variances beyond ±10⁵ are
   * taken for equal ones where they cancel.
   */
  double extrapolated(double alpha) {
    Scale kindQ = isGreaterQ ? kind : otherKind;
    Scale kindP = isGreaterQ ? otherKind : kind;
    first.set(kindQ, isGreaterQ ? greater : smaller);
    second.set(kindP, isGreaterQ ? smaller : greater);
    rest.set(first);
    rest.divide(second);
    rest.add(-1);
    weight.setDifference(1, alpha);
    rest.multiply(weight);
    rest.add(1);
    return rest.toDouble();
  }

  /** Returns {@code √V − √v}. */
  double stdDifference() {
    if (!(less > 0)) { // NaN of 0/0, where both are 0
      return 0;
    }
    return kind == Scale.STD && otherKind == Scale.STD
        ? greater - smaller
        : std() * (less / (1 + Math.sqrt(ratio)));
  }

  private double std() {
    return switch (kind) {
      case STD -> greater;
      case VARIANCE -> Math.sqrt(greater);
      case LOG_VARIANCE -> Math.exp(0.5 * greater);
      case PRECISION -> 1 / Math.sqrt(greater);
    };
  }

  /** Returns {@code (mq − mp)/√V}. */
  double standardize(double mq, double mp) {
    return kind.standardize(mq, mp, greater);
  }
}
