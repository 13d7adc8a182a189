package dev.kullback.internal.vector.full;

import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.vector.DoubleTranspose;
import dev.kullback.internal.vector.Epilogue;
import dev.kullback.internal.vector.Species;
import dev.kullback.internal.work.Worker;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/**
 * Jeffreys' divergence of full covariances as two matrix products, q with p and p with q, as {@link FullVectorKernel} has one. Values and
 * error bounds of both are computed alike and added, so that no bit depends on the roles.
 */
public final class FullJeffreysKernel implements BlockKernel<FullOperands> {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final VectorSpecies<Float> HALF = Species.HALF_FLOAT;
  private static final VectorSpecies<Long> L = Species.LONG;
  private static final int V = S.length();
  private static final int NR = FullColumns.NR;
  private static final int GROUP = FullProducts.GROUP;
  private static final int MOST_ROWS = BlockKernel.MOST_ROWS;

  private final Worker worker;
  private final Pair pair;
  private final FullProducts forward = new FullProducts();
  private final FullProducts backward = new FullProducts();

  /** Products of p with q, laid out as those of q with p. */
  private final double[] transposed = new double[MOST_ROWS * GROUP];

  /** Shares of the error bound: of q as rows; of p as rows, of a group and, before they are moved there, of some of it. */
  private final double[] boundQ = new double[MOST_ROWS];

  private final double[] boundP = new double[GROUP];
  private final double[] some = new double[MOST_ROWS];

  /** Signs of a row's columns in a panel: negative where an entry is to be recomputed. */
  private final long[] signs = new long[NR];

  private final DoubleTranspose transpose = new DoubleTranspose(true);

  public FullJeffreysKernel(Worker worker, Pair pair) {
    this.worker = worker;
    this.pair = pair;
  }

  @Override
  public void block(
      FullOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    FullRows q = operands.rows();
    FullColumns p = operands.columns();
    FullPacking.weigh(q, row0, row1, p.centre(), boundQ);
    for (int column = column0; column < column1; column += GROUP) {
      int end = Math.min(column + GROUP, column1);
      forward.compute(q, row0, row1, p, column, end, worker);
      for (int j = column; j < end; j += MOST_ROWS) {
        computeBackward(operands, row0, row1, column, j, Math.min(j + MOST_ROWS, end));
      }
      for (int j = column; j < end; j += NR) {
        int panel = (j - column) * MOST_ROWS;
        for (int i = row0; i < row1; i++) {
          store(
              operands,
              i,
              j,
              Math.min(NR, end - j),
              panel + (i - row0) * NR,
              i - row0,
              j - column,
              out);
        }
      }
    }
  }

  /** Multiplies rows [j, end) of p with columns [row0, row1) of q, and moves the products to where the group has them. */
  private void computeBackward(
      FullOperands operands, int row0, int row1, int column, int j, int end) {
    FullRows p = operands.otherRows();
    FullColumns q = operands.otherColumns();
    FullPacking.weigh(p, j, end, q.centre(), some);
    System.arraycopy(some, 0, boundP, j - column, end - j);
    int base = row0 / NR * NR; // panels of q may begin before the block does
    backward.compute(p, j, end, q, base, row1, worker);
    for (int row = base; row < row1; row += NR) {
      int first = Math.max(row, row0);
      int count = Math.min(row + NR, row1) - first;
      for (int k = j; k < end; k += NR) {
        int from = (row - base) * MOST_ROWS + (k - j) * NR + first - row;
        int to = (k - column) * MOST_ROWS + (first - row0) * NR;
        transpose.toLanes(
            backward.values, from, NR, Math.min(NR, end - k), count, transposed, to, NR);
      }
    }
  }

  /** Stores a row's divergences in one column panel, and recomputes those whose error bound exceeds the tolerance. */
  private void store(
      FullOperands operands,
      int i,
      int j,
      int columns,
      int at,
      int row,
      int column,
      BlockTarget out) {
    FullRows q = operands.rows();
    FullRows p = operands.otherRows();
    FullColumns a = operands.otherColumns();
    FullColumns b = operands.columns();
    double[] products = forward.values;
    double more = operands.moreTolerance(); // not a choice of vectors, which C2 may box
    boolean wide = out.wide;
    float[] out32 = out.out32;
    double[] out64 = out.out64;
    LongVector any = LongVector.zero(L);
    for (int v = 0; v < columns; v += V) {
      DoubleVector sum = DoubleVector.fromArray(S, products, at + v);
      DoubleVector back = DoubleVector.fromArray(S, transposed, at + v);
      DoubleVector kl =
          sum.mul(0.5).add(DoubleVector.fromArray(S, b.offset(), j + v).add(q.offset()[i]));
      DoubleVector reverse =
          back.mul(0.5).add(DoubleVector.fromArray(S, p.offset(), j + v).add(a.offset()[i]));
      DoubleVector error =
          DoubleVector.fromArray(S, b.inverseError(), j + v)
              .fma(sum, DoubleVector.fromArray(S, b.noise(), j + v).add(q.noise()[i]));
      DoubleVector reverseError =
          DoubleVector.broadcast(S, a.inverseError()[i])
              .fma(back, DoubleVector.fromArray(S, p.noise(), j + v).add(a.noise()[i]));
      error =
          DoubleVector.fromArray(S, b.weight(), j + v)
              .fma(DoubleVector.broadcast(S, boundQ[row]), error);
      reverseError =
          DoubleVector.broadcast(S, a.weight()[i])
              .fma(DoubleVector.fromArray(S, boundP, column + v), reverseError);
      DoubleVector tolerance =
          DoubleVector.fromArray(S, b.tolerance(), j + v).max(a.tolerance()[i]).add(more);
      DoubleVector jeffreys = kl.add(reverse);
      LongVector rest =
          (LongVector) jeffreys.mul(tolerance).sub(error.add(reverseError)).reinterpretShape(L, 0);
      rest = rest.or(rest.add(Epilogue.UP_TO_INFINITY));
      rest.intoArray(signs, v);
      any = any.or(rest);
      int to = out.at(i, j + v);
      if (v + V > columns) { // by way of where the sums were
        jeffreys.intoArray(products, at + v);
        for (int c = v; c < columns; c++) {
          out.put(i, j + c, products[at + c]);
        }
      } else if (wide) {
        jeffreys.intoArray(out64, to);
      } else {
        ((FloatVector) jeffreys.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out32, to);
      }
    }
    if (any.reduceLanes(VectorOperators.OR) < 0) {
      for (int c = 0; c < columns; c++) {
        if (signs[c] < 0) {
          out.put(i, j + c, pair.of(operands.q(), i, operands.p(), j + c));
        }
      }
    }
  }
}
