package dev.kullback.internal.batch;

import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Factorization;
import dev.kullback.internal.numerics.Range;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Makes {@link FullBatch}: checks what callers give, and turns it into factors L of {@code Σ = LLᵀ}. */
public final class Factors {
  /** Logarithms of the diagonal up to which its elements are normal numbers. */
  private static final double MOST_LOG = 700;

  /** Asymmetry that passes for rounding, relative to {@code √(Σ_rr Σ_cc)}. */
  private static final double ASYMMETRY32 = 1e-5;

  private static final double ASYMMETRY64 = 1e-10;

  /** Elements, of small matrices. */
  private static final int READ_AT_ONCE = 4096;

  /** How many times as long as a KL a Cholesky factorization in twice double's precision takes, about, a lane. */
  private static final long FACTORING = 16;

  /** What a matrix of the factories is. */
  public enum Kind {
    SCALE_TRIL("scaleTril"),
    PACKED("packed"),
    PACKED_LOG("packed"),
    COVARIANCE("covariance"),
    PRECISION("precision");

    /** The argument's name in the public factories, used in messages. */
    public final String argument;

    Kind(String argument) {
      this.argument = argument;
    }

    private boolean isPacked() {
      return this == PACKED || this == PACKED_LOG;
    }
  }

  private final Elements matrix;
  private final int n;
  private final int d;
  private final Kind kind;
  private final Supplier<Factorization> factorization;

  /** The batch's arrays. */
  private final double[] factors;

  private final double @Nullable [] factorsLow;

  private Factors(
      Elements matrix, int n, int dimension, Kind kind, Supplier<Factorization> factorization) {
    this.matrix = matrix;
    this.n = n;
    this.d = dimension;
    this.kind = kind;
    this.factorization = factorization;
    factors = new double[n * Cholesky.packedLength(d)];
    factorsLow = kind == Kind.SCALE_TRIL || kind == Kind.PACKED ? null : new double[factors.length];
  }

  /**
   * A batch from means and matrices, both copied.
   *
   * @throws IllegalArgumentException naming the array, the Gaussian, the row and the column at fault
   */
  public static FullBatch of(
      Elements mean,
      Elements matrix,
      int dimension,
      Kind kind,
      Supplier<Factorization> factorization) {
    int n = checkShape(mean.length(), matrix.length(), dimension, kind);
    double[] means = mean.doubles();
    for (int h = 0; h < means.length; h++) {
      if (!(Math.abs(means[h]) <= Double.MAX_VALUE)) {
        throw new IllegalArgumentException(
            "mean[%d][%d] (Gaussian %1$d, dimension %2$d) is %s; it must be finite"
                .formatted(h / dimension, h % dimension, text(means[h], mean.isDouble())));
      }
    }
    Factors made = new Factors(matrix, n, dimension, kind, factorization);
    made.make();
    return new FullBatch(means, made.factors, made.factorsLow, dimension, matrix.isDouble());
  }

  private void make() {
    switch (kind) {
      case SCALE_TRIL -> {
        int square = d * d;
        double[] full = new double[Math.clamp(READ_AT_ONCE / square, 1, n) * square];
        for (int i = 0, k = 0, at = full.length; i < n; i++, at += square) {
          if (at == full.length) {
            at = 0;
            matrix.read(
                (long) i * square, full, (int) Math.min(full.length, (long) (n - i) * square));
          }
          for (int r = 0; r < d; k += ++r) {
            System.arraycopy(full, at + r * d, factors, k, r + 1);
          }
        }
        checkFactors();
      }
      case PACKED, PACKED_LOG -> {
        matrix.read(0, factors, factors.length);
        checkFactors();
      }
      case COVARIANCE, PRECISION -> factor(Objects.requireNonNull(factorsLow));
    }
  }

  /** How many Gaussians, packed in panels, fit a Java array; not positive where none does. */
  public static int mostRows(int dimension) {
    long length = (long) dimension * (dimension + 3) / 2;
    return (int) ((Integer.MAX_VALUE - 8) / length) - Batch.WIDEST_PANEL;
  }

  /** N. */
  private static int checkShape(long meanLength, long matrixLength, int dimension, Kind kind) {
    if (dimension < 1) {
      throw new IllegalArgumentException("dimension must be at least 1, is " + dimension);
    }
    if (meanLength == 0 || meanLength % dimension != 0) {
      throw new IllegalArgumentException(
          "mean has %d elements, which is not a positive multiple of the dimension %d"
              .formatted(meanLength, dimension));
    }
    long n = meanLength / dimension;
    long each =
        kind.isPacked() ? (long) dimension * (dimension + 1) / 2 : (long) dimension * dimension;
    if (matrixLength % each != 0 || matrixLength / each != n) {
      throw new IllegalArgumentException(
          "mean has %d elements, [%d, %d], but %s has %d; it must be [%2$d, %s], %d elements each"
              .formatted(
                  meanLength,
                  n,
                  dimension,
                  kind.argument,
                  matrixLength,
                  kind.isPacked() ? "D(D+1)/2" : "D, D",
                  each));
    }
    DiagonalBatch.checkSize(n, dimension, FullBatch.MOST_DIMENSIONS, mostRows(dimension));
    return (int) n;
  }

  /** Rejects factors that are not finite or whose diagonal is not positive; takes logarithms from the diagonal. */
  private void checkFactors() {
    double[] low = factorsLow;
    Cholesky cholesky = new Cholesky();
    int length = Cholesky.packedLength(d);
    Checkpoint checkpoint = new Checkpoint();
    boolean finite = Range.contains(-FullBatch.MOST, FullBatch.MOST, factors, 0, factors.length);
    for (int i = 0, k = 0; i < n; i++) {
      checkpoint.passUninterrupted((long) Checkpoint.PLAIN * length);
      for (int r = 0; r < d; r++) {
        for (int c = 0; c < r && !finite; c++) {
          if (!(Math.abs(factors[k + c]) <= Double.MAX_VALUE)) {
            throw rejected(i, r, c, factors[k + c], "it must be finite");
          }
        }
        k += r;
        double given = factors[k];
        if (low != null) {
          if (!(Math.abs(given) <= MOST_LOG)) {
            throw rejected(
                i,
                r,
                r,
                given,
                "the logarithm of a diagonal element, it must be in [-%s, %1$s]"
                    .formatted(MOST_LOG));
          }
          cholesky.exp(given);
          factors[k] = cholesky.high();
          low[k] = cholesky.low();
        } else if (!(given > 0 && given <= Double.MAX_VALUE)) {
          throw rejected(i, r, r, given, "a diagonal element, it must be finite and > 0");
        }
        k++;
      }
    }
  }

  /**
   * Factors covariances or precisions, as many at a time as the factorization takes, with rows and columns scaled as {@link
   * Cholesky#inverseRoot} says.
   */
  private void factor(double[] factorsLow) {
    Factorization cholesky = factorization.get();
    int lanes = cholesky.lanes();
    int length = Cholesky.packedLength(d);
    double[] full = new double[d * d];
    double[] high = new double[length * lanes];
    double[] low = new double[length * lanes];
    double[] scales = new double[d * lanes];
    Checkpoint checkpoint = new Checkpoint();
    for (int first = 0; first < n; first += lanes) {
      checkpoint.passUninterrupted(FACTORING * lanes * Checkpoint.ofSolve(d));
      int count = Math.min(lanes, n - first);
      Arrays.fill(low, 0);
      for (int i = 0; i < lanes; i++) {
        if (i < count) { // lanes beyond repeat the last
          matrix.read((long) (first + i) * d * d, full, d * d);
          checkSymmetric(full, first + i);
        }
        scale(full, d, scales, i * d);
        place(full, high, i, lanes);
      }
      if (!cholesky.factor(high, low, d)) {
        for (int i = 0; i < count; i++) {
          if (cholesky.failed(i) >= 0) {
            throw notPositiveDefinite(
                first + i, cholesky.failed(i), cholesky.pivot(i), scales, i * d);
          }
        }
      }
      if (kind == Kind.PRECISION) { // J Σ⁻¹ J = MMᵀ, with J the reversal of rows, makes L = J M⁻ᵀ J
        cholesky.invert(high, low, d);
      }
      for (int i = 0; i < count; i++) {
        take(high, low, i, lanes, scales, first + i, factorsLow);
      }
    }
  }

  /** A matrix's lower triangle, of a precision with rows reversed, to lane i. */
  private void place(double[] full, double[] high, int i, int lanes) {
    boolean flip = kind == Kind.PRECISION;
    for (int r = 0, k = i; r < d; r++) {
      for (int c = 0; c <= r; c++, k += lanes) {
        high[k] = flip ? full[(d - 1 - c) * d + d - 1 - r] : full[r * d + c];
      }
    }
  }

  /** Lane i, with the scaling undone, as the factor of a Gaussian. */
  private void take(
      double[] high,
      double[] low,
      int i,
      int lanes,
      double[] scales,
      int gaussian,
      double[] factorsLow) {
    boolean flip = kind == Kind.PRECISION;
    int to = gaussian * Cholesky.packedLength(d);
    for (int r = 0; r < d; r++) {
      double root = flip ? scales[i * d + r] : 1 / scales[i * d + r];
      for (int c = 0; c <= r; c++, to++) {
        int entry =
            flip ? Cholesky.packedLength(d - 1 - c) + d - 1 - r : Cholesky.packedLength(r) + c;
        factors[to] = root * high[entry * lanes + i];
        factorsLow[to] = root * low[entry * lanes + i];
      }
    }
  }

  /** Scales the lower triangle in place; by what, to {@code scales[at…]}. */
  private static void scale(double[] full, int d, double[] scales, int at) {
    for (int r = 0; r < d; r++) {
      double t = Cholesky.inverseRoot(full[r * d + r]);
      scales[at + r] = t;
      for (int c = 0; c <= r; c++) { // the greater first: less than the product does not underflow
        double u = scales[at + c];
        full[r * d + c] *= Math.max(t, u);
        full[r * d + c] *= Math.min(t, u);
      }
    }
  }

  private IllegalArgumentException notPositiveDefinite(
      int i, int failed, double scaled, double[] scales, int at) {
    int row = kind == Kind.PRECISION ? d - 1 - failed : failed;
    double pivot = scaled / scales[at + row] / scales[at + row];
    return new IllegalArgumentException(
        "%s[%d] (Gaussian %2$d) is not positive definite: pivot %d is %s"
            .formatted(kind.argument, i, row, pivot));
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
        if (a != b && !(Math.abs(a - b) <= asymmetry(full, r, c))) {
          throw new IllegalArgumentException(
              "%s[%d] (Gaussian %2$d) is not symmetric: [%d][%d] is %s but [%4$d][%3$d] is %s"
                  .formatted(
                      kind.argument,
                      i,
                      r,
                      c,
                      text(a, matrix.isDouble()),
                      text(b, matrix.isDouble())));
        }
      }
    }
  }

  private double asymmetry(double[] full, int r, int c) {
    double scale = Math.sqrt(Math.abs(full[r * d + r])) * Math.sqrt(Math.abs(full[c * d + c]));
    return (matrix.isDouble() ? ASYMMETRY64 : ASYMMETRY32) * scale;
  }

  private IllegalArgumentException rejected(int i, int r, int c, double value, String rule) {
    String index =
        kind.isPacked() ? "[" + (Cholesky.packedLength(r) + c) + "]" : "[" + r + "][" + c + "]";
    return new IllegalArgumentException(
        "%s[%d]%s (Gaussian %2$d, row %d, column %d) is %s; %s"
            .formatted(kind.argument, i, index, r, c, text(value, matrix.isDouble()), rule));
  }

  private static String text(double value, boolean isDouble) {
    return isDouble ? Double.toString(value) : Float.toString((float) value);
  }
}
