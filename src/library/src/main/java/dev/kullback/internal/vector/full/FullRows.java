package dev.kullback.internal.vector.full;

/**
 * A batch as the rows of the full-covariance product, in panels of {@link ProductKernels#MR}.
 *
 * @param covariance {@code [a][k][MR]} over the entries k of the packed Σ; one panel if all rows share it
 * @param step how far panels of {@code covariance} are apart
 * @param mean {@code [a][h][MR]}
 * @param offset what a row adds to KL; NaN for one that the product cannot hold
 * @param noise its share of the error bound that adds up
 * @param weight its share of the error bound that multiplies, without its mean's
 */
record FullRows(
    double[] covariance,
    int step,
    double[] mean,
    double[] offset,
    double[] noise,
    double[] weight) {
  /** Returns where Σ of the panel of a row begins. */
  int panel(int row) {
    return row / ProductKernels.MR * step;
  }

  long bytes() {
    return (long) Double.BYTES
        * (0L + covariance.length + mean.length + offset.length + noise.length + weight.length);
  }
}
