package dev.kullback.cli.command;

import dev.kullback.Divergence;
import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import dev.kullback.Mixtures;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.PolicyOptions;
import dev.kullback.cli.npy.Input;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.output.OutputFiles;
import dev.kullback.cli.output.Outputs;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.UserError;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

@Command(
    name = "entropy",
    description = {
      "Bounds the entropy of the mixture of q's Gaussians, in nats.",
      "Weights have the sum 1 but for the rounding of their type, float16 included, and are divided by it.",
    },
    customSynopsis = "kullback entropy --mean Q.npy --std S.npy [--weights C.npy] [-o E.npy] [...]",
    sortOptions = false,
    footer = {
      "",
      "Example:",
      "  kullback entropy --mean Q.npy --std S.npy --weights C.npy",
    })
final class Entropy implements Callable<Integer> {
  @Mixin BatchOptions.Q qOptions;
  @Mixin WeightOptions weightOptions;

  @Option(
      names = "--alpha",
      paramLabel = "A",
      description = "Of the Chernoff divergence in the lower bound, 0 to 1; default: 0.5.")
  double alpha = 0.5;

  @Option(
      names = {"-o", "--output"},
      paramLabel = "E.npy",
      description = "Where the lower and the upper bound go, float64 [2].")
  @Nullable Path output;

  @Mixin OutputOptions outputOptions;
  @Mixin PolicyOptions policyOptions;
  @Mixin EngineOptions engineOptions;
  @Spec CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    BatchOptions.Files files = qOptions.files();
    engineOptions.checkLowRank(files, List.of());
    Input.limitStdin(0, BatchOptions.inputs(files, List.of()));
    List<Path> weightFiles = weightOptions.files();
    if (!(alpha >= 0 && alpha <= 1)) {
      throw new UserError("--alpha is " + alpha + ": give 0 to 1");
    }
    if (output != null) {
      List<Path> inputs = new ArrayList<>(BatchOptions.inputs(files, List.of()));
      inputs.addAll(weightFiles);
      Outputs.check(output, "npy", inputs);
    }
    Report report = new Report(spec);
    if (output == null) {
      report.requireHeard();
    }
    try (Arena arena = Arena.ofShared();
        KlEngine engine = engineOptions.engine();
        OutputFiles out = outputOptions.open(output == null ? List.of() : List.of(output))) {
      Batch q = Batch.load(files, policyOptions.policy(files, List.of(), Divergence.KL), arena);
      report.start();
      Mixtures mixture = mixture(q);
      double conditional = conditional(mixture, q);
      double lower = mixture.entropyLowerBound(alpha)[0];
      double upper = mixture.entropyUpperBound(engine)[0];
      double seconds = report.seconds();

      if (output != null) {
        OutputFile npy = out.get(0);
        npy.write(Npy.header(ValueLayout.JAVA_DOUBLE, 2));
        npy.put(lower, true);
        npy.put(upper, true);
        out.commit();
      }
      String dtype = Npy.dtype(Batch.element(q, q));
      report.line(
          "mixture of %d Gaussians of dimension %d, %s, in %.3g s",
          q.size(), q.dimension(), dtype, seconds);
      q.describe(report, "q");
      report.line("entropy %.7g to %.7g nats; given the component %.7g", lower, upper, conditional);
      report.put("rows", q.size()).put("dimension", q.dimension()).put("dtype", dtype);
      engineOptions.describe(report, engine);
      report.put("lower", lower).put("upper", upper).put("conditional", conditional);
      report.put("alpha", alpha).put("seconds", seconds);
      if (output != null) {
        report.wrote(Map.of("output", output));
      }
      report.end();
      return 0;
    }
  }

  /** Makes the mixture; what the library refuses of weights, their sum, is told of their file. */
  private Mixtures mixture(Batch q) {
    Gaussians components = q.gaussians();
    List<Path> files = weightOptions.files();
    if (files.isEmpty()) {
      return Mixtures.of(components);
    }
    double[] weights = weightOptions.read(q).ofMixtures(0, q.size());
    try {
      return Mixtures.of(components, weights);
    } catch (IllegalArgumentException e) {
      throw new UserError(files.getFirst(), String.valueOf(e.getMessage()));
    }
  }

  /** Computes the entropy given the component, which has none for variances that the library refuses. */
  private static double conditional(Mixtures mixture, Batch q) {
    try {
      return mixture.entropyLowerBound(0)[0];
    } catch (IllegalArgumentException e) {
      throw new UserError(q.files().scale(), String.valueOf(e.getMessage()));
    }
  }
}
