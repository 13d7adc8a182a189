package dev.kullback.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.NpyFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Each file that a command writes is one that commands read, whatever the values. */
class ReadBackTest extends CommandFixture {
  private static final String Q = " --mean q.npy --std s.npy ";
  private static final String P = " --p-mean p.npy --p-std t.npy ";

  /** The outputs are the names behind -o, --indices, --bounds and --standard-errors. */
  private static final List<String> WRITING =
      List.of(
          "pairwise" + Q + P + "-o o.npy",
          "aligned" + Q + "--p-mean p.npy --p-std t.npy -o o.npy",
          "standard" + Q + "-o o.npy",
          "topk -k 3" + Q + P + "-o o.npy --indices i.npy",
          "topk --exact -k 3" + Q + P + "-o o.npy --indices i.npy",
          "within --radius inf" + Q + P + "-o o.npy --indices i.npy",
          "within --radius inf" + Q + P + "-o o.npz",
          "within --radius 1e-300" + Q + P + "-o o.npz",
          "logsumexp" + Q + P + "-o o.npy",
          "entropy" + Q + "-o o.npy",
          "mixture-kl" + Q + P + "-o o.npy",
          "mixture-kl --bounds b.npy" + Q + P + "-o o.npy",
          "mixture-kl --method monte-carlo --samples 50"
              + Q
              + P
              + "-o o.npy --standard-errors e.npy",
          "merge --in-values v.npy --in-indices j.npy -o o.npy --indices i.npy");

  /** Scales and distances from the smallest to the largest that float32 has, so that results have zeros, subnormal numbers and infinities. */
  private void writeExtremes(String descr) throws IOException {
    double least = descr.endsWith("8") ? Double.MIN_VALUE : Float.MIN_VALUE;
    double most = descr.endsWith("8") ? 1e70 : 1e18;
    double[] means = {0, -0.0, least, -least, most, -most, 1};
    double[] stds = {1, 1, 1e-18, 1, most, 1e-18, 1};
    double[] otherMeans = {0, least, 0, most, 2};
    double[] otherStds = {1, 1e-18, most, 1, 1};
    for (String[] batch : new String[][] {{"q", "s"}, {"p", "t"}}) {
      boolean isQ = batch[0].equals("q");
      save(batch[0] + ".npy", descr, 5, Arrays.copyOf(isQ ? means : otherMeans, 5));
      save(batch[1] + ".npy", descr, 5, Arrays.copyOf(isQ ? stds : otherStds, 5));
    }
    assertThat(run("topk --exact -k 3" + Q + P + "-o v.npy --indices j.npy").status()).isZero();
  }

  static List<String> writing() {
    return WRITING;
  }

  @ParameterizedTest
  @MethodSource("writing")
  void extremeValues(String line) throws IOException {
    for (String descr : new String[] {"<f4", ">f4", "<f8", ">f8"}) {
      writeExtremes(descr);
      Result result = run(line);
      assertThat(result.err()).as(descr).isEmpty();
      String[] words = line.split(" ");
      for (int k = 1; k < words.length; k++) {
        if (List.of("-o", "--indices", "--bounds", "--standard-errors").contains(words[k - 1])) {
          assertReads(words[k], words[k - 1].equals("--indices"));
        }
      }
    }
  }

  private void assertReads(String name, boolean isIndices) throws IOException {
    Path file = folder.resolve(name);
    try (Arena arena = Arena.ofConfined()) {
      if (isIndices) {
        assertThat(Npy.readIntegers(file, arena).data().byteSize()).isPositive();
      } else if (!name.endsWith(".npz")) {
        Npy.Array array = Npy.readFloats(file, arena);
        assertThat(values(array)).isNotEmpty().doesNotContain(Double.NaN);
      } else {
        try (ZipFile zip = new ZipFile(file.toFile())) {
          for (ZipEntry entry : Stream.of(zip.stream().toArray(ZipEntry[]::new)).toList()) {
            Path array = folder.resolve(name + ":" + entry.getName());
            switch (entry.getName()) {
              case "data.npy" -> Npy.readFloats(array, arena);
              case "format.npy" -> {} // text, for SciPy
              default -> Npy.readIntegers(array, arena);
            }
          }
        }
      }
    }
  }

  /** What reduce writes of far components is a mixture that every command takes, of each kind of scale. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "std",
        "variance",
        "log-variance",
        "precision",
        "scale-tril",
        "packed-scale-tril",
        "covariance"
      })
  void reduced(String kind) throws IOException {
    int elements = kind.startsWith("packed") ? 3 : 4;
    boolean isMatrix = kind.equals("covariance") || kind.equals("scale-tril");
    for (String descr : new String[] {"<f4", "<f8"}) {
      for (double far : new double[] {1e-30, 1, 1e4, 1e15}) {
        NpyFiles.write(folder.resolve("m.npy"), descr, new long[] {2, 2}, -far, far, far, -far);
        double[] diagonal =
            kind.startsWith("log") ? new double[] {0, 0, 0, 0} : new double[] {1, 1, 1, 1};
        double[] matrices = {1, 0, 0, 1, 1, 0, 0, 1};
        NpyFiles.write(
            folder.resolve("x.npy"),
            descr,
            isMatrix ? new long[] {2, 2, 2} : new long[] {2, elements == 3 ? 3 : 2},
            isMatrix ? matrices : elements == 3 ? new double[6] : diagonal);
        Result result =
            run(
                "reduce --to 1 --mean m.npy --"
                    + kind
                    + " x.npy -o rm.npy --out-scale rs.npy --out-weights rw.npy --indices ri.npy");
        assertThat(result.status()).as(result.err()).isZero();
        String written = isMatrix || elements == 3 ? "covariance" : kind;
        succeed("standard --mean rm.npy --" + written + " rs.npy -o o.npy");
        succeed("entropy --mean rm.npy --" + written + " rs.npy --weights rw.npy -o o.npy");
        assertReads("ri.npy", true);
        // Double has no covariance of rank 2 so far apart: the merger is raised to one.
        assertThat(result.out().contains("1 covariances of components far apart"))
            .isEqualTo(written.equals("covariance") && far == 1e15);
      }
    }
    Files.delete(folder.resolve("rm.npy"));
    NpyFiles.write(folder.resolve("m.npy"), "<f8", new long[] {2, 2}, -1e200, 1e200, 1e200, -1e200);
    assertUserError(
        "reduce --to 1 --mean m.npy --"
            + kind
            + " x.npy -o rm.npy --out-scale rs.npy --out-weights rw.npy",
        "m.npy: components[0] has ",
        "250",
        "; rescale the data\n");
    assertThat(folder.resolve("rm.npy")).doesNotExist();
  }

  /** The lists of an index are read as ids, and its folder by another command. */
  @Test
  void index() throws IOException {
    writeExtremes("<f8");
    String folderName = folder.resolve("index").toString();
    assertThat(run("index create " + folderName + " --mean p.npy --std t.npy").status()).isZero();
    for (String output :
        List.of(
            "-k 3 --indices i.npy -o o.npy",
            "--radius inf --indices i.npy -o o.npy",
            "--radius inf -o o.npz")) {
      assertThat(run("index query " + folderName + " --mean q.npy --std s.npy " + output).err())
          .isEmpty();
      assertReads(output.endsWith("npz") ? "o.npz" : "o.npy", false);
      if (output.contains("i.npy")) {
        assertReads("i.npy", true);
      }
    }
    assertThat(run("index info " + folderName + " --check").status()).isZero();
  }
}
