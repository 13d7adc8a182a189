package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.kernel.BlockTarget;
import dev.kullback.internal.numerics.Compensation;
import dev.kullback.internal.work.Worker;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A divergence: its sum of terms, by which diagonal Gaussians are computed, that sum in twice the precision, its form for full covariances,
 * and what kernels ask about it. A subclass's file has the divergence's mathematics for diagonal Gaussians, with the proof of its kernels'
 * error bound. The form for full covariances may be a class of its own, as {@link Bures}; the term of vector kernels is in {@code
 * FloatSums.java.ftl}, and which kernels there are is in {@code KernelTable}. Immutable, and shared by threads; each thread's working
 * memory is in its {@link Pair}.
 */
public abstract class Formula {
  /** How a panel states a scale. */
  public enum Field {
    STD,
    VARIANCE,
    PRECISION
  }

  /** How a divergence is computed from what kernels sum up, after the sum is divided. */
  public enum LastStep {
    NONE,
    ROOT,
    /** {@code √(1 − e^−sum)}, in [0, 1]. */
    HELLINGER;

    double of(double sum) {
      return switch (this) {
        case NONE -> sum;
        case ROOT -> Math.sqrt(sum);
        case HELLINGER -> Math.sqrt(-Math.expm1(-sum));
      };
    }
  }

  /** Computes a divergence of Gaussians of which at least one has a full covariance, with the working memory of one thread. */
  interface Full {
    double divergence(Batch q, int i, Batch p, int j);

    /** Drops the caller's batches. */
    void clear();
  }

  Formula() {}

  // --- diagonal Gaussians

  /**
   * Returns the sum of the terms of n dimensions, from q's element a and p's element b on. A term is at least 0, and overflows only where the
   * divergence does; {@code scales} compares two scales. Each formula repeats this loop: a loop shared by three
   * formulas calls {@code term}, and takes 1.3 to 2 times as long (D = 64).
   */
  abstract double sumTerms(
      ScaleRatio scales, DiagonalBatch q, int a, DiagonalBatch p, int b, int n);

  /** Makes what computes that sum in twice the precision, with the working memory of one thread. */
  abstract Unrounded exact();

  /**
   * Returns the divergence by one form in double, which no cancellation can touch: a sum of terms that are not negative, in blocks that are
   * added with their errors, as {@link PairKl#stable} does. A term is within 100 units of 2⁻⁵³, a block's sum adds 63, so the relative error
   * is below 2e-14, whatever the batches' precision.
   */
  double stable(ScaleRatio scales, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    int d = q.dimension();
    int a = i * d;
    int b = j * d;
    double sum = 0;
    double errors = 0;
    for (int h = 0; h < d; h += Compensation.BLOCK) {
      double acc = sumTerms(scales, q, a + h, p, b + h, Math.min(d - h, Compensation.BLOCK));
      double t = sum + acc;
      errors += Compensation.error(sum, acc, t);
      sum = t;
    }
    return Compensation.total(sum, errors);
  }

  /** Returns the divergence to the contract of the batches' precision. */
  double fast(ScaleRatio scales, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return stable(scales, q, i, p, j);
  }

  /** Returns the divergence to {@link Pair#PRECISE_ERROR}. */
  double precise(ScaleRatio scales, DiagonalBatch q, int i, DiagonalBatch p, int j) {
    return stable(scales, q, i, p, j);
  }

  /** Puts the entries of a block. */
  void putBlock(
      Worker worker,
      ScaleRatio scales,
      DiagonalBatch q,
      int row0,
      int row1,
      DiagonalBatch p,
      int column0,
      int column1,
      BlockTarget out) {
    long terms = Batch.terms(q, p);
    for (int i = row0; i < row1; i++) {
      for (int j = column0; j < column1; j++) {
        worker.pass(terms);
        out.put(i, j, q == p && i == j ? 0 : fast(scales, q, i, p, j));
      }
    }
  }

  // --- all Gaussians

  /** Makes the form for full covariances. */
  abstract Full full(Worker worker);

  /** Returns the divergence of q_i and N(0, I) by a form of its own, or NaN where there is none. */
  double standard(ScaleRatio scales, Batch q, int i) {
    return Double.NaN;
  }

  /** Returns the divergence that the formula makes of what its kernels sum up. */
  public final double finish(double sum) {
    return lastStep().of(sum / divisor());
  }

  /** Returns the greatest relative distance of two unrounded divergences that count as equal. */
  double tolerance(int dimension) {
    return Unrounded.tolerance(dimension);
  }

  // --- for kernels of diagonal batches in tiles

  /** Returns the scales that panels have of a dimension beside the mean. */
  public abstract List<Field> scales();

  /** Returns the error bound of the kernels' sums. */
  public abstract TileBound bound();

  /**
   * Returns the margin of an entry, which is certain where its noise is at most margin times its value: what {@link #bound}'s unit leaves
   * of the contract. Of a formula with a {@link #divisor} it is multiplied by that, as the noise is of the value before it is divided.
   */
  public double margin(TileBound.Precision precision, int dimension) {
    return bound().margin(precision, dimension);
  }

  /** Whether the kernels compute it at all; only Chernoff's row of the table of kernels asks. */
  public boolean hasTiles() {
    return true;
  }

  /** Whether the kernels' first form is in double, even of batches of float. */
  public boolean needsDouble() {
    return false;
  }

  /** Returns the formula whose sums the kernels in float compute, and their bound is of. */
  public Formula sums32() {
    return this;
  }

  /** Returns the same of those in double. */
  public final Formula sums64() {
    return this;
  }

  /** Returns the same divergence, whose kernels begin in double if there are such. */
  public Formula inDouble() {
    return this;
  }

  /** Whether an entry has a form in double of its own, {@link PairKl#certain}. */
  public boolean hasDifferenceForm() {
    return false;
  }

  /** Returns the term of the form for Gaussians that hardly differ, or null if there is none. */
  public @Nullable NearTerm nearTerm() {
    return null;
  }

  /** Whether the near form of two batches, in float or double, has kernels that few calls need, as {@link NearTerm} tells. */
  public final boolean isOfOtherKinds(DiagonalBatch q, DiagonalBatch p, boolean isDouble) {
    NearTerm term = nearTerm();
    return term != null && term.isOfOtherKinds(q, p, isDouble);
  }

  /** Returns what near forms multiply their sums by. */
  public double nearFactor() {
    return 0.5;
  }

  /** Returns the weight of q's variance in the terms of near forms. */
  public double nearWeight() {
    return 0;
  }

  /** Returns the weight of q's variances in {@code s = weight·vq + vp}, of kernels that multiply the s of dimensions. */
  public double rowWeight() {
    return 1;
  }

  // --- for kernels and their callers

  /** Whether exchanging q and p changes no value. */
  public boolean isSymmetric() {
    return true;
  }

  /** Whether it is another formula, {@link #forward}, with the roles of q and p exchanged. */
  public final boolean isReverse() {
    return forward() != this;
  }

  /** Whether the kernels compute its calls, or those of its reverse, with the roles exchanged. */
  public final boolean isExchanged(boolean reverse) {
    return reverse != isReverse();
  }

  /** Returns the formula that the kernels compute. */
  public Formula forward() {
    return this;
  }

  /** Returns the formula whose kernels and operands compute it, with factors, offsets and bounds of its own. */
  public Formula kernels() {
    return this;
  }

  /** Whether q are points, of variance 0. */
  public boolean isOfPoints() {
    return false;
  }

  /** Whether values may be negative; then {@link #bound} has every finite one of a kernel certain. */
  public boolean isSigned() {
    return false;
  }

  /** Returns what a search adds to the values that it ranks. */
  public double shift(Batch p) {
    return 0;
  }

  /** Returns the same of Gaussians of which the least log-determinant is known. */
  public double shift(double least, int dimension) {
    return 0;
  }

  /** Whether there is a form for low-rank covariances. */
  public boolean hasLowRank() {
    return false;
  }

  /** Whether it is undefined, or infinite, where a covariance is singular. */
  public boolean needsInverse() {
    return true;
  }

  /** Whether there is a convention for batches of standard deviations 0. */
  public boolean hasDeterministic() {
    return false;
  }

  /** Whether a CUDA device computes it. */
  public boolean hasDevice() {
    return false;
  }

  /** Returns what {@link #finish} does at last. Kernels bound errors before it, and those of tiles have vectors for it. */
  public LastStep lastStep() {
    return LastStep.NONE;
  }

  /** Returns the order α of a family of divergences, or 0; kernels that multiply variances take its logarithm. */
  public double alpha() {
    return 0;
  }

  /** Returns the number by which {@link #finish} divides the sum; 1 if it does not divide. */
  public double divisor() {
    return 1;
  }

  /** Returns what kernels multiply their sums by. */
  public double factor() {
    return 0.5 / divisor();
  }
}
