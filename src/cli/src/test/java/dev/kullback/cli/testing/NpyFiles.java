package dev.kullback.cli.testing;

import dev.kullback.cli.npy.Npy;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.Collectors;

/** Makes .npy files independently of {@link Npy}, wrong ones included. */
public final class NpyFiles {
  private NpyFiles() {}

  public static byte[] bytes(int version, String dict, byte[] data) {
    byte[] text = dict.getBytes(StandardCharsets.UTF_8);
    ByteBuffer file =
        ByteBuffer.allocate((version == 1 ? 10 : 12) + text.length + data.length)
            .order(ByteOrder.LITTLE_ENDIAN)
            .put((byte) 0x93)
            .put("NUMPY".getBytes(StandardCharsets.US_ASCII))
            .put((byte) version)
            .put((byte) 0);
    if (version == 1) {
      file.putShort((short) text.length);
    } else {
      file.putInt(text.length);
    }
    return file.put(text).put(data).array();
  }

  public static String dict(String descr, boolean fortranOrder, long... shape) {
    String dimensions =
        Arrays.stream(shape).mapToObj(d -> d + ",").collect(Collectors.joining(" ", "(", ")"));
    return "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n"
        .formatted(descr, fortranOrder ? "True" : "False", dimensions);
  }

  public static byte[] data(String descr, double... values) {
    ByteOrder order = descr.startsWith(">") ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN;
    int size = descr.charAt(2) - '0';
    ByteBuffer data = ByteBuffer.allocate(values.length * size).order(order);
    for (double value : values) {
      switch (descr.substring(1)) {
        case "f8" -> data.putDouble(value);
        case "f4" -> data.putFloat((float) value);
        case "f2" -> data.putShort(Float.floatToFloat16((float) value));
        case "i4" -> data.putInt((int) value);
        case "i8", "u8" -> data.putLong(new BigDecimal(value).longValue());
        default -> throw new IllegalArgumentException(descr);
      }
    }
    return data.array();
  }

  public static Path write(Path file, byte[] bytes) throws IOException {
    return Files.write(file, bytes);
  }

  /** A C-ordered array of format version 1. */
  public static Path write(Path file, String descr, long[] shape, double... values)
      throws IOException {
    return Files.write(file, bytes(1, dict(descr, false, shape), data(descr, values)));
  }
}
