package dev.kullback.internal.mixture;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.batch.LowRankBatch;
import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * Logarithms of the densities of mixtures, at points, without {@code −½ D ln 2π}, and samples of components. A point is a component that it
 * is a sample of and its distance t from that component's mean: their sum would round t away where a mean is large beside a standard
 * deviation. Used by one thread.
 */
abstract class Densities {
  private static final double LEAST_STD = 0x1p-1000;

  final int dimension;

  /** {@code x − μ}, as {@code (μ_a − μ) + t} of a sample of component a, and then the magnitudes of what is added there. */
  final double[] shift;

  /** {@code L⁻¹(x − μ)}, and how much a rounding of an ulp of what is added there changes it, in ulps. */
  final double[] y;

  final double[] growth;
  private final Batch batch;
  private final double[] means;
  private final double[] sampledMeans;
  private final double[] weights;
  private final double[] logWeights;

  /** First component of each mixture, and the number of components. */
  private final int[] offsets;

  /** A component's logarithms, of weight and density together. */
  private final double[] terms;

  private Densities(Batch batch, Batch sampled, double[] weights, int[] offsets) {
    this.batch = batch;
    means = means(batch);
    sampledMeans = sampled == batch ? means : means(sampled);
    this.weights = weights;
    logWeights = Arrays.stream(weights).map(Math::log).toArray();
    this.offsets = offsets;
    dimension = batch.dimension();
    shift = new double[dimension];
    y = new double[dimension];
    growth = new double[dimension];
    terms = new double[batch.size()];
  }

  /**
   * Makes the densities of mixtures of a batch's components.
   *
   * @param sampled the components that points are samples of
   */
  static Densities of(Batch batch, Batch sampled, double[] weights, int[] offsets) {
    return switch (batch) {
      case DiagonalBatch d -> new Diagonal(d, sampled, weights, offsets);
      case FullBatch f -> new Full(f, sampled, weights, offsets);
      case LowRankBatch g -> new Full(g.full(), sampled, weights, offsets);
    };
  }

  private static double[] means(Batch batch) {
    return switch (batch) {
      case DiagonalBatch d -> d.mean64();
      case FullBatch f -> f.mean();
      case LowRankBatch g -> g.diagonal().mean64();
    };
  }

  /** Returns the number of mixtures. */
  final int size() {
    return offsets.length - 1;
  }

  /** Returns the number of mixture m's components. */
  final int count(int m) {
    return offsets[m + 1] - offsets[m];
  }

  /** Returns the component of mixture m that a number in [0, 1) chooses. */
  final int choose(int m, double u) {
    double sum = 0;
    int last = offsets[m];
    for (int k = offsets[m]; k < offsets[m + 1]; k++) {
      sum += weights[k];
      last = weights[k] > 0 ? k : last;
      if (u < sum) {
        return k;
      }
    }
    return last;
  }

  /** Sets {@link #y}, after the shift. */
  abstract void standardize(int k);

  /** Sets {@link #growth}, after y, of the shift's magnitudes. */
  abstract void magnify(int k);

  /**
   * Draws the distance of a point of component k from its mean.
   *
   * @throws IllegalArgumentException if a standard deviation is out of range
   */
  abstract void sample(int k, SplittableRandom random, double[] t);

  /** Throws if samples of a standard deviation, or of an element of a factor's diagonal, are not held by normal doubles. */
  static void checkStd(double std, int k, int h) {
    if (!(std >= LEAST_STD && std <= 1 / LEAST_STD)) {
      throw new IllegalArgumentException(
          "q's components[%d] has a standard deviation outside [2^-1000, 2^1000] in dimension %d, so it cannot be sampled; rescale the data"
              .formatted(k, h));
    }
  }

  private void standardize(int k, int a, double[] t) {
    for (int h = 0, i = k * dimension, j = a * dimension; h < dimension; h++, i++, j++) {
      shift[h] = sampledMeans[j] - means[i] + t[h];
    }
    standardize(k);
  }

  private void magnify(int k, int a) {
    for (int h = 0, i = k * dimension, j = a * dimension; h < dimension; h++, i++, j++) {
      shift[h] = Math.abs(sampledMeans[j] - means[i]) + Math.abs(shift[h]);
    }
    magnify(k);
  }

  /** Returns {@code ln Σ_k w_k N_k(x)} of mixture m's components k, at a sample of a. */
  final double log(int m, int a, double[] t) {
    double most = Double.NEGATIVE_INFINITY;
    for (int k = offsets[m]; k < offsets[m + 1]; k++) {
      standardize(k, a, t);
      double squares = 0;
      for (double z : y) {
        squares += z * z;
      }
      terms[k] = logWeights[k] - batch.logDet(k) - 0.5 * squares;
      most = Math.max(most, terms[k]);
    }
    return LogSumExp.of(terms, offsets[m], offsets[m + 1], most);
  }

  /** Bounds the rounding error of {@link #log}, whose derivative by a component's term is the component's share. */
  final double rounding(int m, int a, double[] t) {
    double log = log(m, a, t);
    double sum = Math.abs(log);
    for (int k = offsets[m]; k < offsets[m + 1]; k++) {
      double share = Math.exp(terms[k] - log);
      if (share > 0) {
        standardize(k, a, t);
        magnify(k, a);
        double magnitude = Math.abs(logWeights[k]) + Math.abs(batch.logDet(k));
        for (int h = 0; h < dimension; h++) {
          magnitude += Math.abs(y[h]) * (Math.abs(y[h]) + growth[h]);
        }
        sum += share * magnitude;
      }
    }
    return Estimate.rounding(dimension, sum);
  }

  private static final class Diagonal extends Densities {
    private final DiagonalBatch batch;

    Diagonal(DiagonalBatch batch, Batch sampled, double[] weights, int[] offsets) {
      super(batch, sampled, weights, offsets);
      this.batch = batch;
    }

    @Override
    void standardize(int k) {
      for (int h = 0, i = k * dimension; h < dimension; h++, i++) {
        y[h] = batch.kind().standardize(shift[h], batch.scale(i));
      }
    }

    @Override
    void magnify(int k) {
      for (int h = 0, i = k * dimension; h < dimension; h++, i++) {
        growth[h] = batch.kind().standardize(shift[h], batch.scale(i));
      }
    }

    @Override
    void sample(int k, SplittableRandom random, double[] t) {
      for (int h = 0, i = k * dimension; h < dimension; h++, i++) {
        double std = 1 / batch.kind().standardize(1, batch.scale(i));
        checkStd(std, k, h);
        t[h] = std * random.nextGaussian();
      }
    }
  }

  private static final class Full extends Densities {
    private final FullBatch batch;

    Full(FullBatch batch, Batch sampled, double[] weights, int[] offsets) {
      super(batch, sampled, weights, offsets);
      this.batch = batch;
    }

    @Override
    void standardize(int k) {
      int at = batch.factorFrom(k);
      for (int r = 0; r < dimension; at += ++r) {
        double t = shift[r];
        for (int c = 0; c < r; c++) {
          t -= batch.scaleTril()[at + c] * y[c];
        }
        y[r] = t / batch.scaleTril()[at + r];
      }
    }

    @Override
    void magnify(int k) {
      int at = batch.factorFrom(k);
      for (int r = 0; r < dimension; at += ++r) {
        double t = shift[r];
        for (int c = 0; c < r; c++) {
          t += Math.abs(batch.scaleTril()[at + c]) * (Math.abs(y[c]) + growth[c]);
        }
        growth[r] = t / batch.scaleTril()[at + r];
      }
    }

    @Override
    void sample(int k, SplittableRandom random, double[] t) {
      int at = batch.factorFrom(k);
      for (int r = 0; r < dimension; at += ++r) {
        y[r] = random.nextGaussian();
        checkStd(batch.scaleTril()[at + r], k, r);
        t[r] = 0;
        for (int c = 0; c <= r; c++) {
          t[r] += batch.scaleTril()[at + c] * y[c];
        }
      }
    }
  }
}
