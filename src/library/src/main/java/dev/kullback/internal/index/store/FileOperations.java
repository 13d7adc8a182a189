package dev.kullback.internal.index.store;

import java.io.File;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileStore;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;

/** Does all that changes files, step by step, so that a test can have the process end after any of them. */
class FileOperations {
  private static final boolean WINDOWS = File.separatorChar == '\\';

  /** Bytes written at once: a buffer has fewer than 2³¹. */
  private static final long CHUNK = 1 << 26;

  private static final long ZEROS = 1 << 16;

  /** Makes a folder, and those above it that are not there; a power failure does not lose them. */
  void createFolder(Path folder) throws IOException {
    Path absolute = folder.toAbsolutePath();
    Path above = absolute.getParent();
    while (above != null && Files.notExists(above)) {
      above = above.getParent();
    }
    try {
      Files.createDirectories(absolute);
    } catch (NoSuchFileException e) { // as of /proc, which has no room for any
      throw new FileSystemException(e.getFile(), null, "no folder can be made there: name another");
    }
    for (Path made = absolute.getParent(); above != null && made != null; made = made.getParent()) {
      sync(made);
      if (made.equals(above)) {
        return;
      }
    }
  }

  /** Returns how many bytes a folder's disk has room for; the greatest number if it does not say. */
  long room(Path folder) {
    try {
      FileStore store = Files.getFileStore(folder);
      return store.getTotalSpace() > 0 ? store.getUsableSpace() : Long.MAX_VALUE;
    } catch (IOException e) {
      return Long.MAX_VALUE;
    }
  }

  /** Whether a file can get another name while it is mapped. */
  boolean renamesMapped() {
    return !WINDOWS;
  }

  /** Makes a file of zeros, so that the disk has room for what is to be put there through a mapping. */
  void fill(Path file, long bytes) throws IOException {
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
      ByteBuffer zeros = ByteBuffer.allocate((int) Math.min(bytes, ZEROS));
      for (long left = bytes; left > 0; ) {
        zeros.clear().limit((int) Math.min(left, zeros.capacity()));
        left -= channel.write(zeros);
      }
    }
  }

  /** Makes another name of a file, or a copy where the file system has one name for each; a power failure does not lose it. */
  void link(Path file, Path name) throws IOException {
    try {
      Files.createLink(name, file);
    } catch (NoSuchFileException | FileAlreadyExistsException e) {
      throw e;
    } catch (IOException | UnsupportedOperationException e) {
      Files.copy(file, name);
      try (FileChannel channel = FileChannel.open(name, StandardOpenOption.WRITE)) {
        force(channel);
      }
    }
  }

  /** Makes durable what was put into a file through a mapping. */
  void force(Path file, MemorySegment mapped) throws IOException {
    mapped.force();
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
      force(channel);
    }
  }

  /** Waits until what a file or a folder holds is on the disk. */
  void force(FileChannel channel) throws IOException {
    channel.force(true);
  }

  /** Makes a file, and fails if there is one of the name, be it another process's that is not seen otherwise. */
  void create(Path file) throws IOException {
    Files.createFile(file);
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
      force(channel);
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
        force(channel);
      }
    }
  }
}
