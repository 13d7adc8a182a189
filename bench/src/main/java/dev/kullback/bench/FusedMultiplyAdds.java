package dev.kullback.bench;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/** Fused multiply-adds in registers alone, in vectors as wide as the library's: what no kernel can exceed. */
final class FusedMultiplyAdds implements Contender {
  private static final VectorSpecies<Float> SPECIES =
      VectorSpecies.of(float.class, VectorShape.forBitSize(Cpu.vectorBits()));

  /** Independent chains: two units of four cycles' latency need eight, and 16 registers hold ten. */
  private static final int CHAINS = 10;

  private static final int STEPS = 10_000;

  private float sum;

  /** Products of 2⁻⁵ added up, exactly. The sum is the operand that C2 overwrites: no register is copied. */
  @Override
  public Object call() {
    FloatVector a = FloatVector.broadcast(SPECIES, 0x1p-5f);
    FloatVector x0 = FloatVector.zero(SPECIES);
    FloatVector x1 = x0;
    FloatVector x2 = x0;
    FloatVector x3 = x0;
    FloatVector x4 = x0;
    FloatVector x5 = x0;
    FloatVector x6 = x0;
    FloatVector x7 = x0;
    FloatVector x8 = x0;
    FloatVector x9 = x0;
    for (int s = 0; s < STEPS; s++) {
      x0 = a.fma(a, x0);
      x1 = a.fma(a, x1);
      x2 = a.fma(a, x2);
      x3 = a.fma(a, x3);
      x4 = a.fma(a, x4);
      x5 = a.fma(a, x5);
      x6 = a.fma(a, x6);
      x7 = a.fma(a, x7);
      x8 = a.fma(a, x8);
      x9 = a.fma(a, x9);
    }
    // reduce
    x0 = x0.add(x5).add(x1.add(x6)).add(x2.add(x7)).add(x3.add(x8)).add(x4.add(x9));
    sum = x0.reduceLanes(VectorOperators.ADD);
    return this;
  }

  @Override
  public void check() {
    if (sum != 0x1p-10f * STEPS * CHAINS * SPECIES.length()) {
      throw new Agreement.Disagreement("fused multiply-adds come to " + sum);
    }
  }

  /** Lanes, whatever the shape. */
  @Override
  public double terms(Shape shape) {
    return (double) STEPS * CHAINS * SPECIES.length();
  }
}
