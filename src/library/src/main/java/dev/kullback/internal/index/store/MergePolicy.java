package dev.kullback.internal.index.store;

import dev.kullback.internal.numerics.Cholesky;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Says which segments are to be merged: those of one form and precision of which eight have live rows of one order of magnitude, and by
 * itself one with more than a third of its rows deleted. So N rows of a kind are mostly in at most {@code 7·log N} segments, and each row is
 * copied {@code log N} times, to the base of 8.
 */
final class MergePolicy {
  /** Terms (rows by dimensions, or by numbers of a full covariance) that the thread merges that added the last: 1 ms or so. */
  static final long SMALL = 1 << 16;

  /** Terms of segments without a file below which they are merged before a commit, since each file waits for the disk: 50 ms or so. */
  static final long MOST_COMMIT = 1 << 20;

  /** Terms below which changes wait for that, so that those that come meanwhile have no file of their own: 5 ms. */
  static final long SMALL_COMMIT = 1 << 17;

  /** Logarithm to base 2 of the number of segments that are merged, and of the quotient of two orders of magnitude. */
  private static final int LOG_FACTOR = 3;

  static final int GROUP = 1 << LOG_FACTOR;

  /** Segments of one order of magnitude from which on whoever adds others merges them, as the thread is late: mappings and files stay few. */
  static final int LATE = GROUP + GROUP / 2;

  /** Rows of an open segment, at most: enough for one with codes. */
  private static final int MOST_OPEN_ROWS = 256;

  /** A batch is small, and goes to an open segment, if as many as this fit one. */
  private static final int BATCHES = 8;

  /** Rows that a merge makes at most. */
  private static final long MOST_ROWS = 1 << 30;

  /** Terms of a row. */
  private final int rowTerms;

  /** A policy for Gaussians of a dimension, which may have full covariances. */
  MergePolicy(int dimension, boolean isFull) {
    rowTerms = isFull ? Cholesky.packedLength(dimension) + dimension : dimension;
  }

  /** Returns the rows of an open segment at most. */
  int mostOpenRows() {
    return (int) Math.min(MOST_OPEN_ROWS, SMALL / rowTerms);
  }

  /** Whether a batch of so many rows goes to an open segment. */
  boolean isSmall(int rows) {
    return rows <= mostOpenRows() / BATCHES;
  }

  /**
   * Whether a segment has more than a third of its rows deleted: searches read these, too. With a half instead, queries read 1.35 times as
   * much while 1000 of 10,000 references are replaced a second, for half of the rows that are copied.
   */
  static boolean isEmptier(LiveSegment part) {
    return 3L * part.live() < 2L * part.segment().size();
  }

  /** Segments that can be merged with each other, of one order of magnitude. */
  private record Group(Form form, boolean isDouble, int magnitude) {
    static Group of(LiveSegment live, int magnitude) {
      return new Group(live.segment().form(), live.segment().isDouble(), magnitude);
    }
  }

  /**
   * Returns segments of one kind to be merged next.
   *
   * @param open the part that more rows are added to, which is not merged; null if there is none
   * @param most terms that a merge makes at most
   * @param failing terms from which on merges fail: of a group of as many, fewer segments are merged
   * @param least segments of a group: {@link #GROUP} or {@link #LATE}
   */
  @Nullable List<Part> due(Part[] parts, @Nullable Part open, long most, long failing, int least) {
    Map<Group, List<Part>> groups = new HashMap<>();
    for (Part part : parts) {
      int live = part.live.live();
      if (!part.merging && part != open) {
        long terms = (long) live * rowTerms;
        if (least == GROUP && isEmptier(part.live) && terms <= most && terms < failing) {
          return List.of(part);
        }
        int magnitude = (31 - Integer.numberOfLeadingZeros(live)) / LOG_FACTOR;
        groups.computeIfAbsent(Group.of(part.live, magnitude), key -> new ArrayList<>()).add(part);
      }
    }
    for (List<Part> group : groups.values()) {
      List<Part> smallest = group.size() < least ? List.of() : smallest(group, failing);
      if (smallest.size() > 1 && terms(smallest) <= most) {
        return smallest;
      }
    }
    return null;
  }

  /** Takes the smallest of a group: as many as are merged at once, or fewer that make less than {@code failing} terms. */
  private List<Part> smallest(List<Part> group, long failing) {
    List<Part> sorted = new ArrayList<>(group);
    sorted.sort(Comparator.comparingInt(part -> part.live.live()));
    long limit = Math.min(failing, MOST_ROWS * rowTerms + 1);
    int n = 0;
    for (long terms = 0; n < GROUP; n++) {
      terms += (long) sorted.get(n).live.live() * rowTerms;
      if (terms >= limit) {
        break;
      }
    }
    return sorted.subList(0, n);
  }

  /**
   * Returns segments to be merged, group by group: all of a kind, without those that are one already and have no deleted rows, or else
   * each by itself that has.
   */
  List<List<Part>> rewritten(Part[] parts, boolean all) {
    Map<Object, List<Part>> groups = new LinkedHashMap<>();
    Map<Group, Integer> full = new HashMap<>();
    for (Part part : parts) {
      Group kind = Group.of(part.live, 0);
      int number = full.computeIfAbsent(kind, key -> 0);
      Object key = all ? List.of(kind, number) : part;
      List<Part> group = groups.computeIfAbsent(key, k -> new ArrayList<>());
      group.add(part);
      if (terms(group) > MOST_ROWS / 2 * rowTerms) {
        full.put(kind, number + 1);
      }
    }
    groups.values().removeIf(group -> group.size() == 1 && isWhole(group.getFirst().live));
    return List.copyOf(groups.values());
  }

  private static boolean isWhole(LiveSegment live) {
    return live.deleted() == null && !live.segment().isOpen();
  }

  /** Counts the terms that a merge makes. */
  long terms(List<Part> group) {
    return group.stream().mapToLong(part -> (long) part.live.live() * rowTerms).sum();
  }

  /** Returns segments that a commit would write to many files, but not the open one, if they have terms in [least, most). */
  @Nullable List<Part> unwritten(Part[] parts, @Nullable Part open, long least, long most) {
    Map<Group, List<Part>> groups = new HashMap<>();
    for (Part part : parts) {
      if (part.file == null && !part.merging && part != open) {
        groups.computeIfAbsent(Group.of(part.live, 0), key -> new ArrayList<>()).add(part);
      }
    }
    for (List<Part> group : groups.values()) {
      long terms = terms(group);
      boolean isWorthwhile = group.size() > 1 || group.getFirst().live.segment().isOpen();
      if (isWorthwhile && terms >= least && terms < most) {
        return group;
      }
    }
    return null;
  }
}
