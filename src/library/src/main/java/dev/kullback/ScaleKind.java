package dev.kullback;

import dev.kullback.internal.numerics.Scale;

/** How the scales of diagonal Gaussians are stated, where a parameter says so. */
public enum ScaleKind {
  /** Standard deviations σ. */
  STD(Scale.STD),

  /** Variances σ². */
  VARIANCE(Scale.VARIANCE),

  /** Log-variances ln σ². */
  LOG_VARIANCE(Scale.LOG_VARIANCE),

  /** Precisions 1/σ². */
  PRECISION(Scale.PRECISION);

  final Scale scale;

  ScaleKind(Scale scale) {
    this.scale = scale;
  }
}
