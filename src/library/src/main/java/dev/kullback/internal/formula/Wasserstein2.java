package dev.kullback.internal.formula;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.numerics.Compensation;
import dev.kullback.internal.numerics.DoubleDouble;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.Variance;
import dev.kullback.internal.work.Worker;
import java.util.List;

/**
 * The squared 2-Wasserstein distance, in the square of the means' unit, and its root, the distance. Of diagonal Gaussians the square is
 * {@code Σ_h (μq − μp)² + (σq − σp)²}; full covariances are {@link Bures}'. The distance is the rounded root of the rounded square. Where a
 * square may be beyond the range of double, differences are scaled by a power of two before.
 */
public final class Wasserstein2 extends Formula {
  public static final Wasserstein2 SQUARED = new Wasserstein2(LastStep.NONE);

  /** {@link #SQUARED}, whose kernels begin in double. */
  private static final Wasserstein2 IN_DOUBLE = new Wasserstein2(LastStep.NONE);

  public static final Wasserstein2 DISTANCE = new Wasserstein2(LastStep.ROOT);

  /** Square below which terms that underflow may count. */
  private static final double LEAST = 0x1p-900;

  private static final TileBound BOUND = new Bound();

  private final LastStep lastStep;

  private Wasserstein2(LastStep lastStep) {
    this.lastStep = lastStep;
  }

  @Override
  public Formula inDouble() {
    return lastStep == LastStep.NONE ? IN_DOUBLE : this;
  }

  @Override
  public boolean needsDouble() {
    return this == IN_DOUBLE;
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

  private static double term(ScaleRatio scales, double mq, double mp) {
    double d = mq - mp;
    double s = scales.stdDifference();
    return d * d + s * s;
  }

  @Override
  double stable(ScaleRatio scales, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    double sum = super.stable(scales, q, i, p, j);
    return isBeyondRange(sum) ? scaledRoot(scales, q, i, p, j) : finish(sum);
  }

  /** Returns the part of full covariances' traces above which their difference from twice the sum of singular values is right. */
  public static double leastPart(int d) {
    return Bures.leastPart(d);
  }

  /** Whether it is the root of a square that may have lost what underflows, or that overflowed. */
  public boolean isBeyondRange(double square) {
    return lastStep == LastStep.ROOT && !(square >= LEAST && square <= Double.MAX_VALUE);
  }

  /** Returns the distance by differences that are scaled so that the greatest is in [1, 2). */
  private static double scaledRoot(
      ScaleRatio scales, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    int d = q.dimension();
    double most = 0;
    for (int h = 0; h < d; h++) {
      scales.compare(q.kind(), q.scale(i * d + h), p.kind(), p.scale(j * d + h));
      double mean = Math.abs(q.mean(i * d + h) - p.mean(j * d + h));
      most = Math.max(most, Math.max(mean, Math.abs(scales.stdDifference())));
    }
    if (most == 0 || most == Double.POSITIVE_INFINITY) {
      return most;
    }
    double up = FullPair.inversePower(most);
    double sum = 0;
    double errors = 0;
    for (int h = 0; h < d; h++) {
      scales.compare(q.kind(), q.scale(i * d + h), p.kind(), p.scale(j * d + h));
      double mean = up * (q.mean(i * d + h) - p.mean(j * d + h));
      double std = up * scales.stdDifference();
      double term = mean * mean + std * std;
      double t = sum + term;
      errors += Compensation.error(sum, term, t);
      sum = t;
    }
    return Math.sqrt(Compensation.total(sum, errors)) / up;
  }

  @Override
  Full full(Worker worker) {
    return new Bures(this, worker);
  }

  @Override
  public boolean needsInverse() {
    return false;
  }

  @Override
  public LastStep lastStep() {
    return lastStep;
  }

  @Override
  Unrounded exact() {
    return new Exact(lastStep);
  }

  @Override
  public double factor() {
    return 1;
  }

  @Override
  public List<Field> scales() {
    return List.of(Field.STD);
  }

  @Override
  public TileBound bound() {
    return BOUND;
  }

  /**
   * The bound of {@code R = Σ d² + e²}, {@code e = σq − σp}. With u the unit roundoff, a the margin that the tolerance leaves above the
   * unit, and σ within ε: d and e have one rounding, and a square is in 2·64 sums of its chunk and three of chunks. Standard deviations as
   * they are given are exact, and so are roots that need no rounding, such as 1, of a log-variance of 0. Others move e by {@code ε(σq + σp)}
   * at most, and R, by Cauchy's inequality, by {@code 2x + x²} of itself, with {@code x² = ε² Σ (σq + σp)²/R ≤ 2ε² (Σ σq² + Σ σp²)/R}. That is
   * below a where {@code x ≤ 0.47a}, hence a noise of {@code 9 ε² Σσ²/a}. Sums below {@link #LEAST32} a dimension may have lost what underflows.
   * A chunk in float begins with 2⁻¹²⁶, which the noises of both rows together cover: they are 1.24 times that at D = 1, 2.4 at 2, and grow with D.
   */
  private static final class Bound extends TileBound {
    /** Least sum of squares a dimension in which underflow cannot show. */
    private static final double LEAST32 = 0x1p-110;

    private static final double LEAST64 = 0x1p-960;

    Bound() {
      super(true, false, true);
    }

    @Override
    double unit(Precision precision, int d) {
      int units = 2 + 2 * Math.min(d, PairKl.BLOCK) + 3;
      return precision.isFloat() ? units * U32 : unit64(units, d);
    }

    @Override
    void boundRow(DiagonalBatch g, int i, Precision precision, Rows to) {
      double least =
          switch (precision) {
            case FLOAT -> LEAST32;
            case REFINED -> 0;
            case DOUBLE -> LEAST64;
          };
      double u = precision.u;
      double margin = margin(precision, g.dimension());
      to.noiseQ()[i] =
          margin * least * g.dimension()
              + 9 * 4 * u * u / margin * squares(g, i, precision.isFloat());
    }

    /** Sums the variances of a row whose standard deviations are rounded. */
    private static double squares(DiagonalBatch g, int i, boolean isFloat) {
      double sum = 0;
      int end = (i + 1) * g.dimension();
      for (int k = i * g.dimension(); k < end && g.kind() != Scale.STD; k++) {
        double std = g.kind().std(g.scale(k));
        boolean isExact =
            Variance.areEqual(g.kind(), g.scale(k), Scale.STD, isFloat ? (float) std : std);
        sum += isExact ? 0 : g.kind().variance(g.scale(k));
      }
      return sum;
    }
  }

  /** The same in twice the precision, by {@code √V − √v = √v x/(1 + √(1+x))} with x = V/v − 1. */
  private static final class Exact extends Unrounded {
    private final DoubleDouble part = new DoubleDouble();
    private final LastStep lastStep;

    Exact(LastStep lastStep) {
      this.lastStep = lastStep;
    }

    @Override
    boolean addTerm(Scale kind, double mq, double sq, Scale other, double mp, double sp) {
      if (kind.isZero(sq) || other.isZero(sp)) {
        if (kind.isZero(sq)) {
          vq.set(other, sp);
        } else {
          vq.set(kind, sq);
        }
        if (vq.high() != 0 && !vq.isHeld()) {
          return false;
        }
        sum.add(vq);
      } else if (!setOrdered(kind, sq, other, sp)) {
        return false;
      } else if (x.high() != 0) {
        part.set(x);
        part.add(1);
        part.sqrt();
        part.add(1);
        x.divide(part);
        x.multiply(x);
        x.multiply(vp);
        sum.add(x);
      }
      if (mq != mp) {
        part.setDifference(mq, mp);
        part.multiply(part);
        sum.add(part);
      }
      return true;
    }

    @Override
    void finishSum() {
      if (lastStep == LastStep.ROOT) {
        sum.sqrt();
      }
    }
  }
}
