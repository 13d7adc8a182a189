package dev.kullback.internal.rows;

import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.kernel.RowQuery;
import org.jspecify.annotations.Nullable;

/**
 * Which columns a search for the nearest of each row ranks, and how. Rows and columns may be blocks of larger sets, which number them.
 *
 * @param reverse ranks by {@code KL(p_j ‖ q_i)}
 * @param exact values do not depend on the block: {@link Pair#rounded}
 * @param others leaves out the column with the number of the row
 * @param firstRow number of row 0
 * @param first number of column 0
 * @param earlier exact lists that the search continues
 */
public record NearestQuery(
    boolean reverse,
    boolean exact,
    boolean others,
    int firstRow,
    int first,
    @Nullable NeighborLists earlier) {
  public static final NearestQuery ALL = new NearestQuery(false, false, false, 0, 0, null);
  public static final NearestQuery OTHERS = new NearestQuery(false, false, true, 0, 0, null);
  public static final NearestQuery ALL_REVERSE = ALL.reversed();

  public NearestQuery reversed() {
    return new NearestQuery(true, exact, others, firstRow, first, earlier);
  }

  /** Row i leaves out column {@code i + skip}, if there is one. */
  long skip() {
    return others ? (long) firstRow - first : RowQuery.NONE;
  }

  /** The column that row i leaves out, or −1. */
  int leftOut(int i, int columns) {
    long j = i + skip();
    return j >= 0 && j < columns ? (int) j : -1;
  }

  /** Number of neighbors of row i: k, or all if they are fewer. */
  public int count(int i, int columns, int k) {
    int own = leftOut(i, columns) < 0 ? columns : columns - 1;
    return (int) Math.min(k, own + (earlier == null ? 0L : earlier.count(i)));
  }
}
