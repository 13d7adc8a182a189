package dev.kullback.cli.command;

import dev.kullback.Backend;
import dev.kullback.KlEngine;
import dev.kullback.cli.terminal.Report;
import dev.kullback.cli.terminal.Terminal;
import java.util.LinkedHashMap;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

@Command(
    name = "info",
    description = "Tells which backends run here, and why others do not.",
    footer = {
      "",
      "Examples:",
      "  kullback info",
      "  kullback info --json",
    })
final class InfoCommand implements Runnable {
  @Mixin EngineOptions.WithDivergence engineOptions;
  @Spec CommandSpec spec;

  @Override
  public void run() {
    Report report = new Report(spec);
    report.requireHeard();
    String vm = System.getProperty("java.vm.name");
    String os = System.getProperty("os.name");
    String osVersion = System.getProperty("os.version");
    String arch = System.getProperty("os.arch");
    int cores = Runtime.getRuntime().availableProcessors();
    report.line("kullback  " + Terminal.version());
    report.line("java      %s, %s".formatted(Runtime.version(), vm));
    report.line("system    %s %s, %s, %d cores".formatted(os, osVersion, arch, cores));
    report.put("java", Runtime.version()).put("vm", vm);
    report.put("os", os).put("os_version", osVersion).put("arch", arch).put("cores", cores);

    Map<String, String> backends = new LinkedHashMap<>();
    for (Backend backend : Backend.values()) {
      report.line("backend   " + backend.reason());
      backends.put(EngineOptions.name(backend), backend.reason());
    }
    report.put("backends", backends);
    try (KlEngine engine = engineOptions.engine()) {
      report.line("engine    " + engine);
      engineOptions.describe(report, engine);
      report.put("engine", engine.toString());
    }
    report.end();
  }
}
