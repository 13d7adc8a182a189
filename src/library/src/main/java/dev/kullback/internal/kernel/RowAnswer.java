package dev.kullback.internal.kernel;

/**
 * What a kernel found of the rows [row0, row1) by a {@link RowQuery}, in pieces of their columns, which come in order. For any thread,
 * until whom it was handed to returns.
 */
public interface RowAnswer {
  int row0();

  int row1();

  int pieces();

  /** First column of a piece; that of the one behind the last is the end. */
  int column(int piece);

  /** How many entries of row i are in a piece, or −1: too many to have been kept. */
  int count(int i, int piece);

  /** Copies these columns and their values to the starts of arrays, by value and then column if k > 0, else by column. */
  void copy(int i, int piece, int[] index, double[] value);

  /** The first or second number of row i in a piece. */
  double number(int i, int piece, int which);
}
