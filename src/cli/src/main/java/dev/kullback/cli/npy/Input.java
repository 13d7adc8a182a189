package dev.kullback.cli.npy;

import dev.kullback.cli.terminal.Suggestion;
import dev.kullback.cli.terminal.Text;
import dev.kullback.cli.terminal.UserError;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.zip.CRC32;
import java.util.zip.CheckedInputStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipException;
import java.util.zip.ZipFile;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;

/**
 * The bytes that a name stands for: a file's, whatever its name; those of the array {@code mean} of an archive, for {@code
 * moments.npz:mean}, or of an archive's only one, for {@code moments.npz}; or standard input's, for {@code -}.
 */
public final class Input implements Closeable {
  public static final Path STDIN = Path.of("-");

  /** The answer of {@link #remaining} where only the end tells. */
  static final long UNKNOWN = -1;

  private static final String ARCHIVE = ".npz";
  private static final String ARRAY = ".npy";

  /** Names of an archive's arrays that an error shows, and characters of each. */
  private static final int MOST_NAMES = 20;

  private static final int LONGEST_NAME = 60;

  private final ReadableByteChannel channel;
  private long remaining;

  private final Closeable source;

  private Input(ReadableByteChannel channel, long size, Closeable source) {
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
    int end = archiveEnd(name);
    return end < 0 ? name : Path.of(name.toString().substring(0, end));
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

  /** Returns the name of an array of an archive, empty where none is named. */
  private static String array(Path name) {
    int end = archiveEnd(name);
    String array = end < 0 ? "" : name.toString().substring(end + 1);
    return array.endsWith(ARRAY) ? array.substring(0, array.length() - ARRAY.length()) : array;
  }

  /** Returns where the archive's name ends in that of an array, or -1. */
  private static int archiveEnd(Path name) {
    int at = name.toString().toLowerCase(Locale.ROOT).lastIndexOf(ARCHIVE + ":");
    return at < 0 || Files.exists(name) ? -1 : at + ARCHIVE.length();
  }

  /** Returns a name's suffix in lower case, without the dot; empty where there is none. */
  public static String suffix(Path name) {
    String file = String.valueOf(name.getFileName());
    int dot = file.lastIndexOf('.');
    return dot <= 0 ? "" : file.substring(dot + 1).toLowerCase(Locale.ROOT);
  }

  public static Input open(Path name) throws IOException {
    if (name.equals(STDIN)) {
      // Never closed: where the caller had closed it, its descriptor is that of some file of the
      // VM.
      return new Input(Channels.newChannel(System.in), UNKNOWN, () -> {});
    }
    String text = name.toString();
    int end = archiveEnd(name);
    if (end >= 0) {
      return ofArchive(file(name), text.substring(end + 1));
    }
    if (suffix(name).equals("npz")) {
      return ofArchive(name, null);
    }
    requireFile(name, ARRAY);
    FileChannel channel = FileChannel.open(name, StandardOpenOption.READ);
    return new Input(channel, channel.size(), channel);
  }

  private static void requireFile(Path file, String kind) throws IOException {
    if (Files.isDirectory(file)) {
      throw new NpyException("is a directory, not a " + kind + " file");
    }
    // Opening a FIFO would wait for its writer, and a device has no size.
    if (Files.exists(file) && !Files.isRegularFile(file)) {
      throw new NpyException("is not a regular file: save the array to a .npy file first");
    }
  }

  /** @param name null for the only array */
  private static Input ofArchive(Path archive, @Nullable String name) throws IOException {
    requireFile(archive, ARCHIVE);
    if (Files.exists(archive) && !Files.isReadable(archive)) {
      throw new AccessDeniedException(archive.toString());
    }
    ZipFile zip;
    try {
      zip = new ZipFile(archive.toFile());
    } catch (ZipException | EOFException e) {
      throw new NpyException("is not a usable .npz file: " + reason(e));
    }
    try {
      ZipEntry entry = find(zip, archive, name);
      // No size that an archive states is believed but that of what it stores as it is.
      long size = entry.getCompressedSize();
      boolean isCertain = entry.getMethod() == ZipEntry.STORED && size <= Files.size(archive);
      InputStream in = new Member(zip.getInputStream(entry), entry.getCrc());
      return new Input(Channels.newChannel(in), isCertain ? size : UNKNOWN, zip);
    } catch (IOException e) {
      zip.close();
      throw damaged(e);
    }
  }

  private static ZipEntry find(ZipFile zip, Path archive, @Nullable String name)
      throws NpyException {
    List<? extends ZipEntry> arrays =
        zip.stream().filter(e -> e.getName().endsWith(ARRAY)).toList();
    List<? extends ZipEntry> found = name == null ? arrays : named(zip, name);
    if (name != null && found.isEmpty()) {
      found = named(zip, name + ARRAY);
    }
    if (found.size() == 1) {
      return found.getFirst();
    }
    if (name != null && !found.isEmpty()) {
      throw new NpyException("is in the archive more than once");
    }
    if (arrays.isEmpty()) {
      throw new NpyException("no array is in the archive");
    }
    String names =
        arrays.stream()
            .limit(MOST_NAMES)
            .map(entry -> Text.name(arrayName(entry), LONGEST_NAME))
            .collect(Collectors.joining(", "));
    if (arrays.size() > MOST_NAMES) {
      names += " and %d more".formatted(arrays.size() - MOST_NAMES);
    }
    throw new NpyException(
        name == null
            ? "holds several arrays: name one, as in %s:%s; it has %s"
                .formatted(archive.getFileName(), arrayName(arrays.getFirst()), names)
            : "no such array: the archive has " + names);
  }

  private static List<? extends ZipEntry> named(ZipFile zip, String name) {
    return zip.stream().filter(e -> e.getName().equals(name)).limit(2).toList();
  }

  private static String arrayName(ZipEntry entry) {
    String name = entry.getName();
    return name.substring(0, name.length() - ARRAY.length());
  }

  /** Returns how many bytes follow, or {@link #UNKNOWN}. */
  public long remaining() {
    return remaining;
  }

  /** Reads until the buffer is full, or to the end; returns how much. */
  public int fill(ByteBuffer buffer) throws IOException {
    int from = buffer.position();
    try {
      while (buffer.hasRemaining() && channel.read(buffer) >= 0) {}
    } catch (IOException e) {
      throw damaged(e);
    }
    int read = buffer.position() - from;
    remaining -= remaining == UNKNOWN ? 0 : read;
    return read;
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

  /** Whether this was all; throws where an archive's checksum tells that it was something else. */
  boolean isAtEnd() throws IOException {
    return fill(ByteBuffer.allocate(1)) == 0;
  }

  /** An array of an archive; at its end it compares the checksum, which {@link ZipFile} does not. */
  private static final class Member extends CheckedInputStream {
    private final long checksum;

    Member(InputStream in, long checksum) {
      super(in, new CRC32());
      this.checksum = checksum;
    }

    @Override
    public int read(byte[] bytes, int from, int length) throws IOException {
      int read = super.read(bytes, from, length);
      if (read < 0 && getChecksum().getValue() != checksum) {
        throw new ZipException("its checksum is not that in the archive");
      }
      return read;
    }
  }

  private static IOException damaged(IOException e) {
    return e instanceof ZipException || e instanceof EOFException
        ? new NpyException("is damaged: " + reason(e))
        : e;
  }

  private static String reason(IOException e) {
    return e instanceof EOFException ? "its end is missing" : String.valueOf(e.getMessage());
  }

  @Override
  public void close() throws IOException {
    source.close();
  }
}
