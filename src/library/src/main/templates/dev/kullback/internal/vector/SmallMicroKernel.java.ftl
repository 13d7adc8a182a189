<#-- Four rows by a vector of columns, and the dimensions that SmallKernel takes; the rows are read at constant indices. -->
<#assign ROWS = 4, DIMENSIONS = 4>
<#-- The index of row i's field of dimension h: μ, v. -->
<#function at h field i><#return 2 * ROWS + (3 * h + field) * ROWS + i></#function>
package dev.kullback.internal.vector;

import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/** Unrolled loop of {@link SmallKernel}: rows as laid out there, columns as in {@link SmallOperands}. */
final class SmallMicroKernel {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final VectorSpecies<Long> L = Species.LONG;
  private static final int V = S.length();
  private static final DoubleVector HALVES = DoubleVector.broadcast(S, 0.5);

  private SmallMicroKernel() {}

  /**
   * Stores four rows of KL by the difference form, and lists the vectors of columns where one is below {@code least}.
   *
   * @param at where column 0 of the first row goes; the others follow by {@code step}
   * @param height how many rows there are: missing ones repeat the last
   * @return how many vectors are listed
   */
  static int store(
      int d,
      double[] rows,
      double[] columns,
      int from,
      int to,
      double least,
      double[] out,
      int at,
      int step,
      int height,
      int[] vectors) {
    // one text for every D, whose branches cost: an entry takes 1.3, 1.4, 1.7 and 2.3 ns at D = 1
    // to 4 where C2 has seen them all, and 0.7 and 0.8 at 1 and 2 where it has not seen more
    // (Zen 3, AVX2)
<#list 0..<ROWS as i>
    int at${i} = at + Math.min(${i}, height - 1) * step;
</#list>
    int width = 2 * d + 1;
    int count = 0;
    for (int j = from; j < to; j += V) {
      int k = j * width;
      DoubleVector m = DoubleVector.fromArray(S, columns, k);
      DoubleVector p = DoubleVector.fromArray(S, columns, k + V);
      DoubleVector x;
<#list 0..<ROWS as i>
      x = DoubleVector.broadcast(S, rows[${at(0, 0, i)}]).sub(m);
      DoubleVector a${i} = x.fma(x, DoubleVector.broadcast(S, rows[${at(0, 1, i)}])).mul(p);
</#list>
<#list 1..<DIMENSIONS as h>
      if (d > ${h}) {
        m = DoubleVector.fromArray(S, columns, k + ${2 * h} * V);
        p = DoubleVector.fromArray(S, columns, k + ${2 * h + 1} * V);
<#list 0..<ROWS as i>
        x = DoubleVector.broadcast(S, rows[${at(h, 0, i)}]).sub(m);
        a${i} = x.fma(x, DoubleVector.broadcast(S, rows[${at(h, 1, i)}])).fma(p, a${i});
</#list>
      }
</#list>
      DoubleVector offsets = DoubleVector.fromArray(S, columns, k + (width - 1) * V);
<#list 0..<ROWS as i>
      a${i} = a${i}.fma(HALVES, offsets.add(rows[${i}]));
</#list>
<#list 0..<ROWS as i>
      a${i}.intoArray(out, at${i} + j);
</#list>
      LongVector signs = (LongVector) a0.sub(least).reinterpretShape(L, 0);
<#list 1..<ROWS as i>
      signs = signs.or(a${i}.sub(least).reinterpretShape(L, 0));
</#list>
      vectors[count] = j;
      // the sum over the lanes takes 5 % of the time with four of them (Zen 3, AVX2)
      count +=
          (V > 2
                  ? signs.compare(VectorOperators.LT, 0).anyTrue()
                  : signs.reduceLanes(VectorOperators.OR) < 0)
              ? 1
              : 0;
    }
    return count;
  }
}
