package dev.kullback.cli;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;

/**
 * What a command says of its work: lines for people, or with {@code --json} the same as one object; nothing with
 * {@code --quiet}.
 */
final class Report {
  private final Main main;
  private final PrintWriter writer;
  private final List<String> lines = new ArrayList<>();
  private final Map<String, @Nullable Object> facts = new LinkedHashMap<>();

  /** On standard output. */
  Report(CommandSpec spec) {
    this(spec, spec.commandLine().getOut());
  }

  Report(CommandSpec spec, PrintWriter writer) {
    this.writer = writer;
    main = Main.of(spec);
    if (main.json && main.quiet) {
      throw new UserError("give --json or --quiet, not both");
    }
    put("command", spec.name());
  }

  /** For a command of which nothing else remains. */
  void requireHeard() {
    if (main.quiet) {
      throw new UserError("--quiet would leave nothing of what this command tells: leave it out");
    }
  }

  void line(String line) {
    lines.add(line);
  }

  /** A member of the object, as {@link Json} has it. */
  Report put(String key, @Nullable Object value) {
    facts.put(key, value);
    return this;
  }

  /** That these outputs are there, by the options that named them. */
  void wrote(Map<String, Path> outputs) {
    main.written.addAll(outputs.values());
    outputs.forEach((option, path) -> put(option, path));
    line(
        "wrote "
            + outputs.values().stream().map(Path::toString).collect(Collectors.joining(" and ")));
  }

  /** Prints the lines so far, for a command that takes long. */
  void print() {
    if (!main.json && !main.quiet) {
      lines.forEach(line -> writer.println(Text.escape(line)));
      writer.flush();
    }
    lines.clear();
  }

  /** Prints all that is left. */
  void end() {
    print();
    if (main.json) {
      writer.println(Json.of(facts));
    }
  }
}
