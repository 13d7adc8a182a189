package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DerivedForm;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.NearSeries;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * Near form: the divergence of nearly identical Gaussians of one {@link Scale}, without cancellation: {@code KL = ½ Σ_h [d²/v_p + H]} with
 * H of the difference of the raw scales s, {@code (s_q − s_p) α_p β_q}. Nearby values subtract exactly and no term is negative, so nothing
 * cancels. The build derives the form in double from this text.
 *
 * <p>In float H is a square z², so weighted that {@code z² = σq²/σp² − 1 − ln(σq²/σp²)} but for a relative error of second order. A term is good
 * to 11 roundings, and is in at most 64 sums before promotion, together 4.5e-6. With {@code u = ln(σq²/σp²)}, z² should be {@code ½u²(1 +
 * u/3 + u²/12 + …)}. For variances {@code (v_q − v_p)²/(v_q v_p) = 4 sinh²(u/2) = u²(1 + u²/12 + …)}, and {@code (v_q/v_p)^⅓ = 1 + u/3 +
 * u²/18 + …}, so that half their product is off by 0.056u²; for precisions too, for deviations by 0.007u², and for log-variances, {@code ½u²
 * (v_q/v_p)^⅓}, by 0.028u².
 *
 * <p>In double H is {@link NearSeries}'. A term is good to 30 roundings and 2⁻⁴² of the series, and is in 64 sums of a block and those of the
 * blocks, together 2.5e-13 and less than 2⁻⁵³ for each block.
 *
 * <p>A batch keeps it by panels of columns, each made when many of its entries need it: whole it takes 2.5 times the memory of the batch.
 * An instance computes entries one by one, to the same bits, from the batches' values if there are no panels. One thread's.
 */
final class FloatNearForm {
  /**
   * Greatest sum in 64 dimensions for which this form holds: in double of the y⁴, so that no {@code |y|} is beyond {@link NearSeries#LIMIT}. In
   * float of the terms, 2 KL, which is twice what double leaves: if 2 KL is at most LIMIT, every {@code u² ≤ 2 LIMIT}, and z² is off by at
   * most 0.9e-6 of itself. Double settles a KL above 5.6e-7 in 64 dimensions.
   */
  static final float LIMIT = Float.SIZE == 32 ? 0x1p-17f : 0x1p-4f;

  /** Numbers per dimension of a column: mean, 1/v, s, α. */
  static final int FIELDS = 4;

  /** Columns that lie side by side. */
  static final int V = VectorWidth.BITS / Float.SIZE;

  private static final int NR = FloatPanels.NR;

  /** Open entries of a tile that take longer one by one than its panel takes to be made. */
  private static final int MANY = 4 * NR;

  static final DerivedForm<DiagonalBatch, Columns> COLUMNS =
      new DerivedForm<>(Columns::new, Columns::bytes);

  static final DerivedForm<DiagonalBatch, Rows> ROWS =
      new DerivedForm<>(FloatNearForm::rows, Rows::bytes);

  private static final Map<Scale, float[]> SERIES = new EnumMap<>(Scale.class);

  static {
    for (Scale kind : Scale.values()) {
      boolean isLog = kind == Scale.LOG_VARIANCE;
      SERIES.put(
          kind,
          Float.SIZE == 64
              ? series(NearSeries.of(kind, 0, isLog ? 5 : 2, isLog ? 5 : 7))
              : new float[0]);
    }
  }

  /** A dimension's block of one pair, columns in the first lane. */
  private final float[] mean = new float[PairKl.BLOCK];

  private final float[] scale = new float[PairKl.BLOCK];
  private final float[] weights = new float[PairKl.BLOCK];
  private final float[] column = new float[PairKl.BLOCK * FIELDS * V];
  private final float[] acc = new float[1];

  /** Means, raw scales and β, row-major. */
  record Rows(float[] mean, float[] scale, float[] weights, boolean areCopies) {
    private long bytes() {
      return (areCopies ? 3L : 1) * Float.BYTES * weights.length;
    }
  }

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

  @SuppressWarnings("cast") // redundant in double
  private static float[] series(double[] values) {
    float[] series = new float[values.length];
    for (int k = 0; k < series.length; k++) {
      series[k] = (float) values[k];
    }
    return series;
  }

  /** Returns the coefficients that micro-kernels take. */
  static float[] series(Scale kind) {
    return Objects.requireNonNull(SERIES.get(kind));
  }

  /** Returns the least KL of which what D terms lose by underflow is below a rounding: in float at most 2⁻¹⁴⁸ each. */
  static double leastKl(int dimension) {
    return dimension * (Float.SIZE == 32 ? 0x1p-124 : 0x1p-1000);
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
  @SuppressWarnings("cast") // redundant in double
  private static void putColumn(DiagonalBatch g, int from, int n, float[] columns, int first) {
    Scale kind = g.kind();
    for (int k = from, to = first; k < from + n; k++, to += FIELDS * V) {
      double scale = g.scale(k);
      columns[to] = (float) g.mean(k);
      columns[to + V] = (float) (1 / kind.variance(scale));
      columns[to + 2 * V] = (float) scale;
      columns[to + 3 * V] = (float) columnWeight(kind, scale);
    }
  }

  private static Rows rows(DiagonalBatch g) {
    float[] weights = new float[g.size() * g.dimension()];
    Checkpoint checkpoint = new Checkpoint();
    for (int i = 0; i < g.size(); i++) {
      checkpoint.pass(Checkpoint.ofPlain(g.dimension()));
      putWeights(g, i * g.dimension(), g.dimension(), weights, i * g.dimension());
    }
    return new Rows(g.mean32(), g.scale32(), weights, g.isDouble() != (Float.SIZE == 64));
  }

  @SuppressWarnings("cast") // redundant in double
  private static void putWeights(DiagonalBatch g, int from, int n, float[] weights, int to) {
    for (int k = 0; k < n; k++) {
      weights[to + k] = (float) rowWeight(g.kind(), g.scale(from + k));
    }
  }

  /** Returns β, which in float makes z² grow with σq²/σp² as it should. */
  private static double rowWeight(Scale kind, double s) {
    if (Float.SIZE == 64) {
      return kind == Scale.LOG_VARIANCE ? 1 : 1 / Math.sqrt(s);
    }
    return switch (kind) {
      case STD -> 1 / Math.cbrt(Math.sqrt(s));
      case VARIANCE -> 1 / Math.cbrt(s);
      case LOG_VARIANCE -> Math.exp(s / 6);
      case PRECISION -> 1 / Math.cbrt(s * s);
    };
  }

  /** Returns α; in float αβ of one Gaussian is the derivative of {@code √½ ln σ²}. */
  private static double columnWeight(Scale kind, double s) {
    if (Float.SIZE == 64) {
      return rowWeight(kind, s);
    }
    double weight =
        switch (kind) {
          case STD -> Math.sqrt(2) / s;
          case VARIANCE, PRECISION -> Math.sqrt(0.5) / s;
          case LOG_VARIANCE -> Math.sqrt(0.5);
        };
    return weight / rowWeight(kind, s);
  }

  /** Computes the KL of one entry without vectors, to the bits of {@link FloatNearKernel}; NaN where this form does not hold. */
  double kl(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    int d = q.dimension();
    boolean isPacked = isPacked(q, p, j / NR, 1);
    Rows rows = isPacked ? ROWS.of(q) : new Rows(mean, scale, weights, false);
    float[] columns = isPacked ? COLUMNS.of(p).panel(p, j / NR) : column;
    double kl = 0;
    for (int h = 0; h < d; h += PairKl.BLOCK) {
      int length = Math.min(PairKl.BLOCK, d - h);
      int from = i * d + h;
      int at = (j % NR / V * d + h) * FIELDS * V + j % V;
      if (!isPacked) {
        putRow(q, from, length);
        putColumn(p, j * d + h, length, column, 0);
        from = 0;
        at = 0;
      }
      ScalarNearMicroKernel.tile1x1(
          q.kind(),
          rows.mean,
          rows.scale,
          rows.weights,
          from,
          d,
          0,
          columns,
          at,
          length,
          series(q.kind()),
          acc,
          0);
      kl += acc[0];
    }
    boolean right = kl == 0 ? areEqual(q, i, p, j) : isRight(kl, q, i, p, j);
    return right ? kl : Double.NaN;
  }

  /** Puts n dimensions of a row, from the batch's element {@code from} on. */
  @SuppressWarnings("cast") // redundant in double
  private void putRow(DiagonalBatch g, int from, int n) {
    for (int k = 0; k < n; k++) {
      mean[k] = (float) g.mean(from + k);
      scale[k] = (float) g.scale(from + k);
    }
    putWeights(g, from, n, weights, 0);
  }

  static boolean areEqual(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return q.isDouble() == p.isDouble() && q.isEqual(i, p, j);
  }

  /** Whether a KL other than 0 is within the contract: this precision holds the scales, and neither underflow nor {@link #LIMIT} shows. */
  static boolean isRight(double kl, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return kl >= leastKl(q.dimension())
        && kl < Double.POSITIVE_INFINITY
        && !q.beyond32().get(i)
        && !p.beyond32().get(j);
  }
}
