package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Batch.Kind;
import dev.kullback.testing.Check;
import dev.kullback.testing.Check.Precision;
import dev.kullback.testing.ChildJvm;
import dev.kullback.testing.DivergenceOracle;
import dev.kullback.testing.FullBatch;
import dev.kullback.testing.OtherCases;
import dev.kullback.testing.Regime;
import dev.kullback.testing.Share;
import dev.kullback.testing.WarmCalls;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Each divergence, held to the contract by an oracle, and what all have in common. */
@Tag("vector")
class DivergenceTest {
  /** Every divergence with a name of its own except some, and others. */
  static Stream<Divergence> named(List<Divergence> except, Divergence... others) {
    return Stream.concat(
        Divergence.NAMED.stream().filter(d -> !except.contains(d)), Stream.of(others));
  }

  static Stream<Divergence> divergences() {
    return named(
        List.of(Divergence.KL),
        Divergence.renyi(0.3),
        Divergence.renyi(0.999),
        Divergence.renyi(1.25),
        Divergence.renyi(2),
        Divergence.chernoff(0.75));
  }

  static Stream<Arguments> regimes() {
    return divergences()
        .flatMap(d -> Stream.of(Regime.values()).map(regime -> Arguments.of(d, regime)));
  }

  private static KlEngine engine(Divergence divergence) {
    return KlEngine.builder().backend(Backend.VECTOR).divergence(divergence).build();
  }

  @ParameterizedTest(name = "{0}, {1}")
  @MethodSource("regimes")
  void meetsTheContract(Divergence divergence, Regime regime) {
    check(divergence, regime, Share.SOME);
  }

  @OtherCases
  @ParameterizedTest(name = "{0}, {1}")
  @MethodSource("regimes")
  void meetsTheContractInOtherCases(Divergence divergence, Regime regime) {
    check(divergence, regime, Share.OTHERS);
  }

  private static void check(Divergence divergence, Regime regime, Share share) {
    int turn = regime.kindPairs().size() == 1 ? 0 : regime.ordinal();
    for (Regime.Pair kinds : regime.kindPairs()) {
      for (boolean isDouble : new boolean[] {false, true}) {
        int d = new int[] {5, 1, 19, 70, 33}[turn % 5];
        if (share.has(turn++) && regime.appliesTo(isDouble)) {
          Regime.Case drawn = regime.draw(kinds, isDouble, 3, 5, d);
          String what =
              "%s, %s, %s, double: %s, D=%d".formatted(divergence, regime, kinds, isDouble, d);
          check(divergence, what, drawn.q(), drawn.p());
          check(divergence, what + ", q = p", drawn.p(), drawn.p());
        }
      }
    }
  }

  static Stream<Arguments> largerMatrices() {
    return Stream.concat(
            divergences(),
            Stream.of(
                Divergence.chernoff(0.05),
                Divergence.chernoff(0x1p-5),
                Divergence.chernoff(0.95),
                Divergence.renyi(1e-4),
                Divergence.renyi(0x1p-40),
                Divergence.renyi(1 - 0x1p-40)))
        .flatMap(d ->
            Stream.of(
                    Regime.VAE,
                    Regime.ALIKE,
                    Regime.EVERY_SPREAD,
                    Regime.NEAR_1E_4,
                    Regime.EQUAL_SCALES,
                    Regime.EQUAL_MEANS,
                    Regime.EQUAL_BUT_FOR_KIND)
                .map(regime -> Arguments.of(d, regime)));
  }

  /**
   * Whole tiles of the micro-kernels and their ends, more dimensions than a chunk has, and orders near 0 and 1. Rows come again and again, out
   * of step with the tiles: each lane has one of 35 pairs, as the oracle takes 33 s of processor time for 561 (Xeon with AMX, JDK 25.0.3).
   */
  @ParameterizedTest(name = "{0}, {1}")
  @MethodSource("largerMatrices")
  void meetsTheContractOfLargerMatrices(Divergence divergence, Regime regime) {
    for (boolean isDouble : new boolean[] {false, true}) {
      List<Regime.Pair> pairs = regime.kindPairs();
      for (Regime.Pair kinds :
          List.of(
              pairs.getFirst(),
              pairs.get(pairs.size() / 8))) { // std, and of all pairs std with ln σ²
        Regime.Case drawn = regime.draw(kinds, isDouble, 5, 7, 150);
        String what = "%s, %s, %s, double: %s".formatted(divergence, regime, kinds, isDouble);
        double[] few = DivergenceOracle.pairwise(divergence, drawn.q(), drawn.p());
        double[] expected = new double[17 * 33];
        Arrays.setAll(expected, at -> few[at / 33 % 5 * 7 + at % 33 % 7]);
        check(divergence, what, cycled(drawn.q(), 17), cycled(drawn.p(), 33), expected);
      }
    }
  }

  /**
   * Tiles whose means differ by so little, at equal scales, that squares underflow in float: below, about and above the bounds between the forms, some
   * of the same tile on either side, and equal rows.
   */
  @ParameterizedTest
  @MethodSource("divergences")
  void differencesWhoseSquaresUnderflow(Divergence divergence) {
    for (Kind kind : new Kind[] {Kind.STD, Kind.VARIANCE, Kind.LOG_VARIANCE}) {
      for (double spread : new double[] {1e-9, 4e-14, 1e-19, 1e-22, 1e-30, 1e-35, 1e-42}) {
        Random random = new Random(7);
        int d = 70;
        double[] mean = new double[12 * d];
        double[] scale = new double[12 * d];
        for (int k = 0; k < mean.length; k++) {
          double std = 1 + 0.1 * Math.sin(k % d);
          double up = k / d < 2 ? 0 : k / d % 3 + 1;
          mean[k] = (float) (up * spread * random.nextGaussian());
          scale[k] = (float) kind.fromStd.applyAsDouble(std);
        }
        Batch all = new Batch(kind, false, mean, scale, d);
        Batch q = all.rows(new int[] {0, 2, 4, 5, 6});
        Batch p = all.rows(new int[] {1, 2, 3, 7, 8, 9, 10});
        double[] few = DivergenceOracle.pairwise(divergence, q, p);
        double[] expected = new double[70 * 103];
        Arrays.setAll(expected, at -> few[at / 103 % 5 * 7 + at % 103 % 7]);
        String what = "%s, %s, %s".formatted(divergence, kind, spread);
        check(divergence, what, cycled(q, 70), cycled(p, 103), expected);
      }
    }
  }

  /** Returns so many rows: all of a batch, and again. */
  private static Batch cycled(Batch batch, int rows) {
    return batch.rows(IntStream.range(0, rows).map(i -> i % batch.size()).toArray());
  }

  private static void check(Divergence divergence, String what, Batch q, Batch p) {
    check(divergence, what, q, p, DivergenceOracle.pairwise(divergence, q, p));
  }

  private static void check(
      Divergence divergence, String what, Batch q, Batch p, double[] expected) {
    DiagonalGaussians a = q.gaussians();
    DiagonalGaussians b = q == p ? a : p.gaussians();
    int m = p.size();
    try (KlEngine engine = engine(divergence)) {
      Check.matrix(what + ", float", m, expected, engine.pairwise(a, b));
      double[] actual = engine.pairwise(a, b, new double[expected.length]);
      Check.matrix(what, m, expected, actual, Precision.ofDoubleResult(q, p));
      double[] exchanged = engine.pairwise(b, a, new double[expected.length]);
      double[] aligned = engine.aligned(b, b, new double[m]);
      assertThat(aligned).as(what).containsOnly(0);
      for (int at = 0; at < actual.length && divergence.isSymmetric(); at++) {
        assertThat(exchanged[at % m * q.size() + at / m]).as(what).isEqualTo(actual[at]);
      }
    }
  }

  /** Values of 2^1023 and more, of which no part may overflow, and beyond double's range. */
  @ParameterizedTest
  @MethodSource("divergences")
  void overflowsOnlyBeyondDouble(Divergence divergence) {
    double[] scale = {1, 1};
    Batch zero = new Batch(Kind.STD, true, new double[2], scale, 2);
    Batch one = new Batch(Kind.STD, true, new double[] {1e145, 0}, scale, 2);
    double square = DivergenceOracle.pairwise(divergence, one, zero)[0] * 1e-290;
    for (double due : new double[] {1, 1.5, 10}) {
      double far = Math.sqrt(due / square) * 1e154;
      Batch q = new Batch(Kind.STD, true, new double[] {0, far}, scale, 2);
      double[] expected = DivergenceOracle.pairwise(divergence, q, zero);
      FullGaussians fullQ = FullBatch.of(q).gaussians();
      FullGaussians fullP = FullBatch.of(zero).gaussians();
      try (KlEngine engine = engine(divergence)) {
        double[] out = engine.pairwise(q.gaussians(), zero.gaussians(), new double[1]);
        Check.matrix("diagonal " + due, 1, expected, out, Precision.DOUBLE);
        Check.matrix(
            "full " + due, 1, expected, engine.pairwise(fullQ, fullP, out), Precision.DOUBLE);
        Neighbors exact = engine.search(q.gaussians(), zero.gaussians(), Query.nearest(1).exact());
        out[0] = exact.value(0, 0);
        Check.matrix("exact " + due, 1, expected, out, Precision.DOUBLE);
      }
    }
  }

  static Stream<Divergence> all() {
    return Stream.concat(Stream.of(Divergence.KL), divergences());
  }

  /** Ratios of variances up to 1e±600 and beyond, in one dimension of several, by every way to a value. */
  @ParameterizedTest
  @MethodSource("all")
  void extremeRatios(Divergence divergence) {
    Random random = new Random(12);
    for (boolean isDouble : new boolean[] {false, true}) {
      for (Kind kind : Kind.values()) {
        for (Kind other : Kind.values()) {
          int d = kind == other ? 1 : 6;
          Batch q = extreme(kind, isDouble, d, random);
          Batch p = extreme(other, isDouble, d, random);
          String what = "%s, %s, %s, double: %s".formatted(divergence, kind, other, isDouble);
          checkExtreme(divergence, what, q, p);
        }
      }
    }
  }

  /** One Gaussian for each of some extreme scales, which it has in its last dimension. */
  private static Batch extreme(Kind kind, boolean isDouble, int d, Random random) {
    double[] extremes =
        switch (kind) {
          case LOG_VARIANCE ->
              isDouble
                  ? new double[] {-1400, -745, -690, -1e-300, 3, 690, 745, 1400, -5e4, 5e4}
                  : new double[] {-1400, -103, -88, -1e-38, 3, 88, 103, 1400};
          default ->
              isDouble
                  ? new double[] {5e-324, 1e-310, 1e-300, 1e-160, 1, 3e153, 1e160, 1e300, 1.7e308}
                  : new double[] {1.4e-45, 1e-40, 1e-38, 1e-20, 1, 3e15, 1e20, 1e38, 3.4e38};
        };
    double[] mean = new double[extremes.length * d];
    double[] scale = new double[mean.length];
    for (int k = 0; k < mean.length; k++) {
      boolean isLast = (k + 1) % d == 0;
      mean[k] = random.nextInt(3) == 0 ? random.nextInt(-2, 3) : 0;
      scale[k] = isLast ? extremes[k / d] : kind.fromStd.applyAsDouble(random.nextDouble(0.5, 2));
    }
    return new Batch(kind, isDouble, mean, scale, d);
  }

  private static void checkExtreme(Divergence divergence, String what, Batch q, Batch p) {
    double[] expected = DivergenceOracle.pairwise(divergence, q, p);
    int m = p.size();
    DiagonalGaussians a = q.gaussians();
    DiagonalGaussians b = p.gaussians();
    try (KlEngine engine = engine(divergence)) {
      double[] out = engine.pairwise(a, b, new double[expected.length]);
      Check.matrix(what, m, expected, out, Precision.ofDoubleResult(q, p));
      // radii at which candidates are recomputed
      for (int at = 0; at < expected.length; at += 7) {
        double value = expected[at];
        if (value >= Double.MIN_NORMAL && value < Double.POSITIVE_INFINITY) {
          DiagonalGaussians row = q.rows(at / m, at / m + 1).gaussians();
          int[] above = engine.within(row, b, value * (1 + 4e-13)).indices();
          int[] below = engine.within(row, b, value * (1 - 4e-13)).indices();
          assertThat(above).as("%s, within %s", what, value).contains(at % m);
          assertThat(below).as("%s, within %s", what, value).doesNotContain(at % m);
        }
      }
      for (Query options : new Query[] {Query.nearest(m), Query.nearest(m).exact()}) {
        Neighbors found = engine.search(a, b, options);
        for (int r = 0; r < expected.length; r++) {
          out[r / m * m + found.index(r / m, r % m)] = found.value(r / m, r % m);
        }
        Check.matrix(what + ", nearest", m, expected, out, Precision.ofDoubleResult(q, p));
      }
      ExactDivergence single = ExactDivergence.of(divergence, ScaleKind.valueOf(q.kind().name()));
      for (int at = 0; at < expected.length; at++) {
        if (q.kind() == p.kind()) {
          Batch row = q.rows(at / m, at / m + 1);
          Batch column = p.rows(at % m, at % m + 1);
          assertThat(single.of(row.mean(), row.scale(), column.mean(), column.scale()))
              .as("%s, alone, (%d, %d)", what, at / m, at % m)
              .isEqualTo(out[at]);
        }
        if (expected[at] >= Double.MIN_NORMAL && expected[at] < Double.POSITIVE_INFINITY) {
          assertThat(Math.abs(out[at] - expected[at]))
              .as("%s, exact, (%d, %d): %s for %s", what, at / m, at % m, out[at], expected[at])
              .isLessThanOrEqualTo(2 * Math.ulp(expected[at]));
        }
      }
    }
  }

  /** The same by the ratio of variances, in every way to state them, and by means and variances together. */
  @ParameterizedTest
  @ValueSource(strings = {"kl", "reverse-kl", "jeffreys"})
  void overflowsOnlyBeyondDoubleByVariances(String name) {
    Divergence divergence = Divergence.of(name);
    for (Kind kindQ : Kind.values()) {
      for (Kind kindP : Kind.values()) {
        for (double due : new double[] {0.8, 1, 1.5, 10}) {
          double std = Math.sqrt(2 * due) * 1e77;
          Batch wide = Batch.ofStd(kindQ, true, new double[] {0, 1e76}, new double[] {1, std}, 2);
          Batch narrow = Batch.ofStd(kindP, true, new double[2], new double[] {1, 1e-77}, 2);
          boolean isReverse = divergence == Divergence.REVERSE_KL;
          Batch q = isReverse ? narrow : wide;
          Batch p = isReverse ? wide : narrow;
          double[] expected = DivergenceOracle.pairwise(divergence, q, p);
          assertThat(expected[0] < Double.POSITIVE_INFINITY).isEqualTo(due < 10);
          String what = "%s, %s, %s".formatted(kindQ, kindP, due);
          try (KlEngine engine = engine(divergence)) {
            double[] out = engine.pairwise(q.gaussians(), p.gaussians(), new double[1]);
            Check.matrix(what, 1, expected, out, Precision.DOUBLE);
            out[0] =
                engine.search(q.gaussians(), p.gaussians(), Query.nearest(1).exact()).value(0, 0);
            Check.matrix("exact " + what, 1, expected, out, Precision.DOUBLE);
          }
        }
      }
    }
  }

  /** An exact value is right to the last double before overflow, too. */
  @ParameterizedTest
  @ValueSource(strings = {"kl", "jeffreys", "squared-wasserstein-2"})
  void exactValuesReachTheGreatestDouble(String name) {
    Divergence divergence = Divergence.of(name);
    Random random = new Random(8);
    int finite = 0;
    for (int trial = 0; trial < 60; trial++) {
      int d = 1 + trial % 9;
      double[] mean = random.doubles(d, 0.5, 2).toArray();
      double[] std = random.doubles(d, 0.5, 2).toArray();
      Batch zero = new Batch(Kind.STD, true, new double[d], std, d);
      double[] some = new double[d];
      Arrays.setAll(some, h -> mean[h] * 1e150);
      double small =
          DivergenceOracle.pairwise(divergence, new Batch(Kind.STD, true, some, std, d), zero)[0];
      double factor = Math.sqrt(Double.MAX_VALUE / small) * 1e150;
      double ulps = 1 + (random.nextInt(5) - 2) * 0x1p-52;
      double[] far = new double[d];
      Arrays.setAll(far, h -> mean[h] * (factor * ulps));
      Batch q = new Batch(Kind.STD, true, far, std, d);
      double expected = DivergenceOracle.pairwise(divergence, q, zero)[0];
      finite += expected < Double.POSITIVE_INFINITY ? 1 : 0;
      try (KlEngine engine = engine(divergence)) {
        assertThat(
                engine
                    .search(q.gaussians(), zero.gaussians(), Query.nearest(1).exact())
                    .value(0, 0))
            .as("trial %d", trial)
            .isEqualTo(expected);
      }
    }
    assertThat(finite).isBetween(10, 50);
  }

  static Stream<Arguments> fullBatches() {
    return divergences()
        .flatMap(d -> Stream.of(FullBatch.Kind.values()).map(kind -> Arguments.of(d, kind)));
  }

  /** Full covariances far apart and near each other, of several condition numbers. */
  @ParameterizedTest(name = "{0}, {1}")
  @MethodSource("fullBatches")
  void meetsTheContractOfFullCovariances(Divergence divergence, FullBatch.Kind kind) {
    checkFull(divergence, kind, Share.SOME);
  }

  @OtherCases
  @ParameterizedTest(name = "{0}, {1}")
  @MethodSource("fullBatches")
  void meetsTheContractOfOtherFullCovariances(Divergence divergence, FullBatch.Kind kind) {
    checkFull(divergence, kind, Share.OTHERS);
  }

  private static void checkFull(Divergence divergence, FullBatch.Kind kind, Share share) {
    Random random = new Random(7);
    int turn = kind.ordinal();
    for (boolean isDouble : new boolean[] {false, true}) {
      for (int d : new int[] {1, 2, 5}) {
        for (double condition : new double[] {1, 1e2, 1e6}) {
          if (!share.has(turn++)) {
            continue;
          }
          FullBatch factors = FullBatch.random(isDouble, 2, d, condition, 0, random);
          FullBatch others = FullBatch.random(isDouble, 2, d, condition, 0, random);
          String what =
              "%s, %s, double: %s, D=%d, %s".formatted(divergence, kind, isDouble, d, condition);
          checkFull(divergence, what, factors.as(kind), others.as(kind));
          for (double distance : new double[] {0.3, 1e-2, 1e-4, 1e-8}) {
            checkFull(
                divergence,
                what + ", distance " + distance,
                factors.as(kind),
                perturbed(factors, distance, random).as(kind));
          }
        }
      }
    }
  }

  private static FullBatch perturbed(FullBatch b, double change, Random random) {
    return new FullBatch(
        b.kind(),
        b.isDouble(),
        Arrays.stream(b.mean()).map(x -> x + 0.1 * change * random.nextGaussian()).toArray(),
        Arrays.stream(b.matrix()).map(x -> x * (1 + change * random.nextDouble())).toArray(),
        b.dimension());
  }

  private static void checkFull(Divergence divergence, String what, FullBatch q, FullBatch p) {
    double[] expected = DivergenceOracle.pairwise(divergence, q, p);
    double[] conditions = DivergenceOracle.conditions(q, p);
    FullGaussians a = q.gaussians();
    FullGaussians b = p.gaussians();
    int n = q.size();
    int m = p.size();
    try (KlEngine engine = engine(divergence)) {
      double[] actual = engine.pairwise(a, b, new double[expected.length]);
      double[] exchanged = engine.pairwise(b, a, new double[expected.length]);
      for (int at = 0; at < expected.length; at++) {
        double condition = Math.max(1, conditions[at]);
        double factor =
            divergence.name().endsWith("wasserstein-2") ? condition * condition : condition;
        double due = q.isDouble() ? 1e-12 * factor : 1e-5;
        double error = actual[at] == expected[at] ? 0 : Math.abs(actual[at] - expected[at]);
        assertThat(error)
            .as("%s, [%d, %d]: %s, not %s", what, at / m, at % m, actual[at], expected[at])
            .isLessThanOrEqualTo(due * expected[at] + Double.MIN_NORMAL);
        if (divergence.isSymmetric()) {
          assertThat(exchanged[at % m * n + at / m]).as(what).isEqualTo(actual[at]);
        }
      }
      assertThat(engine.aligned(a, q.gaussians(), new double[n])).as(what).containsOnly(0);
    }
  }

  /** A diagonal batch beside a full one is what its factors written out are. */
  @ParameterizedTest
  @MethodSource("divergences")
  void mixesDiagonalAndFull(Divergence divergence) {
    Random random = new Random(3);
    FullBatch full = FullBatch.random(true, 4, 5, 30, 0, random);
    for (Kind kind : Kind.values()) {
      double[] mean = random.doubles(3 * 5, 0, 1).toArray();
      double[] std = random.doubles(3 * 5, 0.1, 2).toArray();
      Batch diagonal = Batch.ofStd(kind, true, mean, std, 5);
      double[] expected = DivergenceOracle.pairwise(divergence, full, FullBatch.of(diagonal));
      double[] reverse = DivergenceOracle.pairwise(divergence, FullBatch.of(diagonal), full);
      try (KlEngine engine = engine(divergence)) {
        FullGaussians a = full.gaussians();
        DiagonalGaussians b = diagonal.gaussians();
        Precision precision = new Precision(1e-10, Double.MIN_NORMAL, Double.MAX_VALUE);
        double[] out = new double[12];
        Check.matrix(divergence + " " + kind, 3, expected, engine.pairwise(a, b, out), precision);
        Check.matrix(divergence + " " + kind, 4, reverse, engine.pairwise(b, a, out), precision);
      }
    }
  }

  /** All operations on one divergence agree, with any number of threads. */
  @ParameterizedTest
  @MethodSource("divergences")
  void everyOperationFollows(Divergence divergence) {
    Regime.Case drawn = Regime.NEAR_AND_FAR.draw(true, 70, 90, 7);
    DiagonalGaussians q = drawn.q().gaussians();
    DiagonalGaussians p = drawn.p().gaussians();
    double[] matrix;
    try (KlEngine engine = engine(divergence)) {
      matrix = engine.pairwise(q, p, new double[70 * 90]);
      double[] standard = engine.toStandardNormal(q, new double[70]);
      float[] zeros = new float[7];
      float[] ones = {1, 1, 1, 1, 1, 1, 1};
      double[] toNormal =
          engine.pairwise(q, DiagonalGaussians.ofStd(zeros, ones, 7), new double[70]);
      for (int i = 0; i < 70; i++) {
        assertThat(standard[i]).isCloseTo(toNormal[i], within(1e-12 * toNormal[i]));
      }
      assertThat(engine.divergence()).isEqualTo(divergence);
    }
    for (int threads : new int[] {1, 3}) {
      try (KlEngine engine = KlEngine.builder().threads(threads).divergence(divergence).build()) {
        Check.sameBits("threads", 90, matrix, engine.pairwise(q, p, new double[70 * 90]));
        double[] tiles = new double[70 * 90];
        engine.forEachTile(
            q,
            p,
            tile -> {
              for (int k = 0; k < tile.rows() * tile.columns(); k++) {
                int at =
                    (tile.rowOffset() + k / tile.columns()) * 90
                        + tile.columnOffset()
                        + k % tile.columns();
                tiles[at] = tile.values()[k];
              }
            });
        Check.sameBits("tiles", 90, matrix, tiles);
        int[] rows = {3, 69, 0};
        int[] columns = {89, 1, 5};
        double[] pairs = new double[3];
        engine.pairs(q, rows, p, columns, pairs);
        double[] sums = engine.rowMin(q, p);
        double[] logs = engine.logSumExp(q, p);
        Neighbors nearest = engine.nearest(q, p, 5);
        Neighbors reverse = engine.search(p, q, Query.nearest(5).reverse());
        for (int r = 0; r < 3; r++) {
          assertThat(pairs[r])
              .isCloseTo(matrix[rows[r] * 90 + columns[r]], within(1e-12 * pairs[r]));
        }
        for (int i = 0; i < 70; i++) {
          double[] row = Arrays.copyOfRange(matrix, i * 90, (i + 1) * 90);
          assertThat(sums[i]).isEqualTo(Arrays.stream(row).min().orElseThrow());
          double sum = Arrays.stream(row).map(x -> Math.exp(-x)).sum();
          assertThat(sum > 0 ? logs[i] : 0).isCloseTo(sum > 0 ? Math.log(sum) : 0, within(1e-9));
          double[] sorted = row.clone();
          Arrays.sort(sorted);
          for (int r = 0; r < 5; r++) {
            assertThat(nearest.value(i, r)).isCloseTo(sorted[r], within(1e-12 * sorted[r]));
          }
        }
        for (int j = 0; j < 90; j++) {
          double least = Double.POSITIVE_INFINITY;
          for (int i = 0; i < 70; i++) {
            least = Math.min(least, matrix[i * 90 + j]);
          }
          assertThat(reverse.value(j, 0)).isCloseTo(least, within(1e-12 * least));
        }
      }
    }
  }

  /** The order of values that double does not tell apart, and blocks of references that are merged. */
  @ParameterizedTest
  @MethodSource("divergences")
  void ranksAreExact(Divergence divergence) {
    int d = 6;
    Random random = new Random(11);
    for (Kind kind : Kind.values()) {
      double[] mean = random.doubles(d).toArray();
      double[] std = random.doubles(d, 0.5, 2).toArray();
      Batch q =
          Batch.ofStd(
              kind, true, random.doubles(d).toArray(), random.doubles(d, 0.5, 2).toArray(), d);
      int m = 40;
      double[] means = new double[m * d];
      double[] scales = new double[m * d];
      for (int k = 0; k < m * d; k++) {
        int from = k % d;
        double s = kind.fromStd.applyAsDouble(std[from]);
        means[k] = mean[from] + (k / d % 3 == 0 ? 0 : random.nextInt(3) * Math.ulp(mean[from]));
        scales[k] = s + (k / d % 3 == 0 ? 0 : random.nextInt(3) * Math.ulp(s));
      }
      Batch p = new Batch(kind, true, means, scales, d);
      Integer[] expected = order(divergence, q, p);
      try (KlEngine engine = engine(divergence)) {
        Neighbors found = engine.nearest(q.gaussians(), p.gaussians(), m);
        assertThat(IntStream.range(0, m).map(r -> found.index(0, r)).boxed().toArray())
            .as(divergence + " " + kind)
            .isEqualTo(expected);
        Query options = Query.nearest(m).exact();
        Neighbors whole = engine.search(q.gaussians(), p.gaussians(), options);
        Neighbors merged =
            Neighbors.merge(
                m,
                engine.search(q.gaussians(), p.rows(0, 13).gaussians(), options),
                engine.search(q.gaussians(), p.rows(13, m).gaussians(), options.offset(13)));
        for (int r = 0; r < m; r++) {
          assertThat(merged.index(0, r)).isEqualTo(whole.index(0, r));
          assertThat(merged.value(0, r)).isEqualTo(whole.value(0, r));
        }
      }
    }
  }

  private static Integer[] order(Divergence divergence, Batch q, Batch p) {
    List<Integer> order = new ArrayList<>(IntStream.range(0, p.size()).boxed().toList());
    order.sort((a, b) -> DivergenceOracle.compare(divergence, q, p.rows(new int[] {a, b})));
    return order.toArray(Integer[]::new);
  }

  @Test
  void reverseIsTheTransposedMatrix() {
    Random random = new Random(1);
    FullBatch full = FullBatch.random(false, 70, 6, 20, 0, random);
    Regime.Case drawn = Regime.VAE.draw(false, 70, 2100, 33);
    Gaussians[][] batches = {
      {drawn.q().gaussians(), drawn.p().gaussians()},
      {full.gaussians(), full.rows(0, 61).gaussians()},
      {
        Regime.VAE.draw(true, 1, 9, 3).q().gaussians(),
        Regime.VAE.draw(true, 1, 9, 3).p().gaussians()
      }
    };
    for (Backend backend : List.of(Backend.VECTOR, Backend.SCALAR)) {
      try (KlEngine kl = KlEngine.builder().backend(backend).build();
          KlEngine reverse =
              KlEngine.builder().backend(backend).divergence(Divergence.REVERSE_KL).build()) {
        for (Gaussians[] batch : batches) {
          Gaussians q = batch[0];
          Gaussians p = batch[1];
          float[] expected = kl.pairwise(p, q);
          float[] actual = reverse.pairwise(q, p);
          for (int at = 0; at < actual.length; at++) {
            assertThat(actual[at]).isEqualTo(expected[at % p.size() * q.size() + at / p.size()]);
          }
          double[] sums = kl.rowSum(p, q);
          double total = Arrays.stream(reverse.rowSum(q, p)).sum();
          assertThat(total).isCloseTo(Arrays.stream(sums).sum(), within(1e-9 * total));
          Neighbors a = kl.search(q, p, Query.nearest(4).reverse());
          Neighbors b = reverse.nearest(q, p, 4);
          for (int i = 0; i < q.size(); i++) {
            for (int r = 0; r < 4; r++) {
              assertThat(b.index(i, r)).isEqualTo(a.index(i, r));
              assertThat(b.value(i, r)).isEqualTo(a.value(i, r));
            }
          }
        }
      }
    }
  }

  @Test
  void identities() {
    Regime.Case drawn = Regime.VAE.draw(true, 12, 15, 8);
    DiagonalGaussians q = drawn.q().gaussians();
    DiagonalGaussians p = drawn.p().gaussians();
    double[] kl = matrix(Divergence.KL, q, p);
    double[] reverse = matrix(Divergence.REVERSE_KL, q, p);
    double[] jeffreys = matrix(Divergence.JEFFREYS, q, p);
    double[] b = matrix(Divergence.BHATTACHARYYA, q, p);
    double[] hellinger = matrix(Divergence.HELLINGER, q, p);
    double[] renyi = matrix(Divergence.renyi(1 - 1e-12), q, p);
    double[] half = matrix(Divergence.renyi(0.5), q, p);
    double[] chernoff = matrix(Divergence.chernoff(0.5), q, p);
    double[] near = matrix(Divergence.chernoff(1e-12), q, p);
    for (int at = 0; at < kl.length; at++) {
      assertThat(jeffreys[at]).isCloseTo(kl[at] + reverse[at], within(1e-12 * jeffreys[at]));
      assertThat(renyi[at]).isCloseTo(kl[at], within(1e-8 * kl[at]));
      assertThat(near[at] / 1e-12).isCloseTo(reverse[at], within(1e-8 * reverse[at]));
      assertThat(half[at]).isCloseTo(2 * b[at], within(1e-14 * half[at]));
      assertThat(chernoff[at]).isEqualTo(b[at]);
      assertThat(b[at]).isLessThanOrEqualTo(jeffreys[at] / 8 * (1 + 1e-12));
      assertThat(hellinger[at]).isBetween(0.0, 1.0);
    }
    Gaussians[] all = {q, p, Regime.WIDE.draw(true, 9, 3, 8).q().gaussians()};
    double[] ab = matrix(Divergence.WASSERSTEIN_2, all[0], all[1]);
    double[] bc = matrix(Divergence.WASSERSTEIN_2, all[1], all[2]);
    double[] ac = matrix(Divergence.WASSERSTEIN_2, all[0], all[2]);
    for (int at = 0; at < 12 * 15 * 9; at++) {
      int i = at / (15 * 9);
      int j = at / 9 % 15;
      int k = at % 9;
      double way = ab[i * 15 + j] + bc[j * 9 + k];
      assertThat(ac[i * 9 + k]).isLessThanOrEqualTo(way * (1 + 1e-12));
    }
  }

  @Test
  void identitiesOfFullCovariances() {
    for (int d : new int[] {1, 3, 4, 6, 17}) {
      Random random = new Random(d);
      FullGaussians q = FullBatch.random(true, 11, d, 10, 0, random).gaussians();
      FullGaussians p = FullBatch.random(true, 21, d, 10, 0, random).gaussians();
      FullGaussians r = FullBatch.random(true, 3, d, 10, 0, random).gaussians();
      double[] kl = matrix(Divergence.KL, q, p);
      double[] reverse = matrix(Divergence.REVERSE_KL, q, p);
      double[] jeffreys = matrix(Divergence.JEFFREYS, q, p);
      double[] b = matrix(Divergence.BHATTACHARYYA, q, p);
      double[] hellinger = matrix(Divergence.HELLINGER, q, p);
      double[] renyi = matrix(Divergence.renyi(1 - 1e-10), q, p);
      double[] half = matrix(Divergence.renyi(0.5), q, p);
      double[] near = matrix(Divergence.chernoff(1e-10), q, p);
      for (int at = 0; at < kl.length; at++) {
        assertThat(jeffreys[at]).isCloseTo(kl[at] + reverse[at], within(1e-10 * jeffreys[at]));
        assertThat(renyi[at]).isCloseTo(kl[at], within(1e-7 * kl[at]));
        assertThat(near[at] / 1e-10).isCloseTo(reverse[at], within(1e-7 * reverse[at]));
        assertThat(half[at]).isCloseTo(2 * b[at], within(1e-14 * half[at]));
        assertThat(hellinger[at])
            .isCloseTo(Math.sqrt(-Math.expm1(-b[at])), within(1e-14 * hellinger[at]))
            .isBetween(0.0, 1.0);
        assertThat(b[at]).isLessThanOrEqualTo(jeffreys[at] / 8 * (1 + 1e-10));
      }
      double[] qp = matrix(Divergence.WASSERSTEIN_2, q, p);
      double[] pr = matrix(Divergence.WASSERSTEIN_2, p, r);
      double[] qr = matrix(Divergence.WASSERSTEIN_2, q, r);
      for (int at = 0; at < 11 * 21 * 3; at++) {
        int i = at / (21 * 3);
        int j = at / 3 % 21;
        int k = at % 3;
        double way = qp[i * 21 + j] + pr[j * 3 + k];
        assertThat(qr[i * 3 + k]).isLessThanOrEqualTo(way * (1 + 1e-12));
      }
    }
  }

  /** The distance is the rounded root of the square, by whichever kernel, and sums and radii are in its unit. */
  @ParameterizedTest
  @EnumSource(Regime.class)
  void theDistanceIsTheRootOfTheSquare(Regime regime) {
    for (boolean isDouble : new boolean[] {false, true}) {
      if (!regime.appliesTo(isDouble)) {
        continue;
      }
      Regime.Case drawn = regime.draw(regime.kindPairs().getFirst(), isDouble, 21, 37, 19);
      DiagonalGaussians q = drawn.q().gaussians();
      DiagonalGaussians p = drawn.p().gaussians();
      double[] squares = matrix(Divergence.SQUARED_WASSERSTEIN_2, q, p);
      double[] distances = matrix(Divergence.WASSERSTEIN_2, q, p);
      for (int at = 0; at < squares.length; at++) {
        if (squares[at] > 1e-200 && squares[at] < Double.POSITIVE_INFINITY) {
          assertThat(distances[at]).isEqualTo(Math.sqrt(squares[at]));
        }
      }
      try (KlEngine engine = engine(Divergence.WASSERSTEIN_2)) {
        double[] row = Arrays.copyOf(distances, 37);
        double[] sum = engine.rowSum(q, p, new double[21]);
        assertThat(sum[0])
            .isCloseTo(Arrays.stream(row).sum(), within((isDouble ? 1e-12 : 1e-5) * sum[0]));
        double radius = Arrays.stream(row).sorted().toArray()[18] * (1 + 1e-4);
        Neighbors within = engine.within(q, p, radius);
        assertThat(within.count(0))
            .isEqualTo((int) Arrays.stream(row).filter(x -> x <= radius).count());
      }
    }
  }

  /** The distance of Gaussians whose square is beyond the range of the batch's type, or of double. */
  @Test
  void theDistanceIsRightWhereTheSquareIsNot() {
    double[] sizes = {
      Double.MIN_VALUE, 0x1p-1060, 1e-300, 1e-200, 1e-160, 1e-30, 1e30, 1e150, 1e160, 1e200, 3e307
    };
    for (double size : sizes) {
      double[] mean = {3 * size, 0, -4 * size};
      double[] one = {1, 1, 1};
      double[] zero = {0, 0, 0};
      checkDistance(5 * size, mean, one, zero, one);
      double[] std = {1e-320, 2e-320, 3e-320};
      checkDistance(5 * size, mean, std, zero, std);
      if (size > 1e20) {
        double[] wide = {3 * size, size, 5 * size};
        checkDistance(4 * size, zero, wide, zero, new double[] {3 * size, size, size});
      }
      if (size > 1e-40 && size < 1e38) {
        float[] floats = {(float) (3 * size), 0, (float) (-4 * size)};
        float[] ones = {1, 1, 1};
        DiagonalGaussians q = DiagonalGaussians.ofStd(floats, ones, 3);
        DiagonalGaussians p = DiagonalGaussians.ofStd(new float[3], ones, 3);
        float expected = (float) Math.hypot(floats[0], floats[2]);
        try (KlEngine engine = engine(Divergence.WASSERSTEIN_2)) {
          assertThat(engine.pairwise(q, p)[0]).isCloseTo(expected, within(1e-6F * expected));
        }
      }
    }
  }

  private static void checkDistance(
      double expected, double[] mean, double[] std, double[] otherMean, double[] otherStd) {
    int d = mean.length;
    DiagonalGaussians q = DiagonalGaussians.ofStd(mean, std, d);
    DiagonalGaussians p = DiagonalGaussians.ofStd(otherMean, otherStd, d);
    double error = 1e-14 * expected;
    try (KlEngine engine = engine(Divergence.WASSERSTEIN_2)) {
      assertThat(engine.pairwise(q, p, new double[1])[0]).isCloseTo(expected, within(error));
      assertThat(engine.aligned(p, q, new double[1])[0]).isCloseTo(expected, within(error));
      assertThat(engine.nearest(q, p, 1).value(0, 0)).isCloseTo(expected, within(error));
      assertThat(engine.search(q, p, Query.nearest(1).exact()).value(0, 0))
          .isCloseTo(expected, within(error));
      assertThat(engine.within(q, p, expected * (1 + 1e-13)).count(0)).isOne();
      if (expected > 1e-300) {
        assertThat(engine.within(q, p, expected * (1 - 1e-13)).count(0)).isZero();
      }
      FullGaussians full = FullGaussians.ofScaleTril(mean, diagonal(std), d);
      assertThat(engine.pairwise(full, p, new double[1])[0])
          .isCloseTo(expected, within(1e-12 * expected));
    }
  }

  private static double[] diagonal(double[] values) {
    double[] matrix = new double[values.length * values.length];
    for (int h = 0; h < values.length; h++) {
      matrix[h * (values.length + 1)] = values[h];
    }
    return matrix;
  }

  private static double[] matrix(Divergence divergence, Gaussians q, Gaussians p) {
    try (KlEngine engine = engine(divergence)) {
      return engine.pairwise(q, p, new double[q.size() * p.size()]);
    }
  }

  private static DiagonalGaussians variances(double mean, double variance) {
    return DiagonalGaussians.ofVariance(new double[] {mean}, new double[] {variance}, 1);
  }

  static Stream<Divergence> ordersAboveOne() {
    return Stream.of(1 + 0x1p-52, 1.001, 2.0, 3.5, 256.0, 1e9, 1e30)
        .map(alpha -> Divergence.renyi(alpha));
  }

  /** Variances of q on both sides of the greatest with a finite divergence, α vp/(α − 1), and as near to it as doubles are. */
  @ParameterizedTest
  @MethodSource("ordersAboveOne")
  void whereRenyiBecomesInfinite(Divergence divergence) {
    double alpha = divergence.alpha().orElseThrow();
    double[] variances = new double[24];
    for (int k = 0; k < variances.length; k += 2) {
      double bound = alpha / (alpha - 1);
      double off = k == 0 ? Math.ulp(bound) : bound * Math.scalb(1, -4 * k);
      variances[k] = bound + off;
      variances[k + 1] = bound - off;
    }
    double[] mean = new double[variances.length];
    Arrays.setAll(mean, i -> i % 3);
    for (Kind kind : Kind.values()) {
      double[] scale =
          Arrays.stream(variances).map(v -> kind.fromStd.applyAsDouble(Math.sqrt(v))).toArray();
      Batch q = new Batch(kind, true, mean, scale, 1);
      for (Kind other : Kind.values()) {
        Batch p =
            new Batch(other, true, new double[1], new double[] {other.fromStd.applyAsDouble(1)}, 1);
        String what = divergence + ", " + kind + ", " + other;
        double[] expected = DivergenceOracle.pairwise(divergence, q, p);
        double[] actual = matrix(divergence, q.gaussians(), p.gaussians());
        Check.matrix(what, 1, expected, actual, Precision.DOUBLE);
        try (KlEngine engine = engine(divergence)) {
          Neighbors exact = engine.search(q.gaussians(), p.gaussians(), Query.nearest(1).exact());
          for (int i = 0; i < actual.length; i++) {
            actual[i] = exact.value(i, 0);
          }
        }
        Check.matrix(what + ", exact", 1, expected, actual, Precision.DOUBLE);
      }
    }
  }

  /** Cases of other libraries' tests. */
  @Test
  void knownAnswers() {
    // gonum, stat/distmv/statdist_test.go, TestBhattacharyyaNormal and TestRenyiNormal; what the
    // latter
    // compares, to 1e-10 and 1e-6
    FullGaussians a =
        FullGaussians.ofCovariance(new double[] {2, 3}, new double[] {3, -1, -1, 2}, 2);
    FullGaussians b =
        FullGaussians.ofCovariance(new double[] {-1, 1}, new double[] {1.5, 0.2, 0.2, 0.9}, 2);
    double distance = matrix(Divergence.BHATTACHARYYA, a, b)[0];
    // ⅛·dᵀΣ⁻¹d with Σ = [[2.25, −0.4], [−0.4, 1.45]] and d = (3, 2), and ½ ln(3.1025/√(5·1.31))
    double quad = (9 * 1.45 + 2 * 6 * 0.4 + 4 * 2.25) / 3.1025;
    double exact = quad / 8 + 0.5 * Math.log(3.1025 / Math.sqrt(5 * 1.31));
    assertThat(distance).isCloseTo(exact, within(1e-14));
    assertThat(matrix(Divergence.BHATTACHARYYA, b, a)[0]).isEqualTo(distance);
    assertThat(matrix(Divergence.renyi(0.5), a, b)[0]).isCloseTo(2 * distance, within(1e-13));
    assertThat(matrix(Divergence.HELLINGER, a, b)[0])
        .isCloseTo(Math.sqrt(1 - Math.exp(-exact)), within(1e-14));
    Divergence almost = Divergence.renyi(0.9999999);
    assertThat(matrix(almost, a, b)[0]).isCloseTo(matrix(Divergence.KL, a, b)[0], within(1e-6));
    assertThat(matrix(almost, b, a)[0]).isCloseTo(matrix(Divergence.KL, b, a)[0], within(1e-6));

    // the same case, which is also that of TestKullbackLeiblerNormal, TestCrossEntropyNormal and
    // TestHellingerNormal, in 40 digits
    assertThat(matrix(Divergence.KL, a, b)[0]).isCloseTo(5.1241877421604722672, within(1e-13));
    assertThat(matrix(Divergence.KL, b, a)[0]).isCloseTo(4.4797053876105200992, within(1e-13));
    double entropy = 0.5 * Math.log(4 * Math.PI * Math.PI * Math.E * Math.E * 5);
    assertThat(matrix(Divergence.KL, a, b)[0] + entropy)
        .isCloseTo(8.766783764786867938, within(1e-13));
    assertThat(matrix(Divergence.JEFFREYS, a, b)[0])
        .isCloseTo(9.6038931297709923664, within(1e-13));
    assertThat(distance).isCloseTo(1.1780267365720583317, within(1e-14));
    assertThat(matrix(Divergence.HELLINGER, a, b)[0])
        .isCloseTo(0.8319340844513892462, within(1e-14));
    assertThat(matrix(Divergence.renyi(0.3), a, b)[0])
        .isCloseTo(1.38269760864985216, within(1e-13));
    assertThat(matrix(Divergence.SQUARED_WASSERSTEIN_2, a, b)[0])
        .isCloseTo(13.761146618028715351, within(1e-13));

    // orders above 1 of N(0, 1) and N(1, 4), in 17 digits; ½ α and 3 ln 2 in exact algebra
    DiagonalGaussians one = variances(0, 1);
    DiagonalGaussians two = variances(0, 4);
    assertThat(matrix(Divergence.renyi(2), one, variances(1, 4))[0])
        .isCloseTo(0.55619642944937682, within(1e-15));
    assertThat(matrix(Divergence.renyi(2), one, variances(1, 1))).containsExactly(1);
    assertThat(matrix(Divergence.renyi(256), one, variances(1, 1))).containsExactly(128);
    assertThat(matrix(Divergence.renyi(2), two, one)).containsExactly(Double.POSITIVE_INFINITY);
    assertThat(matrix(Divergence.renyi(1.25), two, one)[0])
        .isCloseTo(3 * Math.log(2), within(1e-15));
    assertThat(matrix(Divergence.renyi(1 + 0x1p-52), two, variances(1, 1))[0])
        .isCloseTo(1.3068528194400547, within(1e-14));
    // 2 Σa − Σb = [[4.5, −2.2], [−2.2, 3.1]], and 2 Σb − Σa is not positive definite
    double mixed = (9 * 3.1 + 2 * 6 * 2.2 + 4 * 4.5) / 9.11;
    assertThat(matrix(Divergence.renyi(2), b, a)[0])
        .isCloseTo(mixed - 0.5 * Math.log(9.11 * 1.31 / 25), within(1e-13));
    assertThat(matrix(Divergence.renyi(2), a, b)).containsExactly(Double.POSITIVE_INFINITY);

    // SciPy, scipy/spatial/distance.py, the examples of mahalanobis: 1, 1 and √3
    double[] precision = {1, 0.5, 0.5, 0.5, 1, 0.5, 0.5, 0.5, 1};
    Gaussians to = Gaussians.of(ScaleKind.PRECISION_MATRIX, new double[] {0, 1, 0}, precision, 3);
    double[][] from = {{1, 0, 0}, {0, 2, 0}, {2, 0, 0}};
    double[] mahalanobis = {1, 1, 1.7320508075688772};
    for (int i = 0; i < from.length; i++) {
      Gaussians g = Gaussians.of(ScaleKind.PRECISION_MATRIX, from[i], precision, 3);
      double square = mahalanobis[i] * mahalanobis[i];
      assertThat(matrix(Divergence.JEFFREYS, g, to)[0]).isCloseTo(square, within(1e-14));
      assertThat(matrix(Divergence.BHATTACHARYYA, g, to)[0]).isCloseTo(square / 8, within(1e-15));
      assertThat(matrix(Divergence.renyi(0.3), g, to)[0]).isCloseTo(0.15 * square, within(1e-15));
    }

    // POT, test/test_gaussian.py, test_bures_wasserstein_distance: 10
    DiagonalGaussians s = DiagonalGaussians.ofVariance(new double[] {0}, new double[] {1}, 1);
    DiagonalGaussians t = DiagonalGaussians.ofVariance(new double[] {10}, new double[] {1}, 1);
    assertThat(matrix(Divergence.WASSERSTEIN_2, s, t)).containsExactly(10);
    assertThat(matrix(Divergence.SQUARED_WASSERSTEIN_2, s, t)).containsExactly(100);

    // Stone Soup, stonesoup/measures/tests/test_state.py, test_hellinger, test_squared_hellinger
    // and
    // test_hellinger_partial_mapping, to 1e-3
    double[] mean = {10, 1, 10, 1};
    double[] variance = {100, 10, 100, 10};
    double[] other = {11, 10, 10, 2};
    double[] otherVariance = {20, 3, 7, 10};
    assertThat(hellinger(mean, variance, other, otherVariance, 0, 1, 2, 3))
        .isCloseTo(0.940, within(1e-3));
    double whole = hellinger(mean, variance, other, otherVariance, 0, 1, 2, 3);
    assertThat(whole * whole).isCloseTo(0.884, within(1e-3));
    assertThat(hellinger(mean, variance, other, otherVariance, 0, 1))
        .isCloseTo(0.913, within(1e-3));
    assertThat(hellinger(mean, variance, other, otherVariance, 0, 3))
        .isCloseTo(0.386, within(1e-3));
  }

  private static double hellinger(
      double[] m, double[] v, double[] n, double[] w, int... dimensions) {
    return matrix(
        Divergence.HELLINGER,
        DiagonalGaussians.ofVariance(at(m, dimensions), at(v, dimensions), dimensions.length),
        DiagonalGaussians.ofVariance(at(n, dimensions), at(w, dimensions), dimensions.length))[0];
  }

  private static double[] at(double[] x, int[] dimensions) {
    return Arrays.stream(dimensions).mapToDouble(h -> x[h]).toArray();
  }

  /** Of near-duplicates whose means differ by less than the root of the least number, the matrix has what pairs have. */
  @ParameterizedTest
  @MethodSource("divergences")
  void smallDifferencesOfSmallScalesCount(Divergence divergence) {
    int n = 40;
    int d = 70;
    double[] means = new double[n * d];
    double[] stds = new double[n * d];
    for (boolean wide : new boolean[] {false, true}) {
      double s = wide ? 1e-60 : (float) 1e-15;
      for (int k = 0; k < n * d; k++) {
        means[k] = k / d * (wide ? 1e-100 : 2e-8) * s;
        stds[k] = k % d == 0 && !wide && k / d % 3 == 1 ? Math.nextUp((float) s) : s;
      }
      Gaussians all =
          wide
              ? DiagonalGaussians.ofStd(means, stds, d)
              : DiagonalGaussians.ofStd(floats(means), floats(stds), d);
      double[] matrix = new double[n * n];
      double[] row = new double[n];
      try (KlEngine engine = engine(divergence)) {
        engine.pairwise(all, all.slice(0, n), matrix);
        for (int shift = 1; shift < n; shift++) {
          int by = shift;
          int[] turned = IntStream.range(0, n).map(i -> (i + by) % n).toArray();
          engine.aligned(all, all.select(turned), row);
          for (int i = 0; i < n; i++) {
            assertThat(matrix[i * n + turned[i]])
                .as("%s, %d, %d", divergence.name(), i, turned[i])
                .isCloseTo(row[i], within((wide ? 2e-12 : 2e-5) * row[i] + 0x1p-1070));
          }
        }
      }
    }
  }

  private static float[] floats(double[] values) {
    float[] floats = new float[values.length];
    for (int k = 0; k < floats.length; k++) {
      floats[k] = (float) values[k];
    }
    return floats;
  }

  @ParameterizedTest
  @MethodSource("divergences")
  void warmCallsAllocateNothing(Divergence divergence, @TempDir Path scratch) throws Exception {
    warmCallsAllocateNothing(divergence, Share.SOME, scratch);
  }

  @Tag("long")
  @ParameterizedTest
  @MethodSource("divergences")
  void warmCallsOfOtherDivergencesAllocateNothing(Divergence divergence, @TempDir Path scratch)
      throws Exception {
    warmCallsAllocateNothing(divergence, Share.OTHERS, scratch);
  }

  /**
   * In this process or in a new one: after all that ran here before, C2 of JDK 25 leaves Chernoff's tiles an array of 80 bytes in one of ten processes or so;
   * in 70 new ones it left none.
   */
  private static void warmCallsAllocateNothing(Divergence divergence, Share share, Path scratch)
      throws Exception {
    if (!share.has(divergences().toList().indexOf(divergence))) {
      return;
    }
    try {
      main(divergence.name());
    } catch (AssertionError e) {
      Duration limit = Duration.ofMinutes(5); // which ends what hangs
      ChildJvm.runVectors(
          scratch,
          limit,
          ChildJvm.thisMachine(),
          DivergenceTest.class.getName(),
          divergence.name());
    }
  }

  /**
   * Calls until nothing is allocated, which takes C2 a second or two.
   *
   * @param names one, of a divergence
   */
  static void main(String... names) {
    Divergence divergence = Divergence.of(names[0]);
    Regime.Case drawn = Regime.VAE.draw(true, 9, 11, 5);
    Gaussians q = drawn.q().gaussians();
    Gaussians p = drawn.p().gaussians();
    Random random = new Random(2);
    Gaussians full = FullBatch.random(true, 9, 5, 30, 0, random).gaussians();
    double[] out = new double[99];
    int[] indices = new int[9 * 3];
    Query three = Query.nearest(3);
    try (KlEngine engine = engine(divergence)) {
      Runnable calls =
          () -> {
            engine.pairwise(q, p, out);
            engine.pairwise(full, p, out);
            engine.aligned(full, q, out);
            engine.toStandardNormal(q, out);
            engine.rowSum(q, p, out);
            engine.search(q, p, three, indices, out);
          };
      engine.warmUp(q, p);
      engine.warmUp(full, p);
      WarmCalls.allocateNothing(divergence.name(), 1, calls);
    }
  }

  /** What people call divergences elsewhere; {@code none} stands for a message without advice. */
  @ParameterizedTest
  @CsvSource({
    "frechet, did you mean squared-wasserstein-2",
    "Fréchet, did you mean squared-wasserstein-2",
    "fid, did you mean squared-wasserstein-2",
    "wasserstein, 'did you mean wasserstein-2, or its square'",
    "W_2, 'did you mean wasserstein-2, or its square'",
    "squared-w2, did you mean squared-wasserstein-2?",
    "wasserstein-1, the Wasserstein distances here are wasserstein-2",
    "bhattacharya, did you mean bhattacharyya?",
    "battacharyya, did you mean bhattacharyya?",
    "hellenger, did you mean hellinger?",
    "jeffrey, did you mean jeffreys?",
    "symmetric-kl, did you mean jeffreys",
    "kld, did you mean kl",
    "kl_div, did you mean kl",
    "kullback-leibler, did you mean kl",
    "reverse, did you mean reverse-kl?",
    "reversekl, did you mean reverse-kl?",
    "renyi, renyi needs its order ALPHA",
    "Rényi, renyi needs its order ALPHA",
    "chernoff, chernoff needs its order ALPHA",
    "js, the Jensen-Shannon divergence has no closed form",
    "jensen-shannon, the Jensen-Shannon divergence has no closed form",
    "forward-kl, did you mean kl?",
    "forward_kl, did you mean kl?",
    "alpha:0.5, of the alpha divergences there are renyi:ALPHA and chernoff:ALPHA",
    "mahalanobis, 'between Gaussians with the same covariance, kl is half the squared Mahalanobis'",
    "mmd, the maximum mean discrepancy depends on a kernel",
    "tv, total variation has no closed form",
    "frobnicate, none",
    "x, none",
    "'', none",
  })
  void namesOfOthers(String name, String advice) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Divergence.of(name))
        .withMessageStartingWith(
            "there is no divergence '"
                + name
                + (advice.equals("none") ? "'; give kl, reverse-kl, " : "' (" + advice))
        .withMessageEndingWith(
            "; give kl, reverse-kl, jeffreys, bhattacharyya, hellinger, wasserstein-2,"
                + " squared-wasserstein-2, renyi:ALPHA or chernoff:ALPHA");
  }

  @Test
  void namesAreTakenBack() {
    Stream.concat(divergences(), Stream.of(Divergence.KL))
        .forEach(d -> assertThat(Divergence.of(d.name())).isEqualTo(d).hasSameHashCodeAs(d));
    assertThat(Divergence.of("WASSERSTEIN_2")).isSameAs(Divergence.WASSERSTEIN_2);
    assertThat(Divergence.of("squared-wasserstein-2")).isSameAs(Divergence.SQUARED_WASSERSTEIN_2);
    assertThat(Divergence.renyi(0.3).alpha()).hasValue(0.3);
    assertThat(Divergence.of("chernoff:0.25").alpha()).hasValue(0.25);
    assertThat(Divergence.BHATTACHARYYA.alpha()).isEmpty();
    assertThat(Divergence.of("renyi:2").name()).isEqualTo("renyi:2");
    assertThat(Divergence.of("renyi:2.0")).isEqualTo(Divergence.renyi(2)).hasToString("renyi:2");
    assertThat(Divergence.of("renyi:1.5").name()).isEqualTo("renyi:1.5");
    for (double whole : new double[] {9999999, 1e7, 0x1p500}) {
      Divergence renyi = Divergence.renyi(whole);
      assertThat(Divergence.of(renyi.name())).isEqualTo(renyi);
      assertThat(Divergence.of(renyi.name()).alpha()).hasValue(whole);
    }
    assertThat(Divergence.renyi(0x1p500).name()).hasSizeLessThan(30);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Divergence.of("w2"))
        .withMessage(
            "there is no divergence 'w2' (did you mean wasserstein-2, or its square, squared-wasserstein-2?); give kl, reverse-kl, jeffreys, bhattacharyya, hellinger, wasserstein-2,"
                + " squared-wasserstein-2, renyi:ALPHA or chernoff:ALPHA");
    assertThat(Divergence.of("Renyi:0.5").isSymmetric()).isTrue();
    assertThat(Divergence.renyi(0.4).isSymmetric()).isFalse();
    for (String wrong :
        List.of(
            "", "kld", "renyi", "renyi:x", "renyi:0", "renyi:Infinity", "chernoff:2", "kl:0.5")) {
      assertThatIllegalArgumentException().as(wrong).isThrownBy(() -> Divergence.of(wrong));
    }
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Divergence.of("renyi:1"))
        .withMessage("alpha is 1: that is kl");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Divergence.of("renyi:0"))
        .withMessage("alpha must be in (0, 1) or above 1, up to 2^500, but is 0.0");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Divergence.of("chernoff:1"))
        .withMessage("alpha must be in (0, 1), but is 1.0");
    assertThatIllegalArgumentException().isThrownBy(() -> Divergence.renyi(Double.NaN));
  }

  @Test
  void aDeterministicBatchIsRefused() {
    Gaussians zero =
        Gaussians.of(
            ScaleKind.STD, new float[2], new float[2], 2, ScalePolicy.DETERMINISTIC_IF_ZERO);
    DiagonalGaussians one = DiagonalGaussians.ofStd(new float[2], new float[] {1, 1}, 2);
    try (KlEngine engine = engine(Divergence.JEFFREYS)) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> engine.pairwise(zero, one))
          .withMessage("q is deterministic (std 0), which only KL has a convention for");
      assertThatIllegalArgumentException().isThrownBy(() -> engine.pairwise(one, zero));
      assertThatIllegalArgumentException().isThrownBy(() -> engine.toStandardNormal(zero));
    }
    try (KlEngine engine = engine(Divergence.REVERSE_KL)) {
      assertThat(engine.pairwise(one, zero)).containsExactly(0);
      assertThatIllegalArgumentException().isThrownBy(() -> engine.pairwise(zero, one));
      assertThatIllegalArgumentException().isThrownBy(() -> engine.toStandardNormal(zero));
    }
  }
}
