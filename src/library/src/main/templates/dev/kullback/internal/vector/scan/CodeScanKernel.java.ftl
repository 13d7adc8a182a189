<#include "../Lanes.ftl">
<#-- Declares what a query has for the dimensions of a word. -->
<#macro query>
<#list 0..1 as h>
<#list ["t", "k", "s"] as name>
      ${vector} ${name}${h} = ${broadcast("terms[k + ${3 * h + name?index}]")};
</#list>
</#list>
      ${vector} m, p, y;
</#macro>
<#-- Adds the terms of the word w to `sum`. -->
<#macro addWord sum>
<#list [["first", "w.lanewise(VectorOperators.LSHL, 8)", "w.and(0xFF)"], ["second", "w", "w.and(0xFF00)"]] as dimension>
<#local h = dimension?index>
<#if asVectors>
        m = (FloatVector) ${dimension[1]}.convertShape(VectorOperators.I2F, S, 0);
        p = (FloatVector) ${dimension[2]}.convertShape(VectorOperators.I2F, S, 0);
<#else>
        m = CodeScan.${dimension[0]}Mean(w);
        p = CodeScan.${dimension[0]}Precision(w);
</#if>
        y = ${mulAdd("m", "k${h}", "t${h}")};
        ${sum} = ${mulAdd(mulAdd("y", "y", "s${h}"), "p", sum)};
</#list>
</#macro>
<@twins "CodeScanKernel" "ScalarCodeScan" "Float">
package dev.kullback.internal.vector.scan;

import dev.kullback.internal.kernel.CodeScan;
import java.lang.foreign.MemorySegment;
import java.nio.ByteOrder;
<#if asVectors>
import java.lang.foreign.Arena;
<#else>
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
</#if>
<@imports>
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.VectorOperators;
</@imports>

<#if asVectors>
/**
 * Sums the terms of codes by the Vector API, for one thread, with the precautions of {@link PanelScanKernel}. Vectors share the query's numbers:
 * the two of a panel at 512 bits, its four at 256, and four of eight at 128. Four of two panels at 512 bits take 0.95 of the time from a
 * cache, but 1.9 from memory, where only one stream at a time is foreseen (1,000,000 × 64, Zen 4).
 *
 * <p>Native and mapped panels have loops in methods of their own. With both in one, C2 left a vector of each word boxed in a
 * process that had run much else before (JDK 25.0.3, 128 bits, Zen 4 and Zen 5).
 */
<#else>
/** {@link CodeScanKernel} without vectors: the same text, rounded as by {@link ScalarPanelScan}. Holds the working memory of one thread. */
</#if>
public final class ${class} implements CodeScan {
<@species>
  private static final VectorSpecies<Integer> I = S.withLanes(int.class);
  private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;

  /** Class of segments in native memory, as {@link PanelScanKernel} knows it. */
  private static final Class<?> NATIVE = Arena.global().allocate(1).getClass();

  /** Bytes of a vector. */
  private static final long BYTES = (long) V * Integer.BYTES;
</@species>

  /** Words between two looks whether a panel can be left. */
  private static final int CHUNK = 8;

  /** Panels that are left at the first look before it is moved forward. */
  private static final int PATIENCE = 8;

  /** Bytes of a word of a panel. */
  private static final int STEP = LANES * Integer.BYTES;

<#if asVectors>
  static {
    if (LANES != 2 * V && LANES != 4 * V && LANES != 8 * V) {
      throw new IllegalStateException("no sums of codes by vectors of %d floats".formatted(V));
    }
  }
<#else>
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfFloat FLOAT =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private int[] chunk = {};
  private final float[] leading = new float[LANES * LEADING];
</#if>

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

  private void most(
      Limit limit, MemorySegment panels, long panel, float[] most, int to) {
<#if !asVectors>
    MemorySegment.copy(panels, FLOAT, panel, leading, 0, leading.length);
</#if>
    for (int j = 0; j < LANES; j += V) {
<#if asVectors>
      long at = panel + (long) j * Float.BYTES;
      FloatVector r = FloatVector.fromMemorySegment(S, panels, at, ORDER);
      FloatVector l = FloatVector.fromMemorySegment(S, panels, at + STEP, ORDER);
<#else>
      float r = leading[j];
      float l = leading[LANES + j];
</#if>
      ${vector} x = ${add(sqrt(max(add(mul("l", "limit.logs"), "limit.base"), "0")), "r")};
      ${store(add(mul(mul("x", "x"), "limit.factor"), "limit.more"), "most", "to + j")};
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
      add(terms, w, end, panels, at, sum, to);
      boolean areBeyond = ${twin}PanelScan${asVectors?then("Kernel", "")}.areBeyond(sum, to, most, to, LANES);
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

  /** Adds the terms of the words [from, end) to the sums; the first word begins them. */
  private void add(
      float[] terms, int from, int end, MemorySegment panels, long at, float[] sum, int to) {
<#if asVectors>
    switch (LANES / V) {
      case 2 -> add2(terms, from, end, panels, at, sum, to);
      case 4 -> add4(terms, from, end, panels, at, sum, to);
      default -> {
        add4(terms, from, end, panels, at, sum, to);
        add4(terms, from, end, panels, at + 4 * BYTES, sum, to + 4 * V);
      }
    }
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
    for (long i = at; i != last; i += STEP, k += 2 * TERMS) {
<@query/>
      IntVector w;
<#list 0..<n as j>
      w = IntVector.fromMemorySegment(I, panels, i + ${j} * BYTES, ORDER);
<@addWord "a${j}"/>
</#list>
    }
<#list 0..<n as j>
    a${j}.intoArray(sum, to + ${j} * V);
</#list>
  }
</#list>
</#list>
<#else>
    if (from == 0) {
      Arrays.fill(sum, to, to + LANES, 0);
    }
    int length = LANES * (end - from);
    if (chunk.length < length) {
      chunk = new int[length];
    }
    MemorySegment.copy(panels, INT, at, chunk, 0, length);
    for (int i = 0, k = 2 * TERMS * from; i < length; i += LANES, k += 2 * TERMS) {
<@query/>
      for (int j = 0; j < LANES; j++) {
        int w = chunk[i + j];
<@addWord "sum[to + j]"/>
      }
    }
  }
</#if>
}
</@twins>
