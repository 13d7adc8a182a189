<#include "../Lanes.ftl">
<#macro loop way n>
      for (long i = at; i != last; i += STEP, k += 2) {
        FloatVector x = FloatVector.broadcast(S, query[k]);
        FloatVector s = FloatVector.broadcast(S, query[k + 1]);
        FloatVector y, p;
<#list 0..<n as j>
<@term way "a${j}" "FloatVector.fromMemorySegment(S, panels, i + ${j} * BYTES, ORDER)" "FloatVector.fromMemorySegment(S, panels, i + FIELD + ${j} * BYTES, ORDER)"/>
</#list>
      }
</#macro>
<#-- Adds a term, of x and s of a query, to `sum`. -->
<#macro term way sum mean precision>
        y = ${sub("x", mean)};
        p = ${precision};
<#if way == "forward">
        ${sum} = ${mulAdd(mulAdd("y", "y", "s"), "p", sum)};
<#else>
        ${sum} = ${mulAdd(mulAdd("y", "y", div(broadcast("1"), max("p", "Float.MIN_NORMAL"))), "s", sum)};
</#if>
</#macro>
<#-- Terms of R queries and two vectors of references in one dimension; the last four are loads. -->
<#macro tileTerms way R m0 p0 m1 p1>
        FloatVector m0 = ${m0};
        FloatVector m1 = ${m1};
        FloatVector p0 = ${p0};
        FloatVector p1 = ${p1};
<#if way == "reverse">
        p0 = ${div(broadcast("1"), max("p0", "Float.MIN_NORMAL"))};
        p1 = ${div(broadcast("1"), max("p1", "Float.MIN_NORMAL"))};
</#if>
        FloatVector x, s, y;
<#list 0..<R as r>
        x = FloatVector.broadcast(S, queries[k + ${r}]);
        s = FloatVector.broadcast(S, queries[k + GROUP + ${r}]);
<#list 0..1 as j>
        y = ${sub("x", "m${j}")};
<#if way == "forward">
        a${r}_${j} = ${fma(fma("y", "y", "s"), "p${j}", "a${r}_${j}")};
<#else>
        a${r}_${j} = ${fma(fma("y", "y", "p${j}"), "s", "a${r}_${j}")};
</#if>
</#list>
</#list>
</#macro>
<#macro tileLoop way R>
      for (long i = at; i != last; i += STEP, k += 2 * GROUP) {
<@tileTerms way R "FloatVector.fromMemorySegment(S, panels, i, ORDER)" "FloatVector.fromMemorySegment(S, panels, i + FIELD, ORDER)" "FloatVector.fromMemorySegment(S, panels, i + second, ORDER)" "FloatVector.fromMemorySegment(S, panels, i + second + FIELD, ORDER)"/>
      }
</#macro>
<#-- Vectors add to the caller's sums; numbers to `acc`, a fixed place, in 0.93 of the time (D = 64, Zen 4, JDK 25.0.3). -->
<#function ofSums text><#return asVectors?then(text, "")></#function>
<@twins "PanelScanKernel" "ScalarPanelScan" "Float">
package dev.kullback.internal.vector.scan;

import dev.kullback.internal.kernel.PanelScan;
<#if asVectors>
import dev.kullback.internal.vector.Shapes;
</#if>
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
<#if asVectors>
import java.lang.foreign.Arena;
<#else>
import java.util.Arrays;
</#if>
<@imports>
import jdk.incubator.vector.VectorOperators;
</@imports>

<#if asVectors>
/**
 * Sums the terms of panels by the Vector API, for one thread; a panel is one, two or four vectors.
 *
 * <p>Sums and looks whether a panel can be left are methods of their own, by way of memory: in one loop, C2 of JDK 27.0.1 boxes every
 * vector, and takes 100 times as long. The loop over dimensions ends by {@code !=}, so that C2 does not take it for one that is worth
 * unrolling, which with 8 to 16 turns takes 1.3 times as long with 256 and 128 bits.
 */
<#else>
/**
 * {@link PanelScanKernel} without vectors: the same text, but for the rounding of products, so that sums have other last digits, within the
 * same bound. Holds the working memory of one thread.
 */
</#if>
public final class ${class} implements PanelScan {
<@species>
  private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;

  /**
   * Class of segments in native memory. Where it is certain, a vector's load does not depend on the segments that the process has seen before:
   * with mapped ones among them it takes twice as long, with arrays 8 times.
   */
  private static final Class<?> NATIVE = Arena.global().allocate(1).getClass();

  /** Bytes of a vector. */
  private static final long BYTES = (long) V * Float.BYTES;
</@species>

  private static final ValueLayout.OfFloat FLOAT =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  /** Dimensions between two looks. */
  private static final int CHUNK = 16;

<#if asVectors>
  /** Queries of a tile, of two vectors of references: half the registers hold its sums. */
  private static final int ROWS = Shapes.MR;

</#if>
  /** Bytes of m̂ or p̂ of a panel. */
  private static final int FIELD = LANES * Float.BYTES;

  /** Bytes of a dimension of a panel. */
  private static final int STEP = 2 * FIELD;

<#if asVectors>
  static {
    if (LANES != V && LANES != 2 * V && LANES != 4 * V) {
      throw new IllegalStateException("no sums of panels by vectors of %d floats".formatted(V));
    }
  }
<#else>
  private final float[] chunk = new float[2 * LANES * CHUNK];
  private final float[] acc = new float[LANES];
</#if>

  /** A copy of a panel. */
  private float[] whole = {};

  @Override
  public int sums(
      float[] query,
      boolean reverse,
      int d,
      MemorySegment panels,
      long at,
      int count,
      float[] most,
      float[] sum,
      int[] kept) {
    int n = 0;
    for (int c = 0; c < count; c++) {
      if (isKept(query, reverse, d, panels, at + (long) STEP * d * c, most, c * LANES${ofSums(", sum")})) {
        kept[n++] = c;
      }
<#if !asVectors>
      System.arraycopy(acc, 0, sum, c * LANES, LANES);
</#if>
    }
    return n;
  }

  private boolean isKept(
      float[] query,
      boolean reverse,
      int d,
      MemorySegment panels,
      long panel,
      float[] most,
      int to${ofSums(", float[] sum")}) {
    for (int h = 0; h < d; h += CHUNK) {
      int end = Math.min(d, h + CHUNK);
      long at = panel + (long) STEP * h;
      if (reverse) {
        reverse(query, h, end, panels, at${ofSums(", sum, to")});
      } else {
        forward(query, h, end, panels, at${ofSums(", sum, to")});
      }
      if (areBeyond(${asVectors?then("sum, to", "acc, 0")}, most, to, LANES)) {
        return false;
      }
    }
    return true;
  }

  /** Whether each of {@code lanes} sums from {@code at} on exceeds its most, from {@code first} on. */
  static boolean areBeyond(float[] sum, int at, float[] most, int first, int lanes) {
    for (int j = 0; j < lanes; j += V) {
      if (!${isEachGreater(load("sum", "at + j"), load("most", "first + j"))}) {
        return false;
      }
    }
    return true;
  }
<#list ["forward", "reverse"] as way>

  /** Adds the terms of dimensions [h, end) to the sums; the first dimension begins them. */
  private void ${way}(
      float[] query, int h, int end, MemorySegment panels, long at${ofSums(", float[] sum, int to")}) {
<#if asVectors>
    switch (LANES / V) {
      case 1 -> ${way}1(query, h, end, panels, at, sum, to);
      case 2 -> ${way}2(query, h, end, panels, at, sum, to);
      default -> ${way}4(query, h, end, panels, at, sum, to);
    }
  }
<#list [1, 2, 4] as n>

  @SuppressWarnings("DuplicateBranches") // C2 knows the class in the first alone
  private static void ${way}${n}(
      float[] query, int h, int end, MemorySegment panels, long at, float[] sum, int to) {
<#list 0..<n as j>
    FloatVector a${j} = h == 0 ? FloatVector.zero(S) : FloatVector.fromArray(S, sum, to + ${j} * V);
</#list>
    int k = 2 * h;
    long last = at + (long) STEP * (end - h);
    if (panels.getClass() == NATIVE) {
<@loop way n/>
    } else {
<@loop way n/>
    }
<#list 0..<n as j>
    a${j}.intoArray(sum, to + ${j} * V);
</#list>
  }
</#list>
<#else>
    if (h == 0) {
      Arrays.fill(acc, 0);
    }
    int n = end - h;
    MemorySegment.copy(panels, FLOAT, at, chunk, 0, 2 * LANES * n);
    for (int k = 0; k < n; k++) {
      float x = query[2 * (h + k)];
      float s = query[2 * (h + k) + 1];
      float y, p;
      int i = 2 * LANES * k;
      for (int j = 0; j < LANES; j++) {
<@term way "acc[j]" "chunk[i + j]" "chunk[i + LANES + j]"/>
      }
    }
  }
</#if>
</#list>

  @Override
  public int keep(
      float[] sum, int at, float[] rest, int first, int count, float limit, int[] kept) {
    int n = 0;
    for (int c = 0; c < count; c++) {
      boolean areBeyond = true;
      for (int j = c * LANES; j < (c + 1) * LANES; j += V) {
        areBeyond &= ${isEachGreater(sub(load("sum", "at + j"), load("rest", "first + j")), "limit")};
      }
      if (!areBeyond) {
        kept[n++] = c;
      }
    }
    return n;
  }

  @Override
  public void sumsOfAll(
      float[] queries,
      int first,
      int groups,
      boolean reverse,
      int d,
      MemorySegment panels,
      long at,
      int count,
      float[] sum,
      int stride) {
<#if asVectors>
    if (ROWS == 4) {
      sumCopies(queries, first, groups, reverse, d, panels, at, count, sum, stride);
      return;
    }
    int length = 2 * GROUP * d;
    int last = count * LANES - V;
    for (int j = 0; j <= last; j += 2 * V) {
      int next = Math.min(j + V, last); // a last vector alone is its own second
      long from = at + vector(j, d);
      long second = at + vector(next, d) - from;
      for (int g = 0; g < groups; g++) {
        int k = first + g * length;
        int to = g * GROUP * stride;
        if (reverse) {
          reverse8x2(queries, k, d, panels, from, second, sum, to + j, to + next, stride);
        } else {
          forward8x2(queries, k, d, panels, from, second, sum, to + j, to + next, stride);
        }
      }
    }
  }

  /** Where the vector that begins with a reference lies behind the first panel. */
  private static long vector(int j, int d) {
    return (long) STEP * d * (j / LANES) + (long) Float.BYTES * (j % LANES);
  }

  /**
   * The same from a copy of each panel, by tiles of four queries: a load from a segment is checked each time, which a small tile has too few terms for.
   */
  @SuppressWarnings("TooManyParameters") // those of the public method
  private void sumCopies(
      float[] queries,
      int first,
      int groups,
      boolean reverse,
      int d,
      MemorySegment panels,
      long at,
      int count,
      float[] sum,
      int stride) {
    int length = 2 * LANES * d;
    if (whole.length < length) {
      whole = new float[length];
    }
    for (int c = 0; c < count; c++) {
      MemorySegment.copy(panels, FLOAT, at + (long) STEP * d * c, whole, 0, length);
      for (int j = 0; j < LANES; j += 2 * V) {
        for (int q = 0; q < groups * GROUP; q += 4) {
          int k = first + q / GROUP * (2 * GROUP * d) + q % GROUP;
          int to = q * stride + c * LANES + j;
          if (reverse) {
            reverse4x2(queries, k, whole, j, length, sum, to, stride);
          } else {
            forward4x2(queries, k, whole, j, length, sum, to, stride);
          }
        }
      }
    }
  }
<#list ["forward", "reverse"] as way>

  private static void ${way}4x2(
      float[] queries,
      int first,
      float[] panel,
      int lane,
      int length,
      float[] sum,
      int to,
      int stride) {
<#list 0..<4 as r><#list 0..1 as j>
    FloatVector a${r}_${j} = FloatVector.zero(S);
</#list></#list>
    int k = first;
    for (int i = lane; i < length; i += 2 * LANES, k += 2 * GROUP) {
<@tileTerms way 4 "FloatVector.fromArray(S, panel, i)" "FloatVector.fromArray(S, panel, i + LANES)" "FloatVector.fromArray(S, panel, i + V)" "FloatVector.fromArray(S, panel, i + V + LANES)"/>
    }
<#list 0..<4 as r>
    a${r}_0.intoArray(sum, to + ${r} * stride);
    a${r}_1.intoArray(sum, to + ${r} * stride + V);
</#list>
  }

  @SuppressWarnings({"DuplicateBranches", "TooManyParameters"}) // C2 knows the class in the first alone
  private static void ${way}8x2(
      float[] queries,
      int first,
      int d,
      MemorySegment panels,
      long at,
      long second,
      float[] sum,
      int to,
      int next,
      int stride) {
<#list 0..<8 as r><#list 0..1 as j>
    FloatVector a${r}_${j} = FloatVector.zero(S);
</#list></#list>
    int k = first;
    long last = at + (long) STEP * d;
    if (panels.getClass() == NATIVE) {
<@tileLoop way 8/>
    } else {
<@tileLoop way 8/>
    }
<#list 0..<8 as r>
    a${r}_0.intoArray(sum, to + ${r} * stride);
    a${r}_1.intoArray(sum, next + ${r} * stride);
</#list>
  }
</#list>
}
<#else>
    int length = 2 * GROUP * d;
    if (whole.length < 2 * LANES * d) {
      whole = new float[2 * LANES * d];
    }
    for (int c = 0; c < count; c++) {
      MemorySegment.copy(panels, FLOAT, at + (long) STEP * d * c, whole, 0, 2 * LANES * d);
      for (int q = 0; q < groups * GROUP; q++) {
        int k = first + q / GROUP * length + q % GROUP;
        Arrays.fill(acc, 0);
        if (reverse) {
          reverse(queries, k, d);
        } else {
          forward(queries, k, d);
        }
        System.arraycopy(acc, 0, sum, q * stride + c * LANES, LANES);
      }
    }
  }
<#list ["forward", "reverse"] as way>

  /** Adds the terms of all dimensions of a query of a group. */
  private void ${way}(float[] queries, int from, int d) {
    int k = from;
    for (int i = 0; i < 2 * LANES * d; i += 2 * LANES, k += 2 * GROUP) {
      float x = queries[k];
      float s = queries[k + GROUP];
      float y, p;
      for (int j = 0; j < LANES; j++) {
<@term way "acc[j]" "whole[i + j]" "whole[i + LANES + j]"/>
      }
    }
  }
</#list>
}
</#if>
</@twins>
