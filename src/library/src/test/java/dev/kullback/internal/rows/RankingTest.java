package dev.kullback.internal.rows;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.internal.kernel.RowScan;
import dev.kullback.internal.vector.scan.ScalarScan;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** A search keeps the nearest k by value and index, and what the error leaves as near, and no more. */
class RankingTest {
  @ParameterizedTest
  @MethodSource("dev.kullback.internal.rows.RowScanTest#scans")
  void keepsWhatMayBeAmongTheNearest(RowScan scan) {
    Random random = new Random(1);
    Ranking c = new Ranking(new KeySort(scan));
    for (int trial = 0; trial < 3000; trial++) {
      int n = 1 + random.nextInt(700);
      int k = 1 + random.nextInt(random.nextBoolean() ? n : Math.min(n, 8));
      double error = trial % 3 == 0 ? 1e-12 : 0.03;
      double[] value = values(n, trial % 6, random);
      c.startNearest(k, n, error, Double.POSITIVE_INFINITY);
      if (trial % 7 == 0) {
        c.limitByGroups(value.clone(), n);
      }
      for (int j = 0; j < n; j++) {
        if (value[j] <= c.limit()) {
          c.offer(j, value[j]);
        }
      }
      c.prune();
      Integer[] order = IntStream.range(0, n).boxed().toArray(Integer[]::new);
      Arrays.sort(order, Comparator.comparingDouble(j -> value[j])); // stable: ties by index
      double cut = value[order[k - 1]] * (1 + error) / (1 - error);
      int kept = (int) IntStream.range(0, n).filter(s -> s < k || value[order[s]] < cut).count();
      assertThat(c.count()).as("trial %d", trial).isEqualTo(kept);
      for (int s = 0; s < kept; s++) {
        assertThat(c.place(s)).as("trial %d, rank %d", trial, s).isEqualTo((long) order[s]);
        assertThat(c.value(s)).isEqualTo(value[order[s]]);
      }
    }
  }

  /** Few values, with rests by which some are equal but for 2⁻⁸², also one that was rounded up and one that was rounded down. */
  @ParameterizedTest
  @MethodSource("dev.kullback.internal.rows.RowScanTest#scans")
  void restsDecideBetweenEqualValues(RowScan scan) {
    Random random = new Random(2);
    Ranking c = new Ranking(new KeySort(scan));
    for (int trial = 0; trial < 1000; trial++) {
      int n = 1 + random.nextInt(trial % 10 == 0 ? 700 : 9);
      int[] quarterUlps = new int[n]; // above 1
      c.startDecided();
      for (int j = 0; j < n; j++) {
        quarterUlps[j] = random.nextInt(7) - 2;
        c.append(j, 0);
      }
      c.clearRests();
      for (int j = 0; j < n; j++) {
        boolean isUp = quarterUlps[j] > 2 || (quarterUlps[j] == 2 && random.nextBoolean());
        double rest = (quarterUlps[j] - (isUp ? 4 : 0)) * 0x1p-54 + random.nextInt(2) * 0x1p-82;
        c.setUnrounded(j, isUp ? Math.nextUp(1.0) : 1, rest);
      }
      c.sortUnrounded(0x1p-80);
      Integer[] order = IntStream.range(0, n).boxed().toArray(Integer[]::new);
      Arrays.sort(order, Comparator.comparingInt(j -> quarterUlps[j])); // stable: ties by index
      for (int s = 0; s < n; s++) {
        assertThat(c.place(s)).as("trial %d, rank %d", trial, s).isEqualTo((long) order[s]);
        if (s > 0) {
          assertThat(c.value(s)).isGreaterThanOrEqualTo(c.value(s - 1));
          if (quarterUlps[order[s]] == quarterUlps[order[s - 1]]) {
            assertThat(c.value(s)).isEqualTo(c.value(s - 1));
          }
        }
      }
    }
  }

  /** Random; few different ones; descending; zeros and infinities among them; all within the error; almost equal ones and one far away. */
  private static double[] values(int n, int kind, Random random) {
    double[] value = new double[n];
    for (int j = 0; j < n; j++) {
      value[j] =
          switch (kind) {
            case 0 -> random.nextDouble();
            case 1 -> 1 + random.nextInt(5);
            case 2 -> n - j;
            case 4 -> 1 + 0x1p-52 * random.nextInt(1000) + (j == 0 ? 1e300 : 0);
            case 3 -> new double[] {0, 1, Double.POSITIVE_INFINITY}[random.nextInt(3)];
            default -> 1 + 0.01 * random.nextDouble();
          };
    }
    return value;
  }

  /** Values below the least normal number may be wrong by a unit in the last place: two units apart, they are not decided. */
  @Test
  void subnormalValuesHaveAnErrorOfAUnit() {
    Ranking ranking = new Ranking(new KeySort(new ScalarScan(1)));
    for (double error : new double[] {1e-12, 1e-5}) {
      ranking.startNearest(1, 9, error, Double.POSITIVE_INFINITY);
      for (int units = 5; units < 9; units++) {
        ranking.offer(units, units * Double.MIN_VALUE);
      }
      ranking.prune();
      assertThat(ranking.count()).isEqualTo(2);
      assertThat(Ranking.atMost(5 * Double.MIN_VALUE, error))
          .isEqualTo(Ranking.atLeast(7 * Double.MIN_VALUE, error));
    }
  }

  /** Candidates with bounds of their own: whatever the order, those whose lower bounds the k least upper ones do not exclude. */
  @Test
  void upperBoundsLimitTheSearch() {
    Random random = new Random(3);
    Ranking ranking = new Ranking(new KeySort(new ScalarScan(1)));
    for (int trial = 0; trial < 1000; trial++) {
      int n = 1 + random.nextInt(300);
      int k = 1 + random.nextInt(20);
      double[] low = random.doubles(n).toArray();
      double[] high = Arrays.stream(low).map(x -> x + random.nextDouble() / 9).toArray();
      int kept = random.nextInt(n);
      ranking.startNearest(k, Integer.MAX_VALUE, 1);
      for (int s = 0; s < n; s++) {
        ranking.offer(s, low[s], high[s]);
        if (s == kept) {
          int count = ranking.count();
          ranking.offer(-1, 0, Double.POSITIVE_INFINITY);
          ranking.withdraw(count);
        }
      }
      ranking.prune();
      double limit =
          n < k ? Double.POSITIVE_INFINITY : Arrays.stream(high).sorted().toArray()[k - 1];
      assertThat(ranking.limit()).isEqualTo(limit);
      assertThat(IntStream.range(0, ranking.count()).mapToLong(ranking::place))
          .containsExactlyElementsOf(
              LongStream.range(0, n).filter(s -> low[(int) s] <= limit).boxed().toList());
    }
  }

  /** Sorting looks again and again whether the search is to end. */
  @Test
  void sortingLooksAtTheTime() {
    int n = 100_000;
    int[] looks = {0};
    KeySort sort = new KeySort(new ScalarScan(1), () -> looks[0]++);
    sort.ensureCapacity(n);
    Random random = new Random(1);
    Arrays.setAll(sort.keys, s -> random.nextLong() >>> 1);
    sort.sort(n);
    assertThat(looks[0]).isGreaterThan(100);
    assertThat(Arrays.copyOf(sort.keys, n)).isSorted();
    KeySort ended =
        new KeySort(
            new ScalarScan(1),
            () -> {
              throw new CancellationException();
            });
    ended.ensureCapacity(n);
    assertThatThrownBy(() -> ended.sort(n)).isInstanceOf(CancellationException.class);
  }

  /** A search for very many keeps memory for what it has found. */
  @Test
  void memoryGrowsWithTheCandidates() {
    Ranking ranking = new Ranking(new KeySort(new ScalarScan(1)));
    ranking.startNearest(1_000_000, Integer.MAX_VALUE, 1);
    for (int s = 0; s < 100; s++) {
      ranking.offer(s, s, s + 1);
    }
    assertThat(ranking.count()).isEqualTo(100);
    assertThat(ranking.capacity()).isLessThan(200);
  }
}
