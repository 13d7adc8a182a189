package dev.kullback.bench;

/** Checks a contender's matrix against double references before anything is timed. */
final class Agreement {
  /** Whole rows; enough to meet every tile column, few enough to stay cheap at 4096x256. */
  private static final int SAMPLED_ROWS = 9;

  private Agreement() {}

  /** A wrong result, whose time means nothing. */
  static final class Disagreement extends RuntimeException {
    private static final long serialVersionUID = 1;

    Disagreement(String message) {
      super(message);
    }
  }

  /** The library's contract: relative error 1e-5, never negative, exactly 0 for identical rows. */
  static void contract(String name, Batch q, Batch p, float[] out) {
    forSampledEntries(
        q.shape(),
        (i, j, at) -> {
          double expected = kl(q, p, i, j);
          if (!(out[at] >= 0 && Math.abs(out[at] - expected) <= 1e-5 * expected)) {
            throw differs(name, i, j, out[at], expected);
          }
        });
  }

  /** What a float formula that subtracts D gives: the error is relative to KL + D. */
  static void roughKl(String name, Batch q, Batch p, float[] out) {
    forSampledEntries(
        q.shape(),
        (i, j, at) -> {
          double expected = kl(q, p, i, j);
          if (!(Math.abs(out[at] - expected) <= 1e-4 * (expected + q.shape().dimension()))) {
            throw differs(name, i, j, out[at], expected);
          }
        });
  }

  /** A product {@code mu_q mu_pᵀ}: the error is relative to the sum of the terms' magnitudes. */
  static void product(String name, Batch q, Batch p, float[] out) {
    int d = q.shape().dimension();
    forSampledEntries(
        q.shape(),
        (i, j, at) -> {
          double expected = 0;
          double magnitude = 0;
          for (int h = 0; h < d; h++) {
            double term = (double) q.mean()[i * d + h] * p.mean()[j * d + h];
            expected += term;
            magnitude += Math.abs(term);
          }
          if (!(Math.abs(out[at] - expected) <= 1e-5 * magnitude)) {
            throw differs(name, i, j, out[at], expected);
          }
        });
  }

  /** KL(q_i ‖ p_j), every term ≥ 0: ½ Σ x² + 2(x − ln(1 + x)) + y². */
  private static double kl(Batch q, Batch p, int i, int j) {
    int d = q.shape().dimension();
    double sum = 0;
    for (int h = 0; h < d; h++) {
      double std = p.std()[j * d + h];
      double x = (q.std()[i * d + h] - std) / std;
      double y = ((double) q.mean()[i * d + h] - p.mean()[j * d + h]) / std;
      sum += x * x + 2 * minusLog1p(x) + y * y;
    }
    return sum / 2;
  }

  /** x − ln(1 + x), by its series where the difference would cancel. */
  private static double minusLog1p(double x) {
    if (Math.abs(x) > 1e-2) {
      return x - Math.log1p(x);
    }
    double series = 0;
    // nine terms: the first one left out is below 1e-18 of the sum at |x| = 1e-2
    for (int k = 10; k >= 2; k--) {
      series = series * -x + 1.0 / k;
    }
    return series * x * x;
  }

  private interface Entry {
    void check(int i, int j, int at);
  }

  private static void forSampledEntries(Shape shape, Entry entry) {
    int n = shape.size();
    int rows = Math.min(n, SAMPLED_ROWS);
    for (int r = 0; r < rows; r++) {
      int i = rows == 1 ? 0 : (int) ((long) r * (n - 1) / (rows - 1));
      for (int j = 0; j < n; j++) {
        entry.check(i, j, i * n + j);
      }
    }
  }

  private static Disagreement differs(String name, int i, int j, double actual, double expected) {
    return new Disagreement(
        name + " disagrees at [" + i + "][" + j + "]: " + actual + ", reference " + expected);
  }
}
