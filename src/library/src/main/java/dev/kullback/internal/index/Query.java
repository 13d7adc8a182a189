package dev.kullback.internal.index;

import dev.kullback.internal.batch.DiagonalBatch;
import org.jspecify.annotations.Nullable;

/** One query of a thread's work: row {@code row} of a batch. */
final class Query {
  final Bounds bounds = new Bounds();
  final Survivors survivors = new Survivors();
  private @Nullable DiagonalBatch batch;
  int row;

  /** Panels that were scanned. */
  long scanned;

  void start(DiagonalBatch batch, int row, int k, SearchOptions options) {
    this.batch = batch;
    this.row = row;
    scanned = 0;
    bounds.set(batch, row, options.reverse());
    survivors.start(k, options.radius());
  }

  DiagonalBatch batch() {
    if (batch == null) {
      throw new IllegalStateException("no query");
    }
    return batch;
  }

  void clear(int mostKept) {
    batch = null;
    survivors.trim(mostKept);
  }
}
