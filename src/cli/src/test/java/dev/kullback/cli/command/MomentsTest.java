package dev.kullback.cli.command;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.NpyFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.stream.IntStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Means and log-variances in one array, as encoders of images and videos give them, and the divergences of their channels. */
class MomentsTest extends CommandFixture {
  /** Of {@code Σ ½ (exp(l) + m² − 1 − l)}, m = arange(8)/8 and l = −arange(8)/4, by mpmath. */
  private static final double[] WANTED = {0.2882239977625265, 2.2600191708152537};

  /** {@code np.concatenate([m, l], 1)} of m and l of shape (2, 2, 2, 1, 1). */
  @BeforeEach
  void saveMoments() throws IOException {
    double[] values = new double[16];
    for (int n = 0; n < 2; n++) {
      for (int k = 0; k < 4; k++) {
        values[8 * n + k] = (4 * n + k) / 8.0;
        values[8 * n + 4 + k] = -(4 * n + k) / 4.0;
      }
    }
    write("e.npy", values, 2, 4, 2, 1, 1);
  }

  private void write(String name, double[] values, long... shape) throws IOException {
    NpyFiles.write(folder.resolve(name), "<f8", shape, values);
  }

  /** Writes the moments with the axes 1 and 2 exchanged, and those of size 1 before. */
  private void saveTurned() throws IOException {
    double[] all = values(read("e.npy", 2, 4, 2, 1, 1));
    double[] turned =
        IntStream.range(0, 16).mapToDouble(i -> all[i / 8 * 8 + i % 4 * 2 + i / 4 % 2]).toArray();
    write("turned.npy", turned, 2, 1, 1, 2, 4);
  }

  @ParameterizedTest
  @CsvSource({
    "e.npy, ''",
    "e.npy, --axis 1",
    "e.npy, --axis -4",
    "turned.npy, --axis -1",
    "turned.npy, --axis 4",
  })
  void standard(String name, String axis) throws IOException {
    saveTurned();
    succeed("standard --moments " + name + " " + axis + " -o o.npy");
    double[] got = values(read("o.npy", 2));
    assertThat(got[0]).isCloseTo(WANTED[0], within(1e-15));
    assertThat(got[1]).isCloseTo(WANTED[1], within(1e-14));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "pairwise %s -o o.npy",
        "pairwise --mean m.npy --std s2.npy %p -o o.npy",
        "aligned --mean m.npy --std s2.npy %p -o o.npy",
        "topk -k 2 %s --shard 2/2 %p --indices i.npy -o o.npy",
        "topk -k 1 %s --p-first 4 %p --indices i.npy -o o.npy",
        "within --radius inf %s --indices i.npy -o o.npy",
        "logsumexp %s %p -o o.npy",
        "entropy %s -o o.npy",
        "mixture-kl %s %p -o o.npy",
        "reduce --to 1 %s --out-scale s3.npy --out-weights w.npy -o o.npy",
      })
  void asTwoFiles(String command) throws IOException {
    write("m.npy", IntStream.range(0, 8).mapToDouble(k -> k / 8.0).toArray(), 2, 4);
    write("l.npy", IntStream.range(0, 8).mapToDouble(k -> -k / 4.0).toArray(), 2, 4);
    write("s2.npy", IntStream.range(0, 8).mapToDouble(k -> 1 + k).toArray(), 2, 4);
    succeed(
        command
            .replace("%s", "--mean m.npy --logvar l.npy")
            .replace("%p", "--p-mean m.npy --p-logvar l.npy"));
    byte[] want = Files.readAllBytes(folder.resolve("o.npy"));
    succeed(command.replace("%s", "--moments e.npy").replace("%p", "--p-moments e.npy"));
    assertThat(Files.readAllBytes(folder.resolve("o.npy"))).isEqualTo(want);
  }

  @Test
  void severalFilesOfP() throws IOException {
    String line = "topk -k 3 --moments e.npy --indices i.npy -o o.npy ";
    write("m.npy", IntStream.range(0, 8).mapToDouble(k -> k / 8.0).toArray(), 2, 4);
    write("l.npy", IntStream.range(0, 8).mapToDouble(k -> -k / 4.0).toArray(), 2, 4);
    succeed(line + "--p-mean m.npy m.npy --p-logvar l.npy l.npy");
    byte[] want = Files.readAllBytes(folder.resolve("o.npy"));
    succeed(line + "--p-moments e.npy e.npy");
    assertThat(Files.readAllBytes(folder.resolve("o.npy"))).isEqualTo(want);
  }

  @Test
  void indexes() {
    String index = folder.resolve("index").toString();
    assertThat(run("index create " + index + " --moments e.npy").status()).isZero();
    Result result = run("index query " + index + " -k 1 --moments e.npy --indices i.npy -o o.npy");
    assertThat(result.err()).isEmpty();
    assertThat(result.out()).contains("min 0, mean 0, max 0");
  }

  /** As {@code DiagonalGaussianDistribution} of diffusers does: ln σ² is cut to [−30, 20]. */
  @Test
  void clamped() throws IOException {
    write("e.npy", new double[] {0, 0, 40, -50}, 1, 4);
    write("want.npy", new double[] {20, -30}, 1, 2);
    write("zero.npy", new double[] {0, 0}, 1, 2);
    succeed("standard --mean zero.npy --logvar want.npy -o o.npy");
    double want = values(read("o.npy", 1))[0];
    succeed("standard --moments e.npy --clamp -o o.npy");
    assertThat(values(read("o.npy", 1))).containsExactly(want);
  }

  @ParameterizedTest
  @CsvSource({"f2", "f4"})
  void otherTypes(String type) throws IOException {
    double[] all = values(read("e.npy", 2, 4, 2, 1, 1));
    NpyFiles.write(folder.resolve("e.npy"), "<" + type, new long[] {2, 8}, all); // exact in both
    succeed("standard --moments e.npy -o o.npy");
    double[] got = values(read("o.npy", 2));
    assertThat(got[0]).isCloseTo(WANTED[0], within(1e-7));
    assertThat(got[1]).isCloseTo(WANTED[1], within(1e-6));
  }

  @ParameterizedTest
  @CsvSource({
    "'(2, 3)', '', 'has shape (2, 3): axis 1, of 3, has no two halves'",
    "'(2, 4, 3)', --axis -1, 'axis 2, of 3, has no two halves'",
    "'(2, 4)', --axis 2, 'has shape (2, 4), but --axis is 2: give 1 to 1, or -1 to -1'",
    "'(2, 4)', --axis -2, 'but --axis is -2: give 1 to 1'",
    "'(2, 4)', --axis 0, '--axis is 0, which counts the Gaussians: give 1 or more, or -1'",
    "'(8)', '', 'has shape (8,): moments are [N,2C] or [N,2C,...]'",
    "'(2, 4)', --mean q.npy, '--moments names means and scales: give no --mean'",
    "'(2, 4)', --std s.npy, '--moments names means and scales'",
  })
  void refused(String shape, String options, String message) throws IOException {
    long[] axes =
        Arrays.stream(shape.replaceAll("[()]", "").split(", "))
            .mapToLong(Long::parseLong)
            .toArray();
    write("e.npy", new double[(int) Arrays.stream(axes).reduce(1, (a, b) -> a * b)], axes);
    assertUserError("standard --moments e.npy " + options + " -o o.npy", message);
    if (!options.contains("npy")) {
      assertUserError(
          "aligned --mean q.npy --std s.npy --p-moments e.npy " + options + " -o o.npy", message);
    }
  }

  @Test
  void namesTheHalf() throws IOException {
    write("e.npy", new double[] {0, 0, 0, 0, 1, 2, 3, Double.NaN}, 2, 4);
    assertUserError(
        "standard --moments e.npy -o o.npy",
        "e.npy: row 1, column 1 of the second half: log-variance is NaN");
  }

  @Test
  void axisWithoutMoments() throws IOException {
    assertUserError(
        "standard --mean q.npy --std s.npy --axis 1 -o o.npy", "--axis is for --moments");
  }

  @Test
  void oneFileAsBoth() throws IOException {
    Files.createSymbolicLink(folder.resolve("link.npy"), folder.resolve("q.npy"));
    String advice = "of one array with both, as encoders give them, give --";
    assertUserError(
        "standard --mean e.npy --logvar e.npy -o o.npy",
        "e.npy: is named by --mean and by --log-variance, too: " + advice + "moments");
    assertUserError("standard --mean q.npy --logvar link.npy -o o.npy", advice + "moments");
    assertUserError(
        "aligned --mean q.npy --std s.npy --p-mean p.npy --p-logvar p.npy -o o.npy",
        "p.npy: is named by --p-mean and by --p-log-variance, too: " + advice + "p-moments");
  }

  @Test
  void oneArrayOfAnArchiveAsBoth() throws IOException {
    try (ZipOutputStream zip =
        new ZipOutputStream(Files.newOutputStream(folder.resolve("a.npz")))) {
      for (String name : new String[] {"q", "s"}) {
        zip.putNextEntry(new ZipEntry(name + ".npy"));
        zip.write(Files.readAllBytes(folder.resolve(name + ".npy")));
      }
    }
    succeed("standard --mean a.npz:q --logvar a.npz:s -o o.npy");
    assertUserError(
        "standard --mean a.npz:s --logvar a.npz:s.npy -o o.npy", "is named by --mean and");
  }

  @Test
  void perChannel() throws IOException {
    succeed("standard --moments e.npy --per-channel -o o.npy");
    double[] got = values(read("o.npy", 2, 2));
    for (int k = 0; k < 4; k++) {
      double sum = 0;
      for (int at = 2 * k; at < 2 * k + 2; at++) {
        sum += 0.5 * (Math.exp(-at / 4.0) + at * at / 64.0 - 1 + at / 4.0);
      }
      assertThat(got[k]).as("%d", k).isCloseTo(sum, within(1e-15));
    }
    assertThat(run("standard --moments e.npy --per-channel -o o.npy").out())
        .startsWith("KL(q_i||N(0,I)): 2 x 2 channels, D = 4, float64, in ");
    succeed("standard --moments e.npy -o whole.npy");
    double[] whole = values(read("whole.npy", 2));
    assertThat(got[0] + got[1]).isCloseTo(whole[0], within(1e-15));
  }

  @Test
  void alignedPerChannel() throws IOException {
    write("m.npy", new double[] {0, 1, 2, 3, 4, 5, 6, 7}, 2, 2, 2);
    write("v.npy", new double[] {1, 1, 1, 1, 1, 1, 1, 1}, 2, 2, 2);
    write("z.npy", new double[8], 2, 2, 2);
    succeed("aligned --mean m.npy --std v.npy --p-mean z.npy --p-var v.npy --per-channel -o o.npy");
    assertThat(values(read("o.npy", 2, 2))).containsExactly(0.5, 6.5, 20.5, 42.5);
    write("z.npy", new double[8], 2, 4);
    write("w.npy", new double[] {1, 1, 1, 1, 1, 1, 1, 1}, 2, 4);
    assertUserError(
        "aligned --mean m.npy --std v.npy --p-mean z.npy --p-var w.npy --per-channel -o o.npy",
        "z.npy: has 4 channels, but ",
        "m.npy has 2");
  }

  @Test
  void matricesHaveNoChannels() throws IOException {
    write("c.npy", new double[] {1, 0, 0, 1, 1, 0, 0, 1}, 2, 2, 2);
    write("m.npy", new double[4], 2, 2);
    assertUserError(
        "standard --mean m.npy --cov c.npy --per-channel -o o.npy",
        "c.npy: --per-channel is for scales, not for matrices");
  }
}
