package dev.kullback.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.cli.npy.Npy;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DemoTest {
  private static final Path DATA = Path.of(System.getProperty("basedir", "."), "../demo/data");

  @TempDir Path folder;

  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();

  private int run(Path data, Path output, String... options) {
    String[] args = {"demo", "--data", data.toString(), "--out", output.toString()};
    return Main.run(
        Stream.concat(Stream.of(args), Stream.of(options)).toArray(String[]::new),
        new PrintStream(out, true),
        new PrintStream(err, true));
  }

  private String err() {
    return err.toString(StandardCharsets.UTF_8);
  }

  /** By C1, and on the module path by vectors. */
  @Tag("module")
  @Test
  void comparesTheDigits() throws IOException {
    Path output = folder.resolve("new/folder");
    int status = run(DATA, output);
    assertThat(err()).isEmpty();
    assertThat(status).isZero();

    String text = out.toString(StandardCharsets.UTF_8);
    assertThat(text).contains("same digit: 98.3 % in all");
    assertThat(text.lines().filter(line -> line.matches("q = \\d( +\\d+){10} +\\d +[\\d.]+ %")))
        .hasSize(10);
    for (String before : List.of("reference rows: ", "when warm; largest relative error ")) {
      Matcher error = Pattern.compile(before + "(\\S+)\\.\\R").matcher(text);
      assertThat(error.find()).isTrue();
      assertThat(Double.parseDouble(error.group(1))).isBetween(0.0, 1e-5);
    }
    assertThat(Files.readAllBytes(output.resolve("digits-kl.png"))).startsWith(0x89, 'P', 'N', 'G');
    try (Arena arena = Arena.ofConfined()) {
      Npy.Array kl = Npy.readFloats(output.resolve("digits-kl.npy"), arena);
      Npy.Array exact = Npy.readFloats(DATA.resolve("digits_kl_rows.npy"), arena);
      assertThat(kl.shape()).containsExactly(1797, 1797);
      for (int j = 0; j < 1797; j++) { // the first reference row is row 0
        assertThat(kl.value(j)).isBetween(exact.value(j) * 0.99999, exact.value(j) * 1.00001);
      }
    }
  }

  /** The demo works on a Java without java.desktop, such as an image of few modules or one for servers. */
  @Tag("long")
  @Test
  void demoWithoutAwt() throws Exception {
    String output = folder.toString();
    Ended demo =
        withoutDesktop("demo", "--backend", "scalar", "--data", DATA.toString(), "--out", output);
    assertThat(demo.err()).isEmpty();
    assertThat(demo.status()).isZero();
    assertThat(demo.out())
        .contains(
            "wrote %s\nno picture: a heatmap needs the module java.desktop: use a Java that has it\n"
                .formatted(folder.resolve("digits-kl.npy")));
    assertThat(folder.resolve("digits-kl.npy")).exists();
    assertThat(folder.resolve("digits-kl.png")).doesNotExist();
  }

  @Test
  void pairwiseWithoutAwt() throws Exception {
    String mean = DATA.resolve("digits_mean.npy").toString();
    String std = DATA.resolve("digits_std.npy").toString();
    Path kl = folder.resolve("kl.npy");
    String line = "pairwise --mean %s --std %s -o %s".formatted(mean, std, kl);
    Ended picture = withoutDesktop((line + " --heatmap " + folder.resolve("kl.png")).split(" "));
    assertThat(picture.err())
        .isEqualTo("kullback: a heatmap needs the module java.desktop: use a Java that has it\n");
    assertThat(picture.status()).isEqualTo(1);
    assertThat(kl).doesNotExist();

    Ended vector = withoutDesktop((line + " --backend vector").split(" "));
    assertThat(vector.err()).isEmpty();
    assertThat(vector.status()).isZero();
    assertThat(kl).exists();
  }

  /** Exit status and output of a virtual machine of its own. */
  private record Ended(int status, String out, String err) {}

  private Ended withoutDesktop(String... arguments) throws Exception {
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--limit-modules=java.logging,jdk.incubator.vector",
                "--add-modules=jdk.incubator.vector",
                "--class-path=" + System.getProperty("java.class.path"),
                Main.class.getName()));
    command.addAll(List.of(arguments));
    Path out = folder.resolve("stdout");
    Path err = folder.resolve("stderr");
    Process process =
        new ProcessBuilder(command)
            .redirectOutput(out.toFile())
            .redirectError(err.toFile())
            .start();
    boolean ended = process.waitFor(Duration.ofSeconds(60));
    process.destroyForcibly().waitFor();
    String text = Files.readString(err);
    assertThat(ended).as("ended in time: %s", text).isTrue();
    String incubating = "WARNING: Using incubator modules: jdk.incubator.vector\n";
    assertThat(text).startsWith(incubating);
    return new Ended(
        process.exitValue(), Files.readString(out), text.substring(incubating.length()));
  }

  @Test
  void namesMissingData() throws IOException {
    assertThat(run(folder, folder.resolve("out"))).isEqualTo(2);
    assertThat(err())
        .isEqualTo("kullback: " + folder.resolve("digits_mean.npy") + ": no such file\n");
    try (Stream<Path> files = Files.list(folder.resolve("out"))) {
      assertThat(files).isEmpty();
    }
  }

  /** No output replaces an input, or the other output. */
  @Test
  void replacesNoInput() throws IOException {
    Path data = Files.createDirectory(folder.resolve("data"));
    Path mean = Files.writeString(data.resolve("digits_mean.npy"), "mine");
    Path output = Files.createDirectory(folder.resolve("out"));
    Files.createSymbolicLink(output.resolve("digits-kl.npy"), mean);
    assertThat(run(data, output)).isEqualTo(2);
    assertThat(err()).contains("digits-kl.npy: is also an input");
    assertThat(mean).hasContent("mine");

    Files.delete(output.resolve("digits-kl.npy"));
    Files.createSymbolicLink(output.resolve("digits-kl.npy"), Path.of("x"));
    Files.createSymbolicLink(output.resolve("digits-kl.png"), Path.of("x"));
    assertThat(run(DATA, output)).isEqualTo(2);
    assertThat(err()).contains("is the same file as the other");
  }

  @Test
  void keepsFilesThatAreThere() throws IOException {
    Path kept = Files.writeString(folder.resolve("digits-kl.npy"), "mine");
    assertThat(run(DATA, folder, "--no-clobber")).isEqualTo(2);
    assertThat(err()).contains("digits-kl.npy: is there, and --no-clobber keeps it");
    assertThat(kept).hasContent("mine");
  }

  @Test
  void checksItsReferencesBeforeItWrites() throws IOException {
    Path data = Files.createDirectory(folder.resolve("data"));
    try (Stream<Path> files = Files.list(DATA)) {
      for (Path file : files.toList()) {
        Files.copy(file, data.resolve(file.getFileName()));
      }
    }
    Path output = Files.createDirectory(folder.resolve("kept"));
    Path kept = Files.writeString(output.resolve("digits-kl.npy"), "mine");
    Path rows = data.resolve("digits_kl_rows.npy");
    Files.copy(data.resolve("digits_mean.npy"), rows, StandardCopyOption.REPLACE_EXISTING);
    assertThat(run(data, output)).isEqualTo(2);
    Files.delete(rows);
    assertThat(run(data, output)).isEqualTo(2);
    assertThat(err())
        .isEqualTo(
            "kullback: %s: must have shape (16, 1797)%nkullback: %s: no such file%n"
                .formatted(rows, rows));
    assertThat(kept).hasContent("mine");
  }
}
