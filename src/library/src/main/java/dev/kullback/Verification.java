package dev.kullback;

import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * Findings of {@link KlEngine#verify}.
 *
 * @param operations the findings for each operation, in the order in which they were tried
 * @since 0.1.0
 */
public record Verification(List<Operation> operations) {
  /**
   * Makes a verification with a copy of the list.
   *
   * @param operations the findings for each operation
   */
  public Verification {
    operations = List.copyOf(operations);
  }

  /**
   * Findings about one method of the engine, on all kinds of batches.
   *
   * @param name the name of the method
   * @param calls how many of its calls were compared
   * @param entries how many numbers of these calls were compared
   * @param worst the greatest ratio of an error to the error that is allowed: at most 1 if all is well, and +∞ if
   *     something differs that is not a matter of rounding
   * @param bytes how many bytes the calling thread allocated in a call once calls were warm: the fewest of several
   *     calls, and the most of all kinds of batches. It is 0 on one thread and a few hundred on several, unless the JVM
   *     has not yet compiled what runs, which more time mends, or boxes vectors, which makes calls slow. It is -1 for
   *     operations that return objects or hand them over, and for all if the JVM does not count allocated bytes: that
   *     takes the module jdk.management
   * @param wrong the first result that has more than the error allowed, or that differs from the result of the same
   *     call before; empty if all is well
   * @since 0.1.0
   */
  public record Operation(
      String name, long calls, long entries, double worst, long bytes, String wrong) {
    /** {@return whether every result was right} */
    public boolean isRight() {
      return wrong.isEmpty();
    }

    /** {@return a line, and after a wrong result a second one} */
    @Override
    public String toString() {
      return String.format(
          Locale.ROOT,
          "%-20s %9d calls %12d entries   worst error / contract %-8.2g %9s B a call   %s",
          name,
          calls,
          entries,
          worst,
          bytes < 0 ? "-" : bytes,
          isRight() ? "ok" : "WRONG\n  " + wrong);
    }
  }

  /** {@return whether every result of every operation was right} */
  public boolean isRight() {
    return operations.stream().allMatch(Operation::isRight);
  }

  /** {@return a line for each operation, and two for one that was wrong} */
  @Override
  public String toString() {
    return operations.stream().map(Operation::toString).collect(Collectors.joining("\n"));
  }
}
