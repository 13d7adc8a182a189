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
      a${i}${j} = x${i}.fma(x${j}, a${i}${j});
</#list></#list>
</#macro>
package dev.kullback.internal.vector.full;

import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.vector.Species;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.VectorSpecies;

/** Unrolled blocks of {@link TriangleKernels}, layouts as there. */
final class TriangleMicroKernels {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final int V = S.length();
  private static final int MR = ProductKernels.MR;
  private static final int NR = FullColumns.NR;

  private TriangleMicroKernels() {}

  /** {@code LLᵀ} in columns c and c + 1 < r of rows r … r + 3. */
  static void squareRows4x2(double[] l, int r, int c, double[] out, int at) {
<@rows " * V"/>
    int c0 = Cholesky.packedLength(c) * V;
    int c1 = c0 + (c + 1) * V;
<#list 0..3 as i>
    DoubleVector a${i} = DoubleVector.zero(S);
    DoubleVector b${i} = DoubleVector.zero(S);
</#list>
    DoubleVector x, y, z;
    for (int k = 0; k <= c * V; k += V) {
      x = DoubleVector.fromArray(S, l, c0 + k);
      y = DoubleVector.fromArray(S, l, c1 + k);
<#list 0..3 as i>
      z = DoubleVector.fromArray(S, l, r${i} + k);
      a${i} = x.fma(z, a${i});
      b${i} = y.fma(z, b${i});
</#list>
    }
    y = DoubleVector.fromArray(S, l, c1 + (c + 1) * V);
<#list 0..3 as i>
    b${i} = y.fma(DoubleVector.fromArray(S, l, r${i} + (c + 1) * V), b${i});
</#list>
    int to = at + c * MR;
<#list 0..3 as i>
    a${i}.intoArray(out, to + r${i} / V * MR);
    b${i}.intoArray(out, to + r${i} / V * MR + MR);
</#list>
  }

  /** {@code LLᵀ} in the columns from r on of rows r … r + 3. */
  static void squareRows4(double[] l, int r, double[] out, int at) {
<@rows/>
<#list 0..3 as i><#list 0..i as j>
    DoubleVector a${i}${j} = DoubleVector.zero(S);
</#list></#list>
    DoubleVector x0, x1, x2, x3;
    for (int k = 0; k <= r; k++) {
<#list 0..3 as i>
      x${i} = DoubleVector.fromArray(S, l, (r${i} + k) * V);
</#list>
<@addProducts from=0 to=3/>
    }
<#list 1..3 as n>
<#list n..3 as i>
    x${i} = DoubleVector.fromArray(S, l, (r${i} + r + ${n}) * V);
</#list>
<@addProducts from=n to=3/>
</#list>
    int to = at + r * MR;
<#list 0..3 as i><#list 0..i as j>
    a${i}${j}.intoArray(out, to + (r${i} + ${j}) * MR);
</#list></#list>
  }

  /** {@code L⁻¹} in columns c + 1 < r and c of rows r … r + 3. */
  static void invert4x2(double[] l, int r, int c, double[] w) {
<@rows " * V"/>
    int i = r * V;
    int j = c * V;
<#list 0..3 as i>
    DoubleVector a${i} = DoubleVector.zero(S);
    DoubleVector b${i} = DoubleVector.zero(S);
</#list>
    DoubleVector x, y, z;
    // below row r, W of the four rows is a triangle
<#list 3..1 as n>
    x = DoubleVector.fromArray(S, l, r${n} + j);
    y = DoubleVector.fromArray(S, l, r${n} + j + V);
<#list 3..n as i>
    z = DoubleVector.fromArray(S, w, r${i} + i + ${n} * V);
    a${i} = x.fma(z, a${i});
    b${i} = y.fma(z, b${i});
</#list>
</#list>
    for (int below = r0 + j; i > j + V; below -= i, i -= V) {
      x = DoubleVector.fromArray(S, l, below);
      y = DoubleVector.fromArray(S, l, below + V);
<#list 0..3 as i>
      z = DoubleVector.fromArray(S, w, r${i} + i);
      a${i} = x.fma(z, a${i});
      b${i} = y.fma(z, b${i});
</#list>
    }
    int above = Cholesky.packedLength(c + 1) + c;
    y = DoubleVector.fromArray(S, w, (above + 1) * V).neg();
<#list 0..3 as i>
    b${i} = b${i}.mul(y);
</#list>
    x = DoubleVector.fromArray(S, l, above * V);
    y = DoubleVector.fromArray(S, w, (above - c - 1) * V).neg();
<#list 0..3 as i>
    x.fma(b${i}, a${i}).mul(y).intoArray(w, r${i} + j);
    b${i}.intoArray(w, r${i} + j + V);
</#list>
  }

  /** {@code WᵀW}, twice, in columns c … c + 3 < r of rows r and r + 1. */
  static void squareColumns2x4(double[] w, int d, int r, int c, double[] out, int at) {
    int row = Cholesky.packedLength(r);
    int k = (row + c) * V;
    DoubleVector x = DoubleVector.fromArray(S, w, (row + r) * V);
    DoubleVector y, z;
<#list 0..3 as j>
    DoubleVector a${j} = x.mul(DoubleVector.fromArray(S, w, k + ${j} * V));
    DoubleVector b${j} = DoubleVector.zero(S);
</#list>
    for (int i = r + 1, from = (row + r + 1) * V; i < d; from += ++i * V) {
      k = from + c * V;
      x = DoubleVector.fromArray(S, w, from + r * V);
      y = DoubleVector.fromArray(S, w, from + (r + 1) * V);
<#list 0..3 as j>
      z = DoubleVector.fromArray(S, w, k + ${j} * V);
      a${j} = x.fma(z, a${j});
      b${j} = y.fma(z, b${j});
</#list>
    }
    int to = at + (row + c) * NR;
    int below = to + (r + 1) * NR;
<#list 0..3 as j>
    a${j}.add(a${j}).intoArray(out, to + ${j} * NR);
    b${j}.add(b${j}).intoArray(out, below + ${j} * NR);
</#list>
  }

  /** {@code WᵀW}, twice off the diagonal, in the columns from r on of rows r … r + 3. */
  static void squareColumns4(double[] w, int d, int r, double[] out, int at) {
<@rows/>
<#list 0..3 as i><#list 0..i as j>
    DoubleVector a${i}${j} = DoubleVector.zero(S);
</#list></#list>
    DoubleVector x0, x1, x2, x3;
<#list 0..2 as n>
<#list 0..n as j>
    x${j} = DoubleVector.fromArray(S, w, (r${n} + r + ${j}) * V);
</#list>
<@addProducts from=0 to=n/>
</#list>
    for (int i = r + 3, k = (r3 + r) * V; i < d; k += ++i * V) {
<#list 0..3 as j>
      x${j} = DoubleVector.fromArray(S, w, k + ${j} * V);
</#list>
<@addProducts from=0 to=3/>
    }
    int to = at + r * NR;
<#list 0..3 as i><#list 0..i as j>
    a${i}${j}<#if j < i>.add(a${i}${j})</#if>.intoArray(out, to + (r${i} + ${j}) * NR);
</#list></#list>
  }
}
