package dev.kullback.internal.vector;

import dev.kullback.internal.kernel.Readiness;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/** The width of vectors in this process: the preferred one, or what {@value #PROPERTY} forces. */
public final class VectorWidth {
  /** System property that forces the width, in bits: 128, 256 or 512. Callers have checked its value. */
  public static final String PROPERTY = "dev.kullback.vectorBits";

  /** System property that overrules the probe for compiled vectors: true or false. */
  public static final String COMPILED = "dev.kullback.compiled";

  /** Bits of the widest vectors by the processor and the JVM's flags; wider ones are taken apart, far slower than scalar code. */
  public static final int MOST_BITS = VectorShape.S_Max_BIT.vectorBitSize();

  public static final int BITS = bits();

  /**
   * Number of vector registers, which no JVM tells. x86 has 32 where it has vectors of 512 bits, which come with AVX-512's encoding of
   * instructions, and 16 otherwise; other processors with vectors of 128 bits and more (AArch64, RISC-V, POWER) have 32.
   */
  public static final int REGISTERS = isX86() && MOST_BITS < 512 ? 16 : 32;

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

  /**
   * Whether the VM compiles vector code to vector instructions. Finding out takes 0.2 s at first. A no may come of a starved processor: it
   * holds for a while, and the next call tries again. A yes holds for good.
   */
  public static boolean isCompiled() {
    return Readiness.isProven() || Compiled.findOut();
  }

  /** Runs what has C2 compile the Vector API's methods for every class of vectors, see {@code Compiled.mix}. */
  public static void mix() {
    Compiled.mix(new double[Species.DOUBLE.length()], new double[Species.DOUBLE.length()]);
  }

  /** Whether {@link #isCompiled} would say yes, or would try again. */
  public static boolean isWorthTrying() {
    return Readiness.isProven() || Compiled.isDue();
  }

  /** Names the source of {@link #isCompiled}'s answer, in words that follow "by". */
  public static String source() {
    return Compiled.FORCED.isEmpty()
        ? "their speed compared with plain code"
        : "system property " + COMPILED;
  }

  /**
   * Finds out by speed, beside plain code's, whether vectors are compiled: no flag tells it of every VM. A compiled step takes 0.2 to 0.5
   * times as long as a plain one (Zen 4, 128 to 512 bits), and as long under QEMU (NEON). Boxed, it takes 2.5 times as long if C2 boxes
   * one operation, 10 times at a width that the processor lacks, and 40 times by C1.
   */
  private static final class Compiled {
    /** Holds the property's value, or nothing. */
    private static final String FORCED = System.getProperty(COMPILED, "").toLowerCase(Locale.ROOT);

    private static final int STEPS = 64;
    private static final int SLOWER = 2;

    /** Time of the steps from which on the probe stops waiting for C2: 12 ns a step, which compiled takes 2. */
    private static final long MOST_NANOS = 12 * STEPS;

    /**
     * Most work of a trial, in ns. C2 has the step in 20 to 60 ms of an idle processor. The trial counts work, not time: on a starved
     * processor, where C2 gets as little as the trial, the clock says nothing. It ends so where vectors are not compiled, and on the
     * slowest processors, whose plain code is compiled by then.
     */
    private static final long PATIENCE = 3_000_000_000L;

    /** Most work of later trials: C2 was asked for the step long before. */
    private static final long LATER_PATIENCE = PATIENCE / 10;

    /** Most work of a mix and a chunk of steps, which take 0.4 ms interpreted; longer times were spent waiting. */
    private static final long MOST_WORK = 1_000_000;

    /** Time of a trial at most, in multiples of its work; a later trial tells then. */
    private static final int MOST_WAITING = 10;

    /** Pauses between trials; the last one is for all that follow. */
    private static final long[] PAUSE_SECONDS = {1, 10, 60, 600};

    private static int refusals;

    /** Earliest time of the next trial. */
    private static volatile long next = System.nanoTime();

    static boolean isDue() {
      return System.nanoTime() - next >= 0 && !FORCED.equals("false");
    }

    static synchronized boolean findOut() {
      if (!Readiness.isProven() && isDue()) {
        boolean forced = FORCED.equals("true");
        // where its answer is known, too, for what mix does
        boolean proven = probe(forced || refusals > 0 ? LATER_PATIENCE : PATIENCE) || forced;
        int pause = Math.min(refusals++, PAUSE_SECONDS.length - 1);
        next = System.nanoTime() + TimeUnit.SECONDS.toNanos(PAUSE_SECONDS[pause]);
        if (proven) {
          Readiness.setProven();
        }
      }
      return Readiness.isProven();
    }

    private static boolean probe(long patience) {
      double[] in = new double[Species.DOUBLE.length()];
      double[] out = new double[Species.DOUBLE.length()];
      long began = System.nanoTime();
      long now = began;
      long vector = Long.MAX_VALUE;
      long plain = Long.MAX_VALUE;
      long work = 0;
      while (work < patience
          && now - began < MOST_WAITING * patience
          && (vector >= MOST_NANOS || vector > SLOWER * plain)) {
        long start = now;
        mix(in, out);
        long before = System.nanoTime();
        for (int i = 0; i < STEPS; i++) {
          step(in, out);
        }
        long between = System.nanoTime();
        for (int i = 0; i < STEPS; i++) {
          plainStep(in, out);
        }
        now = System.nanoTime();
        vector = Math.min(vector, between - before);
        plain = Math.min(plain, now - between);
        work += Math.min(now - start, MOST_WORK);
      }
      return vector <= SLOWER * plain;
    }

    /**
     * Uses doubles, longs, floats in both widths, and operators as most kernels do, before C2 compiles the Vector API's methods. A method
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

    private static void plainStep(double[] in, double[] out) {
      for (int lane = 0; lane < in.length; lane++) {
        double x = in[lane];
        out[lane] = Math.fma(x, x, x + 1) * 0.5;
      }
    }
  }
}
