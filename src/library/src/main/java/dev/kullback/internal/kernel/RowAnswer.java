package dev.kullback.internal.kernel;

/** Findings in rows [row0, row1), in pieces of columns, which come in order. Any thread may use it until the consumer returns. */
public interface RowAnswer {
  int row0();

  int row1();

  int pieces();

  /** First column of a piece; {@code column(pieces())} is the end of the last. */
  int column(int piece);

  /** Counts the entries of row i in a piece; −1 if they were too many to be kept. */
  int count(int i, int piece);

  /** Copies these columns and their values to the starts of arrays, by value and then column if k > 0, else by column. */
  void copy(int i, int piece, int[] index, double[] value);

  /** The first or second number of row i in a piece. */
  double number(int i, int piece, int which);
}
