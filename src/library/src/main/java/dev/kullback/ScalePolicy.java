package dev.kullback;

/** What the factories of {@link DiagonalGaussians} do with scales outside (0, ∞). NaN and infinities are always an error. */
public enum ScalePolicy {
  /** The default: σ ≤ 0 is an {@link IllegalArgumentException}. */
  STRICT,

  /**
   * The clamps usual in VAE code: std raised to at least 1e-8 (so variance to 1e-16, and precision lowered to at most 1e16; a
   * precision ≤ 0 stays an error), log-variance clamped to [−30, 20].
   */
  CLAMPED,

  /**
   * A batch whose std (or variance) is 0 throughout is accepted and called deterministic: every KL with it as {@code q} is
   * defined as 0, the convention of latent-diffusion code. It cannot be {@code p} unless {@code q} is deterministic too. A
   * batch in which only some scales are 0 is an error. Log-variances and precisions cannot state σ = 0; for them this is
   * {@link #STRICT}.
   */
  DETERMINISTIC_IF_ZERO
}
