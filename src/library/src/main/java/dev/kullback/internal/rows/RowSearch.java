package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.Unrounded;
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

  /** Returns the divergence of row i and column j, as {@link Pair#precise} does. */
  final double precise(int i, int j, BandState band) {
    return reverse ? band.pair.precise(p(), j, q(), i) : band.pair.precise(q(), i, p(), j);
  }

  /** Returns it unrounded, as {@link Pair#exact} does. */
  final Unrounded exact(int i, int j, double kl, BandState band) {
    return reverse ? band.pair.exact(p(), j, q(), i, kl) : band.pair.exact(q(), i, p(), j, kl);
  }

  /** Returns it rounded to double, as {@link Pair#rounded} does. */
  final double rounded(int i, int j, BandState band) {
    return reverse ? band.pair.rounded(p(), j, q(), i) : band.pair.rounded(q(), i, p(), j);
  }
}
