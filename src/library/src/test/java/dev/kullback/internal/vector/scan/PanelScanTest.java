package dev.kullback.internal.vector.scan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.kernel.PanelScan;
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
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Sums of panels against double, with vectors and without, before and after C2 has compiled them. */
class PanelScanTest {
  private static final int LANES = PanelScan.LANES;
  private static final ValueLayout.OfFloat FLOAT =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final Random random = new Random(1);

  @Test
  void plainSums() {
    checkSums(new ScalarPanelScan());
  }

  @Test
  @Tag("vector")
  void vectorSums() {
    Assumptions.assumeTrue(Platform.mayHaveVectors(), "no vectors");
    checkSums(new PanelScanKernel());
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
      PanelScan scan = new PanelScanKernel();
      float[] expected = panels.scan(scan, panels.segment, false);
      assertThat(panels.scan(scan, mapped, false)).isEqualTo(expected);
      float[] all = panels.scanAll(scan, panels.segment, false).clone();
      assertThat(panels.scanAll(scan, mapped, false)).isEqualTo(all);
    }
  }

  @Test
  @Tag("vector")
  void warmVectorsAllocateNothing() {
    Assumptions.assumeTrue(Platform.mayHaveVectors(), "no vectors");
    PanelScan scan = new PanelScanKernel();
    Panels panels = new Panels(37, 4, 0, random);
    Arrays.fill(panels.most, LANES, 2 * LANES, 3);
    Runnable both =
        () -> {
          for (int i = 0; i < 200; i++) {
            panels.scan(scan, panels.segment, i % 2 == 0);
            panels.scanAll(scan, panels.segment, i % 2 == 0);
            scan.keep(panels.sums, 0, panels.most, 0, panels.count, i, panels.kept);
          }
        };
    WarmCalls.allocateNothing("scans", 1, both);
  }

  private void checkSums(PanelScan scan) {
    for (int repetition = 0; repetition < 20; repetition++) {
      for (int d = 1; d <= 70; d++) {
        check(scan, new Panels(d, 1 + d % 4, d % 7, random));
      }
      check(scan, new Panels(1000, 2, 64, random));
    }
  }

  private static void check(PanelScan scan, Panels panels) {
    for (boolean reverse : new boolean[] {false, true}) {
      double[] exact = panels.exact(reverse);
      Arrays.fill(panels.most, Float.POSITIVE_INFINITY);
      float[] sum = panels.scan(scan, panels.segment, reverse);
      assertThat(panels.keeps).isEqualTo(panels.count);
      double error = (panels.d + 8) * 0x1p-24;
      for (int j = 0; j < exact.length; j++) {
        checkClose(panels, j, sum[j], exact[j], error * exact[j]);
      }
      checkAll(scan, panels, reverse);
      checkLeaving(scan, panels, reverse, exact);
    }
  }

  /** Queries together have the bits of each alone; the panels that are kept are those with a difference that does not exceed the limit. */
  private static void checkAll(PanelScan scan, Panels panels, boolean reverse) {
    float[] own = panels.query.clone();
    float[] all = panels.scanAll(scan, panels.segment, reverse);
    int stride = panels.sum.length;
    for (int i = 0; i < Panels.GROUPS * PanelScan.GROUP; i += 5) {
      panels.take(i);
      float[] sum = panels.scan(scan, panels.segment, reverse);
      assertThat(Arrays.mismatch(all, i * stride, (i + 1) * stride, sum, 0, stride)).isEqualTo(-1);
      float limit = sum[stride / 2] - panels.rest[stride / 2];
      int keeps = scan.keep(all, i * stride, panels.rest, 0, panels.count, limit, panels.kept);
      int next = 0;
      for (int c = 0; c < panels.count; c++) {
        boolean isKept = false;
        for (int j = c * LANES; j < (c + 1) * LANES; j++) {
          isKept |= !(sum[j] - panels.rest[j] > limit);
        }
        if (isKept) {
          assertThat(panels.kept[next++]).isEqualTo(c);
        }
      }
      assertThat(keeps).isEqualTo(next);
    }
    System.arraycopy(own, 0, panels.query, 0, own.length);
  }

  /** The same as AssertJ's, which takes more time than the sums. */
  private static void checkClose(
      Panels panels, int j, double actual, double expected, double error) {
    if (!(Math.abs(actual - expected) <= error)) {
      fail("D = %d, reference %d: %s instead of %s", panels.d, j, actual, expected);
    }
  }

  /** The panels have limits below all, some and none of their sums, in turn; one lane's NaN keeps a panel. */
  private static void checkLeaving(PanelScan scan, Panels panels, boolean reverse, double[] exact) {
    double error = (panels.d + 8) * 0x1p-24;
    for (int j = 0; j < exact.length; j++) {
      double factor = j / LANES % 2 == 0 ? 0.3 : 0.6 + 0.8 * (j % LANES) / LANES;
      panels.most[j] = (float) (factor * exact[j]);
    }
    if (panels.count > 2) {
      panels.most[2 * LANES + 5] = Float.NaN;
    }
    float[] sum = panels.scan(scan, panels.segment, reverse);
    int next = 0;
    for (int c = 0; c < panels.count; c++) {
      boolean isKept = c % 2 == 1 || c == 2;
      if (isKept) {
        assertThat(panels.kept[next++]).isEqualTo(c);
      }
      for (int j = c * LANES; j < (c + 1) * LANES; j++) {
        if (isKept) {
          checkClose(panels, j, sum[j], exact[j], error * exact[j]);
        } else if (!(sum[j] > panels.most[j] && sum[j] <= exact[j] * (1 + error))) {
          fail("D = %d, reference %d: %s, exact %s", panels.d, j, sum[j], exact[j]);
        }
      }
    }
    assertThat(panels.keeps).isEqualTo(next);
  }

  /** Some panels behind so many bytes, and a query. */
  private static final class Panels {
    final int d;
    final int count;
    final int offset;
    final MemorySegment segment;
    final float[] query;
    static final int GROUPS = 2;

    /** A group that is not to be read, and the others. */
    final float[] queries;

    final float[] rest;
    final float[] sums;
    final float[] most;
    final float[] sum;
    final int[] kept;
    int keeps;

    Panels(int d, int count, int offset, Random random) {
      this.d = d;
      this.count = count;
      this.offset = offset;
      int floats = 2 * LANES * d * count;
      segment = Arena.ofAuto().allocate(offset + (long) Float.BYTES * floats);
      query = new float[2 * d];
      for (int k = 0; k < query.length; k++) {
        query[k] = k % 2 == 0 ? (float) random.nextGaussian() : random.nextFloat(0.1f, 3);
      }
      for (int k = 0; k < floats; k++) {
        boolean mean = k / LANES % 2 == 0;
        float value = mean ? (float) random.nextGaussian() : random.nextFloat(0.1f, 3);
        segment.set(FLOAT, offset + (long) Float.BYTES * k, value);
      }
      int group = 2 * PanelScan.GROUP * d;
      queries = new float[(1 + GROUPS) * group];
      for (int k = 0; k < queries.length; k++) {
        boolean mean = k / PanelScan.GROUP % 2 == 0;
        queries[k] = mean ? (float) random.nextGaussian() : random.nextFloat(0.1f, 3);
      }
      rest = new float[LANES * count];
      for (int j = 0; j < rest.length; j++) {
        rest[j] = random.nextFloat(-1, 1);
      }
      rest[rest.length - 1] = Float.POSITIVE_INFINITY;
      sums = new float[GROUPS * PanelScan.GROUP * LANES * count];
      most = new float[LANES * count];
      sum = new float[LANES * count];
      kept = new int[count];
      Arrays.fill(most, Float.POSITIVE_INFINITY);
    }

    float[] scan(PanelScan scan, MemorySegment panels, boolean reverse) {
      keeps = scan.sums(query, reverse, d, panels, offset, count, most, sum, kept);
      return sum;
    }

    float[] scanAll(PanelScan scan, MemorySegment panels, boolean reverse) {
      int first = 2 * PanelScan.GROUP * d;
      scan.sumsOfAll(
          queries, first, GROUPS, reverse, d, panels, offset, count, sums, LANES * count);
      return sums;
    }

    /** Takes query i of those of {@link #scanAll} for that of {@link #scan}. */
    void take(int i) {
      int at = 2 * PanelScan.GROUP * d * (1 + i / PanelScan.GROUP) + i % PanelScan.GROUP;
      for (int k = 0; k < 2 * d; k++) {
        query[k] = queries[at + k * PanelScan.GROUP];
      }
    }

    /** Sums in double, whose rounding is nothing beside that of float. */
    double[] exact(boolean reverse) {
      double[] exact = new double[LANES * count];
      for (int j = 0; j < exact.length; j++) {
        for (int h = 0; h < d; h++) {
          int at = 2 * LANES * (j / LANES * d + h) + j % LANES;
          double y = query[2 * h] - (double) value(at);
          double p = value(at + LANES);
          double s = query[2 * h + 1];
          exact[j] += reverse ? (y * y + 1 / p) * s : (y * y + s) * p;
        }
      }
      return exact;
    }

    private float value(int k) {
      return segment.get(FLOAT, offset + (long) Float.BYTES * k);
    }
  }
}
