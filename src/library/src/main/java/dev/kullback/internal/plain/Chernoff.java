package dev.kullback.internal.plain;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.DoubleLogProduct;

/** Computes Chernoff α-divergences of the pairs of a batch, in double. Holds the working memory of one thread. */
public abstract class Chernoff {
  final int dimension;
  final double alpha;

  private Chernoff(int dimension, double alpha) {
    this.dimension = dimension;
    this.alpha = alpha;
  }

  public static Chernoff of(Batch batch, double alpha) {
    return switch (batch) {
      case DiagonalBatch d -> new Diagonal(d, alpha);
      case FullBatch f -> new Full(f, alpha);
    };
  }

  /** Returns C_α(p_i ‖ p_j). */
  public abstract double divergence(int i, int j);

  private static final class Diagonal extends Chernoff {
    private final DiagonalBatch batch;
    private final double[] variance;

    /** {@code (1−α)Σ_i + αΣ_j} of a pair. */
    private final double[] mixed;

    Diagonal(DiagonalBatch batch, double alpha) {
      super(batch.dimension(), alpha);
      this.batch = batch;
      variance = new double[batch.size() * dimension];
      for (int k = 0; k < variance.length; k++) {
        variance[k] = batch.kind().variance(batch.scale(k));
      }
      mixed = new double[dimension];
    }

    @Override
    public double divergence(int i, int j) {
      double squares = 0;
      for (int h = 0, a = i * dimension, b = j * dimension; h < dimension; h++, a++, b++) {
        mixed[h] = (1 - alpha) * variance[a] + alpha * variance[b];
        double d = batch.mean(a) - batch.mean(b);
        squares += d * d / mixed[h];
      }
      double logDets = (1 - alpha) * batch.logDet(i) + alpha * batch.logDet(j);
      return 0.5 * (alpha * (1 - alpha) * squares + DoubleLogProduct.of(mixed, 0, dimension, false))
          - logDets;
    }
  }

  private static final class Full extends Chernoff {
    private final FullBatch batch;

    /** L of a pair, packed by rows: {@code LLᵀ = (1−α)Σ_i + αΣ_j}. */
    private final double[] l;

    private final double[] x;
    private final double[] diagonal;

    Full(FullBatch batch, double alpha) {
      super(batch.dimension(), alpha);
      this.batch = batch;
      l = new double[Cholesky.packedLength(dimension)];
      x = new double[dimension];
      diagonal = new double[dimension];
    }

    @Override
    public double divergence(int i, int j) {
      factor(i, j);
      double squares = 0;
      for (int r = 0, row = 0; r < dimension; row += ++r) { // L y = μ_i − μ_j
        double y = batch.mean()[i * dimension + r] - batch.mean()[j * dimension + r];
        for (int c = 0; c < r; c++) {
          y -= l[row + c] * x[c];
        }
        diagonal[r] = l[row + r];
        x[r] = y / diagonal[r];
        squares += x[r] * x[r];
      }
      double logDets = (1 - alpha) * batch.logDet(i) + alpha * batch.logDet(j);
      return 0.5 * alpha * (1 - alpha) * squares
          + DoubleLogProduct.of(diagonal, 0, dimension, false)
          - logDets;
    }

    /** Updates one Gaussian's factor by the columns of the other's. */
    private void factor(int i, int j) {
      double a = Math.sqrt(1 - alpha);
      double b = Math.sqrt(alpha);
      int from = i * l.length;
      int update = j * l.length;
      for (int k = 0; k < l.length; k++) {
        l[k] = a * batch.scaleTril()[from + k];
      }
      for (int column = 0; column < dimension; column++) {
        for (int r = column; r < dimension; r++) {
          x[r] = b * batch.scaleTril()[update + Cholesky.packedLength(r) + column];
        }
        Cholesky.update(l, x, column, dimension);
      }
    }
  }
}
