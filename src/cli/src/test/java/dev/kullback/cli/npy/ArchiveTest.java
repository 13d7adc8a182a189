package dev.kullback.cli.npy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.kullback.cli.testing.NpyFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Archives as programs other than NumPy write them, made byte by byte after the format's specification. */
class ArchiveTest {
  private static final byte[] GOOD =
      NpyFiles.bytes(1, NpyFiles.dict("<f8", false, 4), NpyFiles.data("<f8", 1, -2, 0.5, 3));

  @TempDir Path folder;

  /** What is odd about a member; sizes are in the directory, and with a descriptor not in the local header. */
  private record Odd(int flags, int method, byte[] extra, long size, boolean hasDescriptor) {
    static final Odd NOTHING = new Odd(0, 0, new byte[0], -1, false);

    Odd withExtra(int... bytes) {
      byte[] more = new byte[bytes.length];
      for (int k = 0; k < bytes.length; k++) {
        more[k] = (byte) bytes[k];
      }
      return new Odd(flags, method, more, size, hasDescriptor);
    }

    Odd withSize(long other) {
      return new Odd(flags, method, extra, other, hasDescriptor);
    }

    Odd withFlags(int other) {
      return new Odd(other, method, extra, size, hasDescriptor);
    }

    Odd withMethod(int other) {
      return new Odd(flags, other, extra, size, hasDescriptor);
    }

    Odd withDescriptor() {
      return new Odd(flags | 8, method, extra, size, true);
    }
  }

  private final ByteArrayOutputStream zip = new ByteArrayOutputStream();
  private final List<byte[]> directory = new ArrayList<>();

  private static ByteBuffer little(int size) {
    return ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
  }

  private void member(String name, Odd odd) {
    member(name, GOOD, odd);
  }

  private void member(String name, byte[] bytes, Odd odd) {
    byte[] data = bytes;
    if (odd.method == 8) {
      try (Deflater deflater = new Deflater(9, true)) {
        deflater.setInput(bytes);
        deflater.finish();
        byte[] to = new byte[bytes.length + 100];
        data = Arrays.copyOf(to, deflater.deflate(to));
      }
    }
    CRC32 crc = new CRC32();
    crc.update(bytes);
    byte[] text = name.getBytes(StandardCharsets.UTF_8);
    long size = odd.size < 0 ? data.length : odd.size;
    int at = zip.size();
    ByteBuffer local = little(30 + text.length + odd.extra.length);
    local
        .putInt(0x04034b50)
        .putShort((short) 20)
        .putShort((short) odd.flags)
        .putShort((short) odd.method)
        .putInt(0);
    local.putInt(odd.hasDescriptor ? 0 : (int) crc.getValue());
    local.putInt(odd.hasDescriptor ? 0 : (int) size).putInt(odd.hasDescriptor ? 0 : bytes.length);
    local.putShort((short) text.length).putShort((short) odd.extra.length).put(text).put(odd.extra);
    zip.writeBytes(local.array());
    zip.writeBytes(data);
    if (odd.hasDescriptor) {
      zip.writeBytes(
          little(16)
              .putInt(0x08074b50)
              .putInt((int) crc.getValue())
              .putInt((int) size)
              .putInt(bytes.length)
              .array());
    }
    ByteBuffer entry = little(46 + text.length + odd.extra.length);
    entry.putInt(0x02014b50).putShort((short) 20).putShort((short) 20).putShort((short) odd.flags);
    entry.putShort((short) odd.method).putInt(0).putInt((int) crc.getValue()).putInt((int) size);
    entry.putInt(odd.size < 0 ? bytes.length : (int) odd.size);
    entry.putShort((short) text.length).putShort((short) odd.extra.length).putShort((short) 0);
    entry.putShort((short) 0).putShort((short) 0).putInt(0).putInt(at).put(text).put(odd.extra);
    directory.add(entry.array());
  }

  private void save(String before) throws IOException {
    int at = zip.size();
    directory.forEach(zip::writeBytes);
    zip.writeBytes(
        little(22)
            .putInt(0x06054b50)
            .putInt(0)
            .putShort((short) directory.size())
            .putShort((short) directory.size())
            .putInt(zip.size() - at)
            .putInt(at)
            .putShort((short) 0)
            .array());
    ByteArrayOutputStream file = new ByteArrayOutputStream();
    file.writeBytes(before.getBytes(StandardCharsets.US_ASCII));
    file.writeBytes(zip.toByteArray());
    Files.write(folder.resolve("x.npz"), file.toByteArray());
  }

  private double[] read(String name) throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      return Npy.readFloats(folder.resolve(name), arena).data().toArray(ValueLayout.JAVA_DOUBLE);
    }
  }

  private void assertReads(String... names) throws IOException {
    for (String name : names) {
      assertThat(read("x.npz:" + name)).as(name).containsExactly(1, -2, 0.5, 3);
    }
  }

  private void assertRefused(String name, String message) {
    assertThatThrownBy(() -> read("x.npz:" + name))
        .isInstanceOf(NpyException.class)
        .hasMessage(message);
  }

  /** Padding that is no field, folders, what precedes an archive, and sizes behind the data, as a pipe needs them. */
  @ParameterizedTest
  @ValueSource(ints = {0, 8})
  void oddButReadable(int method) throws IOException {
    Odd odd = Odd.NOTHING.withMethod(method);
    member("enc/", new byte[0], Odd.NOTHING);
    member("enc/mean.npy", odd.withExtra(0xfe, 0xca, 0, 0, 0, 0, 0));
    member("enc/logvar.npy", odd.withDescriptor());
    member("short.npy", odd.withExtra(1, 0, 4, 0, 9, 9, 9, 9));
    member("lies.npy", odd.withExtra(0xfe, 0xca, 0xff, 0xff));
    member("m\u00fc.npy", odd.withFlags(1 << 11));
    save("#!/bin/sh\n");
    assertReads("enc/mean", "enc/logvar", "enc/logvar.npy", "short", "lies", "m\u00fc");
  }

  /** Others are read; the one that cannot be is named with what to do. */
  @Test
  void oneThatIsNot() throws IOException {
    member("first.npy", Odd.NOTHING);
    member("secret.npy", Odd.NOTHING.withFlags(1));
    member("lzma.npy", Odd.NOTHING.withMethod(14));
    member("elsewhere.npy", Odd.NOTHING.withSize(0xffffffffL).withExtra(1, 0, 4, 0, 9, 9, 9, 9));
    member("nowhere.npy", Odd.NOTHING.withSize(0xffffffffL));
    member("long.npy", Odd.NOTHING.withSize(1 << 20));
    member("last.npy", Odd.NOTHING.withMethod(8));
    save("");
    assertReads("first", "last");
    String again = ": save the arrays again by np.savez";
    assertRefused("secret", "secret.npy is encrypted" + again + ", which does not");
    assertRefused(
        "lzma",
        "lzma.npy is compressed by method 14 of zip"
            + again
            + " or np.savez_compressed, which take method 8");
    for (String name : List.of("elsewhere", "nowhere", "long")) {
      assertRefused(name, name + ".npy has a wrong size, or its end is missing" + again);
    }
    assertRefused(
        "none",
        "no such array: the archive has first, secret, lzma, elsewhere, nowhere, long, last");
  }

  /** Sizes and the offset in the extra field, as NumPy writes them for more than 4 GiB. */
  @Test
  void longSizes() throws IOException {
    byte[] size = little(8).putLong(GOOD.length).array();
    int[] extra = new int[20];
    extra[0] = 1;
    extra[2] = 16;
    for (int k = 0; k < 16; k++) {
      extra[4 + k] = size[k % 8];
    }
    member("first.npy", Odd.NOTHING);
    member("long.npy", Odd.NOTHING.withSize(0xffffffffL).withExtra(extra));
    save("");
    assertReads("first", "long");
  }

  @ParameterizedTest
  @CsvSource({"42, -1", "42, 0x7fffffff", "46, 5", "28, 0xffff"})
  void aDirectoryThatLies(int at, String number) throws IOException {
    member("mean.npy", Odd.NOTHING);
    byte[] entry = directory.getFirst();
    ByteBuffer lie = ByteBuffer.wrap(entry).order(ByteOrder.LITTLE_ENDIAN);
    if (at == 42) {
      lie.putInt(at, Long.decode(number).intValue());
    } else {
      lie.putShort(at == 46 ? 30 : at, Integer.decode(number).shortValue());
    }
    save("");
    assertThatThrownBy(() -> read("x.npz")).isInstanceOf(NpyException.class);
  }
}
