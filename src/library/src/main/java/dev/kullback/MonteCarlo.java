package dev.kullback;

/** Estimates of {@code KL(q_i ‖ p_i)}, in nats, from samples of q_i, with their standard errors. Made by {@link KlEngine#monteCarlo}. */
public final class MonteCarlo {
  private final int samples;
  private final double[] estimates;
  private final double[] standardErrors;

  MonteCarlo(int samples, double[] estimates, double[] standardErrors) {
    this.samples = samples;
    this.estimates = estimates;
    this.standardErrors = standardErrors;
  }

  /** Number N of pairs. */
  public int size() {
    return estimates.length;
  }

  /** Samples of each pair. */
  public int samples() {
    return samples;
  }

  /**
   * The estimate of {@code KL(q_i ‖ p_i)}: unbiased, so it may be negative.
   *
   * @throws IndexOutOfBoundsException if i is not in [0, N)
   */
  public double estimate(int i) {
    return of(estimates, i);
  }

  /**
   * The standard error of {@code estimate(i)}, itself estimated from the samples: the root of their variance over S, plus the square of
   * a bound on what rounding does. That is some 1e-11 of the whole at S = 1000, more where a covariance is ill-conditioned, and
   * all of it where the samples do not differ.
   *
   * @throws IndexOutOfBoundsException if i is not in [0, N)
   */
  public double standardError(int i) {
    return of(standardErrors, i);
  }

  private static double of(double[] values, int i) {
    if (i < 0 || i >= values.length) {
      throw new IndexOutOfBoundsException(
          "pair i is %d; it must be in [0, %d)".formatted(i, values.length));
    }
    return values[i];
  }
}
