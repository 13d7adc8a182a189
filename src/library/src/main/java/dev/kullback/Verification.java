package dev.kullback;

import dev.kullback.internal.verify.Finding;
import dev.kullback.internal.verify.Findings;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.Collectors;

/**
 * Findings of {@link KlEngine#verify}.
 *
 * @since 0.1.0
 */
public final class Verification {
  private final List<Operation> operations;
  private final String scope;

  Verification(Findings findings) {
    operations = findings.operations().stream().map(Operation::new).toList();
    scope = findings.scope();
  }

  /** {@return whether every result of every operation was right} */
  public boolean passed() {
    return operations.stream().allMatch(operation -> operation.failure().isEmpty());
  }

  /** {@return the findings for each operation, in the order in which they were tried; an unmodifiable list} */
  public List<Operation> operations() {
    return operations;
  }

  /** {@return a line for each operation, two for one that was wrong, and one that says with how many batches they were tried} */
  @Override
  public String toString() {
    return operations.stream().map(Operation::toString).collect(Collectors.joining("\n"))
        + "\n"
        + scope;
  }

  /**
   * Findings about one method of the engine, of an index or of mixtures, on all kinds of batches.
   *
   * @since 0.1.0
   */
  public static final class Operation {
    private final Finding finding;

    private Operation(Finding finding) {
      this.finding = finding;
    }

    /** {@return the name of the method} */
    public String name() {
      return finding.name();
    }

    /** {@return how many of its calls were compared} */
    public long calls() {
      return finding.calls();
    }

    /** {@return how many numbers of these calls were compared} */
    public long entries() {
      return finding.entries();
    }

    /**
     * {@return the greatest ratio of an error to the error that is allowed: at most 1 if all is well, and +∞ if something differs that is
     * not a matter of rounding}
     */
    public double worstError() {
      return finding.worst();
    }

    /**
     * {@return how many bytes the calling thread allocated in a call once calls were warm: the fewest of several calls, and the most of all
     * kinds of batches}
     *
     * <p>It is 0 on one thread and a few hundred on several, unless the JVM has not yet compiled what runs, which more time mends, or boxes
     * vectors, which makes calls slow. It is empty for operations that return objects or hand them over, and for all if the JVM does not
     * count allocated bytes: that takes the module jdk.management.
     */
    public OptionalLong allocatedBytes() {
      return finding.bytes() < 0 ? OptionalLong.empty() : OptionalLong.of(finding.bytes());
    }

    /**
     * {@return the first result that has more than the error allowed, or that differs from the result of the same call before; empty if every
     * result was right}
     */
    public Optional<String> failure() {
      return finding.wrong().isEmpty() ? Optional.empty() : Optional.of(finding.wrong());
    }

    /** {@return a line, and after a wrong result a second one} */
    @Override
    public String toString() {
      return finding.toString();
    }
  }
}
