package dev.kullback.cli.output;

import dev.kullback.KlIndex;
import dev.kullback.cli.terminal.UserError;
import java.io.Closeable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Objects;
import java.util.concurrent.ThreadLocalRandom;

/**
 * The folder of an index that a new one is to replace. It stays open until it is replaced, so that no other process changes it. Nothing but
 * an index's files is ever deleted: a folder with anything else in it is refused.
 */
final class ReplacedIndex implements Closeable {
  private final Path name;
  private final Path folder;
  private final KlIndex index;

  /** Where the folder is once another has its name. */
  private final Path aside;

  /** Opens the index; refuses one that another process has open, or that is not alone in its folder. */
  ReplacedIndex(Path name) {
    this.name = name;
    try {
      folder = name.toRealPath();
    } catch (IOException e) {
      throw new UserError(name, e);
    }
    if (folder.getParent() == null) {
      throw new UserError(name, "is a root: name another folder");
    }
    aside = beside("old");
    try {
      if (NewFolder.hasOtherLock(folder)) {
        throw besides("lock");
      }
    } catch (IOException e) {
      throw new UserError(name, e);
    }
    try {
      index = KlIndex.open(folder);
    } catch (UncheckedIOException e) {
      throw new UserError(String.valueOf(e.getMessage()));
    }
    try {
      requireNothingElse();
    } catch (UserError e) {
      index.close();
      throw e;
    }
  }

  /** Returns a new name beside the folder's, on the same disk. */
  Path beside(String suffix) {
    return folder.resolveSibling(
        ".%s.%016x.kullback-%s"
            .formatted(folder.getFileName(), ThreadLocalRandom.current().nextLong(), suffix));
  }

  private void requireNothingElse() {
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder)) {
      for (Path file : files) {
        if (!NewFolder.isOfIndex(file)) {
          throw besides(String.valueOf(file.getFileName()));
        }
      }
    } catch (IOException e) {
      throw new UserError(name, e);
    } catch (DirectoryIteratorException e) {
      throw new UserError(name, Objects.requireNonNull(e.getCause()));
    }
  }

  private UserError besides(String file) {
    return new UserError(
        name,
        "has %s besides its index, and --overwrite deletes nothing else: move it, or name another folder"
            .formatted(file));
  }

  /** Puts another folder in the place of this one, which {@link #drop} is to delete; if that fails, this one stays where it is. */
  void replaceBy(Path fresh) {
    requireNothingElse(); // by now
    try {
      TemporaryFile.takeOver(fresh, folder);
      move(folder, aside);
    } catch (IOException e) {
      throw new OutputFailure(name, e);
    }
    try {
      move(fresh, folder);
    } catch (IOException e) {
      try {
        move(aside, folder);
      } catch (IOException worse) {
        throw new OutputFailure(name, "is not written; what was there is now " + aside);
      }
      throw new OutputFailure(name, e);
    }
  }

  private static void move(Path from, Path to) throws IOException {
    Files.move(from, to, StandardCopyOption.ATOMIC_MOVE);
  }

  /** Deletes the files of the index that was replaced, and its folder. */
  void drop() {
    index.close();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(aside)) {
      for (Path file : files) {
        if (NewFolder.isOfIndex(file)) {
          Files.delete(file);
        }
      }
      Files.delete(aside);
    } catch (IOException | DirectoryIteratorException e) {
      throw new OutputFailure(name, "is written; what it replaced is yet in " + aside);
    }
  }

  @Override
  public void close() {
    index.close();
  }
}
