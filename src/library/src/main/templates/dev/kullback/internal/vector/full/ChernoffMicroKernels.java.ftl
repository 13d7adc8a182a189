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
    DoubleVector x<#list 0..<C as j>, y${j}</#list>;
<#list 0..3 as i><#list 0..<C as j>
    DoubleVector a${i}${j} =
        DoubleVector.fromArray(S, p, from + ${4 * i + j} * V).add(q[at + ${4 * i + j}]);
</#list></#list>
    int length = 4 * c * V;
    for (int k = 0; k < length; k += 4 * V) {
<#list 0..<C as j>
      y${j} = DoubleVector.fromArray(S, l, columns + k + ${j} * V);
</#list>
<#list 0..3 as i>
      x = DoubleVector.fromArray(S, l, rows + k + ${i} * V);
<#list 0..<C as j>
      a${i}${j} = x.fma(y${j}, a${i}${j});
</#list>
</#list>
    }
<#list 0..<C as j>
<#list 0..<j as k>
    x = DoubleVector.fromArray(S, l, columns + length + ${4 * k + j} * V);
<#list 0..3 as i>
    a${i}${j} = a${i}${k}.fma(x, a${i}${j});
</#list>
</#list>
    x = DoubleVector.fromArray(S, l, inverse + ${j} * V);
<#list 0..3 as i>
    a${i}${j} = a${i}${j}.mul(x);
    a${i}${j}.intoArray(l, rows + length + ${4 * j + i} * V);
</#list>
</#list>
  }
</#macro>
package dev.kullback.internal.vector.full;

import dev.kullback.internal.vector.Species;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * Micro-kernels of {@link FullChernoffKernel}: columns c, c + 1, … of the factor L of {@code −(q + p)}, a pair in each lane. Sums begin with
 * the negative entry, so that products are added:
 *
 * <pre>
 * t_rc = q_rc + p_rc + Σ_k&lt;c l_rk l_ck,   l_rc = t_rc · inverse_c,   pivot_c = −t_cc,   inverse_c = −1/√pivot_c
 * </pre>
 *
 * <p>Layouts: {@code q[at + s]} and {@code p[from + s·V …]} over the entries s of a block, a row after the other; {@code l[rows + (4k + i)·V …]}
 * has column k of four rows.
 */
final class ChernoffMicroKernels {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final int V = S.length();

  private ChernoffMicroKernels() {}

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
    DoubleVector m, x0, x1, x2, x3;
<#list 0..3 as i><#list 0..i as j>
    DoubleVector a${i}${j} =
        DoubleVector.fromArray(S, p, from + ${i * (i + 1) / 2 + j} * V).add(q[at + ${i * (i + 1) / 2 + j}]);
</#list></#list>
<#list 0..3 as j>
    DoubleVector a4${j} = DoubleVector.fromArray(S, p, from + ${10 + j} * V).add(q[at + ${10 + j}]);
</#list>
    int length = c * V;
    for (int k = 0; k < length; k += V) {
      m = DoubleVector.fromArray(S, l, means + k);
<#list 0..3 as i>
      x${i} = DoubleVector.fromArray(S, l, rows + 4 * k + ${i} * V);
</#list>
<#list 0..3 as i><#list 0..i as j>
      a${i}${j} = x${i}.fma(x${j}, a${i}${j});
</#list>
      a4${i} = m.fma(x${i}, a4${i});
</#list>
    }
<#list 0..3 as j>
    x${j} = a${j}${j}.neg();
    x${j}.intoArray(l, pivots + ${j} * V);
    x${j} = DoubleVector.broadcast(S, -1).div(x${j}.sqrt());
    x${j}.intoArray(l, inverse + ${j} * V);
<#list j + 1..<5 as i>
    a${i}${j} = a${i}${j}.mul(x${j});
    a${i}${j}.intoArray(l, <#if i < 4>rows + 4 * length + ${4 * j + i} * V<#else>means + length + ${j} * V</#if>);
<#list j + 1..<5 as k><#if k <= i && k < 4>
    a${i}${k} = a${i}${j}.fma(a${k}${j}, a${i}${k});
</#if></#list>
</#list>
</#list>
  }
<#-- 32 registers, and 16 -->
<@tile C=4/>
<@tile C=2/>
}
