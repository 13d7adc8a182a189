<#include "Lanes.ftl">
<#-- Four rows by one vector of columns, to spread the column loads, which cross cache lines; two rows ran at 60 % of this in float. -->
<#function rows><#return asVectors?then(4, 1)></#function>
<#macro parameters t term="" isWeighted=true hasSeries=true isMixed=true>
      ${t}[] mean,
      ${t}[] scale,
<#if isWeighted>
      ${t}[] weight,
</#if>
<#if term != "kl">
      ${t}[] spread,
</#if>
<#if isMixed>
      ${t}[] rest,
</#if>
      int first,
      int d,
<#list 0..<rows() as i>
      int i${i},
</#list>
      ${t}[] columns,
      int j,
      int length,
<#if term == "" || term == "chernoff">
      double weightQ,
</#if>
      double factor,
      ${t} limit,
<#if hasSeries>
      ${t}[] series,
</#if>
      ${t}[] acc,
      int to) {
</#macro>
<#function arguments term isMixed=false isWeighted=true hasSeries=true>
<#local text>mean, scale, ${isWeighted?then("weight, ", "")}${(term != "kl")?then("spread, ", "")}${isMixed?then("rest, ", "")}first, d, <#list 0..<rows() as i>i${i}, </#list>columns, j, length, ${(term == "chernoff")?then("weightQ, ", "")}factor, limit, ${hasSeries?then("series, ", "")}acc, to</#local>
<#return text>
</#function>
<#-- Declares a polynomial of x, whose coefficients c{from}, c{from + 1}, … descend. -->
<#macro horner sum x from count>
      ${vector} ${sum} = c${from};
<#list 1..<count as k>
      ${sum} = ${fma(sum, x, "c${from + k}")};
</#list>
</#macro>
<#-- A kernel of the term x + y² (E(y²) + y O(y²)) of so many coefficients, or without any of x + y². The scales' differences are y if unweighted, and have a second part if mixed. -->
<#macro tile name term even=0 odd=0 isMixed=false isWeighted=true>
<#local R = rows(), t = lane?lower_case, cast = (lane == "Float")?then("(float) ", "")>

  private static void ${name}${isMixed?then("OfMixed", "")}(
<@parameters t term isWeighted even gt 0 isMixed/>
<#list 0..<R as i>
    int k${i} = first + i${i} * d;
    ${vector} a${i} = ${zero()};
<#if even gt 0>
    ${vector} o${i} = ${zero()};
</#if>
</#list>
<#list 0..<(even + odd) as k>
    ${vector} c${k} = ${broadcast("series[${k}]")};
</#list>
<#if term == "chernoff">
    ${vector} weights = ${broadcast("${cast}weightQ")};
    ${vector} columnWeight = ${broadcast("${cast}(1 - weightQ)")};
</#if>
    for (int h = 0; h < length; h++) {
      int k = j + h * (${lane}NearForm.${isMixed?then("MIXED_", "")}FIELDS * ${lane}NearForm.V);
      ${vector} m = ${load("columns", "k")};
      ${vector} r = ${load("columns", "k + ${lane}NearForm.V")};
<#if term == "chernoff">
      r = ${mul("r", "columnWeight")};
</#if>
      ${vector} s = ${load("columns", "k + 2 * ${lane}NearForm.V")};
<#if isWeighted>
      ${vector} w = ${load("columns", "k + 3 * ${lane}NearForm.V")};
</#if>
<#if isMixed>
      ${vector} l = ${load("columns", "k + 4 * ${lane}NearForm.V")};
</#if>
      ${vector} x, y;
<#list 0..<R as i>
      x = ${sub(broadcast("mean[k${i} + h]"), "m")};
      y = ${sub(broadcast("scale[k${i} + h]"), "s")};
<#if isMixed>
      y = ${add("y", sub(broadcast("rest[k${i} + h]"), "l"))};
</#if>
<#if isWeighted>
<#if term == "kl">
      y = ${mul(mul("y", "w"), broadcast("weight[k${i} + h]"))};
<#else>
      y = ${mul("y", mul("w", broadcast("weight[k${i} + h]")))}; // the same but for its sign with q and p exchanged
</#if>
</#if>
<#-- x² by itself would underflow where x is far below 1, and the scales, too. -->
<#if term == "kl">
<#local square = mul(mul("x", "r"), "x")>
<#elseif term == "jeffreys">
<#local square = mul(mul("x", add("r", broadcast("spread[k${i} + h]"))), "x")>
<#else>
<#local square = mul(div("x", add("r", mul("weights", broadcast("spread[k${i} + h]")))), "x")>
</#if>
<#if even == 0>
      a${i} = ${add(fma("y", "y", square), "a${i}")};
<#else>
      ${vector} t${i} = ${mul("y", "y")};
<@horner "even${i}" "t${i}" 0 even/>
<#if odd gt 0>
<@horner "odd${i}" "t${i}" even odd/>
</#if>
      a${i} = ${add(fma("t${i}", (odd gt 0)?then(fma("y", "odd${i}", "even${i}"), "even${i}"), square), "a${i}")};
      o${i} = ${fma("t${i}", "t${i}", "o${i}")};
</#if>
</#list>
    }
<#list 0..<R as i>
    ${vector} rest${i} = ${sub(broadcast("limit"), (even == 0)?then("a", "o") + i)};
    // NaN beyond the limit
    a${i} = ${add("a${i}", mul(sqrt("rest${i}"), broadcast("0")))};
    ${store(mul("a${i}", broadcast("${cast}factor")), "acc", "i${i} * ${lane}Panels.NR + to")};
</#list>
  }
</#macro>
<#macro emitNear>
package dev.kullback.internal.vector;

import dev.kullback.internal.formula.NearTerm;
import dev.kullback.internal.numerics.Scale;
<#if asVectors>
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
</#if>

<#if asVectors>
/** Unrolled loops of {@link FloatNearKernel} and its twin in double, layouts as there. */
<#else>
/** {@link NearMicroKernel} without vectors: the same text, so the same bits. */
</#if>
final class ${class} {
  private ${class}() {}
<#list ["Float", "Double"] as of>
<#global lane = of, vector = type(of)>

  /**
   * Stores the divergences of rows i0 to i${rows() - 1} of a tile, whose first begins at {@code first}, and of the vector of columns at {@code j}, over
   * {@code length} dimensions, to {@code acc[i·NR + to]}; NaN beyond the form's limit.
   *
   * @param kind that of both batches' scales, unless they are mixed
   * @param spread v or 1/v of rows, where the term reads it
   * @param rest what variances of rows lack, if scales are mixed
   * @param weightQ weight of q's variance
   * @param limit of the sums that show whether the form holds
   * @param series coefficients of the terms that have a series, as {@link dev.kullback.internal.formula.NearSeries} gives them
   */
  static void tile${rows()}x1(
      NearTerm term,
      Scale kind,
      boolean isMixed,
<@parameters of?lower_case/>
    switch (term) {
<#if of == "Float">
      case KL -> {
        if (isMixed) {
          klOfMixed(${arguments("kl", true, true, false)});
        } else {
          kl(${arguments("kl", false, true, false)});
        }
      }
<#else>
      case KL -> {
        if (isMixed) {
          klOfMixed(${arguments("kl", true)});
        } else if (kind == Scale.LOG_VARIANCE) {
          klOfLogs(${arguments("kl", false, false)});
        } else {
          kl(${arguments("kl")});
        }
      }
</#if>
      case JEFFREYS -> {
        if (isMixed) {
          jeffreysOfMixed(${arguments("jeffreys", true)});
        } else {
          jeffreys(${arguments("jeffreys")});
        }
      }
      case CHERNOFF -> {
        if (isMixed) {
          chernoffOfMixed(${arguments("chernoff", true)});
        } else {
          chernoff(${arguments("chernoff")});
        }
      }
    }
  }
<#local text>
<#list [false, true] as isMixed>
<#if of == "Float">
<@tile "kl" "kl" 0 0 isMixed/>
<@tile "jeffreys" "jeffreys" 2 0 isMixed/>
<@tile "chernoff" "chernoff" 2 2 isMixed/>
<#else>
<@tile "kl" "kl" 2 7 isMixed/>
<@tile "jeffreys" "jeffreys" 5 0 isMixed/>
<@tile "chernoff" "chernoff" 8 8 isMixed/>
</#if>
</#list>
<#if of == "Double">
<@tile "klOfLogs" "kl" 5 5 false false/>
</#if>
</#local>
${text?replace("(S,", "(Species.${of?upper_case},")?replace("zero(S)", "zero(Species.${of?upper_case})")}
</#list>
}
</#macro>
<@twins "NearMicroKernel"><@emitNear/></@twins>
