package dev.kullback.internal.vector.full;

import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.vector.Species;
import dev.kullback.internal.vector.VectorWidth;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * The micro-kernel of the full-covariance product. With means m relative to a centre, {@code P = Σ_p⁻¹} and K = D(D+3)/2,
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
 * <p>An entry's value depends on its row and its column's batch alone: every
 * lane sees the same operations in the same order.
 */
final class FullKernels {
  static final VectorSpecies<Double> S = Species.DOUBLE;

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

  private FullKernels() {}

  /** K. */
  static int length(int d) {
    return Cholesky.packedLength(d) + d;
  }

  /** Entries [k0, k0 + count) of A of rows [row0, row1), to {@code rows [a][k][MR]}; row0 is a multiple of MR. */
  static void packChunk(
      FullRows q, int row0, int row1, double[] centre, int k0, int count, double[] rows) {
    int d = centre.length;
    int length = Cholesky.packedLength(d);
    int to = 0;
    for (int i = row0; i < row1; i += MR) {
      int m = i * d;
      int r = row(k0);
      int c = k0 - Cholesky.packedLength(r);
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
    return Cholesky.packedLength(r) > k ? r - 1 : Cholesky.packedLength(r + 1) <= k ? r + 1 : r;
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
