package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Batch.Kind;
import dev.kullback.testing.Check;
import dev.kullback.testing.Check.Precision;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Oracle;
import dev.kullback.testing.Regime;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** {@code toStandardNormal} and {@code aligned}: the two results of N values. */
@Tag("device")
class StandardNormalTest {
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void toStandardNormalMeetsTheContract(Backend backend) {
    for (Regime regime : regimes()) {
      for (Regime.Pair kinds : regime.kindPairs()) {
        for (boolean isDouble : new boolean[] {false, true}) {
          for (int dimension : new int[] {1, 2, 31, 64, 129}) {
            Batch q = regime.draw(kinds, isDouble, 11, 1, dimension).q();
            double[] expected = Oracle.pairwise(q, standard(isDouble, 1, dimension));
            DiagonalGaussians given = q.gaussians();
            String what = "%s %s %s, D=%d".formatted(backend, regime, kinds.q(), dimension);
            try (KlEngine engine = Engines.on(backend)) {
              Check.matrix(what, 1, expected, engine.toStandardNormal(given));
              double[] out = engine.toStandardNormal(given, new double[expected.length]);
              Check.matrix(what, 1, expected, out, Precision.ofDoubleResult(q, q));
              float[] column = engine.pairwise(given, standard(isDouble, 1, dimension).gaussians());
              Check.matrix(what + ", pairwise", 1, expected, column);
            }
          }
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void alignedMeetsTheContract(Backend backend) {
    for (Regime regime : regimes()) {
      for (Regime.Pair kinds : regime.kindPairs()) {
        for (boolean isDouble : new boolean[] {false, true}) {
          for (int dimension : new int[] {1, 3, 32, 65}) {
            Regime.Case drawn = regime.draw(kinds, isDouble, 19, 19, dimension);
            Oracle oracle = new Oracle(drawn.q(), drawn.p());
            double[] expected = new double[19];
            Arrays.setAll(expected, i -> oracle.kl(i, i).toDouble());
            DiagonalGaussians q = drawn.q().gaussians();
            DiagonalGaussians p = drawn.p().gaussians();
            String what = "%s %s %s, D=%d".formatted(backend, regime, kinds, dimension);
            try (KlEngine engine = Engines.on(backend)) {
              Check.matrix(what, 1, expected, engine.aligned(q, p));
              double[] out = engine.aligned(q, p, new double[19]);
              Check.matrix(what, 1, expected, out, Precision.ofDoubleResult(drawn.q(), drawn.p()));
            }
          }
        }
      }
    }
  }

  /** Behind the N values nothing is written; the array given is returned. */
  @Test
  void longerOutputs() {
    DiagonalGaussians q = Batch.random(false, 11, 7, 0, new Random(2)).gaussians();
    try (KlEngine engine = KlEngine.builder().build()) {
      float[] out = new float[13];
      double[] twice = new double[13];
      Arrays.fill(out, -7);
      Arrays.fill(twice, -7);
      assertThat(engine.aligned(q, q, out)).isSameAs(out).startsWith(new float[11]);
      assertThat(engine.aligned(q, q, twice)).isSameAs(twice).startsWith(new double[11]);
      assertThat(out).endsWith(-7f, -7f);
      assertThat(twice).endsWith(-7.0, -7.0);
      assertThat(engine.toStandardNormal(q, out)).isSameAs(out).endsWith(-7f, -7f);
      assertThat(engine.toStandardNormal(q, twice)).isSameAs(twice).endsWith(-7.0, -7.0);
      assertThat(Arrays.copyOf(out, 11)).containsExactly(engine.toStandardNormal(q));
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void standardNormalItselfIsZero(Backend backend) {
    for (Kind kind : Kind.values()) {
      for (boolean isDouble : new boolean[] {false, true}) {
        double[] std = new double[6 * 33];
        Arrays.fill(std, 1);
        Batch batch = Batch.ofStd(kind, isDouble, new double[std.length], std, 33);
        try (KlEngine engine = Engines.on(backend)) {
          assertThat(engine.toStandardNormal(batch.gaussians())).hasSize(6).containsOnly(0f);
        }
      }
    }
  }

  private static Regime[] regimes() {
    return new Regime[] {
      Regime.VAE,
      Regime.COLLAPSED,
      Regime.NEAR_1E_4,
      Regime.NEAR_ULP,
      Regime.LARGEST_MEANS,
      Regime.LOG_VARIANCE_MIX,
      Regime.SUBNORMAL
    };
  }

  private static Batch standard(boolean isDouble, int size, int dimension) {
    double[] ones = new double[size * dimension];
    Arrays.fill(ones, 1);
    return new Batch(Kind.STD, isDouble, new double[ones.length], ones, dimension);
  }
}
