package dev.kullback.internal.vector;

import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.plain.PairKl;
import java.util.Arrays;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/**
 * What follows the micro-kernel: promotion, log-determinants, the error bound of each entry, and the store; all in double.
 *
 * <p>Comparisons are signs of integers, not masks: of two lanes C2 has no masks on x86 (JDK 25, AVX2) and boxes them, at 84 to 490 B
 * an entry. No method takes or returns a vector: where C2 does not inline it, for what it has inlined before, it is boxed, 64 B each time.
 */
public final class Epilogue {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final VectorSpecies<Float> HALF = Species.HALF_FLOAT;
  private static final VectorSpecies<Long> L = Species.LONG;

  private static final DoubleVector HALVES = DoubleVector.broadcast(S, 0.5);
  private static final DoubleVector LIMITS = DoubleVector.broadcast(S, 2 * NearKernel.LIMIT);
  private static final LongVector ZERO = LongVector.zero(L);

  /** What {@link #storeDouble} found: that the double form settles every entry, and that float settles none. */
  static final int SETTLED = 1;

  static final int NO_FLOAT = 2;

  /**
   * A form's margin less what another's values, good to 1.1e-5 where that form settles an entry, may be off: below it the form does not
   * settle an entry.
   */
  private static final double FORESIGHT = 1 + 1e-4;

  /**
   * {@link PairKl#isCertain}, 0 ≤ x < ∞, of the bits of x as an integer: {@code bits | bits + UP_TO_INFINITY} is negative where it is
   * not so. It stands wherever it is needed: in a method of its own, once that was compiled by itself to more code than InlineSmallCode
   * allows, C2 boxed 168 B a vector for good.
   */
  public static final long UP_TO_INFINITY =
      Long.MIN_VALUE - Double.doubleToRawLongBits(Double.POSITIVE_INFINITY);

  private Epilogue() {}

  /** {@code sum = acc}, or {@code +=}. */
  static void promote(float[] acc, double[] sum, int n, boolean first) {
    if (first) {
      for (int i = 0; i < n; i += S.length()) {
        ((DoubleVector) FloatVector.fromArray(HALF, acc, i).convertShape(VectorOperators.F2D, S, 0))
            .intoArray(sum, i);
      }
    } else {
      for (int i = 0; i < n; i += S.length()) {
        ((DoubleVector) FloatVector.fromArray(HALF, acc, i).convertShape(VectorOperators.F2D, S, 0))
            .add(DoubleVector.fromArray(S, sum, i))
            .intoArray(sum, i);
      }
    }
  }

  /** The same by the near form, NaN where it does not hold. */
  static void promoteNear(float[] acc, double[] sum, int n, boolean first) {
    for (int i = 0; i < n; i += S.length()) {
      DoubleVector part =
          ((DoubleVector)
              FloatVector.fromArray(HALF, acc, i).convertShape(VectorOperators.F2D, S, 0));
      LongVector beyond =
          ZERO.sub(
              ((LongVector) LIMITS.sub(part).reinterpretShape(L, 0))
                  .lanewise(VectorOperators.LSHR, 63));
      part =
          (DoubleVector)
              ((LongVector) part.reinterpretShape(L, 0)).or(beyond).reinterpretShape(S, 0);
      (first ? part : part.add(DoubleVector.fromArray(S, sum, i))).intoArray(sum, i);
    }
  }

  static void promote(double[] acc, double[] sum, int n, boolean first) {
    if (first) {
      System.arraycopy(acc, 0, sum, 0, n);
    } else {
      for (int i = 0; i < n; i += S.length()) {
        DoubleVector.fromArray(S, acc, i).add(DoubleVector.fromArray(S, sum, i)).intoArray(sum, i);
      }
    }
  }

  /**
   * Stores the KL of the tile whose S + D are in {@code t.sum}, row-major with {@code nr} columns.
   *
   * @return whether the error bound of every entry is within tolerance
   */
  static boolean store(Tile t, int nr, Packed<?> q, Packed<?> p, double margin) {
    return store(
        t.sum,
        nr,
        t.row,
        t.rows,
        q.offsetQ(),
        q.noiseQ(),
        t.column,
        t.columns,
        p.offsetP(),
        p.noiseP(),
        margin,
        t.out());
  }

  private static boolean store(
      double[] sum,
      int nr,
      int row,
      int rows,
      double[] rowOffset,
      double[] rowNoise,
      int column,
      int columns,
      double[] columnOffset,
      double[] columnNoise,
      double margin,
      BlockTarget out) {
    boolean wide = out.wide;
    float[] out32 = out.out32;
    double[] out64 = out.out64;
    int corner = out.at(row, column);
    int stride = out.stride;
    int vectors = columns / S.length() * S.length();
    LongVector open = LongVector.zero(L);
    for (int i = 0; i < rows; i++) {
      for (int j = 0; j < vectors; j += S.length()) {
        DoubleVector offsets = DoubleVector.fromArray(S, columnOffset, column + j);
        DoubleVector noises = DoubleVector.fromArray(S, columnNoise, column + j);
        DoubleVector kl =
            DoubleVector.fromArray(S, sum, i * nr + j).fma(HALVES, offsets.add(rowOffset[row + i]));
        LongVector rest =
            (LongVector) kl.mul(margin).sub(noises.add(rowNoise[row + i])).reinterpretShape(L, 0);
        open = open.or(rest).or(rest.add(UP_TO_INFINITY));
        int to = corner + i * stride + j;
        if (wide) {
          kl.intoArray(out64, to);
        } else {
          ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out32, to);
        }
      }
    }
    boolean certain = open.reduceLanes(VectorOperators.OR) >= 0;
    for (int i = 0; i < rows && vectors < columns; i++) {
      for (int j = vectors; j < columns; j++) { // scalar tail
        double kl = sum[i * nr + j] * 0.5 + (columnOffset[column + j] + rowOffset[row + i]);
        certain &= PairKl.isCertain(kl, columnNoise[column + j] + rowNoise[row + i], margin);
        int to = corner + i * stride + j;
        if (wide) {
          out64[to] = kl;
        } else {
          out32[to] = (float) kl;
        }
      }
    }
    return certain;
  }

  /**
   * {@link #store} of the usual float tile, whose S + D are still in {@code t.acc32}. Its constant width saves a quarter of the
   * time, 0.15 ns an entry instead of 0.20, and promotion on the way another 0.04 (Zen 5).
   */
  static boolean storeWhole(Tile t, Packed<float[]> q, Packed<float[]> p, double margin) {
    float[] acc = t.acc32;
    BlockTarget out = t.out();
    boolean wide = out.wide;
    float[] out32 = out.out32;
    double[] out64 = out.out64;
    double[] columnOffset = p.offsetP();
    double[] columnNoise = p.noiseP();
    LongVector open = LongVector.zero(L);
    for (int i = 0; i < t.rows; i++) {
      double offset = q.offsetQ()[t.row + i];
      double noise = q.noiseQ()[t.row + i];
      int to = out.at(t.row + i, t.column);
      for (int j = 0; j < FloatKernels.NR; j += S.length()) {
        DoubleVector kl =
            ((DoubleVector)
                    FloatVector.fromArray(HALF, acc, i * FloatKernels.NR + j)
                        .convertShape(VectorOperators.F2D, S, 0))
                .fma(HALVES, DoubleVector.fromArray(S, columnOffset, t.column + j).add(offset));
        DoubleVector noises = DoubleVector.fromArray(S, columnNoise, t.column + j).add(noise);
        LongVector rest = (LongVector) kl.mul(margin).sub(noises).reinterpretShape(L, 0);
        open = open.or(rest).or(rest.add(UP_TO_INFINITY));
        if (wide) {
          kl.intoArray(out64, to + j);
        } else {
          ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out32, to + j);
        }
      }
    }
    return open.reduceLanes(VectorOperators.OR) >= 0;
  }

  /**
   * Stores the KL of a whole tile of float batches by the double kernel.
   *
   * <p>{@link #SETTLED} and {@link #NO_FLOAT} are told of the tile. Where float settles an entry, its value is good to 1e-5, so that {@code
   * noise32 ≤ kl32·margin32 ≤ (1 + 1e-5)·KL·margin32}, while {@code KL ≤ kl64 + unit64·KL + noise64}.
   */
  static int storeDouble(
      Tile t,
      Packed<float[]> q32,
      Packed<float[]> p32,
      Packed<double[]> q64,
      Packed<double[]> p64,
      double margin32,
      double margin64) {
    BlockTarget out = t.out();
    boolean wide = out.wide;
    float[] out32 = out.out32;
    double[] out64 = out.out64;
    double foreseen = margin32 * FORESIGHT;
    LongVector open = LongVector.zero(L);
    LongVector mayBeFloat = LongVector.zero(L);
    for (int j = 0; j < FloatKernels.NR; j += S.length()) {
      double[] sum = t.sum64[j / DoubleKernels.NR];
      int column = t.column + j;
      DoubleVector offsets = DoubleVector.fromArray(S, p64.offsetP(), column);
      DoubleVector noises = DoubleVector.fromArray(S, p64.noiseP(), column);
      DoubleVector noises32 = DoubleVector.fromArray(S, p32.noiseP(), column);
      int to = out.at(t.row, column);
      for (int i = 0; i < t.rows; i++, to += out.stride) {
        int row = t.row + i;
        DoubleVector kl =
            DoubleVector.fromArray(S, sum, i * DoubleKernels.NR + j % DoubleKernels.NR)
                .fma(HALVES, offsets.add(q64.offsetQ()[row]));
        DoubleVector noise = noises.add(q64.noiseQ()[row]);
        LongVector rest = (LongVector) kl.mul(margin64).sub(noise).reinterpretShape(L, 0);
        open = open.or(rest).or(rest.add(UP_TO_INFINITY));
        rest =
            (LongVector)
                noises32
                    .add(q32.noiseQ()[row])
                    .sub(kl.add(noise).mul(foreseen))
                    .reinterpretShape(L, 0);
        mayBeFloat = mayBeFloat.or(rest).or(rest.add(UP_TO_INFINITY));
        if (wide) {
          kl.intoArray(out64, to);
        } else {
          ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out32, to);
        }
      }
    }
    return (open.reduceLanes(VectorOperators.OR) >= 0 ? SETTLED : 0)
        | (mayBeFloat.reduceLanes(VectorOperators.OR) >= 0 ? NO_FLOAT : 0);
  }

  /**
   * Stores the KL of a whole tile by the near kernel, and sets the bits of those that are 0.
   *
   * <p>Where double settles an entry, {@code noise64 ≤ kl64·margin64} and {@code kl64 ≤ KL + unit64·KL + noise64}; float as for {@link
   * #storeDouble}.
   *
   * @param least below which float's underflow shows
   * @return whether this form settles every entry, if those that are 0 have equal parameters
   */
  static boolean storeNear(
      Tile t,
      Packed<float[]> q32,
      Packed<float[]> p32,
      Packed<double[]> q64,
      Packed<double[]> p64,
      double margin32,
      double margin64,
      double least) {
    BlockTarget out = t.out();
    boolean wide = out.wide;
    float[] out32 = out.out32;
    double[] out64 = out.out64;
    double foreseen32 = margin32 * FORESIGHT;
    double foreseen64 = margin64 * FORESIGHT;
    Arrays.fill(t.zero, 0);
    LongVector open = LongVector.zero(L);
    LongVector low = LongVector.zero(L);
    for (int j = 0; j < FloatKernels.NR; j += S.length()) {
      DoubleVector noises32 = DoubleVector.fromArray(S, p32.noiseP(), t.column + j);
      DoubleVector noises64 = DoubleVector.fromArray(S, p64.noiseP(), t.column + j);
      int to = out.at(t.row, t.column + j);
      for (int i = 0; i < t.rows; i++, to += out.stride) {
        DoubleVector kl = DoubleVector.fromArray(S, t.sum, i * FloatKernels.NR + j).mul(HALVES);
        LongVector rest64 =
            (LongVector)
                noises64
                    .add(q64.noiseQ()[t.row + i])
                    .sub(kl.mul(foreseen64))
                    .reinterpretShape(L, 0);
        LongVector rest32 =
            (LongVector)
                noises32
                    .add(q32.noiseQ()[t.row + i])
                    .sub(kl.mul(foreseen32))
                    .reinterpretShape(L, 0);
        open =
            open.or(rest64)
                .or(rest64.add(UP_TO_INFINITY))
                .or(rest32)
                .or(rest32.add(UP_TO_INFINITY));
        low = low.or(kl.sub(least).reinterpretShape(L, 0));
        if (wide) {
          kl.intoArray(out64, to);
        } else {
          ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out32, to);
        }
      }
    }
    if (open.reduceLanes(VectorOperators.OR) < 0) {
      return false;
    }
    return low.reduceLanes(VectorOperators.OR) >= 0 || areZeros(t, least);
  }

  /** Sets the bits of the entries whose near form is 0; whether those below {@code least} all are. */
  private static boolean areZeros(Tile t, double least) {
    boolean zeros = true;
    for (int i = 0; i < t.rows; i++) {
      for (int j = 0; j < FloatKernels.NR; j++) {
        double kl = 0.5 * t.sum[i * FloatKernels.NR + j];
        if (kl == 0) {
          t.zero[i] |= 1L << j;
        } else {
          zeros &= kl >= least;
        }
      }
    }
    return zeros;
  }

  /**
   * Settles the entries of rows [from, to) and columns [first, first + columns) of the tile whose error bound is within tolerance, by the
   * very operations of {@link #store}, and opens the others.
   *
   * @param sum S + D, row-major with {@code nr} columns, that row and column at {@code begin}
   * @return how many are open
   */
  static int judge(
      Tile t,
      int from,
      int to,
      int first,
      int columns,
      double[] sum,
      int begin,
      int nr,
      Packed<?> q,
      Packed<?> p,
      double margin) {
    LongVector open = LongVector.zero(L);
    for (int j = 0; j < columns; j += S.length()) {
      DoubleVector offsets = DoubleVector.fromArray(S, p.offsetP(), t.column + first + j);
      DoubleVector noises = DoubleVector.fromArray(S, p.noiseP(), t.column + first + j);
      int at = from * t.width + first + j;
      for (int i = from; i < to; i++, at += t.width) {
        int row = t.row + i;
        DoubleVector kl =
            DoubleVector.fromArray(S, sum, begin + (i - from) * nr + j)
                .fma(HALVES, offsets.add(q.offsetQ()[row]));
        LongVector rest =
            (LongVector) kl.mul(margin).sub(noises.add(q.noiseQ()[row])).reinterpretShape(L, 0);
        LongVector isOpen =
            ZERO.sub(rest.or(rest.add(UP_TO_INFINITY)).lanewise(VectorOperators.LSHR, 63));
        ((DoubleVector) ((LongVector) kl.reinterpretShape(L, 0)).or(isOpen).reinterpretShape(S, 0))
            .intoArray(t.kl, at);
        open = open.sub(isOpen);
      }
    }
    return (int) open.reduceLanes(VectorOperators.ADD);
  }

  /** Settles those that are open only, and within tolerance. */
  static int settle(
      Tile t,
      int from,
      int to,
      int first,
      int columns,
      double[] sum,
      int begin,
      int nr,
      Packed<?> q,
      Packed<?> p,
      double margin) {
    LongVector open = LongVector.zero(L);
    for (int j = 0; j < columns; j += S.length()) {
      DoubleVector offsets = DoubleVector.fromArray(S, p.offsetP(), t.column + first + j);
      DoubleVector noises = DoubleVector.fromArray(S, p.noiseP(), t.column + first + j);
      int at = from * t.width + first + j;
      for (int i = from; i < to; i++, at += t.width) {
        int row = t.row + i;
        DoubleVector kl =
            DoubleVector.fromArray(S, sum, begin + (i - from) * nr + j)
                .fma(HALVES, offsets.add(q.offsetQ()[row]));
        LongVector rest =
            (LongVector) kl.mul(margin).sub(noises.add(q.noiseQ()[row])).reinterpretShape(L, 0);
        LongVector isOpen =
            ZERO.sub(rest.or(rest.add(UP_TO_INFINITY)).lanewise(VectorOperators.LSHR, 63));
        LongVector before = (LongVector) DoubleVector.fromArray(S, t.kl, at).reinterpretShape(L, 0);
        LongVector wasOpen = ZERO.sub(before.lanewise(VectorOperators.LSHR, 63));
        ((DoubleVector)
                before
                    .bitwiseBlend(((LongVector) kl.reinterpretShape(L, 0)).or(isOpen), wasOpen)
                    .reinterpretShape(S, 0))
            .intoArray(t.kl, at);
        open = open.sub(isOpen.and(wasOpen));
      }
    }
    return (int) open.reduceLanes(VectorOperators.ADD);
  }

  /** Finds the rows that have open entries. */
  static void findOpen(Tile t) {
    for (int i = 0; i < t.rows; i++) {
      LongVector open = LongVector.zero(L);
      for (int j = 0; j < FloatKernels.NR; j += S.length()) {
        open =
            open.or(
                DoubleVector.fromArray(S, t.kl, i * FloatKernels.NR + j).reinterpretShape(L, 0));
      }
      t.open[i] = open.reduceLanes(VectorOperators.OR) < 0;
    }
  }

  /**
   * Settles the open entries that the near form is right for, and sets the bits of those that it makes 0.
   *
   * @param least below which float's underflow shows
   */
  static void settleNear(Tile t, Packed<float[]> q, Packed<float[]> p, double least) {
    for (int j = 0; j < FloatKernels.NR; j += S.length()) {
      DoubleVector offsets = DoubleVector.fromArray(S, p.offsetP(), t.column + j);
      for (int i = 0; i < t.rows; i++) {
        int at = i * FloatKernels.NR + j;
        // NaN where float does not hold the scales
        DoubleVector kl =
            offsets
                .add(q.offsetQ()[t.row + i])
                .fma(DoubleVector.zero(S), DoubleVector.fromArray(S, t.sum, at).mul(HALVES));
        LongVector bits = (LongVector) kl.reinterpretShape(L, 0);
        LongVector isOpen =
            ZERO.sub(
                ((LongVector) kl.sub(least).reinterpretShape(L, 0))
                    .or(bits)
                    .or(bits.add(UP_TO_INFINITY))
                    .lanewise(VectorOperators.LSHR, 63));
        LongVector before = (LongVector) DoubleVector.fromArray(S, t.kl, at).reinterpretShape(L, 0);
        LongVector wasOpen = ZERO.sub(before.lanewise(VectorOperators.LSHR, 63));
        ((DoubleVector) before.bitwiseBlend(bits.or(isOpen), wasOpen).reinterpretShape(S, 0))
            .intoArray(t.kl, at);
      }
    }
    Arrays.fill(t.zero, 0);
    for (int i = 0; i < t.rows; i++) {
      for (int j = 0; j < t.columns && t.open[i]; j++) {
        if (t.isOpen(i, j) && t.sum[i * FloatKernels.NR + j] == 0) {
          t.zero[i] |= 1L << j;
        }
      }
    }
  }

  /** Stores the tile's KL. */
  static void store(Tile t) {
    BlockTarget out = t.out();
    boolean wide = out.wide;
    float[] out32 = out.out32;
    double[] out64 = out.out64;
    int vectors = t.columns / S.length() * S.length();
    for (int j = 0; j < vectors; j += S.length()) {
      int to = out.at(t.row, t.column + j);
      for (int i = 0; i < t.rows; i++, to += out.stride) {
        DoubleVector kl = DoubleVector.fromArray(S, t.kl, i * t.width + j);
        if (wide) {
          kl.intoArray(out64, to);
        } else {
          ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out32, to);
        }
      }
    }
    for (int j = vectors; j < t.columns; j++) { // scalar tail
      for (int i = 0; i < t.rows; i++) {
        out.put(t.row + i, t.column + j, t.kl[i * t.width + j]);
      }
    }
  }
}
