package dev.kullback.internal.numerics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.vector.RangeKernel;
import java.util.Arrays;
import java.util.stream.DoubleStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** One number of many that may be out of bounds, at each place, beside others that always are. */
class RangeTest {
  private static final float LEAST = 0x1p-100f;
  private static final float MOST = 0x1p100f;

  /** Bounds, of which some are no floats. */
  private static final double[] MOSTS = {
    1,
    Math.nextUp(1.0),
    MOST,
    Math.nextDown((double) MOST),
    Float.MAX_VALUE,
    1e300,
    Double.MAX_VALUE
  };

  private static final double[] NUMBERS =
      DoubleStream.of(
              0,
              Float.MIN_VALUE,
              Float.MIN_NORMAL,
              Math.nextDown(LEAST),
              LEAST,
              1,
              MOST,
              Math.nextUp(MOST),
              Float.MAX_VALUE,
              Double.POSITIVE_INFINITY,
              Double.NaN)
          .flatMap(x -> DoubleStream.of(x, -x))
          .toArray();

  @Test
  void floats() {
    floats(RangeCheck.PLAIN);
  }

  @Tag("vector")
  @Test
  void floatsInVectors() {
    floats(new RangeKernel());
  }

  private static void floats(RangeCheck check) {
    for (int n = 1; n < 40; n++) {
      for (int at = 0; at < n; at++) {
        for (double number : NUMBERS) {
          float x = (float) number;
          float[] values = new float[n + 5];
          Arrays.fill(values, Float.NaN);
          Arrays.fill(values, 2, 2 + n, 1);
          values[2 + at] = x;
          assertThat(check.contains(LEAST, MOST, values, 2, 2 + n))
              .as("%s in [%s, %s], %d of %d", x, LEAST, MOST, at, n)
              .isEqualTo(x >= LEAST && x <= MOST);
          for (double most : MOSTS) {
            assertThat(check.contains(-most, most, values, 2, 2 + n))
                .as("|%s| <= %s, %d of %d", x, most, at, n)
                .isEqualTo(Math.abs(x) <= most);
          }
        }
      }
    }
  }

  @Test
  void doubles() {
    for (int n = 1; n < 40; n++) {
      for (int at = 0; at < n; at++) {
        for (double x : NUMBERS) {
          double[] values = new double[n + 5];
          Arrays.fill(values, Double.NaN);
          Arrays.fill(values, 2, 2 + n, 1);
          values[2 + at] = x;
          assertThat(DoubleRange.contains(LEAST, MOST, values, 2, 2 + n))
              .as("%s in [%s, %s], %d of %d", x, LEAST, MOST, at, n)
              .isEqualTo(x >= LEAST && x <= MOST);
          for (double most : new double[] {1, MOST, Double.MAX_VALUE}) {
            assertThat(DoubleRange.contains(-most, most, values, 2, 2 + n))
                .as("|%s| <= %s, %d of %d", x, most, at, n)
                .isEqualTo(Math.abs(x) <= most);
          }
        }
      }
    }
  }
}
