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

  /** Least α of the kernels, by far above those of which a weighted variance may underflow. */
  private static final double LEAST_ALPHA = 0x1p-500;

  /**
   * Least and greatest α of the kernels that multiply weighted sums of variances: beyond them the logarithms of these are too large beside C, and floats do
   * not hold the products of smaller ones.
   */
  private static final double LEAST_USUAL = 0.125;

  private static final double MOST_USUAL = 0.9375;

  private static final TileBound BOUND = new Bound();
  private static final TileBound BOUND_NEAR_ENDS = new BoundNearEnds();

  /** Greatest α of which float settles most entries of Gaussians a standard deviation apart. */
  private static final double MOST_ALPHA32 = 1 - 0x1p-6;

  private final double alpha;

  /** Whether C is divided by 1 − α. */
  private final boolean isRenyi;

  private final LastStep lastStep;

  /** Weights of vq and vp in u: 1 − α and α. */
  private final double weightQ;

  private final double weightP;

  /** Whether kernels multiply weighted sums of variances, whatever the order. */
  private final boolean isUsual;

  private final Chernoff sums32;

  private Chernoff(double alpha, boolean isRenyi, LastStep lastStep) {
    this(alpha, isRenyi, lastStep, false);
  }

  private Chernoff(double alpha, boolean isRenyi, LastStep lastStep, boolean isUsual) {
    this.alpha = alpha;
    this.isUsual = isUsual;
    this.isRenyi = isRenyi;
    this.lastStep = lastStep;
    weightQ = 1 - alpha;
    weightP = alpha;
    sums32 = isNearOne() && !needsDouble() ? new Chernoff(alpha, isRenyi, lastStep, true) : this;
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
    return List.of(isNearOne() ? Field.PRECISION : Field.VARIANCE);
  }

  /** Whether kernels keep a product of {@code 1 + α (vp/vq − 1)}. */
  public boolean isNearZero() {
    return alpha < LEAST_USUAL;
  }

  /** Whether kernels keep a product of {@code 1 + (1−α) (vq/vp − 1)}. */
  public boolean isNearOne() {
    return alpha > MOST_USUAL && !isUsual;
  }

  private boolean isNearEnds() {
    return isNearZero() || isNearOne();
  }

  @Override
  public TileBound bound() {
    return isNearEnds() ? BOUND_NEAR_ENDS : BOUND;
  }

  @Override
  public double margin(TileBound.Precision precision, int dimension) {
    double scale =
        isNearEnds() ? divisor() / rowWeight() : divisor() * (alpha == 0.5 ? Bound.UNEQUAL : 1);
    return bound().margin(precision, dimension) * scale;
  }

  @Override
  public double factor() {
    return super.factor() * (isNearEnds() ? rowWeight() : 1);
  }

  @Override
  public NearTerm nearTerm() {
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
    return isNearZero() || alpha > MOST_ALPHA32;
  }

  @Override
  public Formula sums32() {
    return sums32;
  }

  @Override
  public double rowWeight() {
    return isNearZero() ? weightP : isNearOne() ? weightQ : weightQ / weightP;
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
   * are multiplied by it, and L is taken for the least α, whose |ln α| is three times ln 2.
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

    Bound() {
      super(true, true, true);
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
      double logAlpha = -Math.log(LEAST_USUAL) * d * U64;
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
    static double exponent(DiagonalBatch g, int i) {
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
   * The bound of {@code R = 2C/c}, c the lesser of α and 1 − α, at most 1/8: with v' the variance of the weight c, v the other and {@code x = v'/v − 1}, it is
   * {@code Σ [(1−c) (d²/v)/(1 + cx) + g]} with {@code g = ln(1 + cx)/c − ln(1+x) ≥ 0}. Each x has an error of (1 + x) 8u: v'/v has 5 roundings, and 3 more of
   * logarithms. By g it is bounded as {@code (1+x)/(1+cx) ≤ 2g + 1.4}, so its part of R is within {@code u (16g + 13.2)} a dimension.
   *
   * <p>Of a product 1 + m of k dimensions, m is rounded in each, which changes the logarithm by {@code u|m|/(1 + m)}, at most 2.2u times the sum so far of
   * {@code |ln(1 + cx)|}: after the exponent was taken apart, eight dimensions leave 1 + m above 0.24. That sum over c is at most {@code Σ (2g + 1.07)}. So of 32
   * dimensions the constant is taken 16.5 times as a mean, and g at most 32 times. With 1.2 for 1 + m, 8 for the logarithm itself, 4.5 and at most 8 sums of
   * groups, and 3, a dimension's part is within {@code u (70 + D/512 + (197 + D/128) g)}. A quotient has two roundings and 4.2 of 1 + m in each dimension of
   * its group, and 27 others, which together are below 230u. C/c, half of R, has half of the noise, and a row half of that.
   */
  private static final class BoundNearEnds extends TileBound {
    /** Greatest |log₂ σ²| of the variances, of which eight quotients make a product of at most 2^848. */
    private static final double MOST_EXPONENT = 53;

    BoundNearEnds() {
      super(true, true, false);
    }

    @Override
    double unit(Precision precision, int d) {
      return unit64(230, 2 * d);
    }

    @Override
    void boundRow(DiagonalBatch g, int i, Precision precision, Rows to) {
      int d = g.dimension();
      double logs = 8 * U64 * (Math.abs(g.logDet(i)) + 1) + g.logDetBound(i);
      boolean isHeld = !precision.isFloat() && Bound.exponent(g, i) <= MOST_EXPONENT;
      to.logs()[i] = g.logDet(i);
      to.noiseQ()[i] = isHeld ? (17.5 + d / 1024.0) * U64 * d + logs : Double.NaN;
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
