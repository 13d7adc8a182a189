package dev.kullback.internal.index.store;

import org.jspecify.annotations.Nullable;

/**
 * A segment without the rows that were removed from it since.
 *
 * @param deleted bits of the removed rows, row s in word s/64, which no one changes any more; null if there are none
 * @param live number of rows that are left
 */
@SuppressWarnings(
    "ArrayRecordComponent") // its identity does not matter, and it is not copied for each search
public record LiveSegment(Segment segment, long @Nullable [] deleted, int live) {
  /** A segment with all its rows. */
  public LiveSegment(Segment segment) {
    this(segment, null, segment.size());
  }

  public boolean isLive(int row) {
    return !Deletions.contain(deleted, row);
  }
}
