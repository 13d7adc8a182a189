package dev.kullback.internal.kernel;

import java.util.function.IntToDoubleFunction;
import org.jspecify.annotations.Nullable;

/**
 * Asks a kernel that goes through rows itself, instead of handing over blocks, for entries of each row that are at most its limit, or for
 * numbers.
 *
 * @param k with k > 0 the limit of a piece of columns is {@code slack} times what bounds its k-th least entry, where that is less
 * @param skip row i leaves out column {@code i + skip}, if there is one
 * @param limit by row
 * @param logWeights of the columns, for {@link Kind#LOG_SUM_EXP}
 */
public record RowQuery(
    Kind kind,
    int k,
    double slack,
    long skip,
    IntToDoubleFunction limit,
    double @Nullable [] logWeights) {
  /** A {@link #skip} that leaves out no column. */
  public static final long NONE = Long.MIN_VALUE / 2;

  public enum Kind {
    ENTRIES,
    /** The least, and 0. */
    MIN,
    /** The sum, and 0. */
    SUM,
    /** The least of KL − w, for weights w, and the sum of {@code exp(least − (KL − w))}. */
    LOG_SUM_EXP
  }

  /** The k nearest of each row and what may be among them, however their errors fall. */
  public static RowQuery nearest(int k, double error, long skip, IntToDoubleFunction limit) {
    // at least the cut of rows.Ranking, however it rounds, but for subnormal values, of which a
    // product cannot widen the least
    double slack = Math.nextUp(Math.nextUp((1 + error) / (1 - error)));
    return new RowQuery(Kind.ENTRIES, k, slack, skip, limit, null);
  }

  public static RowQuery within(double limit) {
    return new RowQuery(Kind.ENTRIES, 0, 1, NONE, i -> limit, null);
  }

  public static RowQuery number(Kind kind, double @Nullable [] logWeights) {
    return new RowQuery(kind, 0, 1, NONE, i -> Double.POSITIVE_INFINITY, logWeights);
  }
}
