package dev.kullback.cli.terminal;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;

/** The summary of a command: lines for people, or with {@code --json} one object; nothing with {@code --quiet}. */
public final class Report {
  private final Terminal terminal;
  private final PrintWriter writer;
  private final List<String> lines = new ArrayList<>();
  private final Map<String, @Nullable Object> facts = new LinkedHashMap<>();
  private long start;
  private String remedy = "";

  /** Makes a summary that goes to standard output. */
  public Report(CommandSpec spec) {
    this(spec, spec.commandLine().getOut());
  }

  public Report(CommandSpec spec, PrintWriter writer) {
    this.writer = writer;
    terminal = Terminal.of(spec);
    if (terminal.json && terminal.quiet) {
      throw new UserError("give --json or --quiet, not both");
    }
    String root = spec.root().name();
    put("command", spec.qualifiedName().substring(root.length() + 1)); // index query, too
    put("kullback", Terminal.version());
  }

  /** Refuses {@code --quiet}, for a command that leaves nothing but its summary. */
  public void requireHeard() {
    if (terminal.quiet) {
      throw new UserError("--quiet would leave nothing of what this command tells: leave it out");
    }
  }

  public void line(String line) {
    lines.add(line);
  }

  @SuppressWarnings("AnnotateFormatMethod") // the format is a command's own
  public void line(String format, Object... values) {
    lines.add(Text.format(format, values));
  }

  /** Sets what may make infinite values finite; empty where nothing is known. */
  public void remedy(String infinite) {
    remedy = infinite;
  }

  public String remedy() {
    return remedy;
  }

  /** Starts the clock that {@link #seconds} reads. */
  public void start() {
    start = System.nanoTime();
  }

  public double seconds() {
    return (System.nanoTime() - start) * 1e-9;
  }

  /** Adds a member of the object; {@link Json} says how values are written. */
  public Report put(String key, @Nullable Object value) {
    facts.put(key, value);
    return this;
  }

  /** Adds the names of outputs that are complete, by the options that gave them. */
  public void wrote(Map<String, Path> outputs) {
    terminal.written.addAll(outputs.values());
    outputs.forEach((option, path) -> put(option, path));
    line(
        "wrote "
            + outputs.values().stream().map(Path::toString).collect(Collectors.joining(" and ")));
  }

  /** Prints the lines so far, for a command that takes long. */
  public void print() {
    if (!terminal.json && !terminal.quiet) {
      lines.forEach(line -> writer.println(Text.escape(line)));
      writer.flush();
    }
    lines.clear();
  }

  /** Prints all that is left. */
  public void end() {
    print();
    if (terminal.json) {
      writer.println(Json.of(facts));
    }
  }
}
