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
  private static final byte[] NO_DATA = {};
  private static final String GOOD = NpyFiles.dict("<f4", false, 2, 3);
  private static final byte[] GOOD_DATA = NpyFiles.data("<f4", 1, 2, 3, 4, 5, 6);

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
    assertThat(
            read(
                file(
                    NpyFiles.bytes(
                        1,
                        NpyFiles.dict(descr, true, 3, 2),
                        NpyFiles.data(descr, 1, 3, 5, 2, 4, 6)))))
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

  @Test
  void readsAnyLayoutOfTheHeader() throws IOException {
    for (String dict :
        new String[] {
          "{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}",
          "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(2,3,)}",
          "  { 'descr' : '<f4' , 'fortran_order' : False ,\n 'shape' : ( 2 , 3 ) , }   \n",
        }) {
      assertThat(read(file(NpyFiles.bytes(1, dict, GOOD_DATA)))).containsExactly(1, 2, 3, 4, 5, 6);
    }
  }

  /** What NumPy 2.4 makes of each header, of an array of (2, 2) or (4,) in 32 bytes. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2L, 2L), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2 L, 2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (+2, 2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (+ 2, 0x2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (0b10, 0o2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': ((2), 2,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': ((2, 2)), }",
        "{'descr': '<f8', 'fortran_order': (False), 'shape': (2,\n2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, # rows\n 2), } # all",
        "({'descr': '<f8', 'fortran_order': False, 'shape': (4,)})",
        "\n\t{'descr': ('<f8'), 'fortran_order': False, 'shape': (4,)}\f\n\n",
        "{u'descr': u'<f8', U'fortran_order': False, r'shape': (4L,)}",
        "{\"shape\": (4,), 'fortran_order': False, R\"descr\": \"<f8\"}",
        "{'descr': '<d', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '|d', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': 'd', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': 'f8', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '|f8', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '=f8', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '<f08', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': 'float64', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': 'double', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': 'float', 'fortran_order': False, 'shape': (4,), }",
      })
  void readsWhatNumPyReads(String dict) throws IOException {
    byte[] data = NpyFiles.data("<f8", 1, -2, 0.5, 3);
    for (int version = 1; version <= 2; version++) {
      assertThat(read(file(NpyFiles.bytes(version, dict, data)))).containsExactly(1, -2, 0.5, 3);
    }
    byte[] third = NpyFiles.bytes(3, dict, data);
    assertThat(isRejected(third)).as("version 3").isEqualTo(dict.matches("(?s).*\\d ?L.*"));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2LL, 2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2L2, 2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2l, 2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (++2, 2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (02, 2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1+1, 2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2,,2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4L), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': 4, }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': [4], }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (None,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4.0,), }",
        "{'descr': '<f8', 'fortran_order': 0, 'shape': (4,)}",
        "{'descr': '<f8', 'fortran_order': 'False', 'shape': (4,)}",
        "{'descr': '<f8', 'fortran_order': false, 'shape': (4,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4,)},",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4,),,}",
        "{,'descr': '<f8', 'fortran_order': False, 'shape': (4,)}",
        "{b'descr': '<f8', 'fortran_order': False, 'shape': (4,)}",
        "{'descr': b'<f8', 'fortran_order': False, 'shape': (4,)}",
        "{'descr': None, 'fortran_order': False, 'shape': (4,)}",
        "{'descr': '<float64', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': 'F8', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': 'd8', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '<f8 ', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '@f8', 'fortran_order': False, 'shape': (4,), }",
      })
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
    Path file = file(NpyFiles.bytes(1, dict, NpyFiles.data("<f8", 1, 2, 3, 4)));
    assertThatThrownBy(() -> read(file)).hasMessageContaining(message.strip());
  }

  @ParameterizedTest
  @CsvSource({
    "<f, <f4",
    ">f, >f4",
    "f4, <f4",
    "|f4, <f4",
    "float32, <f4",
    "single, <f4",
    "f, <f4",
    "<e, <f2",
    ">e, >f2",
    "f2, <f2",
    "|f2, <f2",
    "float16, <f2",
    "half, <f2",
    "e, <f2",
    ">d, >f8"
  })
  @EnabledIf("isLittleEndian")
  void spellingsOfFloats(String descr, String same) throws IOException {
    byte[] data = NpyFiles.data(same, 1, -2, 0.5);
    assertThat(read(file(NpyFiles.bytes(1, NpyFiles.dict(descr, false, 3), data))))
        .containsExactly(1, -2, 0.5);
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
    Path file = file(NpyFiles.bytes(1, GOOD, GOOD_DATA));
    assertThatThrownBy(() -> read(Path.of(file + ":bfloat16")))
        .isInstanceOf(NpyException.class)
        .hasMessage("has the dtype <f4: :bfloat16 is for <u2, the bits of bfloat16");
  }

  /** The file of two calls of np.save. */
  @Test
  void severalArraysInOneFile() throws IOException {
    byte[] one = NpyFiles.bytes(1, GOOD, GOOD_DATA);
    byte[] two = Arrays.copyOf(one, 2 * one.length);
    System.arraycopy(one, 0, two, one.length, one.length);
    assertThatThrownBy(() -> read(file(two)))
        .isInstanceOf(NpyException.class)
        .hasMessageContaining(
            "has %d bytes after its data: shape (2, 3) of <f4 needs 24; it holds several arrays",
            one.length);
  }

  static Stream<Arguments> converted() {
    return Stream.of(
        Arguments.of("<i1", "convert it, np.save('a.npy', np.load('a.npy').astype('float32'))"),
        Arguments.of("|u1", "np.load('a.npy').astype('float32')"),
        Arguments.of(">i2", "np.load('a.npy').astype('float32')"),
        Arguments.of("<u2", "put :bfloat16 behind the name if it has the bits of bfloat16"),
        Arguments.of("<i4", "np.load('a.npy').astype('float64')"),
        Arguments.of("uint64", "np.load('a.npy').astype('float64')"),
        Arguments.of("|b1", "np.load('a.npy').astype('float32')"),
        Arguments.of("<f16", "np.load('a.npy').astype('float64')"),
        Arguments.of("<c8", "take the real part, np.save('a.npy', np.load('a.npy').real)"),
        Arguments.of("|S8", "np.load('a.npy').astype('float64')"),
        Arguments.of("<U5", "np.load('a.npy').astype('float64')"),
        Arguments.of("<M8[ns]", "np.load('a.npy').astype('float64')"),
        Arguments.of("|O", "np.load('a.npy', allow_pickle=True).astype('float64')"),
        Arguments.of("|V4", "np.load('a.npy').view('float64')"),
        Arguments.of("<f1", "NumPy does not know it either; save the array as x.astype('float64')"),
        Arguments.of("<g2", "NumPy does not know it either; save the array as x.astype("),
        Arguments.of("float8_e4m3fn", "NumPy does not know it either; save the array as"));
  }

  @ParameterizedTest
  @MethodSource
  void converted(String descr, String advice) throws IOException {
    Path file = file(header(NpyFiles.dict(descr, false, 3)));
    assertThatThrownBy(() -> read(file))
        .isInstanceOf(NpyException.class)
        .hasMessageStartingWith("has the unsupported dtype " + descr + ": ")
        .hasMessageContaining(advice);
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
    byte[] header = Npy.header(ValueLayout.JAVA_FLOAT, 3, 4);
    assertThat(header).hasSize(128).startsWith(0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0);
    assertThat(new String(header, 10, 118, StandardCharsets.US_ASCII))
        .isEqualTo(dict + " ".repeat(117 - dict.length()) + "\n");
    assertThat(new String(Npy.header(ValueLayout.JAVA_DOUBLE, 5), StandardCharsets.ISO_8859_1))
        .contains("'<f8'", "'shape': (5,), ");
    assertThat(new String(Npy.header(ValueLayout.JAVA_INT, 5, 2), StandardCharsets.ISO_8859_1))
        .contains("'<i4'", "'shape': (5, 2), ");
    assertThat(new String(Npy.header(ValueLayout.JAVA_LONG, 2), StandardCharsets.ISO_8859_1))
        .contains("'<i8'");
    assertThat(new String(Npy.header("|S3"), StandardCharsets.ISO_8859_1))
        .contains("'descr': '|S3'", "'shape': (), ");
  }

  /** Headers are equally long for all numbers of rows: one for no rows is overwritten when the number is known at the end. */
  @Test
  void headersOfAnyNumberOfRowsAreOfOneLength() {
    for (long rows : new long[] {0, 9, 10, 1L << 32, Long.MAX_VALUE}) {
      assertThat(Npy.header(ValueLayout.JAVA_DOUBLE, rows)).hasSize(128);
      assertThat(Npy.header(ValueLayout.JAVA_INT, rows, 2)).hasSize(128);
    }
  }

  @Test
  void readsWhatItWrites() throws IOException {
    Random random = new Random(1);
    for (int rows = 0; rows < 5; rows++) {
      for (int columns = 0; columns < 5; columns++) {
        double[] want = random.doubles((long) rows * columns).toArray();
        byte[] header = Npy.header(ValueLayout.JAVA_DOUBLE, rows, columns);
        byte[] data = NpyFiles.data("<f8", want);
        byte[] whole = Arrays.copyOf(header, header.length + data.length);
        System.arraycopy(data, 0, whole, header.length, data.length);
        assertThat(read(file(whole))).containsExactly(want);
      }
    }
  }

  static Stream<Arguments> hostile() {
    String huge = "9".repeat(30);
    return Stream.of(
        Arguments.of("is empty", NO_DATA),
        Arguments.of("is not a .npy file", "hello, world".getBytes(StandardCharsets.US_ASCII)),
        Arguments.of("is not a .npy file", new byte[] {(byte) 0x93, 'N'}),
        Arguments.of("truncated", new byte[] {(byte) 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0}),
        Arguments.of("version 4.0", NpyFiles.bytes(4, GOOD, GOOD_DATA)),
        Arguments.of("version 0.0", NpyFiles.bytes(0, GOOD, GOOD_DATA)),
        Arguments.of("version 1.9", with(NpyFiles.bytes(1, GOOD, GOOD_DATA), 7, 9)),
        Arguments.of(
            "claims 9999 bytes", with(with(NpyFiles.bytes(1, GOOD, GOOD_DATA), 8, 0x0f), 9, 0x27)),
        Arguments.of(
            "has a header of 10001 bytes, too long",
            NpyFiles.bytes(1, GOOD + " ".repeat(10_001 - GOOD.length()), GOOD_DATA)),
        Arguments.of(
            "has a header of 42781901", with(NpyFiles.bytes(2, GOOD + "  ", GOOD_DATA), 11, 255)),
        Arguments.of("too long", NpyFiles.bytes(2, GOOD + " ".repeat(1 << 20), GOOD_DATA)),
        Arguments.of("malformed", header("")),
        Arguments.of("malformed", header("{")),
        Arguments.of("malformed", header("[]")),
        Arguments.of("malformed", header("{'descr'}")),
        Arguments.of("malformed", header("{'descr': '<f4}")),
        Arguments.of("malformed", header("{'descr': <f4}")),
        Arguments.of("malformed", header("{'descr': [('a', '<f4'}")),
        Arguments.of("malformed", header("{'descr': [('a', '<f4")),
        Arguments.of("malformed", header("{'fortran_order': Maybe}")),
        Arguments.of("malformed", header("{'fortran_order': Tru")),
        Arguments.of(
            "has the shape 3 in its header, where NumPy has a tuple: (3,)", header("{'shape': 3}")),
        Arguments.of("has the shape (4) in its header", header("{'shape': (4)}")),
        Arguments.of("has the shape [2, 3] in its header", header("{'shape': [2, 3]}")),
        Arguments.of("where NumPy has a tuple of integers", header("{'shape': (True, 6)}")),
        Arguments.of(
            "at its character 12: ',' or ')' is expected, not '.'", header("{'shape': (2.0, 3)}")),
        Arguments.of("malformed", header("{'shape': (3 4)}")),
        Arguments.of("malformed", header("{'shape': (3, -)}")),
        Arguments.of("malformed", header("{'shape': (0x, 3)}")),
        Arguments.of("malformed", header("{'shape': (3,")),
        Arguments.of("malformed", header(GOOD + "x")),
        Arguments.of("malformed", header(GOOD + "\0")),
        Arguments.of("malformed", header("{'descr': '<f4' 'shape': (1,)}")),
        Arguments.of("lacks", header("{}")),
        Arguments.of("lacks", header("{'descr': '<f4', 'shape': (2, 3)}")),
        Arguments.of("key 'evil'", header("{'evil': 1}")),
        Arguments.of("key 'descr'", header("{'descr': '<f4', 'descr': '<f4'}")),
        Arguments.of("negative dimension -2", header(NpyFiles.dict("<f4", false, -2, -3))),
        Arguments.of("impossible dimension " + huge, header(GOOD.replace("2", huge))),
        // of as many digits as a header holds, a number takes no stack, and an error is short
        Arguments.of(
            "has the impossible dimension 11111111111111111111111111111111111…111111111111111111111111 in its shape",
            header(GOOD.replace("2", "1".repeat(9800)))),
        Arguments.of("impossible dimension", header(GOOD.replace("2", "1" + "_1".repeat(4800)))),
        Arguments.of("impossible dimension", header(GOOD.replace("2", "0x" + "_1".repeat(4800)))),
        Arguments.of("impossible dimension", header(GOOD.replace("2", "0o" + "7".repeat(9800)))),
        Arguments.of("impossible dimension", header(GOOD.replace("2", "0b" + "1".repeat(9800)))),
        Arguments.of("negative dimension", header(GOOD.replace("2", "-" + "1".repeat(9800)))),
        Arguments.of("has the shape ", header("{'shape': " + "1".repeat(9800) + "}")),
        Arguments.of(
            "has 24 bytes after its data: shape (0, 3) of <f4 needs 0",
            header(GOOD.replace("2", "0" + "_0".repeat(4800)))),
        Arguments.of("65 dimensions", header(NpyFiles.dict("<f4", false, new long[65]))),
        Arguments.of(
            "no file can hold its shape (2000000000, 2000000000) of <f8",
            header(NpyFiles.dict("<f8", false, 2_000_000_000, 2_000_000_000))),
        Arguments.of(
            "needs 8000000000 bytes of data, 24 follow",
            header(NpyFiles.dict("<f4", false, 2_000_000_000, 1))),
        Arguments.of("no file can hold", header(NpyFiles.dict("<f4", false, Long.MAX_VALUE, 2))),
        Arguments.of("needs 28 bytes of data, 24 follow", header(NpyFiles.dict("<f4", false, 7))),
        Arguments.of("has 4 bytes after its data", header(NpyFiles.dict("<f4", false, 5))),
        Arguments.of("unsupported dtype <i8", header(NpyFiles.dict("<i8", false, 3))),
        Arguments.of("unsupported dtype |O", header(NpyFiles.dict("|O", false, 3))),
        Arguments.of("unsupported dtype :", header(NpyFiles.dict("", false, 6))),
        Arguments.of(
            "unsupported dtype [('a', '<f4'), ('b)', '<i2', (2,))]:",
            header(
                "{'descr': [('a', '<f4'), ('b)', '<i2', (2,))], "
                    + "'fortran_order': False, 'shape': (3,), }")));
  }

  private static byte[] header(String dict) {
    return NpyFiles.bytes(1, dict, GOOD_DATA);
  }

  private static byte[] with(byte[] bytes, int index, int value) {
    bytes[index] = (byte) value;
    return bytes;
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("hostile")
  void rejects(String message, byte[] bytes) throws IOException {
    Path file = file(bytes);
    assertThatThrownBy(() -> read(file))
        .isInstanceOf(NpyException.class)
        .hasMessageContaining(message);
  }

  @Test
  void rejectsEveryTruncation() throws IOException {
    byte[] whole = NpyFiles.bytes(1, GOOD, GOOD_DATA);
    for (int length = 0; length < whole.length; length++) {
      Path file = file(Arrays.copyOf(whole, length));
      assertThatThrownBy(() -> read(file)).isInstanceOf(NpyException.class);
    }
    assertThat(read(file(whole))).hasSize(6);
  }

  @Test
  void rejectsWhatIsNoFile() {
    assertThatThrownBy(() -> read(folder))
        .isInstanceOf(NpyException.class)
        .hasMessageContaining("is a directory");
    assertThatThrownBy(() -> read(folder.resolve("none.npy")))
        .isInstanceOf(NoSuchFileException.class);
  }

  @Test
  @EnabledOnOs({OS.LINUX, OS.MAC})
  void rejectsDevicesAndPipes() throws Exception {
    Path pipe = folder.resolve("pipe");
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
    for (Path file : new Path[] {pipe, Path.of("/dev/zero")}) {
      assertThatThrownBy(() -> read(file))
          .isInstanceOf(NpyException.class)
          .hasMessageContaining("not a regular file");
    }
  }

  @Test
  void mutatedFilesGiveNothingButNpyExceptions() throws IOException {
    Random random = new Random(42);
    byte[] valid = NpyFiles.bytes(1, NpyFiles.dict("<f4", true, 3, 2), GOOD_DATA);
    String alphabet = "{}[]()',:\"0123456789- TrueFalse<>|=fdi48\0\n";
    int rejected = 0;
    for (int round = 0; round < 2_000; round++) {
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
    assertThat(rejected).isBetween(1_000, 1_999); // only data bytes may change unnoticed
  }

  @Test
  void randomHeadersGiveNothingButNpyExceptions() throws IOException {
    Random random = new Random(7);
    String[] pieces = {
      "{", "}", "'descr'", "'fortran_order'", "'shape'", ":", ",", "'<f4'", "True", "False", "(",
      ")", "[", "]", "6", "-1", "99999999999999999999", " ", "\"", "'", "\0", "\u00e9"
    };
    for (int round = 0; round < 2_000; round++) {
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
