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
