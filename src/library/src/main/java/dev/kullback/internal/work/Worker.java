package dev.kullback.internal.work;

import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/** One thread at work on a call. It ends when the caller was interrupted, or another thread of the call failed. */
public class Worker {
  /** What a part of {@link #share} counts: a look at the clock each. */
  protected static final long PART = 1 << 18;

  private final Checkpoint checkpoint = new Checkpoint();

  /** That of the call's caller, whose interruption ends the call. */
  private Worker lead = this;

  private @Nullable Thread caller;

  /** Of a lead: the call has failed. */
  private volatile boolean ended;

  /** Begins a call of this thread. */
  public final void startCall() {
    caller = Thread.currentThread();
  }

  /** Helps with the call of another. */
  final void help(Worker other) {
    lead = other;
  }

  /** Who made the call. */
  final Thread caller() {
    return Objects.requireNonNull(lead.caller);
  }

  /** Ends the call that this one leads: nobody begins another part. */
  final void cancel() {
    ended = true;
  }

  /** After a call, as a helper or its caller. */
  public final void reset() {
    checkpoint.reset();
    lead = this;
    caller = null;
    ended = false;
  }

  /** Does the parts 0 … parts − 1 of what a call needs before its blocks: with whatever threads the call has. */
  public void share(int parts, IntConsumer part) {
    Checkpoint look = new Checkpoint(); // there need be no call
    for (int k = 0; k < parts; k++) {
      look.pass(PART);
      part.accept(k);
    }
  }

  /** Before each block: throws if the call is to end. */
  public final void checkInterrupt() {
    Thread thread = lead.caller;
    if (thread != null) {
      Checkpoint.checkInterrupt(thread);
    }
    if (lead.ended) {
      throw new CancellationException("another thread of the call failed");
    }
  }

  /** Within a block, after so many terms of the vector kernels or what takes as long: as {@link Checkpoint} says. */
  public final void pass(long terms) {
    if (checkpoint.isDue(terms)) {
      checkInterrupt();
      Checkpoint.yieldCarrier();
    }
  }
}
