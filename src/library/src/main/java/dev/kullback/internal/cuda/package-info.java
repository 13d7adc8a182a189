/**
 * The bridge to a CUDA device: batches go there, strips of the matrix come back, through the native library and the CUDA runtime. It may
 * use kernel, batch and numerics, and {@code cuda.abi}, which jextract generates. Start with {@link dev.kullback.internal.cuda.CudaKernel}.
 */
@NullMarked
package dev.kullback.internal.cuda;

import org.jspecify.annotations.NullMarked;
