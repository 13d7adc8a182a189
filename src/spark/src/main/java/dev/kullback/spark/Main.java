package dev.kullback.spark;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.charset.Charset;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.spark.package$;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.SparkSession;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.UnmatchedArgumentException;

/**
 * The command {@code ./kullback spark}, and the main class for {@code spark-submit}. Exit status: 0; 2 for wrong usage or
 * bad input; 1 for all else. Errors are one line on stderr.
 *
 * @since 0.1.0
 */
@Command(
    name = "kullback spark",
    description = "Nearest Gaussians on Apache Spark, from and to Parquet.",
    synopsisSubcommandLabel = "COMMAND",
    subcommands = TopK.class,
    footer = {"", Main.MORE})
public final class Main {
  /** The end of every help. */
  static final String MORE =
      "More: https://github.com/kullback/kullback/blob/main/src/docs/spark.md";

  /** The longest line of Spark's own; what is ours is short, or all of use. */
  private static final int LINE = 200;

  @Option(
      names = {"-h", "--help"},
      usageHelp = true,
      scope = ScopeType.INHERIT,
      description = "Show this help.")
  boolean help;

  @Option(
      names = {"-V", "--version"},
      versionHelp = true,
      description = "Show the version, and that of Spark.")
  boolean version;

  @Option(
      names = "--debug",
      scope = ScopeType.INHERIT,
      description = "Show the stack trace of an error, too.")
  boolean debug;

  private Main() {}

  /**
   * Runs the command line, and ends the VM with a status that is not 0.
   *
   * @param args see {@code kullback spark --help}
   */
  public static void main(String[] args) {
    String descriptor = System.getenv("KULLBACK_STDERR_FD");
    if (descriptor != null) {
      System.setErr(open(Integer.parseInt(descriptor)));
    }
    int status = run(args, System.out, System.err);
    SparkSession.getDefaultSession().foreach(Main::stop);
    System.out.flush();
    if (status != 0) { // a cluster's manager takes an exit by 0 for one before the end
      System.exit(status);
    }
  }

  private static @Nullable Void stop(SparkSession spark) {
    spark.stop();
    return null;
  }

  /** The stderr that the {@code kullback} script does not filter; Spark's JVM options open java.io for this. */
  private static PrintStream open(int descriptor) {
    try {
      var constructor = FileDescriptor.class.getDeclaredConstructor(int.class);
      constructor.setAccessible(true);
      var file = new FileOutputStream(constructor.newInstance(descriptor));
      return new PrintStream(file, true, Charset.forName(System.getProperty("stderr.encoding")));
    } catch (ReflectiveOperationException | RuntimeException e) {
      return System.err; // through the filter, line by line: right, only later
    }
  }

  static int run(String[] args, PrintStream out, PrintStream err) {
    Main main = new Main();
    CommandLine line =
        new CommandLine(main)
            .setOut(new PrintWriter(out, true, out.charset()))
            .setErr(new PrintWriter(err, true, err.charset()))
            .setUsageHelpWidth(100)
            .setExpandAtFiles(false); // a file may be called @x
    String own = Main.class.getPackage().getImplementationVersion();
    line.getCommandSpec()
        .version(
            "kullback %s, Spark %s"
                .formatted(own == null ? "unreleased" : own, package$.MODULE$.SPARK_VERSION()));
    line.setParameterExceptionHandler((e, _) -> main.report(e, err));
    line.setExecutionExceptionHandler((e, _, _) -> main.report(e, err));
    try {
      return args.length == 0 ? line.execute("--help") : line.execute(args);
    } catch (Throwable e) { // an Error: picocli handles Exceptions only
      return main.report(e, err);
    }
  }

  private int report(Throwable e, PrintStream err) {
    Optional<Throwable> users = causes(e).filter(Main::isUsers).findFirst();
    Throwable told = users.orElseGet(() -> causes(e).reduce(e, (_, last) -> last));
    err.println("kullback: " + line(told));
    if (debug) {
      e.printStackTrace(err);
    }
    return users.isPresent() ? 2 : 1;
  }

  private static Stream<Throwable> causes(Throwable e) {
    return Stream.iterate(e, cause -> cause != null, Throwable::getCause);
  }

  /** Whether the user is at fault: an exception of a task about bad rows arrives as a cause of Spark's own. */
  private static boolean isUsers(Throwable e) {
    return e instanceof IllegalArgumentException
        || e instanceof ParameterException
        || e instanceof AnalysisException;
  }

  /** Tells the one option that begins with what is no option; nothing of other errors. */
  private static String renamed(ParameterException e) {
    if (!(e instanceof UnmatchedArgumentException unmatched)) {
      return "";
    }
    String word = unmatched.getUnmatched().getFirst();
    List<String> longer =
        unmatched.getSuggestions().stream().filter(name -> name.startsWith(word)).toList();
    return longer.size() == 1 ? "; did you mean " + longer.getFirst() + "?" : "";
  }

  private static String line(Throwable e) {
    String message =
        switch (e) {
          case ParameterException p ->
              p.getMessage()
                  + renamed(p)
                  + "; see "
                  + p.getCommandLine().getCommandSpec().qualifiedName()
                  + " --help";
          case IllegalArgumentException i -> String.valueOf(i.getMessage());
          case AnalysisException a ->
              String.valueOf(a.getMessage()).replaceFirst(" SQLSTATE: \\w+$", "");
          case OutOfMemoryError m ->
              "out of memory (%s): raise the heap, e.g. KULLBACK_JAVA_OPTS=-Xmx%dg, or give a smaller --block-rows"
                  .formatted(
                      m.getMessage(), Math.ceilDiv(Runtime.getRuntime().maxMemory(), 1L << 29));
          default -> "unexpected " + e + "; --debug shows where";
        };
    String first = message.lines().findFirst().orElse("").replaceAll("\\p{Cntrl}", "?");
    boolean isOurs = e instanceof IllegalArgumentException || e instanceof ParameterException;
    return isOurs || first.length() <= LINE ? first : first.substring(0, LINE) + "…";
  }
}
