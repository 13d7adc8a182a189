package dev.kullback;

import static dev.kullback.testing.Refusal.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.kullback.testing.Batch;
import dev.kullback.testing.Check;
import dev.kullback.testing.Engines;
import dev.kullback.testing.Reference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** One engine used by many threads, executors of every temper, and life after close. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ConcurrencyTest {
  private static final Duration PATIENCE = Duration.ofSeconds(10);
  private static final int SIZE = 150;

  private final Batch batch = Batch.random(false, SIZE, 24, 0, new Random(1));
  private final DiagonalGaussians q = batch.gaussians();

  /** Callers differ in shape and dtype, so that scratch memory shared by mistake shows. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void manyCallersOfOneEngine(Backend backend) throws Exception {
    for (int threads : new int[] {1, 3}) {
      try (KlEngine engine = Engines.on(backend, threads)) {
        atOnce(
            10,
            caller -> {
              boolean isDouble = caller % 3 == 0;
              Batch mine = Batch.random(isDouble, 20 + caller, 7 + caller, 0, new Random(caller));
              Batch other = Batch.random(isDouble, 51 - caller, 7 + caller, 3, new Random(-caller));
              double[] expected = Reference.pairwise(mine, other);
              DiagonalGaussians a = mine.gaussians();
              DiagonalGaussians b = other.gaussians();
              Check.Precision precision = Check.Precision.ofDoubleResult(mine, other);
              String what = "caller " + caller + " of " + backend;
              return () -> {
                Check.matrix(what, b.size(), expected, engine.pairwise(a, b));
                double[] out = engine.pairwise(a, b, new double[expected.length]);
                Check.matrix(what, b.size(), expected, out, precision);
              };
            });
      }
    }
  }

  /** Has 32 callers, platform and virtual threads, do each its work several times. */
  private static void atOnce(int repetitions, IntFunction<Runnable> work) throws Exception {
    try (ExecutorService platform = Executors.newFixedThreadPool(8);
        ExecutorService virtual = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<?>> calls = new ArrayList<>();
      for (int caller = 0; caller < 32; caller++) {
        Runnable call = work.apply(caller);
        calls.add(
            (caller % 2 == 0 ? platform : virtual)
                .submit(() -> IntStream.range(0, repetitions).forEach(_ -> call.run())));
      }
      for (Future<?> call : calls) {
        call.get();
      }
    }
  }

  /** Prepared references, queries of different sizes from platform and virtual threads: as if each were alone. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void manyQueriesOfTheSameReferences(Backend backend) throws Exception {
    DiagonalGaussians references = Batch.random(false, 5000, 6, 0, new Random(8)).gaussians();
    for (int threads : new int[] {1, 3}) {
      try (KlEngine engine = Engines.on(backend, threads);
          KlEngine alone = Engines.on(backend)) {
        atOnce(
            5,
            caller -> {
              int k = 1 + caller;
              DiagonalGaussians query =
                  Batch.random(false, 1 + caller % 9, 6, 0, new Random(caller)).gaussians();
              Neighbors nearest = alone.nearest(query, references, k);
              double radius = nearest.value(0, k - 1);
              int[] within = alone.within(query, references, radius).indices();
              double[] sums = alone.logSumExp(query, references);
              return () -> {
                Neighbors found = engine.nearest(query, references, k);
                assertThat(found.indices()).isEqualTo(nearest.indices());
                assertThat(found.values()).isEqualTo(nearest.values());
                assertThat(engine.within(query, references, radius).indices()).isEqualTo(within);
                assertThat(engine.logSumExp(query, references)).isEqualTo(sums);
              };
            });
      }
    }
  }

  /** One that rejects, one that runs in the caller, and one that never runs: the caller computes whatever no helper has begun. */
  @Test
  void executors() {
    List<Executor> executors =
        List.of(
            _ -> {
              throw new RejectedExecutionException("full");
            },
            Runnable::run,
            _ -> {});
    executors.forEach(executor -> Check.sameBits("executor", SIZE, expected(), pairwise(executor)));
  }

  @Test
  void executorThatRunsLate() {
    Queue<Runnable> held = new ConcurrentLinkedQueue<>();
    float[] expected = expected();
    float[] actual = pairwise(held::add);
    float[] copy = actual.clone();
    // Helpers that come after the end find nothing to do and touch nothing.
    held.forEach(Runnable::run);
    Check.sameBits("late helpers", SIZE, expected, copy);
    Check.sameBits("late helpers", SIZE, copy, actual);
  }

  @Test
  void helpersRunWhereTheyAreTold() {
    Set<Thread> seen = ConcurrentHashMap.newKeySet();
    try (ExecutorService pool = Executors.newFixedThreadPool(2)) {
      float[] actual =
          pairwise(task ->
              pool.execute(() -> {
                seen.add(Thread.currentThread());
                task.run();
              }));
      Check.sameBits("pool", SIZE, expected(), actual);
      assertThat(pool.isShutdown()).as("close() leaves the executor running").isFalse();
    }
    assertThat(seen).isNotEmpty();
  }

  @Test
  void threadsAreStartedWhereSeveralAreWantedAndEndWithTheEngine() throws InterruptedException {
    Set<Thread> before = Thread.getAllStackTraces().keySet();
    try (KlEngine engine = KlEngine.builder().build()) {
      engine.pairwise(q, q);
      assertThat(startedSince(before)).isEmpty();
    }
    try (KlEngine engine = KlEngine.builder().threads(4).build()) {
      engine.pairwise(q, q);
      assertThat(startedSince(before)).isNotEmpty();
    }
    for (Thread thread : startedSince(before)) {
      thread.join(PATIENCE);
      assertThat(thread.isAlive()).as(thread.getName()).isFalse();
    }
  }

  private static Set<Thread> startedSince(Set<Thread> before) {
    Set<Thread> result = new HashSet<>(Thread.getAllStackTraces().keySet());
    result.removeAll(before);
    result.removeIf(thread ->
        thread.getThreadGroup() == null || thread.getThreadGroup().getName().equals("system"));
    return result;
  }

  @Test
  void threadCountMustBePositive() {
    for (int threads : new int[] {0, -1, Integer.MIN_VALUE}) {
      refused(() -> KlEngine.builder().threads(threads).build(), String.valueOf(threads));
    }
  }

  private float[] pairwise(Executor executor) {
    try (KlEngine engine = KlEngine.builder().threads(3).executor(executor).build()) {
      return engine.pairwise(q, q);
    }
  }

  private float[] expected() {
    try (KlEngine engine = KlEngine.builder().build()) {
      return engine.pairwise(q, q);
    }
  }

  /** Ends before the next tile, the status still set; the engine goes on. */
  @ParameterizedTest
  @MethodSource("dev.kullback.testing.Engines#backends")
  void interruption(Backend backend) {
    for (int threads : new int[] {1, 3}) {
      try (KlEngine engine = Engines.on(backend, threads)) {
        double[] expected = engine.rowMin(q, q);
        List<Runnable> calls =
            List.of(
                () -> engine.pairwise(q, q),
                () -> engine.nearest(q, q, 3),
                () -> engine.within(q, q, 1),
                () -> engine.logSumExp(q, q),
                () -> engine.monteCarlo(q, q, 2, 1),
                () -> engine.warmUp(3, 5, 7),
                () -> Mixtures.of(q).entropyLowerBound(0.5));
        calls.forEach(ConcurrencyTest::endsInterrupted);
        assertThat(engine.rowMin(q, q)).isEqualTo(expected);
      }
    }
  }

  /** As the lock of an executor's queue does while it waits for it; a helper may do all the work meanwhile. */
  @Test
  void interruptionThatAnExecutorHidesForAWhile() {
    Executor executor =
        task -> {
          boolean isInterrupted = Thread.interrupted();
          CompletableFuture.runAsync(task).join();
          if (isInterrupted) {
            Thread.currentThread().interrupt();
          }
        };
    KlEngine.Builder builder = KlEngine.builder().backend(Backend.SCALAR).threads(3);
    try (KlEngine engine = builder.executor(executor).build()) {
      engine.pairwise(q, q); // makes panels, which looks for an interruption, too
      endsInterrupted(() -> engine.pairwise(q, q));
      endsInterrupted(() -> engine.nearest(q, q, 3));
    }
  }

  private static void endsInterrupted(Runnable call) {
    Thread.currentThread().interrupt();
    assertThatExceptionOfType(CancellationException.class)
        .isThrownBy(call::run)
        .withMessageContaining("interrupted");
    assertThat(Thread.interrupted()).isTrue();
  }

  /** Whoever computes the first tile interrupts the caller: each thread ends at most the tile it has begun. */
  @Test
  void interruptionBetweenTiles() {
    DiagonalGaussians wide = Batch.random(false, 40_000, 24, 0, new Random(7)).gaussians();
    for (int threads : new int[] {1, 3}) {
      try (KlEngine engine = Engines.on(Backend.AUTO, threads)) {
        Thread caller = Thread.currentThread();
        AtomicInteger tiles = new AtomicInteger();
        assertThatExceptionOfType(CancellationException.class)
            .isThrownBy(() ->
                engine.forEachTile(
                    q,
                    wide,
                    _ -> {
                      caller.interrupt();
                      tiles.incrementAndGet();
                    }));
        assertThat(Thread.interrupted()).isTrue();
        assertThat(tiles.get()).isBetween(1, threads);
      }
    }
  }
}
