package dev.kullback.internal.work;

import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * One call's work in numbered tasks, shared between its caller and helpers. Any thread may do any task; the first failure ends the
 * call, and is the one thrown.
 */
public final class Job<W extends Worker> implements Runnable {
  /** Does task {@code index} of a call. */
  public interface Task<W> {
    void run(long index, W worker);
  }

  private final long tasks;
  private final AtomicLong next = new AtomicLong();

  // null at the call's end, since an executor may queue this for longer; the lead holds operands
  private @Nullable Crew<W> crew;
  private @Nullable Task<W> task;
  private @Nullable W lead;

  private volatile @Nullable Throwable failure;
  private int active;
  private boolean finished;

  Job(Crew<W> crew, long tasks, W lead, Task<W> task) {
    this.crew = crew;
    this.tasks = tasks;
    this.lead = lead;
    this.task = task;
  }

  /** Does all tasks on this thread. */
  public static <W extends Worker> void alone(long tasks, W lead, Task<W> task) {
    for (long k = 0; k < tasks; k++) {
      task.run(k, lead);
    }
  }

  /**
   * Works with whatever helpers begin in time, and returns when all that began have ended.
   *
   * @param threads as many at most, the caller's included
   */
  void run(Executor helpers, int threads) {
    // Here, since helpers cannot rely on seeing it: an executor's lock clears the caller's
    // interruption while it waits.
    Objects.requireNonNull(lead).checkInterrupt();
    try {
      for (long k = Math.min(threads, tasks); k > 1; k--) {
        helpers.execute(this);
      }
    } catch (RejectedExecutionException e) {
      // fewer helpers; the caller does what they would have done
    } catch (Throwable e) { // an executor may throw anything
      fail(e); // thrown on when the helpers that did begin have ended
    }
    work(Objects.requireNonNull(task), Objects.requireNonNull(lead));
    awaitHelpers();
    Throwable failed = failure;
    release();
    if (failed != null) {
      throw Job.<RuntimeException>any(failed);
    }
  }

  @Override
  public void run() {
    Crew<W> workers;
    Task<W> shared;
    W caller;
    synchronized (this) {
      if (finished) {
        return;
      }
      active++;
      workers = Objects.requireNonNull(crew);
      shared = Objects.requireNonNull(task);
      caller = Objects.requireNonNull(lead);
    }
    try {
      W own = workers.take();
      try {
        own.help(caller);
        ScopedValue.where(Checkpoint.CALLER, own.caller()).run(() -> work(shared, own));
      } finally {
        caller.addCounts(own);
        workers.giveBack(own);
      }
    } catch (Throwable e) { // consumers of other languages throw checked exceptions, too
      fail(e);
    } finally {
      synchronized (this) {
        active--;
        notifyAll();
      }
    }
  }

  private void work(Task<W> task, W worker) {
    try {
      for (long k = next.getAndIncrement();
          k < tasks && failure == null;
          k = next.getAndIncrement()) {
        task.run(k, worker);
      }
    } catch (Throwable e) {
      fail(e);
    }
  }

  private synchronized void fail(Throwable e) {
    if (failure == null) {
      failure = e;
    }
    Objects.requireNonNull(lead).cancel();
  }

  private synchronized void awaitHelpers() {
    finished = true;
    boolean interrupted = false;
    while (active > 0) {
      try {
        wait();
      } catch (InterruptedException e) {
        interrupted = true;
        fail(Checkpoint.interrupted());
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** Holds nothing of the call any more. */
  private synchronized void release() {
    crew = null;
    task = null;
    lead = null;
    failure = null;
  }

  /** Throws it as it is, checked or not. */
  @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
  private static <E extends Throwable> E any(Throwable e) throws E {
    throw (E) e;
  }
}
