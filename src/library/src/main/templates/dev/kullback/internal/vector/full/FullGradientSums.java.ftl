<#include "../Lanes.ftl">
<@twins "FullGradientSums">
package dev.kullback.internal.vector.full;

import dev.kullback.internal.numerics.Cholesky;
<@imports/>

/**
 * Products and solves of {@link FullGradientKernel} on pairs in lanes: a vector for each entry of packed triangles, {@code (r, c)} at {@code
 * (r(r+1)/2 + c)·V}, and for each of D dimensions. No lane reads another, so its bits are those of its pair alone.
 */
final class ${class} {
<@species/>

  private ${class}() {}

  /** Adds {@code g (yyᵀ + E + Eᵀ + EEᵀ)}, a lower triangle, to {@code products}, and {@code g y} to {@code sums}. */
  static void addProducts(
      double[] e, double[] y, double[] g, int d, double[] products, double[] sums) {
    for (int r = 0, row = 0; r < d; row += ++r * V) {
      int c = 0;
      for (; c + 4 <= r; c += 4) {
        addProducts4(e, y, g, r, row, c, products);
      }
      switch (r - c) {
        case 0 -> addProducts1(e, y, g, r, row, c, products);
        case 1 -> addProducts2(e, y, g, r, row, c, products);
        case 2 -> addProducts3(e, y, g, r, row, c, products);
        default -> addProducts4(e, y, g, r, row, c, products);
      }
    }
    addOnce(e, y, g, d, products, sums);
  }

  /** Adds {@code g E_rr}, which is in {@code E + Eᵀ} twice, and {@code g y}. */
  private static void addOnce(
      double[] e, double[] y, double[] g, int d, double[] products, double[] sums) {
    ${vector} w = ${load("g", "0")};
    for (int r = 0, k = 0; r < d * V; r += V, k += r + V) {
      ${store(add(load("products", "k"), mul("w", load("e", "k"))), "products", "k")};
      ${store(add(load("sums", "r"), mul("w", load("y", "r"))), "sums", "r")};
    }
  }

  /**
   * Makes the lower triangle of {@code A L}, and {@code A m}, of a packed A, entry k at {@code [at + k·stride]}, whose entries off the diagonal are there twice.
   *
   * @param square memory for d rows of {@code width} vectors, a multiple of 4 that is at least d
   * @param triangle likewise, 0 above the diagonal
   */
  static void byQ(
      double[] a,
      int at,
      int stride,
      double[] l,
      double[] m,
      int d,
      int width,
      double[] square,
      double[] triangle,
      double[] out,
      double[] means) {
    unpack(a, at, stride, d, width, 0.5, true, true, square);
    unpack(l, 0, V, d, width, 1, true, false, triangle);
    for (int r = 0; r < d; r++) {
      for (int c = 0; c <= r; c += 4) {
        multiply4(square, r * width, triangle, c, width, c, d, out, Cholesky.packedLength(r) + c);
      }
      multiplyRow(square, r * width * V, m, 0, V, d, means, r * V);
    }
  }

  /**
   * Makes the lower triangle of {@code W S Wᵀ}, with {@code S = Σ g (Σ_q + ddᵀ)} and {@code d = m_q − m}, and {@code W Σ g d}.
   *
   * @param products packed like A: {@code Σ g (Σ_q + m_q m_qᵀ)}, and behind it {@code Σ g m_q}
   * @param triangle memory as in {@link #byQ}, 0 below the diagonal
   * @param x memory, likewise and four vectors more
   */
  static void byP(
      double[] products,
      int at,
      int stride,
      double[] w,
      double[] m,
      double[] g,
      int d,
      int width,
      double[] square,
      double[] triangle,
      double[] x,
      double[] out,
      double[] means) {
    centre(products, at, stride, m, g, d);
    unpack(products, at, stride, d, width, 1, true, true, square);
    unpack(w, 0, V, d, width, 1, false, true, triangle);
    int first = at + Cholesky.packedLength(d) * stride;
    for (int r = 0; r < d; r++) {
      int row = Cholesky.packedLength(r);
      for (int c = 0; c <= r; c += 4) {
        multiply4(w, row, square, c, width, 0, r + 1, x, r * width + c);
      }
      for (int c = 0; c <= r; c += 4) {
        int end = Math.min(c + 4, r + 1);
        multiply4(x, r * width, triangle, c, width, 0, end, out, row + c);
      }
      multiplyRow(w, row * V, products, first, stride, r + 1, means, r * V);
    }
  }

  /**
   * Writes a packed matrix out, square, with a row of {@code width} for each of D, in which it stores nothing behind D.
   *
   * @param in entry k at {@code [at + k·stride]}
   * @param off what entries off the diagonal are multiplied by
   * @param isBelow whether they go below the diagonal
   * @param isAbove whether they go above it
   */
  private static void unpack(
      double[] in,
      int at,
      int stride,
      int d,
      int width,
      double off,
      boolean isBelow,
      boolean isAbove,
      double[] out) {
    for (int r = 0, k = at; r < d; r++) {
      for (int c = 0; c < r; c++, k += stride) {
        ${vector} x = ${mul(load("in", "k"), "off")};
        if (isBelow) {
          ${store("x", "out", "(r * width + c) * V")};
        }
        if (isAbove) {
          ${store("x", "out", "(c * width + r) * V")};
        }
      }
      ${store(load("in", "k"), "out", "(r * width + r) * V")};
      k += stride;
    }
  }

  /** Makes {@code Σ g (Σ_q + ddᵀ)} of {@code Σ g (Σ_q + m_q m_qᵀ)}, and {@code Σ g d} of {@code Σ g m_q} behind it. */
  private static void centre(double[] products, int at, int stride, double[] m, double[] g, int d) {
    int means = at + Cholesky.packedLength(d) * stride;
    ${vector} w = ${load("g", "0")};
    for (int r = 0, k = at; r < d; r++) {
      ${vector} mean = ${neg(load("m", "r * V"))};
      ${vector} sum = ${neg(load("products", "means + r * stride"))};
      ${vector} difference = ${fma("w", "mean", neg("sum"))};
      ${store("difference", "products", "means + r * stride")};
      for (int c = 0; c <= r; c++, k += stride) {
        ${vector} x = ${fma("sum", load("m", "c * V"), load("products", "k"))};
        ${store(fma("mean", load("products", "means + c * stride"), "x"), "products", "k")};
      }
    }
  }

  /** Multiplies a row of a, from {@code row} on, by columns c … c + 3 of b, in its rows [from, to). */
  private static void multiply4(
      double[] a, int row, double[] b, int c, int width, int from, int to, double[] out, int at) {
<#list 0..<4 as i>
    ${vector} a${i} = ${zero()};
</#list>
    for (int k = from, below = (from * width + c) * V; k < to; k++, below += width * V) {
      ${vector} x = ${load("a", "(row + k) * V")};
<#list 0..<4 as i>
      a${i} = ${fma("x", load("b", "below + ${i} * V"), "a${i}")};
</#list>
    }
<#list 0..<4 as i>
    ${store("a${i}", "out", "(at + ${i}) * V")};
</#list>
  }

  /** Multiplies a row of n by a vector whose elements are {@code stride} apart. */
  private static void multiplyRow(
      double[] row, int from, double[] x, int at, int stride, int n, double[] out, int to) {
    ${vector} sum = ${zero()};
    for (int k = 0; k < n; k++) {
      ${vector} y = ${load("row", "from + k * V")};
      sum = ${fma("y", load("x", "at + k * stride"), "sum")};
    }
    ${store("sum", "out", "to")};
  }

  /** Replaces a triangle X by that of {@code L⁻ᵀ w X}, whose diagonal of {@code w X} it keeps, and x by {@code L⁻ᵀ w x}. */
  static void solve(
      double[] l,
      double[] inverse,
      double[] w,
      int d,
      double[] triangle,
      double[] x,
      double[] diagonal) {
    for (int r = d - 1, row = Cholesky.packedLength(d - 1) * V; r >= 0; row -= r-- * V) {
      keep(w, r, row, triangle, diagonal);
      int c = 0;
      for (; c + 4 <= r; c += 4) {
        solve4(l, inverse, w, d, r, row, c, triangle);
      }
      switch (r - c) {
        case 0 -> solve1(l, inverse, w, d, r, row, c, triangle);
        case 1 -> solve2(l, inverse, w, d, r, row, c, triangle);
        case 2 -> solve3(l, inverse, w, d, r, row, c, triangle);
        default -> solve4(l, inverse, w, d, r, row, c, triangle);
      }
      solve(l, inverse, w, d, r, row, x);
    }
  }

  private static void keep(
      double[] w, int r, int row, double[] triangle, double[] diagonal) {
    ${store(mul(load("w", "0"), load("triangle", "row + r * V")), "diagonal", "r * V")};
  }

  private static void solve(
      double[] l, double[] inverse, double[] w, int d, int r, int row, double[] x) {
    ${vector} a = ${mul(load("w", "0"), load("x", "r * V"))};
    for (int k = r + 1, at = row + (r + 1 + r) * V; k < d; at += ++k * V) {
      a = ${add(mul(neg(load("l", "at")), load("x", "k * V")), "a")};
    }
    ${store(mul("a", load("inverse", "r * V")), "x", "r * V")};
  }
<#list 1..4 as n>

  private static void addProducts${n}(
      double[] e, double[] y, double[] g, int r, int row, int c, double[] products) {
    int r0 = Cholesky.packedLength(c) * V;
<#list 1..<n as i>
    int r${i} = r${i - 1} + (c + ${i}) * V;
</#list>
<#list 0..<n as i>
    ${vector} a${i} = ${zero()};
</#list>
    ${vector} x;
    for (int k = 0; k <= c * V; k += V) {
      x = ${load("e", "row + k")};
<#list 0..<n as i>
      a${i} = ${add(mul("x", load("e", "r${i} + k")), "a${i}")};
</#list>
    }
<#list 1..<n as t>
    x = ${load("e", "row + (c + ${t}) * V")};
<#list t..<n as i>
    a${i} = ${add("a${i}", mul("x", load("e", "r${i} + (c + ${t}) * V")))};
</#list>
</#list>
    x = ${load("y", "r * V")};
    ${vector} w = ${load("g", "0")};
    int at = row + c * V;
<#list 0..<n as i>
    a${i} = ${add(add("a${i}", load("e", "at + ${i} * V")), mul("x", load("y", "(c + ${i}) * V")))};
    ${store(add(load("products", "at + ${i} * V"), mul("w", "a${i}")), "products", "at + ${i} * V")};
</#list>
  }

  private static void solve${n}(
      double[] l, double[] inverse, double[] w, int d, int r, int row, int c, double[] triangle) {
    int to = row + c * V;
    ${vector} x = ${load("w", "0")};
<#list 0..<n as i>
    ${vector} a${i} = ${mul("x", load("triangle", "to + ${i} * V"))};
</#list>
    for (int k = r + 1, at = row + (r + 1) * V; k < d; at += ++k * V) {
      x = ${neg(load("l", "at + r * V"))};
<#list 0..<n as i>
      a${i} = ${add(mul("x", load("triangle", "at + (c + ${i}) * V")), "a${i}")};
</#list>
    }
    x = ${load("inverse", "r * V")};
<#list 0..<n as i>
    ${store(mul("a${i}", "x"), "triangle", "to + ${i} * V")};
</#list>
  }
</#list>
}
</@twins>
