<#include "../Lanes.ftl">
<#-- An fma where the machine has one, as every machine with vectors does. -->
<#function fused x y z><#return asVectors?then(fma(x, y, z), "Fma.of(${x}, ${y}, ${z})")></#function>
<#-- Adds sums to those of the lanes so far. -->
<#macro addTo array sums>
<#list sums as to, sum>
      ${store(add(sum, load(array, to + " + v")), array, to + " + v")};
</#list>
</#macro>
<#-- Takes x of scales of one kind. -->
<#macro excess kind>

  private void take${kind}(int from, int end) {
    double[] q = scaleQ;
    double[] p = scaleP;
<#if kind == "Std" || kind == "Variance">
    double[] ratios = this.ratios;
</#if>
    double[] excesses = this.excesses;
    for (int h = from; h < end; h += V) {
      ${vector} s = ${sub(load("q", "h"), load("p", "h"))};
<#nested>
      ${store("x", "excesses", "h")};
    }
  }
</#macro>
<#-- Adds the products of two columns with two others, of two pairs of matrices, to their sums. -->
<#macro products name x y z other>

  private void ${name}(<#if x == "u">int from, </#if>int row, int column, int length, int to, int toOther) {
    double[] x = this.${x};
    double[] y = this.${y};
    double[] z = this.${z};
<#if y != other>
    double[] other = this.${other};
</#if>
    double[] products = this.products;
    int next = columns * LANES;
    for (int v = 0; v < LANES; v += V) {
<#list ["s", "r"] as of><#list ["00", "01", "10", "11"] as place>
      ${vector} ${of}${place} = ${zero()};
</#list></#list>
      for (int t = v; t < length; t += LANES) {
<#list 0..1 as k>
        ${vector} x${k} = ${load("x", ((x == "u")?then("from", "row")) + " + ${k} * BLOCK + t")};
        ${vector} y${k} = ${load("y", "column + ${k} * BLOCK + t")};
        ${vector} z${k} = ${load("z", "row + ${k} * BLOCK + t")};
<#if y != other>
        ${vector} o${k} = ${load("other", "column + ${k} * BLOCK + t")};
</#if>
</#list>
<#list 0..1 as k><#list 0..1 as l>
        s${k}${l} = ${fused("x${k}", "y${l}", "s${k}${l}")};
        r${k}${l} = ${fused("z${k}", (y == other)?then("y${l}", "o${l}"), "r${k}${l}")};
</#list></#list>
      }
<@addTo "products" {"to": "s00", "to + LANES": "s01", "to + next": "s10", "to + next + LANES": "s11"}/>
<@addTo "products" {"toOther": "r00", "toOther + LANES": "r01", "toOther + next": "r10", "toOther + next + LANES": "r11"}/>
    }
  }
</#macro>
<@twins "LowRankVectorSums" "../../formula/LowRankScalarSums">
package dev.kullback.internal.${asVectors?then("vector.full", "formula")};

<#if asVectors>
import dev.kullback.internal.formula.LowRankSums;
<#else>
import dev.kullback.internal.numerics.Fma;
</#if>
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.Series;
<@imports/>

<#if asVectors>
/** {@link LowRankSums} on the Vector API. */
<#else>
/** {@link LowRankSums} without vectors: the same text, so the same bits. */
</#if>
public final class ${class} extends LowRankSums {
<@species/>

  /** Coefficients of {@code e^s = 1 + s + s² (1/2! + s/3! + …)}, the last first. */
  private static final double[] EXP = Series.exponential(14, 2);

  @Override
  protected void takeAlike(Scale kind, int from, int length) {
    switch (kind) {
      case STD -> takeStd(from, from + length);
      case VARIANCE -> takeVariance(from, from + length);
      case LOG_VARIANCE -> takeLogVariance(from, from + length);
      case PRECISION -> takePrecision(from, from + length);
    }
    weigh(from, from + length);
  }
<@excess "Std">
      ${vector} a = ${mul("s", load("ratios", "h"))};
      ${vector} x = ${mul("a", add("a", "2"))};
</@excess>
<@excess "Variance">
      ${vector} x = ${mul("s", load("ratios", "h"))};
</@excess>
<@excess "LogVariance">
<@polynomial "exp" "EXP" "s"/>
      ${vector} x = ${add("s", mul("ss", "exp"))};
</@excess>
<@excess "Precision">
      ${vector} x = ${div(neg("s"), load("q", "h"))};
</@excess>

  /** Takes c and d/v, and sums what is of the diagonal: with {@code y = x/(1+x)} and z = xy, {@code x − ln(1+x) = z/2 + (x+y)/2 (1 − u/sinh u)} of u = ln(1+x), t² = z/4. */
  private void weigh(int from, int end) {
    double[] meanQ = this.meanQ;
    double[] meanP = this.meanP;
    double[] inverses = this.inverses;
    double[] leverages = this.leverages;
    double[] excesses = this.excesses;
    double[] changes = this.changes;
    double[] differences = this.differences;
    for (int v = 0; v < LANES; v += V) {
      ${vector} squares = ${zero()};
      ${vector} less = ${zero()};
      ${vector} traces = ${zero()};
      ${vector} most = ${zero()};
      for (int h = from + v; h < end; h += LANES) {
        ${vector} difference = ${sub(load("meanQ", "h"), load("meanP", "h"))};
        ${vector} inverse = ${load("inverses", "h")};
        ${vector} weighed = ${mul("difference", "inverse")};
        ${store("weighed", "differences", "h")};
        squares = ${fused("difference", "weighed", "squares")};
        ${vector} x = ${load("excesses", "h")};
        ${vector} size = ${abs("x")};
        most = ${max("size", "most")};
        ${vector} y = ${div("x", add("x", "1"))};
        ${vector} change = ${mul("y", "inverse")};
        ${store("change", "changes", "h")};
        ${vector} xc = ${mul("x", "change")};
        traces = ${fused("xc", load("leverages", "h"), "traces")};
        ${vector} z = ${mul("x", "y")};
        ${vector} t = ${mul("z", "0.25")};
<@polynomial "sinh" "SINH" "t"/>
        ${vector} half = ${mul(mul(add("x", "y"), "0.5"), mul("t", "sinh"))};
        ${vector} term = ${add(mul("z", "0.5"), "half")};
        less = ${add("term", "less")};
      }
<@addTo "ofDiagonal" {"0": "squares", "LANES": "less", "2 * LANES": "traces"}/>
      ${store(max("most", load("ofDiagonal", "3 * LANES + v")), "ofDiagonal", "3 * LANES + v")};
    }
  }

  @Override
  protected void addSolved(int column, int solved, double by, int length) {
    double[] u = this.u;
    double[] solvedU = this.solvedU;
    for (int t = 0; t < length; t += V) {
      ${vector} x = ${load("u", "column + t")};
      ${vector} sum = ${load("solvedU", "solved + t")};
      ${store(fused("x", asVectors?then(broadcast("by"), "by"), "sum"), "solvedU", "solved + t")};
    }
  }

  @Override
  protected void addUp(int block, int length) {
    int from = block * columns * BLOCK;
    for (int k = 0; k < rank; k++) {
      weigh(block * BLOCK, from + k * BLOCK, k * BLOCK, length, k * LANES);
      if (mostExcess > 0) {
        change(block * BLOCK, from + k * BLOCK, k * BLOCK, length, k * LANES);
      }
    }
    int all = columns * columns * LANES;
    for (int k = 0; k < columns; k += 2) {
      int row = k * BLOCK;
      for (int l = 0; l < columns; l += 2) {
        int column = l * BLOCK;
        int to = (k * columns + l) * LANES;
        multiply(from + row, row, column, length, to, to + all);
        if (mostExcess > 0 && l <= k) {
          multiplyChanged(row, column, length, to + 2 * all, to + 3 * all);
        }
      }
    }
  }

  /** Computes a column of G and V⁻¹G, and sums that of UᵀV⁻¹d. */
  private void weigh(int h, int at, int column, int length, int to) {
    double[] inverses = this.inverses;
    double[] differences = this.differences;
    double[] u = this.u;
    double[] w = this.w;
    double[] g = this.g;
    double[] weighedG = this.weighedG;
    for (int v = 0; v < LANES; v += V) {
      ${vector} sum = ${zero()};
      for (int t = v; t < length; t += LANES) {
        ${vector} x = ${load("u", "at + t")};
        ${vector} difference = ${sub(load("w", "column + t"), "x")};
        ${store("difference", "g", "column + t")};
        ${store(mul("difference", load("inverses", "h + t")), "weighedG", "column + t")};
        sum = ${fused("x", load("differences", "h + t"), "sum")};
      }
<@addTo "ofColumns" {"to": "sum"}/>
    }
  }

  /** Computes a column of cG and cW_q, and sums what c weighs of it. */
  private void change(int h, int at, int column, int length, int to) {
    double[] changes = this.changes;
    double[] u = this.u;
    double[] solvedU = this.solvedU;
    double[] w = this.w;
    double[] g = this.g;
    double[] changedG = this.changedG;
    double[] changedW = this.changedW;
    int all = columns * LANES;
    for (int v = 0; v < LANES; v += V) {
      ${vector} sum = ${zero()};
      ${vector} sizeU = ${zero()};
      ${vector} sizeG = ${zero()};
      for (int t = v; t < length; t += LANES) {
        ${vector} c = ${load("changes", "h + t")};
        ${vector} difference = ${load("g", "column + t")};
        ${vector} changed = ${mul("c", "difference")};
        ${store("changed", "changedG", "column + t")};
        ${store(mul("c", load("w", "column + t")), "changedW", "column + t")};
        sum = ${fused("changed", load("solvedU", "at + t"), "sum")};
        ${vector} x = ${load("u", "at + t")};
        ${vector} size = ${abs("c")};
        sizeU = ${fused(mul("size", "x"), "x", "sizeU")};
        sizeG = ${fused(mul("size", "difference"), "difference", "sizeG")};
      }
<@addTo "ofColumns" {"all + to": "sum", "2 * all + to": "sizeU", "3 * all + to": "sizeG"}/>
    }
  }

<@products name="multiply" x="u" y="weighedG" z="g" other="weighedG"/>
<@products name="multiplyChanged" x="g" y="changedG" z="w" other="changedW"/>
}
</@twins>
