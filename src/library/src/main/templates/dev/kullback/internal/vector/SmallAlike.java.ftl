<#include "Lanes.ftl">
<#-- Of one number, the same bits wherever vectors run, and no BigDecimal elsewhere. -->
<#function sum x y z><#return asVectors?then(fma(x, y, z), "Fma.of(${x}, ${y}, ${z})")></#function>
<#-- Broadcasts a polynomial's coefficients, for its loop; the twin reads them where it needs them. -->
<#macro coefficients array count>
<#if asVectors>
<#list 0..<count as k>
    DoubleVector c${k} = ${broadcast("AlikeTerm.${array}[${k}]")};
</#list>
</#if>
</#macro>
<#-- Declares the polynomial of x. -->
<#macro horner series array count x>
      ${vector} ${series} = ${asVectors?then("c0", "${array}[0]")};
<#list 1..<count as k>
      ${series} = ${sum(series, x, asVectors?then("c${k}", "${array}[${k}]"))};
</#list>
</#macro>
<#-- Declares half a term of log-variances, and the square that tells whether they are alike. -->
<#macro logs>
      ${vector} s = ${sub("sq", "sp")};
      ${vector} t = ${mul("s", "s")};
<@horner "e" "EXP" 12 "s"/>
      ${vector} half = ${mul(sum("t", "e", mul("y", "y")), "0.5")};
</#macro>
<#-- x of scales of one kind, and y of the others: vectors have a loop for each kind, as where C2 merged them it took twice as long. -->
<#function of only x y><#return asVectors?then((only == kind)?then(x, y), "(kind == Scale.${only} ? ${x} : ${y})")></#function>
<#-- The same of other scales, by their inverses rq and rp. -->
<#macro ratios>
      ${vector} more = ${of("PRECISION", sub("sp", "sq"), sub("sq", "sp"))};
<#if !asVectors>
      more += rest;
<#elseif kind == "MIXED">
      more = ${add("more", sub("lq", "lp"))};
</#if>
      ${vector} a = ${mul("more", "rp")};
      ${vector} b = ${mul("more", "rq")};
      ${vector} s = ${add("a", "b")};
      ${vector} t = ${mul("s", "s")};
<@horner "g" "LESS" 8 "t"/>
      ${vector} half = ${mul(of("STD", sum("s", sum("t", "g", "a"), mul("y", "y")), sum("y", "y", mul(sum("a", "b", mul(mul("s", "t"), "g")), "0.5"))), "0.5")};
</#macro>
<#assign ROWS = 4, DIMENSIONS = 4, MIXED_DIMENSIONS = 2, KINDS = ["STD", "VARIANCE", "LOG_VARIANCE", "PRECISION"]>
<#-- The index of the first row's s of dimension h, as SmallKernel lays rows out. -->
<#function at h><#return 2 * ROWS + (3 * h + 2) * ROWS></#function>
<#-- Goes through the listed vectors of columns, whose sums stay in registers: a loop for each dimension took 8.0 times the usual time, not 6.9 (D = 4, Intel, AVX-512). -->
<#macro loop name dimensions=DIMENSIONS>
<#global kind = name>
<#local isMixed = kind == "MIXED", fields = isMixed?then(4, 2)>
  private static void store${kind?split("_")?first?lower_case?cap_first}(
<@parameters true/>
<#if kind == "LOG_VARIANCE">
<@coefficients "EXP" 12/>
<#else>
<@coefficients "LESS" 8/>
<#list 0..<(isMixed?then(0, dimensions)) as h>
    DoubleVector rq${h} = ${broadcast("1 / rows[${at(h)} + index]")};
</#list>
</#if>
    int d = operands.q().dimension();
    double[] columns = operands.columns().values();
    for (int i = 0; i < count; i++) {
      int j = vectors[listed[i]];
      int k = j * (2 * d + 1);
      int at = j * d * ${fields};
      DoubleVector sum = ${zero()};
      DoubleVector squares = ${zero()};
<#list 0..<dimensions as h>
<#if h gt 0>
      if (d > ${h}) {
<#else>
      {
</#if>
      DoubleVector w = ${load("scales", "at + ${fields * (h + 1) - 1} * V")};
      DoubleVector y = ${mul(sub(broadcast("rows[${at(h) - 2 * ROWS} + index]"), load("columns", "k + ${2 * h} * V")), "w")};
<#if isMixed>
      DoubleVector sq = ${broadcast("ofRows[row + ${4 * h} * V]")};
      DoubleVector lq = ${broadcast("ofRows[row + ${4 * h + 1} * V]")};
      DoubleVector rq = ${broadcast("ofRows[row + ${4 * h + 2} * V]")};
      DoubleVector sp = ${load("scales", "at + ${4 * h} * V")};
      DoubleVector lp = ${load("scales", "at + ${4 * h + 1} * V")};
      DoubleVector rp = ${load("scales", "at + ${4 * h + 2} * V")};
<@ratios/>
<#else>
      DoubleVector sq = ${broadcast("rows[${at(h)} + index]")};
      DoubleVector raw = ${load("scales", "at + ${2 * h} * V")};
</#if>
<#if kind == "LOG_VARIANCE">
      DoubleVector sp = raw;
<@logs/>
<#elseif !isMixed>
      DoubleVector rq = rq${h};
<#if kind != "STD">
      DoubleVector other = ${load("columns", "k + ${2 * h + 1} * V")};
</#if>
      DoubleVector sp = ${of("PRECISION", "other", "raw")};
      DoubleVector rp = ${of("STD", "w", of("VARIANCE", "other", "raw"))};
<@ratios/>
</#if>
      sum = ${add("half", "sum")};
      squares = ${add("t", "squares")};
      }
</#list>
      ${store("sum", "terms", "i * V")};
      ${store("squares", "sums", "i * V")};
    }
  }
</#macro>
<#macro parameters ofLoop=false>
      SmallOperands operands,
<#if !ofLoop>
      int i,
<#else>
      double[] scales,
<#if kind == "MIXED">
      double[] ofRows,
      int row,
</#if>
</#if>
      double[] rows,
      int index,
      int[] vectors,
      int[] listed,
      int count,
      double[] terms,
      double[] sums) {
</#macro>
<@twins "SmallAlike" "../formula/AlikeTerm">
package dev.kullback.internal.${asVectors?then("vector", "formula")};

<#if asVectors>
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.AlikeTerm;
<@imports/>

/** {@link AlikeTerm} in lanes: the same text, so the same bits. */
final class ${class} {
<@species/>
  private ${class}() {}

  /**
   * Stores, of row i and for the listed vectors of columns, the sum of terms, and that of the s² that tells whether scales are alike; see {@link SmallKernel}.
   */
  static void store(
<@parameters/>
    DiagonalBatch q = operands.q();
    if (q.kind() != operands.p().kind()) {
      double[] ofRows = SmallOperands.VARIANCES.of(q);
      int row = i / V * V * 4 * q.dimension() + i % V;
      storeMixed(operands, SmallOperands.VARIANCES.of(operands.p()), ofRows, row, rows, index, vectors, listed, count, terms, sums);
      return;
    }
    double[] scales = SmallOperands.SCALES.of(operands.p());
    switch (q.kind()) {
<#list KINDS as name>
      case ${name} -> store${name?split("_")?first?lower_case?cap_first}(operands, scales, rows, index, vectors, listed, count, terms, sums);
</#list>
    }
  }
<#list KINDS as name>

<@loop name/>
</#list>

<@loop "MIXED" MIXED_DIMENSIONS/>
}
<#else>
import dev.kullback.internal.numerics.Fma;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.Series;

/** Half a term of KL where scales are alike, by operations that vectors have, too. */
public final class ${class} {
  /** Bounds within which scales are alike, on |s|, and on |s| of log-variances. */
  public static final double ALIKE = 0.5;

  public static final double ALIKE_LOG = 0x1p-2;

  /** Coefficients of {@code artanh s = s + s³ (1/3 + s²/5 + …)}, the last first; of |s| up to 1/15, the next term is 2⁻⁷³ of the sum. */
  private static final double[] ARTANH = Series.artanh(8, 0);

  /** Coefficients of {@code e^s = 1 + s + s² (1/2! + s/3! + …)}, likewise; the next term is 2⁻⁵⁹ of the sum. */
  public static final double[] EXP = Series.exponential(13, 2);

  /** Coefficients of g, likewise: at {@link #ALIKE} the polynomial is within 2⁻⁵⁴ of a term. */
  public static final double[] LESS = NearSeries.lessAsinh(8, ALIKE);

  private ${class}() {}

  /**
   * Returns the half term for scales of one kind that double kernels hold. With {@code a = (q − p)/p} and {@code b = (q − p)/q} of the scales
   * and {@code s = a + b}, the logarithm of their quotient is {@code arsinh(s/2) = (s − s³ g(s²))/2} and {@code a − b = ab}. So a term of
   * variances is {@code (ab + s³ g)/2}, and of standard deviations {@code s (a + s² g)}. There is no division but by one scale alone, and
   * less than a tenth of a term cancels. Returns NaN where the scales are not alike, and no finite number where the means are too far apart.
   *
   * @param rest what {@code sq − sp} lacks, as of variances in two parts
   * @param d μq − μp
   */
  static double of(Scale kind, double sq, double sp, double rest, double d) {
    double y = d * inverseStd(kind, sp);
    if (kind == Scale.LOG_VARIANCE) {
<@logs/>
      return t < ALIKE_LOG * ALIKE_LOG ? half : Double.NaN;
    }
    double rq = 1 / sq;
    double rp = 1 / sp;
<@ratios/>
    return t < ALIKE * ALIKE ? half : Double.NaN;
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
    double t = s * s;
<@polynomial "sum" "ARTANH" "t"/>
    return s * (x - t * 2 * sum);
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
}
</#if>
</@twins>
