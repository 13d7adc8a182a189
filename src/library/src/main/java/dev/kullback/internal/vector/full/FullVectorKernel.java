package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.formula.FullPair;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.vector.Epilogue;
import dev.kullback.internal.vector.Species;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/**
 * Full covariances as a matrix product on the Vector API: multiplies a block group by group, turns the products into divergences, and
 * leaves the entries whose error bound exceeds the contract to {@link FullPair}.
 */
public final class FullVectorKernel implements BlockKernel<FullOperands> {
  private static final int GROUP = FullProducts.GROUP;

  /** Open entries of a row in a vector of columns from which on {@link FullSolveKernel} takes less time than {@link FullPair}. */
  private static final int SEVERAL = 2;

  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final VectorSpecies<Float> HALF = Species.HALF_FLOAT;
  private static final VectorSpecies<Long> L = Species.LONG;
  private static final int V = S.length();
  private static final int NR = FullColumns.NR;

  private final Worker worker;
  private final Pair pair;
  private final FullSolveKernel solve = new FullSolveKernel();
  private final FullProducts products = new FullProducts();

  /** Share of the error bound that each row of a block has. */
  private final double[] bound = new double[BlockKernel.MOST_ROWS];

  /** Signs of a row's columns in a panel: negative where an entry is to be recomputed. */
  private final long[] signs = new long[NR];

  /** Entries to be recomputed: a row of a block each, one bit a column of a panel. */
  private final long[] open = new long[BlockKernel.MOST_ROWS];

  public FullVectorKernel(Worker worker, Pair pair) {
    this.worker = worker;
    this.pair = pair;
  }

  @Override
  public void block(
      FullOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    FullRows q = operands.rows();
    FullColumns p = operands.columns();
    FullPacking.weigh(q, row0, row1, p.centre(), bound);
    for (int column = column0; column < column1; column += GROUP) {
      int end = Math.min(column + GROUP, column1);
      products.compute(q, row0, row1, p, column, end, worker);
      for (int j = column; j < end; j += NR) {
        int panel = (j - column) * BlockKernel.MOST_ROWS;
        store(operands, row0, row1, j, Math.min(NR, end - j), panel, out);
        refine(operands, row0, row1, j, out);
      }
    }
  }

  /** Stores the KL of one column panel, and marks in {@code open} the entries whose error bound exceeds the tolerance. */
  private void store(
      FullOperands operands, int row0, int row1, int j, int columns, int panel, BlockTarget out) {
    FullColumns c = operands.columns();
    double[] product = products.values;
    double[] bound = this.bound;
    long[] open = this.open;
    long[] signs = this.signs;
    double[] offset = operands.rows().offset();
    double[] noise = operands.rows().noise();
    double more = operands.moreTolerance(); // not a choice of vectors, which C2 may box
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
  private void refine(FullOperands operands, int row0, int row1, int j, BlockTarget out) {
    FullBatch q = operands.q();
    FullBatch p = operands.p();
    for (int v = 0; v < NR; v += V) {
      boolean packed = false;
      for (int i = row0; i < row1; i++) {
        long bits = (open[i - row0] >>> v) & (-1L >>> -V);
        if (Long.bitCount(bits) < SEVERAL) {
          continue;
        }
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
}
