package dev.kullback.internal.vector;

import dev.kullback.internal.batch.Batch;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Gaussians [from, to) of a batch, the rows or the columns of a block, and where the sums of their derivatives go. Set anew for each block. */
public final class GradientRows<B extends Batch> {
  private @Nullable B batch;
  public int from;
  public int to;

  /** Sums of all the batch's Gaussians; null for none. */
  public double @Nullable [] sums;

  /** Takes a block's; returns this. */
  public GradientRows<B> set(B batch, int from, int to, double @Nullable [] sums) {
    this.batch = batch;
    this.from = from;
    this.to = to;
    this.sums = sums;
    return this;
  }

  public B batch() {
    return Objects.requireNonNull(batch);
  }

  /** Returns how many there are. */
  public int size() {
    return to - from;
  }

  /** Drops the batch. */
  public void clear() {
    batch = null;
    sums = null;
  }
}
