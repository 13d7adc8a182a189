package dev.kullback.internal.vector.full;

import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.FullPair;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.vector.Epilogue;
import dev.kullback.internal.vector.Shapes;
import dev.kullback.internal.vector.Species;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/**
 * Chernoff's α-divergence of full covariances, and what is made of it: factors the weighted mean of the covariances of a row and a vector of
 * columns, a pair in each lane, and leaves the entries whose error bound exceeds the contract to the scalar kernel.
 */
public final class FullChernoffKernel implements BlockKernel<FullOperands> {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final VectorSpecies<Long> L = Species.LONG;
  private static final int V = S.length();
  private static final int MR = ProductKernels.MR;
  private static final int NR = FullColumns.NR;
  private static final int LAST = ChernoffTerms.LAST;

  private static final int COLUMNS = Shapes.CHERNOFF_COLUMNS;

  private final Worker worker;
  private final Pair pair;
  private final ChernoffTerms terms;
  private final ChernoffRows rows = new ChernoffRows();

  /**
   * Vectors of the factor by four rows, and after it, of each column, the entry of the means' row, −1/√pivot and the pivot; see {@link
   * ChernoffMicroKernels}. Dimensions are padded to whole blocks, as if independent of the others.
   */
  private double[] factor = {};

  /** Vectors of the columns as {@link ChernoffRows} has rows, with {@code scale·Σ}. */
  private double[] panel = {};

  /** Entries of the packed Σ and of μ in the order in which the micro-kernels read them; of so many dimensions. */
  private int[] order = {};

  private int dimension;

  /** The product of the pivots' mantissas, and then ½ ln det S; the sum of their exponents; dᵀS⁻¹d and then C; and the changes. */
  private final double[] halves = new double[V];

  private final double[] exponents = new double[V];
  private final double[] squares = new double[V];
  private final double[] change = new double[V];
  private final double[] changeQ = new double[V];
  private final double[] changeP = new double[V];

  /** Negative where an entry is to be recomputed. */
  private final long[] signs = new long[V];

  public FullChernoffKernel(Formula formula, Worker worker, Pair pair) {
    this.worker = worker;
    this.pair = pair;
    terms = new ChernoffTerms(formula);
  }

  @Override
  public void block(
      FullOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    int d = operands.q().dimension();
    begin(d);
    for (int first = row0; first < row1; ) {
      int end = rows.pack(operands, order, first, row1);
      for (int j = column0; j < column1; j += V) {
        packPanel(operands.otherRows(), operands.columns(), j, d);
        for (int i = first; i < end; i++) {
          worker.pass(Checkpoint.ofSolve(d));
          factor(rows.at(i));
          total(rows.at(i), d);
          logarithm();
          store(operands, i, j, Math.min(V, column1 - j), out);
        }
      }
      first = end;
    }
  }

  /** Vectors of the factor before row r, a multiple of 4. */
  private static int rowsBefore(int r) {
    return r * (r + 4) / 2;
  }

  private void begin(int d) {
    if (dimension == d) {
      return;
    }
    dimension = d;
    int padded = Math.ceilDiv(d, 4) * 4;
    order = new int[FullColumns.length(padded)];
    factor = new double[(rowsBefore(padded) + 3 * padded) * V];
    panel = new double[(order.length + 2 * d) * V];
    int s = 0;
    for (int c = 0; c < padded; c += 4) {
      for (int i = 0; i < 4; i++) {
        for (int j = 0; j <= i; j++) {
          order[s++] = entry(c + i, c + j, d);
        }
      }
      for (int j = 0; j < 4; j++) {
        order[s++] = c + j < d ? Cholesky.packedLength(d) + c + j : -1;
      }
      for (int i = c + 4; i < padded; i++) {
        for (int j = 0; j < 4; j++) {
          order[s++] = entry(i, c + j, d);
        }
      }
    }
  }

  private static int entry(int r, int c, int d) {
    return r < d ? Cholesky.packedLength(r) + c : r == c ? -2 : -1;
  }

  private void packPanel(FullRows rows, FullColumns columns, int j, int d) {
    int triangle = Cholesky.packedLength(d);
    int covariance = j / MR * MR * triangle + j % MR;
    int mean = j / MR * MR * d + j % MR;
    int to = 0;
    for (int k : order) {
      if (k >= triangle) {
        DoubleVector.fromArray(S, rows.mean(), mean + (k - triangle) * MR).intoArray(panel, to);
      } else if (k >= 0) {
        DoubleVector.fromArray(S, rows.covariance(), covariance + k * MR)
            .mul(-terms.scale)
            .intoArray(panel, to);
      } else {
        DoubleVector.zero(S).intoArray(panel, to);
      }
      to += V;
    }
    int precision = j / NR * NR * FullColumns.length(d) + j % NR;
    for (int h = 0, k = 0; h < d; k += ++h + 1, to += V) {
      DoubleVector.fromArray(S, rows.covariance(), covariance + k * MR)
          .mul(-terms.scale)
          .intoArray(panel, to);
      DoubleVector.fromArray(S, columns.values(), precision + k * NR)
          .div(terms.scale)
          .mul(ChernoffTerms.weight(d, h))
          .intoArray(panel, to + d * V);
    }
  }

  /** Computes the factors of the row that is packed at {@code at} and the columns of the panel. */
  private void factor(int at) {
    double[] q = rows.values;
    double[] p = panel;
    double[] l = factor;
    int padded = Math.ceilDiv(dimension, 4) * 4;
    int means = rowsBefore(padded) * V;
    int s = 0;
    for (int c = 0; c < padded; c += 4) {
      int columns = rowsBefore(c) * V;
      int inverse = means + (padded + c) * V;
      int pivots = inverse + padded * V;
      ChernoffMicroKernels.diagonal(q, at + s, p, s * V, l, columns, means, inverse, pivots, c);
      s += 14;
      for (int r = c + 4; r < padded; r += 4, s += 16) {
        int row = rowsBefore(r) * V;
        if (COLUMNS == 4) {
          ChernoffMicroKernels.tile4x4(q, at + s, p, s * V, l, row, columns, inverse, c);
        } else {
          ChernoffMicroKernels.tile4x2(q, at + s, p, s * V, l, row, columns, inverse, c);
          int h = 2 * V;
          ChernoffMicroKernels.tile4x2(
              q, at + s + 2, p, s * V + h, l, row, columns + h, inverse + h, c + 2);
        }
      }
    }
  }

  /** Computes the sums and products of what {@link #factor} has left. */
  private void total(int at, int d) {
    double[] q = rows.values;
    double[] l = factor;
    int from = order.length;
    int padded = Math.ceilDiv(d, 4) * 4;
    int means = rowsBefore(padded);
    int pivots = means + 2 * padded;
    DoubleVector square = DoubleVector.zero(S);
    DoubleVector changed = DoubleVector.zero(S);
    DoubleVector changedQ = DoubleVector.zero(S);
    DoubleVector changedP = DoubleVector.zero(S);
    DoubleVector product = DoubleVector.broadcast(S, 1);
    DoubleVector powers = DoubleVector.zero(S);
    for (int h = 0; h < d; h++) {
      DoubleVector x = DoubleVector.fromArray(S, l, (means + h) * V);
      square = x.fma(x, square);
      DoubleVector a = DoubleVector.broadcast(S, q[at + from + d + h]);
      DoubleVector b = DoubleVector.fromArray(S, panel, (from + d + h) * V);
      x = DoubleVector.fromArray(S, panel, (from + h) * V).add(q[at + from + h]).neg();
      changedQ = x.fma(a, changedQ);
      changedP = x.fma(b, changedP);
      changed = x.fma(a.min(b), changed);
      x = DoubleVector.fromArray(S, l, (pivots + h) * V);
      LongVector bits = (LongVector) x.reinterpretShape(L, 0);
      LongVector exponent =
          bits.add(FullPair.EXPONENT_OFFSET).lanewise(VectorOperators.LSHR, FullPair.MANTISSA_BITS);
      powers =
          powers.add(
              ((DoubleVector) exponent.or(FullPair.INTEGER).reinterpretShape(S, 0))
                  .sub(FullPair.INTEGER_OFFSET));
      x =
          (DoubleVector)
              bits.sub(
                      exponent
                          .sub(FullPair.BIAS)
                          .lanewise(VectorOperators.LSHL, FullPair.MANTISSA_BITS))
                  .reinterpretShape(S, 0);
      product = product.mul(x);
    }
    square.intoArray(squares, 0);
    changed.intoArray(change, 0);
    changedQ.intoArray(changeQ, 0);
    changedP.intoArray(changeP, 0);
    product.intoArray(halves, 0);
    powers.intoArray(exponents, 0);
  }

  /** Replaces the product of mantissas by {@code ½ ln det S}, as {@link ChernoffTerms#half} has it. */
  private void logarithm() {
    LongVector bits = (LongVector) DoubleVector.fromArray(S, halves, 0).reinterpretShape(L, 0);
    LongVector exponent =
        bits.add(FullPair.EXPONENT_OFFSET).lanewise(VectorOperators.LSHR, FullPair.MANTISSA_BITS);
    DoubleVector k =
        ((DoubleVector) exponent.or(FullPair.INTEGER).reinterpretShape(S, 0))
            .sub(FullPair.INTEGER_OFFSET)
            .add(DoubleVector.fromArray(S, exponents, 0));
    DoubleVector m =
        (DoubleVector)
            bits.sub(
                    exponent
                        .sub(FullPair.BIAS)
                        .lanewise(VectorOperators.LSHL, FullPair.MANTISSA_BITS))
                .reinterpretShape(S, 0);
    DoubleVector s = m.sub(1).div(m.add(1));
    DoubleVector t = s.mul(s);
    DoubleVector tail = DoubleVector.broadcast(S, FullPair.series(LAST));
    for (int i = LAST - 1; i >= 0; i--) {
      tail = t.fma(tail, DoubleVector.broadcast(S, FullPair.series(i)));
    }
    t.mul(tail).mul(s).add(s).add(k.mul(0.5 * FullPair.LN2)).intoArray(halves, 0);
  }

  /** Stores the divergences of row i and the columns from j on, as {@link ChernoffTerms#value} has them. */
  private void store(FullOperands operands, int i, int j, int count, BlockTarget out) {
    FullRows q = operands.rows();
    FullRows p = operands.otherRows();
    FullColumns a = operands.otherColumns();
    FullColumns b = operands.columns();
    int d = b.centre().length;
    double more = operands.moreTolerance(); // not a choice of vectors, which C2 may box
    DoubleVector half = DoubleVector.fromArray(S, halves, 0);
    DoubleVector offset =
        DoubleVector.fromArray(S, p.offset(), j)
            .mul(terms.weightP)
            .add(terms.weightQ * q.offset()[i]);
    DoubleVector c =
        DoubleVector.fromArray(S, squares, 0)
            .mul(0.5 * terms.weightP)
            .add(half.add(terms.constant(d)).add(offset));
    DoubleVector noise =
        DoubleVector.fromArray(S, p.noise(), j)
            .mul(terms.weightP)
            .add(terms.weightQ * q.noise()[i])
            .add(half.abs().mul(4 * ChernoffTerms.UNIT).add(terms.noise(d)));
    DoubleVector changed = DoubleVector.fromArray(S, change, 0);
    DoubleVector relative =
        DoubleVector.fromArray(S, changeP, 0)
            .mul(DoubleVector.fromArray(S, operands.correlationsP(), j))
            .min(DoubleVector.fromArray(S, changeQ, 0).mul(operands.correlationsQ()[i]))
            .mul(ChernoffTerms.ofSquares(d))
            .add(changed.mul(ChernoffTerms.ofSolve(d)));
    DoubleVector tolerance =
        DoubleVector.fromArray(S, b.tolerance(), j)
            .max(a.tolerance()[i])
            .add(more)
            .sub(DoubleVector.fromArray(S, b.inverseError(), j).add(a.inverseError()[i]))
            .sub(relative);
    LongVector rest =
        (LongVector) c.mul(tolerance).sub(changed.mul(0.5).add(noise)).reinterpretShape(L, 0);
    rest.or(rest.add(Epilogue.UP_TO_INFINITY)).intoArray(signs, 0);
    c.intoArray(squares, 0);
    for (int k = 0; k < count; k++) {
      double value =
          signs[k] < 0 ? pair.of(operands.q(), i, operands.p(), j + k) : terms.finish(squares[k]);
      out.put(i, j + k, value);
    }
  }
}
