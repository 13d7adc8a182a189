package dev.kullback.internal.index.store;

import org.jspecify.annotations.Nullable;

/** Bits of the deleted rows of a segment, row s in word s/64: copied before they are changed, as searches may read them. */
final class Deletions {
  private Deletions() {}

  /** Returns the number of words for the bits of {@code rows} rows. */
  static int words(int rows) {
    return Math.ceilDiv(rows, Long.SIZE);
  }

  static int count(long[] bits) {
    int count = 0;
    for (long word : bits) {
      count += Long.bitCount(word);
    }
    return count;
  }

  /** Whether only bits of rows are set. */
  static boolean fit(long[] bits, int rows) {
    int last = rows % Long.SIZE;
    return last == 0 || bits[bits.length - 1] >>> last == 0;
  }

  /** Whether a row is deleted; without bits, none is. */
  static boolean contain(long @Nullable [] bits, int row) {
    return bits != null && (bits[row >> 6] >>> row & 1) != 0;
  }

  /** The row of an id that is not deleted, or −1. */
  static int find(LiveSegment part, long id) {
    int row = part.segment().find(id);
    return row >= 0 && part.isLive(row) ? row : -1;
  }

  /** Deletes ids, which need not be in the segment; returns the same if none is. */
  static LiveSegment without(LiveSegment part, long... ids) {
    long[] bits = null;
    int live = part.live();
    for (long id : ids) {
      int row = find(part, id);
      if (row >= 0 && !contain(bits, row)) {
        bits = bits == null ? copy(part) : bits;
        bits[row >> 6] |= 1L << row;
        live--;
      }
    }
    return bits == null ? part : new LiveSegment(part.segment(), bits, live);
  }

  /** Deletes from a merged segment the rows of one of its parts that were deleted since it was {@code before}. */
  static LiveSegment carry(LiveSegment before, LiveSegment now, LiveSegment merged) {
    long[] deleted = now.deleted();
    if (deleted == before.deleted() || deleted == null) {
      return merged;
    }
    long[] ids = new long[before.live() - now.live()];
    int n = 0;
    for (int word = 0; word < deleted.length; word++) {
      long since = deleted[word] & ~word(before.deleted(), word);
      for (; since != 0; since &= since - 1) {
        ids[n++] = before.segment().id(word * Long.SIZE + Long.numberOfTrailingZeros(since));
      }
    }
    return without(merged, ids);
  }

  private static long word(long @Nullable [] bits, int word) {
    return bits == null ? 0 : bits[word];
  }

  private static long[] copy(LiveSegment part) {
    long[] bits = part.deleted();
    return bits == null ? new long[words(part.segment().size())] : bits.clone();
  }
}
