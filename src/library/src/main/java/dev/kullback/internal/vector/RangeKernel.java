package dev.kullback.internal.vector;

import dev.kullback.internal.numerics.FloatRange;
import dev.kullback.internal.numerics.RangeCheck;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/**
 * Checks floats by comparisons of vectors. 4096 take 0.08 ns each where plain code takes 0.24, whose minima and maxima cost more with
 * AVX-512; with AVX2 0.10 and 0.14 (Zen 4).
 */
public final class RangeKernel implements RangeCheck {
  private static final VectorSpecies<Float> S = Species.FLOAT;

  @Override
  public boolean contains(double least, double most, float[] values, int from, int to) {
    // a bound that is not a float lies between two, of which the inner one says the same
    float low = (float) least;
    float high = (float) most;
    low = low < least ? Math.nextUp(low) : low;
    high = high > most ? Math.nextDown(high) : high;
    int i = from;
    for (; i + S.length() <= to; i += S.length()) {
      FloatVector x = FloatVector.fromArray(S, values, i);
      if (!x.compare(VectorOperators.GE, low).and(x.compare(VectorOperators.LE, high)).allTrue()) {
        return false;
      }
    }
    return FloatRange.contains(least, most, values, i, to); // scalar tail
  }
}
