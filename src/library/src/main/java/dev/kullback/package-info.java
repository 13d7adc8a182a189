/**
 * Kullback–Leibler divergences, in nats, between batches of Gaussians.
 *
 * <p>Make batches with {@link DiagonalGaussians}, {@link FullGaussians} or {@link Gaussians}, and pass them to a {@link KlEngine}. The
 * first argument, q, holds the rows of the matrix, and the second, p, its columns: {@code out[i*M + j] = KL(q_i ‖ p_j)}
 * for N Gaussians q_i and M Gaussians p_j of dimension D. This page states what all operations have in common.
 *
 * <h2>Definitions</h2>
 *
 * For diagonal Gaussians,
 *
 * <pre>
 * KL(q ‖ p) = ½ Σ_h [ (σq² − σp²)/σp² + (μq − μp)²/σp² ] + Σ_h (ln σp − ln σq)
 * </pre>
 *
 * <p>For full covariances {@code Σ = LLᵀ}, with y and X such that {@code L_p y = μ_p − μ_q} and {@code L_p X = L_q},
 *
 * <pre>
 * KL(q ‖ p) = ½ (‖y‖² + ‖X‖² − D) + Σ_k (ln L_p,kk − ln L_q,kk)
 * </pre>
 *
 * <p>One batch may be diagonal and the other full. The diagonal one is then written out as full factors, which are kept
 * with it. If they would take more than 128 MiB, pairs are computed one by one instead.
 *
 * <p>An engine can compute another {@link Divergence} instead, with the same promises; what follows says KL for it.
 *
 * <h2>Accuracy</h2>
 *
 * The relative error of an entry against the exact value, for the inputs as given, is at most
 *
 * <ul>
 *   <li>1e-5 if both batches are of {@code float} (in the tests at most 3e-6). With a full covariance, this holds for
 *       condition numbers of Σ_p up to 1e6.
 *   <li>1e-12 if either batch is of {@code double}. With a full covariance, it is 1e-12 times the condition number
 *       {@code ‖L_p‖‖L_p⁻¹‖} of p's factor.
 * </ul>
 *
 * <p>This holds for every finite entry that is a normal number of the output's type, however close or far apart the
 * Gaussians are. An entry is never negative and never NaN. It is exactly 0 for identical parameters, and +∞ where the
 * value overflows.
 *
 * <p>The bits of an entry depend on its two Gaussians, but never on its row, or on how the matrix is divided. With full covariances, KL's
 * also depend on other means of p, those of its reverse and of reverse searches on other means of q, and those of Jeffreys' divergence on
 * both; the other divergences' do not. With {@link dev.kullback.Backend#CUDA} and any covariances, they depend on p's other Gaussians
 * and their order, or in reverse searches on q's. The page <a href="doc-files/architecture.html">Architecture</a> shows how an entry is
 * computed, and where the code of each step is.
 *
 * <h2>Reductions</h2>
 *
 * {@code nearest}, {@code within}, {@code search}, {@code logSumExp}, {@code weightedLogSumExp}, {@code rowMin},
 * {@code rowSum} and {@code forEachTile} compute the same entries, a tile of at most {@code 32 × 4096}
 * at a time, and keep none. Searches decide as exact arithmetic does, within the limits that
 * {@link KlEngine#nearest(Gaussians, Gaussians, int)} states.
 *
 * <h2>Outputs</h2>
 *
 * A method that writes to the caller's memory leaves the elements past its result as they are. A {@code float[]}
 * receives the results of double batches rounded, and a {@code double[]} receives all that was computed. A
 * {@link java.lang.foreign.MemorySegment} receives {@code double} in native order if either batch is of double, else
 * {@code float}.
 *
 * <h2>Whose arrays</h2>
 *
 * What is given is copied, except where {@link Gaussians#owning(ScaleKind, float[], float[], int)} or an output says otherwise. An array
 * that a result hands out is the result's own, not a copy: a change to it changes the result. Batches and {@link Mixtures} are no
 * results: what is read back from one, as by {@link Gaussians#mean(int)} and {@link Mixtures#weights()}, is a copy.
 *
 * <h2>Arguments and errors</h2>
 *
 * Two batches <em>match</em> if they have the same dimension and their divergence is defined: its second argument is
 * not deterministic unless its first is, no Gaussian is singular unless the divergence is the Wasserstein distance or its square (see
 * {@link ScalePolicy} for both), and a batch that meets full covariances has log-variances within ±1400. Methods throw {@link IllegalArgumentException} for batches that do not match, an
 * {@link InvalidGaussianException} if a single Gaussian is at fault, here or where a batch is made, and
 * {@link NullPointerException} for a null argument. A segment causes an {@link IllegalStateException} if its arena is
 * closed, and a {@link WrongThreadException} if it is confined to another thread.
 *
 * <h2>Threads</h2>
 *
 * Batches are immutable, and an engine is safe for use by any number of threads at once. By default, an engine computes
 * on the calling thread alone. With {@code threads(n)}, the caller and n − 1 helpers share the work of a call. On one
 * machine and JVM, results are bitwise the same for every number of threads and every repetition.
 *
 * <p>Until the JVM has compiled vector code, in the first seconds of a process, plain code computes, to the same bits, and
 * one daemon thread has the vector code compiled. {@link KlEngine#warmUp(int, int, int)} and {@link KlEngine#verify}
 * wait for it. {@link KlEngine.Builder#backgroundWarmUp} does without that thread. The page <a href="doc-files/services.html">Services</a>
 * says how a call is divided, and what follows below means for a service.
 *
 * <h2>Interruption and virtual threads</h2>
 *
 * A call that computes ends with a {@link java.util.concurrent.CancellationException} when its calling thread is
 * interrupted. The interrupt status stays set, the output is incomplete, and the helpers have ended their work on the
 * call. A search of an engine whose {@link Query#timeout} has passed ends in the same way, with a {@link SearchTimeoutException}, which is below
 * that class and to be caught first. The status is checked before each tile, which in {@code pairwise} has at most {@code 64 × 2048}
 * entries, and every few milliseconds where there are no tiles. As often, calls, the making of a batch and its preparation yield the
 * carrier of a virtual thread. A yield may allocate, and it takes a permit of {@link java.util.concurrent.locks.LockSupport#unpark}
 * if the thread has one.
 *
 * <p>It is checked as often within a single pair or Gaussian of large D: in every divergence of full covariances, in their preparation,
 * and in a merger of {@link MixtureReduction}. Two parts of calls neither end nor yield: {@code pairwise}, {@code aligned} and {@code
 * toStandardNormal} on a CUDA device, and a few pairs that vectors solve for at once, which takes 0.1 s at D = 2000. The factories of batches
 * yield, also within a matrix that they factor, but do not end.
 *
 * <h2>Memory and allocation</h2>
 *
 * A warm call allocates nothing with one thread, and a few hundred bytes with several threads or on a CUDA device. A
 * call is warm if its batches have been used twice before and it writes to the caller's memory. A later one may still
 * make what recomputes entries, the first time that many need it; {@link Gaussians#prepare()} makes the rest before. Nothing
 * of size {@code N·M·D} is ever made.
 *
 * <h2>CUDA</h2>
 *
 * With {@link Backend#CUDA}, the device computes KL, and no other divergence, by kernels of the same mathematics, and throws {@link CudaException} from a
 * method that computes when it fails. The page <a href="doc-files/cuda.html">CUDA</a> says what it computes and what it keeps.
 *
 * @since 0.1.0
 */
@NullMarked
package dev.kullback;

import org.jspecify.annotations.NullMarked;
