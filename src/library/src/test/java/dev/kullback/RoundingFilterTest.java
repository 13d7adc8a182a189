package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.DoubleDoubleKl;
import dev.kullback.internal.formula.RoundingFilter;
import dev.kullback.testing.Batch;
import dev.kullback.testing.BigFloat;
import dev.kullback.testing.Oracle;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Divergences rounded to the nearest double, in every way to state a scale. */
class RoundingFilterTest {
  private final RoundingFilter rounded = new RoundingFilter();
  private final DoubleDoubleKl exact = new DoubleDoubleKl();
  private int decided;
  private int compared;

  /** Parameters far apart and alike; the sum is within its bound, and what is decided is the exact value rounded to nearest. */
  @Test
  void decidesTheNearestDouble() {
    Random random = new Random(1);
    for (Batch.Kind a : Batch.Kind.values()) {
      for (Batch.Kind b : Batch.Kind.values()) {
        for (boolean isDouble : new boolean[] {false, true}) {
          for (int d : new int[] {1, 3, 8, 9, 64, 65, 130}) {
            for (double spread : new double[] {8, 3, 1, 0.3, 0.03}) {
              Batch q = batch(a, isDouble, 2, d, spread, random);
              Batch p = batch(b, isDouble, 2, d, spread, random);
              check("%s %s D = %d, spread %s".formatted(a, b, d, spread), q, p);
            }
          }
        }
      }
    }
    assertThat(decided).as("of %d", compared).isGreaterThan((int) (0.999 * compared));
  }

  @Test
  void manyDimensions() {
    Random random = new Random(2);
    for (Batch.Kind kind : Batch.Kind.values()) {
      Batch q = batch(kind, true, 1, 4096, 1, random);
      check(kind + " 4096", q, batch(kind, true, 2, 4096, 1, random));
    }
    assertThat(decided).isEqualTo(compared);
  }

  /** Twins' terms cancel: near ones are decided, nearer ones left to others, none decided wrongly. */
  @Test
  void twins() {
    Random random = new Random(3);
    for (Batch.Kind kind : Batch.Kind.values()) {
      for (int power = 3; power < 50; power++) {
        Batch q = batch(kind, true, 1, 32, 0.5, random);
        double[] mean = q.mean().clone();
        double[] scale = q.scale().clone();
        for (int h = 0; h < 32; h++) {
          mean[h] += Math.scalb(random.nextGaussian(), -power);
          scale[h] *= 1 + Math.scalb(random.nextGaussian(), -power);
        }
        int before = decided;
        check(kind + " twins 2^-" + power, q, new Batch(kind, true, mean, scale, 32));
        if (power < 6) {
          assertThat(decided).isEqualTo(before + 1);
        }
      }
    }
  }

  /** A rounding that lies just between two doubles: mean differences of which KL is half the square, 54 bits long. */
  @Test
  void leavesTiesUndecided() {
    double[] one = {1};
    double x = (1 << 27) - 1; // x² = 2⁵⁴ − 2²⁸ + 1
    Batch q = new Batch(Batch.Kind.VARIANCE, true, new double[] {x}, one, 1);
    Batch p = new Batch(Batch.Kind.VARIANCE, true, new double[1], one, 1);
    assertThat(rounded.kl(q.gaussians().batch, 0, p.gaussians().batch, 0)).isNaN();
    assertThat(exact.compute(q.gaussians().batch, 0, p.gaussians().batch, 0)).isTrue();
    assertThat(exact.value).isEqualTo(0x1p53 - 0x1p27);
  }

  /** Extreme values are left undecided: the filter returns NaN. */
  @Test
  void leavesExtremesUndecided() {
    double[] one = {1};
    double[] zero = {0};
    for (double std : new double[] {Double.MIN_VALUE, 1e-200, 1e200}) {
      Batch q = new Batch(Batch.Kind.STD, true, zero, new double[] {std}, 1);
      Batch p = new Batch(Batch.Kind.STD, true, zero, one, 1);
      assertThat(rounded.kl(q.gaussians().batch, 0, p.gaussians().batch, 0)).isNaN();
      assertThat(rounded.kl(p.gaussians().batch, 0, q.gaussians().batch, 0)).isNaN();
    }
    Batch q = new Batch(Batch.Kind.STD, true, new double[] {1e300}, one, 1);
    Batch p = new Batch(Batch.Kind.STD, true, new double[] {-1e300}, one, 1);
    assertThat(rounded.kl(q.gaussians().batch, 0, p.gaussians().batch, 0)).isNaN();
    assertThat(rounded.kl(p.gaussians().batch, 0, p.gaussians().batch, 0)).isNaN();
  }

  private static Batch batch(
      Batch.Kind kind, boolean isDouble, int n, int d, double spread, Random random) {
    double[] mean = new double[n * d];
    double[] std = new double[n * d];
    for (int k = 0; k < mean.length; k++) {
      mean[k] = spread * random.nextGaussian();
      std[k] = Math.exp(spread * Math.clamp(random.nextGaussian(), -4, 4));
    }
    return Batch.ofStd(kind, isDouble, mean, std, d);
  }

  private void check(String what, Batch q, Batch p) {
    Oracle oracle = new Oracle(q, p);
    DiagonalBatch a = q.gaussians().batch;
    DiagonalBatch b = p.gaussians().batch;
    for (int i = 0; i < q.size(); i++) {
      for (int j = 0; j < p.size(); j++) {
        BigFloat kl = oracle.kl(i, j);
        assertThat(rounded.compute(a, i, b, j)).isTrue();
        BigFloat off = BigFloat.of(rounded.high).plus(BigFloat.of(rounded.low)).minus(kl).minus(kl);
        assertThat(Math.abs(off.toDouble())).as(what).isLessThanOrEqualTo(rounded.error / 2);
        double value = rounded.kl(a, i, b, j);
        compared++;
        if (value >= 0) {
          decided++;
          assertThat(value).as(what).isEqualTo(kl.toBigDecimal().doubleValue()); // to nearest
        }
      }
    }
  }
}
