/**
 * Kullback–Leibler divergences, in nats, between batches of Gaussians.
 *
 * <p>Rows are {@code q}, the first argument, and columns are {@code p}: {@code out[i*M + j] = KL(q_i ‖ p_j)}. Make batches
 * with {@link dev.kullback.DiagonalGaussians} or {@link dev.kullback.FullGaussians} and hand them to a {@link dev.kullback.KlEngine}.
 *
 * <h2>Accuracy</h2>
 *
 * For {@code float} batches every finite entry is within 1e-5 relative of the exact value for the given inputs (in the
 * tests at most 3e-6), for {@code double} batches within 1e-12, however close or far apart the Gaussians are; for full
 * covariances, the double contract is multiplied by the condition number of the factor L_p, and the float one holds up to a
 * condition number of 1e6 of Σ_p. An entry is never negative, exactly 0 for identical parameters, +∞ where the value overflows,
 * and never NaN. Results are bitwise the same for every thread count and repetition.
 *
 * <h2>How it works</h2>
 *
 * {@link dev.kullback.KlEngine} checks arguments and cuts the matrix into blocks; {@code VectorKernel} walks a block tile by
 * tile; {@code FloatKernels} (of which the build derives {@code DoubleKernels}) holds the packing and the micro-kernels.
 * {@code FullVectorKernel} and {@code FullKernels} do the same for full covariances, as one matrix product. On a CUDA device,
 * {@code internal.cuda.CudaDevice} moves batches and strips of the matrix, and kernels of the same mathematics compute.
 * A {@code RowReduction} takes the blocks in the matrix's stead, a band of rows after the other; {@code Ranks} decides what the
 * kernels' error bound leaves open. Every tile goes through the fast kernel; an epilogue bounds each entry's rounding error, and the entries that may miss the
 * contract are recomputed by a more precise kernel. All kernels work lane by lane: an entry's bits depend on its two
 * Gaussians alone, for full covariances also on what p's means are centred on, never on where in a tile it falls.
 */
@NullMarked
package dev.kullback;

import org.jspecify.annotations.NullMarked;
