package dev.kullback.internal.vector;

import dev.kullback.internal.kernel.Window;
import dev.kullback.internal.plain.PairKl;
import java.util.Arrays;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;
import org.jspecify.annotations.Nullable;

/** What follows the micro-kernel: promotion, log-determinants, the error bound of each entry, and the store; all in double. */
public final class Epilogue {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final VectorSpecies<Float> HALF = Species.HALF_FLOAT;
  private static final VectorSpecies<Long> L = S.withLanes(long.class);

  private static final DoubleVector HALVES = DoubleVector.broadcast(S, 0.5);
  private static final DoubleVector ONES = DoubleVector.broadcast(S, 1);
  private static final DoubleVector NONE = DoubleVector.broadcast(S, Double.NaN);

  /** What {@link #storeDouble} found: that the double form settles every entry, and that float settles none. */
  static final int SETTLED = 1;

  static final int NO_FLOAT = 2;

  /**
   * A form's margin less what another's values, good to 1.1e-5 where that form settles an entry, may be off: below it the form does not
   * settle an entry.
   */
  private static final double FORESIGHT = 1 + 1e-4;

  /**
   * {@link PairKl#isCertain}, 0 ≤ kl·margin − noise < ∞, is one comparison with it, for as unsigned integers negatives and NaN are greater. It stands
   * wherever it is needed: in a method of its own, once that was compiled by itself to more code than InlineSmallCode allows, C2 boxed 168 B a vector for good.
   */
  public static final long INFINITY_BITS = Double.doubleToRawLongBits(Double.POSITIVE_INFINITY);

  private Epilogue() {}

  /** {@code sum = acc}, or {@code +=}. */
  static void promote(float[] acc, double[] sum, int n, boolean first) {
    if (first) {
      for (int i = 0; i < n; i += S.length()) {
        widen(acc, i).intoArray(sum, i);
      }
    } else {
      for (int i = 0; i < n; i += S.length()) {
        widen(acc, i).add(DoubleVector.fromArray(S, sum, i)).intoArray(sum, i);
      }
    }
  }

  /** The same by the near form, infinite where it does not hold. */
  static void promoteNear(float[] acc, double[] sum, int n, boolean first) {
    for (int i = 0; i < n; i += S.length()) {
      DoubleVector part = widen(acc, i);
      part =
          part.blend(
              Double.POSITIVE_INFINITY, part.compare(VectorOperators.GT, 2 * NearKernel.LIMIT));
      (first ? part : part.add(DoubleVector.fromArray(S, sum, i))).intoArray(sum, i);
    }
  }

  private static DoubleVector widen(float[] acc, int i) {
    return (DoubleVector)
        FloatVector.fromArray(HALF, acc, i).convertShape(VectorOperators.F2D, S, 0);
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
        t.out().out32,
        t.out().out64,
        t.out().at(t.row, t.column),
        t.out().stride);
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
      float @Nullable [] out32,
      double @Nullable [] out64,
      int corner,
      int stride) {
    int vectors = columns / S.length() * S.length();
    VectorMask<Long> within = L.maskAll(true);
    for (int i = 0; i < rows; i++) {
      for (int j = 0; j < vectors; j += S.length()) {
        DoubleVector offsets = DoubleVector.fromArray(S, columnOffset, column + j);
        DoubleVector noises = DoubleVector.fromArray(S, columnNoise, column + j);
        DoubleVector kl =
            DoubleVector.fromArray(S, sum, i * nr + j).fma(HALVES, offsets.add(rowOffset[row + i]));
        within =
            within.and(
                kl.mul(margin)
                    .sub(noises.add(rowNoise[row + i]))
                    .viewAsIntegralLanes()
                    .compare(VectorOperators.ULT, INFINITY_BITS));
        int to = corner + i * stride + j;
        if (out32 != null) {
          ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out32, to);
        } else if (out64 != null) {
          kl.intoArray(out64, to);
        }
      }
    }
    boolean certain = within.allTrue();
    for (int i = 0; i < rows && vectors < columns; i++) {
      for (int j = vectors; j < columns; j++) { // scalar tail
        double kl = sum[i * nr + j] * 0.5 + (columnOffset[column + j] + rowOffset[row + i]);
        certain &= PairKl.isCertain(kl, columnNoise[column + j] + rowNoise[row + i], margin);
        int to = corner + i * stride + j;
        if (out32 != null) {
          out32[to] = (float) kl;
        } else if (out64 != null) {
          out64[to] = kl;
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
    Window out = t.out();
    float @Nullable [] out32 = out.out32;
    double @Nullable [] out64 = out.out64;
    double[] columnOffset = p.offsetP();
    double[] columnNoise = p.noiseP();
    VectorMask<Long> within = L.maskAll(true);
    for (int i = 0; i < t.rows; i++) {
      double offset = q.offsetQ()[t.row + i];
      double noise = q.noiseQ()[t.row + i];
      int to = out.at(t.row + i, t.column);
      for (int j = 0; j < FloatKernels.NR; j += S.length()) {
        DoubleVector kl =
            widen(acc, i * FloatKernels.NR + j)
                .fma(HALVES, DoubleVector.fromArray(S, columnOffset, t.column + j).add(offset));
        DoubleVector noises = DoubleVector.fromArray(S, columnNoise, t.column + j).add(noise);
        within =
            within.and(
                kl.mul(margin)
                    .sub(noises)
                    .viewAsIntegralLanes()
                    .compare(VectorOperators.ULT, INFINITY_BITS));
        if (out32 != null) {
          ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out32, to + j);
        } else if (out64 != null) {
          kl.intoArray(out64, to + j);
        }
      }
    }
    return within.allTrue();
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
    Window out = t.out();
    float @Nullable [] out32 = out.out32;
    double @Nullable [] out64 = out.out64;
    double foreseen = margin32 * FORESIGHT;
    VectorMask<Double> within = S.maskAll(true);
    VectorMask<Double> beyond = S.maskAll(true);
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
        // beyond float there is no infinity
        within = within.and(kl.mul(margin64).compare(VectorOperators.GE, noise));
        beyond =
            beyond.and(
                kl.add(noise)
                    .mul(foreseen)
                    .compare(VectorOperators.LT, noises32.add(q32.noiseQ()[row])));
        if (out32 != null) {
          ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out32, to);
        } else if (out64 != null) {
          kl.intoArray(out64, to);
        }
      }
    }
    return (within.allTrue() ? SETTLED : 0) | (beyond.allTrue() ? NO_FLOAT : 0);
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
    Window out = t.out();
    float @Nullable [] out32 = out.out32;
    double @Nullable [] out64 = out.out64;
    double foreseen32 = margin32 * FORESIGHT;
    double foreseen64 = margin64 * FORESIGHT;
    Arrays.fill(t.zero, 0);
    VectorMask<Double> within = S.maskAll(true);
    for (int j = 0; j < FloatKernels.NR; j += S.length()) {
      DoubleVector noises32 = DoubleVector.fromArray(S, p32.noiseP(), t.column + j);
      DoubleVector noises64 = DoubleVector.fromArray(S, p64.noiseP(), t.column + j);
      int to = out.at(t.row, t.column + j);
      for (int i = 0; i < t.rows; i++, to += out.stride) {
        DoubleVector kl = DoubleVector.fromArray(S, t.sum, i * FloatKernels.NR + j).mul(HALVES);
        VectorMask<Double> none = kl.compare(VectorOperators.EQ, 0);
        if (none.anyTrue()) {
          t.zero[i] |= none.toLong() << j;
        }
        within =
            within
                .and(kl.compare(VectorOperators.GE, least).or(none))
                .and(
                    kl.mul(foreseen64)
                        .compare(VectorOperators.LT, noises64.add(q64.noiseQ()[t.row + i])))
                .and(
                    kl.mul(foreseen32)
                        .compare(VectorOperators.LT, noises32.add(q32.noiseQ()[t.row + i])));
        if (out32 != null) {
          ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out32, to);
        } else if (out64 != null) {
          kl.intoArray(out64, to);
        }
      }
    }
    return within.allTrue();
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
    DoubleVector open = DoubleVector.zero(S);
    for (int j = 0; j < columns; j += S.length()) {
      DoubleVector offsets = DoubleVector.fromArray(S, p.offsetP(), t.column + first + j);
      DoubleVector noises = DoubleVector.fromArray(S, p.noiseP(), t.column + first + j);
      int at = from * t.width + first + j;
      for (int i = from; i < to; i++, at += t.width) {
        int row = t.row + i;
        DoubleVector kl =
            DoubleVector.fromArray(S, sum, begin + (i - from) * nr + j)
                .fma(HALVES, offsets.add(q.offsetQ()[row]));
        DoubleVector rest = kl.mul(margin).sub(noises.add(q.noiseQ()[row]));
        VectorMask<Double> within =
            rest.compare(VectorOperators.GE, 0)
                .and(rest.compare(VectorOperators.LT, Double.POSITIVE_INFINITY));
        NONE.blend(kl, within).intoArray(t.kl, at);
        open = open.add(ONES.blend(0, within));
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
    DoubleVector open = DoubleVector.zero(S);
    for (int j = 0; j < columns; j += S.length()) {
      DoubleVector offsets = DoubleVector.fromArray(S, p.offsetP(), t.column + first + j);
      DoubleVector noises = DoubleVector.fromArray(S, p.noiseP(), t.column + first + j);
      int at = from * t.width + first + j;
      for (int i = from; i < to; i++, at += t.width) {
        int row = t.row + i;
        DoubleVector kl =
            DoubleVector.fromArray(S, sum, begin + (i - from) * nr + j)
                .fma(HALVES, offsets.add(q.offsetQ()[row]));
        DoubleVector rest = kl.mul(margin).sub(noises.add(q.noiseQ()[row]));
        VectorMask<Double> within =
            rest.compare(VectorOperators.GE, 0)
                .and(rest.compare(VectorOperators.LT, Double.POSITIVE_INFINITY));
        DoubleVector before = DoubleVector.fromArray(S, t.kl, at);
        DoubleVector after =
            before.blend(NONE.blend(kl, within), before.compare(VectorOperators.NE, before));
        after.intoArray(t.kl, at);
        open = open.add(ONES.blend(0, after.compare(VectorOperators.EQ, after)));
      }
    }
    return (int) open.reduceLanes(VectorOperators.ADD);
  }

  /** Finds the rows that have open entries. */
  static void findOpen(Tile t) {
    for (int i = 0; i < t.rows; i++) {
      VectorMask<Double> open = S.maskAll(false);
      for (int j = 0; j < FloatKernels.NR; j += S.length()) {
        DoubleVector kl = DoubleVector.fromArray(S, t.kl, i * FloatKernels.NR + j);
        open = open.or(kl.compare(VectorOperators.NE, kl));
      }
      t.open[i] = open.anyTrue();
    }
  }

  /**
   * Settles the open entries that the near form is right for, and sets the bits of those that it makes 0.
   *
   * @param least below which float's underflow shows
   */
  static void settleNear(Tile t, Packed<float[]> q, Packed<float[]> p, double least) {
    Arrays.fill(t.zero, 0);
    for (int j = 0; j < FloatKernels.NR; j += S.length()) {
      DoubleVector offsets = DoubleVector.fromArray(S, p.offsetP(), t.column + j);
      for (int i = 0; i < t.rows; i++) {
        int at = i * FloatKernels.NR + j;
        DoubleVector kl = DoubleVector.fromArray(S, t.sum, at).mul(HALVES);
        DoubleVector held = offsets.add(q.offsetQ()[t.row + i]);
        DoubleVector before = DoubleVector.fromArray(S, t.kl, at);
        VectorMask<Double> open = before.compare(VectorOperators.NE, before);
        VectorMask<Double> none = kl.compare(VectorOperators.EQ, 0).and(open);
        if (none.anyTrue()) {
          t.zero[i] |= none.toLong() << j;
        }
        VectorMask<Double> within =
            kl.compare(VectorOperators.GE, least)
                .and(kl.compare(VectorOperators.LT, Double.POSITIVE_INFINITY))
                .and(held.compare(VectorOperators.EQ, held));
        before.blend(kl, within.and(open)).intoArray(t.kl, at);
      }
    }
  }

  /** Stores the tile's KL. */
  static void store(Tile t) {
    Window out = t.out();
    float @Nullable [] out32 = out.out32;
    double @Nullable [] out64 = out.out64;
    int vectors = t.columns / S.length() * S.length();
    for (int j = 0; j < vectors; j += S.length()) {
      int to = out.at(t.row, t.column + j);
      for (int i = 0; i < t.rows; i++, to += out.stride) {
        DoubleVector kl = DoubleVector.fromArray(S, t.kl, i * t.width + j);
        if (out32 != null) {
          ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out32, to);
        } else if (out64 != null) {
          kl.intoArray(out64, to);
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
