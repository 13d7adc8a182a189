<#include "../Lanes.ftl">
<#-- Floats of an array as doubles, as many as a vector has. -->
<#function widen array at>
<#return asVectors?then("((DoubleVector) FloatVector.fromArray(HALF, ${array}, ${at}).convertShape(VectorOperators.F2D, S, 0))", "${array}[${at}]")>
</#function>
<#-- Bounds the errors of a row in a column panel. -->
<#macro bound name form="double">
<#assign isSingle = form != "double">

  private void ${name}(
      LowRankColumns p,
      int at,
<#if form == "single">
      int z,
</#if>
      int column,
      double offset,
      double unit,
      double noise,
      double more) {
<#if form != "foreseen">
    double[] values = this.values;
</#if>
    double[] rooms = this.${isSingle?then("singleRooms", "rooms")};
    for (int v = 0; v < NR; v += V) {
      int j = column + v;
      ${vector} r = ${load("positive", "at + v")};
      ${vector} x = ${load("other", "at + v")};
      ${vector} square = ${(form == "single")?then(load("singleSquares", "z + v"), load("squares", "at + v"))};
      ${vector} sum = ${sub(add("r", "x"), "square")};
      ${vector} offsets = ${add(load("p.offset()", "j"), "offset")};
      ${vector} value = ${add(mul("sum", "0.5"), "offsets")};
      ${vector} weight = ${add(load("p.weight()", "j"), "unit")};
      ${vector} error = ${fma("weight", "r", add(load("p.noise()", "j"), "noise"))};
<#if isSingle>
      ${vector} t = ${mul(load("p.spread()", "j"), sqrt("r"))};
      ${vector} root = ${sqrt("square")};
</#if>
<#if form == "single">
      ${vector} y = ${add(mul("t", "0.5"), "root")};
      error = ${fma("t", "y", "error")};
</#if>
<#if form == "foreseen">
      ${vector} y = ${add(mul("t", "0.5"), "root")};
      ${vector} least = ${max(sub("root", "t"), "0")};
      error = ${fma("t", "least", "error")};
      value = ${fma("t", "y", "value")};
</#if>
      ${vector} tolerance = ${add(load("p.tolerance()", "j"), "more")};
      ${vector} room = ${sub(mul("value", "tolerance"), "error")};
<#if form != "foreseen">
      ${store("value", "values", "v")};
</#if>
      ${store("room", "rooms", isSingle?then("at + v", "v"))};
    }
  }
</#macro>
<#-- Computes Z of a group and the panel that a column is in, and what adds the squares of a Gaussian's products with one row of B to it. -->
<#macro project name of rows products squares>
<#assign single = (of == "float")?then("SINGLE_", ""), Single = (of == "float")?then("Single", "")>

  private void ${name}(LowRankOperands operands, int group, int column, int left) {
    int d = operands.q().dimension();
    int height = operands.q().rank() + 1;
    int r = operands.p().rank();
    int whole = Math.ceilDiv(group * height, MR) * MR;
    int most = Math.clamp(MOST_SUMS / (whole * ${single}NR), 1, Math.max(1, r));
    if (${products}.length < most * whole * ${single}NR) {
      ${products} = new ${of}[most * whole * ${single}NR];
    }
    Arrays.fill(${squares}, 0);
    int panel = column / ${single}NR;
    int count = Math.min(${single}NR, left + column % ${single}NR);
    ${of}[] factor = operands.columns().${(of == "float")?then("single", "factor")}();
    for (int first = 0; first < r; first += most) {
      int end = Math.min(r, first + most);
      for (int h = 0; h < d; h += ${single}KC) {
        int length = Math.min(${single}KC, d - h);
        for (int k = first; k < end; k++) {
          worker.pass(${(of == "float")?then("(long)", "2L *")} whole * ${single}NR * length);
          int c = ((panel * r + k) * d + h) * ${single}NR;
          int to = (k - first) * whole * ${single}NR;
          ${twin}${Single}ProductMicroKernels.multiply(
              ${rows}, h * MR, d, whole, factor, c, length, count, ${products}, to, h == 0);
        }
      }
      for (int k = first; k < end; k++) {
        for (int v = 0; v < ${single}NR; v += NR) {
          int ofMean = ((panel * ${single}NR + v) / NR * r + k) * NR;
          for (int i = 0; i < group; i++) {
            int at = ((k - first) * whole + i * height) * ${single}NR + v;
            square${Single}(at, height, v * MOST_GROUP + i * NR, operands.columns().ofMean(), ofMean);
          }
        }
      }
    }
  }

  private void square${Single}(int from, int height, int to, double[] ofMean, int mean) {
    ${of}[] products = this.${products};
    double[] squares = this.${squares};
    for (int v = 0; v < NR; v += V) {
      ${vector} sum = ${load("squares", "to + v")};
      int at = from + v;
      for (int a = 1; a < height; a++, at += ${single}NR) {
        ${vector} x = ${(of == "float")?then(widen("products", "at"), load("products", "at"))};
        sum = ${fma("x", "x", "sum")};
      }
      ${vector} last = ${(of == "float")?then(widen("products", "at"), load("products", "at"))};
      ${vector} y = ${sub("last", load("ofMean", "mean + v"))};
      sum = ${fma("y", "y", "sum")};
      ${store("sum", "squares", "to + v")};
    }
  }
</#macro>
<@twins "LowRankKernel" "LowRankColdKernel">
package dev.kullback.internal.vector.full;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.formula.LowRankPair;
<#if !asVectors>
import dev.kullback.internal.formula.LowRankScalarSums;
</#if>
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
<@imports>
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;
</@imports>

<#if asVectors>
/**
 * Low-rank covariances as a matrix product on the Vector API, of the rows of {@code [W_q, m_q]ᵀ} of several q with the rows of B of a panel of p, whose
 * squares are summed before they leave the cache; see {@link LowRankColumns}. Of batches of float the product is in float at first, and that in double
 * has the entries whose error bound exceeds the contract. What that leaves, {@link LowRankPair} computes.
 *
 * <p>An entry's value depends on its two Gaussians and on p's centre alone: every lane sees the same operations in the same order.
 */
<#else>
/** {@link LowRankKernel} without vectors: the same text, so the same bits. */
</#if>
public final class ${class} implements BlockKernel<LowRankOperands> {
<@species/>
<#if asVectors>
  private static final VectorSpecies<Float> HALF = Species.HALF_FLOAT;
</#if>
  private static final int MR = ProductKernels.MR;
  private static final int NR = FullColumns.NR;
  private static final int KC = ProductKernels.KC;
  private static final int SINGLE_NR = LowRankColumns.SINGLE_NR;
  private static final int SINGLE_KC = LowRankColumns.SINGLE_KC;

  /** Rows of q that are multiplied at once, and about how many rows of {@code [W, m]ᵀ} these have: a chunk of them, 256 KiB, fits the L2 cache. */
  private static final int MOST_GROUP = 16;

  private static final int MOST_PRODUCT_ROWS = 256;

  /** Sums of products with some rows of B that wait for their squares: 512 KiB. */
  private static final int MOST_SUMS = 1 << 16;

  private final Worker worker;

  /** Computes what the error bound leaves open. */
  private final LowRankPair near;

  /** {@code [W, m]ᵀ} of a group, {@code [a][h][MR]} over its rows, and {@code v + ‖W_h‖² + m², v, m}, {@code [a][3D][MR]}. */
  private double[] rows = {};

  private double[] terms = {};

  /** Products of the rows with some rows of B, {@code [k][row][NR]}; Z of the group, {@code [i][NR]}, and likewise R and X. */
  private double[] products = {};

  /** The same of floats. */
  private float[] singleRows = {};

  private float[] singleProducts = {};

  /** What the noise of each row of the group has for floats: ∞ for one beyond their range. */
  private final double[] singleNoise = new double[MOST_GROUP];

  /** Z by products in float, {@code [panel of NR][i][NR]} of a panel of floats, and how far the group's bounds are within the tolerance, {@code [i][NR]}. */
  private final double[] singleSquares = new double[MOST_GROUP * SINGLE_NR];

  private final double[] singleRooms = new double[MOST_GROUP * NR];

  /** Whether products in float settled nothing where they were tried last. */
  private boolean isDoubleFirst;

  private final double[] squares = new double[MOST_GROUP * NR];
  private final double[] positive = new double[MOST_GROUP * NR];
  private final double[] other = new double[MOST_GROUP * NR];

  /** A row's values in a panel, and how far their bounds are within the tolerance. */
  private final double[] values = new double[NR];

  private final double[] rooms = new double[NR];

  /** Which entries of the group in the panel are to be recomputed, {@code [i][NR]}, and whether any is. */
  private final boolean[] open = new boolean[MOST_GROUP * NR];

  private boolean hasOpen;

  /** Makes a kernel of one thread. */
  public ${class}(Worker worker) {
    this.worker = worker;
    near = new LowRankPair(worker, new LowRank${asVectors?then("Vector", "Scalar")}Sums());
  }

  @Override
  public void clear() {
    near.clear();
    closeAll(); // a call that was interrupted left some
  }

  @Override
  public void block(
      LowRankOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    LowRankBatch q = operands.q();
    int d = q.dimension();
    int height = q.rank() + 1;
    int group = Math.clamp(MOST_PRODUCT_ROWS / height, 1, MOST_GROUP);
    for (int first = row0; first < row1; first += group) {
      int end = Math.min(first + group, row1);
      boolean isSingle = operands.isSingle();
      boolean hasRows = !isSingle;
      double[] centre = operands.columns().centre();
      pack(q, first, end, centre, isSingle);
      int panel = -1; // of which products in float are at hand
      for (int column = column0 / NR * NR; column < column1; column += NR) { // a block may begin in a panel
        int from = Math.max(0, column0 - column);
        int count = Math.min(NR, column1 - column);
        addUp(operands, 0, d, end - first, column, count, positive);
        addUp(operands, d, 3 * d, end - first, column, count, other);
        boolean isFirst = !isSingle || isDoubleFirst;
        if (!hasRows && isFirst) {
          pack(q, first, end, centre, false);
          hasRows = true;
        }
        if (isFirst) {
          project(operands, end - first, column, column1 - column);
        }
        boolean isTried =
            isSingle
                && !(isFirst && storeSingle(operands, first, end, column, from, count, true, out) == 0);
        if (isTried && panel != column / SINGLE_NR) {
          panel = column / SINGLE_NR;
          projectSingle(operands, end - first, column, column1 - column);
        }
        int left = (end - first) * (count - from);
        if (isTried) {
          left -= storeSingle(operands, first, end, column, from, count, false, out);
          isDoubleFirst = left == (end - first) * (count - from);
        }
        if (left > 0 && !hasRows) {
          pack(q, first, end, centre, false);
          hasRows = true;
        }
        if (left > 0 && !isFirst) {
          project(operands, end - first, column, column1 - column);
        }
        for (int i = first; i < end && left > 0; i++) {
          store(operands, i, i - first, column, from, count, isTried, out);
        }
        if (hasOpen) {
          storeOpen(operands, first, end, column, count, out);
        }
      }
    }
  }

  /** Packs the rows of a group, in float or double. */
  private void pack(LowRankBatch q, int first, int end, double[] centre, boolean isSingle) {
    int d = q.dimension();
    int r = q.rank();
    int height = r + 1;
    int padded = Math.ceilDiv((end - first) * height, MR) * MR;
    if (isSingle && singleRows.length < padded * d) {
      singleRows = new float[padded * d];
    }
    if (!isSingle && rows.length < padded * d) {
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
      double most = 0;
      int to = (i - first) / MR * 3 * d * MR + (i - first) % MR;
      for (int h = 0; h < d; h++) {
        double v = diagonal.kind().variance(diagonal.scale(i * d + h));
        double m = diagonal.mean(i * d + h) - centre[h];
        double sum = v + m * m;
        int from = i * r * d + h;
        for (int a = 0; a < r; a++) {
          double x = w[from + a * d];
          sum += x * x;
          put(x, place(row + a, h, d), isSingle);
          most = Math.max(most, Math.abs(x));
        }
        put(m, place(row + r, h, d), isSingle);
        most = Math.max(most, Math.abs(m));
        terms[to + h * MR] = sum;
        terms[to + (d + h) * MR] = v;
        terms[to + (2 * d + h) * MR] = m;
      }
      singleNoise[i - first] =
          most <= LowRankColumns.MOST_SINGLE ? 0 : Double.POSITIVE_INFINITY;
    }
  }

  private void put(double x, int at, boolean isSingle) {
    if (isSingle) {
      singleRows[at] = (float) x;
    } else {
      rows[at] = x;
    }
  }

  private static int place(int row, int h, int d) {
    return (row / MR * d + h) * MR + row % MR;
  }

  /** Computes R or X of a group and a column panel, of some of the terms. */
  private void addUp(
      LowRankOperands operands, int from, int to, int group, int column, int count, double[] sums) {
    int terms = 3 * operands.q().dimension();
    int panel = column / NR * terms * NR;
    double[] columns = operands.columns().sums();
    for (int h = from; h < to; h += KC) {
      int length = Math.min(KC, to - h);
      worker.pass(2L * group * NR * length);
      ${twin}ProductMicroKernels.multiply(
          this.terms, h * MR, terms, group, columns, panel + h * NR, length, count, sums, 0, h == from);
    }
  }
<@project name="project" of="double" rows="rows" products="products" squares="squares"/>
<@project name="projectSingle" of="float" rows="singleRows" products="singleProducts" squares="singleSquares"/>

  /**
   * Stores the divergences of a group in a column panel that products in float settle, and returns their number.
   *
   * @param isForeseen whether only to tell by products in double if there are any: so entries have the same bits whichever come first
   */
  private int storeSingle(
      LowRankOperands operands,
      int first,
      int end,
      int column,
      int from,
      int count,
      boolean isForeseen,
      BlockTarget out) {
    LowRankBatch q = operands.q();
    LowRankColumns p = operands.columns();
    double more = PairKl.FLOAT_TOLERANCE;
    int squares = column % SINGLE_NR / NR * NR * MOST_GROUP;
    int settled = 0;
    for (int i = first; i < end; i++) {
      int at = (i - first) * NR;
      double noise = noise(q, i) + singleNoise[i - first];
      if (isForeseen) {
        foresee(p, at, column, -q.logDet(i), unit(q), noise, more);
      } else {
        boundSingle(p, at, squares + at, column, -q.logDet(i), unit(q), noise, more);
      }
      for (int j = from; j < count; j++) {
        if (isSettled(singleRooms[at + j])) {
          settled++;
          if (isForeseen) {
            return settled;
          }
          out.put(i, column + j, values[j]);
        }
      }
    }
    return settled;
  }

  private static boolean isSettled(double room) {
    return room >= 0 && room < Double.POSITIVE_INFINITY;
  }

  private static double unit(LowRankBatch q) {
    return 0.5 * FullPacking.UNIT * (q.rank() + 8);
  }

  private static double noise(LowRankBatch q, int i) {
    return q.diagonal().beyond64().get(i)
        ? Double.POSITIVE_INFINITY // v_q/v_p may be lost
        : q.logDetBound(i) + 4 * FullPacking.UNIT * Math.abs(q.logDet(i));
  }

  /**
   * Stores the divergences of a row in a column panel, and notes as open those whose error bound exceeds the tolerance.
   *
   * @param isSingle whether those that products in float settle are stored
   */
  private void store(
      LowRankOperands operands,
      int i,
      int row,
      int column,
      int from,
      int count,
      boolean isSingle,
      BlockTarget out) {
    LowRankBatch q = operands.q();
    double more = operands.moreTolerance();
    bound(operands.columns(), row * NR, column, -q.logDet(i), unit(q), noise(q, i), more);
    for (int j = from; j < count; j++) {
      if (isSingle && isSettled(singleRooms[row * NR + j])) {
        continue;
      }
      boolean isOpen = !isSettled(rooms[j]);
      out.put(i, column + j, isOpen ? Double.NaN : values[j]);
      open[row * NR + j] = isOpen;
      hasOpen |= isOpen;
    }
  }

  /** Recomputes what is open of a group in a column panel, column by column, as a pair goes on from what the one before knows of its p. */
  private void storeOpen(
      LowRankOperands operands, int first, int end, int column, int count, BlockTarget out) {
    LowRankBatch q = operands.q();
    LowRankBatch p = operands.p();
    for (int j = 0; j < count; j++) {
      for (int i = first; i < end; i++) {
        if (open[(i - first) * NR + j]) {
          worker.pass(Batch.terms(q, p));
          out.put(i, column + j, near.divergence(q, i, p, column + j));
        }
      }
    }
    closeAll();
  }

  private void closeAll() {
    if (hasOpen) {
      Arrays.fill(open, false);
      hasOpen = false;
    }
  }
<@bound name="bound"/>
<@bound name="boundSingle" form="single"/>
<@bound name="foresee" form="foreseen"/>
}
</@twins>
