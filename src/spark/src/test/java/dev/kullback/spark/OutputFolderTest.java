package dev.kullback.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.util.Progressable;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Checks what is left when a file system refuses. */
class OutputFolderTest {
  /** A store other than this machine's, where chosen renames of a whole output fail, or the deletion of the old one. */
  public static final class Flaky extends RawLocalFileSystem {
    static int renames;
    static List<Integer> failing = List.of();
    static boolean keeps;

    /** Whether another program writes a file into the old folder when it is moved aside. */
    static boolean comes;

    /** Whether the first task makes its file after the output is deleted, or a second, and the others make theirs when it waits. */
    static boolean isLate;

    static final CountDownLatch BEGUN = new CountDownLatch(1);
    static final CountDownLatch DELETED = new CountDownLatch(1);

    @Override
    public URI getUri() {
      return URI.create("flaky:///");
    }

    @Override
    public String getScheme() {
      return "flaky";
    }

    @Override
    public boolean rename(org.apache.hadoop.fs.Path from, org.apache.hadoop.fs.Path to)
        throws IOException {
      boolean isWhole = from.getParent().equals(to.getParent());
      if (comes && to.getName().endsWith("-old")) {
        Files.writeString(Path.of(from.toUri().getPath()).resolve("notes.txt"), "x");
      }
      return !(isWhole && failing.contains(++renames)) && super.rename(from, to);
    }

    @Override
    public boolean delete(org.apache.hadoop.fs.Path path, boolean recursive) throws IOException {
      boolean isDeleted =
          !(keeps && path.getName().endsWith("-old")) && super.delete(path, recursive);
      if (isLate && path.getName().endsWith("-tmp")) {
        DELETED.countDown();
      }
      return isDeleted;
    }

    @Override
    public FSDataOutputStream create(
        org.apache.hadoop.fs.Path path,
        boolean overwrites,
        int bufferSize,
        short replication,
        long blockSize,
        Progressable progress)
        throws IOException {
      if (isLate && path.getName().startsWith("part-00000")) {
        BEGUN.countDown();
        await(DELETED, 1);
      } else if (isLate) {
        await(BEGUN, 10);
      }
      return super.create(path, overwrites, bufferSize, replication, blockSize, progress);
    }

    /** Waits, also where the task is interrupted meanwhile. */
    private static void await(CountDownLatch latch, int seconds) {
      boolean isInterrupted = false;
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
      while (latch.getCount() > 0 && System.nanoTime() < end) {
        LockSupport.parkNanos(1_000_000);
        isInterrupted |= Thread.interrupted();
      }
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private final SparkSession spark = TestSpark.local();
  private final Configuration configuration = spark.sparkContext().hadoopConfiguration();

  @TempDir private Path folder;

  @BeforeEach
  void begin() throws IOException {
    configuration.setClass("fs.flaky.impl", Flaky.class, org.apache.hadoop.fs.FileSystem.class);
    Flaky.failing = List.of();
    Flaky.keeps = false;
    Flaky.comes = false;
    Flaky.isLate = false;
    output("flaky:").write(rows(1));
    Flaky.renames = 0;
  }

  private Written output(String scheme) throws IOException {
    return written(new OutputFolder(scheme + folder.resolve("out"), true, configuration));
  }

  /** Writes as the command does. */
  private interface Written {
    void write(Dataset<Row> rows) throws IOException;
  }

  private static Written written(OutputFolder output) {
    return rows -> {
      output.open();
      try {
        output.write(rows);
      } finally {
        output.close();
      }
    };
  }

  private Dataset<Row> rows(long n) {
    return spark.range(n).toDF();
  }

  private long count(Path path) {
    return spark.read().parquet(path.toString()).count();
  }

  /** Names beside the output. */
  private List<String> others() throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(f -> f.getFileName().toString()).filter(f -> !f.equals("out")).toList();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"flaky:", ""})
  void replaces(String scheme) throws IOException {
    output(scheme).write(rows(2));
    assertThat(count(folder.resolve("out"))).isEqualTo(2);
    assertThat(others()).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aRenameThatFailsLeavesWhatWasThere(int nth) throws IOException {
    Flaky.failing = List.of(nth);
    assertThatThrownBy(() -> output("flaky:").write(rows(2)))
        .isInstanceOf(IOException.class)
        .hasMessageStartingWith("cannot rename ");
    assertThat(count(folder.resolve("out"))).isEqualTo(1);
    assertThat(others()).isEmpty();
  }

  @Test
  void whatCannotBePutBackIsNamed() throws IOException {
    Flaky.failing = List.of(2, 3);
    assertThatThrownBy(() -> output("flaky:").write(rows(2)))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("out is not written; what was there is now flaky:")
        .hasMessageEndingWith(".kullback-old");
    assertThat(others()).hasSize(1);
    assertThat(count(folder.resolve(others().getFirst()))).isEqualTo(1);
  }

  @Test
  void whatCannotBeDeletedIsNamed() throws IOException {
    Flaky.keeps = true;
    assertThatThrownBy(() -> output("flaky:").write(rows(2)))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("out is written, but what it replaced cannot be deleted: flaky:");
    assertThat(count(folder.resolve("out"))).isEqualTo(2);
    assertThat(others()).singleElement().asString().endsWith(".kullback-old");
  }

  /** A task makes its file, and the folder for it, after the one beside it has failed. */
  @Test
  void aTaskThatOutlivesItsJobLeavesNothing() throws IOException {
    Flaky.isLate = true;
    Dataset<Row> bad = spark.range(0, 2, 1, 2).selectExpr("assert_true(id < 1) AS id");
    assertThatThrownBy(() -> output("flaky:").write(bad)).isInstanceOf(Exception.class);
    assertThat(Flaky.BEGUN.getCount()).isZero();
    assertThat(others()).isEmpty();
  }

  /** The job fails with an error of Spark's that no Java code declares. */
  @Test
  void aJobThatFailsLeavesWhatWasThere() throws IOException {
    Dataset<Row> bad = rows(2).selectExpr("assert_true(id < 1) AS id");
    assertThatThrownBy(() -> output("").write(bad)).isInstanceOf(Exception.class);
    assertThat(count(folder.resolve("out"))).isEqualTo(1);
    assertThat(others()).isEmpty();
  }

  @Test
  void whatAppearsMeanwhileStays() throws IOException {
    Path other = folder.resolve("other");
    Written output = written(new OutputFolder(other.toString(), false, configuration));
    Files.writeString(Files.createDirectory(other).resolve("notes.txt"), "x");
    assertThatThrownBy(() -> output.write(rows(2))).hasMessageEndingWith("has appeared meanwhile");
    Written replacing = written(new OutputFolder(other.toString(), true, configuration));
    assertThatThrownBy(() -> replacing.write(rows(2))).hasMessageContaining("such as notes.txt");
    assertThat(other.resolve("notes.txt")).hasContent("x");
    assertThat(others()).containsExactly("other");
  }

  /** A file that comes into the folder when it is already aside is not deleted with it. */
  @Test
  void whatComesIntoTheOldFolderStays() throws IOException {
    Flaky.comes = true;
    assertThatThrownBy(() -> output("flaky:").write(rows(2)))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("out is written, but what it replaced cannot be deleted: flaky:");
    assertThat(count(folder.resolve("out"))).isEqualTo(2);
    assertThat(folder.resolve(others().getFirst()).resolve("notes.txt")).hasContent("x");
  }
}
