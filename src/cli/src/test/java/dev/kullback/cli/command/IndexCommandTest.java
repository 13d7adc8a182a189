package dev.kullback.cli.command;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.DiagonalGaussians;
import dev.kullback.FullGaussians;
import dev.kullback.Gaussians;
import dev.kullback.KlIndex;
import dev.kullback.cli.Main;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.output.NewFolder;
import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.JsonReader;
import dev.kullback.cli.testing.NpyFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongUnaryOperator;
import java.util.regex.Pattern;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The commands of index, against topk and within on the same files, where transcripts cannot tell. */
class IndexCommandTest extends CommandFixture {
  private static final Path DATA = Path.of(System.getProperty("basedir", "."), "../demo/data");
  private static final String Q = " --mean q.npy --std s.npy ";
  private static final String P = " --mean p.npy --std t.npy ";

  /** Ascending with the rows of p.npy, so that ties are as in topk. */
  private static final long[] IDS = {-9_000_000_000L, -2, 0, 7, 1L << 40};

  private Path index;

  @BeforeEach
  void writeIds() throws IOException {
    index = folder.resolve("index");
    ids("j.npy", IDS);
  }

  private void ids(String name, long... values) throws IOException {
    ByteBuffer data =
        ByteBuffer.allocate(Long.BYTES * values.length).order(ByteOrder.LITTLE_ENDIAN);
    LongStream.of(values).forEach(data::putLong);
    byte[] bytes = NpyFiles.bytes(1, NpyFiles.dict("<i8", false, values.length), data.array());
    NpyFiles.write(folder.resolve(name), bytes);
  }

  /** The command line of an index command: FOLDER is the index, OUT a folder of outputs. */
  private String line(String commandLine) {
    return "index "
        + commandLine
            .replace("FOLDER", index.toString())
            .replace("OUT", folder.resolve("out").toString());
  }

  private String done(String commandLine) {
    Result result = run(line(commandLine));
    assertThat(result.err()).isEmpty();
    assertThat(result.status()).isZero();
    return result.out();
  }

  private void create() {
    assertThat(done("create FOLDER --ids j.npy" + P))
        .matches("created \\S+index: 5 Gaussians of dimension 6, in \\S+ s\\R");
  }

  private long[] longs(String name, long... shape) throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      Npy.Array array = Npy.readIntegers(folder.resolve(name), arena);
      assertThat(array.shape()).containsExactly(shape);
      return array.data().toArray((ValueLayout.OfLong) array.element());
    }
  }

  private long[] topk(String commandLine, LongUnaryOperator id, long... shape) throws IOException {
    succeed("topk --exact --indices want.npy -o wantv.npy " + commandLine);
    try (Arena arena = Arena.ofConfined()) {
      Npy.Array array = Npy.readInts(folder.resolve("want.npy"), arena);
      assertThat(array.shape()).containsExactly(shape);
      return Arrays.stream(array.data().toArray(ValueLayout.JAVA_INT))
          .mapToLong(j -> id.applyAsLong(j))
          .toArray();
    }
  }

  private Map<String, String> files() throws IOException {
    Map<String, String> files = new TreeMap<>();
    try (Stream<Path> all = Files.list(index)) {
      for (Path file : all.toList()) {
        files.put(file.getFileName().toString(), Arrays.toString(Files.readAllBytes(file)));
      }
    }
    return files;
  }

  private Path segment() throws IOException {
    try (Stream<Path> all = Files.list(index)) {
      return all.filter(f -> f.toString().endsWith(".bin")).findFirst().orElseThrow();
    }
  }

  /** One line, status 2, the index as it was. */
  private void assertRefused(String commandLine, String... messages) throws IOException {
    Map<String, String> before = files();
    assertUserError(line(commandLine), messages);
    assertThat(files()).isEqualTo(before);
  }

  // --- searches

  @ParameterizedTest
  @ValueSource(strings = {"", "--divergence jeffreys"})
  void findsWhatPointsFind(String divergence) throws IOException {
    save("x.npy", "<f4", N, qMean);
    done("create FOLDER --ids j.npy" + P + divergence);
    String points = " --points x.npy ";
    String p = " --p-mean p.npy --p-std t.npy ";
    assertThat(done("query FOLDER -k 3 --indices i.npy -o o.npy" + points))
        .startsWith("smallest mahalanobis(x_i, p)^2: 7 x 3 of 5, D = 6, float64");
    long[] want = topk("-k 3" + points + p, j -> IDS[(int) j], N, 3);
    assertThat(longs("i.npy", N, 3)).containsExactly(want);
    assertSame("o.npy", "wantv.npy");
    done("query FOLDER -k 2 --log-density --indices i.npy -o o.npy" + points);
    succeed("topk -k 2 --log-density --indices want.npy -o wantv.npy" + points + p);
    double[] values = values(read("o.npy", N, 2));
    double[] wanted = values(read("wantv.npy", N, 2));
    for (int at = 0; at < wanted.length; at++) {
      assertThat(values[at]).isCloseTo(wanted[at], within(1e-5 * (Math.abs(wanted[at]) + 20)));
    }
    double radius = 0.1 + Arrays.stream(wanted).sorted().toArray()[wanted.length / 2];
    String by = "--radius " + radius + " --log-density --json --indices i.npy -o v.npy" + points;
    double count = (double) json(run(line("query FOLDER " + by)).out()).get("count");
    assertThat(count).isEqualTo(json(run("within " + by + p).out()).get("count"));
    assertThat(count).isBetween(1.0, 34.0);
    Map<?, ?> facts = json(run(line("query FOLDER " + by)).out());
    assertThat(facts.get("divergence")).isEqualTo("negative-log-density");
  }

  private static Map<?, ?> json(String text) {
    return (Map<?, ?>) JsonReader.read(text);
  }

  /** Data as there are, of which many are far from every other: all are searched, by some. */
  @Test
  void findsTheNearestDigits() throws IOException {
    String files = " --mean %1$s/digits_mean.npy --std %1$s/digits_std.npy".formatted(DATA);
    String p = files.replace("--", "--p-");
    for (String name : List.of("mean", "std")) {
      double[] all =
          values(Npy.readFloats(DATA.resolve("digits_" + name + ".npy"), Arena.ofAuto()));
      save(name + ".npy", "<f4", 200, Arrays.copyOf(all, 200 * 32));
    }
    String some = " --mean mean.npy --std std.npy";
    done("create FOLDER" + files);
    done("query FOLDER -k 5 --indices i.npy -o o.npy" + some);
    assertThat(longs("i.npy", 200, 5)).containsExactly(topk("-k 5" + some + p, j -> j, 200, 5));
    assertSame("o.npy", "wantv.npy");

    ids("own.npy", LongStream.range(0, 200).toArray());
    done("create FOLDER --overwrite" + some);
    String reverse = "-k 5 --reverse-divergence " + some;
    done("query FOLDER --exclude-ids own.npy --indices i.npy -o o.npy " + reverse);
    assertThat(longs("i.npy", 200, 5))
        .containsExactly(topk("--exclude-self " + reverse, j -> j, 200, 5));
    assertSame("o.npy", "wantv.npy");
  }

  @Test
  void writesAnArchiveForSciPy() throws IOException {
    ids("j.npy", 3, 30, 4, 40, 5);
    create();
    done("query FOLDER --radius inf --exclude 30 -o o.npz" + Q);
    assertThat(longs("o.npz:indices", 4 * N)).startsWith(3, 4, 5, 40, 3, 4, 5, 40);
    assertThat(longs("o.npz:indptr", N + 1)).containsExactly(0, 4, 8, 12, 16, 20, 24, 28);
    assertThat(longs("o.npz:shape", 2)).containsExactly(N, 41);
    assertThat(values(read("o.npz:data", 4 * N))).doesNotContain(0);
  }

  // --- changes

  /** A block of rows at a time: an error in the last one leaves the index as it was. */
  @Test
  void addsInBlocks() throws IOException {
    int rows = 20_000;
    int d = 64;
    assertThat(IndexRows.blockRows(rows, d, 1L << 30)).isBetween(rows / 6, rows - 1);
    float[] mean = new float[rows * d];
    float[] std = new float[rows * d];
    for (int k = 0; k < mean.length; k++) {
      mean[k] = (float) random.nextGaussian();
      std[k] = 0.5f + random.nextFloat();
    }
    saveFloats("x.npy", mean, d);
    saveFloats("y.npy", std, d);
    done("create FOLDER --dimension 64");
    LongStream ids = LongStream.range(0, rows).map(i -> 3L * rows - 2 * i);
    ids("k.npy", ids.toArray());
    std[(rows - 1) * d + 2] = Float.NaN;
    saveFloats("bad.npy", std, d);
    Map<String, String> before = files();
    Result bad = run(line("add FOLDER --ids k.npy --mean x.npy --std bad.npy"));
    assertThat(bad.status()).isEqualTo(2);
    assertThat(bad.err()).contains("bad.npy: row 19999, column 2: std is NaN").hasLineCount(1);
    assertThat(files()).isEqualTo(before);
    assertThat(done("add FOLDER --ids k.npy --mean x.npy --std y.npy")).startsWith("added 20000,");
    assertThat(done("info FOLDER --check")).containsPattern("size +20000\\R");

    saveFloats("q.npy", Arrays.copyOfRange(mean, mean.length - 7 * d, mean.length), d);
    std[(rows - 1) * d + 2] = 1;
    saveFloats("s.npy", Arrays.copyOfRange(std, std.length - 7 * d, std.length), d);
    done("query FOLDER -k 2 --indices i.npy -o o.npy" + Q);
    String p = " --p-mean x.npy --p-std y.npy";
    long[] want = topk("-k 2" + Q + p, i -> 3L * rows - 2 * i, N, 2);
    assertThat(longs("i.npy", N, 2)).containsExactly(want);
    assertSame("o.npy", "wantv.npy");
  }

  private void saveFloats(String name, float[] values, int d) throws IOException {
    ByteBuffer data =
        ByteBuffer.allocate(Float.BYTES * values.length).order(ByteOrder.LITTLE_ENDIAN);
    data.asFloatBuffer().put(values);
    String dict = NpyFiles.dict("<f4", false, values.length / d, d);
    NpyFiles.write(folder.resolve(name), NpyFiles.bytes(1, dict, data.array()));
  }

  @Test
  void blocksFitTheMemory() {
    assertThat(IndexRows.blockRows(1, 1, 1 << 20)).isEqualTo(1);
    assertThat(IndexRows.blockRows(1_000, 100_000_000, 1 << 20)).isEqualTo(1);
    assertThat(IndexRows.blockRows(1_000_000, 64, 4L << 30)).isEqualTo(166_667);
    assertThat(IndexRows.blockRows(1_000_000, 64, 1L << 30)).isEqualTo(131_072);
    assertThat(IndexRows.blockRows(10_000, 64, 4L << 30)).isEqualTo(10_000);
    assertThat(IndexRows.blockRows(Integer.MAX_VALUE, 64, 1L << 40)).isEqualTo(1 << 20);
  }

  // --- full covariances

  /** Factors of five or more covariances, and the covariances, of numbers that float holds exactly. */
  private void writeMatrices(String name, String descr, int n) throws IOException {
    double[] tril = new double[n * D * D];
    double[] covariance = new double[n * D * D];
    for (int i = 0; i < n; i++) {
      for (int r = 0; r < D; r++) {
        for (int c = 0; c <= r; c++) {
          tril[(i * D + r) * D + c] =
              r == c ? 1 + (i + r) % 3 : ((7 * i + 5 * r + c) % 9 - 4) / 8.0;
        }
      }
      for (int r = 0; r < D; r++) {
        for (int c = 0; c < D; c++) {
          for (int k = 0; k < D; k++) {
            covariance[(i * D + r) * D + c] +=
                tril[(i * D + r) * D + k] * tril[(i * D + c) * D + k];
          }
        }
      }
    }
    long[] shape = {n, D, D};
    NpyFiles.write(folder.resolve(name + "l.npy"), descr, shape, tril);
    NpyFiles.write(folder.resolve(name + "c.npy"), descr, shape, covariance);
  }

  @ParameterizedTest
  @CsvSource({
    "kl, scale-tril, tl, <f4",
    "kl, cov, tc, <f8",
    "jeffreys, cov, tc, <f4",
    "wasserstein-2, scale-tril, tl, <f8"
  })
  void keepsFullCovariances(String divergence, String option, String file, String descr)
      throws IOException {
    writeMatrices("t", descr, 5);
    writeMatrices("s", descr, N);
    String p = "mean p.npy --%s %s.npy".formatted(option, file);
    assertThat(done("create FOLDER --ids j.npy --divergence " + divergence + " --" + p))
        .contains("5 Gaussians of dimension 6, of full covariances, ");
    assertThat(done("info FOLDER --check")).contains("scales    full covariances");
    assertThat(facts("info FOLDER --json").get("full_covariances")).isEqualTo(true);
    for (String q : List.of(" --mean q.npy --cov sc.npy ", Q)) {
      for (String options : List.of("", " --reverse-divergence")) {
        done("query FOLDER -k 3" + options + q + " --indices i.npy -o o.npy");
        String same =
            "-k 3 --divergence %s%s%s --p-%s"
                .formatted(divergence, options, q, p.replace(" --", " --p-"));
        assertThat(longs("i.npy", N, 3)).containsExactly(topk(same, j -> IDS[(int) j], N, 3));
        assertSame("o.npy", "wantv.npy");
      }
    }
    done("query FOLDER --radius 5 --mean q.npy --scale-tril sl.npy -o o.npz");
    ids("more.npy", 100, 101, 102, 103, 104);
    done("add FOLDER --ids more.npy --mean p.npy --cov tc.npy");
    done("add FOLDER --replace --ids j.npy --mean p.npy --scale-tril tl.npy");
    done("remove FOLDER --ids more.npy");
    done("compact FOLDER --purge");
    assertThat(done("info FOLDER")).contains("size      5", "deleted   0", "segments  1,");
  }

  // --- info

  @Test
  void tellsOfUserData() throws IOException {
    create();
    try (KlIndex made = KlIndex.open(index)) {
      made.commit(new byte[] {1, 2, 3});
    }
    assertThat(done("info FOLDER")).endsWith("user data 3 bytes\n");
    assertThat(facts("info FOLDER --json").get("user_data_bytes")).isEqualTo(3.0);
  }

  /** Removed Gaussians and segments are gone, and so is what a process has left; the rest is found. */
  @Test
  void compacts() throws IOException {
    create();
    NpyFiles.write(folder.resolve("gone.npy"), "<i4", new long[] {2}, 7, 8);
    done("remove FOLDER --ids gone.npy");
    Path left = index.resolve("segment-000099.bin.tmp");
    Files.writeString(left, "left");
    Files.setLastModifiedTime(left, FileTime.from(Instant.now().plusSeconds(1000)));
    assertThat(done("compact FOLDER"))
        .matches(
            Pattern.quote(index + " has 4 Gaussians of dimension 6, in 1 segment, ")
                + "\\S+ MB now\\R");
    assertThat(left).exists();
    assertThat(done("info FOLDER --check")).contains("size      4", "deleted   0");
    Map<?, ?> purged = facts("compact FOLDER --purge --json");
    assertThat(purged.get("command")).isEqualTo("index compact");
    assertThat(purged.get("segments")).isEqualTo(1.0);
    assertThat(purged.get("purged")).isEqualTo(true);
    assertThat(left).doesNotExist();
    done("query FOLDER -k 4 --indices i.npy -o o.npy" + Q);
    try (KlIndex open = KlIndex.open(index)) {
      assertRefused("compact FOLDER", "is open in ");
      assertThat(open.size()).isEqualTo(4);
    }
  }

  private Map<?, ?> facts(String commandLine) {
    String out = done(commandLine);
    assertThat(out).hasLineCount(1);
    return (Map<?, ?>) JsonReader.read(out);
  }

  // --- exports

  private void assertSameIndex(String name) {
    try (KlIndex found = KlIndex.openReadOnly(folder.resolve(name));
        KlIndex expected = KlIndex.openReadOnly(index)) {
      assertThat(found.ids()).isEqualTo(expected.ids());
      for (long id : expected.ids()) {
        Gaussians one = found.get(id);
        Gaussians other = expected.get(id);
        assertThat(one.kind()).isEqualTo(other.kind());
        assertThat(one.isDouble()).isEqualTo(other.isDouble());
        assertThat(one.mean(0)).isEqualTo(other.mean(0));
        assertThat(one.scale(0)).isEqualTo(other.scale(0));
        assertThat(one.covariance(0)).isEqualTo(other.covariance(0));
      }
    }
  }

  /** Exports the index, makes another of what that wrote, and asserts that its export has the same bytes. */
  private Path exported(String kind) throws IOException {
    assertThat(done("export FOLDER -o OUT"))
        .matches(
            "(?s)exported \\S+index: 5 Gaussians of dimension 6, .*in \\S+ s\\Rwrote \\S+mean.npy and \\S+out/%s.npy and \\S+ids.npy\\R"
                .formatted(kind));
    done(
        "create %s --mean out/mean.npy --%s out/%2$s.npy --ids out/ids.npy"
            .formatted(folder.resolve("copy"), kind));
    succeed("index export %s -o %s".formatted(folder.resolve("copy"), folder.resolve("again")));
    for (String name : List.of("mean", kind, "ids")) {
      assertSame("again/" + name + ".npy", "out/" + name + ".npy");
    }
    try (Stream<Path> files = Files.list(folder.resolve("out"))) {
      assertThat(files).hasSize(3);
    }
    return folder.resolve("out");
  }

  /** Scales of every kind are found as topk finds them; what create makes of an export is the same index, to the bit. */
  @ParameterizedTest
  @CsvSource({
    "std, <f4",
    "std, <f8",
    "variance, <f4",
    "log-variance, <f8",
    "precision, >f4",
    "precision, <f8"
  })
  void exportsWhatCreateTakes(String kind, String descr) throws IOException {
    double[] values = values(read("t.npy", 5, 6));
    values[7] = 0.1;
    save("t.npy", descr, 5, values);
    save("p.npy", descr, 5, values(read("p.npy", 5, 6)));
    long[] given = {7, 1L << 40, -9_000_000_000L, 0, -2};
    ids("j.npy", given);
    done("create FOLDER --mean p.npy --%s t.npy --ids j.npy".formatted(kind));
    done("query FOLDER -k 5 --indices i.npy -o o.npy" + Q);
    long[] want =
        topk("-k 5" + Q + "--p-mean p.npy --p-" + kind + " t.npy", j -> given[(int) j], N, M);
    assertThat(longs("i.npy", N, M)).containsExactly(want);
    assertSame("o.npy", "wantv.npy");
    Path made = exported(kind);
    assertThat(longs("out/ids.npy", 5)).containsExactly(IDS);
    assertSameIndex("copy");
    Map<?, ?> facts = facts("export FOLDER -o OUT --json");
    assertThat(facts.get("size")).isEqualTo(5.0);
    assertThat(facts.get("ids")).isEqualTo(made.resolve("ids.npy").toString());
    assertThat(facts.get(kind.replace('-', '_'))).isEqualTo(made.resolve(kind + ".npy").toString());
  }

  /** Given factors and covariances come back to the bit; what others were given as, as covariances that are rounded once. */
  @ParameterizedTest
  @CsvSource({
    "scale-tril, tl, <f4, scale-tril",
    "scale-tril, tl, <f8, scale-tril",
    "covariance, tc, <f4, covariance",
    "covariance, tc, <f8, covariance",
    "precision, tc, <f8, covariance",
    "precision, tc, <f4, covariance"
  })
  void exportsFullCovariances(String option, String file, String descr, String kind)
      throws IOException {
    writeMatrices("t", descr, 5);
    save("p.npy", descr, 5, values(read("p.npy", 5, 6)));
    done("create FOLDER --ids j.npy --mean p.npy --%s %s.npy".formatted(option, file));
    exported(kind);
    if (!option.equals("precision")) {
      assertSameIndex("copy");
      assertThat(values(read("out/" + kind + ".npy", 5, D, D))) // ids ascend with the rows
          .isEqualTo(values(read(file + ".npy", 5, D, D)));
    }
  }

  /** Those that were given as factors apart from those that were given as covariances. */
  @Test
  void exportsFactorsAndCovariancesApart() throws IOException {
    writeMatrices("t", "<f4", 5);
    done("create FOLDER --ids j.npy --mean p.npy --scale-tril tl.npy");
    ids("more.npy", 100, 101, 102, 103, 104);
    done("add FOLDER --ids more.npy --mean p.npy --cov tc.npy");
    done("export FOLDER -o OUT");
    String copy = folder.resolve("copy").toString();
    String part = " --mean out/%1$s-mean.npy --%2$s out/%1$s-%2$s.npy --ids out/%1$s-ids.npy";
    done("create " + copy + part.formatted("scale-tril-float32", "scale-tril"));
    done("add " + copy + part.formatted("covariance-float32", "covariance"));
    assertSameIndex("copy");
    try (KlIndex same = KlIndex.openReadOnly(Path.of(copy))) {
      assertThat(((FullGaussians) same.get(7)).hasComputedFactors()).isFalse();
      assertThat(((FullGaussians) same.get(100)).hasComputedFactors()).isTrue();
    }
  }

  /** Kinds and precisions that are mixed have files of their own, all of which together make the same index. */
  @Test
  void exportsEachKindApart() throws IOException {
    create();
    done("remove FOLDER --ids j.npy");
    save("p8.npy", "<f8", 5, values(read("p.npy", 5, 6)));
    save("t8.npy", "<f8", 5, values(read("t.npy", 5, 6)));
    ids("a.npy", 1, 2, 3, 4, 5);
    ids("b.npy", 11, 12, 13, 14, 15);
    ids("c.npy", 21, 22, 23, 24, 25);
    done("add FOLDER --ids c.npy --mean p8.npy --precision t8.npy");
    done("add FOLDER --ids b.npy --mean p8.npy --std t8.npy");
    done("add FOLDER --ids a.npy --mean p.npy --std t.npy");
    ids("two.npy", 2, 22);
    done("remove FOLDER --ids two.npy");
    assertThat(done("export FOLDER -o OUT"))
        .contains("they were given in 3 ways: index create takes the files of one, and index add");
    for (String way : List.of("std-float32", "std-float64", "precision-float64")) {
      for (String name : List.of("mean", way.replaceFirst("-.*", ""), "ids")) {
        assertThat(folder.resolve("out/" + way + "-" + name + ".npy")).exists();
      }
    }
    try (Stream<Path> files = Files.list(folder.resolve("out"))) {
      assertThat(files).hasSize(9);
    }
    assertThat(longs("out/std-float32-ids.npy", 4)).containsExactly(1, 3, 4, 5);
    String copy = folder.resolve("copy").toString();
    String part = " --mean out/%1$s-mean.npy --%2$s out/%1$s-%2$s.npy --ids out/%1$s-ids.npy";
    done("create " + copy + part.formatted("std-float64", "std"));
    done("add " + copy + part.formatted("precision-float64", "precision"));
    done("add " + copy + part.formatted("std-float32", "std"));
    assertSameIndex("copy");
    // what is left of it would seem to belong to another export
    assertRefused("remove FOLDER --ids x.npy", "x.npy: no such file");
    done("remove FOLDER --ids c.npy");
    done("remove FOLDER --ids b.npy");
    assertRefused("export FOLDER -o OUT", "-float", ".npy: is left of another export: remove it");
  }

  /** The folder of an index that is replaced keeps its permissions, and a link to it is one. */
  @Test
  void overwritesInTheFolder() throws IOException {
    create();
    Files.setPosixFilePermissions(index, PosixFilePermissions.fromString("rwxr-x--x"));
    Path link = Files.createSymbolicLink(folder.resolve("link"), Path.of("index"));
    done("create " + link + " --overwrite" + Q);
    assertThat(link).isSymbolicLink();
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(index)))
        .isEqualTo("rwxr-x--x");
  }

  /** Nothing but an index is replaced, and no index that another process has open. */
  @Test
  void overwritesNothingElse() throws IOException {
    String overwrite = "create FOLDER --overwrite" + P;
    create();
    for (String name : List.of("lock", "segment-7.bin", "manifest.tmp")) {
      Path folderOfOthers = index.resolve(name);
      Files.deleteIfExists(folderOfOthers);
      Files.createDirectory(folderOfOthers);
      assertThat(run(line(overwrite)).status()).as(name).isNotZero();
      assertThat(folderOfOthers).isDirectory();
      Files.delete(folderOfOthers);
    }
    Files.writeString(index.resolve("lock"), "mine");
    assertRefused(overwrite, "index: has lock besides its index");
    Files.delete(index.resolve("lock"));
    done(overwrite);
    Path segment = segment();
    Path elsewhere = folder.resolve("elsewhere");
    Files.move(segment, elsewhere);
    Files.createSymbolicLink(segment, elsewhere);
    assertRefused(overwrite, "index: has segment-");
    Files.delete(segment);
    Files.move(elsewhere, segment);
    try (KlIndex open = KlIndex.open(index)) {
      assertRefused(overwrite, "index: is open in this process already");
      assertThat(open.size()).isEqualTo(5);
    }
    try (KlIndex open = KlIndex.openReadOnly(index)) { // which sees what it has opened
      done("create FOLDER --overwrite --dimension 3");
      open.verify();
      assertThat(open.size()).isEqualTo(5);
    }
    assertThat(done("info FOLDER")).contains("size      0");
  }

  /** A folder of another's that comes between is not deleted with the index that is replaced. */
  @Test
  void overwritesNoneOfWhatAppears() throws IOException {
    create();
    try (NewFolder made = new NewFolder(index, true)) {
      made.open(() -> KlIndex.builder(D).open(made.path())).close();
      Files.writeString(index.resolve("notes.txt"), "mine");
      assertThatThrownBy(made::keep).hasMessageContaining("has notes.txt besides its index");
    }
    assertThat(index.resolve("notes.txt")).hasContent("mine");
    assertThat(done("info FOLDER --check")).contains("size      5");
    assertThat(contents()).noneMatch(name -> name.contains("kullback-"));
  }

  /** What others put into a folder while an index is made in it is none of its. */
  @Test
  void leavesWhatOthersMade() throws IOException {
    for (boolean isNew : new boolean[] {true, false}) {
      try (NewFolder made = new NewFolder(index, false)) {
        KlIndex opened = made.open(() -> KlIndex.builder(D).open(index));
        opened.close();
        Files.writeString(index.resolve("notes.txt"), "of another");
      }
      assertThat(files()).as("%s", isNew).containsOnlyKeys("notes.txt");
      Files.delete(index.resolve("notes.txt"));
    }
  }

  @Test
  void tornFiles() throws IOException {
    create();
    Path segment = segment();
    byte[] whole = Files.readAllBytes(segment);
    byte[] changed = whole.clone();
    changed[changed.length - 1] ^= 1;
    Files.write(segment, changed);
    assertRefused("info FOLDER --check", segment.getFileName() + ": was changed: its checksum is");
    Files.write(segment, Arrays.copyOf(whole, whole.length - 1));
    String query = "query FOLDER -k 2 --indices i.npy -o o.npy" + Q;
    assertRefused(query, segment.getFileName() + ": has ", "restore the folder from a copy");
    Files.delete(segment);
    assertRefused(query, segment.getFileName() + ": is missing; restore");
    Files.write(segment, whole);
    done("info FOLDER --check");
    Path manifest = index.resolve("manifest");
    byte[] text = Files.readAllBytes(manifest);
    for (int length : new int[] {0, 5, text.length / 2, text.length - 1}) {
      Files.write(manifest, Arrays.copyOf(text, length));
      assertRefused("add FOLDER --replace --ids j.npy" + P, "manifest: is ");
    }
  }

  @Test
  void foldersInUse() throws IOException {
    create();
    Map<String, String> before = files();
    try (KlIndex open = KlIndex.open(index)) {
      open.add(new long[] {77}, DiagonalGaussians.ofStd(new float[D], ones(), D));
      assertUserError(
          line("add FOLDER --replace --ids j.npy" + P),
          "index: is open in",
          " close it first; index query, index info and index export read its last commit meanwhile");
      done("info FOLDER --check"); // reads the last commit
      done("query FOLDER -k 2 --indices i.npy -o o.npy" + Q);
      assertThat(done("export FOLDER -o OUT")).contains("index: 5 Gaussians of dimension 6, in ");
    }
    assertThat(files()).isEqualTo(before);
    try (FileChannel channel = FileChannel.open(index.resolve("lock"), StandardOpenOption.WRITE)) {
      channel.lock();
      assertUserError(
          line("remove FOLDER --ids j.npy"), "index: is open in this process already, by this");
      done("info FOLDER");
    }
  }

  private static float[] ones() {
    float[] ones = new float[D];
    Arrays.fill(ones, 1);
    return ones;
  }

  /** Whenever a signal comes, there is no index or the whole one. */
  @ParameterizedTest
  @ValueSource(ints = {0, 3, 40})
  @EnabledOnOs({OS.LINUX, OS.MAC})
  @Timeout(60)
  void signals(int milliseconds) throws Exception {
    interrupt("", index.getFileName().toString(), milliseconds);
    if (Files.exists(index)) {
      assertThat(done("info FOLDER --check")).containsPattern("size +40000\\R");
    }
  }

  /** And where it is to replace another, that or the whole new one. */
  @ParameterizedTest
  @ValueSource(ints = {0, 20, 200})
  @EnabledOnOs({OS.LINUX, OS.MAC})
  @Timeout(60)
  void signalsWhileItOverwrites(int milliseconds) throws Exception {
    create();
    interrupt(" --overwrite", ".index.", milliseconds);
    assertThat(done("info FOLDER --check")).containsPattern("size +(5|40000)\\R");
    assertThat(contents()).noneMatch(name -> name.contains("kullback-"));
  }

  /** Makes an index in a process that gets SIGTERM so long after a name that begins like that is there. */
  private void interrupt(String options, String name, int milliseconds) throws Exception {
    int rows = 40_000;
    for (String file : List.of("x.npy", "y.npy")) {
      NpyFiles.write(
          folder.resolve(file),
          NpyFiles.bytes(1, NpyFiles.dict("<f4", false, rows, 64), new byte[4 * 64 * rows]));
    }
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Ddev.kullback.backend=scalar",
                "-cp",
                System.getProperty("java.class.path"),
                Main.class.getName()));
    command.addAll(List.of(args(line("create FOLDER --mean x.npy --logvar y.npy" + options))));
    Path err = folder.resolve("err");
    Process process = new ProcessBuilder(command).redirectError(err.toFile()).start();
    try {
      while (process.isAlive() && !begins(name)) {
        Thread.sleep(1);
      }
      Thread.sleep(milliseconds);
      process.destroy(); // SIGTERM
      assertThat(process.waitFor(50, TimeUnit.SECONDS)).isTrue();
      assertThat(process.exitValue()).isIn(0, 143);
      assertThat(err).content().doesNotContain("kullback:");
    } finally {
      process.destroyForcibly();
    }
  }

  private boolean begins(String name) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.anyMatch(file -> file.getFileName().toString().startsWith(name));
    }
  }
}
