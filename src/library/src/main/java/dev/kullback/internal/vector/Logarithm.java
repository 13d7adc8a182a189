package dev.kullback.internal.vector;

/**
 * Logarithm of a product that is kept as {@code m·2^e}, 1 ≤ m < 2: with {@code z = (m − c)/(m + c)}, c about √2, it is {@code e ln 2 + ln c +
 * 2 artanh z}, and |z| is at most 0.172. Its error is below 4 units of 2⁻⁵³, and one of the result.
 */
final class Logarithm {
  /** The constant c. */
  static final double MIDDLE = Math.sqrt(2);

  static final double LN_MIDDLE = 0.3465735902799727;

  /** The sum ln 2, of which the first part has 32 bits. */
  static final double LN2_HIGH = 0x1.62e42feep-1;

  static final double LN2_LOW = 0x1.a39ef35793c76p-33;

  private Logarithm() {}

  /** Returns a coefficient of {@code 2 artanh z = Σ_n of(n) z^(2n+1)}; of n = 10 on they are less than 2⁻⁵⁶ of the sum. */
  static double of(int n) {
    return 2.0 / (2 * n + 1);
  }

  /** Returns {@code weight·r + ln(m·2^e) + offset} by the operations of a lane of {@code MeasureMicroKernels.addLogarithms}. */
  static double add(double r, double weight, double m, double e, double offset) {
    double z = (m - MIDDLE) / (m + MIDDLE);
    double w = z * z;
    double p = of(9);
    for (int n = 8; n >= 0; n--) {
      p = Math.fma(p, w, of(n));
    }
    p = Math.fma(p, z, Math.fma(e, LN2_LOW, LN_MIDDLE));
    p = Math.fma(e, LN2_HIGH, p);
    return Math.fma(r, weight, p + offset);
  }
}
