package dev.kullback.internal.index.store;

import dev.kullback.ScalePolicy;
import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.batch.Factors;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.numerics.Cholesky;
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
  /** Means, or scales or elements of factors, that are copied at once: 2 MiB of doubles. */
  private static final int BLOCK_VALUES = 1 << 18;

  private ReadBack() {}

  /** Values of rows on their way into a batch. */
  interface Rows {
    void put(int s, Segment from, int row);

    Batch batch(RangeCheck range);

    static Rows of(int n, int dimension, Form form, boolean isDouble) {
      return form.isFull()
          ? new FullRows(n, dimension, isDouble, form == Form.COMPUTED_FACTOR)
          : new DiagonalRows(n, dimension, form.scale(), isDouble);
    }
  }

  private static final class DiagonalRows implements Rows {
    private final int dimension;
    private final Scale kind;
    private final float @Nullable [] mean32;
    private final float @Nullable [] scale32;
    private final double @Nullable [] mean64;
    private final double @Nullable [] scale64;
    private final Checkpoint checkpoint = new Checkpoint();

    /** Whether a σ is 0, which an index of a Wasserstein distance takes. */
    private boolean isSingular;

    DiagonalRows(int n, int dimension, Scale kind, boolean isDouble) {
      this.dimension = dimension;
      this.kind = kind;
      mean32 = isDouble ? null : new float[n * dimension];
      scale32 = isDouble ? null : new float[n * dimension];
      mean64 = isDouble ? new double[n * dimension] : null;
      scale64 = isDouble ? new double[n * dimension] : null;
    }

    @Override
    public void put(int s, Segment from, int row) {
      if (mean64 != null && scale64 != null) {
        from.read(row, mean64, scale64, s * dimension);
      } else if (mean32 != null && scale32 != null) {
        from.read(row, mean32, scale32, s * dimension);
      }
      isSingular |= from.logDet(row) == Double.NEGATIVE_INFINITY;
      checkpoint.pass(Checkpoint.ofPlain(dimension));
    }

    @Override
    public DiagonalBatch batch(RangeCheck range) {
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

  static final class FullRows implements Rows {
    private final int dimension;
    private final boolean isDouble;
    private final double[] mean;
    private final double[] scaleTril;
    private final double @Nullable [] low;
    private final Checkpoint checkpoint = new Checkpoint();

    FullRows(int n, int dimension, boolean isDouble, boolean isComputed) {
      this.dimension = dimension;
      this.isDouble = isDouble;
      mean = new double[n * dimension];
      scaleTril = new double[n * Cholesky.packedLength(dimension)];
      low = isComputed ? new double[scaleTril.length] : null;
    }

    @Override
    public void put(int s, Segment from, int row) {
      from.read(row, mean, scaleTril, low, s);
      checkpoint.pass(Checkpoint.ofPlain(Cholesky.packedLength(dimension)));
    }

    @Override
    public FullBatch batch(RangeCheck range) {
      return new FullBatch(mean, scaleTril, low, dimension, isDouble, false);
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
   * Returns the references of ids, in the order of these, of which there may be none if they are diagonal: of one kind, and of double if one of them is.
   *
   * @throws NoSuchElementException if one is not there
   * @throws IllegalArgumentException if two are of different kinds
   */
  public static Batch batch(
      Snapshot state, int dimension, boolean isFull, long[] ids, RangeCheck range) {
    if (isFull) {
      FullBatch.checkRows(ids.length, dimension);
    } else {
      DiagonalBatch.checkRows(ids.length, dimension);
    }
    long[] places = new long[ids.length];
    boolean isDouble = false;
    Form first = Form.STD;
    Form form = first;
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
      first = s == 0 ? segment.form() : first;
      form = s == 0 || segment.form() == Form.COMPUTED_FACTOR ? segment.form() : form;
      if (!segment.form().joins(first)) {
        throw new IllegalArgumentException(
            "ids[%d] = %d has scales of kind %s, but ids[0] = %d of kind %s; a batch has one kind: get each kind by itself, as forEach gives them"
                .formatted(s, ids[s], segment.form(), ids[0], first));
      }
    }
    Rows rows = Rows.of(ids.length, dimension, form, isDouble);
    for (int s = 0; s < ids.length; s++) {
      rows.put(s, state.segment(places[s]), (int) places[s]);
    }
    return rows.batch(range);
  }

  /**
   * Gives all references in batches, each of one form and precision and by ascending id: those of float before those of double, of each
   * form after the other.
   */
  public static void forEach(
      Snapshot state, int dimension, RangeCheck range, BiConsumer<long[], Batch> action) {
    for (Form form : Form.values()) {
      for (boolean isDouble : new boolean[] {false, true}) {
        List<LiveSegment> parts =
            Stream.of(state.segments())
                .filter(part -> part.segment().form() == form)
                .filter(part -> part.segment().isDouble() == isDouble)
                .toList();
        long left = parts.stream().mapToLong(LiveSegment::live).sum();
        LiveRows live = new LiveRows(parts);
        int most = parts.isEmpty() ? 1 : blockRows(form, dimension);
        for (; left > 0; left -= Math.min(left, most)) {
          Checkpoint.checkInterrupt(Thread.currentThread());
          long[] ids = new long[(int) Math.min(left, most)];
          Rows rows = Rows.of(ids.length, dimension, form, isDouble);
          for (int s = 0; s < ids.length && live.advance(); s++) {
            ids[s] = live.id();
            rows.put(s, live.segment(), live.row());
          }
          action.accept(ids, rows.batch(range));
        }
      }
    }
  }

  private static int blockRows(Form form, int dimension) {
    int most = form.isFull() ? Factors.mostRows(dimension) : DiagonalBatch.mostRows(dimension);
    return Math.clamp(BLOCK_VALUES / form.length(dimension), 1, most);
  }
}
