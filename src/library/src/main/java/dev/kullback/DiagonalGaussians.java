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
 * A batch of N Gaussians {@code N(μ_i, diag(σ_i²))} of dimension D.
 *
 * <p>Values are copied and checked at construction; the caller's arrays are neither kept nor modified. What the kernels need
 * (packed panels, inverse variances) is made when a batch is used, at its second use to be kept with it, so a batch made once is
 * reused by every call of every engine. Memory: {@code 2·N·D} values for the copy and as many for the panels; where entries of
 * a {@code float} batch need recomputing, {@code 2·N·D} or {@code 3·N·D} doubles and {@code 4·N·D} floats more. {@code (N + 31)·D} is limited to
 * {@code 2²⁹ − 3}, for panels that fit an array: D to 16,777,215.
 *
 * <p>Moments of shape {@code [B, C, H, W]}, as an image VAE gives them, are a batch of B Gaussians of dimension {@code C·H·W}:
 * pass the arrays as they are with {@code dimension = C*H*W}.
 */
public final class DiagonalGaussians implements Gaussians {
  /** Columns of the widest panel; a packed batch must fit a Java array. */
  static final int WIDEST_PANEL = 32;

  /** Four numbers for each dimension of each row, the rows rounded up to whole panels, fit a Java array. */
  private static final int MOST_PACKED = (Integer.MAX_VALUE - 8) / 4;

  static final int MOST_DIMENSIONS = MOST_PACKED / WIDEST_PANEL;

  private static final double HALF_ULP = 0x1p-53;

  /** What checking an element counts at a {@link Checkpoint}, and how many it passes with at least, if there are as many. */
  private static final int CHECKING = 16;

  private static final int ROWS_ELEMENTS = 4096;

  /** e^±700 are normal numbers. */
  private static final double MOST_LOG_VARIANCE = 1400;

  private final int size;
  private final int dimension;
  final Scale kind;

  /** σ = 0 throughout, and the caller asked for KL = 0 then. */
  final boolean deterministic;

  /** Row-major [N, D] as given, after clamping: one pair of the two, by precision. */
  private final float @Nullable [] mean32;

  private final float @Nullable [] scale32;
  private final double @Nullable [] mean64;
  private final double @Nullable [] scale64;

  /** Σ_h ln σ_ih, and a bound on its absolute error. */
  final double[] logDet;

  final double[] logDetBound;

  /** Rows with a variance that the float or the double kernels cannot hold. */
  private final BitSet beyond32 = new BitSet();

  private final BitSet beyond64 = new BitSet();

  /** The kernels' packed forms of this batch. */
  private final Lazy<DiagonalGaussians, Packed<float[]>> columns32 = new Lazy<>();

  private final AtomicBoolean used = new AtomicBoolean();

  private final Lazy<DiagonalGaussians, Packed<double[]>> columns64 = new Lazy<>();
  private final Lazy<DiagonalGaussians, float[]> nearColumns = new Lazy<>();
  private final Lazy<DiagonalGaussians, Packed<float[]>> short32 = new Lazy<>();
  private final Lazy<DiagonalGaussians, double[]> precisions = new Lazy<>();
  private final Lazy<DiagonalGaussians, FullGaussians> full = new Lazy<>();

  private DiagonalGaussians(
      float @Nullable [] mean32,
      float @Nullable [] scale32,
      double @Nullable [] mean64,
      double @Nullable [] scale64,
      int dimension,
      Scale kind,
      ScalePolicy policy) {
    this.mean32 = mean32;
    this.scale32 = scale32;
    this.mean64 = mean64;
    this.scale64 = scale64;
    this.dimension = dimension;
    this.kind = kind;
    size = (mean32 != null ? mean32.length : mean64().length) / dimension;
    if (policy == ScalePolicy.CLAMPED) {
      clamp();
    }
    deterministic = policy == ScalePolicy.DETERMINISTIC_IF_ZERO && isZero();
    logDet = new double[size];
    logDetBound = new double[size];
    double least = kind.bound(PairKl.LEAST32);
    double most = kind.bound(PairKl.MOST32);
    boolean vectors = Backend.hasVectors();
    Checkpoint checkpoint = new Checkpoint();
    int rows = Math.max(1, ROWS_ELEMENTS / dimension);
    for (int first = 0, i = 0; i < size; first += rows) {
      for (; i < size && i - first < rows; i++) {
        check(i, least, most, vectors);
        if (!deterministic) {
          sumLogStd(i, vectors);
        }
      }
      checkpoint.passUninterrupted((long) CHECKING * dimension * rows);
    }
  }

  /**
   * A batch from means and standard deviations σ.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param std row-major {@code [N, D]}, finite and > 0
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with float precision; the arrays are copied
   * @throws IllegalArgumentException naming the array, the Gaussian and the dimension at fault
   */
  public static DiagonalGaussians ofStd(float[] mean, float[] std, int dimension) {
    return of(mean, std, dimension, Scale.STD, ScalePolicy.STRICT);
  }

  /** As {@link #ofStd(float[], float[], int)}, with a policy for scales that it would reject. */
  public static DiagonalGaussians ofStd(
      float[] mean, float[] std, int dimension, ScalePolicy policy) {
    return of(mean, std, dimension, Scale.STD, policy);
  }

  /**
   * A batch from means and standard deviations σ.
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param std row-major {@code [N, D]}, finite and > 0
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with double precision; the arrays are copied
   * @throws IllegalArgumentException naming the array, the Gaussian and the dimension at fault
   */
  public static DiagonalGaussians ofStd(double[] mean, double[] std, int dimension) {
    return of(mean, std, dimension, Scale.STD, ScalePolicy.STRICT);
  }

  /** As {@link #ofStd(double[], double[], int)}, with a policy for scales that it would reject. */
  public static DiagonalGaussians ofStd(
      double[] mean, double[] std, int dimension, ScalePolicy policy) {
    return of(mean, std, dimension, Scale.STD, policy);
  }

  /** As {@link #ofStd(float[], float[], int)}, from segments of native-order {@code float}. */
  public static DiagonalGaussians ofStd(MemorySegment mean, MemorySegment std, int dimension) {
    return of(mean, std, dimension, ValueLayout.JAVA_FLOAT, Scale.STD, ScalePolicy.STRICT);
  }

  /**
   * As {@link #ofStd(float[], float[], int, ScalePolicy)}, from segments.
   *
   * @param element {@link ValueLayout.OfFloat} or {@link ValueLayout.OfDouble}, of either byte order
   */
  public static DiagonalGaussians ofStd(
      MemorySegment mean,
      MemorySegment std,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return of(mean, std, dimension, element, Scale.STD, policy);
  }

  /**
   * A batch from means and variances σ².
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param variance row-major {@code [N, D]}, finite and > 0
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with float precision; the arrays are copied
   * @throws IllegalArgumentException naming the array, the Gaussian and the dimension at fault
   */
  public static DiagonalGaussians ofVariance(float[] mean, float[] variance, int dimension) {
    return of(mean, variance, dimension, Scale.VARIANCE, ScalePolicy.STRICT);
  }

  /** As {@link #ofVariance(float[], float[], int)}, with a policy for scales that it would reject. */
  public static DiagonalGaussians ofVariance(
      float[] mean, float[] variance, int dimension, ScalePolicy policy) {
    return of(mean, variance, dimension, Scale.VARIANCE, policy);
  }

  /**
   * A batch from means and variances σ².
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param variance row-major {@code [N, D]}, finite and > 0
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with double precision; the arrays are copied
   * @throws IllegalArgumentException naming the array, the Gaussian and the dimension at fault
   */
  public static DiagonalGaussians ofVariance(double[] mean, double[] variance, int dimension) {
    return of(mean, variance, dimension, Scale.VARIANCE, ScalePolicy.STRICT);
  }

  /** As {@link #ofVariance(double[], double[], int)}, with a policy for scales that it would reject. */
  public static DiagonalGaussians ofVariance(
      double[] mean, double[] variance, int dimension, ScalePolicy policy) {
    return of(mean, variance, dimension, Scale.VARIANCE, policy);
  }

  /** As {@link #ofVariance(float[], float[], int)}, from segments of native-order {@code float}. */
  public static DiagonalGaussians ofVariance(
      MemorySegment mean, MemorySegment variance, int dimension) {
    return of(
        mean, variance, dimension, ValueLayout.JAVA_FLOAT, Scale.VARIANCE, ScalePolicy.STRICT);
  }

  /**
   * As {@link #ofVariance(float[], float[], int, ScalePolicy)}, from segments.
   *
   * @param element {@link ValueLayout.OfFloat} or {@link ValueLayout.OfDouble}, of either byte order
   */
  public static DiagonalGaussians ofVariance(
      MemorySegment mean,
      MemorySegment variance,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return of(mean, variance, dimension, element, Scale.VARIANCE, policy);
  }

  /**
   * A batch from means and log-variances ln σ².
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param logVariance row-major {@code [N, D]}, finite
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with float precision; the arrays are copied
   * @throws IllegalArgumentException naming the array, the Gaussian and the dimension at fault
   */
  public static DiagonalGaussians ofLogVariance(float[] mean, float[] logVariance, int dimension) {
    return of(mean, logVariance, dimension, Scale.LOG_VARIANCE, ScalePolicy.STRICT);
  }

  /** As {@link #ofLogVariance(float[], float[], int)}, with a policy for scales that it would reject. */
  public static DiagonalGaussians ofLogVariance(
      float[] mean, float[] logVariance, int dimension, ScalePolicy policy) {
    return of(mean, logVariance, dimension, Scale.LOG_VARIANCE, policy);
  }

  /**
   * A batch from means and log-variances ln σ².
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param logVariance row-major {@code [N, D]}, finite
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with double precision; the arrays are copied
   * @throws IllegalArgumentException naming the array, the Gaussian and the dimension at fault
   */
  public static DiagonalGaussians ofLogVariance(
      double[] mean, double[] logVariance, int dimension) {
    return of(mean, logVariance, dimension, Scale.LOG_VARIANCE, ScalePolicy.STRICT);
  }

  /** As {@link #ofLogVariance(double[], double[], int)}, with a policy for scales that it would reject. */
  public static DiagonalGaussians ofLogVariance(
      double[] mean, double[] logVariance, int dimension, ScalePolicy policy) {
    return of(mean, logVariance, dimension, Scale.LOG_VARIANCE, policy);
  }

  /** As {@link #ofLogVariance(float[], float[], int)}, from segments of native-order {@code float}. */
  public static DiagonalGaussians ofLogVariance(
      MemorySegment mean, MemorySegment logVariance, int dimension) {
    return of(
        mean,
        logVariance,
        dimension,
        ValueLayout.JAVA_FLOAT,
        Scale.LOG_VARIANCE,
        ScalePolicy.STRICT);
  }

  /**
   * As {@link #ofLogVariance(float[], float[], int, ScalePolicy)}, from segments.
   *
   * @param element {@link ValueLayout.OfFloat} or {@link ValueLayout.OfDouble}, of either byte order
   */
  public static DiagonalGaussians ofLogVariance(
      MemorySegment mean,
      MemorySegment logVariance,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return of(mean, logVariance, dimension, element, Scale.LOG_VARIANCE, policy);
  }

  /**
   * A batch from means and precisions 1/σ².
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param precision row-major {@code [N, D]}, finite and > 0
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with float precision; the arrays are copied
   * @throws IllegalArgumentException naming the array, the Gaussian and the dimension at fault
   */
  public static DiagonalGaussians ofPrecision(float[] mean, float[] precision, int dimension) {
    return of(mean, precision, dimension, Scale.PRECISION, ScalePolicy.STRICT);
  }

  /** As {@link #ofPrecision(float[], float[], int)}, with a policy for scales that it would reject. */
  public static DiagonalGaussians ofPrecision(
      float[] mean, float[] precision, int dimension, ScalePolicy policy) {
    return of(mean, precision, dimension, Scale.PRECISION, policy);
  }

  /**
   * A batch from means and precisions 1/σ².
   *
   * @param mean row-major {@code [N, D]}, finite
   * @param precision row-major {@code [N, D]}, finite and > 0
   * @param dimension D; N is {@code mean.length / D}
   * @return a new batch with double precision; the arrays are copied
   * @throws IllegalArgumentException naming the array, the Gaussian and the dimension at fault
   */
  public static DiagonalGaussians ofPrecision(double[] mean, double[] precision, int dimension) {
    return of(mean, precision, dimension, Scale.PRECISION, ScalePolicy.STRICT);
  }

  /** As {@link #ofPrecision(double[], double[], int)}, with a policy for scales that it would reject. */
  public static DiagonalGaussians ofPrecision(
      double[] mean, double[] precision, int dimension, ScalePolicy policy) {
    return of(mean, precision, dimension, Scale.PRECISION, policy);
  }

  /** As {@link #ofPrecision(float[], float[], int)}, from segments of native-order {@code float}. */
  public static DiagonalGaussians ofPrecision(
      MemorySegment mean, MemorySegment precision, int dimension) {
    return of(
        mean, precision, dimension, ValueLayout.JAVA_FLOAT, Scale.PRECISION, ScalePolicy.STRICT);
  }

  /**
   * As {@link #ofPrecision(float[], float[], int, ScalePolicy)}, from segments.
   *
   * @param element {@link ValueLayout.OfFloat} or {@link ValueLayout.OfDouble}, of either byte order
   */
  public static DiagonalGaussians ofPrecision(
      MemorySegment mean,
      MemorySegment precision,
      int dimension,
      ValueLayout element,
      ScalePolicy policy) {
    return of(mean, precision, dimension, element, Scale.PRECISION, policy);
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
    return mean32 == null;
  }

  @Override
  public void prepare() {
    used.set(true); // so that calls look for what is kept
    precisions();
    if (!Backend.hasVectors()) {
      return;
    }
    if (!isDouble()) {
      columns32();
      short32();
      nearColumns();
    }
    columns64();
  }

  @Override
  public long memoryBytes() {
    long parameters = (isDouble() ? 2L * Double.BYTES : 2L * Float.BYTES) * size * dimension;
    long rows = 2L * Double.BYTES * size + (beyond32.size() + beyond64.size()) / Byte.SIZE;
    return parameters
        + rows
        + columns32.bytes(c -> (long) Float.BYTES * c.values().length + c.rowBytes())
        + columns64.bytes(c -> (long) Double.BYTES * c.values().length + c.rowBytes())
        + nearColumns.bytes(c -> (long) Float.BYTES * c.length)
        + short32.bytes(Packed::rowBytes)
        + precisions.bytes(r -> (long) Double.BYTES * r.length)
        + full.bytes(FullGaussians::memoryBytes);
  }

  @Override
  public String toString() {
    return "DiagonalGaussians[%d x %d, %s, %s]"
        .formatted(size, dimension, isDouble() ? "double" : "float", kind.argument);
  }

  /** Raw means of a float batch. */
  float[] mean32() {
    return Objects.requireNonNull(mean32);
  }

  float[] scale32() {
    return Objects.requireNonNull(scale32);
  }

  /** Raw means in double; of a float batch a fresh copy. */
  double[] mean64() {
    return mean64 != null ? mean64 : widen(mean32());
  }

  double[] scale64() {
    return scale64 != null ? scale64 : widen(scale32());
  }

  double mean(int index) {
    return mean64 != null ? mean64[index] : mean32()[index];
  }

  double scale(int index) {
    return scale64 != null ? scale64[index] : scale32()[index];
  }

  /** Whether two rows of batches of one kind and precision have equal parameters. */
  boolean isEqual(int i, DiagonalGaussians p, int j) {
    int a = i * dimension;
    int b = j * dimension;
    return mean64 != null
        ? Arrays.equals(mean64(), a, a + dimension, p.mean64(), b, b + dimension)
            && Arrays.equals(scale64(), a, a + dimension, p.scale64(), b, b + dimension)
        : Arrays.equals(mean32(), a, a + dimension, p.mean32(), b, b + dimension)
            && Arrays.equals(scale32(), a, a + dimension, p.scale32(), b, b + dimension);
  }

  Packed<float[]> columns32() {
    return columns32.get(this, FloatKernels::packColumns);
  }

  /** What the epilogue needs of each row for shorter chunks, without panels. */
  Packed<float[]> short32() {
    return short32.get(
        this, g -> g.packed(new float[0], FloatKernels.NR, PairKl.unitShort(), g.beyond32));
  }

  /** Whether nobody asked before: a batch used once need not keep its panels. */
  boolean isFirstUse() {
    return !used.get() && used.compareAndSet(false, true);
  }

  /** As it goes to a device. */
  HostBatch host() {
    int code =
        switch (kind) {
          case STD -> KullbackCuda.KULLBACK_STD();
          case VARIANCE -> KullbackCuda.KULLBACK_VARIANCE();
          case LOG_VARIANCE -> KullbackCuda.KULLBACK_LOG_VARIANCE();
          case PRECISION -> KullbackCuda.KULLBACK_PRECISION();
        };
    boolean wide = mean64 != null;
    return new HostBatch(
        this,
        size,
        dimension,
        code,
        wide,
        wide ? MemorySegment.ofArray(mean64()) : MemorySegment.ofArray(mean32()),
        wide ? MemorySegment.ofArray(scale64()) : MemorySegment.ofArray(scale32()),
        null);
  }

  /**
   * Checks that double holds σ, as a pair with a full covariance needs.
   *
   * @param role the batch's name in the message
   */
  void checkStd(String role) {
    if (kind != Scale.LOG_VARIANCE) {
      return;
    }
    for (int i = beyond64.nextSetBit(0); i >= 0; i = beyond64.nextSetBit(i + 1)) {
      for (int h = 0; h < dimension; h++) {
        double s = scale(i * dimension + h);
        if (Math.abs(s) > MOST_LOG_VARIANCE) {
          throw new IllegalArgumentException(
              "%s[%d] (Gaussian %2$d, dimension %d) has log-variance %s; with a full covariance it must be in [-%s, %5$s]"
                  .formatted(role, i, h, s, MOST_LOG_VARIANCE));
        }
      }
    }
  }

  Packed<double[]> columns64() {
    return columns64.get(this, DoubleKernels::packColumns);
  }

  float[] nearColumns() {
    return nearColumns.get(this, NearKernel::packColumns);
  }

  /** 1/σ² in double, row-major [N, D]. */
  double[] precisions() {
    return precisions.get(this, DiagonalGaussians::toPrecisions);
  }

  /** The same Gaussians as a batch of diagonal factors. */
  FullGaussians full() {
    return full.get(this, FullGaussians::expanded);
  }

  private double[] toPrecisions() {
    double[] r = new double[size * dimension];
    Checkpoint checkpoint = new Checkpoint();
    for (int i = 0; i < r.length; ) {
      for (int end = (int) Math.min((long) i + ROWS_ELEMENTS, r.length); i < end; i++) {
        r[i] = kind == Scale.PRECISION ? scale(i) : 1 / kind.variance(scale(i));
      }
      checkpoint.pass((long) CHECKING * ROWS_ELEMENTS);
    }
    return r;
  }

  Packed<float[]> packed32(float[] values, int width) {
    return packed(values, width, PairKl.unit32(), beyond32);
  }

  Packed<double[]> packed64(double[] values, int width) {
    return packed(values, width, PairKl.unit64(dimension), beyond64);
  }

  /** Adds to the values in panels what the epilogue needs of each row, padded to whole panels. */
  private <A> Packed<A> packed(A values, int width, double unit, BitSet beyond) {
    int padded = Math.ceilDiv(size, width) * width;
    double[] offsetQ = new double[padded];
    double[] offsetP = new double[padded];
    double[] noiseQ = new double[padded];
    double[] noiseP = new double[padded];
    for (int i = 0; i < size; i++) {
      offsetQ[i] = offsetQ(i);
      offsetP[i] = offsetP(i);
      noiseQ[i] = noiseQ(i, unit);
      noiseP[i] = noiseP(i, unit);
    }
    beyond.stream()
        .forEach(i -> {
          offsetQ[i] = Double.NaN;
          offsetP[i] = Double.NaN;
        });
    return new Packed<>(values, offsetQ, offsetP, noiseQ, noiseP);
  }

  /** What row i as q adds to ½(S + D), and as p: together Σ ln σp − Σ ln σq − D/2. */
  double offsetQ(int i) {
    return -logDet[i];
  }

  double offsetP(int i) {
    return logDet[i] - 0.5 * dimension;
  }

  /**
   * What row i adds to the error bound of {@link PairKl#isCertain}: {@code unit·½(S + D)} and those of the log-determinants are {@code
   * unit·KL + noiseQ + noiseP}.
   */
  double noiseQ(int i, double unit) {
    return logDetBound[i] + unit * (0.5 * dimension + logDet[i]);
  }

  double noiseP(int i, double unit) {
    return logDetBound[i] - unit * logDet[i];
  }

  boolean isBeyond64(int row) {
    return beyond64.get(row);
  }

  private static double[] widen(float[] values) {
    double[] wide = new double[values.length];
    for (int i = 0; i < wide.length; i++) {
      wide[i] = values[i];
    }
    return wide;
  }

  static DiagonalGaussians of(
      float[] mean, float[] scale, int dimension, Scale kind, ScalePolicy policy) {
    Objects.requireNonNull(mean, "mean");
    Objects.requireNonNull(scale, kind.argument);
    checkShape(mean.length, scale.length, dimension, kind, policy);
    return new DiagonalGaussians(mean.clone(), scale.clone(), null, null, dimension, kind, policy);
  }

  static DiagonalGaussians of(
      double[] mean, double[] scale, int dimension, Scale kind, ScalePolicy policy) {
    Objects.requireNonNull(mean, "mean");
    Objects.requireNonNull(scale, kind.argument);
    checkShape(mean.length, scale.length, dimension, kind, policy);
    return new DiagonalGaussians(null, null, mean.clone(), scale.clone(), dimension, kind, policy);
  }

  private static DiagonalGaussians of(
      MemorySegment mean,
      MemorySegment scale,
      int dimension,
      ValueLayout element,
      Scale kind,
      ScalePolicy policy) {
    long meanLength = elements(mean, element, "mean");
    long scaleLength = elements(scale, element, kind.argument);
    checkShape(meanLength, scaleLength, dimension, kind, policy);
    int n = (int) meanLength;
    return switch (element) {
      case ValueLayout.OfFloat f ->
          new DiagonalGaussians(
              copy(mean, f, new float[n]),
              copy(scale, f, new float[n]),
              null,
              null,
              dimension,
              kind,
              policy);
      case ValueLayout.OfDouble d ->
          new DiagonalGaussians(
              null,
              null,
              copy(mean, d, new double[n]),
              copy(scale, d, new double[n]),
              dimension,
              kind,
              policy);
      default ->
          throw new IllegalArgumentException(
              "element layout must be float or double, is " + element);
    };
  }

  private static float[] copy(MemorySegment from, ValueLayout.OfFloat layout, float[] to) {
    MemorySegment.copy(from, layout.withByteAlignment(1), 0, to, 0, to.length);
    return to;
  }

  private static double[] copy(MemorySegment from, ValueLayout.OfDouble layout, double[] to) {
    MemorySegment.copy(from, layout.withByteAlignment(1), 0, to, 0, to.length);
    return to;
  }

  /** Throws where this thread cannot read or write a segment. */
  static void checkAccessible(MemorySegment segment, String name) {
    if (!segment.scope().isAlive()) {
      throw new IllegalStateException(name + " belongs to a closed arena");
    }
    if (!segment.isAccessibleBy(Thread.currentThread())) {
      throw new WrongThreadException(
          name + " is confined to another thread; call from that one, or take a shared arena");
    }
  }

  /** How many elements a segment holds, which can be read. */
  static long elements(MemorySegment segment, ValueLayout element, String name) {
    Objects.requireNonNull(segment, name);
    Objects.requireNonNull(element, "element");
    checkAccessible(segment, name);
    long width = element.byteSize();
    if (segment.byteSize() % width != 0) {
      throw new IllegalArgumentException(
          "%s has %d bytes, not a multiple of the element size %d"
              .formatted(name, segment.byteSize(), width));
    }
    return segment.byteSize() / width;
  }

  private static void checkShape(
      long meanLength, long scaleLength, int dimension, Scale kind, ScalePolicy policy) {
    Objects.requireNonNull(policy, "policy");
    if (dimension < 1) {
      throw new IllegalArgumentException("dimension must be at least 1, is " + dimension);
    }
    if (meanLength != scaleLength) {
      throw new IllegalArgumentException(
          "mean has %d elements but %s has %d; both must be [N, %d]"
              .formatted(meanLength, kind.argument, scaleLength, dimension));
    }
    if (meanLength == 0 || meanLength % dimension != 0) {
      throw new IllegalArgumentException(
          "mean and %s have %d elements, which is not a positive multiple of the dimension %d"
              .formatted(kind.argument, meanLength, dimension));
    }
    checkSize(meanLength / dimension, dimension, MOST_DIMENSIONS, mostRows(dimension));
  }

  /** N of the largest batch; not positive where there is none. */
  static int mostRows(int dimension) {
    return MOST_PACKED / dimension - (WIDEST_PANEL - 1);
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

  private void clamp() {
    if (scale32 != null) {
      for (int i = 0; i < scale32.length; i++) {
        scale32[i] = (float) kind.clamp(scale32[i]);
      }
    } else {
      double[] s = scale64();
      for (int i = 0; i < s.length; i++) {
        s[i] = kind.clamp(s[i]);
      }
    }
  }

  private boolean isZero() {
    if (kind != Scale.STD && kind != Scale.VARIANCE) {
      return false;
    }
    for (int i = 0; i < size * dimension; i++) {
      if (scale(i) != 0) {
        return false;
      }
    }
    return true;
  }

  /** Rejects a row that is not finite or not positive, and notes one that a kernel's precision cannot hold. */
  private void check(int row, double least, double most, boolean quick) {
    int from = row * dimension;
    int to = from + dimension;
    if (!quick || !isFinite(from, to)) {
      checkMean(from, to);
    }
    if (!deterministic && (!quick || !isOrdinary(from, to, least, most))) {
      checkScale(row, from, to);
    }
  }

  // Two quick screens; what does not pass is looked at value by value.

  private boolean isFinite(int from, int to) {
    return mean32 != null
        ? FloatKernels.within(mean32, from, to, -Float.MAX_VALUE, Float.MAX_VALUE)
        : DoubleKernels.within(mean64(), from, to, -Double.MAX_VALUE, Double.MAX_VALUE);
  }

  /** Whether the scales are valid and such as the float kernels hold. */
  private boolean isOrdinary(int from, int to, double least, double most) {
    return scale32 != null
        ? FloatKernels.within(scale32, from, to, (float) least, (float) most)
        : DoubleKernels.within(scale64(), from, to, least, most);
  }

  private void checkMean(int from, int to) {
    for (int k = from; k < to; k++) {
      if (!(Math.abs(mean(k)) <= Double.MAX_VALUE)) {
        throw rejected("mean", k, mean(k), "it must be finite");
      }
    }
  }

  private void checkScale(int row, int from, int to) {
    boolean log = kind == Scale.LOG_VARIANCE;
    double valid = log ? -Double.MAX_VALUE : Double.MIN_VALUE;
    double least = Double.MAX_VALUE;
    double most = -Double.MAX_VALUE;
    for (int k = from; k < to; k++) {
      double s = scale(k);
      if (!(s >= valid && s <= Double.MAX_VALUE)) {
        throw rejected(
            kind.argument,
            k,
            s,
            log ? "it must be finite" : "it must be finite and > 0" + remedy(s));
      }
      least = Math.min(least, s);
      most = Math.max(most, s);
    }
    if (least < kind.bound(PairKl.LEAST32) || most > kind.bound(PairKl.MOST32)) {
      beyond32.set(row);
    }
    if (least < kind.bound(PairKl.LEAST64) || most > kind.bound(PairKl.MOST64)) {
      beyond64.set(row);
    }
  }

  private String remedy(double s) {
    if (s < 0 && s >= -Double.MAX_VALUE) {
      return "; are these log-variances (ofLogVariance)?";
    }
    return s == 0 && kind != Scale.PRECISION ? " (ScalePolicy.CLAMPED raises small ones)" : "";
  }

  private IllegalArgumentException rejected(String array, int index, double value, String rule) {
    return new IllegalArgumentException(
        "%s[%d][%d] (Gaussian %2$d, dimension %3$d) is %s; %s"
            .formatted(
                array,
                index / dimension,
                index % dimension,
                isDouble() ? Double.toString(value) : Float.toString((float) value),
                rule));
  }

  /**
   * Sets {@link #logDet}, by one logarithm of the product; for log-variances by their compensated sum.
   */
  private void sumLogStd(int row, boolean vectors) {
    int from = row * dimension;
    int to = from + dimension;
    if (kind == Scale.LOG_VARIANCE) {
      double sum = 0;
      double errors = 0;
      for (int h = from; h < to; h++) {
        double x = scale(h);
        double t = sum + x;
        errors += Compensation.error(sum, x, t);
        sum = t;
      }
      logDet[row] = 0.5 * (sum + errors);
      logDetBound[row] = HALF_ULP * 2 * Math.abs(logDet[row]);
      return;
    }
    double log =
        scale32 != null
            ? LogProduct.of(scale32, from, to, vectors)
            : LogProduct.of(scale64(), from, to);
    double factor = kind == Scale.STD ? 1 : kind == Scale.VARIANCE ? 0.5 : -0.5;
    logDet[row] = factor * log;
    logDetBound[row] = HALF_ULP * (dimension + 16 + 4 * Math.abs(logDet[row]));
  }
}
