package dev.kullback;

import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** A value made of a batch at most once, by the first thread that needs it. */
final class Lazy<B, T> {
  private volatile @Nullable T value;

  T get(B batch, Function<B, T> make) {
    T v = value;
    return v != null ? v : make(batch, make);
  }

  private synchronized T make(B batch, Function<B, T> make) {
    T v = value;
    if (v == null) {
      v = make.apply(batch);
      value = v;
    }
    return v;
  }
}
