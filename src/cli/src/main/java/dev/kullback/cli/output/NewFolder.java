package dev.kullback.cli.output;

import dev.kullback.KlIndex;
import dev.kullback.cli.terminal.UserError;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The folder of an index that is to be made. Closing it before it is {@linkplain #keep kept}, or a signal that ends the VM, removes it or, if
 * the folder was there before, what an index has made in it. One that replaces an index is made beside it.
 */
public final class NewFolder implements Closeable {
  /** What is wrong with a folder that has an index. */
  private static final String TAKEN =
      "holds an index already: index add adds to it, --overwrite replaces it; or name another folder";

  /** The file by which a folder is that of an index. */
  private static final String MANIFEST = "manifest";

  private static final String MAGIC = "kullback-index ";

  /** The names of an index's files. */
  private static final Pattern NAMES =
      Pattern.compile("(manifest|(segment|deleted)-[0-9]+\\.bin)(\\.tmp)?");

  private static final String LOCK = "lock";

  /** What the index writes there, and bytes of it, at most. */
  private static final Pattern HOLDER = Pattern.compile("(process [0-9]+ on \\S+ since \\S+\n)?");

  private static final long MOST_LOCK = 1000;

  /** How often it is emptied before it is removed: another thread may be writing yet when a signal comes. */
  private static final int ATTEMPTS = 10;

  private final Path path;
  private final @Nullable ReplacedIndex replaced;
  private final boolean isNew;

  /** The names of what was there before, and stays. */
  private final Set<String> before;

  private final Thread hook = new Thread(this::end);

  /** Held while the folder is made or removed; by the hook for ever, so that nothing is made after it. */
  private final ReentrantLock lock = new ReentrantLock();

  private boolean isMine;
  private boolean isKept;

  /**
   * Makes the folder.
   *
   * @param overwrites whether an index that is there is to be replaced; else it is refused, unless it is empty
   */
  public NewFolder(Path name, boolean overwrites) {
    boolean hasIndex = Files.isDirectory(name) && hasManifest(name.resolve(MANIFEST));
    if (hasIndex && !overwrites && !isEmpty(name)) {
      throw new UserError(name, TAKEN);
    }
    replaced = hasIndex && overwrites ? new ReplacedIndex(name) : null;
    path = replaced == null ? name.toAbsolutePath() : replaced.beside("tmp");
    isNew = Files.notExists(path);
    if (isNew && Files.isSymbolicLink(path)) {
      throw new UserError(
          name, "is a link to a folder that is not there: make that, or remove the link");
    }
    Path parent = path.getParent();
    if (isNew && parent != null && Files.notExists(parent)) {
      throw new UserError(name, "its folder " + parent + " does not exist: create it first");
    }
    if (isNew && parent != null && !Files.isDirectory(parent)) {
      throw new UserError(name, parent + " is not a folder: name another index");
    }
    before = Files.isDirectory(path) ? names(name) : Set.of();
    Runtime.getRuntime().addShutdownHook(hook);
    lock.lock();
    try {
      if (isNew) {
        Files.createDirectory(path);
        isMine = true;
      }
    } catch (IOException e) {
      release();
      if (replaced != null) {
        replaced.close();
      }
      throw e instanceof FileAlreadyExistsException
          ? new UserError(name, TAKEN)
          : e instanceof AccessDeniedException
              ? new OutputFailure(name, e)
              : e instanceof NoSuchFileException // as of /proc
                  ? new UserError(name, "no folder can be made there: name another")
                  : new UserError(name, e);
    } finally {
      lock.unlock();
    }
  }

  /** Where the index is to be made. */
  public Path path() {
    return path;
  }

  /** Whether a file is one that an index makes. */
  static boolean isOfIndex(Path file) {
    String name = file.getFileName().toString();
    try {
      BasicFileAttributes found =
          Files.readAttributes(file, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
      return found.isRegularFile() && (NAMES.matcher(name).matches() || name.equals(LOCK));
    } catch (IOException e) { // it is not there any more
      return false;
    }
  }

  /**
   * Whether a folder has a file of the lock's name that is another program's: the index's own is empty, or says who has it open. Not to be
   * asked while this process has the index open: on POSIX systems, closing the file would release the lock.
   */
  static boolean hasOtherLock(Path folder) throws IOException {
    Path file = folder.resolve(LOCK);
    if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
      return false;
    }
    return Files.size(file) > MOST_LOCK
        || !HOLDER.matcher(Files.readString(file, StandardCharsets.ISO_8859_1)).matches();
  }

  private static boolean hasManifest(Path file) {
    try (InputStream in = Files.newInputStream(file)) {
      String beginning = new String(in.readNBytes(MAGIC.length()), StandardCharsets.ISO_8859_1);
      if (!beginning.equals(MAGIC)) {
        throw new UserError(
            file, "is not an index's, and an index needs that name: name another folder");
      }
      return true;
    } catch (NoSuchFileException e) {
      return false;
    } catch (IOException e) {
      throw new UserError(file, e);
    }
  }

  /** Whether a folder's index holds nothing, as a command leaves it that was killed before it could fill it. */
  private static boolean isEmpty(Path folder) {
    try (KlIndex index = KlIndex.openReadOnly(folder)) {
      return index.size() == 0;
    } catch (UncheckedIOException e) {
      return false;
    }
  }

  private static Set<String> names(Path folder) {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(file -> file.getFileName().toString()).collect(Collectors.toSet());
    } catch (IOException e) {
      throw new UserError(folder, e);
    }
  }

  /**
   * Opens the new index. All that is in the folder then is this process's own, unless it is refused, or not empty: then another process was
   * faster.
   */
  public KlIndex open(Supplier<KlIndex> opened) {
    lock.lock();
    try {
      isMine = false;
      KlIndex index = opened.get();
      if (index.size() > 0) {
        index.close();
        throw new UserError(path, TAKEN);
      }
      isMine = true;
      return index;
    } finally {
      lock.unlock();
    }
  }

  /** Leaves the folder, whose index is closed, as what it was to be, in the place of the index that it replaces. */
  public void keep() {
    lock.lock();
    try {
      if (replaced != null) {
        replaced.replaceBy(path);
      }
      isKept = true;
      release();
      if (replaced != null) {
        replaced.drop();
      }
    } finally {
      lock.unlock();
    }
  }

  private void release() {
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // The VM is going down and the hook runs anyway.
    }
  }

  private void end() {
    lock.lock();
    remove();
  }

  private void remove() {
    for (int attempt = 0; !isKept && attempt < ATTEMPTS; attempt++) {
      try (DirectoryStream<Path> files = Files.newDirectoryStream(path)) {
        for (Path file : files) {
          String name = file.getFileName().toString();
          if (isMine && isOfIndex(file) && !before.contains(name)) {
            Files.deleteIfExists(file);
          }
        }
        if (isNew) {
          Files.deleteIfExists(path);
        }
        return;
      } catch (DirectoryNotEmptyException e) {
        // once more, if that is of use
      } catch (IOException e) {
        return; // the command has failed already; its own error says more than this one
      }
    }
  }

  @Override
  public void close() {
    lock.lock();
    try {
      release();
      remove();
      if (replaced != null) {
        replaced.close();
      }
    } finally {
      lock.unlock();
    }
  }
}
