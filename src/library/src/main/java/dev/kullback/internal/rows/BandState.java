package dev.kullback.internal.rows;

import dev.kullback.internal.kernel.RowAnswer;
import dev.kullback.internal.kernel.RowScan;
import java.util.Arrays;

/** What a reduction has so far of the band of rows that one thread is at, by row, and its working memory. */
public final class BandState {
  /** Instead of a span's number: all columns. */
  public static final int WHOLE = -1;

  /** First row of the band. */
  int first;

  /** Which span of its columns, if the call cuts bands so. */
  int span;

  /** How vectors or none go through what a band has, and scratch for that. */
  final RowScan scan;

  final double[] least = new double[NearestRows.MOST_GROUPS];

  /** Decides what the kernels' values do not. */
  final ExactOrder ranks;

  private int[] positions = {};
  private double[] values = {};
  private final KeySort sorting;
  private Candidates[] candidates = {};

  /** NeighborLists that the call has used. */
  private int used;

  private double[] state = {};

  public BandState(RowScan scan, ExactOrder ranks) {
    this.scan = scan;
    this.ranks = ranks;
    sorting = new KeySort(scan);
  }

  /** Begins a band, or a span of its columns. */
  public void begin(int row, int span) {
    first = row;
    this.span = span;
  }

  boolean isWhole() {
    return span == WHOLE;
  }

  /** Those of row i of a band. */
  Candidates candidates(int i) {
    if (candidates.length <= i) {
      int length = candidates.length;
      candidates = Arrays.copyOf(candidates, Math.max(i + 1, RowReduction.BLOCK_ROWS));
      for (int k = length; k < candidates.length; k++) {
        candidates[k] = new Candidates(sorting);
      }
    }
    used = Math.max(used, i + 1);
    return candidates[i];
  }

  /** Scratch for the positions of so many values. */
  int[] positions(int length) {
    if (positions.length < length) {
      positions = new int[length];
    }
    return positions;
  }

  /** What takes a row's entries. */
  interface Entries {
    void add(int j, double kl);
  }

  /** Hands over an answer's entries of row i in a piece; whether it has them all. */
  boolean take(RowAnswer answer, int i, int piece, Entries entries) {
    int count = answer.count(i, piece);
    if (count > values.length) {
      values = new double[count];
    }
    int[] index = positions(count);
    if (count > 0) {
      answer.copy(i, piece, index, values);
    }
    for (int s = 0; s < count; s++) {
      entries.add(index[s], values[s]);
    }
    return count >= 0;
  }

  /** At least {@code length} numbers, the same while the band is. */
  double[] state(int length) {
    if (state.length < length) {
      state = new double[length];
    }
    return state;
  }

  /** After a call: lets go of the caller's batches, and of what is large. */
  public void trim() {
    for (; used > 0; used--) {
      candidates[used - 1].trim();
    }
    sorting.trim();
    ranks.clear();
  }
}
