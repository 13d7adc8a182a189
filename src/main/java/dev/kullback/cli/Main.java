package dev.kullback.cli;

import java.io.PrintStream;
import java.io.PrintWriter;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.IVersionProvider;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;

/**
 * Exit status: 0; 2 for wrong usage or bad input; 1 for all else. Errors are one line on stderr.
 */
@Command(
    name = "kullback",
    description =
        "KL divergences between batches of Gaussians, diagonal or full, from and to .npy files.",
    synopsisSubcommandLabel = "COMMAND",
    subcommands = {
      Pairwise.class,
      Aligned.class,
      Standard.class,
      TopK.class,
      Within.class,
      LogSumExp.class,
      Entropy.class,
      VerifyCommand.class,
      InfoCommand.class,
      Demo.class,
      CompletionCommand.class,
    },
    versionProvider = Main.Version.class)
public final class Main {
  @Option(
      names = {"-h", "--help"},
      usageHelp = true,
      scope = ScopeType.INHERIT,
      description = "Show this help.")
  boolean help;

  @Option(names = "--version", versionHelp = true, description = "Show the version.")
  boolean version;

  @Option(
      names = "--debug",
      scope = ScopeType.INHERIT,
      description = "Show the stack trace of an error, too.")
  boolean debug = System.getProperty("kullback.debug") != null;

  Main() {}

  /** Runs the command line and ends the VM. */
  public static void main(String[] args) {
    System.exit(run(args, System.out, System.err));
  }

  static int run(String[] args, PrintStream out, PrintStream err) {
    Main main = new Main();
    CommandLine line =
        new CommandLine(main)
            .setOut(new PrintWriter(out, true, out.charset()))
            .setErr(new PrintWriter(err, true, err.charset()))
            .setCaseInsensitiveEnumValuesAllowed(true)
            .setUsageHelpWidth(100)
            .setExpandAtFiles(false); // a file may be called @x
    line.setParameterExceptionHandler((e, _) -> main.report(e, err));
    line.setExecutionExceptionHandler((e, _, _) -> main.report(e, err));
    try {
      int status = line.execute(args);
      if (out.checkError() && status == 0) {
        err.println("kullback: cannot write to standard output");
        return 1;
      }
      return status;
    } catch (Throwable e) { // an Error: picocli handles Exceptions only
      return main.report(e, err);
    }
  }

  int report(Throwable e, PrintStream err) {
    err.println("kullback: " + oneLine(describe(e)));
    if (debug) {
      e.printStackTrace(err);
    }
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
          p.getMessage()
              + "; see "
              + p.getCommandLine().getCommandSpec().qualifiedName()
              + " --help";
      case OutOfMemoryError _ -> "out of memory (" + e.getMessage() + "): raise the heap with -Xmx";
      case UserError _, IllegalArgumentException _, IllegalStateException _ ->
          String.valueOf(e.getMessage());
      // what the library throws of its own, of a device say: its message suffices
      case RuntimeException r
          when r.getMessage() != null && r.getClass().getName().startsWith("dev.kullback.") ->
          r.getMessage();
      default -> "unexpected " + e + "; --debug shows where";
    };
  }

  /** File names and headers may hold anything. */
  private static String oneLine(String text) {
    return text.codePoints()
        .mapToObj(c ->
            Character.isISOControl(c) || c == 0x2028 || c == 0x2029
                ? String.format(Locale.ROOT, "\\u%04x", c)
                : Character.toString(c))
        .collect(Collectors.joining());
  }

  static String version() {
    return Optional.ofNullable(Main.class.getPackage().getImplementationVersion())
        .or(() ->
            Optional.ofNullable(Main.class.getModule().getDescriptor())
                .flatMap(d -> d.rawVersion()))
        .orElse("unreleased");
  }

  static final class Version implements IVersionProvider {
    @Override
    public String[] getVersion() {
      return new String[] {"kullback " + version()};
    }
  }
}
