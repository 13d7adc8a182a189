package dev.kullback;

import dev.kullback.internal.api.Constructors;
import java.io.IOException;
import java.io.UncheckedIOException;

/**
 * Thrown where the folder of a {@link KlIndex} is to be opened for changes, or committed to, and is open for changes already, in this
 * process or another. It can be opened once it is closed there, and {@link KlIndex#openReadOnly} opens it meanwhile. The message begins
 * with the path of the folder.
 *
 * @since 0.1.0
 */
public final class IndexLockedException extends UncheckedIOException {
  private static final long serialVersionUID = 1;

  static {
    Constructors.INDEX_LOCKED.set(IndexLockedException::new);
  }

  IndexLockedException(String message, IOException cause) {
    super(message, cause);
  }
}
