package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.kullback.internal.rows.SearchOptions;
import dev.kullback.testing.Batch;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import dev.kullback.testing.WarmCalls;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Random;
import java.util.function.LongPredicate;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Searches of an index by points find what an engine finds among a batch of the same references. */
@Tag("vector")
class IndexPointsTest {
  /** References that are added at first, in segments with codes and without. */
  private static final int M = 520;

  private static final long[] IDS =
      LongStream.range(0, M).map(i -> 3 * (i * 7 % M) - 1000).toArray();

  /** Rows that are the same, by groups of so many; the one that is narrower than all others; those that are removed; and replaced by others. */
  private static final int SAME = 5;

  private static final int NARROW = 33;

  private static final int REMOVED = 11;

  @TempDir private Path folder;

  private static Gaussians references(Batch.Kind kind, boolean isDouble, int d, Random random) {
    double[] mean = new double[M * d];
    double[] std = new double[M * d];
    for (int k = 0; k < mean.length; k++) {
      int row = k / d;
      boolean isSame = row >= d && row % 9 < SAME && row % 9 > 0;
      mean[k] = isSame ? mean[k - d] : random.nextGaussian() + (row % 50 == 3 ? 30 : 0);
      double its = row == NARROW ? 1e-3 : random.nextDouble(0.3, 1.5) * (row % 50 == 4 ? 1e6 : 1);
      std[k] = isSame && row != NARROW ? std[k - d] : its;
    }
    return Batch.ofStd(kind, isDouble, mean, std, d).gaussians();
  }

  private static Gaussians gaussians(boolean isDouble, double[] mean, double[] std, int d) {
    return new Batch(Batch.Kind.STD, isDouble, mean, std, d).gaussians();
  }

  /** Fills an index by several commits, with removed and replaced references. */
  private static void fill(KlIndex index, Gaussians p, boolean commits) {
    int[] ends = {0, 300, 510, M};
    for (int s = 0; s + 1 < ends.length; s++) {
      index.add(Arrays.copyOfRange(IDS, ends[s], ends[s + 1]), p.slice(ends[s], ends[s + 1]));
      if (commits) {
        index.commit();
      }
    }
    index.remove(
        IntStream.range(0, M).filter(i -> i % REMOVED == 0).mapToLong(i -> IDS[i]).toArray());
    index.replace(Arrays.copyOfRange(IDS, 400, 420), p.slice(100, 120));
    if (commits) {
      index.commit();
    }
  }

  /** Points amid the references, at the mean of one, near one, far, and so far that squares overflow. */
  private static double[] points(int n, int d, Gaussians p, boolean isDouble, Random random) {
    double[] x = new double[n * d];
    for (int i = 0; i < n; i++) {
      double far = i % 7 == 4 ? 1e4 : i % 7 == 5 ? 1e18 : i % 7 == 6 ? isDouble ? 1e200 : 1e38 : 1;
      boolean isNear = i % 7 == 1 || i % 7 == 2;
      double[] mean = isNear ? p.mean(20 + i) : new double[d];
      for (int h = 0; h < d; h++) {
        x[i * d + h] =
            isNear
                ? mean[h] + (i % 7 == 2 ? (isDouble ? 1e-160 : 1e-30) * random.nextGaussian() : 0)
                : far * random.nextGaussian(0, 0.3);
      }
    }
    return x;
  }

  private static DiagonalGaussians points(double[] x, boolean isDouble, int d) {
    return isDouble
        ? DiagonalGaussians.ofPoints(x, d)
        : DiagonalGaussians.ofPoints(Batch.narrowed(x), d);
  }

  /** A query of an index, and the same of an engine whose columns have these ids. */
  private record Asked(Query query, LongPredicate filter) {
    static Asked all(Query query) {
      return new Asked(query, _ -> true);
    }

    Query ofIndex() {
      return query.filter(filter);
    }

    Query ofEngine(long[] ids) {
      Query exact = query.toString().contains("byLogDensity") ? query : query.exact();
      return exact.filter(j -> filter.test(ids[(int) j]));
    }
  }

  /** Compares an index with an engine: its scalar backend computes each value by itself, so there the bits are the same. */
  private static void compare(
      String what, KlIndex index, Gaussians x, KlEngine engine, boolean areBits) {
    long[] ids = index.ids();
    Gaussians live = index.get(ids);
    double[] logs = engine.logDensity(x, live, new double[x.size() * live.size()]);
    double some = -Arrays.stream(logs).sorted().toArray()[logs.length - 1 - logs.length / 40];
    double[] squares = engine.mahalanobis(x, live, new double[logs.length]);
    double gate = Arrays.stream(squares).sorted().toArray()[squares.length / 30];
    LongPredicate even = id -> (id & 1) == 0;
    Asked[] asked = {
      Asked.all(Query.nearest(1)),
      Asked.all(Query.nearest(7)),
      new Asked(Query.nearest(4), even),
      Asked.all(Query.nearest(M + 1)),
      Asked.all(Query.within(gate)),
      Asked.all(Query.within(0)),
      Asked.all(Query.nearest(1).byLogDensity()),
      Asked.all(Query.nearest(7).byLogDensity()),
      new Asked(Query.nearest(4).byLogDensity(), even),
      Asked.all(Query.nearest(M + 1).byLogDensity()),
      Asked.all(Query.denserThan(-some)),
      new Asked(Query.denserThan(-some).maxPairs(1 << 20), even),
      Asked.all(Query.denserThan(Double.NEGATIVE_INFINITY)),
      Asked.all(Query.denserThan(1e6)),
    };
    for (Asked one : asked) {
      IndexNeighbors found = index.search(x, one.ofIndex());
      Neighbors expected = engine.search(x, live, one.ofEngine(ids));
      for (int i = 0; i < x.size(); i++) {
        String which = "%s, %s, row %d".formatted(what, one.query, i);
        assertThat(found.count(i)).as(which).isEqualTo(expected.count(i));
        assertThat(found.isComplete(i)).as(which).isTrue();
        for (int r = 0; r < found.count(i); r++) {
          assertThat(found.id(i, r)).as(which).isEqualTo(ids[expected.index(i, r)]);
          double value = expected.value(i, r);
          if (areBits) {
            assertThat(found.value(i, r)).as(which).isEqualTo(value);
          } else if (found.value(i, r) != value) {
            double size = Math.abs(value) + 40.0 * x.dimension();
            assertThat(Math.abs(found.value(i, r) - value)).as(which).isLessThan(1e-5 * size);
          }
        }
      }
    }
  }

  private static void same(IndexNeighbors found, IndexNeighbors expected) {
    assertThat(found.ids()).isEqualTo(expected.ids());
    assertThat(found.values()).isEqualTo(expected.values());
    for (int i = 0; i < expected.size(); i++) {
      assertThat(found.count(i)).isEqualTo(expected.count(i));
    }
  }

  static Stream<Arguments> cases() {
    return Stream.of(Batch.Kind.values())
        .flatMap(kind -> Stream.of(false, true).map(isDouble -> Arguments.of(kind, isDouble)));
  }

  @ParameterizedTest
  @MethodSource("cases")
  void isWhatAnEngineFinds(Batch.Kind kind, boolean isDouble) {
    for (int d : new int[] {1, 3, 11}) {
      Random random = new Random(d);
      Gaussians p = references(kind, isDouble, d, random);
      boolean arePointsDouble = d % 2 == 1 == isDouble;
      try (KlIndex index = KlIndex.builder(d).threads(d == 3 ? 1 : 3).build();
          KlEngine scalar = Engines.on(Backend.SCALAR)) {
        fill(index, p, false);
        for (int n : d == 3 ? new int[] {7, 40} : new int[] {7}) { // by bounds, and by kernels
          DiagonalGaussians x =
              points(points(n, d, p, arePointsDouble, random), arePointsDouble, d);
          compare("D = %d, %d points".formatted(d, n), index, x, scalar, true);
        }
      }
    }
  }

  /** Of one dimension and many, as the kernels compute it. */
  @Test
  void isWhatVectorsFind() {
    for (int d : new int[] {1, 24}) {
      Random random = new Random(d);
      Gaussians p = references(Batch.Kind.STD, false, d, random);
      try (KlIndex index = KlIndex.builder(d).divergence(Divergence.REVERSE_KL).build();
          KlEngine engine = KlEngine.builder().build()) {
        fill(index, p, false);
        compare("D = " + d, index, points(points(7, d, p, false, random), false, d), engine, false);
      }
    }
  }

  /** Segments of files, of an index that is only read, and their merger. */
  @Test
  void isTheSameInFiles() {
    int d = 12;
    Random random = new Random(5);
    Gaussians p = references(Batch.Kind.VARIANCE, false, d, random);
    DiagonalGaussians x = points(points(7, d, p, false, random), false, d);
    try (KlEngine scalar = Engines.on(Backend.SCALAR);
        KlIndex index = KlIndex.builder(d).open(folder)) {
      fill(index, p, true);
      try (KlIndex read = KlIndex.openReadOnly(folder)) {
        compare("read only", read, x, scalar, true);
        IndexNeighbors before = read.search(x, Query.nearest(9).byLogDensity());
        index.compact();
        index.commit();
        assertThat(read.refresh()).isTrue();
        same(read.search(x, Query.nearest(9).byLogDensity()), before);
        index.remove(before.id(0, 0));
        index.commit();
        read.refresh();
        compare("refreshed", read, x, scalar, true);
      }
      compare("compacted", index, x, scalar, true);
    }
  }

  /** Of divergences whose codes say nothing of points, or that have none, kernels compute all values. */
  @Test
  void anyDivergenceThatNeedsInversesTakesPoints() {
    int d = 9;
    Random random = new Random(8);
    Gaussians p = references(Batch.Kind.STD, true, d, random);
    DiagonalGaussians x = points(points(7, d, p, true, random), true, d);
    for (Divergence divergence :
        new Divergence[] {Divergence.JEFFREYS, Divergence.HELLINGER, Divergence.REVERSE_KL}) {
      try (KlEngine scalar = Engines.on(Backend.SCALAR);
          KlIndex index = KlIndex.builder(d).divergence(divergence).build()) {
        fill(index, p, false);
        compare(divergence.name(), index, x, scalar, true);
        IndexNeighbors all = index.search(x, Query.nearest(5).timeout(Duration.ofDays(1)));
        same(all, index.nearest(x, 5));
        all = index.search(x, Query.nearest(5).byLogDensity().approximate(1e-9));
        assertThat(all.size()).isEqualTo(7);
      }
    }
    try (KlIndex index = KlIndex.builder(d).divergence(Divergence.WASSERSTEIN_2).build()) {
      index.add(IDS, p);
      refused(() -> index.nearest(x, 1), "wasserstein-2 takes no points");
    }
  }

  /**
   * Kernels of matrices take rows that are removed, too: what they lose beside a log-determinant far less than those that are left must not
   * decide between neighbors that are closer than that.
   */
  @Test
  void removedNarrowReferencesDecideNothing() {
    int d = 62;
    Random random = new Random(1);
    double[] mean = random.doubles(400 * d, -3e-7, 3e-7).toArray();
    double[] std = new double[mean.length];
    Arrays.fill(std, 1);
    Arrays.fill(std, 0, d, 1e-15);
    DiagonalGaussians x = points(random.doubles(40 * d, -3e-7, 3e-7).toArray(), false, d);
    for (Divergence divergence : new Divergence[] {Divergence.KL, Divergence.JEFFREYS}) {
      try (KlEngine scalar = Engines.on(Backend.SCALAR);
          KlIndex index = KlIndex.builder(d).divergence(divergence).build()) {
        index.add(LongStream.range(0, 400).toArray(), gaussians(false, mean, std, d));
        index.remove(0);
        compare(divergence.name(), index, x, scalar, true);
      }
    }
  }

  @Test
  void fullCovariancesTakePoints() {
    int d = 4;
    Random random = new Random(3);
    for (boolean isDouble : new boolean[] {false, true}) {
      FullBatch p = FullBatch.random(isDouble, M, d, 30, 0, random);
      try (KlEngine scalar = Engines.on(Backend.SCALAR);
          KlIndex index = KlIndex.builder(d).fullCovariances().build()) {
        fill(index, p.gaussians(), false);
        double[] x = random.doubles(7 * d, -3, 3).toArray();
        System.arraycopy(p.mean(), 40 * d, x, 0, d);
        compare("double: " + isDouble, index, points(x, isDouble, d), scalar, true);
      }
    }
  }

  /** Searches that end early tell how near others can be, in the unit of their values. */
  @ParameterizedTest
  @MethodSource("cases")
  void provesWhatItHasLeftOut(Batch.Kind kind, boolean isDouble) {
    int d = 12;
    Random random = new Random(9);
    Gaussians p = references(kind, isDouble, d, random);
    DiagonalGaussians x = points(points(7, d, p, false, random), false, d);
    try (KlIndex index = KlIndex.builder(d).build()) {
      fill(index, p, false);
      for (Query query :
          new Query[] {
            Query.nearest(6),
            Query.nearest(6).byLogDensity(),
            Query.within(30),
            Query.denserThan(-30)
          }) {
        IndexNeighbors all = index.search(x, query);
        IndexNeighbors few = index.search(x, query.approximate(0.001));
        same(index.search(x, query.timeout(Duration.ofDays(1))), all);
        for (int i = 0; i < x.size(); i++) {
          long[] found = few.row(i).stream().mapToLong(Neighbor::id).toArray();
          for (int r = 0; r < all.count(i); r++) {
            long id = all.id(i, r);
            if (Arrays.stream(found).noneMatch(other -> other == id)) {
              assertThat(few.provenUpTo(i)).isLessThanOrEqualTo(all.value(i, r));
            }
          }
          if (few.isComplete(i)) {
            assertThat(few.row(i)).isEqualTo(all.row(i));
          }
        }
      }
    }
  }

  /** A reference of the density of a search is found, though its excess and the least density make that only once they are added up. */
  @Test
  void denserThanAnEqualDensity() {
    int d = 5;
    Random random = new Random(3);
    double[] std = random.doubles(300 * d, 0.5, 2).toArray();
    Gaussians p = gaussians(true, random.doubles(300 * d).toArray(), std, d);
    double[] x = random.doubles(50 * d, -1, 1).toArray();
    try (KlEngine engine = KlEngine.builder().build();
        KlIndex index = KlIndex.builder(d).build()) {
      index.add(LongStream.range(0, 300).toArray(), p);
      for (int i = 0; i < 50; i++) {
        DiagonalGaussians point = points(Arrays.copyOfRange(x, i * d, (i + 1) * d), true, d);
        double value = index.search(point, Query.nearest(9).byLogDensity()).value(0, 8);
        assertThat(index.search(point, Query.denserThan(-value)).count(0)).isEqualTo(9);
        assertThat(engine.search(point, p, Query.denserThan(-value)).count(0)).isEqualTo(9);
        Query less = Query.denserThan(-Math.nextDown(value));
        assertThat(index.search(point, less).count(0)).isEqualTo(8);
        assertThat(engine.search(point, p, less).count(0)).isEqualTo(8);
      }
    }
  }

  /** The greatest number whose sum with a shift is a radius, at once also where that is a power of two, below which numbers are closer. */
  @Test
  void radiusWithoutAShift() {
    double[] numbers = {-8, 8, -1, 0.5, -7.999999999999999, 3.3, 1e-20, -1e5, 0, -0x1p-40, 1e300};
    for (double radius : numbers) {
      for (double shift : numbers) {
        double most = SearchOptions.within(radius).radiusWithout(shift);
        assertThat(most + shift).isLessThanOrEqualTo(radius);
        if (shift != 0) {
          assertThat(Math.nextUp(most) + shift).isGreaterThan(radius);
        }
      }
    }
    assertThat(SearchOptions.within(Double.POSITIVE_INFINITY).radiusWithout(-3)).isInfinite();
  }

  /** A second search, of as many values as it takes, is for all within the radius of the values that are ranked, not of densities. */
  @Test
  void secondSearchFindsAllThatAreDense() {
    int d = 12;
    Random random = new Random(2);
    double[] mean = random.doubles(3000 * d, -1e-3, 1e-3).toArray();
    double[] std = new double[mean.length];
    Arrays.fill(std, 1e-3); // densities are far above 1
    DiagonalGaussians x = points(random.doubles(3 * d, -1e-3, 1e-3).toArray(), false, d);
    try (KlEngine scalar = Engines.on(Backend.SCALAR);
        KlIndex index = KlIndex.builder(d).build()) {
      Gaussians p = gaussians(false, mean, std, d);
      index.add(LongStream.range(0, 3000).toArray(), p);
      Query all = Query.denserThan(60);
      Neighbors expected = scalar.search(x, p, all);
      IndexNeighbors found = index.search(x, all.timeout(Duration.ofDays(1)));
      for (int i = 0; i < x.size(); i++) {
        assertThat(expected.count(i)).isGreaterThan(1024);
        assertThat(found.count(i)).isEqualTo(expected.count(i));
        assertThat(found.isComplete(i)).isTrue();
      }
    }
  }

  /** One point in an array, which allocates nothing, and few references by their ids. */
  @Test
  void onePointInAnArray() {
    int d = 16;
    Random random = new Random(4);
    Gaussians p = references(Batch.Kind.STD, false, d, random);
    float[] x = Batch.narrowed(points(8, d, p, false, random));
    DiagonalGaussians batch = DiagonalGaussians.ofPoints(x, d);
    long[] ids = new long[M];
    float[] values = new float[M];
    double[] proven = new double[1];
    for (int threads = 1; threads < 3; threads++) {
      try (KlIndex index =
          KlIndex.builder(d).threads(threads).batchQueries(Duration.ofMillis(1)).build()) {
        fill(index, p, false);
        for (Query query :
            new Query[] {
              Query.nearest(5),
              Query.nearest(5).byLogDensity(),
              Query.within(40),
              Query.denserThan(-40),
              Query.nearest(2).byLogDensity().among(IDS[1], IDS[2], IDS[3])
            }) {
          IndexNeighbors expected = index.search(batch, query);
          for (int i = 0; i < 8; i++) {
            int n = index.query(x, i * d, query, ids, values, proven);
            assertThat(n).isEqualTo(expected.count(i));
            assertThat(proven[0]).isEqualTo(expected.provenUpTo(i));
            for (int r = 0; r < n; r++) {
              assertThat(ids[r]).isEqualTo(expected.id(i, r));
              assertThat(values[r]).isEqualTo((float) expected.value(i, r));
            }
          }
        }
        long[][] candidates = new long[8][];
        Arrays.fill(candidates, IDS);
        same(index.rank(batch, candidates, 3), index.nearest(batch, 3));
        if (threads == 1) {
          for (Query query : new Query[] {Query.nearest(5), Query.nearest(5).byLogDensity()}) {
            WarmCalls.allocateNothing(
                query.toString(), 500, () -> index.query(x, d, query, ids, values, proven));
          }
        }
        assertThatExceptionOfType(InvalidGaussianException.class)
            .isThrownBy(() -> {
              float[] nan = new float[d];
              nan[3] = Float.NaN;
              index.query(nan, 0, Query.nearest(1), ids, values, proven);
            })
            .withMessageContaining("points");
      }
    }
  }

  @Test
  void refuses() {
    try (KlIndex index = KlIndex.builder(2).build()) {
      DiagonalGaussians x = DiagonalGaussians.ofPoints(new float[2], 2);
      DiagonalGaussians p = DiagonalGaussians.ofStd(new float[2], new float[] {1, 1}, 2);
      index.add(new long[] {7}, p);
      assertThat(index.nearest(x, 3).ids()).containsExactly(7);
      refused(() -> index.add(new long[] {8}, x), "batch holds points");
      refused(() -> index.search(p, Query.nearest(1).byLogDensity()), "Gaussians have no density");
      refused(() -> index.search(7, Query.denserThan(0)), "Gaussians have no density");
      refused(
          () -> index.search(x, Query.nearest(1).reverse()), "points have no density to search in");
      refused(() -> index.search(x, Query.nearest(1).byLogDensity().exact()), "not exactly");
      index.remove(7);
      assertThat(index.search(x, Query.denserThan(-5)).count(0)).isZero();
      assertThat(index.search(x, Query.nearest(2).byLogDensity()).provenUpTo(0))
          .isEqualTo(Double.POSITIVE_INFINITY);
    }
  }
}
