package dev.kullback.internal.batch;

import dev.kullback.InvalidGaussianException;
import dev.kullback.internal.api.Constructors;
import dev.kullback.internal.numerics.ScaleForm;
import dev.kullback.internal.numerics.SemidefiniteFactor;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** A batch of Gaussians: checked values, and what was made of them for kernels. Observably immutable; caches derived forms. */
public abstract sealed class Batch permits DiagonalBatch, FullBatch, LowRankBatch {
  /** Numbers that fit a Java array. */
  public static final int MOST_ELEMENTS = Integer.MAX_VALUE - 8;

  /** Columns of the widest panel; a packed batch must fit a Java array. */
  public static final int WIDEST_PANEL = 32;

  static final double HALF_ULP = 0x1p-53;

  /** What makes covariances of computations singular. */
  static final String FEW_SAMPLES = "fewer samples than dimensions?";

  /** What makes covariances definite otherwise than by a number that is added. */
  static final String ESTIMATE = ", or take more samples, shrinkage or a diagonal covariance";

  static final String NO_INVERSE =
      "; only the divergences wasserstein-2 and squared-wasserstein-2 need no inverse";

  /** What is added to singular covariances, relative to the mean of their variances, as FID programs do. */
  private static final double LEAST_ADDED = 1e-6;

  /** Quotient of two variances, above 0, beyond which they are of different units, and one number cannot be added to both. */
  private static final double MIXED_UNITS = 1e4;

  /** −∞ of a {@link #singular} Gaussian. */
  final double[] logDet;

  final double[] logDetBound;

  /** Gaussians without a variance in some direction, which take a policy. */
  final BitSet singular = new BitSet();

  private final int size;
  private final int dimension;
  private final boolean isDouble;

  /** Found when it is first asked for, by any thread to the same number; −1 before. */
  private int narrowest = -1;

  private final AtomicBoolean used = new AtomicBoolean();

  /** Derived forms that were asked for. They are few, so a linear search is the fastest; the array is replaced, never changed. */
  private volatile Lazy<?, ?>[] kept = {};

  Batch(int size, int dimension, boolean isDouble) {
    this.size = size;
    this.dimension = dimension;
    this.isDouble = isDouble;
    logDet = new double[size];
    logDetBound = new double[size];
  }

  /** N. */
  public final int size() {
    return size;
  }

  /** D. */
  public final int dimension() {
    return dimension;
  }

  /** Whether it was made of doubles, which decides the accuracy contract. */
  public final boolean isDouble() {
    return isDouble;
  }

  /** What {@link #readScale} gives. */
  public abstract ScaleForm form();

  /** Elements that {@link #readScale} writes. */
  public abstract int scaleLength();

  /** Writes the D elements of a mean, as they were given. */
  public abstract void readMean(int i, double[] to);

  /** Writes the scales of a Gaussian, which are of {@link #form}. */
  public abstract void readScale(int i, double[] to);

  /** Σ of a Gaussian, row-major [D, D]. */
  public abstract double[] covariance(int i);

  /** Whether σ = 0 throughout, and the caller asked for KL = 0 then; a full batch has no such σ. */
  public boolean isDeterministic() {
    return false;
  }

  /** Whether the Gaussians are points, of variance 0, which have no divergence from others but densities in them. */
  public boolean arePoints() {
    return false;
  }

  /** Whether some Gaussian is singular, so that divergences that need inverses do not take it. */
  public final boolean isSingular() {
    return !singular.isEmpty();
  }

  /** Rank of a Gaussian's covariance. */
  abstract int rank(int i);

  /** Returns the diagonal of a Gaussian's covariance. */
  abstract double[] variances(int i);

  /**
   * Throws if a Gaussian is singular.
   *
   * @param role the batch's name in the message
   */
  public final void checkDefinite(String role) {
    int i = singular.nextSetBit(0);
    if (arePoints()) {
      throw new IllegalArgumentException(
          role
              + " holds points, which have no divergence, as their variance is 0; logDensity, mahalanobis, logLikelihood and responsibilities of a KlEngine take points, and so do searches");
    }
    if (i >= 0) {
      boolean isDiagonal = this instanceof DiagonalBatch;
      String reason =
          rankReason(rank(i), variances(i), !isDouble, isDiagonal ? "std 0" : FEW_SAMPLES)
              + (isDiagonal ? "" : ESTIMATE)
              + NO_INVERSE;
      throw Constructors.INVALID_GAUSSIAN.get().of(role, i, -1, "", "", reason, "");
    }
  }

  /**
   * Returns what is wrong with a singular matrix, and what to add to it: enough that rounding cannot make it singular again.
   *
   * @param variances its diagonal
   * @param isFloat whether its elements are as inexact as floats
   * @param cause for the reader to consider
   */
  static String rankReason(int rank, double[] variances, boolean isFloat, String cause) {
    int d = variances.length;
    double most = Arrays.stream(variances).max().orElse(0);
    double mean = Arrays.stream(variances).map(v -> v / d).sum();
    double part = 32 * SemidefiniteFactor.tolerance(d, isFloat);
    double smallest = Arrays.stream(variances).min().orElse(0);
    boolean isMixed = smallest > 0 && smallest * MIXED_UNITS < most;
    double unit = isMixed || mean == 0 ? 1 : mean;
    double least = isMixed ? part : part * most;
    double added =
        Math.pow(
            10, Math.max(Math.rint(Math.log10(LEAST_ADDED * unit)), Math.ceil(Math.log10(least))));
    return String.format(
        Locale.ROOT,
        "has rank %d of %d (%s): add %.0e%s, on which the result depends",
        rank,
        d,
        cause,
        added,
        isMixed ? " times its diagonal" : "·I");
  }

  /** {@code ln det L_i = Σ_h ln σ_ih}. */
  public final double logDet(int i) {
    return logDet[i];
  }

  /** Returns the row of the least {@link #logDet}, not of a slot. */
  public final int narrowest() {
    int found = narrowest;
    if (found < 0) {
      found = 0;
      for (int i = 1; i < size; i++) {
        found = logDet[i] < logDet[found] ? i : found;
      }
      narrowest = found;
    }
    return found;
  }

  /** Bounds the absolute error of {@link #logDet}. */
  public final double logDetBound(int i) {
    return logDetBound[i];
  }

  /** Whether it can be written out as full factors: {@link #full}. */
  public abstract boolean isExpandable();

  /** Writes out a diagonal batch as one of diagonal factors, and one of low rank as its covariances; returns a full one itself. */
  public abstract FullBatch full();

  /** Returns what to throw where that is too large for an array. */
  final IllegalArgumentException tooManyWrittenOut(String kind) {
    return new IllegalArgumentException(
        "%s covariances are written out as full covariances here: %d of dimension %d are too many"
            .formatted(kind, size(), dimension()));
  }

  /** Bytes of the values. */
  abstract long valueBytes();

  /** Bytes of the values and of all that was made of them, on the heap. */
  public final long memoryBytes() {
    return valueBytes() + Arrays.stream(kept).mapToLong(Lazy::bytes).sum();
  }

  /** Marks the batch as used, and tells whether it was not: a batch used once need not keep its panels, nor one that is filled again. */
  public final boolean markUsed() {
    return isSlot() || (!used.get() && used.compareAndSet(false, true));
  }

  /** Whether it is filled again and again. */
  boolean isSlot() {
    return false;
  }

  /** Forgets what was made of values that are there no longer. */
  final void forget() {
    for (Lazy<?, ?> value : kept) {
      value.forget();
    }
    narrowest = -1;
  }

  static void checkDimension(int dimension) {
    if (dimension < 1) {
      throw new IllegalArgumentException("dimension must be at least 1, is " + dimension);
    }
  }

  /** Throws where a batch is too large, even of one row if it has more than {@code mostDimensions}. */
  static void checkSize(long n, int dimension, int mostDimensions, int mostRows) {
    if (dimension > mostDimensions) {
      throw new IllegalArgumentException(
          "dimension %d is too large: a Gaussian has at most %d dimensions here"
              .formatted(dimension, mostDimensions));
    }
    if (n > mostRows) {
      throw new IllegalArgumentException(
          "%d Gaussians of dimension %d are too many for one batch: at most %d; split it by rows"
              .formatted(n, dimension, mostRows));
    }
  }

  /** Copies the rows of these indices, of {@code length} elements each, to another array, which is as long. */
  @SuppressWarnings("SuspiciousSystemArraycopy") // both are of one type, of floats or doubles
  static <T> T rows(T from, int[] indices, int length, T to) {
    for (int r = 0; r < indices.length; r++) {
      System.arraycopy(from, indices[r] * length, to, r * length, length);
    }
    return to;
  }

  /** Makes the exception for a value of an array [N, D]. */
  static InvalidGaussianException rejected(
      String array, int index, int dimension, String value, String rule, String advice) {
    int h = index % dimension;
    String reason = "is " + value + "; " + rule;
    return Constructors.INVALID_GAUSSIAN
        .get()
        .of(array, index / dimension, h, "[" + h + "]", ", dimension " + h, reason, advice);
  }

  /** Counts the terms of a KL that is computed by itself, for a {@link Checkpoint}. */
  public static long terms(Batch q, Batch p) {
    if (q instanceof FullBatch || p instanceof FullBatch) {
      return Checkpoint.ofSolve(q.dimension);
    }
    long rank = Math.max(lowRank(q), lowRank(p));
    return Checkpoint.ofPlain(q.dimension * (1 + 2 * rank * (rank + 1)));
  }

  private static int lowRank(Batch batch) {
    return batch instanceof LowRankBatch g ? g.rank() : 0;
  }

  final <B extends Batch, T> Lazy<B, T> kept(DerivedForm<B, T> form) {
    Lazy<B, T> value = find(form);
    return value != null ? value : keep(form);
  }

  @SuppressWarnings("unchecked") // the form's types are the value's
  private <B extends Batch, T> @Nullable Lazy<B, T> find(DerivedForm<B, T> form) {
    for (Lazy<?, ?> value : kept) {
      if (value.form == form) {
        return (Lazy<B, T>) value;
      }
    }
    return null;
  }

  private synchronized <B extends Batch, T> Lazy<B, T> keep(DerivedForm<B, T> form) {
    Lazy<B, T> value = find(form);
    if (value == null) {
      value = new Lazy<>(form);
      Lazy<?, ?>[] more = Arrays.copyOf(kept, kept.length + 1);
      more[kept.length] = value;
      kept = more;
    }
    return value;
  }
}
