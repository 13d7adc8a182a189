package dev.kullback.spark;

import dev.kullback.DiagonalGaussians;
import dev.kullback.FullGaussians;
import dev.kullback.Gaussians;
import dev.kullback.ScaleKind;
import org.jspecify.annotations.Nullable;

/** What the column of scales holds. */
enum Scale {
  STD(ScaleKind.STD),
  VARIANCE(ScaleKind.VARIANCE),
  LOG_VARIANCE(ScaleKind.LOG_VARIANCE),
  PRECISION(ScaleKind.PRECISION),
  SCALE_TRIL(null),
  COVARIANCE(null);

  private final @Nullable ScaleKind diagonal;

  Scale(@Nullable ScaleKind diagonal) {
    this.diagonal = diagonal;
  }

  /** The elements of one Gaussian's array. */
  int length(int dimension) {
    return diagonal == null ? Math.multiplyExact(dimension, dimension) : dimension;
  }

  /** A batch, which may keep the arrays as its own. */
  Gaussians batch(float[] mean, float[] scale, int dimension) {
    if (diagonal != null) {
      return DiagonalGaussians.owning(mean, scale, dimension, diagonal);
    }
    return this == COVARIANCE
        ? FullGaussians.ofCovariance(mean, scale, dimension)
        : FullGaussians.ofScaleTril(mean, scale, dimension);
  }

  /** A batch, which may keep the arrays as its own. */
  Gaussians batch(double[] mean, double[] scale, int dimension) {
    if (diagonal != null) {
      return DiagonalGaussians.owning(mean, scale, dimension, diagonal);
    }
    return this == COVARIANCE
        ? FullGaussians.ofCovariance(mean, scale, dimension)
        : FullGaussians.ofScaleTril(mean, scale, dimension);
  }
}
