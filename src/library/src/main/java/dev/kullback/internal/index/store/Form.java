package dev.kullback.internal.index.store;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Scale;
import org.jspecify.annotations.Nullable;

/** What a segment holds of its Gaussians' scales, as these were given. Files have their numbers, in this order. */
public enum Form {
  STD(Scale.STD),
  VARIANCE(Scale.VARIANCE),
  LOG_VARIANCE(Scale.LOG_VARIANCE),
  PRECISION(Scale.PRECISION),
  /** Factors L of full covariances that the caller gave, packed. */
  FACTOR(null),
  /** Factors that were computed, each followed by the parts that rounding to double took from it. */
  COMPUTED_FACTOR(null);

  private final @Nullable Scale scale;

  Form(@Nullable Scale scale) {
    this.scale = scale;
  }

  /** Returns that of a batch. */
  static Form of(Batch batch) {
    return switch (batch) {
      case DiagonalBatch diagonal -> of(diagonal.kind());
      case FullBatch full -> full.scaleTrilLow() == null ? FACTOR : COMPUTED_FACTOR;
      case LowRankBatch _ -> throw new AssertionError("refused by KlIndex");
    };
  }

  private static Form of(Scale kind) {
    return switch (kind) {
      case STD -> STD;
      case VARIANCE -> VARIANCE;
      case LOG_VARIANCE -> LOG_VARIANCE;
      case PRECISION -> PRECISION;
    };
  }

  /** Whether it is of full covariances, which are held in double. */
  public boolean isFull() {
    return scale == null;
  }

  /** What scales that are diagonal state. */
  Scale scale() {
    if (scale == null) {
      throw new IllegalStateException("not diagonal");
    }
    return scale;
  }

  /** Whether a batch can have Gaussians of this form and of another. */
  boolean joins(Form other) {
    return scale == other.scale;
  }

  /** Returns how many numbers a Gaussian's scales are. */
  long length(int dimension) {
    return switch (this) {
      case STD, VARIANCE, LOG_VARIANCE, PRECISION -> dimension;
      case FACTOR -> Cholesky.packedLength(dimension);
      case COMPUTED_FACTOR -> 2L * Cholesky.packedLength(dimension);
    };
  }
}
