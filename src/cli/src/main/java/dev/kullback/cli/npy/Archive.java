package dev.kullback.cli.npy;

import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32;
import java.util.zip.CheckedInputStream;
import java.util.zip.Inflater;
import java.util.zip.InflaterInputStream;
import java.util.zip.ZipException;

/**
 * NumPy's .npz files: archives of .npy files. Of their directory, only the entry that is read must be right: {@code java.util.zip} and
 * others refuse a whole archive for what is odd about one.
 */
final class Archive implements Closeable {
  private static final String ARRAY = ".npy";
  private static final String AGAIN = ": save the arrays again by np.savez";

  private static final int END = 0x06054b50;
  private static final int END_SIZE = 22;
  private static final int MAX_COMMENT = 0xffff;
  private static final int LOCATOR = 0x07064b50;
  private static final int LOCATOR_SIZE = 20;
  private static final int LONG_END = 0x06064b50;
  private static final int LONG_END_SIZE = 56;
  private static final int ENTRY = 0x02014b50;
  private static final int ENTRY_SIZE = 46;
  private static final int LOCAL = 0x04034b50;
  private static final int LOCAL_SIZE = 30;
  private static final int ENCRYPTED = 1;
  private static final int STORED = 0;
  private static final int DEFLATED = 8;

  /** In the place of a size or an offset that is in the extra field of this tag. */
  private static final long ELSEWHERE = 0xffffffffL;

  private static final int LONG_SIZES = 1;

  /** Bytes of a directory: of some million arrays. */
  private static final int MAX_DIRECTORY = 1 << 28;

  /** An entry of the directory; negative numbers are not there. */
  private record Entry(String name, int flags, int method, long checksum, long bytes, long at) {
    String array() {
      return name.endsWith(ARRAY) ? name.substring(0, name.length() - ARRAY.length()) : name;
    }
  }

  private final FileChannel file;

  private Archive(FileChannel file) {
    this.file = file;
  }

  /** Opens the array that is named, with or without .npy, or the only one. */
  static Opened open(Name name) throws IOException {
    Input.requireFile(name.file(), ".npz");
    Archive archive = new Archive(FileChannel.open(name.file(), StandardOpenOption.READ));
    try {
      Entry entry = find(archive.entries(), name);
      return NpyFormat.open(archive.member(entry), name.withArray(entry.array()));
    } catch (IOException | RuntimeException e) {
      archive.close();
      throw e;
    }
  }

  private static Entry find(List<Entry> entries, Name name) throws NpyException {
    String array = name.array();
    List<Entry> arrays = entries.stream().filter(e -> e.name.endsWith(ARRAY)).toList();
    List<Entry> found = array == null ? arrays : named(entries, array);
    if (array != null && found.isEmpty()) {
      found = named(entries, array + ARRAY);
    }
    if (found.size() == 1) {
      return found.getFirst();
    }
    if (array != null && !found.isEmpty()) {
      throw new NpyException("is in the archive more than once");
    }
    throw name.noneOf(arrays.stream().map(Entry::array).toList());
  }

  private static List<Entry> named(List<Entry> entries, String name) {
    return entries.stream().filter(e -> e.name.equals(name)).limit(2).toList();
  }

  /** Reads bytes of the file, which must have them. */
  private ByteBuffer read(long at, int count) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(count).order(ByteOrder.LITTLE_ENDIAN);
    while (bytes.hasRemaining() && at >= 0 && file.read(bytes, at + bytes.position()) >= 0) {}
    if (bytes.hasRemaining()) {
      throw unusable("its end is missing");
    }
    return bytes.flip();
  }

  private List<Entry> entries() throws IOException {
    long size = file.size();
    int tailSize = (int) Math.min(size, END_SIZE + MAX_COMMENT);
    ByteBuffer tail = read(size - tailSize, tailSize);
    int at = tailSize - END_SIZE;
    while (at >= 0
        && !(tail.getInt(at) == END
            && (tail.getShort(at + 20) & 0xffff) == tailSize - END_SIZE - at)) {
      at--;
    }
    if (at < 0) {
      throw unusable("it is no archive, or its end is missing");
    }
    long end = size - tailSize + at;
    long bytes = tail.getInt(at + 12) & ELSEWHERE;
    long offset = tail.getInt(at + 16) & ELSEWHERE;
    if (bytes == ELSEWHERE || offset == ELSEWHERE || tail.getShort(at + 10) == -1) {
      ByteBuffer locator = read(end - LOCATOR_SIZE, LOCATOR_SIZE);
      if (locator.getInt(0) == LOCATOR) {
        end = locator.getLong(8);
        ByteBuffer longEnd = read(end, LONG_END_SIZE);
        if (longEnd.getInt(0) != LONG_END) {
          throw unusable("its directory is not where its end says");
        }
        bytes = longEnd.getLong(40);
        offset = longEnd.getLong(48);
      }
    }
    long before = end - bytes - offset; // what precedes an archive, as a program that unpacks it
    if (bytes < 0 || bytes > Math.min(end, MAX_DIRECTORY) || offset < 0 || before < 0) {
      throw unusable("its directory is not where its end says");
    }
    return entries(read(end - bytes, (int) bytes), before);
  }

  private static List<Entry> entries(ByteBuffer directory, long before) throws NpyException {
    List<Entry> entries = new ArrayList<>();
    while (directory.hasRemaining()) {
      int at = directory.position();
      if (directory.remaining() < ENTRY_SIZE || directory.getInt(at) != ENTRY) {
        throw unusable("its directory is damaged");
      }
      int name = directory.getShort(at + 28) & 0xffff;
      int extra = directory.getShort(at + 30) & 0xffff;
      int comment = directory.getShort(at + 32) & 0xffff;
      if (directory.remaining() - ENTRY_SIZE < name + extra + comment) {
        throw unusable("its directory is damaged");
      }
      long[] sizes = { // in the order of the extra field
        directory.getInt(at + 24) & ELSEWHERE,
        directory.getInt(at + 20) & ELSEWHERE,
        directory.getInt(at + 42) & ELSEWHERE
      };
      replace(sizes, directory.slice(at + ENTRY_SIZE + name, extra));
      entries.add(
          new Entry(
              new String(
                  directory.array(),
                  directory.arrayOffset() + at + ENTRY_SIZE,
                  name,
                  StandardCharsets.UTF_8),
              directory.getShort(at + 8),
              directory.getShort(at + 10) & 0xffff,
              directory.getInt(at + 16) & ELSEWHERE,
              sizes[1],
              sizes[2] < 0 ? sizes[2] : before + sizes[2]));
      directory.position(at + ENTRY_SIZE + name + extra + comment);
    }
    return entries;
  }

  /** Takes sizes that are elsewhere from the extra field; what is not there becomes -1. */
  private static void replace(long[] sizes, ByteBuffer extra) {
    extra.order(ByteOrder.LITTLE_ENDIAN);
    int at = 0;
    int end = 0;
    while (end + 4 <= extra.limit()) {
      at = end + 4;
      end = at + (extra.getShort(at - 2) & 0xffff);
      if (extra.getShort(at - 4) == LONG_SIZES) {
        break;
      }
      at = end;
    }
    end = Math.min(end, extra.limit());
    for (int k = 0; k < sizes.length; k++) {
      if (sizes[k] == ELSEWHERE) {
        boolean isThere = at + Long.BYTES <= end;
        sizes[k] = isThere ? extra.getLong(at) : -1;
        at += Long.BYTES;
      }
    }
  }

  private Input member(Entry entry) throws IOException {
    if ((entry.flags & ENCRYPTED) != 0) {
      throw new NpyException(entry.name + " is encrypted" + AGAIN + ", which does not");
    }
    if (entry.method != STORED && entry.method != DEFLATED) {
      throw new NpyException(
          "%s is compressed by method %d of zip%s or np.savez_compressed, which take method 8"
              .formatted(entry.name, entry.method, AGAIN));
    }
    long size = file.size();
    ByteBuffer local =
        entry.at < 0 || entry.at > size - LOCAL_SIZE ? null : read(entry.at, LOCAL_SIZE);
    if (local == null || local.getInt(0) != LOCAL) {
      throw new NpyException(entry.name + " is not where the archive says" + AGAIN);
    }
    long from =
        entry.at + LOCAL_SIZE + (local.getShort(26) & 0xffff) + (local.getShort(28) & 0xffff);
    if (entry.bytes < 0 || entry.bytes > size - from) {
      throw new NpyException(entry.name + " has a wrong size, or its end is missing" + AGAIN);
    }
    Input raw = new Input(file.position(from), entry.bytes, this);
    raw.toPart(0, entry.bytes);
    boolean isStored = entry.method == STORED;
    InputStream in =
        isStored
            ? raw.stream()
            : new InflaterInputStream(raw.stream(), new Inflater(true), 1 << 16);
    // No size that an archive states is believed but that of what it stores as it is.
    return new Input(
        Channels.newChannel(new Member(in, entry.checksum)),
        isStored ? entry.bytes : Input.UNKNOWN,
        this);
  }

  /** An array; at its end it compares the checksum. */
  private static final class Member extends CheckedInputStream {
    private final long checksum;

    Member(InputStream in, long checksum) {
      super(in, new CRC32());
      this.checksum = checksum;
    }

    @Override
    public int read(byte[] bytes, int from, int length) throws IOException {
      int read;
      try {
        read = super.read(bytes, from, length);
      } catch (ZipException | EOFException e) {
        throw new NpyException(
            "is damaged: " + (e instanceof ZipException ? e.getMessage() : "its end is missing"));
      }
      if (read < 0 && getChecksum().getValue() != checksum) {
        throw new NpyException("is damaged: its checksum is not that in the archive");
      }
      return read;
    }
  }

  private static NpyException unusable(String why) {
    return new NpyException("is not a usable .npz file: " + why + AGAIN);
  }

  @Override
  public void close() throws IOException {
    file.close();
  }
}
