package dev.kullback;

import dev.kullback.internal.api.Constructors;
import java.io.IOException;
import java.io.UncheckedIOException;

/**
 * Thrown where the files of a {@link KlIndex} cannot be written because their disk has no room for them. The folder has what the last commit
 * wrote, and what was not committed is still in the index: make room, and commit again. The message begins with the path of the file.
 *
 * <p>A file system that tells less room than the file needs is full. One that has room and refuses to write, as by a quota, throws another
 * {@link UncheckedIOException} with the system's reason.
 *
 * @since 0.1.0
 */
public final class DiskFullException extends UncheckedIOException {
  private static final long serialVersionUID = 1;

  static {
    Constructors.DISK_FULL.set(DiskFullException::new);
  }

  DiskFullException(String message, IOException cause) {
    super(message, cause);
  }
}
