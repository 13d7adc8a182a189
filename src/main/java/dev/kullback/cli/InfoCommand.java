package dev.kullback.cli;

import dev.kullback.Backend;
import dev.kullback.KlEngine;
import java.io.PrintWriter;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

@Command(name = "info", description = "Tells what runs here, and why something else does not.")
final class InfoCommand implements Runnable {
  @Mixin EngineOptions engineOptions;
  @Spec CommandSpec spec;

  @Override
  public void run() {
    PrintWriter out = spec.commandLine().getOut();
    out.printf("kullback  %s%n", Main.version());
    out.printf("java      %s, %s%n", Runtime.version(), System.getProperty("java.vm.name"));
    out.printf(
        "system    %s %s, %s, %d cores%n",
        System.getProperty("os.name"),
        System.getProperty("os.version"),
        System.getProperty("os.arch"),
        Runtime.getRuntime().availableProcessors());
    for (Backend backend : Backend.values()) {
      out.printf("backend   %s%n", backend.describe());
    }
    try (KlEngine engine = engineOptions.engine()) {
      engine.describe().lines().forEach(line -> out.printf("engine    %s%n", line));
    }
  }
}
