<#include "../Lanes.ftl">
<@twins "ProductKernels">
package dev.kullback.internal.vector.full;

import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.work.Worker;
<@imports/>

<#if asVectors>
/**
 * The full-covariance product of some rows with a group of columns, for one thread. With means m relative to a centre, {@code P = Σ_p⁻¹} and K = D(D+3)/2,
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
 * <p>An entry's value depends on its row and its column's batch alone: every lane sees the same operations in the same order.
 */
<#else>
/** {@link ProductKernels} without vectors: the same text, so the same bits. */
</#if>
<#if asVectors>public </#if>final class ${class} {
<@species/>

  /**
   * Rows of a panel, and of a micro-kernel with 32 registers: 6x4, 8x2, 10x2 and 12x2 vectors of 512 bits ran at 58 … 60·10⁹
   * multiply-adds/s, 8x3 and 9x3 at 38 … 51 (Zen 5, one core, JDK 25, the ceiling is 64). Eight rows are whole vectors, too.
   */
  static final int MR = 8;

  static final int NR = FullColumns.NR;

  /** Entries of K that a micro-kernel accumulates: a column panel's chunk, 16 KiB, stays in the L1 cache. 64 costs 5 %. */
  static final int KC = 128;

  /** Columns whose products are accumulated together: their memory, 128 KiB, and a chunk of their panels, 256 KiB, fit the L2 cache. */
  static final int GROUP = 256;

  /** The products, {@code [b][row][NR]}. */
  final double[] values = new double[BlockKernel.MOST_ROWS * GROUP];

  /** A chunk of A of the rows that were packed last. */
  final double[] chunk = new double[BlockKernel.MOST_ROWS * KC];

  /** A chunk of a column panel that has entries of P, which all columns share, and of means. */
  private final double[] ofShared = new double[KC * NR];

  /** Start of the chunk in K, its length, and its number of rows. */
  private int start;

  private int length;
  private int height;

<#if asVectors>
  /** Calls the micro-kernels, each on one entry of K, so often that C2 compiles them. */
  public static void exercise(int calls) {
    double[] rows = new double[MR];
    double[] columns = new double[NR];
    double[] products = new double[MR * NR];
    for (int n = 0; n < calls; n++) {
      for (int count = NR; count > 0; count -= V) {
        ProductMicroKernels.multiply(
            rows, 0, 1, MR, columns, 0, 1, count, products, 0, n % 2 == 0);
      }
    }
  }

</#if>
  /** Computes the products of rows [row0, row1) and columns [column, end), of whole panels. */
  void compute(FullRows q, int row0, int row1, FullColumns p, int column, int end, Worker worker) {
    int triangle = p.triangle();
    for (int k = 0; k < triangle + p.centre().length; k += KC) {
      pack(q, row0, row1, p, k);
      boolean isOfMeans = k >= triangle;
      boolean isCopied = p.isShared() && !isOfMeans && k + length > triangle;
      for (int j = column; j < end; j += NR) {
        worker.pass(2L * (row1 - row0) * NR * length);
        double[] columns = isCopied ? copy(p, j) : p.values();
        int c = isOfMeans ? p.ofMean(j) + (k - triangle) * NR : p.precision(j) + k * NR;
        c = isCopied ? 0 : c;
        int to = (j - column) * BlockKernel.MOST_ROWS;
        ${twin}ProductMicroKernels.multiply(
            chunk, 0, length, height, columns, c, length, end - j, values, to, start == 0);
      }
    }
  }

  /** Copies the chunk of a column panel that begins in P, which all share, and ends among the entries of means. */
  private double[] copy(FullColumns p, int j) {
    int ofP = (p.triangle() - start) * NR;
    System.arraycopy(p.values(), start * NR, ofShared, 0, ofP);
    System.arraycopy(p.values(), p.ofMean(j), ofShared, ofP, length * NR - ofP);
    return ofShared;
  }

  /** Packs entries k0, k0 + 1, …, at most KC, of A of rows [row0, row1), and returns their number; row0 is a multiple of MR. */
  int pack(FullRows q, int row0, int row1, FullColumns p, int k0) {
    double[] centre = p.centre();
    int d = centre.length;
    int triangle = p.triangle();
    start = k0;
    length = Math.min(KC, triangle + d - k0);
    height = row1 - row0;
    double[] chunk = this.chunk;
    int end = k0 + length;
    int step = q.covariance().length > MR ? MR : 0; // points share a panel of 0
    int first = 0; // the row of Σ that holds entry k0
    while (Cholesky.packedLength(first + 1) <= k0) {
      first++;
    }
    int to = 0;
    for (int i = row0; i < row1; i += MR) {
      int m = i * d;
      int panel = q.panel(i);
      int r = first;
      int c = k0 - Cholesky.packedLength(r);
      for (int k = k0; k < end; k++, to += MR) {
        if (k < triangle) {
          for (int v = 0; v < MR; v += V) {
            ${vector} x = ${sub(load("q.mean()", "m + r * MR + v"), "centre[r]")};
            ${vector} y = ${sub(load("q.mean()", "m + c * MR + v"), "centre[c]")};
            ${vector} entry = ${load("q.covariance()", "panel + k * step + v")};
            ${store(fma("x", "y", "entry"), "chunk", "to + v")};
          }
          if (c++ == r) {
            r++;
            c = 0;
          }
        } else {
          int h = k - triangle;
          for (int v = 0; v < MR; v += V) {
            ${store(sub(load("q.mean()", "m + h * MR + v"), "centre[h]"), "chunk", "to + v")};
          }
        }
      }
    }
    return length;
  }
}
</@twins>
