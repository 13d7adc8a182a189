package dev.kullback.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.NpyFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Shards of q, parts of p in files, and merges of their results, against the whole search. */
class ShardsTest extends CommandFixture {
  private static final String Q = " --mean x.npy --std y.npy ";

  /** Rows of x.npy with y.npy: as p in files of unequal sizes, one of which has fewer than most k. */
  private static final int ROWS = 41;

  private static final int[] CUTS = {0, 17, 18, 36, ROWS};

  /** Writes 20 random rows, then 10 of them with means that differ in a last bit, and 11 exact copies. */
  @BeforeEach
  void writeBatch() throws IOException {
    double[] mean = floats(ROWS * D, v -> v);
    double[] std = floats(ROWS * D, Math::exp);
    for (int i = 20; i < ROWS; i++) {
      int from = i - 20;
      System.arraycopy(mean, from % 20 * D, mean, i * D, D);
      System.arraycopy(std, from % 20 * D, std, i * D, D);
      if (i < 30) {
        mean[i * D + i % D] = Math.nextUp((float) mean[i * D + i % D]);
      }
    }
    write("x.npy", "<f4", mean, 0, ROWS);
    write("y.npy", "<f4", std, 0, ROWS);
    for (int f = 1; f < CUTS.length; f++) {
      write("x" + f + ".npy", "<f4", mean, CUTS[f - 1], CUTS[f]);
      write("y" + f + ".npy", "<f4", std, CUTS[f - 1], CUTS[f]);
    }
  }

  private void write(String name, String descr, double[] values, int from, int to)
      throws IOException {
    save(name, descr, to - from, Arrays.copyOfRange(values, from * D, to * D));
  }

  private static String parts(String option, String prefix, int from, int to) {
    return IntStream.rangeClosed(from, to)
        .mapToObj(f -> prefix + f + ".npy")
        .reduce(option, (a, b) -> a + " " + b);
  }

  private static String files(int from, int to) {
    return parts(" --p-mean", "x", from, to) + parts(" --p-std", "y", from, to);
  }

  private void assertSame(String values, String indices, String wantValues, String wantIndices) {
    assertSame(indices, wantIndices);
    assertSame(values, wantValues);
  }

  private int[] ints(String name, long... shape) throws IOException {
    Npy.Array array = Npy.readInts(folder.resolve(name), Arena.ofAuto());
    assertThat(array.shape()).containsExactly(shape);
    return array.data().toArray(ValueLayout.JAVA_INT);
  }

  // --- topk

  @ParameterizedTest
  @CsvSource({
    "1, ''",
    "7, ''",
    "7, --reverse-divergence",
    "7, --exclude-self",
    "30, --exclude-self --reverse-divergence",
    "40, --exclude-self",
    "41, ''"
  })
  void filesOfPAreOneP(int k, String options) throws IOException {
    String line = "topk " + options + " -k " + k + Q;
    succeed(line + "--exact --indices i.npy -o o.npy");
    assertThat(read("o.npy", ROWS, k).isDouble()).isTrue();
    succeed(line + files(1, 4) + " --indices j.npy -o w.npy");
    assertSame("w.npy", "j.npy", "o.npy", "i.npy");
    String repeated =
        IntStream.rangeClosed(1, 4)
            .mapToObj(f -> " --p-mean x%d.npy --p-std y%1$d.npy".formatted(f))
            .reduce("", String::concat);
    succeed(line + repeated + " --indices j.npy -o w.npy --threads 1");
    assertSame("w.npy", "j.npy", "o.npy", "i.npy");
  }

  /** An array job: every shard of q with every file of p, merged by columns and then by rows. */
  @ParameterizedTest
  @CsvSource({
    "3, ''",
    "7, --reverse-divergence",
    "7, --exclude-self",
    "20, --exclude-self --reverse-divergence"
  })
  void jobsMergeToTheWhole(int k, String options) throws IOException {
    String line = "topk " + options + " -k " + k + Q;
    succeed(line + "--exact --indices i.npy -o o.npy");
    for (int s = 1; s <= 3; s++) {
      for (int f = 1; f <= 4; f++) {
        succeed(
            "%s --shard %d/3 --p-first %d %s --indices j%2$d-%d.npy -o w%2$d-%5$d.npy"
                .formatted(line, s, CUTS[f - 1], files(f, f), f));
      }
      succeed(
          "merge"
              + parts(" --in-values", "w" + s + "-", 1, 4)
              + parts(" --in-indices", "j" + s + "-", 1, 4)
              + " --indices j%d.npy -o w%1$d.npy".formatted(s));
    }
    succeed(
        "merge --rows"
            + parts(" --in-values", "w", 1, 3)
            + parts(" --in-indices", "j", 1, 3)
            + " --indices j.npy -o w.npy");
    assertSame("w.npy", "j.npy", "o.npy", "i.npy");
  }

  /** Merges of merges, in another order, of some files each. */
  @Test
  void partsOfSeveralFilesMerge() throws IOException {
    succeed("topk -k 9 --exact --exclude-self" + Q + "--indices i.npy -o o.npy");
    String line = "topk -k 9 --exclude-self" + Q;
    succeed(line + files(2, 3) + " --p-first 17 --indices ib.npy -o b.npy");
    succeed(line + files(4, 4) + " --p-first 36 --indices ic.npy -o c.npy");
    succeed(line + files(1, 1) + " --p-first 0 --indices ia.npy -o a.npy");
    succeed("merge --in-values c.npy a.npy --in-indices ic.npy ia.npy --indices j.npy -o w.npy");
    succeed("merge --in-values w.npy b.npy --in-indices j.npy ib.npy --indices k.npy -o v.npy");
    assertSame("v.npy", "k.npy", "o.npy", "i.npy");
    succeed("topk -k 4 --exact --exclude-self" + Q + "--indices i.npy -o o.npy");
    succeed(
        "merge -k 4 --in-values a.npy b.npy c.npy --in-indices ia.npy ib.npy ic.npy"
            + " --indices j.npy -o w.npy");
    assertSame("w.npy", "j.npy", "o.npy", "i.npy");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "--exclude-self", "--exact"})
  void shardsOfQ(String options) throws IOException {
    String line = "topk -k 5 " + options + Q;
    succeed(line + "--indices i.npy -o o.npy");
    Npy.Array whole = read("o.npy", ROWS, 5);
    assertThat(whole.isDouble()).isEqualTo(options.equals("--exact"));
    for (int s = 1; s <= 6; s++) {
      succeed(line + "--shard %d/6 --indices j%1$d.npy -o w%1$d.npy".formatted(s));
      assertThat(read("w" + s + ".npy", s * ROWS / 6 - (s - 1) * ROWS / 6, 5).shape()[0])
          .isBetween(6L, 7L);
    }
    succeed(
        "merge --rows"
            + parts(" --in-values", "w", 1, 6)
            + parts(" --in-indices", "j", 1, 6)
            + " --indices j.npy -o w.npy");
    assertSame("w.npy", "j.npy", "o.npy", "i.npy");
  }

  /** A shard's rows are read alone from files in C order; from others, archives and float16 they are picked out. */
  @ParameterizedTest
  @CsvSource({"<f4, false", "<f4, true", ">f8, false", ">f8, true", "<f2, false", "<f2, true"})
  void shardsOfEveryFile(String descr, boolean fortran) throws IOException {
    double[] mean = values(read("x.npy", ROWS, D));
    double[] std = values(read("y.npy", ROWS, D));
    for (String name : new String[] {"x.npy", "y.npy"}) {
      double[] values = name.equals("x.npy") ? mean : std;
      double[] file = values.clone();
      for (int k = 0; fortran && k < file.length; k++) {
        file[k % D * ROWS + k / D] = values[k];
      }
      NpyFiles.write(
          folder.resolve(name),
          NpyFiles.bytes(1, NpyFiles.dict(descr, fortran, ROWS, D), NpyFiles.data(descr, file)));
    }
    succeed("topk -k 5 --exact" + Q + "--indices i.npy -o o.npy");
    double[] all = values(read("o.npy", ROWS, 5));
    succeed("topk -k 5 --exact --shard 2/4" + Q + "--indices i.npy -o o.npy");
    assertThat(values(read("o.npy", 10, 5))).containsExactly(Arrays.copyOfRange(all, 50, 100));
  }

  @Test
  void shardsOfArchivesAndCovariances() throws IOException {
    double[] covariance = new double[ROWS * D * D];
    for (int c = 0; c < covariance.length; c++) {
      covariance[c] = c / D % D == c % D ? 2 + c / D / D % 3 : 0.5;
    }
    NpyFiles.write(folder.resolve("c.npy"), "<f8", new long[] {ROWS, D, D}, covariance);
    zip("x.npz", false, "mean.npy=x.npy");
    String line = "topk -k 5 --exact --mean x.npz:mean --cov c.npy ";
    succeed(line + "--indices i.npy -o o.npy");
    double[] all = values(read("o.npy", ROWS, 5));
    succeed(line + "--p-mean x.npy --p-cov c.npy --shard 3/3 --indices i.npy -o o.npy");
    assertThat(values(read("o.npy", 14, 5))).containsExactly(Arrays.copyOfRange(all, 135, 205));
    covariance[35 * D * D] = -1; // of a row of the third shard
    NpyFiles.write(folder.resolve("c.npy"), "<f8", new long[] {ROWS, D, D}, covariance);
    line = "topk -k 5 --mean x.npy --cov c.npy --p-mean p.npy --p-std t.npy -o o.npy ";
    assertUserError(line + "--shard 3/3 --indices i.npy", "c.npy: covariance[35] (Gaussian 35)");
    succeed(line + "--shard 2/3 --indices i.npy");
  }

  // --- merge

  private void list(String name, String descr, int rows, double[] values, double... indices)
      throws IOException {
    save(name + ".npy", descr, rows, values);
    save("i" + name + ".npy", "<i4", rows, indices);
  }

  /** Lists longer than a block of rows. */
  @Test
  void mergesInBlocks() throws IOException {
    int rows = (1 << 20) + 3;
    double[] even = new double[rows];
    double[] odd = new double[rows];
    Arrays.setAll(even, i -> i % 5);
    Arrays.setAll(odd, i -> i % 3);
    list("a", "<f8", rows, even, new double[rows]);
    double[] ones = new double[rows];
    Arrays.fill(ones, 1);
    list("b", "<f8", rows, odd, ones);
    String files = " --in-values a.npy b.npy --in-indices ia.npy ib.npy --indices i.npy -o o.npy";
    succeed("merge" + files);
    int[] indices = ints("i.npy", rows, 1);
    double[] values = values(read("o.npy", rows, 1));
    for (int i = 0; i < rows; i++) {
      assertThat(indices[i]).isEqualTo(i % 3 < i % 5 ? 1 : 0);
      assertThat(values[i]).isEqualTo(Math.min(i % 5, i % 3));
    }
    odd[rows - 1] = -3;
    list("b", "<f8", rows, odd, ones);
    assertUserError("merge" + files, "b.npy: row 1048578, column 0: value is -3.0");
  }

  /** A file, or zip member, may claim what it has not: no more than came is believed. */
  @Test
  void listsThatEndElsewhere() throws IOException {
    list("a", "<f8", 2, new double[] {1, 2, 3, 4}, 1, 2, 3, 4);
    byte[] whole = bytes("a.npy");
    Files.write(folder.resolve("b.npy"), Arrays.copyOf(whole, whole.length - 1));
    Files.write(folder.resolve("c.npy"), Arrays.copyOf(whole, whole.length + 1));
    zip("l.npz", false, "a.npy", "ia.npy", "b.npy", "c.npy");
    String line = "merge --indices i.npy -o o.npy --in-indices l.npz:ia --in-values ";
    succeed(line + "l.npz:a");
    assertThat(ints("i.npy", 2, 2)).containsExactly(1, 2, 3, 4);
    assertUserError(line + "b.npy", "b.npy: is truncated: ");
    assertUserError(line + "l.npz:b", "l.npz:b: is truncated: ", "needs 32 bytes of data, 31");
    assertUserError(line + "l.npz:c", "l.npz:c: has more bytes after its data");
  }
}
