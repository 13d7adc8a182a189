package dev.kullback.internal.rows;

import dev.kullback.internal.batch.Batch;
import org.jspecify.annotations.Nullable;

/**
 * What is asked for the nearest columns of each row, which may be a block of a larger set's.
 *
 * @param reverse ranks by {@code KL(p_j ‖ q_i)}
 * @param exact values that do not depend on the block: {@link ExactOrder#rounded}
 * @param others leaves out the column with the index of the row
 * @param firstRow the index of row 0
 * @param first the index of column 0
 * @param earlier the exact lists that this search continues
 */
public record NearestQuery(
    int k,
    boolean reverse,
    boolean exact,
    boolean others,
    int firstRow,
    int first,
    @Nullable NeighborLists earlier) {
  /** The column that row i leaves out, or −1. */
  int leftOut(int i, int columns) {
    long j = (long) firstRow + i - first;
    return others && j >= 0 && j < columns ? (int) j : -1;
  }

  /** How many neighbors row i gets. */
  int count(int i, int columns) {
    long all =
        columns - (leftOut(i, columns) < 0 ? 0 : 1) + (earlier == null ? 0L : earlier.count(i));
    return (int) Math.min(k, all);
  }

  /** Where each row's neighbors begin, and where the last one's end. */
  public long[] starts(Batch q, Batch p) {
    long[] start = new long[q.size() + 1];
    for (int i = 0; i < q.size(); i++) {
      start[i + 1] = start[i] + count(i, p.size());
    }
    return start;
  }
}
