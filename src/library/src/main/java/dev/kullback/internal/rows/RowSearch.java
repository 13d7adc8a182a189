package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.formula.Pair;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Finds columns of each row as exact arithmetic would: recomputes those that the kernels' error bound leaves undecided. */
abstract class RowSearch extends RowReduction {
  private @Nullable Batch q;
  private @Nullable Batch p;
  private boolean reverse;

  /** Greatest relative error of the kernels' values. */
  double error;

  /** Describes a call; {@code reverse} searches by {@code KL(p_j ‖ q_i)}. */
  final void set(Batch q, Batch p, boolean reverse) {
    this.q = q;
    this.p = p;
    this.reverse = reverse;
    error = Pair.error(q, p);
  }

  /** Drops the caller's batches. */
  void clear() {
    q = p = null;
  }

  @Override
  public final boolean isReverse() {
    return reverse;
  }

  final Batch q() {
    return Objects.requireNonNull(q);
  }

  final Batch p() {
    return Objects.requireNonNull(p);
  }

  /** Returns the divergences of row i. */
  final Source source(int i, BandState band) {
    return band.source.ask(q(), i, p(), reverse);
  }
}
