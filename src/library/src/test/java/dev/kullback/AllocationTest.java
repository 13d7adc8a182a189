package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.work.ThisThread;
import dev.kullback.testing.Batch;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import dev.kullback.testing.Regime;
import dev.kullback.testing.WarmCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** A warm call into the caller's array allocates nothing. {@code HotTest} runs these tests in its processes. */
@Tag("hot")
class AllocationTest {
  /** C2 is to compile a method after 5,000 to 15,000 calls. */
  private static final int CALLS_UNTIL_C2 = 20_000;

  private static final int CALLS = 50;

  /** Runs everything once, as a service that does everything has: what C2 has room for in a caller depends on what ran before. */
  @BeforeAll
  static void everythingHasRun() {
    try (KlEngine engine = KlEngine.builder().build()) {
      engine.verify(Duration.ofMillis(1));
      // waits for vectors until they are compiled, as verify does not
      engine.warmUp(1, 10, 2);
      engine.warmUp(1, 10, 32);
      FullGaussians full = FullGaussians.ofScaleTril(new double[1], new double[] {1}, 1);
      engine.warmUp(full, full);
      // The VM makes a text where it is first used, and all texts of a class on the thread that has
      // C2 compile the first of its methods. warmUp does not run those of KlEngine and of
      // DiagonalGaussians; the texts of the latter take 112 bytes, or 128 in JDK 25.
      DiagonalGaussians one = DiagonalGaussians.ofStd(new float[1], new float[] {1}, 1);
      for (int i = 0; i < CALLS_UNTIL_C2; i++) {
        engine.search(one, one, Query.nearest(1), new int[1], new float[1]);
      }
    }
    assertThat(ThisThread.allocatedBytes()).isPositive();
  }

  /**
   * Sizes that leave tails, and regimes that take the float kernel alone and all the way to the
   * per-term form.
   */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void warmPairwiseAllocatesNothing(Backend backend) {
    for (Regime regime : new Regime[] {Regime.VAE, Regime.NEAR_1E_6}) {
      for (int kind = 0; kind < 4; kind++) {
        boolean isDouble = kind % 2 == 1;
        int d = kind < 2 ? 19 : 3;
        Regime.Case drawn = regime.draw(isDouble, 21, 35, d);
        DiagonalGaussians q = drawn.q().gaussians();
        DiagonalGaussians p = drawn.p().gaussians();
        float[] out = new float[q.size() * p.size()];
        double[] twice = new double[out.length];
        try (KlEngine engine = Engines.on(backend);
            Arena arena = Arena.ofShared()) {
          MemorySegment segment = arena.allocate(8L * out.length, 8);
          String what = backend + " " + regime + (isDouble ? " double, D=" : " float, D=") + d;
          check(what + " -> float[]", () -> engine.pairwise(q, p, out));
          check(what + " -> double[]", () -> engine.pairwise(q, p, twice));
          check(what + " -> segment", () -> engine.pairwise(q, p, segment));
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void warmCallsOfFullCovariancesAllocateNothing(Backend backend) {
    FullBatch batch = FullBatch.random(false, 21, 19, 100, 0, new Random(1));
    FullGaussians q = batch.gaussians();
    FullGaussians p = batch.rows(3, 21).gaussians(); // equal pairs, so some are refined
    FullGaussians near = near(21, 19);
    Batch scales = Batch.random(false, 21, 19, 0, new Random(2));
    DiagonalGaussians diagonal = scales.gaussians();
    DiagonalGaussians logs =
        Batch.ofStd(Batch.Kind.LOG_VARIANCE, false, scales.mean(), scales.scale(), 19).gaussians();
    float[] out = new float[q.size() * q.size()];
    try (KlEngine engine = Engines.on(backend)) {
      check(backend + " full", () -> engine.pairwise(q, p, out));
      check(backend + " full, all refined", () -> engine.pairwise(near, near, out));
      check(backend + " mixed", () -> engine.pairwise(q, diagonal, out));
      check(backend + " aligned", () -> engine.aligned(q, near, out));
      check(backend + " aligned mixed", () -> engine.aligned(q, diagonal, out));
      check(backend + " aligned with log-variances", () -> engine.aligned(logs, q, out));
      check(backend + " standard", () -> engine.toStandardNormal(q, out));
    }
  }

  /** Two batches that each share a matrix, of which one is whitened by the other's in each call, and Jeffreys' divergence both. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void warmCallsOfSharedMatricesAllocateNothing(Backend backend) {
    double[] means = new Random(1).doubles(21 * 2, -1, 1).toArray();
    FullGaussians q = FullGaussians.ofCovariance(means, new double[] {2, .5, .5, 1}, 2);
    FullGaussians p = FullGaussians.ofCovariance(means, new double[] {1, .3, .3, 1}, 2);
    double[] out = new double[21 * 21];
    for (Divergence divergence : new Divergence[] {Divergence.KL, Divergence.JEFFREYS}) {
      try (KlEngine engine = KlEngine.builder().backend(backend).divergence(divergence).build()) {
        check(backend + " shared, " + divergence, () -> engine.pairwise(q, p, out));
        check(backend + " shared with itself, " + divergence, () -> engine.pairwise(q, q, out));
      }
    }
  }

  /** Scales that are stated in two ways, of near-duplicates and of Gaussians that are equal but for the rounding of these: each divergence goes pair by pair somewhere. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void warmCallsOfTwoKindsAllocateNothing(Backend backend) {
    int n = 9;
    int m = 35;
    int[] indices = new int[3 * n];
    double[] values = new double[n * m];
    double[] cotangent = new double[n * m];
    Arrays.fill(cotangent, 1);
    Query three = Query.nearest(3);
    for (Divergence divergence :
        List.of(
            Divergence.KL,
            Divergence.REVERSE_KL,
            Divergence.JEFFREYS,
            Divergence.BHATTACHARYYA,
            Divergence.HELLINGER,
            Divergence.renyi(0.3),
            Divergence.renyi(2),
            Divergence.WASSERSTEIN_2)) {
      try (KlEngine engine = KlEngine.builder().backend(backend).divergence(divergence).build()) {
        List<Runnable> calls = new ArrayList<>();
        for (boolean isDouble : new boolean[] {false, true}) {
          for (int d : new int[] {2, 9}) {
            DiagonalGaussians q = ofTwo(Batch.Kind.STD, isDouble, n, d).gaussians();
            Batch columns = ofTwo(Batch.Kind.LOG_VARIANCE, isDouble, m, d);
            DiagonalGaussians p = columns.gaussians();
            DiagonalGaussians ofRows = columns.rows(0, n).gaussians();
            calls.add(() -> engine.pairwise(q, p, values));
            calls.add(() -> engine.aligned(q, ofRows, values));
            calls.add(() -> engine.search(q, p, three, indices, values));
          }
        }
        Runnable[] all = calls.toArray(Runnable[]::new);
        check(
            backend + " of two kinds, " + divergence,
            () -> {
              for (Runnable call : all) {
                call.run();
              }
            });
      }
    }
    for (Divergence divergence :
        new Divergence[] {Divergence.KL, Divergence.JEFFREYS, Divergence.SQUARED_WASSERSTEIN_2}) {
      DiagonalGaussians q = ofTwo(Batch.Kind.STD, true, n, 9).gaussians();
      DiagonalGaussians p = ofTwo(Batch.Kind.LOG_VARIANCE, true, m, 9).gaussians();
      double[] mean = new double[n * 9];
      double[] scale = new double[n * 9];
      try (KlEngine engine = KlEngine.builder().backend(backend).divergence(divergence).build()) {
        KlGradient gradient = engine.gradient().q(mean, scale);
        check(
            backend + " gradient of two kinds, " + divergence,
            () -> gradient.pairwise(q, p, cotangent));
      }
    }
  }

  /** One Gaussian throughout, every other time with another mean and scale 1e-5 away. */
  private static Batch ofTwo(Batch.Kind kind, boolean isDouble, int size, int dimension) {
    Random random = new Random(9);
    double[] mean = new double[size * dimension];
    double[] std = new double[size * dimension];
    for (int k = 0; k < mean.length; k++) {
      double away = k / dimension % 2 * 1e-5;
      mean[k] = 1 + away * random.nextGaussian();
      std[k] = 1.5 + k % dimension + away * random.nextGaussian();
    }
    return Batch.ofStd(kind, isDouble, mean, std, dimension);
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void warmReductionsAllocateNothing(Backend backend) {
    Gaussians full = FullBatch.random(false, 21, 9, 10, 0, new Random(1)).gaussians();
    for (Regime regime : new Regime[] {Regime.VAE, Regime.NEAR_1E_6}) {
      Regime.Case drawn = regime.draw(false, 21, 35, 9);
      DiagonalGaussians q = drawn.q().gaussians();
      DiagonalGaussians p = drawn.p().gaussians();
      int[] indices = new int[21 * 35];
      float[] values = new float[21 * 35];
      double[] twice = new double[21 * 35];
      double[] w = new double[35];
      try (KlEngine engine = Engines.on(backend)) {
        String what = backend + " " + regime;
        for (Query query :
            List.of(
                Query.nearest(3),
                Query.nearest(35),
                Query.nearest(4).excludeSelf().reverse(),
                Query.nearest(4).exact(),
                Query.nearest(4).excluding(3, 9).filter(j -> j % 5 > 0).maxPairs(1000),
                Query.nearest(4).timeout(Duration.ofHours(1)))) {
          check(what + " float " + query, () -> engine.search(q, p, query, indices, values));
          check(what + " double " + query, () -> engine.search(q, p, query, indices, twice));
        }
        Query four = Query.nearest(4);
        check(what + " nearest mixed", () -> engine.search(q, full, four, indices, values));
        check(what + " logSumExp", () -> engine.weightedLogSumExp(q, p, w, twice));
        check(what + " rowSum", () -> engine.rowSum(q, p, twice));
      }
    }
  }

  /** One query of an index, before and after it changed: of one segment, and of two with removed references. */
  @Test
  void warmQueriesOfAnIndexAllocateNothing() {
    int d = 19;
    int m = 300;
    float[] mean = new float[m * d];
    float[] std = new float[m * d];
    Random random = new Random(5);
    for (int k = 0; k < mean.length; k++) {
      mean[k] = k < 2 * d ? 0 : (float) random.nextGaussian();
      std[k] = k < 2 * d ? 1 : random.nextFloat(0.5f, 1.5f);
    }
    long[] found = new long[10];
    float[] kl = new float[10];
    try (KlIndex index = KlIndex.builder(d).build()) {
      long[] ids = new Random(6).longs(m).toArray();
      index.add(ids, DiagonalGaussians.ofStd(mean, std, d));
      check("index", () -> index.query(mean, d, std, d, 10, found, kl));
      double[] proven = new double[1];
      for (Query query :
          List.of(
              Query.nearest(10).reverse(),
              Query.within(4).excluding(ids[9]).maxPairs(1000),
              Query.nearest(10).filter(id -> id > 0).exact(),
              Query.nearest(10).excluding(new long[][] {{ids[1], ids[2]}}),
              Query.nearest(3).among(ids[3], ids[4], ids[5]),
              Query.nearest(3).among(Arrays.copyOf(ids, 200)),
              Query.nearest(10).approximate(0.01),
              Query.nearest(10).timeout(Duration.ofHours(1)),
              Query.within(1e9).timeout(Duration.ofHours(1)).maxPairs(m))) {
        long[] most = new long[m];
        float[] values = new float[m];
        String what = "index " + query;
        check(what, () -> index.query(mean, d, std, d, query, most, values, proven));
      }
      index.add(
          new Random(7).longs(m / 2).toArray(),
          DiagonalGaussians.ofLogVariance(
              Arrays.copyOf(mean, m / 2 * d), logs(Arrays.copyOf(std, m / 2 * d)), d));
      check("index of two kinds", () -> index.query(mean, d, std, d, 10, found, kl));
      index.remove(ids[0], ids[7]);
      index.replace(new long[] {ids[1]}, DiagonalGaussians.ofVariance(ones(d), ones(d), d));
      check("index that changed", () -> index.query(mean, 0, std, 0, 10, found, kl));
      check("reference of an index", () -> index.get(ids[1], mean, std));
    }
    FullGaussians full =
        FullBatch.random(false, m, d, 10, 0, random).as(FullBatch.Kind.COVARIANCE).gaussians();
    try (KlIndex index = KlIndex.builder(d).fullCovariances().build()) {
      index.add(LongStream.range(0, m).toArray(), full);
      check("full covariance of an index", () -> index.get(7, mean, std));
    }
  }

  /** Returns log-variances. */
  private static float[] logs(float[] std) {
    float[] logs = new float[std.length];
    for (int k = 0; k < logs.length; k++) {
      logs[k] = (float) (2 * Math.log(std[k]));
    }
    return logs;
  }

  private static double[] ones(int n) {
    double[] ones = new double[n];
    Arrays.fill(ones, 1);
    return ones;
  }

  /** Turned dimensions in every way to state a scale: candidates that the last resort decides. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void warmTiesAllocateNothing(Backend backend) {
    int d = 9;
    int m = 35;
    double[] mean = new Random(7).doubles(m * d).toArray();
    double[] std = new Random(8).doubles(m * d, 0.5, 1.5).toArray();
    for (int k = d; k < m * d; k++) {
      mean[k] = mean[k - d + (k % d < d - 1 ? 1 : 1 - d)];
      std[k] = std[k - d + (k % d < d - 1 ? 1 : 1 - d)];
    }
    DiagonalGaussians q = DiagonalGaussians.ofStd(new double[d], ones(d), d);
    int[] indices = new int[m];
    double[] values = new double[m];
    for (Batch.Kind kind : Batch.Kind.values()) {
      DiagonalGaussians p = Batch.ofStd(kind, true, mean, std, d).gaussians();
      try (KlEngine engine = Engines.on(backend)) {
        Query all = Query.nearest(m);
        check(backend + " ties, " + kind, () -> engine.search(q, p, all, indices, values));
      }
    }
  }

  /** A service's first calls after warmUp allocate nothing, whatever query asks the prepared references. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void warmUpLeavesNothingToAllocate(Backend backend) {
    DiagonalGaussians p = Batch.random(false, 10_000, 40, 0, new Random(5)).gaussians();
    DiagonalGaussians query = Batch.random(false, 1, 40, 0, new Random(6)).gaussians();
    int[] indices = new int[10];
    float[] values = new float[10];
    Query ten = Query.nearest(10);
    try (KlEngine engine = Engines.on(backend)) {
      // No trial here waits for C2, which a busy machine delays, as dev.kullback.compiled says that
      // it compiles vectors.
      long fewest = Long.MAX_VALUE;
      long end = System.nanoTime() + Duration.ofMinutes(1).toNanos();
      while (fewest > 0 && System.nanoTime() < end) {
        engine.warmUp(query, p);
        long before = ThisThread.allocatedBytes();
        for (int i = 0; i < CALLS; i++) {
          engine.search(query, p, ten, indices, values);
        }
        fewest = Math.min(fewest, ThisThread.allocatedBytes() - before);
      }
      assertThat(fewest).as("%s", backend).isZero();
    }
  }

  /** A service makes a batch of each query: 8·D bytes for its values, 4·D to pack it, and some 2 kB whatever D, near a reference or not. */
  @Test
  void newQueryAllocatesLittleMoreThanItsValues() {
    for (int d : new int[] {32, 64, 256}) {
      DiagonalGaussians p = Batch.random(false, 1000, d, 0, new Random(5)).gaussians();
      Batch far = Batch.random(false, 1, d, 3, new Random(6));
      Batch near = Batch.random(false, 1000, d, 0, new Random(5)).rows(7, 8);
      int[] indices = new int[10];
      float[] values = new float[10];
      Query ten = Query.nearest(10);
      try (KlEngine engine = KlEngine.builder().build()) {
        engine.warmUp(near.gaussians(), p);
        for (Batch query : List.of(far, near)) {
          long most = 20L * d + 2600; // gaussians() narrows two arrays first
          long fewest = Long.MAX_VALUE;
          // On a busy machine C2 comes late.
          for (int i = 0; i < 20 * CALLS_UNTIL_C2 && fewest > most; i++) {
            long before = ThisThread.allocatedBytes();
            engine.search(query.gaussians(), p, ten, indices, values);
            fewest = Math.min(fewest, ThisThread.allocatedBytes() - before);
          }
          assertThat(fewest).as("D = %d", d).isLessThanOrEqualTo(most);
        }
      }
    }
  }

  /** Working memory for one dimension serves another. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void warmCallsOfTwoDimensionsAllocateNothing(Backend backend) {
    FullGaussians wide = near(21, 9);
    FullGaussians narrow = near(21, 8);
    FullGaussians otherWide = near(21, 9);
    FullGaussians otherNarrow = near(21, 8);
    float[] out = new float[21 * 21];
    try (KlEngine engine = Engines.on(backend)) {
      check(
          backend + " full, D = 8 and 9, all refined",
          () -> {
            engine.pairwise(narrow, otherNarrow, out);
            engine.pairwise(wide, otherWide, out);
          });
    }
  }

  /** Unit covariances, means 1e-9 apart: every entry is refined. */
  private static FullGaussians near(int size, int dimension) {
    double[] mean = new Random(3).doubles((long) size * dimension, 1, 1 + 1e-9).toArray();
    double[] unit = new double[size * dimension * dimension];
    for (int k = 0; k < mean.length; k++) {
      unit[k * dimension + k % dimension] = 1;
    }
    return FullGaussians.ofScaleTril(mean, unit, dimension);
  }

  private static void check(String what, Runnable call) {
    WarmCalls.allocateNothing(what, CALLS, call);
  }

  /**
   * The counter itself works: without this the test above could pass on a VM that does not count.
   */
  @Test
  void counterCounts() {
    long before = ThisThread.allocatedBytes();
    byte[] block = new byte[1000 + CALLS];
    assertThat(ThisThread.allocatedBytes() - before).isGreaterThanOrEqualTo(block.length);
  }
}
