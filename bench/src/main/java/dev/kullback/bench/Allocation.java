package dev.kullback.bench;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.stream.Stream;

/** Bytes that warm calls allocate, as the JVM counts them for all of its threads. */
final class Allocation {
  /** Prepared batches and the caller's arrays: what the API calls allocation-free. */
  static final List<String> CONTENDERS =
      List.of(
          "kl-prepared",
          "kl-rect-prepared",
          "kl-near-mixed",
          "kl-prepared-2-threads",
          "nearest-10",
          "log-sum-exp",
          "query");

  static final List<Shape> SHAPES = List.of(new Shape(100, 256), new Shape(1024, 256));

  private static final int CALLS = 100;

  /** A batch gets panels of its own at its second use, which a slow call's warm-up must reach, too. */
  private static final int MIN_WARM_CALLS = 3;

  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private Allocation() {}

  /**
   * @param caller bytes allocated by the calling thread
   * @param all bytes allocated by every thread of the process, helpers included
   */
  record Bytes(long caller, long all, int calls) {}

  /** Measures after {@code seconds} of calls, when C2's code has replaced all that allocates. */
  static Bytes measure(Contender contender, double seconds) {
    long end = System.nanoTime() + (long) (seconds * 1e9);
    int calls = 0;
    do {
      contender.call();
      calls++;
    } while (calls < MIN_WARM_CALLS || System.nanoTime() < end);
    // The counters' own first use allocates.
    THREADS.getTotalThreadAllocatedBytes();
    byCaller();
    long callerBefore = byCaller();
    long allBefore = THREADS.getTotalThreadAllocatedBytes();
    for (int i = 0; i < CALLS; i++) {
      contender.call();
    }
    long all = THREADS.getTotalThreadAllocatedBytes() - allBefore;
    long caller = byCaller() - callerBefore;
    return new Bytes(caller, all, CALLS);
  }

  /** Bytes that the calling thread has allocated so far. */
  static long byCaller() {
    if (!THREADS.isThreadAllocatedMemorySupported()) {
      throw new Unavailable("this JVM does not count a thread's allocations");
    }
    return THREADS.getCurrentThreadAllocatedBytes();
  }

  /** A markdown table. */
  static String table(List<String> contenders, List<Shape> shapes, double seconds) {
    StringBuilder table = new StringBuilder();
    table.append("| warm call | shape | calls | bytes, caller | bytes, all threads |\n");
    table.append("|---|---|---|---|---|\n");
    for (String name : contenders) {
      for (Shape shape : shapes) {
        try (Contender contender = Contenders.checked(name, shape)) {
          Bytes bytes = measure(contender, seconds);
          table.append(
              "| %s | %s | %d | %d | %d |%n"
                  .formatted(name, shape, bytes.calls, bytes.caller, bytes.all));
        }
      }
    }
    return table.toString();
  }

  public static void main(String[] args) {
    List<Shape> shapes = args.length == 0 ? SHAPES : Stream.of(args).map(Shape::parse).toList();
    System.out.print(table(CONTENDERS, shapes, 3));
  }
}
