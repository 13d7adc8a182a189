package dev.kullback.spark;

import dev.kullback.DiagonalGaussians;
import dev.kullback.FullGaussians;
import dev.kullback.Gaussians;

/** What the column of scales holds, in the library's terms. */
enum Scale {
  STD("std"),
  VARIANCE("variance"),
  LOG_VARIANCE("log-variance"),
  PRECISION("precision"),
  SCALE_TRIL("scale-tril"),
  COVARIANCE("covariance");

  /** In messages. */
  final String text;

  Scale(String text) {
    this.text = text;
  }

  /** The elements of one Gaussian's array. */
  int length(int dimension) {
    return isFull() ? Math.multiplyExact(dimension, dimension) : dimension;
  }

  private boolean isFull() {
    return this == SCALE_TRIL || this == COVARIANCE;
  }

  Gaussians batch(float[] mean, float[] scale, int dimension) {
    return switch (this) {
      case STD -> DiagonalGaussians.ofStd(mean, scale, dimension);
      case VARIANCE -> DiagonalGaussians.ofVariance(mean, scale, dimension);
      case LOG_VARIANCE -> DiagonalGaussians.ofLogVariance(mean, scale, dimension);
      case PRECISION -> DiagonalGaussians.ofPrecision(mean, scale, dimension);
      case SCALE_TRIL -> FullGaussians.ofScaleTril(mean, scale, dimension);
      case COVARIANCE -> FullGaussians.ofCovariance(mean, scale, dimension);
    };
  }

  Gaussians batch(double[] mean, double[] scale, int dimension) {
    return switch (this) {
      case STD -> DiagonalGaussians.ofStd(mean, scale, dimension);
      case VARIANCE -> DiagonalGaussians.ofVariance(mean, scale, dimension);
      case LOG_VARIANCE -> DiagonalGaussians.ofLogVariance(mean, scale, dimension);
      case PRECISION -> DiagonalGaussians.ofPrecision(mean, scale, dimension);
      case SCALE_TRIL -> FullGaussians.ofScaleTril(mean, scale, dimension);
      case COVARIANCE -> FullGaussians.ofCovariance(mean, scale, dimension);
    };
  }
}
