package dev.kullback.internal.formula;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.numerics.DoubleDouble;
import dev.kullback.internal.numerics.Scale;

/**
 * Computes KL in twice the precision of double:
 *
 * <pre>
 * KL = ½ Σ_h [x − ln(1+x) + y²], x = σq²/σp² − 1, y = (μq − μp)/σp
 * </pre>
 *
 * <p>Beyond {@link #MOST_IN_SERIES}, {@code |x| ≤ 66 f} and {@code f = x − ln(1+x) ≥ 2⁻¹¹·¹}: the x are summed, and the 1 + x, each to 2⁻⁹⁶,
 * are multiplied for one logarithm, to 2⁻⁹⁷. {@link RoundingFilter} decides most roundings in less time.
 */
public final class DoubleDoubleKl extends Unrounded {
  private final DoubleDouble product = new DoubleDouble();
  private final RoundingFilter filter = new RoundingFilter();

  @Override
  double rounded(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return filter.kl(q, i, p, j);
  }

  @Override
  void clear() {
    filter.clear();
  }

  @Override
  void startSum() {
    product.set(1);
  }

  @Override
  void finishSum() {
    log(product);
    sum.subtract(product);
    sum.scale(-1);
  }

  @Override
  boolean addTerm(Scale kind, double mq, double sq, Scale other, double mp, double sp) {
    boolean same = kind == other && sq == sp;
    if (same && mq == mp) {
      return true;
    }
    vq.set(kind, sq);
    vp.set(other, sp);
    if (!vq.isHeld() || !vp.isHeld()) {
      return false;
    }
    if (!same) {
      x.set(vq);
      x.divide(vp);
      if (Math.abs(x.toDouble() - 1) < MOST_IN_SERIES) {
        setExcess(kind, sq, other, sp);
        lessLog(x);
        sum.add(x);
      } else {
        product.multiply(x);
        x.add(-1);
        sum.add(x);
      }
    }
    if (mq != mp) {
      x.setDifference(mq, mp);
      x.multiply(x);
      x.divide(vp);
      sum.add(x);
    }
    return true;
  }
}
