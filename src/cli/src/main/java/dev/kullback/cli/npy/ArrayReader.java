package dev.kullback.cli.npy;

import java.io.Closeable;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Reads an array of a file of any format that {@link Opened} knows. Nothing in its header is believed before it agrees with how much
 * follows. Data are copied, not mapped: touching a mapping of a file that another process has shortened kills the VM or the calculation.
 */
public final class ArrayReader implements Closeable {
  private static final int CHUNK = 1 << 26;
  private static final int SKIPPED = 1 << 16;

  private final Input in;
  private final NpyHeader header;
  private final Type type;
  private final ByteOrder order;

  /** Of the elements in memory. */
  private final ValueLayout element;

  /** Bytes of data that the header claims. */
  private final long size;

  private long read;

  /** The whole array of a file in Fortran order of which rows are wanted, and its memory. */
  private Npy.@Nullable Array transposed;

  private @Nullable Arena own;

  /**
   * Opens a file of one of the types, which an error calls {@code wanted}.
   *
   * @param isWidened whether integers become int64; those of 16 bits always become float32
   */
  ArrayReader(Path file, Set<Type> types, String wanted, boolean isWidened) throws IOException {
    Opened opened = Opened.of(file, types);
    in = opened.in();
    header = opened.header();
    order = opened.order();
    try {
      boolean isBfloat16 = opened.isBfloat16();
      if (isBfloat16 && opened.type() != Type.UINT16 && opened.type() != Type.BFLOAT16) {
        throw new NpyException(
            "has the dtype %s: :bfloat16 is for <u2, the bits of bfloat16"
                .formatted(header.descr()));
      }
      type = isBfloat16 ? Type.BFLOAT16 : opened.type();
      if (!types.contains(type)) {
        throw new NpyException(
            "has the unsupported dtype %s: %s"
                .formatted(header.descr(), opened.advice().convert(type, type.target(wanted))));
      }
      element = element(isWidened);
      size = claimedSize();
      if (in.remaining() != Input.UNKNOWN && in.remaining() < size) {
        throw missed(in.remaining());
      }
      if (in.remaining() > size) {
        long more = in.remaining() - size;
        byte[] rest = {};
        if (in.isFile()) {
          in.skip(size);
          rest = in.rest(NpyFormat.MAGIC.length);
        }
        throw exceeded(Long.toString(more), rest);
      }
    } catch (IOException | RuntimeException e) {
      in.close();
      throw e;
    }
  }

  /** Opens a matrix in C order, to be read by {@link #next}. */
  public static ArrayReader ofMatrix(Path file, Set<Type> types, String wanted) throws IOException {
    ArrayReader reader = new ArrayReader(file, types, wanted, false);
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

  private ValueLayout element(boolean isWidened) {
    return switch (type) {
      case FLOAT16, BFLOAT16 -> ValueLayout.JAVA_FLOAT;
      case FLOAT32 -> ValueLayout.JAVA_FLOAT.withOrder(order);
      case FLOAT64 -> ValueLayout.JAVA_DOUBLE.withOrder(order);
      case INT64 -> ValueLayout.JAVA_LONG.withOrder(order);
      default -> isWidened ? ValueLayout.JAVA_LONG : ValueLayout.JAVA_INT.withOrder(order);
    };
  }

  private String claim() {
    return "shape " + shapeText() + " of " + header.descr();
  }

  private long claimedSize() throws NpyException {
    try {
      return Arrays.stream(shape()).reduce(type.bytes(), Math::multiplyExact);
    } catch (ArithmeticException e) {
      throw new NpyException("is truncated: no file can hold its " + claim());
    }
  }

  private NpyException missed(long follow) {
    return new NpyException(
        "is truncated: %s needs %d bytes of data, %d follow".formatted(claim(), size, follow));
  }

  private NpyException exceeded(String byWhat, byte[] rest) {
    return new NpyException(
        "has %s bytes after its data: %s needs %d%s"
            .formatted(
                byWhat,
                claim(),
                size,
                NpyFormat.isMagic(rest)
                    ? "; it holds several arrays, as of np.save on an open file: save each to a file of its own"
                    : ""));
  }

  public long[] shape() {
    return header.shape();
  }

  public String shapeText() {
    return header.shapeText();
  }

  /** Returns the type of the elements in memory. */
  public ValueLayout element() {
    return element;
  }

  /** Returns the type of the elements in the file. */
  public Type type() {
    return type;
  }

  /** Whether the data are in Fortran order. */
  private boolean isTransposed() {
    return header.fortranOrder() && shape().length > 1;
  }

  /** Whether elements are of another size in memory, or unsigned. */
  private boolean isWidened() {
    return element.byteSize() != type.bytes() || type == Type.UINT64;
  }

  /** Reads the whole array. */
  Npy.Array all(Arena arena) throws IOException {
    try (Arena temporary = Arena.ofConfined()) {
      Arena first = isWidened() || isTransposed() ? temporary : arena;
      return array(shape(), readOn(MemorySegment.NULL, size, first), arena);
    }
  }

  /** Reads the rows {@code from} to {@code to}, none of them before those of the last call. */
  public Npy.Array rows(long from, long to, Arena arena) throws IOException {
    long rows = shape().length == 0 ? 0 : shape()[0];
    if (to > rows) {
      throw new NpyException("has %d rows now, but had more".formatted(rows));
    }
    if (from == 0 && to == rows) {
      return all(arena);
    }
    if (isTransposed()) {
      Npy.Array part = transposed().withRows(from, to);
      MemorySegment data = arena.allocate(part.data().byteSize(), 8).copyFrom(part.data());
      return new Npy.Array(part.shape(), part.element(), type, data);
    }
    long row = size / rows;
    goTo(from * row);
    try (Arena temporary = Arena.ofConfined()) {
      Arena first = isWidened() ? temporary : arena;
      MemorySegment data = readOn(MemorySegment.NULL, (to - from) * row, first);
      return array(Npy.withRows(shape(), to - from), data, arena);
    }
  }

  private Npy.Array transposed() throws IOException {
    if (transposed == null) {
      own = Arena.ofConfined();
      transposed = all(own);
    }
    return transposed;
  }

  /** Reads what is left where only reading tells whether that is right. */
  public void readToEnd() throws IOException {
    if (!in.isFile()) {
      goTo(size);
    }
  }

  private void goTo(long position) throws IOException {
    if (in.isFile()) {
      in.skip(position - read);
      read = position;
    }
    if (read < position) {
      byte[] some = new byte[SKIPPED];
      while (read < position) {
        int count = (int) Math.min(some.length, position - read);
        next(MemorySegment.ofArray(some).asSlice(0, count));
      }
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
    if (read == size) {
      byte[] rest = in.rest(NpyFormat.MAGIC.length);
      if (rest.length > 0) {
        throw exceeded("more", rest);
      }
    }
  }

  /**
   * Reads on after {@code before}, up to {@code end} bytes in all. Where only the header says how much follows, no more is allocated at once
   * than a chunk, or as much as came.
   */
  private MemorySegment readOn(MemorySegment before, long end, Arena arena) throws IOException {
    long came = before.byteSize();
    long most = in.remaining() == Input.UNKNOWN ? came + Math.max(CHUNK, came) : end;
    if (most >= end) {
      return readUpTo(end, before, arena);
    }
    try (Arena temporary = Arena.ofConfined()) {
      return readOn(readUpTo(most, before, temporary), end, arena);
    }
  }

  private MemorySegment readUpTo(long end, MemorySegment before, Arena arena) throws IOException {
    MemorySegment data = arena.allocate(end, 8).copyFrom(before);
    next(data.asSlice(before.byteSize()));
    return data;
  }

  /** Makes an array of the file's data, in C order and of elements as they are in memory. */
  private Npy.Array array(long[] shape, MemorySegment data, Arena arena) throws NpyException {
    MemorySegment wide = isWidened() ? widened(data, arena) : data;
    return new Npy.Array(
        shape,
        element,
        type,
        isTransposed() ? toCOrder(wide, shape, element.byteSize(), arena) : wide);
  }

  /** Converts each element to the equal float32 or int64; with constant layouts, which are fast. */
  private MemorySegment widened(MemorySegment data, Arena arena) throws NpyException {
    long count = data.byteSize() / type.bytes();
    MemorySegment wide = arena.allocate(element, count);
    boolean swapped = order != ByteOrder.nativeOrder();
    for (long i = 0; type.isHalf() && i < count; i++) {
      short bits = data.getAtIndex(ValueLayout.JAVA_SHORT, i);
      bits = swapped ? Short.reverseBytes(bits) : bits;
      float value =
          type == Type.FLOAT16
              ? Float.float16ToFloat(bits)
              : Float.intBitsToFloat(bits << Short.SIZE);
      wide.setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
    }
    for (long i = 0; !type.isHalf() && i < count; i++) {
      wide.setAtIndex(ValueLayout.JAVA_LONG, i, integer(data, i, swapped));
    }
    return wide;
  }

  private long integer(MemorySegment data, long i, boolean swapped) throws NpyException {
    long bits =
        switch (type.bytes()) {
          case 1 -> data.get(ValueLayout.JAVA_BYTE, i);
          case 2 -> {
            short two = data.getAtIndex(ValueLayout.JAVA_SHORT, i);
            yield swapped ? Short.reverseBytes(two) : two;
          }
          case 4 -> {
            int four = data.getAtIndex(ValueLayout.JAVA_INT, i);
            yield swapped ? Integer.reverseBytes(four) : four;
          }
          default -> {
            long eight = data.getAtIndex(ValueLayout.JAVA_LONG, i);
            yield swapped ? Long.reverseBytes(eight) : eight;
          }
        };
    long value = type.isUnsigned() ? bits & (-1L >>> (Long.SIZE - Byte.SIZE * type.bytes())) : bits;
    if (type.isUnsigned() && value < 0) {
      throw new NpyException(
          "element %d is %s, beyond 2^63 - 1, the greatest integer that is taken (counted from 0)"
              .formatted(i, Long.toUnsignedString(bits)));
    }
    return value;
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
    if (own != null) {
      own.close();
    }
    in.close();
  }
}
