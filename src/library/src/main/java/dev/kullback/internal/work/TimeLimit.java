package dev.kullback.internal.work;

import dev.kullback.SearchTimeoutException;
import dev.kullback.internal.api.Constructors;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * How long a search may take.
 *
 * @param nanos at least 1
 * @param message of the exception that ends it
 */
public record TimeLimit(long nanos, String message) {
  /** Nanoseconds of 146 years: times of a clock that wraps around can be compared up to twice as far apart. */
  private static final long LONGEST = Long.MAX_VALUE / 2;

  /**
   * Limits a search.
   *
   * @param longest more than zero
   * @param search what is looked for, such as "the 10 nearest"
   */
  public static TimeLimit of(Duration longest, String search) {
    return new TimeLimit(
        Math.min(TimeUnit.NANOSECONDS.convert(longest), LONGEST),
        "the search for %s took longer than its timeout of %s; what was computed is incomplete"
            .formatted(search, longest));
  }

  /** Returns the {@link System#nanoTime} from which on a search that begins now fails. */
  public long end() {
    return System.nanoTime() + nanos;
  }

  /** Whether a search has reached its end. */
  public boolean isOver(long end) {
    return System.nanoTime() - end >= 0;
  }

  /** The exception that ends a search. */
  public SearchTimeoutException exceeded() {
    return Constructors.SEARCH_TIMEOUT.get().apply(message);
  }
}
