<#include "Lanes.ftl">
<#--
  Sums of derivatives over the pairs of a block of at most SIDE x SIDE, in float; the build derives those in double. Lanes are dimensions: a panel
  has, for each Gaussian, the FIELDS fields of W dimensions, those of GradientForm. Four rows at a time stay in registers while the columns of a chunk
  that have a cotangent for one of them pass, which lie with their sums in the L1 cache: a vector of each field, V lanes, behind the other. Of the loops named in `pairs` four rows do not fit 32 registers,
  so two go twice: Jeffreys' by parts takes 63 instead of 80 ms (1024 x 256, float), but 137 instead of 108 with 16 registers, as KL by parts 49 instead of 41
  with 32 (AVX-512 and UseAVX=2, Intel, CPU family 6, JDK 25.0.3).
-->
<#assign GROUP = 4>
<#-- The difference of v or of σ; see GradientForm.Difference. Where logarithms are near is a sign, as C2 boxes masks (Epilogue). -->
<#macro difference term r of>
<#switch of>
<#case "Logs">
        e = ${sub("l${r}", "cl")};
        t = ${fma("e", fma("e", fma("e", fma("e", broadcast("SERIES_5"), broadcast("SERIES_4")), broadcast("SERIES_3")), broadcast("0.5f")), broadcast("1"))};
        t = ${mul("t", mul("e", "ch"))};
<#if asVectors>
        near = ZERO.sub(${shiftRight(bits(sub(abs("e"), "NEAR")), "(Float.SIZE - 1)")});
<#else>
        near = Math.abs(e) < NEAR;
</#if>
        e = ${choose("near", "t", sub("h${r}", "ch"))};
<#break>
<#case "Squares">
        e = ${sub(fma("h${r}", "h${r}", "ch"), "cl")};
<#break>
<#case "Numbers">
        e = ${sub("h${r}", "ch")};
<#break>
<#case "Precisions">
        e = ${(term == "jeffreys")?then(mul(add("cr", "r${r}"), add("h${r}", "ch")), sub("cr", "r${r}"))};
<#break>
<#default>
        e = ${add(sub("h${r}", "ch"), sub("l${r}", "cl"))};
</#switch>
</#macro>
<#macro kl r of>
<#if of == "Precisions">
        t = ${mul("d", "cr")};
        a${r} = ${fma("g", "t", "a${r}")};
        b${r} = ${fma("g", "e", "b${r}")};
        e = ${mul("e", "h${r}")};
        a = ${fma("g", "t", "a")};
        b = ${fma("g", fma("d", "t", "e"), "b")};
<#else>
        t = ${mul("g", "cr")};
        a${r} = ${fma("t", "d", "a${r}")};
        b${r} = ${fma("t", "e", "b${r}")};
        t = ${fma("d", "d", "e")};
        a = ${fma("g", "d", "a")};
        b = ${fma("g", "t", "b")};
</#if>
</#macro>
<#-- r is −1/v of the row, so that a product with it is subtracted in one operation. -->
<#macro jeffreys r of>
        s = ${sub("cr", "r${r}")};
<#if of != "Precisions">
        e = ${mul("e", "s")};
</#if>
        t = ${mul("d", "s")};
        d = ${mul("d", "d")};
        a${r} = ${fma("g", "t", "a${r}")};
        a = ${fma("g", "t", "a")};
        b${r} = ${fma("g", fma("d", "r${r}", "e"), "b${r}")};
        b = ${fma("g", fma("d", "cr", "e"), "b")};
</#macro>
<#macro wasserstein2 r>
        a${r} = ${fma("g", "d", "a${r}")};
        b${r} = ${fma("g", "e", "b${r}")};
        a = ${fma("g", "d", "a")};
        b = ${fma("g", "e", "b")};
</#macro>
<#macro rows term of R>
<#local hasColumnLow = of != "Numbers" && of != "Precisions", hasRowLow = hasColumnLow && of != "Squares">
<#local hasRowPrecision = term == "jeffreys" || of == "Precisions">
<#local hasColumnVariance = of != "Precisions" || term == "jeffreys">

  private static void ${term}Of${of}${R}(
      float[] q,
<#list 0..<R as r>
      int q${r},
</#list>
      float[] p,
      float[] weights,
      int w,
      int[] list,
      int from,
      int end,
      float[] sumsQ,
      int atQ,
      float[] sumsP,
      int first) {
<#list 0..<R as r>
    ${vector} m${r} = ${load("q", "q${r}")};
    ${vector} h${r} = ${load("q", "q${r} + W")};
<#if hasRowLow>
    ${vector} l${r} = ${load("q", "q${r} + 2 * W")};
</#if>
<#if hasRowPrecision>
    ${vector} r${r} = ${(term == "jeffreys")?then(neg(load("q", "q${r} + 3 * W")), load("q", "q${r} + 3 * W"))};
</#if>
    ${vector} a${r} = ${zero()};
    ${vector} b${r} = ${zero()};
</#list>
    for (int k = from; k < end; k++) {
      int j = list[k];
      int c = (j - first) * (FIELDS * V);
      int to = (j - first) * (2 * V);
      ${vector} cm = ${load("p", "c")};
<#if hasColumnVariance>
      ${vector} ch = ${load("p", "c + V")};
</#if>
<#if hasColumnLow>
      ${vector} cl = ${load("p", "c + 2 * V")};
</#if>
<#if term != "wasserstein2">
      ${vector} cr = ${load("p", "c + 3 * V")};
</#if>
      ${vector} a = ${load("sumsP", "to")};
      ${vector} b = ${load("sumsP", "to + V")};
      ${vector} d, e, g<#if term != "wasserstein2" || of == "Logs">, t</#if><#if term == "jeffreys">, s</#if>;
<#if of == "Logs">
      ${asVectors?then("IntVector /*bits*/", "boolean")} near;
</#if>
<#list 0..<R as r>
      {
        g = ${broadcast("weights[w + ${r} * SIDE + j]")};
        d = ${sub("m${r}", "cm")};
<@difference term r of/>
<#if term == "kl"><@kl r of/><#elseif term == "jeffreys"><@jeffreys r of/><#else><@wasserstein2 r/></#if>
      }
</#list>
      ${store("a", "sumsP", "to")};
      ${store("b", "sumsP", "to + V")};
    }
<#list 0..<R as r>
    ${store(add("a${r}", load("sumsQ", "atQ + ${r} * (2 * W)")), "sumsQ", "atQ + ${r} * (2 * W)")};
    ${store(add((term == "kl" && of == "Precisions")?then(mul("b${r}", "h${r}"), "b${r}"), load("sumsQ", "atQ + ${r} * (2 * W) + W")), "sumsQ", "atQ + ${r} * (2 * W) + W")};
</#list>
  }
</#macro>
<#assign loops = [
  {"constant": "KL", "term": "kl", "of": ["Parts", "Logs", "Squares", "Numbers", "Precisions"], "pairs": []},
  {"constant": "JEFFREYS", "term": "jeffreys", "of": ["Parts", "Logs", "Squares", "Numbers", "Precisions"], "pairs": ["Parts", "Logs"]},
  {"constant": "WASSERSTEIN_2", "term": "wasserstein2", "of": ["Parts", "Logs", "Numbers"], "pairs": []}
]>
<#macro call term of R first>
${term}Of${of}${R}(q, <#list first..<first + R as r>q${r}, </#list>work.chunk, work.weights, (i + ${first}) * SIDE, work.list, from, end, work.rowSums, at + ${first} * (2 * W), work.chunkSums, column);
</#macro>
<#macro emitSums>
package dev.kullback.internal.vector;

import dev.kullback.internal.formula.PairGradient.Term;
import dev.kullback.internal.vector.GradientKernel.Difference;
import java.util.Arrays;
<@imports>
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
</@imports>

<#if asVectors>
/** Sums of derivatives over the pairs of a block, in the layout of {@link FloatGradientForm}. */
<#else>
/** {@link FloatGradientSums} without vectors: the same text, so the same bits. */
</#if>
final class ${class} {
<@species>
  private static final VectorSpecies<Integer> /*bits*/ BITS = S.withLanes(int /*bits*/.class);
  private static final IntVector /*bits*/ ZERO = IntVector /*bits*/.zero(BITS);
</@species>
  private static final int W = GradientKernel.W;
  private static final int FIELDS = FloatGradientForm.FIELDS;
  private static final int SIDE = GradientKernel.SIDE;
  private static final int CHUNK = GradientKernel.CHUNK;
  private static final int CHUNKS = SIDE / CHUNK;

  /** Rows whose terms are added to a chunk's sums of columns: of double all, as its bound allows for some thousand roundings. */
  private static final int PART = Float.SIZE == 32 ? CHUNK : SIDE;

  /** Difference of logarithms from which on that of the numbers loses few enough digits, and below which the series has them all. */
  private static final float NEAR = Float.SIZE == 32 ? 0x1p-4f : 0x1p-9f;

  private static final float SERIES_3 = 1f / 6;
  private static final float SERIES_4 = 1f / 24;
  private static final float SERIES_5 = 1f / 120;

  private ${class}() {}

  /**
   * Sums up the derivatives of W dimensions of a block, each times its cotangent.
   *
   * @param q panels of the rows, whose fields of these dimensions begin at {@code q0}
   * @param rows number of rows
   * @param p panels of the columns, likewise
   * @param work the block, which has the cotangents and receives the sums
   */
  static void block(
      Term term,
      Difference difference,
      float[] q,
      int q0,
      int rows,
      float[] p,
      int p0,
      int columns,
      FloatGradientBlock work) {
    float[] chunk = work.chunk;
    float[] chunkSums = work.chunkSums;
    Arrays.fill(work.rowSums, 0, Math.ceilDiv(rows, ${GROUP}) * (${GROUP} * 2 * W), 0);
    for (int lane = 0; lane < W; lane += V) {
      for (int from = 0; from < columns; from += CHUNK) {
        int n = Math.min(columns - from, CHUNK);
        pack(p, p0 + from * (FIELDS * W) + lane, n, chunk);
        if (difference == Difference.SQUARES) {
          square(n, chunk);
        }
        for (int part = 0; part < rows; part += PART) {
          Arrays.fill(chunkSums, 0, n * (2 * V), 0);
          int end = Math.min(rows, part + PART);
          for (int i = part; i < end; i += ${GROUP}) {
            rows(term, difference, q, q0 + lane, i, rows - 1, from, work, lane);
          }
          boolean isScaled = term == Term.KL && difference != Difference.PRECISIONS;
          addPart(isScaled, part == 0, chunk, n, chunkSums, work.columnSums, from * (2 * W) + lane);
        }
      }
    }
  }

  /** Whether the sums by scale of n Gaussians, all W of them, are of these magnitudes at least. */
  static boolean areTold(float[] sums, float[] least, int n) {
    ${vector} lack = ${zero()};
    for (int i = 0; i < n; i++) {
      ${vector} needed = ${broadcast("least[i]")};
      for (int lane = 0; lane < W; lane += V) {
        ${vector} size = ${abs(load("sums", "(2 * i + 1) * W + lane"))};
        ${vector} excess = ${sub("size", "needed")};
        lack = ${add(sub(abs("excess"), "excess"), "lack")}; // 0 unless it is negative
      }
    }
    return ${isEachGreater(broadcast("Float.MIN_VALUE"), "lack")};
  }

  /** Packs a vector of each field of n columns. */
  private static void pack(float[] p, int at, int n, float[] to) {
    for (int j = 0; j < n; j++, at += FIELDS * W) {
<#list 0..<4 as field>
      ${store(load("p", "at + ${field} * W"), "to", "(j * FIELDS + ${field}) * V")};
</#list>
    }
  }

  /** Replaces σ of n columns by σ² in two parts, the first of them negated. */
  private static void square(int n, float[] columns) {
    for (int j = 0; j < n; j++) {
      int at = (j * FIELDS + 1) * V;
      ${vector} x = ${load("columns", "at")};
      ${vector} square = ${mul("x", "x")};
      ${vector} high = ${neg("square")};
      ${store("high", "columns", "at")};
      ${store(fma("x", "x", "high"), "columns", "at + V")};
    }
  }

  /** Adds the sums of four rows from i on and of a chunk of the columns, which begins at {@code column}. */
  private static void rows(
      Term term,
      Difference difference,
      float[] q,
      int first,
      int i,
      int last,
      int column,
      FloatGradientBlock work,
      int lane) {
    int group = i / ${GROUP};
    int chunk = column / CHUNK;
    int from = chunk == 0 ? group * SIDE : work.ends[group * CHUNKS + chunk - 1];
    int end = work.ends[group * CHUNKS + chunk];
    if (from == end) {
      return;
    }
<#list 0..<GROUP as r>
    int q${r} = first + Math.min(i + ${r}, last) * (FIELDS * W);
</#list>
    int at = i * (2 * W) + lane;
    switch (term) {
<#list loops as loop>
      case ${loop.constant} -> {
        switch (difference) {
<#list ["Parts", "Logs", "Squares", "Numbers", "Precisions"] as of>
<#if loop.of?seq_contains(of)>
          case ${of?upper_case} -> {
<#if asVectors && loop.pairs?seq_contains(of)>
            if (VectorWidth.REGISTERS == 32) {
              <@call loop.term of 2 0/>
              <@call loop.term of 2 2/>
              return;
            }
</#if>
            <@call loop.term of GROUP 0/>
          }
<#else>
          case ${of?upper_case} -> throw new AssertionError(difference);
</#if>
</#list>
        }
      }
</#list>
    }
  }

  /** Adds a part's sums of n columns to the block's, times 1/v if that is left to do. */
  private static void addPart(
      boolean isScaled, boolean isFirst, float[] p, int n, float[] chunkSums, float[] sumsP, int first) {
    for (int j = 0; j < n; j++) {
      int to = first + j * (2 * W);
      ${vector} a = ${load("chunkSums", "j * (2 * V)")};
      ${vector} b = ${load("chunkSums", "j * (2 * V) + V")};
      if (isScaled) {
        ${vector} r = ${load("p", "(j * FIELDS + 3) * V")};
        a = ${mul("a", "r")};
        b = ${mul("b", "r")};
      }
      if (!isFirst) {
        a = ${add("a", load("sumsP", "to"))};
        b = ${add("b", load("sumsP", "to + W"))};
      }
      ${store("a", "sumsP", "to")};
      ${store("b", "sumsP", "to + W")};
    }
  }
<#list loops as loop>
<#list loop.of as of>
<@rows loop.term of GROUP/>
<#if asVectors && loop.pairs?seq_contains(of)><@rows loop.term of 2/></#if>
</#list>
</#list>
}
</#macro>
<@twins "FloatGradientSums" "FloatScalarGradientSums" "Float"><@emitSums/></@twins>
