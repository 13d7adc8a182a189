package dev.kullback;

/**
 * {@code σ² = (high + low)·2^exponent} to some 100 bits, by error-free transformations (Dekker 1971): for the difference of
 * variances that are close but stated in different ways, which rounding to double would swamp.
 */
record Variance(double high, double low, int exponent) {
  /** Of the first two parts of ln 2, up to which they are exact. */
  static final int MOST_MULTIPLES = 1 << 20;

  static final double LN2_HIGH = 0x1.62e42fef00000p-1;
  static final double LN2_MIDDLE = 0x1.473de6af00000p-34;
  static final double LN2_LOW = 0x1.3c7673007e5edp-69;

  private static final int HALVINGS = 24;

  /** The exponent of a variance that is not told. */
  private static final int BEYOND = 1 << 20;

  static Variance of(Scale kind, double s) {
    return kind == Scale.LOG_VARIANCE ? exp(s) : power(kind, s);
  }

  private static Variance power(Scale kind, double s) {
    boolean subnormal = s < Double.MIN_NORMAL;
    double normal = subnormal ? s * 0x1p54 : s;
    int e = Math.getExponent(normal);
    double m = Math.scalb(normal, -e);
    e -= subnormal ? 54 : 0;
    return switch (kind) {
      case STD -> new Variance(m * m, Math.fma(m, m, -(m * m)), 2 * e);
      case PRECISION -> new Variance(1 / m, Math.fma(-(1 / m), m, 1) / m, -e);
      default -> new Variance(m, 0, e);
    };
  }

  /** By {@code s = k ln 2 + 2²⁴ r}, the series of {@code e^r − 1}, and {@code e^2r − 1 = 2p + p²} of {@code p = e^r − 1}. */
  private static Variance exp(double s) {
    if (Math.abs(s) > 1e5) { // far beyond every other kind
      return new Variance(1, 0, s > 0 ? BEYOND : -BEYOND);
    }
    double k = Math.rint(s / LN2_HIGH);
    double a = s - k * LN2_HIGH; // exact
    double b = k * LN2_MIDDLE;
    double r = a - b;
    double t = a - r;
    double rest = a - (r + t) + (t - b) - k * LN2_LOW;
    r = Math.scalb(r, -HALVINGS);
    rest = Math.scalb(rest, -HALVINGS);
    double square = r * r;
    double squareRest = Math.fma(r, r, -square) + 2 * r * rest;
    double tail = r * square * (1 / 6.0 + r / 24);
    double p = r + 0.5 * square;
    double low = r - p + 0.5 * square + (rest + 0.5 * squareRest + tail);
    for (int i = 0; i < HALVINGS; i++) {
      square = p * p;
      squareRest = Math.fma(p, p, -square) + 2 * p * low;
      double sum = 2 * p + square;
      double sumRest = 2 * p - sum + square + (2 * low + squareRest);
      p = sum + sumRest;
      low = sum - p + sumRest;
    }
    double high = 1 + p;
    return new Variance(high, 1 - high + p + low, (int) k);
  }

  /** False of a log-variance so great that other kinds have none like it. */
  boolean isHeld() {
    return Math.abs(exponent) < BEYOND;
  }

  /** σq²/σp² − 1. */
  static double excess(Variance q, Variance p) {
    int e = q.exponent - p.exponent;
    if (Math.abs(e) > 4) {
      return Math.scalb(q.high / p.high, e) - 1;
    }
    return (Math.scalb(q.high, e) - p.high + (Math.scalb(q.low, e) - p.low)) / p.high;
  }

  /** ln(σq²/σp²), where it is not near 0. */
  static double logRatio(Variance q, Variance p) {
    return Math.log(q.high / p.high) + (q.exponent - p.exponent) * (LN2_HIGH + LN2_MIDDLE);
  }
}
