package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.formula.Pair;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Finds columns of each row as exact arithmetic would: recomputes those that the kernels' error bound leaves undecided. */
abstract class RowSearch extends RowReduction {
  private @Nullable Batch q;
  private @Nullable Batch p;

  /** Greatest relative error of the kernels' values. */
  double error;

  /** Describes a call. */
  final void set(Batch q, Batch p) {
    this.q = q;
    this.p = p;
    error = Pair.error(q, p);
  }

  /** Drops the caller's batches. */
  void clear() {
    q = p = null;
  }

  final Batch q() {
    return Objects.requireNonNull(q);
  }

  final Batch p() {
    return Objects.requireNonNull(p);
  }

  /** Returns the divergences of row i. */
  final Source source(int i, BandState band) {
    return band.source.ask(q(), i, p());
  }
}
