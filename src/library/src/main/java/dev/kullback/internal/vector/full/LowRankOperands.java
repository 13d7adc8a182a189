package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.work.Worker;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** The batches of a call as the kernels of low-rank covariances read them, vector and cold. Diagonal ones are of rank 0. */
public final class LowRankOperands extends Operands<LowRankBatch> {
  private @Nullable LowRankColumns columns;

  /** The batches in the other roles, if a kernel reads both. */
  private final @Nullable LowRankOperands backward;

  /**
   * Makes operands.
   *
   * @param isBothWays whether a kernel reads the batches in both roles
   */
  public LowRankOperands(boolean isBothWays) {
    backward = isBothWays ? new LowRankOperands(false) : null;
  }

  @Override
  public void prepare(Batch batch, boolean vectors) {
    LowRankColumns.of(LowRankBatch.of(batch), new Worker());
  }

  @Override
  public void pack(Batch q, Batch p, boolean vectors, Worker worker) {
    hold(LowRankBatch.of(q), LowRankBatch.of(p));
    columns = LowRankColumns.of(p(), worker);
    if (backward != null) {
      backward.pack(p, q, vectors, worker);
    }
  }

  @Override
  public void clear() {
    super.clear();
    columns = null;
    if (backward != null) {
      backward.clear();
    }
  }

  LowRankOperands backward() {
    return Objects.requireNonNull(backward);
  }

  LowRankColumns columns() {
    return Objects.requireNonNull(columns);
  }

  /** Whether products in float are to be tried. */
  boolean isSingle() {
    return !q().isDouble() && columns().hasSingle();
  }

  /** Returns the addend of batches of float to the tolerance of the columns. */
  double moreTolerance() {
    return q().isDouble() || p().isDouble() ? 0 : FullOperands.FLOAT_TOLERANCE;
  }
}
