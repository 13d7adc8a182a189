<#include "Lanes.ftl">
<#--
  Sums of derivatives over the pairs of a block of at most SIDE x SIDE, in float; the build derives those in double. Lanes are dimensions: a panel
  has, for each Gaussian, the FIELDS fields of W dimensions, those of GradientForm. Four rows at a time stay in registers while the columns that
  have a cotangent for one of them pass, whose own sums are in the L1 cache.
-->
<#assign R = 4>
<#-- The difference of the second fields: of v or σ in two parts, or of v or σ by their logarithms, the third fields. Where these are near is a sign, as C2 boxes masks (Epilogue). -->
<#macro difference r isOfLogs>
<#if isOfLogs>
        e = ${sub("l${r}", "cl")};
        t = ${fma("e", fma("e", fma("e", fma("e", broadcast("SERIES_5"), broadcast("SERIES_4")), broadcast("SERIES_3")), broadcast("0.5f")), broadcast("1"))};
        t = ${mul("t", mul("e", "ch"))};
<#if asVectors>
        near = ZERO.sub(${shiftRight(bits(sub(abs("e"), "NEAR")), "(Float.SIZE - 1)")});
<#else>
        near = Math.abs(e) < NEAR;
</#if>
        e = ${choose("near", "t", sub("h${r}", "ch"))};
<#else>
        e = ${add(sub("h${r}", "ch"), sub("l${r}", "cl"))};
</#if>
</#macro>
<#macro kl r>
        t = ${mul("g", "cr")};
        a${r} = ${fma("t", "d", "a${r}")};
        b${r} = ${fma("t", "e", "b${r}")};
        t = ${fma("d", "d", "e")};
        a = ${fma("g", "d", "a")};
        b = ${fma("g", "t", "b")};
</#macro>
<#macro jeffreys r>
        s = ${add("r${r}", "cr")};
        e = ${mul("e", "s")};
        t = ${mul("d", "s")};
        d = ${mul("d", "d")};
        a${r} = ${fma("g", "t", "a${r}")};
        a = ${fma("g", "t", "a")};
        b${r} = ${fma("g", sub("e", mul("d", "r${r}")), "b${r}")};
        b = ${fma("g", add("e", mul("d", "cr")), "b")};
</#macro>
<#macro wasserstein2 r>
        a${r} = ${fma("g", "d", "a${r}")};
        b${r} = ${fma("g", "e", "b${r}")};
        a = ${fma("g", "d", "a")};
        b = ${fma("g", "e", "b")};
</#macro>
<#macro rows name term isOfLogs>

  private static void ${name}(
      float[] q,
<#list 0..<R as r>
      int q${r},
</#list>
      float[] p,
      int p0,
      float[] weights,
      int w,
      int[] list,
      int from,
      int end,
      float[] sumsQ,
      int atQ,
      float[] sumsP,
      int lane) {
<#list 0..<R as r>
    ${vector} m${r} = ${load("q", "q${r}")};
    ${vector} h${r} = ${load("q", "q${r} + W")};
    ${vector} l${r} = ${load("q", "q${r} + 2 * W")};
<#if term == "jeffreys">
    ${vector} r${r} = ${load("q", "q${r} + 3 * W")};
</#if>
    ${vector} a${r} = ${zero()};
    ${vector} b${r} = ${zero()};
</#list>
    for (int k = from; k < end; k++) {
      int j = list[k];
      int c = p0 + j * (FIELDS * W);
      int to = j * (2 * W) + lane;
      ${vector} cm = ${load("p", "c")};
      ${vector} ch = ${load("p", "c + W")};
      ${vector} cl = ${load("p", "c + 2 * W")};
<#if term != "wasserstein2">
      ${vector} cr = ${load("p", "c + 3 * W")};
</#if>
      ${vector} a = ${load("sumsP", "to")};
      ${vector} b = ${load("sumsP", "to + W")};
      ${vector} d, e, g<#if term != "wasserstein2" || isOfLogs>, t</#if><#if term == "jeffreys">, s</#if>;
<#if isOfLogs>
      ${asVectors?then("IntVector /*bits*/", "boolean")} near;
</#if>
<#list 0..<R as r>
      {
        g = ${broadcast("weights[w + ${r} * SIDE + j]")};
        d = ${sub("m${r}", "cm")};
<@difference r isOfLogs/>
<#if term == "kl"><@kl r/><#elseif term == "jeffreys"><@jeffreys r/><#else><@wasserstein2 r/></#if>
      }
</#list>
      ${store("a", "sumsP", "to")};
      ${store("b", "sumsP", "to + W")};
    }
<#list 0..<R as r>
    ${store(add("a${r}", load("sumsQ", "atQ + ${r} * (2 * W)")), "sumsQ", "atQ + ${r} * (2 * W)")};
    ${store(add("b${r}", load("sumsQ", "atQ + ${r} * (2 * W) + W")), "sumsQ", "atQ + ${r} * (2 * W) + W")};
</#list>
  }
</#macro>
<#assign loops = [
  {"constant": "KL", "term": "kl"},
  {"constant": "JEFFREYS", "term": "jeffreys"},
  {"constant": "WASSERSTEIN_2", "term": "wasserstein2"}
]>
<#macro emitSums>
package dev.kullback.internal.vector;

import dev.kullback.internal.formula.PairGradient.Term;
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
   * @param weights the cotangents, SIDE a row, 0 in rows up to the next multiple of four
   * @param list columns that have a cotangent, SIDE for each four rows
   * @param ends the end of each chunk of columns in the list of each four rows
   * @param sumsQ receives two sums for each dimension of each row, SIDE rows: by the mean and by the scale
   * @param sumsP receives those of each column, negated
   * @param chunkSums working memory for those of a chunk
   */
  static void block(
      Term term,
      boolean areOfLogs,
      float[] q,
      int q0,
      int rows,
      float[] p,
      int p0,
      int columns,
      float[] weights,
      int[] list,
      int[] ends,
      float[] sumsQ,
      float[] sumsP,
      float[] chunkSums) {
    Arrays.fill(sumsQ, 0, Math.ceilDiv(rows, ${R}) * (${R} * 2 * W), 0);
    Arrays.fill(sumsP, 0, columns * (2 * W), 0);
    for (int lane = 0; lane < W; lane += V) {
      for (int part = 0; part * CHUNK < rows; part++) {
        for (int chunk = 0; chunk * CHUNK < columns; chunk++) {
          Arrays.fill(chunkSums, 0);
          int end = Math.min(rows, (part + 1) * CHUNK);
          for (int i = part * CHUNK; i < end; i += ${R}) {
            rows(term, areOfLogs, q, q0 + lane, i, rows - 1, p, p0 + lane, chunk, weights, list, ends, sumsQ, chunkSums, lane);
          }
          addChunk(term, p, p0 + lane, chunk * CHUNK, Math.min(columns, (chunk + 1) * CHUNK), chunkSums, sumsP, lane);
        }
      }
    }
  }

  /** Adds the sums of four rows from i on and of a chunk of the columns. */
  private static void rows(
      Term term,
      boolean areOfLogs,
      float[] q,
      int first,
      int i,
      int last,
      float[] p,
      int p0,
      int chunk,
      float[] weights,
      int[] list,
      int[] ends,
      float[] sumsQ,
      float[] sumsP,
      int lane) {
    int group = i / ${R};
    int from = chunk == 0 ? group * SIDE : ends[group * CHUNKS + chunk - 1];
    int end = ends[group * CHUNKS + chunk];
    if (from == end) {
      return;
    }
<#list 0..<R as r>
    int q${r} = first + Math.min(i + ${r}, last) * (FIELDS * W);
</#list>
    int at = i * (2 * W) + lane;
    int to = lane - chunk * CHUNK * (2 * W);
    switch (term) {
<#list loops as loop>
      case ${loop.constant} -> {
        if (areOfLogs) {
          ${loop.term}OfLogs(q, <#list 0..<R as r>q${r}, </#list>p, p0, weights, i * SIDE, list, from, end, sumsQ, at, sumsP, to);
        } else {
          ${loop.term}(q, <#list 0..<R as r>q${r}, </#list>p, p0, weights, i * SIDE, list, from, end, sumsQ, at, sumsP, to);
        }
      }
</#list>
    }
  }

  /** Adds a chunk's sums of columns, times what depends on the column alone. */
  private static void addChunk(
      Term term, float[] p, int p0, int from, int end, float[] chunkSums, float[] sumsP, int lane) {
    for (int j = from; j < end; j++) {
      int at = (j - from) * (2 * W) + lane;
      int to = j * (2 * W) + lane;
      ${vector} a = ${load("chunkSums", "at")};
      ${vector} b = ${load("chunkSums", "at + W")};
      if (term == Term.KL) {
        ${vector} r = ${load("p", "p0 + (j * FIELDS + 3) * W")};
        a = ${mul("a", "r")};
        b = ${mul("b", "r")};
      }
      ${store(add("a", load("sumsP", "to")), "sumsP", "to")};
      ${store(add("b", load("sumsP", "to + W")), "sumsP", "to + W")};
    }
  }
<#list loops as loop>
<@rows loop.term loop.term false/>
<@rows loop.term + "OfLogs" loop.term true/>
</#list>
}
</#macro>
<@twins "FloatGradientSums" "FloatScalarGradientSums" "Float"><@emitSums/></@twins>
