package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.numerics.DoubleDouble;
import dev.kullback.internal.numerics.Measure;
import dev.kullback.internal.numerics.Measure.Family;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Worker;

/**
 * Computes the Chernoff α-divergence, and what is made of it: Rényi's, and Hellinger's distance of α = ½. Of diagonal Gaussians, with
 * {@code u = (1−α) vq + α vp},
 *
 * <pre>
 * C = −ln ∫ q^α p^(1−α) = ½ Σ_h [α(1−α) d²/u + ln(u/(vq^(1−α) vp^α))]
 * </pre>
 *
 * <p>(M. Gil, F. Alajaji, T. Linder, "Rényi divergence measures for commonly used univariate continuous distributions", Information Sciences
 * 249, 2013). The logarithm is {@link #gap}. Full covariances are {@link FullChernoff}'s.
 */
final class ChernoffPair extends StablePair {
  /** Bhattacharyya distance below which that of diagonal Gaussians is computed with differences scaled up, for its root. */
  private static final double LEAST = 0x1p-900;

  private static final double UP = 0x1p500;

  private final Measure measure;

  /** Weights of vq and vp in u: 1 − α and α. */
  private final double weightQ;

  private final double weightP;
  private final ScaleRatio scales = new ScaleRatio();
  private final FullChernoff pair;

  ChernoffPair(Measure measure, Worker worker) {
    super(new Exact(measure), worker);
    this.measure = measure;
    pair = new FullChernoff(worker);
    weightQ = 1 - measure.alpha();
    weightP = measure.alpha();
  }

  @Override
  public void clear() {
    pair.clear();
  }

  @Override
  double term(Scale kindQ, double mq, double sq, Scale kindP, double mp, double sp) {
    scales.set(kindQ, sq, kindP, sp);
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
      return w * PairKl.lessLog(x) - PairKl.lessLog(w * x);
    }
    if (x < Double.POSITIVE_INFINITY) {
      return Math.log1p(w * x) - w * log;
    }
    double z = Math.log(w) + log; // ln(wx)
    return (z > 40 ? z : Math.log1p(Math.exp(z))) - w * log;
  }

  @Override
  double diagonal(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    double sum = sum(q, i, p, j);
    return measure.family() == Family.HELLINGER && sum < LEAST
        ? tinyHellinger(q, i, p, j)
        : measure.ofChernoff(sum);
  }

  /** Returns Hellinger's distance of Gaussians so near that {@code B = ⅛ Σ [y² + ½ (1 − v/V)²]} may underflow, and the distance does not. */
  private double tinyHellinger(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    int d = q.dimension();
    double sum = 0;
    for (int h = 0; h < d; h++) {
      scales.set(q.kind(), q.scale(i * d + h), p.kind(), p.scale(j * d + h));
      double y = UP * scales.standardize(q.mean(i * d + h), p.mean(j * d + h));
      double less = UP * scales.less;
      sum += y * y + 0.5 * less * less;
    }
    return Math.sqrt(0.125 * sum) / UP;
  }

  @Override
  double full(Batch q, int i, Batch p, int j) {
    double c = pair.divergence(q, i, p, j, weightQ, weightP);
    return measure.family() == Family.HELLINGER && c < LEAST ? pair.root() : measure.ofChernoff(c);
  }

  @Override
  public double tolerance(int dimension) {
    return Exact.TOLERANCE * DoubleDoubleKl.tolerance(dimension);
  }

  /**
   * The same in twice the precision. A gap whose |x| is at most {@link #MOST_IN_SERIES} comes from two series, of which the second is at
   * most half the first: to three times the error of one, 2⁻⁸⁴·⁷. Of others the 1 + x and, where |wx| is beyond it, too, the 1 + wx are
   * multiplied for two logarithms, each factor to 2⁻⁹⁶: the gap is at least {@code w·2⁻¹²}, and 2⁻¹² where there is a second factor.
   */
  private static final class Exact extends Unrounded {
    /** How much larger the error is than that of KL's terms. */
    static final double TOLERANCE = 4;

    private final Measure measure;
    private final DoubleDouble alpha = new DoubleDouble();
    private final DoubleDouble remainder = new DoubleDouble();

    /** The weight of the other variance in u/v, v that of the heavier weight, and with equal weights the smaller variance. */
    private final DoubleDouble weight = new DoubleDouble();

    private final DoubleDouble weights = new DoubleDouble();
    private final DoubleDouble wx = new DoubleDouble();
    private final DoubleDouble part = new DoubleDouble();

    /** Products of the 1 + wx and of the 1 + x. */
    private final DoubleDouble mixed = new DoubleDouble();

    private final DoubleDouble ratios = new DoubleDouble();

    Exact(Measure measure) {
      this.measure = measure;
      alpha.set(measure.alpha());
      remainder.setDifference(1, measure.alpha());
      weight.set(measure.alpha() <= 0.5 ? alpha : remainder);
      weights.set(alpha);
      weights.multiply(remainder);
    }

    @Override
    void begin() {
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
      double a = measure.alpha();
      if (a == 0.5) {
        return setOrdered(kind, sq, other, sp);
      }
      boolean isHeavierP = a > 0.5;
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
    void end() {
      log(mixed);
      sum.add(mixed);
      log(ratios);
      ratios.multiply(weight);
      sum.subtract(ratios);
      sum.scale(-1);
      switch (measure.family()) {
        case RENYI -> sum.divide(remainder);
        case HELLINGER -> toHellinger();
        default -> {}
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

    /** Replaces a product by its logarithm: {@code e ln 2 + ln m}, and {@code ln m = y + δ} with y in double and {@code δ = m e^−y − 1}. */
    private void log(DoubleDouble product) {
      long e = product.takeExponent();
      double y = Math.log(product.high());
      w.set(-y);
      w.exp();
      product.multiply(w);
      product.add(-1);
      product.add(y);
      w.setLn2();
      w.multiply((double) e);
      product.add(w);
    }
  }
}
