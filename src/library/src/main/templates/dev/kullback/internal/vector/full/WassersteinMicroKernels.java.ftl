<#include "../Lanes.ftl">
<#-- Makes a vector one element that of its reflection, as the squared length tells, and keeps the factor; if the vector is next to nothing, 0. -->
<#macro reflect of at>
    ${vector} f = ${load(of, at)};
    ${type("Long")} sign = ${and(bits("f"), "Long.MIN_VALUE")};
    ${vector} pivot = ${ofBits(or(bits(sqrt("norm")), "sign"))};
    ${vector} g = ${add("f", "pivot")};
    ${store("g", of, at)};
    ${vector} factor = ${div(broadcast("-1"), mul("g", "pivot"))};
    ${type("Long")} less = ${shiftRight(sub(bits("norm"), "NOTHING"), 63)};
    ${store(ofBits(and(bits("factor"), sub("less", "1"))), "inverse", "0")};
</#macro>
<@twins "WassersteinMicroKernels">
package dev.kullback.internal.vector.full;

<@imports>
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
</@imports>

/**
 * Micro-kernels of {@link FullWassersteinKernel}<#if !asVectors> without vectors</#if>, a pair in each lane. Element r of column c of a matrix lies at {@code m[c·step + r·V …]}, and
 * element k of a vector at {@code k·V}.
 */
final class ${class} {
<@species>
  private static final VectorSpecies<Long> L = Species.LONG;
</@species>

  /** Squared length that counts as 0: what underflows of a longer one is below 2⁻⁸⁴ of it. */
  private static final long NOTHING = Double.doubleToRawLongBits(0x1p-900);

  private ${class}() {}

  /** Four rows and columns of {@code L_qᵀL_p}, whose factors have rows of n elements, zeros above the diagonal. */
  static void product(
      double[] q, double[] p, double[] m, int r, int c, int n, int d, int to, int step) {
    ${vector} x;
<#list 0..3 as j>
    ${vector} y${j};
</#list>
<#list 0..3 as i><#list 0..3 as j>
    ${vector} a${i}${j} = ${zero()};
</#list></#list>
    for (int k = Math.max(r, c); k < d; k++) {
      int from = (k * n + c) * V;
      int at = k * n + r;
<#list 0..3 as j>
      y${j} = ${load("p", "from + ${j} * V")};
</#list>
<#list 0..3 as i>
      x = ${broadcast("q[at + ${i}]")};
<#list 0..3 as j>
      a${i}${j} = ${fma("x", "y${j}", "a${i}${j}")};
</#list>
</#list>
    }
<#list 0..3 as j><#list 0..3 as i>
    ${store("a${i}${j}", "m", "to + ${j} * step + ${i} * V")};
</#list></#list>
  }

  /** Exchanges elements of column c above the diagonal for those of row c, in lanes whose bits are all set. */
  static void exchange(double[] m, int c, int step, long[] lanes) {
    ${type("Long")} chosen = ${load("lanes", "0", "Long")};
    for (int r = 0; r < c; r++) {
      int at = c * step + r * V;
      int other = r * step + c * V;
      ${type("Long")} x = ${bits(load("m", "at"))};
      ${type("Long")} y = ${bits(load("m", "other"))};
      ${type("Long")} change = ${and(xor("x", "y"), "chosen")};
      ${vector} a = ${ofBits(xor("x", "change"))};
      ${vector} b = ${ofBits(xor("y", "change"))};
      ${store("a", "m", "at")};
      ${store("b", "m", "other")};
    }
  }

  /** Sets {@code to} to row k of {@code m + w vᵀ + y xᵀ}, and then to its reflection; z to its squared length. */
  static void row(
      double[] m,
      double[] v,
      double[] x,
      double[] w,
      double[] y,
      double[] to,
      int k,
      int end,
      int step,
      double[] z,
      double[] inverse) {
    ${vector} wk = ${load("w", "k")};
    ${vector} yk = ${load("y", "k")};
    ${vector} norm = ${zero()};
    int at = k / V * step + k;
    for (int c = k; c < end; c += V) {
      ${vector} a = ${fma(load("v", "c"), "wk", load("m", "at"))};
      ${vector} b = ${fma(load("x", "c"), "yk", "a")};
      ${store("b", "to", "c")};
      norm = ${fma("b", "b", "norm")};
      at += step;
    }
    ${store("norm", "z", "2 * k")};
<@reflect "to" "k"/>
  }

  /** Sets y below row k to column k of {@code m + w vᵀ}, and then to its reflection; z to its squared length, and {@code dot} to wᵀy. */
  static void column(
      double[] m,
      double[] v,
      double[] w,
      double[] y,
      int k,
      int end,
      int step,
      double[] z,
      double[] inverse,
      double[] dot) {
    ${vector} vk = ${load("v", "k")};
    ${vector} norm = ${zero()};
    ${vector} product = ${zero()};
    int at = k / V * step;
    for (int r = k + V; r < end; r += V) {
      ${vector} wr = ${load("w", "r")};
      ${vector} a = ${fma("vk", "wr", load("m", "at + r"))};
      ${store("a", "y", "r")};
      norm = ${fma("a", "a", "norm")};
      product = ${fma("a", "wr", "product")};
    }
    ${store("norm", "z", "2 * k + V")};
<@reflect "y" "k + V"/>
    ${vector} more = ${fma("pivot", load("w", "k + V"), "product")};
    ${store("more", "dot", "0")};
  }

  /** Adds {@code w vᵀ + y xᵀ} to four columns from c on, and their product with the next v, whose reflection has that factor, to the next w. */
  static void advance(
      double[] m,
      double[] v,
      double[] x,
      double[] w,
      double[] y,
      double[] next,
      double[] product,
      double[] inverse,
      int c,
      int from,
      int end,
      int step) {
    ${vector} factor = ${load("inverse", "0")};
<#list 0..3 as j>
    ${vector} v${j} = ${load("v", "c + ${j} * V")};
    ${vector} x${j} = ${load("x", "c + ${j} * V")};
    ${vector} f${j} = ${mul(load("next", "c + ${j} * V"), "factor")};
</#list>
    int at0 = c / V * step;
<#list 1..3 as j>
    int at${j} = at${j - 1} + step;
</#list>
    for (int r = from; r < end; r += V) {
      ${vector} wr = ${load("w", "r")};
      ${vector} yr = ${load("y", "r")};
      ${vector} sum = ${load("product", "r")};
<#list 0..3 as j>
      ${vector} b${j} = ${fma("v${j}", "wr", load("m", "at${j} + r"))};
      ${vector} a${j} = ${fma("x${j}", "yr", "b${j}")};
      ${store("a${j}", "m", "at${j} + r")};
      sum = ${fma("f${j}", "a${j}", "sum")};
</#list>
      ${store("sum", "product", "r")};
    }
  }

  /** Sets x of four columns from c on to their product with y, but as if v times the last w had been added: times the reflection's factor. */
  static void dots(
      double[] m,
      double[] v,
      double[] x,
      double[] y,
      double[] inverse,
      double[] dot,
      int c,
      int from,
      int end,
      int step) {
    int at0 = c / V * step;
<#list 1..3 as j>
    int at${j} = at${j - 1} + step;
</#list>
<#list 0..3 as j>
    ${vector} s${j} = ${zero()};
</#list>
    for (int r = from; r < end; r += V) {
      ${vector} yr = ${load("y", "r")};
<#list 0..3 as j>
      s${j} = ${fma("yr", load("m", "at${j} + r"), "s${j}")};
</#list>
    }
    ${vector} factor = ${load("inverse", "0")};
    ${vector} wy = ${load("dot", "0")};
<#list 0..3 as j>
    ${vector} x${j} = ${mul(fma("wy", load("v", "c + ${j} * V"), "s${j}"), "factor")};
    ${store("x${j}", "x", "c + ${j} * V")};
</#list>
  }

  /** Adds the terms of four nodes to the sums of roots; see {@link RootNodes}. One division serves four pivots, none of which is below 1. */
  static void nodes(double[] z, int end, int node, double[] sums) {
    ${vector} one = ${broadcast("1")};
    ${vector} minus = ${broadcast("-1")};
<#list 0..3 as j>
    ${vector} t${j} = ${broadcast("RootNodes.PLACES[node + ${j}]")};
    ${vector} u${j} = ${broadcast("1")};
    ${vector} d${j} = ${zero()};
    ${vector} s${j} = ${zero()};
</#list>
    for (int k = 0; k < end; k += 2 * V) {
      ${vector} q = ${load("z", "k")};
      ${vector} e = ${load("z", "k + V")};
<#list 0..3 as j>
      ${vector} p${j} = ${fma("q", "t${j}", "u${j}")};
</#list>
      ${vector} p01 = ${mul("p0", "p1")};
      ${vector} p23 = ${mul("p2", "p3")};
      ${vector} all = ${div("one", mul("p01", "p23"))};
      ${vector} i01 = ${mul("all", "p23")};
      ${vector} i23 = ${mul("all", "p01")};
<#list ["i01 p1", "i01 p0", "i23 p3", "i23 p2"] as factors>
      ${vector} r${factors?index} = ${mul(factors?split(" ")[0], factors?split(" ")[1])};
</#list>
<#list 0..3 as j>
      ${vector} n${j} = ${fma("q", "t${j}", "d${j}")};
      s${j} = ${fma("r${j}", "n${j}", "s${j}")};
      ${vector} e${j} = ${mul("e", "t${j}")};
      ${vector} h${j} = ${mul("r${j}", "u${j}")};
      ${vector} y${j} = ${fma("minus", "d${j}", "u${j}")};
      d${j} = ${mul(mul("e${j}", "r${j}"), fma("y${j}", "h${j}", "d${j}"))};
      u${j} = ${fma("e${j}", "h${j}", "one")};
</#list>
    }
    ${vector} sum3 = ${mul("s3", "RootNodes.WEIGHTS[node + 3]")};
<#list 2..0 as j>
    ${vector} sum${j} = ${fma(broadcast("RootNodes.WEIGHTS[node + ${j}]"), "s${j}", "sum${j + 1}")};
</#list>
    ${vector} sum = ${add("sum0", load("sums", "0"))};
    ${store("sum", "sums", "0")};
  }
}
</@twins>
