<#-- Blocks of a factor, unrolled: their sums stay in registers. Every entry has its terms in order, whatever the block. -->
<#-- Declares where rows c … c + C − 1 begin. -->
<#macro columns C>
    int c0 = to + Cholesky.packedLength(c) * V;
<#list 1..<C as j>
    int c${j} = c${j - 1} + (c + ${j}) * V;
</#list>
</#macro>
<#-- Rows r, r + 1, …, R at a time, below a block of C columns on the diagonal. -->
<#macro tiles R C>

  static int tiles${R}x${C}(
      double[] q,
      int at,
      double[] p,
      int from,
      double scale,
      double[] l,
      int to,
      int d,
      int c,
      int r,
      int end) {
<@columns C/>
    int length = c * V;
    int inverse = to + (FullColumns.length(d) + c) * V;
    DoubleVector x<#list 0..<C as j>, y${j}</#list>;
    for (; r + ${R} <= end; r += ${R}) {
      int r0 = Cholesky.packedLength(r);
<#list 1..<R as i>
      int r${i} = r${i - 1} + r + ${i};
</#list>
      x = DoubleVector.broadcast(S, scale);
<#list 0..<R as i><#list 0..<C as j>
      DoubleVector a${i}${j} =
          DoubleVector.fromArray(S, p, from + (r${i} + c + ${j}) * MR)
              .fma(x, DoubleVector.broadcast(S, q[at + r${i} + c + ${j}]));
</#list></#list>
<#list 0..<R as i>
      r${i} = to + r${i} * V;
</#list>
      for (int k = 0; k < length; k += V) {
<#list 0..<C as j>
        y${j} = DoubleVector.fromArray(S, l, c${j} + k);
</#list>
<#list 0..<R as i>
        x = DoubleVector.fromArray(S, l, r${i} + k);
<#list 0..<C as j>
        a${i}${j} = x.fma(y${j}, a${i}${j});
</#list>
</#list>
      }
<#list 0..<C as j>
<#list 0..<j as k>
      x = DoubleVector.fromArray(S, l, c${j} + length + ${k} * V);
<#list 0..<R as i>
      a${i}${j} = a${i}${k}.fma(x, a${i}${j});
</#list>
</#list>
      x = DoubleVector.fromArray(S, l, inverse + ${j} * V);
<#list 0..<R as i>
      a${i}${j} = a${i}${j}.mul(x);
      a${i}${j}.intoArray(l, r${i} + length + ${j} * V);
</#list>
</#list>
    }
    return r;
  }
</#macro>
<#-- C rows and columns on the diagonal. -->
<#macro diagonal C>

  static void diagonal${C}(
      double[] q,
      int at,
      double[] p,
      int from,
      double scale,
      double[] l,
      int to,
      int d,
      int c) {
    int r0 = Cholesky.packedLength(c);
<#list 1..<C as i>
    int r${i} = r${i - 1} + c + ${i};
</#list>
    DoubleVector <#list 0..<C as j>x${j}<#sep>, </#list>;
    x0 = DoubleVector.broadcast(S, scale);
<#list 0..<C as i><#list 0..i as j>
    DoubleVector a${i}${j} =
        DoubleVector.fromArray(S, p, from + (r${i} + c + ${j}) * MR)
            .fma(x0, DoubleVector.broadcast(S, q[at + r${i} + c + ${j}]));
</#list></#list>
<#list 0..<C as i>
    r${i} = to + r${i} * V;
</#list>
    int length = c * V;
    for (int k = 0; k < length; k += V) {
<#list 0..<C as i>
      x${i} = DoubleVector.fromArray(S, l, r${i} + k);
</#list>
<#list 0..<C as i><#list 0..i as j>
      a${i}${j} = x${i}.fma(x${j}, a${i}${j});
</#list></#list>
    }
    int inverse = to + (FullColumns.length(d) + c) * V;
    int pivots = inverse + d * V;
<#list 0..<C as j>
    x${j} = a${j}${j}.neg();
    x${j}.intoArray(l, pivots + ${j} * V);
    x${j} = DoubleVector.broadcast(S, -1).div(x${j}.sqrt());
    x${j}.intoArray(l, inverse + ${j} * V);
<#list j + 1..<C as i>
    a${i}${j} = a${i}${j}.mul(x${j});
    a${i}${j}.intoArray(l, r${i} + length + ${j} * V);
<#list j + 1..i as k>
    a${i}${k} = a${i}${j}.fma(a${k}${j}, a${i}${k});
</#list>
</#list>
</#list>
  }
</#macro>
package dev.kullback.internal.vector.full;

import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.vector.Species;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * Micro-kernels of {@link FullChernoffKernel}: columns c, c + 1, … of the factor L of {@code −(scale·p + q)}, a pair in each lane. {@code
 * diagonalC} computes C rows and columns on the diagonal, {@code tilesRxC} the rows from r on below them, R at a time while they are whole,
 * and returns the first that is left. Sums begin with the negative entry, so that products are added:
 *
 * <pre>
 * t_rc = scale·p_rc + q_rc + Σ_k&lt;c l_rk l_ck,   l_rc = t_rc · inverse_c,   pivot_c = −t_cc,   inverse_c = −1/√pivot_c
 * </pre>
 *
 * <p>Layouts: {@code q[at + k]}, {@code p[from + k·MR …]} and {@code l[to + k·V …]} over the packed entries k, of D + 1 rows of D columns at most;
 * after these D vectors inverse_c and D vectors pivot_c.
 */
final class ChernoffMicroKernels {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final int V = S.length();
  private static final int MR = ProductKernels.MR;

  private ChernoffMicroKernels() {}
<@diagonal C=1/>
<@diagonal C=2/>
<@diagonal C=3/>
<@diagonal C=4/>
<#-- 32 registers, and 16 -->
<@tiles R=4 C=4/>
<@tiles R=4 C=2/>
<#-- rows that are left -->
<@tiles R=1 C=1/>
<@tiles R=1 C=2/>
<@tiles R=1 C=3/>
<@tiles R=1 C=4/>
}
