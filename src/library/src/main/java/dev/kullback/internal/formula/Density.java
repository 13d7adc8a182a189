package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.internal.work.Worker;
import java.util.List;

/**
 * What Gaussians p say of points x, the means of a q whose variances are 0: all by {@code R = Σ_h (x − μ)²/v}, with full covariances {@code
 * ‖L⁻¹(x − μ)‖²}, which is what the kernels of KL sum up of such a q.
 *
 * <pre>
 * squared Mahalanobis distance   R
 * log-density                    −½R − ln det L − ½ D ln 2π
 * excess                         ½R + (ln det L − its least of all p)
 * </pre>
 *
 * <p>The excess orders the p as the log-density does, descending, and is at least 0, as searches need it; with {@link #shift} it is the
 * negative log-density.
 */
public final class Density extends Formula {
  public static final Density MAHALANOBIS = new Density(1);
  public static final Density LOG_DENSITY = new Density(-0.5);
  public static final Density EXCESS = new Density(0.5);

  private static final double HALF_LOG_2_PI = 0.5 * Math.log(2 * Math.PI);

  /** A noise that no value of a kernel misses: all that are finite are certain. */
  private static final double CERTAIN = -0x1p1000;

  /** What is not lost where a square or a quotient underflows. */
  private static final double LEAST32 = 0x1p-149;

  private final double factor;
  private final TileBound bound = new Bound();

  private Density(double factor) {
    this.factor = factor;
  }

  /** Names it in events. */
  @Override
  public String toString() {
    return this == MAHALANOBIS ? "mahalanobis" : "log-density";
  }

  @Override
  public double factor() {
    return factor;
  }

  @Override
  public boolean isOfPoints() {
    return true;
  }

  @Override
  public boolean isSigned() {
    return this == LOG_DENSITY;
  }

  @Override
  public boolean isSymmetric() {
    return false;
  }

  @Override
  public Formula kernels() {
    return Kl.FORWARD;
  }

  /** Returns what p_j adds to {@code factor·R}. */
  public double offset(Batch p, int j) {
    return this == MAHALANOBIS
        ? 0
        : this == EXCESS ? p.logDet(j) - p.logDet(p.narrowest()) : -p.logDet(j) - constant(p);
  }

  /** Returns a bound on the error of {@link #offset}. */
  public double offsetBound(Batch p, int j) {
    int least = p.narrowest();
    double size = Math.abs(p.logDet(j)) + Math.abs(p.logDet(least));
    return this == EXCESS ? p.logDetBound(j) + p.logDetBound(least) + 2 * TileBound.U64 * size : 0;
  }

  /** Returns {@code ½ D ln 2π}. */
  public static double constant(Batch p) {
    return p.dimension() * HALF_LOG_2_PI;
  }

  /** Returns the negative log-density whose excess is 0. */
  @Override
  public double shift(Batch p) {
    return this == EXCESS ? shift(p.logDet(p.narrowest()), p.dimension()) : 0;
  }

  @Override
  public double shift(double least, int dimension) {
    return this == EXCESS ? least + dimension * HALF_LOG_2_PI : 0;
  }

  @Override
  double sumTerms(ScaleRatio scales, DiagonalBatch q, int a, DiagonalBatch p, int b, int n) {
    Scale kind = p.kind();
    double sum = 0;
    for (int k = 0; k < n; k++) {
      double y = kind.standardize(q.mean(a + k), p.mean(b + k), p.scale(b + k));
      sum += y * y;
    }
    return sum;
  }

  @Override
  double stable(ScaleRatio scales, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return factor * super.stable(scales, q, i, p, j) + offset(p, j);
  }

  @Override
  Full full(Worker worker) {
    return new Whitened(worker);
  }

  @Override
  Unrounded exact() {
    return new Exact();
  }

  @Override
  public List<Field> scales() {
    return Kl.FORWARD.scales();
  }

  @Override
  public TileBound bound() {
    return bound;
  }

  /**
   * The bound of R, whose terms are not negative: as for KL a term has at most 6 roundings in float, 8 in double, and is in all later sums
   * of its chunk, 64 at most, and in those of up to 4 chunks. So its relative error is below 73 units, 4.4e-6 in float, and that of {@code
   * ½R} is within the contract of a log-density, which is relative to {@code ½R + |ln det L| + D}. Noise is what underflow takes of a
   * square, before it is divided by the variance and after.
   */
  private final class Bound extends TileBound {
    Bound() {
      super(false, false, false);
    }

    @Override
    double unit(Precision precision, int d) {
      return precision.isFloat() ? (6 + Math.min(d, PairKl.BLOCK) + 3) * U32 : PairKl.unit64(d);
    }

    @Override
    void boundRow(DiagonalBatch g, int i, Precision precision, Rows to) {
      if (g.arePoints()) {
        return;
      }
      to.offsetP()[i] = offset(g, i);
      if (isSigned()) {
        to.noiseP()[i] = CERTAIN;
        return;
      }
      int d = g.dimension();
      double sum = d;
      for (int h = i * d; h < (i + 1) * d; h++) {
        sum += g.precision(h);
      }
      double least = precision.isFloat() ? LEAST32 : Double.MIN_VALUE;
      to.noiseP()[i] = factor * sum * least + offsetBound(g, i);
    }
  }

  /** R of a full covariance by the rows of L, which are scaled so that nothing overflows that R does not. */
  private final class Whitened implements Full {
    private final Worker worker;
    private double[] y = {};

    Whitened(Worker worker) {
      this.worker = worker;
    }

    @Override
    public double divergence(Batch q, int i, Batch p, int j) {
      DiagonalBatch points = (DiagonalBatch) q;
      FullBatch g = (FullBatch) p;
      double[] l = g.scaleTril();
      int d = p.dimension();
      int at = g.factorFrom(j);
      if (y.length < d) {
        y = new double[d];
      }
      double sum = 0;
      for (int k = 0; k < d; at += ++k) {
        worker.pass(Checkpoint.ofPlain(k));
        double t = FullPair.inversePower(l[at + k]);
        double z = FullPair.difference(points.mean(i * d + k), g.mean()[j * d + k], t);
        for (int c = 0; c < k; c++) {
          z -= y[c] == 0 ? 0 : l[at + c] * t * y[c];
        }
        y[k] = z / (l[at + k] * t);
        sum += y[k] * y[k];
      }
      // NaN is ∞ − ∞
      return factor * (sum >= 0 ? sum : Double.POSITIVE_INFINITY) + offset(p, j);
    }

    @Override
    public void clear() {}
  }

  /** R in twice the precision of double; an excess is known to double only, as logarithms of determinants are. */
  private final class Exact extends Unrounded {
    @Override
    boolean addTerm(Scale kind, double mq, double sq, Scale other, double mp, double sp) {
      vp.set(other, sp);
      if (Density.this != MAHALANOBIS || !vp.isHeld()) {
        return false;
      }
      if (mq != mp) {
        x.setDifference(mq, mp);
        x.multiply(x);
        x.divide(vp);
        sum.add(x);
      }
      return true;
    }

    @Override
    void finishSum() {}
  }
}
