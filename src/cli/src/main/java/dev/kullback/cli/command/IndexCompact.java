package dev.kullback.cli.command;

import dev.kullback.IndexStats;
import dev.kullback.KlIndex;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Text;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

@Command(
    name = "compact",
    description = {
      "Merges an index into as few segments as there can be, without removed Gaussians.",
      "Searches are the fastest then. The folder needs room for both until this ends.",
    },
    customSynopsis = "kullback index compact FOLDER [--purge] [...]",
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback index compact FOLDER",
      "  kullback index compact FOLDER --purge",
    })
final class IndexCompact implements Callable<Integer> {
  @Mixin IndexFolder folder;

  @Option(
      names = "--purge",
      description = {
        "Also make sure that no file in the folder has anything of removed Gaussians, such as one that a killed process left.",
        "Copies elsewhere keep what they have.",
      })
  boolean purge;

  @Spec CommandSpec spec;

  @Override
  public Integer call() {
    Report report = new Report(spec);
    report.start();
    try (KlIndex index = folder.open()) {
      folder.write(() -> {
        index.compact();
        if (purge) {
          index.purge();
        } else {
          index.commit();
        }
      });
      IndexStats stats = index.stats();
      long bytes = stats.mappedBytes() + stats.nativeBytes(); // small segments are read
      report.line(
          "%s has %d Gaussians of dimension %d, in %s, %s MB now",
          folder.path,
          index.size(),
          index.dimension(),
          stats.segments() == 1 ? "1 segment" : stats.segments() + " segments",
          Text.number(bytes * 1e-6));
      folder.describe(report, index);
      report.put("segments", stats.segments()).put("bytes", bytes).put("purged", purge);
      report.put("seconds", report.seconds());
      report.end();
      return 0;
    }
  }
}
