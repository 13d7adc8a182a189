package dev.kullback.internal.vector.full;

import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.vector.Species;
import dev.kullback.internal.work.Checkpoint;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.VectorSpecies;

/** Products, inverses and norms of packed triangles, one in each lane: entry k of lane i is at {@code [k·V + i]}. */
final class TriangleKernels {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final int V = S.length();
  private static final int MR = ProductKernels.MR;
  private static final int NR = FullColumns.NR;

  private TriangleKernels() {}

  /** Subtracts the centre from means. */
  static void subtract(double[] centre, int d, double[] m) {
    for (int h = 0; h < d; h++) {
      DoubleVector.fromArray(S, m, h * V).sub(centre[h]).intoArray(m, h * V);
    }
  }

  /** Stores ‖L‖ to {@code norms[to…]}, and {@code ν(L) = √(‖L‖₁‖L‖_∞)·‖L‖ ≥ ‖|L||Lᵀ|‖, ‖|Lᵀ||L|‖} after it. */
  static void measure(double[] l, int d, double[] sums, double[] norms, int to) {
    DoubleVector zero = DoubleVector.zero(S);
    for (int c = 0; c < d; c++) {
      zero.intoArray(sums, c * V);
    }
    DoubleVector rows = zero;
    DoubleVector squares = zero;
    for (int r = 0, k = 0; r < d; r++) {
      DoubleVector row = zero;
      DoubleVector square = zero;
      for (int c = 0; c <= r; c++, k++) {
        DoubleVector x = DoubleVector.fromArray(S, l, k * V).abs();
        row = row.add(x);
        square = x.fma(x, square);
        DoubleVector.fromArray(S, sums, c * V).add(x).intoArray(sums, c * V);
      }
      rows = rows.max(row);
      squares = squares.add(square);
    }
    DoubleVector columns = zero;
    for (int c = 0; c < d; c++) {
      columns = columns.max(DoubleVector.fromArray(S, sums, c * V));
    }
    DoubleVector norm = squares.sqrt();
    norm.intoArray(norms, to);
    rows.mul(columns).sqrt().mul(norm).intoArray(norms, to + V);
  }

  /** Stores {@code Σ = LLᵀ} to {@code out[at + k·MR]}, and ‖Σ‖² to {@code norms}. */
  static void squareRows(
      double[] l, int d, double[] out, int at, double[] norms, Checkpoint checkpoint) {
    int r = 0;
    for (; r + 4 <= d; r += 4) {
      checkpoint.pass(2L * V * r * r);
      for (int c = 0; c < r; c += 2) {
        TriangleMicroKernels.squareRows4x2(l, r, c, out, at);
      }
      TriangleMicroKernels.squareRows4(l, r, out, at);
    }
    for (; r < d; r++) {
      squareRow(l, r, out, at);
    }
    squaredNorm(out, at, MR, d, 2, norms);
  }

  /** Stores ‖·‖² of a symmetric matrix, packed with a stride, to {@code norms}; squares off the diagonal count {@code weight} times. */
  private static void squaredNorm(
      double[] in, int from, int stride, int d, double weight, double[] norms) {
    DoubleVector squares = DoubleVector.zero(S);
    for (int i = 0, k = from; i < d; i++, k += stride) {
      DoubleVector sum = DoubleVector.zero(S);
      for (int c = 0; c < i; c++, k += stride) {
        DoubleVector x = DoubleVector.fromArray(S, in, k);
        sum = x.fma(x, sum);
      }
      DoubleVector x = DoubleVector.fromArray(S, in, k);
      squares = squares.add(sum.mul(weight)).add(x.mul(x));
    }
    squares.intoArray(norms, 0);
  }

  private static void squareRow(double[] l, int r, double[] out, int at) {
    int row = Cholesky.packedLength(r);
    for (int c = 0; c <= r; c++) {
      int column = Cholesky.packedLength(c);
      DoubleVector sum = DoubleVector.zero(S);
      for (int i = 0; i <= c; i++) {
        DoubleVector x = DoubleVector.fromArray(S, l, (row + i) * V);
        sum = x.fma(DoubleVector.fromArray(S, l, (column + i) * V), sum);
      }
      sum.intoArray(out, at + (row + c) * MR);
    }
  }

  /** Computes {@code W = L⁻¹} by rows from right to left, for the residual W L − I is small that way. */
  static void invert(double[] l, int d, double[] w, Checkpoint checkpoint) {
    for (int c = 0, diagonal = 0; c < d; diagonal += (++c + 1) * V) {
      DoubleVector.broadcast(S, 1)
          .div(DoubleVector.fromArray(S, l, diagonal))
          .intoArray(w, diagonal);
    }
    int r = 0;
    for (; r + 4 <= d; r += 4) {
      checkpoint.pass(2L * V * r * r);
      for (int i = r + 1; i < r + 4; i++) {
        invertRow(l, i, r, w);
      }
      for (int c = r - 2; c >= 0; c -= 2) {
        TriangleMicroKernels.invert4x2(l, r, c, w);
      }
    }
    for (; r < d; r++) {
      invertRow(l, r, 0, w);
    }
  }

  /** Computes row r of W left of the diagonal, to column {@code last}. */
  private static void invertRow(double[] l, int r, int last, double[] w) {
    int row = Cholesky.packedLength(r);
    for (int c = r - 1; c >= last; c--) {
      DoubleVector sum = DoubleVector.zero(S);
      for (int i = r, below = row; i > c; below -= i--) {
        DoubleVector x = DoubleVector.fromArray(S, w, (row + i) * V);
        sum = x.fma(DoubleVector.fromArray(S, l, (below + c) * V), sum);
      }
      int diagonal = Cholesky.packedLength(c) + c;
      sum.neg().mul(DoubleVector.fromArray(S, w, diagonal * V)).intoArray(w, (row + c) * V);
    }
  }

  /** Stores {@code P = WᵀW} to {@code out[at + k·NR]}, twice what is off the diagonal, and ‖P‖² to {@code norms}. */
  static void squareColumns(
      double[] w, int d, double[] out, int at, double[] norms, Checkpoint checkpoint) {
    int r = 0;
    for (; r + 4 <= d; r += 4) {
      checkpoint.pass(4L * V * r * (d - r));
      for (int c = 0; c < r; c += 4) {
        TriangleMicroKernels.squareColumns2x4(w, d, r, c, out, at);
        TriangleMicroKernels.squareColumns2x4(w, d, r + 2, c, out, at);
      }
      TriangleMicroKernels.squareColumns4(w, d, r, out, at);
    }
    for (; r < d; r++) {
      squareColumn(w, d, r, out, at);
    }
    squaredNorm(out, at, NR, d, 0.5, norms);
  }

  private static void squareColumn(double[] w, int d, int r, double[] out, int at) {
    int row = Cholesky.packedLength(r);
    for (int c = 0; c <= r; c++) {
      DoubleVector sum = DoubleVector.zero(S);
      for (int i = r, from = row; i < d; from += ++i) {
        DoubleVector x = DoubleVector.fromArray(S, w, (from + r) * V);
        sum = x.fma(DoubleVector.fromArray(S, w, (from + c) * V), sum);
      }
      (c < r ? sum.add(sum) : sum).intoArray(out, at + (row + c) * NR);
    }
  }

  /** Stores {@code −2 P m = −2 Wᵀ(W m)} to {@code out[at + h·NR]}; {@code mᵀ P m = ‖W m‖²} and ‖m‖² to {@code norms}. */
  static void solve(
      double[] w, double[] m, int d, double[] out, int at, double[] y, double[] norms, int to) {
    DoubleVector squares = DoubleVector.zero(S);
    DoubleVector means = DoubleVector.zero(S);
    for (int r = 0, row = 0; r < d; row += ++r) {
      DoubleVector sum = DoubleVector.zero(S);
      for (int c = 0; c <= r; c++) {
        DoubleVector x = DoubleVector.fromArray(S, w, (row + c) * V);
        sum = x.fma(DoubleVector.fromArray(S, m, c * V), sum);
      }
      sum.intoArray(y, r * V);
      squares = sum.fma(sum, squares);
      DoubleVector x = DoubleVector.fromArray(S, m, r * V);
      means = x.fma(x, means);
    }
    squares.intoArray(norms, to);
    means.intoArray(norms, to + V);
    for (int c = 0; c < d; c++) {
      DoubleVector sum = DoubleVector.zero(S);
      for (int r = c; r < d; r++) {
        DoubleVector x = DoubleVector.fromArray(S, w, (Cholesky.packedLength(r) + c) * V);
        sum = x.fma(DoubleVector.fromArray(S, y, r * V), sum);
      }
      sum.mul(-2).intoArray(out, at + c * NR);
    }
  }
}
