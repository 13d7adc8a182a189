package dev.kullback;

/**
 * Choice of what {@link Gaussians#of(ScaleKind, float[], float[], int, ScalePolicy) Gaussians.of} does with scales of diagonal
 * Gaussians outside (0, ∞). NaN and infinities are always an error, an {@link InvalidGaussianException}.
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
   * {@code q} is defined as 0, the convention of latent-diffusion code; other divergences refuse it. It cannot be {@code p} unless {@code q} is
   * deterministic, too. A batch in which only some scales are 0 is an error. Log-variances and precisions cannot state
   * σ = 0; for them, this is the same as {@link #STRICT}.
   */
  DETERMINISTIC_IF_ZERO
}
