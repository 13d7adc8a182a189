package dev.kullback.internal.index.store;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * What an index is to be of: one that is made, for good, or one that is there, which is refused if it is of something else.
 *
 * @param dimension D; 0 to make none, and to open one of any
 * @param divergence the name of what it ranks by; null for KL if it is made, and to open one by any
 * @param isFull whether its Gaussians have full covariances; where it is false, one that is there may have either
 */
public record Wanted(int dimension, @Nullable String divergence, boolean isFull) {
  /** An index of diagonal Gaussians of a dimension, by KL, if it is made; else any. */
  public static Wanted of(int dimension) {
    return new Wanted(dimension, null, false);
  }

  /** What an index ranks by that is made. */
  String newDivergence() {
    return Objects.requireNonNullElse(divergence, Manifest.KL);
  }
}
