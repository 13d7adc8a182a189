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
    name = "info",
    description = "Tells what an index holds.",
    customSynopsis = "kullback index info FOLDER [--check] [...]",
    sortOptions = false,
    footer = {
      "",
      "Examples:",
      "  kullback index info FOLDER",
      "  kullback index info FOLDER --check --json",
    })
final class IndexInfo implements Callable<Integer> {
  @Mixin IndexFolder folder;

  @Option(
      names = "--check",
      description = "Read all files and compare their checksums; exit status 2 if one is wrong.")
  boolean check;

  @Spec CommandSpec spec;

  @Override
  public Integer call() {
    Report report = new Report(spec);
    report.requireHeard();
    report.start();
    try (KlIndex index = folder.openReadOnly()) {
      IndexStats stats = index.stats();
      if (check) {
        folder.check(index);
      }
      report.line("dimension %d", index.dimension());
      report.line("ranks by  %s", index.divergence());
      if (index.hasFullCovariances()) {
        report.line("scales    full covariances");
      }
      report.line("size      %d", index.size());
      report.line("deleted   %d", stats.deleted());
      long bytes = stats.mappedBytes() + stats.nativeBytes(); // small segments are read
      report.line("segments  %d, %s MB", stats.segments(), Text.number(bytes * 1e-6));
      int userData = index.userData().length;
      if (userData > 0) {
        report.line("user data %d bytes", userData);
      }
      folder.describe(report, index);
      report.put("segments", stats.segments()).put("deleted", stats.deleted());
      report.put("bytes", bytes).put("user_data_bytes", userData).put("checked", check);
      if (check) {
        report.line("checked   in %.3g s: every checksum is right", report.seconds());
        report.put("seconds", report.seconds());
      }
      report.end();
      return 0;
    }
  }
}
