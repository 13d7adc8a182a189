package dev.kullback;

import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * What {@link KlEngine#verify} found, an operation each.
 *
 * @param operations in the order in which they were tried
 */
public record Verification(List<Operation> operations) {
  /** A copy of the list. */
  public Verification {
    operations = List.copyOf(operations);
  }

  /**
   * One method of the engine, on all kinds of batches.
   *
   * @param name of the method
   * @param calls how many calls were compared
   * @param entries how many numbers of theirs
   * @param worst greatest error over what the contract allows: at most 1 where all is well, +∞ where something that is not a matter of
   *     rounding differs
   * @param wrong the first result that breaks the contract or differs from that of the same call before; empty where all is well
   */
  public record Operation(String name, long calls, long entries, double worst, String wrong) {
    /** Whether every result was right. */
    public boolean isRight() {
      return wrong.isEmpty();
    }

    /** One line; after a wrong result two. */
    @Override
    public String toString() {
      return String.format(
          Locale.ROOT,
          "%-20s %9d calls %12d entries   worst error / contract %-8.2g %s",
          name,
          calls,
          entries,
          worst,
          isRight() ? "ok" : "WRONG\n  " + wrong);
    }
  }

  /** Whether every result of every operation was right. */
  public boolean isRight() {
    return operations.stream().allMatch(Operation::isRight);
  }

  /** A line an operation, two of those that were wrong. */
  @Override
  public String toString() {
    return operations.stream().map(Operation::toString).collect(Collectors.joining("\n"));
  }
}
