package dev.kullback.internal.work;

import java.util.concurrent.CancellationException;
import java.util.concurrent.locks.LockSupport;

/**
 * Ends long work if its thread was interrupted, and lets other virtual threads have the carrier, as nothing preempts one. Used by one
 * thread.
 */
public final class Checkpoint {
  /** The thread that made the call, on a helper of it: an interruption of the helper is none of the call's business. */
  static final ScopedValue<Thread> CALLER = ScopedValue.newInstance();

  /** Weight of a term of plain code, in terms of the vector kernels. */
  public static final int PLAIN = 64;

  /** Terms between two looks at the clock: 20 µs at the vector kernels' 0.06 to 0.08 ns (Zen 3 and 5), longer before they are compiled. */
  private static final long TERMS = 1 << 18;

  private static final long NANOS = 5_000_000;

  private long passed;

  /** Time of the last look, if there was one. */
  private long last;

  private boolean begun;

  /** Weight of a triangular solve or a factorization: a third of D³ multiplications, and D² of all else. */
  public static long ofSolve(int dimension) {
    return (long) dimension * dimension * (8L * dimension + PLAIN);
  }

  /** Begins anew, for another call, perhaps of another thread. */
  void reset() {
    passed = 0;
    begun = false;
  }

  /** Tells whether it is time for a look, {@code terms} after the last call. */
  boolean isDue(long terms) {
    passed += terms;
    if (passed < TERMS) {
      return false;
    }
    passed = 0;
    return isDue();
  }

  private boolean isDue() {
    long now = System.nanoTime();
    boolean due = begun && now - last >= NANOS;
    if (due || !begun) {
      last = now;
      begun = true;
    }
    return due;
  }

  /** Looks, in work that is no part of a call, or does not know of which. */
  public void pass(long terms) {
    if (isDue(terms)) {
      checkInterrupt(false);
      yieldCarrier();
    }
  }

  /** Looks, but does not end the work of interrupted threads. */
  public void passUninterrupted(long terms) {
    if (isDue(terms)) {
      boolean interrupted = Thread.interrupted(); // an interrupted thread would not wait
      yieldCarrier();
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /**
   * Throws if the thread that made the call was interrupted.
   *
   * @param self whether this thread was interrupted, and its status has been cleared since
   */
  public static void checkInterrupt(boolean self) {
    Thread caller = CALLER.orElse(Thread.currentThread());
    if (caller.isInterrupted() || (self && caller == Thread.currentThread())) {
      throw interrupted();
    }
  }

  /** Throws if the thread was interrupted. */
  public static void checkInterrupt(Thread caller) {
    if (caller.isInterrupted()) {
      throw interrupted();
    }
  }

  /** The exception that ends a call. */
  public static CancellationException interrupted() {
    return new CancellationException("interrupted; what was computed is incomplete");
  }

  /**
   * Waits, which ends at once: after {@code Thread.yield} the scheduler takes up the same thread again. Beside one busy thread a carrier,
   * which yielded each millisecond, a trivial one waited for all of 4 s, and with this 1.4 to 7 ms at the median (JDK 25.0.3).
   */
  static void yieldCarrier() {
    if (Thread.currentThread().isVirtual()) {
      LockSupport.parkNanos(1);
    }
  }
}
