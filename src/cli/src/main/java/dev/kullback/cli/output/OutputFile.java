package dev.kullback.cli.output;

import dev.kullback.cli.terminal.Text;
import dev.kullback.cli.terminal.UserError;
import java.io.BufferedOutputStream;
import java.io.Closeable;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.Channels;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.List;

/**
 * A file that appears whole or not at all: written beside its target and renamed by {@link
 * #commit}. Closing it earlier, or a signal that ends the VM, removes what was written and leaves
 * the target untouched. A symbolic link stays, and the file it points to is replaced.
 */
public final class OutputFile implements Closeable {
  private static final long CHUNK = 1 << 26;
  private static final int BUFFER = 1 << 16;

  private final Path name;
  private final Path target;
  private final TemporaryFile temporary;
  private final boolean replaces;
  private boolean finished;

  /** The bytes that {@link #putInt} and others have appended and {@link #flush} has not written. */
  private final ByteBuffer buffer = ByteBuffer.allocate(BUFFER).order(ByteOrder.nativeOrder());

  /** Creates the temporary file of a target that is replaced if it is there. */
  public OutputFile(Path name) {
    this(name, true);
  }

  /**
   * Creates the temporary file, so that a target that cannot be written is told before anything is computed.
   *
   * @param replaces whether a target that is there is replaced; else it is refused, now and when it appears before the commit
   */
  OutputFile(Path name, boolean replaces) {
    this.name = name;
    this.replaces = replaces;
    Path folder;
    try {
      Path path = followLinks(name.toAbsolutePath());
      folder = path.getParent();
      if (Files.isDirectory(path) || folder == null) {
        throw new UserError(name, "is a directory: name a file in it");
      }
      // Renaming over /dev/null would replace the device. A pipe behind /dev/stdout has no path.
      if (Files.exists(name) && !Files.isRegularFile(name)) {
        throw new UserError(name, "is not a regular file: name another output");
      }
      if (Files.exists(path) && !Files.isWritable(path)) {
        throw new OutputFailure(name, "is write-protected: name another output");
      }
      if (Files.exists(path)) {
        requireReplacing();
      }
      requireFolder(folder);
      try {
        Files.readAttributes(path, BasicFileAttributes.class); // tells a name that is too long
      } catch (NoSuchFileException e) {
        // to be created
      }
      folder = folder.toRealPath();
      target = folder.resolve(path.getFileName());
    } catch (AccessDeniedException e) {
      throw new OutputFailure(name, e);
    } catch (IOException e) {
      throw new UserError(name, e);
    }
    try {
      temporary = new TemporaryFile(folder, String.valueOf(target.getFileName()));
    } catch (IOException e) {
      throw new OutputFailure(name, e);
    }
  }

  private void requireReplacing() {
    if (!replaces) {
      throw isThere();
    }
  }

  private UserError isThere() {
    return new UserError(
        name, "is there, and --no-clobber keeps it: name another output, or leave that out");
  }

  private interface Step {
    void run() throws IOException;
  }

  private void attempt(Step step) {
    try {
      step.run();
    } catch (IOException e) {
      throw new OutputFailure(name, e);
    }
  }

  private void requireFolder(Path folder) throws IOException {
    try {
      if (!Files.readAttributes(folder, BasicFileAttributes.class).isDirectory()) {
        throw new UserError(name, folder + " is not a folder: name another output");
      }
    } catch (NoSuchFileException e) {
      throw new UserError(name, "its folder " + folder + " does not exist: create it first");
    }
  }

  /** Returns where a chain of links ends, whether or not a file is there. */
  static Path followLinks(Path path) throws IOException {
    Path target = path;
    // As many links as Linux follows.
    for (int links = 0; Files.isSymbolicLink(target); links++) {
      if (links == 40) {
        throw new IOException("too many symbolic links");
      }
      target = target.resolveSibling(Files.readSymbolicLink(target));
    }
    return target;
  }

  public Path name() {
    return name;
  }

  /** Whether both would replace the same file. */
  boolean hasTargetOf(OutputFile other) {
    return target.equals(other.target) || Outputs.isSame(target, other.target);
  }

  /** Throws if another output would replace the same file. */
  void requireOther(OutputFile other) {
    if (hasTargetOf(other)) {
      throw new UserError(other.name, "is the same file as the other output, " + name);
    }
  }

  /** Refuses early a size that the disk cannot hold. */
  public void requireSpace(long bytes) {
    try {
      FileStore store = Files.getFileStore(temporary.path());
      long free = store.getUsableSpace();
      if (free < bytes && store.getTotalSpace() > 0) { // 0: the file system doesn't say
        throw new OutputFailure(
            name,
            "needs %s GB, but its disk has %s GB free: choose another disk"
                .formatted(Text.number(bytes * 1e-9), Text.number(free * 1e-9)));
      }
    } catch (IOException e) {
      // Writing will tell.
    }
  }

  public void write(byte[] bytes) {
    write(MemorySegment.ofArray(bytes));
  }

  /** Appends by write(2), not through a mapping: on a full disk a write fails with an error, a store to a mapped page with SIGBUS. */
  public void write(MemorySegment bytes) {
    flush();
    append(bytes);
  }

  private void append(MemorySegment bytes) {
    if (finished) {
      throw new IllegalStateException("finished");
    }
    attempt(() -> {
      for (long at = 0; at < bytes.byteSize(); at += CHUNK) {
        ByteBuffer chunk = bytes.asSlice(at, Math.min(CHUNK, bytes.byteSize() - at)).asByteBuffer();
        while (chunk.hasRemaining()) {
          temporary.channel().write(chunk);
        }
      }
    });
  }

  /** Appends an int, in native byte order, as the following do. */
  public void putInt(int value) {
    room().putInt(value);
  }

  public void putLong(long value) {
    room().putLong(value);
  }

  /** Appends a double, or rounded to a float; returns what it appended. */
  public double put(double value, boolean isDouble) {
    if (isDouble) {
      room().putDouble(value);
      return value;
    }
    room().putFloat((float) value);
    return (float) value;
  }

  private ByteBuffer room() {
    if (buffer.remaining() < Double.BYTES) {
      flush();
    }
    return buffer;
  }

  private void flush() {
    append(MemorySegment.ofBuffer(buffer.flip()));
    buffer.clear();
  }

  /** Puts a header in the place of one of the same length, when it is known what to say. */
  public void replaceHeader(byte[] header) {
    flush();
    attempt(() -> {
      for (ByteBuffer bytes = ByteBuffer.wrap(header); bytes.hasRemaining(); ) {
        temporary.channel().write(bytes, bytes.position());
      }
    });
  }

  /** Copies all that was written so far. */
  public void copyTo(OutputStream out) throws IOException {
    flush();
    Channels.newInputStream(temporary.channel().position(0)).transferTo(out);
  }

  /** Returns a stream that appends; closing it closes nothing. */
  public OutputStream stream() {
    flush();
    return new BufferedOutputStream(Channels.newOutputStream(temporary.channel()), BUFFER) {
      @Override
      public void close() throws IOException {
        flush();
      }
    };
  }

  /** Does all of {@link #commit} but the renaming. */
  void finish() {
    if (finished) {
      return;
    }
    flush();
    if (Files.exists(target)) { // by now
      requireReplacing();
    }
    finished = true;
    attempt(() -> {
      temporary.channel().force(true);
      temporary.publish(target);
    });
  }

  /** Commits the outputs of a command, the first last: all that may fail but the renaming comes before any appears. */
  static void commit(List<OutputFile> files) {
    files.forEach(OutputFile::finish);
    files.reversed().forEach(OutputFile::commit);
  }

  public void commit() {
    finish();
    attempt(() -> {
      try {
        temporary.moveTo(target, replaces);
      } catch (FileAlreadyExistsException e) {
        throw isThere();
      }
    });
  }

  /** Without effect on a committed file. */
  @Override
  public void close() throws IOException {
    temporary.close();
  }
}
