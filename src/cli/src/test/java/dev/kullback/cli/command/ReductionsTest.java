package dev.kullback.cli.command;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.KlEngine;
import dev.kullback.ScaleKind;
import dev.kullback.ScalePolicy;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.Layout;
import dev.kullback.cli.batch.RowBlocks;
import dev.kullback.cli.batch.Weights;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.npy.Type;
import dev.kullback.cli.output.NeighborOutput;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.output.SparseOutput;
import dev.kullback.cli.terminal.Progress;
import dev.kullback.cli.terminal.UserError;
import dev.kullback.cli.testing.CommandFixture;
import dev.kullback.cli.testing.NpyFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The commands that keep less than the matrix: topk, within, logsumexp and entropy. */
@Tag("module")
class ReductionsTest extends CommandFixture {
  private static final String Q = " --mean q.npy --std s.npy ";

  private int[] ints(String name, long... shape) throws IOException {
    Npy.Array array = Npy.readInts(folder.resolve(name), Arena.ofAuto());
    assertThat(array.shape()).containsExactly(shape);
    return array.data().toArray(ValueLayout.JAVA_INT);
  }

  /** A sparse matrix as SciPy's load_npz reads it, of the numbers that the files of pairs have. */
  @ParameterizedTest
  @ValueSource(strings = {"<f4", "<f8"})
  void sparseMatrix(String descr) throws IOException {
    save("q.npy", descr, N, qMean);
    String line = "within --radius 250 --p-mean p.npy --p-std t.npy" + Q;
    succeed(line + "--indices i.npy -o o.npy");
    succeed(line + "-o o.npz");
    Map<String, String> members = new TreeMap<>();
    try (ZipFile zip = new ZipFile(folder.resolve("o.npz").toFile())) {
      for (ZipEntry entry : zip.stream().toList()) {
        byte[] bytes = zip.getInputStream(entry).readAllBytes(); // checks its length and CRC
        members.put(entry.getName(), new String(bytes, StandardCharsets.ISO_8859_1));
      }
    }
    int count = (int) Npy.readShape(folder.resolve("o.npy"))[0];
    assertThat(count).isBetween(8, N * M - 8);
    assertThat(members)
        .containsOnlyKeys("indices.npy", "indptr.npy", "format.npy", "shape.npy", "data.npy");
    assertThat(members.get("format.npy")).contains("'|S3'", "'shape': ()").endsWith("\ncsr");
    assertThat(members.get("shape.npy"))
        .contains("'<i8'", "'shape': (2,)")
        .endsWith("\n\7" + "\0".repeat(7) + "\5" + "\0".repeat(7)); // N and M
    assertThat(members.get("data.npy")).contains("'" + descr + "'");
    assertThat(values(read("o.npz:data", count))).containsExactly(values(read("o.npy", count)));
    int[] pairs = ints("i.npy", count, 2);
    int[] start = ints("o.npz:indptr", N + 1);
    int[] columns = ints("o.npz:indices", count);
    assertThat(new int[] {start[0], start[N]}).containsExactly(0, count);
    for (int i = 0; i < N; i++) {
      for (int r = start[i]; r < start[i + 1]; r++) {
        assertThat(new int[] {i, columns[r]}).containsExactly(pairs[2 * r], pairs[2 * r + 1]);
      }
    }
    byte[] first = bytes("o.npz");
    succeed(line + "-o o.npz");
    assertThat(folder.resolve("o.npz")).hasBinaryContent(first);
    assertThat(contents()).hasSize(7); // and nothing beside it
  }

  /** A policy of the Wasserstein distance is told where that can be had. */
  @Test
  void helpOfCommandsWithoutADivergence() {
    for (String command : List.of("reduce", "entropy", "index add", "index query", "mixture-kl")) {
      assertThat(run(command + " --help").out()).contains("--clamp").doesNotContain("asserstein");
    }
    for (String command : List.of("pairwise", "topk", "within", "aligned", "standard")) {
      assertThat(run(command + " --help").out().replaceAll("\\s+", " "))
          .contains("wasserstein-2 and its square need neither: they take std 0, and singular");
    }
  }

  /** Rounded to float16, weights and logarithms of them have another sum than 1. */
  @ParameterizedTest
  @CsvSource({"3, --weights", "1100, --weights", "3, --log-weights", "1100, --log-weights"})
  void weightsOfFloat16(int n, String option) throws IOException {
    save("q.npy", "<f4", n, new double[n]);
    save("s.npy", "<f4", "", 1);
    boolean isLog = option.equals("--log-weights");
    double[] weights = new double[n];
    Arrays.fill(weights, isLog ? -Math.log(n) : 1.0 / n);
    save("c.npy", "<f2", "" + n, weights);
    double[] halves = values(read("c.npy", n));
    double sum = Arrays.stream(halves).map(c -> isLog ? Math.exp(c) : c).sum();
    assertThat(Math.abs(sum - 1)).isGreaterThan(1e-5);
    String line = "entropy -o o.npy --backend scalar" + Q + option + " c.npy";
    succeed(line + " --alpha 0");
    double entropy = 0.5 * (1 + Math.log(2 * Math.PI)); // of N(0, 1), which all components are
    assertThat(values(read("o.npy", 2))[0]).isCloseTo(entropy, within(1e-9));
    save("c.npy", "<f8", "" + n, halves);
    assertUserError(line, "c.npy: the sum of weights is ", "it must be 1");
  }

  /** So many weights are below the normal ones of float16, and have larger relative errors. */
  @Test
  void smallWeightsOfFloat16() throws IOException {
    int n = 100_000;
    double[] weights = new double[n];
    Arrays.fill(weights, 1.0 / n);
    Path file = NpyFiles.write(folder.resolve("c.npy"), "<f2", new long[] {n}, weights);
    Npy.Array none =
        new Npy.Array(new long[0], ValueLayout.JAVA_FLOAT, Type.FLOAT16, MemorySegment.NULL);
    BatchOptions.Files files = new BatchOptions.Files(file, ScaleKind.STD, file);
    long[] shape = {n, 1};
    Batch batch =
        new Batch(files, ScalePolicy.STRICT, Layout.of(files, shape, shape), 0, n, none, none);
    Weights read = Weights.read(file, false, batch);
    assertThat(Math.abs(Arrays.stream(read.given()).sum() - 1)).isGreaterThan(0x1p-10);
    assertThat(read.ofMixtures(0, n)).containsExactly(weights, within(1e-14));
  }

  // --- blocks of rows

  private interface Run {
    void compute(RowBlocks blocks, OutputFile a, OutputFile b) throws IOException;
  }

  /** Asserts that blocks of every size write the same files. */
  private void assertSameInBlocks(Batch rows, Batch columns, Run run) throws IOException {
    byte[][] first = {};
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    for (int blockRows = N; blockRows > 0; blockRows--) {
      try (Progress progress = new Progress(new PrintStream(err), N);
          OutputFile a = new OutputFile(folder.resolve("a"));
          OutputFile b = new OutputFile(folder.resolve("b"))) {
        run.compute(new RowBlocks(rows, columns, blockRows, progress), a, b);
        a.commit();
        b.commit();
      }
      byte[][] bytes = {
        Files.readAllBytes(folder.resolve("a")), Files.readAllBytes(folder.resolve("b"))
      };
      first = blockRows == N ? bytes : first;
      assertThat(bytes).isDeepEqualTo(first);
    }
    assertThat(err.size()).isZero(); // no terminal, no bar
  }

  private BatchOptions.Files files(String scale) {
    ScaleKind kind = scale.equals("s.npy") ? ScaleKind.STD : ScaleKind.COVARIANCE;
    return new BatchOptions.Files(folder.resolve("q.npy"), kind, folder.resolve(scale));
  }

  /** Saves covariances, of which the last element may be another. */
  private void saveFull(String name, double last) throws IOException {
    double[] covariance = new double[N * D * D];
    for (int k = 0; k < covariance.length; k++) {
      int i = k / D / D;
      covariance[k] = k / D % D == k % D ? 2 + i : 0.25 * (i % 3);
    }
    covariance[covariance.length - 1] = last;
    save(name, "<f4", N + " 6 6", covariance);
  }

  @ParameterizedTest
  @ValueSource(strings = {"s.npy", "cov.npy"})
  void blocksOfEverySizeGiveTheSameFiles(String scale) throws IOException {
    saveFull("cov.npy", 8);
    try (Arena arena = Arena.ofConfined();
        KlEngine engine = KlEngine.builder().build()) {
      Batch rows = Batch.load(files(scale), ScalePolicy.STRICT, arena);
      Batch same = Batch.load(files(scale), ScalePolicy.STRICT, arena);
      ValueLayout element = Batch.element(rows, same);
      for (Batch columns : new Batch[] {rows, same}) {
        for (boolean others : new boolean[] {false, true}) {
          TopK topk = new TopK();
          topk.k = 3;
          topk.excludeSelf = others;
          assertSameInBlocks(
              rows,
              columns,
              (blocks, a, b) -> {
                NeighborOutput out = new NeighborOutput(a, b, N, topk.k, element);
                topk.search(engine, blocks, 0, new HashMap<>(), out);
              });
        }
        Within within = new Within();
        within.radius = scale.equals("s.npy") ? 100 : 10;
        for (boolean archive : new boolean[] {false, true}) {
          assertSameInBlocks(
              rows,
              columns,
              (blocks, a, b) -> {
                try (SparseOutput out =
                    new SparseOutput(a, archive ? null : b, N, element, ValueLayout.JAVA_INT)) {
                  within.find(engine, blocks, out);
                }
              });
        }
        assertThat(folder.resolve("a")).isNotEmptyFile();
        assertSameInBlocks(
            rows,
            columns,
            (blocks, a, _) -> a.write(LogSumExp.compute(engine, blocks, null, arena)));
      }
    }
  }

  /** Nothing of the first block is computed before the last is known to be right. */
  @Test
  void namesTheBadCovarianceOfALaterBlock() throws IOException {
    saveFull("cov.npy", 8);
    saveFull("bad.npy", -1);
    try (Arena arena = Arena.ofConfined();
        Progress progress = new Progress(new PrintStream(OutputStream.nullOutputStream()), N)) {
      Batch good = Batch.load(files("cov.npy"), ScalePolicy.STRICT, arena);
      Batch bad = Batch.load(files("bad.npy"), ScalePolicy.STRICT, arena);
      for (Batch columns : new Batch[] {good, bad}) {
        List<Integer> computed = new ArrayList<>();
        RowBlocks blocks = new RowBlocks(bad, columns, 2, progress);
        assertThatThrownBy(() -> blocks.forEach((first, _, _) -> computed.add(first)))
            .isInstanceOf(UserError.class)
            .hasMessageContaining("bad.npy: covariance[6] (Gaussian 6) is not positive definite");
        assertThat(computed).isEmpty();
      }
    }
  }
}
