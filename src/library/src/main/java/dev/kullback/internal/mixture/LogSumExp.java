package dev.kullback.internal.mixture;

/** Sums numbers that are given by their logarithms. */
public final class LogSumExp {
  private LogSumExp() {}

  /** Returns {@code ln Σ exp(x_k)} for k in [from, to), of which the greatest is {@code most}. */
  public static double of(double[] x, int from, int to, double most) {
    if (Double.isInfinite(most)) {
      return most;
    }
    double sum = 0;
    for (int k = from; k < to; k++) {
      sum += Math.exp(x[k] - most);
    }
    return most + Math.log(sum);
  }
}
