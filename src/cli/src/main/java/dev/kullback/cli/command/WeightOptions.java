package dev.kullback.cli.command;

import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.Weights;
import dev.kullback.cli.terminal.UserError;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The options of a mixture's weights. */
final class WeightOptions {
  @Option(
      names = "--weights",
      paramLabel = "C.npy",
      description = "The mixture's weights, one for each Gaussian; default: equal ones of sum 1.")
  @Nullable Path weights;

  @Option(names = "--log-weights", paramLabel = "W.npy", description = "Or their logarithms.")
  @Nullable Path logWeights;

  /** Returns the file that is given, or none; throws if both are. */
  List<Path> files() {
    if (weights != null && logWeights != null) {
      throw new UserError("give --weights or --log-weights, not both");
    }
    return Stream.of(weights, logWeights).filter(Objects::nonNull).toList();
  }

  /** Reads the weights of a batch's Gaussians, or makes equal ones. */
  Weights read(Batch q) {
    List<Path> files = files();
    return files.isEmpty()
        ? Weights.equal(q.size())
        : Weights.read(files.getFirst(), weights == null, q);
  }
}
