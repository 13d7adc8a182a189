package dev.kullback;

import dev.kullback.internal.api.Constructors;
import java.util.concurrent.CancellationException;

/**
 * Thrown by a search of a {@link KlEngine} that takes longer than {@link Query#timeout} allows, while one of a {@link KlIndex} returns what it has; the message says which search and how long. What the search has
 * computed is lost, and arrays that it writes to are incomplete. An interrupted search throws a {@link CancellationException} that is not of
 * this class.
 *
 * @since 0.1.0
 */
public final class SearchTimeoutException extends CancellationException {
  private static final long serialVersionUID = 1;

  static {
    Constructors.SEARCH_TIMEOUT.set(SearchTimeoutException::new);
  }

  SearchTimeoutException(String message) {
    super(message);
  }
}
