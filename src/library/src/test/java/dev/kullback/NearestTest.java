package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.kullback.testing.Batch;
import dev.kullback.testing.BigFloat;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Oracle;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Random;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The nearest k and those within a radius, in the order of exact arithmetic. */
@Tag("device")
class NearestTest {
  /** Relative difference of two divergences that is told apart in a few dimensions. */
  private static final double TOLD_APART = 0x1p-83;

  /** The exact divergences of a row from all columns, sorted, ties by index. */
  private record Exact(Integer[] order, BigFloat[] kl) {
    static Exact of(int columns, IntFunction<BigFloat> row) {
      BigFloat[] kl = IntStream.range(0, columns).mapToObj(row).toArray(BigFloat[]::new);
      Integer[] order = IntStream.range(0, columns).boxed().toArray(Integer[]::new);
      Arrays.sort(order, Comparator.comparing(j -> kl[j], (a, b) -> a.minus(b).signum()));
      return new Exact(order, kl);
    }

    void checkNearest(String what, Neighbors actual, int i, double contract, int except) {
      int r = 0;
      for (int j : order) {
        if (j == except || r == actual.count(i)) {
          continue;
        }
        assertThat(actual.index(i, r)).as("%s: row %d, neighbor %d", what, i, r).isEqualTo(j);
        double exact = kl[j].toDouble();
        assertThat(Math.abs(actual.value(i, r) - exact))
            .as("%s: row %d, neighbor %d, value %s of %s", what, i, r, actual.value(i, r), exact)
            .isLessThanOrEqualTo(contract * exact);
        r++;
      }
      assertThat(r).isEqualTo(actual.count(i));
    }

    void checkWithin(String what, Neighbors actual, int i, double radius) {
      int[] expected =
          IntStream.range(0, kl.length)
              .filter(j -> kl[j].minus(BigFloat.of(radius)).signum() <= 0)
              .toArray();
      int[] found = Arrays.copyOfRange(actual.indices(), actual.start(i), actual.start(i + 1));
      assertThat(found).as("%s: row %d, radius %s", what, i, radius).isEqualTo(expected);
    }

    /** Between the values of ranks r and r + 1, or the next that are not equal; infinite past the last. */
    double between(int r) {
      for (; r + 1 < order.length; r++) {
        double low = kl[order[r]].toDouble();
        double high = kl[order[r + 1]].toDouble();
        if (high > low * (1 + 4e-13)) {
          return 0.5 * (low + high);
        }
      }
      return Double.MAX_VALUE;
    }
  }

  private interface Kl {
    BigFloat of(int i, int j);
  }

  private static void check(
      Backend backend, String what, Gaussians q, Gaussians p, Kl kl, double contract) {
    int m = p.size();
    Exact[] exact = new Exact[q.size()];
    for (int i = 0; i < exact.length; i++) {
      int row = i;
      exact[i] = Exact.of(m, j -> kl.of(row, j));
    }
    checkReverse(backend, what, p, q, kl, contract);
    try (KlEngine engine = Engines.on(backend)) {
      for (int k : new int[] {1, 2, 7, m - 1, m}) {
        Neighbors nearest = engine.nearest(q, p, k);
        assertThat(nearest.size()).isEqualTo(q.size());
        for (int i = 0; i < exact.length; i++) {
          assertThat(nearest.count(i)).isEqualTo(k);
          exact[i].checkNearest(what + ", k = " + k, nearest, i, contract, -1);
        }
      }
      for (int r : new int[] {0, 4, m - 2}) {
        double radius = exact[0].between(r);
        Neighbors within = engine.within(q, p, radius);
        for (int i = 0; i < exact.length; i++) {
          exact[i].checkWithin(what, within, i, radius);
        }
      }
    }
  }

  /** Checks the reverse searches: for each p_i the rows q_j nearest by KL(q_j ‖ p_i). */
  private static void checkReverse(
      Backend backend, String what, Gaussians p, Gaussians q, Kl kl, double contract) {
    int m = q.size();
    try (KlEngine engine = Engines.on(backend, 2)) {
      Neighbors[] nearest = new Neighbors[m + 1];
      for (int k = 1; k <= m; k++) {
        nearest[k] = engine.search(p, q, Query.nearest(k).reverse());
      }
      double radius = Exact.of(m, j -> kl.of(j, 0)).between(0);
      Neighbors within = engine.search(p, q, Query.within(radius).reverse().maxPairs(p.size() * m));
      for (int i = 0; i < p.size(); i++) {
        int row = i;
        Exact exact = Exact.of(m, j -> kl.of(j, row));
        for (int k = 1; k <= m; k++) {
          exact.checkNearest(what + " reversed, k = " + k, nearest[k], i, contract, -1);
        }
        exact.checkWithin(what + " reversed", within, i, radius);
      }
    }
  }

  /** Reverse searches compute KL(p ‖ q), which is undefined for a deterministic q, but not for a deterministic p. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void reverseOfDeterministicBatches(Backend backend) {
    float[] mean = {1, 2};
    Gaussians zero =
        Gaussians.of(ScaleKind.STD, mean, new float[2], 1, ScalePolicy.DETERMINISTIC_IF_ZERO);
    DiagonalGaussians other = DiagonalGaussians.ofStd(mean, mean, 1);
    try (KlEngine engine = Engines.on(backend)) {
      Neighbors found = engine.search(other, zero, Query.nearest(2).reverse());
      assertThat(found.indices()).containsExactly(0, 1, 0, 1);
      assertThat(found.values()).containsOnly(0);
      refused(() -> engine.search(zero, other, Query.nearest(1).reverse()), "q is deterministic");
    }
  }

  /**
   * Candidates whose divergences differ by 1e-10 relative, in batches of float and of double, where the float
   * kernels leave 1e-6.
   */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void nearTies(Backend backend) {
    int m = 300;
    int d = 9;
    Random random = new Random(1);
    for (boolean isDouble : new boolean[] {false, true}) {
      double[] mean = new double[m * d];
      double[] std = new double[m * d];
      for (int h = 0; h < d; h++) {
        mean[h] = random.nextGaussian();
        std[h] = random.nextDouble(0.5, 1.5);
      }
      for (int j = 1; j < m; j++) {
        System.arraycopy(mean, 0, mean, j * d, d);
        System.arraycopy(std, 0, std, j * d, d);
        mean[j * d + 3] = 1e-3 * (1 + random.nextInt(m) * (isDouble ? 0x1p-26 : 0x1p-20));
      }
      mean[3] = 1e-3;
      Batch p = new Batch(Batch.Kind.STD, isDouble, mean, std, d);
      double[] from = new double[2 * d];
      double[] one = new double[2 * d];
      Arrays.fill(one, 1);
      from[3] = 30;
      from[d + 3] = -30;
      Batch q = new Batch(Batch.Kind.STD, isDouble, from, one, d);
      Oracle oracle = new Oracle(q, p);
      String what = backend + (isDouble ? " double" : " float");
      Exact first = Exact.of(m, j -> oracle.kl(0, j));
      double gap =
          first.kl[first.order[m - 1]].toDouble() / first.kl[first.order[0]].toDouble() - 1;
      assertThat(gap).as("they are near ties").isBetween(1e-12, 1e-6);
      check(backend, what, q.gaussians(), p.gaussians(), oracle::kl, isDouble ? 1e-12 : 1e-5);
    }
  }

  /** Parameters from few values, so that near ties and equal divergences of different Gaussians abound. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void ranksOfCoarseParameters(Backend backend) {
    Random random = new Random(7);
    for (int trial = 0; trial < 40; trial++) {
      boolean isDouble = trial % 4 == 0;
      int d = 1 + random.nextInt(3);
      int m = 2 + random.nextInt(60);
      double step = Math.pow(2, -random.nextInt(22));
      double[] mean = new double[(m + 2) * d];
      double[] std = new double[mean.length];
      for (int k = 0; k < mean.length; k++) {
        // dimensions differ in scale: what exchanges them is not a tie
        mean[k] = (k % d + 1) * 0.7 + step * random.nextInt(4);
        std[k] = 1 + step * random.nextInt(3);
      }
      Batch all = new Batch(Batch.Kind.STD, isDouble, mean, std, d);
      Batch q = all.rows(m, m + 2);
      Batch p = all.rows(0, m);
      Oracle oracle = new Oracle(q, p);
      Neighbors nearest;
      int k = 1 + random.nextInt(m);
      try (KlEngine engine = Engines.on(backend)) {
        nearest = engine.nearest(q.gaussians(), p.gaussians(), k);
      }
      for (int i = 0; i < 2; i++) {
        for (int r = 1; r < k; r++) {
          BigFloat before = oracle.kl(i, nearest.index(i, r - 1));
          BigFloat after = oracle.kl(i, nearest.index(i, r));
          double gap = after.minus(before).toDouble();
          String what = "%s, trial %d, row %d, rank %d".formatted(backend, trial, i, r);
          assertThat(gap).as(what).isGreaterThanOrEqualTo(-TOLD_APART * after.toDouble());
          if (gap <= TOLD_APART * after.toDouble()) {
            assertThat(nearest.index(i, r - 1)).as(what).isLessThan(nearest.index(i, r));
            assertThat(nearest.value(i, r - 1)).as(what).isEqualTo(nearest.value(i, r));
          }
        }
        double last = nearest.value(i, k - 1);
        for (int j = 0; j < m; j++) {
          int column = j;
          int row = i;
          if (IntStream.range(0, k).noneMatch(r -> nearest.index(row, r) == column)) {
            assertThat(oracle.kl(i, j).toDouble()).isGreaterThanOrEqualTo(last * (1 - 2e-5));
          }
        }
      }
    }
  }

  /** Equal columns, near and far, in order of index, whatever else is there. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void tiesGoToTheLowerIndex(Backend backend) {
    int m = 2300;
    float[] mean = new float[m];
    float[] std = new float[m];
    Arrays.fill(std, 1);
    for (int j = 0; j < m; j++) {
      mean[j] = j % 3;
    }
    DiagonalGaussians p = DiagonalGaussians.ofStd(mean, std, 1);
    DiagonalGaussians q = DiagonalGaussians.ofStd(new float[] {0.25f}, new float[] {1}, 1);
    DiagonalGaussians far = DiagonalGaussians.ofStd(new float[] {0}, new float[] {1e38f}, 1);
    DiagonalGaussians thin =
        DiagonalGaussians.ofLogVariance(new double[m], doubles(m, -800), 1); // all infinite
    try (KlEngine engine = Engines.on(backend)) {
      Neighbors nearest = engine.nearest(q, p, 1000);
      for (int r = 0; r < 767; r++) {
        assertThat(nearest.index(0, r)).isEqualTo(3 * r);
      }
      for (int r = 767; r < 1000; r++) {
        assertThat(nearest.index(0, r)).isEqualTo(3 * (r - 767) + 1);
      }
      Neighbors zeros = engine.nearest(p, p, 5);
      assertThat(zeros.index(301, 4)).isEqualTo(13);
      assertThat(zeros.value(301, 4)).isZero();
      Neighbors infinite = engine.nearest(far, thin, 70);
      assertThat(infinite.indices()).isEqualTo(IntStream.range(0, 70).toArray());
      assertThat(infinite.value(0, 69)).isEqualTo(Double.POSITIVE_INFINITY);
      assertThat(engine.within(far, thin, Double.MAX_VALUE).count(0)).isZero();
      assertThat(engine.within(far, thin, Double.POSITIVE_INFINITY).count(0)).isEqualTo(m);
    }
  }

  private static double[] doubles(int n, double value) {
    double[] result = new double[n];
    Arrays.fill(result, value);
    return result;
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void oneColumnAndDeterministicRows(Backend backend) {
    DiagonalGaussians p = Batch.random(true, 1, 3, 0, new Random(3)).gaussians();
    DiagonalGaussians q = Batch.random(true, 70, 3, 0, new Random(4)).gaussians();
    Gaussians zero =
        Gaussians.of(
            ScaleKind.STD, new float[6], new float[6], 3, ScalePolicy.DETERMINISTIC_IF_ZERO);
    try (KlEngine engine = Engines.on(backend)) {
      assertThat(engine.nearest(q, p, 1).indices()).containsOnly(0).hasSize(70);
      assertThat(engine.within(q, p, 1e9).indices()).containsOnly(0).hasSize(70);
      assertThat(engine.nearest(zero, q, 2).indices()).isEqualTo(new int[] {0, 1, 0, 1});
      assertThat(engine.within(zero, q, 0).count(1)).isEqualTo(70);
    }
  }

  /** Divergences below double's normal numbers, after a call whose candidates would show. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void subnormalDivergences(Backend backend) {
    double[] one = new double[600];
    Arrays.fill(one, 1);
    double[] tiny = new double[600];
    Arrays.fill(tiny, 1e-156);
    DiagonalGaussians p = DiagonalGaussians.ofStd(tiny, one, 1);
    DiagonalGaussians far =
        DiagonalGaussians.ofStd(
            IntStream.range(0, 600).mapToDouble(j -> 600 - j).toArray(), one, 1);
    DiagonalGaussians q = DiagonalGaussians.ofStd(new double[1], new double[] {1}, 1);
    try (KlEngine engine = Engines.on(backend)) {
      assertThat(engine.nearest(q, far, 3).indices()).containsExactly(599, 598, 597);
      assertThat(engine.nearest(q, p, 3).indices()).containsExactly(0, 1, 2);
      assertThat(engine.nearest(q, p, 3).value(0, 2)).isEqualTo(5e-313);
    }
  }

  /** Sums of the same terms in another order are equal, and differ in double: the index decides. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void tiesOfPermutedDimensions(Backend backend) {
    int d = 5;
    int m = 400;
    Random random = new Random(9);
    for (boolean isDouble : new boolean[] {false, true}) {
      double[] mean = new double[m * d];
      double[] std = new double[m * d];
      for (int j = 0; j < m; j++) {
        if (j % 2 == 0) {
          for (int h = 0; h < d; h++) {
            mean[j * d + h] = (float) random.nextGaussian();
            std[j * d + h] = (float) random.nextDouble(0.5, 1.5);
          }
        } else { // the one before, turned
          for (int h = 0; h < d; h++) {
            mean[j * d + h] = mean[(j - 1) * d + (h + 2) % d];
            std[j * d + h] = std[(j - 1) * d + (h + 2) % d];
          }
        }
      }
      double[] one = new double[d];
      Arrays.fill(one, 1);
      Gaussians p = new Batch(Batch.Kind.STD, isDouble, mean, std, d).gaussians();
      Gaussians q = new Batch(Batch.Kind.STD, isDouble, new double[d], one, d).gaussians();
      try (KlEngine engine = Engines.on(backend)) {
        Neighbors all = engine.nearest(q, p, m);
        for (int r = 0; r < m; r += 2) {
          assertThat(all.index(0, r + 1)).isEqualTo(all.index(0, r) + 1);
          assertThat(all.value(0, r + 1)).isEqualTo(all.value(0, r));
        }
        for (int k : new int[] {1, 7, 101}) {
          assertThat(engine.nearest(q, p, k).indices()).isEqualTo(Arrays.copyOf(all.indices(), k));
        }
        double radius = all.value(0, 100);
        assertThat(engine.within(q, p, Math.nextUp(radius)).count(0)).isEqualTo(102);
        assertThat(engine.within(q, p, radius).count(0)).as("rounded up or down").isIn(100, 102);
        assertThat(engine.within(q, p, Math.nextDown(radius)).count(0)).isEqualTo(100);
      }
    }
  }

  /**
   * Equal divergences of permuted dimensions are ties, whatever the order of a sum makes of them: from the least divergences to large
   * ones, in few and many dimensions, in every way to state a scale.
   */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void tiesOfPermutedDimensionsOfAnySize(Backend backend) {
    Batch.Kind[] kinds = Batch.Kind.values();
    for (int d : new int[] {2, 33, 1024, 8192}) {
      boolean isHuge = d > 1024;
      double[] sizes =
          isHuge ? new double[] {1e-300, 1e-2} : new double[] {1e-300, 1e-70, 1e-6, 1e-2, 1e3};
      for (int k = 0; k < sizes.length; k++) {
        for (int c = 0; c < (isHuge ? 1 : 2 * kinds.length); c++) {
          if (d == 1024 && c % 5 != k) {
            continue; // some of the same
          }
          Batch.Kind a = kinds[c % kinds.length];
          Batch.Kind b = kinds[(c + c / kinds.length) % kinds.length]; // the same, and others
          boolean isDouble = sizes[k] < 1e-70 || c % 2 == 0;
          String what =
              "%s, D = %d, KL near %s, %s, %s, %s"
                  .formatted(backend, d, sizes[k], a, b, isDouble ? "double" : "float");
          checkTies(backend, what, a, b, isDouble, d, sizes[k]);
        }
      }
    }
  }

  /** Dimensions up to what the emulated device has memory for. */
  private static int[] dimensions(Backend backend) {
    return new int[] {2, 33, 1024, backend == Backend.CUDA ? 8192 : 65_536};
  }

  private static void checkTies(
      Backend backend,
      String what,
      Batch.Kind a,
      Batch.Kind b,
      boolean isDouble,
      int d,
      double kl) {
    Random random = new Random(d);
    double size = Math.sqrt(kl / d);
    double[] means = new double[d];
    double[] stds = new double[d];
    for (int h = 0; h < d; h++) {
      means[h] = size * (0.5 + random.nextDouble());
      stds[h] = Math.exp(Math.min(size, 0.5) * random.nextGaussian());
    }
    // Columns 2, 5, 8 and 11 are farther than the others, which are equal; 6 and 7 are to the
    // letter.
    int m = 13;
    double[] mean = new double[m * d];
    double[] std = new double[m * d];
    for (int j = 0; j < m; j++) {
      int turn = j == 7 ? 6 : j;
      for (int h = 0; h < d; h++) {
        int from = turn % 2 == 0 ? (h + turn * (d / 12 + 1)) % d : d - 1 - h;
        mean[j * d + h] = means[from] * (j % 3 == 2 ? 1.5 : 1);
        std[j * d + h] = stds[from];
      }
    }
    Gaussians p = Batch.ofStd(b, isDouble, mean, std, d).gaussians();
    Gaussians q = Batch.ofStd(a, isDouble, new double[d], ones(d), d).gaussians();
    int[] order = {0, 1, 3, 4, 6, 7, 9, 10, 12, 2, 5, 8, 11};
    try (KlEngine engine = Engines.on(backend)) {
      Neighbors all = engine.nearest(q, p, m);
      assertThat(all.indices()).as(what).isEqualTo(order);
      assertThat(all.value(0, 0)).as(what).isBetween(0.1 * kl, 10 * kl);
      for (int r = 1; r < m; r++) {
        assertThat(all.value(0, r) == all.value(0, r - 1)).as(what).isEqualTo(r != 9);
      }
      assertThat(engine.nearest(q, p, 4).indices()).as(what).isEqualTo(Arrays.copyOf(order, 4));
    }
  }

  /** {@code KL = ½ (1 + δ²)}, δ² far below double's last bit, in descending order, and with other dimensions, turned. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void unroundedValuesDecide(Backend backend) {
    try (KlEngine engine = Engines.on(backend)) {
      for (boolean isDouble : new boolean[] {false, true}) {
        for (int d : dimensions(backend)) {
          for (double delta : d > 1024 ? new double[] {1e-11} : new double[] {1e-9, 1e-11}) {
            int m = d > 1024 ? 3 : 7;
            double[] mean = new double[m * d];
            double[] std = ones(m * d);
            for (int j = 0; j < m; j++) {
              mean[j * d + j % d] = 1;
              mean[j * d + (j + 1) % d] = (m - 1 - j) * delta;
              for (int h = 2; h < d; h++) {
                std[j * d + (j + h) % d] = 1 + 0.01 * Math.sin(h);
              }
            }
            Gaussians p = new Batch(Batch.Kind.STD, isDouble, mean, std, d).gaussians();
            Gaussians q =
                new Batch(Batch.Kind.STD, isDouble, new double[d], ones(d), d).gaussians();
            Neighbors nearest = engine.nearest(q, p, m);
            String what = "%s, D = %d, delta %s, double %s".formatted(backend, d, delta, isDouble);
            for (int r = 0; r < m; r++) {
              assertThat(nearest.index(0, r)).as(what).isEqualTo(m - 1 - r);
            }
            assertThat(nearest.values()).as(what).isSorted();
            assertThat(engine.nearest(q, p, 1).indices()).as(what).containsExactly(m - 1);
          }
        }
      }
    }
  }

  /** The point (0.6, 0.8) is, as doubles, just outside of the circle that (0, 1) is on, and (0.28, 0.96) inside: all KL round to ½. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void unroundedValuesAreWithin(Backend backend) {
    double[] mean = {0.6, 0.8, 0.28, 0.96, 0, 1, 1, 1e-9, 1, 0};
    Batch p = new Batch(Batch.Kind.STD, true, mean, ones(10), 2);
    Batch q = new Batch(Batch.Kind.STD, true, new double[2], ones(2), 2);
    Oracle oracle = new Oracle(q, p);
    Exact exact = Exact.of(5, j -> oracle.kl(0, j));
    try (KlEngine engine = Engines.on(backend)) {
      Neighbors within = engine.within(q.gaussians(), p.gaussians(), 0.5);
      assertThat(within.indices()).containsExactly(1, 2, 4);
      assertThat(within.values()).containsOnly(0.5);
      for (double radius : new double[] {Math.nextDown(0.5), 0.5, Math.nextUp(0.5)}) {
        within = engine.within(q.gaussians(), p.gaussians(), radius);
        exact.checkWithin(backend.toString(), within, 0, radius);
      }
    }
  }

  private static double[] ones(int n) {
    return doubles(n, 1);
  }

  /**
   * The nearest and the ties after them are found among more of such as double does not tell from them than a list takes, or than one of a span of
   * columns does, which threads share from a million terms on.
   */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void manyThatDoubleDoesNotTellApart(Backend backend) {
    int m = 40_000;
    int d = 27;
    double[] mean = new double[m * d];
    for (int j = 0; j < m; j++) {
      mean[j * d + j % d] = 1;
      mean[j * d + (j + 1 + j % 2) % d] = j % 10_000 == 17 ? 0 : j < 30_000 ? 2e-9 : 1e-9;
    }
    for (int threads : new int[] {1, 3}) {
      try (KlEngine engine = Engines.on(backend, threads)) {
        for (boolean isDouble : new boolean[] {false, true}) {
          Gaussians p = new Batch(Batch.Kind.STD, isDouble, mean, ones(m * d), d).gaussians();
          Gaussians q = new Batch(Batch.Kind.STD, isDouble, new double[d], ones(d), d).gaussians();
          assertThat(engine.nearest(q, p, 6).indices())
              .as("%s, %d threads, double %s", backend, threads, isDouble)
              .containsExactly(17, 10_017, 20_017, 30_017, 30_000, 30_001);
          assertThat(engine.within(q, p, 0.5).indices())
              .containsExactly(17, 10_017, 20_017, 30_017);
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void rejected(Backend backend) {
    DiagonalGaussians q = Batch.random(false, 4, 3, 0, new Random(1)).gaussians();
    DiagonalGaussians p = Batch.random(false, 6, 3, 0, new Random(1)).gaussians();
    try (KlEngine engine = Engines.on(backend)) {
      for (int k : new int[] {0, -1, 7, Integer.MAX_VALUE}) {
        assertThatIllegalArgumentException()
            .isThrownBy(() -> engine.nearest(q, p, k))
            .withMessageContaining("6")
            .withMessageContaining(String.valueOf(k));
      }
      refused(() -> engine.search(q, p, Query.nearest(2), new int[7], new float[8]), "indices");
      refused(() -> engine.search(q, p, Query.nearest(2), new int[8], new double[7]), "values");
      for (double radius : new double[] {-1, -Double.MIN_VALUE, Double.NaN}) {
        refused(() -> engine.within(q, p, radius), String.valueOf(radius));
      }
    }
  }
}
