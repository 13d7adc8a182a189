package dev.kullback.internal.vector;

import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/** The width of vectors in this process: the preferred one, or what {@value #PROPERTY} forces. */
public final class VectorWidth {
  /** The width that is forced, in bits: 128, 256 or 512; whoever asks for vectors has checked it. */
  public static final String PROPERTY = "dev.kullback.vectorBits";

  /** Of any element's vectors, by the processor and the JVM's flags; wider ones are taken apart, far slower than scalar code. */
  public static final int MOST_BITS = VectorShape.S_Max_BIT.vectorBitSize();

  public static final int BITS = bits();

  /**
   * Vector registers. No JVM tells; x86 has 32 where it has vectors of 512 bits, which come with AVX-512's encoding of instructions,
   * and 16 otherwise; what else has vectors of 128 bits and more (AArch64, RISC-V, POWER) has 32.
   */
  public static final int REGISTERS = isX86() && MOST_BITS < 512 ? 16 : 32;

  /** Whether it is known that the VM does not compile vector code. */
  private static volatile boolean refuted;

  private VectorWidth() {}

  static boolean isX86() {
    return System.getProperty("os.arch").matches("amd64|x86_64|x86|i[3-6]86");
  }

  private static int bits() {
    int forced = Integer.getInteger(PROPERTY, 0);
    // 64 bits have no half species, and over 512 no kernel
    return forced != 0
        ? forced
        : Math.clamp(VectorShape.preferredShape().vectorBitSize(), 128, 512);
  }

  /** Whether the VM compiles vector code to vector instructions. */
  public static boolean isCompiled() {
    boolean compiled = Compiled.PROBED;
    refuted = !compiled;
    return compiled;
  }

  /** The same, and true as long as only the background is to find out. */
  public static boolean mayBeCompiled() {
    return Readiness.isDeferred() ? !refuted : isCompiled();
  }

  /**
   * Told by speed, as no flag that can be read tells it of every VM: a step is 2 ns when compiled, 30 ns and more where vectors are
   * boxed (by C1, by a JVMCI compiler, at a width that the processor lacks), 5 µs in the interpreter.
   */
  private static final class Compiled {
    private static final int STEPS = 64;
    private static final long MOST_NANOS = 12 * STEPS;

    /**
     * C2 has the step in 20 to 60 ms of an idle processor. Of work, not of time: on a starved one, where C2 gets as little as we do, the
     * clock says nothing. It passes once, where vectors are not compiled.
     */
    private static final long PATIENCE = 3_000_000_000L;

    /** Of a mix and a chunk of steps, interpreted 0.4 ms; what takes longer was not work. */
    private static final long MOST_WORK = 1_000_000;

    static final boolean PROBED = probe();

    private static boolean probe() {
      double[] in = new double[Species.DOUBLE.length()];
      double[] out = new double[Species.DOUBLE.length()];
      long now = System.nanoTime();
      long chunk = Long.MAX_VALUE;
      long work = 0;
      while (work < PATIENCE && chunk >= MOST_NANOS) {
        long start = now;
        mix(in, out);
        long before = System.nanoTime();
        for (int i = 0; i < STEPS; i++) {
          step(in, out);
        }
        now = System.nanoTime();
        chunk = now - before;
        work += Math.min(now - start, MOST_WORK);
      }
      return chunk < MOST_NANOS;
    }

    /**
     * Doubles, longs, floats in both widths, and operators, as most kernels use them, before C2 compiles the Vector API's methods. A method
     * that it compiled having seen one class traps at the next, four times at most, and every use of that method in a kernel adds these
     * traps to the kernel's count; from 100 on C2 (JDK 25.0.3) assumes no classes in that kernel any more, and may box its vectors for
     * good. With {@code -XX:-UseTypeSpeculation}, AllocationTest's full covariances box without this and do not with it; its floats do
     * with UseAVX=2, unless floats of 64 bits are met as well, with which the probe takes 0.5 to 1.3 s instead of 0.2 (AVX-512, cpu
     * family 6).
     */
    private static void mix(double[] in, double[] out) {
      floats(Species.FLOAT, new float[Species.FLOAT.length()]);
      floats(Species.HALF_FLOAT, new float[Species.FLOAT.length()]);
      DoubleVector x = DoubleVector.fromArray(Species.DOUBLE, in, 0);
      DoubleVector y = x.sub(1).neg().max(x).div(x);
      LongVector bits = (LongVector) y.reinterpretShape(Species.LONG, 0);
      bits = bits.sub(1).or(bits).lanewise(VectorOperators.LSHR, 1);
      ((DoubleVector) bits.reinterpretShape(Species.DOUBLE, 0)).intoArray(out, 0);
    }

    private static void floats(VectorSpecies<Float> species, float[] values) {
      FloatVector x = FloatVector.fromArray(species, values, 0);
      x.fma(x, x.add(1)).sub(x).neg().intoArray(values, 0);
    }

    private static void step(double[] in, double[] out) {
      DoubleVector x = DoubleVector.fromArray(Species.DOUBLE, in, 0);
      x.fma(x, x.add(1)).mul(0.5).intoArray(out, 0);
    }
  }
}
