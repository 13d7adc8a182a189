package dev.kullback.cli.npy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** NumPy's .npy files, versions 1 to 3: what NumPy reads is read, and bfloat16 too. */
final class NpyFormat {
  static final byte[] MAGIC = {(byte) 0x93, 'N', 'U', 'M', 'P', 'Y'};

  /** Bytes that NumPy reads. */
  private static final int MAX_HEADER = 10_000;

  /** A byte order, and a character with or without a size, which zeros may precede. */
  private static final Pattern CODE = Pattern.compile("([<>=|]?)([A-Za-z?])0*([0-9]*)(\\[.*)?");

  /** The types by their characters and sizes; those of NumPy's characters alone, and of its names. */
  private static final Map<String, Type> CODES = new HashMap<>();

  private static final Map<String, Type> NAMES = new HashMap<>();

  static {
    put(CODES, Type.FLOAT16, "f2", "e");
    put(CODES, Type.FLOAT32, "f4", "f");
    put(CODES, Type.FLOAT64, "f8", "d");
    put(CODES, Type.BFLOAT16, "V2");
    put(CODES, Type.INT8, "i1", "b");
    put(CODES, Type.INT16, "i2", "h");
    put(CODES, Type.INT32, "i4", "i");
    put(CODES, Type.INT64, "i8", "q", "l", "p");
    put(CODES, Type.UINT8, "u1", "B");
    put(CODES, Type.UINT16, "u2", "H");
    put(CODES, Type.UINT32, "u4", "I");
    put(CODES, Type.UINT64, "u8", "Q", "L", "P");
    put(CODES, Type.BOOL, "b1", "?");
    put(CODES, Type.LONG_DOUBLE, "f12", "f16", "g");
    put(CODES, Type.COMPLEX, "c8", "c16", "c24", "c32", "F", "D", "G");
    put(CODES, Type.OBJECT, "O", "O4", "O8");
    put(CODES, Type.BYTES, "V4", "V8");
    put(NAMES, Type.FLOAT16, "float16", "half");
    put(NAMES, Type.FLOAT32, "float32", "single");
    put(NAMES, Type.FLOAT64, "float64", "double", "float");
    put(NAMES, Type.BFLOAT16, "bfloat16");
    put(NAMES, Type.INT8, "int8", "byte");
    put(NAMES, Type.INT16, "int16", "short");
    put(NAMES, Type.INT32, "int32", "intc");
    put(NAMES, Type.INT64, "int64", "int", "int_", "intp", "long", "longlong");
    put(NAMES, Type.UINT8, "uint8", "ubyte");
    put(NAMES, Type.UINT16, "uint16", "ushort");
    put(NAMES, Type.UINT32, "uint32", "uintc");
    put(NAMES, Type.UINT64, "uint64", "uint", "uintp", "ulong", "ulonglong");
    put(NAMES, Type.BOOL, "bool", "bool_");
    put(NAMES, Type.LONG_DOUBLE, "longdouble", "float96", "float128");
    put(
        NAMES,
        Type.COMPLEX,
        "complex",
        "complex64",
        "complex128",
        "complex256",
        "csingle",
        "cdouble",
        "clongdouble");
    put(NAMES, Type.TEXT, "str", "bytes");
    put(NAMES, Type.OBJECT, "object");
  }

  private NpyFormat() {}

  private static void put(Map<String, Type> types, Type type, String... names) {
    for (String name : names) {
      types.put(name, type);
    }
  }

  static boolean isMagic(byte[] start) {
    return start.length >= MAGIC.length
        && Arrays.equals(start, 0, MAGIC.length, MAGIC, 0, MAGIC.length);
  }

  /** Reads a header. */
  static Opened open(Input in, Name name) throws IOException {
    ByteBuffer start = ByteBuffer.allocate(12).order(ByteOrder.LITTLE_ENDIAN);
    int size = in.fill(start.limit(10));
    if (size == 0) {
      throw new NpyException("is empty");
    }
    if (!isMagic(start.array())) {
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
      throw new NpyException(
          "has a header of %d bytes, too long to be one: NumPy reads at most %d"
              .formatted(length, MAX_HEADER));
    }
    ByteBuffer text = ByteBuffer.allocate((int) length);
    int read = in.fill(text);
    if (read < length) {
      throw new NpyException(
          "is truncated: its header claims " + length + " bytes, " + read + " follow");
    }
    NpyHeader header =
        NpyHeader.parse(
            new String(
                text.array(), version == 3 ? StandardCharsets.UTF_8 : StandardCharsets.ISO_8859_1),
            version);
    return new Opened(
        in,
        header,
        type(header.descr()),
        order(header.descr()),
        name.isBfloat16(),
        (type, to) -> advice(name, header.descr(), type, to));
  }

  private static Type type(String descr) {
    Type named = NAMES.get(descr);
    if (named != null) {
      return named;
    }
    if (descr.startsWith("[") || descr.startsWith("(")) {
      return Type.FIELDS;
    }
    Matcher code = CODE.matcher(descr);
    if (!code.matches()) {
      return Type.OTHER;
    }
    boolean isTime = code.group(2).equalsIgnoreCase("m");
    if (isTime || code.group(4) != null) {
      return isTime ? Type.TIME : Type.OTHER;
    }
    return CODES.getOrDefault(
        code.group(2) + code.group(3),
        switch (code.group(2)) {
          case "S", "U", "a", "c" -> Type.TEXT;
          default -> Type.OTHER;
        });
  }

  private static ByteOrder order(String descr) {
    return switch (descr.isEmpty() ? '=' : descr.charAt(0)) {
      case '<' -> ByteOrder.LITTLE_ENDIAN;
      case '>' -> ByteOrder.BIG_ENDIAN;
      default -> ByteOrder.nativeOrder();
    };
  }

  /** Returns the line of NumPy that saves an array as one of another type. */
  private static String advice(Name name, String descr, Type type, String to) {
    String file = String.valueOf(name.file().getFileName());
    String array = name.array();
    boolean isStdin = name.file().equals(Input.STDIN);
    String load =
        isStdin
            ? "x"
            : "np.load('%s'%s)%s"
                .formatted(
                    file,
                    type == Type.OBJECT ? ", allow_pickle=True" : "",
                    array == null ? "" : "['" + array + "']");
    String saved =
        isStdin
            ? "x.npy"
            : array == null
                ? file
                : array.substring(1 + Math.max(array.lastIndexOf('/'), array.lastIndexOf('\\')))
                    + ".npy";
    return switch (type) {
      case COMPLEX -> "take the real part, np.save('%s', %s.real)".formatted(saved, load);
      case BYTES ->
          "say what its bytes are, np.save('%s', %s.view('%s'))"
              .formatted(saved, load, to.replaceAll("\\d+", descr.endsWith("4") ? "32" : "64"));
      case FIELDS ->
          "save one field as an array of its own, np.save('%s', %s['FIELD'])"
              .formatted(saved, load);
      case OTHER ->
          "NumPy does not know it either; save the array as x.astype('%s') in the program that has it"
              .formatted(to);
      default ->
          "convert it, np.save('%s', %s.astype('%s'))%s"
              .formatted(
                  saved,
                  load,
                  to,
                  type == Type.UINT16 && to.startsWith("float")
                      ? ", or put :bfloat16 behind the name if it has the bits of bfloat16"
                      : "");
    };
  }
}
