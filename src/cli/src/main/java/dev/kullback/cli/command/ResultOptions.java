package dev.kullback.cli.command;

import java.nio.file.Path;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The options of the output. */
final class ResultOptions {
  @Option(
      names = {"-o", "--output"},
      paramLabel = "OUT.npy",
      required = true,
      description = "The result; float64 if q or p is, else float32.")
  Path output;

  @Mixin OutputOptions files;
}
