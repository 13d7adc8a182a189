package dev.kullback.cli.npy;

import dev.kullback.cli.terminal.Suggestion;
import dev.kullback.cli.terminal.UserError;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import picocli.CommandLine.Model.CommandSpec;

/** The bytes of a file, of a part of it or of standard input, one after the other. */
public final class Input implements Closeable {
  public static final Path STDIN = Path.of("-");

  /** The answer of {@link #remaining} where only the end tells. */
  static final long UNKNOWN = -1;

  /** Bytes that tell a format. */
  private static final int START = 64;

  private final ReadableByteChannel channel;
  private long remaining;

  /** Whether it ends before the file does. */
  private boolean isPart;

  private final Closeable source;

  Input(ReadableByteChannel channel, long size, Closeable source) {
    this.channel = channel;
    remaining = size;
    this.source = source;
  }

  /** Throws where more of the inputs than so many, 0 or 1, are standard input. */
  public static void limitStdin(int most, List<Path> inputs) {
    if (inputs.stream().filter(STDIN::equals).count() > most) {
      throw new UserError(
          STDIN,
          most == 0
              ? "only standard and aligned read standard input; give ./- for a file of that name"
              : "only one input can be standard input; give ./- for a file of that name");
    }
  }

  /** Refuses names that begin like an option, which picocli takes for names where an option takes several. */
  public static void rejectOptions(CommandSpec command, List<Path> names) {
    for (Path name : names) {
      if (name.toString().startsWith("-") && !name.equals(STDIN) && !Files.exists(name)) {
        throw new UserError(
            name,
            "is neither an option of this command nor a file"
                + Suggestion.of(command.commandLine(), name.toString()));
      }
    }
  }

  /** Returns the file that a name stands for: the archive of an array, or standard input's. */
  public static Path file(Path name) {
    if (name.equals(STDIN)) {
      return Path.of("/dev/stdin");
    }
    return Name.of(name).file();
  }

  /** Whether two names stand for the same array of a file; not for standard input, which {@link #limitStdin} is for. */
  public static boolean isSame(Path one, Path other) {
    try {
      return !one.equals(STDIN)
          && !other.equals(STDIN)
          && array(one).equals(array(other))
          && Files.isSameFile(file(one), file(other));
    } catch (IOException e) {
      return false; // and opening it tells
    }
  }

  /** Returns the name of an array of a file, empty where none is named. */
  private static String array(Path name) {
    String array = Objects.requireNonNullElse(Name.of(name).array(), "");
    return array.endsWith(".npy") ? array.substring(0, array.length() - ".npy".length()) : array;
  }

  /** Returns a name's suffix in lower case, without the dot; empty where there is none. */
  public static String suffix(Path name) {
    String file = String.valueOf(name.getFileName());
    int dot = file.lastIndexOf('.');
    return dot <= 0 ? "" : file.substring(dot + 1).toLowerCase(Locale.ROOT);
  }

  static Input stdin() {
    // Never closed: where the caller had closed it, its descriptor is that of some file of the VM.
    return new Input(Channels.newChannel(System.in), UNKNOWN, () -> {});
  }

  static Input ofFile(Path file) throws IOException {
    requireFile(file, ".npy");
    FileChannel channel = FileChannel.open(file, StandardOpenOption.READ);
    return new Input(channel, channel.size(), channel);
  }

  static void requireFile(Path file, String kind) throws IOException {
    if (Files.isDirectory(file)) {
      throw new NpyException("is a directory, not a " + kind + " file");
    }
    // Opening a FIFO would wait for its writer, and a device has no size.
    if (Files.exists(file) && !Files.isRegularFile(file)) {
      throw new NpyException("is not a regular file: save the array to a .npy file first");
    }
  }

  /** Returns how many bytes follow, or {@link #UNKNOWN}. */
  public long remaining() {
    return remaining;
  }

  /** Reads until the buffer is full, or to the end; returns how much. */
  public int fill(ByteBuffer buffer) throws IOException {
    int from = buffer.position();
    int limit = buffer.limit();
    if (isPart) {
      buffer.limit(from + (int) Math.min(buffer.remaining(), remaining));
    }
    while (buffer.hasRemaining() && channel.read(buffer) >= 0) {}
    buffer.limit(limit);
    int read = buffer.position() - from;
    remaining -= remaining == UNKNOWN ? 0 : read;
    return read;
  }

  /** Returns what is left as a stream, which closes nothing. */
  InputStream stream() {
    return new InputStream() {
      @Override
      public int read() throws IOException {
        byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
      }

      @Override
      public int read(byte[] bytes, int from, int length) throws IOException {
        int read = fill(ByteBuffer.wrap(bytes, from, length));
        return read == 0 && length > 0 ? -1 : read;
      }
    };
  }

  /** Whether {@link #skip} costs nothing. */
  boolean isFile() {
    return channel instanceof SeekableByteChannel;
  }

  /** Skips bytes of a file, which must have them. */
  public void skip(long bytes) throws IOException {
    SeekableByteChannel file = (SeekableByteChannel) channel;
    file.position(file.position() + bytes);
    remaining -= bytes;
  }

  /** Returns the first bytes of a file, and goes back to its beginning. */
  byte[] start() throws IOException {
    ByteBuffer start = ByteBuffer.allocate(START);
    int size = fill(start);
    skip(-size);
    return Arrays.copyOf(start.array(), size);
  }

  /** Goes on by so many bytes, back where they are negative, and ends after {@code bytes} more, which the file must have. */
  void toPart(long by, long bytes) throws IOException {
    skip(by);
    remaining = bytes;
    isPart = true;
  }

  /** Returns what follows, at most so many bytes; throws where an archive's checksum tells that all was something else. */
  byte[] rest(int most) throws IOException {
    ByteBuffer rest = ByteBuffer.allocate(most);
    int size = fill(rest);
    return Arrays.copyOf(rest.array(), size);
  }

  @Override
  public void close() throws IOException {
    source.close();
  }
}
