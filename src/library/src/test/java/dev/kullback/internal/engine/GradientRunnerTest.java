package dev.kullback.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Calls too large for a test, by what they are cut into. */
class GradientRunnerTest {
  /** Whole blocks of rows, eight of long ones, and fewer where an array does not hold eight. */
  @ParameterizedTest
  @CsvSource({
    "1000000, 100, 41920",
    "50, 100, 50",
    "1000, 10000, 416",
    "1000, 200000, 8",
    "5, 200000, 5",
    "1000, 268435454, 8",
    "1000, 268435456, 7",
    "1000, 2147483639, 1"
  })
  void weightsOfABandFitAnArray(int rows, int columns, int band) {
    assertThat(GradientRunner.band(rows, columns)).isEqualTo(band);
    assertThat((long) band * columns).isLessThanOrEqualTo(Integer.MAX_VALUE - 8);
  }
}
