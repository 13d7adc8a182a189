import com.sun.management.OperatingSystemMXBean;
import dev.kullback.DiagonalGaussians;
import dev.kullback.KlEngine;
import dev.kullback.spark.KlNeighbors;
import dev.kullback.spark.KullbackExtensions;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.BiFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF4;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.collection.Seq;

/**
 * What a search on Spark costs over what it should cost, in rounds, Parquet in and out. The arguments are what to measure, N, D and
 * the number of rounds; bench/README.md has the commands and what each of them compares.
 */
final class SparkCost {
  private static final int NEAREST = 10;

  /** Jobs before the first round, and their rows, for the JIT compilers: what they take of a job falls for some 30 of them. */
  private static final int WARM_JOBS = 25;

  private static final int WARM_ROWS = 5000;

  private SparkCost() {}

  public static void main(String[] arguments) throws IOException {
    String what = arguments[0];
    int n = Integer.parseInt(arguments[1]);
    int d = Integer.parseInt(arguments[2]);
    int rounds = Integer.parseInt(arguments[3]);
    Data queries = Data.random(n, d, 7);
    Data references = Data.random(n, d, 8);
    Path folder = Files.createTempDirectory("spark-cost");
    SparkSession spark =
        SparkSession.builder()
            .master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.extensions", KullbackExtensions.class.getName())
            .config("spark.sql.shuffle.partitions", 2)
            .config("spark.sql.warehouse.dir", folder.resolve("warehouse").toString())
            .getOrCreate();
    spark.udf().register("plain_kl", (UDF4<Seq<Float>, Seq<Float>, Seq<Float>, Seq<Float>, Double>) SparkCost::plain, DataTypes.DoubleType);
    try {
      String q = folder.resolve("queries.parquet").toString();
      String p = folder.resolve("references.parquet").toString();
      String output = folder.resolve("out.parquet").toString();
      queries.rows(spark).repartition(6).write().parquet(q);
      references.rows(spark).repartition(6).write().parquet(p);
      spark.read().parquet(q).createOrReplaceTempView("q");
      spark.read().parquet(p).createOrReplaceTempView("p");
      spark.read().parquet(p).createOrReplaceTempView("g");
      switch (what) {
        case "search" -> cpu(spark, queries, references, q, p, output, rounds, (search, _) -> search);
        case "blocks" -> cpu(spark, queries, references, q, p, output, rounds, (search, m) -> search.blockRows(m / 6));
        case "sql" -> sql(spark, queries, references, output, rounds);
        case "pair" -> pair(spark, rounds);
        case "filtered" -> join(spark, rounds, FILTERED, FILTERED_OWN);
        case "small" -> {
          spark.read().parquet(q).where("id < 50").coalesce(1).write().parquet(folder + "/q50");
          spark.read().parquet(p).where("id < 200").coalesce(1).write().parquet(folder + "/p200");
          spark.read().parquet(folder + "/q50").createOrReplaceTempView("q");
          spark.read().parquet(folder + "/p200").createOrReplaceTempView("p");
          join(spark, rounds, JOIN, JOIN);
        }
        default -> throw new IllegalArgumentException(what);
      }
    } finally {
      spark.stop();
      try (var files = Files.walk(folder)) {
        files.sorted((a, b) -> b.compareTo(a)).forEach(file -> file.toFile().delete());
      }
    }
  }

  private static final String JOIN =
      "SELECT q.id, p.id AS neighbor, KL(q.mean, q.std, p.mean, p.std) AS kl FROM q JOIN p"
          + " EXACT NEAREST 10 BY DISTANCE KL(q.mean, q.std, p.mean, p.std)";
  private static final String FILTERED =
      "SELECT a.id, b.id AS neighbor, KL(a.mean, a.std, b.mean, b.std) AS kl FROM g a JOIN g b"
          + " EXACT NEAREST 10 BY DISTANCE KL(a.mean, a.std, b.mean, b.std) WHERE a.id = 7";
  /** As Spark's own plan cannot push the predicate below its aggregate, it is given below. */
  private static final String FILTERED_OWN =
      "SELECT a.id, b.id AS neighbor, KL(a.mean, a.std, b.mean, b.std) AS kl"
          + " FROM (SELECT * FROM g WHERE id = 7) a JOIN g b"
          + " EXACT NEAREST 10 BY DISTANCE KL(a.mean, a.std, b.mean, b.std)";

  /** Processor time of a search over that of the engine. */
  private static void cpu(
      SparkSession spark,
      Data queries,
      Data references,
      String q,
      String p,
      String output,
      int rounds,
      BiFunction<KlNeighbors, Integer, KlNeighbors> options) {
    String few = " WHERE id < " + WARM_ROWS;
    for (int job = 0; job < WARM_JOBS; job++) {
      options
          .apply(KlNeighbors.of(spark.sql("SELECT * FROM p" + few)), WARM_ROWS)
          .nearest(spark.sql("SELECT * FROM q" + few), NEAREST)
          .write()
          .mode("overwrite")
          .parquet(output);
    }
    try (KlEngine engine = KlEngine.builder().threads(2).build()) {
      for (int round = 1; round <= rounds; round++) {
        double alone = cpu(() -> engine.nearest(queries.gaussians(), references.gaussians(), NEAREST));
        double job =
            cpu(() ->
                options.apply(KlNeighbors.of(spark.read().parquet(p)), references.size())
                    .nearest(spark.read().parquet(q), NEAREST)
                    .write()
                    .mode("overwrite")
                    .parquet(output));
        System.out.printf(
            "round %d: engine %.1f s, Spark %.1f s of CPU: %.3f%n", round, alone, job, job / alone);
      }
    }
  }

  private static void sql(
      SparkSession spark, Data queries, Data references, String output, int rounds) {
    String few = "(SELECT * FROM %s WHERE id < " + WARM_ROWS + ") %<s";
    String small = JOIN.replace("FROM q JOIN p", "FROM " + few.formatted("q") + " JOIN " + few.formatted("p"));
    for (int job = 0; job < WARM_JOBS; job++) {
      spark.sql(small.replace("KL(", "kl_divergence(")).write().mode("overwrite").parquet(output);
    }
    try (KlEngine engine = KlEngine.builder().threads(2).build()) {
      for (int round = 1; round <= rounds; round++) {
        double alone = cpu(() -> engine.nearest(queries.gaussians(), references.gaussians(), NEAREST));
        double job =
            cpu(() ->
                spark.sql(JOIN.replace("KL(", "kl_divergence(")).write().mode("overwrite").parquet(output));
        System.out.printf(
            "round %d: engine %.1f s, SQL %.1f s of CPU: %.3f%n", round, alone, job, job / alone);
      }
    }
  }

  /** Processor time of a pair of a cross join by the function, by a UDF, and by nothing but reading the arrays. */
  private static void pair(SparkSession spark, int rounds) {
    String cross =
        "SELECT sum(%s) FROM (SELECT * FROM q WHERE id < 1000) q CROSS JOIN (SELECT * FROM p WHERE id < 1000) p";
    for (int round = 1; round <= rounds; round++) {
      double[] us = new double[3];
      String[] functions = {"kl_divergence(q.mean, q.std, p.mean, p.std)", "plain_kl(q.mean, q.std, p.mean, p.std)", "size(q.mean) + size(p.mean) + size(q.std) + size(p.std)"};
      Arrays.setAll(us, f -> cpu(() -> spark.sql(cross.formatted(functions[f])).collect()));
      System.out.printf(
          "round %d: kl_divergence %.2f, a UDF %.2f, no function %.2f us a pair%n", round, us[0], us[1], us[2]);
    }
  }

  /** Time of a join over Spark's own plan, with the function and with a UDF. */
  private static void join(SparkSession spark, int rounds, String text, String own) {
    String[] texts = {
      text.replace("KL(", "kl_divergence("),
      own.replace("DISTANCE KL(", "DISTANCE 0 + kl_divergence(").replace("KL(", "kl_divergence("),
      own.replace("KL(", "plain_kl(")
    };
    List<double[]> all = new ArrayList<>();
    for (int round = 1; round <= rounds; round++) {
      double[] ms = new double[3];
      Arrays.setAll(ms, t -> {
        long start = System.nanoTime();
        spark.sql(texts[t]).collect();
        return (System.nanoTime() - start) * 1e-6;
      });
      all.add(ms);
      if (round % 5 == 0 || round == rounds) {
        System.out.printf("round %d: search %.0f ms, Spark's own plan %.0f ms, with a UDF %.0f ms%n", round, ms[0], ms[1], ms[2]);
      }
    }
    List<double[]> warm = all.subList(all.size() / 2, all.size());
    double[] median = new double[3];
    Arrays.setAll(median, t -> warm.stream().mapToDouble(ms -> ms[t]).sorted().skip(warm.size() / 2).findFirst().getAsDouble());
    System.out.printf("medians of the last half: %.0f, %.0f, %.0f ms: %.2f and %.2f%n", median[0], median[1], median[2], median[0] / median[1], median[0] / median[2]);
  }

  /** What a user would write. */
  private static double plain(Seq<Float> qm, Seq<Float> qs, Seq<Float> pm, Seq<Float> ps) {
    double sum = 0;
    for (int h = 0; h < qm.length(); h++) {
      double r = qs.apply(h) / (double) ps.apply(h);
      double y = (qm.apply(h) - (double) pm.apply(h)) / ps.apply(h);
      sum += 0.5 * (r * r + y * y - 1) - Math.log(r);
    }
    return sum;
  }

  private record Data(float[] mean, float[] std, int dimension) {
    static Data random(int n, int dimension, long seed) {
      Random random = new Random(seed);
      Data data = new Data(new float[n * dimension], new float[n * dimension], dimension);
      for (int k = 0; k < data.mean.length; k++) {
        data.mean[k] = (float) random.nextGaussian();
        data.std[k] = (float) Math.exp(0.3 * random.nextGaussian());
      }
      return data;
    }

    int size() {
      return mean.length / dimension;
    }

    DiagonalGaussians gaussians() {
      return DiagonalGaussians.ofStd(mean, std, dimension);
    }

    Dataset<Row> rows(SparkSession spark) {
      var floats = DataTypes.createArrayType(DataTypes.FloatType, false);
      StructType type =
          new StructType()
              .add("id", DataTypes.LongType, false)
              .add("mean", floats, false)
              .add("std", floats, false);
      List<Row> rows = new ArrayList<>();
      for (int i = 0; i < size(); i++) {
        rows.add(RowFactory.create((long) i, row(mean, i), row(std, i)));
      }
      return spark.createDataset(rows, Encoders.row(type));
    }

    private Float[] row(float[] values, int i) {
      Float[] row = new Float[dimension];
      for (int h = 0; h < dimension; h++) {
        row[h] = values[i * dimension + h];
      }
      return row;
    }
  }

  /** CPU seconds of the whole process, its compilers and collectors included. */
  private static double cpu(Runnable work) {
    var system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    long start = system.getProcessCpuTime();
    work.run();
    return (system.getProcessCpuTime() - start) * 1e-9;
  }
}
