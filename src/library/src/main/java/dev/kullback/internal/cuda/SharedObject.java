package dev.kullback.internal.cuda;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.jspecify.annotations.Nullable;

/**
 * Looks at a file of shared code before the dynamic linker maps it, whose reading of a part that is missing ends the process by SIGBUS. The fields are
 * those of the ELF header and of program headers in "System V Application Binary Interface", chapters 4 and 5.
 */
final class SharedObject {
  private static final int HEADER_BYTES = 64;
  private static final int MAGIC = 0x464c457f;
  private static final byte BITS_64 = 2;
  private static final byte LITTLE_ENDIAN = 1;
  private static final int PROGRAM_HEADER_BYTES = 56;

  private SharedObject() {}

  /** Says why a file is no whole shared object of 64 bits, or returns null. */
  static @Nullable String problem(Path file) throws IOException {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      ByteBuffer header = read(channel, 0, HEADER_BYTES);
      if (header.remaining() < Integer.BYTES || header.getInt(0) != MAGIC) {
        return file + " is no shared object: it does not begin as an ELF file";
      }
      if (header.remaining() < HEADER_BYTES) {
        return truncated(file, channel);
      }
      if (header.get(4) != BITS_64 || header.get(5) != LITTLE_ENDIAN) {
        return file + " is a shared object of another kind of processor";
      }
      long size = channel.size();
      long programs = header.getLong(32);
      long sections = header.getLong(40);
      int programCount = Short.toUnsignedInt(header.getShort(56));
      long sectionBytes =
          (long) Short.toUnsignedInt(header.getShort(58))
              * Short.toUnsignedInt(header.getShort(60));
      ByteBuffer table = read(channel, programs, PROGRAM_HEADER_BYTES * programCount);
      boolean isWhole =
          table.remaining() == PROGRAM_HEADER_BYTES * programCount
              && isWithin(sections, sectionBytes, size);
      for (int at = 0; isWhole && at < table.limit(); at += PROGRAM_HEADER_BYTES) {
        isWhole = isWithin(table.getLong(at + 8), table.getLong(at + 32), size);
      }
      return isWhole ? null : truncated(file, channel);
    }
  }

  private static boolean isWithin(long from, long length, long size) {
    return from >= 0 && length >= 0 && from <= size && length <= size - from;
  }

  private static String truncated(Path file, FileChannel channel) throws IOException {
    return "%s is truncated: it has %d bytes, its headers tell of more; copy or build it again"
        .formatted(file, channel.size());
  }

  /** Reads bytes, or those that are there. */
  private static ByteBuffer read(FileChannel channel, long from, int length) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(length).order(ByteOrder.LITTLE_ENDIAN);
    for (long at = Math.max(0, from); bytes.hasRemaining(); at = from + bytes.position()) {
      if (channel.read(bytes, at) < 0) {
        break;
      }
    }
    return bytes.flip();
  }
}
