package dev.kullback.cli.npy;

import dev.kullback.cli.terminal.UserError;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Set;
import java.util.stream.LongStream;

/** Arrays in memory, how to read them from files, and headers of NumPy's .npy files to write. */
public final class Npy {
  private Npy() {}

  /**
   * An array in memory, in C order whatever the file's order.
   *
   * @param element float, double, int or long in any byte order
   * @param type of the file's elements
   */
  public record Array(long[] shape, ValueLayout element, Type type, MemorySegment data) {
    /** Returns an element of a float or double array, by its position in C order. */
    public double value(long index) {
      return element instanceof ValueLayout.OfFloat f
          ? data.getAtIndex(f, index)
          : data.getAtIndex((ValueLayout.OfDouble) element, index);
    }

    /** Returns the rows {@code from} to {@code to}, in the same memory. */
    public Array withRows(long from, long to) {
      long rowBytes = data.byteSize() / shape[0];
      return new Array(
          Npy.withRows(shape, to - from),
          element,
          type,
          data.asSlice(from * rowBytes, (to - from) * rowBytes));
    }

    /** Returns the same elements in another shape of as many. */
    public Array reshaped(long... other) {
      return new Array(other, element, type, data);
    }

    /** Returns an array that has the given axis behind the first, and the other axes in their order. */
    public Array withSecondAxis(int axis, Arena arena) {
      if (axis == 1) {
        return this;
      }
      long[] to = shape.clone();
      System.arraycopy(shape, 1, to, 2, axis - 1);
      to[1] = shape[axis];
      long before = LongStream.of(shape).skip(1).limit(axis - 1).reduce(1, (a, b) -> a * b);
      long block = LongStream.of(shape).skip(axis + 1).reduce(element.byteSize(), (a, b) -> a * b);
      MemorySegment moved = arena.allocate(data.byteSize(), Long.BYTES);
      long at = 0;
      for (long row = 0; row < shape[0]; row++) {
        for (long k = 0; k < shape[axis]; k++) {
          for (long i = row * before; i < (row + 1) * before; i++, at += block) {
            MemorySegment.copy(data, (i * shape[axis] + k) * block, moved, at, block);
          }
        }
      }
      return new Array(to, element, type, moved);
    }

    /** Writes an element with no more digits than its type has. */
    public String text(long index) {
      double value = value(index);
      return isDouble() ? Double.toString(value) : Float.toString((float) value);
    }

    public boolean isDouble() {
      return element instanceof ValueLayout.OfDouble;
    }
  }

  /** A way to read a file. */
  public interface Read<T> {
    T from(Path file) throws IOException;
  }

  /** Reads a file that the user has named; an {@link IOException} becomes an error that names it. */
  public static <T> T read(Path file, Read<T> read) {
    try {
      return read.from(file);
    } catch (IOException e) {
      throw new UserError(file, e);
    }
  }

  /** Opens an array as {@link #readFloats} reads it, of which blocks of rows are wanted. */
  public static ArrayReader openFloats(Path file) throws IOException {
    return new ArrayReader(file, Type.FLOATS, "float", false);
  }

  /** Reads an array of float16 or bfloat16, which become float32, of float32 or float64. */
  public static Array readFloats(Path file, Arena arena) throws IOException {
    try (ArrayReader in = openFloats(file)) {
      return in.all(arena);
    }
  }

  /** Reads the shape from a header that agrees with the file's length, as far as that is known. */
  public static long[] readShape(Path file) throws IOException {
    try (ArrayReader in = openFloats(file)) {
      return in.shape();
    }
  }

  /** Whether the array of a file has one axis, or one column; or is one row of a table, which never has one axis. */
  public static boolean isColumn(Path file, long[] shape) {
    return shape.length == 1
        || (shape.length == 2 && (shape[1] == 1 || (shape[0] == 1 && isTable(file))));
  }

  /** Whether a file is one of text, by its name. */
  public static boolean isTable(Path file) {
    return TextTable.SUFFIXES.contains(Input.suffix(Input.file(file)));
  }

  static long[] withRows(long[] shape, long rows) {
    long[] other = shape.clone();
    other[0] = rows;
    return other;
  }

  public static Array readInts(Path file, Arena arena) throws IOException {
    try (ArrayReader in = new ArrayReader(file, Set.of(Type.INT32), "int32", false)) {
      return in.all(arena);
    }
  }

  /** Reads an array of integers of any size, which become int64. */
  public static Array readIntegers(Path file, Arena arena) throws IOException {
    try (ArrayReader in = new ArrayReader(file, Type.INTEGERS, "int64", true)) {
      return in.all(arena);
    }
  }

  public static ValueLayout floats(boolean isDouble) {
    return isDouble ? ValueLayout.JAVA_DOUBLE : ValueLayout.JAVA_FLOAT;
  }

  /** Returns NumPy's name of a float or double. */
  public static String dtype(ValueLayout element) {
    return "float" + Byte.SIZE * element.byteSize();
  }

  /** Returns an element of {@link #floats}; of constant layouts, which are fast. */
  public static double value(MemorySegment data, long index, boolean isDouble) {
    return isDouble
        ? data.getAtIndex(ValueLayout.JAVA_DOUBLE, index)
        : data.getAtIndex(ValueLayout.JAVA_FLOAT, index);
  }

  /** Makes the header of an array in native byte order and C order, format version 1. */
  public static byte[] header(ValueLayout element, long... shape) {
    char order = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN ? '<' : '>';
    boolean isInteger =
        element instanceof ValueLayout.OfInt || element instanceof ValueLayout.OfLong;
    return header(order + (isInteger ? "i" : "f") + element.byteSize(), shape);
  }

  public static byte[] header(String descr, long... shape) {
    String shapeText = new NpyHeader(descr, false, shape).shapeText();
    String dict =
        "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shapeText + ", }";
    int unpadded = NpyFormat.MAGIC.length + 4 + dict.length() + 1;
    int length = (unpadded + 63) / 64 * 64; // NumPy aligns the data to 64 bytes
    String padded = dict + " ".repeat(length - unpadded) + "\n";
    return ByteBuffer.allocate(length)
        .order(ByteOrder.LITTLE_ENDIAN)
        .put(NpyFormat.MAGIC)
        .put((byte) 1)
        .put((byte) 0)
        .putShort((short) padded.length())
        .put(padded.getBytes(StandardCharsets.US_ASCII))
        .array();
  }

  /** Returns the size of a matrix, or throws where a long cannot hold it. */
  public static long bytes(long rows, long columns, ValueLayout element) {
    try {
      return Math.multiplyExact(Math.multiplyExact(rows, columns), element.byteSize());
    } catch (ArithmeticException e) {
      throw new UserError(
          "a matrix of " + rows + " x " + columns + " entries fits in no file: split q");
    }
  }
}
