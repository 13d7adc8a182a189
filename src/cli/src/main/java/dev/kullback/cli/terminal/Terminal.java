package dev.kullback.cli.terminal;

import static java.util.Objects.requireNonNull;

import java.io.Console;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ScopeType;

/** The two streams that a run of the command line prints to, and the options that say what to print. */
public final class Terminal {
  private static final int BROKEN_PIPE = 141;

  @Option(
      names = {"-h", "--help"},
      usageHelp = true,
      scope = ScopeType.INHERIT,
      description = "Show this help.")
  boolean help;

  @Option(
      names = {"-V", "--version"},
      versionHelp = true,
      description = "Show the version.")
  boolean version;

  @Option(
      names = "--json",
      scope = ScopeType.INHERIT,
      defaultValue = "false", // or a second one would negate the first
      description = "Print the summary as one JSON object on one line.")
  boolean json;

  @Option(
      names = {"-q", "--quiet"},
      scope = ScopeType.INHERIT,
      defaultValue = "false",
      description = "Print no summary and no progress.")
  boolean quiet;

  @Option(
      names = "--debug",
      scope = ScopeType.INHERIT,
      defaultValue = "false",
      description = "Show the stack trace of an error, too.")
  boolean debug;

  /** The names of outputs that are complete. */
  public final List<Path> written = new ArrayList<>();

  public final PrintStream out;
  public final PrintStream err;

  /** The words of the command line, which the user knows. */
  private final List<String> words;

  public Terminal(PrintStream out, PrintStream err, String... words) {
    this.out = out;
    this.err = err;
    this.words = List.of(words);
  }

  /** The terminal of a command. */
  public static Terminal of(CommandSpec command) {
    return (Terminal) requireNonNull(command.root().mixins().get("terminal")).userObject();
  }

  /** Returns the version, from the manifest or the module. */
  public static String version() {
    @Nullable String version = Terminal.class.getPackage().getImplementationVersion();
    if (version == null && Terminal.class.getModule().getDescriptor() != null) {
      version = Terminal.class.getModule().getDescriptor().rawVersion().orElse(null);
    }
    return version == null ? "unreleased" : version;
  }

  /** Shows how many of {@code total} rows are done; nothing with {@code --quiet}. */
  public Progress progress(long total) {
    return new Progress(quiet ? new PrintStream(OutputStream.nullOutputStream()) : err, total);
  }

  /** Writes bytes to standard output; returns whether they went there. */
  public boolean write(MemorySegment bytes) {
    byte[] chunk = new byte[1 << 16];
    for (long at = 0; at < bytes.byteSize() && !out.checkError(); at += chunk.length) {
      int length = (int) Math.min(chunk.length, bytes.byteSize() - at);
      MemorySegment.copy(bytes, ValueLayout.JAVA_BYTE, at, chunk, 0, length);
      out.write(chunk, 0, length);
    }
    return !out.checkError();
  }

  /** Whether the process does nothing but this run. */
  public boolean isProcess() {
    return out == System.out;
  }

  /** Whether standard output is a terminal, where bytes would be seen as text. */
  public boolean outIsTerminal() {
    return isProcess()
        && (Optional.ofNullable(System.console()).filter(Console::isTerminal).isPresent()
            || standardOutput().startsWith("/dev/pts"));
  }

  /** Returns the file behind standard output, if the system tells: without a terminal as stdin, there is no console to ask. */
  private static Path standardOutput() {
    Path descriptor = Path.of("/dev/fd/1");
    try {
      return descriptor.toRealPath();
    } catch (IOException e) {
      return descriptor;
    }
  }

  /** Returns the exit status of a run: {@code status}, or another if its output was lost. */
  public int end(int status) {
    if (!out.checkError() || status != 0) {
      return status;
    }
    if (isProcess() && isPipe()) {
      return BROKEN_PIPE;
    }
    String files = written.stream().map(Path::toString).collect(Collectors.joining(" and "));
    String done = files.isEmpty() ? "" : files + ": written, but ";
    say("%scannot write to standard output".formatted(done));
    return 1;
  }

  /** Whether standard output is a pipe or a socket, which refuses bytes only when nobody reads it. */
  private static boolean isPipe() {
    try {
      int type = (int) Files.getAttribute(Path.of("/dev/fd/1"), "unix:mode") >> 12 & 15;
      return type == 1 || type == 12;
    } catch (IOException | UnsupportedOperationException | IllegalArgumentException e) {
      return false;
    }
  }

  /** Prints an error, one line of stderr; with {@code --debug} its stack trace, too. */
  public void fail(String message, Throwable cause) {
    say(message);
    if (debug) {
      StringWriter trace = new StringWriter();
      cause.printStackTrace(new PrintWriter(trace));
      trace
          .toString()
          .lines()
          .map(line -> line.replace("\t", "    "))
          .map(Text::escape)
          .forEach(err::println);
    }
  }

  private void say(String message) {
    err.println(ErrorLine.of("kullback: " + message, words));
  }
}
