package dev.kullback;

/**
 * A batch as the kernels of one precision read it.
 *
 * @param values panels, in a layout of {@code FloatKernels}
 * @param logDet Σ_h ln σ_h by row, padded to whole panels; NaN where this precision cannot hold the row's variances
 * @param bound error bound of {@code logDet}, padded likewise
 */
@SuppressWarnings("ArrayRecordComponent") // shared, read-only, and never compared
record Packed<A>(A values, double[] logDet, double[] bound) {}
