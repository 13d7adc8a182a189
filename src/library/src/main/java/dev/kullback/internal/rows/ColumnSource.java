package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.formula.Pair;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** The divergences of a row of the matrix from its columns. */
final class ColumnSource extends Source {
  private final Pair pair;
  private @Nullable Batch p;

  ColumnSource(Pair pair) {
    super(pair);
    this.pair = pair;
  }

  /** Asks for the divergences of row i of q and the rows of p from now on, with the roles exchanged if they are reversed. */
  ColumnSource of(Batch q, int i, Batch p, boolean reverse) {
    ask(q, i, reverse);
    this.p = p;
    return this;
  }

  @Override
  public void clear() {
    super.clear();
    p = null;
  }

  @Override
  protected Batch batch(long place) {
    return Objects.requireNonNull(p);
  }

  @Override
  protected int row(long place) {
    return (int) place;
  }

  @Override
  protected boolean isSame(long place, long other) {
    return Pair.isSame(batch(place), (int) place, (int) other);
  }

  @Override
  protected boolean isPreciseFaster() {
    return pair.isPreciseFaster(query(), batch(0));
  }
}
