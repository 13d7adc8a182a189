package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Form;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * The divergence of nearly identical Gaussians of one {@link Scale} in float, without cancellation: {@code KL = ½ Σ_h [d²/v_p +
 * z² P(z)]}, where z is the relative (for log-variances absolute) difference of the raw scales and {@code z² P(z) = σq²/σp² −
 * 1 − ln(σq²/σp²)}. Nearby values subtract exactly and no term is negative, so nothing cancels: a term is good to 21 roundings, 8e-7 of P
 * included, and is in at most 128 of the sums before promotion, together 9e-6.
 */
final class NearKernel {
  /**
   * Where this form holds. It tells by itself: P is positive everywhere, so no term exceeds the sum, and a computed {@code KL ≤
   * LIMIT} bounds every z, |z| < 0.045 for std and 0.095 for the others, where P is accurate.
   */
  static final double LIMIT = 0x1p-9;

  private static final VectorSpecies<Float> S = Species.FLOAT;
  private static final int V = S.length();
  private static final int NR = FloatPanels.NR;

  /** Rows of a block: enough to spread the column loads, which cross cache lines; two rows ran at 60 % of this. */
  private static final int ROWS = 4;

  // P, interpolated at the Chebyshev nodes of the range of z with P(0) kept exact: relative error
  // 2e-9, 1e-7, 1e-9, 8e-7.
  private static final float[] STD = {2f, -0.6666663f, 0.5000004f, -0.40070474f, 0.33348003f};
  private static final float[] VARIANCE = {
    0.5f, -0.33333057f, 0.25000864f, -0.20140195f, 0.16602214f
  };
  private static final float[] LOG_VARIANCE = {
    0.5f, 0.16666666f, 0.041666675f, 0.008335288f, 0.0013878291f
  };
  private static final float[] PRECISION = {
    0.5f, -0.66665065f, 0.7501147f, -0.8082453f, 0.8195326f
  };

  /** A batch as {@link #packColumns} makes it, kept with it. */
  static final Form<DiagonalBatch, float[]> COLUMNS =
      new Form<>(NearKernel::packColumns, c -> (long) Float.BYTES * c.length);

  private NearKernel() {}

  /** From which value on the underflow of D terms in float, 2⁻¹⁴⁸ or less each, stays below 2⁻²⁴ of it. */
  static double leastKl(int dimension) {
    return dimension * 0x1p-124;
  }

  /**
   * Means, inverse variances, raw scales s and weights w, {@code z = (s_q − s_p) w}: {@code [b][h][4][V]} for columns b·V to
   * b·V + V − 1. What a block reads is contiguous, to stay in the L1 cache.
   */
  private static float[] packColumns(DiagonalBatch g) {
    int n = g.size();
    int d = g.dimension();
    float[] mean = g.mean32();
    float[] scale = g.scale32();
    float[] columns = new float[Math.ceilDiv(n, NR) * NR * 4 * d];
    Checkpoint checkpoint = new Checkpoint();
    for (int j = 0; j < n; j++) {
      checkpoint.pass((long) Checkpoint.PLAIN * d);
      int to = j / V * V * 4 * d + j % V;
      for (int h = 0; h < d; h++, to += 4 * V) {
        float s = scale[j * d + h];
        columns[to] = mean[j * d + h];
        columns[to + V] = (float) (1 / g.kind().variance(s));
        columns[to + 2 * V] = s;
        columns[to + 3 * V] = g.kind() == Scale.LOG_VARIANCE ? 1 : 1 / s;
      }
    }
    return columns;
  }

  private static float[] coefficients(Scale kind) {
    return switch (kind) {
      case STD -> STD;
      case VARIANCE -> VARIANCE;
      case LOG_VARIANCE -> LOG_VARIANCE;
      case PRECISION -> PRECISION;
    };
  }

  /**
   * {@code sum[i][c] = 2 KL} for the rows of the tile that have a bit in {@code t.open}, if it is at most {@code 2 LIMIT}. A
   * block of dimensions is read from the L1 cache by every row after the first.
   */
  static void tile(DiagonalBatch q, DiagonalBatch p, Tile t, double[] sum) {
    int d = q.dimension();
    float[] columns = COLUMNS.of(p);
    float[] coefficients = coefficients(q.kind());
    for (int h = 0; h < d; h += FloatKernels.KC) {
      int length = Math.min(FloatKernels.KC, d - h);
      for (int c = 0; c < t.columns; c += V) {
        int at = ((t.column + c) / V * d + h) * 4 * V;
        for (int i = 0; i < t.rows; i += ROWS) {
          int last = t.row + Math.min(i + ROWS, t.rows) - 1;
          if (isOpen(t, i)) {
            block(
                q.mean32(),
                q.scale32(),
                (t.row + i) * d + h,
                last * d + h,
                d,
                columns,
                at,
                length,
                coefficients,
                t.acc32,
                i * NR + c);
          }
        }
      }
      Epilogue.promote(t.acc32, sum, Math.ceilDiv(t.rows, ROWS) * ROWS * NR, h == 0);
    }
  }

  /** KL of one entry without vectors, by the very operations of a lane of {@link #tile} and of its epilogue; NaN where this form is not right. */
  static double kl(DiagonalBatch q, int i, DiagonalBatch p, int j, boolean held) {
    int d = q.dimension();
    float[] mean = q.mean32();
    float[] scale = q.scale32();
    float[] columns = COLUMNS.of(p);
    float[] c = coefficients(q.kind());
    double sum = 0;
    for (int h = 0; h < d; h += FloatKernels.KC) {
      float acc = 0;
      for (int k = h, end = Math.min(d, h + FloatKernels.KC); k < end; k++) {
        int at = (j / V * d + k) * 4 * V + j % V;
        float x = mean[i * d + k] - columns[at];
        float z = (scale[i * d + k] - columns[at + 2 * V]) * columns[at + 3 * V];
        float zz = z * z;
        acc = Math.fma(x * columns[at + V], x, acc);
        float high = Math.fma(zz, c[4], c[3] * z + c[2]);
        acc = Math.fma(zz, Math.fma(zz, high, c[1] * z + c[0]), acc);
      }
      sum += acc;
    }
    double kl = 0.5 * sum;
    boolean settled = (kl <= LIMIT && kl >= leastKl(d) && held) || (kl == 0 && q.isEqual(i, p, j));
    return settled ? kl : Double.NaN;
  }

  private static boolean isOpen(Tile t, int row) {
    long open = 0;
    for (int i = row; i < Math.min(row + ROWS, t.rows); i++) {
      open |= t.open[i];
    }
    return open != 0;
  }

  /** Rows at indices first, first + d, … but none beyond last, by one vector of columns. */
  private static void block(
      float[] mean,
      float[] scale,
      int first,
      int last,
      int d,
      float[] columns,
      int j,
      int length,
      float[] coefficients,
      float[] acc,
      int to) {
    FloatVector p0 = FloatVector.broadcast(S, coefficients[0]);
    FloatVector p1 = FloatVector.broadcast(S, coefficients[1]);
    FloatVector p2 = FloatVector.broadcast(S, coefficients[2]);
    FloatVector p3 = FloatVector.broadcast(S, coefficients[3]);
    FloatVector p4 = FloatVector.broadcast(S, coefficients[4]);
    int i1 = Math.min(first + d, last);
    int i2 = Math.min(first + 2 * d, last);
    int i3 = Math.min(first + 3 * d, last);
    FloatVector a0 = FloatVector.zero(S);
    FloatVector a1 = FloatVector.zero(S);
    FloatVector a2 = FloatVector.zero(S);
    FloatVector a3 = FloatVector.zero(S);
    for (int h = 0; h < length; h++) {
      int k = j + h * (4 * V);
      FloatVector m = FloatVector.fromArray(S, columns, k);
      FloatVector r = FloatVector.fromArray(S, columns, k + V);
      FloatVector s = FloatVector.fromArray(S, columns, k + 2 * V);
      FloatVector w = FloatVector.fromArray(S, columns, k + 3 * V);
      FloatVector x;
      FloatVector z;
      FloatVector zz;
      // P by Estrin's scheme, for Horner's long chain fills the scheduler; mul and add, not fma,
      // where
      // the addend is constant and C2 would copy it
      x = FloatVector.broadcast(S, mean[first + h]).sub(m);
      z = FloatVector.broadcast(S, scale[first + h]).sub(s).mul(w);
      zz = z.mul(z);
      a0 = x.mul(r).fma(x, a0);
      a0 = zz.fma(zz.fma(zz.fma(p4, p3.mul(z).add(p2)), p1.mul(z).add(p0)), a0);
      x = FloatVector.broadcast(S, mean[i1 + h]).sub(m);
      z = FloatVector.broadcast(S, scale[i1 + h]).sub(s).mul(w);
      zz = z.mul(z);
      a1 = x.mul(r).fma(x, a1);
      a1 = zz.fma(zz.fma(zz.fma(p4, p3.mul(z).add(p2)), p1.mul(z).add(p0)), a1);
      x = FloatVector.broadcast(S, mean[i2 + h]).sub(m);
      z = FloatVector.broadcast(S, scale[i2 + h]).sub(s).mul(w);
      zz = z.mul(z);
      a2 = x.mul(r).fma(x, a2);
      a2 = zz.fma(zz.fma(zz.fma(p4, p3.mul(z).add(p2)), p1.mul(z).add(p0)), a2);
      x = FloatVector.broadcast(S, mean[i3 + h]).sub(m);
      z = FloatVector.broadcast(S, scale[i3 + h]).sub(s).mul(w);
      zz = z.mul(z);
      a3 = x.mul(r).fma(x, a3);
      a3 = zz.fma(zz.fma(zz.fma(p4, p3.mul(z).add(p2)), p1.mul(z).add(p0)), a3);
    }
    a0.intoArray(acc, to);
    a1.intoArray(acc, to + NR);
    a2.intoArray(acc, to + 2 * NR);
    a3.intoArray(acc, to + 3 * NR);
  }
}
