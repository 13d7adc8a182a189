package dev.kullback.internal.index;

import java.io.File;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;

/** Does all that changes files, step by step, so that a test can have the process end after any of them. */
class FileOperations {
  private static final boolean WINDOWS = File.separatorChar == '\\';

  /** Bytes written at once: a buffer has fewer than 2³¹. */
  private static final long CHUNK = 1 << 26;

  void createFolder(Path folder) throws IOException {
    Files.createDirectories(folder);
  }

  /** Writes a file anew; when this returns, a power failure does not lose what it holds. */
  void write(Path file, MemorySegment bytes) throws IOException {
    try (FileChannel channel =
        FileChannel.open(
            file,
            StandardOpenOption.CREATE,
            StandardOpenOption.WRITE,
            StandardOpenOption.TRUNCATE_EXISTING)) {
      for (long at = 0; at < bytes.byteSize(); at += CHUNK) {
        long length = Math.min(CHUNK, bytes.byteSize() - at);
        ByteBuffer buffer = bytes.asSlice(at, length).asByteBuffer();
        while (buffer.hasRemaining()) {
          channel.write(buffer);
        }
      }
      channel.force(true);
    }
  }

  /** Gives a file its name, in one step, in place of another of that name. */
  void rename(Path from, Path to) throws IOException {
    Files.move(from, to, StandardCopyOption.ATOMIC_MOVE);
  }

  void delete(Path file) throws IOException {
    Files.deleteIfExists(file);
  }

  /** Makes the names in a folder as durable as the files: Windows does so by itself, and opens no folders. */
  void sync(Path folder) throws IOException {
    if (!WINDOWS) {
      try (FileChannel channel = FileChannel.open(folder, StandardOpenOption.READ)) {
        channel.force(true);
      }
    }
  }
}
