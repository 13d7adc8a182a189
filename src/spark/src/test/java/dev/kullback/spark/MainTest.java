package dev.kullback.spark;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.ScaleKind;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.launcher.JavaModuleOptions;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MainTest {
  private static final Path DIGITS = Path.of("../demo/data");

  private static final String R = DIGITS.resolve("digits.parquet").toString();

  private static final String MORE =
      "\n\nMore: https://github.com/kullback/kullback/blob/main/src/docs/spark.md\n";

  @TempDir private static Path folder;

  private static Sample digits;

  private String out = "";
  private String err = "";

  @BeforeAll
  static void writeDigits() throws IOException {
    float[] mean = floats(DIGITS.resolve("digits_mean.npy"));
    float[] std = floats(DIGITS.resolve("digits_std.npy"));
    int dimension = mean.length / 1797;
    List<Sample.Member> members = new ArrayList<>();
    for (int i = 0; i < 1797; i++) {
      int from = i * dimension;
      members.add(
          new Sample.Member(
              i,
              Arrays.copyOfRange(mean, from, from + dimension),
              Arrays.copyOfRange(std, from, from + dimension)));
    }
    digits = new Sample(ScaleKind.STD, false, dimension, members);
    SparkSession spark = TestSpark.local();
    digits.first(200).dataset(spark).toDF("i", "mu", "sigma").write().parquet(file("Q.parquet"));
    digits.dataset(spark).toDF("i", "mu", "sigma").write().parquet(file("P.parquet"));
    digits.first(200).dataset(spark).write().parquet(file("some.parquet"));
  }

  /** The elements of a .npy file of version 1, little-endian. */
  private static float[] floats(Path file) throws IOException {
    ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
    bytes.position(10 + bytes.getShort(8));
    float[] values = new float[bytes.remaining() / Float.BYTES];
    bytes.asFloatBuffer().get(values);
    return values;
  }

  private static String file(String name) {
    return folder.resolve(name).toString();
  }

  private int run(String line) {
    ByteArrayOutputStream printed = new ByteArrayOutputStream();
    ByteArrayOutputStream complained = new ByteArrayOutputStream();
    int status =
        Main.run(
            line.split(" "),
            new PrintStream(printed, true, StandardCharsets.UTF_8),
            new PrintStream(complained, true, StandardCharsets.UTF_8));
    out = printed.toString(StandardCharsets.UTF_8);
    err = complained.toString(StandardCharsets.UTF_8);
    return status;
  }

  private static Dataset<Row> read(String name) {
    return TestSpark.local().read().parquet(file(name));
  }

  @Test
  void nearestDigits() throws IOException {
    String result = file("nearest.parquet");
    String some = " --queries " + file("some.parquet");
    assertThat(run("topk --references " + R + some + " -k 5 -o " + result)).isZero();
    assertThat(err).isEmpty();
    assertThat(out.lines())
        .hasSize(2)
        .first()
        .asString()
        .startsWith(
            "5 nearest by KL(q||p) of 1797 references to each of 200 queries: 3.59e+05 pairs in ");
    assertThat(out).endsWith("wrote " + result + ", a folder of Parquet files\n");
    List<Sample.Found> nearest = digits.first(200).nearest(digits, 5, false);
    assertThat(Sample.found(read("nearest.parquet"))).isEqualTo(nearest);

    // which stays as it is, unless told otherwise
    String again =
        "topk --references %s --queries %s -k 3 --id i --mean mu --std sigma --reverse-divergence --block-rows 300 -q -o "
            .formatted(file("P.parquet"), file("Q.parquet"));
    assertThat(run(again + result)).isEqualTo(2);
    assertThat(err).isEqualTo("kullback: " + result + ": is there; --overwrite replaces it\n");
    assertThat(read("nearest.parquet").count()).isEqualTo(1000);

    for (String input : new String[] {file("P.parquet"), folder.toString(), file("P.parquet/x")}) {
      assertThat(run(again + input + " --overwrite")).isEqualTo(2);
      assertThat(err).contains("give another output").hasLineCount(1);
    }
    assertThat(run(again + result + " --overwrite")).isZero();
    assertThat(out + err).isEmpty();
    assertThat(Sample.found(read("nearest.parquet")))
        .isEqualTo(digits.first(200).nearest(digits, 3, true));
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files.filter(f -> f.toString().contains("kullback-tmp"))).isEmpty();
    }
  }

  /** No input is replaced, even one named by links or wildcards, nor anything that is not this command's output. */
  @Test
  void outputsThatWouldEndSomethingElse() throws IOException {
    Path inner = Files.createDirectories(folder.resolve("in/a"));
    read("Q.parquet").coalesce(1).write().parquet(file("in/a/q"));
    Files.createSymbolicLink(folder.resolve("alias"), inner);
    for (String[] names :
        new String[][] {
          {"alias/q", "in/a/q"},
          {"in/a/q", "alias/q"},
          {"in/*/q", "in/a"},
          {"in/a/q/*.parquet", "alias/q"},
          {"in/*/q", "alias/q/x"}
        }) {
      assertThat(replace(file(names[0]), file(names[1]))).isEqualTo(2);
      assertThat(err).contains("is or holds the input " + file(names[0])).hasLineCount(1);
    }
    Files.writeString(Files.createDirectories(folder.resolve("mine")).resolve("notes.txt"), "x");
    assertThat(replace(file("Q.parquet"), file("mine"))).isEqualTo(2);
    assertThat(err).contains("files of Parquet, such as notes.txt; give another output");
    // nor Parquet files of the user's own, by whatever program
    Path own = folder.resolve("own/customers.parquet");
    Files.createDirectory(own.getParent());
    try (Stream<Path> files = Files.list(folder.resolve("in/a/q"))) {
      Files.copy(
          files.filter(f -> f.toString().endsWith(".parquet")).findFirst().orElseThrow(), own);
    }
    assertThat(replace(file("Q.parquet"), file("own"))).isEqualTo(2);
    assertThat(err).contains("files of Parquet, such as customers.parquet; give another output");
    assertThat(own).exists();
    assertThat(replace(file("P.parquet"), file("in/a/q"))).isEqualTo(2);
    assertThat(err)
        .isEqualTo(
            "kullback: "
                + file("in/a/q")
                + ": has the columns i, mu, sigma, so this command did not write it; give another output\n");
    assertThat(read("in/a/q").count()).isEqualTo(200);
    for (String within : new String[] {"sets/A.parquet", "hidden/.git"}) {
      Path one = Files.createDirectories(folder.resolve(within));
      assertThat(replace(file("Q.parquet"), one.getParent().toString())).isEqualTo(2);
      assertThat(err).contains("such as " + one.getFileName() + "; give another output");
    }
    Files.createSymbolicLink(folder.resolve("nowhere"), folder.resolve("none"));
    assertThat(replace(file("Q.parquet"), file("nowhere"))).isEqualTo(2);
    assertThat(err).contains("a link to nothing").hasLineCount(1);
    assertThat(replace(file("Q.parquet"), "/dev/zero")).isEqualTo(2);
    assertThat(err).isEqualTo("kullback: /dev/zero: is no regular file; give another output\n");
    assertThat(read("in/a/q").count()).isEqualTo(200);

    // but its own, of whatever type the ids are
    read("Q.parquet")
        .selectExpr("cast(i as string) AS i", "mu", "sigma")
        .write()
        .parquet(file("S.parquet"));
    for (String references : new String[] {"Q.parquet", "S.parquet", "Q.parquet"}) {
      assertThat(replace(file(references), file("mine/out"))).as(err).isZero();
    }

    // a link stays one, and what it names is replaced
    Files.createDirectory(folder.resolve("store"));
    Files.createSymbolicLink(folder.resolve("latest"), folder.resolve("store"));
    assertThat(replace(file("Q.parquet"), file("latest"))).isZero();
    assertThat(folder.resolve("latest")).isSymbolicLink();
    assertThat(read("store").count()).isEqualTo(200);
  }

  private int replace(String references, String output) {
    return run(
        "topk --references %s -k 1 --id i --mean mu --std sigma --quiet --overwrite -o %s"
            .formatted(references, output));
  }

  @Test
  void errorsAreOneLine() throws IOException {
    Files.writeString(
        folder.resolve("text.parquet"), "no Parquet, but longer than its magic number");
    TestSpark.local()
        .sql("select 7L as id, array(1d, 0d) as mean, array(1d, -1d) as std")
        .write()
        .parquet(file("bad.parquet"));
    assertError("no column x; there are id, mean, std", R, " -k 1 --id x");
    assertError("k must be in [1, 1797], the number of references, is 2000", R, " -k 2000");
    assertError("text.parquet: cannot be read as Parquet", file("text.parquet"), " -k 1");
    assertError("[PATH_NOT_FOUND]", file("none.parquet"), " -k 1");
    assertError("references: id 7: column std: std[1] is -1.0; ", file("bad.parquet"), " -k 1");
    assertError("Missing required option: '-k=K'; see kullback spark topk --help", R, "");
    assertError("--std", R, " -k 1 --std std --variance std");
    assertError(
        "Unknown option: '--reverse'; did you mean --reverse-divergence?; see kullback spark topk",
        R,
        " -k 1 --reverse");
  }

  /** Other formats, by the end of a name or an option. */
  @Test
  void otherFormats() {
    Dataset<Row> some = read("Q.parquet").toDF("id", "mean", "std").limit(50);
    some.write().json(file("q.json"));
    some.write().orc(file("q.orc"));
    some.write().orc(file("orc"));
    some.selectExpr("id", "to_json(mean) AS mean", "to_json(std) AS std")
        .write()
        .option("header", true)
        .csv(file("q.csv"));
    List<Row> expected = null;
    for (String name : new String[] {"q.orc", "q.json", "q.csv", "orc"}) {
      String line = "topk --references " + file(name) + " -k 2 --quiet -o " + file("of." + name);
      assertThat(run(name.equals("orc") ? line + " --format ORC" : line)).as(err).isZero();
      // floats print as the shortest decimals, which as doubles are others
      List<Row> found =
          read("of." + name).select("id", "rank", "neighbor").orderBy("id", "rank").collectAsList();
      assertThat(found).hasSize(100).isEqualTo(expected == null ? found : expected);
      expected = found;
    }
  }

  /** What can be known before the search is told before it, and nothing stays. */
  @Test
  void outputsAndMastersAreTriedFirst() throws IOException {
    Path file = Files.writeString(folder.resolve("file"), "x");
    for (String output :
        new String[] {file + "/o.parquet", file + "/a/b/o.parquet", "/proc/x/o.parquet"}) {
      assertThat(run("topk --references " + R + " -k 1 -o " + output)).isEqualTo(2);
      assertThat(err)
          .startsWith(
              "kullback: " + output + ": cannot be written: no folder can be made in file:/")
          .hasLineCount(1);
    }
    assertThat(file).hasContent("x");
    assertThat(run("topk --references " + R + " -k 9999 -o " + file("o.parquet"))).isEqualTo(2);
    String deep = file("new/deep/o.parquet");
    assertThat(run("topk --references " + file("none") + " -k 1 -o " + deep)).isEqualTo(2);
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files.map(Path::toString))
          .noneMatch(name -> name.contains("kullback-tmp") || name.endsWith("new"));
    }
    assertError(
        "--master spark://127.0.0.1:1,127.0.0.1:2: no master answers (127.0.0.1:2: Connection refused)",
        R,
        " -k 1 --master spark://127.0.0.1:1,127.0.0.1:2");
  }

  private void assertError(String message, String references, String options) {
    String line = "topk -o " + file("o.parquet") + " --references " + references + options;
    assertThat(run(line)).isEqualTo(2);
    assertThat(out).isEmpty();
    assertThat(err).startsWith("kullback: ").contains(message);
    assertThat(err.lines()).hasSize(1);
    assertThat(folder.resolve("o.parquet")).doesNotExist();
  }

  @Test
  void help() {
    assertThat(run("topk --help")).isZero();
    assertThat(out)
        .contains("--references", "--block-rows", "--master", "--overwrite", "-q, --quiet")
        .contains("--variance", "--log-variance", "--covariance", "--reverse-divergence")
        .endsWith(MORE);
    assertThat(run("--help")).isZero();
    assertThat(out).endsWith(MORE);
    assertThat(Path.of("../docs/spark.md")).exists();
    for (String option : new String[] {"-V", "--version"}) {
      assertThat(run(option)).isZero();
      assertThat(out).matches("kullback \\S+, Spark 4\\.\\S+\n");
    }
    assertThat(run("nonsense")).isEqualTo(2);
    assertThat(err.lines()).hasSize(1);
  }

  /** The launcher and the tests take the options of this Spark. */
  @Test
  void jvmOptionsAreSparks() throws IOException {
    try (Stream<String> lines = Files.lines(Path.of("jvm.options"))) {
      assertThat(lines.filter(line -> !line.startsWith("#")))
          .containsExactlyElementsOf(
              Stream.of(JavaModuleOptions.defaultModuleOptions().split(" "))
                  .filter(option -> !option.contains("java.base/sun.security.action="))
                  .toList());
    }
  }
}
