package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DerivedForm;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * Near form: the divergence of nearly identical Gaussians of one {@link Scale} in float, without cancellation: {@code KL = ½ Σ_h [d²/v_p +
 * z²]} with {@code z = (s_q − s_p) α_p β_q} of the raw scales s, so weighted that {@code z² = σq²/σp² − 1 − ln(σq²/σp²)} but for
 * a relative error of second order. Nearby values subtract exactly and no term is negative, so nothing cancels: a term is good
 * to 11 roundings, and is in at most 64 sums before promotion, together 4.5e-6.
 *
 * <p>With {@code u = ln(σq²/σp²)}, z² should be {@code ½u²(1 + u/3 + u²/12 + …)}. For variances {@code (v_q − v_p)²/(v_q v_p) =
 * 4 sinh²(u/2) = u²(1 + u²/12 + …)}, and {@code (v_q/v_p)^⅓ = 1 + u/3 + u²/18 + …}, so that half their product is off by 0.056u²; for
 * precisions too, for deviations by 0.007u², and for log-variances, {@code ½u² (v_q/v_p)^⅓}, by 0.028u².
 *
 * <p>A batch keeps it by panels of columns, each made when many of its entries need it: whole it takes 2.5 times the memory of the batch.
 * An instance computes entries one by one, to the same bits, from the batches' values if there are no panels. One thread's.
 */
final class NearForm {
  /**
   * Largest KL of 64 dimensions for which this form holds. The computed KL tells: if it is at most LIMIT, every {@code u² ≤ 4 LIMIT}, and
   * z² is off by at most 0.9e-6 of itself. Double settles what is above 5.6e-7 in 64 dimensions.
   */
  static final double LIMIT = 0x1p-18;

  /** Numbers per dimension of a column: mean, 1/v, s, α. */
  static final int FIELDS = 4;

  private static final int V = VectorWidth.BITS / Float.SIZE;
  private static final int NR = FloatPanels.NR;

  /** Open entries of a tile that take longer one by one than its panel takes to be made. */
  private static final int MANY = 4 * NR;

  static final DerivedForm<DiagonalBatch, Columns> COLUMNS =
      new DerivedForm<>(Columns::new, Columns::bytes);

  /** β, row-major. */
  static final DerivedForm<DiagonalBatch, float[]> ROW_WEIGHTS =
      new DerivedForm<>(NearForm::rowWeights, w -> (long) Float.BYTES * w.length);

  /** A dimension's block of one pair, columns in the first lane. */
  private final float[] mean = new float[PairKl.BLOCK];

  private final float[] scale = new float[PairKl.BLOCK];
  private final float[] weights = new float[PairKl.BLOCK];
  private final float[] column = new float[PairKl.BLOCK * FIELDS * V];
  private final float[] acc = new float[1];

  /**
   * The panels of a batch: {@code [b][h][FIELDS][V]} for vectors b of its columns; contiguous for each vector, so that a block stays in the
   * L1 cache.
   */
  static final class Columns {
    private final AtomicReferenceArray<float @Nullable []> panels;

    Columns(DiagonalBatch g) {
      panels = new AtomicReferenceArray<>(Math.ceilDiv(g.size(), NR));
    }

    /** Returns a panel, which the batch keeps; threads that make it at once make the same. */
    float[] panel(DiagonalBatch g, int index) {
      float[] panel = panels.get(index);
      if (panel == null) {
        panel = pack(g, index * NR);
        panels.set(index, panel);
      }
      return panel;
    }

    boolean isMade(int index) {
      return panels.get(index) != null;
    }

    private long bytes() {
      long bytes = 0;
      for (int b = 0; b < panels.length(); b++) {
        float[] panel = panels.get(b);
        bytes += Integer.BYTES + (panel == null ? 0 : (long) Float.BYTES * panel.length);
      }
      return bytes;
    }
  }

  /** Returns the least KL of which the underflow of D terms in float, at most 2⁻¹⁴⁸ each, is below 2⁻²⁴. */
  static double leastKl(int dimension) {
    return dimension * 0x1p-124;
  }

  /**
   * Whether a panel is to be read: if it was made, or is worth its memory, as so many entries of its tile are open or many were computed
   * one by one.
   */
  static boolean isPacked(DiagonalBatch q, DiagonalBatch p, int panel, int open) {
    Columns made = COLUMNS.made(p);
    return (made != null && made.isMade(panel))
        || open >= MANY
        || (p.isWorthForms(open) && q.isWorthForms(open));
  }

  private static float[] pack(DiagonalBatch g, int first) {
    int d = g.dimension();
    float[] columns = new float[NR * FIELDS * d];
    Checkpoint checkpoint = new Checkpoint();
    for (int j = 0; j < Math.min(NR, g.size() - first); j++) {
      checkpoint.pass(Checkpoint.ofPlain(d));
      putColumn(g, (first + j) * d, d, columns, j / V * V * FIELDS * d + j % V);
    }
    return columns;
  }

  /** Puts n dimensions of a column, from the batch's element {@code from} on. */
  private static void putColumn(DiagonalBatch g, int from, int n, float[] columns, int first) {
    Scale kind = g.kind();
    float[] mean = g.mean32();
    float[] scale = g.scale32();
    for (int k = from, to = first; k < from + n; k++, to += FIELDS * V) {
      columns[to] = mean[k];
      columns[to + V] = (float) (1 / kind.variance(scale[k]));
      columns[to + 2 * V] = scale[k];
      columns[to + 3 * V] = (float) (weight(kind, scale[k]) / rowWeight(kind, scale[k]));
    }
  }

  private static float[] rowWeights(DiagonalBatch g) {
    float[] weights = new float[g.size() * g.dimension()];
    Checkpoint checkpoint = new Checkpoint();
    for (int i = 0; i < g.size(); i++) {
      checkpoint.pass(Checkpoint.ofPlain(g.dimension()));
      putWeights(g, i * g.dimension(), g.dimension(), weights, i * g.dimension());
    }
    return weights;
  }

  private static void putWeights(DiagonalBatch g, int from, int n, float[] weights, int to) {
    float[] scale = g.scale32();
    for (int k = 0; k < n; k++) {
      weights[to + k] = (float) rowWeight(g.kind(), scale[from + k]);
    }
  }

  /** Returns β, which makes z² grow with σq²/σp² as it should. */
  private static double rowWeight(Scale kind, double s) {
    return switch (kind) {
      case STD -> 1 / Math.cbrt(Math.sqrt(s));
      case VARIANCE -> 1 / Math.cbrt(s);
      case LOG_VARIANCE -> Math.exp(s / 6);
      case PRECISION -> 1 / Math.cbrt(s * s);
    };
  }

  /** Returns αβ of one Gaussian, the derivative of {@code √½ ln σ²}. */
  private static double weight(Scale kind, double s) {
    return switch (kind) {
      case STD -> Math.sqrt(2) / s;
      case VARIANCE, PRECISION -> Math.sqrt(0.5) / s;
      case LOG_VARIANCE -> Math.sqrt(0.5);
    };
  }

  /** Computes the KL of one entry without vectors, to the bits of {@link NearKernel}; NaN where this form does not hold. */
  double kl(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    int d = q.dimension();
    boolean isPacked = isPacked(q, p, j / NR, 1);
    float[] means = isPacked ? q.mean32() : mean;
    float[] scales = isPacked ? q.scale32() : scale;
    float[] rowWeights = isPacked ? ROW_WEIGHTS.of(q) : weights;
    float[] columns = isPacked ? COLUMNS.of(p).panel(p, j / NR) : column;
    double sum = 0;
    for (int h = 0; h < d; h += PairKl.BLOCK) {
      int length = Math.min(PairKl.BLOCK, d - h);
      int from = i * d + h;
      int at = (j % NR / V * d + h) * FIELDS * V + j % V;
      if (!isPacked) {
        System.arraycopy(q.mean32(), from, mean, 0, length);
        System.arraycopy(q.scale32(), from, scale, 0, length);
        putWeights(q, from, length, weights, 0);
        putColumn(p, j * d + h, length, column, 0);
        from = 0;
        at = 0;
      }
      ScalarNearMicroKernel.tile1x1(
          means, scales, rowWeights, from, d, 0, columns, at, length, acc, 0);
      sum += acc[0] > 2 * LIMIT ? Double.POSITIVE_INFINITY : acc[0];
    }
    double kl = 0.5 * sum;
    boolean right = kl == 0 ? q.isEqual(i, p, j) : isRight(kl, q, i, p, j);
    return right ? kl : Double.NaN;
  }

  /** Whether a KL other than 0 is within the contract: float holds the scales, and neither underflow nor {@link #LIMIT} shows. */
  static boolean isRight(double kl, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return kl >= leastKl(q.dimension())
        && kl < Double.POSITIVE_INFINITY
        && !q.beyond32().get(i)
        && !p.beyond32().get(j);
  }
}
