package dev.kullback.cli.output;

import dev.kullback.cli.terminal.UserError;
import java.io.Closeable;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/** A folder of outputs, made if it is not there; where it was made, closing it before it is {@linkplain #keep kept} removes it. */
public final class OutputFolder implements Closeable {
  private final Path path;
  private boolean isMine;

  public OutputFolder(Path name) {
    path = name;
    try {
      if (!Files.isDirectory(name)) {
        Files.createDirectory(name);
        isMine = true;
      }
    } catch (NoSuchFileException e) {
      Path parent = name.toAbsolutePath().getParent();
      throw new UserError(name, "its folder " + parent + " does not exist: create it first");
    } catch (AccessDeniedException e) {
      throw new OutputFailure(name, e);
    } catch (IOException e) {
      throw Files.exists(name)
          ? new UserError(name, "is not a folder: name another output")
          : new UserError(name, e);
    }
  }

  /** Leaves the folder, which has what it was to have. */
  public void keep() {
    isMine = false;
  }

  @Override
  public void close() throws IOException {
    if (isMine) {
      try {
        Files.deleteIfExists(path);
      } catch (DirectoryNotEmptyException e) {
        // which another process uses
      }
    }
  }
}
