package dev.kullback.internal.work;

import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Shares the tasks of calls between threads, and keeps their workers for other calls. Safe for use by any number of threads. A warm call
 * allocates nothing here, unless helpers are to begin.
 */
public final class Crew<W extends Worker> implements AutoCloseable {
  private final int threads;
  private final @Nullable Executor executor;
  private final @Nullable ExecutorService ownExecutor;
  private final Supplier<W> make;
  private final Consumer<W> clear;
  private final AtomicReferenceArray<@Nullable W> pool;

  /**
   * Makes a crew that has {@code threads} threads for a call, the caller's included.
   *
   * @param name of its own threads, before a dash and a number
   * @param executor where helpers run; null for threads of its own, if there are to be any
   * @param clear has a worker forget its call before it goes back to the pool
   */
  public Crew(
      String name, int threads, @Nullable Executor executor, Supplier<W> make, Consumer<W> clear) {
    this.threads = threads;
    this.make = make;
    this.clear = clear;
    ownExecutor = executor == null && threads > 1 ? helpers(name, threads - 1) : null;
    this.executor = executor != null ? executor : ownExecutor;
    pool =
        new AtomicReferenceArray<>(2 * (threads + Runtime.getRuntime().availableProcessors()) + 16);
  }

  private static ExecutorService helpers(String name, int n) {
    AtomicInteger count = new AtomicInteger();
    return Executors.newFixedThreadPool(
        n,
        task ->
            Thread.ofPlatform()
                .daemon()
                .name(name + "-" + count.incrementAndGet())
                .unstarted(task));
  }

  /** Ends its own threads; calls under way finish. */
  @Override
  public void close() {
    if (ownExecutor != null) {
      ownExecutor.shutdown();
    }
  }

  public int threads() {
    return threads;
  }

  /** Returns where helpers run; null if there are none. */
  public @Nullable Executor executor() {
    return executor;
  }

  public String describe() {
    return threads == 1
        ? "the calling thread"
        : threads + " threads" + (ownExecutor == null ? ", helpers on an executor given" : "");
  }

  /** Takes a worker, which is to be given back. */
  public W take() {
    for (int i = 0; i < pool.length(); i++) {
      W worker = pool.getAndSet(i, null);
      if (worker != null) {
        return worker;
      }
    }
    return make.get();
  }

  public void giveBack(W worker) {
    clear.accept(worker);
    for (int i = 0; i < pool.length(); i++) {
      if (pool.compareAndSet(i, null, worker)) {
        return;
      }
    }
  }

  /** Whether a call of {@code tasks} tasks is its caller's alone. */
  public boolean isAlone(long tasks) {
    return threads == 1 || tasks == 1;
  }

  /** Does the tasks 0 … n − 1 of the call that a worker leads, with helpers if there are any. */
  public void share(long tasks, W lead, Job.Task<W> task) {
    if (isAlone(tasks)) {
      Job.alone(tasks, lead, task);
    } else {
      new Job<>(this, tasks, lead, task).run(Objects.requireNonNull(executor), threads);
    }
  }
}
