<#include "../Lanes.ftl">
<@twins "FullChernoffKernel" "FullColdChernoff">
package dev.kullback.internal.vector.full;

import dev.kullback.internal.formula.Excess;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Series;
import dev.kullback.internal.vector.Epilogue;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
<@imports>
import dev.kullback.internal.vector.Shapes;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
</@imports>

<#if asVectors>
/**
 * Computes Chernoff's divergence of one row and a vector of columns at a time, or one computed from it: it makes the Cholesky factor of the
 * weighted mean covariance, one pair in each lane, and leaves the entries whose error bound exceeds the contract to the scalar kernel.
 */
<#else>
/** {@link FullChernoffKernel} without vectors: the same text, so the same bits. */
</#if>
public final class ${class} implements BlockKernel<FullOperands> {
<@species>
  private static final VectorSpecies<Long> L = Species.LONG;
</@species>
  private static final int MR = ProductKernels.MR;
  private static final int NR = FullColumns.NR;

  /** Coefficients of artanh's series: s² ≤ 0.03, so what is left out is below 2⁻⁶⁰ of the sum. */
  private static final double[] ARTANH = Series.artanh(9, 0);

  private static final int COLUMNS = ${asVectors?then("Shapes.CHERNOFF_COLUMNS", "2")};

  private final Worker worker;
  private final Pair pair;
  private final ChernoffTerms terms;
  private final ChernoffRows rows = new ChernoffRows();

  /**
   * Vectors of the factor by four rows, and after it, of each column, the entry of the means' row, −1/√pivot and the pivot; see {@link
   * ${twin}ChernoffMicroKernels}. Dimensions are padded to whole blocks, as if independent of the others.
   */
  private double[] factor = {};

  /** Vectors of the columns as {@link ChernoffRows} has rows, with {@code scale·Σ}. */
  private double[] panel = {};

  /** Entries of the packed Σ and of μ in the order in which the micro-kernels read them. */
  private int[] order = {};

  /** Dimension for which {@link #order} was made. */
  private int dimension;

  /** The product of the pivots' mantissas, and then ½ ln det S. */
  private final double[] halves = new double[V];

  /** The sum of the pivots' exponents. */
  private final double[] exponents = new double[V];

  /** dᵀS⁻¹d, and then C. */
  private final double[] squares = new double[V];

  /** How much rounding changes ln det S at most, see {@link ChernoffTerms}. */
  private final double[] change = new double[V];

  /** The sum that bounds the relative change of dᵀS⁻¹d by q's correlations. */
  private final double[] changeQ = new double[V];

  /** The same by p's. */
  private final double[] changeP = new double[V];

  /** Negative where an entry is to be recomputed. */
  private final long[] signs = new long[V];

  public ${class}(Formula formula, Worker worker, Pair pair) {
    this.worker = worker;
    this.pair = pair;
    terms = new ChernoffTerms(formula);
  }

  @Override
  public void block(
      FullOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    int d = operands.q().dimension();
    layOut(d);
    for (int first = row0; first < row1; ) {
      int end = rows.pack(operands, order, first, row1);
      for (int j = column0; j < column1; j += V) {
        packPanel(operands.otherRows(), operands.columns(), j, d);
        for (int i = first; i < end; i++) {
          worker.pass(Checkpoint.ofSolve(d));
          factor(rows.at(i));
          total(rows.at(i), d);
          takeLogarithm();
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

  /** Makes room for d dimensions, and the order of the entries. */
  private void layOut(int d) {
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
    int covariance = rows.panel(j) + j % MR;
    int mean = j / MR * MR * d + j % MR;
    int to = 0;
    for (int k : order) {
      if (k >= triangle) {
        ${store(load("rows.mean()", "mean + (k - triangle) * MR"), "panel", "to")};
      } else if (k >= 0) {
        ${store(mul(load("rows.covariance()", "covariance + k * MR"), "-terms.scale"), "panel", "to")};
      } else {
        ${store(zero(), "panel", "to")};
      }
      to += V;
    }
    int precision = columns.precision(j) + j % NR;
    for (int h = 0, k = 0; h < d; k += ++h + 1, to += V) {
      ${store(mul(load("rows.covariance()", "covariance + k * MR"), "-terms.scale"), "panel", "to")};
      ${vector} own = ${div(load("columns.values()", "precision + k * NR"), "terms.scale")};
      ${store(mul("own", "ChernoffTerms.weight(d, h)"), "panel", "to + d * V")};
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
      ${twin}ChernoffMicroKernels.diagonal(q, at + s, p, s * V, l, columns, means, inverse, pivots, c);
      s += 14;
      for (int r = c + 4; r < padded; r += 4, s += 16) {
        int row = rowsBefore(r) * V;
        if (COLUMNS == 4) {
          ${twin}ChernoffMicroKernels.tile4x4(q, at + s, p, s * V, l, row, columns, inverse, c);
        } else {
          ${twin}ChernoffMicroKernels.tile4x2(q, at + s, p, s * V, l, row, columns, inverse, c);
          int h = 2 * V;
          ${twin}ChernoffMicroKernels.tile4x2(
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
    ${vector} square = ${zero()};
    ${vector} changed = ${zero()};
    ${vector} changedQ = ${zero()};
    ${vector} changedP = ${zero()};
    ${vector} product = ${broadcast("1")};
    ${vector} powers = ${zero()};
    for (int h = 0; h < d; h++) {
      ${vector} x = ${load("l", "(means + h) * V")};
      square = ${fma("x", "x", "square")};
      ${vector} a = ${broadcast("q[at + from + d + h]")};
      ${vector} b = ${load("panel", "(from + d + h) * V")};
      x = ${neg(add(load("panel", "(from + h) * V"), "q[at + from + h]"))};
      changedQ = ${fma("x", "a", "changedQ")};
      changedP = ${fma("x", "b", "changedP")};
      changed = ${fma("x", min("a", "b"), "changed")};
      x = ${load("l", "(pivots + h) * V")};
      ${type("Long")} bits = ${bits("x")};
      ${type("Long")} exponent = ${exponent("bits")};
      powers = ${add(toDouble("exponent"), "powers")};
      product = ${mul(mantissa("bits", "exponent"), "product")};
    }
    ${store("square", "squares", "0")};
    ${store("changed", "change", "0")};
    ${store("changedQ", "changeQ", "0")};
    ${store("changedP", "changeP", "0")};
    ${store("product", "halves", "0")};
    ${store("powers", "exponents", "0")};
  }

  /**
   * Replaces the product m of mantissas, each in [√½, √2), by {@code ½ ln det S = artanh s + ½ k ln 2}, {@code s = (m − 1)/(m + 1)}, k
   * the sum of exponents, by the series of artanh.
   */
  private void takeLogarithm() {
    ${vector} product = ${load("halves", "0")};
    ${type("Long")} bits = ${bits("product")};
    ${type("Long")} exponent = ${exponent("bits")};
    ${vector} k = ${add(toDouble("exponent"), load("exponents", "0"))};
    ${vector} m = ${mantissa("bits", "exponent")};
    ${vector} s = ${div(sub("m", "1"), add("m", "1"))};
    ${vector} t = ${mul("s", "s")};
    ${vector} tail = ${broadcast("ARTANH[0]")};
    for (int i = 1; i < ARTANH.length; i++) {
      tail = ${fma("t", "tail", broadcast("ARTANH[i]"))};
    }
    ${vector} artanh = ${add(mul(mul("t", "tail"), "s"), "s")};
    ${store(add("artanh", mul("k", "0.5 * Excess.LN2")), "halves", "0")};
  }

  /** Stores the divergences of row i and the columns from j on: C where its error bound is within the tolerance. */
  private void store(FullOperands operands, int i, int j, int count, BlockTarget out) {
    FullRows q = operands.rows();
    FullRows p = operands.otherRows();
    FullColumns a = operands.otherColumns();
    FullColumns b = operands.columns();
    int d = b.centre().length;
    double more = operands.moreTolerance(); // not a choice of vectors, which C2 may box
    ${vector} half = ${load("halves", "0")};
    ${vector} offset = ${mul(load("p.offset()", "j"), "terms.weightP")};
    offset = ${add("offset", "terms.weightQ * q.offset()[i]")};
    ${vector} c = ${mul(load("squares", "0"), "0.5 * terms.weightP")};
    c = ${add("c", add(add("half", "terms.constant(d)"), "offset"))};
    ${vector} noise = ${mul(load("p.noise()", "j"), "terms.weightP")};
    noise = ${add("noise", "terms.weightQ * q.noise()[i]")};
    noise = ${add("noise", add(mul(abs("half"), "4 * ChernoffTerms.UNIT"), "terms.noise(d)"))};
    ${vector} changed = ${load("change", "0")};
    ${vector} relative = ${mul(load("changeP", "0"), load("operands.correlationsP()", "j"))};
    relative = ${min("relative", mul(load("changeQ", "0"), "operands.correlationsQ()[i]"))};
    relative = ${add(mul("relative", "ChernoffTerms.ofSquares(d)"), mul("changed", "ChernoffTerms.ofSolve(d)"))};
    ${vector} tolerance = ${add(max(load("b.tolerance()", "j"), "a.tolerance()[i]"), "more")};
    tolerance = ${sub("tolerance", add(load("b.inverseError()", "j"), "a.inverseError()[i]"))};
    tolerance = ${sub("tolerance", "relative")};
    ${vector} room = ${sub(mul("c", "tolerance"), add(mul("changed", "0.5"), "noise"))};
    ${type("Long")} rest = ${bits("room")};
    ${store(or("rest", add("rest", "Epilogue.UP_TO_INFINITY")), "signs", "0")};
    ${store("c", "squares", "0")};
    for (int k = 0; k < count; k++) {
      double value =
          signs[k] < 0 ? pair.of(operands.q(), i, operands.p(), j + k) : terms.finish(squares[k]);
      out.put(i, j + k, value);
    }
  }
}
</@twins>
