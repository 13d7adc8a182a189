package dev.kullback.internal.index;

import dev.kullback.internal.numerics.Scale;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Says which segments are to be merged: those of one kind and precision of which eight have live rows of one order of magnitude, and by
 * itself one with more than half of its rows deleted. So N rows of a kind are mostly in at most {@code 7·log N} segments, and each row is
 * copied {@code log N} times, to the base of 8.
 */
final class MergePolicy {
  /** Terms (rows by dimensions) that the thread merges that added the last: 1 ms or so. */
  static final long SMALL = 1 << 16;

  /** Terms of segments without a file that are merged before a commit, since each file waits for the disk: 20 ms or so. */
  private static final long SMALL_COMMIT = 1 << 20;

  /** Logarithm to base 2 of the number of segments that are merged, and of the quotient of two orders of magnitude. */
  private static final int LOG_FACTOR = 3;

  /** Rows that a merge makes at most. */
  private static final long MOST_ROWS = 1 << 30;

  private final int dimension;

  MergePolicy(int dimension) {
    this.dimension = dimension;
  }

  /** Segments that can be merged with each other, of one order of magnitude. */
  private record Group(Scale kind, boolean isDouble, int magnitude) {
    static Group of(LiveSegment live, int magnitude) {
      return new Group(live.segment().kind(), live.segment().isDouble(), magnitude);
    }
  }

  /** Returns segments of one kind to be merged next, if they have no more than so many terms. */
  @Nullable List<Part> due(Part[] parts, long mostTerms) {
    Map<Group, List<Part>> groups = new HashMap<>();
    for (Part part : parts) {
      int live = part.live.live();
      if (!part.merging) {
        if (2L * live < part.live.segment().size() && (long) live * dimension <= mostTerms) {
          return List.of(part);
        }
        int magnitude = (31 - Integer.numberOfLeadingZeros(live)) / LOG_FACTOR;
        groups.computeIfAbsent(Group.of(part.live, magnitude), key -> new ArrayList<>()).add(part);
      }
    }
    for (List<Part> group : groups.values()) {
      if (group.size() >= 1 << LOG_FACTOR && isAtMost(group, mostTerms)) {
        return group;
      }
    }
    return null;
  }

  private boolean isAtMost(List<Part> group, long mostTerms) {
    long terms = terms(group);
    return terms <= MOST_ROWS * dimension && terms <= mostTerms;
  }

  /** Counts the terms that a merge makes. */
  long terms(List<Part> group) {
    return group.stream().mapToLong(part -> (long) part.live.live() * dimension).sum();
  }

  /** Returns segments that a commit would write to many files, if they have no more than so many terms. */
  @Nullable List<Part> unwritten(Part[] parts, long mostTerms) {
    Map<Group, List<Part>> groups = new HashMap<>();
    for (Part part : parts) {
      if (part.file == null && !part.merging) {
        groups.computeIfAbsent(Group.of(part.live, 0), key -> new ArrayList<>()).add(part);
      }
    }
    for (List<Part> group : groups.values()) {
      if (group.size() > 1 && isAtMost(group, Math.min(SMALL_COMMIT, mostTerms))) {
        return group;
      }
    }
    return null;
  }
}
