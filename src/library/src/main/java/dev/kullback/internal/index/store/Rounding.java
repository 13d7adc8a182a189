package dev.kullback.internal.index.store;

/** Rounds to float on the safe side. */
public final class Rounding {
  /** More than the relative error with which double computes a variance or precision of a scale. */
  private static final double ERROR = 0x1p-50;

  /** More than double may lose beside a logarithm or a dimension, and than the 10⁻¹³ that a computed divergence may differ from the exact one. */
  public static final double NOISE = 0x1p-40;

  private Rounding() {}

  /**
   * Returns the greatest float that is certainly at most a variance or precision, of which double computed x ≥ 0; at most float's greatest
   * number.
   */
  public static float down(double x) {
    double least = Math.min(x * (1 - ERROR), Float.MAX_VALUE);
    float y = (float) least;
    return y > least ? Math.nextDown(y) : y;
  }

  /**
   * Whether {@link #down} is within 2⁻²³ of the exact number, relatively, and no {@link
   * dev.kullback.internal.batch.DiagonalBatch#beyond32} has to tell of it.
   */
  public static boolean isOrdinary(double x) {
    return x >= 0x1p-99 && x <= 0x1p99;
  }

  /** Returns a float that is at least x ≥ 0; ∞ for NaN. */
  public static float up(double x) {
    if (Double.isNaN(x)) {
      return Float.POSITIVE_INFINITY;
    }
    float y = (float) x;
    return y < x ? Math.nextUp(y) : y;
  }

  /** Bounds the factor by which a norm of {@code dimension} dimensions, computed in double, may be too small. */
  public static double more(int dimension) {
    return 1 + (dimension + 8) * 0x1p-53;
  }

  /** Bounds the error of twice a reference's Σ ln σ, of which the own error is known. */
  public static double logError(double log, double bound) {
    return 2 * (bound + NOISE * Math.abs(log));
  }
}
