<#include "../Lanes.ftl">
<#macro lanes>
<#if asVectors>
    for (int p = from & -V; p < to; p += V) {
<#else>
    for (int e = from; e < to; e++) {
      int p = places[e];
</#if>
</#macro>
<@twins "MergerKernel" "../../formula/ScalarMergers">
package dev.kullback.internal.${asVectors?then("vector.full", "formula")};

<#if asVectors>
import dev.kullback.internal.formula.Excess;
import dev.kullback.internal.formula.MergerBounds;
import dev.kullback.internal.formula.ScalarMergers;
</#if>
<@imports>
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
</@imports>

<#if asVectors>
/** {@link ScalarMergers} with a pair in each lane, of all components of a panel. */
<#else>
/** {@link MergerBounds} without vectors, of listed components. */
</#if>
public final class ${class} implements MergerBounds {
<#if asVectors>
<@species>
  private static final VectorSpecies<Long> L = Species.LONG;
</@species>
</#if>

  /** Greatest exponent of a determinant whose logarithm is taken, or of its inverse. */
  private static final double MOST_EXPONENT = 1000;

  /** Of half a logarithm, at most: four units of 2⁻⁵³ of 2000 ln 2, and what is left out of the series. */
  private static final double ERROR = 0x1p-41;

  @Override
  public boolean takesAll() {
    return ${asVectors?c};
  }

  @Override
  public void set(int dimension, double[] own, double[] panel, int from, int to, int[] places, double[] bounds) {
    switch (dimension) {
<#list 1..8 as n>
      case ${n} -> setDeterminants${n}(own, panel, from, to, ${asVectors?then("", "places, ")}bounds);
</#list>
      default -> throw new AssertionError(dimension);
    }
    takeLogarithms((own.length - 1) * STRIDE, own, panel, from, to, ${asVectors?then("", "places, ")}bounds);
  }
<#list 1..8 as n>

  private static void setDeterminants${n}(double[] own, double[] panel, int from, int to, ${asVectors?then("", "int[] places, ")}double[] bounds) {
<@lanes/>
      ${vector} other = ${load("panel", "p")};
      ${vector} w = ${add("other", "own[0]")};
      ${vector} inverse = ${div(broadcast("1"), "w")};
      ${vector} both = ${mul(mul("inverse", "own[0]"), "other")};
<#list 0..<n as c>
      ${vector} d${c} = ${sub(load("panel", "p + ${1 + c} * STRIDE"), "own[${1 + c}]")};
      ${vector} s${c} = ${mul("both", "d${c}")};
</#list>
<#list 0..<n as r><#list 0..r as c>
<#assign k = 1 + n + r * (r + 1) / 2 + c>
      ${vector} t${r}${c} = ${mulAdd("s${r}", "d${c}", add(load("panel", "p + ${k} * STRIDE"), "own[${k}]"))};
</#list></#list>
      ${vector} product = ${mul("t00", "inverse")};
<#if n == 1>
      ${vector} condition = ${broadcast("1")};
<#else>
<#list 0..<n as c>
<#assign k = 1 + n + n * (n + 1) / 2 + c>
      ${vector} x${c} = ${add(load("panel", "p + ${k} * STRIDE"), "own[${k}]")};
</#list>
      ${vector} condition = ${mul("product", "x0")};
<#list 1..<n as c>
      condition = ${mulAdd(mul("t${c}${c}", "inverse"), "x${c}", "condition")};
</#list>
      condition = ${mul("condition", "inverse")};
</#if>
<#list 0..<n - 1 as c>
      ${vector} r${c} = ${div(broadcast("-1"), "t${c}${c}")};
<#list c + 1..<n as k>
      ${vector} f${k}${c} = ${mul("t${k}${c}", "r${c}")};
<#list k..<n as r>
      t${r}${k} = ${mulAdd("f${k}${c}", "t${r}${c}", "t${r}${k}")};
</#list></#list>
      product = ${mul("product", mul("t${c + 1}${c + 1}", "inverse"))};
</#list>
      condition = ${mul("condition", broadcast("-0x1p-52 * ${n * (n + 8)}"))};
      product = ${mulAdd("condition", abs("product"), "product")};
      ${store("product", "bounds", "p")};
    }
  }
</#list>

  /** Makes bounds of determinants from below. */
  private static void takeLogarithms(int logs, double[] own, double[] panel, int from, int to, ${asVectors?then("", "int[] places, ")}double[] bounds) {
<@lanes/>
      ${type("Long")} bits = ${bits(load("bounds", "p"))};
      ${type("Long")} exponent = ${exponent("bits")};
      ${vector} k = ${toDouble("exponent")};
      ${vector} m = ${mantissa("bits", "exponent")};
      ${vector} s = ${div(sub("m", "1"), add("m", "1"))};
      ${vector} square = ${mul("s", "s")};
      ${vector} tail = ${broadcast("1.0 / 15")}; // artanh s = s + s³ (1/3 + s²/5 + …), s² ≤ 0.03
<#list 5..0 as i>
      tail = ${mulAdd("square", "tail", broadcast("1.0 / ${2 * i + 3}"))};
</#list>
      s = ${mulAdd(mul("square", "tail"), "s", "s")};
      ${vector} w = ${add(load("panel", "p"), "own[0]")};
      ${vector} half = ${mulAdd("k", broadcast("0.5 * Excess.LN2"), sub("s", "ERROR"))};
      ${vector} ofBoth = ${add(load("panel", "p + logs"), "own[logs / STRIDE]")};
      k = ${sub(abs("k"), "MOST_EXPONENT")};
      k = ${add(abs("k"), "k")}; // not a maximum, which takes care of NaN and −0
      ${store(mulAdd("k", broadcast("LEAST"), mulAdd("w", "half", "ofBoth")), "bounds", "p")};
    }
  }
}
</@twins>
