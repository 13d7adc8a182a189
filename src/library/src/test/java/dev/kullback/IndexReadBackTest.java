package dev.kullback;

import static dev.kullback.IndexModel.D;
import static dev.kullback.IndexModel.assertSame;
import static dev.kullback.testing.Refusal.refused;
import static dev.kullback.testing.Refusal.refusedAs;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.IndexModel.Data;
import dev.kullback.IndexModel.Part;
import dev.kullback.testing.Batch;
import dev.kullback.testing.FullBatch;
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
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What was added comes back as it was, and can be searched near and ranked by its ids. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class IndexReadBackTest {
  @TempDir private Path scratch;

  private final IndexModel model = new IndexModel(Data.ORDINARY, 1);
  private final List<Part> parts = model.parts;

  /** Through merges, commits, another opening, and a reader. */
  @ParameterizedTest
  @EnumSource(names = {"ORDINARY", "FULL"})
  void givesBackWhatWasAdded(Data data) {
    IndexModel model = new IndexModel(data, 4);
    try (KlIndex index = data.builder(Divergence.KL).open(scratch)) {
      model.fill(index);
      model.checkGivenBack(index);
      index.commit();
      model.checkGivenBack(index);
      try (KlIndex reader = KlIndex.openReadOnly(scratch)) {
        model.checkGivenBack(reader);
      }
      index.compact();
      model.checkGivenBack(index);
      index.purge();
    }
    try (KlIndex index = KlIndex.open(scratch)) {
      model.checkGivenBack(index);
      Part floats = model.parts.getFirst();
      Part part = model.parts.getLast();
      long id = part.ids()[9];
      index.remove(id);
      assertThat(index.ids()).doesNotContain(id);
      assertThat(index.get(id, new float[D], new float[D])).isFalse();
      index.replace(new long[] {id, -5000}, part.batch().select(9, 2));
      assertSame(index.get(id, -5000), part.batch().select(9, 2));
      assertThat(index.remove(-5000)).isOne();
      model.checkGivenBack(index);
      // floats among doubles, and given factors among those that were computed
      Part doubles = data == Data.FULL ? part : model.parts.get(1);
      Gaussians both = index.get(floats.ids()[1], doubles.ids()[9]);
      assertThat(both.isDouble()).isTrue();
      assertThat(both.scale(0)).isEqualTo(floats.batch().scale(1));
      assertThat(both.covariance(0)).isEqualTo(floats.batch().covariance(1));
      assertThat(both.covariance(1)).isEqualTo(doubles.batch().covariance(9));
      assertThatExceptionOfType(NoSuchElementException.class)
          .isThrownBy(() -> index.get(id, 70_000))
          .withMessage("ids[1] = 70000 is not in the index");
      if (data == Data.FULL) {
        refusedAs(
            "a batch of full covariances has at least one Gaussian; none is selected", index::get);
      } else {
        assertThat(index.get().size()).isZero();
      }
    }
  }

  /** A forEach of more than one block has each reference once. */
  @ParameterizedTest
  @CsvSource({"false, 11, 65536", "true, 5, 512"})
  void goesOverManyInBlocks(boolean isFull, int n, int d) {
    Batch some = Batch.random(false, n, d, 0, new Random(2));
    Gaussians batch = isFull ? FullBatch.of(some).gaussians() : some.gaussians();
    KlIndex.Builder builder = KlIndex.builder(d);
    try (KlIndex index = (isFull ? builder.fullCovariances() : builder).build()) {
      index.add(LongStream.range(0, n).toArray(), batch);
      index.remove(3);
      List<Long> seen = new ArrayList<>();
      index.forEach((ids, its) -> {
        assertThat(ids).hasSizeLessThan(n - 1);
        Arrays.stream(ids).forEach(seen::add);
        for (int i = 0; i < ids.length; i++) {
          assertThat(its.mean(i)).isEqualTo(batch.mean((int) ids[i]));
          assertThat(its.scale(i)).isEqualTo(batch.scale((int) ids[i]));
        }
      });
      assertThat(seen).isEqualTo(LongStream.range(0, n).filter(id -> id != 3).boxed().toList());
      Thread.currentThread().interrupt();
      assertThatExceptionOfType(CancellationException.class)
          .isThrownBy(() -> index.forEach((ids, its) -> {}));
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  /** The nearest float of σ, or for log-variances and precisions its neighbor, by arithmetic of 40 digits. */
  @Test
  void readsStandardDeviations() {
    float[] mean = new float[D];
    float[] std = new float[D];
    try (KlIndex index = KlIndex.builder(D).build()) {
      model.fill(index);
      for (Part part : parts) {
        ScaleKind kind = part.batch().kind();
        for (int row = 1; row < 10; row++) {
          assertThat(index.get(part.ids()[row], mean, std)).isTrue();
          double[] scale = part.batch().scale(row);
          for (int h = 0; h < D; h++) {
            double s = scale[h];
            assertThat(mean[h]).isEqualTo((float) part.batch().mean(row)[h]);
            double exact =
                switch (kind) {
                  case STD -> s;
                  case VARIANCE -> root(s);
                  case LOG_VARIANCE -> StrictMath.exp(s / 2); // as exact as double is
                  default -> root(1 / s);
                };
            boolean isNearest =
                kind == ScaleKind.STD || (kind == ScaleKind.VARIANCE && !part.batch().isDouble());
            assertThat(std[h] == (float) exact || (!isNearest && isNeighbor(std[h], (float) exact)))
                .as("%s, %s of %s", kind, std[h], s)
                .isTrue();
          }
        }
      }
      float[] before = std.clone();
      assertThat(index.get(50_000, mean, std)).isFalse();
      assertThat(std).isEqualTo(before);
      index.add(
          new long[] {50_000},
          DiagonalGaussians.ofStd(new double[D], new double[] {1e-200, 1e200, 1e-40, 1, 1}, D));
      assertThat(index.get(50_000, mean, std)).isTrue();
      assertThat(std).containsExactly(0, Float.POSITIVE_INFINITY, 1e-40f, 1, 1);
      refusedAs(
          "mean has 4 elements but 5 are needed", () -> index.get(50_000, new float[D - 1], std));
      refusedAs(
          "std has 4 elements but 5 are needed", () -> index.get(50_000, mean, new float[D - 1]));
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
    try (KlIndex index = KlIndex.builder(D).build()) {
      model.fill(index);
      long[] ids = {parts.get(0).ids()[1], parts.get(0).ids()[2], parts.get(2).ids()[1]};
      assertThatIllegalArgumentException()
          .isThrownBy(() -> index.get(ids))
          .withMessage(
              "ids[2] = %d has scales of kind VARIANCE, but ids[0] = %d of kind STD; a batch has one kind: get each kind by itself, as forEach gives them",
              ids[2], ids[0]);
      assertThatExceptionOfType(NoSuchElementException.class)
          .isThrownBy(() -> index.get(70_000))
          .withMessage("id 70000 is not in the index");
    }
  }

  /** "More like this" is the search for its Gaussian without it, also where others equal it. */
  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void findsWhatIsLikeOneOfThem(int threads) {
    try (KlIndex index =
        KlIndex.builder(D).threads(threads).batchQueries(Duration.ofMillis(1)).build()) {
      model.fill(index);
      Part first = parts.getFirst();
      index.add(new long[] {-2000, 90_000, 90_001}, first.batch().select(4, 4, 4));
      for (Part part : parts) {
        long id = part.ids()[4];
        Gaussians x = part.batch().select(4);
        same(index.nearest(id, 10), index.search(x, Query.nearest(10).excluding(id)));
        assertThat(index.nearest(id, 10_000).count(0)).isEqualTo(index.size() - 1);
        Query query = Query.within(9).reverse().filter(other -> other % 2 == 0).excluding(-98);
        same(index.search(id, query), index.search(x, query.excluding(id)));
      }
      assertThat(index.nearest(first.ids()[4], 3).ids()).containsExactly(-2000, 90_000, 90_001);
      assertThat(index.nearest(90_000, 3).ids()).containsExactly(-2000, first.ids()[4], 90_001);
      assertThatExceptionOfType(NoSuchElementException.class)
          .isThrownBy(() -> index.nearest(70_000, 1))
          .withMessage("id 70000 is not in the index");
      assertThatIllegalArgumentException().isThrownBy(() -> index.nearest(90_000, 0));
      refused(() -> index.search(90_000, Query.nearest(1).excludeSelf()), "excludeSelf");
    }
  }

  private static void same(IndexNeighbors found, IndexNeighbors expected) {
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
      candidates[i] = random.longs(i, -150, 2350).toArray();
    }
    try (KlIndex index = KlIndex.builder(D).threads(threads).build()) {
      model.fill(index);
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
      same(index.rank(one, new long[][] {all}, 50), index.nearest(one, 50));
      refusedAs(
          "there are 1 queries but candidates for 70; each needs its own",
          () -> index.rank(one, candidates, 1));
      refusedAs("k must be at least 1, is 0", () -> index.rank(one, new long[][] {all}, 0));
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
        same(index.rank(x.gaussians(), candidates, 5), index.nearest(x.gaussians(), 5));
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
    DiagonalGaussians origin = same(1, 0);
    AtomicBoolean stop = new AtomicBoolean();
    AtomicInteger reads = new AtomicInteger();
    KlIndex index = KlIndex.builder(D).open(scratch);
    index.add(members, same(members.length, 0));
    try (ExecutorService readers = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<?>> all = new ArrayList<>();
      for (int reader = 0; reader < 3; reader++) {
        all.add(
            readers.submit(() -> {
              double last = 0;
              try {
                while (true) {
                  assertOne(index.get(members));
                  index.forEach((ids, some) -> {
                    assertThat(ids).startsWith(members);
                    assertOne(some.slice(0, members.length));
                  });
                  Query few = Query.nearest(20).filter(id -> id < 1000);
                  assertThat(index.search(origin, few).ids()).isEqualTo(members);
                  double now = index.search(origin, few).value(0, 0); // it grows
                  assertThat(now).isGreaterThanOrEqualTo(last);
                  last = now;
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
