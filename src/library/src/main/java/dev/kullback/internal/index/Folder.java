package dev.kullback.internal.index;

import dev.kullback.internal.index.Manifest.DeletionsFile;
import dev.kullback.internal.index.Manifest.SegmentFile;
import dev.kullback.internal.work.Checkpoint;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * The files of one index: a {@link Manifest}, the segments and deleted rows that it names, and a lock. Files that a manifest names are never
 * written to again: a commit writes new ones, makes them durable, and then replaces the manifest in one step. So whenever the process ends,
 * the manifest is that of the last commit or of the one before, and all that it names is there.
 *
 * <p>Used by one thread at a time.
 */
final class Folder implements AutoCloseable {
  private static final String MANIFEST = "manifest";
  private static final String LOCK = "lock";
  private static final String TEMPORARY = ".tmp";

  /** All that an index ever has in its folder. */
  private static final Pattern NAMES =
      Pattern.compile("(manifest|(segment|deleted)-[0-9]{6,19}\\.bin)(\\.tmp)?|lock");

  /** Bytes whose checksum is computed between two looks at the interruption of the thread: a millisecond or so. */
  private static final long CHUNK = 1 << 23;

  /** Folders open in this process: a lock of the system's keeps other processes out, and would be lost if one opened the file again. */
  private static final Set<Path> OPEN = ConcurrentHashMap.newKeySet();

  private final Path path;
  private final FileOperations files;
  private final FileChannel lock;
  private Manifest manifest;

  /** The number of the next file; never one that was used, as an old file may be mapped yet. */
  private long next;

  /** Files that were written since the last commit and that no manifest has named. */
  private final List<Path> unnamed = new ArrayList<>();

  private Folder(Path path, FileOperations files, FileChannel lock, Manifest manifest) {
    this.path = path;
    this.files = files;
    this.lock = lock;
    this.manifest = manifest;
    next = manifest.next();
  }

  // --- opening

  /**
   * Opens the folder of an index, or makes one.
   *
   * @param dimension of the index to make if there is none; 0 to make none
   * @throws UncheckedIOException if the folder is none of an index, is open already, or cannot be read
   */
  static Folder open(Path given, int dimension, FileOperations files) {
    try {
      if (Files.notExists(given)) {
        if (dimension == 0) {
          throw refused(
              given, "there is no such folder; KlIndex.builder(dimension).open makes one");
        }
        files.createFolder(given);
      }
      if (!Files.isDirectory(given)) {
        throw refused(given, "is not a folder; give that of an index");
      }
      Path path = given.toRealPath();
      checkIndex(path, dimension > 0);
      if (!OPEN.add(path)) {
        throw refused(path, "is open in this process already; use that index, or close it first");
      }
      try {
        return locked(path, dimension, files);
      } catch (Throwable e) {
        OPEN.remove(path);
        throw e;
      }
    } catch (IOException e) {
      throw failed(given, e);
    } catch (DirectoryIteratorException e) {
      throw failed(given, new IOException(e));
    }
  }

  private static void checkIndex(Path path, boolean mayBeEmpty) throws IOException {
    if (Files.exists(path.resolve(MANIFEST))) {
      return;
    }
    if (!mayBeEmpty) {
      throw refused(path, "is no folder of an index: it has no file named " + MANIFEST);
    }
    try (DirectoryStream<Path> names = Files.newDirectoryStream(path)) {
      for (Path name : names) {
        String text = name.getFileName().toString();
        // these two are left where making an index was cut short
        if (!text.equals(LOCK) && !text.equals(MANIFEST + TEMPORARY)) {
          throw refused(
              path,
              "has no file named %s, but has %s; take an empty folder for a new index"
                  .formatted(MANIFEST, text));
        }
      }
    }
  }

  @SuppressWarnings("resource") // the folder's from then on
  private static Folder locked(Path path, int dimension, FileOperations files) throws IOException {
    FileChannel lock =
        FileChannel.open(path.resolve(LOCK), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
    try {
      lock(path, lock);
      Manifest manifest;
      if (Files.exists(path.resolve(MANIFEST))) {
        manifest = readManifest(path.resolve(MANIFEST));
      } else {
        manifest = new Manifest(dimension, 0, 1, null, List.of());
        writeManifest(path, manifest, files);
        showManifest(path, files);
      }
      if (dimension > 0 && manifest.dimension() != dimension) {
        throw new IllegalArgumentException(
            "%s is an index of dimension %d, not %d"
                .formatted(path, manifest.dimension(), dimension));
      }
      Folder folder = new Folder(path, files, lock, manifest);
      folder.tidy();
      return folder;
    } catch (Throwable e) {
      lock.close();
      throw e;
    }
  }

  private static void lock(Path path, FileChannel channel) throws IOException {
    boolean locked;
    try {
      locked = channel.tryLock() != null;
    } catch (OverlappingFileLockException e) { // by another class loader's copy of this class
      locked = false;
    }
    if (!locked) {
      throw refused(path, "is open in another process; close it there first");
    }
  }

  private static Manifest readManifest(Path file) throws IOException {
    try {
      return Manifest.of(Files.readAllBytes(file));
    } catch (IllegalArgumentException e) {
      throw refused(file, e.getMessage() + "; restore the folder from a copy");
    }
  }

  int dimension() {
    return manifest.dimension();
  }

  /** The files of the segments that the last commit wrote or kept. */
  List<SegmentFile> segments() {
    return manifest.segments();
  }

  /** Maps the segments of {@link #segments}, less the rows that were deleted. Reads their headers alone. */
  List<LiveSegment> read() {
    LongBuffer words = readDeleted();
    List<LiveSegment> live = new ArrayList<>();
    for (int s = 0; s < segments().size(); s++) {
      Segment segment = map(segments().get(s));
      int deleted = manifest.deleted(s);
      live.add(
          deleted == 0
              ? new LiveSegment(segment)
              : new LiveSegment(segment, bits(words, segment, deleted), segment.size() - deleted));
    }
    return live;
  }

  /** Maps the file of a segment. */
  Segment map(SegmentFile file) {
    Path at = path.resolve(file.name());
    MemorySegment image = map(at, file.length());
    Segment segment;
    try {
      segment = Segment.read(image);
    } catch (IllegalArgumentException e) {
      throw refused(at, e.getMessage() + "; restore the folder from a copy");
    }
    boolean same =
        segment.dimension() == manifest.dimension()
            && segment.size() == file.rows()
            && crc(head(image)) == file.head();
    if (!same) {
      throw changed(at);
    }
    return segment;
  }

  private static MemorySegment map(Path file, long length) {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      if (channel.size() != length) {
        throw refused(
            file,
            "has %d bytes and should have %d; restore the folder from a copy"
                .formatted(channel.size(), length));
      }
      // unmapped when nobody reaches it any more, whatever threads had it
      return channel.map(FileChannel.MapMode.READ_ONLY, 0, length, Arena.ofAuto());
    } catch (NoSuchFileException e) {
      throw refused(file, "is missing; restore the folder from a copy");
    } catch (IOException e) {
      throw failed(file, e);
    }
  }

  private LongBuffer readDeleted() {
    DeletionsFile file = manifest.deletions();
    if (file == null) {
      return LongBuffer.allocate(0);
    }
    MemorySegment image = map(path.resolve(file.name()), file.length());
    if (crc(image) != file.crc()) {
      throw changed(path.resolve(file.name()));
    }
    return image.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
  }

  /** Reads the next bits, which must be those of a segment with so many deleted rows. */
  private long[] bits(LongBuffer words, Segment segment, int deleted) {
    long[] bits = new long[Deletions.words(segment.size())];
    boolean there = words.remaining() >= bits.length;
    if (there) {
      words.get(bits);
    }
    if (!there || Deletions.count(bits) != deleted || !Deletions.fit(bits, segment.size())) {
      throw changed(path.resolve(MANIFEST));
    }
    return bits;
  }

  /** Reads all that the manifest names, and throws if a checksum differs. */
  void verify() {
    for (SegmentFile file : segments()) {
      Path at = path.resolve(file.name());
      if (crc(map(at, file.length())) != file.crc()) {
        throw changed(at);
      }
    }
    read();
  }

  // --- committing

  /** Writes a segment to a file of its own, which is none of the index before {@link #commit} names it. */
  SegmentFile write(Segment segment) {
    String name = SegmentFile.NAME.formatted(next++);
    MemorySegment image = segment.image();
    write(name, image);
    return new SegmentFile(name, image.byteSize(), segment.size(), crc(head(image)), crc(image));
  }

  /**
   * Makes these segments what the index is when it is opened again. If this or {@link #write} fails, {@link #discard} is to follow.
   *
   * @param segments files that {@link #write} returned, or of {@link #segments}
   * @param states the same segments with their deleted rows
   */
  void commit(List<SegmentFile> segments, LiveSegment[] states) {
    for (SegmentFile file : segments) { // which the next manifest would name in vain
      if (Files.notExists(path.resolve(file.name()))) {
        throw refused(path.resolve(file.name()), "is missing; restore the folder from a copy");
      }
    }
    DeletionsFile deletions = writeDeleted(states);
    Manifest committed =
        new Manifest(
            manifest.dimension(),
            manifest.generation() + 1,
            next,
            deletions,
            List.copyOf(segments));
    try {
      files.sync(path); // a manifest must not be durable before the names of what it names
      writeManifest(path, committed, files);
      unnamed.clear(); // from here on, the manifest in the folder may name them
      showManifest(path, files);
    } catch (IOException e) {
      throw failed(path, e);
    }
    manifest = committed;
    tidy();
  }

  /** Deletes what a commit that failed has written, as the disk may be full, but nothing that a manifest may name. */
  void discard() {
    unnamed.forEach(this::delete);
    unnamed.clear();
  }

  private @Nullable DeletionsFile writeDeleted(LiveSegment[] states) {
    List<Integer> counts = new ArrayList<>();
    long words = 0;
    for (LiveSegment part : states) {
      counts.add(part.segment().size() - part.live());
      words += part.deleted() == null ? 0 : part.deleted().length;
    }
    if (words == 0) {
      return null;
    }
    MemorySegment image = Arena.ofAuto().allocate(Long.BYTES * words, Long.BYTES);
    LongBuffer buffer = image.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
    for (LiveSegment part : states) {
      if (part.deleted() != null) {
        buffer.put(part.deleted());
      }
    }
    String name = DeletionsFile.NAME.formatted(next++);
    write(name, image);
    return new DeletionsFile(name, image.byteSize(), crc(image), counts);
  }

  private void write(String name, MemorySegment image) {
    Path temporary = path.resolve(name + TEMPORARY);
    unnamed.add(temporary);
    unnamed.add(path.resolve(name));
    try {
      files.write(temporary, image);
      files.rename(temporary, path.resolve(name));
    } catch (IOException e) {
      throw failed(path.resolve(name), e);
    }
  }

  private static void writeManifest(Path path, Manifest manifest, FileOperations files)
      throws IOException {
    files.write(path.resolve(MANIFEST + TEMPORARY), MemorySegment.ofArray(manifest.text()));
  }

  /** Puts the manifest that was written in the place of the one before. */
  private static void showManifest(Path path, FileOperations files) throws IOException {
    files.rename(path.resolve(MANIFEST + TEMPORARY), path.resolve(MANIFEST));
    files.sync(path);
  }

  /** Deletes what is ours and the manifest does not name, or leaves it to a later call, such as a mapped file on Windows. */
  private void tidy() {
    Set<String> named = manifest.files();
    try (DirectoryStream<Path> names = Files.newDirectoryStream(path)) {
      for (Path file : names) {
        String name = file.getFileName().toString();
        boolean kept = name.equals(MANIFEST) || name.equals(LOCK) || named.contains(name);
        if (!kept && isOurs(name)) {
          delete(file);
        }
      }
    } catch (IOException | DirectoryIteratorException e) {
      // what was committed is committed
    }
  }

  private void delete(Path file) {
    try {
      files.delete(file);
    } catch (IOException e) {
      // the next call tries again
    }
  }

  static boolean isOurs(String name) {
    return NAMES.matcher(name).matches();
  }

  @Override
  public void close() {
    try {
      lock.close();
    } catch (IOException e) {
      throw failed(path, e);
    } finally {
      OPEN.remove(path);
    }
  }

  // --- checksums and errors

  private static MemorySegment head(MemorySegment image) {
    return image.asSlice(0, Math.min(image.byteSize(), SegmentFile.HEAD));
  }

  private static int crc(MemorySegment bytes) {
    CRC32C crc = new CRC32C();
    for (long at = 0; at < bytes.byteSize(); at += CHUNK) {
      Checkpoint.checkInterrupt(Thread.currentThread());
      ByteBuffer chunk = bytes.asSlice(at, Math.min(CHUNK, bytes.byteSize() - at)).asByteBuffer();
      crc.update(chunk);
    }
    return (int) crc.getValue();
  }

  private static UncheckedIOException changed(Path file) {
    return refused(file, "was changed: its checksum is wrong; restore the folder from a copy");
  }

  private static UncheckedIOException refused(Path file, String reason) {
    String message = file + ": " + reason;
    return new UncheckedIOException(message, new IOException(message));
  }

  /** Makes the exception for a failure of the file system; an interrupted thread's is that of other interrupted work. */
  private static RuntimeException failed(Path file, IOException e) {
    if (e instanceof ClosedByInterruptException) {
      return new CancellationException(
          "interrupted; the index in %s is as before or as it was to be".formatted(file));
    }
    return new UncheckedIOException(file + ": " + e, e);
  }
}
