package dev.kullback.cli.command;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.KlEngine;
import dev.kullback.ScaleKind;
import dev.kullback.ScalePolicy;
import dev.kullback.cli.batch.Batch;
import dev.kullback.cli.batch.BatchOptions;
import dev.kullback.cli.batch.Layout;
import dev.kullback.cli.batch.RowBlocks;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.npy.Type;
import dev.kullback.cli.output.OutputFile;
import dev.kullback.cli.picture.Heatmap;
import dev.kullback.cli.terminal.Progress;
import dev.kullback.cli.terminal.UserError;
import dev.kullback.cli.testing.NpyFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("module")
class PairwiseTest {
  @TempDir Path folder;

  @Test
  void blocksOfEverySizeGiveTheSameFile() throws IOException {
    int n = 11;
    int d = 3;
    Random random = new Random(5);
    Path mean = folder.resolve("m.npy");
    Path std = folder.resolve("s.npy");
    long[] shape = {n, d};
    NpyFiles.write(mean, "<f4", shape, random.doubles(n * d).toArray());
    NpyFiles.write(std, "<f4", shape, random.doubles(n * d, 0.5, 2).toArray());
    Path output = folder.resolve("o.npy");
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    byte[] first = {};
    byte[] firstImage = {};
    try (Arena arena = Arena.ofConfined();
        KlEngine engine = KlEngine.builder().build()) {
      Batch q =
          Batch.load(new BatchOptions.Files(mean, ScaleKind.STD, std), ScalePolicy.STRICT, arena);
      for (int blockRows = n; blockRows >= 0; blockRows--) { // 0: less than a row fits
        Heatmap image = new Heatmap(n, n);
        try (OutputFile npy = new OutputFile(output);
            Progress progress = new Progress(new PrintStream(err), n)) {
          int rows = Pairwise.blockRows(q, q, 1, 4L * n * blockRows);
          Pairwise.compute(new RowBlocks(q, q, rows, progress), npy, image, engine::pairwise);
          npy.commit();
        }
        byte[] bytes = Files.readAllBytes(output);
        byte[] png = image.png("t", "q", "p", List.of());
        first = blockRows == n ? bytes : first;
        firstImage = blockRows == n ? png : firstImage;
        assertThat(bytes).hasSize(128 + 4 * n * n).isEqualTo(first);
        assertThat(png).isEqualTo(firstImage);
      }
    }
    assertThat(err.size()).isZero(); // no terminal, no bar
  }

  private static final int N = 11;
  private static final int D = 3;

  /** Means in m.npy, covariances with a diagonal of 2, but one of {@code last} at the end, in c.npy. */
  private Batch full(double last, Arena arena) throws IOException {
    double[] covariance = new double[N * D * D];
    for (int k = 0; k < covariance.length; k++) {
      covariance[k] = k / D % D == k % D ? 2 : 0.1 * (k / D / D);
    }
    covariance[covariance.length - 1] = last;
    Path mean = folder.resolve("m.npy");
    Path file = folder.resolve("c.npy");
    NpyFiles.write(mean, "<f4", new long[] {N, D}, new Random(6).doubles(N * D).toArray());
    NpyFiles.write(file, "<f4", new long[] {N, D, D}, covariance);
    return Batch.load(
        new BatchOptions.Files(mean, ScaleKind.COVARIANCE, file), ScalePolicy.STRICT, arena);
  }

  private void compute(Batch q, Batch p, OutputFile npy, int blockRows) {
    try (KlEngine engine = KlEngine.builder().build();
        Progress progress = new Progress(new PrintStream(OutputStream.nullOutputStream()), N)) {
      int rows = Pairwise.blockRows(q, p, 1, 4L * N * blockRows);
      Pairwise.compute(new RowBlocks(q, p, rows, progress), npy, null, engine::pairwise);
    }
  }

  @Test
  void blocksOfFullCovariancesGiveTheSameFile() throws IOException {
    Path output = folder.resolve("o.npy");
    byte[] first = {};
    try (Arena arena = Arena.ofConfined()) {
      Batch q = full(2, arena);
      Batch same = full(2, arena);
      for (int blockRows = N; blockRows >= 0; blockRows--) {
        for (Batch p : new Batch[] {q, same}) {
          try (OutputFile npy = new OutputFile(output)) {
            compute(q, p, npy, blockRows);
            npy.commit();
          }
          byte[] bytes = Files.readAllBytes(output);
          first = first.length == 0 ? bytes : first;
          assertThat(bytes).hasSize(128 + 4 * N * N).isEqualTo(first);
        }
      }
    }
  }

  /** Covariances are checked where they are factored, in blocks, but all before anything is computed. */
  @Test
  void namesTheBadCovarianceOfALaterBlock() throws IOException {
    Path output = folder.resolve("o.npy");
    try (Arena arena = Arena.ofConfined()) {
      Batch p = full(2, arena);
      Batch q = full(-1, arena); // the load does not factor
      for (int blockRows = N; blockRows > 0; blockRows -= 2) {
        for (Batch columns : new Batch[] {p, q}) {
          int rows = blockRows;
          try (OutputFile npy = new OutputFile(output)) {
            assertThatThrownBy(() -> compute(q, columns, npy, rows))
                .isInstanceOf(UserError.class)
                .hasMessageContaining(
                    "c.npy: covariance[10] (Gaussian 10) is not positive definite");
          }
        }
      }
      Batch infinite = full(Double.NaN, arena);
      try (OutputFile npy = new OutputFile(output)) {
        assertThatThrownBy(() -> compute(infinite, p, npy, 4))
            .hasMessageContaining(
                "c.npy: covariance[10][2][2] (Gaussian 10, row 2, column 2) is NaN");
      }
    }
  }

  private static Batch batch(ScaleKind kind, int size, int dimension) {
    Npy.Array none =
        new Npy.Array(new long[0], ValueLayout.JAVA_FLOAT, Type.FLOAT32, MemorySegment.NULL);
    Path file = Path.of("none.npy");
    BatchOptions.Files files = new BatchOptions.Files(file, kind, file);
    long[] mean = {size, dimension};
    long[] scale = kind.isFull() ? new long[] {size, dimension, dimension} : mean;
    return new Batch(files, ScalePolicy.STRICT, Layout.of(files, mean, scale), 0, size, none, none);
  }

  @Test
  void blocksAreOfEqualWork() {
    long bytes = 1L << 26;
    Batch std = batch(ScaleKind.STD, 100_000, 128);
    Batch tril = batch(ScaleKind.SCALE_TRIL, 100_000, 128);
    assertThat(Pairwise.blockRows(std, batch(ScaleKind.STD, 1000, 128), 1, bytes)).isEqualTo(8448);
    Batch p = batch(ScaleKind.COVARIANCE, 1000, 128);
    assertThat(Pairwise.blockRows(tril, p, 1, bytes)).isEqualTo(128);
    assertThat(Pairwise.blockRows(std, p, 1, bytes)).isEqualTo(128);
    assertThat(Pairwise.blockRows(tril, p, 8, bytes)).isEqualTo(1024); // two tiles for a thread
    assertThat(Pairwise.blockRows(tril, tril, 8, bytes)).isEqualTo(64);
    assertThat(Pairwise.blockRows(p, p, 1, bytes)).isEqualTo(1000); // factored once
    assertThat(Pairwise.blockRows(p, p, 1, 4000)).isEqualTo(1);
  }

  /** A reduction's blocks have 16 tiles a thread, whatever the number of columns, unless its result is large. */
  @Test
  void blocksKeepTheThreadsBusy() {
    Batch std = batch(ScaleKind.STD, 1_000_000, 128);
    assertThat(RowBlocks.ofReduction(std, std, 1, 10)).isEqualTo(1024);
    assertThat(RowBlocks.ofReduction(std, std, 8, 10)).isEqualTo(8192);
    assertThat(RowBlocks.ofReduction(std, batch(ScaleKind.STD, 10, 2), 8, 10))
        .isGreaterThan(100_000);
    assertThat(RowBlocks.ofReduction(batch(ScaleKind.STD, 50, 128), std, 8, 10)).isEqualTo(50);
    long quarter = Runtime.getRuntime().maxMemory() / 4;
    long rows = RowBlocks.ofReduction(std, std, 1024, 1_000_000);
    assertThat(rows * 12_000_000).isBetween(quarter / 2, quarter);
    assertThat(RowBlocks.ofReduction(std, std, 8, Integer.MAX_VALUE)).isEqualTo(1);
    Batch p = batch(ScaleKind.COVARIANCE, 5000, 128);
    assertThat(RowBlocks.ofReduction(p, p, 1, 10)).isEqualTo(5000); // factored once
  }

  @Test
  void blocksFitTheLibrary() {
    long bytes = 1L << 26;
    for (int d : new int[] {1, 8, 100, 1000, 5000}) {
      long length = d * (d + 3L) / 2;
      Batch p = batch(ScaleKind.STD, 1, d);
      Batch full = batch(ScaleKind.COVARIANCE, Integer.MAX_VALUE, d);
      assertThat(Pairwise.blockRows(full, p, 1, bytes)).isBetween(1, (int) ((1L << 28) / length));
      Batch diagonal = batch(ScaleKind.STD, Integer.MAX_VALUE, d);
      assertThat(Pairwise.blockRows(diagonal, p, 64, bytes)).isBetween(1, (1 << 28) / d);
      assertThat(RowBlocks.ofReduction(diagonal, diagonal, 1024, 1)).isBetween(1, (1 << 28) / d);
      Batch one = batch(ScaleKind.COVARIANCE, 1, d);
      assertThat(Pairwise.blockRows(diagonal, one, 64, bytes))
          .isBetween(1, (int) ((1L << 24) / length));
    }
  }

  @Test
  void sizesThatOverflow() {
    assertThat(Npy.bytes(60_000, 60_000, ValueLayout.JAVA_FLOAT)).isEqualTo(14_400_000_000L);
    long max = Integer.MAX_VALUE;
    assertThatThrownBy(() -> Npy.bytes(max, max, ValueLayout.JAVA_DOUBLE))
        .isInstanceOf(UserError.class)
        .hasMessageContaining("2147483647 x 2147483647");
  }
}
