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

  /** Added to values that are found. */
  double shift;

  SearchOptions options = SearchOptions.FORWARD;
  final Columns columns = new Columns();

  /**
   * Describes a call.
   *
   * @param shift added to the values that are found
   * @param look called for each column that a filter is asked about; it may throw
   */
  public void set(Batch q, Batch p, SearchOptions options, double shift, Runnable look) {
    this.shift = shift;
    this.q = q;
    this.p = p;
    this.options = options;
    error = Pair.error(q, p);
    columns.set(options, p.size(), look);
  }

  /** Drops the caller's batches and options. */
  public void clear() {
    q = p = null;
    options = SearchOptions.FORWARD;
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
