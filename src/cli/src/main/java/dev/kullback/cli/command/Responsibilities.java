package dev.kullback.cli.command;

import dev.kullback.KlEngine;
import dev.kullback.Mixtures;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.PolicyOptions;
import dev.kullback.cli.batch.RowBlocks;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.output.Stats;
import dev.kullback.cli.terminal.Progress;
import dev.kullback.cli.terminal.Report;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

@Command(
    name = "responsibilities",
    description = {
      "Writes the probabilities that points x of p's mixture are of each Gaussian, [N,M].",
      "w_j p_j(x_i) / sum_k w_k p_k(x_i): each row has the sum 1. Weights may have any sum.",
    },
    customSynopsis = {
      "kullback responsibilities --points X.npy --p-mean P.npy --p-std T.npy [--weights C.npy]",
      "                                 -o R.npy [...]",
    },
    sortOptions = false,
    footer = {
      "",
      "Example:",
      "  kullback responsibilities --points X.npy --p-mean P.npy --p-cov C.npy --weights W.npy -o R.npy",
    })
final class Responsibilities extends PairCommand {
  @Mixin WeightOptions weightOptions;

  Responsibilities() {
    super(new BatchOptions.Points(), new PolicyOptions(), new EngineOptions());
  }

  @Override
  List<Path> otherInputs() {
    return weightOptions.files();
  }

  @Override
  void run(
      KlEngine engine, Inputs inputs, OutputFile npy, @Nullable OutputFile none, Report report) {
    Batch x = inputs.loadQ();
    Batch p = inputs.loadP(x);
    describe(report, engine, x, p.size());
    report.put("divergence", "responsibilities");
    double[] weights = weightOptions.read(p).ofReduction();
    report.start();
    Stats stats;
    try (Progress progress = progress(x.size())) {
      int blockRows = Pairwise.blockRows(x, p, engineOptions.threads());
      stats =
          Pairwise.compute(
              new RowBlocks(x, p, blockRows, progress),
              npy,
              null,
              (rows, columns, out) ->
                  engine.responsibilities(rows, Mixtures.unnormalized(columns, weights), out));
    }
    String size = "w_j p_j(x_i) / p(x_i): " + x.size() + " x " + p.size();
    stats.describe(report, size, x.dimension(), Batch.element(x, p));
  }
}
