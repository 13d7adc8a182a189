package dev.kullback.internal.vector.full;

import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.vector.VectorWidth;

/**
 * A batch as the columns of the full-covariance product, in panels of {@link #NR}. With the product AB of rows made for
 * {@code centre}, {@code KL = ½AB + offsetQ + offsetP}, and its error is at most
 *
 * <pre>
 * weightQ·weightP + noiseQ + noiseP + inverseError·AB
 * </pre>
 *
 * @param values {@code [b][k][NR]} over the entries k of B; if all columns share P, one panel of it, and then {@code −2 P m_p}, {@code [b][h][NR]}
 * @param isShared whether all columns share P
 * @param isWhitened whether means are by {@link Whitening}, whose product has no P and no entries but means
 * @param centre what is subtracted from all means, near those of the batch
 * @param tolerance relative error that batches of double are allowed
 */
record FullColumns(
    double[] values,
    boolean isShared,
    boolean isWhitened,
    double[] centre,
    double[] offset,
    double[] noise,
    double[] weight,
    double[] inverseError,
    double[] tolerance) {
  /** Columns of a panel: two vectors, and what {@link ProductKernels#MR} rows are. */
  static final int NR = Math.max(2 * VectorWidth.BITS / Double.SIZE, ProductKernels.MR);

  /** K: entries of B. */
  static int length(int d) {
    return Cholesky.packedLength(d) + d;
  }

  /** Entries of P. */
  int triangle() {
    return isWhitened ? 0 : Cholesky.packedLength(centre.length);
  }

  /** Roundings of a product: one for each entry of a chunk, and one for each chunk. */
  static double roundings(int entries) {
    return Math.min(ProductKernels.KC, entries) + Math.ceilDiv(entries, ProductKernels.KC) + 1;
  }

  /** Weight of ‖m_q‖² in the error bound. */
  double ofSquares() {
    return 0.5 * FullPacking.UNIT * (2 * roundings(triangle() + centre.length) + 4);
  }

  /** Returns where P of the panel of column j begins. */
  int precision(int j) {
    return isShared ? 0 : j / NR * length(centre.length) * NR;
  }

  /** Returns where {@code −2 P m_p} of the panel of column j begins. */
  int ofMean(int j) {
    int d = centre.length;
    return (triangle() + j / NR * (isShared ? d : length(d))) * NR;
  }

  long bytes() {
    long rows = 5L * offset.length; // those that have one number a row
    return Double.BYTES * (rows + values.length + centre.length);
  }
}
