package dev.kullback.internal.rows;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.kernel.RowScan;
import dev.kullback.internal.vector.scan.ScalarScan;
import dev.kullback.internal.vector.scan.VectorScan;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Pieces of all lengths, at offsets, between values that would show. */
@Tag("vector")
class RowScanTest {
  static Stream<RowScan> scans() {
    return Platform.mayHaveVectors()
        ? Stream.of(new ScalarScan(4), new VectorScan())
        : Stream.of(new ScalarScan(4));
  }

  private interface Piece {
    void check(double[] values, int from, int to, Random random);
  }

  private static void forAll(int least, double outside, Piece piece) {
    Random random = new Random(2);
    for (int n = least; n < least + 300; n++) {
      int from = random.nextInt(9);
      double[] values = random.doubles(from + n + 20, -100, 100).toArray();
      for (int s = n / 10; s > 0; s--) {
        values[from + random.nextInt(n)] = s % 2 == 0 ? 0 : Double.POSITIVE_INFINITY;
      }
      Arrays.fill(values, 0, from, outside);
      Arrays.fill(values, from + n, values.length, outside);
      piece.check(values, from, from + n, random);
    }
  }

  @ParameterizedTest
  @MethodSource("scans")
  void atMost(RowScan scan) {
    forAll(
        0,
        -1000,
        (values, from, to, random) -> {
          for (double limit :
              new double[] {-30, -0.5, 0, random.nextDouble() * 100, 1e300, 1 / 0.0}) {
            int[] at = new int[to - from];
            int count = scan.atMost(limit, values, from, to, at);
            int[] expected =
                IntStream.range(0, to - from).filter(s -> values[from + s] <= limit).toArray();
            assertThat(Arrays.copyOf(at, count)).containsExactly(expected);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("scans")
  void leastOfGroups(RowScan scan) {
    forAll(
        128,
        -1000,
        (values, from, to, random) -> {
          int groups = 32 * (1 + random.nextInt(4));
          double[] least = new double[groups + 1];
          scan.leastOfGroups(values, from, to, groups, least);
          for (int g = 0; g < groups; g++) {
            double whole = Double.POSITIVE_INFINITY;
            for (int j = from + g; j < from + (to - from) / groups * groups; j += groups) {
              whole = Math.min(whole, values[j]);
            }
            double all = whole;
            for (int j = from + g; j < to; j += groups) {
              all = Math.min(all, values[j]);
            }
            assertThat(least[g]).isIn(whole, all);
          }
          assertThat(least[groups]).isZero();
        });
  }

  @ParameterizedTest
  @MethodSource("scans")
  void min(RowScan scan) {
    forAll(
        0,
        -1000,
        (values, from, to, _) ->
            assertThat(scan.min(values, from, to))
                .isEqualTo(Arrays.stream(values, from, to).min().orElse(Double.POSITIVE_INFINITY)));
  }

  @ParameterizedTest
  @MethodSource("scans")
  void sum(RowScan scan) {
    forAll(
        0,
        Double.NaN,
        (values, from, to, _) -> {
          double sum = Arrays.stream(values, from, to).sum();
          double found = scan.sum(values, from, to);
          if (sum < Double.POSITIVE_INFINITY) {
            double size = Arrays.stream(values, from, to).map(Math::abs).sum();
            assertThat(found).isCloseTo(sum, within(1e-14 * size));
          } else {
            assertThat(found).isEqualTo(sum);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("scans")
  void sumExp(RowScan scan) {
    forAll(
        0,
        Double.NaN,
        (values, from, to, _) -> {
          double least = scan.min(values, from, to);
          if (least < Double.POSITIVE_INFINITY) {
            double sum = Arrays.stream(values, from, to).map(x -> StrictMath.exp(least - x)).sum();
            assertThat(scan.sumExp(least, values, from, to))
                .isCloseTo(sum, within(1e-15 * (2 + to - from)));
          }
        });
  }

  /** The vector exp gives each argument the same result in every lane: alone, beside negligible ones. */
  @Test
  void exponentials() {
    Random random = new Random(3);
    for (RowScan scan : scans().toList()) {
      for (int trial = 0; trial < 20_000; trial++) {
        double[] values = new double[16];
        Arrays.fill(values, 1000);
        double x = trial < 100 ? trial * 0.5 * Math.log(2) : 60 * random.nextDouble();
        values[random.nextInt(values.length)] = x;
        double exp = StrictMath.exp(-x);
        assertThat(scan.sumExp(0, values, 0, 16)).as("%s", x).isCloseTo(exp, within(6e-16 * exp));
      }
    }
  }

  @ParameterizedTest
  @MethodSource("scans")
  void sortFew(RowScan scan) {
    Random random = new Random(4);
    for (int trial = 0; trial < 2000; trial++) {
      int n = random.nextInt(RowScan.FEW + 1);
      int from = random.nextInt(9);
      int different = 1 + random.nextInt(100);
      long[] keys = random.longs(from + n + 9L, 0, Long.MAX_VALUE).toArray();
      for (int s = from; s < from + n; s++) {
        keys[s] = trial % 2 == 0 ? keys[s] : keys[s] % different;
      }
      long[] expected = keys.clone();
      Arrays.sort(expected, from, from + n);
      scan.sortFew(keys, from, from + n);
      assertThat(keys).containsExactly(expected);
    }
  }
}
