package dev.kullback.internal.mixture;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.Excess;
import dev.kullback.internal.numerics.Compensation;
import java.util.Arrays;

/** Components with diagonal covariances, of which a merger keeps the variances. Its cost is a sum over the dimensions. */
final class DiagonalComponents extends Components {
  DiagonalComponents(int dimension) {
    super(dimension, dimension);
  }

  @Override
  void take(Batch batch, int from, int i) {
    DiagonalBatch diagonal = (DiagonalBatch) batch;
    for (int h = 0; h < dimension; h++) {
      mean[i * dimension + h] = diagonal.mean(from * dimension + h);
      covariance[i * dimension + h] =
          diagonal.kind().variance(diagonal.scale(from * dimension + h));
    }
  }

  @Override
  boolean isFull() {
    return false;
  }

  @Override
  void copyScale(int i, double[] to, double[] low, int at) {
    System.arraycopy(covariance, i * length, to, at, length);
  }

  @Override
  void factorWhole(double[] covariance) {
    Arrays.setAll(covariance, h -> Math.sqrt(covariance[h]));
  }

  @Override
  double squares(int i, int j) {
    double squares = 0;
    for (int h = 0; h < dimension; h++) {
      double d = mean[j * dimension + h] - mean[i * dimension + h];
      squares += d * d / covariance[i * dimension + h];
    }
    return squares;
  }

  @Override
  double doubleDivergence(int i, int j) {
    double sum = squares(j, i);
    for (int h = 0; h < dimension; h++) {
      double p = covariance[j * dimension + h];
      sum += gap((covariance[i * dimension + h] - p) / p);
    }
    return sum;
  }

  @Override
  double doubleCost(int heavy, int light) {
    double w = weight[heavy] + weight[light];
    double a = weight[heavy] / w;
    double b = weight[light] / w;
    double sum = 0;
    double errors = 0;
    for (int h = 0, i = heavy * length, j = light * length; h < length; h++, i++, j++) {
      double x = (covariance[j] - covariance[i]) / covariance[i];
      double d = mean[j] - mean[i];
      double z = a * b * (d * d / covariance[i]) / (1 + b * x);
      double term = w * Math.log1p(z) + scaleTerm(x, covariance[j] / covariance[i], w, b);
      double next = sum + term;
      errors += Compensation.error(sum, term, next);
      sum = next;
    }
    return Compensation.total(sum, errors);
  }

  /** Returns what a dimension's variances contribute to the doubled cost, where their quotient is {@code 1 + x = r}. */
  private static double scaleTerm(double x, double r, double w, double b) {
    if (Math.abs(x) <= SMALL) {
      return w * (b * gap(x) - gap(b * x));
    }
    return Math.max(0, w * (Math.log1p(b * x) - b * Math.log(r)));
  }

  /** Returns {@code x − ln(1 + x)}, which is {@code f² + 2(f − ln(1 + f))} with {@code (1 + f)² = 1 + x}. */
  private static double gap(double x) {
    double f = x / (1 + Math.sqrt(1 + x));
    return 2 * Excess.of(f, 1 + f, 1);
  }
}
