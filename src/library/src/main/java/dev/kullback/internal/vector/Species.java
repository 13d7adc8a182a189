package dev.kullback.internal.vector;

import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/**
 * Species of this process's vectors. They stand apart from {@link VectorWidth}, since loading their classes takes 30 ms (Zen 3).
 *
 * <p>Kernels view a vector's bits by {@code reinterpretShape}, never by {@code viewAsIntegralLanes}, {@code viewAsFloatingLanes} or
 * {@code reinterpretAs…}; ArchitectureTest sees to it. In JDK 27 these end in a virtual call of {@code swapIfNeeded} on the result.
 * Where the process has seen exactly two classes there, say LongVector and DoubleVector of 256 bits, C2 inlines both
 * guesses and boxes the payload of every view in every kernel: 48 B a view, {@code pairwise} takes 1.5 to 2 times as long. One
 * class, or three, and nothing is boxed; JDK 25, 26 and 28-ea+18 have no such call. This is enough (27.0.1, any width):
 *
 * <pre>
 * static long or(double[] a) { // boxes once views of LongVector and DoubleVector have both been hot
 *   LongVector bits = LongVector.zero(L);
 *   for (int i = 0; i &lt; a.length; i += S.length()) {
 *     bits = bits.or(DoubleVector.fromArray(S, a, i).viewAsIntegralLanes());
 *   }
 *   return bits.reduceLanes(VectorOperators.OR);
 * }
 * </pre>
 */
public final class Species {
  static final VectorSpecies<Float> FLOAT =
      VectorSpecies.of(float.class, VectorShape.forBitSize(VectorWidth.BITS));
  public static final VectorSpecies<Double> DOUBLE =
      VectorSpecies.of(double.class, VectorShape.forBitSize(VectorWidth.BITS));

  /** Longs that view the bits of {@link #DOUBLE}. */
  public static final VectorSpecies<Long> LONG = DOUBLE.withLanes(long.class);

  /** Floats as many as {@link #DOUBLE} has doubles. */
  public static final VectorSpecies<Float> HALF_FLOAT =
      VectorSpecies.of(float.class, VectorShape.forBitSize(VectorWidth.BITS / 2));

  private Species() {}
}
