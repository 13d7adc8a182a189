package dev.kullback;

import static dev.kullback.testing.Refusal.refusedAs;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.testing.Batch;
import dev.kullback.testing.DivergenceOracle;
import dev.kullback.testing.Oracle;
import dev.kullback.testing.Regime;
import dev.kullback.testing.WarmCalls;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Divergences of single pairs, from arrays. */
class ExactDivergenceTest {
  private static double[] row(double[] values, int i, int d) {
    return Arrays.copyOfRange(values, i * d, (i + 1) * d);
  }

  private static ScaleKind kind(Batch.Kind kind) {
    return ScaleKind.valueOf(kind.name());
  }

  /** Each pair has the oracle's value, rounded to the nearest, and the bits of an exact search. */
  @Test
  void isTheRoundedValueAndThatOfASearch() {
    int n = 4;
    int m = 6;
    for (Regime regime :
        new Regime[] {
          Regime.EVERY_SPREAD,
          Regime.NEAR_ULP,
          Regime.DUPLICATES,
          Regime.OFFSET_1E3,
          Regime.COLLAPSED
        }) {
      for (boolean isDouble : new boolean[] {false, true}) {
        for (int d : new int[] {1, 3, 64, 70}) {
          Regime.Case drawn = regime.draw(isDouble, n, m, d);
          double[] expected = Oracle.pairwise(drawn.q(), drawn.p());
          ExactDivergence kl = ExactDivergence.of(Divergence.KL, kind(drawn.q().kind()));
          Neighbors search;
          try (KlEngine engine = KlEngine.builder().build()) {
            Query all = Query.nearest(m).exact();
            search = engine.search(drawn.q().gaussians(), drawn.p().gaussians(), all);
          }
          for (int i = 0; i < n; i++) {
            for (int r = 0; r < m; r++) {
              int j = search.index(i, r);
              double[][] a = {
                row(drawn.q().mean(), i, d),
                row(drawn.q().scale(), i, d),
                row(drawn.p().mean(), j, d),
                row(drawn.p().scale(), j, d)
              };
              double value = kl.of(a[0], a[1], a[2], a[3]);
              assertThat(value).as("%s D = %d", regime, d).isEqualTo(search.value(i, r));
              assertThat(Math.abs(value - expected[i * m + j]))
                  .isLessThanOrEqualTo(Math.ulp(expected[i * m + j]));
              if (!isDouble) {
                float[][] f = new float[4][];
                Arrays.setAll(f, k -> Batch.narrowed(a[k]));
                assertThat(kl.of(f[0], f[1], f[2], f[3])).isEqualTo(value);
              }
            }
          }
        }
      }
    }
  }

  @Test
  void otherDivergencesAndKinds() {
    Random random = new Random(3);
    for (Divergence divergence :
        DivergenceTest.named(List.of(Divergence.KL), Divergence.renyi(0.3), Divergence.renyi(1.2))
            .toList()) {
      for (Batch.Kind kind : Batch.Kind.values()) {
        Batch q = random(kind, random);
        Batch p = random(kind, random);
        double expected = DivergenceOracle.pairwise(divergence, q, p)[0];
        double value =
            ExactDivergence.of(divergence, kind(kind)).of(q.mean(), q.scale(), p.mean(), p.scale());
        assertThat(value == expected ? 0 : Math.abs(value - expected))
            .as("%s %s", divergence, kind)
            .isLessThanOrEqualTo(2 * Math.ulp(expected));
      }
    }
  }

  private static Batch random(Batch.Kind kind, Random random) {
    Batch batch = Batch.random(true, 1, 9, 0, random);
    return Batch.ofStd(kind, true, batch.mean(), batch.scale(), 9);
  }

  @Test
  void whatIsWrongIsNamed() {
    ExactDivergence kl = ExactDivergence.of(Divergence.KL, ScaleKind.STD);
    double[] one = {1, 1};
    float[] single = {1, 1};
    double expected = kl.of(one, one, new double[] {0, 3}, new double[] {2, 1});
    for (int again = 0; again < 2; again++) { // nothing of a call that failed is kept
      refusedAs(
          "q: std[1] is -1.0; it must be finite and > 0",
          () -> kl.of(one, new double[] {1, -1}, one, one));
      refusedAs(
          "p: mean[0] is NaN; it must be finite",
          () -> kl.of(one, one, new double[] {Double.NaN, 1}, one));
      refusedAs(
          "p: std[0] is 0.0; it must be finite and > 0",
          () -> kl.of(single, single, single, new float[] {0, 1}));
    }
    assertThat(kl.of(one, one, new double[] {0, 3}, new double[] {2, 1})).isEqualTo(expected);
    refusedAs(
        "q: mean has 2 elements but std has 1; both must have one for each dimension",
        () -> kl.of(one, new double[1], one, one));
    refusedAs(
        "q has dimension 2 but p has 1; both must have the same",
        () -> kl.of(one, one, new double[] {1}, new double[] {1}));
    refusedAs(
        "q: mean is empty; it must have an element or more",
        () -> kl.of(new float[0], new float[0], single, single));
    assertThatThrownBy(() -> ExactDivergence.of(Divergence.KL, ScaleKind.COVARIANCE))
        .hasMessage(
            "kind COVARIANCE is one of matrices, not of scales: give STD, VARIANCE, LOG_VARIANCE or PRECISION");
  }

  @Test
  void saysWhatItComputes() {
    assertThat(ExactDivergence.of(Divergence.renyi(0.3), ScaleKind.VARIANCE))
        .hasToString("ExactDivergence[renyi:0.3, variance]");
  }

  @Test
  void warmCallsAllocateNothing() {
    ExactDivergence kl = ExactDivergence.of(Divergence.KL, ScaleKind.STD);
    Random random = new Random(4);
    int d = 64;
    float[][] floats = new float[40][d];
    double[][] doubles = new double[40][d];
    for (int i = 0; i < 40; i++) {
      for (int h = 0; h < d; h++) {
        floats[i][h] = random.nextFloat(0.5f, 2);
        doubles[i][h] = random.nextDouble(0.5, 2);
      }
    }
    WarmCalls.allocateNothing(
        "pairs",
        50,
        () -> {
          for (int i = 0; i < 36; i++) {
            kl.of(floats[i / 6], floats[1], floats[i], floats[i + 1]);
            kl.of(doubles[i / 6], doubles[1], doubles[i], doubles[i + 1]);
          }
        });
  }
}
