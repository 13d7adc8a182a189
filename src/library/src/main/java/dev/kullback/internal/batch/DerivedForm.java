package dev.kullback.internal.batch;

import java.util.function.Function;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * What a kernel reads instead of a batch's own arrays, such as panels: the key under which the batch keeps it. Made at most once for a
 * batch, by the first thread that needs it.
 */
public final class DerivedForm<B extends Batch, T> {
  private final Function<B, T> make;
  private final ToLongFunction<T> bytes;

  /**
   * A form of its own, kept in a constant.
   *
   * @param bytes what it takes on the heap
   */
  public DerivedForm(Function<B, T> make, ToLongFunction<T> bytes) {
    this.make = make;
    this.bytes = bytes;
  }

  /** That of the batch. */
  public T of(B batch) {
    return batch.kept(this).get(batch, make);
  }

  /** That of the batch, if it was made. */
  public @Nullable T made(B batch) {
    return batch.kept(this).made();
  }

  /** That of the batch, made in another way to the same values if it was not. */
  public T of(B batch, Function<B, T> make) {
    return batch.kept(this).get(batch, make);
  }

  ToLongFunction<T> bytes() {
    return bytes;
  }
}
