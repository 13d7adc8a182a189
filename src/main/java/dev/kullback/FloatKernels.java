package dev.kullback;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * Packing and micro-kernels of the difference form {@code S_ij = Σ_h [(μ_ih − μ_jh)² + v_ih − v_jh] / v_jh} in float. The build
 * derives {@code DoubleKernels} from this text.
 *
 * <p>Layouts, for row panel a, column panel b, dimension h:
 *
 * <pre>
 * rows    [a][h][MR][2]   μ, v of the MR rows of panel a; the broadcast side
 * columns [b][h][3][NR]   μ, v, 1/v of the NR columns of panel b; the vector side
 * </pre>
 *
 * <p>An entry's value depends on its row and column alone: every lane sees the same operations in the same order, whatever the
 * species, the tile and the position in it.
 */
final class FloatKernels {
  static final VectorSpecies<Float> S = VectorWidth.FLOAT;

  /**
   * Rows of a tile. With two 512-bit column vectors, 10 rows ran at 53–56·10⁹ (i,j,h)/s, 6, 7, 8, 9, 11 and 12 rows at 31, 33,
   * 38, 44, 42 and 40, and one column vector at 45–48 for 12 to 18 rows: C2 spills accumulators at every other shape (Zen 5,
   * one core, D = 256, JDK 25.0.3).
   */
  static final int MR = 10;

  /** Column vectors of a tile: two want more than the 16 registers that AVX2 has. */
  static final int NV = VectorWidth.BITS == 512 ? 2 : 1;

  /** Columns of a panel. */
  static final int NR = NV * S.length();

  /**
   * Dimensions accumulated before promotion to double. 32 costs 10 % at D = 256; 128 doubles the error constant that {@link
   * PairKl#ERROR_UNITS} assumes.
   */
  static final int KC = 64;

  /** Dimensions packed at a time: a stretch of 32 rows stays in the L1 cache while it is transposed. */
  private static final int PACK = 16;

  private FloatKernels() {}

  static Packed<float[]> packRows(DiagonalGaussians g) {
    int n = g.size();
    int d = g.dimension();
    float[] mean = g.mean32();
    float[] scale = g.scale32();
    Scale kind = g.kind;
    float[] rows = new float[panels(n, MR) * MR * 2 * d];
    for (int a = 0; a < n; a += MR) {
      for (int h0 = 0; h0 < d; h0 += PACK) {
        int end = Math.min(h0 + PACK, d);
        for (int i = a; i < Math.min(a + MR, n); i++) {
          int to = ((a / MR * d + h0) * MR + i - a) * 2;
          if (kind == Scale.STD) {
            for (int k = i * d + h0; k < i * d + end; k++, to += 2 * MR) {
              rows[to] = mean[k];
              rows[to + 1] = scale[k] * scale[k];
            }
          } else {
            for (int k = i * d + h0; k < i * d + end; k++, to += 2 * MR) {
              rows[to] = mean[k];
              rows[to + 1] = variance(kind, scale[k]);
            }
          }
        }
      }
    }
    return new Packed<>(rows, g.paddedLogDet32(MR), g.paddedLogDetBound(MR));
  }

  static Packed<float[]> packColumns(DiagonalGaussians g) {
    int n = g.size();
    int d = g.dimension();
    float[] mean = g.mean32();
    float[] scale = g.scale32();
    float[] columns = new float[panels(n, NR) * NR * 3 * d];
    for (int b = 0; b < n; b += NR) {
      int panel = b / NR * NR * 3 * d;
      for (int h0 = 0; h0 < d; h0 += PACK) {
        int end = Math.min(h0 + PACK, d);
        for (int j = b; j < Math.min(b + NR, n); j++) {
          int to = panel + h0 * 3 * NR + j - b;
          for (int k = j * d + h0; k < j * d + end; k++, to += 3 * NR) {
            columns[to] = mean[k];
            columns[to + NR] = scale[k];
          }
        }
        for (int h = h0; h < end; h++) {
          variances(g.kind, columns, panel + (h * 3 + 1) * NR);
        }
      }
    }
    return new Packed<>(columns, g.paddedLogDet32(NR), g.paddedLogDetBound(NR));
  }

  /** Replaces NR raw scales at an index by their variances, followed by the inverses. */
  private static void variances(Scale kind, float[] columns, int at) {
    for (int j = at; j < at + NR; j += S.length()) {
      FloatVector s = FloatVector.fromArray(S, columns, j);
      switch (kind) {
        case STD -> s = s.mul(s);
        case VARIANCE -> {}
        case PRECISION -> {
          s.intoArray(columns, j + NR);
          s = FloatVector.broadcast(S, 1).div(s);
        }
        case LOG_VARIANCE -> {
          for (int k = j; k < j + S.length(); k++) {
            columns[k] = variance(kind, columns[k]);
          }
          s = FloatVector.fromArray(S, columns, j);
        }
      }
      s.intoArray(columns, j);
      if (kind != Scale.PRECISION) {
        FloatVector.broadcast(S, 1).div(s).intoArray(columns, j + NR);
      }
    }
  }

  @SuppressWarnings("cast") // redundant in double
  private static float variance(Scale kind, float s) {
    return (float) kind.variance(s);
  }

  static int panels(int n, int width) {
    return Math.ceilDiv(n, width);
  }

  /**
   * {@code sum[r][c] = S} of one tile, promoted to double every {@link #KC} dimensions.
   *
   * @param narrow whether the first vector of the column panel is enough
   * @param acc scratch, MR·NR
   * @param sum row-major [MR, NR]
   */
  static void tile(
      float[] rows,
      int rowPanel,
      float[] columns,
      int columnPanel,
      int d,
      boolean narrow,
      float[] acc,
      double[] sum) {
    int r = rowPanel * MR * 2 * d;
    int c = columnPanel * NR * 3 * d;
    for (int h = 0; h < d; h += KC) {
      int length = Math.min(KC, d - h);
      if (NV == 2 && !narrow) {
        tile10x2(rows, r + h * 2 * MR, columns, c + h * 3 * NR, length, acc);
      } else {
        tile10x1(rows, r + h * 2 * MR, columns, c + h * 3 * NR, length, acc);
      }
      Epilogue.promote(acc, sum, MR * NR, h == 0);
    }
  }

  /** acc[10][NR] = S over {@code length} dimensions, both vectors of the column panel. */
  private static void tile10x2(
      float[] rows, int r, float[] columns, int c, int length, float[] acc) {
    FloatVector a0a = FloatVector.zero(S);
    FloatVector a0b = FloatVector.zero(S);
    FloatVector a1a = FloatVector.zero(S);
    FloatVector a1b = FloatVector.zero(S);
    FloatVector a2a = FloatVector.zero(S);
    FloatVector a2b = FloatVector.zero(S);
    FloatVector a3a = FloatVector.zero(S);
    FloatVector a3b = FloatVector.zero(S);
    FloatVector a4a = FloatVector.zero(S);
    FloatVector a4b = FloatVector.zero(S);
    FloatVector a5a = FloatVector.zero(S);
    FloatVector a5b = FloatVector.zero(S);
    FloatVector a6a = FloatVector.zero(S);
    FloatVector a6b = FloatVector.zero(S);
    FloatVector a7a = FloatVector.zero(S);
    FloatVector a7b = FloatVector.zero(S);
    FloatVector a8a = FloatVector.zero(S);
    FloatVector a8b = FloatVector.zero(S);
    FloatVector a9a = FloatVector.zero(S);
    FloatVector a9b = FloatVector.zero(S);
    for (int h = 0; h < length; h++) {
      int i = r + h * (2 * MR);
      int j = c + h * (3 * NR);
      FloatVector ma = FloatVector.fromArray(S, columns, j);
      FloatVector mb = FloatVector.fromArray(S, columns, j + S.length());
      FloatVector va = FloatVector.fromArray(S, columns, j + NR);
      FloatVector vb = FloatVector.fromArray(S, columns, j + NR + S.length());
      FloatVector pa = FloatVector.fromArray(S, columns, j + 2 * NR);
      FloatVector pb = FloatVector.fromArray(S, columns, j + 2 * NR + S.length());
      FloatVector x;
      FloatVector y;
      FloatVector da;
      FloatVector db;
      x = FloatVector.broadcast(S, rows[i + 0]);
      y = FloatVector.broadcast(S, rows[i + 1]);
      da = x.sub(ma);
      a0a = da.fma(da, y.sub(va)).fma(pa, a0a);
      db = x.sub(mb);
      a0b = db.fma(db, y.sub(vb)).fma(pb, a0b);
      x = FloatVector.broadcast(S, rows[i + 2]);
      y = FloatVector.broadcast(S, rows[i + 3]);
      da = x.sub(ma);
      a1a = da.fma(da, y.sub(va)).fma(pa, a1a);
      db = x.sub(mb);
      a1b = db.fma(db, y.sub(vb)).fma(pb, a1b);
      x = FloatVector.broadcast(S, rows[i + 4]);
      y = FloatVector.broadcast(S, rows[i + 5]);
      da = x.sub(ma);
      a2a = da.fma(da, y.sub(va)).fma(pa, a2a);
      db = x.sub(mb);
      a2b = db.fma(db, y.sub(vb)).fma(pb, a2b);
      x = FloatVector.broadcast(S, rows[i + 6]);
      y = FloatVector.broadcast(S, rows[i + 7]);
      da = x.sub(ma);
      a3a = da.fma(da, y.sub(va)).fma(pa, a3a);
      db = x.sub(mb);
      a3b = db.fma(db, y.sub(vb)).fma(pb, a3b);
      x = FloatVector.broadcast(S, rows[i + 8]);
      y = FloatVector.broadcast(S, rows[i + 9]);
      da = x.sub(ma);
      a4a = da.fma(da, y.sub(va)).fma(pa, a4a);
      db = x.sub(mb);
      a4b = db.fma(db, y.sub(vb)).fma(pb, a4b);
      x = FloatVector.broadcast(S, rows[i + 10]);
      y = FloatVector.broadcast(S, rows[i + 11]);
      da = x.sub(ma);
      a5a = da.fma(da, y.sub(va)).fma(pa, a5a);
      db = x.sub(mb);
      a5b = db.fma(db, y.sub(vb)).fma(pb, a5b);
      x = FloatVector.broadcast(S, rows[i + 12]);
      y = FloatVector.broadcast(S, rows[i + 13]);
      da = x.sub(ma);
      a6a = da.fma(da, y.sub(va)).fma(pa, a6a);
      db = x.sub(mb);
      a6b = db.fma(db, y.sub(vb)).fma(pb, a6b);
      x = FloatVector.broadcast(S, rows[i + 14]);
      y = FloatVector.broadcast(S, rows[i + 15]);
      da = x.sub(ma);
      a7a = da.fma(da, y.sub(va)).fma(pa, a7a);
      db = x.sub(mb);
      a7b = db.fma(db, y.sub(vb)).fma(pb, a7b);
      x = FloatVector.broadcast(S, rows[i + 16]);
      y = FloatVector.broadcast(S, rows[i + 17]);
      da = x.sub(ma);
      a8a = da.fma(da, y.sub(va)).fma(pa, a8a);
      db = x.sub(mb);
      a8b = db.fma(db, y.sub(vb)).fma(pb, a8b);
      x = FloatVector.broadcast(S, rows[i + 18]);
      y = FloatVector.broadcast(S, rows[i + 19]);
      da = x.sub(ma);
      a9a = da.fma(da, y.sub(va)).fma(pa, a9a);
      db = x.sub(mb);
      a9b = db.fma(db, y.sub(vb)).fma(pb, a9b);
    }
    a0a.intoArray(acc, 0);
    a0b.intoArray(acc, S.length());
    a1a.intoArray(acc, NR);
    a1b.intoArray(acc, NR + S.length());
    a2a.intoArray(acc, 2 * NR);
    a2b.intoArray(acc, 2 * NR + S.length());
    a3a.intoArray(acc, 3 * NR);
    a3b.intoArray(acc, 3 * NR + S.length());
    a4a.intoArray(acc, 4 * NR);
    a4b.intoArray(acc, 4 * NR + S.length());
    a5a.intoArray(acc, 5 * NR);
    a5b.intoArray(acc, 5 * NR + S.length());
    a6a.intoArray(acc, 6 * NR);
    a6b.intoArray(acc, 6 * NR + S.length());
    a7a.intoArray(acc, 7 * NR);
    a7b.intoArray(acc, 7 * NR + S.length());
    a8a.intoArray(acc, 8 * NR);
    a8b.intoArray(acc, 8 * NR + S.length());
    a9a.intoArray(acc, 9 * NR);
    a9b.intoArray(acc, 9 * NR + S.length());
  }

  /** acc[10][NR] = S over {@code length} dimensions, the first vector of the column panel. */
  private static void tile10x1(
      float[] rows, int r, float[] columns, int c, int length, float[] acc) {
    FloatVector a0 = FloatVector.zero(S);
    FloatVector a1 = FloatVector.zero(S);
    FloatVector a2 = FloatVector.zero(S);
    FloatVector a3 = FloatVector.zero(S);
    FloatVector a4 = FloatVector.zero(S);
    FloatVector a5 = FloatVector.zero(S);
    FloatVector a6 = FloatVector.zero(S);
    FloatVector a7 = FloatVector.zero(S);
    FloatVector a8 = FloatVector.zero(S);
    FloatVector a9 = FloatVector.zero(S);
    for (int h = 0; h < length; h++) {
      int i = r + h * (2 * MR);
      int j = c + h * (3 * NR);
      FloatVector m = FloatVector.fromArray(S, columns, j);
      FloatVector v = FloatVector.fromArray(S, columns, j + NR);
      FloatVector p = FloatVector.fromArray(S, columns, j + 2 * NR);
      FloatVector x;
      FloatVector y;
      FloatVector d;
      x = FloatVector.broadcast(S, rows[i + 0]);
      y = FloatVector.broadcast(S, rows[i + 1]);
      d = x.sub(m);
      a0 = d.fma(d, y.sub(v)).fma(p, a0);
      x = FloatVector.broadcast(S, rows[i + 2]);
      y = FloatVector.broadcast(S, rows[i + 3]);
      d = x.sub(m);
      a1 = d.fma(d, y.sub(v)).fma(p, a1);
      x = FloatVector.broadcast(S, rows[i + 4]);
      y = FloatVector.broadcast(S, rows[i + 5]);
      d = x.sub(m);
      a2 = d.fma(d, y.sub(v)).fma(p, a2);
      x = FloatVector.broadcast(S, rows[i + 6]);
      y = FloatVector.broadcast(S, rows[i + 7]);
      d = x.sub(m);
      a3 = d.fma(d, y.sub(v)).fma(p, a3);
      x = FloatVector.broadcast(S, rows[i + 8]);
      y = FloatVector.broadcast(S, rows[i + 9]);
      d = x.sub(m);
      a4 = d.fma(d, y.sub(v)).fma(p, a4);
      x = FloatVector.broadcast(S, rows[i + 10]);
      y = FloatVector.broadcast(S, rows[i + 11]);
      d = x.sub(m);
      a5 = d.fma(d, y.sub(v)).fma(p, a5);
      x = FloatVector.broadcast(S, rows[i + 12]);
      y = FloatVector.broadcast(S, rows[i + 13]);
      d = x.sub(m);
      a6 = d.fma(d, y.sub(v)).fma(p, a6);
      x = FloatVector.broadcast(S, rows[i + 14]);
      y = FloatVector.broadcast(S, rows[i + 15]);
      d = x.sub(m);
      a7 = d.fma(d, y.sub(v)).fma(p, a7);
      x = FloatVector.broadcast(S, rows[i + 16]);
      y = FloatVector.broadcast(S, rows[i + 17]);
      d = x.sub(m);
      a8 = d.fma(d, y.sub(v)).fma(p, a8);
      x = FloatVector.broadcast(S, rows[i + 18]);
      y = FloatVector.broadcast(S, rows[i + 19]);
      d = x.sub(m);
      a9 = d.fma(d, y.sub(v)).fma(p, a9);
    }
    a0.intoArray(acc, 0);
    a1.intoArray(acc, NR);
    a2.intoArray(acc, 2 * NR);
    a3.intoArray(acc, 3 * NR);
    a4.intoArray(acc, 4 * NR);
    a5.intoArray(acc, 5 * NR);
    a6.intoArray(acc, 6 * NR);
    a7.intoArray(acc, 7 * NR);
    a8.intoArray(acc, 8 * NR);
    a9.intoArray(acc, 9 * NR);
  }
}
