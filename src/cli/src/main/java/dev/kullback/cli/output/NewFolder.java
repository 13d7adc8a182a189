package dev.kullback.cli.output;

import dev.kullback.KlIndex;
import dev.kullback.cli.terminal.UserError;
import java.io.Closeable;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;

/**
 * The folder of an index that is to be made. Closing it before it is {@linkplain #keep kept}, or a signal that ends the VM, removes it, or
 * all that is in it if the folder was there before.
 */
public final class NewFolder implements Closeable {
  /** What is wrong with a folder that has an index. */
  private static final String TAKEN =
      "holds an index already: index add adds to it; name another folder for a new one";

  /** The file by which a folder is that of an index. */
  private static final String MANIFEST = "manifest";

  /** How often it is emptied before it is removed: another thread may be writing yet when a signal comes. */
  private static final int ATTEMPTS = 10;

  private final Path path;
  private final boolean isNew;
  private final Thread hook = new Thread(this::end);

  /** Held while the folder is made or removed; by the hook for ever, so that nothing is made after it. */
  private final ReentrantLock lock = new ReentrantLock();

  private boolean isMine;
  private boolean isKept;

  /** Makes the folder; refuses that of another index. */
  public NewFolder(Path name) {
    path = name.toAbsolutePath();
    if (Files.exists(path.resolve(MANIFEST))) {
      throw new UserError(name, TAKEN);
    }
    isNew = Files.notExists(path);
    Path parent = path.getParent();
    if (isNew && parent != null && Files.notExists(parent)) {
      throw new UserError(name, "its folder " + parent + " does not exist: create it first");
    }
    Runtime.getRuntime().addShutdownHook(hook);
    lock.lock();
    try {
      if (isNew) {
        Files.createDirectory(path);
        isMine = true;
      }
    } catch (IOException e) {
      release();
      throw e instanceof FileAlreadyExistsException
          ? new UserError(name, TAKEN)
          : e instanceof AccessDeniedException
              ? new OutputFailure(name, e)
              : new UserError(name, e);
    } finally {
      lock.unlock();
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

  /** Leaves the folder as it is, which is what it was to be. */
  public void keep() {
    lock.lock();
    try {
      isKept = true;
      release();
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
          if (isMine) {
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
    } finally {
      lock.unlock();
    }
  }
}
