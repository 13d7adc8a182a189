package dev.kullback.internal.index.search;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.DiagonalGaussians;
import dev.kullback.KlIndex;
import dev.kullback.Query;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.formula.Density;
import dev.kullback.internal.formula.Pair;
import dev.kullback.internal.numerics.RangeCheck;
import dev.kullback.internal.numerics.Scale;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Bounds of what points are ranked by hold every number that a computed one may be, also where hardly a case in a million comes near them. */
class PointBoundsTest {
  /** What a sum of squares that ranks may be wrong by, relatively, as a formula's stable form tells; the sum itself is exact in these tests. */
  private static final double ERROR = 2e-14;

  private static DiagonalBatch points(int d, double x) {
    double[] values = new double[d];
    Arrays.fill(values, x);
    return DiagonalBatch.ofPoints(Elements.of(values, "points"), d, RangeCheck.PLAIN);
  }

  private static DoubleBounds of(Density density, DiagonalBatch q, DiagonalBatch p) {
    Bounds bounds = new Bounds(density);
    bounds.set(q, 0, false, 0);
    DoubleBounds sums = new DoubleBounds(bounds);
    sums.set(q, 0);
    assertThat(sums.of(p)).isTrue();
    return sums;
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 4, 64, 256})
  void sumsHoldWhatRanksByDensity(int d) {
    DiagonalBatch p = DiagonalBatch.ofSlot(d, Scale.STD, true);
    Arrays.fill(p.scale64(), 1);
    p.takeRow(0, 0, true);
    DoubleBounds sums = of(Density.EXCESS, points(d, 1.5), p);
    double value = 0.5 * d * 2.25;
    assertThat(sums.lower).isLessThanOrEqualTo(value * (1 - ERROR));
    assertThat(sums.upper).isGreaterThanOrEqualTo(value * (1 + ERROR));
    assertThat(sums.upper - sums.lower).isLessThan(value * 1e-12);
  }

  /** A square that underflows before it is divided by its variance counts, even of a determinant that is known: a gate of radius 0 is not to take the point. */
  @Test
  void squareThatUnderflowsIsNotZero() {
    double[] mean = new double[2];
    double[] logVariance = {-60, 60};
    DiagonalBatch p = DiagonalBatch.ofSlot(2, Scale.LOG_VARIANCE, true);
    p.fill(mean, logVariance);
    assertThat(p.logDetBound(0)).isZero();
    double x = 0x1p-540; // its square is 2^-1080, and the distance's e^60 times that
    assertThat(of(Density.MAHALANOBIS, points(2, x), p).upper)
        .isGreaterThanOrEqualTo(Math.scalb(Math.exp(60), -1080));

    DiagonalGaussians gaussians = DiagonalGaussians.ofLogVariance(mean, logVariance, 2);
    try (KlIndex index = KlIndex.builder(2).build()) {
      index.add(new long[] {7}, gaussians);
      DiagonalGaussians asked = DiagonalGaussians.ofPoints(new double[] {x, x}, 2);
      assertThat(index.search(asked, Query.within(0)).count(0)).isZero();
    }
  }

  /** A point at the mean of a Gaussian that is far wider than the narrowest: the logarithms are all of its excess. */
  @Test
  void logarithmsHaveNoise() {
    int d = 3;
    double least = -2000;
    DiagonalBatch q = points(d, 1.5);
    Block block = new Block();
    block.rows = 1;
    block.leastPrecision = 1;
    block.logDet = new double[1];
    block.bound = new double[1];
    block.slack = new float[1];
    block.length = new float[1];
    Bounds bounds = new Bounds(Density.EXCESS);
    bounds.set(q, 0, false, least);
    assertThat(bounds.lower(block, 0, 0)).isLessThanOrEqualTo(-least * (1 - Pair.PRECISE_ERROR));
    assertThat(bounds.upper(block, 0, 0)).isGreaterThanOrEqualTo(-least * (1 + Pair.PRECISE_ERROR));
    assertThat(bounds.base(-least)).isGreaterThanOrEqualTo(-2 * least * Pair.PRECISE_ERROR);
  }
}
