package dev.kullback.internal.engine;

import dev.kullback.internal.kernel.Readiness.KernelGroup;
import dev.kullback.internal.vector.VectorWidth;
import dev.kullback.internal.work.Checkpoint;
import java.util.Collections;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Has C2 compile the vector kernels, and calls change over to them from the cold ones when it has: a daemon thread, begun by the
 * first call that would use vectors, tries them out by a {@link WarmUpTrial}, group by group and only the groups that calls have asked for.
 * If the VM does not compile vectors at all, cold kernels stay until a later call has it tried again. The thread ends with the last of its {@link
 * User}s.
 */
public final class BackgroundWarmUp {
  /**
   * Longest rest before the first trial. It lasts until the call that asked for it ends, which beside a trial took 300 ms instead of 200
   * (Zen 4, two processors); where calls have threads for all processors, all of this.
   */
  private static final long REST_MILLIS = 500;

  /** Threads that are ended with their last user. A program that makes an engine for each call would never have vectors otherwise. */
  private static final int MOST_ABANDONED = 3;

  /** Longest wait for the thread to end: a trial's round takes some 100 ms in the interpreter. */
  private static final long MOST_WAIT_MILLIS = 2000;

  /** Groups that wait to be tried, with the dimension of the batches that want them. */
  private static final TreeMap<KernelGroup, Integer> WANTED = new TreeMap<>();

  /** Group that is being tried. */
  private static @Nullable KernelGroup tried;

  private static @Nullable Thread thread;

  /** Whether the call that started the thread is still to be left alone. */
  private static volatile boolean isResting;

  /** Whether vectors were found not to be compiled, at least once. Only the thread uses it. */
  private static boolean isRefused;

  /** Most threads of an engine that was built. */
  private static int threads = 1;

  /** Number of callers that wait. */
  private static int waiting;

  /** Number of open users. */
  private static int users;

  /** Whether the last user was closed while there was a thread, which is to end. */
  private static volatile boolean isAbandoned;

  /** Number of times that a thread was ended so. */
  private static int abandoned;

  private BackgroundWarmUp() {}

  /** Expects calls on {@code callers} threads. */
  static synchronized void expect(int callers) {
    threads = Math.max(threads, callers);
  }

  /** Who has calls that may start the thread, an engine or an index: it is counted until it is closed. */
  public static final class User implements AutoCloseable {
    private boolean isOpen = true;

    private User() {}

    /** Ends the thread if this is the last user, and waits for that: a container reports threads that are left when an application stops. */
    @Override
    public void close() {
      Thread last = leave(this);
      if (last == null) {
        return;
      }
      boolean isInterrupted = Thread.interrupted();
      try {
        if (ends(last)) {
          last.join(MOST_WAIT_MILLIS);
        }
      } catch (InterruptedException e) {
        isInterrupted = true;
      }
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Makes a user of the thread. */
  public static synchronized User join() {
    users++;
    isAbandoned = false;
    BackgroundWarmUp.class.notifyAll();
    return new User();
  }

  /** Returns the thread that a user was the last to use, which ends now, or null. */
  private static synchronized @Nullable Thread leave(User user) {
    users -= user.isOpen ? 1 : 0;
    boolean isLast = user.isOpen && users == 0;
    user.isOpen = false;
    if (!isLast || thread == null || waiting > 0 || abandoned == MOST_ABANDONED) {
      return null;
    }
    abandoned++;
    isAbandoned = true;
    WANTED.clear();
    BackgroundWarmUp.class.notifyAll();
    return thread;
  }

  /** Waits for a thread to have no more to do; returns whether it has not, unless it has a user again or takes too long. */
  private static synchronized boolean ends(Thread last) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(MOST_WAIT_MILLIS);
    for (long left = MOST_WAIT_MILLIS; thread == last && isAbandoned && left > 0; ) {
      BackgroundWarmUp.class.wait(left);
      left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
    }
    return thread != last;
  }

  /** Whether a trial is to end at once. */
  static boolean isAbandoned() {
    return isAbandoned;
  }

  /** Has a group tried. */
  static void begin(KernelGroup group, int dimension) {
    if (!group.isCompiled() && VectorWidth.isWorthTrying()) {
      start(group, dimension);
    }
  }

  private static synchronized void start(KernelGroup group, int dimension) {
    if (Thread.currentThread() == thread // calls of a trial ask for nothing
        || group.isCompiled() // since it was asked without the lock
        || group == tried
        || WANTED.putIfAbsent(group, dimension) != null) {
      return;
    }
    if (thread == null) {
      isResting = true;
      isAbandoned = false;
      try {
        thread =
            Thread.ofPlatform()
                .name("kullback-change-over")
                .daemon()
                .inheritInheritableThreadLocals(false)
                .unstarted(BackgroundWarmUp::run);
        thread.setContextClassLoader(null);
        thread.start();
      } catch (OutOfMemoryError e) { // no more threads
        thread = null;
        WANTED.remove(group);
        group.setCompiled(true);
      }
    }
  }

  static void callEnded() {
    if (isResting) {
      synchronized (BackgroundWarmUp.class) {
        isResting = false;
        BackgroundWarmUp.class.notifyAll();
      }
    }
  }

  /** Waits for groups, and for what reductions need. */
  static void await(EnumSet<KernelGroup> groups, int dimension) {
    groups.add(KernelGroup.SCANS);
    groups.forEach(group -> begin(group, dimension));
    awaitEnd(groups);
  }

  private static synchronized void awaitEnd(Set<KernelGroup> groups) {
    waiting++;
    BackgroundWarmUp.class.notifyAll();
    try {
      while (!Collections.disjoint(groups, WANTED.keySet()) || groups.contains(tried)) {
        BackgroundWarmUp.class.wait();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw Checkpoint.interrupted();
    } finally {
      waiting--;
    }
  }

  private static void run() {
    try {
      rest();
      tryAll();
    } finally {
      died();
    }
  }

  /** Lets others start a thread again if this one could not end by {@link #next}, as memory was short. */
  private static synchronized void died() {
    if (thread == Thread.currentThread()) {
      thread = null;
      tried = null;
      WANTED.clear();
      BackgroundWarmUp.class.notifyAll();
    }
  }

  private static void tryAll() {
    for (Map.Entry<KernelGroup, Integer> next = next(); next != null; next = next()) {
      KernelGroup group = next.getKey();
      try {
        // The first trial does not wait for the probe, which takes 0.4 s beside a busy thread; yet
        // the probe has the last word.
        boolean isFirst = group == KernelGroup.FLOAT && !isRefused;
        if ((isFirst || Platform.isCompiled()) && tryOut(group, next.getValue())) {
          group.setCompiled(true);
        }
        if (!isAbandoned && (!Platform.isCompiled() || !group.isCompiled())) {
          group.setCompiled(false);
          refuse();
        }
      } catch (VirtualMachineError e) {
        // memory is short: the next call asks again
      } catch (RuntimeException | Error e) {
        group.setCompiled(true); // callers are to see what is wrong with vectors
      }
    }
  }

  private static boolean tryOut(KernelGroup group, int dimension) {
    return KernelTable.tryOut(group, new WarmUpTrial(dimension));
  }

  /** Forgets what was asked for, so that a call after a while asks again. */
  private static synchronized void refuse() {
    isRefused = true;
    WANTED.clear();
  }

  /** Lets the first call run by itself, unless somebody waits. */
  private static synchronized void rest() {
    boolean isCrowded = threads >= Runtime.getRuntime().availableProcessors();
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(REST_MILLIS);
    try {
      for (long left = REST_MILLIS;
          waiting == 0 && !isAbandoned && (isResting || isCrowded) && left > 0; ) {
        BackgroundWarmUp.class.wait(left);
        left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
      }
    } catch (InterruptedException e) { // by nobody who knows it
      Thread.currentThread().interrupt();
    }
    isResting = false;
  }

  /** Takes the next group to try; null ends the thread. */
  private static synchronized Map.@Nullable Entry<KernelGroup, Integer> next() {
    Map.Entry<KernelGroup, Integer> next = WANTED.pollFirstEntry();
    tried = next != null ? next.getKey() : null;
    thread = next != null ? thread : null;
    BackgroundWarmUp.class.notifyAll();
    return next;
  }
}
