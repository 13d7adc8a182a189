package dev.kullback.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.api.Assertions.withinPercentage;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.terminal.Terminal;
import dev.kullback.cli.terminal.UserError;
import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.JsonReader;
import dev.kullback.cli.testing.NpyFiles;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.DoubleUnaryOperator;
import java.util.stream.Stream;
import org.assertj.core.api.AbstractStringAssert;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class MainTest extends CommandFixture {
  private static final String PAGES = "https://github.com/kullback/kullback/blob/main/src/docs/";

  private static final List<String> COMMANDS =
      List.of(
          ("pairwise aligned standard topk merge within logsumexp gradient density responsibilities entropy mixture-kl reduce"
                  + " index verify info demo completion")
              .split(" "));

  /** Those of the script, too. */
  private static final List<String> ALL =
      Stream.concat(COMMANDS.stream(), Stream.of("spark", "test", "bench", "jdk")).toList();

  private static double kl(double[] m, double[] s, int i, double[] n, double[] t, int j) {
    double sum = 0;
    for (int h = 0; h < D; h++) {
      double ratio = s[i * D + h] / t[j * D + h];
      double distance = (m[i * D + h] - n[j * D + h]) / t[j * D + h];
      sum += (ratio * ratio + distance * distance - 1) / 2 - Math.log(ratio);
    }
    return sum;
  }

  /** Scales of every kind and floats of every width, of which the widest of any input is that of the numbers. */
  @ParameterizedTest
  @CsvSource({
    "std, <f4, std, <f4, ''",
    "std, >f4, std, >f4, --backend scalar",
    "std, <f4, std, >f8, --backend=Auto",
    "std, <f4, std, <f4, --threads 1",
    "std, >f8, std, <f4, --threads 3",
    "std, <f8, var, >f8, ''",
    "var, >f8, precision, <f8, ''",
    "precision, <f8, logvar, >f8, ''",
    "logvar, <f8, std, >f8, ''"
  })
  void pairwise(String q, String qDescr, String p, String pDescr, String options)
      throws IOException {
    boolean isDouble = qDescr.endsWith("8") || pDescr.endsWith("8");
    save("s.npy", qDescr, N, scale(q, qStd));
    save("t.npy", pDescr, M, scale(p, pStd));
    succeed(
        "pairwise --mean q.npy --%s s.npy --p-mean p.npy --p-%s t.npy -o o.npy %s"
            .formatted(q, p, options));
    Npy.Array got = read("o.npy", N, M);
    assertThat(got.isDouble()).isEqualTo(isDouble);
    for (int k = 0; k < N * M; k++) {
      double want = kl(qMean, qStd, k / M, pMean, pStd, k % M);
      assertThat(got.value(k)).isCloseTo(want, within((isDouble ? 1e-12 : 1e-5) * want));
    }
  }

  private static double[] scale(String kind, double[] std) {
    DoubleUnaryOperator f =
        switch (kind) {
          case "std" -> s -> s;
          case "var" -> s -> s * s;
          case "precision" -> s -> 1 / (s * s);
          default -> s -> 2 * Math.log(s);
        };
    return Arrays.stream(std).map(f).toArray();
  }

  /** The Wasserstein distance takes what has no inverse, by itself; other divergences refuse it by rank, and say what to add. */
  @ParameterizedTest
  @ValueSource(strings = {"<f4", "<f8"})
  void singularCovariances(String type) throws IOException {
    double[] matrices = new double[27]; // Σ, 4Σ and 0
    for (int k = 0; k < 18; k++) {
      matrices[k] = (1 + k / 9 * 3) * new int[] {1, 0, 1, 0, 1, 1, 1, 1, 2}[k % 9];
    }
    save("m3.npy", type, "3 3", new double[9]);
    save("c.npy", type, "3 3 3", matrices);
    String full = " --divergence squared-wasserstein-2 --mean m3.npy --cov c.npy -o o.npy";
    succeed("standard" + full);
    assertThat(values(read("o.npy", 3)))
        .containsExactly(
            new double[] {5 - 2 * Math.sqrt(3), 19 - 4 * (1 + Math.sqrt(3)), 3}, within(2e-6));
    succeed("pairwise" + full);
    assertThat(values(read("o.npy", 3, 3)))
        .containsExactly(new double[] {0, 4, 4, 4, 0, 16, 4, 16, 0}, within(1e-5));
    succeed("topk -k 1 --exclude-self --indices i.npy" + full.replace("squared-", ""));
    assertThat(values(read("o.npy", 3, 1))).containsExactly(new double[] {2, 2, 2}, within(1e-6));
    for (String command :
        List.of("standard", "standard --divergence jeffreys", "pairwise", "entropy")) {
      assertUserError(
          command + " --mean m3.npy --cov c.npy -o o.npy",
          "c.npy: covariance[0] (Gaussian 0) has rank 2 of 3 (fewer samples than dimensions?): add 1e-0");
    }
  }

  @Test
  void heatmap() throws IOException {
    succeed("pairwise --mean q.npy --std s.npy -o o.npy --heatmap h.png");
    assertThat(Files.readAllBytes(folder.resolve("h.png")))
        .startsWith(0x89, 'P', 'N', 'G')
        .hasSizeGreaterThan(1000);
    assertThat(values(read("o.npy", N, N))).hasSize(N * N);
  }

  @ParameterizedTest
  @ValueSource(strings = {"kl", "kl.v1", ".kl", "csv", "kl.NPY", "kl."})
  void otherNamesAreAccepted(String name) throws IOException {
    String output = folder.resolve(name).toString();
    succeed("standard --mean q.npy --std s.npy -o " + output);
    assertThat(values(read(name, N))).hasSize(N);
  }

  @Test
  void standardOutput() throws IOException {
    for (String command : new String[] {"standard", "aligned --p-mean q.npy --p-std t.npy"}) {
      save("t.npy", "<f8", N, qStd);
      String line = command + " --mean q.npy --std s.npy -o ";
      succeed(line + "o.npy");
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      ByteArrayOutputStream err = new ByteArrayOutputStream();
      for (String option : new String[] {"", " --quiet", " --json"}) {
        out.reset();
        err.reset();
        assertThat(Main.run(args(line + "-" + option), stream(out), stream(err))).isZero();
        assertThat(out.toByteArray()).isEqualTo(Files.readAllBytes(folder.resolve("o.npy")));
        assertThat(err.toString(StandardCharsets.UTF_8))
            .matches(
                switch (option) {
                  case "" -> "KL\\(.*; min .*\\R";
                  case " --quiet" -> "";
                  default -> "\\{\"command\": .*\\}\\R";
                });
      }
    }
  }

  @Test
  void standardOutputOfSegmentsLongerThanAChunk() {
    byte[] bytes = new byte[200_000];
    random.nextBytes(bytes);
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    assertThat(new Terminal(stream(out), System.err).write(MemorySegment.ofArray(bytes))).isTrue();
    assertThat(out.toByteArray()).isEqualTo(bytes);
  }

  @Test
  void versionAndInfo() {
    assertThat(run("--version").out()).matches("kullback \\S+\\R");
    assertThat(run("info --threads 2 --backend scalar").out())
        .contains("kullback ", "java ", "system ", "backend ", "engine ");
    assertThat((Map<?, ?>) JsonReader.read(run("info --json").out()))
        .extracting(facts -> facts.get("command"), facts -> facts.containsKey("backends"))
        .containsExactly("info", true);
  }

  @Tag("compiled")
  @Test
  void verifyTellsOfEachBackend() {
    Result result = runRaw("verify", "--seconds", "0.1", "--threads", "1");
    assertThat(result.err()).isEmpty();
    assertThat(result.status()).isZero();
    assertThat(result.out())
        .contains("vector: available", "scalar: available", "not tried: cuda: ")
        .containsPattern("logSumExp +\\d+ calls .* ok\n")
        .endsWith("all right: vector, scalar" + System.lineSeparator())
        .doesNotContain("WRONG");
  }

  /** What a file says must not reach the terminal as it is. */
  @Test
  void hostileHeaders() throws IOException {
    String line = "pairwise --mean q.npy --std s.npy --p-mean p.npy --p-std x.npy -o o.npy";
    String huge = NpyFiles.dict("<f4", false, 2_000_000_000, 2_000_000_000);
    NpyFiles.write(folder.resolve("x.npy"), NpyFiles.bytes(1, huge, new byte[16]));
    assertUserError(line, "x.npy: is truncated: ", "(2000000000, 2000000000)");
    byte[] keys = NpyFiles.bytes(1, "{'a\nb\u001b[31m': 1}", new byte[16]);
    NpyFiles.write(folder.resolve("x.npy"), keys);
    assertUserError(line, "x.npy: has an unexpected or repeated key 'a\\u000ab\\u001b[31m'");
  }

  /** [N, D, D], with 2 on the diagonal. */
  private void saveCovariances(String descr, double lower, double upper) throws IOException {
    double[] covariance = new double[N * D * D];
    for (int k = 0; k < covariance.length; k++) {
      int row = k / D % D;
      covariance[k] = row == k % D ? 2 : row > k % D ? lower : upper;
    }
    save("cov.npy", descr, "7 6 6", covariance);
  }

  /** The asymmetry that passes for rounding depends on the type of the matrices, not on that of the means. */
  @ParameterizedTest
  @CsvSource({
    "<f4, <f8, 1.8e-5, 1e-05",
    ">f4, <f8, 1.8e-5, 1e-05",
    "<f4, >f4, 1.8e-5, 1e-05",
    "<f4, <f4, 1.8e-5, 1e-05",
    "<f8, <f8, 1.9e-6, 1e-06",
    ">f8, <f4, 1.9e-6, 1e-06"
  })
  void asymmetry(String descr, String mean, double most, String limit) throws IOException {
    save("q.npy", mean, N, qMean);
    String line = "standard --mean q.npy --cov cov.npy -o o.npy";
    for (double part : new double[] {2e-9, 3e-7, most}) {
      float half = (float) (1 + part); // as a file of floats has it
      double above = descr.endsWith("4") ? half : 1 + part;
      saveCovariances(descr, 1, above);
      succeed(line);
      double[] got = values(read("o.npy", N));
      succeed("aligned --mean q.npy --std s.npy --p-mean q.npy --p-cov cov.npy -o o.npy");
      double middle = 0.5 * (1 + above); // the mean of both triangles counts
      saveCovariances("<f8", middle, middle);
      succeed(line);
      double[] expected = values(read("o.npy", N));
      for (int i = 0; i < N; i++) {
        assertThat(got[i]).isCloseTo(expected[i], withinPercentage(1e-4));
      }
    }
    saveCovariances(descr, 1, 1 + 1e-4);
    assertUserError(
        line,
        "cov.npy: covariance[0] (Gaussian 0) is not symmetric: [1][0] is 1.0 but [0][1] is 1.0001, a difference of 5.00",
        "e-05 √([1][1]·[0][0]); up to "
            + limit
            + " passes for rounding: if it is that, give (C + Cᵀ)/2");
    saveCovariances(descr, 1, Double.NaN);
    assertUserError(line, "cov.npy: covariance[0][0][1] (Gaussian 0, row 0, column 1) is NaN");
  }

  @Test
  void saysThatItsOutputIsLost() {
    String files = folder.resolve("o.npy") + " and " + folder.resolve("i.npy");
    assertLost("info", "");
    assertLost("standard --mean q.npy --std s.npy -o -", "");
    assertLost(
        "topk -k 2 --mean q.npy --std s.npy --indices i.npy -o o.npy", files + ": written, but ");
    assertThat(folder.resolve("i.npy")).exists();
  }

  private void assertLost(String line, String message) {
    PrintStream closed = new PrintStream(OutputStream.nullOutputStream());
    closed.close();
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    assertThat(Main.run(args(line), closed, stream(err))).isEqualTo(1);
    assertThat(err.toString(StandardCharsets.UTF_8))
        .isEqualTo("kullback: " + message + "cannot write to standard output\n");
  }

  /** Makes the command that runs this command line in a virtual machine of its own. */
  private List<String> command(String commandLine) {
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:-UsePerfData", // a file, of which a limit on files would be told
                "-Ddev.kullback.backend=scalar",
                "-cp",
                System.getProperty("java.class.path"),
                Main.class.getName()));
    command.addAll(List.of(args(commandLine)));
    return command;
  }

  @ParameterizedTest
  @ValueSource(strings = {"--version", "pairwise --help", "standard --mean q.npy --std s.npy -o -"})
  @EnabledOnOs({OS.LINUX, OS.MAC})
  @Timeout(60)
  void nobodyReadsStandardOutput(String line) throws Exception {
    Process process = new ProcessBuilder(command(line)).start();
    process.getInputStream().close();
    assertThat(process.waitFor()).isEqualTo(141);
    assertThat(new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8))
        .doesNotContain("kullback:", "\tat ");
  }

  /** A limit on the size of files fails the command as a full disk would. */
  @Test
  @EnabledOnOs({OS.LINUX, OS.MAC})
  @Timeout(60)
  void theFileSystemRefusesMore() throws Exception {
    int rows = 10_000;
    double[] ones = new double[rows];
    Arrays.fill(ones, 1);
    save("q.npy", "<f4", rows, ones);
    Files.writeString(folder.resolve("o.npy"), "precious");
    List<String> before = contents();
    List<String> limited = new ArrayList<>(List.of("sh", "-c", "ulimit -f 2; exec \"$@\"", "sh"));
    limited.addAll(command("standard --mean q.npy --std q.npy -o o.npy"));
    Process process = new ProcessBuilder(limited).start();
    String err = new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(err.lines().filter(l -> l.startsWith("kullback: ")))
        .containsExactly(
            "kullback: " + folder.resolve("o.npy") + ": cannot be written: File too large");
    assertThat(process.waitFor()).isEqualTo(1);
    assertThat(contents()).isEqualTo(before);
  }

  @Test
  @EnabledOnOs(OS.LINUX)
  @Timeout(60)
  void noBinaryOnATerminal() throws Exception {
    assumeThat(Path.of("/usr/bin/script")).isExecutable(); // makes a terminal
    List<String> words = command("standard --mean q.npy --std s.npy -o -");
    for (String stdin : new String[] {"", " </dev/null"}) {
      Process process =
          new ProcessBuilder("script", "-qec", String.join(" ", words) + stdin, "/dev/null")
              .redirectInput(new File("/dev/null"))
              .start();
      String shown =
          new String(process.getInputStream().readAllBytes(), StandardCharsets.ISO_8859_1);
      assertThat(shown)
          .contains("kullback: -: standard output is a terminal")
          .doesNotContain("NUMPY");
      assertThat(process.waitFor()).isEqualTo(2);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "pairwise --mean q.npy --std s.npy -o ",
        "aligned --mean q.npy --std s.npy --p-mean q.npy --p-std s.npy -o ",
        "standard --mean q.npy --std s.npy -o ",
        "topk -k 2 --mean q.npy --std s.npy --indices i.npy -o ",
        "topk -k 2 --mean q.npy --std s.npy -o o.npy --indices ",
        "within --radius 2 --mean q.npy --std s.npy --indices i.npy -o ",
        "logsumexp --mean q.npy --std s.npy -o ",
        "entropy --mean q.npy --std s.npy -o ",
        "pairwise --mean q.npy --std s.npy -o o.npy --heatmap ",
      })
  void badOutputs(String line) throws IOException {
    String suffix = line.endsWith("--heatmap ") ? ".png" : ".npy";
    Files.createDirectory(folder.resolve("d" + suffix));
    assertUserError(line + "d" + suffix, "d" + suffix + ": is a directory");
    assertUserError(
        line + "none/x" + suffix, "none/x" + suffix + ": its folder ", "does not exist");
    assertUserError(line + "q.npy/x" + suffix, "q.npy/x" + suffix + ": ", "q.npy is not a folder");
    assertUserError(line + "x".repeat(300) + suffix, "x" + suffix + ": File name too long");
  }

  @Test
  void matrixLargerThanTheDisk() throws IOException {
    int n = 4_000_000; // 64 TB
    NpyFiles.write(
        folder.resolve("q.npy"),
        NpyFiles.bytes(1, NpyFiles.dict("<f4", false, n, 1), new byte[4 * n]));
    double[] ones = new double[n];
    Arrays.fill(ones, 1);
    NpyFiles.write(folder.resolve("s.npy"), "<f4", new long[] {n, 1}, ones);
    Files.writeString(folder.resolve("o.npy"), "precious");
    Result result = run("pairwise --mean q.npy --std s.npy -o o.npy");
    assertThat(result.err()).contains("o.npy: needs 64000 GB, but its disk has ").hasLineCount(1);
    assertThat(result.status()).isEqualTo(1);
    assertThat(folder.resolve("o.npy")).hasContent("precious");
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files.map(f -> f.getFileName().toString()))
          .containsExactlyInAnyOrder("q.npy", "s.npy", "p.npy", "t.npy", "o.npy");
    }
  }

  @Test
  void debugShowsTheStackTrace() {
    Result result = run("standard --mean none.npy --std s.npy -o o.npy --debug");
    assertThat(result.status()).isEqualTo(2);
    assertThat(result.err()).startsWith("kullback: ").contains("    at ", "NoSuchFileException");
  }

  /** Returns what is told, without the name of the program. */
  private static String report(Throwable failure) {
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    assertThat(new Main(System.out, stream(err)).report(failure)).isEqualTo(1);
    assertThat(err.toString(StandardCharsets.UTF_8)).startsWith("kullback: ").hasLineCount(1);
    return err.toString(StandardCharsets.UTF_8).substring("kullback: ".length()).strip();
  }

  /** An exception like the library's for a device that fails while it computes. */
  static final class DeviceException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    DeviceException(String message) {
      super(message, new IllegalStateException("the cause"));
    }
  }

  @Test
  void otherErrorsHaveStatus1() {
    String heap = ": raise the heap, e\\.g\\. KULLBACK_JAVA_OPTS=-Xmx[1-9]\\d*g";
    assertThat(report(new OutOfMemoryError("Java heap space")))
        .matches("out of memory \\(Java heap space\\)" + heap);
    assertThat(report(new OutOfMemoryError("no 3 bytes of direct buffer memory")))
        .matches("out of memory \\(.*direct buffer memory\\)" + heap);
    assertThat(report(new OutOfMemoryError("12 bytes")))
        .isEqualTo("out of memory (12 bytes): free some, or split the batch by rows");
    assertThat(report(new IOException("disk\non fire")))
        .startsWith("unexpected ")
        .contains("\\u000aon");
    assertThat(report(new DeviceException("out of device memory:\n4 GB needed")))
        .isEqualTo("out of device memory:\\u000a4 GB needed");
    assertThat(report(new RuntimeException("odd")))
        .isEqualTo("unexpected java.lang.RuntimeException: odd; --debug shows where");
  }

  @Test
  void longWordsAreCut() {
    for (String line :
        List.of(
            "standard --std s.npy --mean " + "d/".repeat(400) + "q.npy -o o.npy",
            "info " + "x".repeat(400),
            "standard --mean q.npy --std s.npy -o o.npy --backend " + "\u202e".repeat(300))) {
      Result result = run(line);
      assertThat(result.status()).isEqualTo(2);
      assertThat(result.err().strip())
          .hasSizeBetween(70, 220)
          .startsWith("kullback: ")
          .contains("\u2026");
    }
    assertThat(run("info " + "x".repeat(400)).err())
        .matches("kullback: unexpected argument 'x{35}…x{24}'; see kullback info --help\n");
    assertThat(run("standard --std s.npy --mean " + "d/".repeat(400) + "q.npy -o o.npy").err())
        .contains("/q.npy: no such file");
  }

  /** Long paths are cut before the file's name, and nothing else is. */
  @Test
  void longPathsLeaveTheReasonWhole() throws IOException {
    Path deep = folder;
    for (String part :
        List.of("mnt-persistent-volume-claim-0123456789abcdef", "models", "eu-west-1")) {
      deep = deep.resolve(part.repeat(3));
    }
    Files.createDirectories(deep);
    Path mean = Files.copy(folder.resolve("q.npy"), deep.resolve("posterior_means_epoch_0200.npy"));
    Path std = Files.copy(folder.resolve("s.npy"), deep.resolve("posterior_scales_epoch_0200.npy"));
    Path out = folder.resolve("o.npy");
    assertThat(error("standard", "--mean=" + mean, "--cov", std, "-o", out))
        .matches(
            "/[^ ]{1,30}…/posterior_scales_epoch_0200\\.npy: has shape \\(7, 6\\), but with the means in"
                + " /[^ ]{1,30}…/posterior_means_epoch_0200\\.npy, of shape \\(7, 6\\), it must be \\(7, 6, 6\\); variances: give --variance\n");
    Path index = deep.resolve("index");
    String none = ": no such folder: index create makes an index\n";
    assertThat(error("index", "info", index)).matches("/[^ ]*…/index" + none);
    Files.createDirectory(index);
    Files.writeString(index.resolve("note"), "");
    assertThat(error("index", "info", index)).matches("/[^ ]*…/index: .* file named manifest.*\n");
    String same = folder + ("/" + "d".repeat(60)).repeat(6); // whose folders are cut to the same
    assertThat(error("index", "info", same)).hasSizeLessThan(190).endsWith(none);
    Path absent = deep.resolve("a/b/out.npy"); // its folder is told, too
    assertThat(error("standard", "--mean", mean, "--std", std, "-o", absent))
        .matches("/[^ ]*…/out.npy: .*/[^ ]*…/b.*\n");
    String archive = deep.resolve("moments.npz") + ":group/mean";
    assertThat(error("standard", "--mean", archive, "--std", std, "-o", out))
        .matches("/[^ ]*…/moments\\.npz:group/mean: no such file\n");
    String divergence = "x".repeat(20);
    assertThat(
            error("standard", "--mean", mean, "--std", std, "-o", out, "--divergence", divergence))
        .contains(divergence)
        .doesNotContain("…");
    // of the same name in other folders: these are told
    Path last = Files.createDirectories(deep.resolveSibling("eu-west-2".repeat(3)).resolve("last"));
    Path other = Files.copy(folder.resolve("p.npy"), last.resolve(mean.getFileName()));
    last = Files.createDirectories(deep.resolve("last"));
    Path first = Files.copy(mean, last.resolve(mean.getFileName()));
    assertThat(error("standard", "--mean", first, "--std", other, "-o", out))
        .matches(
            "/[^ ]{1,30}…/(eu-west-2){3}/last/posterior_means_epoch_0200\\.npy: has shape \\(5, 6\\), but the means in"
                + " /[^ ]{1,30}…/(eu-west-1){3}/last/posterior_means_epoch_0200\\.npy have .*\n");
  }

  private static String error(Object... args) {
    String err = runRaw(Stream.of(args).map(String::valueOf).toArray(String[]::new)).err();
    assertThat(err).startsWith("kullback: ");
    return err.substring("kullback: ".length());
  }

  @Test
  void reasonsAreNeverCut() {
    String reason = "reason\u001b 漢😀 ".repeat(100) + "the end";
    Path path = Path.of("/" + "folder/".repeat(40) + "file.npy");
    String shown = reason.replace("\u001b", "\\u001b");
    for (Throwable e :
        new Throwable[] {
          new UserError(path, reason),
          new UserError(path, new FileSystemException(path.toString(), null, reason)),
          new UserError(path, new IOException(reason)),
          new IllegalArgumentException(path + ": " + reason),
        }) {
      ByteArrayOutputStream err = new ByteArrayOutputStream();
      PrintStream stream = stream(err);
      assertThat(new Main(stream, stream, "info", "--mean=" + path).report(e)).isEqualTo(2);
      assertThat(err.toString(StandardCharsets.UTF_8))
          .matches("kullback: /[^ ]{10,59}…/file\\.npy: [^\\n]*\\n")
          .endsWith(": " + shown + "\n");
    }
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    PrintStream stream = stream(err);
    IOException two = new FileSystemException(path.toString(), path + "2", reason);
    assertThat(new Main(stream, stream, "info", path.toString()).report(two)).isEqualTo(1);
    assertThat(err.toString(StandardCharsets.UTF_8))
        .matches(
            "kullback: unexpected java.nio.file.FileSystemException: /[^ ]*…/file.npy -> /[^ ]*…/file.npy2: [^\\n]*\\n")
        .contains(shown + "; --debug shows where");
  }

  @Test
  void namesDoNotSteerTheTerminal() {
    String name = folder + "/a\nb\u001b[31m\u202e\u200b\u2028\ud800é😀.npy";
    String shown = "/a\\u000ab\\u001b[31m\\u202e\\u200b\\u2028\\ud800é😀.npy";
    for (String[] args :
        new String[][] {
          {"info", name}, {"info", "--backend", name}, {"info", "--" + name}, {name}
        }) {
      assertThat(runRaw(args).err()).contains(shown).matches("[^\\r\\n]+\\R");
    }
    Result debug = runRaw("info", "--debug", name);
    assertThat(debug.err()).contains(shown).doesNotContain("\u001b", "\u202e", "\u2028");
  }

  @Test
  @EnabledOnOs(OS.LINUX)
  void summariesDoNotSteerTheTerminal() {
    assumeThat(System.getProperty("sun.jnu.encoding")).isEqualTo("UTF-8");
    String line = "topk -k 2 --mean q.npy --std s.npy --indices i.npy -o";
    List<String> args = new ArrayList<>(List.of(args(line)));
    args.add(folder + "/a\u001b[31m\u202e");
    Result result = runRaw(args.toArray(String[]::new));
    assertThat(result.out())
        .contains("wrote " + folder + "/a\\u001b[31m\\u202e and ")
        .doesNotContain("\u001b", "\u202e");
  }

  @Test
  void helpEndsAlike() {
    for (String command :
        ("|%s |index create |index add |index remove |index compact |index query |index info |index export "
                .formatted(String.join(" |", COMMANDS)))
            .split("\\|")) {
      Result result = run(command + "--help");
      assertThat(result.err() + result.status()).isEqualTo("0");
      AbstractStringAssert<?> help =
          assertThat(result.out())
              .as(command)
              .startsWith("Usage: kullback " + command)
              .containsPattern("\\n\\nExamples?:\n  kullback " + command.strip())
              .endsWith("\n\nMore: " + PAGES + "command-line.md\n")
              .doesNotContain("\n\n\n");
      String[] ofAll = {"\nExit status:\n", "\n  141 ", "KULLBACK_JAVA_HOME", "KULLBACK_JAVA_OPTS"};
      if (command.isEmpty()) {
        help.contains(ofAll);
      } else {
        help.doesNotContain(ofAll);
      }
    }
    for (String command :
        List.of("create", "add", "remove", "compact", "query", "info", "export")) {
      assertThat(run("index --help").out()).contains("\n  " + command + " ");
      assertThat(run("index " + command + " --help").out()).contains("--json");
    }
    assertThat(run("index info --help").out()).doesNotContain("--mean");
    assertThat(Path.of(System.getProperty("basedir", "."), "../docs/command-line.md")).exists();
  }

  /** Users' commands come first, those of developers last, in a group of their own. */
  @Test
  void commandsInGroups() {
    String help = run("--help").out();
    int users = help.indexOf("\nCommands:\n");
    int developers = help.indexOf("\n\nCommands for work on Kullback itself:\n");
    assertThat(users).isPositive().isLessThan(developers);
    String first = help.substring(users, developers);
    String last = help.substring(developers, help.indexOf("\n\nExamples:\n"));
    for (String command : COMMANDS) {
      assertThat(first).contains("\n  " + command + " ");
      assertThat(last).doesNotContain("\n  " + command + " ");
    }
    assertThat(first).contains("\n  spark ").doesNotContain("\n  test ", "\n  bench ", "\n  jdk ");
    assertThat(last).contains("\n  test ", "\n  bench ", "\n  jdk ").doesNotContain("\n  spark ");
  }

  /** Only the subcommand that is called is built, since building all takes longer than a small calculation. */
  @Test
  void onlyTheCommandCalledIsBuilt() {
    assertThat(subcommands("info", "--help")).containsExactly("info");
    assertThat(subcommands()).containsExactlyElementsOf(ALL);
    assertThat(subcommands("--debug", "info")).containsExactlyElementsOf(ALL);
    assertThat(subcommands("index", "query")).containsExactly("index");
    assertThat(subcommands("inof")).containsExactlyElementsOf(ALL);
    assertThat(run("--debug info --backend scalar").status()).isZero();
    assertThat(run("--version info").out()).startsWith("kullback ").hasLineCount(1);
    assertThat(run("--version extra").out()).isEqualTo(run("--version").out());
  }

  private Iterable<String> subcommands(String... args) {
    return new Main(System.out, System.err).line(args).getSubcommands().keySet();
  }

  /** Each command of divergences computes the one it is told, and its summary and JSON name it. */
  @Test
  void divergence() throws IOException {
    save("q.npy", "<f8", 2, new double[2 * D]);
    double[] std = new double[2 * D];
    Arrays.fill(std, 1);
    std[0] = 2; // of one dimension: J = (4 - 1)²/(2·4)
    save("s.npy", "<f8", 2, std);
    String batch = " --mean q.npy --std s.npy";
    String indices = " --indices i.npy";
    double jeffreys = 9 / 8.0;
    for (String line :
        List.of(
            "pairwise" + batch,
            "topk -k 2" + indices + batch,
            "within --radius inf" + indices + batch,
            "aligned --p-mean q.npy --p-std s.npy" + batch,
            "standard" + batch,
            "logsumexp" + batch)) {
      String command = line + " -o o.npy --divergence ";
      Map<?, ?> facts = (Map<?, ?>) JsonReader.read(run(command + "jeffreys --json").out());
      assertThat(facts.get("divergence")).as(line).isEqualTo("jeffreys");
      double expected =
          line.startsWith("aligned")
              ? 0
              : line.startsWith("logsumexp") ? Math.log1p(Math.exp(-jeffreys)) : jeffreys;
      assertThat((Double) facts.get("max")).as(line).isCloseTo(expected, within(1e-12));
      assertThat(run(command + "Renyi:0.5").out()).as(line).contains("renyi:0.5(");
      assertThat(run(command + "reverse_kl").out()).as(line).contains("KL(").contains("||q");
      assertThat(run(line + " -o o.npy").out()).as(line).contains("KL(q");
    }
  }

  /** What has no use for another divergence than KL does not offer one. */
  @ParameterizedTest
  @ValueSource(strings = {"entropy", "mixture-kl"})
  void noOtherDivergence(String command) {
    assertThat(run(command + " --help").out())
        .contains("--backend", "--threads", "nats")
        .doesNotContain("--divergence", "hellinger");
  }

  @Test
  void jsonOfAVerification() {
    Result result = run("verify --seconds 0.001 --threads 1 --backend scalar --json");
    assertThat(result.status()).isZero();
    assertThat(result.err()).isEmpty();
    assertThat(result.out()).hasLineCount(1);
    Map<?, ?> facts = (Map<?, ?>) JsonReader.read(result.out());
    assertThat(facts.get("command")).isEqualTo("verify");
    assertThat(facts.get("right")).isEqualTo(true);
    Map<?, ?> backend = (Map<?, ?>) ((List<?>) facts.get("backends")).getFirst();
    assertThat(backend.get("backend")).isEqualTo("scalar");
    assertThat(backend.containsKey("compiled")).isTrue();
    assertThat(backend.get("compiled")).as("it has no vectors").isNull();
    assertThat((List<?>) backend.get("operations"))
        .hasSizeGreaterThan(5)
        .allSatisfy(o -> assertThat(((Map<?, ?>) o).get("wrong")).isEqualTo(""));
  }

  /** A moment is too short for the JVM to compile what runs: right alone would be taken for more than was found. */
  @Tag("compiled")
  @Test
  void jsonOfAVerificationTellsWhetherVectorsWereCompiled() {
    Result result = runRaw("verify --seconds 0.001 --threads 1 --backend vector --json".split(" "));
    assertThat(result.status()).isZero();
    Map<?, ?> facts = (Map<?, ?>) JsonReader.read(result.out());
    Map<?, ?> backend = (Map<?, ?>) ((List<?>) facts.get("backends")).getFirst();
    boolean isBoxed =
        ((List<?>) backend.get("operations"))
            .stream().anyMatch(o -> ((Number) ((Map<?, ?>) o).get("bytes")).longValue() >= 1000);
    assertThat(backend.get("compiled")).isEqualTo(!isBoxed);
    assertThat(facts.get("right")).isEqualTo(true);
  }

  /** Options of all commands may stand before the command, after it, and both. */
  @Test
  void optionsOfAllCommandsMayBeGivenTwice() {
    String line = "standard --mean q.npy --std s.npy -o o.npy ";
    assertThat(run("--json " + line + "--json").out()).startsWith("{");
    assertThat(run("--quiet " + line + "--quiet").out()).isEmpty();
    assertThat(run("--debug " + line.replace("q.npy", "no.npy") + "--debug").err())
        .contains(" at ");
  }

  @Test
  void helpNamesEveryBackend() {
    assertThat(run("pairwise --help").out())
        .contains("auto, vector, scalar or cuda", "not for matrices");
  }

  @Test
  void argumentsAreNoArgumentFiles() throws IOException {
    Files.writeString(folder.resolve("x"), "--help");
    Result result = runRaw("standard", "--mean", "@" + folder.resolve("x"));
    assertThat(result.status()).isEqualTo(2);
  }
}
