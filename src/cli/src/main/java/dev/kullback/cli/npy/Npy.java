package dev.kullback.cli.npy;

import dev.kullback.cli.terminal.UserError;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/**
 * NumPy's .npy format, versions 1 to 3. Nothing in a header is believed before it agrees with how much
 * follows.
 */
public final class Npy {
  private static final byte[] MAGIC = {(byte) 0x93, 'N', 'U', 'M', 'P', 'Y'};
  private static final List<String> FLOATS = List.of("f2", "f4", "f8");
  private static final int MAX_HEADER = 1 << 20;
  private static final int CHUNK = 1 << 26;

  private Npy() {}

  /**
   * An array in memory, in C order whatever the file's order.
   *
   * @param element float, double or int in the file's byte order
   */
  @SuppressWarnings("ArrayRecordComponent") // never compared
  public record Array(long[] shape, ValueLayout element, MemorySegment data) {
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
          data.asSlice(from * rowBytes, (to - from) * rowBytes));
    }

    /** Writes an element with no more digits than its type has. */
    public String text(long index) {
      double value = value(index);
      return isDouble() ? Double.toString(value) : Float.toString((float) value);
    }

    public boolean isDouble() {
      return element instanceof ValueLayout.OfDouble;
    }

    /** Converts a float or double array to another width or byte order. */
    public Array to(ValueLayout other, Arena arena) {
      if (element.equals(other)) {
        return this;
      }
      long count = data.byteSize() / element.byteSize();
      MemorySegment to = arena.allocate(other, count);
      for (long i = 0; i < count; i++) {
        if (other instanceof ValueLayout.OfFloat f) {
          to.setAtIndex(f, i, (float) value(i));
        } else {
          to.setAtIndex((ValueLayout.OfDouble) other, i, value(i));
        }
      }
      return new Array(shape, other, to);
    }
  }

  /**
   * Reads an array of float16, which becomes float32, of float32 or float64, from what {@link
   * Input} makes of a name. It is copied, not mapped: touching a mapping of a file that another
   * process has shortened kills the VM or the calculation.
   */
  public static Array readFloats(Path file, Arena arena) throws IOException {
    return read(file, arena, FLOATS, "float32 or float64");
  }

  /** Reads the rows {@code from} to {@code to}, and no others if the file is in C order. */
  public static Array readFloats(Path file, long from, long to, Arena arena) throws IOException {
    try (Input in = Input.open(file)) {
      NpyHeader header = readHeader(in);
      ValueLayout element = element(header.descr(), FLOATS, "float32 or float64");
      Claim all = Claim.of(header, element);
      all.requireFit(in.remaining());
      long rows = header.shape().length == 0 ? 0 : header.shape()[0];
      if (to > rows) {
        throw new NpyException("has %d rows now, but had more".formatted(rows));
      }
      if (!in.isFile() || isTransposed(header)) {
        try (Arena temporary = Arena.ofConfined()) {
          Array part = read(in, header, element, temporary).withRows(from, to);
          MemorySegment data = arena.allocate(part.data.byteSize(), 8).copyFrom(part.data);
          return new Array(part.shape, part.element, data);
        }
      }
      in.skip(from * (all.bytes / rows));
      NpyHeader part = new NpyHeader(header.descr(), false, withRows(header.shape(), to - from));
      Claim claim = Claim.of(part, element);
      return inMemory(
          part, element, a -> readUpTo(claim.bytes, in, MemorySegment.NULL, claim, a), arena);
    }
  }

  /** Reads the shape from a header that agrees with the file's length, as far as that is known. */
  public static long[] readShape(Path file) throws IOException {
    try (Input in = Input.open(file)) {
      NpyHeader header = readHeader(in);
      ValueLayout element = element(header.descr(), FLOATS, "float32 or float64");
      Claim.of(header, element).requireFit(in.remaining());
      return header.shape();
    }
  }

  private static long[] withRows(long[] shape, long rows) {
    long[] other = shape.clone();
    other[0] = rows;
    return other;
  }

  /** Whether the data are in Fortran order. */
  static boolean isTransposed(NpyHeader header) {
    return header.fortranOrder() && header.shape().length > 1;
  }

  public static Array readInts(Path file, Arena arena) throws IOException {
    return read(file, arena, List.of("i4"), "int32");
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
    int unpadded = MAGIC.length + 4 + dict.length() + 1;
    int length = (unpadded + 63) / 64 * 64; // NumPy aligns the data to 64 bytes
    String padded = dict + " ".repeat(length - unpadded) + "\n";
    return ByteBuffer.allocate(length)
        .order(ByteOrder.LITTLE_ENDIAN)
        .put(MAGIC)
        .put((byte) 1)
        .put((byte) 0)
        .putShort((short) padded.length())
        .put(padded.getBytes(StandardCharsets.US_ASCII))
        .array();
  }

  private static Array read(Path file, Arena arena, List<String> types, String wanted)
      throws IOException {
    try (Input in = Input.open(file)) {
      NpyHeader header = readHeader(in);
      return read(in, header, element(header.descr(), types, wanted), arena);
    }
  }

  private static Array read(Input in, NpyHeader header, ValueLayout element, Arena arena)
      throws IOException {
    Claim claim = Claim.of(header, element);
    return inMemory(header, element, a -> read(in, claim, a), arena);
  }

  private interface Reader {
    MemorySegment read(Arena arena) throws IOException;
  }

  /** Reads the data of a header, and converts them to float32 and C order. */
  private static Array inMemory(NpyHeader header, ValueLayout element, Reader reader, Arena arena)
      throws IOException {
    MemorySegment data;
    if (element instanceof ValueLayout.OfShort) { // float16, counted as float32 from here on
      try (Arena temporary = Arena.ofConfined()) {
        data = widened(reader.read(temporary), element.order(), arena);
      }
      element = ValueLayout.JAVA_FLOAT;
    } else {
      data = reader.read(arena);
    }
    if (isTransposed(header)) {
      data = toCOrder(data, header.shape(), element.byteSize(), arena);
    }
    return new Array(header.shape(), element, data);
  }

  static NpyHeader readHeader(Input in) throws IOException {
    ByteBuffer start = ByteBuffer.allocate(12).order(ByteOrder.LITTLE_ENDIAN);
    int size = in.fill(start.limit(10));
    if (size == 0) {
      throw new NpyException("is empty");
    }
    if (!Arrays.equals(start.array(), 0, MAGIC.length, MAGIC, 0, MAGIC.length)) {
      throw new NpyException("is not a .npy file: it does not begin with \\x93NUMPY");
    }
    int version = start.getShort(6); // the major one: minor versions are 0
    start.limit(12);
    if (size < 10 || (version > 1 && version <= 3 && in.fill(start) < 2)) {
      throw new NpyException("is truncated: it ends inside its header");
    }
    if (version < 1 || version > 3) {
      throw new NpyException(
          "has the unsupported .npy format version "
              + (version & 0xff)
              + "."
              + (version >> 8 & 0xff));
    }
    long length = Integer.toUnsignedLong(start.getInt(8)); // of two bytes in version 1
    if (length > MAX_HEADER) {
      throw new NpyException("has a header of " + length + " bytes, too long to be one");
    }
    ByteBuffer text = ByteBuffer.allocate((int) length);
    int read = in.fill(text);
    if (read < length) {
      throw new NpyException(
          "is truncated: its header claims " + length + " bytes, " + read + " follow");
    }
    Charset charset = version == 3 ? StandardCharsets.UTF_8 : StandardCharsets.ISO_8859_1;
    return NpyHeader.parse(new String(text.array(), charset));
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

  public static ValueLayout element(String descr, List<String> types, String wanted)
      throws NpyException {
    String type = descr.isEmpty() ? "" : descr.substring(1);
    if ("<>=".indexOf(descr.isEmpty() ? '|' : descr.charAt(0)) < 0 || !types.contains(type)) {
      throw new NpyException("has the unsupported dtype " + descr + ": convert it to " + wanted);
    }
    ByteOrder order =
        switch (descr.charAt(0)) {
          case '<' -> ByteOrder.LITTLE_ENDIAN;
          case '>' -> ByteOrder.BIG_ENDIAN;
          default -> ByteOrder.nativeOrder();
        };
    return switch (type) {
      case "f2" -> ValueLayout.JAVA_SHORT.withOrder(order);
      case "f4" -> ValueLayout.JAVA_FLOAT.withOrder(order);
      case "f8" -> ValueLayout.JAVA_DOUBLE.withOrder(order);
      default -> ValueLayout.JAVA_INT.withOrder(order);
    };
  }

  /** The size of the data by the header. */
  record Claim(String text, long bytes) {
    public static Claim of(NpyHeader header, ValueLayout element) throws NpyException {
      String text = "shape " + header.shapeText() + " of " + header.descr();
      long bytes = element.byteSize();
      try {
        for (long dimension : header.shape()) {
          bytes = Math.multiplyExact(bytes, dimension);
        }
      } catch (ArithmeticException e) {
        throw new NpyException("is truncated: no file can hold its " + text);
      }
      return new Claim(text, bytes);
    }

    /** Throws unless as many bytes follow, if that is known. */
    public void requireFit(long follow) throws NpyException {
      if (follow != Input.UNKNOWN && follow < bytes) {
        throw missed(follow);
      }
      if (follow > bytes) {
        throw exceeded(Long.toString(follow - bytes));
      }
    }

    NpyException missed(long follow) {
      return new NpyException(
          "is truncated: %s needs %d bytes of data, %d follow".formatted(text, bytes, follow));
    }

    NpyException exceeded(String byWhat) {
      return new NpyException(
          "has %s bytes after its data: %s needs %d".formatted(byWhat, text, bytes));
    }
  }

  private static MemorySegment read(Input in, Claim claim, Arena arena) throws IOException {
    claim.requireFit(in.remaining());
    MemorySegment data = readOn(in, MemorySegment.NULL, claim, arena);
    if (!in.isAtEnd()) {
      throw claim.exceeded("more");
    }
    return data;
  }

  /**
   * Reads on after {@code before}. Where only the header says how much follows, no more is allocated at once than a chunk, or as much as
   * came.
   */
  private static MemorySegment readOn(Input in, MemorySegment before, Claim claim, Arena arena)
      throws IOException {
    long came = before.byteSize();
    long most = in.remaining() == Input.UNKNOWN ? came + Math.max(CHUNK, came) : claim.bytes;
    if (most >= claim.bytes) {
      return readUpTo(claim.bytes, in, before, claim, arena);
    }
    try (Arena temporary = Arena.ofConfined()) {
      return readOn(in, readUpTo(most, in, before, claim, temporary), claim, arena);
    }
  }

  private static MemorySegment readUpTo(
      long size, Input in, MemorySegment before, Claim claim, Arena arena) throws IOException {
    MemorySegment data = arena.allocate(size, 8).copyFrom(before);
    for (long at = before.byteSize(), count; at < size; at += count) {
      count = Math.min(CHUNK, size - at);
      int read = in.fill(data.asSlice(at, count).asByteBuffer());
      if (read < count) {
        throw claim.missed(at + read);
      }
    }
    return data;
  }

  /** Converts each float16 to the equal float32. */
  private static MemorySegment widened(MemorySegment halves, ByteOrder order, Arena arena) {
    long count = halves.byteSize() / Short.BYTES;
    MemorySegment floats = arena.allocate(ValueLayout.JAVA_FLOAT, count);
    boolean swapped = order != ByteOrder.nativeOrder();
    for (long i = 0; i < count; i++) {
      short bits = halves.getAtIndex(ValueLayout.JAVA_SHORT, i);
      float value = Float.float16ToFloat(swapped ? Short.reverseBytes(bits) : bits);
      floats.setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
    }
    return floats;
  }

  /*
   * in:  [d_n, ..., d_1, rows], the reverse of the file's shape
   * out: [rows, d_1, ..., d_n]
   */
  private static MemorySegment toCOrder(
      MemorySegment in, long[] shape, long elementSize, Arena arena) {
    MemorySegment out = arena.allocate(in.byteSize(), 8);
    long rows = shape[0];
    long columns = rows == 0 ? 0 : in.byteSize() / elementSize / rows;
    // 1024 output rows at a time keep their current cache lines in L2.
    for (long row = 0; row < rows; row += 1024) {
      long end = Math.min(rows, row + 1024);
      long[] index = new long[shape.length]; // of the column; index[0] stays 0
      for (long column = 0; column < columns; column++) {
        long from = 0;
        for (int k = shape.length - 1; k > 0; k--) {
          from = from * shape[k] + index[k];
        }
        for (long i = row; i < end; i++) {
          if (elementSize == 4) {
            int bits = in.getAtIndex(ValueLayout.JAVA_INT, from * rows + i);
            out.setAtIndex(ValueLayout.JAVA_INT, i * columns + column, bits);
          } else {
            long bits = in.getAtIndex(ValueLayout.JAVA_LONG, from * rows + i);
            out.setAtIndex(ValueLayout.JAVA_LONG, i * columns + column, bits);
          }
        }
        for (int k = shape.length - 1; k > 0 && ++index[k] == shape[k]; k--) {
          index[k] = 0;
        }
      }
    }
    return out;
  }
}
