package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.formula.PairKl;
import dev.kullback.internal.formula.ScaleRatio;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.testing.Batch;
import dev.kullback.testing.Batch.Kind;
import dev.kullback.testing.BigFloat;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Oracle;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The contract of double where sums have millions of terms. All are alike, so that roundings are, too, and the divergence is a
 * known multiple of one term.
 */
class LargeDimensionTest {
  /** Well below the contract, and what ranks are decided by: errors do not come from how long a sum is. */
  private static final double LIMIT = 1e-14;

  @Test
  void diagonal() {
    int dimension = 1 << 22;
    double[] zeros = new double[dimension];
    double[] ones = new double[dimension];
    Arrays.fill(ones, 1);
    DiagonalGaussians p = DiagonalGaussians.ofStd(zeros, ones, dimension);
    double[] scales = new double[dimension];
    try (KlEngine vector = Engines.on(Backend.AUTO);
        KlEngine scalar = Engines.on(Backend.SCALAR)) {
      for (double std : new double[] {1.322853244402972, 0.7}) {
        Arrays.fill(scales, std);
        DiagonalGaussians q = DiagonalGaussians.ofStd(zeros, scales, dimension);
        BigFloat term = new Oracle(one(std), one(1)).kl(0, 0);
        BigFloat expected = term.times(BigFloat.of(dimension));
        assertThat(error(expected, vector.aligned(q, p, new double[1])[0])).isLessThan(LIMIT);
        assertThat(error(expected, vector.toStandardNormal(q, new double[1])[0])).isLessThan(LIMIT);
        assertThat(error(expected, scalar.pairwise(q, p, new double[1])[0])).isLessThan(LIMIT);
        assertThat(error(expected, PairKl.precise(new ScaleRatio(), q.batch, 0, p.batch, 0)))
            .isLessThan(LIMIT);
      }
    }
  }

  private static Batch one(double std) {
    return new Batch(Kind.STD, true, new double[1], new double[] {std}, 1);
  }

  private static double error(BigFloat expected, double actual) {
    return Math.abs(BigFloat.of(actual).minus(expected).dividedBy(expected).toDouble());
  }

  /** A unit diagonal, equal numbers below it, and a mean: {@code KL = (c² D(D − 1)/2 + m² D)/2}. */
  @ParameterizedTest
  @ValueSource(ints = {300, 1000, 2000})
  void full(int dimension) {
    int length = Cholesky.packedLength(dimension);
    double[] unit = new double[length];
    double[] factor = new double[length];
    double[] mean = new double[dimension];
    for (double below : new double[] {0.7408781907032909, 0.7422219172863654}) {
      for (double m : new double[] {0, 0.3}) {
        Arrays.fill(factor, below);
        Arrays.fill(mean, m);
        for (int k = 0, r = 0; r < dimension; k += ++r + 1) {
          unit[k] = factor[k] = 1;
        }
        FullGaussians q =
            (FullGaussians)
                Gaussians.of(ScaleKind.PLAIN_PACKED_SCALE_TRIL, mean, factor, dimension);
        FullGaussians p =
            (FullGaussians)
                Gaussians.of(
                    ScaleKind.PLAIN_PACKED_SCALE_TRIL, new double[dimension], unit, dimension);
        BigFloat squares = square(below).times(BigFloat.of(dimension * (dimension - 1.0) / 2));
        BigFloat expected = squares.plus(square(m).times(BigFloat.of(dimension))).half();
        try (KlEngine engine = Engines.on(Backend.AUTO)) {
          assertThat(error(expected, engine.toStandardNormal(q, new double[1])[0]))
              .isLessThan(LIMIT);
          assertThat(error(expected, engine.aligned(q, p, new double[1])[0])).isLessThan(LIMIT);
        }
      }
    }
  }

  private static BigFloat square(double x) {
    return BigFloat.of(x).times(BigFloat.of(x));
  }
}
