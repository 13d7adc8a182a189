<#macro loop way n>
      for (long i = at; i != last; i += STEP, k += 2) {
        FloatVector x = FloatVector.broadcast(S, query[k]);
        FloatVector s = FloatVector.broadcast(S, query[k + 1]);
        FloatVector y, p;
<#list 0..<n as j>
        y = x.sub(FloatVector.fromMemorySegment(S, panels, i + ${j} * BYTES, ORDER));
        p = FloatVector.fromMemorySegment(S, panels, i + FIELD + ${j} * BYTES, ORDER);
<#if way == "forward">
        a${j} = y.fma(y, s).fma(p, a${j});
<#else>
        a${j} = y.fma(y, FloatVector.broadcast(S, 1).div(p.max(Float.MIN_NORMAL))).fma(s, a${j});
</#if>
</#list>
      }
</#macro>
package dev.kullback.internal.vector.scan;

import dev.kullback.internal.kernel.PanelScan;
import dev.kullback.internal.vector.Species;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteOrder;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/**
 * Sums the terms of panels by the Vector API, for any thread; a panel is one, two or four vectors.
 *
 * <p>Sums and looks whether a panel can be left are methods of their own, by way of memory: in one loop, C2 of JDK 27.0.1 boxes every
 * vector, and takes 100 times as long. The loop over dimensions ends by {@code !=}, so that C2 does not take it for one that is worth
 * unrolling, which with 8 to 16 turns takes 1.3 times as long with 256 and 128 bits.
 */
public final class PanelScanKernel implements PanelScan {
  private static final VectorSpecies<Float> S = Species.FLOAT;
  private static final int V = S.length();
  private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;

  /**
   * Class of segments in native memory. Where it is certain, a vector's load does not depend on the segments that the process has seen before:
   * with mapped ones among them it takes twice as long, with arrays 8 times.
   */
  private static final Class<?> NATIVE = Arena.global().allocate(1).getClass();

  /** Dimensions between two looks. */
  private static final int CHUNK = 16;

  /** Bytes of m̂ or p̂ of a panel. */
  private static final int FIELD = LANES * Float.BYTES;

  /** Bytes of a dimension of a panel. */
  private static final int STEP = 2 * FIELD;

  /** Bytes of a vector. */
  private static final long BYTES = (long) V * Float.BYTES;

  static {
    if (LANES != V && LANES != 2 * V && LANES != 4 * V) {
      throw new IllegalStateException("no sums of panels by vectors of %d floats".formatted(V));
    }
  }

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
      if (isKept(query, reverse, d, panels, at + (long) STEP * d * c, most, sum, c * LANES)) {
        kept[n++] = c;
      }
    }
    return n;
  }

  private static boolean isKept(
      float[] query,
      boolean reverse,
      int d,
      MemorySegment panels,
      long panel,
      float[] most,
      float[] sum,
      int to) {
    for (int h = 0; h < d; h += CHUNK) {
      int end = Math.min(d, h + CHUNK);
      long at = panel + (long) STEP * h;
      if (reverse) {
        switch (LANES / V) {
          case 1 -> reverse1(query, h, end, panels, at, sum, to);
          case 2 -> reverse2(query, h, end, panels, at, sum, to);
          default -> reverse4(query, h, end, panels, at, sum, to);
        }
      } else {
        switch (LANES / V) {
          case 1 -> forward1(query, h, end, panels, at, sum, to);
          case 2 -> forward2(query, h, end, panels, at, sum, to);
          default -> forward4(query, h, end, panels, at, sum, to);
        }
      }
      if (areBeyond(sum, most, to)) {
        return false;
      }
    }
    return true;
  }

  private static boolean areBeyond(float[] sum, float[] most, int at) {
    for (int j = at; j < at + LANES; j += V) {
      FloatVector a = FloatVector.fromArray(S, sum, j);
      if (!a.compare(VectorOperators.GT, FloatVector.fromArray(S, most, j)).allTrue()) {
        return false;
      }
    }
    return true;
  }
<#list ["forward", "reverse"] as way>
<#list [1, 2, 4] as n>

  /** Adds the terms of dimensions [h, end) to the sums; the first dimension begins them. */
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
</#list>
}
