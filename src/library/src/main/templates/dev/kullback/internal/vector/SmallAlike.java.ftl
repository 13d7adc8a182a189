<#include "Lanes.ftl">
<#-- Written out for vectors, which no method takes; in the twin a method, so that C2 inlines what calls it. -->
<#macro series coefficients x>
<#if asVectors>
<@polynomial "sum" coefficients x/>
<#else>
      double sum = polynomial(${coefficients}, ${x});
</#if>
</#macro>
<#-- Declares t = s² and what {@code x − 2 artanh s} is for {@code x − 2s = xs}. -->
<#macro less>
      ${vector} t = ${mul("s", "s")};
<@series "ARTANH" "t"/>
      ${vector} less = ${mul("s", sub("x", mul(mul("t", "2"), "sum")))};
</#macro>
<@twins "SmallAlike" "../formula/AlikeTerm">
package dev.kullback.internal.${asVectors?then("vector", "formula")};

<#if asVectors>
import dev.kullback.internal.formula.AlikeTerm;
</#if>
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.Series;
<@imports/>

<#if asVectors>
/** {@link AlikeTerm} in lanes: the same text, so the same bits. */
final class ${class} {
<@species/>
  private static final int ROWS = SmallKernel.ROWS;
<#else>
/** Half a term of KL where scales are alike, by operations that vectors have, too. */
public final class ${class} {
  /** Bounds within which scales are alike, on |s|, and on |s| of log-variances. */
  public static final double ALIKE = 0x1p-3;

  public static final double ALIKE_LOG = 0x1p-2;
</#if>

  /** Coefficients of {@code artanh s = s + s³ (1/3 + s²/5 + …)}, the last first; the next term is 2⁻⁵⁶ of the sum. */
  private static final double[] ARTANH = Series.artanh(8, 0);

  /** Coefficients of {@code e^s = 1 + s + s² (1/2! + s/3! + …)}, likewise. */
  private static final double[] EXP = Series.exponential(14, 2);

  private ${class}() {}

<#if asVectors>
  /**
   * Adds dimension h, for the listed vectors of columns, to the sum of terms, and s² to the sum that tells whether scales are alike; see {@link
   * SmallKernel}.
   */
  static void add(
      SmallOperands operands,
      double[] scales,
      int h,
      double[] rows,
      int index,
      int[] vectors,
      int[] listed,
      int count,
      double[] terms,
      double[] squares) {
    Scale kind = operands.q().kind();
    int d = operands.q().dimension();
    double[] columns = operands.columns().values();
    int r = 2 * ROWS + 3 * ROWS * h + index;
    for (int i = 0; i < count; i++) {
      int j = vectors[listed[i]];
      int k = j * (2 * d + 1) + 2 * h * V;
      int at = (j * d + h * V) * 2;
      DoubleVector sq = ${broadcast("rows[r + 2 * ROWS]")};
      DoubleVector sp = ${load("scales", "at")};
      DoubleVector w = ${load("scales", "at + V")};
      DoubleVector y = ${mul(sub(broadcast("rows[r]"), load("columns", "k")), "w")};
<#else>
  /**
   * Returns the half term for scales of one kind that double kernels hold. With {@code s = (q − p)/(q + p)} of the scales, {@code ln(1+x) = 2
   * artanh s} and {@code x − 2s = xs}. For standard deviations {@code a = (σq − σp)/σp} and {@code x − ln(1+x) = a² + 2 (a − ln(1+a))}.
   * Returns NaN where the scales are not alike, and no finite number where the means are too far apart.
   *
   * @param d μq − μp
   */
  static double of(Scale kind, double sq, double sp, double d) {
      double w = inverseStd(kind, sp);
      double y = d * w;
</#if>
      ${vector} s;
      ${vector} half;
      if (kind == Scale.LOG_VARIANCE) {
        s = ${sub("sq", "sp")};
<@series "EXP" "s"/>
        half = ${mul(mul(mul("s", "s"), "sum"), "0.5")};
      } else {
        ${vector} more = kind == Scale.PRECISION ? ${sub("sp", "sq")} : ${sub("sq", "sp")};
        s = ${div("more", add("sq", "sp"))};
<#if asVectors>
        DoubleVector inverse =
            kind == Scale.STD
                ? w
                : kind == Scale.VARIANCE ? ${load("columns", "k + V")} : ${broadcast("rows[r + ROWS]")};
<#else>
        double inverse = 1 / (kind == Scale.PRECISION ? sq : sp);
</#if>
        ${vector} x = ${mul("more", "inverse")};
<@less/>
        half = kind == Scale.STD ? ${add(mul(mul("x", "0.5"), "x"), "less")} : ${mul("less", "0.5")};
      }
      half = ${add("half", mul(mul("y", "0.5"), "y"))};
<#if asVectors>
      ${store(add(load("terms", "i * V"), "half"), "terms", "i * V")};
      ${store(fma("s", "s", load("squares", "i * V")), "squares", "i * V")};
    }
  }
<#else>
    return Math.abs(s) < (kind == Scale.LOG_VARIANCE ? ALIKE_LOG : ALIKE) ? half : Double.NaN;
  }

  /**
   * Returns {@code x − ln(1+x)} of {@code |x| < ½}. The logarithm's error, an ulp, is 4/x roundings of this. Near 0, {@code ln(1+x) = 2
   * artanh s} with {@code s = x/(2+x)} and {@code x − 2s = xs} gives it to 5 roundings.
   */
  static double lessLog(double x) {
    if (Math.abs(x) >= 0x1p-3) {
      return x - Math.log1p(x);
    }
    double s = x / (2 + x);
<@less/>
    return less;
  }

  private static double polynomial(double[] coefficients, double x) {
<@polynomial "sum" "coefficients" "x"/>
    return sum;
  }

  /** Returns 1/σ of a scale that double kernels hold. */
  public static double inverseStd(Scale kind, double s) {
    return switch (kind) {
      case STD -> 1 / s;
      case VARIANCE -> 1 / Math.sqrt(s);
      case LOG_VARIANCE -> Math.exp(-0.5 * s);
      case PRECISION -> Math.sqrt(s);
    };
  }
</#if>
}
</@twins>
