package dev.kullback.internal.batch;

import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.DoubleLogProduct;
import dev.kullback.internal.numerics.DoubleRange;
import dev.kullback.internal.numerics.MatrixForm;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;

/**
 * N Gaussians {@code N(μ_i, Σ_i)} of dimension D, {@code Σ = LLᵀ}, all in double. {@link Factors} makes it from the caller's arrays. A
 * column of L whose element of the diagonal is 0 is 0 throughout, so that the others tell the rank.
 */
public final class FullBatch extends Batch {
  /** Bound on entries of L, and on the inverse of its diagonal: within it, no product in the matrix kernel over- or underflows. */
  static final double MOST = 0x1p250;

  /** D of the largest batch of one Gaussian. */
  public static final int MOST_DIMENSIONS = 11_406;

  private final double[] mean;

  /** Packed factors, N or one that all Gaussians share. */
  private final double[] scaleTril;

  private final double @Nullable [] scaleTrilLow;

  /** What L was made of; of a batch that no caller stated, a factor or a covariance. */
  private final MatrixForm given;

  /** Columns of the factors, D each, that have the other sign than the caller gave them. */
  private final BitSet turned;

  /** Gaussians that the matrix kernel cannot hold. */
  private final BitSet beyond = new BitSet();

  /**
   * A batch of valid Gaussians, which share a factor where there is only one.
   *
   * @param isWithin whether L is known to be within ±{@link #MOST}
   */
  public FullBatch(
      double[] mean,
      double[] scaleTril,
      double @Nullable [] scaleTrilLow,
      int dimension,
      boolean isDouble,
      boolean isWithin) {
    this(
        mean,
        scaleTril,
        scaleTrilLow,
        dimension,
        isDouble,
        isWithin,
        scaleTrilLow == null ? MatrixForm.SCALE_TRIL : MatrixForm.COVARIANCE,
        new BitSet());
  }

  /** A batch of Gaussians that a caller gave in this form. */
  FullBatch(
      double[] mean,
      double[] scaleTril,
      double @Nullable [] scaleTrilLow,
      int dimension,
      boolean isDouble,
      boolean isWithin,
      MatrixForm given,
      BitSet turned) {
    super(mean.length / dimension, dimension, isDouble);
    this.mean = mean;
    this.scaleTril = scaleTril;
    this.scaleTrilLow = scaleTrilLow;
    this.given = given;
    this.turned = turned;
    double[] diagonal = new double[dimension];
    boolean passed = DoubleRange.contains(-MOST, MOST, mean, 0, mean.length);
    boolean factorsPassed =
        isWithin || DoubleRange.contains(-MOST, MOST, scaleTril, 0, scaleTril.length);
    boolean isHeld = true;
    for (int i = 0; i < size(); i++) {
      if (i == 0 || !isShared()) {
        isHeld = measure(i, factorsPassed, diagonal);
      } else {
        logDet[i] = logDet[0];
        logDetBound[i] = logDetBound[0];
        singular.set(i, singular.get(0));
      }
      if (!isHeld
          || !(passed
              || DoubleRange.contains(-MOST, MOST, mean, i * dimension, (i + 1) * dimension))) {
        beyond.set(i);
      }
    }
  }

  /** Takes the log-determinant of a factor, and tells whether the matrix kernel can hold the factor. */
  private boolean measure(int i, boolean isWithin, double[] diagonal) {
    int d = dimension();
    int from = factorFrom(i);
    boolean isHeld =
        isWithin
            || DoubleRange.contains(-MOST, MOST, scaleTril, from, from + Cholesky.packedLength(d));
    for (int r = 0, k = from; r < d; k += ++r + 1) {
      diagonal[r] = scaleTril[k];
      isHeld &= diagonal[r] >= 1 / MOST;
      if (diagonal[r] == 0) {
        singular.set(i);
      }
    }
    if (singular.get(i)) {
      logDet[i] = Double.NEGATIVE_INFINITY;
    } else {
      logDet[i] = DoubleLogProduct.of(diagonal, 0, d, false);
      logDetBound[i] = HALF_ULP * (2.0 * d + 16 + 4 * Math.abs(logDet[i]));
    }
    return isHeld;
  }

  /** A batch of one row that is yet to be filled. */
  private FullBatch(int dimension, boolean isDouble, boolean isComputed) {
    super(1, dimension, isDouble);
    mean = new double[dimension];
    scaleTril = new double[Cholesky.packedLength(dimension)];
    scaleTrilLow = isComputed ? new double[scaleTril.length] : null;
    given = isComputed ? MatrixForm.COVARIANCE : MatrixForm.SCALE_TRIL;
    turned = new BitSet();
  }

  /**
   * Makes a batch of one row that one thread fills again and again, as {@link DiagonalBatch#ofSlot(int, Scale, boolean)} does.
   *
   * @param isComputed whether it has what rounding took from factors
   */
  public static FullBatch ofSlot(int dimension, boolean isDouble, boolean isComputed) {
    return new FullBatch(dimension, isDouble, isComputed);
  }

  /** Takes a row that was written to a slot's arrays, of this log-determinant. */
  public void takeRow(double log, double bound) {
    logDet[0] = log;
    logDetBound[0] = bound;
    singular.set(0, log == Double.NEGATIVE_INFINITY);
  }

  /** Makes one Gaussian N(0, I). */
  public static FullBatch standard(int dimension) {
    double[] scaleTril = new double[Cholesky.packedLength(dimension)];
    for (int h = 0, k = 0; h < dimension; k += ++h + 1) {
      scaleTril[k] = 1;
    }
    return new FullBatch(new double[dimension], scaleTril, null, dimension, true, true);
  }

  /** Writes out a diagonal batch, and scales that all share once. */
  static FullBatch expanded(DiagonalBatch g) {
    int d = g.dimension();
    int factors = g.isShared() ? 1 : g.size();
    if (d > MOST_DIMENSIONS || (long) factors * Cholesky.packedLength(d) > MOST_ELEMENTS) {
      throw g.tooManyWrittenOut("diagonal");
    }
    double[] scaleTril = new double[factors * Cholesky.packedLength(d)];
    double[] low = g.kind() == Scale.STD ? null : new double[scaleTril.length];
    Cholesky cholesky = new Cholesky();
    Checkpoint checkpoint = new Checkpoint();
    for (int i = 0; i < factors; i++) {
      checkpoint.pass(Checkpoint.ofPlain(d));
      for (int h = 0, k = i * Cholesky.packedLength(d); h < d; k += ++h + 1) {
        cholesky.std(g.kind(), g.scale(i * d + h));
        scaleTril[k] = cholesky.high();
        if (low != null) {
          low[k] = cholesky.low();
        }
      }
    }
    return new FullBatch(g.mean64(), scaleTril, low, d, g.isDouble(), false);
  }

  /** Row-major [N, D]. */
  public double[] mean() {
    return mean;
  }

  /** L by rows (0,0), (1,0), (1,1), (2,0), …, of which that of Gaussian i begins at {@link #factorFrom}. */
  public double[] scaleTril() {
    return scaleTril;
  }

  /** Returns where the factor of Gaussian i begins in {@link #scaleTril} and {@link #scaleTrilLow}: for all at 0, if they share it. */
  public int factorFrom(int i) {
    return isShared() ? 0 : i * Cholesky.packedLength(dimension());
  }

  /** Whether there is one factor for all means, however many. */
  public boolean isShared() {
    return scaleTril.length != (long) size() * Cholesky.packedLength(dimension());
  }

  /** Returns factors, or their low parts, {@code [N, D(D+1)/2]}, a fresh copy if they are shared. */
  public double[] allFactors(double[] factors) {
    if (!isShared() || factors.length == 0) {
      return factors;
    }
    checkRows(size(), dimension());
    return Elements.of(factors, given.argument()).doubles((long) size() * factors.length);
  }

  /**
   * Parts of L that rounding to double took away, in the same order; null where the caller gave L itself. Without them two covariances
   * that differ by some roundings would have equal factors, or factors that differ otherwise.
   */
  public double @Nullable [] scaleTrilLow() {
    return scaleTrilLow;
  }

  /** What L was made of. */
  public MatrixForm given() {
    return given;
  }

  /** Whether column c of Gaussian i's factor has the other sign than the caller gave it. */
  public boolean isTurned(int i, int c) {
    return turned.get((isShared() ? 0 : i * dimension()) + c);
  }

  @Override
  public MatrixForm form() {
    return MatrixForm.SCALE_TRIL;
  }

  @Override
  public int scaleLength() {
    return dimension() * dimension();
  }

  @Override
  public void readMean(int i, double[] to) {
    System.arraycopy(mean, i * dimension(), to, 0, dimension());
  }

  @Override
  public void readScale(int i, double[] to) {
    int d = dimension();
    for (int r = 0, k = factorFrom(i); r < d; k += ++r) {
      System.arraycopy(scaleTril, k, to, r * d, r + 1);
      Arrays.fill(to, r * d + r + 1, (r + 1) * d, 0);
    }
  }

  /** Writes Σ of a Gaussian to an index on, packed as L is: LLᵀ, multiplied in twice the precision of double. */
  public void covariance(int i, double[] to, int at, Checkpoint checkpoint) {
    int from = factorFrom(i);
    Cholesky cholesky = new Cholesky();
    for (int r = 0, k = at; r < dimension(); r++) {
      checkpoint.pass(Checkpoint.ofPlain((long) r * r));
      for (int c = 0; c <= r; c++, k++) {
        to[k] = cholesky.product(scaleTril, scaleTrilLow, from, r, c);
      }
    }
  }

  @Override
  public double[] covariance(int i) {
    int d = dimension();
    double[] packed = new double[Cholesky.packedLength(d)];
    covariance(i, packed, 0, new Checkpoint());
    double[] covariance = new double[d * d];
    for (int r = 0, k = 0; r < d; r++) {
      for (int c = 0; c <= r; c++, k++) {
        covariance[r * d + c] = covariance[c * d + r] = packed[k];
      }
    }
    return covariance;
  }

  @Override
  int rank(int i) {
    int rank = 0;
    for (int r = 0, k = factorFrom(i); r < dimension(); k += ++r + 1) {
      rank += scaleTril[k] > 0 ? 1 : 0;
    }
    return rank;
  }

  @Override
  double[] variances(int i) {
    double[] variances = new double[dimension()];
    for (int r = 0, k = factorFrom(i); r < dimension(); r++) {
      for (int c = 0; c <= r; c++, k++) {
        variances[r] += scaleTril[k] * scaleTril[k];
      }
    }
    return variances;
  }

  /** Throws if so many Gaussians are none, or do not fit a batch, each with a factor of its own. */
  public static void checkRows(int n, int dimension) {
    checkRows(n, dimension, false);
  }

  /** Throws if so many Gaussians are none, or do not fit a batch. */
  static void checkRows(int n, int dimension, boolean isShared) {
    if (n == 0) {
      throw new IllegalArgumentException(
          "a batch of full covariances has at least one Gaussian; none is selected");
    }
    checkSize(n, dimension, MOST_DIMENSIONS, Factors.mostRows(dimension, isShared));
  }

  /** Copies the rows of these indices. */
  public FullBatch select(int[] indices) {
    int d = dimension();
    checkRows(indices.length, d, isShared());
    double[] low = scaleTrilLow;
    return new FullBatch(
        rows(mean, indices, d, new double[indices.length * d]),
        factors(scaleTril, indices),
        low == null ? null : factors(low, indices),
        d,
        isDouble(),
        false,
        given,
        isShared() ? turned : Factors.turned(turned, indices, d));
  }

  /** Copies the factors of these indices, or returns the one that all share. */
  private double[] factors(double[] all, int[] indices) {
    int length = Cholesky.packedLength(dimension());
    return isShared() ? all : rows(all, indices, length, new double[indices.length * length]);
  }

  /** Whether the matrix kernel can hold an element of a mean. */
  public static boolean holds(double mean) {
    return Math.abs(mean) <= MOST;
  }

  public boolean isBeyond(int i) {
    return beyond.get(i);
  }

  /** Whether the matrix kernel can hold all Gaussians. */
  public boolean isHeld() {
    return beyond.isEmpty();
  }

  @Override
  public boolean isExpandable() {
    return true;
  }

  @Override
  public FullBatch full() {
    return this;
  }

  @Override
  long valueBytes() {
    long doubles = mean.length + (scaleTrilLow == null ? 1L : 2L) * scaleTril.length + 2L * size();
    return Double.BYTES * doubles + beyond.size() / Byte.SIZE;
  }
}
