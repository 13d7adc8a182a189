package dev.kullback.cli.command;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.NpyFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What a command writes, the next one reads: values of any magnitude, in files of every type. */
class ChainsTest extends CommandFixture {
  private static final int ROWS = 6;

  private static final String[] KINDS = {
    "std", "var", "logvar", "precision", "scale-tril", "packed-tril", "cov"
  };

  /** Runs a command below {@code index} on the folder's index. */
  private Result index(String command) {
    return run("index " + command.replace("FOLDER", folder.resolve("index").toString()));
  }

  private void assertDone(Result result) {
    assertThat(result.err()).isEmpty();
    assertThat(result.status()).isZero();
  }

  /** Scales of a kind for standard deviations of {@code std} and some more, and matrices for these with a correlation. */
  private static double[] scales(String kind, double std) {
    return IntStream.range(0, ROWS)
        .mapToObj(i -> {
          double s = std * (1 + i / 4.0);
          return switch (kind) {
            case "std" -> new double[] {s, s / 2};
            case "var" -> new double[] {s * s, s * s / 2};
            case "logvar" -> new double[] {2 * Math.log(s), 2 * Math.log(s) - 1};
            case "precision" -> new double[] {1 / s / s, 2 / s / s};
            case "scale-tril" -> new double[] {s, 0, -s / 2, s};
            case "packed-tril" -> new double[] {Math.log(s), -s / 2, Math.log(s)};
            default -> new double[] {s * s, -s * s / 2, -s * s / 2, s * s};
          };
        })
        .flatMapToDouble(Arrays::stream)
        .toArray();
  }

  /** Two magnitudes of each kind, one after the other. */
  @ParameterizedTest
  @CsvSource({
    // type, least and greatest standard deviation, farthest mean
    "<f2, 0.02, 100, 60000",
    "<f4, 1e-18, 1e18, 1e37",
    "<f8, 1e-70, 1e70, 1e74"
  })
  void reducedMixtures(String type, double least, double greatest, double farthest)
      throws IOException {
    for (int k = 0; k < KINDS.length; k++) {
      double std = k % 2 == 0 ? least : greatest;
      reduced(type, KINDS[k], std, Math.min(1e4 * std, farthest));
    }
  }

  @ParameterizedTest
  @Tag("long")
  @CsvSource({"<f2, 0.02, 100, 60000", "<f4, 1e-18, 1e18, 1e37", "<f8, 1e-70, 1e70, 1e74"})
  void moreReducedMixtures(String type, double least, double greatest, double farthest)
      throws IOException {
    for (String kind : KINDS) {
      for (double std : new double[] {least, 1, greatest}) {
        for (double far : new double[] {0, std, 1e4 * std, 1e6 * std, farthest}) {
          boolean isFull = kind.endsWith("tril") || kind.equals("cov");
          if (far <= farthest && (!isFull || far <= 1e6 * std)) { // beyond, singular even in double
            reduced(type, kind, std, far);
          }
        }
      }
    }
  }

  private void reduced(String type, String kind, double std, double far) throws IOException {
    double[] mean =
        IntStream.range(0, 2 * ROWS)
            .mapToDouble(k -> (k / 2 % 2 == 0 ? far : -far) * (1 - k / 2 / 8.0))
            .toArray();
    double[] scales = scales(kind, std);
    save("m.npy", type, ROWS, mean);
    long[] square = {ROWS, 2, 2};
    long[] shape = scales.length == 4 * ROWS ? square : new long[] {ROWS, scales.length / ROWS};
    NpyFiles.write(folder.resolve("x.npy"), type, shape, scales);
    String what = "%s %s std %s, means of %s".formatted(type, kind, std, far);
    boolean isFull = kind.endsWith("tril") || kind.equals("cov");
    chain(what, "--" + kind, isFull ? "--cov" : "--" + kind);
  }

  private void chain(String what, String kind, String written) throws IOException {
    String out = " -o %1$s-m.npy --out-scale %1$s-s.npy --out-weights %1$s-w.npy --quiet";
    Result first = run("reduce --to 3 --mean m.npy " + kind + " x.npy" + out.formatted("a"));
    assertThat(first).as(what).isEqualTo(new Result(0, "", ""));
    for (String file : new String[] {"a-m.npy", "a-s.npy", "a-w.npy"}) {
      Npy.Array array = Npy.readFloats(folder.resolve(file), Arena.ofAuto());
      assertThat(array.isDouble()).isTrue();
      assertThat(Arrays.stream(values(array)).filter(v -> !Double.isFinite(v))).as(what).isEmpty();
    }
    String batch = " --mean a-m.npy " + written + " a-s.npy ";
    String p = " --p-mean a-m.npy --p-" + written.substring(2) + " a-s.npy ";
    for (String command :
        new String[] {
          "standard -o y.npy" + batch,
          "pairwise -o y.npy" + batch,
          "aligned -o y.npy" + batch + p,
          "logsumexp -o y.npy" + batch,
          "topk -k 2 -o y.npy --indices i.npy" + batch,
          "entropy -o y.npy --weights a-w.npy" + batch,
          "mixture-kl -o y.npy --weights a-w.npy" + batch,
          "reduce --to 2 --weights a-w.npy" + batch + out.formatted("b"),
          "reduce --to 1 --mean b-m.npy %s b-s.npy --weights b-w.npy".formatted(written)
              + out.formatted("c")
        }) {
      Result next = run(command + (command.endsWith("quiet") ? "" : " --quiet"));
      assertThat(next).as("%s: %s", what, command).isEqualTo(new Result(0, "", ""));
    }
  }

  /** Lists of neighbors, with divergences that overflow and lists that are filled up, are merged, and merged again. */
  @ParameterizedTest
  @ValueSource(strings = {"<f2", "<f4", "<f8"})
  void lists(String type) throws IOException {
    double far = type.equals("<f2") ? 60000 : type.equals("<f4") ? 1e38 : 1e300;
    double near = type.equals("<f2") ? 6e-8 : type.equals("<f4") ? 1e-38 : 1e-300;
    save("q.npy", type, 4, 0, far, -far, near);
    save("s.npy", type, 4, 1, near, near, near);
    save("p.npy", type, 2, far, 0);
    save("t.npy", type, 2, near, near);
    String q = " --mean q.npy --std s.npy --p-mean p.npy --p-std t.npy ";
    assertDone(run("topk -k 3 --p-first 0 -o v0.npy --indices i0.npy --quiet" + q)); // of 2: filled
    String same = " --mean q.npy --std s.npy --p-mean q.npy --p-std s.npy ";
    assertDone(run("topk -k 3 --p-first 2 -o v1.npy --indices i1.npy --quiet" + same));
    String lists = "merge --quiet --in-values v0.npy v1.npy --in-indices i0.npy i1.npy ";
    assertDone(run(lists + "-o v2.npy --indices i2.npy"));
    assertDone(
        run(
            "merge --rows --quiet --in-values v2.npy v0.npy --in-indices i2.npy i0.npy -o v3.npy --indices i3.npy"));
    read("v3.npy", 8, 3);
    assertDone(run("topk -k 2 -o v4.npy --indices i4.npy --quiet" + q));
    assertDone(
        run(
            "merge --rows --quiet --in-values v4.npy --in-indices i4.npy -o v5.npy --indices i5.npy"));
    assertThat(values(read("v5.npy", 4, 2))).containsExactly(values(read("v4.npy", 4, 2)));
  }

  /** Sums are log-weights of the next sums, and of a mixture, however small. */
  @ParameterizedTest
  @CsvSource({"<f2, 60000", "<f4, 1e15", "<f8, 1e70"})
  void sums(String type, double far) throws IOException {
    save("q.npy", type, 3, far, -far, 0.5 * far);
    save("s.npy", type, 3, 1, 1, 1);
    save("p.npy", type, 2, 0, 1);
    save("t.npy", type, 2, 1, 2);
    String q = " --mean q.npy --std s.npy ";
    assertDone(run("logsumexp --quiet -o w.npy --p-mean p.npy --p-std t.npy" + q));
    assertDone(
        run(
            "logsumexp --quiet -o x.npy --log-weights w.npy --mean p.npy --std t.npy --p-mean q.npy --p-std s.npy"));
    assertDone(
        run(
            "reduce --quiet --to 1 --log-weights w.npy -o m.npy --out-scale y.npy --out-weights z.npy"
                + q));
    assertThat(values(read("z.npy", 1))).containsExactly(1);
    assertDone(run("entropy --weights z.npy --quiet -o e.npy --mean m.npy --std y.npy"));
  }

  /** The ids that a query found are removed when they are given in one axis, without those that stand for none. */
  @ParameterizedTest
  @ValueSource(strings = {"<f2", "<f4", "<f8"})
  void ids(String type) throws IOException {
    save("m.npy", type, 3, 0, 1, 2);
    save("x.npy", type, 3, 1, 1, 1);
    assertDone(index("create FOLDER --mean m.npy --std x.npy --quiet"));
    assertDone(
        index(
            "query FOLDER -k 2 --exclude 1,2 --mean m.npy --std x.npy -o v.npy --indices i.npy --quiet"));
    Npy.Array found = Npy.readIntegers(folder.resolve("i.npy"), Arena.ofAuto());
    assertThat(found.data().toArray(ValueLayout.JAVA_LONG)).containsExactly(0, -1, 0, -1, 0, -1);
    for (String command : new String[] {"remove", "add --mean m.npy --std x.npy"}) {
      Result refused = index(command.replaceFirst("\\w+", "$0 FOLDER") + " --ids i.npy");
      assertThat(refused.status()).isEqualTo(2);
      assertThat(refused.err())
          .endsWith(
              "i.npy: has shape (3, 2): ids have one axis, (N,); of an array x that index query wrote, np.unique(x[x != -1])"
                  + " are those found\n");
    }
    NpyFiles.write(folder.resolve("i.npy"), "<i8", new long[] {1}, 0);
    assertDone(index("remove FOLDER --ids i.npy --quiet"));
    assertDone(index("info FOLDER --check"));
  }
}
