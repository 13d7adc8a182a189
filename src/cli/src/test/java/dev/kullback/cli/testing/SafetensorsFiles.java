package dev.kullback.cli.testing;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Makes files of safetensors, wrong ones included. */
public final class SafetensorsFiles {
  private SafetensorsFiles() {}

  public static Path write(Path file, String header, byte... data) throws IOException {
    byte[] text = header.getBytes(StandardCharsets.UTF_8);
    return Files.write(
        file,
        ByteBuffer.allocate(Long.BYTES + text.length + data.length)
            .order(ByteOrder.LITTLE_ENDIAN)
            .putLong(text.length)
            .put(text)
            .put(data)
            .array());
  }
}
