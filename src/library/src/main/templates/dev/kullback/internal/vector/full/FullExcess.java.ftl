<#include "../Lanes.ftl">
<@twins "FullExcess" "../../formula/Excess">
package dev.kullback.internal.${asVectors?then("vector.full", "formula")};

<#if asVectors>
import dev.kullback.internal.formula.Excess;
</#if>
import dev.kullback.internal.numerics.Series;
<@imports>
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
</@imports>

<#if asVectors>
/** {@link Excess} in lanes: the same text, so the same bits. */
final class ${class} {
<@species>
  private static final VectorSpecies<Long> L = Species.LONG;
  private static final LongVector ZERO = LongVector.zero(L);
  private static final LongVector LEAST = ${bits(broadcast("Excess.LEAST_RATIO"))};
  private static final LongVector MOST = ${bits(broadcast("Excess.MOST_RATIO"))};
</@species>
<#else>
/**
 * The diagonal's terms of KL: {@code ½x² + x − ln(1+x)} for {@code x = s/t − 1}. Near 0 {@code ln(1+x) = 2 artanh a} with {@code a = x/(2+x)},
 * and {@code x − 2a = xa}; elsewhere the logarithm is that of a mantissa in [√½, √2) and its exponent.
 */
public final class ${class} {
  /** Bounds of the ratio whose logarithm is taken; beyond them two are subtracted. */
  public static final double LEAST_RATIO = 0x1p-1000;

  public static final double MOST_RATIO = 0x1p1000;

  /** Bits of a double's mantissa, the bias of its exponent, and an offset that makes mantissas be in [√½, √2). */
  public static final int MANTISSA_BITS = 52;

  public static final long BIAS = 1023;
  public static final long EXPONENT_OFFSET =
      (BIAS << MANTISSA_BITS) - Double.doubleToRawLongBits(Math.sqrt(0.5));

  /** Bits that turn an integer into a double 2⁵² greater, and what is to be subtracted from it. */
  public static final long INTEGER = 0x433L << MANTISSA_BITS;

  public static final double INTEGER_OFFSET = 0x1p52 + BIAS;

  public static final double LN2 = Math.log(2);
</#if>

  /** Coefficients of {@code artanh a = a (1 + a² (1/3 + a²/5 + …))}, the last first. For a² ≤ 1/9 the rest is 2⁻⁵⁶ of x − ln(1+x). */
  private static final double[] ARTANH = Series.artanh(15, 0);

  private ${class}() {}

<#if asVectors>
  /** Replaces n x, whole vectors, by their excess, NaN where the scalar form must decide; {@code ratios} are 1 + x, rounded. */
  static void of(double[] xs, double[] ratios, int n) {
    for (int i = 0; i < n; i += V) {
      ${vector} x = ${load("xs", "i")};
      LongVector bits = ${bits(load("ratios", "i"))};
      LongVector near = // all bits where |x| < ½
          ZERO.sub(${shiftRight(bits(sub(abs("x"), "0.5")), 63)});
<#else>
  /** Returns the excess of s/t, by operations that vectors have, too. */
  public static double of(double x, double s, double t) {
    boolean near = Math.abs(x) < 0.5;
    double r = near ? 1 : s / t;
    if (!near && !(r > LEAST_RATIO && r < MOST_RATIO)) {
      return x == Double.POSITIVE_INFINITY ? x : 0.5 * x * x + (x - (Math.log(s) - Math.log(t)));
    }
    long bits = Double.doubleToRawLongBits(r);
</#if>
      ${type("Long")} exponent = ${exponent("bits")};
      ${vector} m = ${mantissa("bits", "exponent")};
      ${vector} k = ${toDouble("exponent")};
      ${vector} u = ${choose("near", "x", sub("m", "1"))}; // m − 1 is exact
      ${vector} a = ${div("u", add("u", "2"))};
      ${vector} b = ${mul("a", "a")};
<@polynomial "sum" "ARTANH" "b" false/>
      ${vector} tail = ${mul(mul("b", "2"), "sum")};
      ${vector} log = ${add(mul("k", "Excess.LN2"), add(mul("a", "2"), mul("a", "tail")))};
      ${vector} rest = ${choose("near", mul("a", sub("x", "tail")), sub("x", "log"))};
      ${vector} y = ${add(mul(mul("x", "0.5"), "x"), "rest")};
<#if asVectors>
      // negative where least < ratio < most, for the bits of positive doubles rise with them
      LongVector held = LEAST.sub(bits).and(bits.sub(MOST)).and(bits.not()).or(near);
      LongVector none = ZERO.sub(${shiftRight("held.not()", 63)});
      ${store(ofBits(or(bits("y"), "none")), "xs", "i")};
    }
  }
<#else>
    return y;
  }
</#if>
}
</@twins>
