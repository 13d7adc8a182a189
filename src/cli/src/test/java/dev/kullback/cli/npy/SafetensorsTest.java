package dev.kullback.cli.npy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.cli.testing.SafetensorsFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Files of safetensors, made of their specification's words. */
@Tag("module")
class SafetensorsTest {
  private static final String A =
      "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}";
  private static final String B =
      "\"b\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[24,32]}";
  private static final String META = "\"__metadata__\":{\"format\":\"pt\"}";
  private static final byte[] DATA = data();

  @TempDir Path folder;

  private static byte[] data() {
    ByteBuffer data = ByteBuffer.allocate(32).order(ByteOrder.LITTLE_ENDIAN);
    for (int k = 1; k <= 6; k++) {
      data.putFloat(k);
    }
    return data.putDouble(7).array();
  }

  private static double[] values(Npy.Array array) {
    long count = array.data().byteSize() / array.element().byteSize();
    return LongStream.range(0, count).mapToDouble(array::value).toArray();
  }

  private double[] read(String name) throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      return values(Npy.readFloats(folder.resolve(name), arena));
    }
  }

  private void write(String header, byte... data) throws IOException {
    SafetensorsFiles.write(folder.resolve("x.safetensors"), header, data);
  }

  private void writeOne(String dtype, String shape, byte[] data) throws IOException {
    String header = "{\"t\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[0,%d]}}";
    write(header.formatted(dtype, shape, data.length), data);
  }

  /** The data begin where the header ends, at any byte: it may be padded. */
  @Test
  void tensorsByName() throws IOException {
    for (int padding = 0; padding < 9; padding++) {
      write("{" + META + "," + B + "," + A + "}" + " ".repeat(padding), DATA);
      assertThat(read("x.safetensors:a")).containsExactly(1, 2, 3, 4, 5, 6);
      assertThat(read("x.safetensors:b")).containsExactly(7);
    }
    Files.move(folder.resolve("x.safetensors"), folder.resolve("X.Safetensors"));
    assertThat(read("X.Safetensors:b")).containsExactly(7);
    try (Arena arena = Arena.ofConfined();
        ArrayReader in = Npy.openFloats(folder.resolve("X.Safetensors:a"))) {
      Npy.Array rows = in.rows(1, 2, arena);
      assertThat(rows.shape()).containsExactly(1, 3);
      assertThat(values(rows)).containsExactly(4, 5, 6);
      assertThat(Npy.readShape(folder.resolve("X.Safetensors:a"))).containsExactly(2, 3);
    }
    write("{" + A.replace("\"a\"", "\"a:b.\u00fc\"") + "}", Arrays.copyOf(DATA, 24));
    assertThat(read("x.safetensors:a:b.\u00fc")).containsExactly(1, 2, 3, 4, 5, 6);
    assertThat(read("x.safetensors")).as("the only one").containsExactly(1, 2, 3, 4, 5, 6);
  }

  @Test
  void namesThatAreNot() throws IOException {
    write("{" + B + "," + A + "}", DATA);
    assertThatThrownBy(() -> read("x.safetensors:mean"))
        .isInstanceOf(NpyException.class)
        .hasMessage("no such array: the file has a, b");
    assertThatThrownBy(() -> read("x.safetensors"))
        .hasMessage("holds several arrays: name one, as in x.safetensors:a; it has a, b");
    write("{" + META + "}");
    assertThatThrownBy(() -> read("x.safetensors")).hasMessage("no array is in the file");
  }

  @ParameterizedTest
  @CsvSource({"F16, 2", "BF16, 2", "F32, 4", "F64, 8"})
  void floats(String dtype, int size) throws IOException {
    float[] want = {0, -0.0f, 1, -2.5f, 0x1p-14f, 24, Float.POSITIVE_INFINITY, Float.NaN};
    ByteBuffer data = ByteBuffer.allocate(size * want.length).order(ByteOrder.LITTLE_ENDIAN);
    for (float value : want) {
      switch (dtype) {
        case "F16" -> data.putShort(Float.floatToFloat16(value));
        case "BF16" -> data.putShort((short) (Float.floatToIntBits(value) >> 16));
        case "F32" -> data.putFloat(value);
        default -> data.putDouble(value);
      }
    }
    writeOne(dtype, "4,2", data.array());
    double[] wide = new double[want.length];
    Arrays.setAll(wide, k -> want[k]);
    assertThat(read("x.safetensors")).containsExactly(wide);
  }

  @ParameterizedTest
  @CsvSource({
    "I64, 8, float64",
    "I32, 4, float64",
    "I8, 1, float32",
    "BOOL, 1, float32",
    "F8_E4M3, 1, float64",
    "C64, 8, float64"
  })
  void otherTypes(String dtype, int size, String to) throws IOException {
    writeOne(dtype, "2", new byte[2 * size]);
    assertThatThrownBy(() -> read("x.safetensors"))
        .isInstanceOf(NpyException.class)
        .hasMessageStartingWith("has the unsupported dtype " + dtype + ": convert it in Python, ")
        .hasMessageContaining("t.to(torch." + to + ") for k, t in load_file('x.safetensors')");
  }

  @Test
  void integers() throws IOException {
    writeOne("U16", "2", new byte[] {1, 0, (byte) 0x80, (byte) 0xbf});
    try (Arena arena = Arena.ofConfined()) {
      Npy.Array ids = Npy.readIntegers(folder.resolve("x.safetensors:t"), arena);
      assertThat(ids.data().toArray(ValueLayout.JAVA_LONG)).containsExactly(1, 0xbf80);
    }
    assertThat(read("x.safetensors:t:bfloat16"))
        .as("the bits 0001 and bf80")
        .containsExactly(0x1p-133, -1);
  }

  /** What replaces a part of the header, or with {@code $} at its end. */
  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      quoteCharacter = '`',
      value = {
        "malformed header: it is not the JSON of safetensors at $; $; {}",
        "malformed header; }$; ``",
        "malformed header; ^.; [",
        "malformed header; \"a\":[^}]*}; 'a':{}",
        "malformed header; }$; ,}",
        "malformed header; .*; {}//",
        "malformed header; .*; `  `",
        "malformed header; .*; {\"a\":OPEN",
        "malformed header; ^.; {\"__metadata__\":OPENSHUT,",
        "malformed header; .*; {\"a\":[]}",
        "tensor a is in the header twice; \"b\"; \"a\"",
        "has an unexpected or repeated dtype; 24]}; 24],\"dtype\":\"F32\"}",
        "has an unexpected or repeated evil; 24]}; 24],\"evil\":1}",
        "has an unexpected or repeated dtype; \"F32\"; 4",
        "lacks a dtype, a shape; \"a\":[^}]*}; \"a\":{}",
        "lacks a dtype, a shape; 0,24]; 0,24,32]",
        "other than small integers; 2,3; 2,-3",
        "other than small integers; 2,3; 2,3.0",
        "other than small integers; 2,3; 2,\"3\"",
        "other than small integers; 2,3; 2,9999999999999999999",
        "but shape [2, 4] of F32; 2,3; 2,4",
        "but shape [999999999999999999, 999999999999999999] of F32; 2,3; 999999999999999999,999999999999999999",
        "data_offsets [20, 28]; 24,32; 20,28", // over a
        "data_offsets [25, 32]; 24,32; 25,32", // a gap
        "data_offsets [24, 40]; 24,32; 24,40", // beyond
        "data_offsets [24, 16]; 24,32; 24,16",
        "has 8 bytes after its last tensor; ,\"b\":[^}]*}; ``"
      })
  void hostile(String message, String part, String other) throws IOException {
    String header = ("{" + A + "," + B + "}").replaceFirst(part.strip(), other);
    int deep = 100_000;
    write(header.replace("OPEN", "[".repeat(deep)).replace("SHUT", "]".repeat(deep)), DATA);
    assertThatThrownBy(() -> read("x.safetensors:a"))
        .isInstanceOf(NpyException.class)
        .hasMessageContaining(message)
        .hasMessageMatching("[^\\r\\n]{1,400}");
  }

  @ParameterizedTest
  @CsvSource({"0", "1", "1000", "100000001", "9223372036854775807", "-1"})
  void lengthsOfTheHeader(long length) throws IOException {
    assertDamaged(0, length, "claim a header of " + Long.toUnsignedString(length) + " bytes");
  }

  @Test
  void textThatIsNotUtf8() throws IOException {
    assertDamaged(8, -1, "has a malformed header: it is not UTF-8");
  }

  private void assertDamaged(int at, long bytes, String message) throws IOException {
    write("{" + A + "," + B + "}", DATA);
    byte[] file = Files.readAllBytes(folder.resolve("x.safetensors"));
    ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN).putLong(at, bytes);
    Files.write(folder.resolve("x.safetensors"), file);
    assertThatThrownBy(() -> read("x.safetensors:a"))
        .isInstanceOf(NpyException.class)
        .hasMessageContaining(message);
  }

  @Test
  void damagedFilesGiveNothingButNpyExceptions() throws IOException {
    write("{" + META + "," + A + "," + B + "}", DATA);
    Path file = folder.resolve("x.safetensors");
    byte[] good = Files.readAllBytes(file);
    for (int length = 0; length < good.length; length++) {
      Files.write(file, Arrays.copyOf(good, length));
      assertThatThrownBy(() -> read("x.safetensors:a")).isInstanceOf(NpyException.class);
    }
    Random random = new Random(5);
    int rejected = 0;
    for (int round = 0; round < 1000; round++) {
      byte[] bytes = good.clone();
      for (int n = 1 + random.nextInt(3); n > 0; n--) {
        bytes[random.nextInt(bytes.length - DATA.length)] ^= (byte) (1 << random.nextInt(8));
      }
      Files.write(file, bytes);
      try {
        assertThat(read("x.safetensors:a")).hasSize(6);
      } catch (NpyException e) {
        rejected++;
      }
    }
    assertThat(rejected).isBetween(600, 999);
  }
}
