<#include "Lanes.ftl">
<#macro tile R>
<#list 0..<R as i>
    int k${i} = first + i${i} * d;
    ${vector} a${i} = ${zero()};
</#list>
    for (int h = 0; h < length; h++) {
      int k = j + h * (NearForm.FIELDS * W);
      ${vector} m = ${load("columns", "k")};
      ${vector} r = ${load("columns", "k + W")};
      ${vector} s = ${load("columns", "k + 2 * W")};
      ${vector} w = ${load("columns", "k + 3 * W")};
      ${vector} x, z;
<#list 0..<R as i>
      x = ${sub(broadcast("mean[k${i} + h]"), "m")};
      z = ${mul(sub(broadcast("scale[k${i} + h]"), "s"), "w")};
      z = ${mul("z", broadcast("weight[k${i} + h]"))};
      a${i} = ${add("a${i}", fma("z", "z", mul(mul("x", "r"), "x")))};
</#list>
    }
<#list 0..<R as i>
    ${store("a${i}", "acc", "i${i} * FloatPanels.NR + to")};
</#list>
</#macro>
<#macro emitNear>
<#-- Four rows by one vector of columns, to spread the column loads, which cross cache lines; two rows ran at 60 % of this. -->
<#local R = asVectors?then(4, 1)>
package dev.kullback.internal.vector;

<@imports/>

<#if asVectors>
/** Unrolled loop of {@link NearKernel}, layouts as there. */
<#else>
/** {@link NearMicroKernel} without vectors: the same text, so the same bits. */
</#if>
final class ${class} {
<#if asVectors>
  private static final VectorSpecies<Float> S = Species.FLOAT;

</#if>
  /** Columns that lie side by side. */
  private static final int W = VectorWidth.BITS / Float.SIZE;

  private ${class}() {}

  /**
   * Stores 2 KL of rows i0 to i${R - 1} of a tile, whose first begins at {@code first}, and of the vector of columns at {@code j}, over
   * {@code length} dimensions, to {@code acc[i·NR + to]}.
   */
  static void tile${R}x1(
      float[] mean,
      float[] scale,
      float[] weight,
      int first,
      int d,
<#list 0..<R as i>
      int i${i},
</#list>
      float[] columns,
      int j,
      int length,
      float[] acc,
      int to) {
<@tile R/>
  }
}
</#macro>
<@twins "NearMicroKernel" "ScalarNearMicroKernel" "Float"><@emitNear/></@twins>
