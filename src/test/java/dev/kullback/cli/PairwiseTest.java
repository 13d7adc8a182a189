package dev.kullback.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.KlEngine;
import dev.kullback.ScalePolicy;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

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
    StringWriter err = new StringWriter();
    byte[] first = {};
    byte[] firstImage = {};
    try (Arena arena = Arena.ofConfined();
        KlEngine engine = KlEngine.builder().build()) {
      Batch q = Batch.load(new BatchOptions.Files(mean, Scale.STD, std), ScalePolicy.STRICT, arena);
      for (int blockRows = n; blockRows >= 0; blockRows--) { // 0: less than a row fits
        Heatmap image = new Heatmap(n, n);
        try (OutputFile npy = new OutputFile(output);
            Progress progress = new Progress(new PrintWriter(err), n)) {
          Pairwise.compute(engine, q, q, npy, image, 4L * n * blockRows, progress);
          npy.commit();
        }
        byte[] bytes = Files.readAllBytes(output);
        byte[] png = image.png("t", "q", "p");
        first = blockRows == n ? bytes : first;
        firstImage = blockRows == n ? png : firstImage;
        assertThat(bytes).hasSize(128 + 4 * n * n).isEqualTo(first);
        assertThat(png).isEqualTo(firstImage);
      }
    }
    assertThat(err.toString()).isEmpty(); // no terminal, no bar
  }

  @Test
  void sizesThatOverflow() {
    assertThat(Pairwise.bytes(60_000, 60_000, ValueLayout.JAVA_FLOAT)).isEqualTo(14_400_000_000L);
    long max = Integer.MAX_VALUE;
    assertThatThrownBy(() -> Pairwise.bytes(max, max, ValueLayout.JAVA_DOUBLE))
        .isInstanceOf(UserError.class)
        .hasMessageContaining("2147483647 x 2147483647");
  }
}
