package dev.kullback.internal.work;

import java.util.concurrent.CancellationException;
import java.util.concurrent.locks.LockSupport;

/**
 * Ends long work if its thread was interrupted, and lets other virtual threads have the carrier, as nothing preempts one. Used by one
 * thread. Work is counted in terms of the compiled vector kernels, of which each dimension of an entry is one: 0.06 to 0.08 ns (Zen 3 and
 * 5). Other compiled loops count their elements, too, if these take 1 ns or so.
 */
public final class Checkpoint {
  /** The thread that made the call, on a helper of it: an interruption of the helper is none of the call's business. */
  static final ScopedValue<Thread> CALLER = ScopedValue.newInstance();

  /** Terms between two looks at the clock: 20 µs, longer before kernels are compiled. */
  public static final long LOOK = 1 << 18;

  /** Terms that are worth a helper, which begins in 10 µs: 0.3 ms, or 30 µs of plain code in lanes (Zen 3, AVX2). */
  private static final long TASK = 1 << 22;

  /** What beginning and ending a call counts as. */
  static final long CALL = LOOK / 16;

  private static final long LOOK_NANOS = 20_000;
  private static final long NANOS = 5_000_000;

  private long passed;

  /** Work since the last pause, whose time is not known before a call's first look. */
  private long busy;

  /** Time of the last look, if this call had one. */
  private long last;

  private boolean begun;

  /** Counts terms of plain code. */
  public static long ofPlain(long terms) {
    return 64 * terms;
  }

  /** Counts a triangular solve or a factorization: a third of D³ multiplications, and D² of all else. */
  public static long ofSolve(int dimension) {
    long squares = (long) dimension * dimension;
    return 8L * dimension * squares + ofPlain(squares);
  }

  /** Returns how many rows of {@code terms} terms each are worth a helper, a multiple of {@code panel}. */
  public static int taskRows(long terms, int panel) {
    return (int) Math.ceilDiv(TASK, panel * terms) * panel;
  }

  /**
   * Begins another call, perhaps of another thread. Work of earlier calls still counts: threads that search in a loop, whose calls are each too
   * short for a look, would otherwise keep their carriers for ever.
   */
  void reset() {
    begun = false;
  }

  /** Tells whether it is time for a look, {@code terms} after the last call. */
  boolean isDue(long terms) {
    passed += terms;
    if (passed < LOOK) {
      return false;
    }
    passed = 0;
    return isDue();
  }

  private boolean isDue() {
    long now = System.nanoTime();
    busy += begun ? now - last : LOOK_NANOS;
    last = now;
    begun = true;
    if (busy < NANOS) {
      return false;
    }
    busy = 0;
    return true;
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
   * Parks a virtual thread for 1 ns, so that another gets its carrier: after {@code Thread.yield} the scheduler resumes the same one. Beside
   * busy threads, one a carrier, which yielded each millisecond, a trivial thread waited for 4 s, and with this 1.4 to 7 ms at the median
   * (JDK 25.0.3).
   */
  static void yieldCarrier() {
    if (Thread.currentThread().isVirtual()) {
      LockSupport.parkNanos(1);
    }
  }
}
