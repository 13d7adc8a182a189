package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DerivedForm;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.NearSeries;
import dev.kullback.internal.formula.NearTerm;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * Near form: the divergence of nearly identical Gaussians of one {@link Scale}, without cancellation: a sum of a {@link NearTerm}, as {@code KL = ½ Σ_h
 * [d²/v_p + H]}, with H of the difference of the raw scales s, {@code (s_q − s_p) α_p β_q}. Nearby values subtract exactly and no term is negative, so nothing
 * cancels. The build derives the form in double from this text.
 *
 * <p>Of KL in float H is a square z², so weighted that {@code z² = σq²/σp² − 1 − ln(σq²/σp²)} but for a relative error of second order. A term is good
 * to 11 roundings, and is in at most 64 sums before promotion, together 4.5e-6. With {@code u = ln(σq²/σp²)}, z² should be {@code ½u²(1 +
 * u/3 + u²/12 + …)}. For variances {@code (v_q − v_p)²/(v_q v_p) = 4 sinh²(u/2) = u²(1 + u²/12 + …)}, and {@code (v_q/v_p)^⅓ = 1 + u/3 +
 * u²/18 + …}, so that half their product is off by 0.056u²; for precisions too, for deviations by 0.007u², and for log-variances, {@code ½u²
 * (v_q/v_p)^⅓}, by 0.028u².
 *
 * <p>Others and all in double take H from {@link NearSeries}. In float a term is good to 15 roundings and 1.1e-6 of the series, together 6e-6. In double a term is good to 30 roundings and 2⁻⁴² of the series, and is in 64 sums of a block and those of the
 * blocks, together 2.5e-13 and less than 2⁻⁵³ for each block.
 *
 * <p>A batch keeps it by panels of columns, each made when many of its entries need it: whole it takes 2.5 times the memory of the batch.
 * An instance computes entries one by one, to the same bits, from the batches' values if there are no panels. One thread's.
 */
final class FloatNearForm {
  /**
   * Greatest sum in 64 dimensions for which this form holds: of the y⁴, so that no |y| is beyond the limit of {@link NearSeries}, but of KL in
   * float of the terms, {@link #LIMIT_OF_KL}. That is 2 KL, twice what double leaves: if 2 KL is at most this, every {@code u² ≤ 2
   * LIMIT_OF_KL}, and z² is off by at most 0.9e-6 of itself. Double settles a KL above 5.6e-7 in 64 dimensions.
   */
  static final float LIMIT = Float.SIZE == 32 ? 1e-4f : 0.025f;

  static final float LIMIT_OF_KL = 0x1p-17f;

  /** Numbers per dimension of a column: mean, 1/v or v, s, α. */
  static final int FIELDS = 4;

  /** Columns that lie side by side. */
  static final int V = VectorWidth.BITS / Float.SIZE;

  private static final int NR = FloatPanels.NR;

  /** Open entries of a tile that take longer one by one than its panel takes to be made. */
  static final int MANY = 4 * NR;

  private static final Map<NearTerm, Forms> FORMS = new EnumMap<>(NearTerm.class);

  static {
    for (NearTerm term : NearTerm.values()) {
      FORMS.put(term, new Forms(term));
    }
  }

  final NearTerm term;
  final double weight;
  final double factor;
  private final Forms forms;
  private final Map<Scale, float[]> series = new EnumMap<>(Scale.class);

  /** A dimension's block of one pair, columns in the first lane. */
  private final float[] mean = new float[PairKl.BLOCK];

  private final float[] scale = new float[PairKl.BLOCK];
  private final float[] weights = new float[PairKl.BLOCK];
  private final float[] spreads = new float[PairKl.BLOCK];
  private final Rows row = new Rows(mean, scale, weights, spreads, 0);
  private final float[] column = new float[PairKl.BLOCK * FIELDS * V];
  private final float[] acc = new float[1];

  FloatNearForm(Formula formula, NearTerm term) {
    this.term = term;
    weight = formula.nearWeight();
    factor = formula.nearFactor();
    forms = Objects.requireNonNull(FORMS.get(term));
  }

  /**
   * Means, raw scales, β, and where the term reads it v or 1/v, row-major.
   *
   * @param copies how many of the first two are not the batch's own
   */
  record Rows(float[] mean, float[] scale, float[] weights, float[] spreads, int copies) {
    private long bytes() {
      return Float.BYTES * ((1L + copies) * weights.length + spreads.length);
    }
  }

  /** What a term reads of batches. */
  private static final class Forms {
    final DerivedForm<DiagonalBatch, Columns> columns;
    final DerivedForm<DiagonalBatch, Rows> rows;

    Forms(NearTerm term) {
      columns = new DerivedForm<>(g -> new Columns(g, term), Columns::bytes);
      rows = new DerivedForm<>(g -> rows(g, term), Rows::bytes);
    }
  }

  /**
   * The panels of a batch: {@code [b][h][FIELDS][V]} for vectors b of its columns; contiguous for each vector, so that a block stays in the
   * L1 cache.
   */
  private static final class Columns {
    private final NearTerm term;
    private final AtomicReferenceArray<float @Nullable []> panels;

    Columns(DiagonalBatch g, NearTerm term) {
      this.term = term;
      panels = new AtomicReferenceArray<>(Math.ceilDiv(g.size(), NR));
    }

    /** Returns a panel, which the batch keeps; threads that make it at once make the same. */
    float[] panel(DiagonalBatch g, int index) {
      float[] panel = panels.get(index);
      if (panel == null) {
        panel = pack(g, term, index * NR);
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

  Rows rows(DiagonalBatch q) {
    return forms.rows.of(q);
  }

  float[] panel(DiagonalBatch p, int index) {
    return forms.columns.of(p).panel(p, index);
  }

  /** Returns the coefficients of a kind of scales, as many as the micro-kernel of the term takes. */
  float[] coefficients(Scale kind) {
    float[] made = series.get(kind);
    if (made == null) {
      made = series(kind);
      series.put(kind, made);
    }
    return made;
  }

  @SuppressWarnings("cast") // redundant in double
  private float[] series(Scale kind) {
    boolean isLog = kind == Scale.LOG_VARIANCE;
    double[] values =
        Float.SIZE == 32
            ? NearSeries.of(kind, term, weight, 2, 2, NearSeries.LIMIT_IN_SINGLE)
            : switch (term) {
              case KL ->
                  NearSeries.of(kind, term, 0, isLog ? 5 : 2, isLog ? 5 : 7, NearSeries.LIMIT);
              case JEFFREYS -> NearSeries.of(kind, term, 0, 5, 0, NearSeries.LIMIT);
              case CHERNOFF -> NearSeries.of(kind, term, weight, 8, 8, NearSeries.LIMIT);
            };
    float[] coefficients = new float[values.length];
    for (int k = 0; k < coefficients.length; k++) {
      coefficients[k] = (float) values[k];
    }
    return coefficients;
  }

  /** Returns the least KL of which what D terms lose by underflow is below a rounding: in float at most 2⁻¹⁴⁸ each. */
  static double leastKl(int dimension) {
    return dimension * (Float.SIZE == 32 ? 0x1p-124 : 0x1p-1000);
  }

  /**
   * Whether a panel is to be read: if it was made, or is worth its memory, as so many entries of its tile are open or many were computed
   * one by one.
   */
  boolean isPacked(DiagonalBatch q, DiagonalBatch p, int panel, int open) {
    Columns made = forms.columns.made(p);
    return (made != null && made.isMade(panel))
        || open >= MANY
        || (p.isWorthForms(open) && q.isWorthForms(open));
  }

  private static float[] pack(DiagonalBatch g, NearTerm term, int first) {
    int d = g.dimension();
    float[] columns = new float[NR * FIELDS * d];
    Checkpoint checkpoint = new Checkpoint();
    for (int j = 0; j < Math.min(NR, g.size() - first); j++) {
      checkpoint.pass(Checkpoint.ofPlain(d));
      putColumn(g, term, (first + j) * d, d, columns, j / V * V * FIELDS * d + j % V);
    }
    return columns;
  }

  /** Puts n dimensions of a column, from the batch's element {@code from} on. */
  @SuppressWarnings("cast") // redundant in double
  private static void putColumn(
      DiagonalBatch g, NearTerm term, int from, int n, float[] columns, int first) {
    Scale kind = g.kind();
    for (int k = from, to = first; k < from + n; k++, to += FIELDS * V) {
      double scale = g.scale(k);
      columns[to] = (float) g.mean(k);
      columns[to + V] = (float) spread(kind, term, scale);
      columns[to + 2 * V] = (float) scale;
      columns[to + 3 * V] = (float) columnWeight(kind, term, scale);
    }
  }

  private static Rows rows(DiagonalBatch g, NearTerm term) {
    int d = g.dimension();
    float[] weights = new float[g.size() * d];
    float[] spreads = new float[term == NearTerm.KL ? 0 : weights.length];
    Checkpoint checkpoint = new Checkpoint();
    for (int i = 0; i < g.size(); i++) {
      checkpoint.pass(Checkpoint.ofPlain(d));
      putWeights(g, term, i * d, d, weights, spreads, i * d);
    }
    int copies = g.isDouble() != (Float.SIZE == 64) ? 2 : g.isShared() ? 1 : 0;
    return new Rows(g.mean32(), g.allScales32(), weights, spreads, copies);
  }

  @SuppressWarnings("cast") // redundant in double
  private static void putWeights(
      DiagonalBatch g, NearTerm term, int from, int n, float[] weights, float[] spreads, int to) {
    for (int k = 0; k < n; k++) {
      double scale = g.scale(from + k);
      weights[to + k] = (float) rowWeight(g.kind(), term, scale);
      if (term != NearTerm.KL) {
        spreads[to + k] = (float) spread(g.kind(), term, scale);
      }
    }
  }

  private static double spread(Scale kind, NearTerm term, double s) {
    double v = kind.variance(s);
    return term == NearTerm.CHERNOFF ? v : 1 / v;
  }

  /** Returns β, which of KL in float makes z² grow with σq²/σp² as it should. */
  private static double rowWeight(Scale kind, NearTerm term, double s) {
    if (Float.SIZE == 64 || term != NearTerm.KL) {
      return kind == Scale.LOG_VARIANCE ? 1 : 1 / Math.sqrt(s);
    }
    return switch (kind) {
      case STD -> 1 / Math.cbrt(Math.sqrt(s));
      case VARIANCE -> 1 / Math.cbrt(s);
      case LOG_VARIANCE -> Math.exp(s / 6);
      case PRECISION -> 1 / Math.cbrt(s * s);
    };
  }

  /** Returns α; of KL in float αβ of one Gaussian is the derivative of {@code √½ ln σ²}. */
  private static double columnWeight(Scale kind, NearTerm term, double s) {
    if (Float.SIZE == 64 || term != NearTerm.KL) {
      return rowWeight(kind, term, s);
    }
    double weight =
        switch (kind) {
          case STD -> Math.sqrt(2) / s;
          case VARIANCE, PRECISION -> Math.sqrt(0.5) / s;
          case LOG_VARIANCE -> Math.sqrt(0.5);
        };
    return weight / rowWeight(kind, term, s);
  }

  /** Computes the divergence of one entry without vectors, to the bits of {@link FloatNearKernel}; NaN where this form does not hold. */
  double value(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    int d = q.dimension();
    boolean isPacked = isPacked(q, p, j / NR, 1);
    Rows rows = isPacked ? rows(q) : row;
    float[] columns = isPacked ? panel(p, j / NR) : column;
    double kl = 0;
    for (int h = 0; h < d; h += PairKl.BLOCK) {
      int length = Math.min(PairKl.BLOCK, d - h);
      int from = i * d + h;
      int at = (j % NR / V * d + h) * FIELDS * V + j % V;
      if (!isPacked) {
        putRow(q, from, length);
        putColumn(p, term, j * d + h, length, column, 0);
        from = 0;
        at = 0;
      }
      ScalarNearMicroKernel.tile1x1(
          term,
          q.kind(),
          rows.mean,
          rows.scale,
          rows.weights,
          rows.spreads,
          from,
          d,
          0,
          columns,
          at,
          length,
          weight,
          factor,
          coefficients(q.kind()),
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
    putWeights(g, term, from, n, weights, spreads, 0);
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
