package dev.kullback.internal.numerics;

/**
 * Mathematics of the scales of a diagonal batch, by what the batch states: supplies what the kernels need from the raw value
 * {@code s}, in a form that does not cancel when two values are close.
 */
public enum Scale implements ScaleForm {
  STD("std"),
  VARIANCE("variance"),
  LOG_VARIANCE("logVariance"),
  PRECISION("precision");

  private final String argument;

  Scale(String argument) {
    this.argument = argument;
  }

  @Override
  public String argument() {
    return argument;
  }

  /** Returns the name of the {@code ScaleKind} of matrices in this place; empty if there is none. */
  public String matrices() {
    return switch (this) {
      case STD -> "SCALE_TRIL";
      case VARIANCE -> "COVARIANCE";
      case LOG_VARIANCE -> "";
      case PRECISION -> "PRECISION_MATRIX";
    };
  }

  /** Whether it can state {@code σ = 0}, by 0. */
  public boolean hasZero() {
    return this == STD || this == VARIANCE;
  }

  /** Whether σ is 0. */
  public boolean isZero(double s) {
    return s == 0 && hasZero();
  }

  /** σ². */
  public double variance(double s) {
    return switch (this) {
      case STD -> s * s;
      case VARIANCE -> s;
      case LOG_VARIANCE -> Math.exp(s);
      case PRECISION -> 1 / s;
    };
  }

  /** σ, which is in range wherever s is. */
  public double std(double s) {
    return switch (this) {
      case STD -> s;
      case VARIANCE -> Math.sqrt(s);
      case LOG_VARIANCE -> Math.exp(0.5 * s);
      case PRECISION -> 1 / Math.sqrt(s);
    };
  }

  /** ln σ². */
  public double logVariance(double s) {
    return logRatio(s, unit());
  }

  /** ln(σq²/σp²). */
  public double logRatio(double q, double p) {
    return switch (this) {
      case STD -> 2 * logQuotient(q, p);
      case VARIANCE -> logQuotient(q, p);
      case LOG_VARIANCE -> q - p;
      case PRECISION -> logQuotient(p, q);
    };
  }

  private static double logQuotient(double a, double b) {
    double r = a / b;
    return r > 0x1p-1000 && r < 0x1p1000 ? Math.log(r) : Math.log(a) - Math.log(b);
  }

  /** σq²/σp² − 1, to a relative error of a few roundings however close the two are. */
  public double excess(double q, double p) {
    return switch (this) {
      case STD -> {
        double a = (q - p) / p;
        yield a * (a + 2);
      }
      case VARIANCE -> (q - p) / p;
      case LOG_VARIANCE -> {
        double d = q - p;
        double x = Math.expm1(d);
        // the rounding of a large d would show
        yield d > -100 && x <= Double.MAX_VALUE ? x + (1 + x) * Compensation.error(q, -p, d) : x;
      }
      case PRECISION -> (p - q) / q;
    };
  }

  /** ½ σq²/σp², where that is far above 1: it overflows only if its value does. */
  public double halfRatio(double q, double p) {
    return switch (this) {
      case STD -> {
        double r = q / p;
        yield 0.5 * r * r;
      }
      case VARIANCE -> 0.5 * q / p;
      case LOG_VARIANCE -> {
        double d = q - p;
        double r = Math.exp(0.5 * d);
        yield 0.5 * r * r * (1 + Compensation.error(q, -p, d));
      }
      case PRECISION -> 0.5 * p / q;
    };
  }

  /** d/σ. */
  public double standardize(double d, double s) {
    return switch (this) {
      case STD -> d / s;
      case VARIANCE -> d / Math.sqrt(s);
      case LOG_VARIANCE -> {
        // d exp(-s/2) in two steps: exp(-s/2) alone can overflow where the product does not
        double h = Math.exp(-0.25 * s);
        yield d == 0 ? 0 : d * h * h;
      }
      case PRECISION -> d * Math.sqrt(s);
    };
  }

  /** (a − b)/σ, where a − b may overflow. */
  public double standardize(double a, double b, double s) {
    double d = a - b;
    return Math.abs(d) <= Double.MAX_VALUE
        ? standardize(d, s)
        : 2 * standardize(0.5 * a - 0.5 * b, s);
  }

  /** Raises σ to 1e-8 and clamps log-variances; leaves NaN, infinities and precisions ≤ 0 to be rejected. */
  public double clamp(double s) {
    if (Double.isInfinite(s)) {
      return s;
    }
    return switch (this) {
      case STD -> s < 1e-8 ? 1e-8 : s;
      case VARIANCE -> s < 1e-16 ? 1e-16 : s;
      case LOG_VARIANCE -> Math.clamp(s, -30.0, 20.0);
      case PRECISION -> s > 1e16 ? 1e16 : s;
    };
  }

  /** The raw value that bounds a range of variances symmetric about 1, such as [2⁻¹⁰⁰, 2¹⁰⁰], at the given variance. */
  public double bound(double variance) {
    return switch (this) {
      case STD -> Math.sqrt(variance);
      case VARIANCE, PRECISION -> variance;
      case LOG_VARIANCE -> Math.log(variance);
    };
  }

  /** The raw value whose σ is 1. */
  public double unit() {
    return this == LOG_VARIANCE ? 0 : 1;
  }
}
