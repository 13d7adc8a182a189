package dev.kullback.internal.vector;

import dev.kullback.internal.plain.PairKl;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;
import org.jspecify.annotations.Nullable;

/** What follows the micro-kernel: promotion, log-determinants, the error bound of each entry, and the store; all in double. */
public final class Epilogue {
  private static final VectorSpecies<Double> S = VectorWidth.DOUBLE;
  private static final VectorSpecies<Float> HALF = VectorWidth.HALF_FLOAT;
  private static final VectorSpecies<Long> L = S.withLanes(long.class);

  private static final DoubleVector HALVES = DoubleVector.broadcast(S, 0.5);

  private static final long ALL_LANES = -1L >>> -S.length();

  /** 1, 2, 4, … */
  private static final LongVector BIT_OF_LANE =
      LongVector.broadcast(L, 1).lanewise(VectorOperators.LSHL, LongVector.zero(L).addIndex(1));

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
        t.out32,
        t.out64,
        t.at(t.row, t.column),
        t.stride);
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

  /** Whether {@link #storeWhole} applies. */
  static boolean isWhole(Tile t, int d) {
    return t.columns == FloatKernels.NR && d <= FloatKernels.PROMOTED;
  }

  /**
   * {@link #store} of the usual float tile, whose S + D are still in {@code t.acc32}. Its constant width saves a quarter of the
   * time, 0.15 ns an entry instead of 0.20, and promotion on the way another 0.04 (Zen 5).
   */
  static boolean storeWhole(Tile t, Packed<float[]> q, Packed<float[]> p, double margin) {
    float[] acc = t.acc32;
    float @Nullable [] out32 = t.out32;
    double @Nullable [] out64 = t.out64;
    double[] columnOffset = p.offsetP();
    double[] columnNoise = p.noiseP();
    VectorMask<Long> within = L.maskAll(true);
    for (int i = 0; i < t.rows; i++) {
      double offset = q.offsetQ()[t.row + i];
      double noise = q.noiseQ()[t.row + i];
      int to = t.at(t.row + i, t.column);
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
   * Turns S + D into KL in place and sets, for rows [from, to) and columns [first, first + columns) of the tile, the bits of the entries whose error
   * bound is within tolerance, by the very operations of {@link #store}, and of those that may be within {@link
   * NearKernel#LIMIT}.
   *
   * @param sum row-major with {@code nr} columns, beginning with that row and column
   */
  static void judge(
      Tile t,
      int from,
      int to,
      double[] sum,
      int nr,
      int first,
      int columns,
      Packed<?> q,
      Packed<?> p,
      double unit,
      double tolerance) {
    for (int i = from; i < to; i++) {
      double offset = q.offsetQ()[t.row + i];
      double noise = q.noiseQ()[t.row + i];
      long certain = 0;
      long close = 0;
      for (int j = 0; j < columns; j += S.length()) {
        int column = t.column + first + j;
        DoubleVector offsets = DoubleVector.fromArray(S, p.offsetP(), column).add(offset);
        DoubleVector noises = DoubleVector.fromArray(S, p.noiseP(), column).add(noise);
        DoubleVector kl = DoubleVector.fromArray(S, sum, (i - from) * nr + j).fma(HALVES, offsets);
        certain |=
            kl.mul(tolerance - unit)
                    .sub(noises)
                    .viewAsIntegralLanes()
                    .compare(VectorOperators.ULT, INFINITY_BITS)
                    .toLong()
                << j;
        close |=
            kl.mul(1 - unit).compare(VectorOperators.LE, noises.add(NearKernel.LIMIT)).toLong()
                << j;
        kl.intoArray(sum, (i - from) * nr + j);
      }
      t.certain[i] = certain << first;
      t.close[i] = close << first;
    }
  }

  /**
   * Sets in {@code t.foreseen} the bits of the entries that {@link PairKl#SHORT_BLOCK} settles, by the KL that {@link #judge} left in
   * {@code t.sum}.
   */
  static void foresee(Tile t, int nr, Packed<?> q, Packed<?> p) {
    double margin = PairKl.FORESEEN_TOLERANCE - PairKl.unitShort();
    for (int i = 0; i < t.rows; i++) {
      double noise = q.noiseQ()[t.row + i];
      long foreseen = 0;
      for (int j = 0; j < t.columns; j += S.length()) {
        DoubleVector noises = DoubleVector.fromArray(S, p.noiseP(), t.column + j).add(noise);
        DoubleVector kl = DoubleVector.fromArray(S, t.sum, i * nr + j);
        foreseen |=
            kl.mul(margin)
                    .sub(noises)
                    .viewAsIntegralLanes()
                    .compare(VectorOperators.ULT, INFINITY_BITS)
                    .toLong()
                << j;
      }
      t.foreseen[i] = foreseen;
    }
  }

  /**
   * Turns the near kernel's sums into KL in place and sets the bits of the entries that it is right for, and in {@code t.close}
   * of those that are 0.
   *
   * @param least below which float's underflow shows
   */
  static void judgeNear(Tile t, double[] sum, int nr, Packed<?> q, Packed<?> p, double least) {
    for (int i = 0; i < t.rows; i++) {
      double offset = q.offsetQ()[t.row + i];
      long certain = 0;
      long zero = 0;
      for (int j = 0; j < t.columns; j += S.length()) {
        DoubleVector kl = DoubleVector.fromArray(S, sum, i * nr + j).mul(0.5);
        // an offset is NaN where float does not hold the variances
        DoubleVector held = DoubleVector.fromArray(S, p.offsetP(), t.column + j).add(offset);
        certain |=
            kl.compare(VectorOperators.LE, NearKernel.LIMIT)
                    .and(kl.compare(VectorOperators.GE, least))
                    .and(held.compare(VectorOperators.EQ, held))
                    .toLong()
                << j;
        zero |= kl.compare(VectorOperators.EQ, 0).toLong() << j;
        kl.intoArray(sum, i * nr + j);
      }
      t.certain[i] = certain;
      t.close[i] = zero;
    }
  }

  /** Stores the entries of a row that have a bit; {@code values[from]} is column {@code first} of the tile. */
  static void put(Tile t, int i, long bits, int first, int columns, double[] values, int from) {
    int to = t.at(t.row + i, t.column + first);
    float[] out32 = t.out32;
    double[] out64 = t.out64;
    for (int j = 0; j < columns; j += S.length()) {
      DoubleVector kl = DoubleVector.fromArray(S, values, from + j);
      if ((~(bits >>> (first + j)) & ALL_LANES) == 0) {
        if (out32 != null) {
          ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0)).intoArray(out32, to + j);
        } else if (out64 != null) {
          kl.intoArray(out64, to + j);
        }
        continue;
      }
      if (columns - j < S.length()) { // a masked store that reaches over the array's end may box
        for (long rest = bits >>> (first + j) & ALL_LANES; rest != 0; rest &= rest - 1) {
          int lane = j + Long.numberOfTrailingZeros(rest);
          t.put(t.row + i, t.column + first + lane, values[from + lane]);
        }
        continue;
      }
      // not VectorMask.fromLong: see VectorScan
      VectorMask<Double> mask =
          BIT_OF_LANE.and(bits >>> (first + j)).compare(VectorOperators.NE, 0).cast(S);
      if (out32 != null) {
        ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0))
            .intoArray(out32, to + j, mask.cast(HALF));
      } else if (out64 != null) {
        kl.intoArray(out64, to + j, mask);
      }
    }
  }
}
