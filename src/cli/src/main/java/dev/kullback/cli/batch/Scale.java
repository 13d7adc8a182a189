package dev.kullback.cli.batch;

import dev.kullback.DiagonalGaussians;
import dev.kullback.FullGaussians;
import dev.kullback.Gaussians;
import dev.kullback.ScalePolicy;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The ways to give a scale, in the order of {@link BatchOptions}. */
public enum Scale {
  STD("std", "std"),
  VARIANCE("variance", "var"),
  LOG_VARIANCE("log-variance", "logvar"),
  PRECISION("precision", "precision"),
  SCALE_TRIL("scale-tril", "scale-tril"),
  PACKED_TRIL("packed-tril", "packed-tril"),
  COVARIANCE("covariance", "cov");

  public final String text;

  /** The option's name, but for its prefix. */
  public final String option;

  Scale(String text, String option) {
    this.text = text;
    this.option = option;
  }

  /** Whether a Gaussian has a matrix instead of a vector of scales. */
  boolean isFull() {
    return this == SCALE_TRIL || this == PACKED_TRIL || this == COVARIANCE;
  }

  /** The shape of the scales of a batch of [size, dimension] means. */
  public long[] shape(long size, long dimension) {
    return switch (this) {
      case STD, VARIANCE, LOG_VARIANCE, PRECISION -> new long[] {size, dimension};
      case SCALE_TRIL, COVARIANCE -> new long[] {size, dimension, dimension};
      case PACKED_TRIL -> new long[] {size, dimension * (dimension + 1) / 2};
    };
  }

  public Gaussians gaussians(
      MemorySegment mean, MemorySegment scale, int dimension, ValueLayout e, ScalePolicy policy) {
    return switch (this) {
      case STD -> DiagonalGaussians.ofStd(mean, scale, dimension, e, policy);
      case VARIANCE -> DiagonalGaussians.ofVariance(mean, scale, dimension, e, policy);
      case LOG_VARIANCE -> DiagonalGaussians.ofLogVariance(mean, scale, dimension, e, policy);
      case PRECISION -> DiagonalGaussians.ofPrecision(mean, scale, dimension, e, policy);
      case SCALE_TRIL -> FullGaussians.ofScaleTril(mean, scale, dimension, e);
      case PACKED_TRIL -> FullGaussians.ofPackedScaleTril(mean, scale, dimension, e, true);
      case COVARIANCE -> FullGaussians.ofCovariance(mean, scale, dimension, e);
    };
  }
}
