package dev.kullback.cli.output;

import java.io.Closeable;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Pattern;

/**
 * A file beside the one that it is to replace, private until then. It is locked while it is in use, so one whose lock is
 * free was left behind by a process that was killed: whoever writes to the same target removes it.
 */
public final class TemporaryFile implements Closeable {
  private static final String SUFFIX = ".kullback-tmp";

  /** Bytes of the target's name that the file's own has: it stays below 143, the shortest limit of a common file system. */
  private static final int STEM_BYTES = 110;

  private static final int ATTEMPTS = 10;
  private static final boolean POSIX =
      FileSystems.getDefault().supportedFileAttributeViews().contains("posix");
  private static final Set<PosixFilePermission> PRIVATE =
      PosixFilePermissions.fromString("rw-------");

  private static final Set<PosixFilePermission> OF_THE_GROUP =
      PosixFilePermissions.fromString("---rwx---");

  /** The files of this process: closing a second channel of one would, by POSIX, release its lock. */
  private static final Set<Path> IN_USE = ConcurrentHashMap.newKeySet();

  private final Path folder;
  private final String prefix;
  private final Thread hook = new Thread(this::delete);
  private final FileChannel channel;
  private volatile Path path;

  /** The permissions of a new file here, by the umask or the folder; empty where permissions are not POSIX's. */
  private Set<PosixFilePermission> usual = Set.of();

  /** Creates a file beside that of a name in a folder. */
  TemporaryFile(Path folder, String name) throws IOException {
    this.folder = folder;
    prefix = "." + stem(name) + ".";
    path = fresh();
    IN_USE.add(path);
    Runtime.getRuntime().addShutdownHook(hook);
    try {
      channel = create();
    } catch (IOException e) {
      release();
      throw e;
    }
    removeLeftovers();
  }

  /** Returns the channel to read and write by; to open the file a second time would in the end release its lock. */
  public FileChannel channel() {
    return channel;
  }

  public Path path() {
    return path;
  }

  /** Shortens a long name to its beginning, and a sum that tells it from others that begin alike. */
  private static String stem(String name) {
    if (bytes(name) <= STEM_BYTES) {
      return name;
    }
    String sum = "~%08x".formatted(name.hashCode());
    int end = name.length();
    while (bytes(name.substring(0, end)) + sum.length() > STEM_BYTES) {
      end = name.offsetByCodePoints(end, -1);
    }
    return name.substring(0, end) + sum;
  }

  private static int bytes(String name) {
    return name.getBytes(StandardCharsets.UTF_8).length;
  }

  private Path fresh() {
    return folder.resolve(
        "%s%016x%s".formatted(prefix, ThreadLocalRandom.current().nextLong(), SUFFIX));
  }

  private FileChannel create() throws IOException {
    IOException failure = new IOException("other processes keep removing it");
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      try {
        FileChannel made = POSIX ? createPrivate() : open();
        if (isLocked(made) && Files.exists(path, LinkOption.NOFOLLOW_LINKS)) {
          return made;
        }
        made.close();
      } catch (NoSuchFileException e) {
        failure = e;
      }
      // Before it was locked another process took it for one that was left behind.
      delete();
      changeName();
    }
    throw failure;
  }

  /** Creates the file for its owner alone. An empty file before it tells the usual permissions, so others can never open the true one. */
  private FileChannel createPrivate() throws IOException {
    usual = Files.getPosixFilePermissions(Files.createFile(path));
    delete();
    changeName();
    return open(PosixFilePermissions.asFileAttribute(PRIVATE));
  }

  /** Takes a fresh name, so that none stands for two files: a process that took the first for a left one would remove the second. */
  private void changeName() {
    IN_USE.remove(path);
    path = fresh();
    IN_USE.add(path);
  }

  private FileChannel open(FileAttribute<?>... attributes) throws IOException {
    return FileChannel.open(
        path,
        Set.of(StandardOpenOption.READ, StandardOpenOption.WRITE, StandardOpenOption.CREATE_NEW),
        attributes);
  }

  private static boolean isLocked(FileChannel channel) {
    try {
      return channel.tryLock() != null;
    } catch (IOException e) {
      return true; // there are no locks here, so nobody else takes one
    }
  }

  private void removeLeftovers() {
    Pattern pattern =
        Pattern.compile(Pattern.quote(prefix) + "[0-9a-f]{16}" + Pattern.quote(SUFFIX));
    try (DirectoryStream<Path> files =
        Files.newDirectoryStream(
            folder,
            file ->
                pattern.matcher(file.getFileName().toString()).matches()
                    && !IN_USE.contains(file))) {
      UserPrincipal me = Files.getOwner(path, LinkOption.NOFOLLOW_LINKS);
      for (Path file : files) {
        if (Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)
            && Files.getOwner(file, LinkOption.NOFOLLOW_LINKS).equals(me)) {
          removeUnlessLocked(file);
        }
      }
    } catch (IOException | DirectoryIteratorException | UnsupportedOperationException e) {
      // They only take up room.
    }
  }

  /** Removes a file that no process uses. One thread at a time: another that closed the file would, by POSIX, release this one's lock. */
  private static synchronized void removeUnlessLocked(Path file) {
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)) {
      if (channel.tryLock() != null) {
        Files.deleteIfExists(file);
      }
    } catch (IOException | OverlappingFileLockException e) {
      // In use, or there are no locks that could tell.
    }
  }

  /** Whether a file is called as these are. */
  static boolean isOne(Path file) {
    return String.valueOf(file.getFileName()).endsWith(SUFFIX);
  }

  /** Gives it the permissions, group and owner of the file that it is to replace, or the permissions of a new one. */
  void publish(Path target) throws IOException {
    if (POSIX) {
      if (Files.exists(target)) {
        takeOver(path, target);
      } else {
        setPermissions(path, usual);
      }
    }
  }

  private static void setPermissions(Path path, Set<PosixFilePermission> wanted)
      throws IOException {
    if (!wanted.equals(Files.getPosixFilePermissions(path))) {
      Files.setPosixFilePermissions(path, wanted);
    }
  }

  /**
   * Gives a file or folder the permissions, group and owner of the one that it is to replace; the group's permissions only if it can be given to
   * that.
   */
  static void takeOver(Path path, Path target) throws IOException {
    if (!POSIX) {
      return;
    }
    PosixFileAttributes old = Files.readAttributes(target, PosixFileAttributes.class);
    PosixFileAttributeView view = Files.getFileAttributeView(path, PosixFileAttributeView.class);
    PosixFileAttributes own = view.readAttributes();
    Set<PosixFilePermission> wanted = new HashSet<>(old.permissions()); // which may be empty
    if (!own.group().equals(old.group())) {
      try {
        view.setGroup(old.group());
      } catch (IOException e) {
        wanted.removeAll(OF_THE_GROUP);
      }
    }
    if (!own.owner().equals(old.owner())) {
      try {
        view.setOwner(old.owner());
      } catch (IOException e) {
        // Only root can. It is who runs this then, who may write there and read what they have
        // written.
      }
    }
    setPermissions(path, wanted);
  }

  /**
   * Renames the file, which stays locked until it is closed: an unlocked one could be removed before it has its name.
   *
   * @param replaces whether a file of that name is replaced
   * @throws FileAlreadyExistsException if there is one and it is not
   */
  void moveTo(Path target, boolean replaces) throws IOException {
    if (replaces) {
      Files.move(path, target, StandardCopyOption.ATOMIC_MOVE);
      return;
    }
    try {
      Files.createLink(
          target,
          path); // which no other process's file comes between; the other name goes at the end
    } catch (FileAlreadyExistsException e) {
      throw e;
    } catch (IOException | UnsupportedOperationException e) { // a file system without links
      Files.move(path, target);
    }
  }

  /** Removes it, unless it was moved. */
  @Override
  public void close() throws IOException {
    try (channel) {
      delete();
    } finally {
      release();
    }
  }

  private void delete() {
    try {
      Files.deleteIfExists(path);
    } catch (IOException e) {
      // The command has failed already; its own error says more than this one.
    }
  }

  private void release() {
    IN_USE.remove(path);
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // The VM is going down and the hook runs anyway.
    }
  }
}
