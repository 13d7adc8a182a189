package dev.kullback.cli.command;

import dev.kullback.cli.output.OutputFiles;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Collection;
import picocli.CommandLine.Option;

/** The option that says what becomes of files that are where outputs go: the same of all commands that write files. */
final class OutputOptions {
  @Option(
      names = "--no-clobber",
      description =
          "Refuse outputs that are there, before anything is computed; without it, each is replaced whole.")
  boolean noClobber;

  /** Creates the outputs of a command. */
  OutputFiles open(Collection<Path> names) throws IOException {
    return new OutputFiles(names, !noClobber);
  }
}
