package dev.kullback.internal.vector.full;

/**
 * A batch as the rows of the full-covariance product, in panels of {@link ProductKernels#MR}.
 *
 * @param covariance {@code [a][k][MR]} over the entries k of the packed Σ
 * @param mean {@code [a][h][MR]}
 * @param offset what a row adds to KL; NaN for one that the product cannot hold
 * @param noise its share of the error bound that adds up
 * @param weight its share of the error bound that multiplies, without its mean's
 */
record FullRows(
    double[] covariance, double[] mean, double[] offset, double[] noise, double[] weight) {
  long bytes() {
    return (long) Double.BYTES
        * (0L + covariance.length + mean.length + offset.length + noise.length + weight.length);
  }
}
