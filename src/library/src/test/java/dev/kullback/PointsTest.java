package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Batch.Kind;
import dev.kullback.testing.BigFloat;
import dev.kullback.testing.Check;
import dev.kullback.testing.Check.Precision;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import dev.kullback.testing.FullOracle;
import dev.kullback.testing.Oracle;
import dev.kullback.testing.Regime;
import dev.kullback.testing.WarmCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.math.BigDecimal;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.IntFunction;
import java.util.function.IntToDoubleFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Densities and Mahalanobis distances of points, against exact arithmetic and published programs. */
@Tag("vector")
class PointsTest {
  private static final int[] DIMENSIONS = {1, 2, 3, 33, 64, 65, 129};

  /** ½ ln 2π to 40 digits, in two parts. */
  private static final BigFloat HALF_LOG_2_PI =
      ofDecimal("0.9189385332046727417803297364056176398614");

  private static final double[] TINY = {1e-3, 1e-8, 1e-20};

  private static BigFloat ofDecimal(String digits) {
    BigDecimal exact = new BigDecimal(digits);
    double high = exact.doubleValue();
    return BigFloat.of(high).plus(BigFloat.of(exact.subtract(new BigDecimal(high)).doubleValue()));
  }

  /** R and the log-density, exact, and what a log-density's error is relative to. */
  private record Exact(double[] squares, double[] logDensity, double[] size) {
    static Exact of(int n, int m, int d, Entry squares, IntFunction<BigFloat> logDeterminant) {
      double[] r = new double[n * m];
      double[] log = new double[n * m];
      double[] size = new double[n * m];
      for (int at = 0; at < n * m; at++) {
        BigFloat exact = squares.of(at / m, at % m);
        BigFloat det = logDeterminant.apply(at % m).half();
        r[at] = exact.toDouble();
        log[at] =
            exact.half().negate().minus(det).minus(HALF_LOG_2_PI.times(BigFloat.of(d))).toDouble();
        size[at] = 0.5 * r[at] + Math.abs(det.toDouble()) + d;
      }
      return new Exact(r, log, size);
    }

    /** Checks log-densities to a contract; those below what a type holds are −∞. */
    void check(String what, double contract, double largest, double[] actual) {
      for (int at = 0; at < actual.length; at++) {
        double expected = logDensity[at];
        boolean isRight =
            actual[at] == Double.NEGATIVE_INFINITY
                ? -expected > largest * (1 - contract)
                : -expected > largest
                    ? actual[at] < -largest * (1 - contract)
                    : Math.abs(actual[at] - expected) <= contract * size[at];
        assertThat(isRight)
            .as("%s: entry %d is %s instead of %s", what, at, actual[at], expected)
            .isTrue();
      }
    }
  }

  private interface Entry {
    BigFloat of(int i, int j);
  }

  private static DiagonalGaussians points(Batch q) {
    return q.isDouble()
        ? DiagonalGaussians.ofPoints(q.mean(), q.dimension())
        : DiagonalGaussians.ofPoints(Batch.narrowed(q.mean()), q.dimension());
  }

  static Stream<Arguments> cases() {
    return Stream.of(Regime.values())
        .flatMap(regime ->
            regime.kindPairs().stream()
                .filter(kinds -> kinds.q() == kinds.p())
                .flatMap(kinds ->
                    Stream.of(false, true)
                        .filter(regime::appliesTo)
                        .map(isDouble -> Arguments.of(regime, kinds, isDouble))));
  }

  @ParameterizedTest(name = "{0}, {1}, double: {2}")
  @MethodSource("cases")
  void diagonalOnesMeetTheContract(Regime regime, Regime.Pair kinds, boolean isDouble) {
    int turn = regime.ordinal() + kinds.p().ordinal() + (isDouble ? 1 : 0);
    for (int k = 0; k < 2; k++) {
      int d = DIMENSIONS[(turn + 3 * k) % DIMENSIONS.length];
      Regime.Case drawn = regime.draw(kinds, isDouble, 5, 35, d);
      Batch q = drawn.q();
      Batch p = drawn.p();
      Oracle oracle = new Oracle(q, p);
      Exact exact = Exact.of(q.size(), p.size(), d, oracle::mahalanobis, oracle::logDeterminant);
      DiagonalGaussians references = p.gaussians();
      for (Backend backend : Engines.backends().toList()) {
        check("%s, D=%d, %s".formatted(regime, d, backend), backend, points(q), references, exact);
      }
    }
  }

  private static void check(
      String what, Backend backend, Gaussians points, Gaussians p, Exact exact) {
    boolean isDouble = points.isDouble() || p.isDouble();
    int m = p.size();
    try (KlEngine engine = Engines.on(backend)) {
      Check.matrix(what, m, exact.squares, engine.mahalanobis(points, p));
      double[] values = engine.mahalanobis(points, p, new double[exact.squares.length]);
      Check.matrix(what, m, exact.squares, values, isDouble ? Precision.DOUBLE : Precision.WIDENED);
      exact.check(what, 1e-5, Float.MAX_VALUE, Batch.widened(engine.logDensity(points, p)));
      double[] logs = engine.logDensity(points, p, new double[values.length]);
      exact.check(what, isDouble ? 1e-12 : 1e-5, Double.MAX_VALUE, logs);
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void fullOnesMeetTheContract(Backend backend) {
    for (int d : new int[] {1, 2, 3, 8, 33}) {
      for (boolean isDouble : new boolean[] {false, true}) {
        for (double condition : isDouble ? new double[] {1, 1e3, 1e8} : new double[] {1, 1e4}) {
          int n = d < 30 ? 19 : 5;
          FullBatch q = FullBatch.random(isDouble, n, d, 1, 0, new Random(d));
          FullBatch p = FullBatch.random(isDouble, n + 2, d, condition, 0, new Random(d + 1L));
          FullOracle oracle = new FullOracle(q, p);
          Exact exact = Exact.of(n, n + 2, d, oracle::mahalanobis, oracle::logDeterminant);
          Gaussians points =
              isDouble
                  ? DiagonalGaussians.ofPoints(q.mean(), d)
                  : DiagonalGaussians.ofPoints(Batch.narrowed(q.mean()), d);
          String what = "%s, D=%d, double: %s, %.0e".formatted(backend, d, isDouble, condition);
          double most = IntStream.range(0, n + 2).mapToDouble(oracle::condition).max().orElse(1);
          double contract = isDouble ? 1e-12 * Math.max(1, most) : 1e-5;
          try (KlEngine engine = Engines.on(backend)) {
            double[] out = new double[n * (n + 2)];
            engine.mahalanobis(points, p.gaussians(), out);
            Check.matrix(
                what,
                n + 2,
                exact.squares,
                out,
                new Precision(contract, Double.MIN_NORMAL, Double.MAX_VALUE));
            engine.logDensity(points, p.gaussians(), out);
            exact.check(what, contract, Double.MAX_VALUE, out);
          }
        }
      }
    }
  }

  /** Far points, and points as near to a mean as to leave the matrix product nothing. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void fullOnesMeetTheContractNearAndFar(Backend backend) {
    int d = 5;
    FullBatch p = FullBatch.random(true, 20, d, 10, 0, new Random(3));
    double[] x = new double[20 * d];
    for (int k = 0; k < x.length; k++) {
      int row = k / d;
      x[k] =
          row < 6
              ? p.mean()[k]
              : row < 12
                  ? p.mean()[k] + TINY[row % 3] * Math.sin(k)
                  : Math.pow(10, 20 * (row - 11)) * Math.cos(k);
    }
    FullBatch q = new FullBatch(p.kind(), true, x, p.matrix(), d);
    FullOracle oracle = new FullOracle(q, p);
    Exact exact = Exact.of(20, 20, d, oracle::mahalanobis, oracle::logDeterminant);
    double most = IntStream.range(0, 20).mapToDouble(oracle::condition).max().orElse(1);
    try (KlEngine engine = Engines.on(backend)) {
      Gaussians points = DiagonalGaussians.ofPoints(x, d);
      double[] out = engine.mahalanobis(points, p.gaussians(), new double[400]);
      double contract = 1e-12 * Math.max(1, most);
      Check.matrix(
          "near and far",
          20,
          exact.squares,
          out,
          new Precision(contract, Double.MIN_NORMAL, Double.MAX_VALUE));
      engine.logDensity(points, p.gaussians(), out);
      exact.check("near and far", contract, Double.MAX_VALUE, out);
    }
  }

  /** What {@code score_samples} and {@code predict_proba} of scikit-learn 1.9.1 are, by src/test/witness/scikit_learn.py. */
  @ParameterizedTest
  @CsvSource({
    "COVARIANCE, 0.9 0.4 0.4 0.3 2 0.5 0.5 1 0.25 -0.1 -0.1 4,"
        + "-2.585638281781079 -2.0804886568827703 -4.421555531482285 -430.58768858962276,"
        + "0.0001794157570848759 0.9979517926036442 0.0018687916392708807 0.8335256790254499 0.16647431954001277 1.4345373123449295e-09"
        + " 1.9577777570841164e-52 0.002099338344092999 0.9979006616559072 0 1 0",
    "COVARIANCE, 2 0.5 0.5 1 2 0.5 0.5 1 2 0.5 0.5 1,"
        + "-2.466732543723996 -3.0201954313462056 -4.480610549791678 -402.64683646435327,"
        + "0.11302978390373365 0.8860729052751103 0.0008973108211560664 0.5739503058530536 0.42604621870258563 3.4754443606029716e-06"
        + " 7.041841667079174e-07 0.002227048662432048 0.9977722471534008 0.999999999999261 7.335709123822295e-13 7.133587783801752e-39",
    "VARIANCE, 0.9 0.3 2 1 0.25 4,"
        + "-2.5416483102461798 -2.404587880946865 -4.4242873589792175 -407.15445428593495,"
        + "0.10539093212838994 0.8933239698701855 0.0012850980014245427 0.6649972044657341 0.33500279463823207 8.960335789561252e-10"
        + " 1.1294402247955931e-13 0.023988831119917987 0.9760111688799686 1.4092487056645515e-203 1 0",
    "VARIANCE, 0.5 2 0.25,"
        + "-2.805019973352183 -2.4908299074387292 -3.4672286435496513 -405.25102787621495,"
        + "0.17799420709724936 0.8220057384539097 5.444884098693135e-08 0.7027919762756345 0.29720802372436567 9.789763846704494e-18"
        + " 3.541818938134234e-11 0.06180325582428335 0.9381967441402984 0 1 0"
  })
  void isWhatScikitLearnSays(ScaleKind kind, String scales, String logs, String shares) {
    double[] means = {1, -1, 0, 0, -1.5, 2.5};
    Mixtures mixture =
        Mixtures.of(
            Gaussians.of(kind, means, Batch.numbers(scales), 2), new double[] {0.25, 0.625, 0.125});
    Gaussians points = DiagonalGaussians.ofPoints(new double[] {0, 0, 1.5, -0.75, -2, 3, 40, 3}, 2);
    for (Backend backend : Engines.backends().toList()) {
      try (KlEngine engine = Engines.on(backend)) {
        double[] found = engine.logLikelihood(points, mixture);
        for (int i = 0; i < found.length; i++) {
          double expected = Batch.numbers(logs)[i];
          assertThat(found[i]).isCloseTo(expected, within(-1e-12 * expected));
        }
        assertThat(engine.responsibilities(points, mixture, new double[12]))
            .containsExactly(Batch.numbers(shares), within(1e-12));
      }
    }
  }

  /** Of many components, some of which do not count, and of points so far that no density is above 0. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void responsibilitiesSumToOne(Backend backend) {
    int n = 40;
    int m = 5000;
    int d = 3;
    Random random = new Random(5);
    Batch p = Batch.random(false, m, d, 0, random);
    Batch q = Batch.random(false, n, d, 0, random);
    float[] x = Batch.narrowed(q.mean());
    for (int h = 0; h < d; h++) {
      x[h] = 1e30f;
      x[d + h] = 1e4f;
    }
    double[] weights = random.doubles(m).toArray();
    Arrays.fill(weights, 100, 200, 0);
    Mixtures mixture = Mixtures.unnormalized(p.gaussians(), weights, new int[] {0, 1000, 1001, m});
    try (KlEngine engine = Engines.on(backend)) {
      Gaussians points = DiagonalGaussians.ofPoints(x, d);
      float[] floats = engine.responsibilities(points, mixture);
      double[] doubles = engine.responsibilities(points, mixture, new double[n * m]);
      for (int i = 0; i < n; i++) {
        for (int part = 0; part < 3; part++) {
          double single = 0;
          BigDecimal sum = BigDecimal.ZERO;
          for (int j = mixture.offset(part); j < mixture.offset(part + 1); j++) {
            single += floats[i * m + j];
            sum = sum.add(new BigDecimal(doubles[i * m + j]));
            assertThat(doubles[i * m + j]).isBetween(0.0, 1.0);
            assertThat(floats[i * m + j]).isEqualTo((float) doubles[i * m + j]);
          }
          assertThat(single).isCloseTo(1, within(4 * (double) Math.ulp(1f)));
          assertThat(sum.subtract(BigDecimal.ONE).abs().doubleValue())
              .isLessThanOrEqualTo(4 * Math.ulp(1.0));
        }
        assertThat(doubles[i * m + 150]).isZero();
      }
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment out = arena.allocate(4L * n * m + 4).asSlice(1);
        engine.responsibilities(points, mixture, out);
        for (int k = 0; k < n * m; k++) {
          assertThat(out.get(ValueLayout.JAVA_FLOAT_UNALIGNED, 4L * k)).isEqualTo(floats[k]);
        }
      }
    }
  }

  /** Results of float are of log-densities that are not rounded to float: e/(1 + e), and one of two that float has as −∞. */
  @Test
  void responsibilitiesAreRoundedLast() {
    try (KlEngine engine = KlEngine.builder().build()) {
      Mixtures far =
          Mixtures.of(
              DiagonalGaussians.ofStd(new double[] {0, 1e-4}, new double[] {1, 1}, 1),
              new double[] {0.5, 0.5});
      Gaussians point = DiagonalGaussians.ofPoints(new double[] {1e4}, 1);
      assertThat(engine.responsibilities(point, far)[1]).isCloseTo(0.7310586f, within(1e-6f));
      Mixtures narrow =
          Mixtures.of(
              DiagonalGaussians.ofStd(new float[] {0, 0.5f}, new float[] {1e-20f, 1e-20f}, 1),
              new double[] {0.5, 0.5});
      Gaussians one = DiagonalGaussians.ofPoints(new float[] {1}, 1);
      assertThat(engine.responsibilities(one, narrow)).containsExactly(0, 1);
    }
  }

  /** The likelihood is of what has a weight; a narrow component without one takes nothing of its accuracy, nor all densities where it is; mpmath. */
  @Test
  void aNarrowComponentCostsNoAccuracy() {
    double[] mean = {0, 316.1, -316.1, 1};
    double[] l = {1e-100, 1, 1, 1};
    Mixtures mixture =
        Mixtures.of(FullGaussians.ofScaleTril(mean, l, 1), new double[] {0, 1, 0, 0});
    Gaussians point = DiagonalGaussians.ofPoints(new double[] {316.03}, 1);
    try (KlEngine engine = KlEngine.builder().build()) {
      assertThat(engine.logLikelihood(point, mixture)[0])
          .isCloseTo(-0.9213885332046762, within(1e-12));
      Gaussians there = DiagonalGaussians.ofPoints(new double[] {0}, 1);
      assertThat(engine.responsibilities(there, mixture)).containsExactly(0, 1, 0, 0);
    }
  }

  @Test
  void pointsHaveNoVectors() {
    DiagonalGaussians points = DiagonalGaussians.ofPoints(new float[] {1, 2}, 2);
    for (Runnable call :
        List.<Runnable>of(points::toInnerProducts, points::toInnerProductQueries)) {
      assertThatIllegalArgumentException()
          .isThrownBy(call::run)
          .withMessageStartingWith("the batch holds points, which have no divergence");
    }
  }

  /** As many that a band has fewer rows, and blocks of columns end within a mixture. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void likelihoodsOfManyMixtures(Backend backend) {
    int n = 19;
    int m = 9001;
    Batch p = Batch.random(true, m, 2, 0, new Random(1));
    int[] offsets = IntStream.rangeClosed(0, 4500).map(k -> k == 4500 ? m : 2 * k).toArray();
    double[] weights = new double[m];
    Arrays.fill(weights, 0.5);
    Mixtures mixtures = Mixtures.unnormalized(p.gaussians(), weights, offsets);
    Gaussians points = DiagonalGaussians.ofPoints(means(n, 2, 3), 2);
    try (KlEngine engine = Engines.on(backend, 2)) {
      double[] out = engine.logLikelihood(points, mixtures);
      double[] logs = engine.logDensity(points, mixtures.components(), new double[n * m]);
      for (int i = 0; i < n; i++) {
        for (int k = 0; k < 4500; k++) {
          double sum = 0;
          for (int j = offsets[k]; j < offsets[k + 1]; j++) {
            sum += 0.5 * Math.exp(logs[i * m + j]);
          }
          assertThat(out[i * 4500 + k]).isCloseTo(Math.log(sum), within(1e-11));
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void searchesAreByMahalanobisOrByDensity(Backend backend) {
    int n = 30;
    int m = 300;
    for (int d : new int[] {2, 40}) {
      for (boolean isFull : new boolean[] {false, true}) {
        Batch p = Batch.ofStd(Kind.STD, true, means(m, d, 1), stds(m, d, 2), d);
        Gaussians references = isFull ? FullBatch.of(p).gaussians() : p.gaussians();
        Gaussians points = DiagonalGaussians.ofPoints(means(n, d, 3), d);
        try (KlEngine engine = Engines.on(backend)) {
          double[] squares = engine.mahalanobis(points, references, new double[n * m]);
          double[] logs = engine.logDensity(points, references, new double[n * m]);
          Neighbors near = engine.nearest(points, references, 7);
          Neighbors dense = engine.search(points, references, Query.nearest(7).byLogDensity());
          int[] indices = new int[7 * n];
          double[] values = new double[7 * n];
          engine.search(points, references, Query.nearest(7).byLogDensity(), indices, values);
          double gate = Arrays.stream(squares).sorted().toArray()[n * m / 10] * (1 + 1e-9);
          Neighbors within = engine.within(points, references, gate);
          double least = Arrays.stream(logs).sorted().toArray()[n * m / 2];
          for (int i = 0; i < n; i++) {
            int row = i * m;
            assertRow(near, i, 7, m, j -> squares[row + j]);
            assertRow(dense, i, 7, m, j -> -logs[row + j]);
            for (int r = 0; r < 7; r++) {
              assertThat(indices[7 * i + r]).isEqualTo(dense.indices()[7 * i + r]);
              assertThat(values[7 * i + r]).isEqualTo(dense.values()[7 * i + r]);
            }
            assertThat(Arrays.copyOfRange(within.indices(), within.start(i), within.start(i + 1)))
                .isEqualTo(IntStream.range(0, m).filter(j -> squares[row + j] <= gate).toArray());
          }
          for (double bound : new double[] {least - 1e-9, -least, 1e300}) {
            Neighbors denser = engine.search(points, references, Query.denserThan(bound));
            assertThat(denser.indices().length)
                .as("%s, %s", bound, references)
                .isEqualTo((int) Arrays.stream(logs).filter(x -> x >= bound).count());
            for (int i = 0; i < n; i++) {
              for (int at = denser.start(i); at < denser.start(i + 1); at++) {
                double x = -logs[i * m + denser.indices()[at]];
                assertThat(denser.values()[at]).isCloseTo(x, within(1e-10 * Math.abs(x) + 1e-10));
              }
            }
          }
          if (least < 0) {
            Query query = Query.within(1e-9 - least).byLogDensity();
            assertThat(engine.search(points, references, query).values())
                .containsExactly(
                    engine.search(points, references, Query.denserThan(least - 1e-9)).values());
          }
        }
      }
    }
  }

  private static void assertRow(Neighbors found, int i, int k, int m, IntToDoubleFunction value) {
    int[] expected =
        IntStream.range(0, m)
            .boxed()
            .sorted((a, b) -> Double.compare(value.applyAsDouble(a), value.applyAsDouble(b)))
            .mapToInt(j -> j)
            .limit(k)
            .toArray();
    assertThat(Arrays.copyOfRange(found.indices(), found.start(i), found.start(i + 1)))
        .isEqualTo(expected);
    for (int r = 0; r < k; r++) {
      double x = value.applyAsDouble(expected[r]);
      assertThat(found.values()[found.start(i) + r])
          .isCloseTo(x, within(1e-10 * Math.abs(x) + 1e-10));
    }
  }

  private static double[] means(int n, int d, long seed) {
    return new Random(seed).doubles((long) n * d, -2, 2).toArray();
  }

  private static double[] stds(int n, int d, long seed) {
    return new Random(seed).doubles((long) n * d, 0.2, 2).toArray();
  }

  /** In exact arithmetic the second is nearer by less than double tells; equal ones come by index. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void nearestIsThatOfExactArithmetic(Backend backend) {
    double std = 1.1;
    double other = Math.nextUp(std);
    double[] mean = new double[40];
    double[] scale = new double[40];
    Arrays.fill(scale, std);
    scale[13] = other;
    try (KlEngine engine = Engines.on(backend)) {
      Neighbors found =
          engine.nearest(
              DiagonalGaussians.ofPoints(new double[] {0.3, 0.7, 1, 2}, 4),
              DiagonalGaussians.ofStd(mean, scale, 4),
              10);
      assertThat(found.indices()).containsExactly(3, 0, 1, 2, 4, 5, 6, 7, 8, 9);
    }
  }

  @Test
  void warmCallsAllocateNothing() {
    int d = 16;
    Batch p = Batch.ofStd(Kind.STD, false, means(64, d, 1), stds(64, d, 2), d);
    for (Gaussians references : new Gaussians[] {p.gaussians(), FullBatch.of(p).gaussians()}) {
      Gaussians points = DiagonalGaussians.ofPoints(Batch.narrowed(means(64, d, 3)), d);
      double[] weights = new double[64];
      Arrays.fill(weights, 1.0 / 64);
      Mixtures mixture = Mixtures.of(references, weights);
      float[] out = new float[64 * 64];
      double[] log = new double[64];
      try (KlEngine engine = KlEngine.builder().build()) {
        WarmCalls.allocateNothing(
            "points in " + references,
            50,
            () -> {
              engine.logDensity(points, references, out);
              engine.mahalanobis(points, references, out);
              engine.responsibilities(points, mixture, out);
              engine.logLikelihood(points, mixture, log);
            });
      }
    }
  }

  @Test
  void pointsComeFromSegmentsOfEitherByteOrder() {
    double[] x = means(5, 3, 1);
    try (Arena arena = Arena.ofConfined();
        KlEngine engine = KlEngine.builder().build()) {
      ValueLayout.OfDouble layout =
          ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
      MemorySegment segment = arena.allocate(8 * 15 + 1).asSlice(1);
      for (int k = 0; k < 15; k++) {
        segment.set(layout, 8L * k, x[k]);
      }
      DiagonalGaussians points = DiagonalGaussians.ofPoints(segment, layout, 3);
      Gaussians p = DiagonalGaussians.ofStd(means(4, 3, 2), stds(4, 3, 3), 3);
      assertThat(points.isDouble()).isTrue();
      assertThat(points.mean(2)).containsExactly(x[6], x[7], x[8]);
      assertThat(points.slice(1, 3).mean(1)).containsExactly(x[6], x[7], x[8]);
      assertThat(engine.logDensity(points.slice(1, 3), p, new double[8]))
          .containsExactly(
              Arrays.copyOfRange(
                  engine.logDensity(DiagonalGaussians.ofPoints(x, 3), p, new double[20]), 4, 12));
    }
  }

  @Test
  void badPointsAreNamed() {
    assertThatThrownBy(() -> DiagonalGaussians.ofPoints(new float[] {0, 1, 2, Float.NaN, 4, 5}, 2))
        .isInstanceOf(InvalidGaussianException.class)
        .hasMessage("points[1][1] (Gaussian 1, dimension 1) is NaN; it must be finite");
    assertThatThrownBy(() -> DiagonalGaussians.ofPoints(new double[5], 2))
        .hasMessage("points has 5 elements, which is not a multiple of the dimension 2");
    assertThatThrownBy(() -> DiagonalGaussians.ofPoints(new double[5], 0))
        .hasMessage("dimension must be at least 1, is 0");
  }

  @Test
  void nothingElseTakesPoints() {
    DiagonalGaussians points = DiagonalGaussians.ofPoints(new float[] {0, 1}, 2);
    Gaussians p = DiagonalGaussians.ofStd(new float[2], new float[] {1, 1}, 2);
    String refused = " holds points, which have no divergence, as their variance is 0";
    for (Divergence divergence : new Divergence[] {Divergence.KL, Divergence.WASSERSTEIN_2}) {
      try (KlEngine engine = KlEngine.builder().divergence(divergence).build()) {
        assertThatThrownBy(() -> engine.pairwise(points, p)).hasMessageStartingWith("q" + refused);
        assertThatThrownBy(() -> engine.aligned(p, points)).hasMessageStartingWith("p" + refused);
        assertThatThrownBy(() -> engine.toStandardNormal(points))
            .hasMessageStartingWith("q" + refused);
        assertThatThrownBy(() -> engine.rowMin(points, p)).hasMessageStartingWith("q" + refused);
        assertThatThrownBy(() -> engine.nearest(p, points, 1))
            .hasMessageStartingWith("p" + refused);
        assertThat(engine.nearest(points, p, 1).values()).containsExactly(1);
      }
    }
    assertThatThrownBy(() -> Mixtures.of(points)).hasMessageStartingWith("components" + refused);
    for (Divergence divergence : new Divergence[] {Divergence.KL, Divergence.WASSERSTEIN_2}) {
      try (KlIndex index = KlIndex.builder(2).divergence(divergence).build()) {
        assertThatThrownBy(() -> index.add(new long[] {1}, points)).hasMessageContaining(refused);
      }
    }
  }

  @Test
  void pointsAreAskedForByName() {
    Gaussians p = DiagonalGaussians.ofStd(new float[2], new float[] {1, 1}, 2);
    DiagonalGaussians points = DiagonalGaussians.ofPoints(new float[] {0, 1, 3}, 3);
    try (KlEngine engine = KlEngine.builder().build()) {
      assertThatThrownBy(() -> engine.logDensity(p, p))
          .hasMessageStartingWith(
              "points have variances; make points by DiagonalGaussians.ofPoints, and");
      assertThatThrownBy(() -> engine.mahalanobis(points, p))
          .hasMessage("points has dimension 3 but p has 2; they must be equal");
      assertThatThrownBy(() -> engine.search(p, p, Query.nearest(1).byLogDensity()))
          .hasMessageStartingWith("Gaussians have no density in others: Query.byLogDensity");
      Gaussians two = DiagonalGaussians.ofPoints(new float[2], 2);
      assertThatThrownBy(() -> engine.search(two, p, Query.nearest(1).reverse()))
          .hasMessage("points have no density to search in: Query.reverse is for Gaussians");
      assertThatThrownBy(() -> engine.search(two, p, Query.nearest(1).byLogDensity().exact()))
          .hasMessageStartingWith("log-densities are known to double, not exactly");
      assertThatThrownBy(() -> Query.denserThan(Double.NaN))
          .hasMessage("logDensity must be a number, is NaN");
      assertThatThrownBy(() -> engine.logDensity(two, p, new float[0]))
          .hasMessage("out has 0 elements but 1 are needed");
    }
  }

  /** An engine of another divergence, or of a device, has the same densities; its figures count the calls. */
  @Test
  void everyEngineHasDensities() {
    Gaussians points = DiagonalGaussians.ofPoints(means(3, 2, 1), 2);
    Gaussians p = DiagonalGaussians.ofStd(means(4, 2, 2), stds(4, 2, 3), 2);
    KlEngine other = KlEngine.builder().divergence(Divergence.JEFFREYS).build();
    try (KlEngine kl = KlEngine.builder().build()) {
      assertThat(other.logDensity(points, p)).containsExactly(kl.logDensity(points, p));
      assertThat(other.stats().calls()).isEqualTo(1);
      assertThat(other.stats().entries()).isEqualTo(12);
    } finally {
      other.close();
    }
    assertThatThrownBy(() -> other.logDensity(points, p))
        .isInstanceOf(AlreadyClosedException.class);
  }
}
