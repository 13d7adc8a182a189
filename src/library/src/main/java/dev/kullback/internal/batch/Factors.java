package dev.kullback.internal.batch;

import dev.kullback.InvalidGaussianException;
import dev.kullback.ScalePolicy;
import dev.kullback.internal.api.Constructors;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.DoubleRange;
import dev.kullback.internal.numerics.Factorization;
import dev.kullback.internal.numerics.MatrixForm;
import dev.kullback.internal.numerics.SemidefiniteFactor;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Locale;
import java.util.Objects;
import java.util.function.LongConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Makes a {@link FullBatch}: checks what callers give, and turns it into factors L of {@code Σ = LLᵀ}. */
public final class Factors {
  /** Logarithms of the diagonal up to which its elements are normal numbers. */
  private static final double MOST_LOG = 700;

  /** Asymmetry that passes for rounding, relative to {@code √(Σ_rr Σ_cc)}. */
  private static final double ASYMMETRY32 = 1e-5;

  /** The same of doubles, which may have been floats, or be what a Kalman filter or an inversion leaves. */
  private static final double ASYMMETRY64 = 1e-6;

  /** Elements of small matrices that are read at once. */
  private static final int READ_AT_ONCE = 4096;

  private final Elements matrix;

  /** Matrices, N or 1 that all share. */
  private final int n;

  private final int d;
  private final MatrixForm kind;
  private final Supplier<Factorization> factorization;

  /** Elements of a packed triangle. */
  private final int length;

  /** Whether the matrices are precisions, which are factored with rows and columns in reverse. */
  private final boolean isReversed;

  /** Whether singular covariances are taken. */
  private final boolean takesSingular;

  /** Whether the matrices are factors U of precisions UUᵀ: Uᵀ is packed, and replaced by its inverse, which is L. */
  private final boolean isUpper;

  /** Factors for the batch, and what their rounding lost; null where the caller gave L itself. */
  private final double[] factors;

  private final double @Nullable [] factorsLow;

  /** Columns that were turned, D a matrix. */
  private final BitSet turned = new BitSet();

  private Factors(
      Elements matrix,
      int n,
      int d,
      MatrixForm kind,
      ScalePolicy policy,
      Supplier<Factorization> factorization) {
    this.matrix = matrix;
    this.n = n;
    this.d = d;
    this.kind = kind;
    this.factorization = factorization;
    length = Cholesky.packedLength(d);
    isReversed = kind == MatrixForm.PRECISION;
    isUpper = kind == MatrixForm.PRECISION_CHOLESKY;
    takesSingular = policy == ScalePolicy.SEMIDEFINITE && !isReversed && !isUpper;
    factors = new double[n * length];
    factorsLow = kind.isFactor() ? null : new double[factors.length];
  }

  /** Makes a batch from copies of means and matrices. If either is of double, the batch is. */
  public static FullBatch of(
      Elements mean,
      Elements matrix,
      int dimension,
      MatrixForm kind,
      ScalePolicy policy,
      Supplier<Factorization> factorization) {
    int n = checkShape(mean.length(), matrix.length(), dimension, kind);
    double[] means = mean.doubles();
    for (int k = 0; k < means.length; k++) {
      if (!(Math.abs(means[k]) <= Double.MAX_VALUE)) {
        String value = mean.text(means[k]);
        throw Batch.rejected("mean", k, dimension, value, "it must be finite", "");
      }
    }
    int matrices = matrix.length() == kind.length(dimension) ? 1 : n;
    Factors made = new Factors(matrix, matrices, dimension, kind, policy, factorization);
    boolean isWithin = made.make();
    boolean isDouble = mean.isDouble() || matrix.isDouble();
    return new FullBatch(
        means, made.factors, made.factorsLow, dimension, isDouble, isWithin, kind, made.turned);
  }

  /** Returns the columns that were turned, of the Gaussians of these indices. */
  static BitSet turned(BitSet turned, int[] indices, int d) {
    BitSet some = new BitSet();
    for (int k = 0; k < indices.length * d && !turned.isEmpty(); k++) {
      some.set(k, turned.get(indices[k / d] * d + k % d));
    }
    return some;
  }

  /** Fills the factors; returns whether all are known to be within ±{@link FullBatch#MOST}. */
  private boolean make() {
    if (kind == MatrixForm.COVARIANCE || isReversed) {
      factor(Objects.requireNonNull(factorsLow));
      return false;
    }
    if (kind.isPacked()) {
      matrix.read(0, factors, factors.length);
    } else {
      readTriangles();
    }
    boolean isWithin = checkFactors();
    if (isUpper) {
      invert(Objects.requireNonNull(factorsLow));
    }
    if (takesSingular) {
      clearColumns();
    }
    return isWithin && factorsLow == null;
  }

  /** Packs lower triangles, or transposed upper ones. */
  private void readTriangles() {
    boolean isOtherChecked = kind != MatrixForm.SCALE_TRIL_IGNORING_UPPER;
    Checkpoint checkpoint = new Checkpoint();
    int square = d * d;
    double[] given = matrix.array64();
    double[] full =
        given != null ? given : new double[Math.clamp(READ_AT_ONCE / square, 1, n) * square];
    for (int i = 0, k = 0, at = given != null ? 0 : full.length; i < n; i++, at += square) {
      if (at == full.length) { // the given array has all
        at = 0;
        matrix.read((long) i * square, full, (int) Math.min(full.length, (long) (n - i) * square));
      }
      checkpoint.passUninterrupted(square);
      for (int r = 0, row = at; r < d; k += ++r, row += d) {
        if (isUpper) {
          for (int c = 0; c <= r; c++) {
            factors[k + c] = full[at + c * d + r];
          }
        } else {
          System.arraycopy(full, row, factors, k, r + 1);
        }
        if (isOtherChecked) {
          checkOther(full, at, i, r);
        }
      }
    }
  }

  /** Throws unless the elements of row r, of a matrix that begins at {@code at}, on the other side of the diagonal are 0. */
  private void checkOther(double[] full, int at, int i, int r) {
    int row = at + r * d;
    int from = isUpper ? 0 : r + 1;
    int to = isUpper ? r : d;
    long bits = 0; // without a branch for each element, the check takes a third of the time
    for (int c = from; c < to; c++) {
      bits |= Double.doubleToRawLongBits(full[row + c]);
    }
    for (int c = from; bits << 1 != 0 && c < to; c++) {
      if (full[row + c] != 0) { // a -0 is 0
        throw notTriangular(full[row + c], i, r, c);
      }
    }
  }

  /** Makes the exception for an element on the other side of the diagonal. */
  private InvalidGaussianException notTriangular(double value, int i, int r, int c) {
    return rejected(
        i,
        r,
        c,
        "is "
            + matrix.text(value)
            + (isUpper ? ": not upper triangular" : ": not lower triangular"),
        isUpper
            ? "; is it a covariance's lower factor (ofScaleTril), or a precision's, L of LLᵀ? Of that, give LLᵀ"
                + " (ScaleKind.PRECISION_MATRIX)"
            : "; is it a covariance (ofCovariance), or an upper factor? Transpose one of a covariance, such as R of a QR factorization;"
                + " one of a precision, such as scikit-learn's precisions_cholesky_, is ScaleKind.PRECISION_CHOLESKY."
                + " ScaleKind.SCALE_TRIL_IGNORING_UPPER does not look above the diagonal");
  }

  /** N of the largest batch that fits a Java array when packed in panels; not positive where there is none. */
  public static int mostRows(int dimension) {
    return mostRows(dimension, false);
  }

  /** The same of a batch whose Gaussians may share a factor, so that panels have one of factors, and of means all. */
  public static int mostRows(int dimension, boolean isShared) {
    long shared = isShared ? (long) Batch.WIDEST_PANEL * Cholesky.packedLength(dimension) : 0;
    long length = isShared ? dimension : (long) dimension * (dimension + 3) / 2;
    return (int) ((Batch.MOST_ELEMENTS - shared) / length) - Batch.WIDEST_PANEL;
  }

  /** Returns N. */
  private static int checkShape(
      long meanLength, long matrixLength, int dimension, MatrixForm kind) {
    Batch.checkDimension(dimension);
    if (meanLength == 0 || meanLength % dimension != 0) {
      throw new IllegalArgumentException(
          "mean has %d elements, which is not a positive multiple of the dimension %d"
              .formatted(meanLength, dimension));
    }
    long n = meanLength / dimension;
    long each = kind.length(dimension);
    if (matrixLength != each && (matrixLength % each != 0 || matrixLength / each != n)) {
      throw new IllegalArgumentException(
          "mean has %d elements, [%d, %d], but %s has %d; it must be [%2$d, %s], %d elements each, or one for all"
              .formatted(
                  meanLength,
                  n,
                  dimension,
                  kind.argument(),
                  matrixLength,
                  kind.isPacked() ? "D(D+1)/2" : "D, D",
                  each));
    }
    boolean isShared = matrixLength == each;
    Batch.checkSize(n, dimension, FullBatch.MOST_DIMENSIONS, mostRows(dimension, isShared));
    return (int) n;
  }

  /**
   * Rejects factors that are not finite or whose diagonal has a 0; turns columns so that it is positive, or takes logarithms from it.
   *
   * @return whether all given elements are within ±{@link FullBatch#MOST}
   */
  private boolean checkFactors() {
    double[] low = kind == MatrixForm.PACKED_SCALE_TRIL ? factorsLow : null;
    Cholesky cholesky = new Cholesky();
    Checkpoint checkpoint = new Checkpoint();
    boolean within =
        DoubleRange.contains(-FullBatch.MOST, FullBatch.MOST, factors, 0, factors.length);
    for (int i = 0, k = 0; i < n; i++) {
      checkpoint.passUninterrupted(Checkpoint.ofPlain(length));
      boolean isNegative = false;
      for (int r = 0; r < d; r++) {
        for (int c = 0; c < r && !within; c++) {
          if (!(Math.abs(factors[k + c]) <= Double.MAX_VALUE)) {
            throw rejected(i, r, c, factors[k + c], "it must be finite");
          }
        }
        k += r;
        double given = factors[k];
        if (low != null) {
          if (!(Math.abs(given) <= MOST_LOG)) {
            String range = "[-" + MOST_LOG + ", " + MOST_LOG + "]";
            throw rejected(
                i, r, r, given, "the logarithm of a diagonal element, it must be in " + range);
          }
          cholesky.exp(given);
          factors[k] = cholesky.high();
          low[k] = cholesky.low();
        } else if (!(given > 0 && given <= Double.MAX_VALUE) && !(given == 0 && takesSingular)) {
          if (!(given < 0 && given >= -Double.MAX_VALUE)) {
            String singular = ": the matrix is singular; a small positive number there mends it";
            String rule = "a diagonal element, it must be finite and not 0";
            throw rejected(i, r, r, given, given == 0 ? rule + singular : rule);
          }
          isNegative = true;
        }
        k++;
      }
      if (isNegative) {
        turn(i);
      }
    }
    return within;
  }

  /** Makes 0 of what a given factor has below an element 0 of its diagonal, and adds it to the later columns, by rotations. */
  private void clearColumns() {
    double[] l = new double[length];
    double[] x = new double[d];
    for (int i = 0; i < n; i++) {
      int at = i * length;
      for (int c = 0, k = at; c < d; k += ++c + 1) {
        if (factors[k] != 0) {
          continue;
        }
        factors[k] = 0; // not −0
        boolean isZero = true;
        Arrays.fill(x, 0);
        for (int r = c, e = k; r < d; e += ++r) {
          x[r] = factors[e];
          isZero &= x[r] == 0;
        }
        if (!isZero) {
          for (int r = c, e = k; r < d; e += ++r) {
            factors[e] = 0;
          }
          System.arraycopy(factors, at, l, 0, length);
          Cholesky.update(l, x, c, d);
          System.arraycopy(l, 0, factors, at, length);
        }
      }
    }
  }

  /** Turns the sign of columns whose diagonal element is negative, on which LLᵀ and UUᵀ do not depend. */
  private void turn(int i) {
    int from = i * length;
    for (int c = 0; c < d; c++) {
      int diagonal = from + Cholesky.packedLength(c) + c;
      if (factors[diagonal] >= 0) {
        continue;
      }
      turned.set(i * d + c);
      for (int r = 0; r < d; r++) { // Uᵀ has U's columns as rows
        int k = isUpper ? diagonal - c + r : from + Cholesky.packedLength(r) + c;
        if (isUpper ? r <= c : r >= c) {
          factors[k] = 0 - factors[k]; // so that no 0 gets a sign
        }
      }
    }
  }

  /**
   * Replaces Uᵀ by its inverse L, of as many matrices at a time as the factorization has lanes, with columns scaled by powers of two so
   * that nothing overflows that L has not.
   */
  private void invert(double[] factorsLow) {
    Factorization cholesky = factorization.get();
    int lanes = cholesky.lanes();
    double[] high = new double[length * lanes];
    double[] low = new double[length * lanes];
    double[] scales = new double[d * lanes];
    Checkpoint checkpoint = new Checkpoint();
    LongConsumer progress =
        products -> checkpoint.passUninterrupted(lanes * Checkpoint.ofPlain(products));
    for (int first = 0; first < n; first += lanes) {
      int count = Math.min(lanes, n - first);
      Arrays.fill(low, 0);
      for (int i = 0; i < lanes; i++) {
        scaleColumns(
            Math.min(first + i, n - 1), high, scales, i, lanes); // spare lanes repeat the last
      }
      cholesky.invert(high, low, d, progress);
      for (int i = 0; i < count; i++) {
        take(high, low, i, lanes, scales, first + i, factorsLow);
        int from = (first + i) * length;
        if (!DoubleRange.contains(
            -Double.MAX_VALUE, Double.MAX_VALUE, factors, from, from + length)) {
          throw rejected(
              first + i, "is singular, or nearly: double does not hold its covariance", "");
        }
      }
    }
  }

  /** Writes a packed triangle to lane i, its columns divided by the powers of two {@code scales[i·d…]} of their greatest elements. */
  private void scaleColumns(int gaussian, double[] high, double[] scales, int i, int lanes) {
    int from = gaussian * length;
    for (int c = 0; c < d; c++) {
      double most = 0;
      for (int r = c; r < d; r++) {
        most = Math.max(most, Math.abs(factors[from + Cholesky.packedLength(r) + c]));
      }
      int exponent = Math.max(Math.getExponent(most), Double.MIN_EXPONENT);
      scales[i * d + c] = Math.scalb(1.0, Math.min(exponent, -Double.MIN_EXPONENT));
      for (int r = c; r < d; r++) {
        int k = Cholesky.packedLength(r) + c;
        high[k * lanes + i] = factors[from + k] / scales[i * d + c];
      }
    }
  }

  /**
   * Factors covariances or precisions, as many at a time as the factorization has lanes, with rows and columns scaled by {@link
   * Cholesky#inverseRoot} of the diagonal.
   */
  private void factor(double[] factorsLow) {
    Group group = new Group(factorization.get());
    for (int first = 0; first < n; first += group.lanes) {
      group.factor(first, Math.min(group.lanes, n - first), factorsLow);
    }
  }

  /** Memory for as many matrices as the factorization has lanes, used again for the next. */
  private final class Group {
    private final Factorization cholesky;
    private final int lanes;
    private final double[] full = new double[d * d];
    private final double[] high;
    private final double[] low;
    private final double[] scales;
    private final double tolerance = SemidefiniteFactor.tolerance(d, !matrix.isDouble());
    private final Checkpoint checkpoint = new Checkpoint();
    private final LongConsumer progress;

    private Group(Factorization cholesky) {
      this.cholesky = cholesky;
      lanes = cholesky.lanes();
      high = new double[length * lanes];
      low = new double[length * lanes];
      scales = new double[d * lanes];
      progress = products -> checkpoint.passUninterrupted(lanes * Checkpoint.ofPlain(products));
    }

    private void factor(int first, int count, double[] factorsLow) {
      checkpoint.passUninterrupted(lanes * Checkpoint.ofPlain((long) d * d));
      for (int i = 0; i < lanes; i++) {
        if (i < count) { // spare lanes repeat the last
          matrix.read((long) (first + i) * d * d, full, d * d);
          checkSymmetric(full, first + i);
        }
        place(full, high, low, scales, i, lanes);
      }
      boolean isComplete = cholesky.factor(high, low, d, progress);
      BitSet singular = new BitSet();
      for (int i = 0; i < count; i++) {
        int failed = isComplete ? -1 : cholesky.failed(i);
        if (failed >= 0 || SemidefiniteFactor.isSingular(high, i, lanes, d, tolerance)) {
          matrix.read((long) (first + i) * d * d, full, d * d);
          factorSingular(full, first + i, failed, cholesky.pivot(i), progress);
          singular.set(i);
        }
      }
      if (isReversed) { // J Σ⁻¹ J = MMᵀ, with J the reversal of rows, makes L = J M⁻ᵀ J
        cholesky.invert(high, low, d, progress);
      }
      for (int i = singular.nextClearBit(0); i < count; i = singular.nextClearBit(i + 1)) {
        take(high, low, i, lanes, scales, first + i, factorsLow);
      }
    }
  }

  /**
   * Factors a matrix that is singular but for rounding, if that is to be done, and else says what it lacks.
   *
   * @param failed row of the pivot that is not positive, or −1
   * @param pivot of that row
   */
  private void factorSingular(
      double[] full, int gaussian, int failed, double pivot, LongConsumer progress) {
    double[] scales = new double[d];
    boolean isFloat = !matrix.isDouble();
    SemidefiniteFactor factor = singular(full, scales, isFloat, progress);
    if (factor == null && !isFloat && areFloats(full)) {
      isFloat = true;
      factor = singular(full, scales, isFloat, progress);
    }
    if (factor == null) {
      int row = isReversed ? d - 1 - failed : failed;
      String reason =
          "is not positive %sdefinite: pivot %d is %s%s"
              .formatted(
                  takesSingular ? "semi" : "",
                  row,
                  pivot / scales[row] / scales[row],
                  advice(pivot));
      throw rejected(gaussian, reason, "");
    }
    if (!takesSingular) {
      double[] diagonal = new double[d];
      Arrays.setAll(diagonal, r -> full[r * d + r]);
      String cause = isReversed ? "infinite variances" : Batch.FEW_SAMPLES;
      String reason = Batch.rankReason(factor.rank(), diagonal, isFloat, cause);
      throw isReversed
          ? rejected(gaussian, reason, "")
          : rejected(
              gaussian,
              reason + Batch.ESTIMATE + Batch.NO_INVERSE,
              " (ScalePolicy.SEMIDEFINITE takes it for them)");
    }
    int to = gaussian * length;
    factor.write(factors, to);
    for (int r = 0; r < d; r++) {
      for (int c = 0; c <= r; c++, to++) {
        factors[to] /= scales[r];
      }
    }
  }

  /** Factors a matrix with rows and columns scaled; returns null if it is not semidefinite. */
  private @Nullable SemidefiniteFactor singular(
      double[] full, double[] scales, boolean isFloat, LongConsumer progress) {
    double[] high = new double[length];
    double[] low = new double[length];
    place(full, high, low, scales, 0, 1);
    double tolerance = SemidefiniteFactor.tolerance(d, isFloat);
    SemidefiniteFactor factor = new SemidefiniteFactor(high, low, d, tolerance);
    return factor.factor(progress) ? factor : null;
  }

  /** Whether doubles have the precision of floats, which they were. */
  private static boolean areFloats(double[] values) {
    return Arrays.stream(values).allMatch(v -> (float) v == v);
  }

  /** What to do about a pivot, relative to its diagonal element, that is 0 or negative. */
  private String advice(double pivot) {
    return Math.abs(pivot) <= mostRounding()
        ? ": it is singular, or nearly; add a small multiple of I"
        : "";
  }

  /** What passes for rounding, relative to a matrix's diagonal. */
  private double mostRounding() {
    return matrix.isDouble() ? ASYMMETRY64 : ASYMMETRY32;
  }

  /**
   * Writes the mean of a matrix's two triangles to lane i, scaled by factors that go to {@code scales[i·d…]}. Equal elements are their own
   * mean; others' is exact, as a sum of two doubles.
   */
  private void place(
      double[] full, double[] high, double[] low, double[] scales, int i, int lanes) {
    for (int r = 0; r < d; r++) {
      double t = Cholesky.inverseRoot(full[r * d + r]);
      scales[i * d + r] = t;
      for (int c = 0; c <= r; c++) {
        double u = scales[i * d + c];
        // the greater first, so that nothing underflows but the product
        double below = full[r * d + c] * Math.max(t, u) * Math.min(t, u);
        double above = full[c * d + r] * Math.max(t, u) * Math.min(t, u);
        int k = entry(r, c) * lanes + i;
        high[k] = below;
        low[k] = 0;
        if (below != above) { // Knuth's TwoSum
          double a = 0.5 * below;
          double b = 0.5 * above;
          double sum = a + b;
          double part = sum - a;
          high[k] = sum;
          low[k] = (a - (sum - part)) + (b - part);
        }
      }
    }
  }

  /** Index in a packed triangle of a matrix's element, with rows and columns of precisions in reverse. */
  private int entry(int r, int c) {
    return isReversed ? Cholesky.packedLength(d - 1 - c) + d - 1 - r : Cholesky.packedLength(r) + c;
  }

  /** Writes lane i, with the scaling undone, as the factor of a Gaussian. */
  private void take(
      double[] high,
      double[] low,
      int i,
      int lanes,
      double[] scales,
      int gaussian,
      double[] factorsLow) {
    int to = gaussian * length;
    for (int r = 0; r < d; r++) {
      double root = isReversed ? scales[i * d + r] : 1 / scales[i * d + r];
      for (int c = 0; c <= r; c++, to++) {
        int from = entry(r, c) * lanes + i;
        factors[to] = root * high[from];
        factorsLow[to] = root * low[from];
      }
    }
  }

  private void checkSymmetric(double[] full, int i) {
    for (int k = 0; k < d * d; k++) {
      if (!(Math.abs(full[k]) <= Double.MAX_VALUE)) {
        throw rejected(i, k / d, k % d, full[k], "it must be finite");
      }
    }
    for (int r = 0; r < d; r++) {
      for (int c = 0; c <= r; c++) {
        double a = full[r * d + c];
        double b = full[c * d + r];
        if (a != b) {
          checkAsymmetry(i, r, c, a, b, rootScale(full, r) * rootScale(full, c));
        }
      }
    }
  }

  private double rootScale(double[] full, int r) {
    return Math.sqrt(Math.abs(full[r * d + r]));
  }

  private void checkAsymmetry(int i, int r, int c, double below, double above, double scale) {
    double most = mostRounding();
    double size = Math.abs(below - above);
    if (!(size <= most * scale)) {
      throw rejected(
          i,
          String.format(
              Locale.ROOT,
              "is not symmetric: [%1$d][%2$d] is %3$s but [%2$d][%1$d] is %4$s, a difference of %5$.4g √([%1$d][%1$d]·[%2$d][%2$d]);"
                  + " up to %6$.0e passes for rounding: if it is that, give (C + Cᵀ)/2",
              r,
              c,
              matrix.text(below),
              matrix.text(above),
              size / scale,
              most),
          "");
    }
  }

  /** Makes the exception for a whole matrix. */
  private InvalidGaussianException rejected(int i, String reason, String advice) {
    return Constructors.INVALID_GAUSSIAN.get().of(kind.argument(), i, -1, "", "", reason, advice);
  }

  /** Makes the exception for an element of a packed triangle, or of the matrices where these are not. */
  private InvalidGaussianException rejected(int i, int r, int c, double value, String rule) {
    String reason = "is " + matrix.text(value) + "; " + rule;
    return isUpper ? rejected(i, c, r, reason, "") : rejected(i, r, c, reason, "");
  }

  /** Makes the exception for an element of a matrix. */
  private InvalidGaussianException rejected(int i, int r, int c, String reason, String advice) {
    int element = kind.isPacked() ? Cholesky.packedLength(r) + c : r * d + c;
    String subscripts = kind.isPacked() ? "[" + element + "]" : "[" + r + "][" + c + "]";
    String place = ", row " + r + ", column " + c;
    return Constructors.INVALID_GAUSSIAN
        .get()
        .of(kind.argument(), i, element, subscripts, place, reason, advice);
  }
}
