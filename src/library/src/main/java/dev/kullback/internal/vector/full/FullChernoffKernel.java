package dev.kullback.internal.vector.full;

import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Measure;
import dev.kullback.internal.plain.DivergencePair;
import dev.kullback.internal.plain.FullPair;
import dev.kullback.internal.vector.Epilogue;
import dev.kullback.internal.vector.Species;
import dev.kullback.internal.vector.VectorWidth;
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
  private static final int LAST = ChernoffTerms.LAST;

  /** Columns of a block on the diagonal: the sums of 4 x 4 entries need 32 registers. */
  private static final int COLUMNS = VectorWidth.REGISTERS == 32 ? 4 : 2;

  /** Most rows whose factors are computed beside each other: at D = 32, 4 took 1.2 times as long (Zen 5). */
  private static final int BESIDE = 2;

  /** Doubles that factors beside each other take at most. */
  private static final int MOST = 1 << 14;

  private final Worker worker;
  private final DivergencePair pair;
  private final ChernoffTerms terms;
  private final ChernoffRows rows = new ChernoffRows();

  /**
   * Vectors of some rows, for each the factor, below it what the means' difference becomes, and of each column −1/√pivot and the pivot; see
   * {@link ChernoffMicroKernels}.
   */
  private double[] factors = {};

  /** Vectors of the columns' {@code (Σ⁻¹)_kk/scale} times w_k. */
  private double[] precision = {};

  /** The product of the pivots' mantissas, and then ½ ln det S; the sum of their exponents; dᵀS⁻¹d and then C, and the changes, of vectors of pairs; see {@link ChernoffTerms}. */
  private final double[] halves = new double[BESIDE * V];

  private final double[] exponents = new double[BESIDE * V];
  private final double[] squares = new double[BESIDE * V];
  private final double[] change = new double[BESIDE * V];
  private final double[] changeQ = new double[BESIDE * V];
  private final double[] changeP = new double[BESIDE * V];

  /** Negative where an entry is to be recomputed. */
  private final long[] signs = new long[V];

  public FullChernoffKernel(Measure measure, Worker worker, DivergencePair pair) {
    this.worker = worker;
    this.pair = pair;
    terms = new ChernoffTerms(measure);
  }

  @Override
  public void block(
      FullOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    int d = operands.q().dimension();
    int beside = Math.clamp(MOST / (length(d) * V), 1, BESIDE);
    if (precision.length < d * V) {
      precision = new double[d * V];
    }
    if (factors.length < beside * length(d) * V) {
      factors = new double[beside * length(d) * V];
    }
    FullRows p = operands.otherRows();
    for (int first = row0; first < row1; ) {
      int end = rows.pack(operands, first, row1);
      for (int j = column0; j < column1; j += V) {
        packPrecision(operands.columns(), j, d);
        for (int i = first; i < end; i += beside) {
          int count = Math.min(beside, end - i);
          worker.pass(count * Checkpoint.ofSolve(d));
          factor(i, count, p, j, d);
          for (int n = 0; n < count; n++) {
            total(n, rows.at(i + n), p, j, d);
            logarithm(n);
          }
          for (int n = 0; n < count; n++) {
            store(operands, n, i + n, j, Math.min(V, column1 - j), out);
          }
        }
      }
      first = end;
    }
  }

  /** Vectors of a pair. */
  private static int length(int d) {
    return FullColumns.length(d) + 2 * d;
  }

  private void packPrecision(FullColumns p, int j, int d) {
    int panel = j / FullColumns.NR * FullColumns.NR * FullColumns.length(d) + j % FullColumns.NR;
    for (int h = 0, k = 0; h < d; k += ++h + 1) {
      DoubleVector.fromArray(S, p.values(), panel + k * FullColumns.NR)
          .div(terms.scale)
          .mul(ChernoffTerms.weight(d, h))
          .intoArray(precision, h * V);
    }
  }

  /**
   * Computes the factors of {@code count} rows and the columns from j on, a block of columns of all before the next: each pivot waits for the
   * one before, so another row's are computed meanwhile.
   */
  private void factor(int first, int count, FullRows p, int j, int d) {
    double[] q = rows.values;
    double[] covariance = p.covariance();
    double[] l = factors;
    int triangle = Cholesky.packedLength(d);
    int from = j / MR * MR * triangle + j % MR;
    int means = j / MR * MR * d + j % MR - triangle * MR; // those of entry k at k·MR, too
    double scale = -terms.scale;
    for (int c = 0; c < d; c += COLUMNS) {
      for (int n = 0; n < count; n++) {
        int at = rows.at(first + n);
        int to = n * length(d) * V;
        switch (Math.min(d - c, COLUMNS)) {
          case 1 -> ChernoffMicroKernels.diagonal1(q, at, covariance, from, scale, l, to, d, c);
          case 2 -> ChernoffMicroKernels.diagonal2(q, at, covariance, from, scale, l, to, d, c);
          case 3 -> ChernoffMicroKernels.diagonal3(q, at, covariance, from, scale, l, to, d, c);
          default -> ChernoffMicroKernels.diagonal4(q, at, covariance, from, scale, l, to, d, c);
        }
      }
      for (int n = 0; n < count; n++) {
        int at = rows.at(first + n);
        int to = n * length(d) * V;
        int r = c + COLUMNS;
        r =
            COLUMNS == 4
                ? ChernoffMicroKernels.tiles4x4(q, at, covariance, from, scale, l, to, d, c, r, d)
                : ChernoffMicroKernels.tiles4x2(q, at, covariance, from, scale, l, to, d, c, r, d);
        single(at, covariance, from, scale, to, d, c, r, d);
        single(at, p.mean(), means, 1, to, d, c, d, d + 1);
      }
    }
  }

  /** Computes rows r … end − 1 one by one. */
  private void single(
      int at, double[] p, int from, double scale, int to, int d, int c, int r, int end) {
    double[] q = rows.values;
    double[] l = factors;
    switch (Math.min(d - c, COLUMNS)) {
      case 1 -> ChernoffMicroKernels.tiles1x1(q, at, p, from, scale, l, to, d, c, r, end);
      case 2 -> ChernoffMicroKernels.tiles1x2(q, at, p, from, scale, l, to, d, c, r, end);
      case 3 -> ChernoffMicroKernels.tiles1x3(q, at, p, from, scale, l, to, d, c, r, end);
      default -> ChernoffMicroKernels.tiles1x4(q, at, p, from, scale, l, to, d, c, r, end);
    }
  }

  /** Computes the sums and products of what {@link #factor} has left of its n-th row. */
  private void total(int n, int at, FullRows p, int j, int d) {
    double[] q = rows.values;
    double[] l = factors;
    int triangle = Cholesky.packedLength(d);
    int from = j / MR * MR * triangle + j % MR;
    int to = n * length(d);
    int means = to + triangle;
    int pivots = to + triangle + 2 * d;
    DoubleVector square = DoubleVector.zero(S);
    DoubleVector changed = DoubleVector.zero(S);
    DoubleVector changedQ = DoubleVector.zero(S);
    DoubleVector changedP = DoubleVector.zero(S);
    DoubleVector product = DoubleVector.broadcast(S, 1);
    DoubleVector powers = DoubleVector.zero(S);
    for (int h = 0, k = 0; h < d; k += ++h + 1) {
      DoubleVector x = DoubleVector.fromArray(S, l, (means + h) * V);
      square = x.fma(x, square);
      DoubleVector a = DoubleVector.broadcast(S, q[at + triangle + d + h]);
      DoubleVector b = DoubleVector.fromArray(S, precision, h * V);
      x = DoubleVector.fromArray(S, p.covariance(), from + k * MR).mul(terms.scale).sub(q[at + k]);
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
    square.intoArray(squares, n * V);
    changed.intoArray(change, n * V);
    changedQ.intoArray(changeQ, n * V);
    changedP.intoArray(changeP, n * V);
    product.intoArray(halves, n * V);
    powers.intoArray(exponents, n * V);
  }

  /** Replaces the n-th product of mantissas by {@code ½ ln det S}, as {@link ChernoffTerms#half} has it. */
  private void logarithm(int n) {
    LongVector bits = (LongVector) DoubleVector.fromArray(S, halves, n * V).reinterpretShape(L, 0);
    LongVector exponent =
        bits.add(FullPair.EXPONENT_OFFSET).lanewise(VectorOperators.LSHR, FullPair.MANTISSA_BITS);
    DoubleVector k =
        ((DoubleVector) exponent.or(FullPair.INTEGER).reinterpretShape(S, 0))
            .sub(FullPair.INTEGER_OFFSET)
            .add(DoubleVector.fromArray(S, exponents, n * V));
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
    t.mul(tail).mul(s).add(s).add(k.mul(0.5 * FullPair.LN2)).intoArray(halves, n * V);
  }

  /** Stores the divergences of row i and the columns from j on, as {@link ChernoffTerms#value} has them. */
  private void store(FullOperands operands, int n, int i, int j, int count, BlockTarget out) {
    FullRows q = operands.rows();
    FullRows p = operands.otherRows();
    FullColumns a = operands.otherColumns();
    FullColumns b = operands.columns();
    int d = b.centre().length;
    int at = n * V;
    double more = operands.moreTolerance(); // not a choice of vectors, which C2 may box
    DoubleVector half = DoubleVector.fromArray(S, halves, at);
    DoubleVector offset =
        DoubleVector.fromArray(S, p.offset(), j)
            .mul(terms.weightP)
            .add(terms.weightQ * q.offset()[i]);
    DoubleVector c =
        DoubleVector.fromArray(S, squares, at)
            .mul(0.5 * terms.weightP)
            .add(half.add(terms.constant(d)).add(offset));
    DoubleVector noise =
        DoubleVector.fromArray(S, p.noise(), j)
            .mul(terms.weightP)
            .add(terms.weightQ * q.noise()[i])
            .add(half.abs().mul(4 * ChernoffTerms.UNIT).add(terms.noise(d)));
    DoubleVector changed = DoubleVector.fromArray(S, change, at);
    DoubleVector relative =
        DoubleVector.fromArray(S, changeP, at)
            .mul(DoubleVector.fromArray(S, operands.correlationsP(), j))
            .min(DoubleVector.fromArray(S, changeQ, at).mul(operands.correlationsQ()[i]))
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
    c.intoArray(squares, at);
    for (int k = 0; k < count; k++) {
      double value =
          signs[k] < 0
              ? pair.of(operands.q(), i, operands.p(), j + k)
              : terms.finish(squares[at + k]);
      out.put(i, j + k, value);
    }
  }
}
