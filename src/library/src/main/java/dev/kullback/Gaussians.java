package dev.kullback;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.engine.Arguments;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.numerics.MatrixForm;
import dev.kullback.internal.numerics.Scale;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;
import java.util.stream.IntStream;

/**
 * A batch of N Gaussians of one dimension D. Batches are immutable, safe to share between threads, and can be used in any
 * number of calls.
 *
 * <p>{@code of} makes a batch of any {@link ScaleKind}, from arrays or memory segments, and with any {@link ScalePolicy}.
 * {@link DiagonalGaussians} and {@link FullGaussians} have shorter methods for the frequent kinds, from arrays. All of them
 * copy what they are given, except {@code owning}, and check it:
 *
 * <ul>
 *   <li>The means μ are row-major {@code [N, D]} and finite, and N is {@code mean.length / D}. The scales are of the shape and
 *       within the range that their kind tells; a policy says what else is done with those of diagonal kinds.
 *   <li>Scales of one Gaussian are shared by all N: D numbers of a diagonal kind, D² of matrices, {@code D(D+1)/2} of packed factors. N numbers of
 *       a diagonal kind are one for each Gaussian, in all its dimensions. The batch is, to the bit, that of an array that repeats them. It keeps
 *       them as they were given; a shared matrix is factored once. No other length is repeated: neither one number nor a single mean. D numbers of a
 *       diagonal kind are refused where N = D > 1, as they may be either: write out {@code [N, D]}, the D numbers N times, or each of them D times.
 *   <li>An invalid value or matrix causes an {@link InvalidGaussianException}, which tells the array, the Gaussian and the element.
 *       Arrays that do not have these shapes, or are too large, cause another {@link IllegalArgumentException}.
 *   <li>Arrays of {@code float} make a batch of float precision, and arrays of {@code double} one of double precision.
 *       {@link #isDouble()} says which accuracy that promises.
 *   <li>A method yields the carrier of a virtual thread, also within a matrix that it factors, and an interrupt does not end it.
 * </ul>
 *
 * <p>What was given can be read back, by {@link #mean(int)} and {@link #scale(int)}, and batches of some of the Gaussians be made,
 * by {@link #slice} and {@link #select}.
 *
 * @since 0.1.0
 */
public sealed interface Gaussians permits DiagonalGaussians, FullGaussians, LowRankGaussians {
  /**
   * {@return a batch of float precision, with {@link ScalePolicy#STRICT}}
   *
   * @param kind what {@code scale} holds
   * @param mean μ, row-major {@code [N, D]}
   * @param scale scales or matrices, row-major, of the shape that {@code kind} tells, or those of one Gaussian that all share
   * @param dimension D
   * @throws InvalidGaussianException if a value or a matrix is invalid
   * @throws IllegalArgumentException if the arrays do not have these shapes, or are too large
   */
  static Gaussians of(ScaleKind kind, float[] mean, float[] scale, int dimension) {
    return of(kind, mean, scale, dimension, ScalePolicy.STRICT);
  }

  /** {@return a batch of double precision, otherwise as {@link #of(ScaleKind, float[], float[], int)} makes it} */
  static Gaussians of(ScaleKind kind, double[] mean, double[] scale, int dimension) {
    return of(kind, mean, scale, dimension, ScalePolicy.STRICT);
  }

  /**
   * {@return a batch as {@link #of(ScaleKind, float[], float[], int)} makes it, with a policy for invalid scales}
   *
   * @param policy what to do with scales outside (0, ∞); of matrices only {@link ScalePolicy#SEMIDEFINITE} takes more than others
   */
  static Gaussians of(
      ScaleKind kind, float[] mean, float[] scale, int dimension, ScalePolicy policy) {
    Objects.requireNonNull(kind, "kind");
    Elements means = Elements.of(mean, "mean");
    return of(kind, means, Elements.of(scale, kind.form.argument()), dimension, policy);
  }

  /** {@return a batch of double precision, otherwise as {@link #of(ScaleKind, float[], float[], int, ScalePolicy)} makes it} */
  static Gaussians of(
      ScaleKind kind, double[] mean, double[] scale, int dimension, ScalePolicy policy) {
    Objects.requireNonNull(kind, "kind");
    Elements means = Elements.of(mean, "mean");
    return of(kind, means, Elements.of(scale, kind.form.argument()), dimension, policy);
  }

  /**
   * {@return a batch as {@link #of(ScaleKind, float[], float[], int, ScalePolicy)} makes it, from memory segments, each of its own
   * layout} If either is of double, the batch is of double precision.
   *
   * @param meanElement what {@code mean} consists of, {@link ValueLayout.OfFloat} or {@link ValueLayout.OfDouble}, of either byte
   *     order; values need not be aligned
   * @param scaleElement what {@code scale} consists of, likewise
   * @throws IllegalArgumentException if a layout is of another type, or a segment does not hold whole values
   * @throws IllegalStateException if a segment's arena is closed
   * @throws WrongThreadException if a segment is confined to another thread
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
    Elements scales = Elements.of(scale, scaleElement, kind.form.argument());
    return of(kind, means, scales, dimension, policy);
  }

  /**
   * {@return a batch that takes the arrays over instead of copying them}
   *
   * <p>The caller must not modify them afterwards: results would be wrong. They are checked as {@code of} checks its arrays,
   * with {@link ScalePolicy#STRICT}; where an exception is thrown, the caller keeps them.
   *
   * @param kind what {@code scale} holds, one of the diagonal kinds
   * @throws IllegalArgumentException also if {@code kind} is a full one: its batch holds factors, in an array of its own
   */
  static Gaussians owning(ScaleKind kind, float[] mean, float[] scale, int dimension) {
    checkOwnable(kind);
    Elements means = Elements.of(mean, "mean").owned();
    Elements scales = Elements.of(scale, kind.form.argument()).owned();
    return of(kind, means, scales, dimension, ScalePolicy.STRICT);
  }

  /** {@return a batch of double precision that takes the arrays over, as {@link #owning(ScaleKind, float[], float[], int)}} */
  static Gaussians owning(ScaleKind kind, double[] mean, double[] scale, int dimension) {
    checkOwnable(kind);
    Elements means = Elements.of(mean, "mean").owned();
    Elements scales = Elements.of(scale, kind.form.argument()).owned();
    return of(kind, means, scales, dimension, ScalePolicy.STRICT);
  }

  private static void checkOwnable(ScaleKind kind) {
    if (Objects.requireNonNull(kind, "kind").isFull()) {
      throw new IllegalArgumentException(
          "a batch of kind %s cannot take arrays over: it holds factors, in an array of its own; take Gaussians.of"
              .formatted(kind));
    }
  }

  private static Gaussians of(
      ScaleKind kind, Elements mean, Elements scale, int dimension, ScalePolicy policy) {
    Objects.requireNonNull(policy, "policy");
    return switch (kind.form) {
      case Scale form -> DiagonalGaussians.of(form, mean, scale, dimension, policy);
      case MatrixForm form -> FullGaussians.of(form, mean, scale, dimension, policy);
    };
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
   * {@return what {@link #scale(int)} gives: the kind of the scales that a diagonal batch was made of, or
   * {@link ScaleKind#SCALE_TRIL} for full covariances, whatever they were made of}
   */
  default ScaleKind kind() {
    return ScaleKind.of(KlEngine.batch(this).form());
  }

  /**
   * {@return μ_i, in a new array of D elements}
   *
   * @param i the index of a Gaussian
   * @throws IndexOutOfBoundsException if i is not in [0, N)
   */
  default double[] mean(int i) {
    return mean(i, new double[dimension()]);
  }

  /**
   * Writes μ_i, to the bit as it was given; values of {@code float} are exact as doubles. It allocates nothing.
   *
   * @param i the index of a Gaussian
   * @param out receives D elements
   * @return {@code out}
   * @throws IndexOutOfBoundsException if i is not in [0, N)
   * @throws IllegalArgumentException if {@code out} is shorter
   */
  default double[] mean(int i, double[] out) {
    Batch batch = KlEngine.batch(this);
    Arguments.checkIndex("i", i, size());
    Arguments.checkOut(batch.dimension(), out);
    batch.readMean(i, out);
    return out;
  }

  /**
   * {@return the scales of a Gaussian, in a new array, as {@link #scale(int, double[])} writes them}
   *
   * @param i the index of a Gaussian
   * @throws IndexOutOfBoundsException if i is not in [0, N)
   */
  default double[] scale(int i) {
    Arguments.checkIndex("i", i, size());
    return scale(i, new double[KlEngine.batch(this).scaleLength()]);
  }

  /**
   * Writes the scales of a Gaussian, which are of {@link #kind()}. It allocates nothing.
   *
   * <p>Of a diagonal batch, these are D values, to the bit as they were given; values of {@code float} are exact as doubles, and
   * values that a {@link ScalePolicy} replaced are its replacements. Of full covariances, it is L_i, row-major {@code [D, D]} and zero
   * above the diagonal: to the bit where L was given with no 0 on its diagonal, but for columns that were turned because of a negative element there,
   * and else rounded. {@link #covariance(int)} gives Σ_i.
   *
   * @param i the index of a Gaussian
   * @param out receives D elements, or D² of full covariances
   * @return {@code out}
   * @throws IndexOutOfBoundsException if i is not in [0, N)
   * @throws IllegalArgumentException if {@code out} is shorter
   */
  default double[] scale(int i, double[] out) {
    Batch batch = KlEngine.batch(this);
    Arguments.checkIndex("i", i, size());
    Arguments.checkOut(batch.scaleLength(), out);
    batch.readScale(i, out);
    return out;
  }

  /**
   * {@return Σ_i, in a new array, row-major {@code [D, D]}, and symmetric to the bit}
   *
   * <p>Of a diagonal batch, it has the variances σ² on its diagonal, and is 0 elsewhere. A variance is the one that was given, or that of the
   * stored {@link #scale(int)}, rounded once (twice below 2⁻¹⁰²², of a log-variance); where double does not hold it, it is 0 or +∞.
   *
   * <p>Of full covariances, it is {@code L_i L_iᵀ}. The factor, with what rounding took from it, is multiplied in twice the precision of
   * double, and the product rounded once. So what {@link FullGaussians#ofCovariance(double[], double[], int) ofCovariance} was given comes
   * back to the bit, if it was symmetric, and else the mean of its triangles, rounded. Elements of almost no correlation are the exception:
   * the error is up to {@code D · 1e-31 √(Σ_rr Σ_cc)}, which is seen in those below {@code D · 1e-15 √(Σ_rr Σ_cc)}, and is all that a 0 may
   * come back as where L is not 0. It takes a third of D³ products in double-double, 1 s for D = 1000.
   *
   * @param i the index of a Gaussian
   * @throws IndexOutOfBoundsException if i is not in [0, N)
   * @throws IllegalArgumentException if D² elements do not fit an array
   * @throws java.util.concurrent.CancellationException if the calling thread is interrupted while it multiplies factors; its status stays set
   */
  default double[] covariance(int i) {
    Arguments.checkIndex("i", i, size());
    return KlEngine.batch(this).covariance(i);
  }

  /**
   * {@return a batch of the Gaussians {@code from} (included) to {@code to} (excluded), otherwise as {@link #select} makes it}
   *
   * @throws IndexOutOfBoundsException if {@code from} is not in [0, N], or {@code to} not in [from, N]
   * @throws IllegalArgumentException if {@code from == to} and this batch has full covariances
   */
  default Gaussians slice(int from, int to) {
    Arguments.checkRange(from, to, size());
    return select(IntStream.range(from, to).toArray());
  }

  /**
   * {@return a batch of the Gaussians of these indices, in their order, of the same class, kind and precision}
   *
   * <p>It is a copy, so it does not keep this batch's memory alive, and needs panels of its own. The copied Gaussians are the same
   * to the bit, also in what rounding took from a factor, so results are, as far as an entry depends on its two Gaussians alone. A batch
   * that is deterministic (see {@link ScalePolicy}) has deterministic copies.
   *
   * <p>Without indices, the copy of a diagonal batch is empty. A batch of full covariances has no empty copy.
   *
   * @param indices indices of Gaussians, in any order; one may come more than once
   * @throws IndexOutOfBoundsException if an index is not in [0, N)
   * @throws IllegalArgumentException if there is no index and this batch has full covariances, or there are more than fit a batch
   */
  default Gaussians select(int... indices) {
    Arguments.checkIndices("indices", indices, size());
    return switch (this) {
      case DiagonalGaussians d -> d.rows(indices);
      case FullGaussians f -> f.rows(indices);
      case LowRankGaussians g -> g.rows(indices);
    };
  }

  /**
   * Builds what every call of KL reads and the first calls otherwise build, so that no query waits for it: with vectors, for engines of
   * {@link Backend#AUTO}, the panels of the kernels. What is built stays with the batch, and a second call does nothing.
   *
   * <p>With N rounded up to panels of at most 32, it takes, in bytes, {@code 8·N·D} for a diagonal batch of float and {@code 16·N·D} for one
   * of double, as much as its parameters, and {@code 32·N} more; up to four dimensions {@code 32·N·D} and {@code 24·N}; for full covariances
   * {@code 8·N·D·(D + 3)} and {@code 64·N}. Without vectors, it takes {@code 8·N·D} for a diagonal batch, and nothing for full covariances.
   * {@link #memoryBytes()} tells the sum afterwards.
   *
   * <p>Other things are built by the calls that need them. Entries that the kernels leave to a more accurate form are computed one by one,
   * from the parameters; once more were than the batch has rows, beyond one of 4096, as among Gaussians that are alike, it keeps up to
   * {@code 44·N·D} more for them if it is of float, and {@code 8·N·D} if it is of double. The rest is what other divergences read, calls with
   * a batch of the other precision, and pairs of a diagonal and a full Gaussian, which {@link KlEngine#warmUp(Gaussians, Gaussians)} builds for
   * an engine and its queries, and what a CUDA device holds.
   *
   * @throws java.util.concurrent.CancellationException within some milliseconds if the calling thread is interrupted;
   *     its status stays set, and what was built by then stays with the batch
   */
  default void prepare() {
    Platform.prepare(KlEngine.batch(this));
  }

  /**
   * {@return about how many bytes of arrays the batch holds on the heap now: its parameters, and what
   * {@link #prepare()} or calls have built}
   */
  default long memoryBytes() {
    return KlEngine.batch(this).memoryBytes();
  }
}
