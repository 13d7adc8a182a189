package dev.kullback.internal.index.store;

import dev.kullback.internal.index.store.Manifest.SegmentFile;
import org.jspecify.annotations.Nullable;

/** A segment as the writer of an {@link Index} knows it: the same one while rows of it are deleted and its memory becomes a mapped file. */
final class Part {
  LiveSegment live;

  /** Whether a thread merges it with others. */
  boolean merging;

  /** Where a commit wrote it; null before. */
  @Nullable SegmentFile file;

  Part(LiveSegment live) {
    this.live = live;
  }
}
