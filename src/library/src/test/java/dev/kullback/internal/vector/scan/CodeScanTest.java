package dev.kullback.internal.vector.scan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.kernel.CodeScan;
import dev.kullback.testing.WarmCalls;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Random;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Sums of codes against double, with vectors and without, before and after C2 has compiled them. */
class CodeScanTest {
  private static final int LANES = CodeScan.LANES;
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfFloat FLOAT =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final Random random = new Random(1);

  @Test
  void plainSums() {
    checkSums(new ScalarCodeScan());
  }

  @Test
  @Tag("vector")
  void vectorSums() {
    Assumptions.assumeTrue(Platform.mayHaveVectors(), "no vectors");
    checkSums(new CodeScanKernel());
  }

  @Test
  @Tag("vector")
  void mappedPanelsHaveTheSameSums(@TempDir Path folder) throws IOException {
    Assumptions.assumeTrue(Platform.mayHaveVectors(), "no vectors");
    Panels panels = new Panels(21, 3, 5, random);
    Path file = folder.resolve("panels");
    Files.write(file, panels.segment.toArray(ValueLayout.JAVA_BYTE));
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ);
        Arena arena = Arena.ofConfined()) {
      MemorySegment mapped = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena);
      float[] expected = panels.scan(new CodeScanKernel(), panels.segment).clone();
      assertThat(panels.scan(new CodeScanKernel(), mapped)).isEqualTo(expected);
    }
  }

  @Test
  @Tag("vector")
  void warmVectorsAllocateNothing() {
    Assumptions.assumeTrue(Platform.mayHaveVectors(), "no vectors");
    CodeScan scan = new CodeScanKernel();
    Panels panels = new Panels(37, 4, 0, random);
    Runnable both =
        () -> {
          for (int i = 0; i < 200; i++) {
            panels.limit.base = i % 2 == 0 ? Float.POSITIVE_INFINITY : 1;
            panels.scan(scan, panels.segment);
          }
        };
    WarmCalls.allocateNothing("scans", 1, both);
  }

  private void checkSums(CodeScan scan) {
    for (int repetition = 0; repetition < 20; repetition++) {
      for (int words = 1; words <= 40; words++) {
        check(scan, new Panels(words, 1 + words % 4, words % 7, random));
      }
      check(scan, new Panels(500, 2, 64, random));
    }
  }

  private static void check(CodeScan scan, Panels panels) {
    double[] exact = panels.exact();
    double error = (2 * panels.words + 8) * 0x1p-24;
    panels.limit.base = Float.POSITIVE_INFINITY;
    float[] sum = panels.scan(scan, panels.segment);
    assertThat(panels.keeps).isEqualTo(panels.count);
    for (int j = 0; j < exact.length; j++) {
      checkClose(panels, j, sum[j], exact[j], error * exact[j]);
      if (panels.most[j] != Float.POSITIVE_INFINITY) {
        fail("words %d, reference %d: limit %s", panels.words, j, panels.most[j]);
      }
    }
    checkLeaving(scan, panels, exact, error);
    checkWithoutLogs(scan, panels);
  }

  /** Where l does not count, as of distances of points, only one beyond float shows. */
  private static void checkWithoutLogs(CodeScan scan, Panels panels) {
    panels.limit.logs = 0;
    panels.limit.base = 4;
    for (int j = 0; j < panels.most.length; j++) {
      panels.lead(j, 1, j == 3 ? Float.POSITIVE_INFINITY : 5 - j);
    }
    panels.scan(scan, panels.segment);
    assertThat(panels.kept[0]).isZero();
    for (int j = 0; j < panels.most.length; j++) {
      checkClose(panels, j, j == 3 && Float.isNaN(panels.most[j]) ? 9 : panels.most[j], 9, 0);
    }
  }

  /** The same as AssertJ's, which takes more time than the sums. */
  private static void checkClose(
      Panels panels, int j, double actual, double expected, double error) {
    if (!(Math.abs(actual - expected) <= error)) {
      fail("words %d, reference %d: %s instead of %s", panels.words, j, actual, expected);
    }
  }

  /** Limits leave out all, some and none of a panel's references, in turn; one lane's NaN keeps a panel. */
  private static void checkLeaving(CodeScan scan, Panels panels, double[] exact, double error) {
    panels.limit.base = 3;
    for (int j = 0; j < exact.length; j++) {
      double factor = j / LANES % 2 == 0 ? 0.3 : 0.6 + 0.8 * (j % LANES) / LANES;
      // (√(base + l) + r)² is the factor of the sum where half of the root is r
      double root = Math.sqrt(factor * exact[j]);
      panels.lead(j, (float) (root / 2), (float) (root * root / 4 - 3));
    }
    if (panels.count > 2) {
      panels.lead(2 * LANES + 5, Float.NaN, 0);
    }
    float[] sum = panels.scan(scan, panels.segment);
    int next = 0;
    for (int c = 0; c < panels.count; c++) {
      boolean isKept = c % 2 == 1 || c == 2;
      if (isKept) {
        assertThat(panels.kept[next++]).isEqualTo(c);
      }
      for (int j = c * LANES; j < (c + 1) * LANES; j++) {
        double factor = j / LANES % 2 == 0 ? 0.3 : 0.6 + 0.8 * (j % LANES) / LANES;
        if (c != 2 || j % LANES != 5) {
          checkClose(panels, j, panels.most[j], factor * exact[j], 1e-5 * (exact[j] + 3));
        }
        if (isKept) {
          checkClose(panels, j, sum[j], exact[j], error * exact[j]);
        } else if (!(sum[j] > panels.most[j] && sum[j] <= exact[j] * (1 + error))) {
          fail("words %d, reference %d: %s, exact %s", panels.words, j, sum[j], exact[j]);
        }
      }
    }
    assertThat(panels.keeps).isEqualTo(next);
  }

  /** Some panels of any words behind so many bytes, and a query. */
  private static final class Panels {
    final int words;
    final int count;
    final int offset;
    final MemorySegment segment;
    final float[] terms;
    final float[] most;
    final float[] sum;
    final int[] kept;
    final CodeScan.Limit limit = new CodeScan.Limit();
    int keeps;

    Panels(int words, int count, int offset, Random random) {
      this.words = words;
      this.count = count;
      this.offset = offset;
      segment = Arena.ofAuto().allocate(offset + count * CodeScan.panelBytes(words));
      for (long at = offset; at < segment.byteSize(); at += Integer.BYTES) {
        segment.set(INT, at, random.nextInt());
      }
      for (int j = 0; j < LANES * count; j++) {
        lead(j, 0, 0);
      }
      terms = new float[2 * words * CodeScan.TERMS];
      for (int k = 0; k < terms.length; k += CodeScan.TERMS) {
        terms[k] = (float) random.nextGaussian();
        terms[k + 1] = -random.nextFloat(0.1f, 3) * 0x1p-31f;
        terms[k + 2] = random.nextFloat(0.1f, 3);
      }
      most = new float[LANES * count];
      sum = new float[LANES * count];
      kept = new int[count];
      limit.factor = 1;
      limit.more = 0;
    }

    void lead(int j, float r, float l) {
      long at = offset + j / LANES * CodeScan.panelBytes(words) + (long) Float.BYTES * (j % LANES);
      segment.set(FLOAT, at, r);
      segment.set(FLOAT, at + (long) Float.BYTES * LANES, l);
    }

    float[] scan(CodeScan scan, MemorySegment panels) {
      keeps = scan.sums(terms, words, limit, panels, offset, count, most, sum, kept);
      return sum;
    }

    /** Sums in double, from the bytes of the words. */
    double[] exact() {
      double[] exact = new double[LANES * count];
      for (int j = 0; j < exact.length; j++) {
        for (int w = 0; w < words; w++) {
          int row = LANES * (CodeScan.LEADING + w) + j % LANES;
          long at = offset + j / LANES * CodeScan.panelBytes(words) + (long) Integer.BYTES * row;
          byte[] bytes = segment.asSlice(at, Integer.BYTES).toArray(ValueLayout.JAVA_BYTE);
          double p0 = bytes[0] & 0xFF;
          double p1 = bytes[1] & 0xFF;
          double m0 = bytes[2] + (p1 * 256 + p0) / 65536;
          double m1 = bytes[3] + ((bytes[2] & 0xFF) * 65536 + p1 * 256 + p0) / 0x1p24;
          exact[j] +=
              term(2 * w, m0 * 0x1p24, p0) + term(2 * w + 1, (float) (m1 * 0x1p24), p1 * 256);
        }
      }
      return exact;
    }

    private double term(int h, double m, double p) {
      int k = h * CodeScan.TERMS;
      double y = terms[k] + terms[k + 1] * m;
      return (y * y + terms[k + 2]) * p;
    }
  }
}
