package dev.kullback.cli.command;

import dev.kullback.cli.terminal.UserError;
import picocli.CommandLine.Option;

/** The option that says how many threads compute. */
final class ThreadOptions {
  private static final int MOST = 1024;

  @Option(
      names = {"-j", "--threads"},
      paramLabel = "N",
      description = "Default: every core.")
  private int threads = Math.min(MOST, Runtime.getRuntime().availableProcessors());

  /** Returns the number that is asked for; throws if none can be. */
  int threads() {
    if (threads < 1 || threads > MOST) {
      throw new UserError("--threads is " + threads + ": give 1 to " + MOST);
    }
    return threads;
  }
}
