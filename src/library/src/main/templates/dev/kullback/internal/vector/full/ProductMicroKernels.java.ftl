<#include "../Lanes.ftl">
<#-- One text for the unrolled loops over tiles of R rows by C vectors of columns. -->
<#macro tile R C>

  static void tile${R}x${C}(
      double[] rows,
      int r,
      double[] columns,
      int c,
      int length,
      double[] acc,
      int to,
      boolean first) {
<#list 0..<R as i><#list 0..<C as j>
    ${vector} a${i}_${j} = ${zero()};
</#list></#list>
    for (int k = 0; k < length; k++) {
      int i = r + k * MR;
      int j = c + k * NR;
<#list 0..<C as j>
      ${vector} b${j} = ${load("columns", "j + ${j} * V")};
</#list>
      ${vector} x;
<#list 0..<R as i>
      x = ${broadcast("rows[i + ${i}]")};
<#list 0..<C as j>
      a${i}_${j} = ${fma("x", "b${j}", "a${i}_${j}")};
</#list>
</#list>
    }
    if (first) { // stored by each branch: where sums live on across them, C2 may box all, 16 x 96 B a tile
<#list 0..<R as i><#list 0..<C as j>
      ${store("a${i}_${j}", "acc", "to + ${i} * NR + ${j} * V")};
</#list></#list>
    } else {
<#list 0..<R as i><#list 0..<C as j>
      ${store(add("a${i}_${j}", load("acc", "to + ${i} * NR + ${j} * V")), "acc", "to + ${i} * NR + ${j} * V")};
</#list></#list>
    }
  }
</#macro>
<@twins "ProductMicroKernels">
package dev.kullback.internal.vector.full;

<@imports/>

/**
 * Micro-kernels of the matrix product, layouts as in {@link ${twin}ProductKernels}: {@code tileRxC} computes R rows by C vectors of columns over
 * {@code length} entries, and adds them to {@code acc[to + row·NR + column]} or, the first, stores them there. The build unrolls them from
 * one template, for the shapes in the table at its end.
 */
final class ${class} {
<@species/>
  private static final int MR = ProductKernels.MR;
  private static final int NR = ProductKernels.NR;

  private ${class}() {}
<#-- 32 registers: a whole tile, a panel's last vector of columns; 16 registers: half the rows -->
<@tile R=8 C=2/>
<@tile R=8 C=1/>
<@tile R=4 C=2/>
<@tile R=4 C=1/>
}
</@twins>
