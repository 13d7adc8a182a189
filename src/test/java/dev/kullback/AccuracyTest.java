package dev.kullback;

import dev.kullback.Check.Precision;
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
@Tag("width")
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

  @ParameterizedTest(name = "{0}, {1}, double: {2}")
  @MethodSource("cases")
  void meetsTheContract(Regime regime, Regime.Pair kinds, boolean isDouble) {
    boolean first = kinds.equals(regime.kindPairs().getFirst());
    for (int dimension : first ? DIMENSIONS : DIMENSIONS_OF_OTHER_KINDS) {
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
  @MethodSource("dev.kullback.Engines#backends")
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
          Check.matrix(what, m, expected, actual, Precision.WIDENED);
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
    System.out.println("Largest relative errors; " + Backend.VECTOR.describe());
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
