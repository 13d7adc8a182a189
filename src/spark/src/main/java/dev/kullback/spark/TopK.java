package dev.kullback.spark;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.from_json;

import dev.kullback.Divergence;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.UnknownHostException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkException;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.DataFrameReader;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

@Command(
    name = "topk",
    description = {
      "Writes the K nearest references of each query: id, rank, neighbor, kl.",
      "By KL(q || p) of a query q and a reference p, in nats; ties to the lower id.",
    },
    sortOptions = false,
    footer = {
      "",
      "Example:",
      "  kullback spark topk --references R.parquet --queries Q.parquet -k 10 -o OUT.parquet",
      "",
      Main.MORE,
    })
final class TopK implements Callable<Integer> {
  /** Masters whose tasks run in this JVM. */
  private static final Pattern LOCAL = Pattern.compile("local(\\[.*])?");

  /** Masters that stand alone, one or several. */
  private static final Pattern STANDALONE = Pattern.compile("spark://(.+)");

  private static final Pattern ADDRESS = Pattern.compile("(.+):(\\d{1,5})");

  private static final int CONNECT_MILLIS = 5000;

  /** Ends of names that tell a format, before that of a compression. */
  private static final Pattern ENDING =
      Pattern.compile("\\.(parquet|orc|json|ndjson|jsonl|csv)(\\.[a-z0-9]+)?/?$");

  /** Columns of the result. */
  private static final List<String> COLUMNS = List.of("id", "rank", "neighbor", "kl");

  private static final ArrayType ARRAY = DataTypes.createArrayType(DataTypes.DoubleType);

  @Option(
      names = "--references",
      paramLabel = "R.parquet",
      required = true,
      description =
          "Gaussians p: a file or a folder of files, with columns for id, mean and std; Parquet, ORC, JSON, or CSV with a header and arrays as [0.1, 0.2].")
  String references;

  @Option(
      names = "--queries",
      paramLabel = "Q.parquet",
      description = "Gaussians q, with the same columns; default: the references.")
  @Nullable String queries;

  @Option(
      names = "--format",
      paramLabel = "FORMAT",
      description =
          "parquet, orc, json or csv of the inputs; default: by the end of their names, or parquet.")
  @Nullable String format;

  @Option(names = "-k", paramLabel = "K", required = true, description = "How many.")
  int k;

  @Option(
      names = {"-o", "--output"},
      paramLabel = "OUT.parquet",
      required = true,
      description = "The result, a folder of Parquet files.")
  String output;

  @Option(
      names = "--overwrite",
      description =
          "Replace an output that is there, a file or what this command wrote; without it, any is refused.")
  boolean overwrite;

  @Option(
      names = "--id",
      paramLabel = "COLUMN",
      defaultValue = "id",
      description = "Ids; default: ${DEFAULT-VALUE}.")
  String id;

  @Option(
      names = "--mean",
      paramLabel = "COLUMN",
      defaultValue = "mean",
      description = "Means; default: ${DEFAULT-VALUE}.")
  String mean;

  @ArgGroup Scales scales = new Scales();

  @Option(
      names = "--divergence",
      paramLabel = "NAME",
      description =
          "Another divergence than KL: reverse-kl, jeffreys, bhattacharyya, hellinger, wasserstein-2, squared-wasserstein-2, renyi:ALPHA or chernoff:ALPHA.")
  @Nullable String divergence;

  @Option(names = "--reverse-divergence", description = "By KL(p || q) instead.")
  boolean reverse;

  @Option(
      names = "--block-rows",
      paramLabel = "N",
      description = "References of a block; default: by the memory of an executor.")
  @Nullable Integer blockRows;

  @Option(
      names = "--broadcast",
      description = "Send all references to each executor, as one block.")
  boolean broadcast;

  @Option(
      names = "--master",
      paramLabel = "URL",
      description = "Spark's master; default: that of spark-submit, or local[*].")
  @Nullable String master;

  @Option(
      names = "--conf",
      paramLabel = "KEY=VALUE",
      description = "A setting of Spark; may be given several times.")
  Map<String, String> conf = new LinkedHashMap<>();

  @Option(
      names = {"-q", "--quiet"},
      description = "Print no summary and no progress.")
  boolean quiet;

  @Spec CommandSpec spec;

  /** The column of scales, by what it has. */
  static final class Scales {
    @Option(
        names = "--std",
        paramLabel = "COLUMN",
        description = "Standard deviations; default: std.")
    @Nullable String std;

    @Option(
        names = {"--variance", "--var"},
        paramLabel = "COLUMN",
        description = "Variances.")
    @Nullable String variance;

    @Option(
        names = {"--log-variance", "--logvar"},
        paramLabel = "COLUMN",
        description = "Log-variances.")
    @Nullable String logVariance;

    @Option(names = "--precision", paramLabel = "COLUMN", description = "1/variance.")
    @Nullable String precision;

    @Option(
        names = "--scale-tril",
        paramLabel = "COLUMN",
        description =
            "Lower factors of full covariances, D*D elements row by row, arrays of rows, or matrices of Spark ML.")
    @Nullable String scaleTril;

    @Option(
        names = {"--covariance", "--cov"},
        paramLabel = "COLUMN",
        description = "Full covariances, likewise.")
    @Nullable String covariance;

    String column() {
      return Stream.of(std, variance, logVariance, precision, scaleTril, covariance)
          .filter(Objects::nonNull)
          .findFirst()
          .orElse("std");
    }

    KlNeighbors of(KlNeighbors search) {
      if (variance != null) {
        return search.variance(variance);
      } else if (logVariance != null) {
        return search.logVariance(logVariance);
      } else if (precision != null) {
        return search.precision(precision);
      } else if (scaleTril != null) {
        return search.scaleTril(scaleTril);
      } else if (covariance != null) {
        return search.covariance(covariance);
      }
      return search.std(std == null ? "std" : std);
    }
  }

  @Override
  public Integer call() throws IOException {
    SparkConf settings = settings();
    checkMaster(settings.get("spark.master"));
    // by the configuration that the session will have, as its start takes longer than to find that
    // nothing can be written
    OutputFolder folder =
        new OutputFolder(output, overwrite, SparkHadoopUtil.get().newConfiguration(settings));
    folder.tryOut();
    run(session(settings), folder);
    return 0;
  }

  private SparkConf settings() {
    SparkConf settings = new SparkConf();
    settings.setIfMissing("spark.app.name", "kullback topk");
    conf.forEach(settings::set);
    if (master != null) {
      settings.setMaster(master);
    }
    settings.setIfMissing("spark.master", "local[*]");
    if (settings.get("spark.master").startsWith("local")) {
      settings.setIfMissing("spark.ui.enabled", "false");
      settings.setIfMissing(
          "spark.driver.host", "127.0.0.1"); // a machine may not know its own name
      settings.setIfMissing("spark.driver.bindAddress", "127.0.0.1");
    }
    if (LOCAL.matcher(settings.get("spark.master")).matches()) {
      settings.setIfMissing(
          "spark.executor.killOnFatalError.depth", "0"); // for a message of our own
    } else {
      scala.Option<String> jar = SparkContext.jarOfClass(Main.class);
      if (jar.isDefined()) { // executors get the jar that this is in
        settings.setIfMissing("spark.jars", jar.get());
      }
    }
    settings.setIfMissing("spark.ui.showConsoleProgress", "false"); // there is a line of our own
    return settings;
  }

  private static SparkSession session(SparkConf settings) {
    try {
      return SparkSession.builder().config(settings).getOrCreate();
    } catch (Exception e) {
      String master = settings.get("spark.master");
      if (e instanceof SparkException) { // which Scala does not declare
        throw new IllegalArgumentException("--master %s: %s".formatted(master, e.getMessage()), e);
      }
      if (e
          instanceof
          IllegalStateException) { // Spark gave up, and stopped what it then goes on with
        throw new IllegalArgumentException(
            "--master %s: it did not take the application; is it one of Spark 4.2?"
                .formatted(master),
            e);
      }
      throw e;
    }
  }

  /** Asks whether anybody answers where a standalone master should be, as Spark itself takes a minute to give up. */
  private static void checkMaster(String master) {
    Matcher hosts = STANDALONE.matcher(master);
    if (!hosts.matches()) {
      return;
    }
    String reason = "";
    for (String address : hosts.group(1).split(",", -1)) {
      Matcher parts = ADDRESS.matcher(address);
      if (!parts.matches()) {
        return; // Spark says what is wrong
      }
      try (Socket socket = new Socket()) {
        socket.connect(
            new InetSocketAddress(parts.group(1), Integer.parseInt(parts.group(2))),
            CONNECT_MILLIS);
        return;
      } catch (IOException | IllegalArgumentException e) {
        reason =
            "%s: %s"
                .formatted(
                    address, e instanceof UnknownHostException ? "no such host" : e.getMessage());
      }
    }
    throw new IllegalArgumentException(
        "--master %s: no master answers (%s)".formatted(master, reason));
  }

  private void run(SparkSession spark, OutputFolder folder) throws IOException {
    Dataset<Row> p = read(spark, references);
    folder.refuseInput(references, p);
    Dataset<Row> q = p;
    if (queries != null) {
      q = read(spark, queries);
      folder.refuseInput(queries, q);
    }
    folder.refuseOthers(spark, COLUMNS);
    folder.open();
    double seconds;
    try {
      long start = System.nanoTime();
      KlNeighbors.Prepared search = search(p).search(q, k);
      JavaSparkContext context = new JavaSparkContext(spark.sparkContext());
      try (var _ = new Described(context, search.description());
          var _ = progress(search)) {
        folder.write(search.result());
      }
      seconds = (System.nanoTime() - start) * 1e-9;
    } finally {
      folder.close();
    }
    if (!quiet) {
      summarize(spark, p.count(), q.count(), seconds);
    }
  }

  private @Nullable Progress progress(KlNeighbors.Prepared search) {
    boolean isTerminal = System.getenv("KULLBACK_STDERR_TTY") != null;
    return isTerminal && !quiet
        ? new Progress(spec.commandLine().getErr(), search.pairs(), search.done()::sum)
        : null;
  }

  private KlNeighbors search(Dataset<Row> p) {
    KlNeighbors search = scales.of(KlNeighbors.of(p).id(id).mean(mean));
    search = divergence != null ? search.divergence(Divergence.of(divergence)) : search;
    search = reverse ? search.reverse() : search;
    search = blockRows != null ? search.blockRows(blockRows) : search;
    return broadcast ? search.broadcast() : search;
  }

  private Dataset<Row> read(SparkSession spark, String file) {
    String type = format == null ? formatOf(file) : format.toLowerCase(Locale.ROOT);
    try {
      DataFrameReader reader = spark.read();
      return switch (type) {
        case "parquet" -> reader.parquet(file);
        case "orc" -> reader.orc(file);
        case "json" -> reader.json(file);
        case "csv" ->
            withArrays(reader.option("header", true).option("inferSchema", true).csv(file));
        default ->
            throw new IllegalArgumentException(
                "--format must be parquet, orc, json or csv, is " + format);
      };
    } catch (Exception e) {
      if (e instanceof SparkException) { // which Scala does not declare
        String name = type.equals("parquet") ? "Parquet" : type.toUpperCase(Locale.ROOT);
        throw new IllegalArgumentException(file + ": cannot be read as " + name, e);
      }
      throw e;
    }
  }

  /** The format by the end of a name: of a file, or a folder. */
  private static String formatOf(String file) {
    Matcher end = ENDING.matcher(file.toLowerCase(Locale.ROOT));
    return end.find() ? end.group(1).replace("ndjson", "json").replace("jsonl", "json") : "parquet";
  }

  /** Reads texts in the columns of means and scales as arrays of JSON, as CSV has no arrays of its own. */
  private Dataset<Row> withArrays(Dataset<Row> csv) {
    Dataset<Row> arrays = csv;
    for (StructField field : csv.schema().fields()) {
      boolean isUsed = field.name().equals(mean) || field.name().equals(scales.column());
      if (isUsed && field.dataType() instanceof StringType) {
        Column text = col("`" + field.name().replace("`", "``") + "`");
        arrays = arrays.withColumn(field.name(), from_json(text, ARRAY));
      }
    }
    return arrays;
  }

  private void summarize(SparkSession spark, long m, long n, double seconds) {
    double pairs = (double) n * m;
    PrintWriter out = spec.commandLine().getOut();
    out.printf(
        Locale.ROOT,
        "%d nearest by %s of %d references to each of %d queries: %.3g pairs in %.3g s, %.3g a second on %d cores%n",
        k,
        (divergence == null ? "KL" : divergence) + (reverse ? "(p||q)" : "(q||p)"),
        m,
        n,
        pairs,
        seconds,
        pairs / seconds,
        spark.sparkContext().defaultParallelism());
    out.printf("wrote %s, a folder of Parquet files%n", output);
  }
}
