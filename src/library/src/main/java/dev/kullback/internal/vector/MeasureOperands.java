package dev.kullback.internal.vector;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DerivedForm;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The batches of a call in the panels that {@link MeasureKernel} and {@link MeasureColdKernel} read, and the error bounds of what these
 * make of them: with the sum R of {@link Summand} the divergence is {@code factor·R + offset(q_i) + offset(p_j)}, and its error is at
 * most {@code unit·divergence + noise(q_i) + noise(p_j)}, or a noise is NaN. With u the unit roundoff, 2⁻²⁴ or 2⁻⁵³, a the margin that
 * the tolerance leaves above the unit, and v, σ and 1/v each within ε:
 *
 * <p><b>Wasserstein</b>, {@code R = Σ d² + e²}, {@code e = σq − σp}: d and e have one rounding, and a square is in 2·64 sums of its chunk
 * and three of chunks. Standard deviations as they are given are exact. Others move e by {@code ε(σq + σp)} at most, and R, by
 * Cauchy's inequality, by {@code 2x + x²} of itself, with {@code x² = ε² Σ (σq + σp)²/R ≤ 2ε² (Σ σq² + Σ σp²)/R}. That is below a where
 * {@code x ≤ 0.47a}, hence a noise of {@code 9 ε² Σσ²/a}. Sums below LEAST may have lost what underflows.
 *
 * <p><b>Jeffreys</b>. In float {@code A = ½ Σ (d² + vq + vp)(1/vq + 1/vp)} is 2D larger than J. A term t has w ≤ 6 roundings, and 64 + 3
 * of sums. As {@code t ≥ 4} and {@code J = ½ Σ (t − 4)}, {@code ½u Σ wt ≤ λτJ + (1 − λ)·53·u·A} holds for λ = 0.2 and the contract τ: it is
 * linear in each t, its slope {@code λτ/u + 0.8·53 = 75} is no less than any w, and at t = 4 the mean of w over a chunk, 42, counts. So
 * {@code 53·u·A ≤ τJ} is enough. In double {@code J = ½ Σ d² (1/vq + 1/vp) + ef} with {@code e = vq − vp} and {@code f = 1/vp − 1/vq}: with
 * {@code z² = ef} exactly, {@code |e|(1/vq + 1/vp) = |f|(vq + vp) = |z|√(4 + z²) ≤ 2|z| + z²}, so that ef is wrong by {@code 4ε|z| + 4ε²},
 * beside some roundings of z². The sum of |z| is at most {@code √(D·2J)}, and so the error {@code 2x + x²} of J, {@code x² = 2Dε²/J}.
 *
 * <p><b>Chernoff</b>, {@code R = (1−α) Σ d²/s + ln Π s + D ln α − 2(1−α) Σ ln σq − 2α Σ ln σp} with {@code s = wvq + vp}, {@code w = (1 − α)/α}. No product leaves the
 * range of its type where all variances are in a window, see {@link #MOST_EXPONENT32}. A factor of the product has ε of v, w, its product
 * and sum, and is in one product more. A quotient has 4 roundings and those of s, and each dimension of its run makes two. With {@code L = D|ln α|},
 * {@code a = 2(1−α)|Σ ln σq|} and {@code b = 2α|Σ ln σp|}, the logarithm of the product is at most {@code L + a + b + 2C}; it, D ln α and the additions are
 * within {@code (4L + 5a + 4b + 4)u}, of which R's factor takes half. Noises are for α other than ½, of which s has two roundings more, a third
 * of the whole at least: the margin makes up for it, and for L of ½ its bound for smaller α does.
 */
public final class MeasureOperands extends Operands<DiagonalBatch> {
  private static final double U32 = 0x1p-24;
  private static final double U64 = 0x1p-53;

  /** Least sum of squares a dimension in which underflow cannot show. */
  private static final double LEAST32 = 0x1p-110;

  private static final double LEAST64 = 0x1p-960;

  /** Least α of the kernels, and of those in float. */
  private static final double LEAST_ALPHA = 0x1p-20;

  private static final double LEAST_ALPHA32 = 0.125;

  /** Least α of which the noise of logarithms is bounded apart: smaller ones have more, as ln α has. */
  private static final double USUAL_ALPHA = 0x1p-5;

  /**
   * Greatest |log₂ σ²| of the variances that are multiplied: eight of their weighted sums and a number below 2 make at most 2^126, and at
   * most 2^1022, where α is not below its least.
   */
  private static final double MOST_EXPONENT32 = 12;

  private static final double MOST_EXPONENT64 = 106;

  /** Dimensions of whose product float holds the exponent. */
  private static final int MOST_DIMENSIONS32 = 1 << 16;

  /** How much larger the noise of {@link Summand#CHERNOFF} is than α = ½ needs. */
  private static final double UNEQUAL = 1.5;

  /** Forms of entries, by their precision and contract. */
  enum Precision {
    FLOAT,
    /** Double, for batches of float. */
    REFINED,
    DOUBLE
  }

  /** Rows of batches, by the precision of the entries and what they add up. */
  private static final class Forms {
    static final Forms FLOAT = new Forms(Precision.FLOAT);
    static final Forms REFINED = new Forms(Precision.REFINED);
    static final Forms DOUBLE = new Forms(Precision.DOUBLE);

    private final Precision precision;
    private final DerivedForm<DiagonalBatch, Rows> wasserstein = form(Summand.WASSERSTEIN_2, 0);
    private final DerivedForm<DiagonalBatch, Rows> jeffreys = form(Summand.JEFFREYS, 0);
    private final DerivedForm<DiagonalBatch, Rows> chernoff = form(Summand.CHERNOFF, USUAL_ALPHA);
    private final DerivedForm<DiagonalBatch, Rows> smallAlpha = form(Summand.CHERNOFF, LEAST_ALPHA);

    private Forms(Precision precision) {
      this.precision = precision;
    }

    private DerivedForm<DiagonalBatch, Rows> form(Summand summand, double leastAlpha) {
      return new DerivedForm<>(
          g -> rows(summand, precision, g, leastAlpha),
          r -> (long) Double.BYTES * (2 * r.offset.length + r.log.length));
    }

    Rows of(Formula formula, DiagonalBatch g) {
      return switch (Summand.of(formula)) {
        case WASSERSTEIN_2 -> wasserstein.of(g);
        case JEFFREYS -> jeffreys.of(g);
        case CHERNOFF -> (formula.alpha() < USUAL_ALPHA ? smallAlpha : chernoff).of(g);
      };
    }
  }

  /**
   * Offsets and noises of a batch's rows, padded to whole panels.
   *
   * @param log Σ ln σ, of {@link Summand#CHERNOFF}
   */
  record Rows(double[] offset, double[] noise, double[] log) {}

  private final Formula formula;
  private final Summand summand;
  private final PanelForm.Memory<float[]> memoryQ = new PanelForm.Memory<>();
  private final PanelForm.Memory<float[]> memoryP = new PanelForm.Memory<>();
  private float @Nullable [] q32;
  private float @Nullable [] p32;

  /** Whether batches are packed with vectors. */
  private boolean vectors;

  public MeasureOperands(Formula formula) {
    this.formula = formula;
    summand = Summand.of(formula);
  }

  /** Whether the kernels compute a formula of this order. */
  public static boolean hasOrder(double alpha) {
    return alpha >= LEAST_ALPHA;
  }

  @Override
  public void prepare(Batch g, boolean vectors) {
    DiagonalBatch batch = (DiagonalBatch) g;
    if (!batch.isDouble()) {
      FloatMeasurePanels.of(summand).of(batch, vectors);
      Forms.FLOAT.of(formula, batch);
      Forms.REFINED.of(formula, batch);
    }
    DoubleMeasurePanels.of(summand).of(batch, vectors);
    Forms.DOUBLE.of(formula, batch);
  }

  @Override
  public void pack(Batch q, Batch p, boolean vectors, Worker worker) {
    DiagonalBatch a = (DiagonalBatch) q;
    DiagonalBatch b = (DiagonalBatch) p;
    hold(a, b);
    this.vectors = vectors;
    if (isWide()) {
      DoubleMeasurePanels.of(summand).of(a, vectors, worker);
      DoubleMeasurePanels.of(summand).of(b, vectors, worker);
    } else {
      PanelForm<DiagonalBatch, float[], float[]> form = FloatMeasurePanels.of(summand);
      q32 = form.of(a, a.markUsed(), memoryQ, vectors, worker);
      p32 = a == b ? q32 : form.of(b, b.markUsed(), memoryP, vectors, worker);
    }
  }

  @Override
  public void clear() {
    super.clear();
    q32 = null;
    p32 = null;
  }

  Formula formula() {
    return formula;
  }

  Summand summand() {
    return summand;
  }

  /** Whether the first form is in double. */
  boolean isWide() {
    return isDouble() || (summand == Summand.CHERNOFF && formula.alpha() < LEAST_ALPHA32);
  }

  private boolean isDouble() {
    return q().isDouble() || p().isDouble();
  }

  float[] q32() {
    return Objects.requireNonNull(q32);
  }

  float[] p32() {
    return Objects.requireNonNull(p32);
  }

  /** Returns panels of double that the batch keeps; for a batch of float the first thread that needs them makes them. */
  double[] q64() {
    return DoubleMeasurePanels.of(summand).of(q(), vectors);
  }

  double[] p64() {
    return DoubleMeasurePanels.of(summand).of(p(), vectors);
  }

  Rows rows32(DiagonalBatch g) {
    return Forms.FLOAT.of(formula, g);
  }

  Rows rows64(DiagonalBatch g) {
    return (isDouble() ? Forms.DOUBLE : Forms.REFINED).of(formula, g);
  }

  /** Returns α of {@link Summand#CHERNOFF}. */
  double alpha() {
    return formula.alpha();
  }

  /** Returns w, by which variances of rows are multiplied. */
  static double rowWeight(double alpha) {
    return (1 - alpha) / alpha;
  }

  double margin32() {
    return margin(Precision.FLOAT);
  }

  double margin64() {
    return margin(isDouble() ? Precision.DOUBLE : Precision.REFINED);
  }

  private double margin(Precision precision) {
    double margin = margin(summand, precision, q().dimension());
    return summand != Summand.CHERNOFF
        ? margin
        : margin * (formula.alpha() == 0.5 ? UNEQUAL : 1) * formula.divisor();
  }

  /** Tolerance − unit. */
  private static double margin(Summand summand, Precision precision, int d) {
    int sums = Math.min(d, PairKl.BLOCK);
    int runs = Math.min(d, Summand.RUNS);
    if (precision == Precision.FLOAT) {
      int units =
          switch (summand) {
            case WASSERSTEIN_2 -> 2 + 2 * sums + 3;
            case JEFFREYS -> unitsOfJeffreys(d);
            case CHERNOFF -> 4 + 4 + 2 * runs + 1 + 8;
          };
      return PairKl.FLOAT_TOLERANCE - units * U32;
    }
    int units =
        switch (summand) {
          case WASSERSTEIN_2 -> 2 + 2 * sums + 3;
          case JEFFREYS -> 8 + 2 * sums + 3;
          case CHERNOFF -> 4 + 5 + 2 * runs + 1 + 8 + 8;
        };
    return (precision == Precision.REFINED ? PairKl.REFINED_TOLERANCE : PairKl.DOUBLE_TOLERANCE)
        - (units + 3 + (double) d / PairKl.BLOCKS) * U64;
  }

  private static int unitsOfJeffreys(int d) {
    return Math.min(9 + d, 53);
  }

  private static Rows rows(
      Summand summand, Precision precision, DiagonalBatch g, double leastAlpha) {
    int d = g.dimension();
    double[] offset = new double[Math.ceilDiv(g.size(), FloatPanels.NR) * FloatPanels.NR];
    double[] noise = new double[offset.length];
    double[] log = new double[summand == Summand.CHERNOFF ? offset.length : 0];
    boolean wide = precision != Precision.FLOAT;
    double u = wide ? U64 : U32;
    double margin = margin(summand, precision, d);
    Checkpoint checkpoint = new Checkpoint();
    for (int i = 0; i < g.size(); i++) {
      checkpoint.pass(Checkpoint.ofPlain(d));
      switch (summand) {
        case WASSERSTEIN_2 -> {
          double least = wide ? precision == Precision.DOUBLE ? LEAST64 : 0 : LEAST32;
          noise[i] = margin * least * d + 9 * 4 * u * u / margin * squares(g, i);
        }
        case JEFFREYS -> {
          offset[i] = wide ? 0 : -d;
          noise[i] = wide ? 4.5 * 9 * u * u * d / margin : unitsOfJeffreys(d) * U32 * d;
        }
        case CHERNOFF -> {
          double logs = 8 * U64 * (Math.abs(g.logDet(i)) + 1) + g.logDetBound(i);
          double logAlpha = -Math.log(leastAlpha) * d * U64;
          log[i] = g.logDet(i);
          boolean isHeld =
              wide
                  ? exponent(g, i) <= MOST_EXPONENT64
                  : exponent(g, i) <= MOST_EXPONENT32 && d <= MOST_DIMENSIONS32;
          noise[i] =
              isHeld ? 0.2525 * (wide ? 6 : 5) * u * d + UNEQUAL * logs + logAlpha : Double.NaN;
        }
      }
      if (wide ? g.beyond64().get(i) : g.beyond32().get(i)) {
        noise[i] = Double.NaN;
      }
    }
    return new Rows(offset, noise, log);
  }

  /** Sums the variances of a row whose standard deviations are rounded. */
  private static double squares(DiagonalBatch g, int i) {
    double sum = 0;
    int end = (i + 1) * g.dimension();
    for (int k = i * g.dimension(); k < end && g.kind() != Scale.STD; k++) {
      sum += g.kind().variance(g.scale(k));
    }
    return sum;
  }

  /** Returns the greatest |log₂ σ²| of a row. */
  private static double exponent(DiagonalBatch g, int i) {
    double low = Double.POSITIVE_INFINITY;
    double high = Double.NEGATIVE_INFINITY;
    for (int k = i * g.dimension(); k < (i + 1) * g.dimension(); k++) {
      double s = g.scale(k);
      low = Math.min(low, s);
      high = Math.max(high, s);
    }
    double most =
        Math.max(Math.abs(g.kind().logVariance(low)), Math.abs(g.kind().logVariance(high)));
    return most / Math.log(2);
  }
}
