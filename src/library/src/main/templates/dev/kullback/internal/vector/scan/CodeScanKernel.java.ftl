<#macro loop n>
    for (long i = at; i != last; i += STEP, k += 2 * TERMS) {
      FloatVector t0 = FloatVector.broadcast(S, terms[k]);
      FloatVector k0 = FloatVector.broadcast(S, terms[k + 1]);
      FloatVector s0 = FloatVector.broadcast(S, terms[k + 2]);
      FloatVector t1 = FloatVector.broadcast(S, terms[k + 3]);
      FloatVector k1 = FloatVector.broadcast(S, terms[k + 4]);
      FloatVector s1 = FloatVector.broadcast(S, terms[k + 5]);
      IntVector w;
      FloatVector m, p, y;
<#list 0..<n as j>
      w = IntVector.fromMemorySegment(I, panels, i + ${j} * BYTES, ORDER);
      m = (FloatVector) w.lanewise(LSHL, 8).convertShape(I2F, S, 0);
      p = (FloatVector) w.and(0xFF).convertShape(I2F, S, 0);
      y = m.fma(k0, t0);
      a${j} = y.fma(y, s0).fma(p, a${j});
      m = (FloatVector) w.convertShape(I2F, S, 0);
      p = (FloatVector) w.and(0xFF00).convertShape(I2F, S, 0);
      y = m.fma(k1, t1);
      a${j} = y.fma(y, s1).fma(p, a${j});
</#list>
    }
</#macro>
package dev.kullback.internal.vector.scan;

import static jdk.incubator.vector.VectorOperators.GT;
import static jdk.incubator.vector.VectorOperators.I2F;
import static jdk.incubator.vector.VectorOperators.LSHL;
import static jdk.incubator.vector.VectorOperators.SQRT;

import dev.kullback.internal.kernel.CodeScan;
import dev.kullback.internal.vector.Species;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteOrder;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * Sums the terms of codes by the Vector API, for one thread, with the precautions of {@link PanelScanKernel}. Vectors share the query's numbers:
 * the two of a panel at 512 bits, its four at 256, and four of eight at 128. Four of two panels at 512 bits take 0.95 of the time from a
 * cache, but 1.9 from memory, where only one stream at a time is foreseen (1,000,000 × 64, Zen 4).
 *
 * <p>Native and mapped panels have loops in methods of their own. With both in one, C2 left a vector of each word boxed in a
 * process that had run much else before (JDK 25.0.3, 128 bits, Zen 4 and Zen 5).
 */
public final class CodeScanKernel implements CodeScan {
  private static final VectorSpecies<Float> S = Species.FLOAT;
  private static final VectorSpecies<Integer> I = S.withLanes(int.class);
  private static final int V = S.length();
  private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;

  /** Class of segments in native memory, as {@link PanelScanKernel} knows it. */
  private static final Class<?> NATIVE = Arena.global().allocate(1).getClass();

  /** Words between two looks whether a panel can be left. */
  private static final int CHUNK = 8;

  /** Panels that are left at the first look before it is moved forward. */
  private static final int PATIENCE = 8;

  /** Bytes of a word of a panel. */
  private static final int STEP = LANES * Integer.BYTES;

  /** Bytes of a vector. */
  private static final long BYTES = (long) V * Integer.BYTES;

  static {
    if (LANES != 2 * V && LANES != 4 * V && LANES != 8 * V) {
      throw new IllegalStateException("no sums of codes by vectors of %d floats".formatted(V));
    }
  }

  /**
   * Words before the first look at a panel, which moves towards where panels are left: on data whose dimensions all count alike that is
   * their end, and looks before take a tenth of the time.
   */
  private int first = CHUNK;

  /** Panels that were left at the first look since it moved. */
  private int left;

  @Override
  public int sums(
      float[] terms,
      int words,
      Limit limit,
      MemorySegment panels,
      long at,
      int count,
      float[] most,
      float[] sum,
      int[] kept) {
    int n = 0;
    for (int c = 0; c < count; c++) {
      long panel = at + c * CodeScan.panelBytes(words);
      most(limit, panels, panel, most, c * LANES);
      if (isKept(terms, words, panels, panel + LEADING * STEP, most, sum, c * LANES)) {
        kept[n++] = c;
      }
    }
    return n;
  }

  private static void most(Limit limit, MemorySegment panels, long panel, float[] most, int to) {
    for (int j = 0; j < LANES; j += V) {
      long at = panel + (long) j * Float.BYTES;
      FloatVector r = FloatVector.fromMemorySegment(S, panels, at, ORDER);
      FloatVector l = FloatVector.fromMemorySegment(S, panels, at + STEP, ORDER);
      FloatVector x = l.add(limit.base).max(0).lanewise(SQRT).add(r);
      x.mul(x).mul(limit.factor).add(limit.more).intoArray(most, to + j);
    }
  }

  private boolean isKept(
      float[] terms,
      int words,
      MemorySegment panels,
      long codes,
      float[] most,
      float[] sum,
      int to) {
    int w = 0;
    int end = Math.min(words, first);
    while (true) {
      long at = codes + (long) STEP * w;
      switch (LANES / V) {
        case 2 -> add2(terms, w, end, panels, at, sum, to);
        case 4 -> add4(terms, w, end, panels, at, sum, to);
        default -> {
          add4(terms, w, end, panels, at, sum, to);
          add4(terms, w, end, panels, at + 4 * BYTES, sum, to + 4 * V);
        }
      }
      boolean areBeyond = areBeyond(sum, most, to);
      if (w == 0) {
        moveFirst(areBeyond, end);
      }
      if (areBeyond || end == words) {
        return !areBeyond;
      }
      w = end;
      end = Math.min(words, w + CHUNK);
    }
  }

  private void moveFirst(boolean areBeyond, int end) {
    if (!areBeyond) {
      first = end + CHUNK;
      left = 0;
    } else if (++left == PATIENCE) {
      first = Math.max(CHUNK, end - CHUNK);
      left = 0;
    }
  }

  private static boolean areBeyond(float[] sum, float[] most, int at) {
    for (int j = at; j < at + LANES; j += V) {
      FloatVector a = FloatVector.fromArray(S, sum, j);
      if (!a.compare(GT, FloatVector.fromArray(S, most, j)).allTrue()) {
        return false;
      }
    }
    return true;
  }
<#list [2, 4] as n>

  private static void add${n}(
      float[] terms, int from, int end, MemorySegment panels, long at, float[] sum, int to) {
    if (panels.getClass() == NATIVE) {
      addNative${n}(terms, from, end, panels, at, sum, to);
    } else {
      addMapped${n}(terms, from, end, panels, at, sum, to);
    }
  }
<#list ["Native", "Mapped"] as where>

  /** Adds the terms of the words [from, end) to the sums; the first word begins them. */
  private static void add${where}${n}(
      float[] terms, int from, int end, MemorySegment panels, long at, float[] sum, int to) {
<#if where == "Native">
    if (panels.getClass() != NATIVE) { // so C2 knows the class
      throw new IllegalArgumentException("panels are not in native memory");
    }
</#if>
<#list 0..<n as j>
    FloatVector a${j} = from == 0 ? FloatVector.zero(S) : FloatVector.fromArray(S, sum, to + ${j} * V);
</#list>
    int k = 2 * TERMS * from;
    long last = at + (long) STEP * (end - from);
<@loop n/>
<#list 0..<n as j>
    a${j}.intoArray(sum, to + ${j} * V);
</#list>
  }
</#list>
</#list>
}
