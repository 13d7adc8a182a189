package dev.kullback;

/**
 * Choice of what {@link Gaussians#of(ScaleKind, float[], float[], int, ScalePolicy) Gaussians.of} does with scales of diagonal
 * Gaussians outside (0, ∞), and with singular covariances. NaN and infinities are always an error, an {@link InvalidGaussianException}.
 *
 * @since 0.1.0
 */
public enum ScalePolicy {
  /** The default: σ ≤ 0 is an error. */
  STRICT,

  /**
   * Scales are clamped as is usual in VAE code. A standard deviation is raised to at least 1e-8, so a variance is
   * raised to at least 1e-16 and a precision lowered to at most 1e16. A precision ≤ 0 stays an error. A log-variance is
   * clamped to [−30, 20].
   */
  CLAMPED,

  /**
   * A batch whose standard deviations or variances are all 0 is accepted and called deterministic. Every KL with it as
   * {@code q} is defined as 0, the convention of latent-diffusion code. It cannot be {@code p} unless {@code q} is deterministic, too. The
   * Wasserstein distance takes it as {@link #SEMIDEFINITE} does, and other divergences refuse it. A batch in which only some scales are 0 is
   * an error. Log-variances and precisions cannot state σ = 0; for them, this is the same as {@link #STRICT}.
   */
  DETERMINISTIC_IF_ZERO,

  /**
   * Gaussians without a variance in some directions are accepted, for {@link Divergence#WASSERSTEIN_2} and
   * {@link Divergence#SQUARED_WASSERSTEIN_2}, which need no inverse of a covariance: standard deviations and variances of 0, factors with
   * zeros on the diagonal, and covariances that are singular, as those of fewer samples than dimensions are. What the rounding of its
   * elements may have made of a singular covariance is taken as the one that it was, and one with a negative eigenvalue beyond that is an
   * error. Everything else refuses such a Gaussian, by an {@link InvalidGaussianException} that tells its rank. Log-variances and precisions
   * cannot state σ = 0; for them, this is the same as {@link #STRICT}, as it is for all other Gaussians.
   */
  SEMIDEFINITE
}
