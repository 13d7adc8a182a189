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

  /** The estimate of {@code KL(q_i ‖ p_i)}: unbiased, so it may be negative. */
  public double estimate(int i) {
    return estimates[i];
  }

  /**
   * The standard error of {@code estimate(i)}, itself estimated from the samples: the root of their variance over S and of the square of
   * what rounding may have done, a bound found with some of the samples. The second part is less than 1e-9 of the first unless an ill-conditioned
   * covariance or a dimension of millions makes it more, and all there is where the samples do not differ.
   */
  public double standardError(int i) {
    return standardErrors[i];
  }
}
