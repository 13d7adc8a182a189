package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.numerics.DoubleDouble;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Worker;

/**
 * Jeffreys' divergence {@code KL(q ‖ p) + KL(p ‖ q)}: of diagonal Gaussians
 *
 * <pre>
 * J = ½ Σ_h [(V − v)²/(Vv) + d² (1/V + 1/v)], V ≥ v the variances, d = μq − μp
 * </pre>
 *
 * <p>in which the logarithms have cancelled; of others as the sum of both.
 */
public final class Jeffreys extends Formula {
  public static final Jeffreys FORMULA = new Jeffreys();

  private Jeffreys() {}

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
