package dev.kullback.internal.formula;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.data.Offset.offset;

import dev.kullback.internal.numerics.Scale;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class NearSeriesTest {
  /** What the near form's error bound grants the polynomials in double, and in float. */
  private static final double ERROR = 0x1p-42;

  private static final double ERROR_IN_SINGLE = 1.1e-6;

  private static final double[] WEIGHTS = {1e-12, 1e-3, 0.3, 0.5, 0.9, 0.999, 1};

  @ParameterizedTest
  @EnumSource(Scale.class)
  void seriesOfKlIsWithinItsBound(Scale kind) {
    boolean isLog = kind == Scale.LOG_VARIANCE;
    check(kind, NearTerm.KL, 0, isLog ? 5 : 2, isLog ? 5 : 7, NearSeries.LIMIT, ERROR);
  }

  @ParameterizedTest
  @EnumSource(Scale.class)
  void seriesOfJeffreysIsWithinItsBound(Scale kind) {
    check(kind, NearTerm.JEFFREYS, 0, 5, 0, NearSeries.LIMIT, ERROR);
    check(kind, NearTerm.JEFFREYS, 0, 2, 0, NearSeries.LIMIT_IN_SINGLE, ERROR_IN_SINGLE);
  }

  @ParameterizedTest
  @EnumSource(Scale.class)
  void seriesOfChernoffIsWithinItsBound(Scale kind) {
    for (double w : WEIGHTS) {
      check(kind, NearTerm.CHERNOFF, w, 8, 8, NearSeries.LIMIT, ERROR);
      check(kind, NearTerm.CHERNOFF, w, 2, 2, NearSeries.LIMIT_IN_SINGLE, ERROR_IN_SINGLE);
    }
  }

  private static void check(
      Scale kind, NearTerm term, double w, int even, int odd, double limit, double error) {
    double[] c = NearSeries.of(kind, term, w, even, odd, limit);
    for (int k = -64; k <= 64; k++) {
      double y = k * limit / 64;
      if (y == 0) {
        continue;
      }
      double half = 2 * Math.log(Math.sqrt(1 + y * y / 4) + y / 2);
      double u =
          switch (kind) {
            case STD -> 2 * half;
            case VARIANCE -> half;
            case LOG_VARIANCE -> y;
            case PRECISION -> -half;
          };
      double exact = integral(u, w);
      if (term == NearTerm.JEFFREYS) {
        exact += integral(u, 1);
      }
      double square = y * y;
      double value = horner(c, 0, even, square) + y * horner(c, even, odd, square);
      assertThat(value * square / exact).as("%s, w = %s", y, w).isCloseTo(1, offset(error));
    }
  }

  /** Returns the integral of {@code (e^t − 1)/(1 + w (e^t − 1))} from 0 to u, by the rule of Gauss and Legendre on 64 intervals. */
  private static double integral(double u, double w) {
    double step = u / 64;
    double sum = 0;
    for (int k = 0; k < 64; k++) {
      double middle = (k + 0.5) * step;
      sum += 8 * slope(middle, w);
      sum += 5 * slope(middle - Math.sqrt(0.15) * step, w);
      sum += 5 * slope(middle + Math.sqrt(0.15) * step, w);
    }
    return sum * step / 18;
  }

  private static double slope(double t, double w) {
    return Math.expm1(t) / (1 + w * Math.expm1(t));
  }

  private static double horner(double[] c, int from, int count, double x) {
    double sum = 0;
    for (int k = from; k < from + count; k++) {
      sum = sum * x + c[k];
    }
    return sum;
  }
}
