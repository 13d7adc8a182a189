<#include "../Lanes.ftl">
<#assign kernels = "WassersteinMicroKernels">
<@twins "FullWassersteinKernel" "FullColdWasserstein">
package dev.kullback.internal.vector.full;

import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.formula.Wasserstein2;
import dev.kullback.internal.kernel.BlockKernel;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Arrays;
<@imports/>

<#if asVectors>
/**
 * Computes the squared Wasserstein distance of one row and a vector of columns at a time, or its root, a pair in each lane: {@code L_bᵀL_a}, of
 * which reflections leave two diagonals (G. Golub, W. Kahan, "Calculating the singular values and pseudo-inverse of a matrix", 1965), and
 * the sum of their singular values by {@link RootNodes}, which takes no more steps for one pair than for another. {@link WassersteinTerms}
 * leaves pairs that are near each other to the scalar form.
 */
<#else>
/** {@link FullWassersteinKernel} without vectors: the same text, so the same bits. */
</#if>
public final class ${class} implements BlockKernel<FullOperands> {
<@species/>

  private final Worker worker;
  private final WassersteinTerms terms;
  private int d;

  /** Dimensions in fours: factors are padded with zeros to so many. */
  private int padded;

  /** How far columns of the matrix are apart: an odd number of vectors, as a power of two would have them share few sets of the cache. */
  private int step;

  /** Factors of the columns, {@code [r][c][V]}. */
  private double[] panel = {};

  private double[] matrix = {};

  /** Factors of what is added to the matrix, {@code w vᵀ + y xᵀ}, and the next v and w. */
  private double[] v = {};

  private double[] w = {};
  private double[] x = {};
  private double[] y = {};
  private double[] nextV = {};
  private double[] nextW = {};

  /** Squares of the elements on and beside the diagonal in turn. */
  private double[] z = {};

  private final double[] inverse = new double[V];
  private final double[] dot = new double[V];
  private final double[] sums = new double[V];

  public ${class}(Wasserstein2 formula, Worker worker, Pair pair) {
    this.worker = worker;
    terms = new WassersteinTerms(formula, pair, V);
  }

  @Override
  public void block(
      FullOperands operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    layOut(operands.q().dimension());
    terms.begin(operands, row0, row1, padded);
    for (int j = column0; j < column1; j += V) {
      terms.pack(operands, j, Math.min(V, column1 - j), panel);
      for (int i = row0; i < row1; i++) {
        worker.pass(Checkpoint.ofPlain((long) d * d));
        terms.setRow(operands, i);
        multiply();
        if (terms.areAnyFar(sums)) {
          worker.pass(V * Checkpoint.ofSolve(d));
          if (terms.areAnyExchanged(operands)) {
            for (int c = 1; c < d; c++) {
              ${twin}${kernels}.exchange(matrix, c, step, terms.exchanged);
            }
          }
          bidiagonalize();
          addRoots();
        }
        terms.store(operands, sums, out);
      }
    }
  }

  @Override
  public void clear() {
    terms.clear();
  }

  private void layOut(int dimension) {
    if (d == dimension) {
      return;
    }
    d = dimension;
    padded = Math.ceilDiv(d, 4) * 4;
    step = (padded + 1) * V;
    panel = new double[padded * padded * V];
    matrix = new double[(padded + 3) * step];
    int length = (padded + 4) * V;
    v = new double[length];
    w = new double[length];
    x = new double[length];
    y = new double[length];
    nextV = new double[length];
    nextW = new double[length];
    z = new double[2 * d * V];
  }

  /** Sets the matrix to {@code L_qᵀL_p}, with columns of zeros behind it for the last ones of four, and the sums to its trace. */
  private void multiply() {
    for (int c = 0; c < padded; c += 4) {
      for (int r = 0; r < padded; r += 4) {
        ${twin}${kernels}.product(
            terms.row, panel, matrix, r, c, padded, d, c * step + r * V, step);
      }
    }
    Arrays.fill(matrix, padded * step, matrix.length, 0);
    ${vector} sum = ${zero()};
    for (int k = 0; k < d; k++) {
      ${vector} element = ${load("matrix", "k * (step + V)")};
      sum = ${add("element", "sum")};
    }
    ${store("sum", "sums", "0")};
  }

  private void bidiagonalize() {
    Arrays.fill(v, 0);
    Arrays.fill(w, 0);
    Arrays.fill(x, 0);
    Arrays.fill(y, 0);
    Arrays.fill(nextV, 0);
    Arrays.fill(z, 0);
    int end = d * V;
    for (int k = 0; k < end; k += V) {
      int next = k + V;
      ${twin}${kernels}.row(matrix, v, x, w, y, nextV, k, end, step, z, inverse);
      if (next == end) {
        break;
      }
      Arrays.fill(nextW, next, end, 0);
      for (int c = k; c < end; c += 4 * V) {
        ${twin}${kernels}.advance(
            matrix, v, x, w, y, nextV, nextW, inverse, c, next, end, step);
      }
      double[] last = v;
      v = nextV;
      nextV = last;
      last = w;
      w = nextW;
      nextW = last;
      ${twin}${kernels}.column(matrix, v, w, y, k, end, step, z, inverse, dot);
      for (int c = next; c < end; c += 4 * V) {
        ${twin}${kernels}.dots(matrix, v, x, y, inverse, dot, c, next, end, step);
      }
    }
  }

  /** Sets the sums to those of the singular values. Eigenvalues of the squared matrix are at most a bound by S. Gershgorin's circles. */
  private void addRoots() {
    ${vector} most = ${zero()};
    ${vector} trace = ${zero()};
    ${vector} before = ${zero()};
    for (int k = 0; k < z.length; k += 2 * V) {
      ${vector} q = ${load("z", "k")};
      ${vector} e = ${load("z", "k + V")};
      ${vector} both = ${add("q", "e")};
      trace = ${add("both", "trace")};
      ${vector} bound = ${add(mul(add("q", "before"), "0.5"), "both")};
      if (k + 2 * V < z.length) {
        bound = ${add("bound", mul(add("e", load("z", "k + 2 * V")), "0.5"))};
      }
      most = ${max("bound", "most")};
      before = ${load("z", "k + V")};
    }
    ${vector} scale = ${div(broadcast("1"), "most")};
    for (int k = 0; k < z.length; k += V) {
      ${vector} scaled = ${mul(load("z", "k"), "scale")};
      ${store("scaled", "z", "k")};
    }
    Arrays.fill(sums, 0);
    for (int node = RootNodes.COUNT; node > 0; ) { // from the least on: each rounding is of what is summed by then
      node -= 4;
      ${twin}${kernels}.nodes(z, z.length, node, sums);
    }
    ${vector} linear = ${mul(mul("scale", "trace"), "RootNodes.LINEAR")};
    ${vector} root = ${sqrt("most")};
    ${vector} roots = ${mul("root", add("linear", load("sums", "0")))};
    ${store("roots", "sums", "0")};
  }
}
</@twins>
