package dev.kullback.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.internal.work.ThisThread;
import java.time.Duration;

/** Calls of which C2 has compiled all that they run. */
public final class WarmCalls {
  /** Of the thread's processor time, so that C2 has as much on a busy machine; a longer one is for emulated processors, on which it takes minutes. */
  private static final Duration PATIENCE =
      Duration.ofSeconds(Integer.getInteger("tests.patience", 20));

  private WarmCalls() {}

  /** Calls until three rounds of calls in a row allocate nothing: vectors are boxed until the kernels are compiled. */
  public static void allocateNothing(String what, int calls, Runnable call) {
    long least = Long.MAX_VALUE;
    int clean = 0;
    long start = ThisThread.processorNanos();
    while (clean < 3 && ThisThread.processorNanos() - start < PATIENCE.toNanos()) {
      long before = ThisThread.allocatedBytes();
      for (int i = 0; i < calls; i++) {
        call.run();
      }
      long bytes = ThisThread.allocatedBytes() - before;
      least = Math.min(least, bytes);
      clean = bytes == 0 ? clean + 1 : 0;
    }
    assertThat(clean)
        .as(
            "%s: rounds of %d warm calls that allocate nothing; the best allocated %d",
            what, calls, least)
        .isEqualTo(3);
  }
}
