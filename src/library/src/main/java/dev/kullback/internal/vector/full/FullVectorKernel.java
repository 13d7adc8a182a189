package dev.kullback;

import java.util.Objects;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;
import org.jspecify.annotations.Nullable;

/**
 * Full covariances on the Vector API: walks a block group by group through the matrix product, then turns it into divergences and
 * leaves the entries whose error bound exceeds the contract to {@link FullPair}.
 */
final class FullVectorKernel implements BlockKernel<FullGaussians> {
  /** Columns whose products are accumulated together: their memory, 128 KiB, and a chunk of their panels, 256 KiB, fit the L2 cache. */
  private static final int GROUP = 256;

  /** Batches of float: the contract is 1e-5, the aim 1e-6. */
  private static final double FLOAT_TOLERANCE = 1e-6;

  /** Open entries of a row in a vector of columns from which on {@link FullSolveKernel} takes less time than {@link FullPair}. */
  private static final int SEVERAL = 2;

  /** As {@link VectorKernel} does: batches up to so many doubles (4 MiB) are packed into memory of the engine's at their first use. */
  private static final int MOST_PANELS = 1 << 19;

  private static final VectorSpecies<Double> S = VectorWidth.DOUBLE;
  private static final VectorSpecies<Float> HALF = VectorWidth.HALF_FLOAT;
  private static final int V = S.length();
  private static final int MR = FullKernels.MR;
  private static final int NR = FullKernels.NR;

  /**
   * For batches of double: 1e-12 times the condition number ‖L_p‖‖L_p⁻¹‖, up to where it would show. The bounds are those of the
   * worst case; errors found are below 1e-13.
   */
  static double tolerance(double condition) {
    return PairKl.DOUBLE_TOLERANCE * Math.clamp(condition, 1, 100);
  }

  @Override
  public void prepare(FullGaussians q, FullGaussians p, Tile t) {
    FullScratch s = t.full;
    boolean firstQ = q.isFirstUse();
    boolean firstP = q == p ? firstQ : p.isFirstUse();
    int rows = FullKernels.rowsLength(q);
    if (firstQ && rows <= MOST_PANELS) {
      if (s.firstRows.length < rows) {
        s.firstRows = new double[rows];
      }
      s.q = FullKernels.packRows(q, s.firstRows);
    } else {
      s.q = q.rows();
    }
    int columns = FullKernels.columnsLength(p);
    if (firstP && columns <= MOST_PANELS) {
      if (s.firstColumns.length < columns) {
        s.firstColumns = new double[columns];
      }
      s.p = FullKernels.packColumns(p, s.firstColumns);
    } else {
      s.p = p.columns();
    }
  }

  @Override
  public void block(
      FullGaussians q, FullGaussians p, int row0, int row1, int column0, int column1, Tile t) {
    FullScratch s = t.full;
    if (s.rows.length == 0) {
      s.rows = new double[KlEngine.BLOCK_ROWS * FullKernels.KC];
      s.product = new double[KlEngine.BLOCK_ROWS * GROUP];
      s.bound = new double[KlEngine.BLOCK_ROWS];
      s.open = new long[KlEngine.BLOCK_ROWS];
    }
    FullRows rows = Objects.requireNonNull(s.q);
    FullColumns columns = Objects.requireNonNull(s.p);
    FullKernels.weigh(rows, row0, row1, columns.centre(), s.bound);
    boolean wide = q.isDouble() || p.isDouble();
    for (int column = column0; column < column1; column += GROUP) {
      int end = Math.min(column + GROUP, column1);
      multiply(rows, row0, row1, columns, column, end, t);
      for (int j = column; j < end; j += NR) {
        int panel = (j - column) * KlEngine.BLOCK_ROWS;
        store(wide, rows, columns, row0, row1, j, Math.min(NR, end - j), panel, t);
        refine(q, p, row0, row1, j, t);
      }
    }
  }

  /** {@code product[b][row][NR] = A_i · B_j}; a chunk of the rows stays in the L2 cache while the columns' chunks pass. */
  private static void multiply(
      FullRows q, int row0, int row1, FullColumns p, int column0, int column1, Tile t) {
    FullScratch s = t.full;
    int k = FullKernels.length(p.centre().length);
    int panels = Math.ceilDiv(row1 - row0, MR);
    for (int k0 = 0; k0 < k; k0 += FullKernels.KC) {
      int count = Math.min(FullKernels.KC, k - k0);
      t.pass(2L * (row1 - row0) * (column1 - column0) * count);
      FullKernels.packChunk(q, row0, row1, p.centre(), k0, count, s.rows);
      for (int j = column0; j < column1; j += NR) {
        FullKernels.tile(
            s.rows,
            panels,
            p.values(),
            (j / NR * k + k0) * NR,
            Math.min(NR, column1 - j),
            count,
            s.product,
            (j - column0) * KlEngine.BLOCK_ROWS,
            k0 == 0);
      }
    }
  }

  /** Stores the KL of one column panel, and marks in {@code open} the entries whose error bound exceeds the tolerance. */
  private static void store(
      boolean wide,
      FullRows q,
      FullColumns c,
      int row0,
      int row1,
      int j,
      int columns,
      int panel,
      Tile t) {
    double[] product = t.full.product;
    double[] bound = t.full.bound;
    long[] open = t.full.open;
    double[] offset = q.offset();
    double[] noise = q.noise();
    float @Nullable [] out32 = t.out32;
    double @Nullable [] out64 = t.out64;
    double more = wide ? 0 : FLOAT_TOLERANCE; // no choice of vectors, which C2 may box
    for (int i = row0; i < row1; i++) {
      long bits = 0;
      for (int v = 0; v < columns; v += V) {
        int at = panel + (i - row0) * NR + v;
        DoubleVector sum = DoubleVector.fromArray(S, product, at);
        DoubleVector offsets = DoubleVector.fromArray(S, c.offset(), j + v).add(offset[i]);
        DoubleVector kl = sum.mul(0.5).add(offsets);
        DoubleVector error =
            DoubleVector.fromArray(S, c.inverseError(), j + v)
                .fma(sum, DoubleVector.fromArray(S, c.noise(), j + v).add(noise[i]));
        error =
            DoubleVector.fromArray(S, c.weight(), j + v)
                .fma(DoubleVector.broadcast(S, bound[i - row0]), error);
        DoubleVector tolerance = DoubleVector.fromArray(S, c.tolerance(), j + v).add(more);
        // 0 ≤ kl·tolerance − error < ∞ as one comparison, for as unsigned integers negatives and
        // NaN are greater
        bits |=
            kl.mul(tolerance)
                    .sub(error)
                    .viewAsIntegralLanes()
                    .compare(VectorOperators.UGE, Epilogue.INFINITY_BITS)
                    .toLong()
                << v;
        int to = t.base + i * t.stride + j + v;
        if (v + V > columns) { // by way of where the sums were
          kl.intoArray(product, at);
          for (int l = 0; l < columns - v; l++) {
            t.put(i, j + v + l, product[at + l]);
          }
        } else if (out32 != null) {
          ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out32, to);
        } else if (out64 != null) {
          kl.intoArray(out64, to);
        }
      }
      open[i - row0] = bits & (-1L >>> -columns);
    }
  }

  /** Recomputes the open entries of a column panel: where a row has several in a vector of columns, these at once. */
  private static void refine(FullGaussians q, FullGaussians p, int row0, int row1, int j, Tile t) {
    long[] open = t.full.open;
    for (int v = 0; v < NR; v += V) {
      boolean packed = false;
      for (int i = row0; i < row1; i++) {
        long bits = (open[i - row0] >>> v) & (-1L >>> -V);
        if (Long.bitCount(bits) < SEVERAL) {
          continue;
        }
        FullSolveKernel solve = t.full.solve();
        if (!packed) {
          solve.pack(p, j + v);
          packed = true;
        }
        t.pass(FullPair.terms(q.dimension()));
        double[] kl = solve.row(q, i);
        for (; bits != 0; bits &= bits - 1) {
          int lane = Long.numberOfTrailingZeros(bits);
          if (kl[lane] < Double.POSITIVE_INFINITY) {
            t.put(i, j + v + lane, kl[lane]);
            open[i - row0] &= ~(1L << (v + lane));
          }
        }
      }
    }
    for (int i = row0; i < row1; i++) {
      for (long bits = open[i - row0]; bits != 0; bits &= bits - 1) {
        int column = j + Long.numberOfTrailingZeros(bits);
        t.pass(FullPair.terms(q.dimension()));
        t.put(i, column, q == p && i == column ? 0 : t.full.pair.kl(q, i, p, column));
      }
    }
  }
}
