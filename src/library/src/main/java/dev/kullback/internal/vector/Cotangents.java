package dev.kullback.internal.vector;

/** Where the cotangents of a matrix are read from. */
public interface Cotangents {
  /** Reads those of row i and columns [column, end) to an index and behind it; returns whether each is 0 or of a magnitude in [least, most]. */
  boolean read(int i, int column, int end, double[] to, int at, double least, double most);

  /** Reads them rounded to float, which the answer is not of. */
  boolean read(int i, int column, int end, float[] to, int at, float least, float most);
}
