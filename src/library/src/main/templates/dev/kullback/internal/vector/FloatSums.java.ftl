<#include "Lanes.ftl">
<#--
  The sums of every formula's tiles, in float; the build derives those in double from what this makes. A formula has a line in `formulas`, and a
  macro of its name, its term. Each becomes a class on vectors and its scalar twin, which goes through the columns of two dimensions at a
  time, in loops that C2 makes vectors of: every array has a loop's index as its own, as C2 of JDK 25 takes others for one another's.

  fields  numbers of a dimension in a panel, the mean first
  fence   rows after which a kernel of 8 x 2 is fenced, 0 for never
  rows    of a kernel for 16 registers, two vectors wide; left out by a formula that multiplies variances
  usual   whether KL's shapes for a batch's last rows and columns are worth their code
  start   what sums of a chunk start from in float, if not from 0
  of      class of the formula, which has the sums where {when}; left out if both are those of the name
-->
<#assign formulas = {
  "Kl": {"fields": 2, "fence": 0, "rows": 4, "usual": true},
  "Wasserstein2": {"fields": 2, "fence": 2, "rows": 4, "usual": false, "start": "Float.SIZE == 32 ? Float.MIN_NORMAL : 0"},
  "Jeffreys": {"fields": 3, "fence": 0, "rows": 2, "usual": false},
  "Chernoff": {"fields": 2},
  "ChernoffNearZero": {"fields": 2, "of": "Chernoff", "when": "isNearZero"},
  "ChernoffNearOne": {"fields": 2, "of": "Chernoff", "when": "isNearOne"}
}>
<#-- Terms: of row i from the fields q0_i, q1_i, …, of column j from p0_j, …, to be added to a{i}_{j}; d and t are free, t is computed last. -->
<#-- [d² + v_i] / v_j. Subtracting v_j in every term takes a fourth instruction and another field: 52.6 against 55.8·10⁹ (i,j,h)/s. -->
<#--
  Log-densities of points could do with two operations, t = fma(x, 1/σ, −μ/σ) and fma(t, t, a): their contract holds where ‖μ/σ‖² is at most
  margin·tolerance·D/u². Sums by these took 0.77 of the time of the three here, and 0.82 to 0.86 of vectors of 256 bits, which have units for sums beside
  those for products. Matrices of 4096 x 4096 x 64 took 0.84 [0.82, 0.86] of KL's time, and 0.78 [0.75, 0.78], where they take 0.98 and 0.97 with
  KL's sums: both write 64 MB, and with huge pages 0.80. It was 210 lines, panels and two groups of kernels to compile beside KL's, and so was left
  (one thread's processor time, Intel, family 6 model 167, JDK 25.0.3).
-->
<#macro Kl i j R C>
      d = ${sub("q0_${i}", "p0_${j}")};
      t = ${fma("d", "d", "q1_${i}")};
      a${i}_${j} = ${fma("t", "p1_${j}", "a${i}_${j}")};
</#macro>
<#macro Wasserstein2 i j R C>
      d = ${sub("q0_${i}", "p0_${j}")};
      t = ${sub("q1_${i}", "p1_${j}")};
      a${i}_${j} = ${fma("t", "t", fma("d", "d", "a${i}_${j}"))};
</#macro>
<#-- Of 16 registers, 2 x 2 leave none for ones: 1.77 of KL's time, 4 x 1 with ones 1.94, unfenced 2.55 (float, Zen 3, JDK 25.0.3). -->
<#macro Jeffreys i j R C>
<#local isSum = !asVectors || R == 2 || (C == 2)?then(j, i % 2) == 0>
      d = ${sub("q0_${i}", "p0_${j}")};
      if (Float.SIZE == 32) {
        t = ${fma("d", "d", add("q1_${i}", "p1_${j}"))};
        a${i}_${j} = ${fma("t", isSum?then(add("q2_${i}", "p2_${j}"), fma("q2_${i}", "ONES", "p2_${j}")), "a${i}_${j}")};
      } else {
        t = ${sub("q1_${i}", "p1_${j}")};
        d = ${fma("d", "d", broadcast("TINY"))};
        a${i}_${j} = ${fma("t", sub("p2_${j}", "q2_${i}"), fma("d", add("q2_${i}", "p2_${j}"), "a${i}_${j}"))};
      }
</#macro>
<#-- A quotient d²/s, s = v_i + v_j, v_i weighted, is added to those before it over one denominator, the product of all s. -->
<#macro Chernoff i j R C>
      d = ${sub("q0_${i}", "p0_${j}")};
      s = ${add("q1_${i}", "p1_${j}")};
      n${i}_${j} = ${fma("s", "n${i}_${j}", mul(fma("d", "d", broadcast("TINY")), "m${i}_${j}"))};
      m${i}_${j} = ${mul("s", "m${i}_${j}")};
</#macro>
<#-- The same over 1 + s, s = c (v/v' − 1) of a weight c and its variance v, where c v/v' is q1_i p1_j; m is less 1. -->
<#macro excess i j inverse>
      d = ${sub("q0_${i}", "p0_${j}")};
      s = ${fma("q1_${i}", "p1_${j}", "less")};
      ${vector} f${i}_${j} = ${add("m${i}_${j}", "1")};
      n${i}_${j} = ${fma(fma(mul("d", inverse), "d", broadcast("TINY")), "f${i}_${j}", fma("s", "n${i}_${j}", "n${i}_${j}"))};
      m${i}_${j} = ${fma("s", "f${i}_${j}", "m${i}_${j}")};
</#macro>
<#macro ChernoffNearZero i j R C><@excess i j "q1_${i}"/></#macro>
<#macro ChernoffNearOne i j R C><@excess i j "p1_${j}"/></#macro>
<#-- A field of a row as kernels read it, of that of a column. -->
<#function rowField x f>
<#if name == "Kl" && f == 1><#return div(broadcast("1"), x)></#if>
<#if name == "Chernoff" && f == 1><#return mul(x, broadcast("weight"))></#if>
<#if isExcess && f == 1><#return mul(div(broadcast("1"), x), broadcast("weight"))></#if>
<#return x>
</#function>
<#function and x y><#return asVectors?then("${x}.and(${y})", "(${x} & ${y})")></#function>
<#function at i j><#return "to + ${i} * NR + ${j} * V"></#function>
<#-- The loop over dimensions; counted by the rows' index it saves three of 51 instructions. -->
<#macro dimensions C counted=false>
<#if counted>
    int end = r + length * (FIELDS * MR);
    int column = c - r * (NR / MR);
    for (int i = r; i < end; i += FIELDS * MR) {
      int j = column + i * (NR / MR);
<#else>
    for (int h = 0; h < length; h++) {
      int i = r + h * (FIELDS * MR);
      int j = c + h * (FIELDS * NR);
</#if>
<#list 0..<fields as f><#list 0..<C as j>
      ${vector} p${f}_${j} = ${load("columns", "j + ${f} * NR + ${j} * V")};
</#list></#list>
<#nested>
    }
</#macro>
<#macro row i>
<#list 0..<fields as f>
      ${vector} q${f}_${i} = ${broadcast("rows[i + ${f} * MR + ${i}]")};
</#list>
</#macro>
<#-- Sums by the twin: to a column's variables are added the terms of a row and H dimensions, from `state`, the variables' arrays. -->
<#macro lanes H state>
<#list 0..<H as k><#list 0..<fields as f>
      float q${f}_${k} = rows[r + ${k * fields + f}];
      float[] field${f}_${k} = columns[c + ${k * fields + f}];
</#list></#list>
      for (int j = 0; j < width; j++) {
        float d, ${isProduct?then("s", "t")};
<#list 0..<H as k>
<#list state as x, array>
        float ${x}${k}_${k} = ${(k == 0)?then("${array}[j]", "${x}${k - 1}_${k - 1}")};
</#list>
<#list 0..<fields as f>
        float p${f}_${k} = field${f}_${k}[j];
</#list>
<@.vars[name] k k 1 1/>
</#list>
<#list state as x, array>
        ${array}[j] = ${x}${H - 1}_${H - 1};
</#list>
      }
</#macro>
<#-- The same of `length` dimensions: two at a time, which load and store sums once, 9.3 against 7.4·10⁹ KLs' (i,j,h)/s. With eight C2 makes no vectors. -->
<#macro lanesOfAll state>
    int end = c + length * FIELDS;
    for (; c + FIELDS < end; c += 2 * FIELDS, r += 2 * FIELDS) {
<@lanes 2 state/>
    }
    if (c < end) {
<@lanes 1 state/>
    }
</#macro>
<#function tileName R C fence><#return "tile${R}x${C}" + (fence gt 0)?then("Fenced", "")></#function>
<#macro tile R C fence=0 suffix="">

  private static void ${tileName(R, C, fence)}${suffix}(
      float[] rows,
      int r,
      float[] columns,
      int c,
      int length,
      float[] acc,
      int to,
      boolean first) {
<#list 0..<R as i><#list 0..<C as j>
    ${vector} a${i}_${j} = ${start?has_content?then(broadcast("TINY"), zero())};
</#list></#list>
<@dimensions C fence == 1>
      ${vector} d, t;
<#list 0..<R as i>
<@row i/>
<#list 0..<C as j>
<@.vars[name] i j R C/>
</#list>
<#if fence gt 0 && i % fence == fence - 1 && i < R - 1>
      t.intoArray(acc, Tile.CAPACITY);
</#if>
</#list>
</@dimensions>
    if (!first) {
<#list 0..<R as i><#list 0..<C as j>
      a${i}_${j} = ${add("a${i}_${j}", load("acc", at(i, j)))};
</#list></#list>
    }
<#list 0..<R as i><#list 0..<C as j>
    ${store("a${i}_${j}", "acc", at(i, j))};
</#list></#list>
  }
</#macro>
<#-- The same of species HALF. -->
<#macro halfTile R C><#local text><@tile R C 0 "Half"/></#local>${text?replace("(S", "(HALF")}</#macro>
<#-- Takes the exponent b of a product m apart, and the numerator n with it; of 1 + m if m is less 1, which is left as it is where b is that of 1. -->
<#macro normalize n m at>
<#if isExcess>
      b = ${shiftRight(add(bits(add(m, "1")), "ROUND_UP"), "(Float.PRECISION - 1)")};
      power = ${ofBits(sub(asVectors?then("IntVector /*bits*/.broadcast(BITS, 2 * ONE)", "2 * ONE"), shiftLeft("b", "(Float.PRECISION - 1)")))};
      ${store(fma(m, "power", sub("power", "1")), "products", at)};
      ${store(mul(n, "power"), "numerators", at)};
      ${store(ofBits(add(bits(load("exponents", at)), "b")), "exponents", at)};
<#else>
      b = ${bits(m)};
      ${store(ofBits(asVectors?then("b.and(MANTISSA).or(ONE)", "((b & MANTISSA) | ONE)")), "products", at)};
      ${store(mul(n, ofBits(sub(asVectors?then("IntVector /*bits*/.broadcast(BITS, 2 * ONE)", "2 * ONE"), and("b", "~MANTISSA")))), "numerators", at)};
      ${store(ofBits(add(bits(load("exponents", at)), shiftRight("b", "(Float.PRECISION - 1)"))), "exponents", at)};
</#if>
</#macro>
<#-- Declares `value`, what a group adds to R: of a product whose exponent b is taken apart, ln(1 + m) = 2 artanh a, |a| ≤ 0.172. -->
<#macro quotient n m e>
      ${vector} m = ${load(m, "k")};
      ${vector} a = ${div("m", add("m", "2"))};
      ${vector} w = ${mul("a", "a")};
      ${vector} log = ${broadcast("2f / 19")};
<#list 8..0 as k>
      log = ${fma("log", "w", broadcast("2f / ${2 * k + 1}"))};
</#list>
      log = ${fma(sub(load(e, "k"), "bias"), broadcast("LN2"), mul("log", "a"))};
      ${vector} value = ${fma("log", broadcast("inverse"), mul(div(load(n, "k"), add("m", "1")), "quotientWeight"))};
</#macro>
<#macro productTile R C>

  private static void tile${R}x${C}(
      float[] rows,
      int r,
      float[] columns,
      int c,
      int length,
      float[] numerators,
      int to,
      float[] products,
      float[] exponents<#if isExcess>,
      float minusWeight</#if>) {
<#if isExcess>
    ${vector} less = ${broadcast("minusWeight")};
    ${vector} power;
</#if>
<#list 0..<R as i><#list 0..<C as j>
    ${vector} n${i}_${j} = ${load("numerators", at(i, j))};
    ${vector} m${i}_${j} = ${load("products", at(i, j))};
</#list></#list>
<@dimensions C>
      ${vector} d, s;
<#list 0..<R as i>
<@row i/>
<#list 0..<C as j>
<@.vars[name] i j R C/>
</#list>
</#list>
</@dimensions>
    IntVector /*bits*/ b;
<#list 0..<R as i><#list 0..<C as j>
<@normalize "n${i}_${j}" "m${i}_${j}" at(i, j)/>
</#list></#list>
  }
</#macro>
<#macro emitSums>
package dev.kullback.internal.vector;

import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.formula.TileBound;
<#if !asVectors>
import dev.kullback.internal.work.Worker;
</#if>
import java.util.Arrays;
<@imports>
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorShape;
</@imports>

<#if !asVectors>
/** {@link Float${name}Sums} without vectors: the same text, so the same bits. No class with vectors is loaded for it. */
<#elseif isExcess>
/**
 * Sums of a tile of {@link dev.kullback.internal.formula.${of}} of an order near ${(name == "ChernoffNearOne")?then("1", "0")} in float: {@code R = Σ w d²/((1 + s) v) + (1/c) Σ ln(1 + s) ${(name == "ChernoffNearOne")?then("− 2 Σ ln σq + 2 Σ ln σp", "+ 2 Σ ln σq − 2 Σ ln σp")}},
 * {@code s = c (v'/v − 1)}, with v' the variance of the weight c, the lesser one, and v the other. Quotients and logarithms of {@link #RUNS} dimensions have one
 * denominator, whose distance from 1 is kept, so that c is not lost however small it is.
 */
<#elseif isProduct>
/**
 * Sums the quotients of a tile of {@link dev.kullback.internal.formula.${of}} in float, and multiplies their denominators s: {@code R =
 * (1−α) Σ d²/s + ln Π s + D ln α − 2(1−α) Σ ln σq − 2α Σ ln σp}, {@code s = vq (1−α)/α + vp}. Quotients of {@link #RUNS} dimensions have
 * one denominator. {@code tileRxC} goes through up to {@link #RUN} dimensions of R rows and C vectors of columns, and then takes the
 * product's exponent apart.
 */
<#else>
/**
 * Sums R of a tile of {@link dev.kullback.internal.formula.${of}} in float. Layouts, for column panel b, row panel a, dimension h:
 *
 * <pre>
 * columns [b][h][FIELDS][NR]   a mean and scales of the NR columns of panel b; the vector side
 * rows    [a][h][FIELDS][MR]   of the MR rows of panel a; the broadcast side, packed from columns block by block
 * </pre>
 *
 * <p>{@code tileRxC} computes R rows by C vectors of columns over {@code length} dimensions, and adds them to {@code acc[to + row·NR +
 * column]}, or stores them there if they are the {@code first}. An entry's value depends on its row and column alone: every lane sees the
 * same operations in the same order, whatever the species, the tile and the position in it.
 *
 * <p>Fenced kernels are for 16 registers, and for 32 that of 8 x 2 of a formula with a {@code fence}, Wasserstein-2's. C2 of JDK 25 loads
 * all that an iteration loads at its start, and spills accumulators to make room for it. So each row, or every second, ends with a useless
 * store to the end of {@code acc}: C2 cannot move the next row's loads before it. Its index is constant, so it takes no register. Of
 * KL, 4 x 2 vectors of 256 bits run at 11 to 13·10⁹ (i,j,h)/s without it and at 19 to 20 with it; 8 x 1 at 18.5, 3 x 2 at 19, 10 x 1 at
 * 18.7 (from the L1 cache, D = 64; Zen 3, JDK 25.0.3, where two fma allow 24). The loop of those for 16 registers counts by the rows'
 * index, which saves three of 51 instructions and 5 % where another program uses the core; 8 x 1 was 15 % slower when counted that way.
 */
</#if>
final class ${class} extends ${asVectors?then("TileSums", "BlockSums.Scalar")}<float[]> {
<#if asVectors>
<@species>
<#if isProduct>
  private static final VectorSpecies<Integer> /*bits*/ BITS = S.withLanes(int /*bits*/.class);
</#if>

  /** MR lanes, or as many as a vector has. */
  private static final VectorSpecies<Float> ROW =
      VectorSpecies.of(
          float.class, VectorShape.forBitSize(Math.min(VectorWidth.BITS, FloatPanels.MR * Float.SIZE)));
<#if name == "Jeffreys">

  /** Makes a sum of a product, as processors that have units for sums have others for products. */
  private static final FloatVector ONES = FloatVector.broadcast(S, 1);
</#if>
<#if usual>

  /**
   * Whether up to half a vector of columns is computed in half vectors. Processors that split 512 bits do it in half the time: of 138 µs at
   * 100 x 256, 12 (Zen 4). Doubles would be the only ones of 256 bits, see {@link FloatTranspose}.
   */
  private static final boolean HALVES = Float.SIZE == 32 && VectorWidth.BITS == 512;

  private static final VectorSpecies<Float> HALF =
      VectorSpecies.of(float.class, VectorShape.forBitSize(VectorWidth.BITS / (HALVES ? 2 : 1)));
</#if>
</@species>
</#if>
<#if name != "Kl">

<#if start?has_content>
  /** Keeps sums of squares from being subnormal, which takes vectors 30 times as long (Intel, CPU family 6); the bound's noise covers it. */
  private static final float TINY = ${start};
<#else>
  /** Keeps squares from being subnormal, which takes vectors 30 times as long (Intel, CPU family 6); noises are far above it. */
  @SuppressWarnings("cast") // redundant in double
  private static final float TINY = (float) (Float.SIZE == 32 ? 0x1p-60 : 0x1p-700);
</#if>

</#if>
  private static final int FIELDS = ${fields};
  private static final int MR = ${asVectors?then("FloatPanels.MR", "1")};
  private static final int NR = FloatPanels.NR;

  /** Dimensions whose chunks add up in this precision before they are promoted to double. */
  private static final int PROMOTED = PairKl.BLOCKS;
<#if isProduct>

  /** Dimensions whose variances are multiplied before the product's exponent is taken apart. */
  private static final int RUN = TileBound.RUN;

  /** Dimensions whose quotients have one denominator. */
  private static final int RUNS = TileBound.RUNS;

  /** A number to whose bits an exponent is added as an integer: its last place is 1. */
  private static final float EXPONENT = 1.5f * (Float.SIZE == 32 ? 0x1p23f : 0x1p52f);

<#if !isExcess>
  /** Bits of a number's significand, and those of 1. */
  private static final int /*bits*/ MANTISSA = Float.floatToRawIntBits(Float.MIN_NORMAL) - 1;

</#if>
  private static final int /*bits*/ ONE = Float.floatToRawIntBits(1);

<#if isExcess>
  /** What rounds a number's bits so that its exponent is of a significand in [√½, √2). */
  @SuppressWarnings("cast") // redundant in double
  private static final int /*bits*/ ROUND_UP = ONE - Float.floatToRawIntBits((float) Math.sqrt(0.5));

  @SuppressWarnings("cast") // redundant in double
  private static final float LN2 = (float) Math.log(2);

  private final float inverse;
  private final float quotientWeight;
<#else>
  private final double alpha;
</#if>
  private final float weight;

<#if asVectors>
  /** Numerators, and the products' mantissas and exponents, laid out as {@code acc}. */
  private final float[] numerators = new float[acc.length];

  private final float[] products = new float[acc.length];
  private final float[] exponents = new float[acc.length];
<#else>
  /** The products' mantissas and exponents, laid out as {@code r}. */
  private final float[][] products = new float[ROWS][COLUMNS];

  private final float[][] exponents = new float[ROWS][COLUMNS];
</#if>
<#else>

  /** Dimensions that a micro-kernel accumulates. 32 costs 8 % at D = 256; 128 would double what KL's bound in float allows for. */
  private static final int KC = PairKl.BLOCK;
</#if>

  /** A block's rows, packed; grown on demand. */
  private float[] rows = {};
<#if !asVectors>

  /** Columns of some dimensions: of each the fields, one after the other. */
  private final float[][] columns = new float[${isProduct?then("RUNS", "KC")} * FIELDS][COLUMNS];

  /** Sums since the last promotion, laid out as {@code r}. */
  private final float[][] acc = new float[ROWS][COLUMNS];

  /** ${isProduct?then("Numerators", "Sums of a chunk")} of a row. */
  private final float[] sums = new float[COLUMNS];
<#else>

  /** Whether {@link #rows} are the block's. */
  private boolean arePacked;

  /** First column of the tile that was computed whole, if it is still there. */
  private int computed;
</#if>

<#if isProduct>
  @SuppressWarnings("cast") // redundant in double
</#if>
  ${class}(Formula formula) {
<#if asVectors>
    super(new float[Tile.CAPACITY + V], Tile.CAPACITY / Tile.ROWS / NR, NR, formula.factor());
<#else>
    super(formula.factor());
</#if>
<#if isProduct>
    weight = (float) formula.rowWeight();
<#if isExcess>
    inverse = 1 / weight;
    quotientWeight = ${(name == "ChernoffNearOne")?then("1 - weight", "(1 - weight) / weight")};
<#else>
    alpha = formula.alpha();
</#if>
</#if>
  }

  @Override
<#if asVectors>
  void startBlock(TileOperands operands) {
<#else>
  void startBlock(TileOperands operands, int row0, int row1) {
</#if>
    startBlock(operands, operands.q32(), operands.p32(), operands.precision32());
<#if asVectors>
    arePacked = false;
    computed = NONE;
<#else>
    this.row0 = row0;
    packRows(row0, row1);
</#if>
  }

  private void packRows(int first, int end) {
    int needed = Math.ceilDiv(end - first, MR) * MR * FIELDS * d;
    if (rows.length < needed) {
      rows = new float[needed];
    }
    float[] columns = valuesQ();
    int at = 0;
    for (int a = first; a < end; a += MR) {
      int k = (a - a % NR) * FIELDS * d + a % NR;
      for (int h = 0; h < d; h++, at += FIELDS * MR, k += FIELDS * NR) {
<#if asVectors>
        for (int i = 0; i < MR; i += ROW.length()) {
<#list 0..<fields as f>
          ${store(rowField(load("columns", "k + ${f} * NR + i"), f), "rows", "at + ${f} * MR + i")?replace("(S,", "(ROW,")};
</#list>
        }
<#else>
<#list 0..<fields as f>
        ${store(rowField(load("columns", "k + ${f} * NR"), f), "rows", "at + ${f}")};
</#list>
</#if>
      }
    }
  }

<#if asVectors>
  @Override
  void compute(Tile t, int from, int to) {
    if (computed == t.column) {
      return;
    }
    if (!arePacked) {
      packRows(t.row, t.row + t.rows);
      arePacked = true;
    }
    for (int k = 0; k * NR < t.columns; k++) {
      float[] sums = ${isProduct?then("acc", "d > PROMOTED ? acc : Epilogue.accumulators(acc, r[k])")};
      computePanel(
          ${isProduct?then("t.row, ", "")}from, to, t.column + k * NR, Math.min(NR, t.columns - k * NR), sums, r[k]);
      for (int i = from; i < to && t.isDiagonal; i++) {
        int j = t.row + i - t.column - k * NR;
        if (j >= 0 && j < NR) {
          sums[i * NR + j] = CERTAIN;
          r[k][i * NR + j] = CERTAIN;
        }
      }
    }
    computed = from == 0 && to == t.rows ? t.column : NONE;
  }

  @Override
  boolean isPromoted() {
    return ${isProduct?then("true", "d > PROMOTED")};
  }

<#if !isProduct>
  @Override
  void exercise(int calls) {
    float[] columns = new float[FIELDS * NR];
    Arrays.fill(columns, 1);
    if (rows.length < FIELDS * MR) {
      rows = new float[FIELDS * MR];
    }
    Arrays.fill(rows, 0, FIELDS * MR, 1);
    arePacked = false;
    computed = NONE;
    for (int n = 0; n < calls; n++) {
      for (int count = NR; count >= V<#if usual> / 2</#if>; count /= 2) {
        addTerms(0, ${usual?then("MR, ", "")}columns, 0, count, 1, acc, 0, n % 2 == 0);
      }
<#if usual>
      addTerms(0, 4, columns, 0, NR, 1, acc, 0, n % 2 == 0);
</#if>
    }
  }
</#if>

  @Override
  void promote(Tile t) {
    if (!isPromoted()) {
      Epilogue.promote(Epilogue.accumulators(acc, r[0]), r[0], 0, t.rows * NR, true);
    }
  }
<#else>
  /** Copies columns of dimensions from {@code h} on out of panels. */
  private void unpack(int column, int width, int h, int length) {
    float[] panels = valuesP();
    for (int j = 0; j < width; j += NR) {
      int from = ((column + j) * d + h * NR) * FIELDS;
      for (int k = 0; k < length * FIELDS; k++, from += NR) {
        System.arraycopy(panels, from, columns[k], j, NR);
      }
    }
  }

  @Override
  void compute(Worker worker, int from, int to, int column, int count) {
    int width = Math.ceilDiv(count, NR) * NR;
<#if isProduct>
<#if !isExcess>
    for (int i = from; i < to; i++) {
      Arrays.fill(products[i - from], 1);
      Arrays.fill(exponents[i - from], EXPONENT);
    }
</#if>
    for (int h = 0; h < d; h += RUNS) {
      int length = Math.min(RUNS, d - h);
      boolean first = h % PROMOTED == 0;
      boolean last = h + RUNS >= d || (h + RUNS) % PROMOTED == 0;
      unpack(column, width, h, length);
      for (int i = from; i < to; i++) {
        worker.pass((long) width * length);
        float[] product = products[i - from];
        Arrays.fill(sums, 0, width, 0);
<#if isExcess>
        Arrays.fill(product, 0, width, 0);
        Arrays.fill(exponents[i - from], 0, width, EXPONENT);
</#if>
        for (int run = 0; run < length; run += RUN) {
          int r = (i * d + h + run) * FIELDS;
          int some = Math.min(RUN, length - run);
          multiply(rows, r, columns, run * FIELDS, some, width, sums, product<#if isExcess>, -weight</#if>);
          normalize(width, sums, product, exponents[i - from]);
        }
        divide(width, sums, product<#if isExcess>, exponents[i - from], bias(length)</#if>);
        add(width, sums, acc[i - from], first);
        if (last) {
          promote(width, acc[i - from], r[i - from], h < PROMOTED);
        }
      }
    }
<#if isExcess>
    for (int i = from; i < to; i++) {
      addLogs(r[i - from], 0, count, logQ[row0 + i], column);
    }
<#else>
    double bias = EXPONENT + (double) Math.ceilDiv(d, RUN) * Float.MAX_EXPONENT;
    for (int i = from; i < to; i++) {
      int k = i - from;
      ScalarElementary.addLogarithms(
          r[k], products[k], exponents[k], bias, alpha, d, logQ, row0, i, i + 1, logP, column, width);
    }
</#if>
<#else>
    for (int h = 0; h < d; h += KC) {
      int length = Math.min(KC, d - h);
      boolean first = h % PROMOTED == 0;
      boolean last = h + KC >= d || (h + KC) % PROMOTED == 0;
      unpack(column, width, h, length);
      for (int i = from; i < to; i++) {
        worker.pass((long) width * length);
        Arrays.fill(sums, 0, width, ${start?has_content?then("TINY", "0")});
        addTerms(rows, (i * d + h) * FIELDS, columns, length, width, sums);
        add(width, sums, acc[i - from], first);
        if (last) {
          promote(width, acc[i - from], r[i - from], h < PROMOTED);
        }
      }
    }
</#if>
  }

  /** Adds sums to those before them, or has the first take their place. */
  private static void add(int width, float[] sums, float[] acc, boolean first) {
    if (first) {
      System.arraycopy(sums, 0, acc, 0, width);
    } else {
      for (int j = 0; j < width; j++) {
        acc[j] = sums[j] + acc[j];
      }
    }
  }

  /** Adds sums to {@link #r}, or stores the first there. */
  private static void promote(int width, float[] acc, double[] r, boolean first) {
    if (first) {
      for (int j = 0; j < width; j++) {
        r[j] = acc[j];
      }
    } else {
      for (int j = 0; j < width; j++) {
        r[j] += acc[j];
      }
    }
  }
<#if isProduct>

  private static void multiply(
      float[] rows,
      int r,
      float[][] columns,
      int c,
      int length,
      int width,
      float[] numerators,
      float[] products<#if isExcess>,
      float less</#if>) {
<@lanesOfAll {"n": "numerators", "m": "products"}/>
  }

  /** Takes the products' exponents apart. */
  private static void normalize(
      int width, float[] numerators, float[] products, float[] exponents) {
    for (int j = 0; j < width; j++) {
      int /*bits*/ b;
<#if isExcess>
      float power;
</#if>
<@normalize "numerators[j]" "products[j]" "j"/>
    }
  }

<#if isExcess>
  private void divide(
      int width, float[] numerators, float[] products, float[] exponents, float bias) {
    for (int k = 0; k < width; k++) {
<@quotient "numerators" "products" "exponents"/>
      numerators[k] = value;
    }
  }
<#else>
  private static void divide(int width, float[] numerators, float[] products) {
    for (int j = 0; j < width; j++) {
      numerators[j] /= products[j];
    }
  }
</#if>
<#else>

  /** Adds terms of a row and all columns. */
  private static void addTerms(
      float[] rows, int r, float[][] columns, int length, int width, float[] sums) {
    int c = 0;
<@lanesOfAll {"a": "sums"}/>
  }
</#if>
</#if>
<#if asVectors && isProduct>

  /** Computes rows [from, to) of the block, of a panel's columns. */
  private void computePanel(
      int row0, int from, int to, int column, int columns, float[] sums, double[] r) {
    int end = Math.ceilDiv(to, MR) * MR;
    Arrays.fill(numerators, from * NR, end * NR, 0);
    Arrays.fill(products, from * NR, end * NR, ${isExcess?then("0", "1")});
    Arrays.fill(exponents, from * NR, end * NR, EXPONENT);
    for (int h = 0; h < d; h += PROMOTED) {
      Arrays.fill(sums, from * NR, end * NR, 0);
      int group = Math.min(d, h + PROMOTED);
      for (int g = h; g < group; g += RUNS) {
        int last = Math.min(group, g + RUNS);
        for (int i = from; i < end; i += 4) {
          for (int j = 0; j < columns; j += 2 * V) {
            for (int run = g; run < last; run += RUN) {
              int a = ((i - i % MR) * d + run * MR) * FIELDS + i % MR;
              int b = ((column - column % NR) * d + run * NR) * FIELDS + column % NR + j;
              int length = Math.min(RUN, last - run);
              multiply(a, b, columns - j, length, i * NR + j);
            }
          }
        }
        divide(<#if isExcess>bias(last - g), </#if>numerators, products, sums, from * NR, end * NR);
      }
      Epilogue.promote(sums, r, from * NR, end * NR, h == 0);
    }
<#if isExcess>
    for (int i = from; i < to; i++) {
      addLogs(r, i * NR, NR, logQ[row0 + i], column);
    }
<#else>
    double bias = EXPONENT + (double) Math.ceilDiv(d, RUN) * Float.MAX_EXPONENT;
    Elementary.addLogarithms(
        r,
        products,
        exponents,
        bias,
        alpha,
        d,
        logQ,
        row0,
        from,
        to,
        logP,
        column,
        NR);
</#if>
  }

  private void multiply(int r, int c, int count, int length, int to) {
    float[] columns = valuesP();
    if (MR == 4) {
      tile4x1(rows, r, columns, c, length, numerators, to, products, exponents<#if isExcess>, -weight</#if>);
      if (count > V) {
        tile4x1(rows, r, columns, c + V, length, numerators, to + V, products, exponents<#if isExcess>, -weight</#if>);
      }
    } else if (count > V) {
      tile4x2(rows, r, columns, c, length, numerators, to, products, exponents<#if isExcess>, -weight</#if>);
    } else {
      tile4x1(rows, r, columns, c, length, numerators, to, products, exponents<#if isExcess>, -weight</#if>);
    }
  }

  /** Adds the quotients of entries [from, to), numerators over products, to {@code sums}, and leaves numerators of 0<#if isExcess>, and products whose distance from 1 is 0</#if>. */
<#if isExcess>
  private void divide(
      float bias, float[] numerators, float[] products, float[] sums, int from, int to) {
    for (int k = from; k < to; k += V) {
<@quotient "numerators" "products" "exponents"/>
      ${store(add("value", load("sums", "k")), "sums", "k")};
      ${store(zero(), "numerators", "k")};
      ${store(zero(), "products", "k")};
      ${store(broadcast("EXPONENT"), "exponents", "k")};
    }
  }
<#else>
  private static void divide(
      float[] numerators, float[] products, float[] sums, int from, int to) {
    for (int k = from; k < to; k += V) {
      ${store(add(div(load("numerators", "k"), load("products", "k")), load("sums", "k")), "sums", "k")};
      ${store(zero(), "numerators", "k")};
    }
  }
</#if>
<@productTile 4 2/>
<@productTile 4 1/>
</#if>
<#if isExcess>

  /** Returns what the exponents of a group's runs are too great by. */
  private static float bias(int length) {
    return EXPONENT + (float) Math.ceilDiv(length, RUN) * Float.MAX_EXPONENT;
  }

  /** Adds {@code ${(name == "ChernoffNearOne")?then("−2 Σ ln σq + 2 Σ ln σp", "2 Σ ln σq − 2 Σ ln σp")}} of a row and some columns. */
  private void addLogs(double[] r, int at, int count, double log, int column) {
    for (int j = 0; j < count; j++) {
      r[at + j] += ${(name == "ChernoffNearOne")?then("2", "-2")} * (logP[column + j] - log);
    }
  }
</#if>
<#if asVectors && !isProduct>

  /** Computes rows [from, to) of the block, of a panel's columns; the L1 cache holds KC dimensions of them for every row panel after the first. */
  private void computePanel(
      int from, int to, int column, int columns, float[] sums, double[] r) {
    int c = (column - column % NR) * FIELDS * d + column % NR;
    for (int h = 0; h < d; h += KC, c += KC * FIELDS * NR) {
      int length = Math.min(KC, d - h);
      boolean first = h % PROMOTED == 0;
      boolean last = h + KC >= d;
      for (int i = from; i < to; i += MR) {
        int at = (i * d + h * MR) * FIELDS;
        for (int j = 0; j < columns; j += 2 * V) {
          addTerms(at, ${usual?then("to - i, ", "")}valuesP(), c + j, columns - j, length, sums, i * NR + j, first);
        }
      }
      if (d > PROMOTED && (last || (h + KC) % PROMOTED == 0)) {
        int end = Math.ceilDiv(to, MR) * MR * NR;
        Epilogue.promote(sums, r, from * NR, end, h < PROMOTED);
      }
    }
  }

  /** Accumulates up to MR rows by up to two vectors of columns. */
  private void addTerms(
      int r,
<#if usual>
      int rowCount,
</#if>
      float[] columns,
      int c,
      int columnCount,
      int length,
      float[] sums,
      int to,
      boolean first) {
    if (MR == 4 && columnCount > V) {
<#list 0..<(4 / formulas[name].rows) as k><#local i = k * formulas[name].rows>
      ${tileName(formulas[name].rows, 2, 1)}(rows, r + ${i}, columns, c, length, sums, to + ${i} * NR, first);
</#list>
    } else if (MR == 4) {
      tile4x1(rows, r, columns, c, length, sums, to, first);
<#if usual>
    } else if (HALVES && columnCount <= V / 2) {
      tile8x1Half(rows, r, columns, c, length, sums, to, first);
</#if>
    } else if (columnCount <= V) {
      tile8x1(rows, r, columns, c, length, sums, to, first);
<#if usual>
    } else if (rowCount <= 4) { // where a batch ends: 3 of 93 µs at 100 x 256 (Zen 5)
      tile4x2(rows, r, columns, c, length, sums, to, first);
</#if>
    } else {
      ${tileName(8, 2, formulas[name].fence)}(rows, r, columns, c, length, sums, to, first);
    }
  }
<#-- 32 registers: a whole tile, a batch's last vector of columns, its last four rows, or half a vector; 16 registers: the first two -->
<@tile 8 2 formulas[name].fence/>
<@tile 8 1/>
<#if usual>
<@tile 4 2/>
<@halfTile 8 1/>
</#if>
<@tile formulas[name].rows 2 1/>
<@tile 4 1/>
</#if>
}
</#macro>
<#list formulas?keys as key>
<#assign name = key, fields = formulas[key].fields, isProduct = !(formulas[key].rows)??, usual = formulas[key].usual!false, isExcess = formulas[key].when??, start = formulas[key].start!"", of = formulas[key].of!key>
<@twins "Float${key}Sums" "FloatScalar${key}Sums" "Float"><@emitSums/></@twins>
</#list>
package dev.kullback.internal.vector;

import dev.kullback.internal.formula.Formula;
<#list formulas?keys as key><#if !formulas[key].of??>
import dev.kullback.internal.formula.${key};
</#if></#list>

/** Makes the sums of a formula, each of a class of its own, so that C2 sees one class where it is called. */
final class FloatSums {
  private FloatSums() {}

  static TileSums<float[]> of(Formula divergence) {
    Formula formula = divergence.sums32();
    return switch (formula.kernels()) {
<#list formulas?keys?filter(k -> formulas[k].of??) as key>
      case ${formulas[key].of} f when f.${formulas[key].when}() -> new Float${key}Sums(formula);
</#list>
<#list formulas?keys?filter(k -> !formulas[k].of??) as key>
      case ${key} _ -> new Float${key}Sums(formula);
</#list>
      default -> throw new IllegalArgumentException(formula.toString());
    };
  }

  static BlockSums.Scalar<float[]> scalar(Formula divergence) {
    Formula formula = divergence.sums32();
    return switch (formula.kernels()) {
<#list formulas?keys?filter(k -> formulas[k].of??) as key>
      case ${formulas[key].of} f when f.${formulas[key].when}() -> new FloatScalar${key}Sums(formula);
</#list>
<#list formulas?keys?filter(k -> !formulas[k].of??) as key>
      case ${key} _ -> new FloatScalar${key}Sums(formula);
</#list>
      default -> throw new IllegalArgumentException(formula.toString());
    };
  }
}
