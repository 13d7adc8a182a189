package dev.kullback;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Objects;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A batch of N Gaussians {@code N(μ_i, diag(σ_i²))} of dimension D.
 *
 * <p>Values are copied and checked at construction; the caller's arrays are neither kept nor modified. What the kernels need
 * (packed panels, inverse variances) is made at the first use of the batch as {@code q} or {@code p} and kept with it, so a
 * batch made once is reused by every call of every engine. Memory: {@code 2·N·D} values for the copy, {@code 3·N·D} more after
 * use as {@code p} and {@code 5·N·D} after use as {@code q}; where entries of a {@code float} batch need recomputing, its {@code
 * double} twins of those and {@code 4·N·D} floats. {@code N·D} is limited to about 5·10⁸.
 *
 * <p>Moments of shape {@code [B, C, H, W]}, as an image VAE gives them, are a batch of B Gaussians of dimension {@code C·H·W}:
 * pass the arrays as they are with {@code dimension = C*H*W}.
 */
public final class DiagonalGaussians implements Gaussians {
  /** Columns of the widest panel; a packed batch must fit a Java array. */
  static final int WIDEST_PANEL = 32;

  private static final double LN2 = 0.6931471805599453;
  private static final double HALF_ULP = 0x1p-53;

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
  private final Lazy<Packed<float[]>> rows32 = new Lazy<>();

  private final Lazy<Packed<float[]>> columns32 = new Lazy<>();
  private final Lazy<Packed<double[]>> rows64 = new Lazy<>();
  private final Lazy<Packed<double[]>> columns64 = new Lazy<>();
  private final Lazy<float[]> nearColumns = new Lazy<>();
  private final Lazy<double[]> variances = new Lazy<>();

  /** A value made at most once, by the first thread that needs it. */
  private static final class Lazy<T> {
    private volatile @Nullable T value;

    T get(DiagonalGaussians batch, Function<DiagonalGaussians, T> make) {
      T v = value;
      return v != null ? v : make(batch, make);
    }

    private synchronized T make(DiagonalGaussians batch, Function<DiagonalGaussians, T> make) {
      T v = value;
      if (v == null) {
        v = make.apply(batch);
        value = v;
      }
      return v;
    }
  }

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
    check();
    logDet = new double[size];
    logDetBound = new double[size];
    for (int i = 0; i < size && !deterministic; i++) {
      sumLogStd(i);
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

  Packed<float[]> rows32() {
    return rows32.get(this, FloatKernels::packRows);
  }

  Packed<float[]> columns32() {
    return columns32.get(this, FloatKernels::packColumns);
  }

  Packed<double[]> rows64() {
    return rows64.get(this, DoubleKernels::packRows);
  }

  Packed<double[]> columns64() {
    return columns64.get(this, DoubleKernels::packColumns);
  }

  float[] nearColumns() {
    return nearColumns.get(this, NearKernel::packColumns);
  }

  /** σ² in double, row-major [N, D]. */
  double[] variances() {
    return variances.get(this, DiagonalGaussians::toVariances);
  }

  private double[] toVariances() {
    double[] v = new double[size * dimension];
    for (int i = 0; i < v.length; i++) {
      v[i] = kind.variance(scale(i));
    }
    return v;
  }

  /** {@link #logDet}, padded to a multiple of the panel width; NaN for rows that float kernels cannot hold. */
  double[] paddedLogDet32(int width) {
    return paddedLogDet(width, beyond32);
  }

  double[] paddedLogDet64(int width) {
    return paddedLogDet(width, beyond64);
  }

  private double[] paddedLogDet(int width, BitSet beyond) {
    double[] padded = Arrays.copyOf(logDet, Math.ceilDiv(size, width) * width);
    beyond.stream().forEach(i -> padded[i] = Double.NaN);
    return padded;
  }

  double[] paddedLogDetBound(int width) {
    return Arrays.copyOf(logDetBound, Math.ceilDiv(size, width) * width);
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

  private static DiagonalGaussians of(
      float[] mean, float[] scale, int dimension, Scale kind, ScalePolicy policy) {
    checkShape(mean.length, scale.length, dimension, kind, policy);
    return new DiagonalGaussians(mean.clone(), scale.clone(), null, null, dimension, kind, policy);
  }

  private static DiagonalGaussians of(
      double[] mean, double[] scale, int dimension, Scale kind, ScalePolicy policy) {
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

  private static long elements(MemorySegment segment, ValueLayout element, String name) {
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
    long packed = 4 * (meanLength + (long) (WIDEST_PANEL - 1) * dimension);
    if (packed > Integer.MAX_VALUE - 8) {
      throw new IllegalArgumentException(
          "mean has %d elements, too many for one batch of dimension %d; split it by rows"
              .formatted(meanLength, dimension));
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

  /** Rejects what is not finite or not positive, and notes the rows that a kernel's precision cannot hold. */
  private void check() {
    boolean vectors = Backend.hasVectors();
    for (int i = 0; i < size; i++) {
      int from = i * dimension;
      int to = from + dimension;
      if (!vectors || !isFinite(from, to)) {
        checkMean(from, to);
      }
      if (!deterministic && (!vectors || !isOrdinary(from, to))) {
        checkScale(i, from, to);
      }
    }
  }

  // Two quick screens; what does not pass is looked at value by value.

  private boolean isFinite(int from, int to) {
    return mean32 != null
        ? FloatKernels.within(mean32, from, to, -Float.MAX_VALUE, Float.MAX_VALUE)
        : DoubleKernels.within(mean64(), from, to, -Double.MAX_VALUE, Double.MAX_VALUE);
  }

  private boolean isOrdinary(int from, int to) {
    return scale32 != null
        ? FloatKernels.within(
            scale32,
            from,
            to,
            (float) kind.bound(PairKl.LEAST32),
            (float) kind.bound(PairKl.MOST32))
        : DoubleKernels.within(
            scale64(), from, to, kind.bound(PairKl.LEAST32), kind.bound(PairKl.MOST32));
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
            log
                ? "it must be finite"
                : "it must be finite and > 0 (ScalePolicy.CLAMPED raises small ones)");
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
   * Sets {@link #logDet}: ln Π s over mantissas with the exponents summed apart, so one logarithm a row; for log-variances
   * their compensated sum.
   */
  private void sumLogStd(int row) {
    int from = row * dimension;
    int to = from + dimension;
    if (kind == Scale.LOG_VARIANCE) {
      double sum = 0;
      double rest = 0;
      for (int h = from; h < to; h++) { // Neumaier's compensated sum
        double x = scale(h);
        double t = sum + x;
        rest += Math.abs(sum) >= Math.abs(x) ? (sum - t) + x : (x - t) + sum;
        sum = t;
      }
      logDet[row] = 0.5 * (sum + rest);
      logDetBound[row] = HALF_ULP * 2 * Math.abs(logDet[row]);
      return;
    }
    double log = scale32 != null ? logProduct(scale32, from, to) : logProduct(scale64(), from, to);
    double factor = kind == Scale.STD ? 1 : kind == Scale.VARIANCE ? 0.5 : -0.5;
    logDet[row] = factor * log;
    logDetBound[row] = HALF_ULP * (dimension + 16 + 4 * Math.abs(logDet[row]));
  }

  private static double logProduct(float[] s, int from, int to) {
    double a = 1;
    double b = 1;
    double c = 1;
    double d = 1;
    long exponent = 0;
    int h = from;
    for (;
        h + 16 <= to;
        h += 16) { // four chains; four float factors and a mantissa stay within double's range
      a *= (double) s[h] * s[h + 1] * ((double) s[h + 2] * s[h + 3]);
      b *= (double) s[h + 4] * s[h + 5] * ((double) s[h + 6] * s[h + 7]);
      c *= (double) s[h + 8] * s[h + 9] * ((double) s[h + 10] * s[h + 11]);
      d *= (double) s[h + 12] * s[h + 13] * ((double) s[h + 14] * s[h + 15]);
      exponent +=
          Math.getExponent(a) + Math.getExponent(b) + Math.getExponent(c) + Math.getExponent(d);
      a = mantissa(a);
      b = mantissa(b);
      c = mantissa(c);
      d = mantissa(d);
    }
    for (; h < to; h++) {
      a *= s[h];
      exponent += Math.getExponent(a);
      a = mantissa(a);
    }
    return Math.log(a * b * (c * d)) + exponent * LN2;
  }

  private static double logProduct(double[] s, int from, int to) {
    double product = 1;
    long exponent = 0;
    for (int h = from; h < to; h++) {
      double x = s[h];
      if (x < Double.MIN_NORMAL) {
        x *= 0x1p54;
        exponent -= 54;
      }
      exponent += Math.getExponent(x);
      product *= mantissa(x);
      exponent += Math.getExponent(product);
      product = mantissa(product);
    }
    return Math.log(product) + exponent * LN2;
  }

  private static double mantissa(double x) {
    return Double.longBitsToDouble(
        (Double.doubleToRawLongBits(x) & 0x000F_FFFF_FFFF_FFFFL) | 0x3FF0_0000_0000_0000L);
  }
}
