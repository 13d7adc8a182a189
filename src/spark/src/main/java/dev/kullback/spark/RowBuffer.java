package dev.kullback.spark;

import dev.kullback.Gaussians;
import java.util.Arrays;
import java.util.Objects;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.jspecify.annotations.Nullable;

/**
 * Rows of one side of a join, copied, with their Gaussians as the library takes them. A row that lacks an array has no Gaussian. It grows
 * up to 2 GiB. For one thread, until it is full.
 */
final class RowBuffer {
  private final JoinSide side;
  private final boolean keepsAll;
  private @Nullable Input input;

  private byte[] bytes = new byte[1 << 12];

  /** Where each row begins, and the last ends. */
  private int[] start = new int[64];

  private long[] number = new long[64];
  private int size;

  /** Row of each Gaussian. */
  private int[] rowOf = new int[64];

  private int gaussians;
  private Object mean = new float[0];
  private Object scale = new float[0];
  private final UnsafeRow current;

  /**
   * @param input properties of the Gaussians, null to take the dimension of the first row
   * @param keepsAll whether rows without a Gaussian stay
   */
  RowBuffer(JoinSide side, @Nullable Input input, boolean keepsAll) {
    this.side = side;
    this.input = input;
    this.keepsAll = keepsAll;
    current = new UnsafeRow(side.types().length);
  }

  /**
   * Copies a row, unless it lacks a Gaussian and such rows are not kept.
   *
   * @param rowNumber its number among all
   * @throws IllegalArgumentException naming the row if its arrays are too short or long, or have nulls
   */
  void add(UnsafeRow row, long rowNumber) {
    boolean isGaussian = !row.isNullAt(side.mean()) && !row.isNullAt(side.scale());
    if (isGaussian) {
      addGaussian(row, rowNumber);
    } else if (!keepsAll) {
      return;
    }
    int length = row.getSizeInBytes();
    int from = start[size];
    if (length > bytes.length - from) {
      bytes = Arrays.copyOf(bytes, grown(bytes.length, (long) from + length));
    }
    Platform.copyMemory(
        row.getBaseObject(),
        row.getBaseOffset(),
        bytes,
        Platform.BYTE_ARRAY_OFFSET + (long) from,
        length);
    if (size + 2 > start.length) {
      start = Arrays.copyOf(start, grown(start.length, size + 2L));
      number = Arrays.copyOf(number, start.length);
    }
    number[size] = rowNumber;
    start[++size] = from + length;
  }

  private void addGaussian(UnsafeRow row, long rowNumber) {
    Input in = input;
    if (in == null) {
      int d = row.getArray(side.mean()).numElements();
      String label = side.label(row, rowNumber);
      if (d == 0) {
        throw side.input(0, "").error(label, "column mean is an empty array");
      }
      in = side.input(d, label + " of the " + side.name());
      input = in;
    }
    if (gaussians == rowOf.length) {
      rowOf = Arrays.copyOf(rowOf, grown(gaussians, gaussians + 1L));
    }
    int room = gaussians == 0 ? Math.min(rowOf.length, 64) : rowOf.length;
    mean = resized(in, mean, room * in.dimension());
    scale = resized(in, scale, Math.multiplyExact(room, in.scaleLength()));
    in.copy(
        row.getArray(side.mean()),
        side.isFloat(side.mean()),
        true,
        mean,
        gaussians,
        () -> side.label(row, rowNumber));
    in.copy(
        row.getArray(side.scale()),
        side.isFloat(side.scale()),
        false,
        scale,
        gaussians,
        () -> side.label(row, rowNumber));
    rowOf[gaussians++] = size;
  }

  private static Object resized(Input input, Object array, int length) {
    return input.holds(array, length) ? array : input.resized(array, length);
  }

  private static int grown(int length, long wanted) {
    if (wanted > Integer.MAX_VALUE - 16) {
      throw new IllegalArgumentException("rows of more than 2 GiB in one place");
    }
    return (int) Math.min(Integer.MAX_VALUE - 16, Math.max(wanted, length + (length >> 1)));
  }

  /** Forgets the rows. */
  void clear() {
    size = 0;
    gaussians = 0;
  }

  JoinSide side() {
    return side;
  }

  int size() {
    return size;
  }

  int gaussians() {
    return gaussians;
  }

  int bytes() {
    return start[size];
  }

  /** Properties of the Gaussians, of which there is one. */
  Input input() {
    return Objects.requireNonNull(input, "no Gaussian");
  }

  /** Row of a Gaussian. */
  int rowOf(int gaussian) {
    return rowOf[gaussian];
  }

  long number(int row) {
    return number[row];
  }

  /** Returns a row, which is valid until the next call. */
  UnsafeRow row(int i) {
    point(current, i);
    return current;
  }

  /** Makes the row a view of row i; for any number of threads. */
  void point(UnsafeRow view, int i) {
    view.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + (long) start[i], start[i + 1] - start[i]);
  }

  /** Makes a batch of the Gaussians, of which there is at least one. */
  Gaussians batch() {
    Input in = input();
    return in.batch(
        in.resized(mean, gaussians * in.dimension()),
        in.resized(scale, gaussians * in.scaleLength()),
        g -> side.label(row(rowOf[g]), number[rowOf[g]]));
  }
}
