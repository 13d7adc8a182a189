package dev.kullback.internal.index.store;

import dev.kullback.ScalePolicy;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.numerics.RangeCheck;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.function.BiConsumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Reads what a state of an index holds, as it was given: in copies, which outlive it. */
public final class ReadBack {
  /** Means, or scales, that are copied at once: 2 MiB of doubles. */
  private static final int BLOCK_VALUES = 1 << 18;

  private ReadBack() {}

  /** Values of rows on their way into a batch. */
  private static final class Rows {
    private final int dimension;
    private final Scale kind;
    private final float @Nullable [] mean32;
    private final float @Nullable [] scale32;
    private final double @Nullable [] mean64;
    private final double @Nullable [] scale64;
    private final Checkpoint checkpoint = new Checkpoint();

    /** Whether a σ is 0, which an index of a Wasserstein distance takes. */
    private boolean isSingular;

    Rows(int n, int dimension, Scale kind, boolean isDouble) {
      this.dimension = dimension;
      this.kind = kind;
      mean32 = isDouble ? null : new float[n * dimension];
      scale32 = isDouble ? null : new float[n * dimension];
      mean64 = isDouble ? new double[n * dimension] : null;
      scale64 = isDouble ? new double[n * dimension] : null;
    }

    void put(int s, Segment from, int row) {
      if (mean64 != null && scale64 != null) {
        from.read(row, mean64, scale64, s * dimension);
      } else if (mean32 != null && scale32 != null) {
        from.read(row, mean32, scale32, s * dimension);
      }
      isSingular |= from.logDet(row) == Double.NEGATIVE_INFINITY;
      checkpoint.pass(Checkpoint.ofPlain(dimension));
    }

    DiagonalBatch batch(RangeCheck range) {
      Elements mean = elements(mean32, mean64, "mean");
      Elements scale = elements(scale32, scale64, kind.argument());
      ScalePolicy policy = isSingular ? ScalePolicy.SEMIDEFINITE : ScalePolicy.STRICT;
      return DiagonalBatch.of(mean, scale, dimension, kind, policy, range);
    }

    private static Elements elements(
        float @Nullable [] floats, double @Nullable [] doubles, String name) {
      return (doubles != null
              ? Elements.of(doubles, name)
              : Elements.of(Objects.requireNonNull(floats), name))
          .owned();
    }
  }

  /** Returns all ids, ascending. */
  public static long[] ids(Snapshot state) {
    if (state.size() > DiagonalBatch.MOST_ELEMENTS) {
      throw new IllegalStateException(
          "the index has %d ids, which do not fit an array; forEach gives them in parts"
              .formatted(state.size()));
    }
    long[] ids = new long[(int) state.size()];
    int n = 0;
    for (LiveSegment part : state.segments()) {
      for (int row = 0; row < part.segment().size(); row++) {
        if (part.isLive(row)) {
          ids[n++] = part.segment().id(row);
        }
      }
    }
    Arrays.sort(ids);
    return ids;
  }

  /**
   * Returns the references of ids, in the order of these, of which there may be none: of one kind, and of double if one of them is.
   *
   * @throws NoSuchElementException if one is not there
   * @throws IllegalArgumentException if two are of different kinds
   */
  public static DiagonalBatch batch(Snapshot state, int dimension, long[] ids, RangeCheck range) {
    DiagonalBatch.checkRows(ids.length, dimension);
    long[] places = new long[ids.length];
    boolean isDouble = false;
    Scale kind = Scale.STD;
    for (int s = 0; s < ids.length; s++) {
      places[s] = state.find(ids[s]);
      if (places[s] < 0) {
        throw new NoSuchElementException(
            (ids.length == 1 ? "id " : "ids[%d] = ".formatted(s))
                + ids[s]
                + " is not in the index");
      }
      Segment segment = state.segment(places[s]);
      isDouble |= segment.isDouble();
      kind = s == 0 ? segment.kind() : kind;
      if (segment.kind() != kind) {
        throw new IllegalArgumentException(
            "ids[%d] = %d has scales of kind %s, but ids[0] = %d of kind %s; a batch has one kind: get each kind by itself, as forEach gives them"
                .formatted(s, ids[s], segment.kind(), ids[0], kind));
      }
    }
    Rows rows = new Rows(ids.length, dimension, kind, isDouble);
    for (int s = 0; s < ids.length; s++) {
      rows.put(s, state.segment(places[s]), (int) places[s]);
    }
    return rows.batch(range);
  }

  /**
   * Gives all references in batches, each of one kind and precision and by ascending id: those of float before those of double, of each
   * kind after the other.
   */
  public static void forEach(
      Snapshot state, int dimension, RangeCheck range, BiConsumer<long[], DiagonalBatch> action) {
    int most = Math.clamp(BLOCK_VALUES / dimension, 1, DiagonalBatch.mostRows(dimension));
    for (Scale kind : Scale.values()) {
      for (boolean isDouble : new boolean[] {false, true}) {
        List<LiveSegment> parts =
            Stream.of(state.segments())
                .filter(part -> part.segment().kind() == kind)
                .filter(part -> part.segment().isDouble() == isDouble)
                .toList();
        long left = parts.stream().mapToLong(LiveSegment::live).sum();
        LiveRows live = new LiveRows(parts);
        for (; left > 0; left -= Math.min(left, most)) {
          Checkpoint.checkInterrupt(Thread.currentThread());
          long[] ids = new long[(int) Math.min(left, most)];
          Rows rows = new Rows(ids.length, dimension, kind, isDouble);
          for (int s = 0; s < ids.length && live.advance(); s++) {
            ids[s] = live.id();
            rows.put(s, live.segment(), live.row());
          }
          action.accept(ids, rows.batch(range));
        }
      }
    }
  }
}
