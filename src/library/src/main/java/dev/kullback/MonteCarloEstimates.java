package dev.kullback;

/**
 * Estimates of {@code KL(q_i ‖ p_i)}, in nats, from samples of q_i, with their standard errors.
 * {@link KlEngine#monteCarlo} and, of mixtures, {@link MixtureKl#monteCarlo} return them.
 *
 * @since 0.1.0
 */
public final class MonteCarloEstimates {
  private final int samples;
  private final double[] estimates;
  private final double[] standardErrors;

  MonteCarloEstimates(int samples, double[] estimates, double[] standardErrors) {
    this.samples = samples;
    this.estimates = estimates;
    this.standardErrors = standardErrors;
  }

  /** {@return the number N of pairs} */
  public int size() {
    return estimates.length;
  }

  /**
   * {@return the estimate of {@code KL(q_i ‖ p_i)}, in nats} It is unbiased, so it may be negative.
   *
   * @param i the pair, in [0, N)
   * @throws IndexOutOfBoundsException if i is not in [0, N)
   */
  public double estimate(int i) {
    return of(estimates, i);
  }

  /**
   * {@return the standard error of {@code estimate(i)}, in nats} It is itself estimated from the samples: the root of
   * the sum of their variance over S and the square of a bound on what rounding does. The bound is some 1e-11 of the
   * whole at S = 1000, more where a covariance is ill-conditioned, and all of it where the samples do not differ.
   *
   * @param i the pair, in [0, N)
   * @throws IndexOutOfBoundsException if i is not in [0, N)
   */
  public double standardError(int i) {
    return of(standardErrors, i);
  }

  @Override
  public String toString() {
    return "MonteCarloEstimates[%d pairs, %d samples]".formatted(size(), samples);
  }

  private static double of(double[] values, int i) {
    if (i < 0 || i >= values.length) {
      throw new IndexOutOfBoundsException(
          "pair i is %d; it must be in [0, %d)".formatted(i, values.length));
    }
    return values[i];
  }
}
