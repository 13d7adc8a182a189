package dev.kullback.internal.batch;

import dev.kullback.internal.numerics.Compensation;
import dev.kullback.internal.numerics.LogProduct;
import dev.kullback.internal.numerics.Range;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** N Gaussians {@code N(μ_i, diag(σ_i²))} of dimension D. */
public final class DiagonalBatch extends Batch {
  /** Variances that float kernels take; r = 1/v and d²·r then lose nothing to under- or overflow that matters. */
  private static final double LEAST32 = 0x1p-100;

  private static final double MOST32 = 0x1p100;

  /** Variances that double kernels take. */
  private static final double LEAST64 = 0x1p-500;

  private static final double MOST64 = 0x1p500;

  /** Four numbers for each dimension of each row, the rows rounded up to whole panels, fit a Java array. */
  private static final int MOST_PACKED = (Integer.MAX_VALUE - 8) / 4;

  public static final int MOST_DIMENSIONS = MOST_PACKED / WIDEST_PANEL;

  private static final double HALF_ULP = 0x1p-53;

  /** What checking an element counts at a {@link Checkpoint}, and how many it passes with at least, if there are as many. */
  private static final int CHECKING = 16;

  private static final int ROWS_ELEMENTS = 4096;

  /** e^±700 are normal numbers. */
  private static final double MOST_LOG_VARIANCE = 1400;

  /** Doubles up to which a diagonal batch is worth an expansion to full factors, 128 MiB. */
  private static final long MOST_EXPANDED = 1 << 24;

  private static final DerivedForm<DiagonalBatch, FullBatch> FULL =
      new DerivedForm<>(FullBatch::expanded, FullBatch::memoryBytes);

  private final Scale kind;
  private final boolean deterministic;

  /** Row-major [N, D] as given, after clamping: one pair of the two, by precision. */
  private final float @Nullable [] mean32;

  private final float @Nullable [] scale32;
  private final double @Nullable [] mean64;
  private final double @Nullable [] scale64;

  /** Σ_h ln σ_ih, and a bound on its absolute error. */
  private final double[] logDet;

  private final double[] logDetBound;

  /** Rows with a variance that the float or the double kernels cannot hold. */
  private final BitSet beyond32 = new BitSet();

  private final BitSet beyond64 = new BitSet();

  /** Not under a key: looking it up for every pair took a third of the time of aligned, D = 3 (Zen 3). */
  private final Lazy<DiagonalBatch, double[]> precisions = new Lazy<>();

  /** How many rows' precisions were computed one by one, about: threads may lose some. */
  private int computed;

  private DiagonalBatch(Elements mean, Elements scale, int dimension, Scale kind, Zeros zeros) {
    super((int) (mean.length() / dimension), dimension, mean.isDouble());
    mean32 = isDouble() ? null : mean.floats();
    scale32 = isDouble() ? null : scale.floats();
    mean64 = isDouble() ? mean.doubles() : null;
    scale64 = isDouble() ? scale.doubles() : null;
    this.kind = kind;
    if (zeros == Zeros.CLAMPED) {
      clamp();
    }
    deterministic = zeros == Zeros.DETERMINISTIC && isZero();
    logDet = new double[size()];
    logDetBound = new double[size()];
    double least = kind.bound(LEAST32);
    double most = kind.bound(MOST32);
    Checkpoint checkpoint =
        new Checkpoint(); // one thread: 0.6 of the time is the copies' (1024 x 256, 100,000 x 64;
    // Zen 3)
    int rows = Math.max(1, ROWS_ELEMENTS / dimension);
    for (int first = 0, i = 0; i < size(); first += rows) {
      int end = Math.min(size(), first + rows);
      boolean passed = passes(i * dimension, end * dimension, least, most);
      for (; i < end; i++) {
        boolean ordinary = passed || check(i, least, most);
        if (!deterministic) {
          sumLogStd(i, ordinary);
        }
      }
      checkpoint.passUninterrupted((long) CHECKING * dimension * rows);
    }
  }

  /** What becomes of scales outside (0, ∞). */
  public enum Zeros {
    REJECTED,
    CLAMPED,
    /** Scales of 0 throughout make a deterministic batch; others are rejected. */
    DETERMINISTIC
  }

  /**
   * A batch from means and scales, both copied unless they are owned.
   *
   * @throws IllegalArgumentException naming the array, the Gaussian and the dimension at fault
   */
  public static DiagonalBatch of(
      Elements mean, Elements scale, int dimension, Scale kind, Zeros zeros) {
    checkShape(mean.length(), scale.length(), dimension, kind);
    return new DiagonalBatch(mean, scale, dimension, kind, zeros);
  }

  /** How the scales are stated. */
  public Scale kind() {
    return kind;
  }

  @Override
  public boolean isDeterministic() {
    return deterministic;
  }

  @Override
  public double logDet(int i) {
    return logDet[i];
  }

  /** A bound on the absolute error of {@link #logDet}. */
  public double logDetBound(int i) {
    return logDetBound[i];
  }

  /** Raw means of a float batch. */
  public float[] mean32() {
    return Objects.requireNonNull(mean32);
  }

  public float[] scale32() {
    return Objects.requireNonNull(scale32);
  }

  /** Raw means in double; of a float batch a fresh copy. */
  public double[] mean64() {
    return mean64 != null ? mean64 : widen(mean32());
  }

  public double[] scale64() {
    return scale64 != null ? scale64 : widen(scale32());
  }

  public double mean(int index) {
    return mean64 != null ? mean64[index] : mean32()[index];
  }

  public double scale(int index) {
    return scale64 != null ? scale64[index] : scale32()[index];
  }

  /** Reads n elements from an index on to the start of two arrays. */
  public void read(int from, int n, double[] means, double[] scales) {
    if (mean64 != null) {
      System.arraycopy(mean64, from, means, 0, n);
      System.arraycopy(scale64(), from, scales, 0, n);
      return;
    }
    float[] mean = mean32();
    float[] scale = scale32();
    for (int k = 0; k < n; k++) {
      means[k] = mean[from + k];
    }
    for (int k = 0; k < n; k++) {
      scales[k] = scale[from + k];
    }
  }

  /** Rows with a variance that the float kernels cannot hold; not to be changed. */
  public BitSet beyond32() {
    return beyond32;
  }

  /** Rows with a variance that the double kernels cannot hold; not to be changed. */
  public BitSet beyond64() {
    return beyond64;
  }

  public boolean isBeyond64(int row) {
    return beyond64.get(row);
  }

  /** Whether two rows of batches of one kind and precision have equal parameters. */
  public boolean isEqual(int i, DiagonalBatch p, int j) {
    int dimension = dimension();
    int a = i * dimension;
    int b = j * dimension;
    return mean64 != null
        ? Arrays.equals(mean64(), a, a + dimension, p.mean64(), b, b + dimension)
            && Arrays.equals(scale64(), a, a + dimension, p.scale64(), b, b + dimension)
        : Arrays.equals(mean32(), a, a + dimension, p.mean32(), b, b + dimension)
            && Arrays.equals(scale32(), a, a + dimension, p.scale32(), b, b + dimension);
  }

  /** 1/σ² in double, row-major [N, D]. */
  public double[] precisions() {
    return precisions.get(this, DiagonalBatch::toPrecisions);
  }

  /** One of {@link #precisions}, computed. */
  public double precision(int index) {
    return kind == Scale.PRECISION ? scale(index) : 1 / kind.variance(scale(index));
  }

  /**
   * {@link #precisions} for a pair, or null where they have not been made nor so many rows computed that making them costs no more: most
   * searches need those of few pairs, and they take as much memory as a float batch's values.
   */
  public double @Nullable [] precisionsOfPair() {
    double[] made = precisions.made();
    return made != null || computed++ < size() ? made : precisions();
  }

  @Override
  public boolean isExpandable() {
    return (long) size() * dimension() * (dimension() + 3) / 2 <= MOST_EXPANDED;
  }

  @Override
  public FullBatch full() {
    return FULL.of(this);
  }

  @Override
  public void prepare() {
    super.prepare();
    precisions();
  }

  @Override
  long valueBytes() {
    long values = (isDouble() ? 2L * Double.BYTES : 2L * Float.BYTES) * size() * dimension();
    long rows = 2L * Double.BYTES * size() + (beyond32.size() + beyond64.size()) / Byte.SIZE;
    return values + rows + precisions.bytes(r -> (long) Double.BYTES * r.length);
  }

  /**
   * Checks that double holds σ, as a pair with a full covariance needs.
   *
   * @param role the batch's name in the message
   */
  public void checkStd(String role) {
    if (kind != Scale.LOG_VARIANCE) {
      return;
    }
    for (int i = beyond64.nextSetBit(0); i >= 0; i = beyond64.nextSetBit(i + 1)) {
      for (int h = 0; h < dimension(); h++) {
        double s = scale(i * dimension() + h);
        if (Math.abs(s) > MOST_LOG_VARIANCE) {
          throw new IllegalArgumentException(
              "%s[%d] (Gaussian %2$d, dimension %d) has log-variance %s; with a full covariance it must be in [-%s, %5$s]"
                  .formatted(role, i, h, s, MOST_LOG_VARIANCE));
        }
      }
    }
  }

  private double[] toPrecisions() {
    double[] r = new double[size() * dimension()];
    Checkpoint checkpoint = new Checkpoint();
    for (int i = 0; i < r.length; ) {
      for (int end = (int) Math.min((long) i + ROWS_ELEMENTS, r.length); i < end; i++) {
        r[i] = precision(i);
      }
      checkpoint.pass((long) CHECKING * ROWS_ELEMENTS);
    }
    return r;
  }

  private static double[] widen(float[] values) {
    double[] wide = new double[values.length];
    for (int i = 0; i < wide.length; i++) {
      wide[i] = values[i];
    }
    return wide;
  }

  private static void checkShape(long meanLength, long scaleLength, int dimension, Scale kind) {
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
  public static int mostRows(int dimension) {
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
    for (int i = 0; i < size() * dimension(); i++) {
      if (scale(i) != 0) {
        return false;
      }
    }
    return true;
  }

  /**
   * Rejects a row that is not finite or not positive, and notes one that a kernel's precision cannot hold; whether its scales are ordinary.
   */
  private boolean check(int row, double least, double most) {
    int from = row * dimension();
    int to = from + dimension();
    if (!isFinite(from, to)) {
      checkMean(from, to);
    }
    boolean ordinary = isOrdinary(from, to, least, most);
    if (!deterministic && !ordinary) {
      checkScale(row, from, to);
    }
    return ordinary;
  }

  // Quick screens, of several rows and then of one; what does not pass is looked at value by value.

  private boolean passes(int from, int to, double least, double most) {
    return isFinite(from, to) && (deterministic || isOrdinary(from, to, least, most));
  }

  private boolean isFinite(int from, int to) {
    return mean32 != null
        ? Range.contains(-Float.MAX_VALUE, Float.MAX_VALUE, mean32, from, to)
        : Range.contains(-Double.MAX_VALUE, Double.MAX_VALUE, mean64(), from, to);
  }

  /** Whether the scales are valid and such as the float kernels hold. */
  private boolean isOrdinary(int from, int to, double least, double most) {
    return scale32 != null
        ? Range.contains(least, most, scale32, from, to)
        : Range.contains(least, most, scale64(), from, to);
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
    if (least < kind.bound(LEAST32) || most > kind.bound(MOST32)) {
      beyond32.set(row);
    }
    if (least < kind.bound(LEAST64) || most > kind.bound(MOST64)) {
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
                index / dimension(),
                index % dimension(),
                isDouble() ? Double.toString(value) : Float.toString((float) value),
                rule));
  }

  /**
   * Sets {@link #logDet}, by one logarithm of the product; for log-variances by their compensated sum.
   *
   * @param ordinary whether the row's scales are: not its neighbours', for its bits are its own
   */
  private void sumLogStd(int row, boolean ordinary) {
    int from = row * dimension();
    int to = from + dimension();
    if (kind == Scale.LOG_VARIANCE) {
      logDet[row] = 0.5 * sumScales(from, to);
      logDetBound[row] = HALF_ULP * 2 * Math.abs(logDet[row]);
      return;
    }
    double log =
        scale32 != null
            ? logProduct(scale32, from, to, ordinary)
            : logProduct(scale64(), from, to, ordinary);
    double factor = kind == Scale.STD ? 1 : kind == Scale.VARIANCE ? 0.5 : -0.5;
    logDet[row] = factor * log;
    logDetBound[row] = HALF_ULP * (dimension() + 16 + 4 * Math.abs(logDet[row]));
  }

  private double sumScales(int from, int to) {
    double sum = 0;
    double errors = 0;
    for (int h = from; h < to; h++) {
      double x = scale(h);
      double t = sum + x;
      errors += Compensation.error(sum, x, t);
      sum = t;
    }
    return sum + errors;
  }

  private static double logProduct(float[] s, int from, int to, boolean ordinary) {
    return ordinary ? LogProduct.ofOrdinary(s, from, to) : LogProduct.of(s, from, to);
  }

  private static double logProduct(double[] s, int from, int to, boolean ordinary) {
    return ordinary ? LogProduct.ofOrdinary(s, from, to) : LogProduct.of(s, from, to);
  }
}
