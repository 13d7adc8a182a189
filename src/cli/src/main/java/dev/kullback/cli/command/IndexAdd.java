package dev.kullback.cli.command;

import dev.kullback.KlIndex;
import dev.kullback.ScalePolicy;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.Layout;
import dev.kullback.cli.batch.PolicyOptions;
import dev.kullback.cli.terminal.Progress;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Terminal;
import dev.kullback.cli.terminal.UserError;
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
    name = "add",
    description = {
      "Adds the Gaussians q to an index.",
      "All of them or, if the command fails or is interrupted, none.",
    },
    customSynopsis =
        "kullback index add FOLDER --ids J.npy --mean Q.npy --std S.npy [--replace] [...]",
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback index add FOLDER --ids J.npy --mean Q.npy --std S.npy",
      "  kullback index add FOLDER --ids J.npy --mean Q.npy --log-variance L.npy --clamp --replace",
      "  kullback index add FOLDER --ids J.npy --mean Q.npy --cov C.npy",
    })
final class IndexAdd implements Callable<Integer> {
  @Mixin IndexFolder folder;

  @Option(
      names = "--ids",
      order = PairCommand.FIRST,
      paramLabel = "J.npy",
      description =
          "Their ids, integers, [N] or [N,1], no two alike and none -1; without a default.")
  @Nullable Path ids;

  @Option(
      names = "--replace",
      order = PairCommand.FIRST,
      description = "Replace those whose ids are in the index, and add the others.")
  boolean replace;

  @Mixin BatchOptions.Q q;
  @Mixin PolicyOptions policyOptions;
  @Spec CommandSpec spec;

  @Override
  public Integer call() {
    if (ids == null) {
      throw new UserError(
          "give --ids: only index create makes ids, 0 to N-1, where none are given");
    }
    Report report = new Report(spec);
    report.start();
    try (KlIndex index = folder.open()) {
      ScalePolicy policy = policyOptions.policy(q.files(), List.of(), index.divergence());
      IndexRows rows = IndexRows.of(q.files(), policy, ids);
      folder.requireFit(index, rows.files(), rows.layout());
      if (!replace) {
        rows.requireNew(index);
      }
      long before = index.size();
      try (Progress progress = Terminal.of(spec).progress(rows.size())) {
        rows.addTo(index, replace, progress);
      }
      folder.commit(index);
      long added = index.size() - before;
      long replaced = rows.size() - added;
      String what =
          replace ? "added %d and replaced %d".formatted(added, replaced) : "added " + added;
      report.line(
          "%s, in %.3g s; %s has %d Gaussians of dimension %d now",
          what, report.seconds(), folder.path, index.size(), index.dimension());
      folder.describe(report, index);
      Layout.describe(report, "q", List.of(rows.layout()));
      report.put("added", added).put("replaced", replaced).put("seconds", report.seconds());
      report.end();
      return 0;
    }
  }
}
