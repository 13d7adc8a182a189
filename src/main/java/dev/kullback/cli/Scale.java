package dev.kullback.cli;

import dev.kullback.DiagonalGaussians;
import dev.kullback.ScalePolicy;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The ways to give a scale. */
enum Scale {
  STD("std"),
  VARIANCE("variance"),
  LOG_VARIANCE("log-variance"),
  PRECISION("precision");

  final String text;

  Scale(String text) {
    this.text = text;
  }

  DiagonalGaussians gaussians(
      MemorySegment mean, MemorySegment scale, int dimension, ValueLayout e, ScalePolicy policy) {
    return switch (this) {
      case STD -> DiagonalGaussians.ofStd(mean, scale, dimension, e, policy);
      case VARIANCE -> DiagonalGaussians.ofVariance(mean, scale, dimension, e, policy);
      case LOG_VARIANCE -> DiagonalGaussians.ofLogVariance(mean, scale, dimension, e, policy);
      case PRECISION -> DiagonalGaussians.ofPrecision(mean, scale, dimension, e, policy);
    };
  }
}
