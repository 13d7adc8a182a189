package dev.kullback.internal.observe;

import java.time.Duration;
import java.util.concurrent.atomic.LongAdder;

/** Counts what any number of threads do, and how long it takes them. */
public final class Tally {
  private final LongAdder count = new LongAdder();
  private final LongAdder nanos = new LongAdder();

  /** Counts something that began at a {@link System#nanoTime} and ends now. Returns how long it took. */
  public long addSince(long start) {
    long taken = System.nanoTime() - start;
    count.increment();
    nanos.add(taken);
    return taken;
  }

  public long count() {
    return count.sum();
  }

  public Duration time() {
    return Duration.ofNanos(nanos.sum());
  }
}
