package dev.kullback;

/**
 * A batch of Gaussians of one dimension. Batches are immutable, safe to share between threads, and can be used in any
 * number of calls. The factories of {@link DiagonalGaussians} and {@link FullGaussians} make them.
 */
public sealed interface Gaussians permits DiagonalGaussians, FullGaussians {
  /** {@return the number N of Gaussians in the batch, at least 1} */
  int size();

  /** {@return the dimension D of each Gaussian, at least 1} */
  int dimension();

  /**
   * {@return whether the batch was made from {@code double} values, not {@code float}; this decides the promised
   * accuracy}
   */
  boolean isDouble();

  /**
   * Builds what calls otherwise build when they first need it, so that no later query waits for it. With vectors, for
   * engines of {@link Backend#AUTO}, these are the panels of the kernels and of what recomputes entries. What is built
   * stays with the batch, and a second call does nothing.
   *
   * <p>With N rounded up to panels of at most 32, it takes, in bytes, {@code 48·N·D} for a diagonal batch of float and
   * {@code 24·N·D} for one of double, and up to {@code 96·N} more; for full covariances {@code 8·N·D·(D + 3)} and
   * {@code 64·N} more. Without vectors, it takes {@code 8·N·D} for a diagonal batch, and nothing for full covariances.
   * {@link #memoryBytes()} tells the sum afterwards. Large batches take 5 ns for each element at best (diagonal ones).
   *
   * <p>Two things are not built: what pairs of a diagonal and a full Gaussian need besides, which
   * {@link KlEngine#warmUp(Gaussians, Gaussians)} builds, and what a CUDA device holds.
   *
   * @throws java.util.concurrent.CancellationException within some milliseconds if the calling thread is interrupted;
   *     its status stays set, and what was built by then stays with the batch
   */
  void prepare();

  /**
   * {@return about how many bytes of arrays the batch holds on the heap now: its parameters, and what
   * {@link #prepare()} or calls have built}
   */
  long memoryBytes();
}
