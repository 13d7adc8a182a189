package dev.kullback.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Predicate;
import java.util.stream.Stream;

/**
 * Interrupts work at random times, and tells by the stack of its exception where that was met. To wait until the work is seen at a place, and interrupt
 * it then, misses short places: a thread's stack is read where the JVM stops it, on a busy machine after the place.
 */
public final class Interruption {
  private static final int MOST = 500;

  private static final String CHECKPOINTS = "dev.kullback.internal.work.";

  private Interruption() {}

  /**
   * Returns whether an interrupt of the calling thread was met at a place.
   *
   * @param place tells of the frames outside checkpoints, the innermost first
   */
  public static boolean isMet(Runnable work, Predicate<List<StackTraceElement>> place) {
    Random random = new Random(1);
    long begin = System.nanoTime();
    work.run();
    long longest = System.nanoTime() - begin;
    for (int attempt = 0; attempt < MOST; attempt++) {
      long start = System.nanoTime();
      List<StackTraceElement> met = met((long) (random.nextDouble() * longest), work);
      if (met.isEmpty()) { // it has ended, and is compiled by now
        longest = Math.min(longest, System.nanoTime() - start);
      } else if (place.test(met)) {
        return true;
      }
    }
    return false;
  }

  /** Interrupts work after some time; returns the stack of its exception, or nothing if it had ended before. */
  private static List<StackTraceElement> met(long nanos, Runnable work) {
    Thread caller = Thread.currentThread();
    AtomicBoolean isOver = new AtomicBoolean();
    Thread other =
        Thread.ofPlatform()
            .daemon()
            .start(() -> {
              LockSupport.parkNanos(nanos);
              if (!isOver.get()) {
                caller.interrupt();
              }
            });
    try {
      work.run();
      return List.of();
    } catch (CancellationException e) {
      assertThat(caller.isInterrupted()).isTrue();
      return Stream.of(e.getStackTrace())
          .dropWhile(frame -> frame.getClassName().startsWith(CHECKPOINTS))
          .toList();
    } finally {
      isOver.set(true);
      LockSupport.unpark(other);
      while (other.isAlive()) { // a join would end by its interrupt
        Thread.onSpinWait();
      }
      Thread.interrupted();
    }
  }
}
