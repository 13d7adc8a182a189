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

  /**
   * Builds all that calls make of a batch when they first need it, so that no later query waits for it: for engines of {@link Backend#AUTO} with vectors the panels of
   * the kernels and of what recomputes entries. Bytes, of N Gaussians of dimension D, N rounded up to panels of 32 at most: 48·N·D for a diagonal batch of float,
   * 24·N·D for one of double, and up to 96·N; for full covariances 8·N·D·(D + 3), and 64·N; {@link #memoryBytes()} has them after. Without vectors 8·N·D for a
   * diagonal batch, and nothing for full covariances. Large batches take from 5 ns
   * (diagonal, an element) on. What is built stays with the batch, and a second call does nothing.
   *
   * <p>Not built is what pairs of a diagonal and a full Gaussian take besides, which {@link KlEngine#warmUp(Gaussians, Gaussians)} does, nor anything on a
   * CUDA device.
   *
   * @throws java.util.concurrent.CancellationException within some milliseconds if the thread is interrupted, the status still set; what was built by
   *     then stays
   */
  void prepare();

  /** Bytes of the arrays that the batch holds on the heap now, about: its parameters, and what {@link #prepare()} or calls have built. */
  long memoryBytes();
}
