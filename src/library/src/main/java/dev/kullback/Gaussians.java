package dev.kullback;

import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.formula.Kl;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;

/**
 * A batch of Gaussians of one dimension. Batches are immutable, safe to share between threads, and can be used in any
 * number of calls. The factories of {@link DiagonalGaussians} and {@link FullGaussians} make them, and {@code of} is any of
 * these, for callers that know only when they run what their scales are.
 *
 * @since 0.1.0
 */
public sealed interface Gaussians permits DiagonalGaussians, FullGaussians {
  /**
   * {@return a batch as the factory makes that {@code kind} names}
   *
   * @param kind what {@code scale} holds
   * @param mean μ, row-major {@code [N, D]}, finite
   * @param scale scales or matrices, {@link ScaleKind#length} values for each Gaussian
   * @param dimension D; N is {@code mean.length / D}
   * @param policy what to do with invalid scales; matrices are checked alike under every policy
   * @throws InvalidGaussianException if a value or a matrix is invalid
   * @throws IllegalArgumentException if the arrays do not have these shapes, or are too large
   */
  static Gaussians of(
      ScaleKind kind, float[] mean, float[] scale, int dimension, ScalePolicy policy) {
    Objects.requireNonNull(kind, "kind");
    Elements means = Elements.of(mean, "mean");
    return of(kind, means, Elements.of(scale, kind.argument()), dimension, policy);
  }

  /** {@return a batch of double precision, otherwise as {@link #of(ScaleKind, float[], float[], int, ScalePolicy)} makes it} */
  static Gaussians of(
      ScaleKind kind, double[] mean, double[] scale, int dimension, ScalePolicy policy) {
    Objects.requireNonNull(kind, "kind");
    Elements means = Elements.of(mean, "mean");
    return of(kind, means, Elements.of(scale, kind.argument()), dimension, policy);
  }

  /**
   * {@return a batch as {@link #of(ScaleKind, float[], float[], int, ScalePolicy)} makes, from segments, each of its own
   * layout of float or double} If either is of double, the batch is of double precision.
   */
  static Gaussians of(
      ScaleKind kind,
      MemorySegment mean,
      ValueLayout meanElement,
      MemorySegment scale,
      ValueLayout scaleElement,
      int dimension,
      ScalePolicy policy) {
    Objects.requireNonNull(kind, "kind");
    Elements means = Elements.of(mean, meanElement, "mean");
    return of(kind, means, Elements.of(scale, scaleElement, kind.argument()), dimension, policy);
  }

  private static Gaussians of(
      ScaleKind kind, Elements mean, Elements scale, int dimension, ScalePolicy policy) {
    Objects.requireNonNull(policy, "policy");
    return kind.isFull()
        ? FullGaussians.of(kind, mean, scale, dimension)
        : DiagonalGaussians.of(kind, mean, scale, dimension, policy);
  }

  /**
   * {@return the number N of Gaussians in the batch} It is 0 only for diagonal ones of empty arrays, which a {@link KlIndex} takes, as it does a
   * change of nothing, and a {@link KlEngine} does not.
   */
  default int size() {
    return KlEngine.batch(this).size();
  }

  /** {@return the dimension D of each Gaussian, at least 1} */
  default int dimension() {
    return KlEngine.batch(this).dimension();
  }

  /**
   * {@return whether the batch was made from {@code double} values, not {@code float}; this decides the promised
   * accuracy}
   */
  default boolean isDouble() {
    return KlEngine.batch(this).isDouble();
  }

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
   * <p>Three things are not built: what divergences other than KL read, what pairs of a diagonal and a full Gaussian need besides, which
   * {@link KlEngine#warmUp(Gaussians, Gaussians)} builds, and what a CUDA device holds.
   *
   * @throws java.util.concurrent.CancellationException within some milliseconds if the calling thread is interrupted;
   *     its status stays set, and what was built by then stays with the batch
   */
  default void prepare() {
    Platform.prepare(Kl.FORWARD, KlEngine.batch(this));
  }

  /**
   * {@return about how many bytes of arrays the batch holds on the heap now: its parameters, and what
   * {@link #prepare()} or calls have built}
   */
  default long memoryBytes() {
    return KlEngine.batch(this).memoryBytes();
  }
}
