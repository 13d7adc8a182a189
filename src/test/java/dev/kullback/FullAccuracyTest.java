package dev.kullback;

import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Full covariances against the oracle. */
@Tag("width")
class FullAccuracyTest {
  private static final int[] DIMENSIONS = {1, 2, 3, 8, 31, 65};

  /** For float the aim; for double what a condition number up to 1e8 leaves. */
  private static Check.Precision precision(boolean isDouble, double condition) {
    return isDouble
        ? new Check.Precision(
            Math.max(1e-12, Math.min(1e-12 * condition, 1e-9)), Double.MIN_NORMAL, Double.MAX_VALUE)
        : new Check.Precision(2e-6, Float.MIN_NORMAL, Double.MAX_VALUE);
  }

  static double check(
      Backend backend, String what, FullBatch q, FullBatch p, Check.Precision precision) {
    double[] expected = FullOracle.pairwise(q, p);
    try (KlEngine engine = Engines.on(backend)) {
      double[] actual = engine.pairwise(q.gaussians(), p.gaussians(), new double[expected.length]);
      double worst = Check.matrix(backend + ", " + what, p.size(), expected, actual, precision);
      if (System.getProperty("show") != null) {
        System.out.printf("%s %s: %.2g%n", backend, what, worst);
      }
      return worst;
    }
  }

  private static int size(int dimension) {
    return dimension < 30 ? 19 : 5;
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.Engines#backends")
  void conditions(Backend backend) {
    for (int d : DIMENSIONS) {
      for (boolean isDouble : new boolean[] {false, true}) {
        for (double condition : new double[] {1, 1e2, 1e4, 1e6, 1e8, 1e12}) {
          if (condition > (isDouble ? 1e12 : 1e6)) {
            continue;
          }
          Random random = new Random(d);
          FullBatch q = FullBatch.random(isDouble, size(d), d, condition, 0, random);
          FullBatch p = FullBatch.random(isDouble, size(d) + 2, d, condition, 0, random);
          String what =
              "D=%d, %s, condition %.0e".formatted(d, isDouble ? "double" : "float", condition);
          check(backend, what, q, p, precision(isDouble, condition));
          check(backend, what + ", self", q, q, precision(isDouble, condition));
        }
      }
    }
  }
}
