package dev.kullback.spark;

import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/** Rows of numbers, each in the memory of the one before, as Spark's own operators give them. */
final class Rows implements Iterator<InternalRow> {
  /** Writes the columns of row {@code at}; rows come in order. */
  interface Writer {
    void write(UnsafeRow row, int at);
  }

  private final UnsafeRow row;
  private final int count;
  private final Writer writer;
  private int at;

  Rows(int columns, int count, Writer writer) {
    int bytes = UnsafeRow.calculateBitSetWidthInBytes(columns) + columns * Long.BYTES;
    row = UnsafeRow.createFromByteArray(bytes, columns);
    this.count = count;
    this.writer = writer;
  }

  @Override
  public boolean hasNext() {
    return at < count;
  }

  @Override
  public InternalRow next() {
    if (at == count) {
      throw new NoSuchElementException();
    }
    writer.write(row, at++);
    return row;
  }
}
