<#include "../Lanes.ftl">
<#-- Rows r … r + 3 below a block on the diagonal, C of its columns: sums stay in registers. -->
<#macro tile C>

  static void tile4x${C}(
      double[] q,
      int at,
      double[] p,
      int from,
      double[] l,
      int rows,
      int columns,
      int inverse,
      int c) {
    ${vector} x<#list 0..<C as j>, y${j}</#list>;
<#list 0..3 as i><#list 0..<C as j>
    ${vector} a${i}${j} = ${add(load("p", "from + ${4 * i + j} * V"), "q[at + ${4 * i + j}]")};
</#list></#list>
    int length = 4 * c * V;
    for (int k = 0; k < length; k += 4 * V) {
<#list 0..<C as j>
      y${j} = ${load("l", "columns + k + ${j} * V")};
</#list>
<#list 0..3 as i>
      x = ${load("l", "rows + k + ${i} * V")};
<#list 0..<C as j>
      a${i}${j} = ${fma("x", "y${j}", "a${i}${j}")};
</#list>
</#list>
    }
<#list 0..<C as j>
<#list 0..<j as k>
    x = ${load("l", "columns + length + ${4 * k + j} * V")};
<#list 0..3 as i>
    a${i}${j} = ${fma("a${i}${k}", "x", "a${i}${j}")};
</#list>
</#list>
    x = ${load("l", "inverse + ${j} * V")};
<#list 0..3 as i>
    a${i}${j} = ${mul("a${i}${j}", "x")};
    ${store("a${i}${j}", "l", "rows + length + ${4 * j + i} * V")};
</#list>
</#list>
  }
</#macro>
<@twins "ChernoffMicroKernels">
package dev.kullback.internal.vector.full;

<@imports/>

/**
 * Micro-kernels of {@link FullChernoffKernel}<#if !asVectors> without vectors</#if>: columns c, c + 1, … of the factor L of {@code −(q + p)}, a pair in each lane. Sums begin with
 * the negative entry, so that products are added:
 *
 * <pre>
 * t_rc = q_rc + p_rc + Σ_k&lt;c l_rk l_ck,   l_rc = t_rc · inverse_c,   pivot_c = −t_cc,   inverse_c = −1/√pivot_c
 * </pre>
 *
 * <p>Layouts: {@code q[at + s]} and {@code p[from + s·V …]} over the entries s of a block, a row after the other; {@code l[rows + (4k + i)·V …]}
 * has column k of four rows.
 */
final class ${class} {
<@species/>

  private ${class}() {}

  /** Four rows and columns on the diagonal, and these columns of the means' row. */
  static void diagonal(
      double[] q,
      int at,
      double[] p,
      int from,
      double[] l,
      int rows,
      int means,
      int inverse,
      int pivots,
      int c) {
    ${vector} m, x0, x1, x2, x3;
<#list 0..3 as i><#list 0..i as j>
    ${vector} a${i}${j} = ${add(load("p", "from + ${i * (i + 1) / 2 + j} * V"), "q[at + ${i * (i + 1) / 2 + j}]")};
</#list></#list>
<#list 0..3 as j>
    ${vector} a4${j} = ${add(load("p", "from + ${10 + j} * V"), "q[at + ${10 + j}]")};
</#list>
    int length = c * V;
    for (int k = 0; k < length; k += V) {
      m = ${load("l", "means + k")};
<#list 0..3 as i>
      x${i} = ${load("l", "rows + 4 * k + ${i} * V")};
</#list>
<#list 0..3 as i><#list 0..i as j>
      a${i}${j} = ${fma("x${i}", "x${j}", "a${i}${j}")};
</#list>
      a4${i} = ${fma("m", "x${i}", "a4${i}")};
</#list>
    }
<#list 0..3 as j>
    x${j} = ${neg("a${j}${j}")};
    ${store("x${j}", "l", "pivots + ${j} * V")};
    x${j} = ${div(broadcast("-1"), sqrt("x${j}"))};
    ${store("x${j}", "l", "inverse + ${j} * V")};
<#list j + 1..<5 as i>
    a${i}${j} = ${mul("a${i}${j}", "x${j}")};
    ${store("a${i}${j}", "l", (i < 4)?then("rows + 4 * length + ${4 * j + i} * V", "means + length + ${j} * V"))};
<#list j + 1..<5 as k><#if k <= i && k < 4>
    a${i}${k} = ${fma("a${i}${j}", "a${k}${j}", "a${i}${k}")};
</#if></#list>
</#list>
</#list>
  }
<#-- 32 registers, and 16 -->
<@tile C=4/>
<@tile C=2/>
}
</@twins>
