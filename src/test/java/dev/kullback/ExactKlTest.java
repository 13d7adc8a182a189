package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import java.math.BigDecimal;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The divergence to the last bit, in every way to state a scale. */
class ExactKlTest {
  @Test
  void isRounded() {
    Random random = new Random(1);
    int found = 0;
    for (Batch.Kind a : Batch.Kind.values()) {
      for (Batch.Kind b : Batch.Kind.values()) {
        for (int d : new int[] {1, 3, 40}) {
          for (double spread : new double[] {3, 0.3, 1e-3}) {
            Batch q = batch(a, 4, d, spread, random);
            Batch p = batch(b, 5, d, spread, random);
            Oracle oracle = new Oracle(q, p);
            for (int i = 0; i < 4; i++) {
              for (int j = 0; j < 5; j++) {
                BigDecimal expected = oracle.kl(i, j).toBigDecimal();
                double actual = ExactKl.kl(q.gaussians(), i, p.gaussians(), j);
                if (!Double.isNaN(actual)) {
                  found++;
                  double error = new BigDecimal(actual).subtract(expected).doubleValue();
                  assertThat(Math.abs(error) / Math.ulp(actual))
                      .as("%s %s %d %s: in ulps", a, b, d, spread)
                      .isLessThan(0.501);
                }
              }
            }
          }
        }
      }
    }
    assertThat(found).isGreaterThan(16 * 3 * 20 * 2);
  }

  /** What loses digits on the way, or all of them, is left to others. */
  @Test
  void isNothingAtTheEndsOfTheRange() {
    double[] apart = {0, 3};
    double[] same = {0, 0};
    DiagonalGaussians q = DiagonalGaussians.ofLogVariance(same, new double[] {-800, 0}, 2);
    DiagonalGaussians p = DiagonalGaussians.ofLogVariance(apart, new double[] {-800, 0}, 2);
    assertThat(ExactKl.kl(q, 0, p, 0)).isNaN();
    DiagonalGaussians one = DiagonalGaussians.ofLogVariance(new double[1], new double[1], 1);
    DiagonalGaussians wide =
        DiagonalGaussians.ofLogVariance(new double[] {1}, new double[] {1e6}, 1);
    assertThat(ExactKl.kl(one, 0, wide, 0)).isNaN();
    for (double std : new double[] {1e-160, 1e-170, 1e160}) {
      DiagonalGaussians a = DiagonalGaussians.ofStd(new double[1], new double[] {std}, 1);
      DiagonalGaussians b =
          DiagonalGaussians.ofStd(new double[] {100 * std}, new double[] {std}, 1);
      assertThat(ExactKl.kl(a, 0, b, 0)).isNaN();
    }
    try (KlEngine engine = Engines.on(Backend.AUTO)) {
      DiagonalGaussians ties =
          DiagonalGaussians.ofLogVariance(
              new double[] {0, 3, 0, -3}, new double[] {-800, 0, -800, 0}, 2);
      Neighbors nearest = engine.nearest(q, ties, 2);
      assertThat(nearest.indices()).containsExactly(0, 1);
      assertThat(nearest.values()).containsExactly(4.5, 4.5);
    }
  }

  private static Batch batch(Batch.Kind kind, int n, int d, double spread, Random random) {
    double[] mean = new double[n * d];
    double[] scale = new double[n * d];
    for (int k = 0; k < mean.length; k++) {
      mean[k] = spread * random.nextGaussian();
      scale[k] = kind.fromStd.applyAsDouble(Math.exp(spread * random.nextGaussian()));
    }
    return new Batch(kind, true, mean, scale, d);
  }
}
