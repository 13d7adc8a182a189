package dev.kullback.bench;

import java.util.SplittableRandom;

/**
 * The inputs of the full-covariance contenders, the same in each process: row-major [size, dimension] means and
 * [size, dimension, dimension] lower triangular factors L, Σ = LLᵀ. The values are floats in doubles, so that
 * contenders of both precisions see the same Gaussians.
 */
record FullBatch(double[] mean, double[] scaleTril, Shape shape) {
  /**
   * Means N(0, 1), ln L_kk N(0, 0.3²), below the diagonal N(0, 0.5²/D): row sums of squares about 1 whatever D is, and
   * condition numbers of Σ in the tens.
   */
  static FullBatch ordinary(Shape shape, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    int n = shape.size();
    int d = shape.dimension();
    double[] mean = new double[Math.multiplyExact(n, d)];
    double[] scaleTril = new double[Math.multiplyExact(mean.length, d)];
    double below = 0.5 / Math.sqrt(d);
    for (int row = 0; row < mean.length; row++) {
      mean[row] = (float) random.nextGaussian();
      int at = row * d;
      for (int k = 0; k < row % d; k++) {
        scaleTril[at++] = (float) (below * random.nextGaussian());
      }
      scaleTril[at] = (float) Math.exp(0.3 * random.nextGaussian());
    }
    return new FullBatch(mean, scaleTril, shape);
  }

  /** Σ_i = L_i L_iᵀ, row-major. */
  double[] covariance(int i) {
    int d = shape.dimension();
    double[] covariance = new double[d * d];
    for (int r = 0; r < d; r++) {
      for (int c = 0; c < d; c++) {
        double sum = 0;
        for (int k = 0; k <= Math.min(r, c); k++) {
          sum += scaleTril[(i * d + r) * d + k] * scaleTril[(i * d + c) * d + k];
        }
        covariance[r * d + c] = sum;
      }
    }
    return covariance;
  }

  /** K: what an entry costs as part of one matrix product, Σ packed and the mean. */
  static int features(int dimension) {
    return dimension * (dimension + 1) / 2 + dimension;
  }
}
