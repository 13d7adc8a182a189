package dev.kullback.cli;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.Objects;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The options that name a batch's files: {@code --mean ...} for q, {@code --p-mean ...} for p. */
final class BatchOptions {
  private BatchOptions() {}

  /**
   * A mean and a scale file.
   *
   * @param prefix of the names of the options: {@code --} or {@code --p-}
   */
  record Files(String prefix, Path mean, Scale kind, Path scale) {
    /** Of q. */
    Files(Path mean, Scale kind, Path scale) {
      this("--", mean, kind, scale);
    }

    /** The option that would have named the scale file if it were of another kind. */
    String option(Scale other) {
      return prefix + other.option;
    }
  }

  /** {@link Input#limitStdin} of all of them. */
  static void limitStdin(int most, Files q, @Nullable Files p) {
    if (p == null) {
      Input.limitStdin(most, q.mean, q.scale);
    } else {
      Input.limitStdin(most, q.mean, q.scale, p.mean, p.scale);
    }
  }

  static final class Q {
    @Option(
        names = "--mean",
        paramLabel = "Q.npy",
        required = true,
        description =
            "Means of q, [N,D]; further axes are flattened into D. Any input may be FILE.npz:NAME, too.")
    Path mean;

    @Option(names = "--std", paramLabel = "S.npy", description = "Standard deviations of q.")
    @Nullable Path std;

    @Option(names = "--var", paramLabel = "V.npy", description = "Or its variances.")
    @Nullable Path variance;

    @Option(names = "--logvar", paramLabel = "L.npy", description = "Or its log-variances.")
    @Nullable Path logVariance;

    @Option(names = "--precision", paramLabel = "W.npy", description = "Or its 1/variances.")
    @Nullable Path precision;

    @Option(
        names = "--scale-tril",
        paramLabel = "L.npy",
        description = "Or its full covariances' lower factors, [N,D,D].")
    @Nullable Path scaleTril;

    @Option(
        names = "--packed-tril",
        paramLabel = "L.npy",
        description = "Or those packed by rows, [N,D(D+1)/2], with ln on the diagonal.")
    @Nullable Path packedTril;

    @Option(names = "--cov", paramLabel = "C.npy", description = "Or its covariances, [N,D,D].")
    @Nullable Path covariance;

    Files files() {
      return choose(
          "--", mean, std, variance, logVariance, precision, scaleTril, packedTril, covariance);
    }
  }

  static final class P {
    @Option(
        names = "--p-mean",
        paramLabel = "P.npy",
        description = "Means of p, [M,D]. Without --p-... options p is q, but not in aligned.")
    @Nullable Path mean;

    @Option(names = "--p-std", paramLabel = "T.npy", description = "Standard deviations of p.")
    @Nullable Path std;

    @Option(names = "--p-var", paramLabel = "V.npy", description = "Or its variances.")
    @Nullable Path variance;

    @Option(names = "--p-logvar", paramLabel = "L.npy", description = "Or its log-variances.")
    @Nullable Path logVariance;

    @Option(names = "--p-precision", paramLabel = "W.npy", description = "Or its 1/variances.")
    @Nullable Path precision;

    @Option(names = "--p-scale-tril", paramLabel = "L.npy", description = "Or lower factors.")
    @Nullable Path scaleTril;

    @Option(names = "--p-packed-tril", paramLabel = "L.npy", description = "Or those packed.")
    @Nullable Path packedTril;

    @Option(names = "--p-cov", paramLabel = "C.npy", description = "Or its covariances.")
    @Nullable Path covariance;

    /** Null where p is q. */
    @Nullable Files files() {
      @Nullable Path[] scales = {
        std, variance, logVariance, precision, scaleTril, packedTril, covariance
      };
      boolean absent = mean == null && Arrays.stream(scales).allMatch(Objects::isNull);
      return absent ? null : choose("--p-", mean, scales);
    }
  }

  /** The scales are in the order of {@link Scale}. */
  private static Files choose(String prefix, @Nullable Path mean, @Nullable Path... scales) {
    if (mean == null) {
      throw new UserError("a scale of p needs its mean: give " + prefix + "mean too");
    }
    @Nullable Files chosen = null;
    Scale[] kinds = Scale.values();
    for (int i = 0; i < kinds.length; i++) {
      Path scale = scales[i];
      if (scale != null && chosen != null) {
        chosen = null;
        break;
      }
      chosen = scale == null ? chosen : new Files(prefix, mean, kinds[i], scale);
    }
    if (chosen == null) {
      String names =
          Arrays.stream(kinds).map(k -> prefix + k.option).collect(Collectors.joining(", "));
      throw new UserError("give exactly one of " + names + " with " + prefix + "mean");
    }
    return chosen;
  }
}
