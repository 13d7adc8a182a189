package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.formula.DoubleDoubleKl;
import dev.kullback.internal.numerics.Variance;
import dev.kullback.testing.Batch;
import dev.kullback.testing.BigFloat;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Oracle;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The divergence beyond double's last bit, in every way to state a scale. */
class DoubleDoubleKlTest {
  private final DoubleDoubleKl exact = new DoubleDoubleKl();

  /** Parameters far apart and alike: all forms of a term, and of their sum. */
  @Test
  void isWithinItsBound() {
    Random random = new Random(1);
    for (Batch.Kind a : Batch.Kind.values()) {
      for (Batch.Kind b : Batch.Kind.values()) {
        for (int d : new int[] {1, 3, 40}) {
          for (double spread : new double[] {30, 3, 0.3, 0.03, 1e-3}) {
            String what = "%s %s %d %s".formatted(a, b, d, spread);
            check(what, batch(a, 4, d, spread, random), batch(b, 5, d, spread, random));
          }
        }
      }
    }
  }

  @Test
  void isWithinItsBoundInManyDimensions() {
    Random random = new Random(2);
    for (double spread : new double[] {1, 0.03}) {
      Batch q = batch(Batch.Kind.VARIANCE, 1, 65_536, spread, random);
      check("spread " + spread, q, batch(Batch.Kind.STD, 2, 65_536, spread, random));
    }
  }

  /** Parameters as near to each other as double has them. */
  @Test
  void isWithinItsBoundHoweverAlike() {
    int d = 7;
    Random random = new Random(3);
    for (Batch.Kind a : Batch.Kind.values()) {
      for (Batch.Kind b : Batch.Kind.values()) {
        double[] std = random.doubles(d, 0.1, 10).toArray();
        double[] mean = random.doubles(d).toArray();
        Batch q = Batch.ofStd(a, true, mean, std, d);
        for (int h = 0; h < d; h++) {
          std[h] += (random.nextInt(7) - 3) * Math.ulp(std[h]);
          mean[h] += random.nextInt(2) * Math.ulp(mean[h]);
        }
        check(a + " " + b + " alike", q, Batch.ofStd(b, true, mean, std, d));
      }
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

  private void check(String what, Batch q, Batch p) {
    Oracle oracle = new Oracle(q, p);
    for (int i = 0; i < q.size(); i++) {
      for (int j = 0; j < p.size(); j++) {
        check(what, q, i, p, j, oracle.kl(i, j));
      }
    }
  }

  private void check(String what, Batch q, int i, Batch p, int j, BigFloat kl) {
    assertThat(exact.compute(q.gaussians().batch, i, p.gaussians().batch, j)).as(what).isTrue();
    assertThat(Math.abs(exact.rest)).isLessThanOrEqualTo(0x1p-53);
    BigFloat actual = BigFloat.of(exact.value).times(BigFloat.ONE.plus(BigFloat.of(exact.rest)));
    double bound = DoubleDoubleKl.tolerance(q.dimension()) / 2;
    if (q.kind() != p.kind()) { // 1 + x is known to 2⁻⁹⁷, x no better
      bound += 0x1p-96 * Math.sqrt(q.dimension() / kl.toDouble());
    }
    assertThat(Math.abs(actual.minus(kl).dividedBy(kl).toDouble()))
        .as("%s: %s", what, kl.toDouble())
        .isLessThanOrEqualTo(bound);
  }

  /** Log-variances so near that the oracle's digits end: {@code KL = (x² − 2x³/3)/4}, x their difference. */
  @Test
  void logVariancesTinyDistancesApart() {
    for (double x : new double[] {1e-40, 3e-100, -7e-151}) {
      Batch q = new Batch(Batch.Kind.LOG_VARIANCE, true, new double[1], new double[] {x}, 1);
      Batch p = new Batch(Batch.Kind.LOG_VARIANCE, true, new double[1], new double[] {-2.5 * x}, 1);
      BigFloat y = BigFloat.of(x).minus(BigFloat.of(-2.5 * x));
      check("x = " + x, q, 0, p, 0, y.times(y).half().half()); // x³ is beyond the bound
    }
  }

  /** Squares and quotients beyond double's range, in divergences within it. */
  @Test
  void endsOfTheRange() {
    for (double std : new double[] {Double.MIN_VALUE, 1e-300, 1e-170, 1e160, 1e308}) {
      for (double ratio : new double[] {1, 0.75, 1e3}) {
        double far = std * ratio;
        if (far < Double.POSITIVE_INFINITY) {
          Batch q = new Batch(Batch.Kind.STD, true, new double[1], new double[] {std}, 1);
          Batch p = new Batch(Batch.Kind.STD, true, new double[] {far}, new double[] {far}, 1);
          check("std " + std + ", ratio " + ratio, q, p);
        }
      }
    }
    double[] one = {1};
    for (double mean : new double[] {1e-153, 1e153}) {
      Batch q = new Batch(Batch.Kind.STD, true, new double[1], one, 1);
      check("mean " + mean, q, new Batch(Batch.Kind.STD, true, new double[] {mean}, one, 1));
    }
    double[] most = {Double.MAX_VALUE}; // the difference of means overflows
    check(
        "opposite",
        new Batch(Batch.Kind.VARIANCE, true, new double[] {1e308}, one, 1),
        new Batch(Batch.Kind.VARIANCE, true, new double[] {-1e308}, most, 1));
  }

  /** Log-variances beyond the range of {@link Variance} are left to the caller: {@code compute} returns false. */
  @Test
  void isNothingForLogVariancesBeyondItsRange() {
    DiagonalGaussians one = DiagonalGaussians.ofLogVariance(new double[1], new double[1], 1);
    DiagonalGaussians wide =
        DiagonalGaussians.ofLogVariance(new double[] {1}, new double[] {1.1e5}, 1);
    assertThat(exact.compute(one.batch, 0, wide.batch, 0)).isFalse();
    assertThat(exact.compute(wide.batch, 0, one.batch, 0)).isFalse();
    DiagonalGaussians q = DiagonalGaussians.ofLogVariance(new double[2], new double[] {-1e6, 0}, 2);
    DiagonalGaussians ties =
        DiagonalGaussians.ofLogVariance(
            new double[] {0, 3, 0, -3}, new double[] {-1e6, 0, -1e6, 0}, 2);
    try (KlEngine engine = Engines.on(Backend.AUTO)) {
      Neighbors nearest = engine.nearest(q, ties, 2);
      assertThat(nearest.indices()).containsExactly(0, 1);
      assertThat(nearest.values()).containsExactly(4.5, 4.5);
    }
  }
}
