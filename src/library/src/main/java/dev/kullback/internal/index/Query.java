package dev.kullback.internal.index;

import dev.kullback.internal.batch.DiagonalBatch;
import org.jspecify.annotations.Nullable;

/** One query of a thread's work: row {@code row} of a batch. */
final class Query {
  /** Rows that codes may leave at first, when the limit is loose, beyond their share. */
  private static final int FIRST_CREDIT = 64;

  /** Codes may leave one row in so many: as long as its value takes, the sums of so many in float do. */
  private static final int SHARE = 32;

  /** Blocks that are scanned in float when codes have left too many rows; the next time twice as many. */
  private static final int FIRST_SKIP = 4;

  private static final int MOST_SKIP = 1 << 20;

  final Bounds bounds = new Bounds();
  final CodedQuery coded = new CodedQuery();
  final DoubleBounds sums = new DoubleBounds();
  final Survivors survivors = new Survivors();
  private @Nullable DiagonalBatch batch;
  int row;

  /** Panels of floats that were scanned. */
  long scanned;

  /** Survivors that were added without an upper bound since the last look at their values. */
  int unbounded;

  private boolean isCoded;
  private int credit;
  private int skip;
  private int nextSkip;

  void start(DiagonalBatch batch, int row, int k, SearchOptions options) {
    this.batch = batch;
    this.row = row;
    scanned = 0;
    unbounded = 0;
    isCoded = false;
    credit = FIRST_CREDIT;
    skip = 0;
    nextSkip = FIRST_SKIP;
    bounds.set(batch, row, options.reverse());
    sums.set(batch, row);
    survivors.start(k, options.radius());
  }

  /** Prepares for a segment's codes; returns false if they cannot be read for this query. */
  boolean enter(Segment segment) {
    Codes codes = segment.codes();
    isCoded = codes != null && !bounds.reverse && coded.set(batch(), row, segment, codes);
    return isCoded;
  }

  /** Whether to read the codes of the next block. */
  boolean readsCodes() {
    return isCoded && survivors.limit() < Double.POSITIVE_INFINITY && --skip < 0;
  }

  /** Tells how many rows of a block codes have left. */
  void codesLeft(int left, int rows) {
    credit = Math.min(FIRST_CREDIT, credit + rows / SHARE - left);
    if (credit < 0) {
      credit = 0;
      skip = nextSkip;
      nextSkip = Math.min(2 * nextSkip, MOST_SKIP);
    } else {
      skip = 0;
      nextSkip = credit == FIRST_CREDIT ? FIRST_SKIP : nextSkip;
    }
  }

  DiagonalBatch batch() {
    if (batch == null) {
      throw new IllegalStateException("no query");
    }
    return batch;
  }

  void clear(int mostKept) {
    batch = null;
    coded.clear();
    sums.clear();
    survivors.trim(mostKept);
  }
}
