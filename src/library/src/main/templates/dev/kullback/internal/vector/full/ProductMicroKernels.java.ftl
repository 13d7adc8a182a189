<#include "../Lanes.ftl">
<#-- One text for the unrolled loops over tiles of R rows by C vectors of columns. -->
<#macro tile R C>

  static void tile${R}x${C}(
      ${number}[] rows,
      int r,
      ${number}[] columns,
      int c,
      int length,
      ${number}[] acc,
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
<#macro kernels name of>
<#assign number = of?lower_case>
<@twins name "Scalar" + name of>
package dev.kullback.internal.vector.full;

<@imports>
import dev.kullback.internal.vector.Shapes;
</@imports>
import dev.kullback.internal.vector.VectorWidth;

/**
 * Micro-kernels of the matrix product in ${number}, layouts as in {@link ${twin}ProductKernels}: {@code tileRxC} computes R rows by C vectors of columns over
 * {@code length} entries, and adds them to {@code acc[to + row·NR + column]} or, the first, stores them there. The build unrolls them from
 * one template, for the shapes in the table at its end.
 */
final class ${class} {
<@species/>
  private static final int MR = ProductKernels.MR;

  /** Columns of a panel: two vectors of them, and no fewer than rows. */
  static final int NR = Math.max(2 * VectorWidth.BITS / ${of}.SIZE, MR);

  private static final int ROWS = ${asVectors?then("Shapes.PRODUCT_ROWS", "4")};

  private ${class}() {}

  /**
   * Adds the product of a chunk of rows with a chunk of a column panel to {@code acc[a][MR][NR]} from {@code to} on, or stores the first chunk's
   * there. What the kernels read of the columns stays in the L1 cache for every row panel after the first.
   *
   * @param rows {@code [a][stride][MR]}, a panel's chunk from {@code from} on
   * @param height how many rows count; up to a whole panel the others are computed too
   * @param columns {@code [length][NR]} from {@code c} on
   * @param count how many columns count, likewise
   */
  static void multiply(
      ${number}[] rows,
      int from,
      int stride,
      int height,
      ${number}[] columns,
      int c,
      int length,
      int count,
      ${number}[] acc,
      int to,
      boolean first) {
    for (int i = 0; i < height; i += ROWS) {
      int r = from + i / MR * stride * MR + i % MR;
      for (int v = 0; v < Math.min(NR, count); v += 2 * V) {
        int at = to + i * NR + v;
        boolean two = count - v > V;
        if (ROWS == 8 && two) {
          tile8x2(rows, r, columns, c + v, length, acc, at, first);
        } else if (ROWS == 8) {
          tile8x1(rows, r, columns, c + v, length, acc, at, first);
        } else if (two) {
          tile4x2(rows, r, columns, c + v, length, acc, at, first);
        } else {
          tile4x1(rows, r, columns, c + v, length, acc, at, first);
        }
      }
    }
  }
<#-- 32 registers: a whole tile, a panel's last vector of columns; 16 registers: half the rows -->
<@tile R=8 C=2/>
<@tile R=8 C=1/>
<@tile R=4 C=2/>
<@tile R=4 C=1/>
}
</@twins>
</#macro>
<@kernels "ProductMicroKernels" "Double"/>
<@kernels "SingleProductMicroKernels" "Float"/>
