package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.numerics.DoubleDouble;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Worker;
import java.util.List;

/**
 * Jeffreys' divergence {@code KL(q ‖ p) + KL(p ‖ q)}: of diagonal Gaussians
 *
 * <pre>
 * J = ½ Σ_h [(V − v)²/(Vv) + d² (1/V + 1/v)], V ≥ v the variances, d = μq − μp
 * </pre>
 *
 * <p>in which the logarithms have cancelled; of full covariances as the sum of the two KLs.
 */
public final class Jeffreys extends Formula {
  public static final Jeffreys FORMULA = new Jeffreys();

  /** The same, whose kernels begin in double. */
  private static final Jeffreys IN_DOUBLE = new Jeffreys();

  private static final TileBound BOUND = new Bound();

  private Jeffreys() {}

  @Override
  public Formula inDouble() {
    return IN_DOUBLE;
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
    double ratio = scales.ratio;
    if (ratio == 0) {
      return Double.POSITIVE_INFINITY;
    }
    double y = scales.standardize(mq, mp);
    double square = 0.5 * y * y;
    return 0.5 * scales.less / ratio * scales.less + (square + square / ratio);
  }

  @Override
  Full full(Worker worker) {
    FullPair pair = new FullPair(worker);
    return new Full() {
      @Override
      public double divergence(Batch q, int i, Batch p, int j) {
        return pair.divergence(q, i, p, j) + pair.divergence(p, j, q, i);
      }

      @Override
      public void clear() {
        pair.clear();
      }
    };
  }

  @Override
  Unrounded exact() {
    return new Exact();
  }

  @Override
  public boolean hasLowRank() {
    return true;
  }

  @Override
  public List<Field> scales() {
    return List.of(Field.VARIANCE, Field.PRECISION);
  }

  @Override
  public NearTerm nearTerm() {
    return NearTerm.JEFFREYS;
  }

  @Override
  public TileBound bound() {
    return BOUND;
  }

  /**
   * The bound of {@code A = ½R}. With u the unit roundoff, and v and 1/v each within ε: in float {@code A = ½ Σ (d² + vq + vp)(1/vq + 1/vp)} is
   * 2D larger than J. A term t has w ≤ 6 roundings, and 64 + 3 of sums. As {@code t ≥ 4} and {@code J = ½ Σ (t − 4)}, {@code ½u Σ wt ≤ λτJ +
   * (1 − λ)·53·u·A} holds for λ = 0.2 and the contract τ: it is linear in each t, its slope {@code λτ/u + 0.8·53 = 75} is no less than any w,
   * and at t = 4 the mean of w over a chunk, 42, counts. So {@code 53·u·A ≤ τJ} is enough. In double {@code J = ½ Σ d² (1/vq + 1/vp) + ef} with
   * {@code e = vq − vp} and {@code f = 1/vp − 1/vq}: with {@code z² = ef} exactly, {@code |e|(1/vq + 1/vp) = |f|(vq + vp) = |z|√(4 + z²) ≤
   * 2|z| + z²}, so that ef is wrong by {@code 4ε|z| + 4ε²}, beside some roundings of z². The sum of |z| is at most {@code √(D·2J)}, and so
   * the error {@code 2x + x²} of J, {@code x² = 2Dε²/J}.
   */
  private static final class Bound extends TileBound {
    Bound() {
      super(true, false, true);
    }

    @Override
    double unit(Precision precision, int d) {
      return precision.isFloat()
          ? units32(d) * U32
          : unit64(8 + 2 * Math.min(d, PairKl.BLOCK) + 3, d);
    }

    private static int units32(int d) {
      return Math.min(9 + d, 53);
    }

    @Override
    void boundRow(DiagonalBatch g, int i, Precision precision, Rows to) {
      int d = g.dimension();
      double u = precision.u;
      boolean isFloat = precision.isFloat();
      to.offsetQ()[i] = isFloat ? -d : 0;
      to.noiseQ()[i] = isFloat ? units32(d) * U32 * d : 4.5 * 9 * u * u * d / margin(precision, d);
    }
  }

  /** The same in twice the precision, with x = V/v − 1; a term is within 2⁻⁹⁰, log-variances' where x is 2⁻⁵. */
  private static final class Exact extends Unrounded {
    private final DoubleDouble part = new DoubleDouble();

    @Override
    boolean addTerm(Scale kind, double mq, double sq, Scale other, double mp, double sp) {
      if (!setOrdered(kind, sq, other, sp)) {
        return false;
      }
      part.set(x);
      part.multiply(x);
      part.divide(ratio);
      sum.add(part);
      if (mq != mp) {
        part.setDifference(mq, mp);
        part.multiply(part);
        part.divide(vp);
        sum.add(part);
        part.divide(ratio);
        sum.add(part);
      }
      return true;
    }

    @Override
    void finishSum() {
      sum.scale(-1);
    }
  }
}
