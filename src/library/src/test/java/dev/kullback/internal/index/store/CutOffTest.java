package dev.kullback.internal.index.store;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.DiagonalGaussians;
import dev.kullback.KlIndex;
import dev.kullback.testing.ChildJvm;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** A segment's file that something else cuts off while it is mapped must not end the process, whose loads of vectors nothing guards. */
@DisabledOnOs(OS.WINDOWS) // which cuts off no mapped file
class CutOffTest {
  private static final int SIZE = 4000;
  private static final int DIMENSION = 32;

  /** Queries after which C2 has compiled a search. */
  private static final int QUERIES = 20_000;

  @TempDir private Path scratch;

  /** Cuts off within the values as they were given, the panels of floats, and the codes. */
  @Test
  void searchesThrow() throws Exception {
    ChildJvm jvm =
        ChildJvm.runVectors(
            scratch,
            Duration.ofMinutes(2),
            List.of(),
            Searching.class.getName(),
            scratch.toString(),
            "0.3",
            "0.75",
            "0.97");
    assertThat(jvm.out().lines())
        .as("%s", jvm)
        .containsExactly(
            "0.3: right before",
            "0.3: InternalError after",
            "0.75: right before",
            "0.75: InternalError after",
            "0.97: right before",
            "0.97: InternalError after");
  }

  /** Searches until searching is compiled, and then cuts the file of an index's segment off and searches it, for each part that is to be left. */
  static final class Searching {
    private Searching() {}

    public static void main(String[] args) throws IOException {
      Random random = new Random(1);
      float[] mean = new float[SIZE * DIMENSION];
      float[] std = new float[mean.length];
      for (int k = 0; k < mean.length; k++) {
        mean[k] = (float) random.nextGaussian();
        std[k] = 0.5f + random.nextFloat();
      }
      DiagonalGaussians gaussians = DiagonalGaussians.ofStd(mean, std, DIMENSION);
      long[] ids = new long[3];
      float[] kl = new float[3];
      for (int k = 1; k < args.length; k++) {
        Path folder = Path.of(args[0], "index" + k);
        try (KlIndex index = KlIndex.builder(DIMENSION).open(folder)) {
          index.add(LongStream.range(0, SIZE).toArray(), gaussians);
          index.commit();
          boolean right = true;
          for (int r = 0; r < (k == 1 ? QUERIES : SIZE); r++) {
            int i = r % SIZE;
            index.query(mean, i * DIMENSION, std, i * DIMENSION, 3, ids, kl);
            right &= ids[0] == i && kl[0] == 0;
          }
          System.out.println(args[k] + (right ? ": right before" : ": wrong before"));
          cut(folder, Double.parseDouble(args[k]));
          index.query(mean, 0, std, 0, 3, ids, kl);
          System.out.println(args[k] + ": an answer after");
        } catch (InternalError e) {
          System.out.println(args[k] + ": InternalError after");
        }
      }
    }

    private static void cut(Path folder, double part) throws IOException {
      try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, "segment-*")) {
        for (Path file : files) {
          try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.truncate((long) (part * channel.size()));
          }
        }
      }
    }
  }
}
