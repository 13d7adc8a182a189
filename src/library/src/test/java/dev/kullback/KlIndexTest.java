package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static dev.kullback.testing.Refusal.refusedAs;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.testing.Batch;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongPredicate;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The index as its users see it: that it answers as an engine does that searches one batch, while it changes. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class KlIndexTest {
  private static final int D = 5;
  private static final int N = 400;

  @TempDir private Path scratch;

  /** Gaussian i is under id {@code ids[i]}, ascending. */
  private final Batch references = Batch.random(false, N, D, 0, new Random(1));

  private final long[] ids = LongStream.range(0, N).map(i -> 7 * i - 900).toArray();
  private final Batch queries = Batch.random(false, 9, D, 0, new Random(2));

  /** Some rows of a batch, in any order. */
  private static DiagonalGaussians rows(Batch batch, int... rows) {
    double[] mean = new double[rows.length * D];
    double[] scale = new double[rows.length * D];
    for (int s = 0; s < rows.length; s++) {
      System.arraycopy(batch.mean(), rows[s] * D, mean, s * D, D);
      System.arraycopy(batch.scale(), rows[s] * D, scale, s * D, D);
    }
    return new Batch(batch.kind(), batch.isDouble(), mean, scale, D).gaussians();
  }

  private DiagonalGaussians rows(int... rows) {
    return rows(references, rows);
  }

  private long[] ids(int... rows) {
    return Arrays.stream(rows).mapToLong(row -> ids[row]).toArray();
  }

  /** Adds the references by many calls in random order, some after others were under their ids or were removed. */
  private void fill(KlIndex index) {
    Random random = new Random(3);
    List<Integer> order = new ArrayList<>(IntStream.range(0, N).boxed().toList());
    Collections.shuffle(order, random);
    int[] all = order.stream().mapToInt(row -> row).toArray();
    index.add(
        ids(Arrays.copyOf(all, 50)),
        rows(Arrays.copyOfRange(all, 100, 150))); // others, replaced later
    for (int from = 0; from < N; ) {
      int[] some = Arrays.copyOfRange(all, from, Math.min(N, from + 1 + random.nextInt(30)));
      index.replace(ids(some), rows(some));
      if (random.nextBoolean()) {
        index.remove(ids(some));
        index.add(ids(some), rows(some));
      }
      from += some.length;
    }
    assertThat(index.size()).isEqualTo(N);
  }

  /** Equal ids and bits. */
  private static void check(IndexNeighbors found, Neighbors expected, long[] ids) {
    assertThat(found.size()).isEqualTo(expected.size());
    assertThat(found.ids())
        .isEqualTo(Arrays.stream(expected.indices()).mapToLong(j -> ids[j]).toArray());
    assertThat(found.values()).isEqualTo(expected.values());
    for (int i = 0; i < found.size(); i++) {
      assertThat(found.start(i)).isEqualTo(expected.start(i));
      assertThat(found.count(i)).isEqualTo(expected.count(i));
    }
  }

  /** What a query asks twice, it asks for both times. */
  @Test
  void optionsAddUp() {
    LongPredicate even = id -> id % 2 == 0;
    LongPredicate third = id -> id % 3 != 0;
    int[] left =
        IntStream.range(0, N)
            .filter(i -> even.test(ids[i]) && third.test(ids[i]))
            .filter(i -> i != 100 && i != 30 && i != 200 && i != 201)
            .toArray();
    long[] out = ids(200, 30, 201, 30);
    try (KlIndex index = KlIndex.builder(D).build();
        KlIndex rest = KlIndex.builder(D).build()) {
      fill(index);
      rest.add(ids(left), rows(left));
      for (Query query : List.of(Query.nearest(N), Query.within(2).reverse())) {
        Query all = query.excluding(ids[100]).filter(even).excluding(out).filter(third);
        out[1] = ids[left[0]]; // the query has its own
        IndexNeighbors found =
            index.search(queries.gaussians(), all.excluding(ids[100]).excluding());
        out[1] = ids[30];
        IndexNeighbors expected = rest.search(queries.gaussians(), query);
        assertThat(found.ids()).isEqualTo(expected.ids()).isNotEmpty();
        assertThat(found.values()).isEqualTo(expected.values());
        assertThat(index.search(queries.gaussians(), all.reverse()).ids())
            .isEqualTo(index.search(queries.gaussians(), all.reverse().reverse()).ids());
      }
      for (Query few :
          List.of(
              Query.within(2).maxPairs(0).maxPairs(N * N),
              Query.within(2).maxPairs(N).maxPairs(0))) {
        refused(() -> index.search(queries.gaussians(), few), "more than 0 pairs");
      }
      assertThatNullPointerException().isThrownBy(() -> Query.nearest(1).excluding((long[]) null));
    }
  }

  /** The call of a filter that outlives the timeout, or is interrupted, is the last. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aSlowFilterOutlivesNeitherTimeoutNorInterruption(boolean interrupt) {
    try (KlIndex index = KlIndex.builder(D).build()) {
      index.add(ids, references.gaussians());
      for (Query query : List.of(Query.nearest(12), Query.nearest(12).reverse(), Query.within(9))) {
        Duration patience = Duration.ofMillis(interrupt ? 60_000 : 20);
        AtomicInteger calls = new AtomicInteger();
        Query slow =
            query
                .timeout(patience)
                .filter(id -> {
                  long begin = System.nanoTime();
                  calls.incrementAndGet();
                  if (interrupt) {
                    Thread.currentThread().interrupt();
                  }
                  while (!interrupt && System.nanoTime() - begin < 2 * patience.toNanos()) {
                    Thread.onSpinWait();
                  }
                  return true;
                });
        if (interrupt) {
          assertThatExceptionOfType(CancellationException.class)
              .isThrownBy(() -> index.search(queries.gaussians(), slow))
              .withMessageContaining("interrupted");
        } else {
          IndexNeighbors found = index.search(queries.gaussians(), slow);
          for (int i = 0; i < found.size(); i++) {
            assertThat(found.isComplete(i)).isFalse();
            assertThat(found.provenUpTo(i)).isZero();
          }
        }
        assertThat(calls.get()).isLessThanOrEqualTo(1);
        assertThat(Thread.interrupted()).isEqualTo(interrupt);
      }
    }
  }

  /** Divergences near the end of double's range, and beyond it: these are within an infinite radius, and no other. */
  @Test
  void answersAsAnEngineAtTheEndOfDouble() {
    double[] mean = {0, 1.55e154, 0, 9e153, 1e308, 0, 1e150, 3};
    double[] variance = {1e-154, 1, 3e154, 0.7, 1e-10, 2e154, 1e-4, 2};
    DiagonalGaussians p = DiagonalGaussians.ofVariance(mean, variance, 1);
    DiagonalGaussians q =
        DiagonalGaussians.ofLogVariance(new double[] {0, 0, 1e154}, new double[] {0, 355, -355}, 1);
    long[] some = LongStream.range(0, mean.length).toArray();
    try (KlIndex index = KlIndex.builder(1).build();
        KlEngine engine = KlEngine.builder().build()) {
      index.add(some, p);
      for (boolean reverse : new boolean[] {false, true}) {
        Query options = Query.nearest(mean.length).exact();
        Neighbors all = engine.search(q, p, reverse ? options.reverse() : options);
        Query query = Query.nearest(mean.length);
        check(index.search(q, reverse ? query.reverse() : query), all, some);
        assertThat(all.values()).contains(Double.POSITIVE_INFINITY);
        assertThat(
                Arrays.stream(all.values()).filter(kl -> kl > 0x1p1023 && kl <= Double.MAX_VALUE))
            .isNotEmpty();
        for (double radius :
            new double[] {1e308, 1.3e308, Double.MAX_VALUE, Double.POSITIVE_INFINITY}) {
          Query within = Query.within(radius);
          IndexNeighbors found = index.search(q, reverse ? within.reverse() : within);
          Neighbors expected =
              reverse
                  ? engine.search(q, p, Query.within(radius).reverse())
                  : engine.within(q, p, radius);
          for (int i = 0; i < q.size(); i++) {
            long[] wanted = new long[mean.length];
            int n = 0;
            for (int r = 0; r < all.count(i); r++) {
              if (all.value(i, r) <= radius) {
                wanted[n++] = all.index(i, r);
              }
            }
            Arrays.sort(wanted, 0, n);
            long[] its = Arrays.copyOfRange(found.ids(), found.start(i), found.start(i + 1));
            assertThat(its).as("radius %s", radius).isEqualTo(Arrays.copyOf(wanted, n));
            assertThat(
                    Arrays.copyOfRange(
                        expected.indices(), expected.start(i), expected.start(i + 1)))
                .as("engine, radius %s", radius)
                .isEqualTo(Arrays.stream(its).mapToInt(id -> (int) id).toArray());
            for (int r = 0; r < n; r++) {
              double value = found.value(i, r);
              assertThat(expected.value(i, r)).isBetween(value * (1 - 1e-12), value * (1 + 1e-12));
            }
          }
        }
      }
    }
  }

  /** Queries of many threads that share passes, in arrays and in batches, beside changes. */
  @Test
  void gatheredQueriesAnswerTheSame() throws Exception {
    try (KlIndex index = KlIndex.builder(D).batchQueries(Duration.ofMillis(20)).build();
        ExecutorService callers = Executors.newVirtualThreadPerTaskExecutor()) {
      fill(index);
      int n = queries.size();
      IndexNeighbors expected = index.nearest(queries.gaussians(), 6);
      float[] mean = floats(queries.mean());
      float[] std = floats(queries.scale());
      List<Future<?>> calls = new ArrayList<>();
      for (int call = 0; call < 20 * n; call++) {
        int i = call % n;
        int from = expected.start(i);
        long[] ids = Arrays.copyOfRange(expected.ids(), from, from + 6);
        double[] values = Arrays.copyOfRange(expected.values(), from, from + 6);
        Runnable inArrays =
            () -> {
              long[] found = new long[6];
              float[] kl = new float[6];
              assertThat(index.query(mean, i * D, std, i * D, 6, found, kl)).isEqualTo(6);
              assertThat(found).isEqualTo(ids);
              assertThat(kl).isEqualTo(floats(values));
            };
        Runnable inBatch =
            () -> {
              IndexNeighbors found = index.nearest(rows(queries, i), 6);
              assertThat(found.size()).isEqualTo(1);
              assertThat(found.ids()).isEqualTo(ids);
              assertThat(found.values()).isEqualTo(values);
            };
        calls.add(callers.submit(call % 2 == 0 ? inArrays : inBatch));
        index.replace(new long[] {ids[0]}, rows((int) ((ids[0] + 900) / 7))); // the same again
      }
      for (Future<?> call : calls) {
        call.get();
      }
      assertThat(index.stats().queries()).isEqualTo(21L * n);
    }
    assertThatIllegalArgumentException()
        .isThrownBy(() -> KlIndex.builder(D).batchQueries(Duration.ofMillis(-1)))
        .withMessageStartingWith("longestWait must not be negative");
  }

  private static float[] floats(double[] values) {
    float[] floats = new float[values.length];
    for (int k = 0; k < floats.length; k++) {
      floats[k] = (float) values[k];
    }
    return floats;
  }

  /** Equal Gaussians, the nearer to the origin the later the version. */
  private static DiagonalGaussians same(int n, int version) {
    float[] mean = new float[n * D];
    float[] std = new float[n * D];
    Arrays.fill(mean, 1_000_000 - version);
    Arrays.fill(std, 1);
    return DiagonalGaussians.ofStd(mean, std, D);
  }

  @Test
  void committedReferencesAreFoundAgain() throws IOException {
    IndexNeighbors expected;
    try (KlIndex index = KlIndex.builder(D).open(scratch)) {
      fill(index);
      index.commit();
      IndexStats stats = index.stats();
      assertThat(stats.mappedBytes()).isZero(); // it is small
      assertThat(stats.nativeBytes()).isGreaterThan(16L * N * D);
      assertThat(stats.uncommitted()).isZero();
      expected = index.nearest(queries.gaussians(), 10);
    }
    try (KlIndex index = KlIndex.open(scratch)) {
      assertThat(index.dimension()).isEqualTo(D);
      assertThat(index.size()).isEqualTo(N);
      index.verify();
      IndexNeighbors found = index.nearest(queries.gaussians(), 10);
      assertThat(found.ids()).isEqualTo(expected.ids());
      assertThat(found.values()).isEqualTo(expected.values());
      assertThatExceptionOfType(IndexLockedException.class)
          .isThrownBy(() -> KlIndex.open(scratch))
          .withMessage(
              scratch.toRealPath()
                  + ": is open in this process already; use that index, or close it first;"
                  + " KlIndex.openReadOnly reads the last commit meanwhile");
      String text = "%d x 5, %s".formatted(N, scratch.toRealPath());
      assertThat(index.toString()).isEqualTo("KlIndex[" + text + ']');
      KlIndex closed;
      try (KlIndex reader = KlIndex.openReadOnly(scratch)) {
        assertThat(reader.toString()).isEqualTo("KlIndex[" + text + ", read only]");
        closed = reader;
      }
      assertThat(closed.toString())
          .isEqualTo("KlIndex[closed, dimension 5, %s, read only]", scratch.toRealPath());
    }
    assertThatIllegalArgumentException()
        .isThrownBy(() -> KlIndex.builder(D + 1).open(scratch))
        .withMessageEndingWith("is an index of dimension 5, not 6");
  }

  /** A change of nothing, and a search for nothing, are no errors; an engine says what it lacks. */
  @Test
  void emptyBatches() {
    for (DiagonalGaussians none :
        List.of(
            DiagonalGaussians.ofStd(new float[0], new float[0], D),
            DiagonalGaussians.ofPrecision(new double[0], new double[0], D))) {
      assertThat(none.size()).isZero();
      try (KlIndex index =
              KlIndex.builder(D).threads(2).batchQueries(Duration.ofMillis(1)).build();
          KlEngine engine = KlEngine.builder().build()) {
        for (int size : new int[] {0, N}) {
          index.add(new long[0], none);
          index.replace(new long[0], none);
          assertThat(index.remove()).isZero();
          assertThat(index.size()).isEqualTo(size);
          assertThat(index.nearest(none, 3).size()).isZero();
          assertThat(index.within(none, 3).size()).isZero();
          refusedAs(
              "there are 1 ids but 0 Gaussians; each needs its own",
              () -> index.add(new long[] {1}, none));
          if (size == 0) {
            fill(index);
          }
        }
        none.prepare();
        DiagonalGaussians some = rows(0);
        for (Runnable call :
            List.<Runnable>of(
                () -> engine.pairwise(none, none),
                () -> engine.aligned(none, none),
                () -> engine.toStandardNormal(none),
                () -> engine.nearest(none, some, 1),
                () -> engine.within(none, some, 1),
                () -> engine.logSumExp(none, some),
                () -> engine.warmUp(none, some),
                () -> engine.monteCarlo(none, none, 2, 1))) {
          refusedAs("q has no Gaussians; only a KlIndex takes an empty batch", call::run);
        }
        assertThatIllegalArgumentException()
            .isThrownBy(() -> engine.rowSum(some, none))
            .withMessageStartingWith("p has no Gaussians");
        assertThatIllegalArgumentException().isThrownBy(() -> Mixtures.of(none));
        assertThatIllegalArgumentException()
            .isThrownBy(() -> Mixtures.unnormalized(none, new double[0]));
        assertThatIllegalArgumentException().isThrownBy(() -> Mixtures.of(none, new double[0]));
      }
    }
  }

  @Test
  void stats() {
    try (KlIndex index = KlIndex.builder(D).build()) {
      index.add(ids, references.gaussians());
      assertThat(index.toString()).isEqualTo("KlIndex[%d x 5, in memory]".formatted(N));
      index.remove(ids[3], ids[4], 1_000_000);
      index.nearest(queries.gaussians(), 2);
      index.query(new float[D], 0, new float[] {1, 1, 1, 1, 1}, 0, 2, new long[2], new float[2]);
      IndexStats stats = index.stats();
      assertThat(index.size()).isEqualTo(N - 2);
      assertThat(stats.segments()).isEqualTo(1);
      assertThat(stats.deleted()).isEqualTo(2);
      assertThat(stats.heapBytes()).isEqualTo(2048 / 8); // the words of the rows about
      assertThat(stats.nativeBytes()).isBetween(N * (16L * D + 32), N * (16L * D + 32) + 10_000);
      assertThat(stats.mappedBytes()).isZero();
      assertThat(stats.queries()).isEqualTo(queries.size() + 1);
      assertThat(stats.survivors()).isBetween(2L * 10, 10L * N);
      assertThat(stats.bytesRead()).isBetween(1L, 10L * 8 * D * (N + 15));
      assertThat(stats.uncommitted()).isEqualTo(N + 2);
      assertThat(stats.failedMerges()).isZero();
      assertThat(stats.toString())
          .startsWith("IndexStats[segments=1, deleted=2, ")
          .endsWith(
              ", uncommitted=%d, failedMerges=0, searchTime=%s, commits=0, commitTime=PT0S, lastCommitTime=PT0S, merges=0, mergeTime=PT0S, refreshes=0]"
                  .formatted(N + 2, stats.searchTime()));
      assertThat(stats.searchTime()).isPositive();
    }
  }

  @Test
  void badArguments() {
    try (KlIndex index = KlIndex.builder(D).build()) {
      index.add(ids, references.gaussians());
      DiagonalGaussians one = rows(0);
      Set<String> messages = new HashSet<>();
      for (Runnable call :
          List.<Runnable>of(
              () -> index.add(new long[] {1, 2}, one),
              () -> index.add(new long[] {ids[5]}, one),
              () -> index.replace(new long[] {1, 1}, rows(0, 1)),
              () ->
                  index.add(
                      new long[] {1}, Batch.random(false, 1, 4, 0, new Random(1)).gaussians()),
              () -> index.add(new long[] {1}, full()),
              () ->
                  index.add(
                      new long[] {1},
                      Gaussians.of(
                          ScaleKind.STD,
                          new float[D],
                          new float[D],
                          D,
                          ScalePolicy.DETERMINISTIC_IF_ZERO)),
              () -> index.nearest(one, 0),
              () -> index.nearest(full(), 1),
              () -> index.within(one, -1),
              () -> index.within(one, Double.NaN),
              () -> Query.nearest(1).maxPairs(-1),
              () -> Query.nearest(1).timeout(Duration.ZERO),
              () -> index.query(new float[D], 1, new float[D], 0, 1, new long[1], new float[1]),
              () -> index.query(new float[D], 0, new float[D], -1, 1, new long[1], new float[1]),
              () -> index.query(new float[D], 0, new float[D], 0, 0, new long[1], new float[1]),
              () -> index.query(new float[D], 0, new float[D], 0, 2, new long[1], new float[2]),
              () -> index.query(new float[D], 0, new float[D], 0, 2, new long[2], new float[1]),
              () -> index.query(new float[D], 0, new float[D], 0, 1, new long[1], new float[1]),
              () -> KlIndex.builder(0),
              () -> KlIndex.builder(1).threads(0))) {
        assertThatIllegalArgumentException()
            .isThrownBy(call::run)
            .satisfies(e -> messages.add(e.getMessage()));
      }
      assertThat(messages)
          .contains(
              "there are 2 ids but 1 Gaussians; each needs its own",
              "ids[0] = -865 is in the index already; replace takes ids that are",
              "batch has full covariances, and this index diagonal Gaussians; KlIndex.builder(dimension).fullCovariances() makes one that takes them",
              "queries has full covariances, and this index diagonal Gaussians; KlIndex.builder(dimension).fullCovariances() makes one that takes them",
              "batch has dimension 4 but the index has 5; they must be equal",
              "batch is deterministic (std 0); an index takes Gaussians with std > 0",
              "mean has 5 elements; 5 from meanAt = 1 on are needed",
              "std has 5 elements; 5 from stdAt = -1 on are needed",
              "ids has 1 elements but 2 are needed",
              "kl has 1 elements but 2 are needed",
              "k must be at least 1, is 0",
              "radius must be >= 0, is NaN",
              "threads must be in [1, 1024], is 0");
      assertThatNullPointerException().isThrownBy(() -> index.remove((long[]) null));
      assertThatIllegalStateException()
          .isThrownBy(index::commit)
          .withMessageContaining("KlIndex.builder(dimension).open(folder)");
      assertThatIllegalStateException().isThrownBy(index::verify);
      assertThat(index.size()).isEqualTo(N);
    }
  }

  /** More neighbors than fit an array are refused before the work. */
  @Test
  void tooManyNeighborsAreRefused() {
    int n = 1 << 16;
    try (KlIndex index = KlIndex.builder(D).build()) {
      DiagonalGaussians many = same(n, 0);
      index.add(IntStream.range(0, n).asLongStream().toArray(), many);
      refused(() -> index.nearest(many, n), "4294967296 neighbors do not fit an array");
    }
  }

  private static FullGaussians full() {
    float[] unit = new float[D * D];
    for (int h = 0; h < D; h++) {
      unit[h * D + h] = 1;
    }
    return FullGaussians.ofScaleTril(new float[D], unit, D);
  }

  @Test
  void interruptionAndTimeoutsEndSearches() {
    try (KlIndex index = KlIndex.builder(D).build()) {
      index.add(ids, references.gaussians());
      Query hurried = Query.nearest(3).timeout(Duration.ofNanos(1));
      IndexNeighbors nothing = index.search(queries.gaussians(), hurried);
      assertThat(nothing.values()).isEmpty();
      Query patient = Query.nearest(3).timeout(Duration.ofDays(1_000_000));
      IndexNeighbors all = index.search(queries.gaussians(), patient);
      for (int i = 0; i < queries.size(); i++) {
        assertThat(nothing.isComplete(i)).isFalse();
        assertThat(nothing.provenUpTo(i)).isZero();
        assertThat(all.isComplete(i)).isTrue();
        assertThat(all.provenUpTo(i)).isEqualTo(all.value(i, 2));
      }
      for (Query both :
          List.of(hurried.timeout(Duration.ofDays(1)), patient.timeout(Duration.ofNanos(1)))) {
        assertThat(index.search(queries.gaussians(), both).isComplete(0)).isFalse();
      }
      Thread.currentThread().interrupt();
      assertThatExceptionOfType(CancellationException.class)
          .isThrownBy(() -> index.nearest(queries.gaussians(), 3))
          .withMessageContaining("interrupted");
      assertThat(Thread.interrupted()).isTrue();
      assertThat(index.nearest(queries.gaussians(), 3).size()).isEqualTo(queries.size());
    }
  }

  /** Commits and the end of the index on a virtual thread, beside as many that search as there are carriers. */
  @Tag("long")
  @Test
  void searchesOfVirtualThreadsLetOthersRun() throws Exception {
    int carriers = Runtime.getRuntime().availableProcessors();
    DiagonalGaussians query = rows(queries, 0);
    CountDownLatch searching = new CountDownLatch(carriers);
    KlIndex index = KlIndex.builder(D).open(scratch);
    index.add(ids(0, 1, 2), rows(0, 1, 2));
    try (ExecutorService virtual = Executors.newVirtualThreadPerTaskExecutor()) {
      AtomicBoolean done = new AtomicBoolean();
      List<Future<?>> searches = new ArrayList<>();
      for (int k = 0; k < carriers; k++) {
        searches.add(
            virtual.submit(() -> {
              for (int calls = 0; !done.get(); calls++) {
                if (calls == 50_000) { // compiled code is too fast to yield in each call
                  searching.countDown();
                }
                try {
                  index.nearest(query, 2);
                } catch (IllegalStateException e) { // closed
                  return;
                }
              }
            }));
      }
      searching.await();
      Future<?> changes =
          virtual.submit(() -> {
            index.commit();
            index.remove(ids[0]);
            index.commit();
            index.close();
          });
      try {
        changes.get(20, TimeUnit.SECONDS);
      } finally {
        done.set(true);
      }
      for (Future<?> search : searches) {
        search.get();
      }
    }
    try (KlIndex again = KlIndex.open(scratch)) {
      assertThat(again.size()).isEqualTo(2);
    }
  }

  @Test
  void aClosedIndexAnswersNothing() {
    KlIndex index = KlIndex.builder(D).threads(2).build();
    index.add(ids, references.gaussians());
    index.close();
    index.close();
    for (Runnable call :
        List.<Runnable>of(
            index::size,
            index::stats,
            index::commit,
            index::verify,
            index::ids,
            () -> index.contains(1),
            () -> index.get(1),
            () -> index.get(1, new float[D], new float[D]),
            () -> index.forEach((some, batch) -> {}),
            () -> index.nearest(1, 1),
            () -> index.rank(queries.gaussians(), new long[queries.size()][0], 1),
            () -> index.remove(1),
            () -> index.add(new long[] {1}, rows(1)),
            () -> index.replace(new long[] {1}, rows(1)),
            () -> index.nearest(queries.gaussians(), 1),
            () -> index.query(new float[D], 0, new float[D], 0, 1, new long[1], new float[1]))) {
      assertThatExceptionOfType(AlreadyClosedException.class)
          .isThrownBy(call::run)
          .withMessage("this KlIndex is closed");
    }
  }

  /** Sums of logarithms overflow, so that there are no bounds. */
  @Test
  void findsGaussiansWithoutBounds() {
    double most = 1.7e308;
    DiagonalGaussians references =
        DiagonalGaussians.ofLogVariance(
            new double[] {0, 0, 0, 0, 1, 1, 1, 1},
            new double[] {most, most, -most, -most, 0, 0, 0, 0},
            4);
    DiagonalGaussians query =
        DiagonalGaussians.ofLogVariance(new double[4], new double[] {most, most, -most, -most}, 4);
    try (KlIndex index = KlIndex.builder(4).build()) {
      index.add(new long[] {10, 20}, references);
      for (double radius : new double[] {0, 1}) {
        IndexNeighbors found = index.within(query, radius);
        assertThat(found.count(0)).as("radius %s", radius).isEqualTo(1);
        assertThat(found.id(0, 0)).isEqualTo(10);
      }
      assertThat(index.within(query, Double.POSITIVE_INFINITY).count(0)).isEqualTo(2);
      assertThat(index.nearest(query, 1).id(0, 0)).isEqualTo(10);
    }
  }

  @Test
  void closingCommitsWhereItIsToldTo(@TempDir Path folder, @TempDir Path target) {
    Gaussians one = DiagonalGaussians.ofStd(new float[2], new float[] {1, 1}, 2);
    try (KlIndex index = KlIndex.builder(2).commitOnClose(true).open(folder)) {
      index.add(new long[] {1}, one);
      Thread.currentThread().interrupt(); // of which nothing is lost
    }
    assertThat(Thread.interrupted()).isTrue();
    try (KlIndex index = KlIndex.open(folder)) {
      assertThat(index.contains(1)).isTrue();
      index.add(new long[] {2}, one);
    }
    try (KlIndex writer = KlIndex.open(folder);
        KlIndex reader =
            KlIndex.builder(2).refreshEvery(Duration.ofHours(1)).openReadOnly(folder)) {
      assertThat(reader.size()).isEqualTo(1);
      writer.add(new long[] {2}, one);
      writer.commit();
      assertThat(reader.refresh()).isTrue();
      assertThat(reader.nearest(one, 2).ids()).containsExactly(1, 2);
      assertThat(reader.refresh()).isFalse();
      reader.snapshot(target.resolve("copy"));
    }
    try (KlIndex copy = KlIndex.openReadOnly(target.resolve("copy"))) {
      assertThat(copy.size()).isEqualTo(2);
    }
    refusedAs(
        "interval must be positive, is PT0S", () -> KlIndex.builder(2).refreshEvery(Duration.ZERO));
    KlIndex.Builder commits = KlIndex.builder(2).commitOnClose(true);
    KlIndex.Builder refreshes = KlIndex.builder(2).refreshEvery(Duration.ofHours(1));
    for (ThrowingCallable wrong :
        List.<ThrowingCallable>of(
            commits::build,
            () -> commits.openReadOnly(folder),
            refreshes::build,
            () -> refreshes.open(folder))) {
      assertThatIllegalStateException()
          .isThrownBy(wrong)
          .withMessageMatching(
              "(commitOnClose|refreshEvery) was set, and an index .* has no use for it");
    }
  }

  /** A builder without a dimension opens what is there, and makes nothing. */
  @Test
  void buildersLearnTheDimension(@TempDir Path scratch) {
    Path folder = scratch.resolve("index");
    Gaussians one = DiagonalGaussians.ofStd(new float[2], new float[] {1, 1}, 2);
    assertThatThrownBy(() -> KlIndex.builder().open(folder))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessage(
            folder + ": there is no such folder; KlIndex.builder(dimension).open makes one");
    assertThat(folder).doesNotExist();
    assertThatIllegalStateException()
        .isThrownBy(() -> KlIndex.builder().threads(2).build())
        .withMessage(
            "an index in memory needs a dimension; KlIndex.builder(dimension).build() makes one");
    try (KlIndex index = KlIndex.builder(2).open(folder)) {
      index.add(new long[] {1}, one);
      index.commit();
    }
    try (KlIndex index = KlIndex.builder().threads(2).batchQueries(Duration.ZERO).open(folder)) {
      assertThat(index.dimension()).isEqualTo(2);
      assertThat(index.nearest(one, 1).ids()).containsExactly(1);
      try (KlIndex reader = KlIndex.builder().threads(2).openReadOnly(folder)) {
        assertThat(reader.dimension()).isEqualTo(2);
      }
    }
  }

  /** What goes with a commit, and what leaves the files; {@code PurgeTest} looks at their bytes. */
  @Test
  void userDataAndPurge(@TempDir Path folder) {
    long[] all = LongStream.range(0, N).toArray();
    try (KlIndex index = KlIndex.builder(D).open(folder)) {
      assertThat(index.userData()).isEmpty();
      index.add(all, references.gaussians());
      byte[] data = {1, 2, 3};
      index.commit(data);
      data[0] = 9;
      assertThat(index.userData()).containsExactly(1, 2, 3);
      index.userData()[0] = 9;
      assertThat(index.userData()).containsExactly(1, 2, 3);
      refusedAs(
          "userData has 65537 bytes; a commit takes 65536 at most",
          () -> index.commit(new byte[65_537]));
      index.remove(1, 3);
      index.purge();
      assertThat(index.stats().deleted()).isZero();
      index.add(new long[] {1}, references.rows(1, 2).gaussians());
      index.compact();
      assertThat(index.stats().segments()).isEqualTo(1);
      assertThat(index.userData()).containsExactly(1, 2, 3);
      try (KlIndex reader = KlIndex.openReadOnly(folder)) {
        assertThat(reader.userData()).containsExactly(1, 2, 3);
        assertThat(reader.size()).isEqualTo(N - 2);
        for (ThrowingCallable wrong :
            List.<ThrowingCallable>of(
                reader::purge, reader::compact, () -> reader.commit(new byte[1]))) {
          assertThatIllegalStateException()
              .isThrownBy(wrong)
              .withMessageStartingWith("this KlIndex was opened read only; KlIndex.open or ");
        }
      }
    }
    try (KlIndex index = KlIndex.builder(D).build()) {
      assertThat(index.userData()).isEmpty();
      index.compact();
      assertThatIllegalStateException()
          .isThrownBy(index::purge)
          .withMessageStartingWith("this KlIndex is in memory alone and has nothing to purge; ");
    }
  }

  @Test
  void warmUpChangesNothing() {
    Batch references = Batch.random(false, 3000, 12, 0, new Random(5));
    Gaussians queries = Batch.random(true, 4, 12, 0, new Random(6)).gaussians();
    try (KlIndex index = KlIndex.builder(12).backgroundWarmUp(true).build()) {
      index.warmUp(); // of nothing
      index.add(LongStream.range(0, 3000).toArray(), references.gaussians());
      IndexNeighbors cold = index.nearest(queries, 7);
      long before = index.stats().queries();
      assertThat(index.warmUp()).isEqualTo(Backend.VECTOR.isAvailable());
      assertThat(index.stats().queries()).isGreaterThan(before);
      IndexNeighbors warm = index.nearest(queries, 7);
      assertThat(warm.ids()).isEqualTo(cold.ids());
      assertThat(warm.values()).isEqualTo(cold.values());
      Set<Long> asked = ConcurrentHashMap.newKeySet();
      Query query = Query.within(Double.POSITIVE_INFINITY).maxPairs(1).filter(asked::add);
      long searched = index.stats().queries();
      assertThat(index.warmUpFor(query)).isEqualTo(Backend.VECTOR.isAvailable());
      assertThat(index.stats().queries()).isGreaterThan(searched);
      assertThat(asked).hasSize(3000);
      assertThatIllegalArgumentException()
          .isThrownBy(() -> index.warmUpFor(Query.nearest(1).excludeSelf()))
          .withMessageContaining("excludeSelf");
      Thread.currentThread().interrupt();
      assertThatThrownBy(index::warmUp).isInstanceOf(CancellationException.class);
      assertThat(Thread.interrupted()).isTrue();
    }
  }
}
