package dev.kullback;

import dev.kullback.internal.api.Constructors;

/**
 * Thrown by the methods of a {@link KlEngine} or {@link KlIndex} that is closed; the message says which of the two. Another thread may
 * close it while this one uses it, so a service that replaces its index takes the new one and tries again.
 *
 * @since 0.1.0
 */
public final class AlreadyClosedException extends IllegalStateException {
  private static final long serialVersionUID = 1;

  static {
    Constructors.ALREADY_CLOSED.set(AlreadyClosedException::new);
  }

  AlreadyClosedException(String message) {
    super(message);
  }
}
