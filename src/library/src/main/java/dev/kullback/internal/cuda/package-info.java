/**
 * The bridge to a CUDA device: batches go there, strips of the matrix or what was found in them come back, through the native library
 * and the CUDA runtime. It may use kernel, batch, numerics and work, and {@code cuda.abi}, which jextract generates. Start with {@link
 * dev.kullback.internal.cuda.CudaKernel}.
 */
@NullMarked
package dev.kullback.internal.cuda;

import org.jspecify.annotations.NullMarked;
