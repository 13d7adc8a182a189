package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.formula.ScaleRatio;
import dev.kullback.testing.Batch;
import dev.kullback.testing.Batch.Kind;
import dev.kullback.testing.BigFloat;
import dev.kullback.testing.Oracle;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The form without cancellation and the log-determinants keep their error bounds. */
@Tag("vector")
class PairKlTest {
  /** Relative error allowed to one term. */
  private static final double LIMIT = 70 * 0x1p-53;

  /** Scales of every two kinds, from one rounding apart to far apart, of any magnitude. */
  @ParameterizedTest
  @EnumSource
  void termsAreWithinSomeRoundings(Kind kind) {
    Random random = new Random(1);
    for (Kind other : Kind.values()) {
      for (int power = -50; power < 10; power++) {
        for (int i = 0; i < 60; i++) {
          double unit = Math.exp(i % 2 * (2 * random.nextDouble() - 1) * 150);
          double p = unit * (0.5 + random.nextDouble());
          double x = Math.scalb(1 + random.nextDouble(), power);
          double q = p * Math.sqrt(x < 1 && i % 3 == 0 ? 1 - x : 1 + x);
          check(kind, kind.fromStd.applyAsDouble(q), other, other.fromStd.applyAsDouble(p));
        }
      }
      // exponents beyond all others' range, and just within
      if (kind == Kind.LOG_VARIANCE) {
        double p = other.fromStd.applyAsDouble(1.5);
        for (double log : new double[] {-1e7, -1e5, -99_999, -1000.1, 709.7}) {
          check(kind, log, other, p);
        }
      }
    }
  }

  private static void check(Kind kind, double scaleQ, Kind other, double scaleP) {
    Batch q = new Batch(kind, true, new double[1], new double[] {scaleQ}, 1);
    Batch p = new Batch(other, true, new double[1], new double[] {scaleP}, 1);
    double expected = new Oracle(q, p).kl(0, 0).toDouble();
    double actual = PairKl.stable(new ScaleRatio(), q.gaussians().batch, 0, p.gaussians().batch, 0);
    double error = expected == 0 ? actual : Math.abs(actual / expected - 1);
    assertThat(error)
        .as("%s %s, %s %s: %s, not %s", kind, scaleQ, other, scaleP, actual, expected)
        .isLessThan(LIMIT);
  }

  /** Log-determinants of rows whose last numbers cancel the logarithms of the others, wherever vectors end. */
  @ParameterizedTest
  @EnumSource
  void logDeterminantsAreWithinTheirBounds(Kind kind) {
    int n = 60;
    for (int dimension : new int[] {1, 9, 20, 36, 100}) {
      Random random = new Random(dimension);
      double[] std = new double[n * dimension];
      for (int k = 0; k < std.length; k++) {
        int row = k / dimension;
        int rest = dimension % (8 << row % 3);
        int body = dimension - rest;
        double most = 40.0 * row / n; // of a logarithm that float holds, of a precision, too
        double log = k % dimension >= body ? most : -most * rest / body;
        std[k] = Math.exp(Double.isFinite(log) ? log : 0) * (1 + random.nextDouble());
      }
      for (boolean isDouble : new boolean[] {false, true}) {
        Batch batch = Batch.ofStd(kind, isDouble, new double[std.length], std, dimension);
        DiagonalGaussians g = batch.gaussians();
        for (int i = 0; i < n; i++) {
          BigFloat expected = logDeterminant(batch.rows(i, i + 1));
          double error = BigFloat.of(g.batch.logDet(i)).minus(expected).toDouble();
          assertThat(Math.abs(error))
              .as("%s, row %d of D=%d, double: %s", kind, i, dimension, isDouble)
              .isLessThanOrEqualTo(g.batch.logDetBound(i));
        }
      }
    }
  }

  private static BigFloat logDeterminant(Batch row) {
    BigFloat sum = BigFloat.ZERO;
    BigFloat product = BigFloat.ONE;
    for (double s : row.scale()) {
      sum = sum.plus(BigFloat.of(s));
      product = product.times(BigFloat.of(row.kind() == Kind.LOG_VARIANCE ? 1 : s));
    }
    return switch (row.kind()) {
      case STD -> product.ln();
      case VARIANCE -> product.ln().half();
      case PRECISION -> product.ln().half().negate();
      case LOG_VARIANCE -> sum.half();
    };
  }
}
