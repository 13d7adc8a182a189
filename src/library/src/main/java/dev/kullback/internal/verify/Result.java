package dev.kullback.internal.verify;

import dev.kullback.internal.engine.Engine;
import dev.kullback.internal.engine.Workspace;
import dev.kullback.internal.index.search.NeighborIds;
import dev.kullback.internal.rows.NeighborLists;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/** Result of one operation. */
final class Result {
  double[] values = {};
  float[] floats = {};
  int[] indices = {};

  /** Whether calls see its arrays as memory segments. */
  boolean isOfSegments;

  /** Begins a call that writes {@link #values}. */
  Workspace into(Engine engine) {
    return isOfSegments ? engine.into(MemorySegment.ofArray(values), true) : engine.into(values);
  }

  /** Begins a call that writes {@link #floats}. */
  Workspace floatsInto(Engine engine) {
    return isOfSegments ? engine.into(MemorySegment.ofArray(floats), false) : engine.into(floats);
  }

  /** Fills the arrays with values that show where nothing was written. */
  void clear(Expected expected) {
    if (values.length != expected.values().length) {
      values = new double[expected.values().length];
      floats = new float[values.length];
    }
    if (indices.length != expected.indices().length) {
      indices = new int[expected.indices().length];
    }
    Arrays.fill(values, Double.NaN);
    Arrays.fill(floats, Float.NaN);
    Arrays.fill(indices, -1);
  }

  void widen() {
    for (int k = 0; k < values.length; k++) {
      values[k] = floats[k];
    }
  }

  boolean isSame(Result other) {
    return Arrays.equals(values, other.values) && Arrays.equals(indices, other.indices);
  }

  void set(NeighborLists found) {
    values = found.values();
    indices =
        IntStream.concat(IntStream.of(found.start()), IntStream.of(found.indices())).toArray();
  }

  /** Takes what an index found, of searches within a radius with the starts of rows. */
  void set(NeighborIds found, boolean hasStarts) {
    values = found.values();
    IntStream ids = LongStream.of(found.ids()).mapToInt(Math::toIntExact);
    indices =
        IntStream.concat(IntStream.of(hasStarts ? found.start() : Expected.NONE), ids).toArray();
  }

  /** Takes rows of equally many entries, without their starts. */
  void setRows(NeighborLists found) {
    values = found.values();
    indices = found.indices();
  }

  /** Takes these numbers, one array behind the other. */
  void set(double[]... all) {
    values = Arrays.stream(all).flatMapToDouble(Arrays::stream).toArray();
  }

  void set(Result other) {
    values = other.values.clone();
    indices = other.indices.clone();
  }
}
