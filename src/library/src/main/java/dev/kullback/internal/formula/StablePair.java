package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.kernel.Operands;
import dev.kullback.internal.numerics.Compensation;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Worker;

/**
 * Computes a divergence by one form in double, which no cancellation can touch: of diagonal Gaussians a sum of terms that are not negative,
 * in blocks that are added with their errors, as {@link PairKl#stable} does. A term is within 100 units of 2⁻⁵³, a block's sum adds 63, so
 * the relative error is below 2e-14, whatever the batches' precision.
 */
abstract class StablePair extends Pair {
  private final Unrounded exact;

  StablePair(Unrounded exact, Worker worker) {
    super(worker);
    this.exact = exact;
  }

  /** Returns a dimension's term, which overflows only where the divergence does. */
  abstract double term(Scale kindQ, double mq, double sq, Scale kindP, double mp, double sp);

  /** Returns the divergence of Gaussians of which at least one has a full covariance. */
  abstract double full(Batch q, int i, Batch p, int j);

  /** Returns the divergence of diagonal Gaussians. */
  double diagonal(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return sum(q, i, p, j);
  }

  final double sum(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    int d = q.dimension();
    int a = i * d;
    int b = j * d;
    double sum = 0;
    double errors = 0;
    for (int h = 0; h < d; h += Compensation.BLOCK) {
      double acc = 0;
      for (int end = Math.min(d, h + Compensation.BLOCK), k = h; k < end; k++) {
        acc +=
            term(q.kind(), q.mean(a + k), q.scale(a + k), p.kind(), p.mean(b + k), p.scale(b + k));
      }
      double t = sum + acc;
      errors += Compensation.error(sum, acc, t);
      sum = t;
    }
    return Compensation.total(sum, errors);
  }

  @Override
  public final double stable(Batch q, int i, Batch p, int j) {
    if (q == p && i == j) {
      return 0;
    }
    return q instanceof DiagonalBatch a && p instanceof DiagonalBatch b
        ? diagonal(a, i, b, j)
        : full(q, i, p, j);
  }

  @Override
  public final double of(Batch q, int i, Batch p, int j) {
    worker.pass(Batch.terms(q, p));
    return stable(q, i, p, j);
  }

  @Override
  public final void block(
      Operands<?> operands, int row0, int row1, int column0, int column1, BlockTarget out) {
    Batch q = operands.q();
    Batch p = operands.p();
    for (int i = row0; i < row1; i++) {
      for (int j = column0; j < column1; j++) {
        out.put(i, j, of(q, i, p, j));
      }
    }
  }

  @Override
  public final double toStandardNormal(Batch q, int i) {
    return of(q, i, normal(q), 0);
  }

  @Override
  public final double precise(Batch q, int i, Batch p, int j) {
    worker.checkInterrupt(); // all entries of a block may come here
    return of(q, i, p, j);
  }

  @Override
  public final Unrounded exact(Batch q, int i, Batch p, int j, double value) {
    worker.checkInterrupt();
    worker.pass(Batch.terms(q, p));
    if (!(q instanceof DiagonalBatch a
        && p instanceof DiagonalBatch b
        && value >= Double.MIN_NORMAL
        && exact.compute(a, i, b, j))) {
      exact.set(value);
    }
    return exact;
  }

  @Override
  public final Unrounded lastExact() {
    return exact;
  }

  @Override
  public final double rounded(Batch q, int i, Batch p, int j) {
    // of ∞, too, which precise may give a little early
    return exact(q, i, p, j, precise(q, i, p, j)).value;
  }

  @Override
  public final boolean isPreciseFaster(Batch q, Batch p) {
    return areDiagonal(q, p);
  }

  @Override
  public double tolerance(int dimension) {
    return DoubleDoubleKl.tolerance(dimension);
  }
}
