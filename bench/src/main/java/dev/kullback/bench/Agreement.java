package dev.kullback.bench;

import java.util.Arrays;
import java.util.Comparator;
import java.util.function.IntConsumer;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;

/** Checks a contender's result against double references before anything is timed. */
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
        p.shape(),
        (i, j, at) -> {
          double expected = kl(q, p, i, j);
          if (!(out[at] >= 0 && Math.abs(out[at] - expected) <= 1e-5 * expected)) {
            throw differs(name, i, j, out[at], expected);
          }
        });
  }

  /** The k nearest, ties to the lower index: the indices exactly, the values to the library's contract. */
  static void nearest(String name, Batch q, Batch p, int k, int[] indices, float[] values) {
    forSampledRows(
        q.shape(),
        i -> {
          double[] kl = row(q, p, i);
          int[] nearest =
              IntStream.range(0, kl.length)
                  .boxed()
                  .sorted(Comparator.comparingDouble(j -> kl[j]))
                  .limit(k)
                  .mapToInt(Integer::intValue)
                  .toArray();
          for (int r = 0; r < k; r++) {
            int j = nearest[r];
            int at = i * k + r;
            if (indices[at] != j || !(Math.abs(values[at] - kl[j]) <= 1e-5 * kl[j])) {
              throw differs(
                  name,
                  "neighbor " + r + " of row " + i,
                  indices[at] + ", KL " + values[at],
                  j + ", KL " + kl[j]);
            }
          }
        });
  }

  /** The least of each row, to the library's contract. */
  static void rowMin(String name, Batch q, Batch p, double[] out) {
    rowStatistic(name, q, p, row -> Arrays.stream(row).min().orElseThrow(), out);
  }

  /** The sum of each row: its terms are ≥ 0, so it is as exact as they are. */
  static void rowSum(String name, Batch q, Batch p, double[] out) {
    rowStatistic(name, q, p, row -> Arrays.stream(row).sum(), out);
  }

  private static void rowStatistic(
      String name, Batch q, Batch p, ToDoubleFunction<double[]> statistic, double[] out) {
    forSampledRows(
        q.shape(),
        i -> {
          double expected = statistic.applyAsDouble(row(q, p, i));
          if (!(Math.abs(out[i] - expected) <= 1e-5 * expected)) {
            throw differs(name, "row " + i, out[i], expected);
          }
        });
  }

  /** {@code ln Σ_j exp(−KL_ij)}: relative errors of 1e-5 in KL move it by 1e-5 of the terms' mean KL, weighted by the terms. */
  static void logSumExp(String name, Batch q, Batch p, double[] out) {
    forSampledRows(
        q.shape(),
        i -> {
          double[] row = row(q, p, i);
          double least = Arrays.stream(row).min().orElseThrow();
          double sum = 0;
          double weighted = 0;
          for (double kl : row) {
            double term = Math.exp(least - kl);
            sum += term;
            weighted += term * kl;
          }
          double expected = Math.log(sum) - least;
          if (!(Math.abs(out[i] - expected) <= 1e-5 * weighted / sum)) {
            throw differs(name, "row " + i, out[i], expected);
          }
        });
  }

  /** {@code KL(q_i ‖ p_i)}, to the library's contract. */
  static void pairs(String name, Batch q, Batch p, float[] out) {
    forSampledRows(
        q.shape(),
        i -> {
          double expected = kl(q, p, i, i);
          if (!(Math.abs(out[i] - expected) <= 1e-5 * expected)) {
            throw differs(name, "row " + i, out[i], expected);
          }
        });
  }

  /** The gradient of a sum of divergences, of each row or of each row and its own column, by q's means and standard deviations. */
  static void gradient(
      String name, Batch q, Batch p, boolean ofPairs, double tolerance, float[] mean, float[] std) {
    int d = q.shape().dimension();
    forSampledRows(
        q.shape(),
        i -> {
          for (int at = i * d; at < (i + 1) * d; at++) {
            double byMean = 0;
            double byStd = 0;
            double sizeOfMean = 0;
            double sizeOfStd = 0;
            double s = q.std()[at];
            int end = ofPairs ? i + 1 : p.shape().size();
            for (int j = ofPairs ? i : 0; j < end; j++) {
              double sp = p.std()[j * d + at % d];
              double y = ((double) q.mean()[at] - p.mean()[j * d + at % d]) / (sp * sp);
              double x = (s - sp) * (s + sp) / (sp * sp) / s;
              byMean += y;
              byStd += x;
              sizeOfMean += Math.abs(y);
              sizeOfStd += Math.abs(x);
            }
            if (!(Math.abs(mean[at] - byMean) <= tolerance * sizeOfMean)) {
              throw differs(name, "mean " + at, mean[at], byMean);
            }
            if (!(Math.abs(std[at] - byStd) <= tolerance * sizeOfStd)) {
              throw differs(name, "std " + at, std[at], byStd);
            }
          }
        });
  }

  /** Checks the results of a float formula that subtracts D: its error is relative to KL + D. */
  static void roughKl(String name, Batch q, Batch p, float[] out) {
    forSampledEntries(
        q.shape(),
        p.shape(),
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
        p.shape(),
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

  /** Checks {@code q pᵀ} in double, like {@link #product(String, Batch, Batch, float[])}. */
  static void product(String name, Shape shape, double[] q, double[] p, double[] out) {
    int d = shape.dimension();
    forSampledEntries(
        shape,
        shape,
        (i, j, at) -> {
          double expected = 0;
          double magnitude = 0;
          for (int h = 0; h < d; h++) {
            double term = q[i * d + h] * p[j * d + h];
            expected += term;
            magnitude += Math.abs(term);
          }
          if (!(Math.abs(out[at] - expected) <= 1e-13 * magnitude)) {
            throw differs(name, i, j, out[at], expected);
          }
        });
  }

  /**
   * Full covariances, KL(q_i ‖ p_j) in a matrix or, aligned, KL(q_i ‖ p_i) in a vector. The error is relative to KL + D, as
   * formulas subtract D.
   */
  static void full(
      String name, FullBatch q, FullBatch p, boolean aligned, double[] out, double tolerance) {
    Entry entry =
        (i, j, at) -> {
          double expected = kl(q, p, i, j);
          double error = Math.abs(out[at] - expected);
          if (!(error <= tolerance * (expected + q.shape().dimension()))) {
            throw differs(name, i, j, out[at], expected);
          }
        };
    if (aligned) {
      for (int i = 0; i < q.shape().size(); i++) {
        entry.check(i, i, i);
      }
    } else {
      forSampledEntries(q.shape(), p.shape(), entry);
    }
  }

  /** Another divergence of diagonal Gaussians, to a relative error. */
  static void divergence(String name, Batch q, Batch p, float[] out, double tolerance) {
    forSampledEntries(
        q.shape(),
        p.shape(),
        (i, j, at) -> {
          double expected = DivergenceReference.diagonal(name, q, p, i, j);
          if (!(Math.abs(out[at] - expected) <= tolerance * expected)) {
            throw differs(name, i, j, out[at], expected);
          }
        });
  }

  /** Log-densities of q's means, to an error relative to the magnitudes of their terms, the contract's 1e-5 or more. */
  static void logDensity(String name, Batch q, Batch p, float[] out, double tolerance) {
    int d = q.shape().dimension();
    forSampledEntries(
        q.shape(),
        p.shape(),
        (i, j, at) -> {
          double squares = 0;
          double logs = 0.5 * d * Math.log(2 * Math.PI);
          for (int h = 0; h < d; h++) {
            double std = p.std()[j * d + h];
            double z = ((double) q.mean()[i * d + h] - p.mean()[j * d + h]) / std;
            squares += z * z;
            logs += Math.log(std);
          }
          double expected = -0.5 * squares - logs;
          if (!(Math.abs(out[at] - expected) <= tolerance * (0.5 * squares + Math.abs(logs) + d))) {
            throw differs(name, i, j, out[at], expected);
          }
        });
  }

  /** Another divergence of full covariances, to a relative error. */
  static void fullDivergence(
      String name, FullBatch q, FullBatch p, double[] out, double tolerance) {
    forSampledEntries(
        q.shape(),
        p.shape(),
        (i, j, at) -> {
          double expected = DivergenceReference.full(name, q, p, i, j);
          if (!(Math.abs(out[at] - expected) <= tolerance * expected)) {
            throw differs(name, i, j, out[at], expected);
          }
        });
  }

  /**
   * KL(q_i ‖ p_j), every term ≥ 0: ½ (‖y‖² + ‖E‖² + 2 Σ (E_kk − ln(1 + E_kk))) with L_p y = μ_p − μ_q and
   * L_p E = L_q − L_p.
   */
  static double kl(FullBatch q, FullBatch p, int i, int j) {
    int d = q.shape().dimension();
    // [y, E], solved in place row by row
    double[][] solved = new double[d][d + 1];
    double sum = 0;
    for (int r = 0; r < d; r++) {
      int rowQ = i * d + r;
      int rowP = j * d + r;
      for (int c = 0; c <= d; c++) {
        double value =
            c == 0
                ? p.mean()[rowP] - q.mean()[rowQ]
                : q.scaleTril()[rowQ * d + c - 1] - p.scaleTril()[rowP * d + c - 1];
        for (int k = 0; k < r; k++) {
          value -= p.scaleTril()[rowP * d + k] * solved[k][c];
        }
        value /= p.scaleTril()[rowP * d + r];
        solved[r][c] = value;
        sum += value * value;
      }
      sum += 2 * minusLog1p(solved[r][r + 1]);
    }
    return sum / 2;
  }

  private static double[] row(Batch q, Batch p, int i) {
    double[] row = new double[p.shape().size()];
    Arrays.setAll(row, j -> kl(q, p, i, j));
    return row;
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

  interface Entry {
    void check(int i, int j, int at);
  }

  static void forSampledEntries(Shape q, Shape p, Entry entry) {
    int m = p.size();
    forSampledRows(
        q,
        i -> {
          for (int j = 0; j < m; j++) {
            entry.check(i, j, i * m + j);
          }
        });
  }

  private static void forSampledRows(Shape q, IntConsumer row) {
    int n = q.size();
    int rows = Math.min(n, SAMPLED_ROWS);
    for (int r = 0; r < rows; r++) {
      row.accept(rows == 1 ? 0 : (int) ((long) r * (n - 1) / (rows - 1)));
    }
  }

  static Disagreement differs(String name, int i, int j, double actual, double expected) {
    return differs(name, "[" + i + "][" + j + "]", actual, expected);
  }

  private static Disagreement differs(String name, String at, Object actual, Object expected) {
    return new Disagreement(
        name + " disagrees at " + at + ": " + actual + ", reference " + expected);
  }
}
