package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.work.Worker;

/** KL(q ‖ p), or {@code KL(p ‖ q)}: of diagonal Gaussians by {@link PairKl}, of others by {@link FullPair}. */
public final class Kl extends Formula {
  public static final Kl FORWARD = new Kl();
  public static final Kl REVERSE = new Kl();

  private Kl() {}

  /** Returns the divergence with the roles of q and p exchanged. */
  public Kl reversed() {
    return this == FORWARD ? REVERSE : FORWARD;
  }

  @Override
  public Formula forward() {
    return FORWARD;
  }

  @Override
  double term(ScaleRatio scales, double mq, double mp) {
    throw new AssertionError("PairKl has the loop over the terms, too");
  }

  @Override
  double stable(ScaleRatio scales, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return PairKl.stable(q, i, p, j);
  }

  @Override
  double fast(ScaleRatio scales, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return PairKl.of(q, i, p, j);
  }

  @Override
  double precise(ScaleRatio scales, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return PairKl.precise(q, i, p, j);
  }

  @Override
  double standard(Batch q, int i) {
    return switch (q) {
      case DiagonalBatch d -> PairKl.standard(d, i);
      case FullBatch f -> FullPair.standard(f, i);
    };
  }

  @Override
  Unrounded exact() {
    return new DoubleDoubleKl();
  }

  @Override
  Full full(Worker worker) {
    return new FullPair(worker);
  }

  @Override
  public boolean isSymmetric() {
    return false;
  }

  @Override
  public boolean hasDeterministic() {
    return true;
  }

  @Override
  public boolean hasDevice() {
    return this == FORWARD;
  }

  @Override
  public FullKernel fullKernel() {
    return FullKernel.PRODUCT;
  }
}
