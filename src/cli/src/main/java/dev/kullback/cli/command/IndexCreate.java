package dev.kullback.cli.command;

import dev.kullback.Divergence;
import dev.kullback.KlIndex;
import dev.kullback.ScaleKind;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.Layout;
import dev.kullback.cli.batch.PolicyOptions;
import dev.kullback.cli.output.NewFolder;
import dev.kullback.cli.terminal.Progress;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Terminal;
import dev.kullback.cli.terminal.UserError;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

@Command(
    name = "create",
    description = {
      "Makes an index of the Gaussians q, or an empty one.",
      "The folder must be new or empty, or hold an empty index. A command that fails or is interrupted leaves it as it was.",
    },
    customSynopsis = {
      "kullback index create FOLDER --mean Q.npy --std S.npy [--ids J.npy] [...]",
      "       kullback index create FOLDER --dimension D [--full-covariances] [...]",
    },
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback index create FOLDER --mean Q.npy --std S.npy --ids J.npy",
      "  kullback index create FOLDER --dimension 64",
      "  kullback index create FOLDER --divergence jeffreys --mean Q.npy --std S.npy",
      "  kullback index create FOLDER --mean Q.npy --cov C.npy",
    })
final class IndexCreate implements Callable<Integer> {
  @Mixin IndexFolder folder;

  @Mixin BatchOptions.Q q;

  @Option(
      names = "--ids",
      paramLabel = "J.npy",
      description =
          "Their ids, integers, [N] or [N,1], no two alike and none -1; default: 0 to N-1.")
  @Nullable Path ids;

  @Option(
      names = "--dimension",
      paramLabel = "D",
      description = "The dimension of an empty index, without all of these.")
  @Nullable Integer dimension;

  @Option(
      names = "--full-covariances",
      description =
          "With --dimension, make an index that takes matrices, as --cov and the like do without this.")
  boolean isFull;

  @Option(
      names = "--divergence",
      paramLabel = "NAME",
      defaultValue = "kl",
      converter = EngineOptions.Name.class,
      description =
          "What the index ranks by, for good: "
              + EngineOptions.NAMES
              + "; default: kl. "
              + EngineOptions.UNITS)
  Divergence divergence;

  @Option(
      names = "--overwrite",
      description =
          "Replace the index in the folder, once the new one is complete; refused where the folder has other files.")
  boolean overwrite;

  @Mixin PolicyOptions policyOptions;
  @Spec CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    Report report = new Report(spec);
    report.start();
    IndexRows rows = rows();
    int d = rows == null ? dimension() : rows.layout().dimension();
    boolean full = rows == null ? isFull : rows.layout().kind().isFull();
    try (NewFolder made = new NewFolder(folder.path, overwrite)) {
      try (KlIndex index = made.open(() -> folder.create(made.path(), d, full, divergence))) {
        if (rows != null) {
          try (Progress progress = Terminal.of(spec).progress(rows.size())) {
            rows.addTo(index, false, progress);
          }
          folder.commit(index);
        }
        folder.describe(report, index);
      }
      made.keep();
    }
    report.line(
        "created %s: %d Gaussians of dimension %d%s%s, in %.3g s",
        folder.path,
        rows == null ? 0 : rows.size(),
        d,
        full ? ", of full covariances" : "",
        divergence.equals(Divergence.KL) ? "" : ", by " + divergence,
        report.seconds());
    if (rows != null) {
      Layout.describe(report, "q", List.of(rows.layout()));
    }
    report.put("seconds", report.seconds());
    report.end();
    return 0;
  }

  /** Returns what the index is to hold; null for nothing. */
  private @Nullable IndexRows rows() {
    if (!q.hasMean() && !q.hasMoments()) {
      if (q.hasScale() || ids != null) {
        throw new UserError(
            "a scale and --ids need the mean: give --mean, too, or --moments in place of both");
      }
      return null;
    }
    if (dimension != null) {
      throw new UserError(
          "give %s or --dimension, not both".formatted(q.hasMean() ? "--mean" : "--moments"));
    }
    BatchOptions.Files files = q.files();
    files.refuseLowRank("an index", ScaleKind.COVARIANCE, "");
    IndexRows rows = IndexRows.of(files, policyOptions.policy(files, List.of(), divergence), ids);
    if (isFull && !rows.layout().kind().isFull()) {
      throw new UserError(
          files.scale(),
          "has no matrices, as --full-covariances says: give %s or %s, or leave that out"
              .formatted(files.option(ScaleKind.COVARIANCE), files.option(ScaleKind.SCALE_TRIL)));
    }
    return rows;
  }

  private int dimension() {
    if (dimension == null) {
      throw new UserError("give --mean and its scale, or --dimension alone for an empty index");
    }
    if (dimension < 1) {
      throw new UserError("--dimension is " + dimension + ": give at least 1");
    }
    return dimension;
  }
}
