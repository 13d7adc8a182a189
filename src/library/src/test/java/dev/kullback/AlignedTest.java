package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.formula.Excess;
import dev.kullback.internal.formula.FullPair;
import dev.kullback.internal.work.Worker;
import dev.kullback.testing.Batch;
import dev.kullback.testing.BigFloat;
import dev.kullback.testing.Check;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * {@code aligned} and {@code toStandardNormal} compute several full Gaussians at once, to the same bits as one by one. A device sums in
 * its own order, which FullAccuracyTest checks.
 */
@Tag("vector")
class AlignedTest {
  /** Every dimension and every number of Gaussians up to 40, blocks of rows, and factors that leave the cache. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void bitsOfOneByOne(Backend backend) {
    FullBatch.Kind[] kinds = FullBatch.Kind.values();
    int[] dimensions =
        IntStream.concat(IntStream.rangeClosed(1, 40), IntStream.of(64, 66, 127, 193)).toArray();
    try (KlEngine engine = Engines.on(backend)) {
      for (int d : dimensions) {
        Random random = new Random(d);
        int n = d > 40 ? 5 : 1 + 7 * d % 40;
        FullBatch a = FullBatch.random(d % 3 > 0, n, d, 100, 1, random).as(kinds[d % kinds.length]);
        FullBatch b = FullBatch.random(d % 3 > 0, n, d, 10, 0, random);
        check(engine, d + ", " + a.kind(), a, b);
        check(engine, d + ", reverse of " + a.kind(), b, a);
        check(engine, d + ", near " + a.kind(), a, near(a, random));
      }
    }
  }

  /**
   * Results beyond double and parameters at its ends, which only the code for single Gaussians decides, among ordinary ones in the same
   * lanes.
   */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void anyMagnitude(Backend backend) {
    Random random = new Random(1);
    double[] ends = {Double.MIN_VALUE, 1e-310, 1e-200, 1e-100, 1, 1e100, 1e200, 1e305};
    try (KlEngine engine = Engines.on(backend)) {
      for (int d : new int[] {1, 2, 5, 9}) {
        int n = 67;
        double[] mean = new double[n * d];
        double[] tril = new double[n * d * d];
        FullBatch[] batches = new FullBatch[2];
        for (int b = 0; b < 2; b++) {
          for (int i = 0; i < n; i++) {
            for (int r = 0; r < d; r++) {
              mean[i * d + r] = ends[random.nextInt(8)] * (random.nextInt(3) - 1);
              for (int c = 0; c <= r; c++) {
                double x = ends[i % 3 == 0 ? 4 : random.nextInt(8)];
                tril[(i * d + r) * d + c] = c == r ? x : x * (random.nextInt(3) - 1);
              }
            }
          }
          batches[b] =
              new FullBatch(FullBatch.Kind.SCALE_TRIL, true, mean.clone(), tril.clone(), d);
        }
        check(engine, "ends, D " + d, batches[0], batches[1]);
      }
    }
  }

  /**
   * Results have the same bits for every number of threads, of diagonal batches, too, and in a segment that is this thread's alone, with
   * guards on both sides.
   */
  @Tag("device")
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void sameBitsForEveryThreadCountAndOutput(Backend backend) {
    Random random = new Random(1);
    int n = 2001;
    Batch a = Batch.random(true, n, 64, 0, random);
    Batch b = Batch.random(true, n, 64, 0, random);
    FullBatch full = FullBatch.random(true, n, 5, 10, 0, random);
    FullBatch other = FullBatch.random(true, n, 5, 10, 0, random);
    Batch scales = Batch.random(true, n, 5, 0, random);
    Gaussians[][] pairs = {
      {a.gaussians(), b.gaussians()},
      {full.gaussians(), other.gaussians()},
      {full.gaussians(), scales.gaussians()}
    };
    for (Gaussians[] pair : pairs) {
      double[] aligned = null;
      double[] standard = null;
      for (int threads : Engines.threadCounts(backend)) {
        try (KlEngine engine = Engines.on(backend, threads);
            Arena arena = Arena.ofConfined()) {
          double[] x = engine.aligned(pair[0], pair[1], new double[n]);
          double[] y = engine.toStandardNormal(pair[0], new double[n]);
          aligned = aligned == null ? x : aligned;
          standard = standard == null ? y : standard;
          Check.sameBits("aligned, threads " + threads, 1, aligned, x);
          Check.sameBits("standard, threads " + threads, 1, standard, y);
          MemorySegment memory = arena.allocate(8L * (n + 2), 8);
          memory.fill((byte) -1);
          engine.aligned(pair[0], pair[1], memory.asSlice(8, 8L * n));
          double[] all = memory.toArray(ValueLayout.JAVA_DOUBLE);
          assertThat(all[0]).isNaN();
          assertThat(all[n + 1]).isNaN();
          Check.sameBits("segment", 1, aligned, Arrays.copyOfRange(all, 1, n + 1));
        }
      }
    }
  }

  /** {@code Excess.of} is right to some roundings, near 0 and far from it. */
  @Test
  void excess() {
    Random random = new Random(1);
    for (int i = 0; i < 3000; i++) {
      double x =
          i % 4 == 0
              ? (random.nextDouble() - 0.5) * Math.pow(10, -random.nextInt(12))
              : random.nextDouble() * 1.2 - 0.6;
      double s = i % 4 < 2 ? 1 + x : Math.exp(random.nextGaussian() * (i % 4 == 2 ? 3 : 100));
      x = Math.abs(x) < 1e-3 ? x : s - 1; // s decides nothing there
      BigFloat exact = BigFloat.of(x);
      BigFloat log = (Math.abs(x) < 0.5 ? BigFloat.ONE.plus(exact) : BigFloat.of(s)).ln();
      double expected = exact.times(exact).half().plus(exact).minus(log).toDouble();
      assertThat(Math.abs(Excess.of(x, s, 1) / expected - 1)).as("x = %s", x).isLessThan(2e-15);
    }
  }

  private static FullBatch near(FullBatch b, Random random) {
    int d = b.dimension();
    double[] mean = b.mean().clone();
    for (int i = 0; i < b.size(); i++) {
      mean[i * d] += i % 3 == 0 ? 0 : 1e-9 * random.nextGaussian(); // each third is the same
    }
    return new FullBatch(b.kind(), b.isDouble(), mean, b.matrix(), d);
  }

  private static void check(KlEngine engine, String what, FullBatch a, FullBatch b) {
    int n = a.size();
    FullGaussians q = a.gaussians();
    FullGaussians p = b.gaussians();
    double[] aligned = engine.aligned(q, p, new double[n]);
    double[] standard = engine.toStandardNormal(q, new double[n]);
    FullPair pair = new FullPair(new Worker());
    double[] expected = new double[n];
    double[] expectedStandard = new double[n];
    for (int i = 0; i < n; i++) {
      expected[i] = pair.divergence(q.batch, i, p.batch, i);
      expectedStandard[i] = FullPair.standard(q.batch, i);
    }
    Check.sameBits(what + ", aligned", 1, expected, aligned);
    Check.sameBits(what + ", standard", 1, expectedStandard, standard);
  }
}
