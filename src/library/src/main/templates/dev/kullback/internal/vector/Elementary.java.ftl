<#include "Lanes.ftl">
<#-- Of x from 0 to 708 declares 2^−n and p = e^ρ − 1, where x = n ln 2 − ρ, |ρ| ≤ ½ ln 2. -->
<#macro exponential>
      ${vector} rounded = ${fma("x", broadcast("LOG2_E"), broadcast("ROUND"))};
      ${vector} n = ${sub("rounded", "ROUND")};
      ${vector} r = ${fma("n", broadcast("LN2_LOW"), fma("n", broadcast("LN2_HIGH"), neg("x")))};
      ${vector} p = ${broadcast("INVERSE_FACTORIALS[13]")};
<#list 12..0 as k>
      p = ${fma("p", "r", broadcast("INVERSE_FACTORIALS[${k}]"))};
</#list>
      p = ${fma(mul("p", "r"), "r", "r")};
      ${vector} power = ${ofBits(shiftLeft(sub(broadcast("1023L", "Long"), bits("rounded")), "52"))};
</#macro>
<#macro emitElementary>
package dev.kullback.internal.vector;

import dev.kullback.internal.numerics.Series;
<@imports>
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
</@imports>

<#if asVectors>
/** Logarithms of products, exponentials, and what is made of sums at last: Hellinger's distances and roots. */
<#else>
/** {@link Elementary} without vectors: the same text, so the same bits. */
</#if>
final class ${class} {
<@species>
  private static final VectorSpecies<Float> HALF = Species.HALF_FLOAT;
  private static final VectorSpecies<Long> L = Species.LONG;
</@species>

  /** The sum ln 2, of which the first part has 32 bits. */
  private static final double LN2_HIGH = 0x1.62e42feep-1;

  private static final double LN2_LOW = 0x1.a39ef35793c76p-33;

  private static final double MIDDLE = Math.sqrt(2);
  private static final double LN_MIDDLE = 0.3465735902799727;
  private static final double LOG2_E = 1 / Math.log(2);

  /** Distance of Bhattacharyya from which on Hellinger's is 1. */
  private static final double MOST = 60;

  /** A number whose last place is 1, to which integers are added to round numbers and to have them in the bits of a sum. */
  private static final double ROUND = 0x1.8p52;

  /** Coefficients 1/n! of {@code e^ρ − 1 = ρ + ρ² (1/2! + ρ/3! + …)}, of n = 2 on; the next term is below 2⁻⁵⁷ of the sum. */
  private static final double[] INVERSE_FACTORIALS = Series.exponential(2, 15);

  private ${class}() {}
<#list ["float", "double"] as t>

  /**
   * Makes {@code (1−α) r + ln(product·2^exponent)} of rows [from, to) of a panel, less the logarithms of the rows' determinants and the
   * columns', where {@code row} and {@code column} are the first ones' indices. Of a product {@code m·2^e}, 1 ≤ m < 2, with {@code
   * z = (m − c)/(m + c)}, c about √2, it is {@code e ln 2 + ln c + 2 artanh z}, and |z| is at most 0.172. Its error is below 4 units of 2⁻⁵³,
   * and one of the result; the coefficients of artanh's series from the tenth on are less than 2⁻⁵⁶ of the sum.
   *
   * @param width columns of a row${asVectors?then("", ", the only one")}
   */
  static void addLogarithms(
      double[] r,
      ${t}[] products,
      ${t}[] exponents,
      double bias,
      double alpha,
      int d,
      double[] logQ,
      int row,
      int from,
      int to,
      double[] logP,
      int column,
      int width) {
    ${vector} weight = ${broadcast("1 - alpha")};
    double constant = d * Math.log(alpha);
    for (int i = from; i < to; i++) {
      double logs = -2 * (1 - alpha) * logQ[row + i];
      for (int j = 0; j < width; j += V) {
        int k = ${asVectors?then("i * width + j", "j")};
<#if asVectors && t == "float">
        DoubleVector m = (DoubleVector) FloatVector.fromArray(HALF, products, k).convertShape(VectorOperators.F2D, S, 0);
        DoubleVector e = (DoubleVector) FloatVector.fromArray(HALF, exponents, k).convertShape(VectorOperators.F2D, S, 0);
<#else>
        ${vector} m = ${load("products", "k")};
        ${vector} e = ${load("exponents", "k")};
</#if>
        e = ${sub("e", "bias")};
        ${vector} z = ${div(sub("m", "MIDDLE"), add("m", "MIDDLE"))};
        ${vector} w = ${mul("z", "z")};
        ${vector} p = ${broadcast("2.0 / 19")};
<#list 8..0 as n>
        p = ${fma("p", "w", broadcast("2.0 / ${2 * n + 1}"))};
</#list>
        p = ${fma("p", "z", fma("e", broadcast("LN2_LOW"), broadcast("LN_MIDDLE")))};
        p = ${fma("e", broadcast("LN2_HIGH"), "p")};
        p = ${add("p", add(add(mul(load("logP", "column + j"), "(-2 * alpha)"), "logs"), "constant"))};
        ${store(fma(load("r", "k"), "weight", "p"), "r", "k")};
      }
    }
  }
</#list>

  /** Makes the roots of the first values, NaN of NaN. */
  static void toRoots(double[] values, int count) {
    for (int at = 0; at < count; at += V) {
      ${store(sqrt(load("values", "at")), "values", "at")};
    }
  }

  /**
   * Makes Hellinger's distances {@code √(1 − e^−B)} of the first Bhattacharyya distances B, NaN of NaN: with {@code B = n ln 2 − ρ}, |ρ| ≤ ½ ln
   * 2, it is the root of {@code (1 − 2^−n) − 2^−n (e^ρ − 1)}, of which the second part comes from a series; nothing cancels for n = 0, and
   * at most two bits do for n = 1.
   */
  static void toHellinger(double[] values, int count) {
    for (int at = 0; at < count; at += V) {
      ${vector} x = ${min(load("values", "at"), "MOST")};
<@exponential/>
      ${store(sqrt(fma(neg("power"), "p", sub(broadcast("1"), "power"))), "values", "at")};
    }
  }

  /** Makes e^(least − x) of numbers [from, to), each at least {@code least}, and about e^−708 of those for which it is no more. */
  static void toExponentials(double[] values, int from, int to, double least) {
    int at = from;
    for (; at + V <= to; at += V) {
      ${vector} x = ${min(sub(load("values", "at"), "least"), "708")};
<@exponential/>
      ${store(fma("power", "p", "power"), "values", "at")};
    }
<#if asVectors>
    ScalarElementary.toExponentials(values, at, to, least);
</#if>
  }
}
</#macro>
<@twins "Elementary"><@emitElementary/></@twins>
