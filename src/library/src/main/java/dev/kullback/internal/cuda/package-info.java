/**
 * The bridge to a CUDA device: {@link dev.kullback.internal.cuda.CudaDevice} computes on it, through the native library and CUDA
 * runtime that {@link dev.kullback.internal.cuda.CudaLibrary} loads. Not exported.
 */
@NullMarked
package dev.kullback.internal.cuda;

import org.jspecify.annotations.NullMarked;
