package dev.kullback.internal.vector.full;

import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.vector.Species;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * Products, inverses and norms of packed triangles, one in each lane: entry k of lane i is at {@code [k·V + i]}. Loops over blocks of
 * entries that share what they load, unrolled.
 */
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

  /** ‖L‖ to {@code norms[to…]}, and {@code ν(L) = √(‖L‖₁‖L‖_∞)·‖L‖ ≥ ‖|L||Lᵀ|‖, ‖|Lᵀ||L|‖} after it. */
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

  /**
   * {@code Σ = LLᵀ} to {@code out[at + k·MR]}, and ‖Σ‖² to {@code norms}; blocks of four rows and two columns share
   * what they load.
   */
  static void squareRows(double[] l, int d, double[] out, int at, double[] norms) {
    int r = 0;
    for (; r + 4 <= d; r += 4) {
      for (int c = 0; c < r; c += 2) {
        squareRows4x2(l, r, c, out, at);
      }
      squareRows4(l, r, out, at);
    }
    for (; r < d; r++) {
      squareRow(l, r, out, at);
    }
    DoubleVector squares = DoubleVector.zero(S);
    for (int i = 0, k = at; i < d; i++, k += MR) {
      DoubleVector sum = DoubleVector.zero(S);
      for (int c = 0; c < i; c++, k += MR) {
        DoubleVector x = DoubleVector.fromArray(S, out, k);
        sum = x.fma(x, sum);
      }
      DoubleVector x = DoubleVector.fromArray(S, out, k);
      squares = squares.add(sum.add(sum)).add(x.mul(x));
    }
    squares.intoArray(norms, 0);
  }

  /** Columns c and c + 1 < r of rows r … r + 3. */
  private static void squareRows4x2(double[] l, int r, int c, double[] out, int at) {
    int r0 = Cholesky.packedLength(r) * V;
    int r1 = r0 + (r + 1) * V;
    int r2 = r1 + (r + 2) * V;
    int r3 = r2 + (r + 3) * V;
    int c0 = Cholesky.packedLength(c) * V;
    int c1 = c0 + (c + 1) * V;
    DoubleVector a0 = DoubleVector.zero(S);
    DoubleVector a1 = DoubleVector.zero(S);
    DoubleVector a2 = DoubleVector.zero(S);
    DoubleVector a3 = DoubleVector.zero(S);
    DoubleVector b0 = DoubleVector.zero(S);
    DoubleVector b1 = DoubleVector.zero(S);
    DoubleVector b2 = DoubleVector.zero(S);
    DoubleVector b3 = DoubleVector.zero(S);
    for (int i = 0; i <= c * V; i += V) {
      DoubleVector x = DoubleVector.fromArray(S, l, c0 + i);
      DoubleVector y = DoubleVector.fromArray(S, l, c1 + i);
      DoubleVector z = DoubleVector.fromArray(S, l, r0 + i);
      a0 = x.fma(z, a0);
      b0 = y.fma(z, b0);
      z = DoubleVector.fromArray(S, l, r1 + i);
      a1 = x.fma(z, a1);
      b1 = y.fma(z, b1);
      z = DoubleVector.fromArray(S, l, r2 + i);
      a2 = x.fma(z, a2);
      b2 = y.fma(z, b2);
      z = DoubleVector.fromArray(S, l, r3 + i);
      a3 = x.fma(z, a3);
      b3 = y.fma(z, b3);
    }
    int i = (c + 1) * V;
    DoubleVector y = DoubleVector.fromArray(S, l, c1 + i);
    b0 = y.fma(DoubleVector.fromArray(S, l, r0 + i), b0);
    b1 = y.fma(DoubleVector.fromArray(S, l, r1 + i), b1);
    b2 = y.fma(DoubleVector.fromArray(S, l, r2 + i), b2);
    b3 = y.fma(DoubleVector.fromArray(S, l, r3 + i), b3);
    int to = at + c * MR;
    a0.intoArray(out, to + r0 / V * MR);
    b0.intoArray(out, to + r0 / V * MR + MR);
    a1.intoArray(out, to + r1 / V * MR);
    b1.intoArray(out, to + r1 / V * MR + MR);
    a2.intoArray(out, to + r2 / V * MR);
    b2.intoArray(out, to + r2 / V * MR + MR);
    a3.intoArray(out, to + r3 / V * MR);
    b3.intoArray(out, to + r3 / V * MR + MR);
  }

  /** The columns from r on of rows r … r + 3. */
  private static void squareRows4(double[] l, int r, double[] out, int at) {
    int r0 = Cholesky.packedLength(r);
    int r1 = r0 + r + 1;
    int r2 = r1 + r + 2;
    int r3 = r2 + r + 3;
    DoubleVector a00 = DoubleVector.zero(S);
    DoubleVector a10 = DoubleVector.zero(S);
    DoubleVector a11 = DoubleVector.zero(S);
    DoubleVector a20 = DoubleVector.zero(S);
    DoubleVector a21 = DoubleVector.zero(S);
    DoubleVector a22 = DoubleVector.zero(S);
    DoubleVector a30 = DoubleVector.zero(S);
    DoubleVector a31 = DoubleVector.zero(S);
    DoubleVector a32 = DoubleVector.zero(S);
    DoubleVector a33 = DoubleVector.zero(S);
    DoubleVector x0;
    DoubleVector x1;
    DoubleVector x2;
    DoubleVector x3;
    for (int i = 0; i <= r; i++) {
      x0 = DoubleVector.fromArray(S, l, (r0 + i) * V);
      x1 = DoubleVector.fromArray(S, l, (r1 + i) * V);
      x2 = DoubleVector.fromArray(S, l, (r2 + i) * V);
      x3 = DoubleVector.fromArray(S, l, (r3 + i) * V);
      a00 = x0.fma(x0, a00);
      a10 = x1.fma(x0, a10);
      a11 = x1.fma(x1, a11);
      a20 = x2.fma(x0, a20);
      a21 = x2.fma(x1, a21);
      a22 = x2.fma(x2, a22);
      a30 = x3.fma(x0, a30);
      a31 = x3.fma(x1, a31);
      a32 = x3.fma(x2, a32);
      a33 = x3.fma(x3, a33);
    }
    x1 = DoubleVector.fromArray(S, l, (r1 + r + 1) * V);
    x2 = DoubleVector.fromArray(S, l, (r2 + r + 1) * V);
    x3 = DoubleVector.fromArray(S, l, (r3 + r + 1) * V);
    a11 = x1.fma(x1, a11);
    a21 = x2.fma(x1, a21);
    a22 = x2.fma(x2, a22);
    a31 = x3.fma(x1, a31);
    a32 = x3.fma(x2, a32);
    a33 = x3.fma(x3, a33);
    x2 = DoubleVector.fromArray(S, l, (r2 + r + 2) * V);
    x3 = DoubleVector.fromArray(S, l, (r3 + r + 2) * V);
    a22 = x2.fma(x2, a22);
    a32 = x3.fma(x2, a32);
    a33 = x3.fma(x3, a33);
    x3 = DoubleVector.fromArray(S, l, (r3 + r + 3) * V);
    a33 = x3.fma(x3, a33);
    int to = at + r * MR;
    a00.intoArray(out, to + r0 * MR);
    a10.intoArray(out, to + r1 * MR);
    a11.intoArray(out, to + (r1 + 1) * MR);
    a20.intoArray(out, to + r2 * MR);
    a21.intoArray(out, to + (r2 + 1) * MR);
    a22.intoArray(out, to + (r2 + 2) * MR);
    a30.intoArray(out, to + r3 * MR);
    a31.intoArray(out, to + (r3 + 1) * MR);
    a32.intoArray(out, to + (r3 + 2) * MR);
    a33.intoArray(out, to + (r3 + 3) * MR);
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

  /**
   * {@code W = L⁻¹} by rows from right to left, for the residual W L − I is small that way; four rows and two columns at a time
   * share what they load.
   */
  static void invert(double[] l, int d, double[] w) {
    for (int c = 0, diagonal = 0; c < d; diagonal += (++c + 1) * V) {
      DoubleVector.broadcast(S, 1)
          .div(DoubleVector.fromArray(S, l, diagonal))
          .intoArray(w, diagonal);
    }
    int r = 0;
    for (; r + 4 <= d; r += 4) {
      for (int i = r + 1; i < r + 4; i++) {
        invertRow(l, i, r, w);
      }
      for (int c = r - 2; c >= 0; c -= 2) {
        invert4x2(l, r, c, w);
      }
    }
    for (; r < d; r++) {
      invertRow(l, r, 0, w);
    }
  }

  /** Columns c + 1 < r and c of rows r … r + 3. */
  private static void invert4x2(double[] l, int r, int c, double[] w) {
    int r0 = Cholesky.packedLength(r) * V;
    int r1 = r0 + (r + 1) * V;
    int r2 = r1 + (r + 2) * V;
    int r3 = r2 + (r + 3) * V;
    int i = r * V;
    int j = c * V;
    // below row r, W of the four rows is a triangle
    DoubleVector x = DoubleVector.fromArray(S, l, r3 + j);
    DoubleVector y = DoubleVector.fromArray(S, l, r3 + j + V);
    DoubleVector z = DoubleVector.fromArray(S, w, r3 + i + 3 * V);
    DoubleVector a3 = x.mul(z);
    DoubleVector b3 = y.mul(z);
    x = DoubleVector.fromArray(S, l, r2 + j);
    y = DoubleVector.fromArray(S, l, r2 + j + V);
    z = DoubleVector.fromArray(S, w, r3 + i + 2 * V);
    a3 = x.fma(z, a3);
    b3 = y.fma(z, b3);
    z = DoubleVector.fromArray(S, w, r2 + i + 2 * V);
    DoubleVector a2 = x.mul(z);
    DoubleVector b2 = y.mul(z);
    x = DoubleVector.fromArray(S, l, r1 + j);
    y = DoubleVector.fromArray(S, l, r1 + j + V);
    z = DoubleVector.fromArray(S, w, r3 + i + V);
    a3 = x.fma(z, a3);
    b3 = y.fma(z, b3);
    z = DoubleVector.fromArray(S, w, r2 + i + V);
    a2 = x.fma(z, a2);
    b2 = y.fma(z, b2);
    z = DoubleVector.fromArray(S, w, r1 + i + V);
    DoubleVector a1 = x.mul(z);
    DoubleVector b1 = y.mul(z);
    DoubleVector a0 = DoubleVector.zero(S);
    DoubleVector b0 = DoubleVector.zero(S);
    for (int below = r0 + j; i > j + V; below -= i, i -= V) {
      x = DoubleVector.fromArray(S, l, below);
      y = DoubleVector.fromArray(S, l, below + V);
      z = DoubleVector.fromArray(S, w, r0 + i);
      a0 = x.fma(z, a0);
      b0 = y.fma(z, b0);
      z = DoubleVector.fromArray(S, w, r1 + i);
      a1 = x.fma(z, a1);
      b1 = y.fma(z, b1);
      z = DoubleVector.fromArray(S, w, r2 + i);
      a2 = x.fma(z, a2);
      b2 = y.fma(z, b2);
      z = DoubleVector.fromArray(S, w, r3 + i);
      a3 = x.fma(z, a3);
      b3 = y.fma(z, b3);
    }
    int above = Cholesky.packedLength(c + 1) + c;
    y = DoubleVector.fromArray(S, w, (above + 1) * V).neg();
    b0 = b0.mul(y);
    b1 = b1.mul(y);
    b2 = b2.mul(y);
    b3 = b3.mul(y);
    x = DoubleVector.fromArray(S, l, above * V);
    y = DoubleVector.fromArray(S, w, (above - c - 1) * V).neg();
    x.fma(b0, a0).mul(y).intoArray(w, r0 + j);
    b0.intoArray(w, r0 + j + V);
    x.fma(b1, a1).mul(y).intoArray(w, r1 + j);
    b1.intoArray(w, r1 + j + V);
    x.fma(b2, a2).mul(y).intoArray(w, r2 + j);
    b2.intoArray(w, r2 + j + V);
    x.fma(b3, a3).mul(y).intoArray(w, r3 + j);
    b3.intoArray(w, r3 + j + V);
  }

  /** Row r of W left of the diagonal, to column {@code last}. */
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

  /**
   * {@code P = WᵀW} to {@code out[at + k·NR]}, twice what is off the diagonal, and ‖P‖² to {@code norms}; blocks of two rows
   * and four columns share what they load.
   */
  static void squareColumns(double[] w, int d, double[] out, int at, double[] norms) {
    int r = 0;
    for (; r + 4 <= d; r += 4) {
      for (int c = 0; c < r; c += 4) {
        squareColumns2x4(w, d, r, c, out, at);
        squareColumns2x4(w, d, r + 2, c, out, at);
      }
      squareColumns4(w, d, r, out, at);
    }
    for (; r < d; r++) {
      squareColumn(w, d, r, out, at);
    }
    DoubleVector squares = DoubleVector.zero(S);
    for (int i = 0, k = at; i < d; i++, k += NR) {
      DoubleVector sum = DoubleVector.zero(S);
      for (int c = 0; c < i; c++, k += NR) {
        DoubleVector x = DoubleVector.fromArray(S, out, k);
        sum = x.fma(x, sum);
      }
      DoubleVector x = DoubleVector.fromArray(S, out, k);
      squares = squares.add(sum.mul(0.5)).add(x.mul(x));
    }
    squares.intoArray(norms, 0);
  }

  /** Columns c … c + 3 < r of rows r and r + 1. */
  private static void squareColumns2x4(double[] w, int d, int r, int c, double[] out, int at) {
    int row = Cholesky.packedLength(r);
    DoubleVector x = DoubleVector.fromArray(S, w, (row + r) * V);
    int j = (row + c) * V;
    DoubleVector a0 = x.mul(DoubleVector.fromArray(S, w, j));
    DoubleVector a1 = x.mul(DoubleVector.fromArray(S, w, j + V));
    DoubleVector a2 = x.mul(DoubleVector.fromArray(S, w, j + 2 * V));
    DoubleVector a3 = x.mul(DoubleVector.fromArray(S, w, j + 3 * V));
    DoubleVector b0 = DoubleVector.zero(S);
    DoubleVector b1 = DoubleVector.zero(S);
    DoubleVector b2 = DoubleVector.zero(S);
    DoubleVector b3 = DoubleVector.zero(S);
    for (int i = r + 1, from = (row + r + 1) * V; i < d; from += ++i * V) {
      j = from + c * V;
      x = DoubleVector.fromArray(S, w, from + r * V);
      DoubleVector y = DoubleVector.fromArray(S, w, from + (r + 1) * V);
      DoubleVector z = DoubleVector.fromArray(S, w, j);
      a0 = x.fma(z, a0);
      b0 = y.fma(z, b0);
      z = DoubleVector.fromArray(S, w, j + V);
      a1 = x.fma(z, a1);
      b1 = y.fma(z, b1);
      z = DoubleVector.fromArray(S, w, j + 2 * V);
      a2 = x.fma(z, a2);
      b2 = y.fma(z, b2);
      z = DoubleVector.fromArray(S, w, j + 3 * V);
      a3 = x.fma(z, a3);
      b3 = y.fma(z, b3);
    }
    int to = at + (row + c) * NR;
    a0.add(a0).intoArray(out, to);
    a1.add(a1).intoArray(out, to + NR);
    a2.add(a2).intoArray(out, to + 2 * NR);
    a3.add(a3).intoArray(out, to + 3 * NR);
    to += (r + 1) * NR;
    b0.add(b0).intoArray(out, to);
    b1.add(b1).intoArray(out, to + NR);
    b2.add(b2).intoArray(out, to + 2 * NR);
    b3.add(b3).intoArray(out, to + 3 * NR);
  }

  /** The columns from r on of rows r … r + 3. */
  private static void squareColumns4(double[] w, int d, int r, double[] out, int at) {
    int r0 = Cholesky.packedLength(r);
    int r1 = r0 + r + 1;
    int r2 = r1 + r + 2;
    int r3 = r2 + r + 3;
    DoubleVector x0 = DoubleVector.fromArray(S, w, (r0 + r) * V);
    DoubleVector a00 = x0.mul(x0);
    x0 = DoubleVector.fromArray(S, w, (r1 + r) * V);
    DoubleVector x1 = DoubleVector.fromArray(S, w, (r1 + r + 1) * V);
    a00 = x0.fma(x0, a00);
    DoubleVector a10 = x1.mul(x0);
    DoubleVector a11 = x1.mul(x1);
    x0 = DoubleVector.fromArray(S, w, (r2 + r) * V);
    x1 = DoubleVector.fromArray(S, w, (r2 + r + 1) * V);
    DoubleVector x2 = DoubleVector.fromArray(S, w, (r2 + r + 2) * V);
    a00 = x0.fma(x0, a00);
    a10 = x1.fma(x0, a10);
    a11 = x1.fma(x1, a11);
    DoubleVector a20 = x2.mul(x0);
    DoubleVector a21 = x2.mul(x1);
    DoubleVector a22 = x2.mul(x2);
    DoubleVector x3;
    DoubleVector a30 = DoubleVector.zero(S);
    DoubleVector a31 = DoubleVector.zero(S);
    DoubleVector a32 = DoubleVector.zero(S);
    DoubleVector a33 = DoubleVector.zero(S);
    for (int i = r + 3, j = (r3 + r) * V; i < d; j += ++i * V) {
      x0 = DoubleVector.fromArray(S, w, j);
      x1 = DoubleVector.fromArray(S, w, j + V);
      x2 = DoubleVector.fromArray(S, w, j + 2 * V);
      x3 = DoubleVector.fromArray(S, w, j + 3 * V);
      a00 = x0.fma(x0, a00);
      a10 = x1.fma(x0, a10);
      a11 = x1.fma(x1, a11);
      a20 = x2.fma(x0, a20);
      a21 = x2.fma(x1, a21);
      a22 = x2.fma(x2, a22);
      a30 = x3.fma(x0, a30);
      a31 = x3.fma(x1, a31);
      a32 = x3.fma(x2, a32);
      a33 = x3.fma(x3, a33);
    }
    int to = at + r * NR;
    a00.intoArray(out, to + r0 * NR);
    a10.add(a10).intoArray(out, to + r1 * NR);
    a11.intoArray(out, to + (r1 + 1) * NR);
    a20.add(a20).intoArray(out, to + r2 * NR);
    a21.add(a21).intoArray(out, to + (r2 + 1) * NR);
    a22.intoArray(out, to + (r2 + 2) * NR);
    a30.add(a30).intoArray(out, to + r3 * NR);
    a31.add(a31).intoArray(out, to + (r3 + 1) * NR);
    a32.add(a32).intoArray(out, to + (r3 + 2) * NR);
    a33.intoArray(out, to + (r3 + 3) * NR);
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

  /** {@code −2 P m = −2 Wᵀ(W m)} to {@code out[at + h·NR]}; {@code mᵀ P m = ‖W m‖²} and ‖m‖² to {@code norms}. */
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
