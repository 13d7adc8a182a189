package dev.kullback.internal.verify;

import dev.kullback.ScaleKind;
import dev.kullback.ScalePolicy;
import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.batch.Factors;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.engine.Platform;
import dev.kullback.internal.numerics.Scale;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.function.Supplier;

/** Means, standard deviations, and the entries below the diagonal of full factors, from which batches are made. */
@SuppressWarnings("ArrayRecordComponent") // never compared
record Parameters(int dimension, double[] mean, double[] std, double[] below) {
  private static final int ROWS_A_DUPLICATE = 7;
  private static final double SPREAD = 0.3;

  /** N(0, I). */
  static Parameters normal(int d) {
    double[] ones = new double[d];
    Arrays.fill(ones, 1);
    return new Parameters(d, new double[d], ones, new double[d * d]);
  }

  /** Makes that many Gaussians around this one, some of them duplicates. */
  Parameters around(int rows, double spread, SplittableRandom random) {
    int d = dimension;
    double[] mean = new double[rows * d];
    double[] std = new double[mean.length];
    double[] below = new double[mean.length * d];
    for (int k = 0; k < mean.length; k++) {
      mean[k] = this.mean[k % d] + spread * random.nextGaussian();
      std[k] = this.std[k % d] * Math.exp(SPREAD * spread * random.nextGaussian());
    }
    for (int k = 0; k < below.length; k++) {
      below[k] = this.below[k % (d * d)] + SPREAD * spread / Math.sqrt(d) * random.nextGaussian();
    }
    for (int i = ROWS_A_DUPLICATE - 1; i < rows; i += ROWS_A_DUPLICATE) {
      System.arraycopy(mean, 0, mean, i * d, d);
      System.arraycopy(std, 0, std, i * d, d);
      System.arraycopy(below, 0, below, i * d * d, d * d);
    }
    return new Parameters(d, mean, std, below);
  }

  Supplier<Batch> maker(Kind kind, boolean isDouble, boolean full, Scale scale) {
    int d = dimension;
    if (full) {
      double[] scaleTril = scaleTril();
      if (kind == Kind.COVARIANCE) {
        double[] covariance = covariance(scaleTril);
        return () -> full(ScaleKind.COVARIANCE, of(mean, true), of(covariance, true));
      }
      return () -> full(ScaleKind.SCALE_TRIL, of(mean, isDouble), of(scaleTril, isDouble));
    }
    double[] s = Arrays.stream(std).map(x -> scale(scale, x)).toArray();
    return () ->
        DiagonalBatch.of(of(mean, isDouble), of(s, isDouble), d, scale, ScalePolicy.STRICT);
  }

  /** Batch of the factors in double, also where covariances were made of them. */
  Batch plain() {
    return full(ScaleKind.SCALE_TRIL, of(mean, true), of(scaleTril(), true));
  }

  private FullBatch full(ScaleKind kind, Elements mean, Elements matrix) {
    return Factors.of(mean, matrix, dimension, kind, Platform::factorization);
  }

  private static Elements of(double[] values, boolean isDouble) {
    return isDouble ? Elements.of(values, "values") : Elements.of(narrow(values), "values");
  }

  private static double scale(Scale scale, double std) {
    return switch (scale) {
      case STD -> std;
      case VARIANCE -> std * std;
      case LOG_VARIANCE -> 2 * Math.log(std);
      case PRECISION -> 1 / (std * std);
    };
  }

  double[] scaleTril() {
    int d = dimension;
    double[] l = new double[below.length];
    for (int k = 0; k < l.length; k++) {
      int r = k / d % d;
      int c = k % d;
      l[k] = c < r ? below[k] : c == r ? std[k / d] : 0;
    }
    return l;
  }

  private double[] covariance(double[] l) {
    int d = dimension;
    double[] product = new double[l.length];
    for (int k = 0; k < l.length; k++) {
      int r = k / d * d;
      int c = (k / (d * d) * d + k % d) * d;
      for (int h = 0; h < d; h++) {
        product[k] += l[r + h] * l[c + h];
      }
    }
    return product;
  }

  private static float[] narrow(double[] values) {
    float[] result = new float[values.length];
    for (int k = 0; k < result.length; k++) {
      result[k] = (float) values[k];
    }
    return result;
  }
}
