package dev.kullback.cli.npy;

import java.io.Closeable;
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
 * Reads an array from what {@link Input} makes of a name. Nothing in its header is believed before it agrees with how much follows. Data
 * are copied, not mapped: touching a mapping of a file that another process has shortened kills the VM or the calculation.
 */
public final class NpyReader implements Closeable {
  private static final int MAX_HEADER = 1 << 20;
  private static final int CHUNK = 1 << 26;

  private final Input in;
  private final NpyHeader header;
  private final ValueLayout element;

  /** Bytes of data that the header claims. */
  private final long size;

  private long read;

  /** Opens a file of one of the types, which an error calls {@code wanted}. */
  NpyReader(Path file, List<String> types, String wanted) throws IOException {
    in = Input.open(file);
    try {
      header = readHeader(in);
      element = element(header.descr(), types, wanted);
      size = claimedSize();
      if (in.remaining() != Input.UNKNOWN && in.remaining() < size) {
        throw missed(in.remaining());
      }
      if (in.remaining() > size) {
        throw exceeded(Long.toString(in.remaining() - size));
      }
    } catch (IOException e) {
      in.close();
      throw e;
    }
  }

  /** Opens a matrix in C order, to be read by {@link #next}. */
  public static NpyReader ofMatrix(Path file, List<String> types, String wanted)
      throws IOException {
    NpyReader reader = new NpyReader(file, types, wanted);
    long[] shape = reader.shape();
    if (shape.length == 2 && shape[1] > 0 && !reader.isTransposed()) {
      return reader;
    }
    reader.close();
    throw new NpyException(
        shape.length != 2 || shape[1] == 0
            ? "has shape " + reader.shapeText() + ": it must be [N,K]"
            : "is in Fortran order: save it in C order, as numpy.ascontiguousarray does");
  }

  private static NpyHeader readHeader(Input in) throws IOException {
    ByteBuffer start = ByteBuffer.allocate(12).order(ByteOrder.LITTLE_ENDIAN);
    int size = in.fill(start.limit(10));
    if (size == 0) {
      throw new NpyException("is empty");
    }
    if (!Arrays.equals(start.array(), 0, Npy.MAGIC.length, Npy.MAGIC, 0, Npy.MAGIC.length)) {
      throw new NpyException("is not a .npy file: it does not begin with \\x93NUMPY");
    }
    int version = start.getShort(6); // the major one: minor versions are 0
    start.limit(12);
    if (size < 10 || (version > 1 && version <= 3 && in.fill(start) < 2)) {
      throw new NpyException("is truncated: it ends inside its header");
    }
    if (version < 1 || version > 3) {
      throw new NpyException(
          "has the unsupported .npy format version %d.%d"
              .formatted(version & 0xff, version >> 8 & 0xff));
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

  private static ValueLayout element(String descr, List<String> types, String wanted)
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
      case "i8" -> ValueLayout.JAVA_LONG.withOrder(order);
      default -> ValueLayout.JAVA_INT.withOrder(order);
    };
  }

  private String claim() {
    return "shape " + shapeText() + " of " + header.descr();
  }

  private long claimedSize() throws NpyException {
    try {
      return Arrays.stream(shape()).reduce(element.byteSize(), Math::multiplyExact);
    } catch (ArithmeticException e) {
      throw new NpyException("is truncated: no file can hold its " + claim());
    }
  }

  private NpyException missed(long follow) {
    return new NpyException(
        "is truncated: %s needs %d bytes of data, %d follow".formatted(claim(), size, follow));
  }

  private NpyException exceeded(String byWhat) {
    return new NpyException(
        "has %s bytes after its data: %s needs %d".formatted(byWhat, claim(), size));
  }

  public long[] shape() {
    return header.shape();
  }

  public String shapeText() {
    return header.shapeText();
  }

  /** Returns the type of the data in the file. */
  public ValueLayout element() {
    return element;
  }

  /** Whether the data are in Fortran order. */
  private boolean isTransposed() {
    return header.fortranOrder() && shape().length > 1;
  }

  private boolean isHalf() {
    return element instanceof ValueLayout.OfShort;
  }

  /** Reads the whole array. */
  Npy.Array all(Arena arena) throws IOException {
    try (Arena temporary = Arena.ofConfined()) {
      Arena first = isHalf() || isTransposed() ? temporary : arena;
      return array(shape(), readOn(MemorySegment.NULL, first), arena);
    }
  }

  /** Reads the rows {@code from} to {@code to}. */
  Npy.Array rows(long from, long to, Arena arena) throws IOException {
    long rows = shape().length == 0 ? 0 : shape()[0];
    if (to > rows) {
      throw new NpyException("has %d rows now, but had more".formatted(rows));
    }
    try (Arena temporary = Arena.ofConfined()) {
      if (!in.isFile() || isTransposed()) {
        Npy.Array part = all(temporary).withRows(from, to);
        MemorySegment data = arena.allocate(part.data().byteSize(), 8).copyFrom(part.data());
        return new Npy.Array(part.shape(), part.element(), part.isHalf(), data);
      }
      read = from * (size / rows);
      in.skip(read);
      Arena first = isHalf() ? temporary : arena;
      MemorySegment data = first.allocate((to - from) * (size / rows), 8);
      next(data);
      return array(Npy.withRows(shape(), to - from), data, arena);
    }
  }

  /** Reads the next data to a segment; after the last the file must end. */
  public void next(MemorySegment to) throws IOException {
    for (long at = 0, count; at < to.byteSize(); at += count) {
      count = Math.min(CHUNK, to.byteSize() - at);
      int came = in.fill(to.asSlice(at, count).asByteBuffer());
      read += came;
      if (came < count) {
        throw missed(read);
      }
    }
    if (read == size && !in.isAtEnd()) {
      throw exceeded("more");
    }
  }

  /**
   * Reads on after {@code before}. Where only the header says how much follows, no more is allocated at once than a chunk, or as much as
   * came.
   */
  private MemorySegment readOn(MemorySegment before, Arena arena) throws IOException {
    long came = before.byteSize();
    long most = in.remaining() == Input.UNKNOWN ? came + Math.max(CHUNK, came) : size;
    if (most >= size) {
      return readUpTo(size, before, arena);
    }
    try (Arena temporary = Arena.ofConfined()) {
      return readOn(readUpTo(most, before, temporary), arena);
    }
  }

  private MemorySegment readUpTo(long end, MemorySegment before, Arena arena) throws IOException {
    MemorySegment data = arena.allocate(end, 8).copyFrom(before);
    next(data.asSlice(before.byteSize()));
    return data;
  }

  /** Makes an array of the file's data, in C order and with float32 for float16. */
  private Npy.Array array(long[] shape, MemorySegment data, Arena arena) {
    MemorySegment wide = isHalf() ? widened(data, arena) : data;
    ValueLayout type = isHalf() ? ValueLayout.JAVA_FLOAT : element;
    return new Npy.Array(
        shape,
        type,
        isHalf(),
        isTransposed() ? toCOrder(wide, shape, type.byteSize(), arena) : wide);
  }

  /** Converts each float16 to the equal float32. */
  private MemorySegment widened(MemorySegment halves, Arena arena) {
    long count = halves.byteSize() / Short.BYTES;
    MemorySegment floats = arena.allocate(ValueLayout.JAVA_FLOAT, count);
    boolean swapped = element.order() != ByteOrder.nativeOrder();
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

  @Override
  public void close() throws IOException {
    in.close();
  }
}
