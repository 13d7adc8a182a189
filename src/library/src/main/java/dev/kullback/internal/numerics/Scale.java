package dev.kullback.internal.numerics;

/**
 * How a batch states its scales. Each kind supplies what the kernels need from the raw value {@code s}, in a form that does
 * not cancel when two values are close.
 */
public enum Scale {
  STD("std") {
    @Override
    public double variance(double s) {
      return s * s;
    }

    @Override
    public double logRatio(double q, double p) {
      return 2 * logQuotient(q, p);
    }

    @Override
    public double excess(double q, double p) {
      double a = (q - p) / p;
      return a * (a + 2);
    }

    @Override
    public double standardize(double d, double s) {
      return d / s;
    }
  },
  VARIANCE("variance") {
    @Override
    public double variance(double s) {
      return s;
    }

    @Override
    public double logRatio(double q, double p) {
      return logQuotient(q, p);
    }

    @Override
    public double excess(double q, double p) {
      return (q - p) / p;
    }

    @Override
    public double standardize(double d, double s) {
      return d / Math.sqrt(s);
    }
  },
  LOG_VARIANCE("logVariance") {
    @Override
    public double variance(double s) {
      return Math.exp(s);
    }

    @Override
    public double logRatio(double q, double p) {
      return q - p;
    }

    @Override
    public double excess(double q, double p) {
      double d = q - p;
      double x = Math.expm1(d);
      // the rounding of a large d would show
      return d > -100 && x <= Double.MAX_VALUE ? x + (1 + x) * Compensation.error(q, -p, d) : x;
    }

    @Override
    public double standardize(double d, double s) {
      // d exp(-s/2) in two steps: exp(-s/2) alone can overflow where the product does not
      double h = Math.exp(-0.25 * s);
      return d == 0 ? 0 : d * h * h;
    }
  },
  PRECISION("precision") {
    @Override
    public double variance(double s) {
      return 1 / s;
    }

    @Override
    public double logRatio(double q, double p) {
      return logQuotient(p, q);
    }

    @Override
    public double excess(double q, double p) {
      return (p - q) / q;
    }

    @Override
    public double standardize(double d, double s) {
      return d * Math.sqrt(s);
    }
  };

  /** The argument's name in the public factories, used in messages. */
  public final String argument;

  Scale(String argument) {
    this.argument = argument;
  }

  /** σ². */
  public abstract double variance(double s);

  /** ln σ². */
  public double logVariance(double s) {
    return logRatio(s, unit());
  }

  /** ln(σq²/σp²). */
  public abstract double logRatio(double q, double p);

  /** σq²/σp² − 1, to a relative error of a few roundings however close the two are. */
  public abstract double excess(double q, double p);

  /** d/σ. */
  public abstract double standardize(double d, double s);

  private static double logQuotient(double a, double b) {
    double r = a / b;
    return r > 0x1p-1000 && r < 0x1p1000 ? Math.log(r) : Math.log(a) - Math.log(b);
  }

  /** Applies {@link ScalePolicy#CLAMPED}; NaN, infinities and precisions ≤ 0 are left to be rejected. */
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
