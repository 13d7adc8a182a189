package dev.kullback.cli.command;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.DiagonalGaussians;
import dev.kullback.Divergence;
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
import java.util.zip.ZipFile;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The commands of index, against topk and within on the same files. */
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

  private void assertSameValues(String name, String want) {
    assertThat(folder.resolve(name)).hasSameBinaryContentAs(folder.resolve(want));
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

  /** One line, status 2, the index as it was. */
  private void assertRefused(String commandLine, String... messages) throws IOException {
    Map<String, String> before = files();
    assertUserError(line(commandLine), messages);
    assertThat(files()).isEqualTo(before);
  }

  // --- searches

  @ParameterizedTest
  @CsvSource({
    "1, ''",
    "3, ''",
    "5, --reverse-divergence",
    "2, --threads 1",
    "4, --reverse-divergence --threads 3"
  })
  void findsWhatTopkFinds(int k, String options) throws IOException {
    create();
    String out = done("query FOLDER -k " + k + Q + options + " --indices i.npy -o o.npy");
    assertThat(out)
        .matches(
            "(?s)smallest KL\\(\\S+\\): 7 x %d of 5, D = 6, float64, in \\S+ s; min .*\\Rwrote .*"
                .formatted(k));
    String same = options.replace("--threads 3", "").replace("--threads 1", "");
    long[] want =
        topk("-k " + k + Q + "--p-mean p.npy --p-std t.npy " + same, j -> IDS[(int) j], N, k);
    assertThat(longs("i.npy", N, k)).containsExactly(want);
    assertSameValues("o.npy", "wantv.npy");
  }

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
    assertSameValues("o.npy", "wantv.npy");
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

  /** By what it was made for, of which standard deviations may be 0 by a Wasserstein distance alone. */
  @ParameterizedTest
  @CsvSource({
    "jeffreys, 'jeffreys(q_i, p)'",
    "reverse-kl, KL(p||q_i)",
    "SQUARED_WASSERSTEIN_2, 'squared-wasserstein-2(q_i, p)'",
    "renyi:0.5, 'renyi:0.5(q_i, p)'"
  })
  void ranksByAnotherDivergence(String name, String formula) throws IOException {
    String divergence = Divergence.of(name).name();
    assertThat(done("create FOLDER --ids j.npy --divergence " + name + P))
        .contains("5 Gaussians of dimension 6, by " + divergence + ", in ");
    assertThat(done("info FOLDER --check"))
        .contains("ranks by  " + divergence + System.lineSeparator());
    assertThat(facts("info FOLDER --json").get("divergence")).isEqualTo(divergence);
    for (String options : List.of("", " --reverse-divergence")) {
      String out = done("query FOLDER -k 3" + options + Q + " --indices i.npy -o o.npy");
      assertThat(out).contains(options.isEmpty() ? "smallest " + formula + ": 7 x 3" : "smallest ");
      String same = "-k 3 --divergence " + name + options + Q + "--p-mean p.npy --p-std t.npy ";
      assertThat(longs("i.npy", N, 3)).containsExactly(topk(same, j -> IDS[(int) j], N, 3));
      assertSameValues("o.npy", "wantv.npy");
    }
    assertRefused("create FOLDER --dimension 6", "index: holds an index already");
    save("z.npy", "<f4", 1, new double[D]);
    ids("one.npy", 99);
    String zero = " --ids one.npy --mean z.npy --std z.npy";
    if (divergence.endsWith("wasserstein-2")) {
      done("add FOLDER" + zero);
      done("query FOLDER -k 6 --mean z.npy --std z.npy --indices i.npy -o o.npy");
      assertThat(longs("i.npy", 1, 6)).startsWith(99);
    } else {
      assertRefused("add FOLDER" + zero, "z.npy: row 0, column 0: std is 0");
    }
  }

  /** An empty index has its divergence, too. */
  @Test
  void anEmptyIndexOfAnotherDivergenceIsKept() throws IOException {
    done("create FOLDER --dimension 6 --divergence hellinger");
    assertRefused(
        "create FOLDER" + P, " is an index of the divergence hellinger, not kl; open it with");
    done("create FOLDER --divergence hellinger" + P);
    assertThat(done("info FOLDER")).contains("ranks by  hellinger", "size      5");
    assertUserError(line("create FOLDER2 --dimension 6 --divergence w2"), "did you mean");
  }

  @Test
  void findsTheNearestDigits() throws IOException {
    String digits =
        " --mean %s --std %s "
            .formatted(DATA.resolve("digits_mean.npy"), DATA.resolve("digits_std.npy"));
    done("create FOLDER" + digits);
    done("query FOLDER -k 5 --indices i.npy -o o.npy" + digits);
    assertThat(longs("i.npy", 1797, 5)).containsExactly(topk("-k 5" + digits, j -> j, 1797, 5));
    assertSameValues("o.npy", "wantv.npy");

    ids("own.npy", LongStream.range(0, 1797).toArray());
    done(
        "query FOLDER -k 5 --reverse-divergence --exclude-ids own.npy --indices i.npy -o o.npy"
            + digits);
    assertThat(longs("i.npy", 1797, 5))
        .containsExactly(
            topk("-k 5 --reverse-divergence --exclude-self" + digits, j -> j, 1797, 5));
    assertSameValues("o.npy", "wantv.npy");
  }

  @Test
  void fillsUpWhereThereAreFewer() throws IOException {
    create();
    String out = done("query FOLDER -k 5 --exclude 7,-2 --indices i.npy -o o.npy" + Q);
    assertThat(out).contains("14 entries stand for none, with id -1 and value inf");
    long[] ids = longs("i.npy", N, 5);
    double[] values = values(read("o.npy", N, 5));
    for (int i = 0; i < N; i++) {
      assertThat(Arrays.copyOfRange(ids, 5 * i, 5 * i + 3))
          .containsExactlyInAnyOrder(IDS[0], IDS[2], IDS[4]);
      assertThat(Arrays.copyOfRange(ids, 5 * i + 3, 5 * i + 5)).containsOnly(-1);
      assertThat(Arrays.copyOfRange(values, 5 * i, 5 * i + 3)).isSorted().doesNotContain(1 / 0.0);
      assertThat(Arrays.copyOfRange(values, 5 * i + 3, 5 * i + 5)).containsOnly(1 / 0.0);
    }
    done("query FOLDER -k 5 --exclude 7 --exclude=-2 --indices i.npy -o o.npy" + Q);
    assertThat(longs("i.npy", N, 5)).isEqualTo(ids);
    done("query FOLDER -k 4 --exclude 7 --indices i.npy -o o.npy" + Q);
    assertThat(longs("i.npy", N, 4)).doesNotContain(7).contains(-2);
  }

  /** A search that ends early says so, in the summary and row by row; one that does not proves each row up to its last value. */
  @Test
  void saysWhatIsProven() throws IOException {
    create();
    String query = "query FOLDER -k 3 --indices i.npy -o o.npy --proven x.npy" + Q;
    assertThat(done(query + "--timeout 3600")).doesNotContain("not complete");
    double[] values = values(read("o.npy", N, 3));
    double[] proven = values(read("x.npy", N, 2));
    for (int i = 0; i < N; i++) {
      assertThat(proven[2 * i]).isEqualTo(1);
      assertThat(proven[2 * i + 1]).isEqualTo(values[3 * i + 2]);
    }
    assertThat(done(query + "--timeout 1e-9"))
        .contains(N + " of " + N + " rows are not complete", "give a longer --timeout");
    assertThat(values(read("x.npy", N, 2))).containsOnly(0);
    assertThat(longs("i.npy", N, 3)).containsOnly(-1);
    done("query FOLDER --radius inf --indices i.npy -o o.npy --proven x.npy --approximate 1" + Q);
    assertThat(values(read("x.npy", N, 2))[1]).isEqualTo(1 / 0.0);
    done("query FOLDER --radius 1e-9 -o o.npz --proven x.npy" + Q);
    assertThat(values(read("x.npy", N, 2))).startsWith(1, 1e-9);
    assertRefused("query FOLDER -k 3 --indices i.npy -o o.npy --approximate 0" + Q, "at most 1");
    assertRefused("query FOLDER -k 3 --indices i.npy -o o.npy --timeout 0" + Q, "more than 0");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "--reverse-divergence"})
  void findsWhatWithinFinds(String options) throws IOException {
    create();
    String p = "--p-mean p.npy --p-std t.npy ";
    succeed("topk --exact -k 3 --indices want.npy -o wantv.npy " + options + Q + p);
    double radius = Math.nextUp(values(read("wantv.npy", N, 3))[2]); // that may be rounded down
    String within = " --radius " + radius + " " + options + Q;
    done("query FOLDER --indices i.npy -o o.npy" + within);
    long[] pairs = longs("i.npy", pairs("o.npy"), 2);
    double[] values = values(read("o.npy", pairs.length / 2));
    succeed("topk --exact -k 5 --indices want.npy -o wantv.npy " + options + Q + p);
    double[] all = values(read("wantv.npy", N, M));
    long[] columns = topk("-k 5 " + options + Q + p, j -> IDS[(int) j], N, M);
    List<Long> want = new ArrayList<>();
    List<Double> wantValues = new ArrayList<>();
    for (int i = 0; i < N; i++) {
      Map<Long, Double> row = new TreeMap<>();
      for (int r = i * M; r < i * M + M; r++) {
        if (all[r] <= radius) {
          row.put(columns[r], all[r]);
        }
      }
      for (long id : row.keySet()) {
        want.addAll(List.of((long) i, id));
      }
      wantValues.addAll(row.values());
    }
    assertThat(pairs).containsExactly(want.stream().mapToLong(x -> x).toArray());
    assertThat(values).containsExactly(wantValues.stream().mapToDouble(x -> x).toArray());
    assertThat(values.length).isBetween(3, N * M - 1);
  }

  private long pairs(String name) throws IOException {
    return Npy.readShape(folder.resolve(name))[0];
  }

  @Test
  void writesAnArchiveForSciPy() throws IOException {
    ids("j.npy", 3, 30, 4, 40, 5);
    create();
    done("query FOLDER --radius inf --exclude 30 -o o.npz" + Q);
    try (ZipFile zip = new ZipFile(folder.resolve("o.npz").toFile())) {
      for (String name : List.of("indices", "indptr", "shape", "data", "format")) {
        Files.write(
            folder.resolve(name + ".npy"),
            zip.getInputStream(zip.getEntry(name + ".npy")).readAllBytes());
      }
    }
    assertThat(longs("indices.npy", 4 * N)).startsWith(3, 4, 5, 40, 3, 4, 5, 40);
    assertThat(longs("indptr.npy", N + 1)).containsExactly(0, 4, 8, 12, 16, 20, 24, 28);
    assertThat(longs("shape.npy", 2)).containsExactly(N, 41);
    assertThat(values(read("data.npy", 4 * N))).doesNotContain(0);

    done("add FOLDER --replace --ids j.npy" + P);
    ids("k.npy", 3, 30, 4, 40, -5);
    done("add FOLDER --replace --ids k.npy" + P);
    assertRefused(
        "query FOLDER --radius inf -o o.npz" + Q,
        "o.npz: id -5 cannot be a column of a matrix: give --indices");
    done("query FOLDER --radius inf --exclude=-5 -o o.npz" + Q);
  }

  @Test
  void anEmptyIndexHasNothingToFind() throws IOException {
    assertThat(done("create FOLDER --dimension 6")).contains(": 0 Gaussians of dimension 6");
    assertRefused(
        "query FOLDER -k 2 --indices i.npy -o o.npy" + Q,
        "index: has no Gaussians: index add adds some");
    done("query FOLDER --radius inf --indices i.npy -o o.npy" + Q);
    assertThat(longs("i.npy", 0, 2)).isEmpty();
    done("query FOLDER --radius inf -o o.npz" + Q);
    done("info FOLDER --check");
  }

  // --- changes

  @ParameterizedTest
  @CsvSource({"std, <f4", "var, <f8", "logvar, >f8", "precision, <f8"})
  void takesScalesOfEveryKind(String kind, String descr) throws IOException {
    double[] scale =
        Arrays.stream(pStd)
            .map(s ->
                switch (kind) {
                  case "std" -> s;
                  case "var" -> s * s;
                  case "precision" -> 1 / (s * s);
                  default -> 2 * Math.log(s);
                })
            .toArray();
    save("x.npy", descr, M, scale);
    done("create FOLDER --mean p.npy --" + kind + " x.npy");
    done("query FOLDER -k 5 --indices i.npy -o o.npy" + Q);
    long[] want = topk("-k 5" + Q + "--p-mean p.npy --p-" + kind + " x.npy", j -> j, N, M);
    assertThat(longs("i.npy", N, M)).containsExactly(want);
    assertSameValues("o.npy", "wantv.npy");
  }

  @Test
  void clamps() throws IOException {
    double[] std = pStd.clone();
    std[D] = 0;
    save("t.npy", "<f4", M, std);
    assertUserError(
        line("create FOLDER" + P),
        "t.npy: row 1, column 0: std is 0.0: it must be > 0; --clamp would");
    assertThat(index).doesNotExist();
    done("create FOLDER --clamp" + P);
    done("query FOLDER -k 5 --clamp --mean p.npy --std t.npy --indices i.npy -o o.npy");
    assertThat(longs("i.npy", M, M)).startsWith(0);
    assertThat(values(read("o.npy", M, M))[0]).isZero();
  }

  /** Whatever way an index came to hold some Gaussians, it finds what a new one of them finds. */
  @Test
  void addsReplacesAndRemoves() throws IOException {
    create();
    ids("k.npy", 100, 101, 7, 103, -2, 105, 106);
    assertRefused(
        "add FOLDER --ids k.npy" + Q,
        "k.npy: row 2: id 7 is in the index already: give --replace to replace its Gaussian (counted from 0)");
    assertThat(done("add FOLDER --replace --ids k.npy" + Q))
        .matches(
            "added 5 and replaced 2, in \\S+ s; \\S+index has 10 Gaussians of dimension 6 now\\R");
    NpyFiles.write(folder.resolve("gone.npy"), "<i4", new long[] {4}, 100, 0, 55, 100);
    assertThat(done("remove FOLDER --ids gone.npy"))
        .matches(
            "removed 2; 1 of the ids were not there; \\S+index has 8 Gaussians of dimension 6 now\\R");
    ids("new.npy", 0, 1, 2, 3, 4);
    assertRefused(
        "add FOLDER --ids j.npy" + P, "j.npy: row 0: id -9000000000 is in the index already");
    ids("l.npy", 200, 201, 202, 203, 204);
    assertThat(done("add FOLDER --ids l.npy" + P))
        .matches("added 5, in \\S+ s; \\S+index has 13 Gaussians of dimension 6 now\\R");
    assertThat(done("remove FOLDER --ids l.npy")).startsWith("removed 5; 0 of");

    double[] mean = new double[8 * D];
    double[] std = new double[8 * D];
    long[] ids = {IDS[0], IDS[4], 101, 7, 103, -2, 105, 106};
    int[] rows = {0, 4, 1, 2, 3, 4, 5, 6}; // two of p, then of q
    for (int i = 0; i < 8; i++) {
      System.arraycopy(i < 2 ? pMean : qMean, rows[i] * D, mean, i * D, D);
      System.arraycopy(i < 2 ? pStd : qStd, rows[i] * D, std, i * D, D);
    }
    save("x.npy", "<f4", 8, mean);
    save("y.npy", "<f4", 8, std);
    ids("z.npy", ids);
    done("query FOLDER -k 8 --indices i.npy -o o.npy" + Q);
    String other = folder.resolve("other").toString();
    assertThat(run("index create " + other + " --mean x.npy --std y.npy --ids z.npy").status())
        .isZero();
    run("index query " + other + " -k 8 --indices wi.npy -o w.npy" + Q);
    assertSameValues("i.npy", "wi.npy");
    assertSameValues("o.npy", "w.npy");
    assertThat(longs("i.npy", N, 8)).contains(ids);
  }

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
    assertSameValues("o.npy", "wantv.npy");
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
        assertSameValues("o.npy", "wantv.npy");
      }
    }
    done("query FOLDER --radius 5 --mean q.npy --scale-tril sl.npy -o o.npz");
    ids("more.npy", 100, 101, 102, 103, 104);
    done("add FOLDER --ids more.npy --mean p.npy --cov tc.npy");
    done("add FOLDER --replace --ids j.npy --mean p.npy --scale-tril tl.npy");
    done("remove FOLDER --ids more.npy");
    done("compact FOLDER --purge");
    assertThat(done("info FOLDER")).contains("size      5", "deleted   0", "segments  1,");
    assertRefused(
        "add FOLDER --ids more.npy" + P,
        "t.npy: has no matrices, but the index in ",
        "index has full covariances: give their --covariance or --scale-tril");
    assertRefused("add FOLDER --clamp --ids more.npy --mean p.npy --cov tc.npy", "--clamp is for");
  }

  @Test
  void matricesAreOfAnIndexOfFullCovariances() throws IOException {
    writeMatrices("t", "<f4", 5);
    create();
    ids("more.npy", 100, 101, 102, 103, 104);
    String matrices = " --mean p.npy --cov tc.npy ";
    for (String command :
        List.of("add FOLDER --ids more.npy", "query FOLDER -k 2 --indices i.npy -o o.npy")) {
      assertRefused(
          command + matrices,
          "tc.npy: has matrices, but the index in ",
          "index has diagonal Gaussians: give their --variance");
    }
    done("create %s/e --dimension 6 --full-covariances".formatted(folder));
    assertUserError(
        line("create %s/e".formatted(folder) + P),
        "e: is an index of full covariances, not of diagonal Gaussians: name another folder");
    done("create %s/e".formatted(folder) + matrices);
    done("create %s/f --dimension 6".formatted(folder));
    assertUserError(
        line("create %s/f".formatted(folder) + matrices),
        "f is an index of diagonal Gaussians, not of full covariances");
  }

  // --- info

  @Test
  void tellsWhatItHolds() throws IOException {
    create();
    NpyFiles.write(folder.resolve("gone.npy"), "<i4", new long[] {2}, 7, 8);
    done("remove FOLDER --ids gone.npy");
    assertThat(done("info FOLDER"))
        .matches(
            "dimension 6\\Rranks by  kl\\Rsize      4\\Rdeleted   1\\Rsegments  1, \\S+ MB\\R");
    assertThat(done("info FOLDER --check"))
        .matches("(?s)dimension 6\\R.*\\Rchecked   in \\S+ s: every checksum is right\\R");
    assertRefused("info FOLDER --quiet", "--quiet would leave nothing");
  }

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

  @Test
  void json() throws IOException {
    Map<?, ?> made = facts("create FOLDER --ids j.npy --json" + P);
    assertThat(made.get("command")).isEqualTo("index create");
    assertThat(made.get("folder")).isEqualTo(index.toString());
    assertThat(made.get("dimension")).isEqualTo(6.0);
    assertThat(made.get("size")).isEqualTo(5.0);
    Map<?, ?> added = facts("add FOLDER --ids j.npy --replace --json" + P);
    assertThat(added.get("added")).isEqualTo(0.0);
    assertThat(added.get("replaced")).isEqualTo(5.0);
    Map<?, ?> removed = facts("remove FOLDER --ids j.npy --json");
    assertThat(removed.get("removed")).isEqualTo(5.0);
    assertThat(removed.get("missing")).isEqualTo(0.0);
    assertThat(removed.get("size")).isEqualTo(0.0);
    Map<?, ?> info = facts("info FOLDER --check --json");
    assertThat(info.get("checked")).isEqualTo(true);
    assertThat(info.get("deleted")).isEqualTo(0.0);
    done("add FOLDER --ids j.npy --quiet" + P);
    Map<?, ?> found = facts("query FOLDER -k 5 --exclude 7 --indices i.npy -o o.npy --json" + Q);
    assertThat(found.get("command")).isEqualTo("index query");
    assertThat(found.get("rows")).isEqualTo(7.0);
    assertThat(found.get("k")).isEqualTo(5.0);
    assertThat(found.get("filled")).isEqualTo(7.0);
    assertThat(found.get("count")).isEqualTo(28.0);
    assertThat(found.get("dtype")).isEqualTo("float64");
    assertThat(found.get("reverse")).isEqualTo(false);
    assertThat(found.get("survivors")).isEqualTo(28.0);
    assertThat((Double) found.get("bytes_read")).isPositive();
    assertThat(found.get("indices")).isEqualTo(folder.resolve("i.npy").toString());
    assertThat(done("query FOLDER -k 1 --indices i.npy -o o.npy --quiet" + Q)).isEmpty();
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

  /** What create makes of an export is the same index, to the bit, and its export has the same bytes. */
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
    ids("j.npy", 7, 1L << 40, -9_000_000_000L, 0, -2);
    done("create FOLDER --mean p.npy --%s t.npy --ids j.npy".formatted(kind));
    String out = done("export FOLDER -o OUT");
    Path made = folder.resolve("out");
    assertThat(out)
        .matches(
            "(?s)exported \\S+index: 5 Gaussians of dimension 6, in \\S+ s\\Rwrote \\S+mean.npy and \\S+out/%s.npy and \\S+ids.npy\\R"
                .formatted(kind));
    assertThat(longs("out/ids.npy", 5)).containsExactly(IDS);
    done(
        "create %s --mean out/mean.npy --%s out/%s.npy --ids out/ids.npy"
            .formatted(folder.resolve("copy"), kind, kind));
    assertSameIndex("copy");
    succeed("index export %s -o %s".formatted(folder.resolve("copy"), folder.resolve("again")));
    for (String name : List.of("mean", kind, "ids")) {
      assertThat(folder.resolve("again/" + name + ".npy"))
          .hasSameBinaryContentAs(made.resolve(name + ".npy"));
    }
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
    done("export FOLDER -o OUT");
    Path made = folder.resolve("out");
    try (Stream<Path> files = Files.list(made)) {
      assertThat(files.map(one -> one.getFileName().toString()))
          .containsExactlyInAnyOrder("mean.npy", kind + ".npy", "ids.npy");
    }
    String copy = folder.resolve("copy").toString();
    done(
        "create %s --mean out/mean.npy --%s out/%s.npy --ids out/ids.npy"
            .formatted(copy, kind, kind));
    if (!option.equals("precision")) {
      assertSameIndex("copy");
      assertThat(values(read("out/" + kind + ".npy", 5, D, D))) // ids ascend with the rows
          .isEqualTo(values(read(file + ".npy", 5, D, D)));
    }
    succeed("index export %s -o %s".formatted(copy, folder.resolve("again")));
    for (String name : List.of("mean", kind, "ids")) {
      assertThat(folder.resolve("again/" + name + ".npy"))
          .hasSameBinaryContentAs(made.resolve(name + ".npy"));
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

  @Test
  void exportsAnEmptyIndexOfFullCovariances() throws IOException {
    done("create FOLDER --dimension 6 --full-covariances");
    done("export FOLDER -o OUT");
    read("out/scale-tril.npy", 0, 6, 6);
    String copy = folder.resolve("copy").toString();
    done(
        "create %s --mean out/mean.npy --scale-tril out/scale-tril.npy --ids out/ids.npy"
            .formatted(copy));
    assertThat(facts("info %s --json".formatted(copy)).get("full_covariances")).isEqualTo(true);
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
    try (Stream<Path> files = Files.list(folder.resolve("out"))) {
      assertThat(files.map(file -> file.getFileName().toString()))
          .containsExactlyInAnyOrder(
              "std-float32-mean.npy",
              "std-float32-std.npy",
              "std-float32-ids.npy",
              "std-float64-mean.npy",
              "std-float64-std.npy",
              "std-float64-ids.npy",
              "precision-float64-mean.npy",
              "precision-float64-precision.npy",
              "precision-float64-ids.npy");
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

  @Test
  void exportsAnEmptyIndex() throws IOException {
    done("create FOLDER --dimension 6");
    done("export FOLDER -o OUT");
    assertThat(longs("out/ids.npy", 0)).isEmpty();
    read("out/mean.npy", 0, 6);
    String copy = folder.resolve("copy").toString();
    done("create %s --mean out/mean.npy --std out/std.npy --ids out/ids.npy".formatted(copy));
    assertSameIndex("copy");
  }

  /** An output that is a link to a file of the index, there or to be made, would destroy the index. */
  @ParameterizedTest
  @ValueSource(strings = {"manifest", "segment-000099.bin"})
  void outputsAreNoLinksIntoTheIndex(String file) throws IOException {
    create();
    Path out = Files.createDirectory(folder.resolve("out"));
    Path link = Files.createSymbolicLink(out.resolve("std.npy"), Path.of("../index", file));
    assertRefused("export FOLDER -o OUT", "out/std.npy: is in the folder of the index: name an");
    assertRefused(
        "query FOLDER -k 2 --indices i.npy -o out/std.npy" + Q,
        "out/std.npy: is in the folder of the index: name an output elsewhere");
    try (Stream<Path> files = Files.list(out)) {
      assertThat(files).containsExactly(link);
    }
  }

  @Test
  void exportsNothingOverWhatIsKept() throws IOException {
    create();
    done("export FOLDER -o OUT");
    Files.writeString(folder.resolve("out/ids.npy"), "precious");
    Files.delete(folder.resolve("out/mean.npy"));
    Files.delete(folder.resolve("out/std.npy"));
    assertRefused(
        "export FOLDER -o OUT --no-clobber", "ids.npy: is there, and --no-clobber keeps it");
    assertThat(folder.resolve("out/ids.npy")).hasContent("precious");
    done("export FOLDER -o OUT"); // replaces each whole
    assertThat(longs("out/ids.npy", 5)).containsExactly(IDS);
    Files.createDirectory(folder.resolve("x"));
    Files.createDirectory(folder.resolve("x/std.npy"));
    assertRefused("export FOLDER -o " + folder.resolve("x"), "x/std.npy: is a directory");
    Files.delete(folder.resolve("x/std.npy"));
    assertThat(folder.resolve("x")).isEmptyDirectory();
  }

  @Test
  void help() {
    for (String command : "|create |add |remove |compact |query |info |export ".split("\\|")) {
      Result result = run("index " + command + "--help");
      assertThat(result.status()).isZero();
      assertThat(result.out())
          .startsWith("Usage: kullback index " + command)
          .containsPattern("\\n\\nExamples?:\n  kullback index " + command.strip())
          .contains("--json", "\n\nMore: https://")
          .doesNotContain("\nExit status:\n", "KULLBACK_JAVA_OPTS", "\n\n\n");
    }
    assertThat(run("index --help").out())
        .contains(
            "\n  create ",
            "\n  add ",
            "\n  remove ",
            "\n  compact ",
            "\n  query ",
            "\n  info ",
            "\n  export ");
    assertThat(run("index info --help").out()).doesNotContain("--mean");
  }

  // --- refused

  static Stream<List<String>> refused() {
    String query = "query FOLDER -k 2 --indices i.npy -o o.npy" + Q;
    String within = "query FOLDER --radius 1" + Q;
    String add = "add FOLDER" + P;
    return Stream.of(
        List.of("", "Missing required subcommand"),
        List.of("frob FOLDER", "there is no command 'frob'"),
        List.of("create --mean p.npy --std t.npy", "FOLDER"),
        List.of("create FOLDER" + P, "index: holds an index already: index add adds to it"),
        List.of("create FOLDER2", "give --mean and its scale, or --dimension alone"),
        List.of("create FOLDER2 --dimension 0", "--dimension is 0: give at least 1"),
        List.of("create FOLDER2 --dimension 2000000000", "dimension must be in [1, "),
        List.of("create FOLDER/../q.npy/x" + P, "q.npy/x: Not a directory"),
        List.of("create FOLDER2 --dimension 3 --mean p.npy", "give --mean or --dimension, not"),
        List.of("create FOLDER2 --std t.npy", "a scale and --ids need the mean: give --mean"),
        List.of("create FOLDER2 --dimension 3 --ids j.npy", "need the mean: give --mean"),
        List.of(
            "create FOLDER2 --mean p.npy",
            "exactly one of --std, --variance, --log-variance, --precision, --scale-tril, "),
        List.of(
            "create FOLDER2/x/y" + P,
            "index2/x/y: its folder ",
            "index2/x does not exist: create it"),
        List.of("create FOLDER2 --cov t.npy --mean p.npy", "t.npy: has shape (5, 6), but "),
        List.of(
            "create FOLDER2 --full-covariances" + P,
            "t.npy: has no matrices, as --full-covariances says: give --covariance or --scale-tril"),
        List.of(
            "create FOLDER2 --full-covariances --dimension 11407",
            "dimension must be in [1, 11406] with full covariances, is 11407"),
        List.of("create FOLDER2 --deterministic" + P, "--deterministic"),
        List.of(add, "give --ids: only index create makes ids"),
        List.of(add + " --ids none.npy", "none.npy: no such file"),
        List.of(add + " --ids p.npy", "p.npy: has the unsupported dtype <f4: convert it, np.save("),
        List.of(add + " --ids -", "-: only standard and aligned read standard input"),
        List.of(add + " --ids matrix.npy", "matrix.npy: has shape (5, 2): ids have one axis, (N,)"),
        List.of(
            add + " --ids few.npy", "few.npy: has 2 ids, but ", "p.npy has 5 rows: give one for"),
        List.of(add + " --ids twice.npy", "twice.npy: row 3: id 8 is also that of row 1 (counted"),
        List.of(add + " --ids none1.npy", "none1.npy: row 4: id -1 stands for none in the results"),
        List.of(
            add + " --ids unsigned.npy",
            "element 1 is 9223372036854775808, beyond 2^63 - 1, the greatest integer"),
        List.of(
            "add FOLDER --ids j.npy" + P, "j.npy: row 0: id -9000000000 is in the index already"),
        List.of(
            "add FOLDER --ids new.npy --mean p.npy --std nan.npy", "nan.npy: row 3, column 2: std"),
        List.of(
            "add FOLDER --ids few.npy --mean three.npy --std three.npy",
            "three.npy: has dimension 3,"),
        List.of(
            "add FOLDER --ids j.npy --mean p.npy --std q.npy", "q.npy: has shape (7, 6), but the"),
        List.of("add FOLDER2 --ids j.npy" + P, "index2: no such folder: index create makes"),
        List.of("remove FOLDER", "Missing required option: '--ids=J.npy'"),
        List.of(
            "remove FOLDER --ids matrix.npy", "matrix.npy: has shape (5, 2): ids have one axis"),
        List.of("remove FOLDER2 --ids j.npy", "index2: no such folder: index create makes"),
        List.of("info FOLDER2", "index2: no such folder: index create makes"),
        List.of("export FOLDER", "Missing required option: '--output=OUT'"),
        List.of(
            "export FOLDER -o o.npz", "o.npz: is the name of a file: name a folder for the .npy"),
        List.of("export FOLDER --output=", "the name of the output is empty: name a folder"),
        List.of("export FOLDER -o -", "-: this command writes files, not standard output: name a"),
        List.of("export FOLDER -o FOLDER", "index: is in the folder of the index: name an output"),
        List.of("export FOLDER -o FOLDER/x", "index/x: is in the folder of the index: name an"),
        List.of("export FOLDER -o no/x", "x: its folder ", "no does not exist: create it first"),
        List.of("export FOLDER2 -o out", "index2: no such folder: index create makes"),
        List.of(within, "Missing required option: '--output=OUT.npy'"),
        List.of(
            query.replace("-k 2", "-k 1000000000"),
            "index: has 5 Gaussians, but -k is 1000000000: give 1 to 5\n"),
        List.of(query.replace("-k 2", "-k 6"), "index: has 5 Gaussians, but -k is 6: give 1 to 5"),
        List.of(query + " --radius 1", "give -k or --radius, not both"),
        List.of("query FOLDER --indices i.npy -o o.npy" + Q, "give -k or --radius"),
        List.of(query.replace("-k 2", "-k 0"), "-k is 0: give at least 1"),
        List.of(query + " --threads 0", "--threads is 0: give 1 to 1024"),
        List.of(query + " --exclude x", "'--exclude'"),
        List.of(query + " --exclude-ids few.npy", "few.npy: has 2 ids, but ", "q.npy has 7 rows"),
        List.of(
            "query FOLDER2 -k 2 --indices i.npy -o o.npy" + Q,
            "index2: no such folder: index create makes"),
        List.of("query FOLDER -k 2 -o o.npy" + Q, "o.npy: give --indices I.npy, too"),
        List.of("query FOLDER -k 2 -o o.npz" + Q, "o.npz: give --indices I.npy, too"),
        List.of(
            "query FOLDER -k 2 --indices i.npy -o o.npz" + Q,
            "o.npz: the output has the format .npy"),
        List.of(within + "-o o.npy", "give --indices I.npy, too, or -o a name ending in .npz"),
        List.of(within + "-o o.npz --indices i.npy", "o.npz: holds the ids, too: leave out"),
        List.of("query FOLDER --radius -1 -o o.npz" + Q, "'-1' is not a radius"),
        List.of(
            "query FOLDER -k 2 -o o.npy --indices i.npy --points three.npy",
            "three.npy: has dimension 3, but the index in "),
        List.of(
            "query FOLDER -k 2 -o o.npy --indices i.npy --points q.npy --reverse-divergence",
            "points have no density: leave out --reverse-divergence"),
        List.of(query + " --log-density", "--log-density is of points: give --points X.npy"),
        List.of(
            "query FOLDER --radius -1 -o o.npz --points q.npy",
            "'--radius': '-1' is not a radius: give one >= 0, or inf; with --log-density any"),
        List.of(query.replace("-o o.npy", "-o -"), "-: this command writes files"),
        List.of(query.replace("-o o.npy", "-o q.npy"), "q.npy: is also an input"),
        List.of(query.replace("-o o.npy", "-o i.npy"), "is the same file as the other output"),
        List.of(
            query.replace("-o o.npy", "-o FOLDER/manifest"),
            "manifest: is in the folder of the index: name an output elsewhere"),
        List.of(
            query.replace("-o o.npy", "-o FOLDER/segment-000009.bin"),
            "segment-000009.bin: is in the folder of the index"),
        List.of(
            "query FOLDER -k 2 --indices i.npy -o o.npy --mean three.npy --std three.npy",
            "three.npy: has dimension 3, but the index in ",
            "index has 6"));
  }

  /** Ids of any integers, as one axis or one column. */
  @ParameterizedTest
  @CsvSource({
    "<i2, 5",
    "<u4, 5",
    "<u8, 5",
    "|i1, 5",
    "|u1, 5",
    ">u2, 5",
    "<i4, 5 1",
    "<i8, 5 1",
    "<u8, 5 1"
  })
  void typesOfIds(String descr, String shapeText) throws IOException {
    int size = descr.charAt(2) - '0';
    ByteBuffer data = ByteBuffer.allocate(5 * size);
    for (long id : new long[] {5, 9, 0, 77, 3}) {
      data.put(descr.startsWith(">") ? data.position() + size - 1 : data.position(), (byte) id);
      data.position(data.position() + size);
    }
    long[] shape = Stream.of(shapeText.split(" ")).mapToLong(Long::parseLong).toArray();
    NpyFiles.write(
        folder.resolve("j.npy"),
        NpyFiles.bytes(1, NpyFiles.dict(descr, false, shape), data.array()));
    create();
    done("query FOLDER -k 1 --mean p.npy --std t.npy --indices i.npy -o o.npy");
    assertThat(longs("i.npy", 5, 1)).containsExactly(5, 9, 0, 77, 3);
    assertThat(done("remove FOLDER --ids i.npy")).as("what query wrote").contains("removed 5");
  }

  @ParameterizedTest
  @MethodSource
  void refused(List<String> lineAndMessages) throws IOException {
    create();
    NpyFiles.write(
        folder.resolve("matrix.npy"), "<i8", new long[] {5, 2}, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    NpyFiles.write(
        folder.resolve("unsigned.npy"),
        NpyFiles.bytes(
            1,
            NpyFiles.dict("<u8", false, 5),
            NpyFiles.data("<i8", Long.MAX_VALUE, Long.MIN_VALUE, 3, 4, 5)));
    ids("few.npy", 1, 2);
    ids("new.npy", 1, 2, 3, 4, 5);
    ids("twice.npy", 9, 8, 10, 8, 9 + 4);
    ids("none1.npy", 9, 8, 10, 11, -1);
    save("three.npy", "<f4", 2, 1, 1, 1, 1, 1, 1);
    double[] std = pStd.clone();
    std[3 * D + 2] = Double.NaN;
    save("nan.npy", "<f4", M, std);
    assertRefused(
        lineAndMessages.get(0),
        lineAndMessages.subList(1, lineAndMessages.size()).toArray(String[]::new));
  }

  /** A new index is there whole or not at all. */
  @Test
  void leavesNothingOfAnIndexThatIsNotMade() throws IOException {
    double[] std = pStd.clone();
    std[3 * D + 2] = -1;
    save("t.npy", "<f4", M, std);
    assertUserError(line("create FOLDER" + P), "t.npy: row 3, column 2: std is -1.0");
    assertThat(index).doesNotExist();
    Files.createDirectory(index);
    assertUserError(line("create FOLDER" + P), "t.npy: row 3, column 2: std is -1.0");
    assertThat(index).isEmptyDirectory();
    done("create FOLDER --mean p.npy --std p.npy --clamp");
  }

  /** A folder that was there keeps what was in it, whatever its name, when an index cannot be made in it. */
  @Test
  void leavesWhatWasInTheFolder() throws IOException {
    double[] std = pStd.clone();
    std[3 * D + 2] = -1;
    save("t.npy", "<f4", M, std);
    Files.createDirectory(index);
    Files.writeString(index.resolve("lock"), "mine, lock");
    assertRefused("create FOLDER" + P, "t.npy: row 3, column 2: std is -1.0");
    Files.writeString(index.resolve("manifest.tmp"), "mine, too");
    assertRefused("create FOLDER" + P, "manifest.tmp: is not an index's, and an index needs");
    assertThat(files()).containsOnlyKeys("lock", "manifest.tmp");
    Files.delete(index.resolve("manifest.tmp"));
    done("create FOLDER --clamp --mean p.npy --std p.npy");
    assertThat(index.resolve("lock")).hasContent("mine, lock");
  }

  /** An index of nothing, as a command leaves it that was killed, is filled; one that cannot be is left. */
  @Test
  void createsWhereAnIndexIsEmpty() throws IOException {
    done("create FOLDER --dimension " + D);
    double[] std = pStd.clone();
    std[3 * D + 2] = -1;
    save("t.npy", "<f4", M, std);
    assertRefused("create FOLDER" + P, "t.npy: row 3, column 2: std is -1.0");
    assertUserError(line("create FOLDER --dimension 99"), " is an index of dimension ");
    done("create FOLDER --clamp --mean p.npy --std p.npy");
    assertThat(done("info FOLDER")).contains("size      " + M);
    assertRefused("create FOLDER --dimension " + D, "index: holds an index already");
  }

  /** An index is replaced whole, be it of another dimension, and its folder keeps its permissions. */
  @Test
  void overwrites() throws IOException {
    create();
    assertRefused(
        "create FOLDER" + P,
        "index: holds an index already: index add adds to it, --overwrite replaces it");
    Files.setPosixFilePermissions(index, PosixFilePermissions.fromString("rwxr-x--x"));
    Path link = Files.createSymbolicLink(folder.resolve("link"), Path.of("index"));
    String create = "create " + link + " --overwrite --mean x.npy --std y.npy";
    save("x.npy", "<f4", 2, 1, 2, 3, 4);
    save("y.npy", "<f4", 2, 1, 1, 1, -1);
    assertRefused(create, "y.npy: row 1, column 1: std is -1.0");
    save("y.npy", "<f4", 2, 1, 1, 1, 1);
    assertThat(done(create)).contains(": 2 Gaussians of dimension 2, in ");
    assertThat(link).isSymbolicLink();
    assertThat(Files.getPosixFilePermissions(index))
        .isEqualTo(PosixFilePermissions.fromString("rwxr-x--x"));
    assertThat(done("info FOLDER --check")).contains("dimension 2", "size      2", "deleted   0");
    done("create FOLDER --overwrite --dimension 3");
    done("create FOLDER --overwrite" + P);
    assertThat(done("info FOLDER --check")).contains("dimension 6", "size      5");
    index = folder.resolve("new");
    done("create FOLDER --overwrite" + P);
    assertThat(contents()).noneMatch(name -> name.contains("kullback-"));
  }

  /** Nothing but an index is replaced, and no index that another process has open. */
  @Test
  void overwritesNothingElse() throws IOException {
    String overwrite = "create FOLDER --overwrite" + P;
    Files.createDirectory(index);
    Files.writeString(index.resolve("notes.txt"), "mine");
    done(overwrite); // which was no index
    assertThat(index.resolve("notes.txt")).hasContent("mine");
    assertRefused(overwrite, "index: has notes.txt besides its index, and --overwrite deletes");
    Files.delete(index.resolve("notes.txt"));
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
    Path segment;
    try (Stream<Path> all = Files.list(index)) {
      segment = all.filter(f -> f.toString().endsWith(".bin")).findFirst().orElseThrow();
    }
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

  /** A delta without rows changes nothing, and is no error. */
  @ParameterizedTest
  @ValueSource(strings = {"<f4", "<f8"})
  void nothingToChange(String type) throws IOException {
    create();
    NpyFiles.write(folder.resolve("m.npy"), type, new long[] {0, D});
    NpyFiles.write(folder.resolve("x.npy"), type, new long[] {0, D});
    ids("k.npy");
    String none = " --mean m.npy --std x.npy";
    assertThat(done("add FOLDER --ids k.npy" + none))
        .matches("added 0, in \\S+ s; \\S+index has 5 Gaussians of dimension 6 now\\R");
    assertThat(done("add FOLDER --replace --clamp --ids k.npy" + none))
        .startsWith("added 0 and replaced 0, in ");
    assertThat(done("remove FOLDER --ids k.npy"))
        .matches(
            "removed 0; 0 of the ids were not there; \\S+index has 5 Gaussians of dimension 6 now\\R");
    done("info FOLDER --check");
    done("query FOLDER -k 2 --exclude-ids k.npy --indices i.npy -o o.npy" + none);
    assertThat(longs("i.npy", 0, 2)).isEmpty();
    assertThat(values(read("o.npy", 0, 2))).isEmpty();
    done("query FOLDER --radius inf --indices i.npy -o o.npy" + none);
    assertThat(longs("i.npy", 0, 2)).isEmpty();
    done("query FOLDER --radius inf -o o.npz" + none);
    NpyFiles.write(folder.resolve("y.npy"), type, new long[] {0, 3});
    assertRefused(
        "add FOLDER --ids k.npy --mean y.npy --std y.npy",
        "y.npy: has dimension 3, but the index in ");
    assertRefused("add FOLDER --ids j.npy" + none, "j.npy: has 5 ids, but ", "m.npy has 0 rows");
    assertRefused("add FOLDER --ids k.npy" + P, "k.npy: has 0 ids, but ", "p.npy has 5 rows");
    NpyFiles.write(folder.resolve("y.npy"), type, new long[] {0, 0});
    assertRefused("add FOLDER --ids k.npy --mean y.npy --std y.npy", "y.npy: is an empty batch");
    index = folder.resolve("other");
    assertThat(done("create FOLDER" + none)).contains(": 0 Gaussians of dimension 6");
    assertThat(done("add FOLDER --ids j.npy" + P)).startsWith("added 5,");
  }

  @Test
  void foldersOfSomethingElse() throws IOException {
    Files.createDirectory(index);
    Files.writeString(index.resolve("notes.txt"), "mine");
    for (String line :
        List.of("info FOLDER", "remove FOLDER --ids j.npy", "add FOLDER --ids j.npy" + P)) {
      assertRefused(line, "index: is not the folder of an index: it has no file named manifest");
    }
    Files.writeString(index.resolve("segment-000001.bin"), "mine");
    assertRefused(
        "create FOLDER" + P, "index: has no file named manifest, but has segment-000001.bin: ");
    assertRefused("info FOLDER", "index: has no file named manifest, but has segment-000001.bin: ");
    Files.writeString(index.resolve("manifest"), "mine");
    Map<String, String> before = files();
    assertUserError(line("info FOLDER"), "manifest: is not the manifest of an index");
    assertUserError(line("add FOLDER --ids j.npy" + P), "manifest: is not the manifest of an");
    assertUserError(line("create FOLDER --dimension 3"), "manifest: is not an index's, and");
    assertThat(files()).isEqualTo(before);
    Files.writeString(folder.resolve("plain"), "mine");
    String plain = line("info FOLDER").replace(index.toString(), folder + "/plain");
    assertUserError(plain, "plain: is not a folder");
    Path link = Files.createSymbolicLink(folder.resolve("link"), Path.of("nowhere"));
    for (String line : List.of("create FOLDER --dimension 3", "info FOLDER")) {
      assertUserError(line(line).replace(index.toString(), link.toString()), "link: is a link to ");
    }
    plain = line("create FOLDER --dimension 3").replace(index.toString(), folder + "/plain");
    assertUserError(plain, "plain: is not a folder");
  }

  @Test
  void tornFiles() throws IOException {
    create();
    Path segment;
    try (Stream<Path> all = Files.list(index)) {
      segment = all.filter(f -> f.toString().endsWith(".bin")).findFirst().orElseThrow();
    }
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
