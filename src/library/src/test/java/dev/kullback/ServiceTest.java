package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.kullback.internal.batch.DerivedForm;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.work.Checkpoint;
import dev.kullback.testing.Batch;
import dev.kullback.testing.Engines;
import dev.kullback.testing.FullBatch;
import dev.kullback.testing.Interruption;
import dev.kullback.testing.Regime;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
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
import java.util.function.Consumer;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Promises to a service besides right results: how much memory is held, when a preparation is made, and whom a call keeps waiting. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ServiceTest {
  private static final Duration PATIENCE = Duration.ofSeconds(20);
  private static final int SIZE = 150;
  private static final int DIMENSION = 24;

  private static DiagonalGaussians batch(int size, long seed) {
    return Batch.random(false, size, DIMENSION, 0, new Random(seed)).gaussians();
  }

  // --- a finished call holds nothing

  @Test
  void finishedCallsHoldNothingWhileHelpersAreBusy() throws Exception {
    try (KlEngine engine = Engines.on(Backend.AUTO, 2)) {
      CountDownLatch busy = new CountDownLatch(2);
      CountDownLatch end = new CountDownLatch(1);
      DiagonalGaussians q = batch(SIZE, 1);
      Thread holder = // both threads of its call hang in a tile
          Thread.ofPlatform()
              .start(() -> engine.forEachTile(q, batch(8192, 2), _ -> await(busy, end)));
      busy.await();
      assertCollected(call(engine));
      end.countDown();
      holder.join();
    }
  }

  @Test
  void finishedCallsHoldNothingInAnExecutorOfTheCallers() throws Exception {
    CountDownLatch busy = new CountDownLatch(1);
    CountDownLatch end = new CountDownLatch(1);
    try (ExecutorService pool = Executors.newFixedThreadPool(1);
        KlEngine engine = KlEngine.builder().threads(2).executor(pool).build()) {
      pool.execute(() -> await(busy, end));
      busy.await();
      assertCollected(call(engine));
      end.countDown();
    }
  }

  private static void await(CountDownLatch reached, CountDownLatch end) {
    reached.countDown();
    try {
      end.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** Makes calls of all kinds, failing ones included, and returns weak references to everything that they were given. */
  private static List<WeakReference<Object>> call(KlEngine engine) {
    DiagonalGaussians q = batch(SIZE, 3);
    DiagonalGaussians p = batch(SIZE, 4);
    FullGaussians full = FullBatch.random(false, SIZE, DIMENSION, 10, 0, new Random(1)).gaussians();
    float[] out = new float[SIZE * SIZE];
    int[] indices = new int[SIZE * 3];
    double[] sums = new double[SIZE];
    double[] weights = new double[SIZE];
    Consumer<KlTile> consumer =
        tile -> {
          throw new UnsupportedOperationException(tile + " of " + q);
        };
    engine.pairwise(q, p, out);
    engine.pairwise(full, full, out);
    engine.search(q, p, Query.nearest(3), indices, out);
    engine.within(q, p, 1);
    engine.weightedLogSumExp(q, p, weights, sums);
    assertThatExceptionOfType(UnsupportedOperationException.class)
        .isThrownBy(() -> engine.forEachTile(q, p, consumer));
    List<WeakReference<Object>> held = new ArrayList<>();
    for (Object o : new Object[] {q, p, full, out, indices, sums, weights, consumer}) {
      held.add(new WeakReference<>(o));
    }
    return held;
  }

  @SuppressWarnings("SystemGc")
  private static void assertCollected(List<WeakReference<Object>> held) throws Exception {
    for (int tries = 0; tries < 50 && held.stream().anyMatch(r -> !r.refersTo(null)); tries++) {
      System.gc();
      Thread.sleep(20);
    }
    assertThat(held).extracting(WeakReference::get).containsOnlyNulls();
  }

  // --- what is prepared

  /** Queries far from the references, near to them and equal, of their precision, and the other way round. */
  @Test
  void queriesOfPreparedBatchesBuildNothing() {
    for (boolean isDouble : new boolean[] {false, true}) {
      Batch batch = Batch.random(isDouble, SIZE, DIMENSION, 0, new Random(5));
      DiagonalGaussians references = batch.gaussians();
      long before = references.memoryBytes();
      assertThat(before).isBetween((isDouble ? 16L : 8L) * SIZE * DIMENSION, 1L << 20);
      references.prepare();
      long prepared = references.memoryBytes();
      // what its javadoc says, panels filled up to 32 rows
      assertThat(prepared - before)
          .isBetween(
              (isDouble ? 16L : 8L) * SIZE * DIMENSION,
              ((isDouble ? 16L : 8L) * DIMENSION + 32) * (SIZE + 31));
      try (KlEngine engine = KlEngine.builder().build()) {
        for (Gaussians query :
            List.of(
                Batch.random(isDouble, 7, DIMENSION, 0, new Random(6)).gaussians(),
                batch.rows(3, 9).gaussians(),
                Batch.random(isDouble, 3, DIMENSION, 0, new Random(7)).gaussians())) {
          useAll(engine, query, references);
          useAll(engine, references, query);
        }
        useAll(engine, references, references);
        engine.toStandardNormal(references);
      }
      assertThat(references.memoryBytes()).isEqualTo(prepared);
      references.prepare();
      assertThat(references.memoryBytes()).isEqualTo(prepared);
    }
  }

  /** What a service keeps of references that it searches: not what the near duplicates among them could be computed again from. */
  @Test
  void nearestKeepsTwiceTheParameters() {
    int d = 64;
    int m = 3000;
    Random random = new Random(11);
    double[] mean = random.doubles((long) m * d, -2, 2).toArray();
    double[] std = random.doubles((long) m * d, 0.5, 1.5).toArray();
    Batch batch = Batch.ofStd(Batch.Kind.STD, false, mean, std, d);
    DiagonalGaussians references = batch.gaussians();
    DiagonalGaussians copies = batch.rows(0, 100).gaussians();
    try (KlEngine engine = KlEngine.builder().build()) {
      engine.warmUp(copies.slice(7, 8), references);
      for (int i = 0; i < copies.size(); i++) {
        DiagonalGaussians query = nudged(copies, i);
        engine.nearest(query, references, 10);
        engine.search(query, references, Query.nearest(10).reverse());
        engine.within(query, references, 1e-6);
      }
    }
    assertThat((double) references.memoryBytes() / (2L * Float.BYTES * m * d)).isBetween(1.0, 2.5);
  }

  /** A Gaussian so close to one of a batch that their divergence is computed again in every form. */
  private static DiagonalGaussians nudged(DiagonalGaussians g, int i) {
    double[] mean = g.mean(i);
    double[] variance = g.covariance(i);
    int d = mean.length;
    float[] means = new float[d];
    float[] stds = new float[d];
    for (int h = 0; h < d; h++) {
      means[h] = (float) (mean[h] + 1e-5 * (i % 3));
      stds[h] = (float) Math.sqrt(variance[h * (d + 1)]);
    }
    return DiagonalGaussians.ofStd(means, stds, d);
  }

  /** Gaussians that are alike make what computes their entries again once, and keep it. */
  @Test
  void batchesThatAreAlikeKeepWhatComputesEntriesAgain() {
    Regime.Case near = Regime.NEAR_1E_6.draw(false, 9, 2 * SIZE, DIMENSION);
    DiagonalGaussians references = near.p().gaussians();
    references.prepare();
    long prepared = references.memoryBytes();
    try (KlEngine engine = KlEngine.builder().build()) {
      useAll(engine, near.q().gaussians(), references);
      useAll(engine, near.q().gaussians(), references);
      long used = references.memoryBytes();
      if (Platform.mayHaveVectors()) {
        long most = 44L * (2 * SIZE + 31) * DIMENSION + 96L * (2 * SIZE + 31);
        assertThat(used - prepared).isBetween(24L * 2 * SIZE * DIMENSION, most);
      }
      useAll(engine, near.q().gaussians(), references);
      assertThat(references.memoryBytes()).isEqualTo(used);
    }
  }

  /** A few entries of each tile are near, of a batch and what is nearly its copy: so many of them make panels that serve such. */
  @Test
  void someNearEntriesAmongOthersMakePanels() {
    int n = 256;
    float[] means = new float[n * DIMENSION];
    float[] ones = new float[means.length];
    for (int k = 0; k < means.length; k++) {
      means[k] = k * 7919 % 1009 * 0.01f;
    }
    Arrays.fill(ones, 1);
    float[] others = means.clone();
    for (int i = 0; i < n; i++) {
      others[i * DIMENSION] += 4e-6f;
    }
    DiagonalGaussians q = DiagonalGaussians.ofStd(means, ones, DIMENSION);
    DiagonalGaussians p = DiagonalGaussians.ofStd(others, ones, DIMENSION);
    float[] kl = new float[n * n];
    try (KlEngine engine = KlEngine.builder().build()) {
      engine.pairwise(q, p, kl);
      float[] first = kl.clone();
      for (int call = 0; call < 3; call++) {
        engine.pairwise(q, p, kl);
      }
      assertThat(kl).isEqualTo(first);
    }
    long values = DiagonalGaussians.ofStd(others, ones, DIMENSION).memoryBytes();
    double numbers = (double) (p.memoryBytes() - values) / Float.BYTES / means.length;
    if (Platform
        .mayHaveVectors()) { // panels in float and in double take 4.8 to 6.7, those of near pairs
      // 3.5 to 4 more
      assertThat(numbers).isGreaterThan(7.5);
    }
  }

  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void queriesOfPreparedFullBatchesBuildNothing(Backend backend) {
    FullBatch batch = FullBatch.random(false, SIZE, DIMENSION, 100, 0, new Random(9));
    FullGaussians references = batch.gaussians();
    long before = references.memoryBytes();
    references.prepare();
    long prepared = references.memoryBytes();
    if (Platform.mayHaveVectors()) {
      long said = 8L * DIMENSION * (DIMENSION + 3);
      assertThat(prepared - before)
          .isBetween(said * SIZE, (said + 64) * (SIZE + 16) + 8 * DIMENSION);
    }
    try (KlEngine engine = Engines.on(backend)) {
      useAll(engine, references, references);
      useAll(engine, batch.rows(3, 12).gaussians(), references);
      useAll(engine, references, batch.rows(3, 12).gaussians());
      engine.aligned(references, references);
    }
    assertThat(references.memoryBytes()).isEqualTo(prepared);
  }

  /** Warming up prepares all that such calls need of both batches: for a mixed pair also the diagonal batch written out as a full one. */
  @Test
  void warmUpOfBatchesPreparesThem() {
    DiagonalGaussians q = batch(3, 10);
    FullGaussians p = FullBatch.random(false, 9, DIMENSION, 10, 0, new Random(1)).gaussians();
    try (KlEngine engine = KlEngine.builder().build()) {
      engine.warmUp(q, p);
      long prepared = q.memoryBytes() + p.memoryBytes();
      useAll(engine, q, p);
      assertThat(q.memoryBytes() + p.memoryBytes()).isEqualTo(prepared);
    }
  }

  private static void useAll(KlEngine engine, Gaussians q, Gaussians p) {
    engine.pairwise(q, p);
    engine.nearest(q, p, 3);
    engine.within(q, p, 0.1);
    engine.logSumExp(q, p);
  }

  /** Ends within some milliseconds of work, far before the end of a batch as large as this; what is left is built by the next. */
  @Test
  void preparationEndsWhenInterrupted() {
    float[] ones = new float[1 << 22];
    Arrays.fill(ones, 1);
    DiagonalGaussians batch = DiagonalGaussians.ofVariance(ones, ones, 16);
    long before = batch.memoryBytes();
    long prepared = before + 8L * ones.length;
    Thread.currentThread().interrupt();
    assertThatExceptionOfType(CancellationException.class).isThrownBy(batch::prepare);
    assertThat(Thread.interrupted()).isTrue();
    assertThat(batch.memoryBytes()).isLessThan(prepared);
    batch.prepare();
    assertThat(batch.memoryBytes())
        .isGreaterThanOrEqualTo(Platform.mayHaveVectors() ? prepared : before);
  }

  static Stream<Arguments> longWork() {
    int d = 800;
    FullGaussians q = lowerTriangular(d, 1, 0);
    FullGaussians p = lowerTriangular(d, 2, 0);
    FullGaussians near = lowerTriangular(d, 1, 1e-6);
    FullGaussians both = lowerTriangular(d, 1, 0, 1e-6);
    double[] halves = {0.5, 0.5};
    Mixtures mixture = Mixtures.of(both, halves);
    Stream<Arguments> packing =
        Platform.mayHaveVectors()
            ? Stream.of(
                Arguments.of("Triangle", (Runnable) () -> lowerTriangular(d, 3, 0).prepare()))
            : Stream.of();
    Stream<Arguments> others =
        Stream.of(
            Arguments.of("FullPair.kl", pair(Divergence.KL, q, p)),
            Arguments.of("FullChernoff.far", pair(Divergence.renyi(0.3), q, p)),
            Arguments.of("FullChernoff.near", pair(Divergence.renyi(0.3), q, near)),
            Arguments.of("Bures.bidiagonalize", pair(Divergence.WASSERSTEIN_2, q, p)),
            Arguments.of("Bures.diagonalize", pair(Divergence.WASSERSTEIN_2, q, near)),
            Arguments.of("FullComponents.", (Runnable) () -> MixtureReduction.runnalls(mixture, 1)),
            Arguments.of(
                "Overlap", (Runnable) () -> MixtureKl.of(mixture, mixture).productOfGaussians()));
    return Stream.concat(packing, others);
  }

  private static Runnable pair(Divergence divergence, FullGaussians q, FullGaussians p) {
    return () -> {
      try (KlEngine engine =
          KlEngine.builder().backend(Backend.SCALAR).divergence(divergence).build()) {
        engine.pairwise(q, p, new double[1]);
      }
    };
  }

  /** Gaussians with factors of a seed, each with its relative change. */
  private static FullGaussians lowerTriangular(int d, long seed, double... changes) {
    double[] scaleTril = new double[changes.length * d * d];
    for (int i = 0, k = 0; i < changes.length; i++) {
      Random random = new Random(seed);
      for (int r = 0; r < d; r++) {
        for (int c = 0; c < d; c++, k++) {
          double x =
              r == c ? random.nextDouble(0.7, 1.7) : 0.3 * random.nextGaussian() / Math.sqrt(d);
          scaleTril[k] = c > r ? 0 : x * (1 + changes[i] * random.nextInt(7));
        }
      }
    }
    return FullGaussians.ofScaleTril(new double[changes.length * d], scaleTril, d);
  }

  /** Work on a single pair or Gaussian, of D³ multiplications and more, ends within it when it is interrupted. */
  @ParameterizedTest(name = "{0}")
  @MethodSource("longWork")
  void largeMatricesEndWhenInterrupted(String place, Runnable work) {
    assertThat(
            Interruption.isMet(
                work,
                stack ->
                    stack.stream()
                        .map(frame -> frame.getClassName() + "." + frame.getMethodName())
                        .anyMatch(name -> name.contains(place))))
        .isTrue();
  }

  /** Interrupting a helper, as shutting its executor down does, is none of the call's business, even while it prepares a batch. */
  @Test
  void helpersThatAreInterruptedEndNoCall() throws Exception {
    Regime.Case near = Regime.NEAR_1E_6.draw(false, 600, 600, DIMENSION);
    try (KlEngine alone = KlEngine.builder().build()) {
      float[] expected = alone.pairwise(near.q().gaussians(), near.p().gaussians());
      for (int k = 0; k < 30; k++) {
        ExecutorService pool = Executors.newFixedThreadPool(3);
        try (KlEngine engine = KlEngine.builder().threads(4).executor(pool).build()) {
          DiagonalGaussians q = near.q().gaussians(); // not yet prepared
          DiagonalGaussians p = near.p().gaussians();
          Thread killer =
              Thread.ofPlatform()
                  .start(() -> {
                    for (int times = 0; times < 2000; times++) {
                      Thread.onSpinWait();
                    }
                    pool.shutdownNow();
                  });
          assertThat(engine.pairwise(q, p)).isEqualTo(expected);
          killer.join();
        }
      }
    }
  }

  @Test
  void closingEndsWarmUpAndVerify() throws Exception {
    for (Consumer<KlEngine> call :
        List.<Consumer<KlEngine>>of(
            engine -> engine.warmUp(8, 200, 8),
            engine -> engine.warmUp(batch(SIZE, 1), batch(SIZE, 2)),
            engine -> engine.verify(Duration.ofSeconds(60)))) {
      KlEngine engine = Engines.on(Backend.AUTO);
      Thread closer =
          Thread.ofPlatform()
              .start(() -> {
                try {
                  Thread.sleep(300);
                } catch (InterruptedException e) {
                  throw new AssertionError(e);
                }
                engine.close();
              });
      assertThatIllegalStateException()
          .isThrownBy(() -> call.accept(engine))
          .withMessageContaining("closed");
      closer.join();
    }
  }

  /** A thread that waits for another's preparation can be interrupted, too; a preparation that fails is left to the next caller. */
  @Test
  void waitingForAPreparationEndsWhenInterrupted() throws Exception {
    DiagonalBatch batch = batch(3, 1).batch;
    CountDownLatch making = new CountDownLatch(1);
    CountDownLatch end = new CountDownLatch(1);
    AtomicBoolean again = new AtomicBoolean();
    DerivedForm<DiagonalBatch, String> form =
        new DerivedForm<>(
            _ -> {
              if (!again.getAndSet(true)) {
                await(making, end);
                throw Checkpoint.interrupted();
              }
              return "made";
            },
            String::length);
    Thread maker =
        Thread.ofPlatform()
            .start(() ->
                assertThatExceptionOfType(CancellationException.class)
                    .isThrownBy(() -> form.of(batch)));
    making.await();
    AtomicBoolean interrupted = new AtomicBoolean();
    Thread waiter =
        Thread.ofPlatform()
            .start(() -> {
              assertThatExceptionOfType(CancellationException.class)
                  .isThrownBy(() -> form.of(batch));
              interrupted.set(Thread.currentThread().isInterrupted());
            });
    waiter.interrupt();
    assertThat(waiter.join(PATIENCE)).isTrue();
    assertThat(interrupted).isTrue();
    end.countDown();
    maker.join();
    assertThat(form.of(batch)).isEqualTo("made");
  }

  // --- virtual threads

  /** Long calls yield: other virtual threads run while such calls are on the carriers. */
  @Test
  void longCallsLetOtherVirtualThreadsRun() throws Exception {
    longCallsLetOtherVirtualThreadsRun(Backend.VECTOR);
  }

  @Tag("long")
  @Test
  void longCallsOfPlainCodeLetOtherVirtualThreadsRun() throws Exception {
    longCallsLetOtherVirtualThreadsRun(Backend.SCALAR);
  }

  private static void longCallsLetOtherVirtualThreadsRun(Backend backend) throws Exception {
    DiagonalGaussians wide = batch(3_000, 11);
    Gaussians full = FullBatch.random(false, 200, 40, 10, 0, new Random(1)).gaussians();
    float[] ones = new float[1 << 21];
    Arrays.fill(ones, 1);
    DiagonalGaussians many = DiagonalGaussians.ofStd(ones, ones, 16);
    DiagonalGaussians others = DiagonalGaussians.ofVariance(ones, ones, 16);
    try (KlEngine engine = Engines.on(backend)) {
      List<Runnable> calls =
          List.of(
              () -> engine.pairwise(wide, wide),
              () -> engine.nearest(wide, wide, 3),
              () -> engine.aligned(many, others),
              () -> engine.toStandardNormal(many),
              () -> engine.pairwise(full, full),
              () -> engine.monteCarlo(wide, wide, 30, 1),
              () -> Mixtures.of(full).entropyLowerBound(0.5),
              () -> DiagonalGaussians.ofStd(ones, ones, 16).prepare());
      for (int k = 0; k < calls.size(); k++) {
        assertOthersRun("call " + k, calls.get(k));
      }
    }
  }

  /** Calls too short to yield by themselves do so together. */
  @Test
  void shortCallsLetOtherVirtualThreadsRun() throws Exception {
    DiagonalGaussians few = batch(30, 11);
    DiagonalGaussians one = batch(1, 12);
    try (KlEngine engine = KlEngine.builder().build();
        KlIndex index = KlIndex.builder(DIMENSION).build();
        KlIndex empty = KlIndex.builder(DIMENSION).build()) {
      index.add(LongStream.range(0, 30).toArray(), few);
      List<Runnable> calls =
          List.of(
              () -> index.nearest(one, 3),
              () -> empty.within(one, 1),
              () -> engine.pairwise(one, few));
      for (int k = 0; k < calls.size(); k++) {
        assertOthersRun("call " + k, calls.get(k));
      }
    }
  }

  /** Number of calls at once; other carriers, which a large machine has, are kept busy without memory. */
  private static final int CALLS = 2;

  /** The calls go on, one after the other, until the others have run: without a yield, for ever. */
  private static void assertOthersRun(String what, Runnable call) throws Exception {
    int carriers = Runtime.getRuntime().availableProcessors();
    AtomicBoolean done = new AtomicBoolean();
    CountDownLatch running = new CountDownLatch(carriers);
    try (ExecutorService virtual = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<?>> calls = new ArrayList<>();
      for (int k = 0; k < carriers; k++) {
        Runnable loop = k < CALLS ? call : Thread::onSpinWait;
        calls.add(
            virtual.submit(() -> {
              running.countDown();
              while (!done.get()) {
                loop.run();
              }
            }));
      }
      running.await();
      CountDownLatch others = new CountDownLatch(20);
      for (int k = 0; k < 20; k++) {
        virtual.execute(others::countDown);
      }
      boolean ran = others.await(PATIENCE.toSeconds(), TimeUnit.SECONDS);
      done.set(true);
      for (Future<?> future : calls) {
        future.get();
      }
      assertThat(ran).as(what).isTrue();
    }
  }

  // --- settings

  @Test
  void executorAloneSharesCallsAmongAllProcessors() {
    Set<Runnable> given = ConcurrentHashMap.newKeySet();
    int processors = Runtime.getRuntime().availableProcessors();
    try (KlEngine engine = KlEngine.builder().executor(given::add).build();
        KlEngine alone = KlEngine.builder().threads(1).executor(given::add).build()) {
      alone.pairwise(batch(SIZE, 1), batch(SIZE, 2));
      assertThat(given).isEmpty();
      engine.pairwise(batch(SIZE, 1), batch(SIZE, 2));
      assertThat(given).hasSize(processors > 1 ? 1 : 0);
      assertThat(engine.toString())
          .contains(processors > 1 ? processors + " threads" : "calling thread");
    }
  }

  /** Checked as pairs are found: 10¹¹ of them are not computed first, let alone kept. */
  @Test
  void withinsLimitEndsTheCallEarly() {
    float[] ones = new float[300_000];
    Arrays.fill(ones, 1);
    DiagonalGaussians q = DiagonalGaussians.ofStd(ones, ones, 1);
    try (KlEngine engine = KlEngine.builder().threads(2).build()) {
      refused(
          () -> engine.search(q, q, Query.within(Double.POSITIVE_INFINITY).maxPairs(1000)),
          "more than 1000 pairs");
    }
  }
}
