package dev.kullback.cli.output;

import dev.kullback.Neighbors;
import dev.kullback.cli.npy.ArrayReader;
import dev.kullback.cli.npy.Npy;
import dev.kullback.cli.npy.Type;
import dev.kullback.cli.terminal.UserError;
import java.io.Closeable;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Set;

/** Reads lists of neighbors as {@link NeighborOutput} writes them, some rows at a time, and checks them. */
public final class NeighborInput implements Closeable {
  private static final Set<Type> FLOATS = Set.of(Type.FLOAT32, Type.FLOAT64);

  public final Path valuesFile;
  public final Path indicesFile;
  private final ArrayReader values;
  private final ArrayReader indices;
  private final boolean exact;
  private long row;

  /** @param exact requires lists of exact searches: float64 values, equal ones by ascending index */
  public NeighborInput(Path valuesFile, Path indicesFile, boolean exact) throws IOException {
    this.exact = exact;
    this.valuesFile = valuesFile;
    this.indicesFile = indicesFile;
    values = Npy.read(valuesFile, f -> ArrayReader.ofMatrix(f, FLOATS, "float64"));
    try {
      indices = Npy.read(indicesFile, f -> ArrayReader.ofMatrix(f, Set.of(Type.INT32), "int32"));
    } catch (UserError e) {
      values.close();
      throw e;
    }
    try {
      checkForm();
    } catch (UserError e) {
      close();
      throw e;
    }
  }

  private void checkForm() {
    if (!Arrays.equals(values.shape(), indices.shape())) {
      throw new UserError(
          indicesFile,
          "has shape %s, but the values in %s have %s"
              .formatted(indices.shapeText(), valuesFile, values.shapeText()));
    }
    if (exact && !isDouble()) {
      throw new UserError(
          valuesFile, "is float32: only exact values can be merged: take those of topk --exact");
    }
    if (values.shape()[1] > Integer.MAX_VALUE) {
      throw new UserError(valuesFile, "has shape " + values.shapeText() + ": too many columns");
    }
  }

  public long rows() {
    return values.shape()[0];
  }

  public int columns() {
    return (int) values.shape()[1];
  }

  public boolean isDouble() {
    return values.element() instanceof ValueLayout.OfDouble;
  }

  /** Reads the next rows without the entries that stand for none, which are at the rows' ends. */
  public Neighbors read(int rows) {
    int k = columns();
    int[] start = new int[rows + 1];
    int[] index = new int[rows * k];
    double[] value = new double[rows * k];
    try (Arena arena = Arena.ofConfined()) {
      Npy.Array v = read(values, valuesFile, rows, arena);
      Npy.Array j = read(indices, indicesFile, rows, arena);
      ValueLayout.OfInt element = (ValueLayout.OfInt) j.element();
      int to = 0;
      for (int i = 0; i < rows; i++, row++) {
        for (int r = 0; r < k; r++) {
          int at = i * k + r;
          index[to] = j.data().getAtIndex(element, at);
          value[to] = v.value(at);
          if (index[to] == NeighborOutput.NONE && value[to] == Double.POSITIVE_INFINITY) {
            continue;
          }
          checkEntry(index[to], v, at, r);
          if (to - start[i] < r) {
            throw wrong(
                indicesFile, row, r, "index is " + index[to] + " after -1, which stands for none");
          }
          if (r > 0) {
            checkOrder(value[to - 1], index[to - 1], value[to], index[to], r);
          }
          to++;
        }
        start[i + 1] = to;
      }
      return Neighbors.of(start, Arrays.copyOf(index, to), Arrays.copyOf(value, to));
    }
  }

  private static Npy.Array read(ArrayReader from, Path file, int rows, Arena arena) {
    long[] shape = {rows, from.shape()[1]};
    MemorySegment data = arena.allocate(rows * shape[1] * from.element().byteSize(), 8);
    try {
      from.next(data);
    } catch (IOException e) {
      throw new UserError(file, e);
    }
    return new Npy.Array(shape, from.element(), from.type(), data);
  }

  private void checkEntry(int index, Npy.Array v, int at, int column) {
    if (index < 0) {
      throw wrong(
          indicesFile,
          row,
          column,
          "index is %d: it must be >= 0, or -1 beside the value inf, for none".formatted(index));
    }
    if (!(v.value(at) >= 0)) {
      throw wrong(valuesFile, row, column, "value is " + v.text(at) + ": a divergence is >= 0");
    }
  }

  /** Checks that values ascend, and in exact lists the indices of equal ones. Rounded, different divergences may be equal. */
  private void checkOrder(double before, int indexBefore, double value, int index, int column) {
    if (value < before) {
      throw wrong(
          valuesFile,
          row,
          column,
          "value is %s, less than %s before it: take lists of topk".formatted(value, before));
    }
    if (exact && value == before && index < indexBefore) {
      throw wrong(
          indicesFile,
          row,
          column,
          "index is %d, after %d of the same value: take lists of topk --exact"
              .formatted(index, indexBefore));
    }
  }

  /** Makes an error about an entry of a file. */
  public static UserError wrong(Path file, long row, int column, String what) {
    return new UserError(
        file, "row %d, column %d: %s (counted from 0)".formatted(row, column, what));
  }

  @Override
  public void close() throws IOException {
    try (values) {
      indices.close();
    }
  }
}
