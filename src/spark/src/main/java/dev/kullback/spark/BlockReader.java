package dev.kullback.spark;

import java.util.Arrays;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;

/** A partition that is a block, unread: rows of {@link Columns.Found#select}, by ascending id. For one task. */
final class BlockReader {
  private final Input input;
  private final int index;
  private final Iterator<InternalRow> rows;
  private final int expectedRows;
  private long[] ids = new long[0];
  private Object mean;
  private Object scale;

  /** Texts of ids that {@link Identified} numbered; none otherwise. */
  private String[] labels = {};

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
        throw input.nullId();
      }
      if (size == ids.length) {
        reserve((int) Math.min(most(), size + (size >> 1) + 1L));
      }
      add(row, row.getLong(Columns.ID));
    }
    reserve(size);
    return new Block(input, index, ids, mean, scale, labels);
  }

  private void add(InternalRow row, long id) {
    if (size > 0 && ids[size - 1] == id) {
      throw input.twice(id);
    }
    ids[size] = id;
    if (row.numFields() > Columns.LABEL) {
      if (labels.length < ids.length) {
        labels = Arrays.copyOf(labels, ids.length);
      }
      labels[size] = row.isNullAt(Columns.LABEL) ? Long.toString(id) : row.getString(Columns.LABEL);
    }
    copy(row, Columns.MEAN, true, mean);
    copy(row, Columns.SCALE, false, scale);
    size++;
  }

  private void copy(InternalRow row, int column, boolean isMean, Object to) {
    Object id = labels.length == 0 ? (Object) ids[size] : labels[size];
    if (row.isNullAt(column)) {
      String name = isMean ? input.columns().mean() : input.columns().scale();
      throw input.error(Input.label(id), "column %s is null".formatted(name));
    }
    input.copy(row.getArray(column), !input.isDouble(), isMean, to, size, () -> Input.label(id));
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
