<#-- The arithmetic of an entry, written out wherever it is needed, as C2 boxes what a method of its own takes or returns. -->
<#-- Makes an entry's divergence of R, and `rest`, of which `orUncertain` makes a negative integer where the error bound exceeds the tolerance. -->
<#macro entry r offsets noises>
        DoubleVector value = ${r}.fma(factors, ${offsets});
        LongVector rest = (LongVector) value.mul(margin).sub(${noises}).reinterpretShape(L, 0);
</#macro>
<#macro orUncertain open rest>
        ${open} = ${rest}.or(${rest}.add(UP_TO_INFINITY)).or(${open});
</#macro>
<#-- Makes `late`, of which `orUncertain` makes a negative integer where a form before may settle the entry, as the value of a later one tells. -->
<#macro foresee late noises value margin>
        LongVector ${late} =
            (LongVector) ${noises}.sub(${value}.mul(${margin})).reinterpretShape(L, 0);
</#macro>
<#macro put value to>
        if (out.wide) {
          ${value}.intoArray(out.out64, ${to});
        } else {
          ((FloatVector) ${value}.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out.out32, ${to});
        }
</#macro>
<#-- Settles open entries at `at` by `value`, where `rest` is no negative integer, and counts in `open` those that stay open. -->
<#macro settle>
        LongVector isOpen = ZERO.sub(rest.or(rest.add(UP_TO_INFINITY)).lanewise(VectorOperators.LSHR, 63));
        LongVector before = (LongVector) DoubleVector.fromArray(S, values, at).reinterpretShape(L, 0);
        LongVector wasOpen = ZERO.sub(before.lanewise(VectorOperators.LSHR, 63));
        LongVector bits = ((LongVector) value.reinterpretShape(L, 0)).or(isOpen);
        ((DoubleVector) before.bitwiseBlend(bits, wasOpen).reinterpretShape(S, 0)).intoArray(values, at);
        open = ZERO.sub(isOpen.and(wasOpen)).add(open);
</#macro>
<#macro operands sums>
    double[] offsetQ = ${sums}.offsetQ;
    double[] offsetP = ${sums}.offsetP;
    double[] noiseQ = ${sums}.noiseQ;
    double[] noiseP = ${sums}.noiseP;
    double margin = ${sums}.margin;
    DoubleVector factors = DoubleVector.broadcast(S, ${sums}.factor);
</#macro>
package dev.kullback.internal.vector;

import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.kernel.BlockTarget;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;
import org.jspecify.annotations.Nullable;

/**
 * Promotes the sums R of a tile to double, makes divergences of them, bounds their errors, and stores them where one rung settles all.
 *
 * <p>Comparisons are signs of integers, not masks: C2 has no masks for vectors of two lanes on x86 (JDK 25, AVX2), and boxes them, at 84 to
 * 490 B an entry. No method takes or returns a vector: if the caller is already too large, C2 does not inline such a method, and boxes the
 * vector, 64 B each time.
 */
public final class Epilogue {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final VectorSpecies<Float> HALF = Species.HALF_FLOAT;
  private static final VectorSpecies<Long> L = Species.LONG;
  private static final LongVector ZERO = LongVector.zero(L);

  private static final int NR = FloatPanels.NR;
  private static final int NR64 = DoublePanels.NR;

  /**
   * Factor by which the divergence of a later rung tells that a rung does not settle an entry: {@code noise > FORESIGHT·margin·divergence}. A
   * rung that settles an entry has it to 1e-5, so that {@code noise ≤ (1 + 1e-5)·margin·divergence} there; the later rung has it to 1.1e-5.
   */
  private static final double FORESIGHT = 1 + 1e-4;

  /**
   * Turns {@link PairKl#isCertain}, 0 ≤ x < ∞ for {@code x = margin·divergence − noise}, into a sign. The bits of x are a negative integer
   * where x is negative, and adding this constant overflows to one where x is +∞ or NaN: {@code bits | bits + UP_TO_INFINITY} is negative
   * where the entry is uncertain. Write this out wherever it is needed: in a method of its own, once that was compiled by itself to more code
   * than InlineSmallCode allows, C2 boxed 168 B a vector for good.
   */
  public static final long UP_TO_INFINITY = Long.MIN_VALUE - 0x7ff0_0000_0000_0000L;

  private Epilogue() {}

  /** Returns where up to PROMOTED dimensions accumulate: in {@code acc}, or in R if that has the same type. */
  static float[] accumulators(float[] acc, double[] r) {
    return acc;
  }

  static double[] accumulators(double[] acc, double[] r) {
    return r;
  }

  /** Promotes entries [from, to): {@code r = acc} at first, and then {@code r += acc}. */
  static void promote(float[] acc, double[] r, int from, int to, boolean first) {
    for (int i = from; i < to; i += S.length()) {
      DoubleVector part =
          (DoubleVector)
              FloatVector.fromArray(HALF, acc, i).convertShape(VectorOperators.F2D, S, 0);
      (first ? part : part.add(DoubleVector.fromArray(S, r, i))).intoArray(r, i);
    }
  }

  static void promote(double[] acc, double[] r, int from, int to, boolean first) {
    if (first) {
      System.arraycopy(acc, from, r, from, to - from);
    } else {
      for (int i = from; i < to; i += S.length()) {
        DoubleVector.fromArray(S, acc, i).add(DoubleVector.fromArray(S, r, i)).intoArray(r, i);
      }
    }
  }

  /** Stores the divergences of a tile by sums that are promoted; whether the error bound of every entry is within tolerance. */
  static boolean store(Tile t, TileSums<?> sums) {
    BlockTarget out = t.out();
    double[] r = sums.r[0];
<@operands "sums"/>
    int nr = sums.width;
    int vectors = t.columns / S.length() * S.length();
    LongVector open = LongVector.zero(L);
    for (int j = 0; j < vectors; j += S.length()) {
      DoubleVector offsets = DoubleVector.fromArray(S, offsetP, t.column + j);
      DoubleVector noises = DoubleVector.fromArray(S, noiseP, t.column + j);
      int to = out.at(t.row, t.column + j);
      for (int i = 0; i < t.rows; i++, to += out.stride) {
<@entry "DoubleVector.fromArray(S, r, i * nr + j)" "offsets.add(offsetQ[t.row + i])" "noises.add(noiseQ[t.row + i])"/>
<@orUncertain "open" "rest"/>
<@put "value" "to"/>
      }
    }
    boolean certain = open.reduceLanes(VectorOperators.OR) >= 0;
    for (int j = vectors; j < t.columns; j++) { // scalar tail
      int column = t.column + j;
      for (int i = 0; i < t.rows; i++) {
        double value = Math.fma(r[i * nr + j], sums.factor, offsetP[column] + offsetQ[t.row + i]);
        certain &= PairKl.isCertain(value, noiseP[column] + noiseQ[t.row + i], margin);
        out.put(t.row + i, column, value);
      }
    }
    return certain;
  }

  /**
   * {@link #store} of a tile of float batches as wide as a panel, by sums that are still in {@code acc}. Its constant width saves a
   * quarter of the time, 0.15 ns an entry instead of 0.20, and promotion on the way another 0.04 (Zen 5).
   */
  static boolean storeWhole(Tile t, TileSums<float[]> sums, float[] acc) {
    // a loop for each precision: C2 moves the bounds checks of both arrays out of one for both, and
    // compiled it three times, 0.05 s each, as that of the array that is not in use failed
    return t.out().wide ? storeWholeDoubles(t, sums, acc) : storeWholeFloats(t, sums, acc);
  }
<#list [true, false] as wide>

  private static boolean storeWhole${wide?then("Doubles", "Floats")}(Tile t, TileSums<float[]> sums, float[] acc) {
    BlockTarget out = t.out();
<@operands "sums"/>
    LongVector open = LongVector.zero(L);
    for (int i = 0; i < t.rows; i++) {
      double offset = offsetQ[t.row + i];
      double noise = noiseQ[t.row + i];
      int to = out.at(t.row + i, t.column);
      for (int j = 0; j < NR; j += S.length()) {
        DoubleVector r =
            (DoubleVector)
                FloatVector.fromArray(HALF, acc, i * NR + j).convertShape(VectorOperators.F2D, S, 0);
<@entry "r" "DoubleVector.fromArray(S, offsetP, t.column + j).add(offset)" "DoubleVector.fromArray(S, noiseP, t.column + j).add(noise)"/>
<@orUncertain "open" "rest"/>
<#if wide>
        value.intoArray(out.out64, to + j);
<#else>
        ((FloatVector) value.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out.out32, to + j);
</#if>
      }
    }
    return open.reduceLanes(VectorOperators.OR) >= 0;
  }
</#list>

  /**
   * Stores the divergences of a tile of float batches as wide as a panel, by the double form. Returns null if double settles every entry
   * and float none, or the first rung that may settle one.
   */
  static TileKernel.@Nullable Rung storeDouble(
      Tile t, TileSums<float[]> floats, TileSums<double[]> doubles) {
    BlockTarget out = t.out();
<@operands "doubles"/>
    double[] noiseQ32 = floats.noiseQ;
    double foreseen = floats.margin * FORESIGHT;
    LongVector open = LongVector.zero(L);
    LongVector mayBeFloat = LongVector.zero(L);
    for (int j = 0; j < NR; j += S.length()) {
      double[] r = doubles.r[j / NR64];
      DoubleVector offsets = DoubleVector.fromArray(S, offsetP, t.column + j);
      DoubleVector noises = DoubleVector.fromArray(S, noiseP, t.column + j);
      DoubleVector noises32 = DoubleVector.fromArray(S, floats.noiseP, t.column + j);
      int to = out.at(t.row, t.column + j);
      for (int i = 0; i < t.rows; i++, to += out.stride) {
        int row = t.row + i;
        DoubleVector noise = noises.add(noiseQ[row]);
<@entry "DoubleVector.fromArray(S, r, i * NR64 + j % NR64)" "offsets.add(offsetQ[row])" "noise"/>
<@foresee "late" "noises32.add(noiseQ32[row])" "value.add(noise)" "foreseen"/>
<@orUncertain "open" "rest"/>
<@orUncertain "mayBeFloat" "late"/>
<@put "value" "to"/>
      }
    }
    if (mayBeFloat.reduceLanes(VectorOperators.OR) < 0) {
      return TileKernel.Rung.FLOAT;
    }
    return open.reduceLanes(VectorOperators.OR) < 0 ? TileKernel.Rung.DOUBLE : null;
  }

  /**
   * Stores values of the near form of a tile as wide as a panel. Returns −1 if float or double may settle an entry, 0 if a value is below
   * {@code least}, else 1.
   */
  static int storeNear(
      Tile t, double[] values, TileSums<?> floats, TileSums<?> doubles, double least) {
    BlockTarget out = t.out();
    double[] noiseQ32 = floats.noiseQ;
    double[] noiseQ64 = doubles.noiseQ;
    double foreseen32 = floats.margin * FORESIGHT;
    double foreseen64 = doubles.margin * FORESIGHT;
    LongVector open = LongVector.zero(L);
    LongVector low = LongVector.zero(L);
    for (int j = 0; j < NR; j += S.length()) {
      DoubleVector noises32 = DoubleVector.fromArray(S, floats.noiseP, t.column + j);
      DoubleVector noises64 = DoubleVector.fromArray(S, doubles.noiseP, t.column + j);
      int to = out.at(t.row, t.column + j);
      for (int i = 0; i < t.rows; i++, to += out.stride) {
        int row = t.row + i;
        DoubleVector value = DoubleVector.fromArray(S, values, i * NR + j);
<@foresee "late32" "noises32.add(noiseQ32[row])" "value" "foreseen32"/>
<@foresee "late64" "noises64.add(noiseQ64[row])" "value" "foreseen64"/>
<@orUncertain "open" "late32"/>
<@orUncertain "open" "late64"/>
        low = ((LongVector) value.sub(least).reinterpretShape(L, 0)).or(low);
<@put "value" "to"/>
      }
    }
    if (open.reduceLanes(VectorOperators.OR) < 0) {
      return -1;
    }
    return low.reduceLanes(VectorOperators.OR) < 0 ? 0 : 1;
  }

  /**
   * Settles the entries of rows [from, to) that are open, {@code values} of NaN whose sign bit is set, and whose error bound is within
   * tolerance; how many stay open.
   */
  static int settle(Tile t, double[] values, TileSums<?> sums, int from, int to) {
<@operands "sums"/>
    int nr = sums.width;
    LongVector open = LongVector.zero(L);
    for (int j = 0; j < t.columns; j += S.length()) {
      DoubleVector offsets = DoubleVector.fromArray(S, offsetP, t.column + j);
      DoubleVector noises = DoubleVector.fromArray(S, noiseP, t.column + j);
      double[] r = sums.r[j / nr];
      int k = from * nr + j % nr;
      int at = from * t.width + j;
      for (int i = from; i < to; i++, k += nr, at += t.width) {
<@entry "DoubleVector.fromArray(S, r, k)" "offsets.add(offsetQ[t.row + i])" "noises.add(noiseQ[t.row + i])"/>
<@settle/>
      }
    }
    return (int) open.reduceLanes(VectorOperators.ADD);
  }

  /** Settles those whose value of another form, as wide as the tile, is at least {@code least} and finite; how many stay open. */
  static int settle(Tile t, double[] values, double[] others, double least) {
    LongVector open = LongVector.zero(L);
    for (int at = 0; at < t.rows * t.width; at += S.length()) {
      DoubleVector value = DoubleVector.fromArray(S, others, at);
      LongVector rest = (LongVector) value.sub(least).reinterpretShape(L, 0);
<@settle/>
    }
    return (int) open.reduceLanes(VectorOperators.ADD);
  }

  /** Stores the values of a tile. */
  static void store(Tile t, double[] values) {
    BlockTarget out = t.out();
    int vectors = t.columns / S.length() * S.length();
    for (int j = 0; j < vectors; j += S.length()) {
      int to = out.at(t.row, t.column + j);
      for (int i = 0; i < t.rows; i++, to += out.stride) {
        DoubleVector value = DoubleVector.fromArray(S, values, i * t.width + j);
<@put "value" "to"/>
      }
    }
    for (int j = vectors; j < t.columns; j++) { // scalar tail
      for (int i = 0; i < t.rows; i++) {
        out.put(t.row + i, t.column + j, values[i * t.width + j]);
      }
    }
  }
}
