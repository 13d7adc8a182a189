package dev.kullback.internal.formula;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.numerics.DoubleDouble;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Worker;
import java.util.List;

/**
 * Rényi's divergence of an order α above 1. Of diagonal Gaussians, with {@code β = α − 1}, {@code x = vq/vp − 1} and {@code u/vp = 1 − βx},
 *
 * <pre>
 * R = ½ Σ_h [α d²/u + f(x) + f(−βx)/β], f(x) = x − ln(1+x)
 * </pre>
 *
 * <p>which is {@link Chernoff}'s C over 1 − α, written with terms that are not negative. It is infinite where a u is not positive: {@code
 * q^α p^(1−α)} has no integral then. A u that is small beside vp is computed in twice the precision of double. Full covariances are {@link
 * FullChernoff}'s. Pairs are computed one by one; there are no kernels in tiles.
 */
public final class RenyiAboveOne extends Formula {
  /** The greatest order, with which nothing overflows but infinite terms. */
  public static final double MOST_ALPHA = 0x1p500;

  /** Part of vp below which u is computed in twice the precision. */
  private static final double LEAST_IN_DOUBLE = 0x1p-6;

  private final double alpha;
  private final double beta;

  /** Makes the divergence of an order in (1, {@link #MOST_ALPHA}]. */
  public RenyiAboveOne(double alpha) {
    this.alpha = alpha;
    beta = alpha - 1;
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
    boolean isGreaterQ = scales.isGreaterQ;
    double x = isGreaterQ ? scales.less / scales.ratio : -scales.less;
    double rest = 1 - beta * x; // u/vp
    if (rest < LEAST_IN_DOUBLE) {
      if (rest > -LEAST_IN_DOUBLE) {
        rest = scales.extrapolated(alpha);
      }
      if (!(rest > 0)) {
        return Double.POSITIVE_INFINITY;
      }
    }
    double y = scales.standardize(mq, mp);
    double square = y * (0.5 * alpha / (isGreaterQ ? scales.ratio * rest : rest) * y);
    double first =
        Math.abs(x) < 0.5 ? AlikeTerm.lessLog(x) : x + (isGreaterQ ? -1 : 1) * scales.log();
    double change = -beta * x;
    double second = rest < 0.5 ? change - Math.log(rest) : AlikeTerm.lessLog(change);
    return square + 0.5 * (first + second / beta);
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
    return Chernoff.TOLERANCE * super.tolerance(dimension);
  }

  @Override
  public boolean isSymmetric() {
    return false;
  }

  @Override
  public boolean hasTiles() {
    return false;
  }

  @Override
  public List<Field> scales() {
    throw new AssertionError("no tiles");
  }

  @Override
  public TileBound bound() {
    throw new AssertionError("no tiles");
  }

  /** Returns 1 − α, by which {@link FullChernoff}'s C is divided. */
  @Override
  public double divisor() {
    return 1 - alpha;
  }

  /**
   * The same in twice the precision, with errors as {@link Chernoff}'s has them, but for a u that is small beside {@code α vp}: its relative error is
   * 2⁻⁹⁶ times the quotient.
   */
  private final class Exact extends Unrounded {
    private final DoubleDouble more = new DoubleDouble();
    private final DoubleDouble part = new DoubleDouble();
    private final DoubleDouble change = new DoubleDouble();

    /** The f(−βx), but for the logarithms that are taken at once. */
    private final DoubleDouble second = new DoubleDouble();

    /** Products of the 1 − βx and of the 1 + x. */
    private final DoubleDouble rests = new DoubleDouble();

    private final DoubleDouble ratios = new DoubleDouble();

    Exact() {
      more.setDifference(alpha, 1);
    }

    @Override
    void startSum() {
      second.set(0);
      rests.set(1);
      ratios.set(1);
    }

    @Override
    boolean addTerm(Scale kind, double mq, double sq, Scale other, double mp, double sp) {
      vq.set(kind, sq);
      vp.set(other, sp);
      if (!vq.isHeld() || !vp.isHeld()) {
        return false;
      }
      setAnyExcess(kind, sq, other, sp);
      change.set(x);
      change.multiply(more);
      change.multiply(-1);
      part.set(change);
      part.add(1);
      if (!(part.high() > 0)) {
        return false; // infinite, as double has it
      }
      boolean isChangeSmall = Math.abs(change.toDouble()) < MOST_IN_SERIES;
      if (isChangeSmall) {
        lessLogOf(change);
      } else {
        rests.multiply(part);
      }
      second.add(change);
      if (mq != mp) {
        part.multiply(vp);
        change.setDifference(mq, mp);
        change.multiply(change);
        change.multiply(alpha);
        change.divide(part);
        sum.add(change);
      }
      if (Math.abs(x.toDouble()) < MOST_IN_SERIES) {
        lessLogOf(x);
      } else {
        ratios.multiply(ratio);
      }
      sum.add(x);
      return true;
    }

    private void lessLogOf(DoubleDouble y) {
      if (y.high() != 0) {
        lessLog(y);
      }
    }

    @Override
    void finishSum() {
      log(rests);
      second.subtract(rests);
      second.divide(more);
      sum.add(second);
      log(ratios);
      sum.subtract(ratios);
      sum.scale(-1);
    }
  }
}
