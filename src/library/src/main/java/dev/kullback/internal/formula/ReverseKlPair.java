package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.work.Worker;

/** Computes KL(p_j ‖ q_i): {@link KlPair} with the roles exchanged. */
final class ReverseKlPair extends Pair {
  private final KlPair kl;

  ReverseKlPair(Worker worker) {
    super(worker);
    kl = new KlPair(worker);
  }

  @Override
  public void clear() {
    kl.clear();
  }

  @Override
  public double of(Batch q, int i, Batch p, int j) {
    return kl.of(p, j, q, i);
  }

  @Override
  public void block(
      Operands<?> operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    throw new AssertionError("not the pair of kernels");
  }

  @Override
  public double stable(Batch q, int i, Batch p, int j) {
    return kl.stable(p, j, q, i);
  }

  @Override
  public double toStandardNormal(Batch q, int i) {
    DiagonalBatch normal = normal(q);
    return kl.of(normal, 0, q, i);
  }

  @Override
  public double precise(Batch q, int i, Batch p, int j) {
    return kl.precise(p, j, q, i);
  }

  @Override
  public Unrounded exact(Batch q, int i, Batch p, int j, double value) {
    return kl.exact(p, j, q, i, value);
  }

  @Override
  public Unrounded lastExact() {
    return kl.lastExact();
  }

  @Override
  public double rounded(Batch q, int i, Batch p, int j) {
    return kl.rounded(p, j, q, i);
  }

  @Override
  public boolean isPreciseFaster(Batch q, Batch p) {
    return kl.isPreciseFaster(p, q);
  }

  @Override
  public double tolerance(int dimension) {
    return kl.tolerance(dimension);
  }
}
