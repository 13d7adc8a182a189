package dev.kullback;

/**
 * σ² in twice double's precision: for the difference of variances that are close but stated in different ways, which rounding to double
 * would swamp. Exact of σ and σ²; of 1/σ² with a relative error of 2⁻¹⁰⁵, of ln σ² with one of 2⁻⁹⁸.
 */
final class Variance extends DoubleDouble {
  /** Log-variances that {@link #exp} takes, far beyond every other kind. */
  private static final double MOST_LOG = 1e5;

  /** The exponent of a variance that is not told. */
  private static final int BEYOND = 1 << 20;

  static Variance of(Scale kind, double s) {
    Variance v = new Variance();
    v.set(kind, s);
    return v;
  }

  /** Whether it is more than a number far beyond every other. */
  static boolean isExact(Scale kind, double s) {
    return kind != Scale.LOG_VARIANCE || Math.abs(s) <= MOST_LOG;
  }

  void set(Scale kind, double s) {
    switch (kind) {
      case STD -> {
        set(s);
        multiply(this);
      }
      case VARIANCE -> set(s);
      case LOG_VARIANCE -> {
        if (isExact(kind, s)) {
          set(s);
          exp();
        } else {
          set(1);
          scale(s > 0 ? BEYOND : -BEYOND);
        }
      }
      case PRECISION -> setInverse(s);
    }
  }

  /** σq²/σp² − 1. */
  static double excess(Variance q, Variance p) {
    int e = q.exponent() - p.exponent();
    if (Math.abs(e) > 4) {
      return Math.scalb(q.high() / p.high(), e) - 1;
    }
    return (Math.scalb(q.high(), e) - p.high() + (Math.scalb(q.low(), e) - p.low())) / p.high();
  }

  /** ln(σq²/σp²), where it is not near 0. */
  static double logRatio(Variance q, Variance p) {
    return Math.log(q.high() / p.high()) + (q.exponent() - p.exponent()) * LN2;
  }
}
