package dev.kullback;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Check;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import dev.kullback.testing.OtherCases;
import dev.kullback.testing.Regime;
import dev.kullback.testing.Share;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Results have the same bits for every thread count, executor, repetition and surrounding batch. */
@Tag("device")
class DeterminismTest {
  /** Regimes that mix the kernels within tiles, and one that does not. */
  private static final Regime[] REGIMES = {
    Regime.VAE,
    Regime.ALIKE,
    Regime.NEAR_AND_FAR,
    Regime.NEAR_1E_3,
    Regime.DUPLICATES,
    Regime.EVERY_SPREAD,
    Regime.WIDE
  };

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void sameBitsForEveryThreadCount(Backend backend) {
    for (Regime regime : REGIMES) {
      for (boolean isDouble : new boolean[] {false, true}) {
        Regime.Case drawn = regime.draw(isDouble, 131, 119, 33);
        DiagonalGaussians q = drawn.q().gaussians();
        DiagonalGaussians p = drawn.p().gaussians();
        Bits expected;
        try (KlEngine engine = Engines.on(backend)) {
          expected = Bits.of(engine, q, p);
          expected.check(regime + ", again", Bits.of(engine, q, p));
        }
        for (int threads : Engines.threadCounts(backend)) {
          try (KlEngine engine = Engines.on(backend, threads)) {
            for (int repetition = 0; repetition < 2; repetition++) {
              expected.check(regime + ", threads " + threads, Bits.of(engine, q, p));
            }
          }
        }
        try (ExecutorService pool = Executors.newFixedThreadPool(3);
            KlEngine engine =
                KlEngine.builder().backend(backend).threads(4).executor(pool).build()) {
          expected.check(regime + ", executor", Bits.of(engine, q, p));
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void sameBitsInEveryBatch(Backend backend) {
    int n = 45;
    int m = 70;
    for (Regime regime : REGIMES) {
      for (boolean isDouble : new boolean[] {false, true}) {
        Regime.Case drawn = regime.draw(isDouble, n, m, 37);
        try (KlEngine engine = Engines.on(backend)) {
          Bits whole = Bits.of(engine, drawn.q().gaussians(), drawn.p().gaussians());
          int[][] blocks = {
            {0, 1, 0, 1},
            {3, 4, 0, m},
            {0, n, 69, 70},
            {1, 14, 5, 38},
            {7, 45, 33, 70},
            {7, 45, 0, m}
          };
          for (int[] block : blocks) {
            if (backend == Backend.CUDA && block[3] - block[2] < m) {
              continue; // p's other Gaussians say what its products are relative to
            }
            Bits part =
                Bits.of(
                    engine,
                    drawn.q().rows(block[0], block[1]).gaussians(),
                    drawn.p().rows(block[2], block[3]).gaussians());
            String what =
                "%s %s, rows %d to %d by columns %d to %d alone"
                    .formatted(backend, regime, block[0], block[1], block[2], block[3]);
            whole.block(m, block).check(what, part);
          }
        }
      }
    }
  }

  /** All but Jeffreys' divergence, which is computed relative to the means of both batches. */
  static Stream<Divergence> divergences() {
    return DivergenceTest.named(List.of(Divergence.JEFFREYS), Divergence.renyi(0.3));
  }

  /** With full covariances, the others of the batch whose means KL is computed relative to may change last digits, and no others. */
  @ParameterizedTest
  @MethodSource("divergences")
  void fullCovariancesAmongOthers(Divergence divergence) {
    boolean isReverse = divergence.equals(Divergence.REVERSE_KL);
    boolean isKl = isReverse || divergence.equals(Divergence.KL);
    Random random = new Random(3);
    int n = 41;
    int m = 53;
    for (boolean isDouble : new boolean[] {false, true}) {
      for (int d : new int[] {1, 6, 20}) {
        FullBatch q = FullBatch.random(isDouble, n, d, d == 1 ? 1 : 20, 3, random);
        FullBatch p = FullBatch.random(isDouble, m, d, d == 1 ? 1 : 20, 0, random);
        for (Backend backend : new Backend[] {Backend.SCALAR, Backend.VECTOR}) {
          try (KlEngine engine =
              KlEngine.builder().backend(backend).divergence(divergence).build()) {
            Bits whole = Bits.of(engine, q.gaussians(), p.gaussians());
            for (int[] block :
                new int[][] {
                  {0, n, 0, 1}, {0, 1, 0, m}, {5, 30, 0, m}, {0, n, 9, 40}, {3, 20, 31, m}
                }) {
              boolean allOfQ = block[1] - block[0] == n;
              boolean allOfP = block[3] - block[2] == m;
              if (!isKl || (isReverse ? allOfQ : allOfP)) {
                String what =
                    "%s %s, double: %s, D = %d, %s"
                        .formatted(backend, divergence, isDouble, d, Arrays.toString(block));
                whole
                    .block(m, block)
                    .check(
                        what,
                        Bits.of(
                            engine,
                            q.rows(block[0], block[1]).gaussians(),
                            p.rows(block[2], block[3]).gaussians()));
              }
            }
          }
        }
      }
    }
  }

  /** Entries have the same bits in tiles of similar rows, in mixed tiles, and alone; on a device with p's same columns. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void sameBitsAmongAnyNeighbors(Backend backend) {
    sameBitsAmongAnyNeighbors(backend, Share.SOME);
  }

  @OtherCases
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void sameBitsAmongAnyOtherNeighbors(Backend backend) {
    sameBitsAmongAnyNeighbors(backend, Share.OTHERS);
  }

  private static void sameBitsAmongAnyNeighbors(Backend backend, Share share) {
    int n = 176;
    int m = 187;
    int trials =
        backend == Backend.CUDA ? 50 : 500; // a call of the emulated device takes a millisecond
    for (Batch.Kind kind : Batch.Kind.values()) {
      int[] dimensions = {5, 16, 40, 70, 300};
      for (int k = 0; k < dimensions.length; k++) {
        if (!share.has(backend.ordinal() + kind.ordinal() + k)) {
          continue;
        }
        int dimension = dimensions[k];
        Regime.Case drawn =
            Regime.EVERY_SPREAD.draw(new Regime.Pair(kind, kind), false, n, m, dimension);
        Random random = new Random(dimension);
        int[] rows = permutation(n, random);
        int[] columns = backend == Backend.CUDA ? ascending(m) : permutation(m, random);
        try (KlEngine engine = Engines.on(backend)) {
          Bits expected = Bits.of(engine, drawn.q().gaussians(), drawn.p().gaussians());
          Bits shuffled =
              Bits.of(
                  engine, drawn.q().rows(rows).gaussians(), drawn.p().rows(columns).gaussians());
          String what = "%s %s, D = %d, ".formatted(backend, kind, dimension);
          expected.permuted(rows, columns).check(what + "shuffled", shuffled);
          for (int trial = 0; trial < trials; trial++) {
            int i = random.nextInt(n);
            int j = random.nextInt(m);
            int[] block =
                backend == Backend.CUDA
                    ? new int[] {i, i + 1, 0, m}
                    : new int[] {i, i + 1, j, j + 1};
            Bits alone =
                Bits.of(
                    engine,
                    drawn.q().rows(block[0], block[1]).gaussians(),
                    drawn.p().rows(block[2], block[3]).gaussians());
            expected.block(m, block).check(what + i + ", " + j + " alone", alone);
          }
        }
      }
    }
  }

  /** Batches so large that the threads share their preparation: for one call, and kept from the second use on. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void sameBitsOfLargeBatches(Backend backend) {
    for (boolean isDouble : new boolean[] {false, true}) {
      Batch q = Batch.random(isDouble, 5, 67, 0, new Random(1));
      Batch p = Batch.random(isDouble, 3001, 67, 0, new Random(2));
      FullBatch a = FullBatch.random(isDouble, 203, 20, 10, 0, new Random(3));
      FullBatch b = FullBatch.random(isDouble, 7, 20, 10, 0, new Random(4));
      List<double[]> expected = new ArrayList<>();
      for (int threads : Engines.threadCounts(backend)) {
        List<double[]> actual = new ArrayList<>();
        try (KlEngine engine = Engines.on(backend, threads)) {
          for (Gaussians[] pair :
              new Gaussians[][] {
                {q.gaussians(), p.gaussians()},
                {p.gaussians(), q.gaussians()},
                {a.gaussians(), b.gaussians()},
                {b.gaussians(), a.gaussians()}
              }) {
            for (int use = 0; use < 3; use++) {
              double[] out = new double[pair[0].size() * pair[1].size()];
              actual.add(engine.pairwise(pair[0], pair[1], out));
            }
          }
        }
        expected = expected.isEmpty() ? actual : expected;
        for (int i = 0; i < actual.size(); i++) {
          Check.sameBits("threads %d, %d".formatted(threads, i), 1, expected.get(i), actual.get(i));
        }
      }
    }
  }

  private static int[] ascending(int n) {
    return IntStream.range(0, n).toArray();
  }

  private static int[] permutation(int n, Random random) {
    int[] result = new int[n];
    for (int i = 0; i < n; i++) {
      int other = random.nextInt(i + 1);
      result[i] = result[other];
      result[other] = i;
    }
    return result;
  }

  /**
   * A batch against itself, as one object, as two equal ones, and from another copy of the arrays.
   */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void sameBitsForTheSameAndForEqualObjects(Backend backend) {
    for (Regime regime : REGIMES) {
      for (boolean isDouble : new boolean[] {false, true}) {
        Batch batch = regime.draw(isDouble, 61, 1, 29).q();
        DiagonalGaussians once = batch.gaussians();
        DiagonalGaussians again = batch.gaussians();
        for (int threads : new int[] {1, 3}) {
          try (KlEngine engine = Engines.on(backend, threads)) {
            Bits expected = Bits.of(engine, once, once);
            expected.check(regime + ", equal copies", Bits.of(engine, once, again));
            expected.check(regime + ", other copy", Bits.of(engine, again, again));
          }
        }
      }
    }
  }

  /** A pairwise result as float and as double. */
  private record Bits(float[] single, double[] twice, int columns) {
    static Bits of(KlEngine engine, Gaussians q, Gaussians p) {
      double[] twice = new double[q.size() * p.size()];
      return new Bits(engine.pairwise(q, p), engine.pairwise(q, p, twice), p.size());
    }

    void check(String what, Bits actual) {
      Check.sameBits(what, columns, single, actual.single);
      Check.sameBits(what, columns, twice, actual.twice);
    }

    Bits permuted(int[] rows, int[] columns) {
      float[] a = new float[single.length];
      double[] b = new double[twice.length];
      for (int i = 0; i < rows.length; i++) {
        for (int j = 0; j < columns.length; j++) {
          int to = i * columns.length + j;
          int from = rows[i] * columns.length + columns[j];
          a[to] = single[from];
          b[to] = twice[from];
        }
      }
      return new Bits(a, b, columns.length);
    }

    /** Rows block[0] to block[1] by columns block[2] to block[3]. */
    Bits block(int stride, int[] block) {
      int width = block[3] - block[2];
      float[] a = new float[(block[1] - block[0]) * width];
      double[] b = new double[a.length];
      for (int i = block[0]; i < block[1]; i++) {
        System.arraycopy(single, i * stride + block[2], a, (i - block[0]) * width, width);
        System.arraycopy(twice, i * stride + block[2], b, (i - block[0]) * width, width);
      }
      return new Bits(a, b, width);
    }
  }
}
