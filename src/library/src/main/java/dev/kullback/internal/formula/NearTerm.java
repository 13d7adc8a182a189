package dev.kullback.internal.formula;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.numerics.Scale;

/** Terms that near forms sum up, {@code square + H}, with H of {@link NearSeries} and w the weight of q's variance. */
public enum NearTerm {
  /** {@code square = d²/vp}. */
  KL,
  /** {@code square = d² (1/vq + 1/vp)}, with H of w = 0 and w = 1 together, {@code (vq − vp)²/(vq vp)}. */
  JEFFREYS,
  /** {@code square = d²/(w vq + (1 − w) vp)}. */
  CHERNOFF;

  /** Whether the kernels of two batches' scales are others than those of most: of two kinds, and of KL in double of log-variances. */
  boolean isOfOtherKinds(DiagonalBatch q, DiagonalBatch p, boolean isDouble) {
    return q.kind() != p.kind() || (this == KL && isDouble && q.kind() == Scale.LOG_VARIANCE);
  }
}
