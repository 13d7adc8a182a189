package dev.kullback.internal.numerics;

/**
 * σ² in twice double's precision, for the difference of variances that are close but stated in different ways: rounding to double would
 * swamp it. It is exact if made of σ or σ²; its relative error is 2⁻¹⁰⁵ if made of 1/σ², and 2⁻⁹⁸ if made of ln σ².
 */
public final class Variance extends DoubleDouble {
  /** Exponent that stands for a variance too large or, negated, too small to be held. */
  private static final int BEYOND = 1 << 20;

  /** Least square of a double whose rounding error is one. */
  private static final double LEAST_SQUARE = 0x1p-900;

  public void set(Scale kind, double s) {
    switch (kind) {
      case STD -> {
        set(s);
        multiply(this);
      }
      case VARIANCE -> set(s);
      case LOG_VARIANCE -> {
        if (Math.abs(s) <= 1e5) {
          set(s);
          exp();
        } else { // far beyond every other kind
          set(1);
          scale(s > 0 ? BEYOND : -BEYOND);
        }
      }
      case PRECISION -> setInverse(s);
    }
  }

  /** Returns σ², rounded once; below double's normal range, that of a log-variance is rounded twice. */
  public static double rounded(Scale kind, double s) {
    if (kind != Scale.LOG_VARIANCE) {
      return kind.variance(s);
    }
    Variance v = new Variance();
    v.set(kind, s);
    return v.toDouble();
  }

  /**
   * Whether two scales state one variance. Of two kinds, no other logarithm than 0 and no inverse but a power of 2 states one that is a square or a number of
   * double; squares beyond double's range are told apart from all.
   */
  public static boolean areEqual(Scale kindQ, double sq, Scale kindP, double sp) {
    if (kindQ == kindP) {
      return sq == sp;
    }
    double q = exact(kindQ, sq);
    return q == exact(kindP, sp) && rest(kindQ, sq, q) == rest(kindP, sp, q);
  }

  /** Whether twice double's digits hold σ². */
  public static boolean isExact(Scale kind, double s) {
    return !Double.isNaN(exact(kind, s));
  }

  /** Returns σ² rounded to double, NaN where twice its digits do not hold it. */
  private static double exact(Scale kind, double s) {
    double square = s * s;
    return switch (kind) {
      case STD -> square >= LEAST_SQUARE && square < Double.POSITIVE_INFINITY ? square : Double.NaN;
      case VARIANCE -> s;
      case LOG_VARIANCE -> s == 0 ? 1 : Double.NaN;
      case PRECISION -> Math.scalb(1.0, Math.getExponent(s)) == s ? 1 / s : Double.NaN;
    };
  }

  /** Returns what σ² has beyond that. */
  private static double rest(Scale kind, double s, double rounded) {
    return kind == Scale.STD ? Math.fma(s, s, -rounded) : 0;
  }

  /** Whether the exponent is the true one; it is not for log-variances far beyond what other kinds can state. */
  public boolean isHeld() {
    return Math.abs(exponent()) < BEYOND;
  }

  /** σq²/σp² − 1. */
  public static double excess(Variance q, Variance p) {
    int e = q.exponent() - p.exponent();
    if (Math.abs(e) > 4) {
      return timesPowerOf2(q.high() / p.high(), e) - 1;
    }
    return (timesPowerOf2(q.high(), e) - p.high() + (timesPowerOf2(q.low(), e) - p.low()))
        / p.high();
  }

  /** ½ σq²/σp², where that is far above 1. */
  public static double halfRatio(Variance q, Variance p) {
    return timesPowerOf2(0.5 * (q.high() / p.high()), q.exponent() - p.exponent());
  }

  /** Returns ln(σq²/σp²), where it is not near 0, of variances and the scales that they are made of. */
  public static double logRatio(
      Variance q, Scale kindQ, double sq, Variance p, Scale kindP, double sp) {
    return q.isHeld() && p.isHeld()
        ? Math.log(q.high() / p.high()) + (q.exponent() - p.exponent()) * LN2
        : kindQ.logVariance(sq) - kindP.logVariance(sp);
  }
}
