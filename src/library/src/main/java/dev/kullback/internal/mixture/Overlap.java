package dev.kullback.internal.mixture;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.DoubleLogProduct;
import dev.kullback.internal.work.Checkpoint;
import java.util.function.LongConsumer;

/** Logarithms of {@code ∫ q_i p_j}, which is the density of {@code N(0, Σ_q + Σ_p)} at {@code μ_q − μ_p}. Used by one thread. */
public abstract class Overlap {
  private static final double LN_2PI = Math.log(2 * Math.PI);

  final int dimension;

  /** Variances of the sum, or its factor's diagonal. */
  final double[] diagonal;

  final Checkpoint checkpoint = new Checkpoint();

  private Overlap(int dimension) {
    this.dimension = dimension;
    diagonal = new double[dimension];
  }

  public static Overlap of(Batch q, Batch p) {
    return q instanceof DiagonalBatch a && p instanceof DiagonalBatch b
        ? new Diagonal(a, b)
        : new Full(q.full(), p.full());
  }

  /** Returns {@code ln ∫ q_i p_j}. */
  public abstract double log(int i, int j);

  final double log(double squares, double logDet) {
    return -0.5 * (squares + logDet + dimension * LN_2PI);
  }

  private static final class Diagonal extends Overlap {
    private final DiagonalBatch q;
    private final DiagonalBatch p;

    Diagonal(DiagonalBatch q, DiagonalBatch p) {
      super(q.dimension());
      this.q = q;
      this.p = p;
    }

    @Override
    public double log(int i, int j) {
      checkpoint.pass(Checkpoint.ofPlain(dimension));
      if (q.beyond64().get(i) || p.beyond64().get(j)) {
        return logOfExtremes(i, j);
      }
      double squares = 0;
      for (int h = 0, a = i * dimension, b = j * dimension; h < dimension; h++, a++, b++) {
        double d = q.mean(a) - p.mean(b);
        diagonal[h] = q.kind().variance(q.scale(a)) + p.kind().variance(p.scale(b));
        squares += d * (d / diagonal[h]);
      }
      return log(squares, DoubleLogProduct.of(diagonal, 0, dimension, false));
    }

    /**
     * Computes it where variances may be beyond double's range: of logarithms, and with the greater variance as the unit.
     */
    private double logOfExtremes(int i, int j) {
      double squares = 0;
      double logDet = 0;
      for (int h = 0, a = i * dimension, b = j * dimension; h < dimension; h++, a++, b++) {
        double ratio = q.kind().logVariance(q.scale(a)) - p.kind().logVariance(p.scale(b));
        DiagonalBatch wide = ratio >= 0 ? q : p;
        double scale = wide.scale(ratio >= 0 ? a : b);
        double sum = 1 + Math.exp(-Math.abs(ratio));
        double y = wide.kind().standardize(q.mean(a) - p.mean(b), scale);
        squares += y * (y / sum);
        logDet += wide.kind().logVariance(scale) + Math.log(sum);
      }
      return log(squares, logDet);
    }
  }

  /** The factor of the sum is that of q_i rotated with each column of that of p_j, so that no covariance squares a condition number. */
  private static final class Full extends Overlap {
    private final FullBatch q;
    private final FullBatch p;
    private final double[] l;
    private final double[] x;
    private final LongConsumer pass = this::pass;

    Full(FullBatch q, FullBatch p) {
      super(q.dimension());
      this.q = q;
      this.p = p;
      l = new double[Cholesky.packedLength(dimension)];
      x = new double[dimension];
    }

    private void pass(long products) {
      checkpoint.pass(Checkpoint.ofPlain(products));
    }

    @Override
    public double log(int i, int j) {
      System.arraycopy(q.scaleTril(), q.factorFrom(i), l, 0, l.length);
      Cholesky.add(l, p.scaleTril(), p.factorFrom(j), 1, dimension, x, pass);
      double squares = 0;
      for (int r = 0, row = 0; r < dimension; row += ++r) {
        double y = q.mean()[i * dimension + r] - p.mean()[j * dimension + r];
        for (int c = 0; c < r; c++) {
          y -= l[row + c] * x[c];
        }
        diagonal[r] = l[row + r];
        x[r] = y / diagonal[r];
        squares += x[r] * x[r];
      }
      return log(squares, 2 * DoubleLogProduct.of(diagonal, 0, dimension, false));
    }
  }
}
