package dev.kullback.internal.vector;

/** Where the cotangents of a matrix are read from. */
public interface Cotangents {
  /** Reads those of row i and columns [column, end) to an index and behind it. */
  void read(int i, int column, int end, double[] to, int at);

  /** Reads them in float, where one that is too small or large for that is the least or infinite. */
  void read(int i, int column, int end, float[] to, int at);
}
