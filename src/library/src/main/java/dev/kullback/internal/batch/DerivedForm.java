package dev.kullback.internal.batch;

import java.util.function.Function;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Key under which a batch keeps what a kernel reads instead of its arrays, such as panels. The form is made at most once for a batch, by
 * the first thread that needs it. A key is to be kept in a constant: it is found by identity.
 *
 * @param bytes measures a form on the heap
 */
public record DerivedForm<B extends Batch, T>(Function<B, T> make, ToLongFunction<T> bytes) {
  /** Returns the batch's form. */
  public T of(B batch) {
    return of(batch, make);
  }

  /** Returns the batch's form, or null if it was not made. */
  public @Nullable T made(B batch) {
    return batch.kept(this).made();
  }

  /** Returns the batch's form, which {@code make}, another way to the same values, makes if it is still needed. */
  public T of(B batch, Function<B, T> make) {
    return batch.kept(this).get(batch, make);
  }
}
