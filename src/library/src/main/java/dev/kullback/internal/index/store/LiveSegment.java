package dev.kullback.internal.index.store;

import org.jspecify.annotations.Nullable;

/**
 * A segment without the rows that were removed from it since.
 *
 * @param deleted the removed rows; null if there are none
 * @param live number of rows that are left
 */
public record LiveSegment(Segment segment, @Nullable Deletions deleted, int live) {
  /** A segment with all its rows. */
  public LiveSegment(Segment segment) {
    this(segment, null, segment.size());
  }

  /** Bytes on the heap that tell which rows are removed. */
  public long heapBytes() {
    return deleted == null ? 0 : deleted.heapBytes();
  }

  public boolean isLive(int row) {
    return deleted == null || !deleted.contains(row);
  }

  /** Returns the least log-determinant of the rows that are left; ∞ of none. */
  double leastLogDet() {
    if (live == 0) {
      return Double.POSITIVE_INFINITY;
    }
    int narrowest = segment.narrowest();
    if (isLive(narrowest)) {
      return segment.logDet(narrowest);
    }
    double least = Double.POSITIVE_INFINITY;
    for (int row = 0; row < segment.size(); row++) {
      least = isLive(row) ? Math.min(least, segment.logDet(row)) : least;
    }
    return least;
  }
}
