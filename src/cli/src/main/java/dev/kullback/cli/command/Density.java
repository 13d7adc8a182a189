package dev.kullback.cli.command;

import dev.kullback.KlEngine;
import dev.kullback.Mixtures;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.PolicyOptions;
import dev.kullback.cli.batch.RowBlocks;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.output.Stats;
import dev.kullback.cli.terminal.Progress;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.UserError;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

@Command(
    name = "density",
    description = {
      "Writes the log-densities ln p_j(x_i) of points x in the Gaussians of p, [N,M].",
      "Or with --mahalanobis their squared Mahalanobis distances, or with --mixture the log-likelihoods of p's mixture,"
          + " [N].",
    },
    customSynopsis = {
      "kullback density --points X.npy --p-mean P.npy --p-std T.npy -o L.npy [--mahalanobis] [...]",
      "kullback density --points X.npy --p-mean P.npy --p-std T.npy -o L.npy --mixture",
      "                        [--weights C.npy] [...]",
    },
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback density --points X.npy --p-mean P.npy --p-cov C.npy -o log-densities.npy",
      "  kullback density --points X.npy --p-mean P.npy --p-cov C.npy --mixture --weights W.npy -o l.npy",
    })
final class Density extends PairCommand {
  @Option(
      names = "--mahalanobis",
      order = FIRST,
      description = "Squared Mahalanobis distances instead.")
  boolean mahalanobis;

  @Option(
      names = "--mixture",
      order = FIRST,
      description = "The log-likelihood of each point instead: ln sum_j w_j p_j(x_i).")
  boolean mixture;

  @Mixin WeightOptions weightOptions;

  Density() {
    super(new BatchOptions.Points(), new PolicyOptions(), new EngineOptions());
  }

  @Override
  List<Path> otherInputs() {
    List<Path> files = weightOptions.files();
    if (mixture && mahalanobis) {
      throw new UserError("give --mahalanobis or --mixture, not both");
    }
    if (!mixture && !files.isEmpty()) {
      throw new UserError("weights are a mixture's: give --mixture, too");
    }
    return files;
  }

  @Override
  void run(
      KlEngine engine, Inputs inputs, OutputFile npy, @Nullable OutputFile none, Report report) {
    Batch x = inputs.loadQ();
    Batch p = inputs.loadP(x);
    describe(report, engine, x, p.size());
    String formula = mixture ? "ln p(x)" : mahalanobis ? "mahalanobis(x_i, p_j)^2" : "ln p_j(x_i)";
    report.put(
        "divergence", mixture ? "log-likelihood" : mahalanobis ? "mahalanobis" : "log-density");
    double[] weights = mixture ? weightOptions.read(p).ofMixtures(0, p.size()) : new double[0];
    report.start();
    Stats stats;
    try (Progress progress = progress(x.size())) {
      if (mixture) {
        int blockRows = RowBlocks.ofReduction(x, p, engineOptions.threads(), 1);
        stats = likelihood(engine, new RowBlocks(x, p, blockRows, progress), weights, npy);
      } else {
        int blockRows = Pairwise.blockRows(x, p, engineOptions.threads());
        RowBlocks blocks = new RowBlocks(x, p, blockRows, progress);
        stats =
            Pairwise.compute(
                blocks, npy, null, mahalanobis ? engine::mahalanobis : engine::logDensity);
      }
    }
    String size =
        formula
            + ": "
            + x.size()
            + (mixture ? " of " + p.size() + " components" : " x " + p.size());
    stats.describe(report, size, x.dimension(), Batch.element(x, p));
  }

  private static Stats likelihood(
      KlEngine engine, RowBlocks blocks, double[] weights, OutputFile npy) {
    ValueLayout element = Batch.element(blocks.q(), blocks.p());
    boolean isDouble = element.byteSize() == Double.BYTES;
    npy.write(Npy.header(element, blocks.q().size()));
    Stats stats = new Stats();
    double[] out = new double[blocks.rows()];
    blocks.forEach((_, rows, p) -> {
      engine.logLikelihood(rows, Mixtures.of(p, weights), out);
      for (int i = 0; i < rows.size(); i++) {
        stats.add(npy.put(out[i], isDouble));
      }
    });
    return stats;
  }
}
