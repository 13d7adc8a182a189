package dev.kullback.internal.vector.full;

import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;

/** {@link TriangleKernels} for one triangle, without vectors: sums of the same terms in the same order, so the same bits. */
final class PlainTriangles {
  private static final int MR = ProductKernels.MR;
  private static final int NR = FullColumns.NR;

  private PlainTriangles() {}

  /** {@link TriangleKernels#measure}. */
  static void measure(double[] l, int d, double[] sums, double[] norms, int to) {
    Arrays.fill(sums, 0, d, 0);
    double rows = 0;
    double squares = 0;
    for (int r = 0, k = 0; r < d; r++) {
      double row = 0;
      double square = 0;
      for (int c = 0; c <= r; c++, k++) {
        double x = Math.abs(l[k]);
        row += x;
        square = Math.fma(x, x, square);
        sums[c] += x;
      }
      rows = Math.max(rows, row);
      squares += square;
    }
    double columns = 0;
    for (int c = 0; c < d; c++) {
      columns = Math.max(columns, sums[c]);
    }
    norms[to] = Math.sqrt(squares);
    norms[to + 1] = Math.sqrt(rows * columns) * norms[to];
  }

  /** {@link TriangleKernels#squareRows}. */
  static void squareRows(
      double[] l, int d, double[] out, int at, double[] norms, Checkpoint checkpoint) {
    double squares = 0;
    int k = at;
    for (int r = 0, row = 0; r < d; row += ++r) {
      checkpoint.pass(Checkpoint.ofPlain((long) r * r / 2));
      double square = 0;
      for (int c = 0, column = 0; c <= r; column += ++c, k += MR) {
        double sum = 0;
        for (int i = 0; i <= c; i++) {
          sum = Math.fma(l[row + i], l[column + i], sum);
        }
        out[k] = sum;
        if (c < r) {
          square = Math.fma(sum, sum, square);
        } else {
          squares = squares + (square + square) + sum * sum;
        }
      }
    }
    norms[0] = squares;
  }

  /** {@link TriangleKernels#invert}. */
  static void invert(double[] l, int d, double[] w, Checkpoint checkpoint) {
    for (int c = 0, diagonal = 0; c < d; diagonal += ++c + 1) {
      w[diagonal] = 1 / l[diagonal];
    }
    for (int r = 0, row = 0; r < d; row += ++r) {
      checkpoint.pass(Checkpoint.ofPlain((long) r * r / 2));
      for (int c = r - 1; c >= 0; c--) {
        double sum = 0;
        for (int i = r, below = row; i > c; below -= i--) {
          sum = Math.fma(w[row + i], l[below + c], sum);
        }
        w[row + c] = -sum * w[Cholesky.packedLength(c) + c];
      }
    }
  }

  /** {@link TriangleKernels#squareColumns}. */
  static void squareColumns(
      double[] w, int d, double[] out, int at, double[] norms, Checkpoint checkpoint) {
    double squares = 0;
    int k = at;
    for (int r = 0, row = 0; r < d; row += ++r) {
      checkpoint.pass(Checkpoint.ofPlain((long) r * (d - r)));
      double square = 0;
      for (int c = 0; c <= r; c++, k += NR) {
        double sum = 0;
        for (int i = r, from = row; i < d; from += ++i) {
          sum = Math.fma(w[from + r], w[from + c], sum);
        }
        if (c < r) {
          sum += sum;
          square = Math.fma(sum, sum, square);
        } else {
          squares = squares + square * 0.5 + sum * sum;
        }
        out[k] = sum;
      }
    }
    norms[0] = squares;
  }

  /** {@link TriangleKernels#solve}. */
  static void solve(
      double[] w, double[] m, int d, double[] out, int at, double[] y, double[] norms, int to) {
    double squares = 0;
    double means = 0;
    for (int r = 0, row = 0; r < d; row += ++r) {
      double sum = 0;
      for (int c = 0; c <= r; c++) {
        sum = Math.fma(w[row + c], m[c], sum);
      }
      y[r] = sum;
      squares = Math.fma(sum, sum, squares);
      means = Math.fma(m[r], m[r], means);
    }
    norms[to] = squares;
    norms[to + 1] = means;
    for (int c = 0; c < d; c++) {
      double sum = 0;
      for (int r = c; r < d; r++) {
        sum = Math.fma(w[Cholesky.packedLength(r) + c], y[r], sum);
      }
      out[at + c * NR] = sum * -2;
    }
  }
}
