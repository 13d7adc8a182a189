package dev.kullback.internal.vector;

import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/**
 * Species of this process's vectors. They stand apart from {@link VectorWidth}, since loading their classes takes 30 ms (Zen 3).
 *
 * <p>Kernels view a vector's bits by {@code reinterpretShape}, never by {@code viewAsIntegralLanes}, {@code viewAsFloatingLanes} or
 * {@code reinterpretAs…}; ArchitectureTest sees to it. These end in a virtual call of {@code swapIfNeeded} in JDK 27, not in 25, 26 and
 * 28-ea+18: where the process has seen two classes there, not one or three, C2 boxes every view, 48 B, and {@code pairwise} takes 1.5 to 2
 * times as long.
 */
public final class Species {
  public static final VectorSpecies<Float> FLOAT =
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
