package dev.kullback;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.batch.Factors;
import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Factorization;
import dev.kullback.internal.numerics.MatrixForm;
import dev.kullback.internal.vector.CholeskyKernel;
import dev.kullback.testing.Batch;
import dev.kullback.testing.Check;
import dev.kullback.testing.FullBatch;
import dev.kullback.testing.OtherCases;
import dev.kullback.testing.Regime;
import dev.kullback.testing.Share;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.Supplier;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The vector kernels and the cold ones give the same bits, so that a service's results do not change when C2 has compiled the former. A
 * cold kernel is an oracle, too: of every lane, tail and rung, to the last bit.
 */
@Tag("vector")
class ColdKernelTest {
  /** Rows, columns, dimension: tails of the tiles of every width, chunks and groups of them, and one that has them whole; cold blocks of 128 columns. */
  private static final int[][] SHAPES = {
    {1, 1, 1},
    {3, 5, 2},
    {2, 67, 3},
    {7, 4, 5},
    {9, 33, 17},
    {16, 32, 64},
    {17, 9, 65},
    {5, 31, 129},
    {4, 19, 300},
    {2, 128, 15},
    {3, 129, 2},
    {1, 290, 127},
  };

  /** Rows, columns, dimension of full covariances: blocks of two and four rows, chunks of the product, and what is left of each. */
  private static final int[][] FULL_SHAPES = {
    {1, 1, 1},
    {2, 3, 2},
    {3, 17, 3},
    {9, 6, 4},
    {5, 33, 6},
    {17, 20, 7},
    {4, 7, 15},
    {8, 13, 17},
    {3, 2, 34},
    {66, 259, 5},
  };

  /** Spreads about one Gaussian: float settles all entries, some, none; double neither; and entries are 0. */
  private static final double[] SPREADS = {1, 0.06, 4e-3, 1e-5, 0};

  /** Indices of {@link #SPREADS} as letters; each follows each, itself included. */
  private static final String ORDER = "eaabacadaebbcbdbeccdceddee";

  /** Computes one kind of result from two batches, with either kind of kernels. */
  private interface Call {
    double[] of(KlEngine engine, Gaussians q, Gaussians p);
  }

  @ParameterizedTest
  @EnumSource
  void matrix(Regime regime) {
    matrix(regime, Share.SOME);
  }

  @OtherCases
  @ParameterizedTest
  @EnumSource
  void matrixOfOtherShapes(Regime regime) {
    matrix(regime, Share.OTHERS);
  }

  private static void matrix(Regime regime, Share share) {
    for (boolean isDouble : new boolean[] {false, true}) {
      if (!regime.appliesTo(isDouble)) {
        continue;
      }
      for (Regime.Pair kinds : pairs(regime)) {
        for (int k = 0; k < SHAPES.length; k++) {
          if (!share.has(regime.ordinal() + kinds.q().ordinal() + (isDouble ? 1 : 0) + k)) {
            continue;
          }
          int[] shape = SHAPES[k];
          Regime.Case drawn = regime.draw(kinds, isDouble, shape[0], shape[1], shape[2]);
          String what =
              "%s of %s, %s, %d x %d x %d"
                  .formatted(
                      regime, kinds, isDouble ? "double" : "float", shape[0], shape[1], shape[2]);
          check(what, drawn.q(), drawn.p(), ColdKernelTest::pairwise);
          Batch own = few(drawn.p());
          check(what + ", itself", own, own, ColdKernelTest::pairwise);
        }
      }
    }
  }

  /** Leaves so few rows that all pairs of them have 250,000 terms at most, as 128 rows of 15 dimensions do: the longest shape's own have ten million. */
  private static Batch few(Batch batch) {
    return batch.rows(0, Math.min(batch.size(), (int) Math.sqrt(2.5e5 / batch.dimension())));
  }

  static Stream<Divergence> divergences() {
    return DivergenceTest.named(
        List.of(Divergence.KL, Divergence.REVERSE_KL),
        Divergence.renyi(0.999),
        Divergence.chernoff(0.2),
        Divergence.chernoff(0.03),
        Divergence.renyi(0x1p-40),
        Divergence.renyi(1 - 0x1p-40));
  }

  /** Divergences other than KL, in every regime and of every shape, though not of each in each. */
  @ParameterizedTest
  @MethodSource("divergences")
  void matrix(Divergence divergence) {
    int turn = 0;
    for (Regime regime : Regime.values()) {
      for (boolean isDouble : new boolean[] {false, true}) {
        int[] shape = SHAPES[++turn % SHAPES.length];
        if (regime.appliesTo(isDouble)) {
          List<Regime.Pair> pairs = regime.kindPairs();
          Regime.Case drawn =
              regime.draw(pairs.get(turn % pairs.size()), isDouble, shape[0], shape[1], shape[2]);
          String what = "%s, %s, %s".formatted(divergence, regime, Arrays.toString(shape));
          check(divergence, what, drawn.q(), drawn.p(), ColdKernelTest::pairwise);
          Batch own = few(drawn.p());
          check(divergence, what + ", itself", own, own, ColdKernelTest::pairwise32);
        }
      }
    }
    Batch single = Regime.VAE.draw(false, 9, 37, 33).q();
    Batch twice = Regime.VAE.draw(true, 9, 37, 33).p();
    check(divergence, "float and double", single, twice, ColdKernelTest::pairwise);
    check(divergence, "double and float", twice, single, ColdKernelTest::pairwise);
  }

  /** Selects the pairs that have each kind once on either side; the next regime takes others. */
  private static List<Regime.Pair> pairs(Regime regime) {
    int kinds = Batch.Kind.values().length;
    List<Regime.Pair> all = regime.kindPairs();
    return all.size() <= kinds
        ? all
        : all.stream()
            .filter(p -> (p.q().ordinal() + p.p().ordinal()) % kinds == regime.ordinal() % kinds)
            .toList();
  }

  /** Float and double in one call. */
  @Test
  void mixedPrecisions() {
    for (Regime regime : Regime.values()) {
      if (regime.appliesTo(false)) {
        Regime.Pair kinds = regime.kindPairs().getFirst();
        Batch single = regime.draw(kinds, false, 9, 37, 33).q();
        Batch twice = regime.draw(kinds, true, 9, 37, 33).p();
        check(regime + " of float and double", single, twice, ColdKernelTest::pairwise);
        check(regime + " of double and float", twice, single, ColdKernelTest::pairwise);
      }
    }
  }

  /** A tile tries first the rung that settled the last one: runs of rows and of columns that need different rungs, in every order. */
  @ParameterizedTest
  @CsvSource({"STD, STD", "LOG_VARIANCE, LOG_VARIANCE", "STD, PRECISION"})
  void runs(Batch.Kind kindQ, Batch.Kind kindP) {
    for (int length : new int[] {7, 16, 45}) {
      Batch q = inRuns(kindQ, length, new Random(1));
      Batch p = inRuns(kindP, length, new Random(2));
      Batch alike = q.rows(q.size() - 9, q.size());
      List<Call> calls = List.of(ColdKernelTest::pairwise, ColdKernelTest::pairwise32);
      for (int k = 0; k < calls.size(); k++) {
        String what =
            "%s and %s, runs of %d, to %s"
                .formatted(kindQ, kindP, length, k == 0 ? "double" : "float");
        check(what + ", rows alike", alike, p, calls.get(k));
        if (length <= 16) { // larger ones take seconds
          check(what, q, p, calls.get(k));
          check(what + ", itself", p, p, calls.get(k));
        }
      }
    }
  }

  /** The rungs before change the time of a tile, and no bit of any divergence. */
  @ParameterizedTest
  @MethodSource("divergences")
  void runs(Divergence divergence) {
    Batch q = inRuns(Batch.Kind.STD, 7, new Random(1));
    Batch p = inRuns(Batch.Kind.STD, 45, new Random(2));
    Batch alike = q.rows(q.size() - 9, q.size());
    check(divergence, divergence + ", to double", alike, p, ColdKernelTest::pairwise);
    check(divergence, divergence + ", to float", q, alike, ColdKernelTest::pairwise32);
  }

  /** Draws a run of rows for each letter of {@link #ORDER}. */
  private static Batch inRuns(Batch.Kind kind, int length, Random random) {
    int dimension = 20;
    double[] mean = new double[ORDER.length() * length * dimension];
    double[] std = new double[mean.length];
    for (int k = 0; k < mean.length; k++) {
      int h = k % dimension;
      double spread = SPREADS[ORDER.charAt(k / dimension / length) - 'a'];
      mean[k] = Math.sin(h) + spread * random.nextGaussian();
      std[k] = Math.exp(0.3 * (Math.cos(h) + spread * random.nextGaussian()));
    }
    return Batch.ofStd(kind, false, mean, std, dimension);
  }

  @ParameterizedTest
  @EnumSource(names = {"VAE", "ALIKE", "NEAR_1E_4", "NEAR_AND_FAR", "DUPLICATES", "EXTREME_MIX"})
  void reductions(Regime regime) {
    for (int columns : new int[] {1, 3, 4, 15, 16, 31, 32, 33, 63, 64, 100, 127, 128, 333, 2300}) {
      Regime.Case drawn = regime.draw(false, 9, columns, 5);
      String what = "%s, %d columns, ".formatted(regime, columns);
      check(what + "rowMin", drawn.q(), drawn.p(), KlEngine::rowMin);
      check(what + "rowSum", drawn.q(), drawn.p(), KlEngine::rowSum);
      check(what + "logSumExp", drawn.q(), drawn.p(), KlEngine::logSumExp);
      for (int k = 1; k <= Math.min(columns, 100); k += 33) {
        int most = k;
        check(
            what + "nearest " + k,
            drawn.q(),
            drawn.p(),
            (engine, q, p) -> nearest(engine.nearest(q, p, most)));
      }
    }
  }

  /** Full Gaussians are far from each other, near, and equal, in turn. */
  @ParameterizedTest
  @EnumSource
  void full(FullBatch.Kind kind) {
    Random random = new Random(1);
    for (int[] shape : FULL_SHAPES) {
      for (boolean isDouble : new boolean[] {false, true}) {
        int n = Math.max(shape[0], shape[1]);
        FullBatch p = FullBatch.random(isDouble, n, shape[2], 30, 1, random);
        double[] mean = p.mean().clone();
        double[] tril = p.matrix().clone();
        for (int h = 0; h < mean.length; h++) {
          double change = new double[] {0.5, 1e-3, 1e-6, 0}[h / shape[2] % 4];
          mean[h] += change * random.nextGaussian();
          tril[h * shape[2] + h % shape[2]] *= 1 + change * random.nextDouble();
        }
        FullBatch q =
            new FullBatch(FullBatch.Kind.SCALE_TRIL, isDouble, mean, tril, shape[2]).as(kind);
        String what =
            "%s, %s, %d x %d x %d"
                .formatted(kind, isDouble ? "double" : "float", shape[0], shape[1], shape[2]);
        FullBatch some = p.rows(0, shape[1]);
        check(what, q.rows(0, shape[0])::gaussians, some::gaussians, ColdKernelTest::pairwise);
        check(what + ", itself", q::gaussians, null, ColdKernelTest::pairwise);
        check(what + ", aligned", q::gaussians, p::gaussians, ColdKernelTest::aligned);
        check(what + ", standard", q::gaussians, null, ColdKernelTest::standard);
        for (Divergence other :
            List.of(
                Divergence.JEFFREYS,
                Divergence.BHATTACHARYYA,
                Divergence.HELLINGER,
                Divergence.renyi(0.9),
                Divergence.WASSERSTEIN_2)) {
          check(
              other,
              what + ", " + other,
              q.rows(0, shape[0])::gaussians,
              some::gaussians,
              ColdKernelTest::pairwise);
        }
      }
    }
  }

  @Test
  void fullReductions() {
    FullBatch q = FullBatch.random(false, 9, 6, 10, 0, new Random(1));
    FullBatch p = FullBatch.random(false, 333, 6, 10, 0, new Random(2));
    Batch diagonal = Batch.random(false, 100, 6, 0, new Random(3));
    check("logSumExp", q::gaussians, p::gaussians, KlEngine::logSumExp);
    check("nearest", q::gaussians, p::gaussians, (e, a, b) -> nearest(e.nearest(a, b, 7)));
    check("mixed kinds", q::gaussians, diagonal::gaussians, ColdKernelTest::pairwise);
  }

  /** Equal factors of so large a condition that all entries are solved for. */
  @Test
  void sharedMatricesThatAreAlike() {
    for (ScaleKind kind : new ScaleKind[] {ScaleKind.SCALE_TRIL, ScaleKind.COVARIANCE}) {
      for (int d : new int[] {4, 7, 66}) {
        double most = kind == ScaleKind.COVARIANCE ? 32 : 16; // of L, whose squares they are
        Random random = new Random(d);
        double[] matrix = new double[d * d];
        for (int r = 0; r < d; r++) {
          matrix[r * d + r] = 3 * Math.pow(10, most * (r / (d - 1.0) - 0.5));
          for (int c = 0; c < r && kind == ScaleKind.SCALE_TRIL; c++) {
            matrix[r * d + c] = matrix[c * d + c] * random.nextGaussian();
          }
        }
        double[] means = random.doubles(35L * d, -1e-6, 1e-6).toArray();
        Supplier<Gaussians> q = () -> Gaussians.of(kind, Arrays.copyOf(means, 21 * d), matrix, d);
        check(
            kind + ", D=" + d,
            q,
            () -> Gaussians.of(kind, means, matrix, d),
            ColdKernelTest::pairwise);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"COVARIANCE", "PRECISION"})
  void factors(MatrixForm kind) {
    assumeTrue(Platform.mayHaveVectors());
    for (int[] shape : FULL_SHAPES) {
      FullBatch g =
          FullBatch.random(true, shape[1], shape[2], 30, 1, new Random(1))
              .as(
                  kind == MatrixForm.COVARIANCE
                      ? FullBatch.Kind.COVARIANCE
                      : FullBatch.Kind.PRECISION);
      var plain = factors(g, kind, Cholesky::new);
      var vector = factors(g, kind, CholeskyKernel::new);
      int length = plain.scaleTril().length;
      String what = "%s, %d x %d".formatted(kind, shape[1], shape[2]);
      Check.sameBits(what, length, plain.scaleTril(), vector.scaleTril());
      Check.sameBits(what, length, plain.scaleTrilLow(), vector.scaleTrilLow());
    }
  }

  private static dev.kullback.internal.batch.FullBatch factors(
      FullBatch g, MatrixForm kind, Supplier<Factorization> factorization) {
    return Factors.of(
        Elements.of(g.mean(), "mean"),
        Elements.of(g.matrix(), "matrix"),
        g.dimension(),
        kind,
        ScalePolicy.STRICT,
        factorization);
  }

  private static double[] aligned(KlEngine engine, Gaussians q, Gaussians p) {
    return engine.aligned(q, p, new double[q.size()]);
  }

  private static double[] standard(KlEngine engine, Gaussians q, Gaussians p) {
    return engine.toStandardNormal(q, new double[p.size()]);
  }

  private static double[] pairwise(KlEngine engine, Gaussians q, Gaussians p) {
    double[] out = new double[q.size() * p.size()];
    return engine.pairwise(q, p, out);
  }

  private static double[] pairwise32(KlEngine engine, Gaussians q, Gaussians p) {
    return Batch.widened(engine.pairwise(q, p));
  }

  private static double[] nearest(Neighbors found) {
    return DoubleStream.concat(
            Arrays.stream(found.indices()).asDoubleStream(), Arrays.stream(found.values()))
        .toArray();
  }

  private static void check(String what, Batch q, Batch p, Call call) {
    check(Divergence.KL, what, q, p, call);
  }

  private static void check(Divergence divergence, String what, Batch q, Batch p, Call call) {
    check(divergence, what, q::gaussians, q == p ? null : p::gaussians, call);
  }

  private static void check(String what, Supplier<Gaussians> q, Supplier<Gaussians> p, Call call) {
    check(Divergence.KL, what, q, p, call);
  }

  /** Asserts the same bits of vector and cold kernels, each on batches made anew; where p is null, on q and itself. */
  private static void check(
      Divergence divergence, String what, Supplier<Gaussians> q, Supplier<Gaussians> p, Call call) {
    assumeTrue(Platform.mayHaveVectors());
    double[][] found = new double[2][];
    for (int way = 0; way < 2; way++) {
      boolean vectors = way == 0;
      Engine chosen = new Engine(divergence.formula, Platform.Choice.VECTOR, 1, null, _ -> vectors);
      try (KlEngine engine = new KlEngine(chosen, divergence)) {
        Gaussians first = q.get();
        found[way] = call.of(engine, first, p == null ? first : p.get());
      }
    }
    Check.sameBits(what, found[0].length, found[0], found[1]);
  }
}
