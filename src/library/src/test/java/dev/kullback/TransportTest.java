package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Transports of components against all permutations, and against the order of the means in one dimension. */
class TransportTest {
  private static KlEngine engine(Divergence divergence) {
    return KlEngine.builder().divergence(divergence).build();
  }

  private static Gaussians random(int n, int d, Random random) {
    return DiagonalGaussians.ofStd(
        random.doubles(n * d, -2, 2).toArray(), random.doubles(n * d, 0.3, 2).toArray(), d);
  }

  /** The least sum of costs over all permutations of the columns. */
  private static double leastOfPermutations(double[][] cost, int row, boolean[] taken) {
    if (row == cost.length) {
      return 0;
    }
    double least = Double.POSITIVE_INFINITY;
    for (int c = 0; c < cost.length; c++) {
      if (!taken[c]) {
        taken[c] = true;
        least = Math.min(least, cost[row][c] + leastOfPermutations(cost, row + 1, taken));
        taken[c] = false;
      }
    }
    return least;
  }

  /** Weights in eighths are those of eight equal parts, of which a permutation is the best coupling. */
  @ParameterizedTest
  @ValueSource(strings = {"squared-wasserstein-2", "kl"})
  void isTheLeastOfAllCouplings(String name) {
    int[][] parts = {{1, 3, 4}, {2, 2, 2, 2}, {8}, {0, 1, 7}, {1, 1, 1, 1, 1, 1, 1, 1}, {3, 5}};
    Random random = new Random(1);
    try (KlEngine engine = engine(Divergence.of(name))) {
      for (int[] a : parts) {
        for (int[] b : parts) {
          Gaussians f = random(a.length, 2, random);
          Gaussians g = random(b.length, 2, random);
          double[] costs = engine.pairwise(f, g, new double[a.length * b.length]);
          int[] rows = eighths(a);
          int[] columns = eighths(b);
          double[][] cost = new double[8][8];
          for (int r = 0; r < 8; r++) {
            for (int c = 0; c < 8; c++) {
              cost[r][c] = costs[rows[r] * b.length + columns[c]];
            }
          }
          double least = leastOfPermutations(cost, 0, new boolean[8]) / 8;
          double[] transported = of(f, a).transport(of(g, b), engine);
          assertThat(transported).containsExactly(new double[] {least}, within(1e-14 * least));
        }
      }
    }
  }

  private static int[] eighths(int[] parts) {
    return IntStream.range(0, parts.length)
        .flatMap(i -> IntStream.generate(() -> i).limit(parts[i]))
        .toArray();
  }

  private static Mixtures of(Gaussians f, int[] parts) {
    return Mixtures.of(f, Arrays.stream(parts).mapToDouble(k -> k / 8.0).toArray());
  }

  /** In one dimension with equal variances, the coupling is that of the ordered means. */
  @Test
  void oneDimension() {
    Random random = new Random(2);
    try (KlEngine engine = engine(Divergence.SQUARED_WASSERSTEIN_2)) {
      for (int n : new int[] {1, 7, 60, 150}) {
        int m = n + n / 3;
        double[] a = random.doubles(n, -1, 1).sorted().toArray();
        double[] b = random.doubles(m, -3, 2).sorted().toArray();
        double[] u = weights(n, random);
        double[] v = weights(m, random);
        double expected = 0;
        double[] left = u.clone();
        double[] room = v.clone();
        for (int i = 0, j = 0; i < n && j < m; ) {
          double x = Math.min(left[i], room[j]);
          expected += x * (a[i] - b[j]) * (a[i] - b[j]);
          left[i] -= x;
          room[j] -= x;
          i += left[i] == 0 ? 1 : 0;
          j += j < m && room[j] == 0 ? 1 : 0;
        }
        double[] ones = new double[m];
        Arrays.fill(ones, 0.3);
        Mixtures q = Mixtures.of(DiagonalGaussians.ofStd(a, Arrays.copyOf(ones, n), 1), u);
        Mixtures p = Mixtures.of(DiagonalGaussians.ofStd(b, ones, 1), v);
        assertThat(q.transport(p, engine)[0]).isCloseTo(expected, within(1e-12 * expected));
        assertThat(p.transport(q, engine)[0]).isCloseTo(expected, within(1e-12 * expected));
        assertThat(q.transport(q, engine)).containsExactly(0);
      }
    }
  }

  private static double[] weights(int n, Random random) {
    double[] w = random.doubles(n, 0.01, 1).toArray();
    double sum = Arrays.stream(w).sum();
    return Arrays.stream(w).map(x -> x / sum).toArray();
  }

  /** A batch has the transports of all pairs, row-major, and the root is a distance. */
  @Test
  void batches() {
    Random random = new Random(3);
    Gaussians f = random(9, 3, random);
    Mixtures q = Mixtures.of(f, weights(4, 3, 2, random), new int[] {0, 4, 7, 9});
    try (KlEngine engine = engine(Divergence.SQUARED_WASSERSTEIN_2)) {
      double[] out = q.transport(q, engine);
      for (int m = 0; m < 3; m++) {
        for (int n = 0; n < 3; n++) {
          double direct = Math.sqrt(out[3 * m + n]);
          assertThat(out[3 * m + n]).isCloseTo(out[3 * n + m], within(1e-14));
          assertThat(out[3 * m + n] == 0).isEqualTo(m == n);
          for (int k = 0; k < 3; k++) {
            assertThat(direct)
                .isLessThanOrEqualTo(Math.sqrt(out[3 * m + k]) + Math.sqrt(out[3 * k + n]) + 1e-14);
          }
        }
      }
    }
  }

  private static double[] weights(int a, int b, int c, Random random) {
    return IntStream.of(a, b, c)
        .mapToObj(n -> weights(n, random))
        .flatMapToDouble(Arrays::stream)
        .toArray();
  }

  /** Infinite divergences between two groups of the same weight, which differs by rounding, do not make infinite what the others cost. */
  @Test
  void infiniteDivergences() {
    Gaussians f = DiagonalGaussians.ofStd(new double[] {0, 2, 0x1p600}, new double[] {1, 1, 1}, 1);
    Gaussians g = DiagonalGaussians.ofStd(new double[] {0, 0x1p600}, new double[] {1, 1}, 1);
    try (KlEngine engine = engine(Divergence.KL)) {
      Mixtures q = Mixtures.of(f, new double[] {0.1, 0.2, 0.7});
      double[] out = q.transport(Mixtures.of(g, new double[] {0.3, 0.7}), engine);
      assertThat(out).containsExactly(new double[] {0.4}, within(1e-15));
      out = q.transport(Mixtures.of(g, new double[] {0.25, 0.75}), engine);
      assertThat(out).containsExactly(Double.POSITIVE_INFINITY);
    }
  }

  /** A component of little weight that is far from all others does not hide the differences of those, which are in the opposite order. */
  @Test
  void farComponents() {
    Random random = new Random(6);
    double small = 0x1p-50;
    try (KlEngine engine = engine(Divergence.SQUARED_WASSERSTEIN_2)) {
      for (int n : new int[] {3, 8, 40}) {
        double[] a = random.doubles(n + 1, -1, 1).sorted().toArray();
        double[] b = random.doubles(n + 1, -1, 1).sorted().toArray();
        double[] reversed = new double[n + 1];
        Arrays.setAll(reversed, i -> b[n - i]);
        a[0] = 0x1p27; // meets the greatest of b, of which a part of little weight is the first
        reversed[n] = b[n];
        double[] weights = new double[n + 1];
        Arrays.fill(weights, (1 - small) / n);
        weights[0] = small;
        double expected = small * (a[0] - b[n]) * (a[0] - b[n]);
        for (int i = 1; i <= n; i++) {
          double d = a[i] - b[i];
          expected += weights[i] * d * d;
        }
        double[] ones = new double[n + 1];
        Arrays.fill(ones, 1);
        Mixtures q = Mixtures.of(DiagonalGaussians.ofStd(a, ones, 1), weights);
        Mixtures p = Mixtures.of(DiagonalGaussians.ofStd(reversed, ones, 1), weights);
        assertThat(q.transport(p, engine)[0]).isCloseTo(expected, within(1e-12 * expected));
        assertThat(p.transport(q, engine)[0]).isCloseTo(expected, within(1e-12 * expected));
      }
    }
  }

  @Test
  void badArgumentsAndInterruption() {
    Mixtures q = Mixtures.of(random(300, 2, new Random(4)));
    try (KlEngine engine = engine(Divergence.SQUARED_WASSERSTEIN_2)) {
      Mixtures intensity = Mixtures.unnormalized(random(2, 2, new Random(5)), new double[] {2, 1});
      refused(() -> q.transport(intensity, engine), "p: the sum of weights of mixture 0 is 3.0");
      Thread.currentThread().interrupt();
      assertThatThrownBy(() -> q.transport(q, engine)).isInstanceOf(CancellationException.class);
      assertThat(Thread.interrupted()).isTrue();
    }
  }
}
