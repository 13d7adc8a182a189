<#-- Subtracts from n columns of the two rows the products of rows[i] and rows[i + V] with the row of E at "from". -->
<#macro subtract n>
      f = DoubleVector.fromArray(S, rows, i);
      g = DoubleVector.fromArray(S, rows, i + V);
<#list 0..<n as j>
      x = DoubleVector.fromArray(S, e, from + ${j} * V);
      a${j} = a${j}.sub(f.mul(x));
      b${j} = b${j}.sub(g.mul(x));
</#list>
</#macro>
package dev.kullback.internal.vector.full;

import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.vector.Species;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.VectorSpecies;

/** Unrolled block of {@link FullSolveKernel}, layouts as there. */
final class FullSolveMicroKernel {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final int V = S.length();

  private FullSolveMicroKernel() {}

  /**
   * Solves for columns c … c + 3 < k of rows k and k + 1 of E, and adds their squares: the columns share what they load, and each has its
   * terms in order.
   *
   * @param at the entry that row k begins at
   */
  static void block2x4(
      double[] e, double[] rows, double[] inverse, double[] squares, int c, int k, int at) {
    int to = (at + c) * V;
    int below = to + (k + 1) * V;
<#list 0..3 as j>
    DoubleVector a${j} = DoubleVector.fromArray(S, e, to + ${j} * V);
    DoubleVector b${j} = DoubleVector.fromArray(S, e, below + ${j} * V);
</#list>
    DoubleVector f, g, x;
    int from = (Cholesky.packedLength(c) + c) * V;
    int i = 2 * c * V;
    // above row c + 3, E of the four columns is a triangle
<#list 1..3 as n>
<@subtract n/>
    from += (c + ${n}) * V;
    i += 2 * V;
</#list>
    for (int l = c + 3; l < k; from += ++l * V, i += 2 * V) {
<@subtract 4/>
    }
    x = DoubleVector.fromArray(S, inverse, k * V);
<#list 0..3 as j>
    a${j} = a${j}.mul(x);
    a${j}.intoArray(e, to + ${j} * V);
</#list>
    g = DoubleVector.fromArray(S, rows, i + V);
    x = DoubleVector.fromArray(S, inverse, (k + 1) * V);
<#list 0..3 as j>
    b${j}.sub(g.mul(a${j})).mul(x).intoArray(e, below + ${j} * V);
</#list>
    for (int j = 0; j < 4 * V; j += V) {
      a0 = DoubleVector.fromArray(S, e, to + j);
      b0 = DoubleVector.fromArray(S, e, below + j);
      DoubleVector.fromArray(S, squares, c * V + j)
          .add(a0.mul(a0))
          .add(b0.mul(b0))
          .intoArray(squares, c * V + j);
    }
  }
}
