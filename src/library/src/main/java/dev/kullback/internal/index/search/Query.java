package dev.kullback.internal.index.search;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.index.store.Codes;
import dev.kullback.internal.index.store.Segment;
import dev.kullback.internal.rows.Ranking;
import org.jspecify.annotations.Nullable;

/** One query of a thread's work: row {@code row} of a batch. */
final class Query {
  /** Rows that codes may leave at first, when the limit is loose, beyond their share. */
  private static final int FIRST_CREDIT = 64;

  /** Codes may leave one row in {@value}: computing one row's value takes as long as that many rows' sums in float. */
  private static final int SHARE = 32;

  /** Blocks that are scanned in float when codes have left too many rows; the next time twice as many. */
  private static final int FIRST_SKIP = 4;

  private static final int MOST_SKIP = 1 << 20;

  final Bounds bounds;
  final CodedQuery coded;
  final DoubleBounds sums;
  final Ranking ranking;
  private @Nullable Batch batch;
  int row;

  /** References that were offered by their ids. */
  long named;

  /** Panels of floats that were scanned. */
  long scanned;

  private boolean isCoded;
  private int credit;
  private int skip;
  private int nextSkip;

  Query(Formula formula, Ranking ranking) {
    this.ranking = ranking;
    bounds = new Bounds(formula);
    sums = new DoubleBounds(bounds);
    coded = CodedQuery.of(formula, bounds);
  }

  /**
   * Begins a query, all but its ranking.
   *
   * @param least least Σ ln σ of the references, where that of points counts
   */
  void start(Batch batch, int row, boolean reverse, double least) {
    this.batch = batch;
    this.row = row;
    scanned = 0;
    isCoded = false;
    credit = FIRST_CREDIT;
    skip = 0;
    nextSkip = FIRST_SKIP;
    if (batch instanceof DiagonalBatch diagonal) {
      bounds.set(diagonal, row, reverse, least);
      sums.set(diagonal, row);
    }
  }

  /** Prepares for a segment's codes; returns false if they cannot be read for this query. */
  boolean enter(Segment segment) {
    Codes codes = segment.codes();
    isCoded =
        codes != null
            && !(segment.hasPanels() && bounds.reverse)
            && (segment.hasPanels() || !batch().arePoints())
            && batch() instanceof DiagonalBatch diagonal
            && coded.set(diagonal, row, segment, codes);
    return isCoded;
  }

  /** Whether to read the codes of the next block; {@code alone} where they are read whatever they leave. */
  boolean readsCodes(boolean alone) {
    return isCoded && (alone || (ranking.limit() < Double.POSITIVE_INFINITY && --skip < 0));
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

  Batch batch() {
    if (batch == null) {
      throw new IllegalStateException("no query");
    }
    return batch;
  }

  void clear(int mostKept) {
    batch = null;
    coded.clear();
    sums.clear();
    ranking.trim(mostKept);
  }
}
