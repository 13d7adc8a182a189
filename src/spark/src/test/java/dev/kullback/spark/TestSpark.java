package dev.kullback.spark;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.Collectors;
import org.apache.spark.serializer.KryoSerializer;
import org.apache.spark.sql.SparkSession;

/** The sessions of the tests: one at a time, shared by the classes that ask for the same. */
final class TestSpark {
  private static final Path TARGET = Path.of("target").toAbsolutePath();

  private TestSpark() {}

  /** Returns a session of two threads in this JVM. */
  static SparkSession local() {
    return session("local[2]");
  }

  /** Returns a session of two executors, each a JVM of its own. */
  static SparkSession cluster() {
    return session("local-cluster[2,1,2048]");
  }

  private static SparkSession session(String master) {
    SparkSession active = SparkSession.getDefaultSession().getOrElse(() -> null);
    if (active != null && !active.sparkContext().isStopped()) {
      if (active.sparkContext().master().equals(master)) {
        return active;
      }
      active.stop();
    }
    SparkSession.Builder builder =
        SparkSession.builder()
            .master(master)
            .appName("kullback-tests")
            .config("spark.ui.enabled", false)
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.warehouse.dir", TARGET.resolve("warehouse").toString())
            .config("spark.sql.extensions", KullbackExtensions.class.getName())
            .config("spark.sql.shuffle.partitions", 2)
            // a killed executor's files are missed at once
            .config("spark.shuffle.io.maxRetries", 1)
            .config("spark.shuffle.io.retryWait", "100ms");
    if (master.startsWith("local-cluster")) {
      linkJars();
      builder
          .config("spark.serializer", KryoSerializer.class.getName()) // as many clusters have it
          .config("spark.executor.memory", "1g")
          .config(
              "spark.executor.extraJavaOptions",
              "-Dlog4j2.configurationFile=dev/kullback/spark/log4j2.properties")
          .config("spark.executor.extraClassPath", classes());
    }
    return builder.getOrCreate();
  }

  /** Returns the class path of what is built here, which Spark's own jars do not have. */
  private static String classes() {
    return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
        .filter(entry -> Files.isDirectory(Path.of(entry)) || entry.contains("kullback"))
        .collect(Collectors.joining(File.pathSeparator));
  }

  /** Executors are started from the jars of SPARK_HOME, which the pom sets. */
  private static void linkJars() {
    try {
      Path jars = Files.createDirectories(Path.of(System.getenv("SPARK_HOME"), "jars"));
      String classpath = Files.readString(TARGET.resolve("classpath")).strip();
      for (String jar : classpath.split(File.pathSeparator)) {
        Path link = jars.resolve(Path.of(jar).getFileName());
        Files.deleteIfExists(link);
        Files.createSymbolicLink(link, Path.of(jar));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
