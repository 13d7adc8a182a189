<#-- One text for the unrolled loops over tiles of R rows by C vectors of columns. The build derives DoubleMicroKernels from what it makes. -->
<#macro tile R C fenced=false half=false>
<#local S = half?then("HALF", "S")>

  static void tile${R}x${C}<#if fenced>Fenced</#if><#if half>Half</#if>(
      float[] rows,
      int r,
      float[] columns,
      int c,
      int length,
      float[] acc,
      int to,
      boolean first) {
<#list 0..<R as i><#list 0..<C as j>
    FloatVector a${i}_${j} = FloatVector.zero(${S});
</#list></#list>
<#if fenced>
    int end = r + length * (2 * MR);
    int column = c - r * (NR / MR);
    for (int i = r; i < end; i += 2 * MR) {
      int j = column + i * (NR / MR);
<#else>
    for (int h = 0; h < length; h++) {
      int i = r + h * (2 * MR);
      int j = c + h * (2 * NR);
</#if>
<#list 0..<C as j>
      FloatVector m${j} = FloatVector.fromArray(${S}, columns, j + ${j} * V);
      FloatVector p${j} = FloatVector.fromArray(${S}, columns, j + NR + ${j} * V);
</#list>
      FloatVector x, v, d, t;
<#list 0..<R as i>
      x = FloatVector.broadcast(${S}, rows[i + ${i}]);
      v = FloatVector.broadcast(${S}, rows[i + MR + ${i}]);
<#list 0..<C as j>
      d = x.sub(m${j});
      t = d.fma(d, v);
      a${i}_${j} = t.fma(p${j}, a${i}_${j});
</#list>
<#if fenced && i < R - 1>
      t.intoArray(acc, Tile.CAPACITY);
</#if>
</#list>
    }
    if (!first) {
<#list 0..<R as i><#list 0..<C as j>
      a${i}_${j} = a${i}_${j}.add(FloatVector.fromArray(${S}, acc, to + ${i} * NR + ${j} * V));
</#list></#list>
    }
<#list 0..<R as i><#list 0..<C as j>
    a${i}_${j}.intoArray(acc, to + ${i} * NR + ${j} * V);
</#list></#list>
  }
</#macro>
package dev.kullback.internal.vector;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * Micro-kernels of {@code R_ij = Σ_h [(μ_ih − μ_jh)² + v_ih] / v_jh}, layouts as in {@link FloatKernels}: {@code tileRxC} computes R
 * rows by C vectors of columns over {@code length} dimensions, and adds them to {@code acc[to + row·NR + column]}, or stores them there if
 * they are the {@code first}. The build unrolls them from one template, for the shapes in the table at its end.
 *
 * <p>Fenced kernels are for 16 registers. C2 of JDK 25 loads all that an iteration loads at its start, and spills accumulators to make
 * room for it; the loads of a row cannot pass the store of the row before, of no use otherwise, to the end of {@code acc}, at a constant
 * index, which takes no register. 4 x 2 vectors of 256 bits run at 11 to 13·10⁹ (i,j,h)/s without it and at 19 to 20 with it; 8 x 1 at
 * 18.5, 3 x 2 at 19, 10 x 1 at 18.7 (from the L1 cache, D = 64; Zen 3, JDK 25.0.3, where two fma allow 24). Their loop counts by the rows'
 * index, which saves three of 51 instructions and 5 % where another program uses the core; that of 8 x 1 lost 15 % so.
 */
final class FloatMicroKernels {
  private static final VectorSpecies<Float> S = FloatKernels.S;
  private static final VectorSpecies<Float> HALF = FloatKernels.HALF;
  private static final int V = S.length();
  private static final int MR = FloatKernels.MR;
  private static final int NR = FloatKernels.NR;

  private FloatMicroKernels() {}
<#-- 32 registers: a whole tile, a batch's last four rows, its last vector of columns, or half a vector;
     16 registers: the same, but for the rows. -->
<@tile R=8 C=2/>
<@tile R=4 C=2/>
<@tile R=8 C=1/>
<@tile R=8 C=1 half=true/>
<@tile R=4 C=2 fenced=true/>
<@tile R=4 C=1/>
}
