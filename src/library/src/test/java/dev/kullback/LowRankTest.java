package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Engines;
import dev.kullback.testing.LowRankOracle;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Low-rank covariances: against the oracle, against full covariances, and what every operation makes of them. */
@Tag("vector")
class LowRankTest {
  /** How far two Gaussians are apart, by what is multiplied and added. */
  private enum Data {
    USUAL,
    /** q is p, moved by a hundred-thousandth. */
    ALIKE,
    /** q is p, moved by some roundings. */
    NEARLY_EQUAL,
    OFFSET,
    COLLAPSED,
    SMALL,
    LARGE,
    /** Factors a thousand times as large as the diagonal. */
    STEEP,
    /** Factors a thousandth of the diagonal. */
    FLAT
  }

  private record Arrays3(double[] mean, double[] factor, double[] std) {
    LowRankGaussians gaussians(boolean isDouble, int d) {
      return isDouble
          ? LowRankGaussians.of(ScaleKind.STD, mean, factor, std, d)
          : LowRankGaussians.of(
              ScaleKind.STD, Batch.narrowed(mean), Batch.narrowed(factor), Batch.narrowed(std), d);
    }
  }

  private static Arrays3 random(int n, int d, int r, Data data, Random random) {
    double[] mean = random.doubles((long) n * d, -1, 1).toArray();
    double[] std = random.doubles((long) n * d, 0.3, 1).toArray();
    double[] factor = random.doubles((long) n * d * r, -0.5, 0.5).toArray();
    double scale =
        switch (data) {
          case SMALL -> 1e-15; // of floats, whose squares are 1e-30
          case LARGE -> 1e15;
          default -> 1;
        };
    double ofFactor =
        switch (data) {
          case STEEP -> 1e3;
          case FLAT -> 1e-3;
          default -> 1;
        };
    for (int k = 0; k < mean.length; k++) {
      mean[k] = scale * mean[k] + (data == Data.OFFSET ? 1000 : 0);
      std[k] *= scale * (data == Data.COLLAPSED && k / d % 2 == 0 ? 1e-6 : 1);
    }
    for (int k = 0; k < factor.length; k++) {
      factor[k] *= scale * ofFactor * (data == Data.COLLAPSED && k / (d * r) % 2 == 0 ? 1e-6 : 1);
    }
    return new Arrays3(mean, factor, std);
  }

  private static double[] moved(double[] values, double by, Random random) {
    return Arrays.stream(values).map(x -> x * (1 + by * random.nextGaussian())).toArray();
  }

  private static Arrays3 other(Arrays3 p, int n, int d, int r, Data data, Random random) {
    double by = data == Data.ALIKE ? 1e-5 : data == Data.NEARLY_EQUAL ? 1e-15 : 0;
    return by == 0
        ? random(n, d, r, data, random)
        : new Arrays3(
            moved(p.mean, by, random), moved(p.factor, by, random), moved(p.std, by, random));
  }

  /** ‖M‖‖M⁻¹‖ of p_j up to 100, as for full covariances; √ of the traces of Σ V⁻¹ and its inverse serve, without the dimensions beyond r. */
  private static double tolerance(LowRankGaussians p, int j, boolean isDouble) {
    if (!isDouble) {
      return 1e-5;
    }
    double trace = Math.max(1, p.rank());
    double[] w = p.factor(j);
    double[] std = p.scale(j);
    for (int k = 0; k < w.length; k++) {
      double x = w[k] / std[k / p.rank()];
      trace += x * x;
    }
    return 1e-12 * Math.clamp(trace, 1, 100);
  }

  private static void check(LowRankGaussians q, LowRankGaussians p, double[] kl, boolean isDouble) {
    double[] expected = LowRankOracle.pairwise(q, p);
    for (int k = 0; k < expected.length; k++) {
      int j = k % p.size();
      assertThat(kl[k])
          .as("%s, %s, %d, %d", q, p, k / p.size(), j)
          .isCloseTo(expected[k], within(tolerance(p, j, isDouble) * expected[k]));
    }
  }

  private static void check(Data data, Backend backend, int n, int d, int rq, int rp) {
    try (KlEngine engine = Engines.on(backend)) {
      for (boolean isDouble : new boolean[] {false, true}) {
        Random random = new Random(d + rq);
        Arrays3 made = random(n, d, rp, data, random);
        LowRankGaussians p = made.gaussians(isDouble, d);
        LowRankGaussians q = other(made, n, d, rq, data, random).gaussians(isDouble, d);
        check(q, p, engine.pairwise(q, p, new double[n * n]), isDouble);
      }
    }
  }

  /** N, D and the ranks of q and p. */
  static Stream<Arguments> cases(int[]... shapes) {
    return Engines.backends()
        .flatMap(backend ->
            Stream.of(Data.values())
                .flatMap(
                    data -> Stream.of(shapes).map(shape -> Arguments.of(backend, data, shape))));
  }

  static Stream<Arguments> usualShapes() {
    return cases(
        new int[] {3, 1, 1, 1},
        new int[] {3, 5, 2, 2},
        new int[] {2, 40, 5, 5},
        new int[] {2, 40, 3, 9},
        new int[] {2, 40, 9, 3});
  }

  static Stream<Arguments> largeShapes() {
    return cases(
        new int[] {2, 300, 0, 0},
        new int[] {2, 300, 1, 1},
        new int[] {2, 129, 32, 32},
        new int[] {2, 300, 32, 32},
        new int[] {2, 7, 7, 7},
        new int[] {2, 65, 16, 16});
  }

  @ParameterizedTest
  @MethodSource("usualShapes")
  void meetsTheContract(Backend backend, Data data, int[] shape) {
    check(data, backend, shape[0], shape[1], shape[2], shape[3]);
  }

  @Tag("long")
  @ParameterizedTest
  @MethodSource("largeShapes")
  void meetsTheContractOfLargeShapes(Backend backend, Data data, int[] shape) {
    meetsTheContract(backend, data, shape);
  }

  private static LowRankGaussians usual(int n, int d, int r, long seed) {
    return random(n, d, r, Data.USUAL, new Random(seed)).gaussians(true, d);
  }

  /** Of several kinds of scales, whose roundings differ: equal to the oracle, which has each exactly. */
  @ParameterizedTest
  @EnumSource(
      value = ScaleKind.class,
      names = {"STD", "VARIANCE", "LOG_VARIANCE", "PRECISION"})
  void kindsOfDiagonals(ScaleKind kind) {
    int d = 9;
    Arrays3 made = random(2, d, 2, Data.USUAL, new Random(3));
    LowRankGaussians q = LowRankGaussians.of(kind, made.mean, made.factor, made.std, d);
    LowRankGaussians p = usual(3, d, 4, 4);
    try (KlEngine engine = KlEngine.builder().build()) {
      double[] kl = engine.pairwise(q, p, new double[6]);
      double[] expected = LowRankOracle.pairwise(q, p);
      for (int k = 0; k < kl.length; k++) {
        assertThat(kl[k]).isCloseTo(expected[k], within(1e-10 * expected[k]));
      }
    }
    assertThat(q.kind()).isEqualTo(kind);
    assertThat(q.scale(1)).isEqualTo(Arrays.copyOfRange(made.std, d, 2 * d));
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void equalsFullCovariancesWrittenOut(Backend backend) {
    try (KlEngine engine = Engines.on(backend)) {
      for (int d : new int[] {1, 6, 64}) {
        LowRankGaussians q = usual(5, d, Math.min(d, 7), d);
        LowRankGaussians p = usual(4, d, Math.min(d, 3), d + 1);
        FullGaussians fullQ = q.full();
        FullGaussians fullP =
            FullGaussians.ofCovariance(means(p), covariances(p), d); // each element rounded
        double[] expected = engine.pairwise(fullQ, fullP, new double[20]);
        for (Gaussians[] pair : new Gaussians[][] {{q, p}, {q, fullP}, {fullQ, p}, {q, p.full()}}) {
          double[] kl = engine.pairwise(pair[0], pair[1], new double[20]);
          for (int k = 0; k < kl.length; k++) {
            assertThat(kl[k])
                .as("%s, %s", pair[0], pair[1])
                .isCloseTo(expected[k], within(1e-10 * expected[k]));
          }
        }
      }
    }
  }

  private static double[] scales(ScaleKind kind, double[] std) {
    return Arrays.stream(std)
        .map(s ->
            switch (kind) {
              case VARIANCE -> s * s;
              case LOG_VARIANCE -> 2 * Math.log(s);
              case PRECISION -> 1 / (s * s);
              default -> s;
            })
        .toArray();
  }

  /** Vectors take alike scales of one kind, of each otherwise; scales of two kinds, or beyond a quarter, are taken one by one. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void alikeOfKinds(Backend backend) {
    int d = 70;
    List<ScaleKind> kinds =
        List.of(ScaleKind.STD, ScaleKind.VARIANCE, ScaleKind.LOG_VARIANCE, ScaleKind.PRECISION);
    Random random = new Random(6);
    try (KlEngine engine = Engines.on(backend)) {
      for (double by : new double[] {1e-3, 1e-6, 1e-9}) {
        for (ScaleKind ofQ : kinds) {
          for (ScaleKind ofP : kinds) {
            Arrays3 made = random(2, d, 3, Data.USUAL, random);
            double[] std = moved(made.std, by, random);
            std[3] *=
                by == 1e-3 && ofQ == ofP ? 1.09 : 1; // a variance 0.19 greater, the series' end
            std[d + 7] *= by == 1e-6 ? 1.3 : 1;
            LowRankGaussians p =
                LowRankGaussians.of(ofP, made.mean, made.factor, scales(ofP, made.std), d);
            LowRankGaussians q =
                LowRankGaussians.of(
                    ofQ,
                    moved(made.mean, by, random),
                    moved(made.factor, by, random),
                    scales(ofQ, std),
                    d);
            for (int i = 0; i < 2; i++) {
              Gaussians row = q.slice(i, i + 1);
              LowRankGaussians column = (LowRankGaussians) p.slice(i, i + 1);
              double[] kl = engine.pairwise(row, column, new double[1]);
              check((LowRankGaussians) row, column, kl, true);
            }
          }
        }
      }
    }
  }

  private static double[] means(Gaussians g) {
    double[] means = new double[g.size() * g.dimension()];
    for (int i = 0; i < g.size(); i++) {
      System.arraycopy(g.mean(i), 0, means, i * g.dimension(), g.dimension());
    }
    return means;
  }

  private static double[] covariances(Gaussians g) {
    int length = g.dimension() * g.dimension();
    double[] covariances = new double[g.size() * length];
    for (int i = 0; i < g.size(); i++) {
      System.arraycopy(g.covariance(i), 0, covariances, i * length, length);
    }
    return covariances;
  }

  /** A diagonal batch is one of rank 0, and rank 0 is a diagonal batch. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void rankZeroIsDiagonal(Backend backend) {
    int d = 21;
    Arrays3 made = random(3, d, 0, Data.USUAL, new Random(1));
    LowRankGaussians q = made.gaussians(true, d);
    DiagonalGaussians diagonal = DiagonalGaussians.ofStd(made.mean, made.std, d);
    LowRankGaussians p = usual(3, d, 5, 2);
    assertThat(q.rank()).isZero();
    try (KlEngine engine = Engines.on(backend)) {
      assertThat(engine.pairwise(q, p, new double[9]))
          .isEqualTo(engine.pairwise(diagonal, p, new double[9]));
      assertThat(engine.pairwise(p, q, new double[9]))
          .isEqualTo(engine.pairwise(p, diagonal, new double[9]));
      double[] exact = engine.pairwise(diagonal, diagonal, new double[9]);
      double[] kl = engine.pairwise(q, q, new double[9]);
      for (int k = 0; k < 9; k++) {
        assertThat(kl[k]).isCloseTo(exact[k], within(1e-12 * exact[k]));
      }
    }
  }

  /** Turned factors make the same covariances, up to their roundings. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void turnedFactors(Backend backend) {
    int d = 30;
    Arrays3 made = random(1, d, 2, Data.USUAL, new Random(1));
    double[] turned = made.factor.clone();
    for (int h = 0; h < d; h++) {
      turned[2 * h] = Math.cos(1) * made.factor[2 * h] + Math.sin(1) * made.factor[2 * h + 1];
      turned[2 * h + 1] = Math.cos(1) * made.factor[2 * h + 1] - Math.sin(1) * made.factor[2 * h];
    }
    LowRankGaussians q = made.gaussians(true, d);
    LowRankGaussians p = new Arrays3(made.mean, turned, made.std).gaussians(true, d);
    try (KlEngine engine = Engines.on(backend)) {
      assertThat(engine.pairwise(q, p, new double[1])[0]).isBetween(0.0, 1e-27);
    }
  }

  /** Proportional columns whose squares are 1e16 and more: the factor's pivots, 1 and more, are less than their roundings. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void proportionalColumnsFarAboveTheDiagonalAreNeverNaN(Backend backend) {
    int n = 6;
    int d = 5;
    for (double by : new double[] {1e6, 1e7, 3e7, 1e8}) {
      Random random = new Random(3);
      Arrays3 made = random(n, d, 3, Data.USUAL, random);
      for (int k = 0; k < made.factor.length; k++) {
        made.factor[k] =
            by
                * (k % 3 == 0
                    ? random.nextGaussian()
                    : made.factor[k - k % 3] / by * (1 + 0.3 * (k % 3)));
      }
      LowRankGaussians g = made.gaussians(true, d);
      DiagonalGaussians diagonal = DiagonalGaussians.ofStd(made.mean, made.std, d);
      try (KlEngine engine = Engines.on(backend)) {
        for (Gaussians[] pair : new Gaussians[][] {{g, g}, {diagonal, g}, {g, diagonal}}) {
          for (double kl : engine.pairwise(pair[0], pair[1], new double[n * n])) {
            assertThat(kl).as("%s, %s, %s", by, pair[0], pair[1]).isGreaterThanOrEqualTo(0);
          }
        }
        for (double kl : engine.toStandardNormal(g, new double[n])) {
          assertThat(kl).as("%s", by).isGreaterThanOrEqualTo(0);
        }
      }
    }
  }

  /** A column of U is a small multiple of another, and q's moves across both: M⁻¹K, of products up to K, is as small as the square of the multiple there. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void movesAcrossProportionalColumns(Backend backend) {
    double[][] cases = {{1e4, 1e-2, 2e-5}, {1e4, 1e-2, 2.5e-5}, {10, 1e-5, 8e-4}, {10, 1e-5, 1e-3}};
    try (KlEngine engine = Engines.on(backend)) {
      for (double[] c : cases) {
        double large = 1.1 * Math.sqrt(c[0] / c[1]);
        double small = 1.07 * Math.sqrt(c[0]);
        double[] u = {large, small, 0, 0, 0, 0};
        double[] w = {large, small, 0, c[2], 0, 0.7 * c[2]};
        LowRankGaussians p = LowRankGaussians.of(ScaleKind.VARIANCE, new double[3], u, ones(3), 3);
        LowRankGaussians q = LowRankGaussians.of(ScaleKind.VARIANCE, new double[3], w, ones(3), 3);
        check(q, p, engine.pairwise(q, p, new double[1]), true);
        check(p, q, engine.pairwise(p, q, new double[1]), true);
      }
    }
  }

  @Test
  void readsBackWhatItWasGiven() {
    int d = 7;
    Arrays3 made = random(5, d, 3, Data.USUAL, new Random(1));
    LowRankGaussians g = made.gaussians(true, d);
    assertThat(g.mean(2)).isEqualTo(Arrays.copyOfRange(made.mean, 2 * d, 3 * d));
    assertThat(g.scale(2)).isEqualTo(Arrays.copyOfRange(made.std, 2 * d, 3 * d));
    assertThat(g.factor(2)).isEqualTo(Arrays.copyOfRange(made.factor, 6 * d, 9 * d));
    LowRankGaussians picked = (LowRankGaussians) g.select(4, 2);
    assertThat(picked.factor(1)).isEqualTo(g.factor(2));
    assertThat(picked.rank()).isEqualTo(3);
    assertThat(g).hasToString("LowRankGaussians[5 x 7, rank 3, double, STD]");
    double sum = made.std[0] * made.std[0];
    for (int k = 0; k < 3; k++) {
      sum += made.factor[k] * made.factor[k];
    }
    assertThat(g.covariance(0)[0]).isCloseTo(sum, within(1e-15));
    assertThat(g.memoryBytes()).isGreaterThanOrEqualTo(8L * 5 * (2 * d + 3 * d));
    LowRankGaussians tied =
        LowRankGaussians.of(ScaleKind.STD, made.mean, made.factor, Arrays.copyOf(made.std, d), d);
    assertThat(g.memoryBytes() - tied.memoryBytes()).isEqualTo(8L * 4 * d);
    assertThat(tied.scale(4)).isEqualTo(g.scale(0));
    assertThat(((LowRankGaussians) tied.select(4, 2)).full().covariance(1)[0])
        .isEqualTo(tied.covariance(2)[0]);
  }

  @Test
  void segmentsMakeTheSameBatch() {
    int d = 7;
    Arrays3 made = random(5, d, 3, Data.USUAL, new Random(1));
    LowRankGaussians g =
        LowRankGaussians.of(
            ScaleKind.STD,
            MemorySegment.ofArray(made.mean),
            ValueLayout.JAVA_DOUBLE,
            MemorySegment.ofArray(Batch.narrowed(made.factor)),
            ValueLayout.JAVA_FLOAT,
            MemorySegment.ofArray(made.std),
            ValueLayout.JAVA_DOUBLE,
            d,
            ScalePolicy.STRICT);
    assertThat(g.isDouble()).isTrue();
    assertThat(g.factor(4)[20]).isEqualTo((float) made.factor[104]);
  }

  @Test
  void invalidInputIsNamed() {
    double[] two = {1, 1};
    assertThatThrownBy(() ->
            LowRankGaussians.of(
                ScaleKind.STD,
                new double[4],
                new double[] {0, 0, 0, Double.NaN},
                new double[] {1, 1, 1, 1},
                2))
        .isInstanceOf(InvalidGaussianException.class)
        .hasMessageContaining("factor[1][1][0]")
        .hasMessageContaining("NaN");
    assertThatThrownBy(() -> LowRankGaussians.of(ScaleKind.STD, two, two, new double[] {1, 0}, 2))
        .isInstanceOf(InvalidGaussianException.class)
        .hasMessageContaining("std[0][1]");
    assertThatThrownBy(
            () -> LowRankGaussians.of(ScaleKind.STD, two, two, new double[] {1, 1e-200}, 2))
        .isInstanceOf(InvalidGaussianException.class)
        .hasMessage(
            "factor[0][1][0] (Gaussian 0, dimension 1, column 0) is 1.0 beside std 1.0E-200, of variance v = 0.0, below the least double: Σ_h W_h²/v_h is beyond 2^60; give a variance of at least 3.5e-18 there, or full covariances");
    assertThatThrownBy(() ->
            LowRankGaussians.of(
                ScaleKind.VARIANCE, two, new double[] {1, 8}, new double[] {1, 1e-17}, 2))
        .hasMessageContaining("is 8.0 beside variance 1.0E-17, of variance v = 1.0E-17: ")
        .hasMessageContaining("at least 2.2e-16 there");
    assertThat(LowRankGaussians.of(ScaleKind.VARIANCE, two, two, new double[] {1, 3.5e-18}, 2))
        .isNotNull();
    refused(
        () -> LowRankGaussians.of(ScaleKind.STD, two, new double[3], two, 2),
        "[N, D, r] = [1, 2, r]");
    refused(() -> LowRankGaussians.of(ScaleKind.COVARIANCE, two, two, two, 2), "STD, VARIANCE");
    refused(
        () -> LowRankGaussians.of(ScaleKind.STD, new double[0], two, two, 2),
        "at least one Gaussian");
  }

  @Test
  void whatDoesNotTakeThemSaysWhatToDo() {
    LowRankGaussians g = usual(3, 4, 2, 1);
    for (Divergence divergence :
        new Divergence[] {
          Divergence.BHATTACHARYYA,
          Divergence.WASSERSTEIN_2,
          Divergence.HELLINGER,
          Divergence.renyi(2)
        }) {
      try (KlEngine engine = KlEngine.builder().divergence(divergence).build()) {
        assertThatIllegalArgumentException()
            .isThrownBy(() -> engine.pairwise(g, g))
            .withMessageContaining("q has low-rank covariances")
            .withMessageContaining("LowRankGaussians.full()");
        assertThat(engine.pairwise(g.full(), g.full())).hasSize(9);
      }
    }
    try (KlIndex index = KlIndex.builder(4).build();
        KlEngine engine = KlEngine.builder().build()) {
      refused(() -> index.add(new long[] {1, 2, 3}, g), "an index does not take");
      DiagonalGaussians points = DiagonalGaussians.ofPoints(new double[4], 4);
      refused(() -> engine.logDensity(points, g), "a density does not take");
      refused(
          () -> engine.logLikelihood(points, Mixtures.of(g)),
          "p has low-rank covariances, which a density does not take");
    }
  }

  /** Of floats, a row has the same bits whatever rows before it needed: near-duplicates go by products in double first, and then usual ones do, too. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void bitsDoNotDependOnTheProductThatIsTriedFirst(Backend backend) {
    int n = 70;
    int d = 64;
    int r = 3;
    Arrays3 all = random(n, d, r, Data.USUAL, new Random(8));
    Random random = new Random(9);
    Arrays3 moved =
        new Arrays3(
            moved(all.mean, 1e-2, random),
            moved(all.factor, 1e-2, random),
            moved(all.std, 1e-2, random));
    for (int i = 1; i < n / 2; i++) { // half of the rows are near row 0
      System.arraycopy(moved.mean, 0, all.mean, i * d, d);
      System.arraycopy(moved.factor, i % 2 * d * r, all.factor, i * d * r, d * r);
      System.arraycopy(moved.std, 0, all.std, i * d, d);
    }
    LowRankGaussians g = all.gaussians(false, d);
    try (KlEngine engine = Engines.on(backend)) {
      double[] kl = engine.pairwise(g, g, new double[n * n]);
      check(g, g, kl, false);
      for (int i = 0; i < n; i++) {
        assertThat(engine.pairwise(g.slice(i, i + 1), g, new double[n]))
            .isEqualTo(Arrays.copyOfRange(kl, i * n, (i + 1) * n));
      }
    }
  }

  /** Kernels add up near pairs as pairs do, to the same bits, of few columns after many and after few. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void nearPairsOfFewAndManyColumnsInTurn(Backend backend) {
    int d = 70;
    int[] ranks = {2, 3, 1, 9, 2, 8};
    Random random = new Random(3);
    int[] rows = {0, 0, 1, 1};
    int[] columns = {0, 1, 0, 1};
    for (Divergence divergence : List.of(Divergence.KL, Divergence.JEFFREYS)) {
      try (KlEngine engine = KlEngine.builder().divergence(divergence).backend(backend).build()) {
        for (int r : ranks) {
          Arrays3 one = random(2, d, r, Data.USUAL, random);
          LowRankGaussians q = one.gaussians(true, d);
          LowRankGaussians p =
              new Arrays3(
                      moved(one.mean, 1e-5, random),
                      moved(one.factor, 1e-5, random),
                      moved(one.std, 1e-5, random))
                  .gaussians(true, d);
          double[] kl = engine.pairwise(q, p, new double[4]);
          if (divergence == Divergence.KL) {
            check(q, p, kl, true);
          }
          double[] pairs = new double[4];
          engine.pairs(q, rows, p, columns, pairs);
          assertThat(kl[0]).isEqualTo(pairs[0]);
          assertThat(kl[3]).isEqualTo(pairs[3]);
        }
      }
    }
  }

  /** What is known of a p is of the greater rank of both: another q of another rank has it made anew. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void nearPairsOfOnePAndOtherRanksInTurn(Backend backend) {
    int d = 70;
    Random random = new Random(4);
    Arrays3 one = random(1, d, 3, Data.USUAL, random);
    LowRankGaussians p = one.gaussians(true, d);
    try (KlEngine engine = Engines.on(backend)) {
      for (int r : new int[] {3, 5, 4, 3, 9}) {
        double[] w = random.doubles((long) d * r, -1e-5, 1e-5).toArray();
        for (int k = 0; k < 3 * d; k++) {
          w[k / 3 * r + k % 3] += one.factor[k];
        }
        double[] std = moved(one.std, 1e-5, random);
        LowRankGaussians q = LowRankGaussians.of(ScaleKind.STD, one.mean, w, std, d);
        check(q, p, engine.pairwise(q, p, new double[1]), true);
        check(p, q, engine.pairwise(p, q, new double[1]), true);
        double[] pair = new double[1];
        engine.pairs(q, new int[1], p, new int[1], pair);
        check(q, p, pair, true);
      }
    }
  }

  /** What laws do not try: barycenters, transport, and divergences from mixtures of another form. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void mixturesAreThoseOfFullCovariances(Backend backend) {
    int d = 6;
    LowRankGaussians g = usual(6, d, 2, 1);
    double[] weights = {0.25, 0.75, 0.4, 0.3, 0.2, 0.1};
    Mixtures q = Mixtures.of(g, weights, new int[] {0, 2, 6});
    Mixtures full = Mixtures.of(g.full(), weights, new int[] {0, 2, 6});
    Mixtures diagonal = Mixtures.of(DiagonalGaussians.ofVariance(new double[d], ones(d), d));
    assertThat(q.components()).isSameAs(g);
    for (Divergence divergence :
        new Divergence[] {Divergence.KL, Divergence.REVERSE_KL, Divergence.SQUARED_WASSERSTEIN_2}) {
      assertThat(covariances(q.barycenters(divergence)))
          .isEqualTo(covariances(full.barycenters(divergence)));
      try (KlEngine engine = KlEngine.builder().divergence(divergence).build()) {
        assertClose(q.transport(q, engine), full.transport(full, engine));
      }
    }
    try (KlEngine engine = Engines.on(backend)) {
      for (Mixtures[] pair :
          new Mixtures[][] {
            {q, diagonal, full, diagonal}, {diagonal, q, diagonal, full}, {q, full, full, full}
          }) {
        MixtureKl kl = MixtureKl.of(pair[0], pair[1]);
        MixtureKl expected = MixtureKl.of(pair[2], pair[3]);
        assertClose(kl.lowerBound(engine), expected.lowerBound(engine));
        assertClose(kl.variational(engine), expected.variational(engine));
        assertClose(kl.productOfGaussians(), expected.productOfGaussians());
        assertClose(kl.matchedPairs(engine), expected.matchedPairs(engine));
        assertClose(kl.upperBound(engine), expected.upperBound(engine));
        MonteCarloEstimates samples = kl.monteCarlo(20, 1);
        MonteCarloEstimates other = expected.monteCarlo(20, 1);
        for (int k = 0; k < pair[0].size() * pair[1].size(); k++) {
          assertThat(samples.estimate(k)).isEqualTo(other.estimate(k));
          assertThat(samples.standardError(k)).isEqualTo(other.standardError(k));
        }
      }
    }
  }

  private static double[] ones(int length) {
    double[] ones = new double[length];
    Arrays.fill(ones, 1);
    return ones;
  }

  private static void assertClose(double[] actual, double[] expected) {
    assertThat(actual).hasSameSizeAs(expected);
    for (int k = 0; k < actual.length; k++) {
      assertThat(actual[k])
          .isCloseTo(expected[k], within(1e-9 * Math.max(1, Math.abs(expected[k]))));
    }
  }

  /** {@code N((±1, 0), diag(2, 1))} merge into {@code N(0, diag(3, 1))}, at ½ ln 3/2, of full covariances, in the caller's arrays, too. */
  @Test
  void mergesTwoKnownGaussians() {
    LowRankGaussians g =
        LowRankGaussians.of(
            ScaleKind.VARIANCE, new double[] {-1, 0, 1, 0}, new double[] {1, 0, 1, 0}, ones(4), 2);
    MixtureReduction reduced = MixtureReduction.runnalls(Mixtures.of(g), 1);
    Gaussians one = reduced.mixtures().components();
    assertThat(one).isInstanceOf(FullGaussians.class);
    assertThat(one.mean(0)).containsExactly(new double[] {0, 0}, within(1e-15));
    assertThat(one.covariance(0)).containsExactly(new double[] {3, 0, 0, 1}, within(1e-15));
    assertThat(reduced.totalCost()).isCloseTo(0.5 * Math.log(1.5), within(1e-15));
    double[] into = new double[4];
    MixtureReduction.reducer(1)
        .reduce(Mixtures.of(g), new double[1], new double[2], into, new int[2]);
    assertThat(into).isEqualTo(one.covariance(0));
  }

  /** Too large for full covariances, components have the bounds that need none. */
  @Test
  void componentsOfManyDimensions() {
    int d = 12_000;
    LowRankGaussians g =
        LowRankGaussians.of(ScaleKind.VARIANCE, new double[d], ones(d), ones(d), d);
    Mixtures one = Mixtures.of(g);
    double entropy = 0.5 * d * (1 + Math.log(2 * Math.PI)) + 0.5 * Math.log1p(d);
    assertThat(one.componentEntropies()[0]).isCloseTo(entropy, within(1e-12 * entropy));
    try (KlEngine engine = KlEngine.builder().build()) {
      assertThat(one.entropyUpperBound(engine)[0]).isCloseTo(entropy, within(1e-12 * entropy));
      assertThat(MixtureKl.of(one, one).upperBound(engine)).containsExactly(0);
    }
    refused(
        () -> MixtureReduction.runnalls(one, 1),
        "written out as full covariances here: 1 of dimension 12000");
    Mixtures diagonal = Mixtures.of(DiagonalGaussians.ofStd(new double[d], ones(d), d));
    for (MixtureKl kl : List.of(MixtureKl.of(diagonal, one), MixtureKl.of(one, diagonal))) {
      refused(kl::productOfGaussians, "written out as full covariances here: 1 of dimension 12000");
    }
  }

  /** v_q/v_p counts where a kernel in double has v_p = ∞ or v_q without its digits. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void variancesBeyondDouble(Backend backend) {
    DiagonalGaussians large = DiagonalGaussians.ofStd(new double[] {0}, new double[] {1e155}, 1);
    DiagonalGaussians less = DiagonalGaussians.ofStd(new double[] {0}, new double[] {1e154}, 1);
    LowRankGaussians q =
        LowRankGaussians.of(
            ScaleKind.STD, new double[] {0}, new double[0], new double[] {1e154}, 1);
    LowRankGaussians small =
        LowRankGaussians.of(
            ScaleKind.STD, new double[2], new double[] {1, 1e-160}, new double[] {1, 1e-160}, 2);
    LowRankGaussians one =
        LowRankGaussians.of(
            ScaleKind.STD, new double[2], new double[] {1, 1}, new double[] {1, 1}, 2);
    double[] matrix = new double[1];
    double[] pair = new double[1];
    try (KlEngine engine = KlEngine.builder().backend(backend).build()) {
      engine.pairwise(q, large, matrix);
      engine.pairwise(less, large, pair);
      assertThat(matrix[0])
          .isCloseTo(1.8075850929940457, within(1e-12))
          .isCloseTo(pair[0], within(1e-12));
      engine.pairwise(small, one, matrix);
      engine.aligned(small, one, pair);
      assertThat(matrix[0]).isCloseTo(pair[0], within(1e-10));
      for (double std : new double[] {1e154, 1e155, 1e300, 1e-155, 1e-160}) {
        for (double by : new double[] {1, 1.0001, 1.5}) {
          for (int ranks = 0; ranks < 4; ranks++) {
            double[] u = ranks % 2 == 0 ? new double[0] : new double[] {std};
            double[] w = ranks < 2 ? new double[0] : new double[] {0.5 * std};
            LowRankGaussians p =
                LowRankGaussians.of(ScaleKind.STD, new double[1], u, new double[] {std}, 1);
            LowRankGaussians moved =
                LowRankGaussians.of(
                    ScaleKind.STD, new double[] {0.1 * std}, w, new double[] {by * std}, 1);
            check(moved, p, engine.pairwise(moved, p, new double[1]), true);
          }
        }
      }
    }
  }

  /** What an interrupted call was about to recompute is not recomputed by the next, whose bits that would change. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void nothingIsLeftOfAnInterruptedCall(Backend backend) throws InterruptedException {
    int d = 512;
    int r = 8;
    Random random = new Random(1);
    Arrays3 one = random(1, d, r, Data.USUAL, random);
    Gaussians alike =
        new Arrays3(
                moved(repeated(one.mean, 300), 1e-6, random),
                moved(repeated(one.factor, 300), 1e-6, random),
                repeated(one.std, 300))
            .gaussians(false, d);
    Gaussians usual = random(20, d, r, Data.USUAL, random).gaussians(false, d);
    try (KlEngine engine = KlEngine.builder().backend(backend).threads(1).build()) {
      engine.warmUp(usual, usual);
      float[] expected = engine.pairwise(usual, usual);
      Thread caller = Thread.currentThread();
      Thread other =
          Thread.ofVirtual()
              .start(() -> {
                LockSupport.parkNanos(100_000_000);
                caller.interrupt();
              });
      assertThatThrownBy(() -> engine.pairwise(alike, alike)) // takes seconds
          .isInstanceOf(CancellationException.class);
      assertThat(Thread.interrupted()).isTrue();
      other.join();
      assertThat(engine.pairwise(usual, usual)).isEqualTo(expected);
    }
  }

  private static double[] repeated(double[] one, int n) {
    double[] all = new double[one.length * n];
    Arrays.setAll(all, k -> one[k % one.length]);
    return all;
  }
}
