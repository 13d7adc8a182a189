package dev.kullback;

import java.util.Objects;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/** What follows the micro-kernel: promotion, log-determinants, the error bound of each entry, and the store; all in double. */
final class Epilogue {
  private static final VectorSpecies<Double> S = VectorWidth.DOUBLE;
  private static final VectorSpecies<Float> HALF = VectorWidth.HALF_FLOAT;

  private Epilogue() {}

  /** {@code sum = acc}, or {@code sum += acc}. */
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

  /** Stores the tile's entries; whether the error bound of every one is within tolerance. */
  static boolean store(
      Tile t, int nr, Packed<?> q, Packed<?> p, int d, double unit, double tolerance) {
    float[] out32 = t.out32;
    if (out32 != null) {
      return store32(t, nr, q, p, d, unit, tolerance, out32);
    }
    return store64(t, nr, q, p, d, unit, tolerance, Objects.requireNonNull(t.out64));
  }

  /**
   * {@code out = S/2 + Σ ln σp − Σ ln σq} for the tile whose S + D are in {@code t.sum}, row-major with {@code nr} columns.
   *
   * @return whether the error bound of every entry is within tolerance
   */
  private static boolean store32(
      Tile t, int nr, Packed<?> q, Packed<?> p, int d, double unit, double tolerance, float[] out) {
    double[] sum = t.sum;
    double[] rowLogDets = q.logDet();
    double[] rowBounds = q.bound();
    int corner = t.base + t.row * t.stride + t.column;
    int vectors = t.columns / S.length() * S.length();
    VectorMask<Double> within = S.maskAll(true);
    for (int j = 0; j < vectors; j += S.length()) {
      DoubleVector logDets = DoubleVector.fromArray(S, p.logDet(), t.column + j);
      DoubleVector bounds = DoubleVector.fromArray(S, p.bound(), t.column + j);
      for (int i = 0; i < t.rows; i++) {
        DoubleVector half = DoubleVector.fromArray(S, sum, i * nr + j).sub(d).mul(0.5);
        DoubleVector kl = half.add(logDets.sub(rowLogDets[t.row + i]));
        DoubleVector rest = kl.mul(tolerance).sub(half.mul(unit));
        within =
            within.and(
                rest.compare(VectorOperators.GE, bounds.add(rowBounds[t.row + i] + unit * d)));
        ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0))
            .intoArray(out, corner + i * t.stride + j);
      }
    }
    boolean certain = within.allTrue();
    for (int i = 0; i < t.rows && vectors < t.columns; i++) {
      for (int j = vectors; j < t.columns; j++) { // scalar tail
        double half = 0.5 * (sum[i * nr + j] - d);
        double kl = half + (p.logDet()[t.column + j] - rowLogDets[t.row + i]);
        certain &=
            PairKl.isCertain(
                half,
                kl,
                unit,
                tolerance,
                p.bound()[t.column + j] + (rowBounds[t.row + i] + unit * d));
        out[corner + i * t.stride + j] = (float) kl;
      }
    }
    return certain;
  }

  /** As {@link #store32}, into double. */
  private static boolean store64(
      Tile t,
      int nr,
      Packed<?> q,
      Packed<?> p,
      int d,
      double unit,
      double tolerance,
      double[] out) {
    double[] sum = t.sum;
    double[] rowLogDets = q.logDet();
    double[] rowBounds = q.bound();
    int corner = t.base + t.row * t.stride + t.column;
    int vectors = t.columns / S.length() * S.length();
    VectorMask<Double> within = S.maskAll(true);
    for (int j = 0; j < vectors; j += S.length()) {
      DoubleVector logDets = DoubleVector.fromArray(S, p.logDet(), t.column + j);
      DoubleVector bounds = DoubleVector.fromArray(S, p.bound(), t.column + j);
      for (int i = 0; i < t.rows; i++) {
        DoubleVector half = DoubleVector.fromArray(S, sum, i * nr + j).sub(d).mul(0.5);
        DoubleVector kl = half.add(logDets.sub(rowLogDets[t.row + i]));
        DoubleVector rest = kl.mul(tolerance).sub(half.mul(unit));
        within =
            within.and(
                rest.compare(VectorOperators.GE, bounds.add(rowBounds[t.row + i] + unit * d)));
        kl.intoArray(out, corner + i * t.stride + j);
      }
    }
    boolean certain = within.allTrue();
    for (int i = 0; i < t.rows && vectors < t.columns; i++) {
      for (int j = vectors; j < t.columns; j++) { // scalar tail
        double half = 0.5 * (sum[i * nr + j] - d);
        double kl = half + (p.logDet()[t.column + j] - rowLogDets[t.row + i]);
        certain &=
            PairKl.isCertain(
                half,
                kl,
                unit,
                tolerance,
                p.bound()[t.column + j] + (rowBounds[t.row + i] + unit * d));
        out[corner + i * t.stride + j] = kl;
      }
    }
    return certain;
  }

  /**
   * Turns S + D into KL in place and sets, for columns [first, first + columns) of the tile, the bits of the entries whose error
   * bound is within tolerance, by the very operations of {@link #store}, and of those that may be within {@link
   * NearKernel#LIMIT}.
   *
   * @param sum row-major with {@code nr} columns, of which the first is column {@code first} of the tile
   */
  static void judge(
      Tile t,
      double[] sum,
      int nr,
      int first,
      int columns,
      Packed<?> q,
      Packed<?> p,
      int d,
      double unit,
      double tolerance) {
    for (int i = 0; i < t.rows; i++) {
      double logDet = q.logDet()[t.row + i];
      double bound = q.bound()[t.row + i] + unit * d;
      long certain = 0;
      long close = 0;
      for (int j = 0; j < columns; j += S.length()) {
        int column = t.column + first + j;
        DoubleVector half = DoubleVector.fromArray(S, sum, i * nr + j).sub(d).mul(0.5);
        DoubleVector kl = half.add(DoubleVector.fromArray(S, p.logDet(), column).sub(logDet));
        DoubleVector scaled = half.mul(unit);
        DoubleVector bounds = DoubleVector.fromArray(S, p.bound(), column).add(bound);
        certain |= kl.mul(tolerance).sub(scaled).compare(VectorOperators.GE, bounds).toLong() << j;
        close |=
            kl.sub(scaled.add(bounds)).compare(VectorOperators.LE, NearKernel.LIMIT).toLong() << j;
        kl.intoArray(sum, i * nr + j);
      }
      t.certain[i] = certain << first;
      t.close[i] = close << first;
    }
  }

  /** Turns the near kernel's sums into KL in place and sets the bits of the entries that it is right for. */
  static void judgeNear(Tile t, double[] sum, int nr, Packed<?> q, Packed<?> p) {
    for (int i = 0; i < t.rows; i++) {
      double logDet = q.logDet()[t.row + i];
      long certain = 0;
      for (int j = 0; j < t.columns; j += S.length()) {
        DoubleVector kl = DoubleVector.fromArray(S, sum, i * nr + j).mul(0.5);
        // a log-determinant is NaN where float does not hold the variances
        DoubleVector held = DoubleVector.fromArray(S, p.logDet(), t.column + j).sub(logDet);
        certain |=
            kl.compare(VectorOperators.LE, NearKernel.LIMIT)
                    .and(held.compare(VectorOperators.EQ, held))
                    .toLong()
                << j;
        kl.intoArray(sum, i * nr + j);
      }
      t.certain[i] = certain;
    }
  }

  /** Stores the entries of a row that have a bit; {@code values[from]} is column {@code first} of the tile. */
  static void put(Tile t, int i, long bits, int first, int columns, double[] values, int from) {
    int to = t.base + (t.row + i) * t.stride + t.column + first;
    float[] out32 = t.out32;
    double[] out64 = t.out64;
    for (int j = 0; j < columns; j += S.length()) {
      VectorMask<Double> mask = VectorMask.fromLong(S, bits >>> (first + j));
      DoubleVector kl = DoubleVector.fromArray(S, values, from + j);
      if (out32 != null) {
        ((FloatVector) kl.convertShape(VectorOperators.D2F, HALF, 0))
            .intoArray(out32, to + j, mask.cast(HALF));
      } else if (out64 != null) {
        kl.intoArray(out64, to + j, mask);
      }
    }
  }
}
