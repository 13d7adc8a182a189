package dev.kullback.internal.index.store;

import dev.kullback.internal.numerics.Scale;

/**
 * The numbers of a Gaussian that a segment's {@link Codes} hold, by what the index ranks by: its divergence is at least a squared distance
 * {@code A = Σ_c w_c (y_c − y'_c)²} of coordinates y, with weights w of the reference that are not negative, but for what the query alone decides.
 * Files have their numbers, in this order.
 */
public enum Coordinates {
  /** KL, and KL with the roles exchanged: a mean, with the precision as its weight. Beside codes, a segment has panels of floats. */
  KL,
  /** The Wasserstein distance or its square: a mean and a standard deviation, of one weight, which makes A the square. */
  WASSERSTEIN_2,
  /**
   * Jeffreys' divergence J, as {@code 1/v + 1/v' ≥ 2/(σσ')} and {@code |2 sinh x| ≥ |2x|}: {@code 2J ≥ A = Σ 2d²/(σσ') + Σ (2 ln σ − 2 ln
   * σ')²}. A mean, with 1/σ as its weight, and 2 ln σ, of weight 1.
   */
  JEFFREYS,
  /** Any other divergence, and all of full covariances, which codes do not bound. */
  NONE;

  /** Returns the coordinates for a divergence of this name of diagonal Gaussians, or of full covariances. */
  public static Coordinates of(String divergence, boolean isFull) {
    return isFull ? NONE : ofDiagonal(divergence);
  }

  private static Coordinates ofDiagonal(String divergence) {
    return switch (divergence) {
      case "kl", "reverse-kl" -> KL;
      case "wasserstein-2", "squared-wasserstein-2" -> WASSERSTEIN_2;
      case "jeffreys" -> JEFFREYS;
      default -> NONE;
    };
  }

  /** Returns how many coordinates a Gaussian of D dimensions has. */
  int count(int dimension) {
    return switch (this) {
      case KL -> dimension;
      case WASSERSTEIN_2, JEFFREYS -> 2 * dimension;
      case NONE -> 0;
    };
  }

  /** Returns the dimension, of the order of a segment, that a coordinate belongs to. */
  public int dimension(int c) {
    return this == KL ? c : c / 2;
  }

  /** Whether a coordinate is a mean. */
  public boolean isMean(int c) {
    return this == KL || c % 2 == 0;
  }

  /** Returns the coordinate that a scale makes, to some roundings. */
  public double ofScale(Scale kind, double s) {
    return this == JEFFREYS ? kind.logVariance(s) : kind.std(s);
  }
}
