package dev.kullback.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.cli.command.Commands;
import dev.kullback.cli.terminal.Terminal;
import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.JsonReader;
import dev.kullback.cli.testing.NpyFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Rules that are the same in all commands: what becomes of files that are there, and how options are called. */
class RulesTest extends CommandFixture {
  private static final String Q = " --mean q.npy --std s.npy ";

  /** Each line's outputs come last. */
  private static final String[] WRITING = {
    "pairwise" + Q + "-o o.npy --heatmap h.png",
    "aligned" + Q + "--p-mean q.npy --p-std s.npy -o o.npy",
    "standard" + Q + "-o o.npy",
    "topk -k 2" + Q + "-o o.npy --indices i.npy",
    "within --radius 9" + Q + "-o o.npy --indices i.npy",
    "within --radius 9" + Q + "-o o.npz",
    "logsumexp" + Q + "-o o.npy",
    "gradient --loss pairwise --p-mean p.npy --p-std t.npy" + Q + "-o o.npy --p-output x.npy",
    "density --points q.npy --p-mean q.npy --p-std s.npy -o o.npy",
    "responsibilities --points q.npy --p-mean q.npy --p-std s.npy -o o.npy",
    "entropy" + Q + "-o o.npy",
    "mixture-kl --method monte-carlo" + Q + "-o o.npy --standard-errors e.npy",
    "reduce --to 2" + Q + "-o o.npy --out-scale x.npy --out-weights w.npy --indices i.npy",
    "merge --in-values v.npy --in-indices c.npy -o o.npy --indices i.npy",
  };

  static List<String> writing() {
    return List.of(WRITING);
  }

  /** A file is replaced whole; with --no-clobber, any output that is there is refused before the inputs are looked at. */
  @ParameterizedTest
  @MethodSource("writing")
  void outputsThatAreThere(String line) throws IOException {
    succeed("topk --exact -k 2" + Q + "-o v.npy --indices c.npy");
    succeed(line + " --no-clobber");
    List<String> outputs =
        Arrays.stream(line.substring(line.indexOf("-o ")).split(" "))
            .filter(word -> !word.startsWith("-"))
            .toList();
    assertThat(outputs).isNotEmpty();
    succeed(line);
    for (String name : outputs) {
      Files.delete(folder.resolve(name));
    }
    Files.writeString(folder.resolve("s.npy"), "not an array");
    Files.writeString(folder.resolve("v.npy"), "not an array");
    for (String name : outputs) {
      Path file = Files.writeString(folder.resolve(name), "precious");
      List<String> before = contents();
      Result refused = run(line + " --no-clobber");
      assertThat(refused.err())
          .isEqualTo(
              "kullback: "
                  + file
                  + ": is there, and --no-clobber keeps it: name another output, or leave that out\n");
      assertThat(refused.status()).isEqualTo(2);
      assertThat(contents()).isEqualTo(before);
      Files.delete(file);
    }
    assertThat(run(line + " --no-clobber").err()).contains(".npy: is not a .npy file");
  }

  /** The rule stands in the help of each command that writes files, and of no other. */
  @Test
  void theRuleIsInTheHelp() {
    for (String line : WRITING) {
      String command = line.split(" ")[0];
      assertThat(run(command + " --help").out()).as(command).contains("--no-clobber", "replaced");
    }
    assertThat(run("index query --help").out()).contains("--no-clobber", "replaced");
    assertThat(run("index export --help").out()).contains("--no-clobber", "replaced");
    assertThat(run("demo --help").out()).contains("--no-clobber", "replaced");
    assertThat(run("index create --help").out())
        .contains("--overwrite", "the index in the folder")
        .doesNotContain("--no-clobber");
    for (String other : List.of("info", "verify", "index add", "index remove", "index info")) {
      assertThat(run(other + " --help").out()).doesNotContain("--no-clobber", "--overwrite");
    }
  }

  @Test
  void shorts() {
    assertThat(run("-V")).isEqualTo(run("--version"));
    assertThat(run("-V").out()).isEqualTo("kullback " + Terminal.version() + "\n");
    String line = "standard" + Q + "-o o.npy ";
    assertThat(run(line + "-q")).isEqualTo(new Result(0, "", ""));
    assertThat(run("-q " + line)).isEqualTo(new Result(0, "", ""));
    for (String option : List.of("-j 3", "-j3", "--threads 3")) {
      Map<?, ?> facts = (Map<?, ?>) JsonReader.read(run(line + "--json " + option).out());
      assertThat(facts.get("threads")).isEqualTo(3.0);
    }
    assertThat(run(line + "-j 0").err()).contains("--threads is 0: give 1 to 1024");
  }

  /** A script can tell which version wrote a summary. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "standard --mean q.npy --std s.npy -o o.npy",
        "info",
        "index create FOLDER --dimension 2"
      })
  void jsonTellsTheVersion(String line) {
    Result result = run(line.replace("FOLDER", folder.resolve("index").toString()) + " --json");
    assertThat(result.err()).isEmpty();
    Map<?, ?> facts = (Map<?, ?>) JsonReader.read(result.out());
    assertThat(facts.get("kullback")).isEqualTo(Terminal.version());
  }

  /** Each kind of scale is called as the library calls it, and some have a short name. */
  @ParameterizedTest
  @CsvSource({
    "variance, var, 2",
    "log-variance, logvar, 2",
    "packed-scale-tril, packed-tril, 3",
    "covariance, cov, 4"
  })
  void kinds(String name, String shorter, int elements) throws IOException {
    boolean isMatrix = elements == 4;
    double[] scales = {1, 0.5, 0.5, 2};
    NpyFiles.write(folder.resolve("m.npy"), "<f8", new long[] {1, 2}, 1, 2);
    NpyFiles.write(
        folder.resolve("x.npy"),
        "<f8",
        isMatrix ? new long[] {1, 2, 2} : new long[] {1, elements},
        Arrays.copyOf(scales, elements));
    for (String command : List.of("pairwise", "aligned", "logsumexp")) {
      String line = command + " --mean m.npy --%s x.npy --p-mean m.npy --p-%s x.npy -o %s.npy";
      succeed(line.formatted(name, name, "a"));
      succeed(line.formatted(shorter, shorter, "b"));
      succeed(line.formatted(shorter, name, "c"));
      for (String other : List.of("b.npy", "c.npy")) {
        assertThat(folder.resolve(other)).hasSameBinaryContentAs(folder.resolve("a.npy"));
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"frobnicate", "index kl", "standard --foo", "standard -x", "index frob"})
  void nothingIsMeant(String line) throws IOException {
    assertThat(run(line).err()).doesNotContain("did you mean").contains("; see kullback ");
    String endless = "x".repeat(100_000);
    assertThat(runRaw(endless).err()).doesNotContain("did you mean");
  }

  /** The names are told whole, however long a line is. */
  @ParameterizedTest
  @CsvSource({
    "w2, 'did you mean wasserstein-2, or its square, squared-wasserstein-2?'",
    "frechet, did you mean squared-wasserstein-2",
    "bhattacharya, did you mean bhattacharyya?",
    "renyi, 'renyi needs its order ALPHA, as in renyi:0.5'",
  })
  void divergencesThatAreMeant(String name, String advice) throws IOException {
    String path = "a/".repeat(120);
    assertUserError(
        "standard --mean " + path + "q.npy --std s.npy -o o.npy --divergence " + name,
        "there is no divergence '" + name + "' (" + advice,
        "give kl, reverse-kl, jeffreys, bhattacharyya, hellinger, wasserstein-2, squared-wasserstein-2, renyi:ALPHA or chernoff:ALPHA");
  }

  /** No line of help ends inside a file's name, an option or a shape. */
  @ParameterizedTest
  @ValueSource(ints = {60, 80, 100})
  void helpBreaksNoWord(int width) {
    List<String> calls =
        Stream.of(Commands.all().keySet(), Commands.below("index").keySet())
            .flatMap(Collection::stream)
            .map(name -> Commands.all().containsKey(name) ? name : "index " + name)
            .toList();
    assertThat(calls).contains("topk", "index query");
    for (String call : calls) {
      String[] args = (call + " --help").split(" ");
      assertThat(words(help(width, args))).as(call).isEqualTo(words(help(1000, args)));
    }
    assertThat(words(help(width))).isEqualTo(words(help(1000)));
  }

  private static String help(int width, String... args) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    PrintStream stream = stream(out);
    assertThat(
            new Main(stream, stream, args)
                .line(args)
                .setUsageHelpWidth(width)
                .execute(args.length == 0 ? new String[] {"--help"} : args))
        .isZero();
    return out.toString(StandardCharsets.UTF_8);
  }

  private static List<String> words(String help) {
    return List.of(help.strip().split("\\s+"));
  }
}
