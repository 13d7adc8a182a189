package dev.kullback.internal.index;

/**
 * The state of an index at one moment. No id is live in two segments.
 *
 * @param size number of live rows
 */
@SuppressWarnings("ArrayRecordComponent") // never changed, and not copied for each search
public record Snapshot(LiveSegment[] segments, long size) {
  public static final Snapshot EMPTY = new Snapshot(new LiveSegment[0], 0);
}
