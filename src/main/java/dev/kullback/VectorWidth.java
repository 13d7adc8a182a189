package dev.kullback;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/** The vector species of this process: the preferred one, or what {@value Backend#BITS_PROPERTY} forces. */
final class VectorWidth {
  static final int BITS = bits();
  static final VectorSpecies<Float> FLOAT =
      VectorSpecies.of(float.class, VectorShape.forBitSize(BITS));
  static final VectorSpecies<Double> DOUBLE =
      VectorSpecies.of(double.class, VectorShape.forBitSize(BITS));

  /** As many floats as {@link #DOUBLE} has doubles. */
  static final VectorSpecies<Float> HALF_FLOAT =
      VectorSpecies.of(float.class, VectorShape.forBitSize(BITS / 2));

  private VectorWidth() {}

  private static int bits() {
    int forced = Backend.forcedBits();
    // 64 bits have no half species, and over 512 no kernel
    return forced != 0
        ? forced
        : Math.clamp(FloatVector.SPECIES_PREFERRED.vectorBitSize(), 128, 512);
  }
}
