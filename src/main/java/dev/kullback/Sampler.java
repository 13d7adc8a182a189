package dev.kullback;

import java.util.SplittableRandom;

/** Samples {@code ln q_i(x) − ln p_i(x)}, x from q_i. Holds the working memory of one thread. */
final class Sampler {
  private static final int SAMPLES_A_CHECK = 1024;

  private final Side q;
  private final Side p;
  private final int dimension;
  private final double[] z;
  private final double[] x;

  private double mean;
  private double standardError;

  Sampler(Gaussians q, Gaussians p) {
    this.q = new Side(q);
    this.p = new Side(p);
    dimension = q.dimension();
    z = new double[dimension];
    x = new double[dimension];
  }

  /** Mean, and factor packed by rows, of one Gaussian of a batch. */
  private static final class Side {
    final Gaussians batch;
    final double[] mean;

    /** L; of a diagonal Gaussian σ alone. */
    final double[] scale;

    double logDet;

    Side(Gaussians batch) {
      int d = batch.dimension();
      this.batch = batch;
      mean = new double[d];
      scale = new double[isFull() ? FullGaussians.packedLength(d) : d];
    }

    boolean isFull() {
      return batch instanceof FullGaussians;
    }

    void set(int i) {
      int d = mean.length;
      switch (batch) {
        case DiagonalGaussians g -> {
          logDet = g.logDet[i];
          for (int h = 0; h < d; h++) {
            mean[h] = g.mean(i * d + h);
            scale[h] = std(g.kind, g.scale(i * d + h));
          }
        }
        case FullGaussians g -> {
          logDet = g.logDet[i];
          System.arraycopy(g.mean, i * d, mean, 0, d);
          System.arraycopy(g.scaleTril, i * scale.length, scale, 0, scale.length);
        }
      }
    }

    /** Not by way of the variance, which may underflow. */
    private static double std(Scale kind, double s) {
      return switch (kind) {
        case STD -> s;
        case VARIANCE -> Math.sqrt(s);
        case LOG_VARIANCE -> Math.exp(0.5 * s);
        case PRECISION -> 1 / Math.sqrt(s);
      };
    }

    /** {@code out = Lz}. */
    void multiply(double[] z, double[] out) {
      if (!isFull()) {
        for (int h = 0; h < out.length; h++) {
          out[h] = scale[h] * z[h];
        }
        return;
      }
      for (int r = 0, k = 0; r < out.length; r++) {
        double sum = 0;
        for (int c = 0; c <= r; c++, k++) {
          sum += scale[k] * z[c];
        }
        out[r] = sum;
      }
    }

    /** {@code x = L⁻¹x}. */
    void solve(double[] x) {
      if (!isFull()) {
        for (int h = 0; h < x.length; h++) {
          x[h] /= scale[h];
        }
        return;
      }
      for (int r = 0, k = 0; r < x.length; r++, k++) {
        double sum = x[r];
        for (int c = 0; c < r; c++, k++) {
          sum -= scale[k] * x[c];
        }
        x[r] = sum / scale[k];
      }
    }
  }

  /** Draws for pair i. */
  void sample(int i, int samples, SplittableRandom random) {
    q.set(i);
    p.set(i);
    double logDets = p.logDet - q.logDet;
    double sum = 0;
    double squares = 0;
    for (long s = 1; s <= samples; s++) {
      if (s % SAMPLES_A_CHECK == 0) {
        Tile.checkInterrupt(Thread.currentThread());
      }
      for (int h = 0; h < dimension; h++) {
        z[h] = random.nextGaussian();
      }
      q.multiply(z, x);
      for (int h = 0; h < dimension; h++) {
        x[h] += q.mean[h] - p.mean[h];
      }
      p.solve(x);
      double difference = 0;
      for (int h = 0; h < dimension; h++) {
        difference += (x[h] - z[h]) * (x[h] + z[h]);
      }
      double ratio = 0.5 * difference + logDets;
      if (!(ratio < Double.POSITIVE_INFINITY)) { // or NaN, of ∞ − ∞
        mean = standardError = Double.POSITIVE_INFINITY;
        return;
      }
      double d = ratio - sum; // B. P. Welford's running mean and variance, 1962
      sum += d / s;
      squares += d * (ratio - sum);
    }
    mean = sum;
    standardError = Math.sqrt(squares / (samples - 1) / samples);
  }

  double mean() {
    return mean;
  }

  double standardError() {
    return standardError;
  }
}
