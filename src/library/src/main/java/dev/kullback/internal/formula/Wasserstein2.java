package dev.kullback.internal.formula;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.numerics.DoubleDouble;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Worker;

/**
 * The squared 2-Wasserstein distance, in the square of the means' unit: of diagonal Gaussians {@code Σ_h (μq − μp)² + (σq − σp)²},
 * of others by {@link Bures}.
 */
public final class Wasserstein2 extends Formula {
  public static final Wasserstein2 SQUARED = new Wasserstein2();

  private Wasserstein2() {}

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
  Full full(Worker worker) {
    return new Bures(worker);
  }

  @Override
  Unrounded exact() {
    return new Exact();
  }

  @Override
  public double factor() {
    return 1;
  }

  /** The same in twice the precision, by {@code √V − √v = √v x/(1 + √(1+x))} with x = V/v − 1. */
  private static final class Exact extends Unrounded {
    private final DoubleDouble part = new DoubleDouble();

    @Override
    boolean addTerm(Scale kind, double mq, double sq, Scale other, double mp, double sp) {
      if (!setOrdered(kind, sq, other, sp)) {
        return false;
      }
      if (x.high() != 0) {
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
    void finishSum() {}
  }
}
