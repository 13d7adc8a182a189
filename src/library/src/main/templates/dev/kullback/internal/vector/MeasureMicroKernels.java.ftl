<#-- One text for the unrolled loops of R rows by C vectors of columns, in float and in double. -->
<#macro parameters t>
      ${t}[] rows, int r, ${t}[] columns, int c, int length, ${t}[] acc, int to<#nested></#macro>
<#-- The loop over dimensions, of so many numbers of a row and of a column: rows[i…] and columns[j…] are those of one. -->
<#macro dimensions T C fields counted=false>
<#if counted>
    int end = r + length * (${fields} * MR);
    int column = c - r * (NR_${T?upper_case} / MR);
    for (int i = r; i < end; i += ${fields} * MR) {
      int j = column + i * (NR_${T?upper_case} / MR);
<#else>
    for (int h = 0; h < length; h++) {
      int i = r + h * (${fields} * MR);
      int j = c + h * (${fields} * NR_${T?upper_case});
</#if>
<#list 0..<fields as f><#list 0..<C as j>
      ${T}Vector p${f}_${j} = <@load T "columns" "j + ${f} * NR_${T?upper_case} + ${j} * V_${T?upper_case}"/>;
</#list></#list>
<#nested>
    }
</#macro>
<#macro load T array at>${T}Vector.fromArray(${T?upper_case}, ${array}, ${at})</#macro>
<#macro row T field i>${T}Vector.broadcast(${T?upper_case}, rows[i + ${field} * MR + ${i}])</#macro>
<#function at T i j><#return "to + ${i} * NR_${T?upper_case} + ${j} * V_${T?upper_case}"></#function>
<#-- A kernel that adds terms up, which nested text computes: of row i from the vectors q0 …, of column j from p0_j …. -->
<#macro sum T name fields variables R C fence=0>

  static void ${name}${R}x${C}(<@parameters T?lower_case>, boolean first</@parameters>) {
<#list 0..<R as i><#list 0..<C as j>
    ${T}Vector a${i}_${j} = ${T}Vector.zero(${T?upper_case});
</#list></#list>
<@dimensions T=T C=C fields=fields counted=(fence == 1)>
      ${T}Vector ${variables};
<#list 0..<R as i>
<#list 0..<fields as f>
      ${T}Vector q${f}_${i} = <@row T f i/>;
</#list>
<#list 0..<C as j>
<#nested i, j>
</#list>
<#if fence gt 0 && i % fence == fence - 1 && i < R - 1>
      t.intoArray(acc, Tile.CAPACITY);
</#if>
</#list>
</@dimensions>
    if (!first) {
<#list 0..<R as i><#list 0..<C as j>
      a${i}_${j} = a${i}_${j}.add(<@load T "acc" at(T, i, j)/>);
</#list></#list>
    }
<#list 0..<R as i><#list 0..<C as j>
    a${i}_${j}.intoArray(acc, ${at(T, i, j)});
</#list></#list>
  }
</#macro>
<#macro wasserstein T R C fence=0>
<@sum T "wasserstein" 2 "d, t" R C fence; i, j>
      d = q0_${i}.sub(p0_${j});
      t = q1_${i}.sub(p1_${j});
      a${i}_${j} = t.fma(t, d.fma(d, a${i}_${j}));
</@sum>
</#macro>
<#-- Of 16 registers, 2 x 2 leave none for ones: 1.77 of KL's time, 4 x 1 with ones 1.94, unfenced 2.55 (float, Zen 3, JDK 25.0.3). -->
<#macro jeffreys T R C fence=0>
<#local variables = (T == "Float")?then("d, t", "d, e, s, t")>
<@sum T "jeffreys" 3 variables R C fence; i, j>
      d = q0_${i}.sub(p0_${j});
<#if T == "Float">
      t = d.fma(d, q1_${i}.add(p1_${j}));
      a${i}_${j} = t.fma(q2_${i}.<#if R == 2 || (C == 2)?then(j, i % 2) == 0>add(<#else>fma(ONES_FLOAT, </#if>p2_${j}), a${i}_${j});
<#else>
      s = q2_${i}.add(p2_${j});
      e = q1_${i}.sub(p1_${j});
      t = p2_${j}.sub(q2_${i});
      a${i}_${j} = e.fma(t, d.mul(d).fma(s, a${i}_${j}));
</#if>
</@sum>
</#macro>
<#macro chernoff T R C>
<#local I = (T == "Float")?then("Int", "Long"), S = T?upper_case, B = I?upper_case>

  static void chernoff${R}x${C}(<@parameters T?lower_case>, ${T?lower_case}[] product, ${T?lower_case}[] exponents</@parameters>) {
<#list 0..<R as i><#list 0..<C as j>
    ${T}Vector n${i}_${j} = <@load T "acc" at(T, i, j)/>;
    ${T}Vector m${i}_${j} = <@load T "product" at(T, i, j)/>;
</#list></#list>
<@dimensions T C 2>
      ${T}Vector d, s;
<#list 0..<R as i>
      ${T}Vector q0_${i} = <@row T 0 i/>;
      ${T}Vector q1_${i} = <@row T 1 i/>;
<#list 0..<C as j>
      d = q0_${i}.sub(p0_${j});
      s = q1_${i}.add(p1_${j});
      n${i}_${j} = n${i}_${j}.fma(s, d.mul(d).mul(m${i}_${j}));
      m${i}_${j} = m${i}_${j}.mul(s);
</#list>
</#list>
</@dimensions>
    ${I}Vector b;
<#list 0..<R as i><#list 0..<C as j>
    b = (${I}Vector) m${i}_${j}.reinterpretShape(${B}, 0);
    ((${T}Vector) b.and(MANTISSA_${S}).or(ONE_${S}).reinterpretShape(${S}, 0)).intoArray(product, ${at(T, i, j)});
    n${i}_${j}.mul((${T}Vector) ${I}Vector.broadcast(${B}, 2 * ONE_${S}).sub(b.and(~MANTISSA_${S})).reinterpretShape(${S}, 0)).intoArray(acc, ${at(T, i, j)});
    ((${T}Vector) ((${I}Vector) <@load T "exponents" at(T, i, j)/>.reinterpretShape(${B}, 0)).add(b.lanewise(VectorOperators.LSHR, ${(T == "Float")?then(23, 52)})).reinterpretShape(${S}, 0)).intoArray(exponents, ${at(T, i, j)});
</#list></#list>
  }
</#macro>
<#macro finish T>
<#local S = T?upper_case, t = T?lower_case>

  /** Adds the quotients of entries [from, to), numerators over products, to {@code acc}, and leaves numerators of 0. */
  static void divide(${t}[] numerators, ${t}[] products, ${t}[] acc, int from, int to) {
    for (int k = from; k < to; k += V_${S}) {
      <@load T "numerators" "k"/>.div(<@load T "products" "k"/>).add(<@load T "acc" "k"/>).intoArray(acc, k);
      ${T}Vector.zero(${S}).intoArray(numerators, k);
    }
  }

  /**
   * Makes {@code (1−α) r + ln(product·2^exponent)} of rows [from, to) of a panel, less the logarithms of the rows' determinants and the
   * columns', where {@code row} and {@code column} are the first ones' indices.
   */
  static void addLogarithms(
      double[] r, ${t}[] products, ${t}[] exponents, double bias, double alpha, int d,
      double[] logQ, int row, int from, int to, double[] logP, int column) {
    DoubleVector weight = DoubleVector.broadcast(DOUBLE, 1 - alpha);
    double constant = d * Math.log(alpha);
    for (int i = from; i < to; i++) {
      double logs = -2 * (1 - alpha) * logQ[row + i];
      for (int j = 0; j < NR_${S}; j += V_DOUBLE) {
        int k = i * NR_${S} + j;
<#if T == "Float">
        DoubleVector m = (DoubleVector) FloatVector.fromArray(HALF, products, k).convertShape(VectorOperators.F2D, DOUBLE, 0);
        DoubleVector e = (DoubleVector) FloatVector.fromArray(HALF, exponents, k).convertShape(VectorOperators.F2D, DOUBLE, 0);
<#else>
        DoubleVector m = <@load "Double" "products" "k"/>;
        DoubleVector e = <@load "Double" "exponents" "k"/>;
</#if>
        e = e.sub(bias);
        DoubleVector z = m.sub(Logarithm.MIDDLE).div(m.add(Logarithm.MIDDLE));
        DoubleVector w = z.mul(z);
        DoubleVector p = DoubleVector.broadcast(DOUBLE, Logarithm.of(9));
<#list 8..0 as n>
        p = p.fma(w, DoubleVector.broadcast(DOUBLE, Logarithm.of(${n})));
</#list>
        p = p.fma(z, e.fma(DoubleVector.broadcast(DOUBLE, Logarithm.LN2_LOW), DoubleVector.broadcast(DOUBLE, Logarithm.LN_MIDDLE)));
        p = e.fma(DoubleVector.broadcast(DOUBLE, Logarithm.LN2_HIGH), p);
        p = p.add(DoubleVector.fromArray(DOUBLE, logP, column + j).mul(-2 * alpha).add(logs).add(constant));
        <@load "Double" "r" "k"/>.fma(weight, p).intoArray(r, k);
      }
    }
  }
</#macro>
package dev.kullback.internal.vector;

import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/**
 * Micro-kernels of {@link FloatMeasureSums}, layouts as there, by the operations that {@link FloatMeasurePanels#sum} has: {@code …RxC}
 * adds what {@code length} dimensions of R rows and C vectors of columns give to {@code acc[to + row·NR + column]}, or the first stores it
 * there. The build unrolls them from one template.
 */
final class MeasureMicroKernels {
  private static final VectorSpecies<Float> FLOAT = Species.FLOAT;
  private static final VectorSpecies<Float> HALF = Species.HALF_FLOAT;
  private static final VectorSpecies<Double> DOUBLE = Species.DOUBLE;
  private static final VectorSpecies<Integer> INT = FLOAT.withLanes(int.class);
  private static final VectorSpecies<Long> LONG = Species.LONG;
  private static final int V_FLOAT = FLOAT.length();
  private static final int V_DOUBLE = DOUBLE.length();
  private static final int MR = FloatPanels.MR;
  private static final int NR_FLOAT = FloatPanels.NR;
  private static final int NR_DOUBLE = DoublePanels.NR;

  /** Bits of a number's significand, and those of 1. */
  private static final int MANTISSA_FLOAT = 0x007f_ffff;

  private static final int ONE_FLOAT = 0x3f80_0000;
  private static final long MANTISSA_DOUBLE = 0x000f_ffff_ffff_ffffL;
  private static final long ONE_DOUBLE = 0x3ff0_0000_0000_0000L;

  /** Makes a sum of a product, as processors that have units for sums have others for products. */
  private static final FloatVector ONES_FLOAT = FloatVector.broadcast(FLOAT, 1);

  private MeasureMicroKernels() {}
<#list ["Float", "Double"] as T>
<@wasserstein T 8 2 2/>
<@wasserstein T 8 1/>
<@wasserstein T 4 2 1/>
<@wasserstein T 4 1/>
<@jeffreys T 8 2/>
<@jeffreys T 8 1/>
<@jeffreys T 2 2 1/>
<@jeffreys T 4 1/>
<@chernoff T 4 2/>
<@chernoff T 4 1/>
<@finish T/>
</#list>
}
