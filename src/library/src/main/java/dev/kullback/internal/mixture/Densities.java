package dev.kullback.internal.mixture;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.numerics.Cholesky;
import java.util.SplittableRandom;

/** Logarithms of the densities of mixtures, at points, without {@code −½ D ln 2π}, and samples of components. Used by one thread. */
public abstract class Densities {
  private static final double HALF_ULP = 0x1p-53;

  /** Roundings of a term at most; its sum has D more. */
  private static final int ROUNDINGS = 16;

  final int dimension;

  /** {@code L⁻¹(x − μ)}, and how much a rounding of an ulp of what is added there changes it, in ulps. */
  final double[] y;

  final double[] growth;
  private final Batch batch;
  private final double[] logWeights;

  /** A component's logarithms, of weight and density together. */
  private final double[] terms;

  private Densities(Batch batch, double[] logWeights) {
    this.batch = batch;
    this.logWeights = logWeights;
    dimension = batch.dimension();
    y = new double[dimension];
    growth = new double[dimension];
    terms = new double[batch.size()];
  }

  public static Densities of(Batch batch, double[] logWeights) {
    return switch (batch) {
      case DiagonalBatch d -> new Diagonal(d, logWeights);
      case FullBatch f -> new Full(f, logWeights);
    };
  }

  /** Sets {@link #y}. */
  abstract void standardize(int k, double[] x);

  /** Sets {@link #growth}, after y. */
  abstract void magnify(int k, double[] x);

  /** Draws a point of component k. */
  public abstract void sample(int k, SplittableRandom random, double[] x);

  /** Returns {@code ln Σ_k w_k N_k(x)} of the components k in [from, to). */
  public final double log(double[] x, int from, int to) {
    double most = Double.NEGATIVE_INFINITY;
    for (int k = from; k < to; k++) {
      standardize(k, x);
      double squares = 0;
      for (double z : y) {
        squares += z * z;
      }
      terms[k] = logWeights[k] - batch.logDet(k) - 0.5 * squares;
      most = Math.max(most, terms[k]);
    }
    return LogSumExp.of(terms, from, to, most);
  }

  /** Bounds the rounding error of {@link #log}, whose derivative by a component's term is the component's share. */
  public final double rounding(double[] x, int from, int to) {
    double log = log(x, from, to);
    double sum = Math.abs(log);
    for (int k = from; k < to; k++) {
      double share = Math.exp(terms[k] - log);
      if (share > 0) {
        standardize(k, x);
        magnify(k, x);
        double magnitude = Math.abs(logWeights[k]) + Math.abs(batch.logDet(k));
        for (int h = 0; h < dimension; h++) {
          magnitude += Math.abs(y[h]) * (Math.abs(y[h]) + growth[h]);
        }
        sum += share * magnitude;
      }
    }
    return HALF_ULP * (dimension + ROUNDINGS) * sum;
  }

  private static final class Diagonal extends Densities {
    private final DiagonalBatch batch;

    Diagonal(DiagonalBatch batch, double[] logWeights) {
      super(batch, logWeights);
      this.batch = batch;
    }

    @Override
    void standardize(int k, double[] x) {
      for (int h = 0, i = k * dimension; h < dimension; h++, i++) {
        y[h] = batch.kind().standardize(x[h] - batch.mean(i), batch.scale(i));
      }
    }

    @Override
    void magnify(int k, double[] x) {
      for (int h = 0; h < dimension; h++) {
        growth[h] = Math.abs(y[h]);
      }
    }

    @Override
    public void sample(int k, SplittableRandom random, double[] x) {
      for (int h = 0, i = k * dimension; h < dimension; h++, i++) {
        double std = 1 / batch.kind().standardize(1, batch.scale(i));
        x[h] = batch.mean(i) + std * random.nextGaussian();
      }
    }
  }

  private static final class Full extends Densities {
    private final FullBatch batch;

    Full(FullBatch batch, double[] logWeights) {
      super(batch, logWeights);
      this.batch = batch;
    }

    @Override
    void standardize(int k, double[] x) {
      int at = k * Cholesky.packedLength(dimension);
      for (int r = 0; r < dimension; at += ++r) {
        double t = x[r] - batch.mean()[k * dimension + r];
        for (int c = 0; c < r; c++) {
          t -= batch.scaleTril()[at + c] * y[c];
        }
        y[r] = t / batch.scaleTril()[at + r];
      }
    }

    @Override
    void magnify(int k, double[] x) {
      int at = k * Cholesky.packedLength(dimension);
      for (int r = 0; r < dimension; at += ++r) {
        double t = Math.abs(x[r] - batch.mean()[k * dimension + r]);
        for (int c = 0; c < r; c++) {
          t += Math.abs(batch.scaleTril()[at + c]) * (Math.abs(y[c]) + growth[c]);
        }
        growth[r] = t / batch.scaleTril()[at + r];
      }
    }

    @Override
    public void sample(int k, SplittableRandom random, double[] x) {
      int at = k * Cholesky.packedLength(dimension);
      for (int r = 0; r < dimension; at += ++r) {
        y[r] = random.nextGaussian();
        double t = 0;
        for (int c = 0; c <= r; c++) {
          t += batch.scaleTril()[at + c] * y[c];
        }
        x[r] = batch.mean()[k * dimension + r] + t;
      }
    }
  }
}
