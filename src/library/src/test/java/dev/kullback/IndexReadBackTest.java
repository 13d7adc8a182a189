package dev.kullback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.testing.Batch;
import java.math.BigDecimal;
import java.math.MathContext;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What was added comes back as it was, and can be searched near and ranked by its ids. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class IndexReadBackTest {
  private static final int D = 3;

  /** References of each kind and precision. */
  private static final int PART = 40;

  @TempDir private Path scratch;

  /** Gaussians that were added together, under ids in no order. */
  private record Part(Batch batch, long[] ids) {
    DiagonalGaussians gaussians(int... rows) {
      return batch.rows(rows).gaussians();
    }
  }

  /** One of each kind and precision, in the order in which all are gone over; ids of different parts alternate. */
  private final List<Part> parts = parts();

  private static List<Part> parts() {
    Random random = new Random(1);
    List<Part> parts = new ArrayList<>();
    for (Batch.Kind kind : Batch.Kind.values()) {
      for (boolean isDouble : new boolean[] {false, true}) {
        double[] mean = random.doubles(PART * D, -1, 1).toArray();
        double[] std = random.doubles(PART * D, 0.25, 4).toArray();
        int part = parts.size();
        long[] ids = LongStream.range(0, PART).map(i -> 8 * (i * 27 % PART) + part - 100).toArray();
        parts.add(new Part(Batch.ofStd(kind, isDouble, mean, std, D), ids));
      }
    }
    return parts;
  }

  /** The ids of a part's rows. */
  private static long[] ids(Part part, int... rows) {
    return Arrays.stream(rows).mapToLong(row -> part.ids()[row]).toArray();
  }

  /** Adds all, in several segments, some after others were under their ids. */
  private void fill(KlIndex index) {
    for (Part part : parts) {
      index.add(part.ids(), part.batch().gaussians());
    }
    for (Part part : parts.reversed()) {
      int[] few = {5, 3, 30};
      index.remove(ids(part, few));
      index.add(ids(part, few), part.gaussians(3, 5, 30)); // two are exchanged
      index.replace(ids(part, 3, 5), part.gaussians(3, 5));
    }
  }

  private static void assertSame(Gaussians found, Gaussians expected) {
    assertThat(found.size()).isEqualTo(expected.size());
    assertThat(found.kind()).isEqualTo(expected.kind());
    assertThat(found.isDouble()).isEqualTo(expected.isDouble());
    for (int i = 0; i < found.size(); i++) {
      assertThat(found.mean(i)).isEqualTo(expected.mean(i));
      assertThat(found.scale(i)).isEqualTo(expected.scale(i));
    }
  }

  private void check(KlIndex index) {
    assertThat(index.ids())
        .isEqualTo(LongStream.range(-100, 8L * PART - 100).toArray()); // of all parts
    for (Part part : parts) {
      assertSame(index.get(part.ids()), part.batch().gaussians());
      assertSame(index.get(ids(part, 7, 0, 7)), part.gaussians(7, 0, 7));
    }
    List<Part> seen = new ArrayList<>(parts);
    index.forEach((ids, batch) -> {
      Part part = seen.removeFirst();
      int[] sorted =
          IntStream.range(0, PART)
              .boxed()
              .sorted((a, b) -> Long.compare(part.ids()[a], part.ids()[b]))
              .mapToInt(row -> row)
              .toArray();
      assertThat(ids).isEqualTo(ids(part, sorted)).isSorted();
      assertSame(batch, part.gaussians(sorted));
    });
    assertThat(seen).isEmpty();
  }

  /** Through merges, commits, another opening, and a reader. */
  @Test
  void givesBackWhatWasAdded() {
    try (KlIndex index = KlIndex.builder(D).open(scratch)) {
      fill(index);
      check(index);
      index.commit();
      check(index);
      try (KlIndex reader = KlIndex.openReadOnly(scratch)) {
        check(reader);
      }
    }
    try (KlIndex index = KlIndex.open(scratch)) {
      check(index);
      Part part = parts.get(2);
      long id = part.ids()[9];
      index.remove(id);
      assertThat(index.ids()).hasSize(8 * PART - 1).doesNotContain(id);
      assertThat(index.get(id, new float[D], new float[D])).isFalse();
      index.add(new long[] {id}, part.gaussians(9));
      check(index);
    }
  }

  /** A forEach of more than one block has each reference once. */
  @Test
  void goesOverManyInBlocks() {
    int d = 1 << 16;
    int n = 11;
    Batch batch = Batch.random(false, n, d, 0, new Random(2));
    try (KlIndex index = KlIndex.builder(d).build()) {
      index.add(LongStream.range(0, n).toArray(), batch.gaussians());
      index.remove(4);
      List<Long> seen = new ArrayList<>();
      index.forEach((ids, some) -> {
        assertThat(ids).hasSizeLessThan(n);
        assertSame(some, index.get(ids));
        Arrays.stream(ids).forEach(seen::add);
      });
      assertThat(seen).containsExactly(0L, 1L, 2L, 3L, 5L, 6L, 7L, 8L, 9L, 10L);
      Thread.currentThread().interrupt();
      assertThatExceptionOfType(CancellationException.class)
          .isThrownBy(() -> index.forEach((ids, some) -> {}));
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  /** The nearest float of σ, or for log-variances and precisions its neighbor, by arithmetic of 40 digits. */
  @Test
  void readsStandardDeviations() {
    float[] mean = new float[D];
    float[] std = new float[D];
    try (KlIndex index = KlIndex.builder(D).build()) {
      fill(index);
      for (Part part : parts) {
        for (int row = 0; row < PART; row++) {
          assertThat(index.get(part.ids()[row], mean, std)).isTrue();
          for (int h = 0; h < D; h++) {
            double s = part.batch().scale()[row * D + h];
            assertThat(mean[h]).isEqualTo((float) part.batch().mean()[row * D + h]);
            double exact =
                switch (part.batch().kind()) {
                  case STD -> s;
                  case VARIANCE -> root(s);
                  case LOG_VARIANCE -> StrictMath.exp(s / 2); // as exact as double is
                  case PRECISION -> root(1 / s);
                };
            boolean isNearest =
                part.batch().kind() == Batch.Kind.STD
                    || (part.batch().kind() == Batch.Kind.VARIANCE && !part.batch().isDouble());
            assertThat(std[h] == (float) exact || (!isNearest && isNeighbor(std[h], (float) exact)))
                .as("%s, %s of %s", part.batch().kind(), std[h], s)
                .isTrue();
          }
        }
      }
      float[] before = std.clone();
      assertThat(index.get(5000, mean, std)).isFalse();
      assertThat(std).isEqualTo(before);
      index.add(
          new long[] {5000},
          DiagonalGaussians.ofStd(new double[D], new double[] {1e-200, 1e200, 1e-40}, D));
      assertThat(index.get(5000, mean, std)).isTrue();
      assertThat(std).containsExactly(0, Float.POSITIVE_INFINITY, 1e-40f);
      assertThatIllegalArgumentException()
          .isThrownBy(() -> index.get(5000, new float[D - 1], std))
          .withMessage("mean has 2 elements but 3 are needed");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> index.get(5000, mean, new float[D - 1]))
          .withMessage("std has 2 elements but 3 are needed");
    }
  }

  private static double root(double x) {
    return new BigDecimal(x).sqrt(new MathContext(40)).doubleValue();
  }

  private static boolean isNeighbor(float a, float b) {
    return Math.nextUp(a) == b || Math.nextDown(a) == b;
  }

  @Test
  void aBatchHasOneKind() {
    Part floats = parts.get(0);
    Part doubles = parts.get(1);
    Part variances = parts.get(2);
    try (KlIndex index = KlIndex.builder(D).build()) {
      fill(index);
      Gaussians both = index.get(floats.ids()[1], doubles.ids()[2]);
      assertThat(both.isDouble()).isTrue();
      assertThat(both.scale(0)).isEqualTo(floats.gaussians(1).scale(0));
      assertThat(both.scale(1)).isEqualTo(doubles.gaussians(2).scale(0));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> index.get(floats.ids()[0], floats.ids()[1], variances.ids()[0]))
          .withMessage(
              "ids[2] = -98 has scales of kind VARIANCE, but ids[0] = -100 of kind STD; a batch has one"
                  + " kind: get each kind by itself, as forEach gives them");
      assertThat(index.get().size()).isZero();
      assertThatExceptionOfType(NoSuchElementException.class)
          .isThrownBy(() -> index.get(-100, 7000))
          .withMessage("ids[1] = 7000 is not in the index");
      assertThatExceptionOfType(NoSuchElementException.class)
          .isThrownBy(() -> index.get(7000))
          .withMessage("id 7000 is not in the index");
    }
  }

  /** "More like this" is the search for its Gaussian without it, also where others equal it. */
  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void findsWhatIsLikeOneOfThem(int threads) {
    try (KlIndex index =
        KlIndex.builder(D).threads(threads).batchQueries(Duration.ofMillis(1)).build()) {
      fill(index);
      Part first = parts.getFirst();
      index.add(new long[] {-2000, 9000, 9001}, first.gaussians(4, 4, 4));
      for (Part part : parts) {
        long id = part.ids()[4];
        DiagonalGaussians x = part.gaussians(4);
        assertSame(index.nearest(id, 10), index.search(x, Query.nearest(10).excluding(id)));
        assertThat(index.nearest(id, 1000).count(0)).isEqualTo(index.size() - 1);
        Query query = Query.within(3).reverse().filter(other -> other % 2 == 0).excluding(-98);
        assertSame(index.search(id, query), index.search(x, query.excluding(id)));
      }
      assertThat(index.nearest(first.ids()[4], 3).ids()).containsExactly(-2000, 9000, 9001);
      assertThat(index.nearest(9000, 3).ids()).containsExactly(-2000, first.ids()[4], 9001);
      assertThatExceptionOfType(NoSuchElementException.class)
          .isThrownBy(() -> index.nearest(7000, 1))
          .withMessage("id 7000 is not in the index");
      assertThatIllegalArgumentException().isThrownBy(() -> index.nearest(9000, 0));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> index.search(9000, Query.nearest(1).excludeSelf()))
          .withMessageContaining("excludeSelf");
    }
  }

  private static void assertSame(IndexNeighbors found, IndexNeighbors expected) {
    assertThat(found.size()).isEqualTo(expected.size());
    assertThat(found.ids()).isEqualTo(expected.ids()).isNotEmpty();
    assertThat(found.values()).isEqualTo(expected.values());
  }

  /** Ranking is a search that a filter limits to the candidates. */
  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void ranksCandidates(int threads) {
    Batch queries = Batch.random(true, 70, D, 0, new Random(3));
    Random random = new Random(4);
    long[][] candidates = new long[queries.size()][];
    for (int i = 0; i < candidates.length; i++) { // some are not there, some come twice
      candidates[i] = random.longs(i, -150, 8L * PART - 50).toArray();
    }
    try (KlIndex index = KlIndex.builder(D).threads(threads).build()) {
      fill(index);
      long[][] given = Arrays.stream(candidates).map(long[]::clone).toArray(long[][]::new);
      for (int k : new int[] {1, 7, 1000}) {
        IndexNeighbors found = index.rank(queries.gaussians(), candidates, k);
        assertThat(found.size()).isEqualTo(queries.size());
        assertThat(found.count(0)).isZero(); // it has no candidates
        for (int i = 0; i < queries.size(); i++) {
          long[] own = candidates[i];
          Query query =
              Query.nearest(k).filter(id -> Arrays.stream(own).anyMatch(other -> other == id));
          IndexNeighbors expected = index.search(queries.rows(i, i + 1).gaussians(), query);
          int from = found.start(i);
          int to = from + found.count(i);
          assertThat(Arrays.copyOfRange(found.ids(), from, to)).isEqualTo(expected.ids());
          assertThat(Arrays.copyOfRange(found.values(), from, to)).isEqualTo(expected.values());
        }
      }
      assertThat(candidates).isDeepEqualTo(given);
      DiagonalGaussians one = queries.rows(0, 1).gaussians();
      long[] all = index.ids();
      assertSame(index.rank(one, new long[][] {all}, 50), index.nearest(one, 50));
      assertThatIllegalArgumentException()
          .isThrownBy(() -> index.rank(one, candidates, 1))
          .withMessage("there are 1 queries but candidates for 70; each needs its own");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> index.rank(one, new long[][] {all}, 0))
          .withMessage("k must be at least 1, is 0");
      assertThatNullPointerException()
          .isThrownBy(() -> index.rank(one, new long[][] {null}, 1))
          .withMessage("candidates[0]");
    }
  }

  /** Inner products are KL but for a number of the query's and the rounding of their terms, and propose what rank puts in order. */
  @Test
  void innerProductsProposeCandidates() {
    int d = 6;
    int n = 500;
    Random random = new Random(7);
    double[] mean = random.doubles(n * d, -1, 1).toArray();
    double[] std = random.doubles(n * d, 0.25, 4).toArray();
    for (Batch.Kind kind : Batch.Kind.values()) {
      Batch p = Batch.ofStd(kind, kind == Batch.Kind.PRECISION, mean, std, d);
      Batch x = Batch.random(true, 20, d, -1, random);
      float[] a = x.gaussians().toInnerProductQueries();
      float[] b = p.gaussians().toInnerProducts();
      assertThat(a).hasSize(x.size() * (2 * d + 1));
      assertThat(b).hasSize(n * (2 * d + 1));
      long[][] candidates = new long[x.size()][];
      try (KlIndex index = KlIndex.builder(d).build()) {
        index.add(LongStream.range(0, n).toArray(), p.gaussians());
        for (int i = 0; i < x.size(); i++) {
          IndexNeighbors all = index.nearest(x.rows(i, i + 1).gaussians(), n);
          double[] kl = new double[n];
          IntStream.range(0, n).forEach(r -> kl[(int) all.id(0, r)] = all.value(0, r));
          double[] product = new double[n];
          double[] size = new double[n];
          for (int j = 0; j < n; j++) {
            for (int k = 0; k < 2 * d + 1; k++) {
              double term = (double) a[i * (2 * d + 1) + k] * b[j * (2 * d + 1) + k];
              product[j] += term;
              size[j] += Math.abs(term);
            }
            // float rounds each of the two factors by at most 2^-24
            assertThat(kl[j] + product[j])
                .isCloseTo(kl[0] + product[0], within(0x1p-22 * (size[j] + size[0])));
          }
          candidates[i] =
              LongStream.range(0, n)
                  .boxed()
                  .sorted(
                      (j, k) -> Double.compare(product[(int) (long) k], product[(int) (long) j]))
                  .limit(10)
                  .mapToLong(Long::longValue)
                  .toArray();
        }
        assertSame(index.rank(x.gaussians(), candidates, 5), index.nearest(x.gaussians(), 5));
      }
    }
  }

  /** The message names the value, and what it advises helps. */
  @Test
  void innerProductsBeyondFloat() {
    double[] zeros = new double[2];
    DiagonalGaussians narrow = DiagonalGaussians.ofStd(zeros, new double[] {1, 1e-30}, 1);
    assertThat(narrow.toInnerProductQueries()).hasSize(6);
    assertBeyondFloat(
        narrow::toInnerProducts,
        "std[1][0] (Gaussian 1, dimension 0) is 1.0E-30, but its vector's -1/(2σ²) is -5",
        "; multiply the means of both batches by one c above 1, and standard deviations by c,");
    double[] low = {0, -140};
    assertBeyondFloat(
        DiagonalGaussians.ofLogVariance(zeros, low, 2)::toInnerProducts,
        "logVariance[0][1] (Gaussian 0, dimension 1) is -140.0, ",
        " by one c above 1, and add 2 ln c to the log-variances, which changes no KL");
    low[1] += 2 * Math.log(1e15);
    assertThat(DiagonalGaussians.ofLogVariance(zeros, low, 2).toInnerProducts()).hasSize(5);
    assertBeyondFloat(
        ((DiagonalGaussians)
                Gaussians.of(
                    ScaleKind.VARIANCE, zeros, new double[] {1, 0}, 2, ScalePolicy.SEMIDEFINITE))
            ::toInnerProducts,
        "variance[0][1] (Gaussian 0, dimension 1) is 0.0, ",
        "; leave this Gaussian out, or give it a positive variance");
    DiagonalGaussians far =
        DiagonalGaussians.ofPrecision(new double[] {3, 1e25}, new double[] {1, 1}, 1);
    assertBeyondFloat(
        far::toInnerProducts,
        "mean[1][0] (Gaussian 1, dimension 0) is 1.0E25, but its vector's -Σ μ²/(2σ²) is -",
        "; subtract one point amid the means from those of both batches, which changes no KL");
    assertBeyondFloat(
        far::toInnerProductQueries,
        "mean[1][0] (Gaussian 1, dimension 0) is 1.0E25, but its vector's σ² + μ² is ",
        "; multiply the means of both batches by one c below 1, and precisions by 1/c²,");
    DiagonalGaussians wide = DiagonalGaussians.ofStd(zeros, new double[] {1e30, 1e19}, 2);
    assertThat(wide.toInnerProducts()).startsWith(-0f, -0.5e-38f);
    assertBeyondFloat(
        wide::toInnerProductQueries, "std[0][0]", "σ² + μ² is 1", " by one c below 1");
  }

  private static void assertBeyondFloat(ThrowingCallable call, String start, String... parts) {
    assertThatExceptionOfType(InvalidGaussianException.class)
        .isThrownBy(call)
        .withMessageStartingWith(start)
        .withMessageContainingAll(parts);
  }

  /** Ten that are always replaced together are read together, beside changes, commits and merges, until the index is closed. */
  @Test
  void readsWholeSteps() throws Exception {
    long[] members = LongStream.range(0, 10).map(i -> 13 * i).toArray();
    AtomicBoolean stop = new AtomicBoolean();
    AtomicInteger reads = new AtomicInteger();
    KlIndex index = KlIndex.builder(D).open(scratch);
    index.add(members, same(members.length, 0));
    try (ExecutorService readers = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<?>> all = new ArrayList<>();
      for (int reader = 0; reader < 3; reader++) {
        all.add(
            readers.submit(() -> {
              try {
                while (true) {
                  assertOne(index.get(members));
                  index.forEach((ids, some) -> {
                    assertThat(ids).startsWith(members);
                    assertOne(some.slice(0, members.length));
                  });
                  IndexNeighbors like = index.nearest(members[3], 9);
                  assertThat(like.ids()).hasSize(9).doesNotContain(members[3]);
                  assertThat(like.values()).containsOnly(0);
                  assertThat(index.get(members[2], new float[D], new float[D])).isTrue();
                  assertThat(index.ids()).startsWith(members);
                  reads.incrementAndGet();
                  Thread.yield();
                }
              } catch (IllegalStateException e) {
                assertThat(stop).isTrue(); // it is closed
              }
            }));
      }
      for (int version = 1;
          version < 200 || (reads.get() < 50 && all.stream().noneMatch(Future::isDone));
          version++) {
        index.replace(members, same(members.length, version));
        index.replace(new long[] {1000 + version % 100}, same(1, version));
        if (version % 20 == 0) {
          index.commit();
        }
      }
      stop.set(true);
      index.close();
      for (Future<?> read : all) {
        read.get();
      }
    }
  }

  private static DiagonalGaussians same(int n, int version) {
    float[] mean = new float[n * D];
    float[] std = new float[n * D];
    Arrays.fill(mean, version);
    Arrays.fill(std, 1);
    return DiagonalGaussians.ofStd(mean, std, D);
  }

  /** All Gaussians are of one version. */
  private static void assertOne(Gaussians batch) {
    for (int i = 0; i < batch.size(); i++) {
      assertThat(batch.mean(i)).containsOnly(batch.mean(0)[0]);
    }
  }
}
