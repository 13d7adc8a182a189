package dev.kullback.internal.index.store;

import static org.assertj.core.api.Assertions.assertThat;

import dev.kullback.ScalePolicy;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.numerics.RangeCheck;
import dev.kullback.internal.numerics.Scale;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;

/** Contents of an index that tests can compare: a version under each id, which is the log-variance of its first dimension. */
public final class Content {
  /** Memory of segments that are of no index, and stay. */
  static final Memory MEMORY = new Memory();

  private Content() {}

  /** Gaussians of these versions, of one dimension or of more. */
  public static DiagonalBatch batch(int dimension, boolean isDouble, long... versions) {
    float[] mean = new float[versions.length * dimension];
    float[] logVariance = new float[mean.length];
    for (int s = 0; s < versions.length; s++) {
      logVariance[s * dimension] = versions[s];
      mean[s * dimension] = versions[s] % 7;
    }
    Elements scales = Elements.of(logVariance, "logVariance");
    Elements means = Elements.of(mean, "mean");
    if (isDouble) {
      double[] wide = new double[mean.length];
      for (int k = 0; k < wide.length; k++) {
        wide[k] = mean[k];
      }
      means = Elements.of(wide, "mean");
    }
    return DiagonalBatch.of(
        means, scales, dimension, Scale.LOG_VARIANCE, ScalePolicy.STRICT, RangeCheck.PLAIN);
  }

  public static DiagonalBatch batch(long... versions) {
    return batch(1, false, versions);
  }

  /** A segment in memory that stays. */
  public static Segment segment(
      Coordinates coordinates, long[] ids, DiagonalBatch batch, int[] rows) {
    return Segment.of(MEMORY::allocate, coordinates, ids, batch, rows);
  }

  /** The same as an open one, which has room for more, and got its rows one by one, the last first. */
  public static Segment openSegment(long[] ids, DiagonalBatch batch, int[] rows) {
    int[] order = IntStream.range(0, batch.dimension()).toArray();
    Segment made = Segment.open(MEMORY::allocate, Coordinates.KL, batch, ids.length + 5, order);
    for (int s = ids.length - 1; s >= 0; s--) {
      DiagonalBatch row = batch.select(new int[] {rows[s]}, RangeCheck.PLAIN);
      made = made.with(new long[] {ids[s]}, row);
    }
    return made;
  }

  /** A segment without some ids. */
  public static LiveSegment without(Segment segment, long... ids) {
    return Deletions.without(new LiveSegment(segment), ids);
  }

  /** A state of no index. */
  public static Snapshot snapshot(long size, LiveSegment... segments) {
    return new Snapshot(segments, size, null);
  }

  static Map<Long, Long> of(Index index) {
    try (Snapshot state = index.acquire()) {
      return of(state);
    }
  }

  static int segments(Index index) {
    try (Snapshot state = index.acquire()) {
      return state.segments().length;
    }
  }

  /** A copy of an image, in memory that stays. */
  static Memory.Block block(MemorySegment image) {
    Memory.Block block = MEMORY.allocate(image.byteSize());
    block.segment().copyFrom(image);
    return block;
  }

  /** The version under each id; fails where one id is live twice, or a count is wrong. */
  static Map<Long, Long> of(Snapshot state) {
    Map<Long, Long> content = new TreeMap<>();
    long size = 0;
    for (LiveSegment part : state.segments()) {
      int live = 0;
      for (int row = 0; row < part.segment().size(); row++) {
        if (part.isLive(row)) {
          live++;
          long version = Math.round(2 * part.segment().logDet(row));
          assertThat(content.put(part.segment().id(row), version)).as("live twice").isNull();
        }
      }
      assertThat(part.live()).isEqualTo(live).isPositive();
      size += live;
    }
    assertThat(state.size()).isEqualTo(size);
    return content;
  }
}
