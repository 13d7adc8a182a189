package dev.kullback;

import dev.kullback.internal.api.Constructors;
import java.io.IOException;
import java.io.UncheckedIOException;

/**
 * Thrown where the files of a {@link KlIndex} are not what its last commit wrote: a file is missing, has another length or checksum, or is
 * not named by the manifest. The folder is to be restored from a copy. The message begins with the path of the file or folder.
 *
 * <p>Files of another version of the format are not corrupt: {@link UncheckedIOException} tells of them.
 *
 * @since 0.1.0
 */
public final class CorruptIndexException extends UncheckedIOException {
  private static final long serialVersionUID = 1;

  static {
    Constructors.CORRUPT_INDEX.set(CorruptIndexException::new);
  }

  CorruptIndexException(String message, IOException cause) {
    super(message, cause);
  }
}
