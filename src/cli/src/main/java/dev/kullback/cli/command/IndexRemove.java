package dev.kullback.cli.command;

import dev.kullback.KlIndex;
import dev.kullback.cli.batch.Ids;
import dev.kullback.cli.terminal.Report;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

@Command(
    name = "remove",
    description = "Removes Gaussians from an index, and tells how many of the ids were there.",
    customSynopsis = "kullback index remove FOLDER --ids J.npy [...]",
    sortOptions = false,
    footer = {
      "",
      "Example:",
      "  kullback index remove FOLDER --ids J.npy",
    })
final class IndexRemove implements Callable<Integer> {
  @Mixin IndexFolder folder;

  @Option(
      names = "--ids",
      paramLabel = "J.npy",
      required = true,
      description = "Their ids, integers, [N] or [N,1]; ids that are not in the index do no harm.")
  Path ids;

  @Spec CommandSpec spec;

  @Override
  public Integer call() {
    Report report = new Report(spec);
    report.start();
    long[] given = Arrays.stream(Ids.read(ids).values()).distinct().toArray();
    try (KlIndex index = folder.open()) {
      int removed = index.remove(given);
      folder.commit(index);
      report.line(
          "removed %d; %d of the ids were not there; %s has %d Gaussians of dimension %d now",
          removed, given.length - removed, folder.path, index.size(), index.dimension());
      folder.describe(report, index);
      report.put("removed", removed).put("missing", given.length - removed);
      report.put("seconds", report.seconds());
      report.end();
      return 0;
    }
  }
}
