<#include "../Lanes.ftl">
<#-- Blocks of four rows of packed triangles, unrolled: the entries of a block share what they load, in sums that stay in registers. -->
<#-- Declares where rows r … r + 3 begin, in entries or, times V, in doubles. -->
<#macro rows unit="">
    int r0 = Cholesky.packedLength(r)${unit};
<#list 1..3 as i>
    int r${i} = r${i - 1} + (r + ${i})${unit};
</#list>
</#macro>
<#-- Adds to the sums of rows from … to of a block on the diagonal the products of x_from … x_to. -->
<#macro addProducts from to>
<#list from..to as i><#list from..i as j>
      a${i}${j} = ${fma("x${i}", "x${j}", "a${i}${j}")};
</#list></#list>
</#macro>
<@twins "TriangleMicroKernels">
package dev.kullback.internal.vector.full;

import dev.kullback.internal.numerics.Cholesky;
<@imports/>

/** Unrolled blocks of {@link ${twin}TriangleKernels}, layouts as there. */
final class ${class} {
<@species/>
  private static final int MR = ProductKernels.MR;
  private static final int NR = FullColumns.NR;

  private ${class}() {}

  /** {@code LLᵀ} in columns c and c + 1 < r of rows r … r + 3. */
  static void squareRows4x2(double[] l, int r, int c, double[] out, int at) {
<@rows " * V"/>
    int c0 = Cholesky.packedLength(c) * V;
    int c1 = c0 + (c + 1) * V;
<#list 0..3 as i>
    ${vector} a${i} = ${zero()};
    ${vector} b${i} = ${zero()};
</#list>
    ${vector} x, y, z;
    for (int k = 0; k <= c * V; k += V) {
      x = ${load("l", "c0 + k")};
      y = ${load("l", "c1 + k")};
<#list 0..3 as i>
      z = ${load("l", "r${i} + k")};
      a${i} = ${fma("x", "z", "a${i}")};
      b${i} = ${fma("y", "z", "b${i}")};
</#list>
    }
    y = ${load("l", "c1 + (c + 1) * V")};
<#list 0..3 as i>
    b${i} = ${fma("y", load("l", "r${i} + (c + 1) * V"), "b${i}")};
</#list>
    int to = at + c * MR;
<#list 0..3 as i>
    ${store("a${i}", "out", "to + r${i} / V * MR")};
    ${store("b${i}", "out", "to + r${i} / V * MR + MR")};
</#list>
  }

  /** {@code LLᵀ} in the columns from r on of rows r … r + 3. */
  static void squareRows4(double[] l, int r, double[] out, int at) {
<@rows/>
<#list 0..3 as i><#list 0..i as j>
    ${vector} a${i}${j} = ${zero()};
</#list></#list>
    ${vector} x0, x1, x2, x3;
    for (int k = 0; k <= r; k++) {
<#list 0..3 as i>
      x${i} = ${load("l", "(r${i} + k) * V")};
</#list>
<@addProducts from=0 to=3/>
    }
<#list 1..3 as n>
<#list n..3 as i>
    x${i} = ${load("l", "(r${i} + r + ${n}) * V")};
</#list>
<@addProducts from=n to=3/>
</#list>
    int to = at + r * MR;
<#list 0..3 as i><#list 0..i as j>
    ${store("a${i}${j}", "out", "to + (r${i} + ${j}) * MR")};
</#list></#list>
  }

  /** {@code L⁻¹} in columns c + 1 < r and c of rows r … r + 3. */
  static void invert4x2(double[] l, int r, int c, double[] w) {
<@rows " * V"/>
    int i = r * V;
    int j = c * V;
<#list 0..3 as i>
    ${vector} a${i} = ${zero()};
    ${vector} b${i} = ${zero()};
</#list>
    ${vector} x, y, z;
    // below row r, W of the four rows is a triangle
<#list 3..1 as n>
    x = ${load("l", "r${n} + j")};
    y = ${load("l", "r${n} + j + V")};
<#list 3..n as i>
    z = ${load("w", "r${i} + i + ${n} * V")};
    a${i} = ${fma("x", "z", "a${i}")};
    b${i} = ${fma("y", "z", "b${i}")};
</#list>
</#list>
    for (int below = r0 + j; i > j + V; below -= i, i -= V) {
      x = ${load("l", "below")};
      y = ${load("l", "below + V")};
<#list 0..3 as i>
      z = ${load("w", "r${i} + i")};
      a${i} = ${fma("x", "z", "a${i}")};
      b${i} = ${fma("y", "z", "b${i}")};
</#list>
    }
    int above = Cholesky.packedLength(c + 1) + c;
    y = ${neg(load("w", "(above + 1) * V"))};
<#list 0..3 as i>
    b${i} = ${mul("b${i}", "y")};
</#list>
    x = ${load("l", "above * V")};
    y = ${neg(load("w", "(above - c - 1) * V"))};
<#list 0..3 as i>
    ${store(mul(fma("x", "b${i}", "a${i}"), "y"), "w", "r${i} + j")};
    ${store("b${i}", "w", "r${i} + j + V")};
</#list>
  }

  /** {@code WᵀW}, twice, in columns c … c + 3 < r of rows r and r + 1. */
  static void squareColumns2x4(double[] w, int d, int r, int c, double[] out, int at) {
    int row = Cholesky.packedLength(r);
    int k = (row + c) * V;
    ${vector} x = ${load("w", "(row + r) * V")};
    ${vector} y, z;
<#list 0..3 as j>
    ${vector} a${j} = ${mul("x", load("w", "k + ${j} * V"))};
    ${vector} b${j} = ${zero()};
</#list>
    for (int i = r + 1, from = (row + r + 1) * V; i < d; from += ++i * V) {
      k = from + c * V;
      x = ${load("w", "from + r * V")};
      y = ${load("w", "from + (r + 1) * V")};
<#list 0..3 as j>
      z = ${load("w", "k + ${j} * V")};
      a${j} = ${fma("x", "z", "a${j}")};
      b${j} = ${fma("y", "z", "b${j}")};
</#list>
    }
    int to = at + (row + c) * NR;
    int below = to + (r + 1) * NR;
<#list 0..3 as j>
    ${store(add("a${j}", "a${j}"), "out", "to + ${j} * NR")};
    ${store(add("b${j}", "b${j}"), "out", "below + ${j} * NR")};
</#list>
  }

  /** {@code WᵀW}, twice off the diagonal, in the columns from r on of rows r … r + 3. */
  static void squareColumns4(double[] w, int d, int r, double[] out, int at) {
<@rows/>
<#list 0..3 as i><#list 0..i as j>
    ${vector} a${i}${j} = ${zero()};
</#list></#list>
    ${vector} x0, x1, x2, x3;
<#list 0..2 as n>
<#list 0..n as j>
    x${j} = ${load("w", "(r${n} + r + ${j}) * V")};
</#list>
<@addProducts from=0 to=n/>
</#list>
    for (int i = r + 3, k = (r3 + r) * V; i < d; k += ++i * V) {
<#list 0..3 as j>
      x${j} = ${load("w", "k + ${j} * V")};
</#list>
<@addProducts from=0 to=3/>
    }
    int to = at + r * NR;
<#list 0..3 as i><#list 0..i as j>
    ${store((j < i)?then(add("a${i}${j}", "a${i}${j}"), "a${i}${j}"), "out", "to + (r${i} + ${j}) * NR")};
</#list></#list>
  }
}
</@twins>
