package dev.kullback.internal.formula;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.data.Offset.offset;

import dev.kullback.internal.numerics.Scale;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class NearSeriesTest {
  /** What the near form's error bound grants the polynomials. */
  private static final double ERROR = 0x1p-42;

  @ParameterizedTest
  @EnumSource(Scale.class)
  void seriesOfKlIsWithinItsBound(Scale kind) {
    boolean isLog = kind == Scale.LOG_VARIANCE;
    int even = isLog ? 5 : 2;
    int odd = isLog ? 5 : 7;
    double[] c = NearSeries.of(kind, 0, even, odd);
    for (double y = -NearSeries.LIMIT; y <= NearSeries.LIMIT; y += 0x1p-10) {
      double half = 2 * Math.log(Math.sqrt(1 + y * y / 4) + y / 2);
      double u =
          switch (kind) {
            case STD -> 2 * half;
            case VARIANCE -> half;
            case LOG_VARIANCE -> y;
            case PRECISION -> -half;
          };
      if (y == 0) {
        continue;
      }
      double exact = 0; // of e^u − 1 − u, over u²
      for (int n = 20; n >= 2; n--) {
        exact = exact * u + 1 / factorial(n);
      }
      double square = y * y;
      double value = horner(c, 0, even, square) + y * horner(c, even, odd, square);
      assertThat(value * square / (exact * u * u)).as("%s", y).isCloseTo(1, offset(ERROR));
    }
  }

  private static double horner(double[] c, int from, int count, double x) {
    double sum = 0;
    for (int k = from; k < from + count; k++) {
      sum = sum * x + c[k];
    }
    return sum;
  }

  private static double factorial(int n) {
    return n < 2 ? 1 : n * factorial(n - 1);
  }
}
