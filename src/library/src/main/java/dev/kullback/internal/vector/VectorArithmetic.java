package dev.kullback.internal.vector;

import dev.kullback.internal.numerics.Arithmetic;
import dev.kullback.internal.numerics.LogProduct;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/** With vectors. */
public final class VectorArithmetic implements Arithmetic {
  private static final VectorSpecies<Double> S = Species.DOUBLE;
  private static final VectorSpecies<Float> HALF = Species.HALF_FLOAT;
  private static final int V = S.length();
  private static final long MANTISSA = 0x000F_FFFF_FFFF_FFFFL;
  private static final long ONE = 0x3FF0_0000_0000_0000L;
  private static final int EXPONENT_SHIFT = 52;
  private static final int BIAS = 1023;

  @Override
  public boolean isWithin(float[] values, int from, int to, double least, double most) {
    return FloatKernels.within(values, from, to, (float) least, (float) most);
  }

  @Override
  public boolean isWithin(double[] values, int from, int to, double least, double most) {
    return DoubleKernels.within(values, from, to, least, most);
  }

  /** As {@link LogProduct}; four float factors and a mantissa stay within double's range. */
  @Override
  public double logProduct(float[] s, int from, int to) {
    DoubleVector product = DoubleVector.broadcast(S, 1);
    LongVector exponents = product.viewAsIntegralLanes().sub(ONE); // 0
    int h = from;
    for (; h + 4 * V <= to; h += 4 * V) {
      DoubleVector a = widen(s, h).mul(widen(s, h + V));
      DoubleVector b = widen(s, h + 2 * V).mul(widen(s, h + 3 * V));
      LongVector bits = product.mul(a.mul(b)).reinterpretAsLongs();
      exponents = exponents.add(bits.lanewise(VectorOperators.LSHR, EXPONENT_SHIFT).sub(BIAS));
      product = bits.and(MANTISSA).lanewise(VectorOperators.OR, ONE).reinterpretAsDoubles();
    }
    double mantissas = 1;
    for (int i = 0; i < V; i++) { // not reduceLanes, whose order may vary
      mantissas *= product.lane(i);
    }
    long exponent = exponents.reduceLanes(VectorOperators.ADD);
    return LogProduct.of(s, h, to, mantissas, exponent); // not two logarithms, which may cancel
  }

  private static DoubleVector widen(float[] s, int h) {
    return (DoubleVector) FloatVector.fromArray(HALF, s, h).convertShape(VectorOperators.F2D, S, 0);
  }

  @Override
  public Factorization factorization() {
    return new CholeskyKernel();
  }
}
