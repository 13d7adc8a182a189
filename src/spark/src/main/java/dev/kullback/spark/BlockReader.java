package dev.kullback.spark;

import dev.kullback.FullGaussians;
import dev.kullback.InvalidGaussianException;
import dev.kullback.ScaleKind;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;

/** A partition that is a block, unread: rows of {@link Columns#select}, by ascending id. For one task. */
final class BlockReader {
  private final Input input;
  private final int index;
  private final Iterator<InternalRow> rows;
  private final int expectedRows;
  private long[] ids = new long[0];
  private Object mean;
  private Object scale;
  private int size;

  BlockReader(Input input, int index, Iterator<InternalRow> rows, int expectedRows) {
    this.input = input;
    this.index = index;
    this.rows = rows;
    this.expectedRows = expectedRows;
    mean = input.array(0);
    scale = input.array(0);
  }

  int index() {
    return index;
  }

  /**
   * Reads the block.
   *
   * @throws IllegalArgumentException naming the id and the column of a row that is null, too short or long, or there twice
   */
  Block read() {
    reserve(Math.min(expectedRows, most()));
    while (rows.hasNext()) {
      InternalRow row = rows.next();
      if (row.isNullAt(Columns.ID)) {
        throw new IllegalArgumentException(
            "%s: an id is null, in column %s".formatted(input.side(), input.columns().id()));
      }
      if (size == ids.length) {
        reserve((int) Math.min(most(), size + (size >> 1) + 1L));
      }
      add(row, row.getLong(Columns.ID));
    }
    reserve(size);
    if (input.columns().kind() == ScaleKind.SCALE_TRIL) {
      checkTriangular();
    }
    return new Block(input, index, ids, mean, scale);
  }

  private void add(InternalRow row, long id) {
    if (size > 0 && ids[size - 1] == id) {
      throw input.error(
          id, "is there more than once, in column %s".formatted(input.columns().id()));
    }
    ids[size] = id;
    String meanName = input.columns().mean();
    String scaleName = input.columns().scale();
    copy(row, Columns.MEAN, meanName, input.dimension(), mean);
    copy(row, Columns.SCALE, scaleName, input.scaleLength(), scale);
    size++;
  }

  private void copy(InternalRow row, int column, String name, int length, Object to) {
    if (row.isNullAt(column)) {
      throw input.error(ids[size], "column %s is null".formatted(name));
    }
    ArrayData values = row.getArray(column);
    if (values.numElements() != length) {
      throw input.error(
          ids[size],
          "column %s has %d elements; it must have %d, as dimension %d needs, that of id %d of the references"
              .formatted(name, values.numElements(), length, input.dimension(), input.measured()));
    }
    for (int h = 0; h < length; h++) {
      if (values.isNullAt(h)) {
        throw input.error(ids[size], "column %s: element %d is null".formatted(name, h));
      }
    }
    Object from = input.isDouble() ? values.toDoubleArray() : values.toFloatArray();
    System.arraycopy(from, 0, to, size * length, length);
  }

  /**
   * Rejects a matrix that is not lower triangular. The library would not read what is above the diagonal, and so take a covariance for a
   * factor.
   */
  private void checkTriangular() {
    int d = input.dimension();
    try {
      if (input.isDouble()) {
        MemorySegment factors = MemorySegment.ofArray((double[]) scale);
        FullGaussians.checkLowerTriangular(factors, d, ValueLayout.JAVA_DOUBLE);
      } else {
        MemorySegment factors = MemorySegment.ofArray((float[]) scale);
        FullGaussians.checkLowerTriangular(factors, d, ValueLayout.JAVA_FLOAT);
      }
    } catch (InvalidGaussianException e) {
      throw input.error(
          ids[e.gaussian()],
          "column %s: row %d, column %d %s; is it a covariance?"
              .formatted(input.columns().scale(), e.element() / d, e.element() % d, e.reason()));
    }
  }

  private void reserve(int capacity) {
    ids = Arrays.copyOf(ids, capacity);
    mean = input.resized(mean, capacity * input.dimension());
    scale = input.resized(scale, capacity * input.scaleLength());
  }

  /** Returns how many rows arrays can hold. */
  private int most() {
    int most = (Integer.MAX_VALUE - 8) / input.scaleLength();
    if (size >= most) {
      throw new IllegalArgumentException(
          "%s: a block has more than %d rows, which no array holds; give a smaller blockRows"
              .formatted(input.side(), most));
    }
    return most;
  }
}
