package dev.kullback.bench;

import java.util.Arrays;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;

/** Reads an array once, summing it: the bandwidth that one thread has from where an array of that size is kept. */
final class MemoryRead implements Contender {
  private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_PREFERRED;
  private static final int LANES = SPECIES.length();

  private final float[] values;
  private float sum;

  MemoryRead(int length) {
    values = new float[length];
    Arrays.fill(values, 0x1p-10f);
  }

  /** Eight accumulators hide the additions' latency: the loads alone count. */
  @Override
  public Object call() {
    FloatVector s0 = FloatVector.zero(SPECIES);
    FloatVector s1 = s0;
    FloatVector s2 = s0;
    FloatVector s3 = s0;
    FloatVector s4 = s0;
    FloatVector s5 = s0;
    FloatVector s6 = s0;
    FloatVector s7 = s0;
    int i = 0;
    for (; i <= values.length - 8 * LANES; i += 8 * LANES) {
      s0 = s0.add(load(i));
      s1 = s1.add(load(i + LANES));
      s2 = s2.add(load(i + 2 * LANES));
      s3 = s3.add(load(i + 3 * LANES));
      s4 = s4.add(load(i + 4 * LANES));
      s5 = s5.add(load(i + 5 * LANES));
      s6 = s6.add(load(i + 6 * LANES));
      s7 = s7.add(load(i + 7 * LANES));
    }
    // reduce
    s0 = s0.add(s4).add(s1.add(s5)).add(s2.add(s6).add(s3.add(s7)));
    float total = s0.reduceLanes(VectorOperators.ADD);
    // scalar tail
    for (; i < values.length; i++) {
      total += values[i];
    }
    sum = total;
    return this;
  }

  private FloatVector load(int at) {
    return FloatVector.fromArray(SPECIES, values, at);
  }

  @Override
  public void check() {
    float expected = values.length * 0x1p-10f;
    if (!(Math.abs(sum - expected) <= 1e-6f * expected)) {
      throw new Agreement.Disagreement(
          "the sum read from memory is " + sum + ", should be " + expected);
    }
  }
}
