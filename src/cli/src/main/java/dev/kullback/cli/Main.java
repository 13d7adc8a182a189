package dev.kullback.cli;

import dev.kullback.cli.command.Commands;
import dev.kullback.cli.output.OutputFailure;
import dev.kullback.cli.terminal.Suggestion;
import dev.kullback.cli.terminal.Terminal;
import dev.kullback.cli.terminal.Text;
import dev.kullback.cli.terminal.UserError;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help;
import picocli.CommandLine.IHelpSectionRenderer;
import picocli.CommandLine.MissingParameterException;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.UsageMessageSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/**
 * The command line. Its exit status is 0; 2 for wrong usage or bad input; 141 where nobody reads standard output any more, as of a program
 * that SIGPIPE ends; 1 for all else. Errors are one line on stderr.
 */
@Command(
    name = "kullback",
    description =
        "KL divergences between batches of Gaussians, diagonal or full, from .npy, .npz, .safetensors, .csv or .tsv files (float16, bfloat16, float32 or float64) to .npy files.",
    synopsisSubcommandLabel = "COMMAND",
    footer = {
      "",
      "Examples:",
      "  kullback pairwise --mean Q.npy --std S.npy -o kl.npy",
      "  kullback pairwise --help",
      "",
      "Exit status:",
      "  0    Done.",
      "  1    Anything else: a full disk, no memory, a wrong result that verify found.",
      "  2    Wrong usage or bad input.",
      "  141  Nobody reads standard output any more.",
      "",
      "Environment:",
      "  KULLBACK_JAVA_HOME   The JDK to use, 25 or later.",
      "  KULLBACK_JAVA_OPTS   Further options of the JVM, such as -Xmx8g.",
    })
public final class Main {
  /** The end of every help, after what concerns the command. */
  private static final List<String> FOOTER =
      List.of("", "More: https://github.com/kullback/kullback/blob/main/src/docs/command-line.md");

  /** What an option takes, by its type. */
  private static final Map<Class<?>, String> NUMBERS =
      Map.of(
          int.class, "a whole number below 2^31",
          Integer.class, "a whole number below 2^31",
          long.class, "a whole number below 2^63",
          Long.class, "a whole number below 2^63",
          double.class, "a number",
          Double.class, "a number");

  /** A width at which no line of help is broken. */
  private static final int UNBROKEN = 10_000;

  /** The character that the JVM makes of bytes that are no text; different names with such bytes become one. */
  private static final char NOT_DECODED = '\ufffd';

  @Mixin final Terminal terminal;

  Main(PrintStream out, PrintStream err, String... args) {
    terminal = new Terminal(out, err, args);
  }

  /** Runs the command line and ends the VM. */
  public static void main(String[] args) {
    if (!isVersion(args)) {
      Thread.ofPlatform().daemon().start(Log::keepWarnings);
    }
    System.exit(run(args, System.out, System.err));
  }

  /** The library's log, of which a user sees warnings alone; finding the logger takes 20 ms, so another thread does. */
  private static final class Log {
    /** Kept, as the level goes with it. */
    private static final Logger LIBRARY = Logger.getLogger("dev.kullback");

    private Log() {}

    static void keepWarnings() {
      if (System.getProperty("java.util.logging.config.file") == null
          && System.getProperty("java.util.logging.config.class") == null) {
        LIBRARY.setLevel(Level.WARNING);
      }
    }
  }

  /** Runs the command line; returns its exit status. */
  public static int run(String[] args, PrintStream out, PrintStream err) {
    if (isVersion(args)) { // in a third of the time
      out.println(versionLine());
      return new Terminal(out, err).end(0);
    }
    return new Main(out, err, args).run(args);
  }

  private static boolean isVersion(String[] args) {
    return args.length == 1 && List.of("-V", "--version").contains(args[0]);
  }

  private int run(String[] args) {
    try {
      for (String arg : args) {
        if (arg.indexOf(NOT_DECODED) >= 0) {
          throw new UserError(
              arg + ": a name whose bytes are not UTF-8: rename the file, or link to it");
        }
      }
      return terminal.end(line(args).execute(args));
    } catch (Throwable e) { // an Error: picocli handles Exceptions only
      return report(e);
    }
  }

  /** Makes the parser, with the called command alone: to build them all takes half a second. Help and completion need all. */
  CommandLine line(String[] args) {
    CommandLine line = new CommandLine(this);
    add(line, Commands.all(), args, 0);
    line.setOut(new PrintWriter(terminal.out, true, terminal.out.charset()))
        .setErr(new PrintWriter(terminal.err, true, terminal.err.charset()))
        .setCaseInsensitiveEnumValuesAllowed(true)
        .setUsageHelpWidth(100)
        .setExpandAtFiles(false) // a file may be called @x
        .registerConverter(Path.class, Main::path);
    line.setParameterExceptionHandler((e, _) -> report(e));
    line.setExecutionExceptionHandler((e, _, _) -> report(e));
    line.getCommandSpec().version(versionLine());
    finishHelp(line);
    return line;
  }

  /** Adds the one of the commands that is called, as the word at {@code at}, or all where that is none of them. */
  private static void add(CommandLine to, Map<String, Class<?>> commands, String[] args, int at) {
    boolean one =
        args.length > at && commands.containsKey(args[at]) && !args[at].equals(Commands.COMPLETION);
    for (String name : one ? List.of(args[at]) : commands.keySet()) {
      CommandLine command = new CommandLine(commands.get(name));
      Commands.hideRefused(name, command);
      add(command, Commands.below(name), args, at + 1);
      to.addSubcommand(name, command);
    }
    if (at == 0 && !one) {
      Commands.addOfTheScript(to);
    }
  }

  /** Returns a path; of no name, as of a variable of the shell that is not set, it would be the folder. */
  private static Path path(String name) {
    if (name.isEmpty()) {
      throw new CommandLine.TypeConversionException("it is empty: give a name");
    }
    return Path.of(name);
  }

  private static String versionLine() {
    return "kullback "
        .concat(Terminal.version()); // what + compiles to would take a tenth of the run
  }

  /** Adds the footer, and breaks lines between words; picocli would break them inside file names. */
  private static void finishHelp(CommandLine line) {
    List<String> footer = new ArrayList<>(List.of(line.getCommandSpec().usageMessage().footer()));
    footer.addAll(FOOTER);
    line.getCommandSpec().usageMessage().footer(footer.toArray(String[]::new));
    line.getHelpSectionMap().replaceAll((key, section) -> help -> wrapped(key, section, help));
    line.getSubcommands().values().forEach(Main::finishHelp);
  }

  private static String wrapped(String key, IHelpSectionRenderer section, Help help) {
    UsageMessageSpec usage = help.commandSpec().usageMessage();
    int width = usage.width();
    usage.width(UNBROKEN);
    String text = section.render(help);
    usage.width(width);
    boolean isSynopsis = key.equals(UsageMessageSpec.SECTION_KEY_SYNOPSIS); // behind its heading
    return Text.wrap(text, isSynopsis ? width - help.synopsisHeading().length() : width);
  }

  int report(Throwable e) {
    terminal.fail(describe(e), e);
    return isUserError(e) ? 2 : 1;
  }

  private static boolean isUserError(Throwable e) {
    return e instanceof UserError
        || e instanceof ParameterException
        || e instanceof IllegalArgumentException; // the library's word for bad input
  }

  private static String describe(Throwable e) {
    return switch (e) {
      case ParameterException p ->
          message(p) + "; see " + p.getCommandLine().getCommandSpec().qualifiedName() + " --help";
      case OutOfMemoryError memory ->
          "out of memory (%s): ".formatted(memory.getMessage()) + memoryAdvice(memory);
      case UserError _, OutputFailure _, IllegalArgumentException _, IllegalStateException _ ->
          String.valueOf(e.getMessage());
      // what the library throws of its own, of a device say: its message suffices
      case RuntimeException r
          when r.getMessage() != null && r.getClass().getName().startsWith("dev.kullback.") ->
          r.getMessage();
      default -> "unexpected " + e + "; --debug shows where";
    };
  }

  /** Returns what is wrong with a command line; words that nothing takes may be why an option is missing. */
  private static String message(ParameterException e) {
    if (e.getValue() != null
        && e.getArgSpec() instanceof OptionSpec o
        && o.converters().length == 0) { // one of ours has a message
      String wanted =
          o.auxiliaryTypes()[0].isEnum()
              ? "one of " + String.join(", ", o.completionCandidates()).toLowerCase(Locale.ROOT)
              : NUMBERS.get(o.auxiliaryTypes()[0]);
      if (wanted != null) {
        return "%s is %s: give %s".formatted(o.longestName(), e.getValue(), wanted);
      }
    }
    CommandLine command = e.getCommandLine();
    List<String> unmatched =
        switch (e) {
          case UnmatchedArgumentException u -> u.getUnmatched();
          case MissingParameterException _ -> command.getUnmatchedArguments();
          default -> List.of();
        };
    return unmatched.isEmpty()
        ? String.valueOf(e.getMessage())
        : Suggestion.unmatched(command, unmatched);
  }

  /** Tells heap from other memory, where inputs are for one. */
  private static String memoryAdvice(OutOfMemoryError e) {
    String message = String.valueOf(e.getMessage());
    return message.contains("eap space")
            || message.contains("GC overhead")
            || message.contains("direct buffer memory") // as much as the heap, by default
        ? "raise the heap, e.g. KULLBACK_JAVA_OPTS=-Xmx%dg"
            .formatted(Math.ceilDiv(Runtime.getRuntime().maxMemory(), 1L << 29))
        : "free some, or split the batch by rows";
  }
}
