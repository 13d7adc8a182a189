package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.numerics.DoubleDouble;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Worker;

/**
 * Computes the squared 2-Wasserstein distance, in the square of the means' unit: of diagonal Gaussians {@code Σ_h (μq − μp)² + (σq − σp)²},
 * of others by {@link Bures}.
 */
final class WassersteinPair extends StablePair {
  private final ScaleRatio scales = new ScaleRatio();
  private final Bures bures;

  WassersteinPair(Worker worker) {
    super(new Exact(), worker);
    bures = new Bures(worker);
  }

  @Override
  public void clear() {
    bures.clear();
  }

  @Override
  double term(Scale kindQ, double mq, double sq, Scale kindP, double mp, double sp) {
    scales.set(kindQ, sq, kindP, sp);
    double d = mq - mp;
    double s = scales.stdDifference();
    return d * d + s * s;
  }

  @Override
  double full(Batch q, int i, Batch p, int j) {
    return bures.distance(q, i, p, j);
  }

  /** The same in twice the precision, by {@code √V − √v = √v x/(1 + √(1+x))} with x = V/v − 1. */
  private static final class Exact extends Unrounded {
    private final DoubleDouble part = new DoubleDouble();

    @Override
    void begin() {}

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
    void end() {}
  }
}
