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
 * Promotes the micro-kernels' sums R to double, and stores the KL of a tile where one rung settles all of it.
 *
 * <p>Comparisons are signs of integers, not masks: of two lanes C2 has no masks on x86 (JDK 25, AVX2) and boxes them, at 84 to 490 B
 * an entry. No method takes or returns a vector: where C2 does not inline it, for what it has inlined before, it is boxed, 64 B each time.
 */
public final class Epilogue {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final VectorSpecies<Float> HALF = Species.HALF_FLOAT;
  private static final VectorSpecies<Long> L = Species.LONG;

  private static final int NR = FloatPanels.NR;
  private static final int NR64 = DoublePanels.NR;

  /**
   * Factor by which the KL of a later rung tells that a rung does not settle an entry: {@code noise > FORESIGHT·margin·KL}. A rung that
   * settles an entry has it to 1e-5, so that {@code noise ≤ (1 + 1e-5)·margin·KL} there; the later rung has it to 1.1e-5.
   */
  static final double FORESIGHT = 1 + 1e-4;

  /**
   * Turns {@link PairKl#isCertain}, 0 ≤ x < ∞ for {@code x = margin·KL − noise}, into a sign. The bits of x are a negative integer where x
   * is negative, and adding this constant overflows to one where x is +∞ or NaN: {@code bits | bits + UP_TO_INFINITY} is negative where
   * the entry is uncertain. Write this out wherever it is needed: in a method of its own, once that was compiled by itself to more code
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

  /** Stores the KL of a tile by sums that are promoted; whether the error bound of every entry is within tolerance. */
  static boolean store(Tile t, TileSums<?> sums) {
    BlockTarget out = t.out();
    double[] r = sums.r[0];
    double[] offsetQ = sums.offsetQ;
    double[] offsetP = sums.offsetP;
    double[] noiseQ = sums.noiseQ;
    double[] noiseP = sums.noiseP;
    double margin = sums.margin;
    DoubleVector factors = DoubleVector.broadcast(S, sums.factor);
    int nr = sums.width;
    int vectors = t.columns / S.length() * S.length();
    LongVector open = LongVector.zero(L);
    for (int j = 0; j < vectors; j += S.length()) {
      DoubleVector offsets = DoubleVector.fromArray(S, offsetP, t.column + j);
      DoubleVector noises = DoubleVector.fromArray(S, noiseP, t.column + j);
      int to = out.at(t.row, t.column + j);
      for (int i = 0; i < t.rows; i++, to += out.stride) {
        DoubleVector kl =
            DoubleVector.fromArray(S, r, i * nr + j).fma(factors, offsets.add(offsetQ[t.row + i]));
        LongVector rest =
            (LongVector) kl.mul(margin).sub(noises.add(noiseQ[t.row + i])).reinterpretShape(L, 0);
        open = open.or(rest).or(rest.add(UP_TO_INFINITY));
        if (out.wide) {
          kl.intoArray(out.out64, to);
        } else {
          ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out.out32, to);
        }
      }
    }
    boolean certain = open.reduceLanes(VectorOperators.OR) >= 0;
    for (int j = vectors; j < t.columns; j++) { // scalar tail
      int column = t.column + j;
      for (int i = 0; i < t.rows; i++) {
        double kl = Math.fma(r[i * nr + j], sums.factor, offsetP[column] + offsetQ[t.row + i]);
        certain &= PairKl.isCertain(kl, noiseP[column] + noiseQ[t.row + i], margin);
        out.put(t.row + i, column, kl);
      }
    }
    return certain;
  }

  /**
   * {@link #store} of a tile of float batches as wide as a panel, by sums that are still in {@code acc}. Its constant width saves a
   * quarter of the time, 0.15 ns an entry instead of 0.20, and promotion on the way another 0.04 (Zen 5).
   */
  static boolean storeWhole(Tile t, TileSums<float[]> sums, float[] acc) {
    BlockTarget out = t.out();
    double[] offsetQ = sums.offsetQ;
    double[] offsetP = sums.offsetP;
    double[] noiseQ = sums.noiseQ;
    double[] noiseP = sums.noiseP;
    double margin = sums.margin;
    DoubleVector factors = DoubleVector.broadcast(S, sums.factor);
    LongVector open = LongVector.zero(L);
    for (int i = 0; i < t.rows; i++) {
      double offset = offsetQ[t.row + i];
      double noise = noiseQ[t.row + i];
      int to = out.at(t.row + i, t.column);
      for (int j = 0; j < NR; j += S.length()) {
        DoubleVector kl =
            ((DoubleVector)
                    FloatVector.fromArray(HALF, acc, i * NR + j)
                        .convertShape(VectorOperators.F2D, S, 0))
                .fma(factors, DoubleVector.fromArray(S, offsetP, t.column + j).add(offset));
        DoubleVector noises = DoubleVector.fromArray(S, noiseP, t.column + j).add(noise);
        LongVector rest = (LongVector) kl.mul(margin).sub(noises).reinterpretShape(L, 0);
        open = open.or(rest).or(rest.add(UP_TO_INFINITY));
        if (out.wide) {
          kl.intoArray(out.out64, to + j);
        } else {
          ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0))
              .intoArray(out.out32, to + j);
        }
      }
    }
    return open.reduceLanes(VectorOperators.OR) >= 0;
  }

  /**
   * Stores the KL of a tile of float batches as wide as a panel, by the double kernel. Returns null if double settles every entry and
   * float none, or the first rung that may settle one.
   */
  static VectorKernel.@Nullable Rung storeDouble(
      Tile t, FloatKernels floats, DoubleKernels doubles) {
    BlockTarget out = t.out();
    double[] offsetQ = doubles.offsetQ;
    double[] offsetP = doubles.offsetP;
    double[] noiseQ = doubles.noiseQ;
    double[] noiseP = doubles.noiseP;
    double margin = doubles.margin;
    DoubleVector factors = DoubleVector.broadcast(S, doubles.factor);
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
        DoubleVector kl =
            DoubleVector.fromArray(S, r, i * NR64 + j % NR64)
                .fma(factors, offsets.add(offsetQ[row]));
        DoubleVector noise = noises.add(noiseQ[row]);
        LongVector rest = (LongVector) kl.mul(margin).sub(noise).reinterpretShape(L, 0);
        LongVector beyond =
            (LongVector)
                noises32.add(noiseQ32[row]).sub(kl.add(noise).mul(foreseen)).reinterpretShape(L, 0);
        open = open.or(rest).or(rest.add(UP_TO_INFINITY));
        mayBeFloat = mayBeFloat.or(beyond).or(beyond.add(UP_TO_INFINITY));
        if (out.wide) {
          kl.intoArray(out.out64, to);
        } else {
          ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out.out32, to);
        }
      }
    }
    if (mayBeFloat.reduceLanes(VectorOperators.OR) < 0) {
      return VectorKernel.Rung.FLOAT;
    }
    return open.reduceLanes(VectorOperators.OR) < 0 ? VectorKernel.Rung.DOUBLE : null;
  }
}
