package dev.kullback.internal.engine;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.vector.Readiness;
import dev.kullback.internal.vector.Readiness.Part;
import dev.kullback.internal.vector.SmallKernel;
import dev.kullback.internal.work.Checkpoint;
import java.util.EnumMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Has C2 compile the vector kernels, and calls change over to them from their plain twins when it has: a daemon thread, begun by the
 * first call that would use vectors, runs both on batches of its own until the vectors are as fast. It does so {@link Part} by part, and
 * only those that calls have asked for. Where the VM does not compile vectors at all, the twins stay.
 */
final class ChangeOver {
  private static final String THREAD = "kullback-change-over";

  /** Leaves the processors to the first call, which on two of them took up to twice as long beside this (0.27 s alone, Zen 3). */
  private static final long DELAY_MILLIS = 500;

  /** The parts that were ever asked for. */
  private static final Set<Part> ASKED = ConcurrentHashMap.newKeySet();

  /** Those that are still to be tried, with the dimension of the batches that want them. */
  private static final Map<Part, Integer> WANTED = new EnumMap<>(Part.class);

  private static @Nullable Thread thread;

  private static final CountDownLatch AWAITED = new CountDownLatch(1);

  private ChangeOver() {}

  /** For what a matrix of such batches needs. */
  static void begin(Batch q, Batch p) {
    boolean full = q instanceof FullBatch || p instanceof FullBatch;
    begin(full, q.isDouble() || p.isDouble(), q.dimension());
  }

  private static void begin(boolean full, boolean wide, int dimension) {
    if (full) {
      begin(Part.FULL, dimension);
    } else if (dimension <= SmallKernel.MOST_DIMENSIONS) {
      begin(Part.SMALL, dimension);
    } else {
      if (!wide) {
        begin(Part.FLOAT, dimension);
        begin(Part.REFINEMENT, dimension);
      }
      begin(Part.DOUBLE, dimension);
    }
  }

  /** For a part alone. */
  static void begin(Part part, int dimension) {
    if (!Readiness.isCompiled(part) && ASKED.add(part)) {
      start(part, dimension);
    }
  }

  private static synchronized void start(Part part, int dimension) {
    WANTED.put(part, dimension);
    if (thread == null) {
      thread = new Readiness.Trial(ChangeOver::run, THREAD);
      try {
        thread.start();
      } catch (OutOfMemoryError e) { // no more threads
        giveUp();
      }
    }
  }

  /** Waits for all that calls on such batches need. */
  static void await(Batch q, Batch p) {
    begin(q, p);
    begin(Part.SCANS, p.dimension());
    await();
  }

  /** The same for diagonal batches of float. */
  static void await(int dimension) {
    begin(false, false, dimension);
    begin(Part.SCANS, dimension);
    await();
  }

  /** Waits for all parts. */
  static void awaitAll(int dimension) {
    for (Part part : Part.values()) {
      begin(part, dimension);
    }
    await();
  }

  private static void await() {
    AWAITED.countDown();
    Thread running = running();
    if (running != null) {
      try {
        running.join();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw Checkpoint.interrupted();
      }
    }
  }

  private static synchronized @Nullable Thread running() {
    return thread;
  }

  private static void run() {
    try {
      AWAITED.await(DELAY_MILLIS, TimeUnit.MILLISECONDS);
      boolean compiled = Platform.isCompiled();
      for (Map.Entry<Part, Integer> next = next(); next != null; next = next()) {
        if (compiled) {
          new Rehearsal(next.getValue()).of(next.getKey());
          Readiness.setCompiled(next.getKey());
        }
      }
    } catch (InterruptedException | RuntimeException | Error e) {
      giveUp();
    }
  }

  private static synchronized Map.@Nullable Entry<Part, Integer> next() {
    for (Part part : WANTED.keySet()) {
      return Map.entry(part, WANTED.remove(part));
    }
    thread = null;
    return null;
  }

  /** Has all use vectors: what is wrong with them their callers are to see. */
  private static synchronized void giveUp() {
    for (Part part : Part.values()) {
      Readiness.setCompiled(part);
    }
    WANTED.clear();
    thread = null;
  }
}
