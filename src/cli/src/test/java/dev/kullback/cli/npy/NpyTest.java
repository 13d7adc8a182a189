package dev.kullback.cli.npy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.cli.testing.NpyFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.DoubleStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class NpyTest {
  private static final String GOOD = NpyFiles.dict("<f4", false, 2, 3);
  private static final byte[] GOOD_DATA = NpyFiles.data("<f4", 1, 2, 3, 4, 5, 6);
  private static final byte[] GOOD_FILE = NpyFiles.bytes(1, GOOD, GOOD_DATA);

  @TempDir Path folder;

  private static double[] read(Path file) throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      return values(Npy.readFloats(file, arena));
    }
  }

  private static double[] values(Npy.Array array) {
    long count = array.data().byteSize() / array.element().byteSize();
    return LongStream.range(0, count).mapToDouble(array::value).toArray();
  }

  private Path file(byte[] bytes) throws IOException {
    return NpyFiles.write(folder.resolve("a.npy"), bytes);
  }

  @ParameterizedTest
  @CsvSource({"<f2", ">f2", "=f2", "<f4", ">f4", "=f4", "<f8", ">f8"})
  void readsEveryTypeInEveryVersion(String descr) throws IOException {
    boolean half = descr.endsWith("2");
    double[] want = {0, -1.5, 3.25, half ? 0x1p-24 : 1e-30, half ? 65504 : 1e30, 7};
    boolean little = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;
    String dataDescr = descr.replace('=', little ? '<' : '>');
    for (int version = 1; version <= 3; version++) {
      byte[] data = NpyFiles.data(dataDescr, want);
      Path file = file(NpyFiles.bytes(version, NpyFiles.dict(descr, false, 2, 3), data));
      try (Arena arena = Arena.ofConfined()) {
        Npy.Array array = Npy.readFloats(file, arena);
        assertThat(array.shape()).containsExactly(2, 3);
        double[] rounded =
            !descr.endsWith("8") ? DoubleStream.of(want).map(v -> (float) v).toArray() : want;
        assertThat(values(array)).containsExactly(rounded);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"<f2", ">f2", "<f4", ">f4", "<f8", ">f8"})
  void turnsFortranOrderIntoCOrder(String descr) throws IOException {
    int rows = 1030; // more than one block of rows
    int a = 3;
    int b = 2;
    double[] fortran = new double[rows * a * b];
    double[] c = new double[rows * a * b];
    for (int i = 0; i < rows; i++) {
      for (int j = 0; j < a; j++) {
        for (int k = 0; k < b; k++) {
          double value = (1 + i % 509 + j / 4.0) * (1 - 2 * k); // float16 holds it
          fortran[i + rows * (j + a * k)] = value;
          c[(i * a + j) * b + k] = value;
        }
      }
    }
    byte[] data = NpyFiles.data(descr, fortran);
    assertThat(read(file(NpyFiles.bytes(1, NpyFiles.dict(descr, true, rows, a, b), data))))
        .containsExactly(c);
    data = NpyFiles.data(descr, 1, 3, 5, 2, 4, 6);
    assertThat(read(file(NpyFiles.bytes(1, NpyFiles.dict(descr, true, 3, 2), data))))
        .containsExactly(1, 2, 3, 4, 5, 6);
  }

  /** Each of the numbers there are, against what IEEE 754 says of its bits. */
  @ParameterizedTest
  @ValueSource(strings = {"<f2", ">f2"})
  void widensFloat16(String descr) throws IOException {
    int count = 1 << 16;
    byte[] data = new byte[2 * count];
    float[] want = new float[count];
    for (int bits = 0; bits < count; bits++) {
      data[2 * bits + (descr.startsWith("<") ? 0 : 1)] = (byte) bits;
      data[2 * bits + (descr.startsWith("<") ? 1 : 0)] = (byte) (bits >> 8);
      int exponent = bits >> 10 & 31;
      int fraction = bits & 1023;
      double magnitude =
          exponent == 31
              ? fraction == 0 ? Double.POSITIVE_INFINITY : Double.NaN
              : exponent == 0
                  ? fraction * Math.pow(2, -24)
                  : (1024 + fraction) * Math.pow(2, exponent - 25);
      want[bits] = (float) (bits < 1 << 15 ? magnitude : -magnitude);
    }
    try (Arena arena = Arena.ofConfined()) {
      String dict = NpyFiles.dict(descr, false, count);
      dict += " ".repeat(1 - dict.length() % 2); // the data begin at an odd byte
      Npy.Array array = Npy.readFloats(file(NpyFiles.bytes(1, dict, data)), arena);
      assertThat(array.element()).isEqualTo(ValueLayout.JAVA_FLOAT);
      assertThat(array.data().toArray(ValueLayout.JAVA_FLOAT)).containsExactly(want);
    }
  }

  /** Headers of an array of (2, 2) or (4,) in 32 bytes: what NumPy 2.4 makes of each shape, descr and header. */
  static Stream<String> readsWhatNumPyReads() {
    return Stream.of(
            ofShapes(
                "(2L, 2L); (2 L, 2); (+2, 2); (+ 2, 0x2); (0b10, 0o2); ((2), 2,); ((2, 2)); (2,\n2); (2, # rows\n 2); (2,2,)"),
            ofDescrs(
                "'<d'; '|d'; 'd'; 'f8'; '|f8'; '=f8'; '<f08'; 'float64'; 'double'; 'float'; ('<f8'); \"<f8\"; u'<f8'"),
            Stream.of(
                "{'shape': (4,), 'fortran_order': (False), 'descr': '<f8'} # all",
                "({'descr': '<f8', 'fortran_order': False, 'shape': (4,)})",
                "\n\t{ 'descr' :'<f8' , 'fortran_order':False ,\n 'shape' : ( 4 , ) , }\f\n\n",
                "{u'descr': u'<f8', U'fortran_order': False, r'shape': (4L,)}",
                "{\"shape\": (4,), 'fortran_order': False, R\"descr\": \"<f8\"}"))
        .flatMap(headers -> headers);
  }

  private static Stream<String> ofShapes(String shapes) {
    String rest = "{'descr': '<f8', 'fortran_order': False, 'shape': ";
    return Stream.of(shapes.split("; ")).map(shape -> rest + shape + ", }");
  }

  private static Stream<String> ofDescrs(String descrs) {
    String rest = ", 'fortran_order': False, 'shape': (4,), }";
    return Stream.of(descrs.split("; ")).map(descr -> "{'descr': " + descr + rest);
  }

  @ParameterizedTest
  @MethodSource
  void readsWhatNumPyReads(String dict) throws IOException {
    byte[] data = NpyFiles.data("<f8", 1, -2, 0.5, 3);
    for (int version = 1; version <= 2; version++) {
      assertThat(read(file(NpyFiles.bytes(version, dict, data)))).containsExactly(1, -2, 0.5, 3);
    }
    byte[] third = NpyFiles.bytes(3, dict, data);
    assertThat(isRejected(third)).as("version 3").isEqualTo(dict.matches("(?s).*\\d ?L.*"));
  }

  static Stream<String> refusesWhatNumPyRefuses() {
    return Stream.of(
            ofShapes(
                "(2LL, 2); (2L2, 2); (2l, 2); (++2, 2); (02, 2); (1+1, 2); (2,,2); (,); (4); (4L); 4; [4]; (None,); (4.0,)"),
            ofDescrs("b'<f8'; None; '<float64'; 'F8'; 'd8'; '<f8 '; '@f8'"),
            Stream.of(
                "{'descr': '<f8', 'fortran_order': 0, 'shape': (4,)}",
                "{'descr': '<f8', 'fortran_order': 'False', 'shape': (4,)}",
                "{'descr': '<f8', 'fortran_order': false, 'shape': (4,)}",
                "{'descr': '<f8', 'fortran_order': False, 'shape': (4,)},",
                "{'descr': '<f8', 'fortran_order': False, 'shape': (4,),,}",
                "{,'descr': '<f8', 'fortran_order': False, 'shape': (4,)}",
                "{b'descr': '<f8', 'fortran_order': False, 'shape': (4,)}"))
        .flatMap(headers -> headers);
  }

  @ParameterizedTest
  @MethodSource
  void refusesWhatNumPyRefuses(String dict) throws IOException {
    assertThat(isRejected(NpyFiles.bytes(1, dict, NpyFiles.data("<f8", 1, -2, 0.5, 3)))).isTrue();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "(2LL, 2), } | at its character 53: ',' or ')' is expected, not 'L'",
        "(2 2), }    | at its character 53: ',' or ')' is expected, not '2'",
        "(2, two), } | at its character 54: a value is expected, not 't'",
        "(2, 2, }    | at its character 57: a value is expected, not '}'",
        "(2, -), }   | at its character 55: a number is expected, not ')'",
        "(2, 2)      | at its character 56: ',' or '}' is expected, not the end",
        "(2, 2), } ; | at its character 60: the end is expected, not ';'",
        "(4,), 'x'   | at its character 59: ':' is expected, not the end",
      })
  void tellsWhatIsExpected(String rest, String message) throws IOException {
    String dict = "{'descr': '<f8', 'fortran_order': False, 'shape': " + rest.strip();
    rejects(message.strip(), NpyFiles.bytes(1, dict, NpyFiles.data("<f8", 1, 2, 3, 4)));
  }

  @ParameterizedTest
  @CsvSource({
    "<f f4 |f4 float32 single f, <f4",
    ">f, >f4",
    "<e f2 |f2 float16 half e, <f2",
    ">e, >f2",
    ">d, >f8"
  })
  @EnabledIf("isLittleEndian")
  void spellingsOfFloats(String descrs, String same) throws IOException {
    for (String descr : descrs.split(" ")) {
      byte[] data = NpyFiles.data(same, 1, -2, 0.5);
      assertThat(read(file(NpyFiles.bytes(1, NpyFiles.dict(descr, false, 3), data))))
          .as(descr)
          .containsExactly(1, -2, 0.5);
    }
  }

  static boolean isLittleEndian() {
    return ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;
  }

  /** Each of the numbers there are: a bfloat16 is the upper half of a float32. */
  @ParameterizedTest
  @ValueSource(strings = {"<V2", "|V2", "V2", "bfloat16", ">V2", "<u2", ">u2"})
  @EnabledIf("isLittleEndian")
  void widensBfloat16(String descr) throws IOException {
    int count = 1 << 16;
    byte[] data = new byte[2 * count];
    int low = descr.startsWith(">") ? 1 : 0;
    for (int bits = 0; bits < count; bits++) {
      data[2 * bits + low] = (byte) bits;
      data[2 * bits + 1 - low] = (byte) (bits >> 8);
    }
    Path file = file(NpyFiles.bytes(1, NpyFiles.dict(descr, false, 256, 256), data));
    Path name = descr.endsWith("u2") ? Path.of(file + ":bfloat16") : file;
    try (Arena arena = Arena.ofConfined()) {
      Npy.Array array = Npy.readFloats(name, arena);
      assertThat(array.type()).isEqualTo(Type.BFLOAT16);
      for (int bits = 0; bits < count; bits++) {
        assertThat(array.data().getAtIndex(ValueLayout.JAVA_INT, bits)).isEqualTo(bits << 16);
      }
      try (ArrayReader in = Npy.openFloats(name)) {
        Npy.Array rows = in.rows(3, 5, arena);
        assertThat(rows.data().mismatch(array.withRows(3, 5).data())).isEqualTo(-1);
        assertThat(rows.shape()).containsExactly(2, 256);
      }
    }
  }

  @Test
  void bfloat16IsOfTwoBytes() throws IOException {
    refuses(
        Path.of(file(GOOD_FILE) + ":bfloat16"),
        "has the dtype <f4: :bfloat16 is for <u2, the bits of bfloat16");
  }

  private static void refuses(Path file, String message) {
    assertThatThrownBy(() -> read(file))
        .isInstanceOf(NpyException.class)
        .hasMessageContaining(message);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      value = {
        "<i1     ; convert it, np.save('a.npy', np.load('a.npy').astype('float32'))",
        "|u1     ; np.load('a.npy').astype('float32')",
        ">i2     ; np.load('a.npy').astype('float32')",
        "<u2     ; put :bfloat16 behind the name if it has the bits of bfloat16",
        "<i4     ; np.load('a.npy').astype('float64')",
        "uint64  ; np.load('a.npy').astype('float64')",
        "|b1     ; np.load('a.npy').astype('float32')",
        "<f16    ; np.load('a.npy').astype('float64')",
        "<c8     ; take the real part, np.save('a.npy', np.load('a.npy').real)",
        "|S8     ; np.load('a.npy').astype('float64')",
        "<U5     ; np.load('a.npy').astype('float64')",
        "<M8[ns] ; np.load('a.npy').astype('float64')",
        "|O      ; np.load('a.npy', allow_pickle=True).astype('float64')",
        "|V4     ; say what its bytes are, np.save('a.npy', np.load('a.npy').view('float32'))",
        "|V8     ; np.load('a.npy').view('float64')",
        "|V3     ; NumPy does not know it either",
        "<f1     ; NumPy does not know it either",
        "<g2     ; NumPy does not know it either",
        "float8_e4m3fn ; NumPy does not know it either"
      })
  void converted(String descr, String advice) throws IOException {
    Path file = file(header(NpyFiles.dict(descr, false, 3)));
    assertThatThrownBy(() -> read(file))
        .isInstanceOf(NpyException.class)
        .hasMessageStartingWith("has the unsupported dtype " + descr + ": ")
        .hasMessageContaining(advice);
    if (advice.startsWith("NumPy")) {
      assertThatThrownBy(() -> read(file)).hasMessageContaining("; save the array as x.astype(");
    }
  }

  @ParameterizedTest
  @CsvSource({
    "i1, -128, 127",
    "u1, 128, 255",
    "i2, -32768, 32767",
    "u2, 32768, 65535",
    "i4, -2147483648, 2147483647",
    "u4, 2147483648, 4294967295",
    "i8, -9223372036854775808, 9223372036854775807",
    "u8, 0, 9223372036854775807"
  })
  void readsIntegers(String type, long least, long most) throws IOException {
    int size = type.charAt(1) - '0';
    for (String order : new String[] {"<", ">"}) {
      ByteBuffer data = ByteBuffer.allocate(3 * size);
      for (long value : new long[] {least, 1, most}) {
        for (int k = 0; k < size; k++) {
          int shift = 8 * (order.equals("<") ? k : size - 1 - k);
          data.put((byte) (value >> shift));
        }
      }
      String dict = NpyFiles.dict(order + type, false, 3);
      try (Arena arena = Arena.ofConfined()) {
        Npy.Array array = Npy.readIntegers(file(NpyFiles.bytes(1, dict, data.array())), arena);
        assertThat(array.data().toArray((ValueLayout.OfLong) array.element()))
            .containsExactly(least, 1, most);
      }
    }
  }

  @Test
  void writesTheBytesOfNumPy() {
    String dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";
    assertThat(text(Npy.header(ValueLayout.JAVA_FLOAT, 3, 4)))
        .isEqualTo("\u0093NUMPY\1\0v\0" + dict + " ".repeat(117 - dict.length()) + "\n");
    assertThat(text(Npy.header(ValueLayout.JAVA_DOUBLE, 5))).contains("'<f8'", "'shape': (5,), ");
    assertThat(text(Npy.header(ValueLayout.JAVA_INT, 5, 2))).contains("'<i4'", "'shape': (5, 2), ");
    assertThat(text(Npy.header(ValueLayout.JAVA_LONG, 2))).contains("'<i8'");
    assertThat(text(Npy.header("|S3"))).contains("'descr': '|S3'", "'shape': (), ");
    // equally long for all numbers of rows: one for none is overwritten when the number is known
    for (long rows : new long[] {0, 9, 10, 1L << 32, Long.MAX_VALUE}) {
      assertThat(Npy.header(ValueLayout.JAVA_DOUBLE, rows)).hasSize(128);
      assertThat(Npy.header(ValueLayout.JAVA_INT, rows, 2)).hasSize(128);
    }
  }

  private static String text(byte[] header) {
    return new String(header, StandardCharsets.ISO_8859_1);
  }

  @Test
  void readsWhatItWrites() throws IOException {
    for (int k = 0; k < 25; k++) {
      double[] want = new Random(k).doubles((long) (k / 5) * (k % 5)).toArray();
      byte[] header = Npy.header(ValueLayout.JAVA_DOUBLE, k / 5, k % 5);
      byte[] data = NpyFiles.data("<f8", want);
      ByteBuffer whole = ByteBuffer.allocate(header.length + data.length).put(header).put(data);
      assertThat(read(file(whole.array()))).containsExactly(want);
    }
  }

  static Stream<Arguments> hostile() {
    byte[] good = GOOD_FILE;
    String padded = GOOD + " ".repeat(10_001 - GOOD.length());
    return Stream.of(
        Arguments.of("is empty", new byte[0]),
        Arguments.of("is not a .npy file", "hello, world".getBytes(StandardCharsets.US_ASCII)),
        Arguments.of("is not a .npy file", Arrays.copyOf(good, 2)),
        Arguments.of("truncated", Arrays.copyOf(good, 8)),
        Arguments.of( // two calls of np.save
            "has %d bytes after its data: shape (2, 3) of <f4 needs 24; it holds several arrays"
                .formatted(good.length),
            ByteBuffer.allocate(2 * good.length).put(good).put(good).array()),
        Arguments.of("version 4.0", NpyFiles.bytes(4, GOOD, GOOD_DATA)),
        Arguments.of("version 0.0", NpyFiles.bytes(0, GOOD, GOOD_DATA)),
        Arguments.of("version 1.9", with(good.clone(), 7, 9)),
        Arguments.of("claims 9999 bytes", with(with(good.clone(), 8, 0x0f), 9, 0x27)),
        Arguments.of("header of 10001 bytes, too long", NpyFiles.bytes(1, padded, GOOD_DATA)),
        Arguments.of(
            "header of 42781901", with(NpyFiles.bytes(2, GOOD + "  ", GOOD_DATA), 11, 255)),
        Arguments.of("65 dimensions", header(NpyFiles.dict("<f4", false, new long[65]))),
        Arguments.of("too long", NpyFiles.bytes(2, GOOD + " ".repeat(1 << 20), GOOD_DATA)));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("hostile")
  void rejects(String message, byte[] bytes) throws IOException {
    refuses(file(bytes), message);
  }

  /** Headers of 24 bytes of data, in which DESCR is that of the six floats, ONES are 9800 digits and _1 is 4800 times _1. */
  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      quoteCharacter = '`',
      value = {
        "malformed; ``",
        "malformed; {",
        "malformed; []",
        "malformed; {'descr'}",
        "malformed; {'descr': '<f4}",
        "malformed; {'descr': <f4}",
        "malformed; {'descr': [('a', '<f4'}",
        "malformed; {'descr': [('a', '<f4",
        "malformed; {'fortran_order': Maybe}",
        "malformed; {'fortran_order': Tru",
        "malformed; {'shape': (3 4)}",
        "malformed; {'shape': (3, -)}",
        "malformed; {'shape': (0x, 3)}",
        "malformed; {'shape': (3,",
        "malformed; {'descr': '<f4' 'shape': (1,)}",
        "malformed; {DESCR'shape': (6,), }x",
        "malformed; {DESCR'shape': (6,), }NUL",
        "has the shape 3 in its header, where NumPy has a tuple: (3,); {'shape': 3}",
        "has the shape (4) in its header; {'shape': (4)}",
        "has the shape [2, 3] in its header; {'shape': [2, 3]}",
        "has the shape 1111; {'shape': ONES}",
        "where NumPy has a tuple of integers; {'shape': (True, 6)}",
        "at its character 12: ',' or ')' is expected, not '.'; {'shape': (2.0, 3)}",
        "lacks; {}",
        "lacks; {'descr': '<f4', 'shape': (2, 3)}",
        "key 'evil'; {'evil': 1}",
        "key 'descr'; {'descr': '<f4', 'descr': '<f4'}",
        "negative dimension -2; {DESCR'shape': (-2, -3)}",
        "negative dimension; {DESCR'shape': (-ONES, 3)}",
        "impossible dimension 999999999999999999999999999999; {DESCR'shape': (999999999999999999999999999999, 3)}",
        "has the impossible dimension 11111111111111111111111111111111111…111111111111111111111111 in its shape; {DESCR'shape': (ONES, 3)}",
        "impossible dimension; {DESCR'shape': (1_1, 3)}",
        "impossible dimension; {DESCR'shape': (0x_1, 3)}",
        "impossible dimension; {DESCR'shape': (0oONES, 3)}",
        "impossible dimension; {DESCR'shape': (0bONES, 3)}",
        "has 24 bytes after its data: shape (0, 3) of <f4 needs 0; {DESCR'shape': (0, 3)}",
        "no file can hold its shape (2000000000, 2000000000, 9) of <f4; {DESCR'shape': (2000000000, 2000000000, 9)}",
        "no file can hold; {DESCR'shape': (9223372036854775807, 2)}",
        "needs 8000000000 bytes of data, 24 follow; {DESCR'shape': (2000000000, 1)}",
        "needs 28 bytes of data, 24 follow; {DESCR'shape': (7,)}",
        "has 4 bytes after its data; {DESCR'shape': (5,)}",
        "unsupported dtype :; {'descr': '', 'fortran_order': False, 'shape': (6,)}",
        "unsupported dtype [('a', '<f4'), ('b)', '<i2', (2,))]:; {'descr': [('a', '<f4'), ('b)', '<i2', (2,))], 'fortran_order': False, 'shape': (3,)}"
      })
  void rejectsHeaders(String message, String text) throws IOException {
    String dict =
        text.replace("DESCR", "'descr': '<f4', 'fortran_order': False, ")
            .replace("ONES", "1".repeat(9800)) // as many as a header holds: they take no stack
            .replace("NUL", "\0")
            .replace("_1", "_1".repeat(4800));
    rejects(message, NpyFiles.bytes(1, dict, GOOD_DATA));
  }

  private static byte[] header(String dict) {
    return NpyFiles.bytes(1, dict, GOOD_DATA);
  }

  private static byte[] with(byte[] bytes, int index, int value) {
    bytes[index] = (byte) value;
    return bytes;
  }

  @Test
  void rejectsEveryTruncation() throws IOException {
    for (int length = 0; length < GOOD_FILE.length; length++) {
      assertThat(isRejected(Arrays.copyOf(GOOD_FILE, length))).as("%d", length).isTrue();
    }
    assertThat(isRejected(GOOD_FILE)).isFalse();
  }

  @Test
  void rejectsWhatIsNoFile() {
    refuses(folder, "is a directory");
    assertThatThrownBy(() -> read(folder.resolve("none.npy")))
        .isInstanceOf(NoSuchFileException.class);
  }

  @Test
  @EnabledOnOs({OS.LINUX, OS.MAC})
  void rejectsDevicesAndPipes() throws Exception {
    Path pipe = folder.resolve("pipe");
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
    for (Path file : new Path[] {pipe, Path.of("/dev/zero")}) {
      refuses(file, "not a regular file");
    }
  }

  @Test
  void mutatedFilesGiveNothingButNpyExceptions() throws IOException {
    Random random = new Random(42);
    byte[] valid = NpyFiles.bytes(1, NpyFiles.dict("<f4", true, 3, 2), GOOD_DATA);
    String alphabet = "{}[]()',:\"0123456789- TrueFalse<>|=fdi48\0\n";
    int rejected = 0;
    for (int round = 0; round < 1_000; round++) {
      byte[] bytes = valid.clone();
      for (int n = 1 + random.nextInt(4); n > 0; n--) {
        bytes[random.nextInt(bytes.length)] =
            random.nextBoolean()
                ? (byte) random.nextInt(256)
                : (byte) alphabet.charAt(random.nextInt(alphabet.length()));
      }
      if (random.nextInt(4) == 0) {
        bytes = Arrays.copyOf(bytes, random.nextInt(2 * bytes.length));
      }
      rejected += isRejected(bytes) ? 1 : 0;
    }
    assertThat(rejected).isBetween(500, 999); // only data bytes may change unnoticed
  }

  @Test
  void randomHeadersGiveNothingButNpyExceptions() throws IOException {
    Random random = new Random(7);
    String[] pieces = {
      "{", "}", "'descr'", "'fortran_order'", "'shape'", ":", ",", "'<f4'", "True", "False", "(",
      ")", "[", "]", "6", "-1", "99999999999999999999", " ", "\"", "'", "\0", "\u00e9"
    };
    for (int round = 0; round < 1_000; round++) {
      StringBuilder dict = new StringBuilder(random.nextBoolean() ? "{" : "");
      for (int n = random.nextInt(20); n > 0; n--) {
        dict.append(pieces[random.nextInt(pieces.length)]);
      }
      assertThat(isRejected(NpyFiles.bytes(1 + random.nextInt(3), dict.toString(), GOOD_DATA)))
          .as(dict.toString())
          .isTrue();
    }
  }

  /** Any other exception, or an Error, fails the test. */
  private boolean isRejected(byte[] bytes) throws IOException {
    try {
      read(file(bytes));
      return false;
    } catch (NpyException e) {
      assertThat(e.getMessage()).isNotBlank();
      return true;
    }
  }

  @Test
  void readsLabels() throws IOException {
    Path file = NpyFiles.write(folder.resolve("l.npy"), "<i4", new long[] {3}, 7, -1, 9);
    try (Arena arena = Arena.ofConfined()) {
      Npy.Array array = Npy.readInts(file, arena);
      assertThat(array.data().toArray((ValueLayout.OfInt) array.element()))
          .containsExactly(7, -1, 9);
      Path floats = NpyFiles.write(folder.resolve("f.npy"), "<f4", new long[] {1}, 7);
      assertThatThrownBy(() -> Npy.readInts(floats, arena)).hasMessageContaining("<f4");
    }
  }
}
