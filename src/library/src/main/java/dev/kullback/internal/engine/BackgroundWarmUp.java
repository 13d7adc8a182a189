package dev.kullback.internal.engine;

import static java.util.stream.Collectors.joining;

import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.formula.Kl;
import dev.kullback.internal.kernel.Readiness.KernelGroup;
import dev.kullback.internal.observe.ChangeOverEvent;
import dev.kullback.internal.observe.Events;
import dev.kullback.internal.vector.VectorWidth;
import dev.kullback.internal.work.Checkpoint;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
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
   * (Zen 4, two processors).
   */
  private static final long REST_MILLIS = 500;

  /**
   * Rest where calls have threads for all processors, all of it, as C2 takes about as long from them. The command line's 4000 x 4000 x 256 takes less
   * and never needs the trial: 1.18 s instead of 1.44, and 2.1 s of processor time instead of 2.7 (Zen 4, two processors).
   */
  private static final long BUSY_REST_MILLIS = 1000;

  /**
   * Rest after that call unless another comes, as a program may close its engine then: ending a trial that had just begun made one matrix and
   * the close after it take 500 ms instead of 245 (Zen 4, two processors).
   */
  private static final long SINGLE_CALL_MILLIS = 50;

  /** Threads that are ended with their last user. A program that makes an engine for each call would never have vectors otherwise. */
  private static final int MOST_ABANDONED = 3;

  /** Longest wait for the thread to end: a trial's round takes some 100 ms in the interpreter. */
  private static final long MOST_WAIT_MILLIS = 2000;

  /** Groups that wait to be tried. */
  private static final TreeMap<KernelGroup, Wanted> WANTED = new TreeMap<>();

  /** Groups whose vectors were found not to be compiled, and are not being tried again. */
  private static final EnumSet<KernelGroup> REFUSED = EnumSet.noneOf(KernelGroup.class);

  /** Group that is being tried. */
  private static @Nullable KernelGroup tried;

  private static @Nullable Thread thread;

  /** The {@link System#nanoTime} at which the thread was started. */
  private static long begun;

  /** Whether the call that started the thread is still to be left alone. */
  private static volatile boolean isResting;

  /** Whether that call has ended. */
  private static boolean hasEnded;

  /** The {@link System#nanoTime} at which the rest ends. */
  private static long restEnd;

  /** Whether vectors were found not to be compiled, at least once. Only the thread uses it. */
  private static boolean isRefused;

  /** Most threads of a user's calls. */
  private static int threads = 1;

  /** Number of callers that wait. */
  private static int waiting;

  /** Number of open users. */
  private static int users;

  /** Users whose {@link User#ready} is to be completed. */
  private static final List<User> EXPECTANT = new ArrayList<>();

  /** Groups that the thread has had compiled, for the line in the log. */
  private static final EnumSet<KernelGroup> TAKEN_OVER = EnumSet.noneOf(KernelGroup.class);

  /** Whether the last user was closed while there was a thread, which is to end. */
  private static volatile boolean isAbandoned;

  /** Number of times that a thread was ended so. */
  private static int abandoned;

  /** Who asks for what calls of no engine use: it is not counted, and never closed. */
  private static final User ALONE = new User(Kl.FORWARD);

  private BackgroundWarmUp() {}

  /** What a call wants a group for, the first that asks. */
  private record Wanted(Formula formula, int dimension) {}

  /** Who has calls that may start the thread, an engine or an index: it is counted until it is closed. */
  public static final class User implements AutoCloseable {
    private final Formula formula;

    private volatile boolean isOpen = true;

    /** Groups that its calls have asked for; replaced, not changed, and read without the lock by each call. */
    @SuppressWarnings("ImmutableMemberCollection")
    private volatile EnumSet<KernelGroup> asked = EnumSet.noneOf(KernelGroup.class);

    /** Number of its warm-ups under way, which end after vectors have taken over. */
    private int warmUps;

    private volatile boolean isReady;

    private @Nullable CompletableFuture<Void> ready;

    private User(Formula formula) {
      this.formula = formula;
    }

    /** Has groups tried, all that a call needs at once. */
    void begin(int dimension, KernelGroup[] groups) {
      for (KernelGroup group : groups) {
        if (!group.isCompiled() || !hasAsked(group)) {
          // asked outside the lock, as it may load classes
          ask(this, groups, dimension, VectorWidth.isWorthTrying());
          return;
        }
      }
    }

    /** Whether its calls have asked for a group. */
    boolean hasAsked(KernelGroup group) {
      return asked.contains(group);
    }

    /** Waits so long at most for groups, and for what reductions need; without a limit, for {@link Long#MAX_VALUE}. */
    void await(Set<KernelGroup> groups, int dimension, long nanos) {
      EnumSet<KernelGroup> all = EnumSet.of(KernelGroup.SCANS);
      all.addAll(groups);
      begin(dimension, all.toArray(KernelGroup[]::new));
      awaitEnd(all, nanos);
    }

    /** Waits for groups, and runs a warm-up, before whose end the user is not ready unless it was. */
    public boolean warmUp(Set<KernelGroup> groups, int dimension, BooleanSupplier run) {
      warmUps(this, 1);
      try {
        await(groups, dimension, Long.MAX_VALUE);
        return run.getAsBoolean();
      } finally {
        warmUps(this, -1);
        settle();
      }
    }

    /** Whether the thread has tried out what calls have asked for, once they have; it stays so. */
    public boolean isReady() {
      if (!isReady && !asked.isEmpty()) {
        isReady = isSettled(this);
      }
      return isReady && isOpen;
    }

    /** Returns a stage that is completed when {@link #isReady}; has groups tried if no call has asked for any. */
    public CompletionStage<Void> ready(Set<KernelGroup> groups, int dimension) {
      CompletableFuture<Void> stage = expect(this);
      if (asked.isEmpty()) {
        begin(dimension, groups.toArray(KernelGroup[]::new));
      }
      settle();
      return stage.minimalCompletionStage();
    }

    /** Ends the thread if this is the last user, and waits for that: a container reports threads that are left when an application stops. */
    @Override
    public void close() {
      Thread last = leave(this);
      if (removeExpectant(this)) { // after that none is added
        CancellationException closed =
            new CancellationException("closed before vectors had taken over");
        complete(this, stage -> stage.completeExceptionally(closed));
      }
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

  /** Notes what a user's call needs and has it tried, in one step: nobody sees a group that is asked for and not waiting to be tried. */
  private static synchronized void ask(
      User user, KernelGroup[] groups, int dimension, boolean isWorthTrying) {
    if (!user.isOpen || Thread.currentThread() == thread) { // calls of a trial ask for nothing
      return;
    }
    for (KernelGroup group : groups) {
      if (group.isCompiled() || group == tried || WANTED.containsKey(group)) {
        continue;
      }
      if (isWorthTrying) {
        REFUSED.remove(group);
        WANTED.put(group, new Wanted(user.formula, dimension));
      } else {
        REFUSED.add(group);
      }
    }
    for (KernelGroup group : groups) {
      if (!user.hasAsked(
          group)) { // most calls until vectors are compiled have, and are to allocate nothing
        EnumSet<KernelGroup> asked = EnumSet.copyOf(user.asked);
        asked.add(group);
        user.asked = asked;
      }
    }
    if (thread == null && !WANTED.isEmpty()) {
      start();
    } else if (isResting && hasEnded) { // there is a second call
      endRest(0);
    }
  }

  private static synchronized void warmUps(User user, int more) {
    user.warmUps += more;
  }

  private static synchronized boolean isSettled(User user) {
    return user.warmUps == 0
        && user.asked.stream().allMatch(group -> group.isCompiled() || REFUSED.contains(group));
  }

  private static synchronized CompletableFuture<Void> expect(User user) {
    if (user.ready == null) {
      user.ready = new CompletableFuture<>();
      if (user.isOpen) {
        EXPECTANT.add(user);
      } else {
        user.ready.completeExceptionally(new CancellationException("closed"));
      }
    }
    return user.ready;
  }

  private static synchronized boolean removeExpectant(User user) {
    return EXPECTANT.remove(user);
  }

  /** Completes a user's stage on a thread of its own, so that what depends on it keeps nobody waiting here, nor waits for others. */
  private static void complete(User user, Consumer<CompletableFuture<Void>> how) {
    CompletableFuture<Void> stage = Objects.requireNonNull(user.ready);
    Thread.ofVirtual().name("kullback-ready").start(() -> how.accept(stage));
  }

  /** Tells users that are ready. */
  private static synchronized void settle() {
    EXPECTANT.removeIf(user -> {
      boolean isReady = user.isReady();
      if (isReady) {
        complete(user, stage -> stage.complete(null));
      }
      return isReady;
    });
  }

  /**
   * Has a group tried for calls of no engine: it is nobody's who is closed. The thread ends when it has nothing more to try, or with the last
   * user, and then a later call asks again.
   */
  static void begin(int dimension, KernelGroup[] groups) {
    ALONE.begin(dimension, groups);
  }

  /** Makes a user of the thread, whose calls compute a divergence with {@code callers} threads. */
  public static synchronized User join(Formula formula, int callers) {
    threads = Math.max(threads, callers);
    users++;
    isAbandoned = false;
    BackgroundWarmUp.class.notifyAll();
    return new User(formula);
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

  private static synchronized void start() {
    isResting = true;
    hasEnded = false;
    begun = System.nanoTime();
    restEnd = begun + TimeUnit.MILLISECONDS.toNanos(isBusy() ? BUSY_REST_MILLIS : REST_MILLIS);
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
      WANTED.keySet().forEach(group -> group.setCompiled(true));
      WANTED.clear();
    }
  }

  static void callEnded() {
    if (isResting) {
      synchronized (BackgroundWarmUp.class) {
        if (!hasEnded) {
          hasEnded = true;
          endRest(SINGLE_CALL_MILLIS);
        }
      }
    }
  }

  /** Milliseconds until the rest ends. */
  private static long leftToRest() {
    return TimeUnit.NANOSECONDS.toMillis(restEnd - System.nanoTime());
  }

  /** Whether calls have threads for all processors. */
  private static boolean isBusy() {
    return threads >= Runtime.getRuntime().availableProcessors();
  }

  /** Has the rest end so soon at most, unless calls have threads for all processors. */
  private static void endRest(long millis) {
    if (!isBusy()) {
      restEnd = Math.min(restEnd, System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis));
      BackgroundWarmUp.class.notifyAll();
    }
  }

  private static synchronized void awaitEnd(Set<KernelGroup> groups, long nanos) {
    waiting++;
    BackgroundWarmUp.class.notifyAll();
    long start = System.nanoTime();
    try {
      while (!Collections.disjoint(groups, WANTED.keySet()) || groups.contains(tried)) {
        long millis = 0; // for ever
        if (nanos < Long.MAX_VALUE) {
          millis = TimeUnit.NANOSECONDS.toMillis(nanos - (System.nanoTime() - start));
          if (millis <= 0) {
            break;
          }
        }
        BackgroundWarmUp.class.wait(millis);
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
      ended();
      tried = null;
      WANTED.clear();
      BackgroundWarmUp.class.notifyAll();
      settle();
    }
  }

  /** Forgets the thread, and that it was to end: later trials are others. */
  private static void ended() {
    thread = null;
    isAbandoned = false;
  }

  private static void tryAll() {
    for (Map.Entry<KernelGroup, Wanted> next = next(); next != null; next = next()) {
      KernelGroup group = next.getKey();
      Wanted wanted = next.getValue();
      WarmUpTrial trial = new WarmUpTrial(wanted.formula(), wanted.dimension());
      try {
        // The first trial does not wait for the probe, which takes 0.4 s beside a busy thread; yet
        // the probe has the last word.
        boolean isFirst = group == KernelGroup.FLOAT && !isRefused;
        if ((isFirst || Platform.isCompiled()) && tryOut(group, trial)) {
          group.setCompiled(true);
          logIfLast(group);
        }
        if (trial.isAbandoned()) {
          tryAgain(group, wanted);
        } else if (!isAbandoned && (!Platform.isCompiled() || !group.isCompiled())) {
          group.setCompiled(false);
          refuse(group);
        }
      } catch (VirtualMachineError e) {
        // memory is short: the next call asks again
      } catch (RuntimeException | Error e) {
        group.setCompiled(true); // callers are to see what is wrong with vectors
      }
    }
  }

  /** Logs that vectors have taken over, when no group waits any more. */
  private static void logIfLast(KernelGroup group) {
    String groups;
    double seconds;
    synchronized (BackgroundWarmUp.class) {
      TAKEN_OVER.add(group);
      if (!WANTED.isEmpty()) {
        return;
      }
      groups =
          TAKEN_OVER.stream().map(g -> g.name().toLowerCase(Locale.ROOT)).collect(joining(", "));
      seconds = (System.nanoTime() - begun) * 1e-9;
      TAKEN_OVER.clear();
    }
    System.getLogger("dev.kullback")
        .log(
            System.Logger.Level.INFO,
            String.format(
                Locale.ROOT,
                "Kullback computes with compiled vectors now, %.1f s after the first call that could use them (%s)",
                seconds,
                groups));
  }

  private static boolean tryOut(KernelGroup group, WarmUpTrial trial) {
    ChangeOverEvent event = Events.changeOver();
    boolean isCompiled = KernelTable.tryOut(group, trial);
    if (event != null) {
      event.end(group.name().toLowerCase(Locale.ROOT), isCompiled);
    }
    return isCompiled;
  }

  /** Has a group tried again whose trial was abandoned, if there is a user again: its calls took the group for being tried. */
  private static synchronized void tryAgain(KernelGroup group, Wanted wanted) {
    if (users > 0) {
      WANTED.putIfAbsent(group, wanted);
    }
  }

  /** Forgets what was asked for, so that a call after a while asks again. */
  private static synchronized void refuse(KernelGroup group) {
    isRefused = true;
    REFUSED.add(group);
    REFUSED.addAll(WANTED.keySet());
    WANTED.clear();
  }

  /** Lets the first call run by itself, unless somebody waits. */
  private static synchronized void rest() {
    try {
      for (long left = leftToRest();
          waiting == 0 && !isAbandoned && left > 0;
          left = leftToRest()) {
        BackgroundWarmUp.class.wait(left);
      }
    } catch (InterruptedException e) { // by nobody who knows it
      Thread.currentThread().interrupt();
    }
    isResting = false;
  }

  /** Takes the next group to try; null ends the thread. */
  private static synchronized Map.@Nullable Entry<KernelGroup, Wanted> next() {
    Map.Entry<KernelGroup, Wanted> next = WANTED.pollFirstEntry();
    tried = next != null ? next.getKey() : null;
    if (next == null) {
      ended();
    }
    BackgroundWarmUp.class.notifyAll();
    settle();
    return next;
  }
}
