package dev.kullback.internal.index.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.ScalePolicy;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.kernel.PanelScan;
import dev.kullback.internal.numerics.RangeCheck;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.testing.Batch;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SegmentTest {
  private static final int D = 5;

  @Test
  void idsAreFound() {
    Segment segment = segment(new long[] {-7, 3, Long.MAX_VALUE}, batch(false), rows(2, 0, 1));
    assertThat(segment.size()).isEqualTo(3);
    assertThat(segment.find(-7)).isEqualTo(0);
    assertThat(segment.find(Long.MAX_VALUE)).isEqualTo(2);
    assertThat(segment.find(4)).isEqualTo(-1);
    assertThat(segment.find(Long.MIN_VALUE)).isEqualTo(-1);
  }

  /** An open segment, whose rows came in another order and one of them twice, is merged to the image that a segment of them has. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void openRowsAreSorted(boolean isDouble) {
    DiagonalBatch batch = batch(isDouble);
    Segment open = Content.openSegment(new long[] {5, 3, 9}, batch, rows(2, 1, 3));
    assertThat(open.find(3)).isEqualTo(1);
    LiveSegment less = Content.without(open, 3);
    DiagonalBatch again = batch.select(rows(4), RangeCheck.PLAIN);
    assertThat(open.takes(again)).isTrue();
    assertThat(open.takes(batch(!isDouble).select(rows(4), RangeCheck.PLAIN))).isFalse();
    Segment more = open.with(new long[] {3}, again);
    LiveSegment live = new LiveSegment(more, less.deleted(), 3);
    assertThat(open.size()).isEqualTo(3);
    assertThat(more.find(3)).isEqualTo(3);
    assertThat(more.find(4)).isEqualTo(-1);
    Segment merged = Segment.merge(List.of(live), Content.MEMORY::allocate);
    Segment direct = segment(new long[] {3, 5, 9}, batch, rows(4, 2, 3));
    assertThat(merged.image().mismatch(direct.image())).isEqualTo(-1);
  }

  /** Two segments of parts, some of them removed, are merged to the image that a segment of the rest has. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void mergedRowsAreTheSame(boolean isDouble) {
    DiagonalBatch batch = batch(isDouble);
    Segment even = segment(new long[] {0, 2, 4, 6}, batch, rows(0, 2, 4, 6));
    Segment odd = segment(new long[] {1, 3, 5, 7}, batch, rows(1, 3, 5, 7));
    LiveSegment less = Content.without(even, 0, 6);
    Segment merged = Segment.merge(List.of(less, new LiveSegment(odd)), Content.MEMORY::allocate);
    Segment direct = segment(new long[] {1, 2, 3, 4, 5, 7}, batch, rows(1, 2, 3, 4, 5, 7));
    assertThat(merged.image().mismatch(direct.image())).isEqualTo(-1);
    Segment read = Segment.read(Content.block(direct.image()));
    assertThat(read.isDouble()).isEqualTo(isDouble);
    assertThat(read.kind()).isEqualTo(Scale.STD);
    assertThat(read.dimension()).isEqualTo(D);
    assertThat(read.id(5)).isEqualTo(7);
    assertThat(read.logDet(5)).isEqualTo(batch.logDet(7));
  }

  /** A mean and a precision in a panel are those of the row, the precision at most. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void panelsHoldMeansAndPrecisions(boolean isDouble) {
    DiagonalBatch batch = batch(isDouble);
    int n = batch.size();
    long[] ids = new Random(1).longs(n).sorted().toArray();
    Segment segment = segment(ids, batch, new Random(2).ints(n, 0, n).toArray());
    int[] rows = new Random(2).ints(n, 0, n).toArray();
    int[] order = order(segment);
    for (int s = 0; s < n; s++) {
      long panel = segment.panelAt(s / PanelScan.LANES);
      for (int k = 0; k < D; k++) {
        int h = order[k];
        long at = panel + 4L * (2 * PanelScan.LANES * k + s % PanelScan.LANES);
        double precision = batch.precision(rows[s] * D + h);
        assertThat(segment.image().get(Segment.FLOAT, at))
            .isEqualTo((float) batch.mean(rows[s] * D + h));
        assertThat((double) segment.image().get(Segment.FLOAT, at + 4L * PanelScan.LANES))
            .isBetween(precision * (1 - 0x1p-22), precision);
      }
    }
  }

  /** Panels begin with the dimensions whose terms are the greatest. */
  @Test
  void dimensionsAreOrderedByTheirTerms() {
    double[] mean = new double[30 * D];
    double[] std = new double[30 * D];
    double[] spread = {0, 3, 1, 100, 10};
    Random random = new Random(5);
    for (int k = 0; k < mean.length; k++) {
      mean[k] = 1000 + spread[k % D] * random.nextGaussian();
      std[k] = k % D == 4 ? 1000 : 1;
    }
    DiagonalBatch batch = of(mean, std, D);
    long[] ids = new Random(1).longs(30).sorted().toArray();
    Segment segment = segment(ids, batch, new Random(2).ints(30, 0, 30).toArray());
    assertThat(order(segment)).startsWith(3, 1, 2).endsWith(4, 0);
    assertThat(order(Segment.read(Content.block(segment.image())))).isEqualTo(order(segment));
  }

  /** Large segments have codes; an image without them, as a smaller segment has, is read as one. */
  @Test
  void largeSegmentsHaveCodes() {
    int n = 1100;
    int d = 9;
    DiagonalBatch batch =
        of(
            new Random(3).doubles(n * d, -2, 2).toArray(),
            new Random(4).doubles(n * d, 0.5, 2).toArray(),
            d);
    int[] all = IntStream.range(0, n).toArray();
    Segment segment = segment(IntStream.range(0, n).asLongStream().toArray(), batch, all);
    Segment read = Segment.read(Content.block(segment.image()));
    Codes codes = Objects.requireNonNull(read.codes());
    for (int row = 0; row < n; row++) {
      assertThat((double) codes.logs(row))
          .isBetween(-2 * batch.logDet(row), -2 * batch.logDet(row) + 1e-4);
      assertThat(codes.slack(row)).isBetween(1e-4f, 0.2f);
    }
    long panelsEnd = segment.panelAt(segment.panels());
    byte[] bytes = segment.image().asSlice(0, panelsEnd).toArray(ValueLayout.JAVA_BYTE);
    refused(bytes, "cut off");
    Segment plain = Segment.read(Content.block(MemorySegment.ofArray(changed(bytes, 32, 0))));
    assertThat(plain.codes()).isNull();
    assertThat(plain.id(n - 1)).isEqualTo(n - 1);
    assertThat(segment(new long[] {1, 2}, batch, rows(0, 1)).codes()).isNull();
  }

  private static int[] order(Segment segment) {
    float[] given = new float[2 * D];
    for (int h = 0; h < D; h++) {
      given[2 * h] = h;
      given[2 * h + 1] = -h;
    }
    float[] ordered = new float[2 * D];
    segment.order(given, ordered);
    int[] order = new int[D];
    for (int k = 0; k < D; k++) {
      order[k] = (int) ordered[2 * k];
      assertThat(ordered[2 * k + 1]).isEqualTo(-ordered[2 * k]);
    }
    return order;
  }

  /** A file that is cut off, longer, of another version or damaged is refused with a reason. */
  @Test
  void foreignImagesAreRefused() {
    MemorySegment image = segment(new long[] {1, 2}, batch(false), rows(0, 1)).image();
    byte[] bytes = image.toArray(ValueLayout.JAVA_BYTE);
    assertThat(Segment.read(Content.block(MemorySegment.ofArray(bytes))).id(1)).isEqualTo(2);
    refused(new byte[0], "is no segment");
    refused(new byte[100], "is no segment");
    refused(Arrays.copyOf(bytes, bytes.length - 1), "cut off");
    refused(Arrays.copyOf(bytes, bytes.length + 64), "cut off or damaged");
    refused(changed(bytes, 8, 3), "has version 3 of the format");
    byte[] other = changed(bytes, 8, 2); // has coordinates of its own
    refused(other, "damaged header");
    refused(changed(other, 36, 4), "damaged header");
    refused(changed(other, 36, 1), "cut off or damaged");
    int[][] headers = {{36, 1}, {12, 0}, {15, 0x7F}, {19, 0xFF}, {20, 4}, {24, 2}, {32, 2}};
    for (int[] change : headers) {
      refused(changed(bytes, change[0], change[1]), "damaged header");
    }
    for (int[] change : new int[][] {{24, 1}, {16, 17}, {32, 1}}) {
      refused(changed(bytes, change[0], change[1]), "cut off or damaged");
    }
    refused(changed(bytes, 64, D), "damaged order");
    refused(changed(bytes, 64, bytes[68]), "damaged order");
  }

  private static byte[] changed(byte[] bytes, int at, int value) {
    byte[] other = bytes.clone();
    other[at] = (byte) value;
    return other;
  }

  private static void refused(byte[] bytes, String reason) {
    assertThatThrownBy(() -> Segment.read(Content.block(MemorySegment.ofArray(bytes))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(reason);
  }

  private static Segment segment(long[] ids, DiagonalBatch batch, int[] rows) {
    return Content.segment(Coordinates.KL, ids, batch, rows);
  }

  private static DiagonalBatch of(double[] mean, double[] std, int d) {
    return DiagonalBatch.of(
        Elements.of(mean, "mean"),
        Elements.of(std, "std"),
        d,
        Scale.STD,
        ScalePolicy.STRICT,
        RangeCheck.PLAIN);
  }

  private static int[] rows(int... rows) {
    return rows;
  }

  private static DiagonalBatch batch(boolean isDouble) {
    double[] mean = new Random(3).doubles(40 * D, -2, 2).toArray();
    double[] std = new Random(4).doubles(40 * D, 0.5, 2).toArray();
    if (isDouble) {
      return of(mean, std, D);
    }
    Elements means = Elements.of(Batch.narrowed(mean), "mean");
    Elements scales = Elements.of(Batch.narrowed(std), "std");
    return DiagonalBatch.of(means, scales, D, Scale.STD, ScalePolicy.STRICT, RangeCheck.PLAIN);
  }
}
