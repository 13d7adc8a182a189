package dev.kullback.internal.index.store;

import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The state of an index at one moment. No id is live in two segments. Its segments' memory stays as long as the index has this state, and as
 * long as a search that has acquired it has not closed it.
 */
public final class Snapshot implements AutoCloseable {
  /** The state of no index; not to be closed. */
  public static final Snapshot EMPTY = new Snapshot(new LiveSegment[0], 0, null);

  private final LiveSegment[] segments;
  private final long size;
  private final @Nullable Memory memory;

  /** See {@link #leastLogDet}: found by any thread to the same number; NaN before. */
  private volatile double leastLogDet = Double.NaN;

  /** The searches that use this, and the index. */
  private final AtomicInteger users = new AtomicInteger(1);

  /**
   * A state, which is the index's until it calls {@link #replaced}. It holds nothing yet: see {@link #retainSegments}.
   *
   * @param size number of live rows
   */
  Snapshot(LiveSegment[] segments, long size, @Nullable Memory memory) {
    this.segments = segments;
    this.size = size;
    this.memory = memory;
  }

  /** Becomes a user of the memory of all segments, until nobody uses this any more. */
  void retainSegments() {
    for (LiveSegment part : segments) {
      part.segment().retain();
    }
  }

  /** Returns the segments; the array is not to be changed. */
  public LiveSegment[] segments() {
    return segments;
  }

  /** Returns the place of an id, the number of its segment in the high 32 bits and its row in the low 32; −1 if it is not there. */
  public long find(long id) {
    for (int s = 0; s < segments.length; s++) {
      int row = Deletions.find(segments[s], id);
      if (row >= 0) {
        return (long) s << 32 | row;
      }
    }
    return -1;
  }

  /** Returns the segment of a place. */
  public Segment segment(long place) {
    return segments[(int) (place >>> 32)].segment();
  }

  /** Returns the least log-determinant of the live rows, that of a batch of them; 0 of none. The first call reads those of all rows. */
  public double leastLogDet() {
    double least = leastLogDet;
    if (Double.isNaN(least)) {
      least = Double.POSITIVE_INFINITY;
      for (LiveSegment part : segments) {
        least = Math.min(least, part.leastLogDet());
      }
      least = size == 0 ? 0 : least;
      leastLogDet = least;
    }
    return least;
  }

  /** Returns the number of live rows. */
  public long size() {
    return size;
  }

  /** Becomes a user of this, who is to close it; returns false if nobody is any more. */
  public boolean acquire() {
    int now = users.get();
    while (now > 0 && !users.compareAndSet(now, now + 1)) {
      now = users.get();
    }
    return now > 0;
  }

  /** Ends the use by a search; memory that it was the last to use is given back soon, by another thread. */
  @Override
  public void close() {
    if (release() && memory != null) {
      memory.reclaimSoon();
    }
  }

  /** Ends a use by the index itself, which is to {@linkplain Memory#reclaim reclaim} memory then. */
  void replaced() {
    release();
  }

  private boolean release() {
    boolean last = users.decrementAndGet() == 0;
    if (last) {
      for (LiveSegment part : segments) {
        part.segment().release();
      }
    }
    return last;
  }
}
