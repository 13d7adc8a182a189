package dev.kullback.internal.index.store;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Goes over the live rows of segments by ascending id. */
final class LiveRows {
  private final List<LiveSegment> parts;

  /** The rows of each segment by ascending ids; null where they are so. */
  private final int[] @Nullable [] byId;

  /** The next row of each segment that has not been gone over, in that order. */
  private final int[] next;

  private int at = -1;

  /** Stands before the first row. No id is live in two of the segments. */
  LiveRows(List<LiveSegment> parts) {
    this.parts = parts;
    next = new int[parts.size()];
    byId = parts.stream().map(part -> part.segment().byId()).toArray(int[][]::new);
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
      while (next[k] < from.size() && !part.isLive(row(k))) {
        next[k]++;
      }
      if (next[k] < from.size() && (at < 0 || from.id(row(k)) < id())) {
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
    return row(at);
  }

  private int row(int part) {
    int[] order = byId[part];
    return order == null ? next[part] : order[next[part]];
  }
}
