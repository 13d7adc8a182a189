package dev.kullback.internal.rows;

import dev.kullback.internal.numerics.Compensation;

/** Makes of log-densities at a point the probabilities that it is of each component of a mixture. */
public final class Responsibilities {
  private Responsibilities() {}

  /**
   * Replaces the log-densities {@code x_j} of a point by {@code r_j = w_j exp(x_j) / Σ_k w_k exp(x_k)}, the sum of which is over each mixture
   * and 1 up to two roundings; where all densities underflow double even as logarithms, by the weights' shares.
   *
   * @param first where the row begins
   * @param offsets mixture m has the columns from {@code offsets[m]} to {@code offsets[m + 1] − 1}
   */
  public static void normalize(double[] x, int first, double[] weights, int[] offsets) {
    for (int m = 0; m < offsets.length - 1; m++) {
      normalize(x, first, weights, offsets[m], offsets[m + 1]);
    }
  }

  private static void normalize(double[] x, int first, double[] weights, int from, int to) {
    double most = Double.NEGATIVE_INFINITY;
    for (int j = from; j < to; j++) {
      most = weights[j] > 0 ? Math.max(most, x[first + j]) : most;
    }
    boolean isEqual = most == Double.NEGATIVE_INFINITY; // ∞ − ∞ is NaN
    double sum = 0;
    double errors = 0;
    for (int j = from; j < to; j++) {
      double density = isEqual ? 1 : Math.exp(x[first + j] - most);
      double term = weights[j] == 0 ? 0 : weights[j] * density;
      x[first + j] = term;
      double next = sum + term;
      errors += Compensation.error(sum, term, next);
      sum = next;
    }
    double total = sum + errors;
    for (int j = from; j < to; j++) {
      x[first + j] /= total;
    }
  }
}
