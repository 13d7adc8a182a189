package dev.kullback;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * The divergence of nearly identical Gaussians of one {@link Scale} in float, without cancellation: {@code KL = ½ Σ_h [d²/v_p +
 * z² P(z)]}, where z is the relative (for log-variances absolute) difference of the raw scales and {@code z² P(z) = σq²/σp² −
 * 1 − ln(σq²/σp²)}. Nearby values subtract exactly and no term is negative, so the sum has the relative error of a term.
 */
final class NearKernel {
  /** No term exceeds the sum, so {@code KL ≤ LIMIT} bounds every z: |z| < 0.045 for std, 0.095 for the others. */
  static final double LIMIT = 0x1p-9;

  private static final VectorSpecies<Float> S = VectorWidth.FLOAT;
  private static final int NR = FloatKernels.NR;

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

  private NearKernel() {}

  /** Raw scales s and weights w, {@code z = (s_q − s_p) w}: {@code [b][h][2][NR]}. */
  static float[] packColumns(DiagonalGaussians g) {
    int n = g.size();
    int d = g.dimension();
    float[] scale = g.scale32();
    float[] columns = new float[FloatKernels.panels(n, NR) * NR * 2 * d];
    for (int j = 0; j < n; j++) {
      int to = j / NR * NR * 2 * d + j % NR;
      for (int h = 0; h < d; h++, to += 2 * NR) {
        float s = scale[j * d + h];
        columns[to] = s;
        columns[to + NR] = g.kind == Scale.LOG_VARIANCE ? 1 : 1 / s;
      }
    }
    return columns;
  }

  /** {@code sum[c] = 2 KL(q_i ‖ p_c)} for the columns c of a panel, wherever KL ≤ {@link #LIMIT}; other entries are noise. */
  static void row(
      DiagonalGaussians q, int i, DiagonalGaussians p, int columnPanel, float[] acc, double[] sum) {
    int d = q.dimension();
    float[] columns = p.columns32().values();
    float[] near = p.nearColumns();
    float[] coefficients =
        switch (q.kind) {
          case STD -> STD;
          case VARIANCE -> VARIANCE;
          case LOG_VARIANCE -> LOG_VARIANCE;
          case PRECISION -> PRECISION;
        };
    for (int h = 0; h < d; h += FloatKernels.KC) {
      int length = Math.min(FloatKernels.KC, d - h);
      for (int c = 0; c < NR; c += S.length()) {
        block(
            q.mean32(),
            q.scale32(),
            i * d + h,
            columns,
            (columnPanel * d + h) * 3 * NR + c,
            near,
            (columnPanel * d + h) * 2 * NR + c,
            length,
            coefficients,
            acc,
            c);
      }
      Epilogue.promote(acc, sum, NR, h == 0);
    }
  }

  private static void block(
      float[] mean,
      float[] scale,
      int i,
      float[] columns,
      int j,
      float[] near,
      int k,
      int length,
      float[] coefficients,
      float[] acc,
      int to) {
    FloatVector p0 = FloatVector.broadcast(S, coefficients[0]);
    FloatVector p1 = FloatVector.broadcast(S, coefficients[1]);
    FloatVector p2 = FloatVector.broadcast(S, coefficients[2]);
    FloatVector p3 = FloatVector.broadcast(S, coefficients[3]);
    FloatVector p4 = FloatVector.broadcast(S, coefficients[4]);
    FloatVector means = FloatVector.zero(S);
    FloatVector scales = FloatVector.zero(S);
    for (int h = 0; h < length; h++) {
      int a = j + h * (3 * NR);
      int b = k + h * (2 * NR);
      FloatVector d =
          FloatVector.broadcast(S, mean[i + h]).sub(FloatVector.fromArray(S, columns, a));
      means = d.mul(FloatVector.fromArray(S, columns, a + 2 * NR)).fma(d, means);
      FloatVector z =
          FloatVector.broadcast(S, scale[i + h])
              .sub(FloatVector.fromArray(S, near, b))
              .mul(FloatVector.fromArray(S, near, b + NR));
      FloatVector polynomial = p4.fma(z, p3).fma(z, p2).fma(z, p1).fma(z, p0);
      scales = z.mul(z).fma(polynomial, scales);
    }
    means.add(scales).intoArray(acc, to);
  }
}
