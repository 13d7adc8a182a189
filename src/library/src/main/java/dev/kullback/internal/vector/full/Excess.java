package dev.kullback.internal.vector.full;

import dev.kullback.internal.formula.FullPair;
import dev.kullback.internal.vector.Species;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/** {@link FullPair#excess} in lanes: the same operations, so the same bits. */
final class Excess {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final VectorSpecies<Long> L = Species.LONG;
  private static final int V = S.length();

  private static final LongVector ZERO = LongVector.zero(L);
  private static final LongVector LEAST =
      (LongVector) DoubleVector.broadcast(S, FullPair.LEAST_RATIO).reinterpretShape(L, 0);
  private static final LongVector MOST =
      (LongVector) DoubleVector.broadcast(S, FullPair.MOST_RATIO).reinterpretShape(L, 0);

  private Excess() {}

  /** Replaces n x, whole vectors, by {@code ½x² + x − ln(1+x)}, NaN where the scalar form must decide; {@code ratio} is 1 + x, rounded. */
  static void of(double[] x, double[] ratio, int n) {
    for (int i = 0; i < n; i += V) {
      DoubleVector a = DoubleVector.fromArray(S, x, i);
      DoubleVector r = DoubleVector.fromArray(S, ratio, i);
      LongVector near = // all bits where |x| < ½
          ZERO.sub(
              ((LongVector) a.abs().sub(0.5).reinterpretShape(L, 0))
                  .lanewise(VectorOperators.LSHR, 63));
      LongVector bits = (LongVector) r.reinterpretShape(L, 0);
      LongVector exponent =
          bits.add(FullPair.EXPONENT_OFFSET).lanewise(VectorOperators.LSHR, FullPair.MANTISSA_BITS);
      DoubleVector m =
          (DoubleVector)
              bits.sub(
                      exponent
                          .sub(FullPair.BIAS)
                          .lanewise(VectorOperators.LSHL, FullPair.MANTISSA_BITS))
                  .reinterpretShape(S, 0);
      DoubleVector k =
          ((DoubleVector) exponent.or(FullPair.INTEGER).reinterpretShape(S, 0))
              .sub(FullPair.INTEGER_OFFSET);
      DoubleVector u =
          (DoubleVector)
              ((LongVector) m.sub(1).reinterpretShape(L, 0))
                  .bitwiseBlend(a.reinterpretShape(L, 0), near)
                  .reinterpretShape(S, 0);
      DoubleVector s = u.div(u.add(2)); // m − 1 is exact
      DoubleVector t = s.mul(s);
      DoubleVector tt = t.mul(t);
      DoubleVector even = DoubleVector.broadcast(S, FullPair.series(14));
      DoubleVector odd = DoubleVector.broadcast(S, FullPair.series(15));
      for (int j = 12; j >= 0; j -= 2) {
        even = even.mul(tt).add(FullPair.series(j));
        odd = odd.mul(tt).add(FullPair.series(j + 1));
      }
      DoubleVector tail = t.mul(2).mul(even.add(odd.mul(t)));
      DoubleVector less = s.mul(a.sub(tail));
      DoubleVector log = k.mul(FullPair.LN2).add(s.mul(2).add(s.mul(tail)));
      DoubleVector rest =
          (DoubleVector)
              ((LongVector) a.sub(log).reinterpretShape(L, 0))
                  .bitwiseBlend(less.reinterpretShape(L, 0), near)
                  .reinterpretShape(S, 0);
      // negative where least < ratio < most, for the bits of positive doubles rise with them
      LongVector held = LEAST.sub(bits).and(bits.sub(MOST)).and(bits.not()).or(near);
      LongVector none = ZERO.sub(held.not().lanewise(VectorOperators.LSHR, 63));
      DoubleVector y = a.mul(0.5).mul(a).add(rest);
      ((DoubleVector) ((LongVector) y.reinterpretShape(L, 0)).or(none).reinterpretShape(S, 0))
          .intoArray(x, i);
    }
  }
}
