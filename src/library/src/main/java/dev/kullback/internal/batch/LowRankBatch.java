package dev.kullback.internal.batch;

import dev.kullback.InvalidGaussianException;
import dev.kullback.ScalePolicy;
import dev.kullback.internal.api.Constructors;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.DoubleDouble;
import dev.kullback.internal.numerics.DoubleEquality;
import dev.kullback.internal.numerics.RangeCheck;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.Variance;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;
import java.util.Locale;

/** N Gaussians {@code N(μ_i, diag(v_i) + W_i W_iᵀ)} of dimension D, with factors W of rank r, which may be 0. */
public final class LowRankBatch extends Batch {
  /**
   * Greatest number on the diagonal of {@code WᵀV⁻¹W}. Terms as large are subtracted to 2⁻¹⁰², an error of 1e-12 then; were it 1e30, 0.18 would
   * come out as 0.21.
   */
  private static final double MOST = 0x1p60;

  private static final DerivedForm<LowRankBatch, FullBatch> FULL =
      new DerivedForm<>(LowRankBatch::expanded, FullBatch::memoryBytes);

  /** Means and v. */
  private final DiagonalBatch diagonal;

  /** W by columns, [N, r, D]. */
  private final double[] factor;

  private final int rank;

  /** WᵀV⁻¹W, packed, {@code [N, r(r+1)/2]}: what rounding would take a long time to be kept from again. */
  private final double[] gram;

  private LowRankBatch(DiagonalBatch diagonal, double[] factor, int rank, boolean isDouble) {
    super(diagonal.size(), diagonal.dimension(), isDouble);
    this.diagonal = diagonal;
    this.factor = factor;
    this.rank = rank;
    int length = Cholesky.packedLength(rank);
    gram = new double[size() * length];
    double[] low = new double[length];
    Capacitance capacitance = new Capacitance();
    Checkpoint checkpoint = new Checkpoint();
    for (int i = 0; i < size(); i++) {
      logDet[i] = diagonal.logDet(i);
      logDetBound[i] = diagonal.logDetBound(i);
      if (rank > 0) {
        checkpoint.passUninterrupted(Checkpoint.ofPlain((long) dimension() * rank * rank));
        Capacitance.sumProducts(this, i, gram, i * length, low);
        checkWithin(i);
        capacitance.set(this, i, rank);
        double half = capacitance.halfLogDet();
        logDet[i] += half;
        logDetBound[i] += capacitance.error() + HALF_ULP * 2 * (rank + 4 * half + rank * 2.0);
        logDetBound[i] += HALF_ULP * Math.abs(logDet[i]);
      }
    }
  }

  /**
   * Makes a batch from copies. If any array is of double, the batch is.
   *
   * @param factor [N, D, r]
   * @param range checks a batch of floats
   */
  public static LowRankBatch of(
      Elements mean,
      Elements factor,
      Elements scale,
      int dimension,
      Scale kind,
      ScalePolicy policy,
      RangeCheck range) {
    if (policy != ScalePolicy.STRICT && policy != ScalePolicy.CLAMPED) {
      throw new IllegalArgumentException(
          "low-rank covariances have positive diagonals: the policy must be STRICT or CLAMPED, is "
              + policy);
    }
    DiagonalBatch diagonal = DiagonalBatch.of(mean, scale, dimension, kind, policy, range);
    int n = diagonal.size();
    if (n == 0) {
      throw new IllegalArgumentException(
          "a batch of low-rank covariances has at least one Gaussian");
    }
    long each = factor.length() / n / dimension;
    if (each * n * dimension != factor.length() || each > dimension) {
      throw new IllegalArgumentException(
          "factor has %d elements; it must be [N, D, r] = [%d, %d, r], with r from 0 to %3$d"
              .formatted(factor.length(), n, dimension));
    }
    int rank = (int) each;
    checkSize(n, dimension, MOST_ELEMENTS / WIDEST_PANEL / (rank + 3), mostRows(dimension, rank));
    double[] w = factor.doubles();
    for (int k = 0; k < w.length; k++) {
      if (!(Math.abs(w[k]) <= Double.MAX_VALUE)) {
        int h = k / rank % dimension;
        String reason = "is " + factor.text(w[k]) + "; it must be finite";
        throw Constructors.INVALID_GAUSSIAN
            .get()
            .of(
                "factor",
                k / rank / dimension,
                h,
                "[%d][%d]".formatted(h, k % rank),
                ", dimension %d, column %d".formatted(h, k % rank),
                reason,
                "");
      }
    }
    boolean isDouble = diagonal.isDouble() || factor.isDouble();
    return new LowRankBatch(diagonal, transposed(w, dimension, rank), rank, isDouble);
  }

  /** Returns matrices of so many rows and columns by their columns. */
  private static double[] transposed(double[] w, int rows, int columns) {
    if (columns == 1) {
      return w;
    }
    double[] to = new double[w.length];
    for (int at = 0; at < w.length; at += rows * columns) {
      for (int k = 0; k < columns; k++) {
        for (int h = 0; h < rows; h++) {
          to[at + k * rows + h] = w[at + h * columns + k];
        }
      }
    }
    return to;
  }

  /** Returns a batch itself, or a diagonal one with factors of rank 0. */
  public static LowRankBatch of(Batch batch) {
    return switch (batch) {
      case LowRankBatch g -> g;
      case DiagonalBatch g -> g.lowRank();
      case FullBatch _ -> throw new AssertionError("not of low rank");
    };
  }

  /** Returns a batch itself, or one of low-rank covariances written out as full ones. */
  public static Batch writtenOut(Batch batch) {
    return batch instanceof LowRankBatch g ? g.full() : batch;
  }

  static LowRankBatch ofDiagonal(DiagonalBatch diagonal) {
    return new LowRankBatch(diagonal, new double[0], 0, diagonal.isDouble());
  }

  /** N of the largest batch of which every packed form fits a Java array. */
  private static int mostRows(int dimension, int rank) {
    return (int) (MOST_ELEMENTS / ((long) dimension * (rank + 3L))) - WIDEST_PANEL;
  }

  private void checkWithin(int i) {
    for (int a = 0, k = i * Cholesky.packedLength(rank); a < rank; k += ++a + 1) {
      if (!(gram[k] <= MOST)) {
        throw tooSmall(i, a);
      }
    }
  }

  /** Names the dimension with the most of {@code Σ_h W_h²/v_h} of a column, which may have v = 0 by underflow. */
  private InvalidGaussianException tooSmall(int i, int a) {
    int d = dimension();
    double most = -1;
    int at = 0;
    for (int h = 0; h < d; h++) {
      double w = factor[(i * rank + a) * d + h];
      double v = diagonal.kind().variance(diagonal.scale(i * d + h));
      double term = v == 0 ? Double.POSITIVE_INFINITY : w / v * w;
      if (term > most) {
        most = term;
        at = h;
      }
    }
    double w = factor[(i * rank + a) * d + at];
    double scale = diagonal.scale(i * d + at);
    double v = diagonal.kind().variance(scale);
    double least = Math.max(2 * d / MOST * w * w, Double.MIN_NORMAL);
    String reason =
        String.format(
            Locale.ROOT,
            "is %s beside %s %s, of variance v = %s%s: %s; give %sfull covariances",
            Elements.text(w, isDouble()),
            diagonal.kind().argument(),
            Elements.text(scale, diagonal.isDouble()),
            v,
            v == 0 ? ", below the least double" : "",
            w == 0 ? "W_h²/v_h is 0/0" : "Σ_h W_h²/v_h is beyond 2^60",
            least <= Double.MAX_VALUE
                ? "a variance of at least %.1e there, or ".formatted(least)
                : "");
    String place = "[%d][%d]".formatted(at, a);
    return Constructors.INVALID_GAUSSIAN
        .get()
        .of("factor", i, at, place, ", dimension %d, column %d".formatted(at, a), reason, "");
  }

  /** Returns what to throw where low-rank covariances are not taken. */
  public static IllegalArgumentException refused(String name, String by) {
    return new IllegalArgumentException(
        "%s has low-rank covariances, which %s does not take; write it out by LowRankGaussians.full()"
            .formatted(name, by));
  }

  /** Means and diagonals v. */
  public DiagonalBatch diagonal() {
    return diagonal;
  }

  /** W by columns, {@code [N, r, D]}. */
  public double[] factor() {
    return factor;
  }

  /** Returns a copy of W_i, row-major {@code [D, r]}. */
  public double[] factor(int i) {
    int length = dimension() * rank;
    double[] columns = Arrays.copyOfRange(factor, i * length, (i + 1) * length);
    return transposed(columns, rank, dimension());
  }

  /** WᵀV⁻¹W, packed, {@code [N, r(r+1)/2]}. */
  double[] gram() {
    return gram;
  }

  /** r: columns of W. */
  public int rank() {
    return rank;
  }

  /** Whether two Gaussians have equal parameters. */
  public boolean isEqual(int i, LowRankBatch p, int j) {
    int length = dimension() * rank;
    int a = i * length;
    int b = j * length;
    return rank == p.rank
        && diagonal.isDouble() == p.diagonal.isDouble()
        && diagonal.kind() == p.diagonal.kind()
        && diagonal.isEqual(i, p.diagonal, j)
        && DoubleEquality.areEqual(factor, a, p.factor, b, length);
  }

  @Override
  public Scale form() {
    return diagonal.form();
  }

  @Override
  public int scaleLength() {
    return dimension();
  }

  @Override
  public void readMean(int i, double[] to) {
    diagonal.readMean(i, to);
  }

  @Override
  public void readScale(int i, double[] to) {
    diagonal.readScale(i, to);
  }

  @Override
  int rank(int i) {
    return dimension();
  }

  @Override
  double[] variances(int i) {
    int d = dimension();
    double[] variances = diagonal.variances(i);
    for (int k = i * d * rank; k < (i + 1) * d * rank; k++) {
      variances[k % d] += factor[k] * factor[k];
    }
    return variances;
  }

  /** Sets an element of Σ_i in twice the precision of double. */
  private void element(int i, int r, int c, Variance to, DoubleDouble product) {
    int d = dimension();
    if (r == c) {
      to.set(diagonal.kind(), diagonal.scale(i * d + r));
    } else {
      to.set(0);
    }
    for (int a = 0; a < rank; a++) {
      product.set(factor[(i * rank + a) * d + r]);
      product.multiply(factor[(i * rank + a) * d + c]);
      to.add(product);
    }
  }

  @Override
  public double[] covariance(int i) {
    int d = dimension();
    if ((long) d * d > MOST_ELEMENTS) {
      throw new IllegalArgumentException(
          "a covariance of dimension %d does not fit an array".formatted(d));
    }
    double[] covariance = new double[d * d];
    Variance element = new Variance();
    DoubleDouble product = new DoubleDouble();
    Checkpoint checkpoint = new Checkpoint();
    for (int r = 0; r < d; r++) {
      checkpoint.pass(Checkpoint.ofPlain((long) (r + 1) * (rank + 1)));
      for (int c = 0; c <= r; c++) {
        element(i, r, c, element, product);
        covariance[r * d + c] = covariance[c * d + r] = element.toDouble();
      }
    }
    return covariance;
  }

  /** Copies the rows of these indices. */
  public LowRankBatch select(int[] indices, RangeCheck range) {
    if (indices.length == 0) {
      throw new IllegalArgumentException(
          "a batch of low-rank covariances has at least one Gaussian; none is selected");
    }
    int length = dimension() * rank;
    checkSize(indices.length, dimension(), MOST_ELEMENTS, mostRows(dimension(), rank));
    return new LowRankBatch(
        diagonal.select(indices, range),
        rows(factor, indices, length, new double[indices.length * length]),
        rank,
        isDouble());
  }

  @Override
  public boolean isExpandable() {
    return dimension() <= FullBatch.MOST_DIMENSIONS && size() <= Factors.mostRows(dimension());
  }

  @Override
  public FullBatch full() {
    if (!isExpandable()) {
      throw tooManyWrittenOut("low-rank");
    }
    return FULL.of(this);
  }

  /** Factors Σ in twice the precision of double, as covariances are. */
  private FullBatch expanded() {
    int d = dimension();
    int length = Cholesky.packedLength(d);
    double[] high = new double[size() * length];
    double[] low = new double[high.length];
    double[] l = new double[length];
    double[] lLow = new double[length];
    Variance element = new Variance();
    DoubleDouble product = new DoubleDouble();
    Cholesky cholesky = new Cholesky();
    Checkpoint checkpoint = new Checkpoint();
    for (int i = 0; i < size(); i++) {
      for (int r = 0, k = 0; r < d; r++) {
        checkpoint.pass(Checkpoint.ofPlain((long) (r + 1) * (rank + 1)));
        for (int c = 0; c <= r; c++, k++) {
          element(i, r, c, element, product);
          l[k] = element.toDouble();
          lLow[k] = element.restToDouble();
        }
      }
      if (!cholesky.factor(l, lLow, d, checkpoint::pass)) {
        String reason = "is singular to twice the precision of double when it is written out";
        throw Constructors.INVALID_GAUSSIAN.get().of("factor", i, -1, "", "", reason, "");
      }
      System.arraycopy(l, 0, high, i * length, length);
      System.arraycopy(lLow, 0, low, i * length, length);
    }
    return new FullBatch(diagonal.mean64(), high, low, d, isDouble(), false);
  }

  @Override
  long valueBytes() {
    return diagonal.valueBytes() + Double.BYTES * (factor.length + gram.length + 2L * size());
  }
}
