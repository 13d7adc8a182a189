package dev.kullback.internal.index.store;

import java.util.List;

/** Goes over the live rows of segments by ascending id. */
final class LiveRows {
  private final List<LiveSegment> parts;

  /** The next row of each segment that has not been gone over. */
  private final int[] next;

  private int at = -1;

  /** Stands before the first row. No id is live in two of the segments. */
  LiveRows(List<LiveSegment> parts) {
    this.parts = parts;
    next = new int[parts.size()];
  }

  /** Goes to the next row, and returns whether there is one. */
  boolean advance() {
    if (at >= 0) {
      next[at]++;
    }
    at = -1;
    for (int k = 0; k < next.length; k++) {
      LiveSegment part = parts.get(k);
      Segment from = part.segment();
      while (next[k] < from.size() && !part.isLive(next[k])) {
        next[k]++;
      }
      if (next[k] < from.size() && (at < 0 || from.id(next[k]) < id())) {
        at = k;
      }
    }
    return at >= 0;
  }

  long id() {
    return segment().id(row());
  }

  Segment segment() {
    return parts.get(at).segment();
  }

  int row() {
    return next[at];
  }
}
