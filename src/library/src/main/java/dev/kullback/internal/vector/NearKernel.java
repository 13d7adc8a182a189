package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DerivedForm;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.plain.PairKl;
import dev.kullback.internal.work.Checkpoint;

/**
 * The divergence of nearly identical Gaussians of one {@link Scale} in float, without cancellation: {@code KL = ½ Σ_h [d²/v_p +
 * z²]} with {@code z = (s_q − s_p) α_p β_q} of the raw scales s, so weighted that {@code z² = σq²/σp² − 1 − ln(σq²/σp²)} but for
 * a relative error of second order. Nearby values subtract exactly and no term is negative, so nothing cancels: a term is good
 * to 11 roundings, and is in at most 64 sums before promotion, together 4.5e-6.
 *
 * <p>With {@code u = ln(σq²/σp²)}, what is wanted is {@code ½u²(1 + u/3 + u²/12 + …)}. For variances {@code (v_q − v_p)²/(v_q v_p) =
 * 4 sinh²(u/2) = u²(1 + u²/12 + …)}, and {@code (v_q/v_p)^⅓ = 1 + u/3 + u²/18 + …}, so that half their product is off by 0.056u²; for
 * precisions too, for deviations by 0.007u², and for log-variances, {@code ½u² (v_q/v_p)^⅓}, by 0.028u².
 */
final class NearKernel {
  /**
   * Where this form holds. It tells by itself: a computed KL of 64 dimensions of at most LIMIT bounds every {@code u² ≤ 4 LIMIT}, and so
   * what z² is off by, 0.9e-6 of it. Double settles what is above 5.6e-7 in 64 dimensions.
   */
  static final double LIMIT = 0x1p-18;

  private static final int V = VectorWidth.BITS / Float.SIZE;
  private static final int NR = FloatPanels.NR;

  /** Numbers of a dimension of a column: mean, 1/v, s, α. */
  static final int FIELDS = 4;

  /**
   * A batch as {@link #pack} makes it, kept with it.
   *
   * @param columns {@code [b][h][FIELDS][V]} for Gaussians b·V to b·V + V − 1: what a block reads is contiguous, to stay in the L1
   *     cache
   * @param rowWeights β, row-major
   */
  @SuppressWarnings("ArrayRecordComponent") // shared, read-only, and never compared
  record Near(float[] columns, float[] rowWeights) {}

  static final DerivedForm<DiagonalBatch, Near> PACKED =
      new DerivedForm<>(
          NearKernel::pack, n -> (long) Float.BYTES * (n.columns.length + n.rowWeights.length));

  private NearKernel() {}

  /** From which value on the underflow of D terms in float, 2⁻¹⁴⁸ or less each, stays below 2⁻²⁴ of it. */
  static double leastKl(int dimension) {
    return dimension * 0x1p-124;
  }

  private static Near pack(DiagonalBatch g) {
    int n = g.size();
    int d = g.dimension();
    float[] mean = g.mean32();
    float[] scale = g.scale32();
    float[] columns = new float[Math.ceilDiv(n, NR) * NR * FIELDS * d];
    float[] rowWeights = new float[n * d];
    Checkpoint checkpoint = new Checkpoint();
    for (int j = 0; j < n; j++) {
      checkpoint.pass((long) Checkpoint.PLAIN * d);
      int to = j / V * V * FIELDS * d + j % V;
      for (int k = j * d; k < (j + 1) * d; k++, to += FIELDS * V) {
        double rowWeight = rowWeight(g.kind(), scale[k]);
        columns[to] = mean[k];
        columns[to + V] = (float) (1 / g.kind().variance(scale[k]));
        columns[to + 2 * V] = scale[k];
        columns[to + 3 * V] = (float) (weight(g.kind(), scale[k]) / rowWeight);
        rowWeights[k] = (float) rowWeight;
      }
    }
    return new Near(columns, rowWeights);
  }

  /** β: what makes z² grow with σq²/σp² as it should. */
  private static double rowWeight(Scale kind, double s) {
    return switch (kind) {
      case STD -> 1 / Math.cbrt(Math.sqrt(s));
      case VARIANCE -> 1 / Math.cbrt(s);
      case LOG_VARIANCE -> Math.exp(s / 6);
      case PRECISION -> 1 / Math.cbrt(s * s);
    };
  }

  /** αβ of one Gaussian: the derivative of {@code √½ ln σ²}. */
  private static double weight(Scale kind, double s) {
    return switch (kind) {
      case STD -> Math.sqrt(2) / s;
      case VARIANCE, PRECISION -> Math.sqrt(0.5) / s;
      case LOG_VARIANCE -> Math.sqrt(0.5);
    };
  }

  /**
   * {@code t.sum[i][c] = 2 KL} for the open rows of the tile, NaN where 64 dimensions have more than {@link #LIMIT}. A block of
   * dimensions is read from the L1 cache by every row after the first.
   */
  static void tile(DiagonalBatch q, DiagonalBatch p, Tile t) {
    int d = q.dimension();
    float[] rowWeights = PACKED.of(q).rowWeights;
    float[] columns = PACKED.of(p).columns;
    for (int h = 0; h < d; h += PairKl.BLOCK) {
      int length = Math.min(PairKl.BLOCK, d - h);
      for (int c = 0; c < t.columns; c += V) {
        int at = ((t.column + c) / V * d + h) * FIELDS * V;
        for (int i = nextOpen(t, 0); i < t.rows; ) {
          int i1 = nextOpen(t, i + 1);
          int i2 = nextOpen(t, i1 + 1);
          int i3 = nextOpen(t, i2 + 1);
          int next = nextOpen(t, i3 + 1);
          NearMicroKernel.tile4x1(
              q.mean32(),
              q.scale32(),
              rowWeights,
              t.row * d + h,
              d,
              i,
              i1 < t.rows ? i1 : i,
              i2 < t.rows ? i2 : i,
              i3 < t.rows ? i3 : i,
              columns,
              at,
              length,
              t.acc32,
              c);
          i = next;
        }
      }
      Epilogue.promoteNear(t.acc32, t.sum, t.rows * NR, h == 0);
    }
  }

  /**
   * KL of one entry without vectors, by the very operations of a lane of {@link #tile} and of its epilogue; NaN where this form is not
   * right.
   */
  static double kl(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    int d = q.dimension();
    float[] mean = q.mean32();
    float[] scale = q.scale32();
    float[] weights = PACKED.of(q).rowWeights;
    float[] columns = PACKED.of(p).columns;
    double sum = 0;
    for (int h = 0; h < d; h += PairKl.BLOCK) {
      float acc = 0;
      for (int k = h, end = Math.min(d, h + PairKl.BLOCK); k < end; k++) {
        int at = (j / V * d + k) * FIELDS * V + j % V;
        float x = mean[i * d + k] - columns[at];
        float z = (scale[i * d + k] - columns[at + 2 * V]) * columns[at + 3 * V];
        z *= weights[i * d + k];
        acc += Math.fma(z, z, x * columns[at + V] * x);
      }
      sum += acc > 2 * LIMIT ? Double.POSITIVE_INFINITY : acc;
    }
    double kl = 0.5 * sum;
    boolean held = !q.beyond32().get(i) && !p.beyond32().get(j);
    boolean settled =
        (kl >= leastKl(d) && kl < Double.POSITIVE_INFINITY && held)
            || (kl == 0 && q.isEqual(i, p, j));
    return settled ? kl : Double.NaN;
  }

  /** The first row from i on that has an open entry, or none. */
  private static int nextOpen(Tile t, int i) {
    int next = i;
    while (next < t.rows && !t.open[next]) {
      next++;
    }
    return next;
  }
}
