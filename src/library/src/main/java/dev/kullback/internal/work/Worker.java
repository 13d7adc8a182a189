package dev.kullback.internal.work;

import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/** A thread at work on a call. Its work ends when the caller was interrupted, its time is over, or another thread of the call failed. */
public class Worker {
  /** Works on rows [from, to). */
  public interface Range {
    void work(int from, int to);
  }

  private final Checkpoint checkpoint = new Checkpoint();

  /** Worker of the thread that made the call, whose interruption ends it. */
  private Worker lead = this;

  private @Nullable Thread caller;

  /** Limits the call that this one leads; null for no limit. */
  private @Nullable TimeLimit timeout;

  /** The {@link System#nanoTime} at which the timeout has passed. */
  private long end;

  /** The {@link System#nanoTime} at which the call that this one leads began. */
  private long started;

  /** The timeout that has ended the call that this one leads, on whichever thread; null for none. */
  private @Nullable TimeLimit exceeded;

  /** Whether the call that this one leads has failed. */
  private volatile boolean ended;

  /** The {@link System#nanoTime} at which {@link Stopped} ends what this thread does, if it is to be stopped. */
  private boolean isToStop;

  private long stop;

  /** Entries of the call that this thread computed again, as their error bounds exceeded the contract: in double, and by later forms. */
  private long inDouble;

  private long afterDouble;

  /** The same of its helpers that have ended, which add theirs under this one's lock. */
  private long helpersInDouble;

  private long helpersAfterDouble;

  /** Ends a thread's part at its time; whoever set that catches it. */
  public static final class Stopped extends RuntimeException {
    private static final long serialVersionUID = 1;

    Stopped() {
      super("the time of this part is up", null, false, false);
    }
  }

  /** Has this thread end what it does by {@link Stopped} at a time, until {@link #goOn}. */
  public final void stopAt(long end) {
    isToStop = true;
    stop = end;
  }

  public final void goOn() {
    isToStop = false;
  }

  public final void startCall() {
    caller = Thread.currentThread();
    started = System.nanoTime();
    if (checkpoint.isDue(Checkpoint.CALL)) {
      Checkpoint.yieldCarrier();
    }
  }

  /** Ends the call that this one leads at a time, if the timeout is not null. */
  public final void limit(@Nullable TimeLimit timeout, long end) {
    this.timeout = timeout;
    this.end = end;
  }

  /** Returns the {@link System#nanoTime} at which the call that this one leads began. */
  public final long started() {
    return started;
  }

  /** Returns the timeout that has ended the call that this one leads; null for none. */
  public final @Nullable TimeLimit exceeded() {
    return exceeded;
  }

  /** Counts entries that were computed again: in double, and by the forms after that. */
  public final void countAgain(long inDouble, long afterDouble) {
    this.inDouble += inDouble;
    this.afterDouble += afterDouble;
  }

  /** Returns how many entries of the call that this one leads were settled by computing them again in double. */
  public final synchronized long inDouble() {
    return inDouble + helpersInDouble;
  }

  /** Returns how many were settled by the forms after that, many of them pair by pair. */
  public final synchronized long afterDouble() {
    return afterDouble + helpersAfterDouble;
  }

  /** Adds the counts of one that has helped. */
  final synchronized void addCounts(Worker helper) {
    helpersInDouble += helper.inDouble;
    helpersAfterDouble += helper.afterDouble;
  }

  /** Helps with the call of another. */
  final void help(Worker other) {
    lead = other;
  }

  final Thread caller() {
    return Objects.requireNonNull(lead.caller);
  }

  /** Ends the call that this one leads: nobody begins another task. */
  final void cancel() {
    ended = true;
  }

  /** Forgets a call, led or helped with. */
  public final void reset() {
    checkpoint.reset();
    lead = this;
    isToStop = false;
    caller = null;
    timeout = null;
    exceeded = null;
    ended = false;
    inDouble = 0;
    afterDouble = 0;
    helpersInDouble = 0;
    helpersAfterDouble = 0;
  }

  /** Does the tasks 0 … n − 1 of the work that comes before a call's blocks, with whatever threads the call has. */
  public void share(int tasks, IntConsumer task) {
    for (int k = 0; k < tasks; k++) {
      checkInterrupt(); // of the call, if there is one
      checkpoint.pass(Checkpoint.LOOK);
      task.accept(k);
    }
  }

  /**
   * Has the rows 0 … n − 1, of {@code terms} terms each, worked on before a call's blocks, by whole panels, with whatever threads the call
   * has.
   */
  public final void share(int n, int panel, long terms, Range range) {
    int rows = Checkpoint.taskRows(terms, panel);
    share(
        Math.ceilDiv(n, rows), k -> range.work(k * rows, Math.min(n - k * rows, rows) + k * rows));
  }

  /** Throws if the call is to end; called before each block. */
  public final void checkInterrupt() {
    Thread thread = lead.caller;
    if (thread != null) {
      Checkpoint.checkInterrupt(thread);
    }
    if (lead.ended) {
      throw new CancellationException("another thread of the call failed");
    }
    if (isToStop && System.nanoTime() - stop >= 0) {
      throw new Stopped();
    }
    TimeLimit limit = lead.timeout;
    if (limit != null && limit.isOver(lead.end)) {
      lead.exceeded = limit;
      throw limit.exceeded();
    }
  }

  /** Passes a {@link Checkpoint} within a block, after {@code terms} terms of the vector kernels or work that takes as long. */
  public final void pass(long terms) {
    if (checkpoint.isDue(terms)) {
      checkInterrupt();
      Checkpoint.yieldCarrier();
    }
  }
}
