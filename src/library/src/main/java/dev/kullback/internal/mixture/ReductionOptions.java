package dev.kullback.internal.mixture;

import java.util.Locale;
import java.util.function.IntConsumer;

/**
 * How mixtures are reduced.
 *
 * @param size components that are left of each, at most
 * @param rule what a merger costs
 * @param maxCost the most that a merger may cost
 * @param minWeight the least share of a mixture's weight that a component is to have, or else it is dropped at first
 * @param isCapped whether the lightest components are dropped at last, where more than {@code size} are left
 * @param progress takes the number of components that are left in all mixtures, before the first merger and after each
 */
public record ReductionOptions(
    int size, Rule rule, double maxCost, double minWeight, boolean isCapped, IntConsumer progress) {
  /** What a merger costs, and which components may merge. */
  public enum Rule {
    /** Any two, at the cost of A. R. Runnalls, 2007. */
    RUNNALLS,

    /** Any two, at {@code w_i w_j/w (μ_i − μ_j)ᵀ P⁻¹ (μ_i − μ_j)}, P the covariance of the whole mixture: D. J. Salmond, 1990. */
    SALMOND,

    /** The lightest i with any, at {@code KL(N_i ‖ N_j)}: M. West, 1993. */
    WEST,

    /** Any two, at {@code (μ_i − μ_j)ᵀ P_i⁻¹ (μ_i − μ_j)} with i the heavier. */
    MAHALANOBIS,

    /** Any two, at what it adds to {@code ∫ (f − g)²}, as a share of {@code ∫ f²}: J. L. Williams and P. S. Maybeck, 2003. */
    WILLIAMS
  }

  /** Options that are the default but for the size. */
  public ReductionOptions(int size) {
    this(size, Rule.RUNNALLS, Double.POSITIVE_INFINITY, 0, false, _ -> {});
  }

  public ReductionOptions withRule(Rule other, double most) {
    return new ReductionOptions(size, other, most, minWeight, isCapped, progress);
  }

  public ReductionOptions withMinWeight(double share) {
    return new ReductionOptions(size, rule, maxCost, share, isCapped, progress);
  }

  public ReductionOptions capped() {
    return new ReductionOptions(size, rule, maxCost, minWeight, true, progress);
  }

  public ReductionOptions withProgress(IntConsumer other) {
    return new ReductionOptions(size, rule, maxCost, minWeight, isCapped, other);
  }

  @Override
  public String toString() {
    StringBuilder text = new StringBuilder("to " + size + ", ");
    text.append(rule.name().toLowerCase(Locale.ROOT));
    text.append(maxCost < Double.POSITIVE_INFINITY ? ", maxCost " + maxCost : "");
    text.append(minWeight > 0 ? ", minWeight " + minWeight : "");
    return text.append(isCapped ? ", capped" : "").toString();
  }
}
