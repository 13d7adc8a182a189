import com.sun.management.OperatingSystemMXBean;
import dev.kullback.DiagonalGaussians;
import dev.kullback.KlEngine;
import dev.kullback.spark.KlNeighbors;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * Processor time of a search on Spark, Parquet in and out, over that of the engine alone: the 10 nearest of N Gaussians of 32
 * dimensions to each of N others, in rounds. The arguments are N and the number of rounds; bench/README.md has the command.
 */
final class SparkCost {
  private static final int DIMENSION = 32;
  private static final int NEAREST = 10;

  private SparkCost() {}

  public static void main(String[] arguments) throws IOException {
    int n = Integer.parseInt(arguments[0]);
    int rounds = Integer.parseInt(arguments[1]);
    Data queries = Data.random(n, 7);
    Data references = Data.random(n, 8);
    Path folder = Files.createTempDirectory("spark-cost");
    SparkSession spark =
        SparkSession.builder()
            .master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.warehouse.dir", folder.resolve("warehouse").toString())
            .getOrCreate();
    try (KlEngine engine = KlEngine.builder().threads(2).build()) {
      String q = folder.resolve("queries.parquet").toString();
      String p = folder.resolve("references.parquet").toString();
      String output = folder.resolve("out.parquet").toString();
      queries.rows(spark).repartition(6).write().parquet(q);
      references.rows(spark).repartition(6).write().parquet(p);
      for (int round = 1; round <= rounds; round++) {
        double alone =
            seconds(() -> {
              engine.nearest(queries.gaussians(), references.gaussians(), NEAREST);
            });
        double job =
            seconds(() -> {
              KlNeighbors.of(spark.read().parquet(p))
                  .nearest(spark.read().parquet(q), NEAREST)
                  .write()
                  .mode("overwrite")
                  .parquet(output);
            });
        System.out.printf(
            "round %d: engine %.1f s, Spark %.1f s of CPU: %.3f%n", round, alone, job, job / alone);
      }
    } finally {
      spark.stop();
      try (var files = Files.walk(folder)) {
        files.sorted((a, b) -> b.compareTo(a)).forEach(file -> file.toFile().delete());
      }
    }
  }

  private record Data(float[] mean, float[] std) {
    static Data random(int n, long seed) {
      Random random = new Random(seed);
      Data data = new Data(new float[n * DIMENSION], new float[n * DIMENSION]);
      for (int k = 0; k < data.mean.length; k++) {
        data.mean[k] = (float) random.nextGaussian();
        data.std[k] = (float) Math.exp(0.3 * random.nextGaussian());
      }
      return data;
    }

    DiagonalGaussians gaussians() {
      return DiagonalGaussians.ofStd(mean, std, DIMENSION);
    }

    Dataset<Row> rows(SparkSession spark) {
      var floats = DataTypes.createArrayType(DataTypes.FloatType, false);
      StructType type =
          new StructType()
              .add("id", DataTypes.LongType, false)
              .add("mean", floats, false)
              .add("std", floats, false);
      List<Row> rows = new ArrayList<>();
      for (int i = 0; i < mean.length / DIMENSION; i++) {
        rows.add(RowFactory.create((long) i, row(mean, i), row(std, i)));
      }
      return spark.createDataset(rows, Encoders.row(type));
    }

    private static Float[] row(float[] values, int i) {
      Float[] row = new Float[DIMENSION];
      for (int h = 0; h < DIMENSION; h++) {
        row[h] = values[i * DIMENSION + h];
      }
      return row;
    }
  }

  /** CPU seconds of the whole process, its compilers and collectors included. */
  private static double seconds(Runnable work) {
    var system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    long start = system.getProcessCpuTime();
    work.run();
    return (system.getProcessCpuTime() - start) * 1e-9;
  }
}
