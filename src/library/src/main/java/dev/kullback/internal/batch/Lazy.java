package dev.kullback.internal.batch;

import dev.kullback.internal.work.Checkpoint;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** A batch's {@link DerivedForm}, made at most once, by the first thread that needs it; others wait, interruptibly. */
final class Lazy<B extends Batch, T> {
  /** Interval at which a waiting thread checks for interruption. */
  private static final long LOOK_MILLIS = 5;

  final DerivedForm<B, T> form;

  private volatile @Nullable T value;
  private boolean making;

  Lazy(DerivedForm<B, T> form) {
    this.form = form;
  }

  T get(B batch, Function<B, T> make) {
    T v = value;
    return v != null ? v : make(batch, make);
  }

  /** Returns the value, or null if it was not made. */
  @Nullable T made() {
    return value;
  }

  /** Forgets the value of a batch that is filled anew, by the only thread that uses it. */
  void forget() {
    if (value != null) {
      value = null;
    }
  }

  /** Bytes of the value on the heap; 0 if it was not made. */
  long bytes() {
    T v = value;
    return v == null ? 0 : form.bytes().applyAsLong(v);
  }

  private T make(B batch, Function<B, T> make) {
    T v = take();
    if (v != null) {
      return v;
    }
    try {
      v = make.apply(batch); // not under a lock, whose waiters could not be interrupted
      value = v;
      return v;
    } finally {
      synchronized (this) {
        making = false;
        notifyAll();
      }
    }
  }

  /** Returns the value, or null to the thread that is to make it. */
  private synchronized @Nullable T take() {
    boolean interrupted = false;
    try {
      while (making && value == null) {
        try {
          wait(LOOK_MILLIS);
        } catch (InterruptedException e) {
          interrupted = true;
        }
        Checkpoint.checkInterrupt(interrupted);
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
    making = value == null;
    return value;
  }
}
