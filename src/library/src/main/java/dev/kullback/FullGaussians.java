package dev.kullback;

import dev.kullback.internal.cuda.HostBatch;
import dev.kullback.internal.cuda.abi.KullbackCuda;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * A batch of N Gaussians {@code N(μ_i, Σ_i)} of dimension D with full covariance, {@code Σ = LLᵀ}, L lower triangular with
 * positive diagonal.
 *
 * <p>Values are copied and checked at construction; the caller's arrays are neither kept nor modified. A batch of {@code float}
 * is held, and computed with, in double. What the kernels need is made when the batch is used, at its second use to be kept
 * with it, so a batch made once is reused by every call of every engine. Memory, in doubles: {@code N·D(D+1)/2} for the factors
 * L, twice that where they are computed, as much again after use as {@code q}, and again after use as {@code p}, for N rounded up
 * to 8 and to 16. {@code (N + 32)·D(D+3)/2} is limited to {@code 2³¹ − 9}, for panels that fit an array: D to 11,406.
 *
 * <p>Every factory takes {@code float[]}, {@code double[]} or {@link MemorySegment}; those of segments without a layout read
 * native-order {@code float}. A layout is {@link ValueLayout.OfFloat} or {@link ValueLayout.OfDouble}, of either byte order.
 * All throw {@link IllegalArgumentException} naming the array, the Gaussian, the row and the column at fault.
 */
public final class FullGaussians implements Gaussians {
  /** Entries of L, and its diagonal's inverse, whose products the matrix kernel can neither over- nor underflow. */
  private static final double MOST = 0x1p250;

  /** Logarithms of the diagonal up to which its elements are normal numbers. */
  private static final double MOST_LOG = 700;

  private static final double HALF_ULP = 0x1p-53;

  /** Asymmetry that passes for rounding, relative to {@code √(Σ_rr Σ_cc)}. */
  private static final double ASYMMETRY32 = 1e-5;

  private static final double ASYMMETRY64 = 1e-10;

  /** How many times as long as a KL a Cholesky factorization in twice double's precision takes, about, a lane. */
  private static final long FACTORING = 16;

  /** Of the largest batch of one Gaussian. */
  static final int MOST_DIMENSIONS = 11_406;

  /** Doubles up to which a diagonal batch is worth an expansion to full factors, 128 MiB. */
  private static final long MOST_EXPANDED = 1 << 24;

  private final int size;
  private final int dimension;
  private final boolean isDouble;

  /** Row-major [N, D]. */
  final double[] mean;

  /** L, row-major {@code [N, D(D+1)/2]} by rows (0,0), (1,0), (1,1), (2,0), … */
  final double[] scaleTril;

  /**
   * What rounding took from L, in the same order: null where the caller gave L itself. Without it two covariances that differ by
   * some roundings would have factors that do not differ, or by others.
   */
  final double @Nullable [] scaleTrilLow;

  /** {@code ln det L = Σ_k ln L_kk}, and a bound on its absolute error. */
  final double[] logDet;

  final double[] logDetBound;

  /** Gaussians that the matrix kernel cannot hold. */
  private final BitSet beyond = new BitSet();

  private final AtomicBoolean used = new AtomicBoolean();
  private final Lazy<FullGaussians, FullRows> rows = new Lazy<>();
  private final Lazy<FullGaussians, FullColumns> columns = new Lazy<>();

  private FullGaussians(
      double[] mean,
      double[] scaleTril,
      double @Nullable [] scaleTrilLow,
      int dimension,
      boolean isDouble) {
    this.mean = mean;
    this.scaleTril = scaleTril;
    this.scaleTrilLow = scaleTrilLow;
    this.dimension = dimension;
    this.isDouble = isDouble;
    size = mean.length / dimension;
    logDet = new double[size];
    logDetBound = new double[size];
    double[] diagonal = new double[dimension];
    int length = packedLength(dimension);
    boolean vectors = Backend.hasVectors();
    for (int i = 0; i < size; i++) {
      boolean ordinary =
          isOrdinary(mean, i * dimension, (i + 1) * dimension, vectors)
              && isOrdinary(scaleTril, i * length, (i + 1) * length, vectors);
      for (int r = 0, k = i * length; r < dimension; k += ++r + 1) {
        diagonal[r] = scaleTril[k];
        ordinary &= diagonal[r] >= 1 / MOST;
      }
      if (!ordinary) {
        beyond.set(i);
      }
      logDet[i] = LogProduct.of(diagonal, 0, dimension);
      logDetBound[i] = HALF_ULP * (2.0 * dimension + 16 + 4 * Math.abs(logDet[i]));
    }
  }

  /** Whether all magnitudes are at most {@link #MOST}. */
  private static boolean isOrdinary(double[] values, int from, int to, boolean vectors) {
    if (vectors) {
      return DoubleKernels.within(values, from, to, -MOST, MOST);
    }
    boolean ordinary = true;
    for (int k = from; k < to; k++) {
      ordinary &= Math.abs(values[k]) <= MOST;
    }
    return ordinary;
  }

  static int packedLength(int dimension) {
    return dimension * (dimension + 1) / 2;
  }

  /** How many Gaussians, packed in panels, fit a Java array; not positive where none does. */
  static int mostRows(int dimension) {
    long length = (long) dimension * (dimension + 3) / 2;
    return (int) ((Integer.MAX_VALUE - 8) / length) - DiagonalGaussians.WIDEST_PANEL;
  }

  /** Whether {@link #of} applies. */
  static boolean isExpandable(Gaussians batch) {
    return batch instanceof FullGaussians
        || (long) batch.size() * batch.dimension() * (batch.dimension() + 3) / 2 <= MOST_EXPANDED;
  }

  /** A diagonal batch as one of diagonal factors; a full one as it is. */
  static FullGaussians of(Gaussians batch) {
    return switch (batch) {
      case FullGaussians f -> f;
      case DiagonalGaussians d -> d.full();
    };
  }

  static FullGaussians expanded(DiagonalGaussians g) {
    int d = g.dimension();
    double[] scaleTril = new double[g.size() * packedLength(d)];
    double[] low = g.kind == Scale.STD ? null : new double[scaleTril.length];
    Cholesky cholesky = new Cholesky();
    Checkpoint checkpoint = new Checkpoint();
    for (int h = 0, k = -1; h < g.size() * d; h++) {
      if (h % d == 0) {
        checkpoint.pass((long) Checkpoint.PLAIN * d);
      }
      k += h % d + 1;
      cholesky.std(g.kind, g.scale(h));
      scaleTril[k] = cholesky.high();
      if (low != null) {
        low[k] = cholesky.low();
      }
    }
    return new FullGaussians(g.mean64(), scaleTril, low, d, g.isDouble());
  }

  /**
   * A batch from means and the factors L of {@code Σ = LLᵀ}.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param scaleTril row-major {@code [N, D, D]}, lower triangular: finite, with a positive diagonal; what lies above the diagonal is not read
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with float precision; the arrays are copied
   */
  public static FullGaussians ofScaleTril(float[] mean, float[] scaleTril, int dimension) {
    return of(mean, scaleTril, dimension, Kind.SCALE_TRIL);
  }

  /**
   * A batch from means and the factors L of {@code Σ = LLᵀ}.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param scaleTril row-major {@code [N, D, D]}, lower triangular: finite, with a positive diagonal; what lies above the diagonal is not read
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with double precision; the arrays are copied
   */
  public static FullGaussians ofScaleTril(double[] mean, double[] scaleTril, int dimension) {
    return of(mean, scaleTril, dimension, Kind.SCALE_TRIL);
  }

  /** As {@link #ofScaleTril(float[], float[], int)}, from segments of native-order {@code float}. */
  public static FullGaussians ofScaleTril(
      MemorySegment mean, MemorySegment scaleTril, int dimension) {
    return of(mean, scaleTril, dimension, ValueLayout.JAVA_FLOAT, Kind.SCALE_TRIL);
  }

  /** As {@link #ofScaleTril(float[], float[], int)}, from segments of {@code element}. */
  public static FullGaussians ofScaleTril(
      MemorySegment mean, MemorySegment scaleTril, int dimension, ValueLayout element) {
    return of(mean, scaleTril, dimension, element, Kind.SCALE_TRIL);
  }

  /**
   * A batch from means and packed factors L of {@code Σ = LLᵀ}, with {@code ln L_kk} on the diagonal.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param packed row-major {@code [N, D(D+1)/2]} in the order of {@code tril_indices}: (0,0), (1,0), (1,1), (2,0), …; finite, the diagonal's logarithms within ±700
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with float precision; the arrays are copied
   */
  public static FullGaussians ofPackedScaleTril(float[] mean, float[] packed, int dimension) {
    return of(mean, packed, dimension, Kind.PACKED_LOG);
  }

  /**
   * A batch from means and packed factors L of {@code Σ = LLᵀ}, with {@code ln L_kk} on the diagonal.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param packed row-major {@code [N, D(D+1)/2]} in the order of {@code tril_indices}: (0,0), (1,0), (1,1), (2,0), …; finite, the diagonal's logarithms within ±700
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with double precision; the arrays are copied
   */
  public static FullGaussians ofPackedScaleTril(double[] mean, double[] packed, int dimension) {
    return of(mean, packed, dimension, Kind.PACKED_LOG);
  }

  /** As {@link #ofPackedScaleTril(float[], float[], int)}; unless {@code logDiagonal}, the diagonal holds {@code L_kk} itself. */
  public static FullGaussians ofPackedScaleTril(
      float[] mean, float[] packed, int dimension, boolean logDiagonal) {
    Kind kind = logDiagonal ? Kind.PACKED_LOG : Kind.PACKED;
    return of(mean, packed, dimension, kind);
  }

  /** As {@link #ofPackedScaleTril(double[], double[], int)}; unless {@code logDiagonal}, the diagonal holds {@code L_kk} itself. */
  public static FullGaussians ofPackedScaleTril(
      double[] mean, double[] packed, int dimension, boolean logDiagonal) {
    Kind kind = logDiagonal ? Kind.PACKED_LOG : Kind.PACKED;
    return of(mean, packed, dimension, kind);
  }

  /** As {@link #ofPackedScaleTril(float[], float[], int)}, from segments of native-order {@code float}. */
  public static FullGaussians ofPackedScaleTril(
      MemorySegment mean, MemorySegment packed, int dimension) {
    return of(mean, packed, dimension, ValueLayout.JAVA_FLOAT, Kind.PACKED_LOG);
  }

  /** As {@link #ofPackedScaleTril(float[], float[], int, boolean)}, from segments of {@code element}. */
  public static FullGaussians ofPackedScaleTril(
      MemorySegment mean,
      MemorySegment packed,
      int dimension,
      ValueLayout element,
      boolean logDiagonal) {
    Kind kind = logDiagonal ? Kind.PACKED_LOG : Kind.PACKED;
    return of(mean, packed, dimension, element, kind);
  }

  /**
   * A batch from means and covariances Σ, which are factored in twice the precision of double.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param covariance row-major {@code [N, D, D]}, symmetric up to rounding and positive definite; the lower triangle is what counts
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with float precision; the arrays are copied
   */
  public static FullGaussians ofCovariance(float[] mean, float[] covariance, int dimension) {
    return of(mean, covariance, dimension, Kind.COVARIANCE);
  }

  /**
   * A batch from means and covariances Σ, which are factored in twice the precision of double.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param covariance row-major {@code [N, D, D]}, symmetric up to rounding and positive definite; the lower triangle is what counts
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with double precision; the arrays are copied
   */
  public static FullGaussians ofCovariance(double[] mean, double[] covariance, int dimension) {
    return of(mean, covariance, dimension, Kind.COVARIANCE);
  }

  /** As {@link #ofCovariance(float[], float[], int)}, from segments of native-order {@code float}. */
  public static FullGaussians ofCovariance(
      MemorySegment mean, MemorySegment covariance, int dimension) {
    return of(mean, covariance, dimension, ValueLayout.JAVA_FLOAT, Kind.COVARIANCE);
  }

  /** As {@link #ofCovariance(float[], float[], int)}, from segments of {@code element}. */
  public static FullGaussians ofCovariance(
      MemorySegment mean, MemorySegment covariance, int dimension, ValueLayout element) {
    return of(mean, covariance, dimension, element, Kind.COVARIANCE);
  }

  /**
   * A batch from means and precisions {@code Σ⁻¹}, which are factored in twice the precision of double.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param precision row-major {@code [N, D, D]}, symmetric up to rounding and positive definite; the lower triangle is what counts
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with float precision; the arrays are copied
   */
  public static FullGaussians ofPrecision(float[] mean, float[] precision, int dimension) {
    return of(mean, precision, dimension, Kind.PRECISION);
  }

  /**
   * A batch from means and precisions {@code Σ⁻¹}, which are factored in twice the precision of double.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param precision row-major {@code [N, D, D]}, symmetric up to rounding and positive definite; the lower triangle is what counts
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with double precision; the arrays are copied
   */
  public static FullGaussians ofPrecision(double[] mean, double[] precision, int dimension) {
    return of(mean, precision, dimension, Kind.PRECISION);
  }

  /** As {@link #ofPrecision(float[], float[], int)}, from segments of native-order {@code float}. */
  public static FullGaussians ofPrecision(
      MemorySegment mean, MemorySegment precision, int dimension) {
    return of(mean, precision, dimension, ValueLayout.JAVA_FLOAT, Kind.PRECISION);
  }

  /** As {@link #ofPrecision(float[], float[], int)}, from segments of {@code element}. */
  public static FullGaussians ofPrecision(
      MemorySegment mean, MemorySegment precision, int dimension, ValueLayout element) {
    return of(mean, precision, dimension, element, Kind.PRECISION);
  }

  @Override
  public int size() {
    return size;
  }

  @Override
  public int dimension() {
    return dimension;
  }

  @Override
  public boolean isDouble() {
    return isDouble;
  }

  @Override
  public String toString() {
    return "FullGaussians[%d x %d, %s]".formatted(size, dimension, isDouble ? "double" : "float");
  }

  /** As it goes to a device. */
  HostBatch host() {
    return new HostBatch(
        this,
        size,
        dimension,
        scaleTrilLow == null
            ? KullbackCuda.KULLBACK_SCALE_TRIL()
            : KullbackCuda.KULLBACK_SCALE_TRIL_PARTS(),
        isDouble,
        MemorySegment.ofArray(mean),
        MemorySegment.ofArray(scaleTril),
        scaleTrilLow == null ? null : MemorySegment.ofArray(scaleTrilLow));
  }

  @Override
  public void prepare() {
    used.set(true); // so that calls look for what is kept
    if (Backend.hasVectors()) {
      rows();
      columns();
    }
  }

  @Override
  public long memoryBytes() {
    long doubles = mean.length + (scaleTrilLow == null ? 1L : 2L) * scaleTril.length + 2L * size;
    return Double.BYTES * doubles
        + beyond.size() / Byte.SIZE
        + rows.bytes(FullRows::bytes)
        + columns.bytes(FullColumns::bytes);
  }

  boolean isBeyond(int i) {
    return beyond.get(i);
  }

  /** Whether nobody asked before: a batch used once need not keep its panels. */
  boolean isFirstUse() {
    return !used.get() && used.compareAndSet(false, true);
  }

  FullRows rows() {
    return rows.get(this, FullKernels::packRows);
  }

  FullColumns columns() {
    return columns.get(this, FullKernels::packColumns);
  }

  /** What a matrix of the factories is. */
  private enum Kind {
    SCALE_TRIL("scaleTril"),
    PACKED("packed"),
    PACKED_LOG("packed"),
    COVARIANCE("covariance"),
    PRECISION("precision");

    /** The argument's name in the public factories, used in messages. */
    final String argument;

    Kind(String argument) {
      this.argument = argument;
    }

    boolean isPacked() {
      return this == PACKED || this == PACKED_LOG;
    }
  }

  /** Reads {@code count} elements from an index on into {@code to[at…]}. */
  private interface Reader {
    void read(long from, double[] to, int at, int count);
  }

  private record Source(long length, Reader reader) {}

  private static FullGaussians of(float[] mean, float[] matrix, int dimension, Kind kind) {
    Objects.requireNonNull(mean, "mean");
    Objects.requireNonNull(matrix, kind.argument);
    return of(source(mean), source(matrix), dimension, false, kind);
  }

  private static FullGaussians of(double[] mean, double[] matrix, int dimension, Kind kind) {
    Objects.requireNonNull(mean, "mean");
    Objects.requireNonNull(matrix, kind.argument);
    return of(source(mean), source(matrix), dimension, true, kind);
  }

  private static Source source(double[] a) {
    return new Source(a.length, (from, to, at, n) -> System.arraycopy(a, (int) from, to, at, n));
  }

  private static Source source(float[] a) {
    return new Source(
        a.length,
        (from, to, at, n) -> {
          for (int k = 0; k < n; k++) {
            to[at + k] = a[(int) from + k];
          }
        });
  }

  private static Source source(MemorySegment s, ValueLayout element, String name) {
    long length = DiagonalGaussians.elements(s, element, name);
    Reader reader =
        switch (element) {
          case ValueLayout.OfDouble layout -> {
            ValueLayout.OfDouble any = layout.withByteAlignment(1);
            yield (from, to, at, n) -> MemorySegment.copy(s, any, 8 * from, to, at, n);
          }
          case ValueLayout.OfFloat layout -> {
            ValueLayout.OfFloat any = layout.withByteAlignment(1);
            yield (from, to, at, n) -> {
              for (int k = 0; k < n; k++) {
                to[at + k] = s.get(any, 4 * (from + k));
              }
            };
          }
          default ->
              throw new IllegalArgumentException(
                  "element layout must be float or double, is " + element);
        };
    return new Source(length, reader);
  }

  private static FullGaussians of(
      MemorySegment mean, MemorySegment matrix, int dimension, ValueLayout element, Kind kind) {
    boolean isDouble = element instanceof ValueLayout.OfDouble;
    return of(
        source(mean, element, "mean"),
        source(matrix, element, kind.argument),
        dimension,
        isDouble,
        kind);
  }

  private static FullGaussians of(
      Source mean, Source matrix, int dimension, boolean isDouble, Kind kind) {
    int n = checkShape(mean.length, matrix.length, dimension, kind);
    double[] means = new double[n * dimension];
    mean.reader.read(0, means, 0, means.length);
    for (int h = 0; h < means.length; h++) {
      if (!(Math.abs(means[h]) <= Double.MAX_VALUE)) {
        throw new IllegalArgumentException(
            "mean[%d][%d] (Gaussian %1$d, dimension %2$d) is %s; it must be finite"
                .formatted(h / dimension, h % dimension, text(means[h], isDouble)));
      }
    }
    double[] factors = new double[n * packedLength(dimension)];
    double[] low =
        kind == Kind.SCALE_TRIL || kind == Kind.PACKED ? null : new double[factors.length];
    switch (kind) {
      case SCALE_TRIL -> {
        double[] full = new double[dimension * dimension];
        for (int i = 0, k = 0; i < n; i++) {
          matrix.reader.read((long) i * full.length, full, 0, full.length);
          for (int r = 0; r < dimension; k += ++r) {
            System.arraycopy(full, r * dimension, factors, k, r + 1);
          }
        }
      }
      case PACKED, PACKED_LOG -> matrix.reader.read(0, factors, 0, factors.length);
      case COVARIANCE, PRECISION ->
          factor(matrix, factors, Objects.requireNonNull(low), n, dimension, isDouble, kind);
    }
    if (kind == Kind.SCALE_TRIL || kind.isPacked()) {
      checkFactors(factors, low, n, dimension, isDouble, kind);
    }
    return new FullGaussians(means, factors, low, dimension, isDouble);
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
    DiagonalGaussians.checkSize(n, dimension, MOST_DIMENSIONS, mostRows(dimension));
    return (int) n;
  }

  /** Rejects factors that are not finite or whose diagonal is not positive; takes logarithms from the diagonal. */
  private static void checkFactors(
      double[] factors,
      double @Nullable [] low,
      int n,
      int dimension,
      boolean isDouble,
      Kind kind) {
    Cholesky cholesky = new Cholesky();
    int length = packedLength(dimension);
    boolean vectors = Backend.hasVectors();
    Checkpoint checkpoint = new Checkpoint();
    for (int i = 0, k = 0; i < n; i++) {
      checkpoint.passUninterrupted((long) Checkpoint.PLAIN * length);
      boolean ordinary = isOrdinary(factors, i * length, (i + 1) * length, vectors);
      for (int r = 0; r < dimension; r++) {
        for (int c = 0; c < r && !ordinary; c++) {
          if (!(Math.abs(factors[k + c]) <= Double.MAX_VALUE)) {
            throw rejected(kind, i, r, c, factors[k + c], isDouble, "it must be finite");
          }
        }
        k += r;
        double given = factors[k];
        if (low != null) {
          if (!(Math.abs(given) <= MOST_LOG)) {
            throw rejected(
                kind,
                i,
                r,
                r,
                given,
                isDouble,
                "the logarithm of a diagonal element, it must be in [-%s, %1$s]"
                    .formatted(MOST_LOG));
          }
          cholesky.exp(given);
          factors[k] = cholesky.high();
          low[k] = cholesky.low();
        } else if (!(given > 0 && given <= Double.MAX_VALUE)) {
          throw rejected(
              kind, i, r, r, given, isDouble, "a diagonal element, it must be finite and > 0");
        }
        k++;
      }
    }
  }

  /**
   * Factors covariances or precisions, several at a time where there are vectors, with rows and columns scaled as {@link
   * Cholesky#inverseRoot} says.
   */
  private static void factor(
      Source matrix,
      double[] factors,
      double[] factorsLow,
      int n,
      int d,
      boolean isDouble,
      Kind kind) {
    int lanes = Backend.hasVectors() ? CholeskyKernel.V : 1;
    int length = packedLength(d);
    boolean flip = kind == Kind.PRECISION;
    double[] full = new double[d * d];
    double[] high = new double[length * lanes];
    double[] low = new double[length * lanes];
    double[] scales = new double[d * lanes];
    CholeskyKernel kernel = lanes > 1 ? new CholeskyKernel() : null;
    Cholesky cholesky = new Cholesky();
    Checkpoint checkpoint = new Checkpoint();
    for (int first = 0; first < n; first += lanes) {
      checkpoint.passUninterrupted(FACTORING * lanes * FullPair.terms(d));
      int count = Math.min(lanes, n - first);
      Arrays.fill(low, 0);
      for (int i = 0; i < lanes; i++) {
        if (i < count) { // lanes beyond repeat the last
          matrix.reader.read((long) (first + i) * d * d, full, 0, d * d);
          checkSymmetric(full, first + i, d, isDouble, kind);
        }
        scale(full, d, scales, i * d);
        for (int r = 0, k = i; r < d; r++) {
          for (int c = 0; c <= r; c++, k += lanes) {
            high[k] = flip ? full[(d - 1 - c) * d + d - 1 - r] : full[r * d + c];
          }
        }
      }
      if (kernel == null) {
        int failed = cholesky.factor(high, low, d);
        if (failed >= 0) {
          throw notPositiveDefinite(kind, first, failed, d, cholesky.high(), scales, 0);
        }
        if (flip) { // J Σ⁻¹ J = MMᵀ, with J the reversal of rows, makes L = J M⁻ᵀ J
          cholesky.invert(high, low, d);
        }
      } else {
        if (!kernel.factor(high, low, d)) {
          for (int i = 0; i < count; i++) {
            int failed = kernel.failed[i];
            if (failed >= 0) {
              throw notPositiveDefinite(
                  kind, first + i, failed, d, kernel.pivots[i], scales, i * d);
            }
          }
        }
        if (flip) {
          kernel.invert(high, low, d);
        }
      }
      for (int i = 0; i < count; i++) {
        int to = (first + i) * length;
        for (int r = 0; r < d; r++) {
          double root = flip ? scales[i * d + r] : 1 / scales[i * d + r];
          for (int c = 0; c <= r; c++, to++) {
            int k = (flip ? packedLength(d - 1 - c) + d - 1 - r : packedLength(r) + c) * lanes + i;
            factors[to] = root * high[k];
            factorsLow[to] = root * low[k];
          }
        }
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

  private static IllegalArgumentException notPositiveDefinite(
      Kind kind, int i, int failed, int d, double scaled, double[] scales, int at) {
    int row = kind == Kind.PRECISION ? d - 1 - failed : failed;
    double pivot = scaled / scales[at + row] / scales[at + row];
    return new IllegalArgumentException(
        "%s[%d] (Gaussian %2$d) is not positive definite: pivot %d is %s"
            .formatted(kind.argument, i, row, pivot));
  }

  private static void checkSymmetric(double[] full, int i, int d, boolean isDouble, Kind kind) {
    for (int k = 0; k < d * d; k++) {
      if (!(Math.abs(full[k]) <= Double.MAX_VALUE)) {
        throw rejected(kind, i, k / d, k % d, full[k], isDouble, "it must be finite");
      }
    }
    for (int r = 0; r < d; r++) {
      for (int c = 0; c <= r; c++) {
        double a = full[r * d + c];
        double b = full[c * d + r];
        if (a != b && !(Math.abs(a - b) <= asymmetry(full, d, r, c, isDouble))) {
          throw new IllegalArgumentException(
              "%s[%d] (Gaussian %2$d) is not symmetric: [%d][%d] is %s but [%4$d][%3$d] is %s"
                  .formatted(kind.argument, i, r, c, text(a, isDouble), text(b, isDouble)));
        }
      }
    }
  }

  private static double asymmetry(double[] full, int d, int r, int c, boolean isDouble) {
    double scale = Math.sqrt(Math.abs(full[r * d + r])) * Math.sqrt(Math.abs(full[c * d + c]));
    return (isDouble ? ASYMMETRY64 : ASYMMETRY32) * scale;
  }

  private static IllegalArgumentException rejected(
      Kind kind, int i, int r, int c, double value, boolean isDouble, String rule) {
    String index = kind.isPacked() ? "[" + (packedLength(r) + c) + "]" : "[" + r + "][" + c + "]";
    return new IllegalArgumentException(
        "%s[%d]%s (Gaussian %2$d, row %d, column %d) is %s; %s"
            .formatted(kind.argument, i, index, r, c, text(value, isDouble), rule));
  }

  private static String text(double value, boolean isDouble) {
    return isDouble ? Double.toString(value) : Float.toString((float) value);
  }
}
