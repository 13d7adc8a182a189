package dev.kullback.internal.index.search;

import dev.kullback.internal.rows.SearchOptions;

/**
 * The references that a search found for each query, by their ids, as {@link dev.kullback.internal.rows.NeighborLists}: those of query i are
 * at {@code start[i] … start[i + 1] − 1}, the nearest by divergence and then by id, those within a radius by id.
 *
 * @param isComplete whether a query's references are all that it was to find
 * @param proven least divergence of a query's other references, as far as is known
 */
@SuppressWarnings("ArrayRecordComponent") // handed on as they are
public record NeighborIds(
    long[] ids, double[] values, int[] start, boolean[] isComplete, double[] proven) {
  /** Nothing for one query, of which nothing was looked at. */
  static final NeighborIds UNKNOWN =
      new NeighborIds(new long[0], new double[0], new int[2], new boolean[1], new double[1]);

  /** Joins what was found for each query. */
  static NeighborIds of(Found[] found) {
    int n = found.length;
    int[] start = new int[n + 1];
    boolean[] isComplete = new boolean[n];
    double[] proven = new double[n];
    for (int i = 0; i < n; i++) {
      start[i + 1] = start[i] + found[i].count;
      isComplete[i] = found[i].isComplete;
      proven[i] = found[i].proven + found[i].shift;
    }
    long[] ids = new long[start[n]];
    double[] values = new double[start[n]];
    for (int i = 0; i < n; i++) {
      System.arraycopy(found[i].ids, 0, ids, start[i], found[i].count);
      for (int s = 0; s < found[i].count; s++) {
        values[start[i] + s] = found[i].values[s] + found[i].shift;
      }
    }
    return new NeighborIds(ids, values, start, isComplete, proven);
  }

  /** Copies what the first query has found, as {@link Searches#query} returns it. */
  public int copy(SearchOptions options, long[] to, float[] kl, double[] proof) {
    return copy(ids, values, start[1], isComplete[0], proven[0], 0, options, to, kl, proof);
  }

  /**
   * Copies so many ids and values, and what is certain of others, with {@code shift} added to both, to a caller's arrays. Returns how many there are, or if that is not all {@code ~}
   * of it.
   *
   * @throws IllegalArgumentException if the arrays are too short
   */
  @SuppressWarnings("TooManyParameters") // without an object
  static int copy(
      long[] ids,
      double[] values,
      int count,
      boolean isComplete,
      double proven,
      double shift,
      SearchOptions options,
      long[] to,
      float[] kl,
      double[] proof) {
    int room = Math.min(to.length, kl.length);
    if (count > room) {
      throw new IllegalArgumentException(
          "there is room for %d ids and values, but %d references are within the radius %s"
              .formatted(room, count, options.radius()));
    }
    System.arraycopy(ids, 0, to, 0, count);
    for (int r = 0; r < count; r++) {
      kl[r] = (float) (values[r] + shift);
    }
    if (proof.length > 0) {
      proof[0] = proven + shift;
    }
    return isComplete ? count : ~count;
  }
}
