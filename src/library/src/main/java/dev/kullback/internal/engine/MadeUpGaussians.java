package dev.kullback.internal.engine;

import dev.kullback.ScalePolicy;
import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.Elements;
import dev.kullback.internal.batch.Factors;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.numerics.Factorization;
import dev.kullback.internal.numerics.MatrixForm;
import dev.kullback.internal.numerics.RangeCheck;
import dev.kullback.internal.numerics.Scale;
import java.util.Arrays;
import java.util.function.Supplier;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;

/** Random Gaussians, from which warm-up and verification make batches of any kind. */
public final class MadeUpGaussians {
  private static final int ROWS_A_DUPLICATE = 7;
  private static final int ROWS_A_SINGULAR_ONE = 5;

  /** σ of singular ones where a scale cannot state 0. */
  private static final double LEAST_STD = 1e-3;

  private static final double SPREAD = 0.3;

  private final int d;
  private final double[] mean;
  private final double[] std;

  /** Row-major; empty if all batches are to be diagonal. */
  private final double[] scaleTril;

  /** Made where it is asked for: O(d³) a Gaussian. */
  private double @Nullable [] covariance;

  private MadeUpGaussians(int d, double[] mean, double[] std, double[] below) {
    this.d = d;
    this.mean = mean;
    this.std = std;
    scaleTril = new double[below.length];
    for (int r = 0; r * d < below.length; r++) {
      int diagonal = r * d + r % d;
      System.arraycopy(below, r * d, scaleTril, r * d, diagonal - r * d);
      scaleTril[diagonal] = std[r];
    }
  }

  /** Returns N(0, I); {@code full} if batches are to be made with factors, too. */
  public static MadeUpGaussians normal(int d, boolean full) {
    double[] ones = new double[d];
    Arrays.fill(ones, 1);
    return new MadeUpGaussians(d, new double[d], ones, new double[full ? d * d : 0]);
  }

  /** Makes that many Gaussians around these, which take turns as distances do; those at distance 0 equal them. */
  public MadeUpGaussians around(int rows, RandomGenerator random, double... spreads) {
    double[] mean = new double[rows * d];
    double[] std = new double[rows * d];
    double[] below = new double[scaleTril.length == 0 ? 0 : rows * d * d];
    for (int k = 0; k < mean.length; k++) {
      double spread = spreads[k / d % spreads.length];
      mean[k] = this.mean[k % this.mean.length] + spread * random.nextGaussian();
      std[k] = this.std[k % this.std.length] * Math.exp(SPREAD * spread * random.nextGaussian());
    }
    for (int k = 0; k < below.length; k++) {
      double spread = spreads[k / (d * d) % spreads.length];
      below[k] =
          scaleTril[k % scaleTril.length] + SPREAD * spread / Math.sqrt(d) * random.nextGaussian();
    }
    return new MadeUpGaussians(d, mean, std, below);
  }

  /** Makes some of these Gaussians duplicates of the first, and returns them all. */
  public MadeUpGaussians withDuplicates() {
    covariance = null;
    for (int i = ROWS_A_DUPLICATE - 1; i < mean.length / d; i += ROWS_A_DUPLICATE) {
      System.arraycopy(mean, 0, mean, i * d, d);
      System.arraycopy(std, 0, std, i * d, d);
      int square = scaleTril.length == 0 ? 0 : d * d;
      System.arraycopy(scaleTril, 0, scaleTril, i * square, square);
    }
    return this;
  }

  /** Makes some of these Gaussians singular, for divergences that take them, and returns them all. */
  public MadeUpGaussians withSingular() {
    covariance = null;
    for (int i = ROWS_A_SINGULAR_ONE - 1; i < mean.length / d; i += ROWS_A_SINGULAR_ONE) {
      std[i * d] = 0;
      for (int k = i * d * d; scaleTril.length > 0 && k < (i + 1) * d * d; k += d) {
        scaleTril[k] = 0;
      }
    }
    return this;
  }

  /** Makes a new batch, which has no derived forms yet. */
  public Batch diagonal(Scale scale, boolean isDouble) {
    return diagonal(scale, isDouble, Platform.rangeCheck());
  }

  /** Makes a new batch, by such a check of floats. */
  Batch diagonal(Scale scale, boolean isDouble, RangeCheck range) {
    return DiagonalBatch.of(
        of(mean, isDouble), of(scales(scale), isDouble), d, scale, ScalePolicy.SEMIDEFINITE, range);
  }

  private double[] scales(Scale scale) {
    double[] s = scale == Scale.STD ? std : new double[std.length];
    for (int k = 0; k < s.length; k++) {
      double positive = Math.max(LEAST_STD, std[k]);
      s[k] =
          switch (scale) {
            case STD -> std[k];
            case VARIANCE -> std[k] * std[k];
            case LOG_VARIANCE -> 2 * Math.log(positive);
            case PRECISION -> 1 / (positive * positive);
          };
    }
    return s;
  }

  /** Makes a new batch of the factors; or of the covariances, which may be passed as precisions, too. */
  public Batch full(MatrixForm kind, boolean isDouble, Supplier<Factorization> factorization) {
    double[] matrix = kind == MatrixForm.SCALE_TRIL ? scaleTril : covariance();
    return Factors.of(
        of(mean, isDouble), of(matrix, isDouble), d, kind, ScalePolicy.SEMIDEFINITE, factorization);
  }

  /** Makes a new batch of Gaussians that share the first one's matrix. */
  public Batch sharingFirst(
      MatrixForm kind, boolean isDouble, Supplier<Factorization> factorization) {
    double[] all = kind == MatrixForm.SCALE_TRIL ? scaleTril : covariance();
    double[] first = Arrays.copyOf(all, d * d);
    return Factors.of(
        of(mean, isDouble), of(first, isDouble), d, kind, ScalePolicy.SEMIDEFINITE, factorization);
  }

  private double[] covariance() {
    double[] made = covariance;
    if (made == null) {
      made = new double[scaleTril.length];
      for (int r = 0; r < mean.length; r++) {
        int first = r / d * d;
        for (int c = first; c < first + d; c++) {
          double sum = 0;
          for (int h = 0; h <= Math.min(r, c) - first; h++) {
            sum += scaleTril[r * d + h] * scaleTril[c * d + h];
          }
          made[r * d + c - first] = sum;
        }
      }
      covariance = made;
    }
    return made;
  }

  /** Makes a new batch of which the first columns of the factors are added to the diagonal. */
  public Batch lowRank(int most, Scale scale, boolean isDouble) {
    int r = Math.min(most, d);
    double[] factor = new double[mean.length * r];
    for (int k = 0; k < factor.length; k++) {
      factor[k] = scaleTril[k / r * d + k % r];
    }
    return LowRankBatch.of(
        of(mean, isDouble),
        of(factor, isDouble),
        of(scales(scale), isDouble),
        d,
        scale,
        ScalePolicy.STRICT,
        RangeCheck.PLAIN);
  }

  private static Elements of(double[] values, boolean isDouble) {
    if (isDouble) {
      return Elements.of(values, "values");
    }
    float[] narrow = new float[values.length];
    for (int k = 0; k < narrow.length; k++) {
      narrow[k] = (float) values[k];
    }
    return Elements.of(narrow, "values").owned();
  }
}
