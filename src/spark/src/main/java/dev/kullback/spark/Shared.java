package dev.kullback.spark;

import dev.kullback.Divergence;
import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.jspecify.annotations.Nullable;

/**
 * Keeps what the tasks of an executor share: the engine, and blocks of references.
 *
 * <p>A block stays while a task uses it. One that none uses stays for the next task, until one needs another block or
 * {@value #IDLE_SECONDS} s have passed: tasks come in the order of the blocks of references, so an executor holds one
 * block, or two when it goes from one to the next, unless there are fewer blocks of queries than tasks at once.
 */
final class Shared {
  private static final long IDLE_SECONDS = 3;

  /** Engines, mostly one: stages may differ in {@code spark.task.cpus}. */
  private static final Map<EngineKey, KlEngine> ENGINES = new ConcurrentHashMap<>();

  private record EngineKey(int threads, String divergence) {}

  /** Bytes of the limits of all searches. */
  private static final long MOST_LIMITS = 32L << 20;

  /** Limits by the search and the block of queries, the latest last. */
  private static final Map<Key, double[]> LIMITS = new LinkedHashMap<>(16, 0.75f, true);

  private static long limitBytes;

  /** Threads of the engines' helpers, of no fixed number, as several tasks call at once. */
  private static final ExecutorService HELPERS =
      Executors.newCachedThreadPool(
          Thread.ofPlatform().name("kullback-spark-", 0).daemon().factory());

  private static final Map<Key, Entry> BLOCKS = new ConcurrentHashMap<>();

  private Shared() {}

  /** A block of one search, whose name no other search in this executor has. */
  record Key(String search, int block) implements Serializable {}

  /**
   * Divergences that a query's neighbors do not exceed, as the k nearest of some references that this executor has searched do not: a
   * reference beyond its query's limit is not in the result. So the limits that happen to be here change no result, but how many
   * candidates are given an exact value and sent to be merged. Those of the blocks searched for longest ago are dropped.
   */
  record Limits(Key key) {
    /** Returns the limits of n queries, or null if there are none. */
    double @Nullable [] get(int n) {
      synchronized (LIMITS) {
        double[] limits = LIMITS.get(key);
        return limits == null || limits.length != n ? null : limits.clone();
      }
    }

    /** Lowers the limits to these. */
    void put(double[] greatest) {
      synchronized (LIMITS) {
        double[] limits = LIMITS.get(key);
        if (limits != null && limits.length == greatest.length) {
          for (int i = 0; i < limits.length; i++) {
            limits[i] = Math.min(limits[i], greatest[i]);
          }
          return;
        }
        LIMITS.put(key, greatest);
        limitBytes += (long) Double.BYTES * greatest.length;
        var eldest = LIMITS.values().iterator();
        while (limitBytes > MOST_LIMITS && eldest.hasNext()) {
          limitBytes -= (long) Double.BYTES * eldest.next().length;
          eldest.remove();
        }
      }
    }
  }

  /** A block as the engine takes it; an empty one has no batch. */
  record Loaded(int index, long[] ids, @Nullable Gaussians batchOrNull, Limits limits) {
    /**
     * @param search name of the search
     */
    static Loaded of(Block block, String search) {
      return new Loaded(
          block.index(),
          block.ids(),
          block.ids().length == 0 ? null : block.batch(),
          new Limits(new Key(search, block.index())));
    }

    boolean isEmpty() {
      return batchOrNull == null;
    }

    Gaussians batch() {
      return Objects.requireNonNull(batchOrNull, "an empty block");
    }
  }

  private static final class Entry {
    /** Number of tasks that use the block; it changes under the map's lock of the key. */
    private int users;

    private long uses;
    private @Nullable Object loaded;

    /** Returns the block, which one task reads; if that fails, the next that waits tries. */
    @SuppressWarnings("unchecked") // a key has blocks of one type
    synchronized <T> T get(Supplier<T> read) {
      if (loaded == null) {
        // Not prepared: usual data need a third of what all forms take, and a form is made once, by
        // the first call that needs it.
        loaded = read.get();
      }
      return (T) loaded;
    }
  }

  /** An engine with as many threads as a task has processors. */
  static KlEngine engine(TaskContext task, String divergence) {
    return ENGINES.computeIfAbsent(
        new EngineKey(task.cpus(), divergence),
        key ->
            build(
                KlEngine.builder()
                    .divergence(Divergence.of(divergence))
                    .threads(key.threads)
                    .executor(HELPERS)));
  }

  /**
   * Builds an engine, which may log a warning. Log4j finds its configuration by the thread's class loader, but not by that of a task.
   */
  static KlEngine build(KlEngine.Builder builder) {
    Thread thread = Thread.currentThread();
    ClassLoader own = thread.getContextClassLoader();
    thread.setContextClassLoader(Shared.class.getClassLoader());
    try {
      return builder.build();
    } finally {
      thread.setContextClassLoader(own);
    }
  }

  /** The block, read if it is not there, until the end of the task. */
  static <T> T block(Key key, Supplier<T> read, TaskContext task) {
    Entry entry =
        BLOCKS.compute(
            key,
            (_, known) -> {
              Entry e = known == null ? new Entry() : known;
              e.users++;
              e.uses++;
              return e;
            });
    TaskCompletionListener done = _ -> release(key);
    task.addTaskCompletionListener(done);
    BLOCKS.keySet().stream().filter(other -> !other.equals(key)).forEach(Shared::drop);
    return entry.get(read);
  }

  private static void release(Key key) {
    Entry released =
        BLOCKS.computeIfPresent(
            key,
            (_, e) -> {
              e.users--;
              return e;
            });
    if (released != null) {
      long uses = released.uses;
      CompletableFuture.delayedExecutor(IDLE_SECONDS, TimeUnit.SECONDS)
          .execute(() ->
              BLOCKS.computeIfPresent(key, (_, e) -> e.users == 0 && e.uses == uses ? null : e));
    }
  }

  private static void drop(Key key) {
    BLOCKS.computeIfPresent(key, (_, e) -> e.users == 0 ? null : e);
  }

  /** Returns how many blocks are held now. */
  static int blocks() {
    return BLOCKS.size();
  }
}
