package dev.kullback.cli.batch;

import dev.kullback.ScalePolicy;
import dev.kullback.cli.terminal.UserError;
import java.util.List;
import picocli.CommandLine.Option;

/** The options that say which scales to accept. */
public final class PolicyOptions {
  /** The option alone that is also for diagonal batches without a p. */
  public static final class Clamp {
    @Option(
        names = "--clamp",
        description =
            "Raise std to 1e-8, clamp log-variance to [-30, 20]; default: reject std <= 0.")
    boolean clamp;

    public ScalePolicy policy() {
      return clamp ? ScalePolicy.CLAMPED : ScalePolicy.STRICT;
    }
  }

  @Option(
      names = "--clamp",
      description =
          "Raise std to 1e-8, clamp log-variance to [-30, 20]; default: reject std <= 0."
              + " For whichever of q and p has scales; not for matrices.")
  boolean clamp;

  @Option(
      names = "--deterministic",
      description =
          "A q whose std is 0 throughout has KL 0 by definition. For scales as --clamp is.")
  public boolean deterministic;

  /** Returns the policy for q and p, which has no files where it is q or N(0,I). */
  public ScalePolicy policy(BatchOptions.Files q, List<BatchOptions.Files> p) {
    if (clamp && deterministic) {
      throw new UserError("give --clamp or --deterministic, not both");
    }
    if ((clamp || deterministic)
        && q.kind().isFull()
        && p.stream().allMatch(f -> f.kind().isFull())) {
      throw new UserError("--clamp and --deterministic are for scales, not for matrices");
    }
    return clamp
        ? ScalePolicy.CLAMPED
        : deterministic ? ScalePolicy.DETERMINISTIC_IF_ZERO : ScalePolicy.STRICT;
  }
}
