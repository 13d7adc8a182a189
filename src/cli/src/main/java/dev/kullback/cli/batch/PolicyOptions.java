package dev.kullback.cli.batch;

import dev.kullback.Divergence;
import dev.kullback.ScaleKind;
import dev.kullback.ScalePolicy;
import dev.kullback.cli.terminal.UserError;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine.Option;

/** The option that says which scales to accept; {@link WithDeterministic} has another for commands that take std 0. */
public sealed class PolicyOptions {
  @Option(
      names = "--clamp",
      description =
          "Raise std to 1e-8, clamp log-variance to [-30, 20]; default: reject std <= 0."
              + " For scales, not for matrices.")
  boolean clamp;

  /** The options of commands that have a result where q is deterministic. */
  public static final class WithDeterministic extends PolicyOptions {
    @Option(
        names = "--deterministic",
        description =
            "A q whose std is 0 throughout has KL 0 by definition. For scales as --clamp is."
                + " wasserstein-2 and its square need neither: they take std 0, and singular covariances.")
    boolean deterministic;

    @Override
    public ScalePolicy policy() {
      if (clamp && deterministic) {
        throw new UserError("give --clamp or --deterministic, not both");
      }
      return deterministic ? ScalePolicy.DETERMINISTIC_IF_ZERO : super.policy();
    }
  }

  /** Returns the policy that is asked for. */
  public ScalePolicy policy() {
    return clamp ? ScalePolicy.CLAMPED : ScalePolicy.STRICT;
  }

  /** Returns the policy that is asked for, or that the divergence needs: the Wasserstein distance takes singular Gaussians as they are. */
  public final ScalePolicy policy(Divergence divergence) {
    ScalePolicy policy = policy();
    return divergence.takesSingular() && policy != ScalePolicy.CLAMPED
        ? ScalePolicy.SEMIDEFINITE
        : policy;
  }

  /** Returns the policy for q and p, which has no files where it is q or N(0,I), or there is none. */
  public final ScalePolicy policy(
      BatchOptions.Files q, List<BatchOptions.Files> p, Divergence divergence) {
    ScalePolicy policy = policy();
    if (policy != ScalePolicy.STRICT && Batch.isFull(q) && p.stream().allMatch(Batch::isFull)) {
      throw new UserError(
          (policy == ScalePolicy.CLAMPED ? "--clamp" : "--deterministic")
              + " is for scales, not for matrices");
    }
    return policy(divergence);
  }

  /** Returns what {@code --clamp} would do to q and p, if it is not given and does anything; empty where it is of no use. */
  public final String remedy(BatchOptions.Files q, List<BatchOptions.Files> p) {
    String limits =
        Stream.concat(Stream.of(q), p.stream())
            .filter(files -> !files.arePoints())
            .map(files -> limit(files.kind()))
            .filter(limit -> !limit.isEmpty())
            .distinct()
            .collect(Collectors.joining(", "));
    return policy() == ScalePolicy.CLAMPED || limits.isEmpty() ? "" : "--clamp (" + limits + ")";
  }

  private static String limit(ScaleKind kind) {
    return switch (kind) {
      case STD -> "std >= 1e-8";
      case VARIANCE -> "variance >= 1e-16";
      case PRECISION -> "precision <= 1e16";
      case LOG_VARIANCE -> "log-variance in [-30, 20]";
      default -> "";
    };
  }
}
