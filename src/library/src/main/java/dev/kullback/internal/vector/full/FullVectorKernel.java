package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.plain.FullPair;
import dev.kullback.internal.plain.Pair;
import dev.kullback.internal.vector.Epilogue;
import dev.kullback.internal.vector.Species;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;
import org.jspecify.annotations.Nullable;

/**
 * Full covariances as a matrix product on the Vector API: walks a block group by group through the matrix product, then turns it into divergences and
 * leaves the entries whose error bound exceeds the contract to {@link FullPair}.
 */
public final class FullVectorKernel implements BlockKernel<FullOperands> {
  /** Columns whose products are accumulated together: their memory, 128 KiB, and a chunk of their panels, 256 KiB, fit the L2 cache. */
  private static final int GROUP = 256;

  /** Open entries of a row in a vector of columns from which on {@link FullSolveKernel} takes less time than {@link FullPair}. */
  private static final int SEVERAL = 2;

  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final VectorSpecies<Float> HALF = Species.HALF_FLOAT;
  private static final VectorSpecies<Long> L = Species.LONG;
  private static final int V = S.length();
  private static final int MR = ProductKernels.MR;
  private static final int NR = ProductKernels.NR;

  private final Worker worker;
  private final Pair pair;

  /** Made when it is needed. */
  private @Nullable FullSolveKernel solve;

  /** A chunk of a block's rows, packed; and their products with a group of columns. */
  private double[] chunk = {};

  private double[] product = {};

  /** Per row of a block: its share of the error bound. */
  private double[] bound = {};

  /** Of a row's columns in a panel: negative where an entry is to be recomputed. */
  private final long[] signs = new long[NR];

  /** Per row of a block, one bit a column of a panel: the entries to be recomputed. */
  private long[] open = {};

  public FullVectorKernel(Worker worker, Pair pair) {
    this.worker = worker;
    this.pair = pair;
  }

  @Override
  public void block(
      FullOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    FullBatch q = operands.q();
    FullBatch p = operands.p();
    FullRows a = operands.rows();
    FullColumns b = operands.columns();
    if (chunk.length == 0) {
      chunk = new double[BlockKernel.MOST_ROWS * ProductKernels.KC];
      product = new double[BlockKernel.MOST_ROWS * GROUP];
      bound = new double[BlockKernel.MOST_ROWS];
      open = new long[BlockKernel.MOST_ROWS];
    }
    FullPacking.weigh(a, row0, row1, b.centre(), bound);
    double more = operands.moreTolerance();
    for (int column = column0; column < column1; column += GROUP) {
      int end = Math.min(column + GROUP, column1);
      multiply(a, row0, row1, b, column, end);
      for (int j = column; j < end; j += NR) {
        int panel = (j - column) * BlockKernel.MOST_ROWS;
        store(more, a, b, row0, row1, j, Math.min(NR, end - j), panel, out);
        refine(q, p, row0, row1, j, out);
      }
    }
  }

  /** {@code product[b][row][NR] = A_i · B_j}; a chunk of the rows stays in the L2 cache while the columns' chunks pass. */
  private void multiply(FullRows q, int row0, int row1, FullColumns p, int column0, int column1) {
    int k = FullColumns.length(p.centre().length);
    int panels = Math.ceilDiv(row1 - row0, MR);
    for (int k0 = 0; k0 < k; k0 += ProductKernels.KC) {
      int count = Math.min(ProductKernels.KC, k - k0);
      worker.pass(2L * (row1 - row0) * (column1 - column0) * count);
      ProductKernels.packChunk(q, row0, row1, p.centre(), k0, count, chunk);
      for (int j = column0; j < column1; j += NR) {
        ProductKernels.tile(
            chunk,
            panels,
            p.values(),
            (j / NR * k + k0) * NR,
            Math.min(NR, column1 - j),
            count,
            product,
            (j - column0) * BlockKernel.MOST_ROWS,
            k0 == 0);
      }
    }
  }

  /**
   * Stores the KL of one column panel, and marks in {@code open} the entries whose error bound exceeds the tolerance.
   *
   * @param more addend to the tolerance; not a choice of vectors, which C2 may box
   */
  private void store(
      double more,
      FullRows q,
      FullColumns c,
      int row0,
      int row1,
      int j,
      int columns,
      int panel,
      BlockTarget out) {
    double[] product = this.product;
    double[] bound = this.bound;
    long[] open = this.open;
    long[] signs = this.signs;
    double[] offset = q.offset();
    double[] noise = q.noise();
    boolean wide = out.wide;
    float[] out32 = out.out32;
    double[] out64 = out.out64;
    for (int i = row0; i < row1; i++) {
      LongVector any = LongVector.zero(L);
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
        LongVector rest = (LongVector) kl.mul(tolerance).sub(error).reinterpretShape(L, 0);
        rest = rest.or(rest.add(Epilogue.UP_TO_INFINITY));
        rest.intoArray(signs, v);
        any = any.or(rest);
        int to = out.at(i, j + v);
        if (v + V > columns) { // by way of where the sums were
          kl.intoArray(product, at);
          for (int l = 0; l < columns - v; l++) {
            out.put(i, j + v + l, product[at + l]);
          }
        } else if (wide) {
          kl.intoArray(out64, to);
        } else {
          ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out32, to);
        }
      }
      long bits = 0;
      if (any.reduceLanes(VectorOperators.OR) < 0) {
        for (int v = 0; v < columns; v++) {
          bits |= signs[v] >>> 63 << v;
        }
      }
      open[i - row0] = bits;
    }
  }

  /** Recomputes the open entries of a column panel: where a row has several in a vector of columns, these at once. */
  private void refine(FullBatch q, FullBatch p, int row0, int row1, int j, BlockTarget out) {
    for (int v = 0; v < NR; v += V) {
      boolean packed = false;
      for (int i = row0; i < row1; i++) {
        long bits = (open[i - row0] >>> v) & (-1L >>> -V);
        if (Long.bitCount(bits) < SEVERAL) {
          continue;
        }
        FullSolveKernel solve = solve();
        if (!packed) {
          solve.pack(q, p, j + v);
          packed = true;
        }
        worker.pass(Checkpoint.ofSolve(q.dimension()));
        double[] kl = solve.row(q, i);
        for (; bits != 0; bits &= bits - 1) {
          int lane = Long.numberOfTrailingZeros(bits);
          if (kl[lane] < Double.POSITIVE_INFINITY) {
            out.put(i, j + v + lane, kl[lane]);
            open[i - row0] &= ~(1L << (v + lane));
          }
        }
      }
    }
    for (int i = row0; i < row1; i++) {
      for (long bits = open[i - row0]; bits != 0; bits &= bits - 1) {
        int column = j + Long.numberOfTrailingZeros(bits);
        out.put(i, column, pair.of(q, i, p, column));
      }
    }
  }

  private FullSolveKernel solve() {
    if (solve == null) {
      solve = new FullSolveKernel();
    }
    return solve;
  }
}
