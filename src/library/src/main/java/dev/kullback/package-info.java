/**
 * Kullback–Leibler divergences, in nats, between batches of Gaussians.
 *
 * <p>Make batches with {@link DiagonalGaussians} or {@link FullGaussians}, and pass them to a {@link KlEngine}. The
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
 * value overflows. At the end of the range, it is +∞ already where twice the value overflows.
 *
 * <p>A fast kernel computes every tile and bounds the rounding error of each entry; more precise kernels recompute the
 * entries that might miss these limits. All kernels work lane by lane, so the bits of an entry depend on its two
 * Gaussians, with full covariances also on what p's means are centred on, but never on its position in a tile. The page
 * {@code src/docs/architecture.md} of the repository shows where the code of each step is.
 *
 * <h2>Reductions</h2>
 *
 * {@code nearest}, {@code within}, their variants, {@code logSumExp}, {@code weightedLogSumExp}, {@code rowMin},
 * {@code rowSum}, {@code rowMean} and {@code forEachTile} compute the same entries, a tile of at most {@code 32 × 4096}
 * at a time, and keep none. {@code nearest} and {@code within} decide as exact arithmetic does, within the limits that
 * {@link KlEngine#nearest(Gaussians, Gaussians, int)} states.
 *
 * <h2>Outputs</h2>
 *
 * A method that writes to the caller's memory leaves the elements past its result as they are. A {@code float[]}
 * receives the results of double batches rounded, and a {@code double[]} receives all that was computed. A
 * {@link java.lang.foreign.MemorySegment} receives {@code double} in native order if either batch is of double, else
 * {@code float}.
 *
 * <h2>Arguments and errors</h2>
 *
 * Two batches <em>match</em> if they have the same dimension and their divergence is defined: its second argument is
 * not deterministic unless its first is (see {@link ScalePolicy}), and a batch that meets full covariances has
 * log-variances within ±1400. Methods throw {@link IllegalArgumentException} for batches that do not match, and
 * {@link NullPointerException} for a null argument. A segment causes an {@link IllegalStateException} if its arena is
 * closed, and a {@link WrongThreadException} if it is confined to another thread.
 *
 * <h2>Threads</h2>
 *
 * Batches are immutable, and an engine is safe for use by any number of threads at once. By default, an engine computes
 * on the calling thread alone and starts no others, but for one thread in the first seconds of the process (see below). With {@code
 * threads(n)}, the caller and n − 1 helpers share the work of a call. On one machine and JVM, results are bitwise the same for every number
 * of threads and every repetition.
 *
 * <p>In a reduction, a thread works on whole rows, at least 8 of them, in reverse at least 32. A large call that
 * has such rows for half of its threads at most divides its columns, too, if they are more than 4096, as {@code forEachTile} does. {@code
 * aligned}, {@code pairs}, {@code toStandardNormal} and what a call prepares of its batches are divided where they take
 * some 0.1 ms.
 *
 * <h2>The first seconds</h2>
 *
 * Before the JVM has compiled vector code it takes up to 10,000 times as long. Until it has, plain code computes, to the
 * same bits. Half a second after the first call of an engine that uses vectors, the daemon thread
 * {@code kullback-change-over} begins to run the vector kernels on made-up batches. It tries the parts that calls have
 * asked for: diagonal batches of float, of double, of up to four dimensions, full covariances, reductions. When one is as
 * fast as it should be, after some seconds or 30 at most, all engines use its vectors from then on. The thread ends when
 * all are, and another begins only when calls come on another kind of batches. {@link KlEngine#warmUp(int, int, int)} and
 * {@link KlEngine#verify} wait for it. With the system property
 * {@code dev.kullback.background=false} there is none, and vectors are used from the first call on, however slowly.
 *
 * <p>Where the JVM does not compile vector code, or has no time to, the plain code stays, and the log has a warning. Calls, or
 * without the thread engines that are built and batches that are made or prepared, have vectors tried again after 1 s, 10 s,
 * 1 min and every 10 min from then on.
 *
 * <h2>Interruption</h2>
 *
 * A call that computes ends with a {@link java.util.concurrent.CancellationException} when its calling thread is
 * interrupted. The interrupt status stays set, the output is incomplete, and the helpers have ended their work on the
 * call. A call that computes entries of the matrix checks the status before each tile, which in {@code pairwise} has at
 * most {@code 64 × 2048} entries. {@code aligned}, {@code pairs}, {@code toStandardNormal} and the first preparation of a batch check
 * it every few milliseconds.
 *
 * <p>Two parts of calls are not interrupted: {@code pairwise}, {@code aligned} and {@code toStandardNormal} on a CUDA
 * device, and a pair of full covariances that is solved for by itself, which takes 0.1 s at D = 1000. The factories of
 * batches are not interrupted, either.
 *
 * <h2>Virtual threads</h2>
 *
 * A call, the making of a batch and its preparation yield their carrier every few milliseconds, so that other virtual
 * threads run beside calls of any length. The two parts of calls that are not interrupted do not yield, either. Each
 * yield may allocate, and it takes a permit of {@link java.util.concurrent.locks.LockSupport#unpark} if the thread has
 * one.
 *
 * <h2>Memory and allocation</h2>
 *
 * A warm call allocates nothing with one thread, and a few hundred bytes with several threads or on a CUDA device. A
 * call is warm if its batches have been used twice before and it writes to the caller's memory. A later one may still
 * make what recomputes entries, the first time that many need it; {@link Gaussians#prepare()} makes it at once. Nothing
 * of size {@code N·M·D} is ever made. Besides the packed forms of batches, the engine holds for each thread at work
 *
 * <ul>
 *   <li>{@code 128·D} floats and up to 90 KiB, and {@code 128·D} doubles more where entries are recomputed;
 *   <li>up to 4 MiB for each batch that the thread was the first to use;
 *   <li>0.5 MiB of floats or 1 MiB of doubles if it writes to a memory segment;
 *   <li>1 MiB if it reduces rows (with a CUDA device 8 MiB), as much again in reverse, and what
 *       {@link KlEngine#nearest(Gaussians, Gaussians, int)} says;
 *   <li>where a covariance is full, 200 KiB and {@code 16·D²} bytes, or {@code 120·D²} bytes once entries were
 *       recomputed.
 * </ul>
 *
 * <h2>CUDA</h2>
 *
 * With {@link Backend#CUDA}, the device computes the matrix, {@code aligned} and {@code toStandardNormal}, by kernels
 * of the same mathematics. The exceptions are {@code pairs}, and a diagonal with a full Gaussian, in {@code aligned} always, and
 * elsewhere if the batches are too large to be written out as full factors. Reductions take {@code 256 × 4096} entries
 * at a time from the device and reduce them on as many threads as the engine has; for other operations, the number of
 * threads does not matter.
 *
 * <p>Four calls run at once, and further ones wait. A call blocks its thread, and the carrier of a virtual one, while
 * it waits for the device. Batches stay on the device from their first use until they are unreachable, their memory is
 * needed, or the engine is closed. A call holds up to 16 MiB of pinned and 16 MiB of device memory for strips of the
 * result, but in {@code aligned} and {@code toStandardNormal} for all of it. This memory is kept for the next call. A
 * method that computes throws {@link CudaException} when the device fails.
 */
@NullMarked
package dev.kullback;

import org.jspecify.annotations.NullMarked;
