package dev.kullback;

/**
 * An immutable batch of Gaussians of one dimension, safe to share between threads and to use in any number of calls. Made by
 * the factories of {@link DiagonalGaussians} and {@link FullGaussians}.
 */
public sealed interface Gaussians permits DiagonalGaussians, FullGaussians {
  /** Number N of Gaussians in the batch, at least 1. */
  int size();

  /** Dimension D of each Gaussian, at least 1. */
  int dimension();

  /** Whether the batch was made from {@code double} values; else from {@code float}. Decides the accuracy contract. */
  boolean isDouble();
}
