<#include "../Lanes.ftl">
<#-- Subtracts L_rc y_c, of which rounding takes nothing that counts in twice the precision of double. -->
<#macro subtractProduct i>
        {
          ${vector} x = ${load("y", "at + (c + ${i}) * MR")};
          ${vector} a = ${broadcast("-l[k + c + ${i}]")};
          ${vector} p = ${mul("x", "a")};
          ${vector} rest = ${fma("x", "a", neg("p"))};
          rest = ${fma(load("low", "at + (c + ${i}) * MR"), "a", "rest")};
          rest = ${fma("x", broadcast("lows == null ? 0 : -lows[k + c + ${i}]"), "rest")};
          ${vector} s = ${add("p", "hi${i}")};
          ${vector} t = ${sub("s", "hi${i}")};
          ${vector} error = ${sub(sub("p", "t"), sub(sub("s", "t"), "hi${i}"))};
          hi${i} = s;
          lo${i} = ${add(add("error", "rest"), "lo${i}")};
        }
</#macro>
<@twins "TriangleKernels">
package dev.kullback.internal.vector.full;

import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.work.Checkpoint;
import org.jspecify.annotations.Nullable;
<@imports/>

<#if asVectors>
/** Products, inverses and norms of packed triangles, one in each lane: entry k of lane i is at {@code [k·V + i]}. */
<#else>
/** {@link TriangleKernels} for one triangle, without vectors: the same text, so the same bits. */
</#if>
final class ${class} {
<@species/>
  private static final int MR = ProductKernels.MR;
  private static final int NR = FullColumns.NR;

  private ${class}() {}

  /** Counts multiplications of each lane. */
  private static long work(long terms) {
    return <#if asVectors>V * terms<#else>Checkpoint.ofPlain(terms)</#if>;
  }

  /** Subtracts the centre from means. */
  static void subtract(double[] centre, int d, double[] m) {
    for (int h = 0; h < d; h++) {
      ${store(sub(load("m", "h * V"), "centre[h]"), "m", "h * V")};
    }
  }

  /** Stores ‖L‖ to {@code norms[to…]}, and {@code ν(L) = √(‖L‖₁‖L‖_∞)·‖L‖ ≥ ‖|L||Lᵀ|‖, ‖|Lᵀ||L|‖} after it. */
  static void norms(double[] l, int d, double[] sums, double[] norms, int to) {
    ${vector} zero = ${zero()};
    for (int c = 0; c < d; c++) {
      ${store("zero", "sums", "c * V")};
    }
    ${vector} rows = zero;
    ${vector} squares = zero;
    for (int r = 0, k = 0; r < d; r++) {
      ${vector} row = zero;
      ${vector} square = zero;
      for (int c = 0; c <= r; c++, k++) {
        ${vector} x = ${abs(load("l", "k * V"))};
        row = ${add("x", "row")};
        square = ${fma("x", "x", "square")};
        ${store(add(load("sums", "c * V"), "x"), "sums", "c * V")};
      }
      rows = ${max("row", "rows")};
      squares = ${add("square", "squares")};
    }
    ${vector} columns = zero;
    for (int c = 0; c < d; c++) {
      columns = ${max(load("sums", "c * V"), "columns")};
    }
    ${vector} norm = ${sqrt("squares")};
    ${store("norm", "norms", "to")};
    ${store(mul(sqrt(mul("rows", "columns")), "norm"), "norms", "to + V")};
  }

  /** Stores {@code Σ = LLᵀ} to {@code out[at + k·MR]}, and ‖Σ‖² to {@code norms}. */
  static void squareRows(
      double[] l, int d, double[] out, int at, double[] norms, Checkpoint checkpoint) {
    int r = 0;
    for (; r + 4 <= d; r += 4) {
      checkpoint.pass(work(2L * r * r));
      for (int c = 0; c < r; c += 2) {
        ${twin}TriangleMicroKernels.squareRows4x2(l, r, c, out, at);
      }
      ${twin}TriangleMicroKernels.squareRows4(l, r, out, at);
    }
    for (; r < d; r++) {
      squareRow(l, r, out, at);
    }
    squaredNorm(out, at, MR, d, 2, norms);
  }

  /** Stores ‖·‖² of a symmetric matrix, packed with a stride, to {@code norms}; squares off the diagonal count {@code weight} times. */
  private static void squaredNorm(
      double[] in, int from, int stride, int d, double weight, double[] norms) {
    ${vector} squares = ${zero()};
    for (int i = 0, k = from; i < d; i++, k += stride) {
      ${vector} sum = ${zero()};
      for (int c = 0; c < i; c++, k += stride) {
        ${vector} x = ${load("in", "k")};
        sum = ${fma("x", "x", "sum")};
      }
      ${vector} x = ${load("in", "k")};
      squares = ${add(mul("x", "x"), add(mul("sum", "weight"), "squares"))};
    }
    ${store("squares", "norms", "0")};
  }

  private static void squareRow(double[] l, int r, double[] out, int at) {
    int row = Cholesky.packedLength(r);
    for (int c = 0; c <= r; c++) {
      int column = Cholesky.packedLength(c);
      ${vector} sum = ${zero()};
      for (int i = 0; i <= c; i++) {
        ${vector} x = ${load("l", "(row + i) * V")};
        sum = ${fma("x", load("l", "(column + i) * V"), "sum")};
      }
      ${store("sum", "out", "at + (row + c) * MR")};
    }
  }

  /** Computes {@code W = L⁻¹} by rows from right to left, for the residual W L − I is small that way. */
  static void invert(double[] l, int d, double[] w, Checkpoint checkpoint) {
    for (int c = 0, diagonal = 0; c < d; diagonal += (++c + 1) * V) {
      ${store(div(broadcast("1"), load("l", "diagonal")), "w", "diagonal")};
    }
    int r = 0;
    for (; r + 4 <= d; r += 4) {
      checkpoint.pass(work(2L * r * r));
      for (int i = r + 1; i < r + 4; i++) {
        invertRow(l, i, r, w);
      }
      for (int c = r - 2; c >= 0; c -= 2) {
        ${twin}TriangleMicroKernels.invert4x2(l, r, c, w);
      }
    }
    for (; r < d; r++) {
      invertRow(l, r, 0, w);
    }
  }

  /** Computes row r of W left of the diagonal, to column {@code last}. */
  private static void invertRow(double[] l, int r, int last, double[] w) {
    int row = Cholesky.packedLength(r);
    for (int c = r - 1; c >= last; c--) {
      ${vector} sum = ${zero()};
      for (int i = r, below = row; i > c; below -= i--) {
        ${vector} x = ${load("w", "(row + i) * V")};
        sum = ${fma("x", load("l", "(below + c) * V"), "sum")};
      }
      int diagonal = Cholesky.packedLength(c) + c;
      ${store(mul(neg("sum"), load("w", "diagonal * V")), "w", "(row + c) * V")};
    }
  }

  /** Stores {@code P = WᵀW} to {@code out[at + k·NR]}, twice what is off the diagonal, and ‖P‖² to {@code norms}. */
  static void squareColumns(
      double[] w, int d, double[] out, int at, double[] norms, Checkpoint checkpoint) {
    int r = 0;
    for (; r + 4 <= d; r += 4) {
      checkpoint.pass(work(4L * r * (d - r)));
      for (int c = 0; c < r; c += 4) {
        ${twin}TriangleMicroKernels.squareColumns2x4(w, d, r, c, out, at);
        ${twin}TriangleMicroKernels.squareColumns2x4(w, d, r + 2, c, out, at);
      }
      ${twin}TriangleMicroKernels.squareColumns4(w, d, r, out, at);
    }
    for (; r < d; r++) {
      squareColumn(w, d, r, out, at);
    }
    squaredNorm(out, at, NR, d, 0.5, norms);
  }

  private static void squareColumn(double[] w, int d, int r, double[] out, int at) {
    int row = Cholesky.packedLength(r);
    for (int c = 0; c <= r; c++) {
      ${vector} sum = ${zero()};
      for (int i = r, from = row; i < d; from += ++i) {
        ${vector} x = ${load("w", "(from + r) * V")};
        sum = ${fma("x", load("w", "(from + c) * V"), "sum")};
      }
      sum = c < r ? ${add("sum", "sum")} : sum;
      ${store("sum", "out", "at + (row + c) * NR")};
    }
  }

  /** Stores {@code −2 P m = −2 Wᵀ(W m)} to {@code out[at + h·NR]}; {@code mᵀ P m = ‖W m‖²} and ‖m‖² to {@code norms}. */
  static void solve(
      double[] w, double[] m, int d, double[] out, int at, double[] y, double[] norms, int to) {
    ${vector} squares = ${zero()};
    ${vector} means = ${zero()};
    for (int r = 0, row = 0; r < d; row += ++r) {
      ${vector} sum = ${zero()};
      for (int c = 0; c <= r; c++) {
        ${vector} x = ${load("w", "(row + c) * V")};
        sum = ${fma("x", load("m", "c * V"), "sum")};
      }
      ${store("sum", "y", "r * V")};
      squares = ${fma("sum", "sum", "squares")};
      ${vector} x = ${load("m", "r * V")};
      means = ${fma("x", "x", "means")};
    }
    ${store("squares", "norms", "to")};
    ${store("means", "norms", "to + V")};
    for (int c = 0; c < d; c++) {
      ${vector} sum = ${zero()};
      for (int r = c; r < d; r++) {
        ${vector} x = ${load("w", "(Cholesky.packedLength(r) + c) * V")};
        sum = ${fma("x", load("y", "r * V"), "sum")};
      }
      ${store(mul("sum", "-2"), "out", "at + c * NR")};
    }
  }

  /**
   * Replaces vectors m by {@code y = L⁻¹m}, all by one L, in twice the precision of double: element h is at {@code [at + h·MR]}, and what rounding
   * took of it in {@code low}. Products go to four sums in turn, as each waits for the one before.
   *
   * @param first elements before which are 0
   */
  static void whiten(
      double[] l, double @Nullable [] lows, int first, int d, double[] y, double[] low, int at) {
    for (int r = first, k = Cholesky.packedLength(first); r < d; k += ++r) {
      int to = at + r * MR;
<#list 0..<4 as i>
      ${vector} hi${i} = ${(i == 0)?then(load("y", "to"), zero())};
      ${vector} lo${i} = ${(i == 0)?then(load("low", "to"), zero())};
</#list>
      int c = first;
      for (; c + 4 <= r; c += 4) {
<#list 0..<4 as i>
<@subtractProduct i/>
</#list>
      }
      for (; c < r; c++) {
<@subtractProduct 0/>
      }
<#list 1..<4 as i>
      ${vector} sum${i} = ${add("hi${i}", "hi0")};
      ${vector} back${i} = ${sub("sum${i}", "hi0")};
      lo0 = ${add(add(sub("hi0", sub("sum${i}", "back${i}")), sub("hi${i}", "back${i}")), add("lo${i}", "lo0"))};
      hi0 = sum${i};
</#list>
      ${vector} pivot = ${broadcast("l[k + r]")};
      ${vector} x = ${div("hi0", "pivot")};
      ${vector} p = ${mul("x", "pivot")};
      ${vector} rest = ${sub(sub("hi0", "p"), fma("x", "pivot", neg("p")))};
      rest = ${div(add("rest", sub("lo0", mul("x", "lows == null ? 0 : lows[k + r]"))), "pivot")};
      ${vector} sum = ${add("x", "rest")};
      ${store("sum", "y", "to")};
      ${store(sub("rest", sub("sum", "x")), "low", "to")};
    }
  }
}
</@twins>
