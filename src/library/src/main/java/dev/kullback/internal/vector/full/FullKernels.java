package dev.kullback;

import java.util.Arrays;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * Packing and micro-kernel of the full-covariance product. With means m relative to a centre, {@code P = Σ_p⁻¹} and K = D(D+3)/2,
 *
 * <pre>
 * A_i = [ Σ_q + m_q m_qᵀ, packed;                   m_q      ]
 * B_j = [ P, packed, twice what is off the diagonal; −2 P m_p ]
 *
 * tr(P Σ_q) + (m_q − m_p)ᵀ P (m_q − m_p) = A_i · B_j + m_pᵀ P m_p
 * </pre>
 *
 * <p>Layouts, for column panel b, row panel a:
 *
 * <pre>
 * columns [b][k][NR]   B of the NR columns of panel b; the vector side
 * rows    [a][k][MR]   A of the MR rows of panel a, a chunk of k at a time; the broadcast side
 * </pre>
 *
 * <p>Batches are prepared with a Gaussian in each lane. An entry's value depends on its row and its column's batch alone: every
 * lane sees the same operations in the same order.
 */
final class FullKernels {
  static final VectorSpecies<Double> S = VectorWidth.DOUBLE;

  private static final int V = S.length();

  /**
   * Rows of a tile: 6x4, 8x2, 10x2 and 12x2 vectors of 512 bits ran at 58 … 60·10⁹ multiply-adds/s, 8x3 and 9x3 at 38 … 51 (Zen
   * 5, one core, JDK 25, the ceiling is 64). Eight rows are whole vectors, too.
   */
  static final int MR = 8;

  /** Column vectors of a kernel: two want more than the 16 registers that AVX2 has. */
  private static final int NV = VectorWidth.BITS == 512 ? 2 : 1;

  /** Columns of a panel. */
  static final int NR = Math.max(NV * V, MR);

  /** Entries of K that a micro-kernel accumulates: a column panel's chunk, 16 KiB, stays in the L1 cache. 64 costs 5 %. */
  static final int KC = 128;

  /** Gaussians whose means tell where a batch lies. */
  private static final int SAMPLES = 31;

  /** For what the first-order error bounds leave out. */
  private static final double SAFETY = 1.0625;

  private static final double UNIT = 0x1p-53 * SAFETY;

  private FullKernels() {}

  /** K. */
  static int length(int d) {
    return FullGaussians.packedLength(d) + d;
  }

  /** Roundings of a product: those of a chunk, and one for each chunk. */
  private static double roundings(int d) {
    return Math.min(KC, length(d)) + Math.ceilDiv(length(d), KC) + 1;
  }

  // Error bounds, in units of rounding, with g = roundings(d), norms ‖·‖ of Frobenius, and ν(L) ≥
  // ‖|L||Lᵀ|‖:
  //
  // product          g·‖P‖·(‖Σq‖ + 2‖mq‖² + ‖mp‖²)     as 2‖mq‖‖P mp‖ ≤ ‖P‖(‖mq‖² + ‖mp‖²)
  // Σq = LLᵀ         (D+3)·ν(Lq)·‖P‖                   L itself is rounded
  // P = WᵀW, P mp    D·ν(Wᵀ)·(‖Σq‖ + 3‖mq‖² + 5‖mp‖²)
  // m = μ − centre   4·‖P‖·(‖mq‖² + ‖mp‖²)
  //
  // half of which is at most weightQ·weightP + noiseP below. W = Lp⁻¹ is computed such that W Lp =
  // I + G with |G| ≤ (D+6)|W||Lp|
  // (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 14.2.1), so G only
  // scales what it is used for.

  /** Doubles that {@link #packRows} wants. */
  static int rowsLength(FullGaussians g) {
    return Math.ceilDiv(g.size(), MR) * MR * FullGaussians.packedLength(g.dimension());
  }

  static FullRows packRows(FullGaussians g) {
    return packRows(g, new double[rowsLength(g)]);
  }

  /** Packs Σ of the batch into the memory given, Gaussians in lanes. */
  static FullRows packRows(FullGaussians g, double[] covariance) {
    int n = g.size();
    int d = g.dimension();
    int length = FullGaussians.packedLength(d);
    int padded = Math.ceilDiv(n, MR) * MR;
    double[] mean = new double[padded * d];
    double[] offset = new double[padded];
    double[] noise = new double[padded];
    double[] weight = new double[padded];
    double[] l = new double[length * V];
    double[] sums = new double[d * V];
    double[] norms = new double[3 * V];
    double[] scratch = new double[Transpose.SCRATCH];
    Checkpoint checkpoint = new Checkpoint();
    for (int first = 0; first < n; first += V) {
      checkpoint.pass(V * FullPair.terms(d));
      int count = Math.min(V, n - first);
      lanes(g.scaleTril, first, count, length, l, 0, V, scratch);
      lanes(g.mean, first, count, d, mean, first / MR * MR * d + first % MR, MR, scratch);
      int at = first / MR * MR * length + first % MR;
      squareRows(l, d, covariance, at, norms);
      measure(l, d, sums, norms, V);
      for (int i = 0; i < count; i++) {
        int row = first + i;
        offset[row] = g.isBeyond(row) ? Double.NaN : -g.logDet[row];
        noise[row] = g.logDetBound[row] + 4 * UNIT * Math.abs(g.logDet[row]);
        weight[row] =
            0.5 * UNIT * (roundings(d) * Math.sqrt(norms[i]) + (d + 3) * norms[2 * V + i]);
      }
    }
    return new FullRows(covariance, mean, offset, noise, weight);
  }

  /** The share of {@code ‖m_q‖²} in a row's weight. */
  private static double meanWeight(int d) {
    return 0.5 * UNIT * (2 * roundings(d) + 4);
  }

  /** Doubles that {@link #packColumns} wants. */
  static int columnsLength(FullGaussians g) {
    return Math.ceilDiv(g.size(), NR) * NR * length(g.dimension());
  }

  static FullColumns packColumns(FullGaussians g) {
    return packColumns(g, new double[columnsLength(g)]);
  }

  /** Packs the batch into the memory given, Gaussians in lanes. */
  static FullColumns packColumns(FullGaussians g, double[] values) {
    int n = g.size();
    int d = g.dimension();
    int length = FullGaussians.packedLength(d);
    int panel = length(d) * NR;
    int padded = Math.ceilDiv(n, NR) * NR;
    double[] offset = new double[padded];
    double[] noise = new double[padded];
    double[] weight = new double[padded];
    double[] inverseError = new double[padded];
    double[] tolerance = new double[padded];
    double[] centre = centre(g);
    double[] l = new double[length * V];
    double[] w = new double[length * V];
    double[] m = new double[d * V];
    double[] sums = new double[d * V];
    double[] norms = new double[7 * V];
    double[] scratch = new double[Transpose.SCRATCH];
    double units = roundings(d);
    Checkpoint checkpoint = new Checkpoint();
    for (int first = 0; first < n; first += V) {
      checkpoint.pass(V * FullPair.terms(d));
      int count = Math.min(V, n - first);
      lanes(g.scaleTril, first, count, length, l, 0, V, scratch);
      lanes(g.mean, first, count, d, m, 0, V, scratch);
      subtract(centre, d, m);
      invert(l, d, w);
      int at = first / NR * panel + first % NR;
      squareColumns(w, d, values, at, norms);
      solve(w, m, d, values, at + length * NR, sums, norms, V);
      measure(l, d, sums, norms, 3 * V);
      measure(w, d, sums, norms, 5 * V);
      for (int i = 0; i < count; i++) {
        int j = first + i;
        double precision = Math.sqrt(norms[i]);
        double mahalanobis = norms[V + i];
        double squaredMean = norms[2 * V + i];
        double normL = norms[3 * V + i];
        double spreadL = norms[4 * V + i];
        double normW = norms[5 * V + i];
        double spreadW = norms[6 * V + i];
        double residual =
            UNIT * (d + 6) * Math.min(spreadL / normL * normW, spreadW / normW * normL);
        offset[j] = g.isBeyond(j) ? Double.NaN : g.logDet[j] + 0.5 * (mahalanobis - d);
        noise[j] =
            g.logDetBound[j]
                + 4 * UNIT * (Math.abs(g.logDet[j]) + d + mahalanobis)
                + 0.5 * UNIT * squaredMean * ((units + 4) * precision + 5 * d * spreadW)
                + residual * mahalanobis;
        weight[j] = precision + 1.5 * d / units * spreadW;
        inverseError[j] = residual;
        tolerance[j] = FullVectorKernel.tolerance(normL * normW);
      }
    }
    return new FullColumns(values, centre, offset, noise, weight, inverseError, tolerance);
  }

  /** Medians of some Gaussians' means: unlike the mean of all, a few far away do not draw it from the others. */
  private static double[] centre(FullGaussians g) {
    int d = g.dimension();
    int count = Math.min(g.size(), SAMPLES);
    double[] sample = new double[count];
    double[] centre = new double[d];
    for (int h = 0; h < d; h++) {
      for (int i = 0; i < count; i++) {
        sample[i] = g.mean[(int) ((long) i * g.size() / count) * d + h];
      }
      Arrays.sort(sample);
      centre[h] = sample[count / 2];
    }
    return centre;
  }

  /**
   * {@code out[to + k·stride + i] = in[(first + i)·length + k]}; lanes i from count to V repeat the last or stay as
   * they are.
   *
   * @param scratch {@link Transpose#SCRATCH} elements
   */
  static void lanes(
      double[] in,
      int first,
      int count,
      int length,
      double[] out,
      int to,
      int stride,
      double[] scratch) {
    if (V >= 4) {
      Transpose.of(in, first * length, length, count, length, out, to, stride, scratch);
      return;
    }
    for (int i = 0; i < V; i += 2) {
      int a = (first + Math.min(i, count - 1)) * length;
      int b = (first + Math.min(i + 1, count - 1)) * length;
      for (int k = 0, at = to + i; k < length; k++, at += stride) {
        out[at] = in[a + k];
        out[at + 1] = in[b + k];
      }
    }
  }

  private static void subtract(double[] centre, int d, double[] m) {
    for (int h = 0; h < d; h++) {
      DoubleVector.fromArray(S, m, h * V).sub(centre[h]).intoArray(m, h * V);
    }
  }

  /** ‖L‖ to {@code norms[to…]}, and {@code ν(L) = √(‖L‖₁‖L‖_∞)·‖L‖ ≥ ‖|L||Lᵀ|‖, ‖|Lᵀ||L|‖} after it. */
  private static void measure(double[] l, int d, double[] sums, double[] norms, int to) {
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
  private static void squareRows(double[] l, int d, double[] out, int at, double[] norms) {
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
    int r0 = FullGaussians.packedLength(r) * V;
    int r1 = r0 + (r + 1) * V;
    int r2 = r1 + (r + 2) * V;
    int r3 = r2 + (r + 3) * V;
    int c0 = FullGaussians.packedLength(c) * V;
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
    int r0 = FullGaussians.packedLength(r);
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
    int row = FullGaussians.packedLength(r);
    for (int c = 0; c <= r; c++) {
      int column = FullGaussians.packedLength(c);
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
  private static void invert(double[] l, int d, double[] w) {
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
    int r0 = FullGaussians.packedLength(r) * V;
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
    int above = FullGaussians.packedLength(c + 1) + c;
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
    int row = FullGaussians.packedLength(r);
    for (int c = r - 1; c >= last; c--) {
      DoubleVector sum = DoubleVector.zero(S);
      for (int i = r, below = row; i > c; below -= i--) {
        DoubleVector x = DoubleVector.fromArray(S, w, (row + i) * V);
        sum = x.fma(DoubleVector.fromArray(S, l, (below + c) * V), sum);
      }
      int diagonal = FullGaussians.packedLength(c) + c;
      sum.neg().mul(DoubleVector.fromArray(S, w, diagonal * V)).intoArray(w, (row + c) * V);
    }
  }

  /**
   * {@code P = WᵀW} to {@code out[at + k·NR]}, twice what is off the diagonal, and ‖P‖² to {@code norms}; blocks of two rows
   * and four columns share what they load.
   */
  private static void squareColumns(double[] w, int d, double[] out, int at, double[] norms) {
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
    int row = FullGaussians.packedLength(r);
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
    int r0 = FullGaussians.packedLength(r);
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
    int row = FullGaussians.packedLength(r);
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
  private static void solve(
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
        DoubleVector x = DoubleVector.fromArray(S, w, (FullGaussians.packedLength(r) + c) * V);
        sum = x.fma(DoubleVector.fromArray(S, y, r * V), sum);
      }
      sum.mul(-2).intoArray(out, at + c * NR);
    }
  }

  /** The shares of rows [row0, row1) in the error bound, means relative to the columns' centre. */
  static void weigh(FullRows q, int row0, int row1, double[] centre, double[] weights) {
    int d = centre.length;
    for (int i = row0; i < row1; i++) {
      double squares = 0;
      for (int h = 0, at = i / MR * MR * d + i % MR; h < d; h++, at += MR) {
        double m = q.mean()[at] - centre[h];
        squares += m * m;
      }
      weights[i - row0] = q.weight()[i] + meanWeight(d) * squares;
    }
  }

  /** Entries [k0, k0 + count) of A of rows [row0, row1), to {@code rows [a][k][MR]}; row0 is a multiple of MR. */
  static void packChunk(
      FullRows q, int row0, int row1, double[] centre, int k0, int count, double[] rows) {
    int d = centre.length;
    int length = FullGaussians.packedLength(d);
    int to = 0;
    for (int i = row0; i < row1; i += MR) {
      int m = i * d;
      int r = row(k0);
      int c = k0 - FullGaussians.packedLength(r);
      for (int k = k0; k < k0 + count; k++, to += MR) {
        if (k < length) {
          for (int v = 0; v < MR; v += V) {
            DoubleVector x = DoubleVector.fromArray(S, q.mean(), m + r * MR + v).sub(centre[r]);
            DoubleVector y = DoubleVector.fromArray(S, q.mean(), m + c * MR + v).sub(centre[c]);
            x.fma(y, DoubleVector.fromArray(S, q.covariance(), (i / MR * length + k) * MR + v))
                .intoArray(rows, to + v);
          }
          if (c++ == r) {
            r++;
            c = 0;
          }
        } else {
          int h = k - length;
          for (int v = 0; v < MR; v += V) {
            DoubleVector.fromArray(S, q.mean(), m + h * MR + v)
                .sub(centre[h])
                .intoArray(rows, to + v);
          }
        }
      }
    }
  }

  /** The row of a packed triangle that holds entry k. */
  private static int row(int k) {
    int r = (int) ((Math.sqrt(8.0 * k + 1) - 1) / 2);
    return FullGaussians.packedLength(r) > k
        ? r - 1
        : FullGaussians.packedLength(r + 1) <= k ? r + 1 : r;
  }

  /**
   * Adds a chunk's product of one column panel with row panels to {@code acc[a][MR][NR]}, or stores the first there. What the
   * kernels read of the columns stays in the L1 cache for every row panel after the first.
   *
   * @param c where the chunk begins in {@code columns}
   * @param columnCount how many count; up to a whole panel the others may be computed too
   * @param to where the panel begins in {@code acc}
   */
  static void tile(
      double[] rows,
      int rowPanels,
      double[] columns,
      int c,
      int columnCount,
      int length,
      double[] acc,
      int to,
      boolean first) {
    for (int a = 0; a < rowPanels; a++) {
      int r = a * length * MR;
      int corner = to + a * MR * NR;
      for (int j = 0; j < columnCount; j += NV * V) {
        if (NV == 2 && columnCount - j > V) {
          tile8x2(rows, r, columns, c + j, length, acc, corner + j, first);
        } else {
          tile8x1(rows, r, columns, c + j, length, acc, corner + j, first);
        }
      }
    }
  }

  /** Two vectors of columns over {@code length} entries, added to {@code acc[r][to…]} or, the first, stored there. */
  private static void tile8x2(
      double[] rows,
      int r,
      double[] columns,
      int c,
      int length,
      double[] acc,
      int to,
      boolean first) {
    DoubleVector a0a = DoubleVector.zero(S);
    DoubleVector a0b = DoubleVector.zero(S);
    DoubleVector a1a = DoubleVector.zero(S);
    DoubleVector a1b = DoubleVector.zero(S);
    DoubleVector a2a = DoubleVector.zero(S);
    DoubleVector a2b = DoubleVector.zero(S);
    DoubleVector a3a = DoubleVector.zero(S);
    DoubleVector a3b = DoubleVector.zero(S);
    DoubleVector a4a = DoubleVector.zero(S);
    DoubleVector a4b = DoubleVector.zero(S);
    DoubleVector a5a = DoubleVector.zero(S);
    DoubleVector a5b = DoubleVector.zero(S);
    DoubleVector a6a = DoubleVector.zero(S);
    DoubleVector a6b = DoubleVector.zero(S);
    DoubleVector a7a = DoubleVector.zero(S);
    DoubleVector a7b = DoubleVector.zero(S);
    for (int k = 0; k < length; k++) {
      int i = r + k * MR;
      int j = c + k * NR;
      DoubleVector ba = DoubleVector.fromArray(S, columns, j);
      DoubleVector bb = DoubleVector.fromArray(S, columns, j + V);
      DoubleVector x;
      x = DoubleVector.broadcast(S, rows[i]);
      a0a = x.fma(ba, a0a);
      a0b = x.fma(bb, a0b);
      x = DoubleVector.broadcast(S, rows[i + 1]);
      a1a = x.fma(ba, a1a);
      a1b = x.fma(bb, a1b);
      x = DoubleVector.broadcast(S, rows[i + 2]);
      a2a = x.fma(ba, a2a);
      a2b = x.fma(bb, a2b);
      x = DoubleVector.broadcast(S, rows[i + 3]);
      a3a = x.fma(ba, a3a);
      a3b = x.fma(bb, a3b);
      x = DoubleVector.broadcast(S, rows[i + 4]);
      a4a = x.fma(ba, a4a);
      a4b = x.fma(bb, a4b);
      x = DoubleVector.broadcast(S, rows[i + 5]);
      a5a = x.fma(ba, a5a);
      a5b = x.fma(bb, a5b);
      x = DoubleVector.broadcast(S, rows[i + 6]);
      a6a = x.fma(ba, a6a);
      a6b = x.fma(bb, a6b);
      x = DoubleVector.broadcast(S, rows[i + 7]);
      a7a = x.fma(ba, a7a);
      a7b = x.fma(bb, a7b);
    }
    if (!first) {
      a0a = a0a.add(DoubleVector.fromArray(S, acc, to));
      a0b = a0b.add(DoubleVector.fromArray(S, acc, to + V));
      a1a = a1a.add(DoubleVector.fromArray(S, acc, to + NR));
      a1b = a1b.add(DoubleVector.fromArray(S, acc, to + NR + V));
      a2a = a2a.add(DoubleVector.fromArray(S, acc, to + 2 * NR));
      a2b = a2b.add(DoubleVector.fromArray(S, acc, to + 2 * NR + V));
      a3a = a3a.add(DoubleVector.fromArray(S, acc, to + 3 * NR));
      a3b = a3b.add(DoubleVector.fromArray(S, acc, to + 3 * NR + V));
      a4a = a4a.add(DoubleVector.fromArray(S, acc, to + 4 * NR));
      a4b = a4b.add(DoubleVector.fromArray(S, acc, to + 4 * NR + V));
      a5a = a5a.add(DoubleVector.fromArray(S, acc, to + 5 * NR));
      a5b = a5b.add(DoubleVector.fromArray(S, acc, to + 5 * NR + V));
      a6a = a6a.add(DoubleVector.fromArray(S, acc, to + 6 * NR));
      a6b = a6b.add(DoubleVector.fromArray(S, acc, to + 6 * NR + V));
      a7a = a7a.add(DoubleVector.fromArray(S, acc, to + 7 * NR));
      a7b = a7b.add(DoubleVector.fromArray(S, acc, to + 7 * NR + V));
    }
    a0a.intoArray(acc, to);
    a0b.intoArray(acc, to + V);
    a1a.intoArray(acc, to + NR);
    a1b.intoArray(acc, to + NR + V);
    a2a.intoArray(acc, to + 2 * NR);
    a2b.intoArray(acc, to + 2 * NR + V);
    a3a.intoArray(acc, to + 3 * NR);
    a3b.intoArray(acc, to + 3 * NR + V);
    a4a.intoArray(acc, to + 4 * NR);
    a4b.intoArray(acc, to + 4 * NR + V);
    a5a.intoArray(acc, to + 5 * NR);
    a5b.intoArray(acc, to + 5 * NR + V);
    a6a.intoArray(acc, to + 6 * NR);
    a6b.intoArray(acc, to + 6 * NR + V);
    a7a.intoArray(acc, to + 7 * NR);
    a7b.intoArray(acc, to + 7 * NR + V);
  }

  /** One vector of columns over {@code length} entries, added to {@code acc[r][to…]} or, the first, stored there. */
  private static void tile8x1(
      double[] rows,
      int r,
      double[] columns,
      int c,
      int length,
      double[] acc,
      int to,
      boolean first) {
    DoubleVector a0 = DoubleVector.zero(S);
    DoubleVector a1 = DoubleVector.zero(S);
    DoubleVector a2 = DoubleVector.zero(S);
    DoubleVector a3 = DoubleVector.zero(S);
    DoubleVector a4 = DoubleVector.zero(S);
    DoubleVector a5 = DoubleVector.zero(S);
    DoubleVector a6 = DoubleVector.zero(S);
    DoubleVector a7 = DoubleVector.zero(S);
    for (int k = 0; k < length; k++) {
      int i = r + k * MR;
      int j = c + k * NR;
      DoubleVector b = DoubleVector.fromArray(S, columns, j);
      DoubleVector x;
      x = DoubleVector.broadcast(S, rows[i]);
      a0 = x.fma(b, a0);
      x = DoubleVector.broadcast(S, rows[i + 1]);
      a1 = x.fma(b, a1);
      x = DoubleVector.broadcast(S, rows[i + 2]);
      a2 = x.fma(b, a2);
      x = DoubleVector.broadcast(S, rows[i + 3]);
      a3 = x.fma(b, a3);
      x = DoubleVector.broadcast(S, rows[i + 4]);
      a4 = x.fma(b, a4);
      x = DoubleVector.broadcast(S, rows[i + 5]);
      a5 = x.fma(b, a5);
      x = DoubleVector.broadcast(S, rows[i + 6]);
      a6 = x.fma(b, a6);
      x = DoubleVector.broadcast(S, rows[i + 7]);
      a7 = x.fma(b, a7);
    }
    if (!first) {
      a0 = a0.add(DoubleVector.fromArray(S, acc, to));
      a1 = a1.add(DoubleVector.fromArray(S, acc, to + NR));
      a2 = a2.add(DoubleVector.fromArray(S, acc, to + 2 * NR));
      a3 = a3.add(DoubleVector.fromArray(S, acc, to + 3 * NR));
      a4 = a4.add(DoubleVector.fromArray(S, acc, to + 4 * NR));
      a5 = a5.add(DoubleVector.fromArray(S, acc, to + 5 * NR));
      a6 = a6.add(DoubleVector.fromArray(S, acc, to + 6 * NR));
      a7 = a7.add(DoubleVector.fromArray(S, acc, to + 7 * NR));
    }
    a0.intoArray(acc, to);
    a1.intoArray(acc, to + NR);
    a2.intoArray(acc, to + 2 * NR);
    a3.intoArray(acc, to + 3 * NR);
    a4.intoArray(acc, to + 4 * NR);
    a5.intoArray(acc, to + 5 * NR);
    a6.intoArray(acc, to + 6 * NR);
    a7.intoArray(acc, to + 7 * NR);
  }
}
