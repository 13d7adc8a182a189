package dev.kullback.cli.command;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.NpyFiles;
import java.io.IOException;
import java.nio.file.Files;
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

  @Test
  void oneFileAsBoth() throws IOException {
    Files.createSymbolicLink(folder.resolve("link.npy"), folder.resolve("q.npy"));
    String advice =
        "if one array holds means and log-variances, as encoders write them, give it as --";
    assertUserError(
        "standard --mean e.npy --logvar e.npy -o o.npy",
        "e.npy: is given both as --mean and as --log-variance: " + advice + "moments");
    assertUserError("standard --mean q.npy --logvar link.npy -o o.npy", advice + "moments");
    assertUserError(
        "aligned --mean q.npy --std s.npy --p-mean p.npy --p-logvar p.npy -o o.npy",
        "p.npy: is given both as --p-mean and as --p-log-variance: " + advice + "p-moments");
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
        "standard --mean a.npz:s --logvar a.npz:s.npy -o o.npy", "is given both as --mean and");
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

  private static double mean(int row, int channel, int i, int j) {
    return (row + 2 * channel - 3 * i + j) / 8.0;
  }

  private static double logVariance(int row, int channel, int i, int j) {
    return (channel - row - i * j) / 4.0;
  }

  /** Saves moments of 2 rows, 3 channels and 2 x 5 places with the channels on an axis, and their means and variances as files of their own. */
  private void saveChannels(int axis) throws IOException {
    double[] both = new double[2 * 60];
    double[] means = new double[60];
    double[] variances = new double[60];
    for (int row = 0; row < 2; row++) {
      for (int c = 0; c < 3; c++) {
        for (int i = 0; i < 2; i++) {
          for (int j = 0; j < 5; j++) {
            for (int half = 0; half < 2; half++) {
              int channel = 3 * half + c;
              int at =
                  switch (axis) {
                    case 1 -> (channel * 2 + i) * 5 + j;
                    case 2 -> (i * 6 + channel) * 5 + j;
                    default -> (i * 5 + j) * 6 + channel;
                  };
              both[60 * row + at] = half == 0 ? mean(row, c, i, j) : logVariance(row, c, i, j);
            }
            int at =
                switch (axis) {
                  case 1 -> (c * 2 + i) * 5 + j;
                  case 2 -> (i * 3 + c) * 5 + j;
                  default -> (i * 5 + j) * 3 + c;
                };
            means[30 * row + at] = mean(row, c, i, j);
            variances[30 * row + at] = Math.exp(logVariance(row, c, i, j));
          }
        }
      }
    }
    long[] shape = {2, 2, 5};
    write("e.npy", both, withChannels(shape, axis, 6));
    write("m.npy", means, withChannels(shape, axis, 3));
    write("v.npy", variances, withChannels(shape, axis, 3));
  }

  private static long[] withChannels(long[] shape, int axis, long channels) {
    return IntStream.rangeClosed(0, shape.length)
        .mapToLong(k -> k == axis ? channels : shape[k < axis ? k : k - 1])
        .toArray();
  }

  /** Channels are on the axis that moments are halved along, that of p, too. */
  @ParameterizedTest
  @CsvSource({"1, 1", "1, -3", "2, 2", "2, -2", "3, 3", "3, -1"})
  void channelsOfAnyAxis(int axis, int given) throws IOException {
    saveChannels(axis);
    succeed("standard --moments e.npy --axis " + given + " --per-channel -o o.npy");
    double[] got = values(read("o.npy", 2, 3));
    for (int k = 0; k < 6; k++) {
      double sum = 0;
      for (int place = 0; place < 10; place++) {
        double mean = mean(k / 3, k % 3, place / 5, place % 5);
        double log = logVariance(k / 3, k % 3, place / 5, place % 5);
        sum += 0.5 * (Math.exp(log) + mean * mean - 1 - log);
      }
      assertThat(got[k]).as("%d", k).isCloseTo(sum, within(1e-14));
    }
    write("zero.npy", new double[60], withChannels(new long[] {2, 2, 5}, axis, 3));
    write("one.npy", new double[] {1}, 1);
    String channels = " --per-channel -o o.npy --axis " + given;
    succeed("aligned --moments e.npy --p-mean zero.npy --p-std one.npy" + channels);
    assertThat(values(read("o.npy", 2, 3))).containsExactly(got, within(1e-14));
    succeed("aligned --mean m.npy --var v.npy --p-moments e.npy" + channels);
    assertThat(values(read("o.npy", 2, 3))).containsExactly(new double[6], within(1e-14));
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
}
