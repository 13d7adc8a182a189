package dev.kullback.internal.api;

import dev.kullback.AlreadyClosedException;
import dev.kullback.CorruptIndexException;
import dev.kullback.CudaException;
import dev.kullback.DiskFullException;
import dev.kullback.IndexLockedException;
import dev.kullback.InvalidGaussianException;
import dev.kullback.SearchTimeoutException;
import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.util.Objects;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Constructors of the API that are not public. A class of the API gives its own here when it is initialized, which the first use has done.
 *
 * @param <F> the constructor, as a function
 */
public final class Constructors<F> {
  /** Takes a status and a message. */
  public static final Constructors<BiFunction<Integer, String, CudaException>> CUDA =
      new Constructors<>(CudaException.class);

  /** Takes a message and its cause. */
  public static final Constructors<BiFunction<String, IOException, CorruptIndexException>>
      CORRUPT_INDEX = new Constructors<>(CorruptIndexException.class);

  /** Takes a message and its cause. */
  public static final Constructors<BiFunction<String, IOException, IndexLockedException>>
      INDEX_LOCKED = new Constructors<>(IndexLockedException.class);

  /** Takes a message and its cause. */
  public static final Constructors<BiFunction<String, IOException, DiskFullException>> DISK_FULL =
      new Constructors<>(DiskFullException.class);

  /** Takes a message. */
  public static final Constructors<Function<String, AlreadyClosedException>> ALREADY_CLOSED =
      new Constructors<>(AlreadyClosedException.class);

  public static final Constructors<InvalidGaussian> INVALID_GAUSSIAN =
      new Constructors<>(InvalidGaussianException.class);

  /** Takes a message. */
  public static final Constructors<Function<String, SearchTimeoutException>> SEARCH_TIMEOUT =
      new Constructors<>(SearchTimeoutException.class);

  private final Class<?> type;

  private volatile @Nullable F constructor;

  private Constructors(Class<?> type) {
    this.type = type;
  }

  /** The constructor says what these are. */
  public interface InvalidGaussian {
    InvalidGaussianException of(
        String argument,
        int gaussian,
        int element,
        String subscripts,
        String place,
        String reason,
        String advice);
  }

  /** Called by the class that has the constructor, when it is initialized. */
  public void set(F constructor) {
    this.constructor = constructor;
  }

  /** Returns the constructor. */
  public F get() {
    if (constructor == null) {
      try {
        MethodHandles.lookup().ensureInitialized(type);
      } catch (IllegalAccessException e) {
        throw new AssertionError("it is public", e);
      }
    }
    return Objects.requireNonNull(constructor);
  }
}
