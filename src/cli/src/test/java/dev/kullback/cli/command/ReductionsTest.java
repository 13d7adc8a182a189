package dev.kullback.cli.command;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.kullback.DiagonalGaussians;
import dev.kullback.FullGaussians;
import dev.kullback.Gaussians;
import dev.kullback.KlEngine;
import dev.kullback.Mixtures;
import dev.kullback.Neighbors;
import dev.kullback.Query;
import dev.kullback.ScaleKind;
import dev.kullback.ScalePolicy;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.Layout;
import dev.kullback.cli.batch.RowBlocks;
import dev.kullback.cli.batch.Weights;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.npy.NpyHeader;
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
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
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
  private static final String P = " --p-mean p.npy --p-std t.npy ";

  /** The batches as double, whose matrix is right to 1e-12. */
  private final Gaussians q = DiagonalGaussians.ofStd(qMean, qStd, D);

  private final Gaussians p = DiagonalGaussians.ofStd(pMean, pStd, D);

  private static double[][] matrix(Gaussians q, Gaussians p) {
    double[] all = new double[q.size() * p.size()];
    try (KlEngine engine = KlEngine.builder().build()) {
      engine.pairwise(q, p, all);
    }
    return IntStream.range(0, q.size())
        .mapToObj(i -> Arrays.copyOfRange(all, i * p.size(), (i + 1) * p.size()))
        .toArray(double[][]::new);
  }

  private int[] ints(String name, long... shape) throws IOException {
    Npy.Array array = Npy.readInts(folder.resolve(name), Arena.ofAuto());
    assertThat(array.shape()).containsExactly(shape);
    return array.data().toArray(ValueLayout.JAVA_INT);
  }

  /** Both batches again in doubles, or in the floats that they are. */
  private double saveAs(String descr) throws IOException {
    save("q.npy", descr, N, qMean);
    save("s.npy", descr, N, qStd);
    return descr.endsWith("8") ? 1e-12 : 1e-5;
  }

  /** Saves covariances as cov.npy and returns the batch of them. */
  private Gaussians saveFull(String descr) throws IOException {
    double[] covariance = new double[N * D * D];
    for (int k = 0; k < covariance.length; k++) {
      int i = k / D / D;
      covariance[k] = k / D % D == k % D ? 2 + i : 0.25 * (i % 3);
    }
    NpyFiles.write(folder.resolve("cov.npy"), descr, new long[] {N, D, D}, covariance);
    return FullGaussians.ofCovariance(qMean, covariance, D);
  }

  // --- topk

  /** Returns the columns of the k smallest values of a matrix's row; {@code self} is the column to leave out, or -1. */
  private static int[] smallest(double[] row, int k, int self) {
    return IntStream.range(0, row.length)
        .filter(j -> j != self)
        .boxed()
        .sorted(Comparator.comparingDouble(j -> row[j]))
        .limit(k)
        .mapToInt(j -> j)
        .toArray();
  }

  private void assertTopK(double[][] matrix, int k, boolean others, double tolerance)
      throws IOException {
    int[] indices = ints("i.npy", matrix.length, k);
    Npy.Array got = read("o.npy", matrix.length, k);
    assertThat(got.element().byteSize()).isEqualTo(tolerance < 1e-6 ? 8 : 4);
    double[] values = values(got);
    for (int i = 0; i < matrix.length; i++) {
      int[] expected = smallest(matrix[i], k, others ? i : -1);
      assertThat(Arrays.copyOfRange(indices, i * k, i * k + k)).containsExactly(expected);
      for (int r = 0; r < k; r++) {
        double want = matrix[i][expected[r]];
        assertThat(values[i * k + r]).isCloseTo(want, within(tolerance * want));
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"1, <f4", "3, <f4", "5, <f4", "3, <f8", "5, >f8"})
  void topk(int k, String descr) throws IOException {
    double tolerance = saveAs(descr);
    succeed("topk -k " + k + Q + P + "--indices i.npy -o o.npy");
    assertTopK(matrix(q, p), k, false, tolerance);
  }

  @Test
  void topkOfQWithItself() throws IOException {
    succeed("topk -k 7" + Q + "--indices i.npy -o o.npy");
    assertTopK(matrix(q, q), N, false, 1e-5);
    int[] indices = ints("i.npy", N, N);
    for (int i = 0; i < N; i++) {
      assertThat(indices[i * N]).isEqualTo(i);
      assertThat(read("o.npy", N, N).value((long) i * N)).isZero();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 4, N - 1})
  void topkExcludesSelf(int k) throws IOException {
    succeed("topk --exclude-self -k " + k + Q + "--indices i.npy -o o.npy");
    assertTopK(matrix(q, q), k, true, 1e-5);
    save("r.npy", "<f8", N, floats(N * D, v -> v));
    succeed(
        "topk --exclude-self -k "
            + k
            + Q
            + "--p-mean r.npy --p-std s.npy"
            + " --indices i.npy -o o.npy");
    Gaussians other = DiagonalGaussians.ofStd(values(read("r.npy", N, D)), qStd, D);
    assertTopK(matrix(q, other), k, true, 1e-12);
    try (KlEngine engine = KlEngine.builder().build()) {
      Neighbors others = engine.search(q, other, Query.nearest(k).excludeSelf());
      assertThat(ints("i.npy", N, k)).containsExactly(others.indices());
      assertThat(values(read("o.npy", N, k))).containsExactly(others.values(), within(1e-9));
    }
  }

  /** A row's own index need not be among the first k + 1. */
  @Test
  void topkOfEqualGaussians() throws IOException {
    save("q.npy", "<f4", N, new double[N * D]);
    save("s.npy", "<f4", N, Arrays.stream(new double[N * D]).map(_ -> 1).toArray());
    succeed("topk -k 3" + Q + "--indices i.npy -o o.npy");
    assertThat(Arrays.copyOfRange(ints("i.npy", N, 3), 18, 21)).containsExactly(0, 1, 2);
    succeed("topk -k 2 --exclude-self" + Q + "--indices i.npy -o o.npy");
    int[] expected = {1, 2, 0, 2, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
    assertThat(ints("i.npy", N, 2)).containsExactly(expected);
    assertThat(values(read("o.npy", N, 2))).containsOnly(0);
  }

  @ParameterizedTest
  @ValueSource(strings = {"<f4", "<f8"})
  void topkOfFullCovariances(String descr) throws IOException {
    double tolerance = saveAs(descr) * 10; // times the condition number for double
    Gaussians full = saveFull(descr);
    succeed("topk -k 4 --mean q.npy --cov cov.npy --indices i.npy -o o.npy");
    assertTopK(matrix(full, full), 4, false, tolerance);
    succeed("topk -k 4 --mean q.npy --cov cov.npy --exclude-self --indices i.npy -o o.npy");
    assertTopK(matrix(full, full), 4, true, tolerance);
    succeed("topk -k 5 --mean q.npy --cov cov.npy" + P + "--indices i.npy -o o.npy");
    assertTopK(matrix(full, p), 5, false, tolerance);
  }

  // --- within

  private void assertWithin(double[][] matrix, double radius, double tolerance) throws IOException {
    List<Integer> expected = new ArrayList<>();
    List<Double> wanted = new ArrayList<>();
    for (int i = 0; i < matrix.length; i++) {
      for (int j = 0; j < matrix[i].length; j++) {
        if (matrix[i][j] <= radius) {
          expected.addAll(List.of(i, j));
          wanted.add(matrix[i][j]);
        }
      }
    }
    int count = wanted.size();
    assertThat(ints("i.npy", count, 2))
        .containsExactly(expected.stream().mapToInt(x -> x).toArray());
    Npy.Array got = read("o.npy", count);
    assertThat(got.element().byteSize()).isEqualTo(tolerance < 1e-6 ? 8 : 4);
    double[] values = values(got);
    for (int r = 0; r < count; r++) {
      assertThat(values[r]).isCloseTo(wanted.get(r), within(tolerance * wanted.get(r)));
    }
  }

  private static double median(double[][] matrix) {
    double[] all = Arrays.stream(matrix).flatMapToDouble(Arrays::stream).sorted().toArray();
    return all[all.length / 2];
  }

  @ParameterizedTest
  @ValueSource(strings = {"<f4", "<f8"})
  void withinRadius(String descr) throws IOException {
    double tolerance = saveAs(descr);
    double[][] matrix = matrix(q, p);
    double radius = median(matrix) * 1.000001; // of one side, whatever an entry's last digits are
    succeed("within --radius " + radius + Q + P + "--indices i.npy -o o.npy");
    assertWithin(matrix, radius, tolerance);
    assertThat(ints("i.npy", N * M / 2 + 1, 2)).hasSize(N * M + 1);
  }

  @ParameterizedTest
  @CsvSource({"0, 0", "-0.0, 0", "inf, Infinity", "INF, Infinity", "Infinity, Infinity"})
  void extremeRadii(String text, double radius) throws IOException {
    succeed("within --radius " + text + Q + "--indices i.npy -o o.npy");
    assertWithin(matrix(q, q), radius, 1e-5);
    assertThat(ints("i.npy", radius == 0 ? N : N * N, 2)).isNotEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"<f4", "<f8"})
  void withinRadiusOfFullCovariances(String descr) throws IOException {
    double tolerance = saveAs(descr) * 10;
    Gaussians full = saveFull(descr);
    double[][] matrix = matrix(full, full);
    double radius = median(matrix) * 1.000001;
    String line = "within --mean q.npy --cov cov.npy --indices i.npy -o o.npy --radius " + radius;
    succeed(line);
    assertWithin(matrix, radius, tolerance);
    succeed(line + P);
    assertWithin(matrix(full, p), radius, tolerance);
  }

  /** An array's header and data. */
  record Entry(String descr, String shape, ByteBuffer data) {
    int[] ints() {
      assertThat(descr).isEqualTo("<i4");
      return MemorySegment.ofBuffer(data).toArray(ValueLayout.JAVA_INT_UNALIGNED);
    }
  }

  /** Reads the arrays of an .npz file as any reader sees them. */
  private Map<String, Entry> unzip(String name) throws IOException {
    Map<String, Entry> entries = new LinkedHashMap<>();
    try (ZipFile zip = new ZipFile(folder.resolve(name).toFile())) {
      for (ZipEntry entry : zip.stream().toList()) {
        byte[] bytes = zip.getInputStream(entry).readAllBytes(); // checks its length and CRC
        int start = 10 + ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getShort(8);
        NpyHeader header =
            NpyHeader.parse(new String(bytes, 10, start - 10, StandardCharsets.US_ASCII), 1);
        assertThat(bytes).startsWith(0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0);
        assertThat(header.fortranOrder()).isFalse();
        ByteBuffer data = ByteBuffer.wrap(bytes, start, bytes.length - start).slice();
        entries.put(
            entry.getName(),
            new Entry(header.descr(), header.shapeText(), data.order(ByteOrder.LITTLE_ENDIAN)));
      }
    }
    return entries;
  }

  @ParameterizedTest
  @ValueSource(strings = {"<f4", "<f8"})
  void sparseMatrix(String descr) throws IOException {
    saveAs(descr);
    double radius = median(matrix(q, p)) * 1.000001;
    String line = "within --radius " + radius + Q + P;
    succeed(line + "--indices i.npy -o o.npy");
    succeed(line + "-o o.npz");
    Map<String, Entry> entries = unzip("o.npz");
    assertThat(entries)
        .containsOnlyKeys("indices.npy", "indptr.npy", "format.npy", "shape.npy", "data.npy");

    Entry format = entries.get("format.npy");
    assertThat(format.descr() + format.shape()).isEqualTo("|S3()");
    assertThat(format.data()).isEqualTo(ByteBuffer.wrap("csr".getBytes(StandardCharsets.US_ASCII)));
    Entry shape = entries.get("shape.npy");
    assertThat(shape.descr() + shape.shape()).isEqualTo("<i8(2,)");
    assertThat(new long[] {shape.data().getLong(0), shape.data().getLong(8)}).containsExactly(N, M);

    int count = N * M / 2 + 1;
    assertThat(entries.get("data.npy").descr()).isEqualTo(descr);
    assertThat(entries.get("data.npy").shape()).isEqualTo("(" + count + ",)");
    assertThat(entries.get("indices.npy").shape()).isEqualTo("(" + count + ",)");
    assertThat(entries.get("indptr.npy").shape()).isEqualTo("(" + (N + 1) + ",)");
    double[] values = values(read("o.npy", count));
    int[] pairs = ints("i.npy", count, 2);
    int[] start = entries.get("indptr.npy").ints();
    int[] columns = entries.get("indices.npy").ints();
    assertThat(start[0]).isZero();
    assertThat(start[N]).isEqualTo(count);
    for (int i = 0; i < N; i++) {
      for (int r = start[i]; r < start[i + 1]; r++) {
        assertThat(new int[] {i, columns[r]}).containsExactly(pairs[2 * r], pairs[2 * r + 1]);
        ByteBuffer data = entries.get("data.npy").data();
        double value = descr.equals("<f8") ? data.getDouble(8 * r) : data.getFloat(4 * r);
        assertThat(value).isEqualTo(values[r]);
      }
    }
    byte[] first = Files.readAllBytes(folder.resolve("o.npz"));
    succeed(line + "-o o.npz");
    assertThat(folder.resolve("o.npz")).hasBinaryContent(first);
    assertThat(contents()).hasSize(7); // and nothing beside it
  }

  // --- logsumexp

  private void assertLogSumExp(double[][] matrix, double[] w, double tolerance) throws IOException {
    Npy.Array got = read("o.npy", matrix.length);
    assertThat(got.element().byteSize()).isEqualTo(tolerance < 1e-6 ? 8 : 4);
    for (int i = 0; i < matrix.length; i++) {
      double[] row = matrix[i];
      double max = IntStream.range(0, row.length).mapToDouble(j -> w[j] - row[j]).max().orElse(0);
      double sum =
          IntStream.range(0, row.length).mapToDouble(j -> Math.exp(w[j] - row[j] - max)).sum();
      double want = max + Math.log(sum);
      assertThat(got.value(i)).isCloseTo(want, within(tolerance * (1 + Math.abs(want))));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"<f4", "<f8"})
  void logsumexp(String descr) throws IOException {
    double tolerance = saveAs(descr);
    succeed("logsumexp" + Q + P + "-o o.npy");
    assertLogSumExp(matrix(q, p), new double[M], tolerance);
    succeed("logsumexp" + Q + "-o o.npy");
    assertLogSumExp(matrix(q, q), new double[N], tolerance);
    double[] w = {-1, Double.NEGATIVE_INFINITY, 2, 0, -30};
    for (String type : new String[] {"<f4", ">f8"}) {
      NpyFiles.write(folder.resolve("w.npy"), type, new long[] {M}, w);
      succeed("logsumexp --log-weights w.npy" + Q + P + "-o o.npy");
      assertLogSumExp(matrix(q, p), w, tolerance);
    }
    Gaussians full = saveFull(descr);
    succeed("logsumexp --mean q.npy --cov cov.npy" + P + "--log-weights w.npy -o o.npy");
    assertLogSumExp(matrix(full, p), w, tolerance * 10);
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

  // --- entropy

  private static void assertEntropy(Npy.Array got, Mixtures want, double alpha) {
    try (KlEngine engine = KlEngine.builder().build()) {
      assertThat(got.isDouble()).isTrue();
      assertThat(values(got))
          .containsExactly(
              new double[] {want.entropyLowerBound(alpha)[0], want.entropyUpperBound(engine)[0]},
              within(1e-9));
    }
  }

  @Test
  void entropy() throws IOException {
    saveAs("<f8");
    succeed("entropy -o o.npy" + Q);
    Mixtures equal = Mixtures.of(q);
    assertEntropy(read("o.npy", 2), equal, 0.5);
    succeed("entropy -o o.npy --alpha 0.25" + Q);
    assertEntropy(read("o.npy", 2), equal, 0.25);
    double[] c = {0.5, 0.125, 0, 0.125, 0.0625, 0.0625, 0.125};
    NpyFiles.write(folder.resolve("c.npy"), "<f4", new long[] {N}, c);
    succeed("entropy --output o.npy --weights c.npy" + Q);
    assertEntropy(read("o.npy", 2), Mixtures.of(q, c), 0.5);
    double[] logs = Arrays.stream(c).map(Math::log).toArray();
    NpyFiles.write(folder.resolve("w.npy"), "<f8", new long[] {N}, logs);
    succeed("entropy -o o.npy --log-weights w.npy" + Q);
    assertEntropy(read("o.npy", 2), Mixtures.of(q, c), 0.5);
    Gaussians full = saveFull("<f8");
    succeed("entropy -o o.npy --weights c.npy --mean q.npy --cov cov.npy");
    assertEntropy(read("o.npy", 2), Mixtures.of(full, c), 0.5);
  }

  /** Rounded to float16, weights and logarithms of them have another sum than 1. */
  @ParameterizedTest
  @CsvSource({"3, --weights", "1100, --weights", "3, --log-weights", "1100, --log-weights"})
  void weightsOfFloat16(int n, String option) throws IOException {
    save("q.npy", "<f4", n, new double[n]);
    double[] ones = new double[n];
    Arrays.fill(ones, 1);
    save("s.npy", "<f4", n, ones);
    boolean isLog = option.equals("--log-weights");
    double[] weights = new double[n];
    Arrays.fill(weights, isLog ? -Math.log(n) : 1.0 / n);
    NpyFiles.write(folder.resolve("c.npy"), "<f2", new long[] {n}, weights);
    double[] halves = values(read("c.npy", n));
    double sum = Arrays.stream(halves).map(c -> isLog ? Math.exp(c) : c).sum();
    assertThat(Math.abs(sum - 1)).isGreaterThan(1e-5);
    String line = "entropy -o o.npy --backend scalar" + Q + option + " c.npy";
    succeed(line + " --alpha 0");
    double entropy = 0.5 * (1 + Math.log(2 * Math.PI)); // of N(0, 1), which all components are
    assertThat(values(read("o.npy", 2))[0]).isCloseTo(entropy, within(1e-9));
    NpyFiles.write(folder.resolve("c.npy"), "<f8", new long[] {n}, halves);
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

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void blocksOfEverySizeGiveTheSameFiles(boolean full) throws IOException {
    saveFull("<f4");
    Path mean = folder.resolve("q.npy");
    Path scale = folder.resolve(full ? "cov.npy" : "s.npy");
    BatchOptions.Files files =
        new BatchOptions.Files(mean, full ? ScaleKind.COVARIANCE : ScaleKind.STD, scale);
    double radius = median(full ? matrix(saveFull("<f4"), saveFull("<f4")) : matrix(q, q)) + 1e-3;
    try (Arena arena = Arena.ofConfined();
        KlEngine engine = KlEngine.builder().build()) {
      Batch rows = Batch.load(files, ScalePolicy.STRICT, arena);
      Batch same = Batch.load(files, ScalePolicy.STRICT, arena);
      for (Batch columns : new Batch[] {rows, same}) {
        for (boolean others : new boolean[] {false, true}) {
          TopK topk = new TopK();
          topk.k = 3;
          topk.excludeSelf = others;
          assertSameInBlocks(
              rows,
              columns,
              (blocks, a, b) -> {
                ValueLayout element = Batch.element(rows, columns);
                NeighborOutput out = new NeighborOutput(a, b, N, topk.k, element);
                topk.search(engine, blocks, 0, new HashMap<>(), out);
              });
        }
        Within within = new Within();
        within.radius = radius;
        for (boolean archive : new boolean[] {false, true}) {
          assertSameInBlocks(
              rows,
              columns,
              (blocks, a, b) -> {
                ValueLayout element = Batch.element(rows, columns);
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
    saveFull("<f4");
    double[] covariance = values(read("cov.npy", N, D, D));
    covariance[covariance.length - 1] = -1;
    NpyFiles.write(folder.resolve("bad.npy"), "<f4", new long[] {N, D, D}, covariance);
    Path mean = folder.resolve("q.npy");
    try (Arena arena = Arena.ofConfined();
        Progress progress = new Progress(new PrintStream(OutputStream.nullOutputStream()), N)) {
      Batch good =
          Batch.load(
              new BatchOptions.Files(mean, ScaleKind.COVARIANCE, folder.resolve("cov.npy")),
              ScalePolicy.STRICT,
              arena);
      Batch bad =
          Batch.load(
              new BatchOptions.Files(mean, ScaleKind.COVARIANCE, folder.resolve("bad.npy")),
              ScalePolicy.STRICT,
              arena);
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

  /** Reverse searches rank by KL(p ‖ q), with the results of each q in its row. */
  @ParameterizedTest
  @ValueSource(strings = {"<f4", "<f8"})
  void reverse(String descr) throws IOException {
    double contract = saveAs(descr);
    double[][] kl = matrix(p, q);
    succeed("topk -k 3 --reverse-divergence" + Q + P + "--indices i.npy -o o.npy");
    int[] columns = ints("i.npy", N, 3);
    double[] values = values(read("o.npy", N, 3));
    double radius = kl[0][0];
    List<Integer> expected = new ArrayList<>();
    for (int i = 0; i < N; i++) {
      int row = i;
      Integer[] order = IntStream.range(0, kl.length).boxed().toArray(Integer[]::new);
      Arrays.sort(order, Comparator.comparingDouble(j -> kl[j][row]));
      for (int r = 0; r < 3; r++) {
        double exact = kl[order[r]][i];
        assertThat(columns[i * 3 + r]).isEqualTo(order[r]);
        assertThat(values[i * 3 + r]).isCloseTo(exact, within(contract * exact));
      }
      IntStream.range(0, kl.length)
          .filter(j -> kl[j][row] <= radius * (1 + 1e-12))
          .forEach(j -> expected.addAll(List.of(row, j)));
    }
    Result result =
        run(
            "within --reverse-divergence --radius "
                + radius * (1 + 1e-12)
                + Q
                + P
                + "--indices i.npy -o o.npy --json");
    assertThat(result.err()).isEmpty();
    assertThat(ints("i.npy", expected.size() / 2, 2))
        .containsExactly(expected.stream().mapToInt(Integer::intValue).toArray());
    assertThat(result.out()).contains("\"reverse\": true");
  }
}
