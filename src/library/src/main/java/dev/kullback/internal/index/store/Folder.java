package dev.kullback.internal.index.store;

import dev.kullback.internal.api.Constructors;
import dev.kullback.internal.index.store.Manifest.DeletionsFile;
import dev.kullback.internal.index.store.Manifest.SegmentFile;
import dev.kullback.internal.work.Checkpoint;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * The files of one index: a {@link Manifest}, the segments and deleted rows that it names, and a lock. Files that a manifest names are never
 * written to again: a commit writes new ones, makes them durable, and then replaces the manifest in one step. So whenever the process ends,
 * the manifest is that of the last commit or of the one before, and all that it names is there.
 *
 * <p>New files have temporary names until the manifest that names them is in its place; where the process ends in between, the next commit
 * renames them. So a file without a temporary name was once named by the manifest. A folder with one that the manifest neither names nor
 * calls obsolete is refused: someone has put another manifest there.
 *
 * <p>Only a commit changes anything in a folder that is there, but for the text in the lock's file, which says who has it: opening it, reading and closing it do not. A commit deletes what an earlier
 * manifest of this index named, and temporary files that were left.
 *
 * <p>Used by one thread at a time, but for {@link #scratch}.
 */
final class Folder implements AutoCloseable {
  private static final String MANIFEST = "manifest";
  private static final String LOCK = "lock";
  private static final byte[] NO_DATA = {};
  private static final String TEMPORARY = ".tmp";
  private static final String RESTORE = "; restore the folder from a copy";

  /** Advice to callers; the command line has its own. */
  private static final String MEANWHILE = "; KlIndex.openReadOnly reads the last commit meanwhile";

  /** Advice to a reader where there is no index. */
  private static final String NOT_YET = "if another process makes the index, try again when it has";

  /** Bytes whose checksum is computed between two looks at the interruption of the thread: a millisecond or so. */
  private static final long CHUNK = 1 << 23;

  /** Bytes of a file that are read at once to compute its checksum. */
  private static final int READ_CHUNK = 1 << 17;

  /** Bytes of a file that is read into memory, as mapping it would take longer and there may be many: 7 for each order of magnitude. */
  private static final long MOST_READ = 1 << 17;

  /** Bytes of a manifest, at most: of a hundred thousand segments. */
  private static final long MOST_TEXT = 1 << 24;

  /** What {@link #sign} writes, and bytes of it, at most. */
  private static final Pattern SIGNED = Pattern.compile("process [0-9]+ on \\S+ since \\S+\n");

  private static final int MOST_SIGNED = 1000;

  /** How often a reader begins anew while another process commits. */
  private static final int ATTEMPTS = 100;

  /** Folders open for writing in this process: a lock of the system's keeps other processes out, and would be lost if one opened the file again. */
  private static final Set<Path> OPEN = ConcurrentHashMap.newKeySet();

  /** Channels of folders that another class loader's copy of this class has open. */
  private static final Set<FileChannel> KEPT = ConcurrentHashMap.newKeySet();

  private final Path path;
  private final FileOperations files;
  private final Memory memory;
  private final boolean isReader;

  /** The locked file; null for a reader, and where there was none, or none that may be written to, until a commit. */
  private volatile @Nullable FileChannel lock;

  private Manifest manifest;

  /** The content of the manifest's file. */
  private byte[] text;

  /** A manifest that may have taken the place of this one, as the step failed that was to put it there; null if there is none. */
  private @Nullable Manifest doubtful;

  /** The number of the next file; never one that was used, as an old file may be mapped yet. */
  private long next;

  /** Names of files that were written, with temporary names, since the last commit, and that no manifest has named. */
  private final List<String> written = new ArrayList<>();

  /** Files that {@link #doubtful} names first. */
  private List<String> doubtfullyNamed = List.of();

  /** Files of memory that a commit is to name, as they have been made durable. */
  private final List<Memory.Scratch> kept = new ArrayList<>();

  /** Files that the manifest names, and that have temporary names yet. */
  private final Set<String> temporary = new TreeSet<>();

  /** Files of memory that no commit has named. */
  private final Set<Memory.Scratch> scratches = ConcurrentHashMap.newKeySet();

  /** Names of files that a manifest has named, and that are to be deleted. */
  private final Set<String> obsolete = new TreeSet<>();

  /** Whether a commit has looked for what other processes left. */
  private boolean isTidy;

  private Folder(Path path, FileOperations files, Memory memory, boolean isReader, State state) {
    this.path = path;
    this.files = files;
    this.memory = memory;
    this.isReader = isReader;
    manifest = state.manifest;
    text = state.text;
    next = state.next;
    obsolete.addAll(state.obsolete);
    temporary.addAll(state.temporary);
  }

  // --- opening

  /**
   * What a folder's manifest says, and what else lies there.
   *
   * @param obsolete files that are there and to be deleted
   * @param temporary files that the manifest names, and that have temporary names
   * @param next above the number of each file
   */
  @SuppressWarnings("ArrayRecordComponent") // compared by its content where it is compared
  private record State(
      Manifest manifest, byte[] text, Set<String> obsolete, Set<String> temporary, long next) {}

  /**
   * Opens the folder of an index to change it, or makes one. A folder that may only be read is opened, too; a commit then fails.
   *
   * @param wanted what the index is of, and the one to make if there is none
   * @throws UncheckedIOException if the folder is none of an index, is open already, or cannot be read
   */
  static Folder open(Path given, Wanted wanted, FileOperations files, Memory memory) {
    return reading(
        given,
        () -> {
          Path path =
              real(given, wanted.dimension(), files, "KlIndex.builder(dimension).open makes one");
          if (!OPEN.add(path)) {
            throw held(path, "is open in this process already; use that index, or close it first");
          }
          try {
            return locked(path, wanted, files, memory);
          } catch (Throwable e) {
            OPEN.remove(path);
            throw e;
          }
        });
  }

  /** Opens the folder of an index to read the last commit, whoever else has it open. */
  static Folder openReadOnly(Path given, Wanted wanted, FileOperations files, Memory memory) {
    return reading(
        given,
        () -> {
          Path path = real(given, 0, files, NOT_YET);
          if (readIfThere(path.resolve(MANIFEST)) == null) {
            throw withoutManifest(path, "; " + NOT_YET);
          }
          State state = checked(path, wanted, look(path));
          return new Folder(path, files, memory, true, state);
        });
  }

  private static State checked(Path path, Wanted wanted, State state) {
    if (wanted.dimension() > 0 && state.manifest.dimension() != wanted.dimension()) {
      throw new IllegalArgumentException(
          "%s is an index of dimension %d, not %d"
              .formatted(path, state.manifest.dimension(), wanted.dimension()));
    }
    if (wanted.isFull() && !state.manifest.isFull()) {
      throw new IllegalArgumentException(
          "%s is an index of diagonal Gaussians, not of full covariances; make another index for these"
              .formatted(path));
    }
    String divergence = wanted.divergence();
    if (divergence != null && !divergence.equals(state.manifest.divergence())) {
      throw new IllegalArgumentException(
          "%s is an index of the divergence %s, not %s; open it with that one, or with none, and make another index for %3$s"
              .formatted(path, state.manifest.divergence(), divergence));
    }
    return state;
  }

  /** Work with files that may fail. */
  private interface Reading<T> {
    T get() throws IOException;
  }

  private static <T> T reading(Path given, Reading<T> work) {
    try {
      return work.get();
    } catch (IOException e) {
      throw failed(given, e);
    } catch (DirectoryIteratorException e) {
      throw failed(given, Objects.requireNonNull(e.getCause()));
    }
  }

  /**
   * Returns the path of a folder that is there, after it was made if there is none.
   *
   * @param dimension 0 if none is to be made
   * @param advice where there is none, and none is to be made
   */
  private static Path real(Path given, int dimension, FileOperations files, String advice)
      throws IOException {
    try {
      if (!Files.readAttributes(given, BasicFileAttributes.class).isDirectory()) {
        throw refused(given, "is not a folder; give that of an index");
      }
    } catch (NoSuchFileException e) {
      if (Files.isSymbolicLink(given)) {
        throw refused(
            given,
            "is a link to %s, which is not there; make that folder, or remove the link"
                .formatted(Files.readSymbolicLink(given)));
      }
      if (dimension == 0) {
        throw refused(given, "there is no such folder; " + advice);
      }
      files.createFolder(given);
    }
    return given.toRealPath();
  }

  @SuppressWarnings("resource") // the folder's from then on
  private static Folder locked(Path path, Wanted wanted, FileOperations files, Memory memory)
      throws IOException {
    boolean isNew = readIfThere(path.resolve(MANIFEST)) == null;
    if (isNew) {
      checkNew(path, wanted.dimension());
    }
    FileChannel lock = lock(path, isNew);
    try {
      if (isNew && readIfThere(path.resolve(MANIFEST)) == null) {
        Manifest first =
            new Manifest(
                wanted.dimension(),
                wanted.newDivergence(),
                wanted.isFull(),
                0,
                1,
                null,
                List.of(),
                List.of(),
                NO_DATA);
        writeManifest(path, first.text(), files);
        showManifest(path, files);
      }
      State state = checked(path, wanted, look(path));
      Folder folder = new Folder(path, files, memory, false, state);
      folder.lock = lock;
      return folder;
    } catch (Throwable e) {
      if (lock != null) {
        unlock(lock);
      }
      throw e;
    }
  }

  /** Refuses a folder without a manifest if there is none to be made, or if it has files that look like an index's. */
  private static void checkNew(Path path, int dimension) throws IOException {
    if (dimension == 0 || !names(path).isEmpty()) {
      throw withoutManifest(path, "");
    }
    byte[] begun = readIfThere(path.resolve(MANIFEST + TEMPORARY));
    if (begun != null && !Manifest.isBegun(begun)) {
      throw refused(
          path.resolve(MANIFEST + TEMPORARY),
          "is not an index's, and an index needs that name; move it, or take another folder");
    }
  }

  /** Makes the exception for a folder without a manifest: it is no index's, or its files tell that the manifest is lost. */
  private static UncheckedIOException withoutManifest(Path path, String advice) throws IOException {
    for (String name : names(path)) {
      return corrupt(
          path,
          "has no file named %s, but has %s: restore the %1$s, or take another folder for a new index"
              .formatted(MANIFEST, name));
    }
    return refused(
        path, "is not the folder of an index: it has no file named " + MANIFEST + advice);
  }

  /**
   * Locks the folder against other writers.
   *
   * @param create whether to make the file if there is none, for a commit, or leave that to it
   * @return null if there is no file, or it must not be written to
   */
  private static @Nullable FileChannel lock(Path path, boolean create) throws IOException {
    FileChannel channel;
    try {
      Path file = path.resolve(LOCK);
      channel =
          create
              ? FileChannel.open(
                  file,
                  StandardOpenOption.CREATE,
                  StandardOpenOption.READ,
                  StandardOpenOption.WRITE)
              : FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE);
    } catch (FileSystemException e) {
      boolean isReadOnly =
          e instanceof NoSuchFileException
              || e instanceof AccessDeniedException
              || !Files.isWritable(path);
      if (create || !isReadOnly) {
        throw e;
      }
      return null;
    }
    try {
      if (channel.tryLock() == null) {
        throw held(path, "is open in " + holder(channel) + "; close it there first");
      }
      sign(channel);
      return channel;
    } catch (OverlappingFileLockException e) {
      KEPT.add(channel); // closing it would take the lock from its holder
      throw held(
          path,
          "is open in this process already, by this library in another class loader; close it there first");
    } catch (Throwable e) {
      channel.close();
      throw e;
    }
  }

  /** Writes into the lock's file who has it, for the message of whoever does not get it; leaves a file alone that is another program's. */
  private static void sign(FileChannel channel) throws ClosedByInterruptException {
    String text =
        "process %d on %s since %s\n"
            .formatted(
                ProcessHandle.current().pid(),
                hostName(),
                Instant.now().truncatedTo(ChronoUnit.SECONDS));
    try {
      if (channel.size() == 0 || signature(channel) != null) {
        channel.truncate(0).write(ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8)));
      }
    } catch (ClosedByInterruptException e) { // the lock is gone
      throw e;
    } catch (IOException e) {
      // the lock is what counts
    }
  }

  /** Takes back what {@link #sign} wrote, and releases the lock. */
  private static void unlock(FileChannel channel) throws IOException {
    try (channel) {
      if (signature(channel) != null) {
        channel.truncate(0);
      }
    } catch (ClosedByInterruptException e) { // which releases it as well
      Thread.currentThread().interrupt();
    }
  }

  /** Returns what {@link #sign} wrote, or null if the file has something else. */
  private static @Nullable String signature(FileChannel channel) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(MOST_SIGNED);
    channel.read(bytes, 0);
    String text = StandardCharsets.UTF_8.decode(bytes.flip()).toString();
    return SIGNED.matcher(text).matches() ? text.strip() : null;
  }

  /** Returns the system's own name, without asking a name server for it. */
  private static String hostName() {
    try {
      return Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
    } catch (IOException e) {
      return Objects.requireNonNullElse(System.getenv("COMPUTERNAME"), "this-host");
    }
  }

  /** Returns who has the lock, as {@link #sign} wrote it. */
  private static String holder(FileChannel channel) {
    try {
      return Objects.requireNonNullElse(signature(channel), "another process");
    } catch (IOException e) {
      return "another process"; // on Windows, nobody else reads a locked file
    }
  }

  /** Returns the content of a file, or null if there is none. */
  private static byte @Nullable [] readIfThere(Path file) throws IOException {
    try {
      BasicFileAttributes attributes = Files.readAttributes(file, BasicFileAttributes.class);
      if (!attributes.isRegularFile() || attributes.size() > MOST_TEXT) {
        throw corrupt(file, "is not the manifest of an index");
      }
      return Files.readAllBytes(file);
    } catch (NoSuchFileException e) {
      return null;
    }
  }

  /** Reads the names of files of segments or deleted rows, whole or unfinished. */
  private static Set<String> names(Path path) throws IOException {
    Set<String> found = new TreeSet<>();
    try (DirectoryStream<Path> names = Files.newDirectoryStream(path)) {
      for (Path file : names) {
        String name = file.getFileName().toString();
        if (isOurs(name)) {
          found.add(name);
        }
      }
    }
    return found;
  }

  private static boolean isOurs(String name) {
    return Manifest.number(whole(name)) >= 0;
  }

  private static boolean isTemporary(String name) {
    return name.endsWith(TEMPORARY);
  }

  /** Returns the name that a temporary file is to have. */
  private static String whole(String name) {
    return isTemporary(name) ? name.substring(0, name.length() - TEMPORARY.length()) : name;
  }

  /** Reads the manifest, and checks that it explains the files in the folder. Begins anew where another process commits meanwhile. */
  private static State look(Path path) throws IOException {
    Path file = path.resolve(MANIFEST);
    for (int attempt = 1; ; attempt++) {
      byte[] text = readIfThere(file);
      if (text == null) {
        throw withoutManifest(path, "");
      }
      Manifest manifest = parse(file, text);
      Set<String> named = manifest.files();
      Set<String> obsolete = new TreeSet<>();
      Set<String> temporary = new TreeSet<>();
      List<String> unknown = new ArrayList<>();
      long next = manifest.next();
      for (String name : names(path)) {
        String whole = whole(name);
        next = Math.max(next, Math.min(Manifest.number(whole), Manifest.MOST_NUMBER / 2) + 1);
        if (manifest.obsolete().contains(whole)) {
          obsolete.add(whole);
        } else if (isTemporary(name)) {
          if (named.contains(whole) && Files.notExists(path.resolve(whole))) {
            temporary.add(whole);
          }
        } else if (!named.contains(name)) {
          unknown.add(name);
        }
      }
      unknown.removeIf(name -> Files.notExists(path.resolve(name)));
      if (unknown.isEmpty()) {
        return new State(manifest, text, obsolete, temporary, next);
      }
      if (attempt == ATTEMPTS || Arrays.equals(text, readIfThere(file))) {
        throw corrupt(
            path,
            "has %s, which its %s does not name: that is older than the files, or of another index; restore the %2$s that belongs to them, or the folder, from a copy"
                .formatted(unknown.getFirst(), MANIFEST));
      }
    }
  }

  private static Manifest parse(Path file, byte[] text) {
    try {
      return Manifest.of(text);
    } catch (OtherVersionException e) {
      throw refused(file, String.valueOf(e.getMessage()));
    } catch (IllegalArgumentException e) {
      throw corrupt(file, e.getMessage() + RESTORE);
    }
  }

  int dimension() {
    return manifest.dimension();
  }

  String divergence() {
    return manifest.divergence();
  }

  boolean isFull() {
    return manifest.isFull();
  }

  boolean isReader() {
    return isReader;
  }

  Path path() {
    return path;
  }

  /** The user's data of the last commit, which are not to be changed. */
  byte[] userData() {
    return manifest.userData();
  }

  /** The files of the segments that the last commit wrote or kept. */
  List<SegmentFile> segments() {
    return manifest.segments();
  }

  /**
   * Reads the segments of {@link #segments}, less the rows that were deleted: small ones into memory, of others the header, as they are
   * mapped. The caller is to release each. A reader takes the manifest of a later commit where another process makes one meanwhile.
   */
  List<LiveSegment> read() {
    return read(_ -> null);
  }

  private List<LiveSegment> read(Opened opened) {
    for (int attempt = 1; ; attempt++) {
      try {
        return readOnce(opened);
      } catch (UncheckedIOException e) {
        if (!isReader || attempt == ATTEMPTS || !isReplaced()) {
          throw e;
        }
        manifestIsReplaced();
      }
    }
  }

  /** Finds the segment of a file among those that are open. */
  interface Opened {
    @Nullable Segment find(SegmentFile file);
  }

  /**
   * Reads what was committed since, as {@link #read} does, or returns null if nothing was. If this fails, all is as before.
   *
   * @param opened the segments that need not be opened again
   */
  @Nullable List<LiveSegment> refresh(Opened opened) {
    if (!isReplaced()) {
      return null;
    }
    Manifest before = manifest;
    byte[] textBefore = text;
    try {
      manifestIsReplaced();
      return read(opened);
    } catch (Throwable e) {
      manifest = before;
      text = textBefore;
      throw e;
    }
  }

  private boolean isReplaced() {
    return reading(path, () -> !Arrays.equals(text, readIfThere(path.resolve(MANIFEST))));
  }

  private void manifestIsReplaced() {
    State state = reading(path, () -> look(path));
    if (state.manifest.dimension() != manifest.dimension()) {
      throw refused(
          path,
          "is an index of dimension %d now, and was one of %d: open it anew"
              .formatted(state.manifest.dimension(), manifest.dimension()));
    }
    if (!state.manifest.divergence().equals(divergence())) {
      throw refused(
          path,
          "is an index of the divergence %s now, and was one of %s: open it anew"
              .formatted(state.manifest.divergence(), divergence()));
    }
    if (state.manifest.isFull() != isFull()) {
      throw refused(
          path,
          "is an index of %s now, and was one of %s: open it anew"
              .formatted(covariances(!isFull()), covariances(isFull())));
    }
    manifest = state.manifest;
    text = state.text;
  }

  private static String covariances(boolean isFull) {
    return isFull ? "full covariances" : "diagonal Gaussians";
  }

  private List<LiveSegment> readOnce(Opened opened) {
    List<LiveSegment> live = new ArrayList<>();
    try {
      LongBuffer words = LongBuffer.wrap(readDeleted());
      for (int s = 0; s < segments().size(); s++) {
        Segment segment = opened.find(segments().get(s));
        if (segment != null) {
          segment.retain();
        } else {
          segment = map(segments().get(s));
        }
        live.add(new LiveSegment(segment));
        int deleted = manifest.deleted(s);
        if (deleted > 0) {
          Deletions rows = deleted(words, segment, deleted);
          live.set(s, new LiveSegment(segment, rows, segment.size() - deleted));
        }
      }
      return live;
    } catch (Throwable e) {
      live.forEach(part -> part.segment().release());
      throw e;
    }
  }

  /** Maps the file of a segment, or reads it if it is small. The caller is to release the segment. */
  Segment map(SegmentFile file) {
    Path at = path.resolve(file.name());
    long length = file.length();
    Memory.Block block =
        length <= MOST_READ
            ? load(at, length)
            : withContent(
                at, length, channel -> memory.map(channel, MapMode.READ_ONLY, length, null));
    try {
      MemorySegment image = block.segment();
      boolean isAsWritten =
          crc(head(image)) == file.head() && (block.isMapped() || crc(image) == file.crc());
      if (!isAsWritten) { // also where the damage looks like another version
        throw changed(at);
      }
      Segment segment = segment(at, block);
      if (segment.dimension() != manifest.dimension()
          || segment.size() != file.rows()
          || segment.form().isFull() != isFull()
          || segment.coordinates() != Coordinates.of(divergence(), isFull())) {
        throw changed(at);
      }
      return segment;
    } catch (Throwable e) {
      block.release();
      throw e;
    }
  }

  /**
   * Maps the file that a segment was written to, so that it needs no memory of its own, or returns null if the segment is small, in a file
   * already, or cannot be mapped: searches go on reading it where it is.
   */
  @Nullable Segment mapped(SegmentFile file, Segment written) {
    if (file.length() <= MOST_READ || written.isMapped()) {
      return null;
    }
    try {
      return map(file);
    } catch (RuntimeException | OutOfMemoryError e) { // it has been committed all the same
      return null;
    }
  }

  private static Segment segment(Path at, Memory.Block block) {
    try {
      return Segment.read(block);
    } catch (OtherVersionException e) {
      throw refused(at, String.valueOf(e.getMessage()));
    } catch (IllegalArgumentException e) {
      throw corrupt(at, e.getMessage() + RESTORE);
    }
  }

  private Memory.Block load(Path at, long length) {
    Memory.Block block = memory.allocate(length);
    try {
      read(at, block.segment());
      return block;
    } catch (Throwable e) {
      block.release();
      throw e;
    }
  }

  /** Reads a file that should have as many bytes. */
  private static void read(Path at, MemorySegment to) {
    withContent(
        at,
        to.byteSize(),
        channel -> {
          readFully(at, channel, to.asByteBuffer());
          return true;
        });
  }

  /** Does something with a file of the index. */
  private interface Content<T> {
    T of(FileChannel channel) throws IOException;
  }

  private static <T> T withContent(Path file, long length, Content<T> work) {
    try (FileChannel channel = openFile(file)) {
      if (channel.size() != length) {
        throw corrupt(
            file, "has %d bytes and should have %d".formatted(channel.size(), length) + RESTORE);
      }
      return work.of(channel);
    } catch (NoSuchFileException e) {
      throw missing(file);
    } catch (IOException e) {
      throw failed(file, e);
    }
  }

  /** Opens a file of the index, which has a temporary name where the commit that wrote it has not ended. */
  private static FileChannel openFile(Path file) throws IOException {
    for (Path name : new Path[] {file, temporary(file)}) {
      try {
        return FileChannel.open(name, StandardOpenOption.READ);
      } catch (NoSuchFileException e) {
        // it has the other name
      }
    }
    return FileChannel.open(file, StandardOpenOption.READ); // it may have been renamed meanwhile
  }

  private static Path temporary(Path file) {
    return file.resolveSibling(file.getFileName() + TEMPORARY);
  }

  /** Throws if the checksum of a file differs. */
  private static void check(Path file, long length, int crc) {
    withContent(
        file,
        length,
        channel -> {
          CRC32C found = new CRC32C();
          ByteBuffer chunk = ByteBuffer.allocate(READ_CHUNK);
          for (long left = length; left > 0; left -= chunk.limit()) {
            readFully(file, channel, chunk.clear().limit((int) Math.min(left, READ_CHUNK)));
            found.update(chunk.flip());
          }
          if ((int) found.getValue() != crc) {
            throw changed(file);
          }
          return true;
        });
  }

  private long[] readDeleted() {
    DeletionsFile file = manifest.deletions();
    if (file == null) {
      return new long[0];
    }
    Path at = path.resolve(file.name());
    MemorySegment image = MemorySegment.ofArray(new byte[Math.toIntExact(file.length())]);
    read(at, image);
    if (crc(image) != file.crc()) {
      throw changed(at);
    }
    long[] words = new long[(int) (image.byteSize() / Long.BYTES)];
    MemorySegment.copy(image, Segment.LONG, 0, words, 0, words.length);
    return words;
  }

  private static void readFully(Path at, FileChannel channel, ByteBuffer to) throws IOException {
    while (to.hasRemaining()) {
      if (channel.read(to) < 0) {
        throw changed(at);
      }
    }
  }

  /** Reads the next bits, which must be those of a segment with {@code deleted} deleted rows. */
  private Deletions deleted(LongBuffer words, Segment segment, int deleted) {
    long[] bits = new long[Deletions.words(segment.size())];
    boolean there = words.remaining() >= bits.length;
    if (there) {
      words.get(bits);
    }
    Deletions rows = Deletions.of(bits, segment.size());
    if (!there || Deletions.count(bits) != deleted || rows == null) {
      throw changed(path.resolve(MANIFEST));
    }
    return rows;
  }

  /**
   * Reads all that the manifest names, and throws if a checksum differs. A reader reads what it has opened: another process may have deleted the
   * files since.
   *
   * @param opened the segments of {@link #read}, in their order, as long as nothing has changed them
   */
  void verify(LiveSegment[] opened) {
    for (int s = 0; s < segments().size(); s++) {
      SegmentFile file = segments().get(s);
      Path at = path.resolve(file.name());
      if (!isReader) {
        check(at, file.length(), file.crc());
      } else if (crc(opened[s].segment().image()) != file.crc()) {
        throw changed(at);
      }
    }
    if (!isReader) {
      readOnce(_ -> null).forEach(part -> part.segment().release());
    }
  }

  // --- copies

  /**
   * Makes a folder of what was committed last, by hard links to its files, or copies where there are no links. What a later commit of another process has
   * deleted is written again.
   *
   * @param opened the segments of the last commit, in their order, with their deleted rows
   */
  void copyTo(Path given, LiveSegment[] opened) {
    reading(
        given,
        () -> {
          if (isWithin(given)) {
            throw refused(
                given, "is in the folder of the index itself, %s; name another".formatted(path));
          }
          Path target = real(given, manifest.dimension(), files, "");
          if (!OPEN.add(target)) {
            throw held(target, "is open in this process already; name another folder");
          }
          try {
            copyAlone(target, opened);
          } finally {
            OPEN.remove(target);
          }
          return true;
        });
  }

  /** Makes the copy in a folder that nothing else in this process uses. */
  private void copyAlone(Path target, LiveSegment[] opened) throws IOException {
    Path lockFile = target.resolve(LOCK);
    List<Path> made = new ArrayList<>();
    if (Files.notExists(lockFile)) {
      made.add(lockFile);
    }
    FileChannel lock = Objects.requireNonNull(lock(target, true));
    try {
      if (readIfThere(target.resolve(MANIFEST)) != null) {
        throw refused(target, "has an index already; name another folder");
      }
      checkNew(target, manifest.dimension());
      for (int s = 0; s < opened.length; s++) {
        MemorySegment image = opened[s].segment().image();
        copy(segments().get(s).name(), target, made, () -> image);
      }
      DeletionsFile deletions = manifest.deletions();
      if (deletions != null) {
        copy(deletions.name(), target, made, () -> MemorySegment.ofArray(bits(opened)));
      }
      files.sync(target);
      Manifest copy =
          new Manifest(
              manifest.dimension(),
              manifest.divergence(),
              manifest.isFull(),
              manifest.generation(),
              manifest.next(),
              deletions,
              segments(),
              List.of(),
              manifest.userData());
      made.add(target.resolve(MANIFEST + TEMPORARY));
      writeManifest(target, copy.text(), files);
      made.add(target.resolve(MANIFEST));
      showManifest(target, files);
      made.clear();
    } finally {
      for (Path file : made.reversed()) { // the manifest first
        Files.deleteIfExists(file);
      }
      unlock(lock);
    }
  }

  /** Whether a folder, which may have to be made, is below this one. */
  private boolean isWithin(Path given) throws IOException {
    Path above = given.toAbsolutePath();
    while (above != null && Files.notExists(above)) {
      above = above.getParent();
    }
    if (above == null) {
      return false;
    }
    Path real = above.toRealPath();
    boolean isThere = above.equals(given.toAbsolutePath());
    return real.startsWith(path) && !(isThere && real.equals(path));
  }

  private void copy(String name, Path target, List<Path> made, Supplier<MemorySegment> content)
      throws IOException {
    Path file = target.resolve(name);
    made.add(file);
    for (Path from : new Path[] {path.resolve(name), temporary(path.resolve(name))}) {
      try {
        files.link(from, file);
        return;
      } catch (NoSuchFileException e) {
        // it has the other name, or none any more
      } catch (IOException e) {
        throw unwritten(file, file, content.get().byteSize(), e, files);
      }
    }
    if (!isReader) {
      throw missing(path.resolve(name));
    }
    try {
      files.write(file, content.get());
    } catch (IOException e) {
      throw unwritten(file, file, content.get().byteSize(), e, files);
    }
  }

  // --- memory in files

  /** Whether {@link #scratch} can be used. */
  boolean hasScratch() {
    return lock != null && files.renamesMapped();
  }

  /**
   * Makes memory for a segment in a file, so that its size is limited by the disk alone, and a commit need not write it. The file is deleted
   * when the memory is given back, unless a commit has named it. May be called by any thread.
   *
   * @throws UncheckedIOException if there is no room
   */
  Memory.Block scratch(long bytes) {
    Path file = path.resolve(SegmentFile.NAME.formatted(number()) + TEMPORARY);
    Memory.Scratch scratch = new Memory.Scratch(file, files, scratches);
    try {
      files.fill(file, bytes);
      try (FileChannel channel =
          FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
        return memory.map(channel, MapMode.READ_WRITE, bytes, scratch);
      }
    } catch (IOException e) {
      RuntimeException failure = unwritten(file, file, bytes, e, files);
      scratch.delete();
      throw failure;
    } catch (Throwable e) {
      scratch.delete();
      throw e;
    }
  }

  private synchronized long number() {
    return next++;
  }

  private synchronized long next() {
    return next;
  }

  // --- committing

  /**
   * Makes sure that a commit can be made.
   *
   * @throws UncheckedIOException if the folder must not be written to, or another process has committed
   */
  void checkWritable() {
    reading(
        path,
        () -> {
          if (lock == null) {
            lock = lock(path, true);
          }
          checkManifest();
          return true;
        });
  }

  /**
   * Refuses to commit where the manifest is not the one that was read or written last: its commit would be lost. So it is where a lock was
   * removed, or is none, as on some network shares.
   */
  private void checkManifest() throws IOException {
    byte[] now = readIfThere(path.resolve(MANIFEST));
    if (doubtful != null && Arrays.equals(now, doubtful.text())) {
      adopt(doubtful, doubtful.text(), doubtfullyNamed);
    } else if (!Arrays.equals(now, text)) {
      throw refused(
          path.resolve(MANIFEST),
          "was %s by another process since it was opened here, despite the lock; nothing was committed: open the folder anew, and make the changes again"
              .formatted(now == null ? "removed" : "replaced"));
    } else if (doubtful != null) { // it has not taken the place
      doubtfullyNamed.forEach(name -> delete(name + TEMPORARY));
      doubtful = null;
    }
  }

  /** Takes a manifest that is in its place. */
  private void adopt(Manifest committed, byte[] content, List<String> newlyNamed) {
    obsolete.addAll(manifest.files());
    obsolete.removeAll(committed.files());
    temporary.addAll(newlyNamed);
    temporary.retainAll(committed.files());
    manifest = committed;
    text = content;
    doubtful = null;
  }

  /** Writes a segment to a file of its own, which is none of the index before {@link #commit} names it. */
  SegmentFile write(Segment segment) {
    MemorySegment image = segment.block().segment();
    Memory.Scratch scratch = segment.block().scratch();
    String name;
    if (scratch == null || Files.notExists(scratch.file())) {
      name = SegmentFile.NAME.formatted(number());
      write(name, image);
    } else {
      name = whole(scratch.file().getFileName().toString());
      try {
        segment.block().force(files, scratch.file());
      } catch (IOException e) {
        throw failed(scratch.file(), e);
      }
      kept.add(scratch);
    }
    return new SegmentFile(name, image.byteSize(), segment.size(), crc(head(image)), crc(image));
  }

  /**
   * Makes these segments what the index is when it is opened again. If this or {@link #write} fails, {@link #discard} is to follow.
   *
   * @param segments files that {@link #write} returned, or of {@link #segments}
   * @param states the same segments with their deleted rows
   * @param userData of the commit; it is not copied
   */
  void commit(List<SegmentFile> segments, LiveSegment[] states, byte[] userData) {
    Set<String> before = manifest.files();
    for (SegmentFile file : segments) { // which the next manifest would name in vain
      Path at = path.resolve(file.name());
      if (before.contains(file.name()) && Files.notExists(at) && Files.notExists(temporary(at))) {
        throw missing(at);
      }
    }
    DeletionsFile deletions = writeDeleted(states);
    Set<String> after = new TreeSet<>(obsolete);
    after.addAll(before);
    segments.forEach(file -> after.remove(file.name()));
    Manifest committed =
        new Manifest(
            manifest.dimension(),
            manifest.divergence(),
            manifest.isFull(),
            manifest.generation() + 1,
            next(),
            deletions,
            List.copyOf(segments),
            List.copyOf(after),
            userData);
    reading(
        path,
        () -> {
          replaceManifest(committed);
          return true;
        });
    finish();
  }

  private void replaceManifest(Manifest committed) throws IOException {
    byte[] content = committed.text();
    files.sync(path); // a manifest must not be durable before the names of what it names
    writeManifest(path, content, files);
    checkManifest();
    List<String> names = new ArrayList<>(written);
    for (Memory.Scratch scratch : kept) {
      scratch.keep();
      names.add(whole(scratch.file().getFileName().toString()));
    }
    written.clear(); // from here on, the manifest in the folder may name them
    kept.clear();
    doubtful = committed;
    doubtfullyNamed = names;
    showManifest(path, files);
    adopt(committed, content, names);
  }

  /** Deletes what a commit that failed has written, as the disk may be full, but nothing that a manifest may name. */
  void discard() {
    List<String> names = List.copyOf(written);
    written.clear();
    kept.clear(); // which are memory of the index yet
    names.forEach(name -> delete(name + TEMPORARY));
  }

  private @Nullable DeletionsFile writeDeleted(LiveSegment[] states) {
    List<Integer> counts = new ArrayList<>();
    for (LiveSegment part : states) {
      counts.add(part.segment().size() - part.live());
    }
    byte[] bytes = bits(states);
    if (bytes.length == 0) {
      return null;
    }
    String name = DeletionsFile.NAME.formatted(number());
    MemorySegment image = MemorySegment.ofArray(bytes);
    write(name, image);
    return new DeletionsFile(name, image.byteSize(), crc(image), counts);
  }

  /** Returns the bits of deleted rows of all segments that have any, one after the other. */
  private static byte[] bits(LiveSegment[] states) {
    int words = 0;
    for (LiveSegment part : states) {
      words += part.deleted() == null ? 0 : Deletions.words(part.segment().size());
    }
    byte[] bytes = new byte[Math.multiplyExact(Long.BYTES, words)];
    LongBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
    for (LiveSegment part : states) {
      if (part.deleted() != null) {
        part.deleted().write(part.segment().size(), buffer);
      }
    }
    return bytes;
  }

  private void write(String name, MemorySegment image) {
    Path file = path.resolve(name + TEMPORARY);
    try {
      files.create(file);
      written.add(name);
      files.write(file, image);
    } catch (IOException e) {
      throw unwritten(path.resolve(name), file, image.byteSize(), e, files);
    }
  }

  private static void writeManifest(Path path, byte[] text, FileOperations files)
      throws IOException {
    Path file = path.resolve(MANIFEST + TEMPORARY);
    try {
      files.write(file, MemorySegment.ofArray(text));
    } catch (IOException e) {
      throw unwritten(path.resolve(MANIFEST), file, text.length, e, files);
    }
  }

  /** Puts the manifest that was written in the place of the one before. */
  private static void showManifest(Path path, FileOperations files) throws IOException {
    files.rename(path.resolve(MANIFEST + TEMPORARY), path.resolve(MANIFEST));
    files.sync(path);
  }

  /** Renames what was committed and deletes what is obsolete, or leaves it to a later commit, such as a mapped file on Windows. */
  private void finish() {
    temporary.removeIf(this::name);
    obsolete.removeIf(name -> delete(name + TEMPORARY) && delete(name));
    if (!isTidy) {
      isTidy = true;
      try {
        deleteUnfinished(Files.getLastModifiedTime(path.resolve(MANIFEST)));
      } catch (IOException | DirectoryIteratorException e) {
        // what was committed is committed
      }
    }
  }

  /** Gives a temporary file its name, and returns whether it has it. */
  private boolean name(String name) {
    try {
      files.rename(path.resolve(name + TEMPORARY), path.resolve(name));
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  /** Deletes temporary files that were left before a commit. */
  private void deleteUnfinished(FileTime committed) throws IOException {
    Set<String> named = manifest.files();
    for (String name : names(path)) {
      boolean isLeft = isTemporary(name) && !named.contains(whole(name)) && !isScratch(name);
      if (isLeft && isFrom(committed, name)) {
        delete(name);
      }
    }
  }

  /** Whether a file is there and no newer than this. */
  private boolean isFrom(FileTime committed, String name) throws IOException {
    try {
      return Files.getLastModifiedTime(path.resolve(name)).compareTo(committed) <= 0;
    } catch (NoSuchFileException e) { // it was a merge's, whose memory was given back
      return false;
    }
  }

  private boolean isScratch(String name) {
    return scratches.stream().anyMatch(scratch -> scratch.file().endsWith(name));
  }

  /** Files of memory that no commit has named yet. */
  List<Memory.Scratch> scratches() {
    return List.copyOf(scratches);
  }

  /**
   * Deletes what earlier commits have left, or that ended before their end.
   *
   * @param before files of memory, which are deleted if no commit has named them, even while searches use them
   * @throws UncheckedIOException if something cannot be deleted
   */
  void purge(List<Memory.Scratch> before) {
    before.forEach(Memory.Scratch::delete);
    reading(
        path,
        () -> {
          checkWritable();
          finish();
          deleteUnfinished(FileTime.from(Instant.MAX));
          files.sync(path); // or a power failure brings back what was deleted
          Set<String> left = names(path);
          left.removeIf(name ->
              manifest.files().contains(whole(name))
                  || isScratch(name)
                  || Files.notExists(path.resolve(name)));
          if (!left.isEmpty()) {
            throw refused(
                path,
                "has %s yet, which could not be deleted, as a search or another process reads it; purge again later"
                    .formatted(left.iterator().next()));
          }
          return true;
        });
  }

  /** Deletes a file, and returns whether it is gone. */
  private boolean delete(String name) {
    try {
      files.delete(path.resolve(name));
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  @Override
  public void close() {
    scratches.forEach(Memory.Scratch::delete);
    if (isReader) {
      return;
    }
    try {
      if (lock != null) {
        unlock(lock);
      }
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
    return corrupt(file, "was changed: its checksum is wrong" + RESTORE);
  }

  private static UncheckedIOException missing(Path file) {
    return corrupt(file, "is missing" + RESTORE);
  }

  private static UncheckedIOException refused(Path file, String reason) {
    return refused(file, reason, UncheckedIOException::new);
  }

  private static UncheckedIOException corrupt(Path file, String reason) {
    return refused(file, reason, Constructors.CORRUPT_INDEX.get());
  }

  private static UncheckedIOException held(Path folder, String reason) {
    String message = folder + ": " + reason;
    return Constructors.INDEX_LOCKED
        .get()
        .apply(message + MEANWHILE, new IOException(message)); // the cause is without advice
  }

  private static UncheckedIOException refused(
      Path file,
      String reason,
      BiFunction<String, IOException, ? extends UncheckedIOException> constructor) {
    String message = file + ": " + reason;
    return constructor.apply(message, new IOException(message));
  }

  /** Makes the exception for a failure of the file system; an interrupted thread's is that of other interrupted work. */
  private static RuntimeException failed(Path file, IOException e) {
    if (e instanceof ClosedByInterruptException) {
      return new CancellationException(
          "interrupted; the index in %s is as before or as it was to be".formatted(file));
    }
    return new UncheckedIOException(file + ": " + reason(file, e), e);
  }

  /**
   * Makes the exception for a file of so many bytes that could not be written. Whether the disk is full is asked of the disk, before the file is deleted: the
   * system says it in the user's language. What was written takes room; on a network share all may be, before it says that it is full.
   *
   * @param part what was written
   */
  private static RuntimeException unwritten(
      Path file, Path part, long bytes, IOException e, FileOperations files) {
    boolean hasOtherReason =
        e.getClass() != IOException.class && e.getClass() != FileSystemException.class;
    Path folder = Objects.requireNonNull(file.getParent());
    long room = files.room(folder);
    return hasOtherReason || (room > 0 && room >= bytes - sizeIfThere(part))
        ? failed(file, e)
        : Constructors.DISK_FULL.get().apply(file + ": " + reason(file, e), e);
  }

  private static long sizeIfThere(Path file) {
    try {
      return Files.size(file);
    } catch (IOException e) {
      return 0;
    }
  }

  private static String reason(Path file, IOException e) {
    if (e instanceof FileAlreadyExistsException) {
      return "is there already: another process may be writing to the folder, despite the lock";
    }
    if (!(e instanceof FileSystemException failure)) {
      return e.getMessage() == null ? e.toString() : e.getMessage();
    }
    String reason =
        failure.getReason() != null
            ? failure.getReason()
            : switch (failure) {
              case AccessDeniedException _ -> "permission denied";
              case NoSuchFileException _ -> "is not there any more";
              default -> e.getClass().getSimpleName();
            };
    String other = failure.getFile();
    return other == null || other.equals(file.toString()) ? reason : reason + " (" + other + ')';
  }
}
