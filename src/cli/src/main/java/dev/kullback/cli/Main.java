package dev.kullback.cli;

import java.io.Console;
import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.Writer;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.IVersionProvider;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;

/**
 * Exit status: 0; 2 for wrong usage or bad input; 141 where nobody reads standard output any more, as of a program that
 * SIGPIPE ends; 1 for all else. Errors are one line on stderr.
 */
@Command(
    name = "kullback",
    description =
        "KL divergences between batches of Gaussians, diagonal or full, from and to .npy files.",
    synopsisSubcommandLabel = "COMMAND",
    footer = {
      "",
      "The kullback script has commands of its own, too:",
      "  test [MAVEN-ARG...]  Runs the test suite.",
      "  bench [ARG...]       Runs the benchmarks.",
      "  spark COMMAND...     Searches on Apache Spark.",
      "  jdk [--install]      Prints the folder of the JDK that it takes, or installs one.",
      "",
      "Examples:",
      "  kullback pairwise --mean Q.npy --std S.npy -o kl.npy",
      "  kullback pairwise --help",
    },
    versionProvider = Main.Version.class)
public final class Main {
  private static final String COMPLETION = "completion";

  private static final List<String> COMMANDS =
      List.of(
          "pairwise",
          "aligned",
          "standard",
          "topk",
          "merge",
          "within",
          "logsumexp",
          "entropy",
          "verify",
          "info",
          "demo",
          COMPLETION);

  /** The end of every help. */
  private static final String[] FOOTER = {
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
  };

  /** What the JVM makes of bytes that are no text: any name with them would become this one. */
  private static final char NOT_DECODED = '\ufffd';

  private static final int LINE = 200;
  private static final int BROKEN_PIPE = 141;

  @Option(
      names = {"-h", "--help"},
      usageHelp = true,
      scope = ScopeType.INHERIT,
      description = "Show this help.")
  boolean help;

  @Option(names = "--version", versionHelp = true, description = "Show the version.")
  boolean version;

  @Option(
      names = "--json",
      scope = ScopeType.INHERIT,
      defaultValue = "false", // or a second one would negate the first
      description = "Print the summary as one JSON object on one line.")
  boolean json;

  @Option(
      names = "--quiet",
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

  /** Outputs that are complete. */
  final List<Path> written = new ArrayList<>();

  private final PrintStream out;

  /** Whether the process has nothing else to do. */
  private boolean isProcess;

  Main(PrintStream out) {
    this.out = out;
  }

  /** Tells the library not to compile vector code to make batches with, where the process has no other use for it. */
  void avoidVectors() {
    if (isProcess) {
      System.setProperty("dev.kullback.backend", "scalar");
    }
  }

  static Main of(CommandSpec spec) {
    return (Main) spec.root().userObject();
  }

  /** Runs the command line and ends the VM. */
  public static void main(String[] args) {
    Main main = new Main(System.out);
    main.isProcess = true;
    System.exit(main.run(args, System.err));
  }

  static int run(String[] args, PrintStream out, PrintStream err) {
    return new Main(out).run(args, err);
  }

  private int run(String[] args, PrintStream err) {
    if (args.length == 1 && args[0].equals("--version")) { // in a third of the time
      out.println(versionLine());
      return end(0, err);
    }
    try {
      for (String arg : args) {
        if (arg.indexOf(NOT_DECODED) >= 0) {
          throw new UserError(
              arg + ": a name whose bytes are not UTF-8: rename the file, or link to it");
        }
      }
      return end(line(args, err).execute(args), err);
    } catch (Throwable e) { // an Error: picocli handles Exceptions only
      return report(e, err);
    }
  }

  /** With the command that is called alone, as to build them all takes half a second; with all where none is, or they are asked for. */
  CommandLine line(String[] args, PrintStream err) {
    CommandLine line = new CommandLine(this);
    boolean one = args.length > 0 && COMMANDS.contains(args[0]) && !args[0].equals(COMPLETION);
    for (String name : one ? List.of(args[0]) : COMMANDS) {
      line.addSubcommand(name, command(name));
    }
    line.setOut(new PrintWriter(out, true, out.charset()))
        .setErr(new PrintWriter(err, true, err.charset()))
        .setCaseInsensitiveEnumValuesAllowed(true)
        .setUsageHelpWidth(100)
        .setExpandAtFiles(false); // a file may be called @x
    line.setParameterExceptionHandler((e, _) -> report(e, err));
    line.setExecutionExceptionHandler((e, _, _) -> report(e, err));
    addFooter(line);
    line.getSubcommands().values().forEach(Main::addFooter);
    return line;
  }

  private static Object command(String name) {
    return switch (name) {
      case "pairwise" -> new Pairwise();
      case "aligned" -> new Aligned();
      case "standard" -> new Standard();
      case "topk" -> new TopK();
      case "merge" -> new Merge();
      case "within" -> new Within();
      case "logsumexp" -> new LogSumExp();
      case "entropy" -> new Entropy();
      case "verify" -> new VerifyCommand();
      case "info" -> new InfoCommand();
      case "demo" -> new Demo();
      case COMPLETION -> new CompletionCommand();
      default -> throw new IllegalArgumentException(name);
    };
  }

  private static void addFooter(CommandLine line) {
    List<String> footer = new ArrayList<>(List.of(line.getCommandSpec().usageMessage().footer()));
    footer.addAll(List.of(FOOTER));
    line.getCommandSpec().usageMessage().footer(footer.toArray(String[]::new));
  }

  /** On a terminal, unless it is to be quiet. */
  Progress progress(CommandSpec spec, long total) {
    return new Progress(
        quiet ? new PrintWriter(Writer.nullWriter()) : spec.commandLine().getErr(), total);
  }

  /** Puts bytes on standard output; returns whether they went there. */
  boolean write(MemorySegment bytes) {
    byte[] chunk = new byte[1 << 16];
    for (long at = 0; at < bytes.byteSize() && !out.checkError(); at += chunk.length) {
      int length = (int) Math.min(chunk.length, bytes.byteSize() - at);
      MemorySegment.copy(bytes, ValueLayout.JAVA_BYTE, at, chunk, 0, length);
      out.write(chunk, 0, length);
    }
    return !out.checkError();
  }

  /** Whether somebody would see what is put on standard output. */
  boolean isTerminal() {
    if (out != System.out) {
      return false;
    }
    return Optional.ofNullable(System.console()).filter(Console::isTerminal).isPresent()
        || standardOutput().startsWith("/dev/pts");
  }

  /** What /dev/stdout is, as far as the system tells: where stdin is none, the console is no terminal. */
  private static Path standardOutput() {
    Path descriptor = Path.of("/dev/fd/1");
    try {
      return descriptor.toRealPath();
    } catch (IOException e) {
      return descriptor;
    }
  }

  private int end(int status, PrintStream err) {
    if (!out.checkError() || status != 0) {
      return status;
    }
    if (out == System.out && isPipe()) {
      return BROKEN_PIPE;
    }
    String files = written.stream().map(Path::toString).collect(Collectors.joining(" and "));
    String done = files.isEmpty() ? "" : files + ": written, but ";
    say("%scannot write to standard output".formatted(done), err);
    return 1;
  }

  /** A pipe or socket refuses what is written only when nobody reads it. */
  private static boolean isPipe() {
    try {
      int type = (int) Files.getAttribute(Path.of("/dev/fd/1"), "unix:mode") >> 12 & 15;
      return type == 1 || type == 12;
    } catch (IOException | UnsupportedOperationException | IllegalArgumentException e) {
      return false;
    }
  }

  private static void say(String message, PrintStream err) {
    err.println(Text.fit("kullback: " + message, LINE));
  }

  int report(Throwable e, PrintStream err) {
    say(describe(e), err);
    if (debug || System.getProperty("kullback.debug") != null) {
      StringWriter trace = new StringWriter();
      e.printStackTrace(new PrintWriter(trace));
      trace
          .toString()
          .lines()
          .map(line -> line.replace("\t", "    "))
          .map(Text::escape)
          .forEach(err::println);
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
      case OutOfMemoryError _ -> "out of memory (%s): ".formatted(e.getMessage()) + memoryAdvice(e);
      case UserError _, OutputFailure _, IllegalArgumentException _, IllegalStateException _ ->
          String.valueOf(e.getMessage());
      // what the library throws of its own, of a device say: its message suffices
      case RuntimeException r
          when r.getMessage() != null && r.getClass().getName().startsWith("dev.kullback.") ->
          r.getMessage();
      default -> "unexpected " + e + "; --debug shows where";
    };
  }

  /** Inputs, for one, are not on the heap. */
  private static String memoryAdvice(Throwable e) {
    String message = String.valueOf(e.getMessage());
    return message.contains("eap space") || message.contains("GC overhead")
        ? "raise the heap, e.g. KULLBACK_JAVA_OPTS=-Xmx%dg"
            .formatted(Math.ceilDiv(Runtime.getRuntime().maxMemory(), 1L << 29))
        : "free some, or split the batch by rows";
  }

  static String version() {
    @Nullable String version = Main.class.getPackage().getImplementationVersion();
    if (version == null && Main.class.getModule().getDescriptor() != null) {
      version = Main.class.getModule().getDescriptor().rawVersion().orElse(null);
    }
    return version == null ? "unreleased" : version;
  }

  private static String versionLine() {
    return "kullback ".concat(version()); // what + compiles to would take a tenth of the whole run
  }

  static final class Version implements IVersionProvider {
    @Override
    public String[] getVersion() {
      return new String[] {versionLine()};
    }
  }
}
