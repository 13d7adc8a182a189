/**
 * Computes on a CUDA device, through the native library and the CUDA runtime: batches go there, and strips of the matrix, or what was
 * found in them, come back. It may use kernel, batch, numerics and work, and {@code cuda.abi}, which jextract generates. Start with {@link
 * dev.kullback.internal.cuda.CudaKernel}.
 */
@NullMarked
package dev.kullback.internal.cuda;

import org.jspecify.annotations.NullMarked;
