package dev.kullback.internal.index.store;

import java.nio.LongBuffer;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The deleted rows of a segment, as bits that searches read while others are made from them: a tree of words, whose parts all states share
 * but for those on the way to a row that was deleted since. So a deletion among a million rows makes half a kilobyte anew, not 125.
 */
final class Deletions {
  /** Logarithm to base 2 of the words of a leaf, and of the leaves of a branch. */
  private static final int LOG = 5;

  private static final int LOG_BITS = 6;
  private static final int FAN = 1 << LOG;
  private static final int MASK = FAN - 1;
  private static final int BRANCH_ROWS = 1 << (2 * LOG + LOG_BITS);

  private static final long[] NO_WORDS = new long[FAN];
  private static final long[][] NO_LEAVES = new long[FAN][];

  static {
    Arrays.fill(NO_LEAVES, NO_WORDS);
  }

  /** Of row s, bit s mod 64 of word s/64, which is one of a leaf of a branch. */
  private final long[][][] branches;

  private Deletions(long[][][] branches) {
    this.branches = branches;
  }

  private static Deletions none(int rows) {
    long[][][] branches = new long[Math.ceilDiv(rows, BRANCH_ROWS)][][];
    Arrays.fill(branches, NO_LEAVES);
    return new Deletions(branches);
  }

  /** Returns the number of words for the bits of {@code rows} rows. */
  static int words(int rows) {
    return Math.ceilDiv(rows, Long.SIZE);
  }

  /** Makes the bits of so many rows from words; returns null if a bit is none of a row. */
  static @Nullable Deletions of(long[] words, int rows) {
    int last = rows % Long.SIZE;
    if (last != 0 && words[words.length - 1] >>> last != 0) {
      return null;
    }
    Deletions made = none(rows);
    for (int word = 0; word < words.length; word++) {
      if (words[word] != 0) {
        made.leaf(word, null)[word & MASK] = words[word];
      }
    }
    return made;
  }

  static int count(long[] words) {
    int count = 0;
    for (long word : words) {
      count += Long.bitCount(word);
    }
    return count;
  }

  /** Writes the words of so many rows. */
  void write(int rows, LongBuffer to) {
    int words = words(rows);
    for (int word = 0; word < words; word += FAN) {
      long[] leaf = branches[word >>> (2 * LOG)][(word >>> LOG) & MASK];
      to.put(leaf, 0, Math.min(FAN, words - word));
    }
  }

  /** Bytes of the words that no other segment shares. */
  long heapBytes() {
    long bytes = 0;
    for (long[][] leaves : branches) {
      for (long[] leaf : leaves) {
        bytes += leaf == NO_WORDS ? 0 : (long) Long.BYTES * FAN;
      }
    }
    return bytes;
  }

  boolean contains(int row) {
    return ((word(row >>> LOG_BITS) >>> row) & 1) != 0;
  }

  private long word(int word) {
    return branches[word >>> (2 * LOG)][(word >>> LOG) & MASK][word & MASK];
  }

  /** Returns the leaf of a word, to be changed: one of this alone, not of what it was made from. */
  private long[] leaf(int word, @Nullable Deletions from) {
    int b = word >>> (2 * LOG);
    int l = (word >>> LOG) & MASK;
    long[][] shared = from == null ? NO_LEAVES : from.branches[b];
    if (branches[b] == shared) {
      branches[b] = shared.clone();
    }
    if (branches[b][l] == shared[l]) {
      branches[b][l] = shared[l].clone();
    }
    return branches[b][l];
  }

  /** The row of an id that is not deleted, or −1. */
  static int find(LiveSegment part, long id) {
    int row = part.segment().find(id);
    return row >= 0 && part.isLive(row) ? row : -1;
  }

  /** Deletes ids, which need not be in the segment; returns the same if none is. */
  static LiveSegment without(LiveSegment part, long... ids) {
    Deletions before = part.deleted();
    Deletions after = null;
    int live = part.live();
    for (long id : ids) {
      int row = find(part, id);
      if (row >= 0 && (after == null || !after.contains(row))) {
        if (after == null) {
          after =
              before == null
                  ? none(part.segment().capacity())
                  : new Deletions(before.branches.clone());
        }
        int word = row >>> LOG_BITS;
        after.leaf(word, before)[word & MASK] |= 1L << row;
        live--;
      }
    }
    return after == null ? part : new LiveSegment(part.segment(), after, live);
  }

  /** Deletes from a merged segment the rows of one of its parts that were deleted since it was {@code before}. */
  static LiveSegment carry(LiveSegment before, LiveSegment now, LiveSegment merged) {
    Deletions deleted = now.deleted();
    if (deleted == before.deleted() || deleted == null) {
      return merged;
    }
    long[] ids = new long[before.live() - now.live()];
    int n = 0;
    for (int word = 0; word < words(before.segment().size()); word++) {
      long then = before.deleted() == null ? 0 : before.deleted().word(word);
      long since = deleted.word(word) & ~then;
      for (; since != 0; since &= since - 1) {
        ids[n++] = before.segment().id(word * Long.SIZE + Long.numberOfTrailingZeros(since));
      }
    }
    return without(merged, ids);
  }
}
