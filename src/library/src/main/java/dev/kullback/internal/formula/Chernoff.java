package dev.kullback.internal.formula;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.numerics.DoubleDouble;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Worker;
import java.util.List;

/**
 * The Chernoff α-divergence, and two divergences computed from it: Rényi's of an α below 1, and for α = ½ Hellinger's distance. Of diagonal Gaussians, with
 * {@code u = (1−α) vq + α vp},
 *
 * <pre>
 * C = −ln ∫ q^α p^(1−α) = ½ Σ_h [α(1−α) d²/u + ln(u/(vq^(1−α) vp^α))]
 * </pre>
 *
 * <p>(M. Gil, F. Alajaji, T. Linder, "Rényi divergence measures for commonly used univariate continuous distributions", Information Sciences
 * 249, 2013). The logarithm is {@link #gap}. Full covariances are {@link FullChernoff}'s.
 */
public final class Chernoff extends Formula {
  public static final Chernoff BHATTACHARYYA = ofOrder(0.5);
  public static final Chernoff HELLINGER = new Chernoff(0.5, false, LastStep.HELLINGER);

  /** Bhattacharyya distance below which that of diagonal Gaussians is computed with differences scaled up, for its root. */
  private static final double LEAST = 0x1p-900;

  private static final double UP = 0x1p500;

  /** How much larger the error in twice the precision is than that of KL's terms. */
  static final double TOLERANCE = 4;

  /** Least α of the kernels, and of those in float. */
  private static final double LEAST_ALPHA = 0x1p-20;

  private static final double LEAST_ALPHA32 = 0.125;

  /** Least α of which the noise of logarithms is bounded apart: smaller ones have more, as ln α has. */
  private static final double USUAL_ALPHA = 0x1p-5;

  private static final TileBound BOUND = new Bound(USUAL_ALPHA);
  private static final TileBound BOUND_OF_SMALL = new Bound(LEAST_ALPHA);

  private final double alpha;

  /** Whether C is divided by 1 − α. */
  private final boolean isRenyi;

  private final LastStep lastStep;

  /** Weights of vq and vp in u: 1 − α and α. */
  private final double weightQ;

  private final double weightP;

  private Chernoff(double alpha, boolean isRenyi, LastStep lastStep) {
    this.alpha = alpha;
    this.isRenyi = isRenyi;
    this.lastStep = lastStep;
    weightQ = 1 - alpha;
    weightP = alpha;
  }

  /** Returns the Chernoff α-divergence; with α = ½, it is the Bhattacharyya distance. */
  public static Chernoff ofOrder(double alpha) {
    return new Chernoff(alpha, false, LastStep.NONE);
  }

  /** Returns Rényi's divergence of order α. */
  public static Chernoff renyi(double alpha) {
    return new Chernoff(alpha, true, LastStep.NONE);
  }

  @Override
  double sumTerms(ScaleRatio scales, DiagonalBatch q, int a, DiagonalBatch p, int b, int n) {
    double sum = 0;
    for (int k = 0; k < n; k++) {
      scales.compare(q.kind(), q.scale(a + k), p.kind(), p.scale(b + k));
      sum += term(scales, q.mean(a + k), p.mean(b + k));
    }
    return sum;
  }

  private double term(ScaleRatio scales, double mq, double mp) {
    double y = scales.standardize(mq, mp);
    double greater = scales.isGreaterQ ? weightQ : weightP;
    double smaller = scales.isGreaterQ ? weightP : weightQ;
    double weight = 0.5 * weightQ * weightP / (greater + smaller * scales.ratio);
    double gap =
        smaller <= 0.5
            ? gap(smaller, -scales.less, -scales.log())
            : gap(greater, scales.less / scales.ratio, scales.log());
    return y * (weight * y) + 0.5 * gap;
  }

  /**
   * Returns {@code ln(1 + wx) − w ln(1+x) ≥ 0} for {@code w ≤ ½}. Near 0 it is {@code w f(x) − f(wx)} with {@code f(x) = x − ln(1+x)}, of
   * which the second is at most half the first.
   *
   * @param log ln(1+x), which is finite where x is not
   */
  private static double gap(double w, double x, double log) {
    if (Math.abs(x) < 0.5) {
      return w * AlikeTerm.lessLog(x) - AlikeTerm.lessLog(w * x);
    }
    if (x < Double.POSITIVE_INFINITY) {
      return Math.log1p(w * x) - w * log;
    }
    double z = Math.log(w) + log; // ln(wx)
    return (z > 40 ? z : Math.log1p(Math.exp(z))) - w * log;
  }

  @Override
  double stable(ScaleRatio scales, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    double sum = super.stable(scales, q, i, p, j);
    return isUnderflowing(this, sum) ? tinyHellinger(scales, q, i, p, j) : finish(sum);
  }

  /** Whether it is the root of a number that may have lost what underflows. */
  static boolean isUnderflowing(Formula formula, double c) {
    return formula.lastStep() == LastStep.HELLINGER && c < LEAST;
  }

  /** Returns Hellinger's distance of Gaussians so near that {@code B = ⅛ Σ [y² + ½ (1 − v/V)²]} may underflow, and the distance does not. */
  private static double tinyHellinger(
      ScaleRatio scales, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    int d = q.dimension();
    double sum = 0;
    for (int h = 0; h < d; h++) {
      scales.compare(q.kind(), q.scale(i * d + h), p.kind(), p.scale(j * d + h));
      double y = UP * scales.standardize(q.mean(i * d + h), p.mean(j * d + h));
      double less = UP * scales.less;
      sum += y * y + 0.5 * less * less;
    }
    return Math.sqrt(0.125 * sum) / UP;
  }

  @Override
  Full full(Worker worker) {
    return new FullChernoff(this, alpha, worker);
  }

  @Override
  Unrounded exact() {
    return new Exact();
  }

  @Override
  double tolerance(int dimension) {
    return TOLERANCE * super.tolerance(dimension);
  }

  @Override
  public double divisor() {
    return isRenyi ? weightQ : 1;
  }

  @Override
  public double alpha() {
    return alpha;
  }

  @Override
  public boolean isSymmetric() {
    return alpha == 0.5;
  }

  @Override
  public LastStep lastStep() {
    return lastStep;
  }

  @Override
  public List<Field> scales() {
    return List.of(Field.VARIANCE);
  }

  @Override
  public TileBound bound() {
    return alpha < USUAL_ALPHA ? BOUND_OF_SMALL : BOUND;
  }

  @Override
  public double margin(TileBound.Precision precision, int dimension) {
    return bound().margin(precision, dimension) * (alpha == 0.5 ? Bound.UNEQUAL : 1) * divisor();
  }

  @Override
  public NearTerm nearTerm(boolean isDouble) {
    return NearTerm.CHERNOFF;
  }

  @Override
  public double nearFactor() {
    return 0.5 * weightP * (isRenyi ? 1 : weightQ);
  }

  @Override
  public double nearWeight() {
    return weightQ;
  }

  @Override
  public boolean hasTiles() {
    return alpha >= LEAST_ALPHA;
  }

  @Override
  public boolean needsDouble() {
    return alpha < LEAST_ALPHA32;
  }

  @Override
  public double rowWeight() {
    return (1 - alpha) / alpha;
  }

  /**
   * The bound of {@code R = (1−α) Σ d²/s + ln Π s + D ln α − 2(1−α) Σ ln σq − 2α Σ ln σp} with {@code s = wvq + vp}, {@code w = (1 − α)/α}. With
   * u the unit roundoff, and v within ε: no product leaves the range of its type where all variances are in a window, see {@link
   * #MOST_EXPONENT32}. A factor of the product has ε of v, w, its product and sum, and is in one product more. A quotient has 4 roundings and
   * those of s, and each dimension of its run makes two. With {@code L = D|ln α|}, {@code a = 2(1−α)|Σ ln σq|} and {@code b = 2α|Σ ln σp|}, the
   * logarithm of the product is at most {@code L + a + b + 2C}; it, D ln α and the additions are within {@code (4L + 5a + 4b + 4)u}, of which
   * R's factor takes half.
   *
   * <p>The noise counts the roundings of any α: 5 a dimension in float, 6 in double. With α = ½, w is 1 and exact, and so is its product,
   * so that 3 and 4 are left, {@code noise(½) ≤ noise/1.5}. An entry of α = ½ is therefore certain where {@code noise ≤ 1.5·(tolerance −
   * unit)·C}, hence {@link #UNEQUAL} in the margin. What is no smaller for α = ½ has to bear that factor: the logarithms of determinants
   * are multiplied by it, and L is taken for the least α, whose |ln α| is at least five times ln 2.
   */
  private static final class Bound extends TileBound {
    /**
     * Greatest |log₂ σ²| of the variances that are multiplied: eight of their weighted sums and a number below 2 make at most 2^126, and at
     * most 2^1022, where α is not below its least.
     */
    private static final double MOST_EXPONENT32 = 12;

    private static final double MOST_EXPONENT64 = 106;

    /** Dimensions of whose product float holds the exponent. */
    private static final int MOST_DIMENSIONS32 = 1 << 16;

    /** How much larger the noise is than α = ½ needs. */
    static final double UNEQUAL = 1.5;

    private final double leastAlpha;

    Bound(double leastAlpha) {
      super(true, true, true);
      this.leastAlpha = leastAlpha;
    }

    @Override
    double unit(Precision precision, int d) {
      int runs = Math.min(d, RUNS);
      return precision.isFloat()
          ? (4 + 4 + 2 * runs + 1 + 8) * U32
          : unit64(4 + 5 + 2 * runs + 1 + 8 + 8, d);
    }

    @Override
    void boundRow(DiagonalBatch g, int i, Precision precision, Rows to) {
      int d = g.dimension();
      double logs = 8 * U64 * (Math.abs(g.logDet(i)) + 1) + g.logDetBound(i);
      double logAlpha = -Math.log(leastAlpha) * d * U64;
      boolean isFloat = precision.isFloat();
      boolean isHeld =
          isFloat
              ? exponent(g, i) <= MOST_EXPONENT32 && d <= MOST_DIMENSIONS32
              : exponent(g, i) <= MOST_EXPONENT64;
      to.logs()[i] = g.logDet(i);
      to.noiseQ()[i] =
          isHeld
              ? 0.2525 * (isFloat ? 5 : 6) * precision.u * d + UNEQUAL * logs + logAlpha
              : Double.NaN;
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

  /**
   * The same in twice the precision. A gap whose |x| is at most {@link #MOST_IN_SERIES} comes from two series, of which the second is at
   * most half the first: to three times the error of one, 2⁻⁸⁴·⁷. Of others the 1 + x and, where |wx| is beyond it, too, the 1 + wx are
   * multiplied for two logarithms, each factor to 2⁻⁹⁶: the gap is at least {@code w·2⁻¹²}, and 2⁻¹² where there is a second factor.
   */
  private final class Exact extends Unrounded {
    private final DoubleDouble order = new DoubleDouble();
    private final DoubleDouble remainder = new DoubleDouble();

    /** The weight of the other variance in u/v, v that of the heavier weight, and with equal weights the smaller variance. */
    private final DoubleDouble weight = new DoubleDouble();

    private final DoubleDouble weights = new DoubleDouble();
    private final DoubleDouble wx = new DoubleDouble();
    private final DoubleDouble part = new DoubleDouble();

    /** Products of the 1 + wx and of the 1 + x. */
    private final DoubleDouble mixed = new DoubleDouble();

    private final DoubleDouble ratios = new DoubleDouble();

    Exact() {
      order.set(alpha);
      remainder.setDifference(1, alpha);
      weight.set(alpha <= 0.5 ? order : remainder);
      weights.set(order);
      weights.multiply(remainder);
    }

    @Override
    void startSum() {
      mixed.set(1);
      ratios.set(1);
    }

    @Override
    boolean addTerm(Scale kind, double mq, double sq, Scale other, double mp, double sp) {
      if (!setBase(kind, sq, other, sp)) {
        return false;
      }
      boolean isSmall = Math.abs(x.toDouble()) < MOST_IN_SERIES;
      wx.set(x);
      wx.multiply(weight);
      if (mq != mp) {
        w.set(wx);
        w.add(1);
        part.setDifference(mq, mp);
        part.multiply(part);
        part.divide(vp);
        part.divide(w);
        part.multiply(weights);
        sum.add(part);
      }
      if (x.high() == 0) {
        return true;
      }
      boolean isMixedSmall = Math.abs(wx.toDouble()) < MOST_IN_SERIES;
      if (isMixedSmall) {
        if (!isSmall) {
          sum.add(wx);
        }
        lessLog(wx);
        sum.subtract(wx);
      } else {
        wx.add(1);
        mixed.multiply(wx);
      }
      if (isSmall) {
        lessLog(x);
        x.multiply(weight);
        sum.add(x);
      } else {
        ratios.multiply(ratio);
      }
      return true;
    }

    /** Sets x of the variance of the lighter weight and that of the heavier, which are q's and p's from here on. */
    private boolean setBase(Scale kind, double sq, Scale other, double sp) {
      if (alpha == 0.5) {
        return setOrdered(kind, sq, other, sp);
      }
      boolean isHeavierP = alpha > 0.5;
      vq.set(isHeavierP ? kind : other, isHeavierP ? sq : sp);
      vp.set(isHeavierP ? other : kind, isHeavierP ? sp : sq);
      if (!vq.isHeld() || !vp.isHeld()) {
        return false;
      }
      setAnyExcess(
          isHeavierP ? kind : other,
          isHeavierP ? sq : sp,
          isHeavierP ? other : kind,
          isHeavierP ? sp : sq);
      return true;
    }

    @Override
    void finishSum() {
      log(mixed);
      sum.add(mixed);
      log(ratios);
      ratios.multiply(weight);
      sum.subtract(ratios);
      sum.scale(-1);
      if (isRenyi) {
        sum.divide(remainder);
      }
      if (lastStep == LastStep.HELLINGER) {
        toHellinger();
      }
    }

    /** Replaces the sum B by {@code √(1 − e^−B)}. */
    private void toHellinger() {
      part.set(0);
      part.subtract(sum);
      if (part.toDouble() > -0.3) {
        part.expm1();
      } else {
        part.exp();
        part.add(-1);
      }
      sum.set(0);
      sum.subtract(part);
      sum.sqrt();
    }
  }
}
