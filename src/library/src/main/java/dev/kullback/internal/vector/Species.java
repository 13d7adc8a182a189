package dev.kullback.internal.vector;

import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/** The vectors of this process. Apart from {@link VectorWidth}, as loading what they are made of takes 30 ms (Zen 3). */
public final class Species {
  static final VectorSpecies<Float> FLOAT =
      VectorSpecies.of(float.class, VectorShape.forBitSize(VectorWidth.BITS));
  public static final VectorSpecies<Double> DOUBLE =
      VectorSpecies.of(double.class, VectorShape.forBitSize(VectorWidth.BITS));

  /** As many floats as {@link #DOUBLE} has doubles. */
  public static final VectorSpecies<Float> HALF_FLOAT =
      VectorSpecies.of(float.class, VectorShape.forBitSize(VectorWidth.BITS / 2));

  private Species() {}
}
