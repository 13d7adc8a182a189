package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static dev.kullback.testing.Refusal.refusedAs;
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
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
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
                    Regime.EXACT_SCALES,
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
   * of the same tile on either side, and equal rows. Of two kinds all deviations are 1, but those of some rows 2⁻²³ more, of which no logarithm is exact.
   */
  @ParameterizedTest
  @MethodSource("divergences")
  void differencesWhoseSquaresUnderflow(Divergence divergence) {
    for (Regime.Pair kinds :
        List.of(
            new Regime.Pair(Kind.STD, Kind.STD),
            new Regime.Pair(Kind.VARIANCE, Kind.VARIANCE),
            new Regime.Pair(Kind.LOG_VARIANCE, Kind.LOG_VARIANCE),
            new Regime.Pair(Kind.STD, Kind.LOG_VARIANCE))) {
      for (double spread : new double[] {1e-9, 4e-14, 1e-19, 1e-22, 1e-30, 1e-35, 1e-42}) {
        Random random = new Random(7);
        int d = 70;
        double[] mean = new double[12 * d];
        double[] scaleQ = new double[12 * d];
        double[] scaleP = new double[12 * d];
        for (int k = 0; k < mean.length; k++) {
          boolean isMore = k / d == 4 || k / d == 3 || k / d == 10;
          double ofMixed = isMore ? 1 + 0x1p-23 : 1;
          double std = kinds.q() == kinds.p() ? 1 + 0.1 * Math.sin(k % d) : ofMixed;
          double up = k / d < 2 ? 0 : k / d % 3 + 1;
          mean[k] = (float) (up * spread * random.nextGaussian());
          scaleQ[k] = (float) kinds.q().fromStd.applyAsDouble(std);
          scaleP[k] = (float) kinds.p().fromStd.applyAsDouble(std);
        }
        Batch q = new Batch(kinds.q(), false, mean, scaleQ, d).rows(new int[] {0, 2, 4, 5, 6});
        Batch p =
            new Batch(kinds.p(), false, mean, scaleP, d).rows(new int[] {1, 2, 3, 7, 8, 9, 10});
        double[] few = DivergenceOracle.pairwise(divergence, q, p);
        double[] expected = new double[70 * 103];
        Arrays.setAll(expected, at -> few[at / 103 % 5 * 7 + at % 103 % 7]);
        String what = "%s, %s, %s".formatted(divergence, kinds, spread);
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
      assertThat(engine.aligned(b, b, new double[m])).as(what).containsOnly(0);
      if (divergence.isSymmetric()) {
        double[] exchanged = engine.pairwise(b, a, new double[expected.length]);
        double[] turned = new double[expected.length];
        Arrays.setAll(turned, at -> exchanged[at % m * q.size() + at / m]);
        Check.sameBits(what, m, turned, actual);
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

  /** The order of values that double does not tell apart. */
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
      List<Integer> order = new ArrayList<>(IntStream.range(0, m).boxed().toList());
      order.sort((a, b) -> DivergenceOracle.compare(divergence, q, p.rows(new int[] {a, b})));
      try (KlEngine engine = engine(divergence)) {
        assertThat(engine.nearest(q.gaussians(), p.gaussians(), m).indices())
            .as(divergence + " " + kind)
            .isEqualTo(order.stream().mapToInt(j -> j).toArray());
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

  private static Gaussians diagonal(String numbers) {
    double[] x = Batch.numbers(numbers);
    int d = x.length / 2;
    return DiagonalGaussians.ofVariance(Arrays.copyOf(x, d), Arrays.copyOfRange(x, d, 2 * d), d);
  }

  /**
   * Means and then variances of q and p: POT, test/test_gaussian.py, test_bures_wasserstein_distance; Stone Soup,
   * stonesoup/measures/tests/test_state.py, test_hellinger and test_hellinger_partial_mapping, to 1e-3; orders above 1 in 17 digits.
   */
  @ParameterizedTest
  @CsvSource({
    "wasserstein-2, 0 1, 10 1, 10, 0",
    "squared-wasserstein-2, 0 1, 10 1, 100, 0",
    "hellinger, 10 1 10 1 100 10 100 10, 11 10 10 2 20 3 7 10, 0.940, 1e-3",
    "hellinger, 10 1 100 10, 11 10 20 3, 0.913, 1e-3",
    "hellinger, 10 1 100 10, 11 2 20 10, 0.386, 1e-3",
    "renyi:2, 0 1, 1 4, 0.55619642944937682, 1e-15",
    "renyi:2, 0 1, 1 1, 1, 0",
    "renyi:256, 0 1, 1 1, 128, 0",
    "renyi:2, 0 4, 0 1, Infinity, 0",
    "renyi:1.25, 0 4, 0 1, 2.0794415416798357, 1e-15",
    "renyi:1.0000000000000002, 0 4, 1 1, 1.3068528194400547, 1e-14"
  })
  void knownAnswers(String name, String q, String p, double expected, double error) {
    double found = matrix(Divergence.of(name), diagonal(q), diagonal(p))[0];
    assertThat(found).isCloseTo(expected, within(error));
  }

  /**
   * Gonum, stat/distmv/statdist_test.go, TestKullbackLeiblerNormal, TestBhattacharyyaNormal, TestHellingerNormal and TestRenyiNormal, in 40 digits,
   * and of 2 Σa − Σb = [[4.5, −2.2], [−2.2, 3.1]] while 2 Σb − Σa is not positive definite.
   */
  @ParameterizedTest
  @CsvSource({
    "kl, 5.1241877421604722672, 4.4797053876105200992",
    "jeffreys, 9.6038931297709923664, 9.6038931297709923664",
    "bhattacharyya, 1.1780267365720583317, 1.1780267365720583317",
    "hellinger, 0.8319340844513892462, 0.8319340844513892462",
    "renyi:0.3, 1.38269760864985216, NaN",
    "renyi:2, Infinity, 8.306071687423252",
    "squared-wasserstein-2, 13.761146618028715351, 13.761146618028715351"
  })
  void knownAnswersOfFullCovariances(String name, double forth, double back) {
    Gaussians a = FullGaussians.ofCovariance(new double[] {2, 3}, new double[] {3, -1, -1, 2}, 2);
    Gaussians b =
        FullGaussians.ofCovariance(new double[] {-1, 1}, new double[] {1.5, 0.2, 0.2, 0.9}, 2);
    Divergence divergence = Divergence.of(name);
    assertThat(matrix(divergence, a, b)[0]).isCloseTo(forth, within(1e-13));
    if (!Double.isNaN(back)) {
      assertThat(matrix(divergence, b, a)[0]).isCloseTo(back, within(1e-13));
    }
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
              : DiagonalGaussians.ofStd(Batch.narrowed(means), Batch.narrowed(stds), d);
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
   * in 62 new ones it left none.
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
    Stream<Divergence> others =
        DoubleStream.of(2, 1.5, 9999999, 1e7, 0x1p500).mapToObj(Divergence::renyi);
    Stream.concat(all(), others)
        .forEach(d -> {
          Divergence again = Divergence.of(d.name());
          assertThat(again).isEqualTo(d).hasSameHashCodeAs(d);
          assertThat(again.alpha()).isEqualTo(d.alpha());
          assertThat(d.name()).hasSizeLessThan(30);
        });
    assertThat(Divergence.of("WASSERSTEIN_2")).isSameAs(Divergence.WASSERSTEIN_2);
    assertThat(Divergence.of("chernoff:0.25").alpha()).hasValue(0.25);
    assertThat(Divergence.BHATTACHARYYA.alpha()).isEmpty();
    assertThat(Divergence.of("renyi:2.0")).hasToString("renyi:2");
    assertThat(Divergence.of("Renyi:0.5").isSymmetric()).isTrue();
    assertThat(Divergence.renyi(0.4).isSymmetric()).isFalse();
  }

  @ParameterizedTest
  @CsvSource({
    "renyi:1, 'alpha is 1: that is kl'",
    "renyi:0, 'alpha must be in (0, 1) or above 1, up to 2^500, but is 0.0'",
    "renyi:Infinity, 'is not a number; give one, as in renyi:0.5'",
    "renyi:NaN, 'is not a number; give one, as in renyi:0.5'",
    "renyi:1e200, 'alpha must be in (0, 1) or above 1, up to 2^500, but is 1.0E200'",
    "chernoff:1, 'alpha must be in (0, 1), but is 1.0'",
    "chernoff:2, 'alpha must be in (0, 1), but is 2.0'",
    "renyi:x, 'is not a number; give one, as in renyi:0.5'",
    "kl:0.5, ''"
  })
  void badOrders(String name, String message) {
    refused(() -> Divergence.of(name), message);
    assertThatIllegalArgumentException().isThrownBy(() -> Divergence.renyi(Double.NaN));
  }

  @Test
  void aDeterministicBatchIsRefused() {
    Gaussians zero =
        Gaussians.of(
            ScaleKind.STD, new float[2], new float[2], 2, ScalePolicy.DETERMINISTIC_IF_ZERO);
    DiagonalGaussians one = DiagonalGaussians.ofStd(new float[2], new float[] {1, 1}, 2);
    try (KlEngine engine = engine(Divergence.JEFFREYS)) {
      refusedAs(
          "q is deterministic (std 0), which only KL has a convention for",
          () -> engine.pairwise(zero, one));
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
