<#include "../Lanes.ftl">
<@twins "LowRankKernel" "LowRankColdKernel">
package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.work.Worker;
import org.jspecify.annotations.Nullable;
<@imports/>

<#if asVectors>
/**
 * Low-rank covariances as a matrix product on the Vector API, of the rows of {@code [W_q, m_q]ᵀ} of several q with the rows of B of a panel of p, whose
 * squares are summed before they leave the cache; see {@link LowRankColumns}. Entries whose error bound exceeds the contract are left to {@link Pair}.
 *
 * <p>An entry's value depends on its two Gaussians and on p's centre alone: every lane sees the same operations in the same order.
 */
<#else>
/** {@link LowRankKernel} without vectors: the same text, so the same bits. */
</#if>
public final class ${class} implements BlockKernel<LowRankOperands> {
<@species/>
  private static final int MR = ProductKernels.MR;
  private static final int NR = FullColumns.NR;
  private static final int KC = ProductKernels.KC;

  /** Rows of q that are multiplied at once, and about how many rows of {@code [W, m]ᵀ} these have: a chunk of them, 256 KiB, fits the L2 cache. */
  private static final int MOST_GROUP = 16;

  private static final int MOST_PRODUCT_ROWS = 256;

  /** Sums of products with some rows of B that wait for their squares: 512 KiB. */
  private static final int MOST_SUMS = 1 << 16;

  private final Worker worker;
  private final @Nullable Pair pair;

  /** {@code [W, m]ᵀ} of a group, {@code [a][h][MR]} over its rows, and {@code v + ‖W_h‖² + m², v, m}, {@code [a][3D][MR]}. */
  private double[] rows = {};

  private double[] terms = {};

  /** Products of the rows with some rows of B, {@code [k][row][NR]}; Z of the group, {@code [i][NR]}, and likewise R and X. */
  private double[] products = {};

  private final double[] squares = new double[MOST_GROUP * NR];
  private final double[] positive = new double[MOST_GROUP * NR];
  private final double[] other = new double[MOST_GROUP * NR];

  /** A row's values in a panel, and how far their bounds are within the tolerance. */
  private final double[] values = new double[NR];

  private final double[] rooms = new double[NR];

  /**
   * Makes a kernel of one thread.
   *
   * @param pair recomputes open entries; null to leave them NaN
   */
  public ${class}(Worker worker, @Nullable Pair pair) {
    this.worker = worker;
    this.pair = pair;
  }

  @Override
  public void block(
      LowRankOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    LowRankBatch q = operands.q();
    int height = q.rank() + 1;
    int group = Math.clamp(MOST_PRODUCT_ROWS / height, 1, MOST_GROUP);
    for (int first = row0; first < row1; first += group) {
      int end = Math.min(first + group, row1);
      pack(q, first, end, operands.columns().centre());
      for (int column = column0; column < column1; column += NR) {
        int count = Math.min(NR, column1 - column);
        addUp(operands, end - first, column, count);
        project(operands, end - first, column, count);
        for (int i = first; i < end; i++) {
          store(operands, i, i - first, column, count, out);
        }
      }
    }
  }

  /** Packs the rows of a group. */
  private void pack(LowRankBatch q, int first, int end, double[] centre) {
    int d = q.dimension();
    int r = q.rank();
    int height = r + 1;
    int padded = Math.ceilDiv((end - first) * height, MR) * MR;
    if (rows.length < padded * d) {
      rows = new double[padded * d];
    }
    if (terms.length < MOST_GROUP * 3 * d) {
      terms = new double[MOST_GROUP * 3 * d];
    }
    DiagonalBatch diagonal = q.diagonal();
    double[] w = q.factor();
    for (int i = first; i < end; i++) {
      worker.pass(8L * d * height);
      int row = (i - first) * height;
      int to = (i - first) / MR * 3 * d * MR + (i - first) % MR;
      for (int h = 0; h < d; h++) {
        double v = diagonal.kind().variance(diagonal.scale(i * d + h));
        double m = diagonal.mean(i * d + h) - centre[h];
        double sum = v + m * m;
        int from = (i * d + h) * r;
        for (int a = 0; a < r; a++) {
          double x = w[from + a];
          sum += x * x;
          rows[place(row + a, h, d)] = x;
        }
        rows[place(row + r, h, d)] = m;
        terms[to + h * MR] = sum;
        terms[to + (d + h) * MR] = v;
        terms[to + (2 * d + h) * MR] = m;
      }
    }
  }

  private static int place(int row, int h, int d) {
    return (row / MR * d + h) * MR + row % MR;
  }

  /** Computes R and X of a group and a column panel. */
  private void addUp(LowRankOperands operands, int group, int column, int count) {
    double[] sums = operands.columns().sums();
    int d = operands.q().dimension();
    int panel = column / NR * 3 * d * NR;
    for (int h = 0; h < d; h += KC) {
      int length = Math.min(KC, d - h);
      worker.pass(2L * group * NR * length);
      ${twin}ProductKernels.multiply(
          terms, h * MR, 3 * d, group, sums, panel + h * NR, length, count, positive, 0, h == 0);
    }
    for (int h = d; h < 3 * d; h += KC) {
      int length = Math.min(KC, 3 * d - h);
      worker.pass(2L * group * NR * length);
      ${twin}ProductKernels.multiply(
          terms, h * MR, 3 * d, group, sums, panel + h * NR, length, count, other, 0, h == d);
    }
  }

  /** Computes Z of a group and a column panel. */
  private void project(LowRankOperands operands, int group, int column, int count) {
    int d = operands.q().dimension();
    int height = operands.q().rank() + 1;
    int r = operands.p().rank();
    int whole = Math.ceilDiv(group * height, MR) * MR;
    int most = Math.clamp(MOST_SUMS / (whole * NR), 1, Math.max(1, r));
    if (products.length < most * whole * NR) {
      products = new double[most * whole * NR];
    }
    ${vector} zero = ${zero()};
    for (int k = 0; k < group * NR; k += V) {
      ${store("zero", "squares", "k")};
    }
    double[] factor = operands.columns().factor();
    for (int first = 0; first < r; first += most) {
      int end = Math.min(r, first + most);
      for (int h = 0; h < d; h += KC) {
        int length = Math.min(KC, d - h);
        for (int k = first; k < end; k++) {
          worker.pass(2L * whole * NR * length);
          int c = ((column / NR * r + k) * d + h) * NR;
          int to = (k - first) * whole * NR;
          ${twin}ProductKernels.multiply(
              rows, h * MR, d, whole, factor, c, length, count, products, to, h == 0);
        }
      }
      for (int k = first; k < end; k++) {
        int ofMean = (column / NR * r + k) * NR;
        for (int i = 0; i < group; i++) {
          int at = ((k - first) * whole + i * height) * NR;
          square(at, height, i * NR, operands.columns().ofMean(), ofMean);
        }
      }
    }
  }

  /** Adds the squares of a Gaussian's products with one row of B to Z. */
  private void square(int from, int height, int to, double[] ofMean, int mean) {
    double[] products = this.products;
    double[] squares = this.squares;
    for (int v = 0; v < NR; v += V) {
      ${vector} sum = ${load("squares", "to + v")};
      int at = from + v;
      for (int a = 1; a < height; a++, at += NR) {
        ${vector} x = ${load("products", "at")};
        sum = ${fma("x", "x", "sum")};
      }
      ${vector} y = ${sub(load("products", "at"), load("ofMean", "mean + v"))};
      sum = ${fma("y", "y", "sum")};
      ${store("sum", "squares", "to + v")};
    }
  }

  /** Stores the divergences of a row in a column panel, and recomputes those whose error bound exceeds the tolerance. */
  private void store(
      LowRankOperands operands, int i, int row, int column, int count, BlockTarget out) {
    LowRankBatch q = operands.q();
    LowRankColumns p = operands.columns();
    double more = operands.moreTolerance();
    double offset = -q.logDet(i);
    double unit = 0.5 * FullPacking.UNIT * (q.rank() + 8);
    double noise =
        q.diagonal().beyond64().get(i)
            ? Double.POSITIVE_INFINITY // v_q/v_p may be lost
            : q.logDetBound(i) + 4 * FullPacking.UNIT * Math.abs(offset);
    bound(p, row * NR, column, offset, unit, noise, more);
    for (int j = 0; j < count; j++) {
      double value = values[j];
      if (!(rooms[j] >= 0 && rooms[j] < Double.POSITIVE_INFINITY)) {
        value = pair == null ? Double.NaN : pair.of(q, i, operands.p(), column + j);
      }
      out.put(i, column + j, value);
    }
  }

  private void bound(
      LowRankColumns p, int at, int column, double offset, double unit, double noise, double more) {
    double[] values = this.values;
    double[] rooms = this.rooms;
    for (int v = 0; v < NR; v += V) {
      int j = column + v;
      ${vector} r = ${load("positive", "at + v")};
      ${vector} x = ${load("other", "at + v")};
      ${vector} sum = ${sub(add("r", "x"), load("squares", "at + v"))};
      ${vector} offsets = ${add(load("p.offset()", "j"), "offset")};
      ${vector} value = ${add(mul("sum", "0.5"), "offsets")};
      ${vector} weight = ${add(load("p.weight()", "j"), "unit")};
      ${vector} error = ${fma("weight", "r", add(load("p.noise()", "j"), "noise"))};
      ${vector} tolerance = ${add(load("p.tolerance()", "j"), "more")};
      ${vector} room = ${sub(mul("value", "tolerance"), "error")};
      ${store("value", "values", "v")};
      ${store("room", "rooms", "v")};
    }
  }
}
</@twins>
