package dev.kullback.internal.vector;

import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** The cotangents of a matrix: one of each row for all its columns, or one of each entry, of which there may be some rows at a time. */
public final class Cotangents {
  private double @Nullable [] ofRows;
  private float @Nullable [] matrix32;
  private double @Nullable [] matrix64;
  private int columns;

  /** The first row of the matrix that is there. */
  private int row0;

  /** Takes one of each row. */
  public void set(double[] ofRows) {
    set(null, null, 0);
    this.ofRows = ofRows;
  }

  /** Takes a row-major matrix, one of the two arrays; with neither it takes none. */
  public void set(float @Nullable [] matrix32, double @Nullable [] matrix64, int columns) {
    ofRows = null;
    this.matrix32 = matrix32;
    this.matrix64 = matrix64;
    this.columns = columns;
    row0 = 0;
  }

  /** Takes shares of each row's, of rows from {@code row0} on. */
  public void setShares(double[] shares, int row0, int columns) {
    matrix64 = shares;
    this.columns = columns;
    this.row0 = row0;
  }

  /** Returns those of rows. */
  public double[] ofRows() {
    return Objects.requireNonNull(ofRows);
  }

  /** Reads those of row i and columns [column, end) to an index and behind it; returns whether each is 0 or of a magnitude in [least, most]. */
  public boolean read(int i, int column, int end, double[] to, int at, double least, double most) {
    int n = end - column;
    int first = (i - row0) * columns + column;
    if (matrix64 != null) {
      System.arraycopy(matrix64, first, to, at, n);
    } else if (matrix32 != null) {
      float[] from = matrix32;
      for (int k = 0; k < n; k++) {
        to[at + k] = from[first + k];
      }
    } else {
      Arrays.fill(to, at, at + n, ofRows()[i]);
    }
    if (ofRows != null && least == 0) {
      return isWithin(ofRows[i], least, most); // of which they are shares
    }
    boolean are = true;
    for (int k = at; k < at + n; k++) {
      are &= isWithin(to[k], least, most);
    }
    return are;
  }

  /** Reads them rounded to float, which the answer is not of, in one pass: two took twice the time. */
  public boolean read(int i, int column, int end, float[] to, int at, float least, float most) {
    int n = end - column;
    int first = (i - row0) * columns + column;
    boolean are = true;
    if (matrix64 != null) {
      double[] from = matrix64;
      for (int k = 0; k < n; k++) {
        double x = from[first + k];
        are &= isWithin(x, least, most);
        to[at + k] = (float) x;
      }
    } else if (matrix32 != null) {
      System.arraycopy(matrix32, first, to, at, n);
      for (int k = at; k < at + n; k++) {
        float size = Math.abs(to[k]);
        are &= size <= most && (size >= least || size == 0);
      }
    } else {
      double x = ofRows()[i];
      Arrays.fill(to, at, at + n, (float) x);
      are = isWithin(x, least, most);
    }
    return are;
  }

  private static boolean isWithin(double x, double least, double most) {
    double size = Math.abs(x);
    return size <= most && (size >= least || size == 0);
  }
}
