package dev.kullback.internal.index.search;

/**
 * The references that a search found for each query, by their ids, as {@link dev.kullback.internal.rows.NeighborLists}: those of query i are
 * at {@code start[i] … start[i + 1] − 1}, the nearest by divergence and then by id, those within a radius by id.
 */
@SuppressWarnings("ArrayRecordComponent") // handed on as they are
public record NeighborIds(long[] ids, double[] values, int[] start) {
  /** Copies all ids and values to the caller's arrays, and returns how many there are. */
  public int copy(long[] to, float[] kl) {
    System.arraycopy(ids, 0, to, 0, ids.length);
    for (int r = 0; r < ids.length; r++) {
      kl[r] = (float) values[r];
    }
    return ids.length;
  }
}
