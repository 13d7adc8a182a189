package dev.kullback;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Batch.Kind;
import dev.kullback.testing.Check;
import dev.kullback.testing.Check.Precision;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Oracle;
import dev.kullback.testing.OtherCases;
import dev.kullback.testing.Regime;
import dev.kullback.testing.Share;
import java.util.Arrays;
import java.util.Collection;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The accuracy contract: every regime, parameterization, precision and backend against the oracle.
 */
@Tag("device")
@Tag("vector")
class AccuracyTest {
  private static final int[] DIMENSIONS = {1, 2, 3, 31, 32, 33, 64, 65, 100, 256, 4097};
  private static final int[] DIMENSIONS_OF_OTHER_KINDS = {1, 7, 40};

  /** The largest relative error met, by regime, then by backend, inputs and result. */
  private static final Map<Regime, Map<String, Double>> WORST = new EnumMap<>(Regime.class);

  static Stream<Arguments> cases() {
    return Stream.of(Regime.values())
        .flatMap(regime ->
            regime.kindPairs().stream()
                .flatMap(kinds ->
                    Stream.of(false, true)
                        .filter(regime::appliesTo)
                        .map(isDouble -> Arguments.of(regime, kinds, isDouble))));
  }

  /** Covers each case in some dimensions, and the next case in others. */
  @ParameterizedTest(name = "{0}, {1}, double: {2}")
  @MethodSource("cases")
  void meetsTheContract(Regime regime, Regime.Pair kinds, boolean isDouble) {
    check(regime, kinds, isDouble, Share.SOME);
  }

  @OtherCases
  @ParameterizedTest(name = "{0}, {1}, double: {2}")
  @MethodSource("cases")
  void meetsTheContractInTheOtherDimensions(Regime regime, Regime.Pair kinds, boolean isDouble) {
    check(regime, kinds, isDouble, Share.OTHERS);
  }

  private static void check(Regime regime, Regime.Pair kinds, boolean isDouble, Share share) {
    boolean first = kinds.equals(regime.kindPairs().getFirst());
    int[] dimensions = first ? DIMENSIONS : DIMENSIONS_OF_OTHER_KINDS;
    int turn = regime.ordinal() + kinds.q().ordinal() + kinds.p().ordinal() + (isDouble ? 1 : 0);
    for (int k = 0; k < dimensions.length; k++) {
      if (!share.has(turn + k)) {
        continue;
      }
      int dimension = dimensions[k];
      int n = dimension < 64 ? 9 : 3;
      int m = dimension < 64 ? 45 : dimension < 4096 ? 35 : 3;
      Regime.Case drawn = regime.draw(kinds, isDouble, n, m, dimension);
      check(regime, drawn);
      if (dimension < 64) {
        check(regime, new Regime.Case(drawn.q(), drawn.q()));
      }
    }
  }

  /** Float and double batches in one call. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void mixedPrecisions(Backend backend) {
    for (Regime regime : new Regime[] {Regime.VAE, Regime.NEAR_1E_2, Regime.OFFSET_1E3}) {
      Batch single = regime.draw(false, 9, 37, 33).q();
      Batch twice = regime.draw(true, 9, 37, 33).p();
      try (KlEngine engine = Engines.on(backend)) {
        for (Regime.Case mixed :
            new Regime.Case[] {new Regime.Case(single, twice), new Regime.Case(twice, single)}) {
          double[] expected = mixed.expected();
          DiagonalGaussians q = mixed.q().gaussians();
          DiagonalGaussians p = mixed.p().gaussians();
          String what = regime + ", mixed precisions, " + backend;
          int m = p.size();
          Check.matrix(what, m, expected, engine.pairwise(q, p));
          double[] actual = engine.pairwise(q, p, new double[expected.length]);
          Check.matrix(what, m, expected, actual, Precision.DOUBLE);
        }
      }
    }
  }

  /** Variances that leave double's range, or its normal numbers, in one kind of scale only. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void kindsThatDifferAtTheEdgesOfDouble(Backend backend) {
    record Scaled(Kind kind, double scale) {}
    Scaled[] scales = {
      new Scaled(Kind.STD, 1),
      new Scaled(Kind.STD, 1e200),
      new Scaled(Kind.STD, 1e160),
      new Scaled(Kind.STD, 3e-160),
      new Scaled(Kind.STD, 1e-160),
      new Scaled(Kind.VARIANCE, 2),
      new Scaled(Kind.VARIANCE, 1e-320),
      new Scaled(Kind.VARIANCE, 1e308),
      new Scaled(Kind.PRECISION, 1e-310),
      new Scaled(Kind.PRECISION, 1e307),
      new Scaled(Kind.LOG_VARIANCE, 1000),
      new Scaled(Kind.LOG_VARIANCE, 720),
      new Scaled(Kind.LOG_VARIANCE, -740),
      new Scaled(Kind.LOG_VARIANCE, -1e6),
    };
    double[] mean = {0.25};
    try (KlEngine engine = Engines.on(backend)) {
      for (Scaled a : scales) {
        for (Scaled b : scales) {
          Batch q = new Batch(a.kind, true, mean, new double[] {a.scale}, 1);
          Batch p = new Batch(b.kind, true, mean, new double[] {b.scale}, 1);
          double[] actual = engine.pairwise(q.gaussians(), p.gaussians(), new double[1]);
          Check.matrix(a + " / " + b, 1, Oracle.pairwise(q, p), actual, Precision.DOUBLE);
        }
      }
    }
  }

  /** Scales whose roundings in the float kernel all have one sign, where the log-determinants cancel most of S. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void roundingsOfOneSign(Backend backend) {
    int dimension = 64;
    float least = 1; // the variance whose inverse is rounded down most
    double most = 0;
    for (float v = 1.99f; v < 1.9905f; v = Math.nextUp(v)) {
      double lost = 1 - (double) (1 / v) * v;
      if (lost > most) {
        most = lost;
        least = v;
      }
    }
    float inverse = 1 / least;
    for (double large : new double[] {4.3, 4.35, 4.4, 4.5}) {
      double[] variances = new double[dimension];
      double sum = 0;
      for (int h = 0; h < dimension; h++) {
        float about = (float) ((h < 8 ? large : 1) * least);
        double best = -1;
        double next = 0;
        for (int step = -200; step < 200; step++) {
          float v = (float) (about * (1 + step * 0x1p-22));
          double exact = sum + (double) v * inverse;
          if (exact - (float) exact > best) {
            best = exact - (float) exact;
            variances[h] = v;
            next = (float) exact;
          }
        }
        sum = next;
      }
      double[] means = new double[dimension];
      double[] least64 = new double[dimension];
      Arrays.fill(least64, least);
      Batch q = new Batch(Kind.VARIANCE, false, means, variances, dimension);
      Batch p = new Batch(Kind.VARIANCE, false, means, least64, dimension);
      try (KlEngine engine = Engines.on(backend)) {
        float[] actual = engine.pairwise(q.gaussians(), p.gaussians());
        Check.matrix("one sign, " + large, 1, Oracle.pairwise(q, p), actual);
      }
    }
  }

  /** Near-duplicates whose terms underflow in float while their sum does not, and where only a double result holds it. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void termsThatUnderflow(Backend backend) {
    for (int dimension : new int[] {1, 4096}) {
      for (double distance : new double[] {2.397072076e-21, 1e-21, 1e-22, 1e-25}) {
        double[] means = new double[dimension];
        double[] scales = new double[dimension];
        double[] ones = new double[dimension];
        Arrays.fill(means, (float) distance);
        Arrays.fill(scales, (float) distance);
        Arrays.fill(ones, 1);
        double[] zeros = new double[dimension];
        for (Batch q :
            new Batch[] {
              new Batch(Kind.STD, false, means, ones, dimension),
              new Batch(Kind.LOG_VARIANCE, false, zeros, scales, dimension)
            }) {
          boolean std = q.kind() == Kind.STD;
          Batch p = new Batch(q.kind(), false, zeros, std ? ones : zeros, dimension);
          double[] expected = Oracle.pairwise(q, p);
          try (KlEngine engine = Engines.on(backend)) {
            String what = "D=%d, %s, %s".formatted(dimension, distance, q.kind());
            DiagonalGaussians a = q.gaussians();
            DiagonalGaussians b = p.gaussians();
            Check.matrix(what, 1, expected, engine.pairwise(a, b));
            double[] actual = engine.pairwise(a, b, new double[1]);
            Check.matrix(what, 1, expected, actual, new Precision(1e-5, 1e-300, Double.MAX_VALUE));
          }
        }
      }
    }
  }

  private static void check(Regime regime, Regime.Case drawn) {
    double[] expected = drawn.expected();
    DiagonalGaussians q = drawn.q().gaussians();
    DiagonalGaussians p = drawn.q() == drawn.p() ? q : drawn.p().gaussians();
    int m = p.size();
    Precision precision = Precision.ofDoubleResult(drawn.q(), drawn.p());
    Engines.backends()
        .forEach(backend -> {
          String what =
              "%s, %s %s, %s, %dx%d%s, D=%d"
                  .formatted(
                      regime,
                      drawn.q().isDouble() ? "double" : "float",
                      drawn.q().kind() + "/" + drawn.p().kind(),
                      backend,
                      q.size(),
                      m,
                      q == p ? " (p is q)" : "",
                      q.dimension());
          try (KlEngine engine = Engines.on(backend)) {
            double single = Check.matrix(what + " in float[]", m, expected, engine.pairwise(q, p));
            double[] out = engine.pairwise(q, p, new double[expected.length]);
            double twice = Check.matrix(what + " in double[]", m, expected, out, precision);
            String inputs = drawn.q().isDouble() ? "double" : "float";
            WORST
                .computeIfAbsent(regime, _ -> new TreeMap<>())
                .merge(backend + " " + inputs + "->float", single, Math::max);
            WORST.get(regime).merge(backend + " " + inputs + "->double", twice, Math::max);
          }
        });
  }

  @AfterAll
  static void summary() {
    Collection<String> columns = new TreeSet<>();
    WORST.values().forEach(row -> columns.addAll(row.keySet()));
    System.out.println("Largest relative errors; " + Backend.VECTOR.reason());
    System.out.printf("%-30s  %s%n", "", String.join("  ", columns));
    WORST.forEach((regime, row) -> {
      System.out.printf("%-30s", regime);
      for (String column : columns) {
        String error = String.format(Locale.ROOT, "%.1e", row.getOrDefault(column, Double.NaN));
        System.out.printf("  %" + column.length() + "s", error);
      }
      System.out.println();
    });
  }
}
