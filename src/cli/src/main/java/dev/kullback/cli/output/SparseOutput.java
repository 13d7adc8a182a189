package dev.kullback.cli.output;

import dev.kullback.cli.npy.Npy;
import java.io.Closeable;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.LocalDateTime;
import java.util.stream.LongStream;
import java.util.zip.Deflater;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.jspecify.annotations.Nullable;

/**
 * Writes some entries of each row: their values to one file, [P], and their rows and columns to another, [P,2]; or all to an archive, as
 * a CSR matrix of SciPy's.
 */
public final class SparseOutput implements Closeable {
  private final OutputFile output;
  private final @Nullable OutputFile pairs;
  private final ValueLayout element;
  private final boolean isDouble;
  private final ValueLayout column;
  private final Stats stats = new Stats();

  /** Where rows begin, and the last one ends. */
  private final long[] start;

  private int row;

  /** Takes values; of an archive, which holds one array after the other, they and columns wait in files that are never committed. */
  private final OutputFile values;

  private final OutputFile columns;

  /**
   * Begins the files.
   *
   * @param pairs null to write an archive to {@code output}
   * @param element of values, float or double
   * @param column of columns, int or long
   */
  public SparseOutput(
      OutputFile output,
      @Nullable OutputFile pairs,
      int rows,
      ValueLayout element,
      ValueLayout column) {
    this.output = output;
    this.pairs = pairs;
    this.element = element;
    this.column = column;
    isDouble = element.byteSize() == Double.BYTES;
    start = new long[rows + 1];
    values = pairs == null ? new OutputFile(output.name()) : output;
    columns = pairs == null ? new OutputFile(output.name()) : pairs;
    if (pairs != null) { // headers of the length that those with any number have
      output.write(Npy.header(element, 0));
      pairs.write(Npy.header(column, 0, 2));
    }
  }

  /** Appends an entry to the row. */
  public void add(long index, double value) {
    if (pairs != null) {
      putColumn(row);
    }
    putColumn(index);
    stats.add(values.put(value, isDouble));
  }

  private void putColumn(long index) {
    if (column instanceof ValueLayout.OfInt) {
      columns.putInt((int) index);
    } else {
      columns.putLong(index);
    }
  }

  /** Begins the next row. */
  public void endRow() {
    row++;
    start[row] = stats.count();
  }

  /** Returns what was appended. */
  public Stats stats() {
    return stats;
  }

  /** Completes the files when all rows are ended. */
  public void finish(long matrixColumns) {
    if (pairs != null) {
      output.replaceHeader(Npy.header(element, stats.count()));
      pairs.replaceHeader(Npy.header(column, stats.count(), 2));
      return;
    }
    try (OutputFile starts = new OutputFile(output.name());
        ZipOutputStream zip = new ZipOutputStream(output.stream())) {
      // SciPy wants indices and indptr alike
      boolean isInt = column instanceof ValueLayout.OfInt && stats.count() <= Integer.MAX_VALUE;
      LongStream.of(start).forEach(isInt ? s -> starts.putInt((int) s) : starts::putLong);
      zip.setLevel(Deflater.BEST_SPEED);
      array(zip, "indices", Npy.header(column, stats.count()));
      columns.copyTo(zip);
      ValueLayout startElement = isInt ? ValueLayout.JAVA_INT : ValueLayout.JAVA_LONG;
      array(zip, "indptr", Npy.header(startElement, start.length));
      starts.copyTo(zip);
      array(zip, "format", Npy.header("|S3"));
      zip.write("csr".getBytes(StandardCharsets.US_ASCII));
      array(zip, "shape", Npy.header(ValueLayout.JAVA_LONG, 2));
      ByteBuffer shape = ByteBuffer.allocate(2 * Long.BYTES).order(ByteOrder.nativeOrder());
      zip.write(shape.putLong(start.length - 1).putLong(matrixColumns).array());
      zip.setLevel(Deflater.NO_COMPRESSION); // divergences would shrink by 14 % at 50 MB a second
      array(zip, "data", Npy.header(element, stats.count()));
      values.copyTo(zip);
    } catch (IOException e) {
      throw new OutputFailure(output.name(), e);
    }
  }

  /** Begins an array; its time is a constant, so that the same matrix makes the same file. */
  private static void array(ZipOutputStream zip, String name, byte[] header) throws IOException {
    ZipEntry entry = new ZipEntry(name + ".npy");
    entry.setTimeLocal(LocalDateTime.of(1980, 2, 1, 0, 0));
    zip.putNextEntry(entry);
    zip.write(header);
  }

  @Override
  public void close() throws IOException {
    if (pairs == null) {
      try (values) {
        columns.close();
      }
    }
  }
}
