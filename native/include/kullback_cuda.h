/*
 * Kullback-Leibler divergences of batches of Gaussians on a CUDA device.
 *
 * A batch of N Gaussians of dimension D lives in one block of device memory. The caller asks for its size, copies the raw
 * parameters in, and has the rest prepared on the device:
 *
 *     kullback_cuda_batch b = {0, n, d, KULLBACK_STD, 0};
 *     cudaMalloc(&b.data, kullback_cuda_batch_bytes(&b));
 *     cudaMemcpyAsync(b.data, mean, ...);
 *     cudaMemcpyAsync((char *)b.data + kullback_cuda_scale_offset(&b), std, ...);
 *     kullback_cuda_prepare(&b, stream);
 *
 * Functions that return a status return 0, a cudaError_t (> 0), or KULLBACK_CUDA_INVALID for an argument that is null, a size
 * below 1, a region outside the batch, dimensions that differ, or diagonal and full batches mixed. They check on the host,
 * queue work on `stream` (a cudaStream_t, or null) and return: none allocates, prints, exits or throws, and only
 * kullback_cuda_download waits. Batch descriptors are read before they return; device memory is the caller's to keep until the
 * stream has passed.
 *
 * What a batch holds beside the raw parameters depends on the current device, by what that computes fast: make, prepare and use a
 * batch with one device current.
 *
 * No entry is ever NaN or negative, for parameters that are finite and scales that are positive: overflow gives +infinity. An
 * entry's bits do not depend on the region, nor on q's other Gaussians, but on the two Gaussians, on the precision of the two batches,
 * and on p's other Gaussians and their order.
 */
#ifndef KULLBACK_CUDA_H
#define KULLBACK_CUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KULLBACK_API __attribute__((visibility("default")))
#else
#define KULLBACK_API
#endif

/** Changes with every incompatible change of this file. */
#define KULLBACK_CUDA_ABI_VERSION 2

/** Status: an argument is invalid. */
#define KULLBACK_CUDA_INVALID (-1)

/* What the scales of a batch are. */

/** Standard deviations, [N, D]. */
#define KULLBACK_STD 0
/** Variances, [N, D]. */
#define KULLBACK_VARIANCE 1
/** Natural logarithms of variances, [N, D]. */
#define KULLBACK_LOG_VARIANCE 2
/** Reciprocals of variances, [N, D]. */
#define KULLBACK_PRECISION 3
/** Lower triangular L of covariances L L^T, packed by rows with the diagonal as it is, [N, D(D+1)/2]. */
#define KULLBACK_SCALE_TRIL 4
/**
 * The same in two parts whose sum is L, [2, N, D(D+1)/2]: for factors that were computed, so that those of near-duplicates
 * differ by what the Gaussians do.
 */
#define KULLBACK_SCALE_TRIL_PARTS 5

/** A batch of Gaussians; plain data that the caller owns. */
typedef struct kullback_cuda_batch {
  /** Device memory of kullback_cuda_batch_bytes, aligned to 16 bytes at least. */
  void *data;
  /** N. */
  int64_t size;
  /** D. */
  int64_t dimension;
  /** One of KULLBACK_STD to KULLBACK_SCALE_TRIL_PARTS. */
  int32_t kind;
  /**
   * 0: the inputs are float, and results hold to a relative error of 1e-5. 1: double, and 1e-12; for full batches times the
   * condition number. The data of full batches are double in memory in both cases. A pair is as precise as the more
   * precise of its batches.
   */
  int32_t wide;
} kullback_cuda_batch;

/** KULLBACK_CUDA_ABI_VERSION of the library. */
KULLBACK_API int32_t kullback_cuda_abi_version(void);

/** What the library was built with, or that it is the emulation; a constant string. */
KULLBACK_API const char *kullback_cuda_description(void);

/**
 * Name of a device and how it computes, such as "NVIDIA H200 (products in double)", with a terminating zero.
 *
 * @param device its ordinal
 * @param name host memory for the result
 * @param capacity of `name` in bytes, at least 1; a longer name is cut
 */
KULLBACK_API int32_t kullback_cuda_device_name(int32_t device, char *name, int64_t capacity);

/** Bytes of device memory that a batch needs at `data`, which may be null here; -1 if the batch is invalid or too large. */
KULLBACK_API int64_t kullback_cuda_batch_bytes(const kullback_cuda_batch *batch);

/** Where in `data` the scales go, in bytes; the means go to its start. -1 as kullback_cuda_batch_bytes. */
KULLBACK_API int64_t kullback_cuda_scale_offset(const kullback_cuda_batch *batch);

/** Fills the rest of `data` from the means and scales in it: once, before the batch is used. */
KULLBACK_API int32_t kullback_cuda_prepare(const kullback_cuda_batch *batch, void *stream);

/**
 * Bytes of device memory that kullback_cuda_pairwise needs as scratch for a region of at most so many rows and columns, and
 * kullback_cuda_aligned with rows = N and columns = 1; -1 if an argument is invalid. `data` may be null here.
 */
KULLBACK_API int64_t kullback_cuda_scratch_bytes(
    const kullback_cuda_batch *q, const kullback_cuda_batch *p, int64_t rows, int64_t columns);

/**
 * out[(i - row0) * stride + (j - column0)] = KL(q_i || p_j) for i in [row0, row0 + rows) and j in [column0, column0 + columns);
 * transposed, out[(j - column0) * stride + (i - row0)], in the same bits.
 *
 * @param same not 0: q and p are one batch, so that i == j gives 0
 * @param out device memory, float or double by out_wide; what lies between rows is not touched
 * @param stride elements from one row of `out` to the next, at least `columns`, or transposed at least `rows`
 * @param out_wide 0: `out` is float, 1: double
 * @param transposed not 0: a row of `out` is a column of the region
 * @param scratch device memory of kullback_cuda_scratch_bytes, aligned to 16 bytes; not shared with work on other streams
 */
KULLBACK_API int32_t kullback_cuda_pairwise(
    const kullback_cuda_batch *q,
    const kullback_cuda_batch *p,
    int64_t row0,
    int64_t rows,
    int64_t column0,
    int64_t columns,
    int32_t same,
    void *out,
    int64_t stride,
    int32_t out_wide,
    int32_t transposed,
    void *scratch,
    void *stream);

/** out[i] = KL(q_i || p_i), for batches of one size. */
KULLBACK_API int32_t kullback_cuda_aligned(
    const kullback_cuda_batch *q,
    const kullback_cuda_batch *p,
    int32_t same,
    void *out,
    int32_t out_wide,
    void *scratch,
    void *stream);

/** out[i] = KL(q_i || N(0, I)). */
KULLBACK_API int32_t kullback_cuda_standard(
    const kullback_cuda_batch *q, void *out, int32_t out_wide, void *stream);

/*
 * Reductions, of a strip of a matrix that kullback_cuda_pairwise left in device memory as double: [rows, columns], rows `stride`
 * elements apart, columns at most 2^31 - 1. Each row is cut into P = ceil(columns / width) pieces of `width` columns, of which the last
 * may be shorter, so that there is work for all of a device; the caller merges what is had of a row's pieces. Entries must be neither
 * NaN nor negative; they may be +infinity.
 */

/** What kullback_cuda_fold makes of a piece: (its least entry, 0). */
#define KULLBACK_MIN 0
/** (The sum of its entries, 0). */
#define KULLBACK_SUM 1
/**
 * (m, sum of exp(m - (x_j - w_j))), m being the least of x_j - w_j, x_j the entry in column j and w_j the logarithm of that column's
 * weight; (+infinity, 0) if m is +infinity. So log(sum of exp(w_j - x_j)) is log(second) - first.
 */
#define KULLBACK_LOG_SUM_EXP 2

/** The most entries of a piece that kullback_cuda_select can list. */
#define KULLBACK_MOST_SELECTED 2048

/**
 * Lists of each piece the entries x <= limit. With k = 0 the limit is limits[row]; with k > 0 it is that or b * slack, whichever is less,
 * where b is no less than the piece's k-th least entry and seldom much more, so that the k least are among some 1.2 k entries. A piece
 * of fewer than k entries does not lower the limit. What is found does not depend on the device.
 *
 * @param skip row r leaves out column r + skip, which need not exist: it is not among the entries, nor counted, nor of the k least
 * @param k of how many least entries each piece is to tell, or 0
 * @param slack at least 1 and finite: for lists that hold what is within the k-th least entry times that
 * @param limits device memory, [rows]; +infinity for none
 * @param capacity entries of a piece's list, 1 to KULLBACK_MOST_SELECTED
 * @param counts device memory, [rows, P]: how many entries there are, also where they are more than `capacity`
 * @param found_columns device memory, [rows, P, capacity]: their columns in the matrix, ordered by value and then column if k > 0, by column
 *     if k = 0; undefined where there are more than `capacity`, and not touched beyond the last
 * @param found_values device memory, [rows, P, capacity]: their values
 */
KULLBACK_API int32_t kullback_cuda_select(
    const double *matrix,
    int64_t rows,
    int64_t columns,
    int64_t stride,
    int64_t width,
    int64_t skip,
    int64_t k,
    double slack,
    const double *limits,
    int64_t capacity,
    int32_t *counts,
    int32_t *found_columns,
    double *found_values,
    void *stream);

/**
 * Two numbers of each piece, added up in an order that depends on nothing but the piece's width.
 *
 * @param kind KULLBACK_MIN, KULLBACK_SUM or KULLBACK_LOG_SUM_EXP
 * @param log_weights device memory, [columns], for KULLBACK_LOG_SUM_EXP alone: finite, or -infinity for a weight of 0; null: all 0
 * @param out device memory, [rows, P, 2]
 */
KULLBACK_API int32_t kullback_cuda_fold(
    int32_t kind,
    const double *matrix,
    int64_t rows,
    int64_t columns,
    int64_t stride,
    int64_t width,
    const double *log_weights,
    double *out,
    void *stream);

/**
 * Copies `height` rows of `width` bytes from device to host memory, pinned or not, and waits for them, and with them for all that was
 * queued on the stream before. The host memory is in use until this returns, with an error, too. The wait does not spin as far as the
 * runtime allows: it does for memory that is not pinned.
 *
 * @param to host memory
 * @param to_stride bytes from one row to the next, at least `width`; what lies between rows is not touched
 * @param from device memory
 * @param from_stride likewise
 */
KULLBACK_API int32_t kullback_cuda_download(
    void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t width, int64_t height, void *stream);

#ifdef __cplusplus
}
#endif

#endif
