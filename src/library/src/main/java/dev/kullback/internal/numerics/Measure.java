package dev.kullback.internal.numerics;

/**
 * A divergence as kernels know it.
 *
 * @param alpha the order of {@link Family#CHERNOFF}, {@link Family#RENYI} and {@link Family#HELLINGER}, which is ½; 0 for others
 */
public record Measure(Family family, double alpha) {
  /** Formulas, each with a scalar kernel of its own. */
  public enum Family {
    KL,
    /** KL(p ‖ q). */
    REVERSE_KL,
    JEFFREYS,
    /** {@code −ln ∫ q^α p^(1−α)}; with α = ½ the Bhattacharyya distance. */
    CHERNOFF,
    /** Chernoff's divided by 1 − α. */
    RENYI,
    /** {@code √(1 − e^−B)} of the Bhattacharyya distance B. */
    HELLINGER,
    /** The squared distance. */
    WASSERSTEIN_2
  }

  public static final Measure KL = new Measure(Family.KL, 0);
  public static final Measure REVERSE_KL = new Measure(Family.REVERSE_KL, 0);
  public static final Measure JEFFREYS = new Measure(Family.JEFFREYS, 0);
  public static final Measure BHATTACHARYYA = new Measure(Family.CHERNOFF, 0.5);
  public static final Measure HELLINGER = new Measure(Family.HELLINGER, 0.5);
  public static final Measure WASSERSTEIN_2 = new Measure(Family.WASSERSTEIN_2, 0);

  public boolean isReverse() {
    return family == Family.REVERSE_KL;
  }

  /** Returns what a measure with an order makes of Chernoff's divergence. */
  public double ofChernoff(double c) {
    return switch (family) {
      case RENYI -> c / (1 - alpha);
      case HELLINGER -> Math.sqrt(-Math.expm1(-c));
      default -> c;
    };
  }

  /** Whether it is KL, in either direction: what the fast kernels compute. */
  public boolean isKl() {
    return family == Family.KL || isReverse();
  }
}
