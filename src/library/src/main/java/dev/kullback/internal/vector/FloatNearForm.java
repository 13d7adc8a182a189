package dev.kullback.internal.vector;

import dev.kullback.internal.batch.DerivedForm;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.NearSeries;
import dev.kullback.internal.formula.NearTerm;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.Variance;
import dev.kullback.internal.work.Checkpoint;
import java.util.BitSet;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * Near form: the divergence of nearly identical Gaussians, without cancellation: a sum of a {@link NearTerm}, as {@code KL = ½ Σ_h
 * [d²/v_p + H]}, with H of the difference of the raw scales s, {@code (s_q − s_p) α_p β_q}. Nearby values subtract exactly and no term is negative, so nothing
 * cancels. Batches that state their scales in different ways are compared by variances of two parts. The build derives the form in double from this text.
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
 * <p>Entries below {@link #leastKl}, of which float loses parts by underflow, are summed up with differences that are {@link #UP} times as
 * large. Of so near Gaussians a series is its first term, to 2⁻³⁹, so that the sums are UP² times as large, and nothing else changes. They take
 * 4 times the usual time then, and 80 to 280 times pair by pair (D = 64, Intel, CPU family 6, JDK 25.0.3).
 *
 * <p>A batch keeps it by panels of columns, each made when many of its entries need it: whole it takes 2.5 times the memory of the batch, and 4 times
 * that where it is compared with another kind.
 * An instance computes entries one by one, to the same bits, from the batches' values if there are no panels. One thread's.
 */
final class FloatNearForm {
  /**
   * Greatest sum in 64 dimensions for which this form holds: of the y⁴, so that no |y| is beyond the limit of {@link NearSeries}, but of KL in
   * float of the terms, {@link #LIMIT_OF_KL}. That is 2 KL, twice what double leaves: if 2 KL is at most this, every {@code u² ≤ 2
   * LIMIT_OF_KL}, and z² is off by at most 0.9e-6 of itself. Double settles a KL above 5.6e-7 in 64 dimensions.
   */
  private static final float LIMIT = Float.SIZE == 32 ? 1e-4f : 0.025f;

  private static final float LIMIT_OF_KL = 0x1p-17f;

  /** The same of what is scaled up: {@link #mostKl} leaves far less. */
  private static final float LIMIT_OF_UP = 0x1p60f;

  /** Scaled up, means up to 2⁷² are finite; what is infinite is left to the stable form. */
  private static final float UP = 0x1p55f;

  /** How scales are compared. */
  enum Way {
    /** As the batches state them. */
    PLAIN(FIELDS, 1),
    /** By variances of two parts, as the batches state their scales in different ways. */
    MIXED(MIXED_FIELDS, 1),
    /** As {@link #PLAIN}, with all differences scaled up. */
    UP_SCALED(FIELDS, UP),
    /** As {@link #MIXED}, likewise, of rows that two parts hold. */
    MIXED_UP_SCALED(MIXED_FIELDS, UP);

    /** Numbers per dimension of a column. */
    final int fields;

    /** What differences are multiplied by. */
    final float up;

    /** What sums are multiplied by in the end. */
    final double down;

    Way(int fields, float up) {
      this.fields = fields;
      this.up = up;
      down = 1 / (up * up);
    }

    /** Returns the way of two batches; what it leaves open, {@link #scaledUp} may settle in float. */
    static Way of(DiagonalBatch q, DiagonalBatch p) {
      return q.kind() == p.kind() ? PLAIN : MIXED;
    }

    Way scaledUp() {
      return isMixed() ? MIXED_UP_SCALED : UP_SCALED;
    }

    boolean isUp() {
      return up != 1;
    }

    boolean isMixed() {
      return fields == MIXED_FIELDS;
    }

    /** Returns the kind of the scales that are subtracted. */
    Scale kind(DiagonalBatch g) {
      return isMixed() ? Scale.VARIANCE : g.kind();
    }
  }

  /** Whether what a way leaves open may be settled with differences scaled up. */
  static final boolean IS_FOLLOWED = Float.SIZE == 32;

  /** Numbers per dimension of a column: mean, 1/v or v, s, α; {@link Way#MIXED} has what v lacks, too. */
  static final int FIELDS = 4;

  static final int MIXED_FIELDS = FIELDS + 1;

  /** Columns that lie side by side. */
  static final int V = VectorWidth.BITS / Float.SIZE;

  private static final int NR = FloatPanels.NR;

  /** Coefficients of E, descending, and as many of O, in float. */
  private static final int EVEN = 2;

  /** Open entries of a tile that take longer one by one than its panel takes to be made. */
  static final int MANY = 4 * NR;

  /** Rows with a variance that two parts do not hold. */
  private static final DerivedForm<DiagonalBatch, BitSet> INEXACT =
      new DerivedForm<>(FloatNearForm::inexact, rows -> rows.size() / Byte.SIZE);

  private static final Map<NearTerm, Map<Way, Forms>> FORMS = new EnumMap<>(NearTerm.class);

  static {
    for (NearTerm term : NearTerm.values()) {
      Map<Way, Forms> forms = new EnumMap<>(Way.class);
      for (Way way : Way.values()) {
        forms.put(way, new Forms(term, way));
      }
      FORMS.put(term, forms);
    }
  }

  final NearTerm term;
  final double weight;
  final double factor;
  private final Map<Way, Forms> forms;
  private final Map<Way, Map<Scale, float[]>> series = new EnumMap<>(Way.class);

  /** A dimension's block of one pair, columns in the first lane. */
  private final float[] mean = new float[PairKl.BLOCK];

  private final float[] scale = new float[PairKl.BLOCK];
  private final float[] weights = new float[PairKl.BLOCK];
  private final float[] spreads = new float[PairKl.BLOCK];
  private final float[] rests = new float[PairKl.BLOCK];
  private final Rows row = new Rows(mean, scale, weights, spreads, rests, 0);
  private final float[] column = new float[PairKl.BLOCK * MIXED_FIELDS * V];
  private final Variance variance = new Variance();
  private final float[] acc = new float[1];

  FloatNearForm(Formula formula, NearTerm term) {
    this.term = term;
    weight = formula.nearWeight();
    factor = formula.nearFactor();
    forms = Objects.requireNonNull(FORMS.get(term));
    for (Way way : Way.values()) {
      series.put(way, new EnumMap<>(Scale.class));
    }
  }

  private Forms forms(Way way) {
    return Objects.requireNonNull(forms.get(way));
  }

  /**
   * Means, scales, β, where the term reads it v or 1/v, and what variances lack that are compared with another kind, row-major.
   *
   * @param copies how many of the first two are not the batch's own
   */
  record Rows(
      float[] mean, float[] scale, float[] weights, float[] spreads, float[] rests, int copies) {
    private long bytes() {
      return Float.BYTES * ((1L + copies) * weights.length + spreads.length + rests.length);
    }
  }

  /** What a term reads of batches. */
  private static final class Forms {
    final DerivedForm<DiagonalBatch, Columns> columns;
    final DerivedForm<DiagonalBatch, Rows> rows;

    Forms(NearTerm term, Way way) {
      columns = new DerivedForm<>(g -> new Columns(g, term, way), Columns::bytes);
      rows = new DerivedForm<>(g -> rows(g, term, way), Rows::bytes);
    }
  }

  /**
   * The panels of a batch: {@code [b][h][fields][V]} for vectors b of its columns; contiguous for each vector, so that a block stays in the
   * L1 cache.
   */
  private static final class Columns {
    private final NearTerm term;
    private final Way way;
    private final AtomicReferenceArray<float @Nullable []> panels;

    Columns(DiagonalBatch g, NearTerm term, Way way) {
      this.term = term;
      this.way = way;
      panels = new AtomicReferenceArray<>(Math.ceilDiv(g.size(), NR));
    }

    /** Returns a panel, which the batch keeps; threads that make it at once make the same. */
    float[] panel(DiagonalBatch g, int index) {
      float[] panel = panels.get(index);
      if (panel == null) {
        panel = pack(g, term, way, index * NR);
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

  Rows rows(DiagonalBatch q, Way way) {
    return forms(way).rows.of(q);
  }

  float[] panel(DiagonalBatch p, Way way, int index) {
    return forms(way).columns.of(p).panel(p, index);
  }

  /** Returns the coefficients of a kind of scales, as many as the micro-kernel of the term takes. */
  float[] coefficients(Scale kind, Way way) {
    Map<Scale, float[]> ofWay = Objects.requireNonNull(series.get(way));
    float[] made = ofWay.get(kind);
    if (made == null) {
      made = series(kind, way);
      ofWay.put(kind, made);
    }
    return made;
  }

  @SuppressWarnings("cast") // redundant in double
  private float[] series(Scale kind, Way way) {
    boolean isLog = kind == Scale.LOG_VARIANCE;
    boolean isEven = term == NearTerm.JEFFREYS;
    double[] values =
        Float.SIZE == 32
            ? NearSeries.of(kind, term, weight, EVEN, isEven ? 0 : EVEN, NearSeries.LIMIT_IN_SINGLE)
            : switch (term) {
              case KL ->
                  NearSeries.of(kind, term, 0, isLog ? 5 : 2, isLog ? 5 : 7, NearSeries.LIMIT);
              case JEFFREYS -> NearSeries.of(kind, term, 0, 5, 0, NearSeries.LIMIT);
              case CHERNOFF -> NearSeries.of(kind, term, weight, 8, 8, NearSeries.LIMIT);
            };
    float[] coefficients = new float[values.length];
    for (int k = 0; k < coefficients.length; k++) {
      coefficients[k] = way.isUp() && k != EVEN - 1 ? 0 : (float) values[k];
    }
    return coefficients;
  }

  /**
   * Returns the least KL of which what D terms lose by underflow is below a rounding: in float at most 2⁻¹⁴⁸ each, which 2⁻¹²⁴ can bear; of a way
   * that is followed by another 2⁻⁹⁰, as vectors with a subnormal number took 30 times as long (Intel, CPU family 6). Of mixed kinds u is in float within {@code δ =
   * 2⁻⁴⁷}: two parts of a variance, and the difference of the second parts, have a rounding squared each. As H is about ½u², the sum 2 KL is within {@code Σ|u|δ ≤
   * δ √(4D KL)}, which is δ √(D/KL) of it, and at most 6.8e-7. Variances that both have {@link #INEXACT exact} differ exactly: of two different kinds
   * only a σ² has a second part, so that the second parts subtract without rounding. In double no form is better: {@link PairKl#stable}, too, subtracts two parts of
   * double, of a {@link Variance}, so that below this it would take a hundred times as long to no avail.
   *
   * @param isExact whether all variances are
   */
  static double leastKl(int dimension, Way way, boolean isExact) {
    return dimension
        * (!IS_FOLLOWED
            ? 0x1p-1000
            : way == Way.MIXED && !isExact ? 0x1p-53 : way.isUp() ? 0x1p-124 : 0x1p-90)
        * way.down;
  }

  /** Returns the KL from which on another way, which comes first, may settle it: both have it to 1e-5. */
  static double mostKl(int dimension, Way way) {
    return way.isUp() ? leastKl(dimension, Way.PLAIN, true) * (1 - 1e-4) : Double.POSITIVE_INFINITY;
  }

  /** Returns the greatest sum of a block of dimensions. */
  float limit(Way way) {
    boolean isOfTerms = Float.SIZE == 32 && term == NearTerm.KL;
    return way.isUp() ? LIMIT_OF_UP : isOfTerms ? LIMIT_OF_KL : LIMIT;
  }

  /**
   * Whether a panel is to be read: if it was made, or is worth its memory, as so many entries of its tile are open or many were computed
   * one by one.
   */
  boolean isPacked(DiagonalBatch q, DiagonalBatch p, Way way, int panel, int open) {
    Columns made = forms(way).columns.made(p);
    return (made != null && made.isMade(panel))
        || open >= MANY
        || (p.isWorthForms(open) && q.isWorthForms(open));
  }

  private static float[] pack(DiagonalBatch g, NearTerm term, Way way, int first) {
    int d = g.dimension();
    float[] columns = new float[NR * way.fields * d];
    Variance v = new Variance();
    Checkpoint checkpoint = new Checkpoint();
    for (int j = 0; j < Math.min(NR, g.size() - first); j++) {
      checkpoint.pass(Checkpoint.ofPlain(d));
      int to = j / V * V * way.fields * d + j % V;
      putColumn(g, term, way, v, (first + j) * d, d, columns, to);
    }
    return columns;
  }

  /**
   * Puts n dimensions of a column, from the batch's element {@code from} on.
   *
   * @param v for a variance of two parts
   */
  @SuppressWarnings({"cast", "TooManyParameters"}) // casts are redundant in double
  private static void putColumn(
      DiagonalBatch g,
      NearTerm term,
      Way way,
      Variance v,
      int from,
      int n,
      float[] columns,
      int first) {
    Scale kind = way.kind(g);
    for (int k = from, to = first; k < from + n; k++, to += way.fields * V) {
      double scale = scale(g, k, way, v);
      columns[to] = (float) g.mean(k) * way.up;
      columns[to + V] = (float) spread(kind, term, scale);
      columns[to + 2 * V] = (float) scale;
      columns[to + 3 * V] = (float) columnWeight(kind, term, scale) * way.up;
      if (way.isMixed()) {
        columns[to + 4 * V] = rest(v);
      }
    }
  }

  private static double scale(DiagonalBatch g, int index, Way way, Variance v) {
    if (!way.isMixed()) {
      return g.scale(index);
    }
    v.set(g.kind(), g.scale(index));
    return v.toDouble();
  }

  /** Returns what a variance lacks once it is rounded. */
  @SuppressWarnings("cast") // redundant in double
  private static float rest(Variance v) {
    double rounded = (float) v.toDouble();
    return (float) (v.toDouble() - rounded + v.restToDouble());
  }

  private static BitSet inexact(DiagonalBatch g) {
    BitSet rows = new BitSet();
    int d = g.dimension();
    Variance v = new Variance();
    Checkpoint checkpoint = new Checkpoint();
    for (int k = 0; k < g.size() * d; k++) {
      double s = g.scale(k);
      v.set(g.kind(), s);
      if (!Variance.isExact(g.kind(), s) || !isHeld(v)) {
        rows.set(k / d);
        k += d - 1 - k % d;
      }
      checkpoint.pass(1);
    }
    return rows;
  }

  /** Whether two parts hold all of a variance that twice double's digits do. */
  @SuppressWarnings("cast") // redundant in double
  private static boolean isHeld(Variance v) {
    double rounded = (float) v.toDouble();
    return Math.abs(rounded) <= Float.MAX_VALUE
        && v.toDouble() - rounded + v.restToDouble() == rest(v);
  }

  private static boolean isExact(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return !inexactRows(q).get(i) && !inexactRows(p).get(j);
  }

  /** Returns the rows of which {@link Way#MIXED} does not have the variances exactly. */
  static BitSet inexactRows(DiagonalBatch g) {
    return INEXACT.of(g);
  }

  @SuppressWarnings("cast") // redundant in double
  private static Rows rows(DiagonalBatch g, NearTerm term, Way way) {
    int d = g.dimension();
    int length = g.size() * d;
    boolean isMixed = way.isMixed();
    boolean isUp = way.isUp();
    int copies =
        g.isDouble() != (Float.SIZE == 64)
            ? 2
            : (isMixed || !g.hasAllScales() ? 1 : 0) + (isUp ? 1 : 0);
    Rows rows =
        new Rows(
            isUp ? new float[length] : g.mean32(),
            isMixed ? new float[length] : g.allScales32(),
            new float[length],
            new float[term == NearTerm.KL ? 0 : length],
            new float[isMixed ? length : 0],
            copies);
    Variance v = new Variance();
    Checkpoint checkpoint = new Checkpoint();
    for (int i = 0; i < g.size(); i++) {
      checkpoint.pass(Checkpoint.ofPlain(d));
      putScales(g, term, way, v, i * d, d, rows, i * d);
    }
    for (int k = 0; k < length && isUp; k++) {
      rows.mean[k] = (float) g.mean(k) * UP;
    }
    return rows;
  }

  /** Puts what rows have of n scales, as {@link #putColumn} does; the scales themselves stand there, unless they are mixed. */
  @SuppressWarnings({"cast", "TooManyParameters"}) // casts are redundant in double
  private static void putScales(
      DiagonalBatch g, NearTerm term, Way way, Variance v, int from, int n, Rows rows, int to) {
    Scale kind = way.kind(g);
    for (int k = 0; k < n; k++) {
      double scale = scale(g, from + k, way, v);
      if (way.isMixed()) {
        rows.scale[to + k] = (float) scale;
        rows.rests[to + k] = rest(v);
      }
      rows.weights[to + k] = (float) rowWeight(kind, term, scale);
      if (term != NearTerm.KL) {
        rows.spreads[to + k] = (float) spread(kind, term, scale);
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
    Way way = Way.of(q, p);
    double kl = value(way, q, i, p, j);
    boolean mayBeUp = IS_FOLLOWED && (!way.isMixed() || isExact(q, i, p, j));
    return mayBeUp && Double.isNaN(kl) && !q.isEqual(i, p, j)
        ? value(way.scaledUp(), q, i, p, j)
        : kl;
  }

  /** The same by one way. */
  double value(Way way, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    int d = q.dimension();
    boolean isPacked = isPacked(q, p, way, j / NR, 1);
    Rows rows = isPacked ? rows(q, way) : row;
    float[] columns = isPacked ? panel(p, way, j / NR) : column;
    if (!isPacked) {
      q.countPair();
      p.countPair();
    }
    double kl = 0;
    for (int h = 0; h < d; h += PairKl.BLOCK) {
      int length = Math.min(PairKl.BLOCK, d - h);
      int from = i * d + h;
      int at = (j % NR / V * d + h) * way.fields * V + j % V;
      if (!isPacked) {
        putRow(q, way, from, length);
        putColumn(p, term, way, variance, j * d + h, length, column, 0);
        from = 0;
        at = 0;
      }
      ScalarNearMicroKernel.tile1x1(
          term,
          q.kind(),
          way.isMixed(),
          rows.mean,
          rows.scale,
          rows.weights,
          rows.spreads,
          rows.rests,
          from,
          d,
          0,
          columns,
          at,
          length,
          weight,
          factor,
          limit(way),
          coefficients(way.kind(q), way),
          acc,
          0);
      kl += acc[0];
    }
    kl *= way.down;
    boolean right = kl == 0 ? q.isEqual(i, p, j) : isRight(kl, way, q, i, p, j);
    return right ? kl : Double.NaN;
  }

  /** Puts n dimensions of a row, from the batch's element {@code from} on. */
  @SuppressWarnings("cast") // redundant in double
  private void putRow(DiagonalBatch g, Way way, int from, int n) {
    for (int k = 0; k < n; k++) {
      mean[k] = (float) g.mean(from + k) * way.up;
      scale[k] = (float) g.scale(from + k);
    }
    putScales(g, term, way, variance, from, n, row, 0);
  }

  /** Whether a KL other than 0 is within the contract: this precision holds the scales, and neither underflow nor {@link #LIMIT} shows. */
  private static boolean isRight(
      double kl, Way way, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    boolean isExact = IS_FOLLOWED && way.isMixed() && isExact(q, i, p, j);
    return kl >= leastKl(q.dimension(), way, isExact)
        && kl < mostKl(q.dimension(), way)
        && (way != Way.MIXED_UP_SCALED || isExact)
        && !q.beyond32().get(i)
        && !p.beyond32().get(j);
  }
}
