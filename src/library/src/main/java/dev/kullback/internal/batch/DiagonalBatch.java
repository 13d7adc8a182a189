package dev.kullback.internal.batch;

import dev.kullback.InvalidGaussianException;
import dev.kullback.ScalePolicy;
import dev.kullback.internal.api.Constructors;
import dev.kullback.internal.numerics.Compensation;
import dev.kullback.internal.numerics.DoubleEquality;
import dev.kullback.internal.numerics.DoubleLogProduct;
import dev.kullback.internal.numerics.DoubleRange;
import dev.kullback.internal.numerics.FloatEquality;
import dev.kullback.internal.numerics.FloatLogProduct;
import dev.kullback.internal.numerics.RangeCheck;
import dev.kullback.internal.numerics.Scale;
import dev.kullback.internal.numerics.Variance;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Objects;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** N Gaussians {@code N(μ_i, diag(σ_i²))} of dimension D, checked when they are made. */
public final class DiagonalBatch extends Batch {
  /** Variances up to which, and down to whose inverse, float kernels compute 1/v and d²/v with no over- or underflow that matters. */
  private static final double MOST32 = 0x1p100;

  /** Bound for double kernels, otherwise as the one before. */
  private static final double MOST64 = 0x1p500;

  /** Numbers that fit a Java array, by fours: a packed batch has four for each dimension of each row, rounded up to panels. */
  private static final int MOST_PACKED = MOST_ELEMENTS / 4;

  public static final int MOST_DIMENSIONS = MOST_PACKED / WIDEST_PANEL;

  /** Elements between two checkpoints, about. */
  private static final int ELEMENTS = 4096;

  /**
   * Kernels' entries for each of which one may be computed by itself without forms that serve such: that takes up to 500 times as long (D =
   * 64), so an eighth of the time at most.
   */
  public static final int SHARE = 4096;

  /** Entries that are computed one by one however few rows there are. */
  private static final int LEAST_ENTRIES = 64;

  /** Log-variances up to which σ is a normal number, e^±700. */
  private static final double MOST_LOG_VARIANCE = 1400;

  /** Doubles up to which writing out a diagonal batch as full factors pays, 128 MiB. */
  private static final long MOST_EXPANDED = 1 << 24;

  /** How messages name the array of points. */
  private static final String POINTS = "points";

  /** How messages name the last element of a reference's vector, by its part that may be large. */
  private static final String SUM_OF_SQUARES = "-Σ μ²/(2σ²)";

  private static final DerivedForm<DiagonalBatch, double[]> PRECISIONS =
      new DerivedForm<>(DiagonalBatch::toPrecisions, r -> (long) Double.BYTES * r.length);

  private static final DerivedForm<DiagonalBatch, FullBatch> FULL =
      new DerivedForm<>(FullBatch::expanded, FullBatch::memoryBytes);

  private static final DerivedForm<DiagonalBatch, LowRankBatch> LOW_RANK =
      new DerivedForm<>(LowRankBatch::ofDiagonal, g -> 2L * Double.BYTES * g.size());

  private final Scale kind;

  /** Whether a σ may be 0. */
  private final boolean takesZero;

  private final boolean deterministic;

  /** Whether the Gaussians are points, of variance 0. */
  private final boolean arePoints;

  /** Row-major [N, D] as given, after clamping, scales [D] where all rows share them, [N] where each has one number. A batch has one pair of the two, by its precision. */
  private final float @Nullable [] mean32;

  private final float @Nullable [] scale32;
  private final double @Nullable [] mean64;
  private final double @Nullable [] scale64;

  /** Numbers that state a row's scales: D, or 1 that is repeated. */
  private final int scaleLength;

  /** Whether the scales are [N, D]. */
  private final boolean hasAllScales;

  /** Rows with a variance that the float or the double kernels cannot hold. */
  private final BitSet beyond32 = new BitSet();

  private final BitSet beyond64 = new BitSet();

  /** Scales, by their place in the array, that were changed by {@link ScalePolicy#CLAMPED}. */
  private final BitSet clamped = new BitSet();

  /** Stands in a field, as looking it up for every pair took a third of the time of aligned, D = 3 (Zen 3). */
  private final Lazy<DiagonalBatch, double[]> precisions = kept(PRECISIONS);

  /** Entries that were computed one by one, beyond one in {@link #SHARE} of all, times SHARE; about, as threads may lose some. */
  private long owed;

  /** How often a batch of one row was filled anew. */
  private int fills;

  private DiagonalBatch(
      Elements mean,
      Elements scale,
      int dimension,
      Scale kind,
      ScalePolicy policy,
      RangeCheck range,
      boolean arePoints,
      boolean isSpherical) {
    super((int) (mean.length() / dimension), dimension, mean.isDouble() || scale.isDouble());
    mean32 = isDouble() ? null : mean.floats();
    scale32 = isDouble() ? null : scale.floats();
    mean64 = isDouble() ? mean.doubles() : null;
    scale64 = isDouble() ? scale.doubles() : null;
    this.kind = kind;
    this.arePoints = arePoints;
    scaleLength = isSpherical ? 1 : dimension;
    hasAllScales = scaleCount() == size() * dimension;
    singular.set(0, arePoints ? size() : 0);
    if (policy == ScalePolicy.CLAMPED) {
      clamp();
    }
    deterministic = policy == ScalePolicy.DETERMINISTIC_IF_ZERO && isZero();
    takesZero = deterministic || (policy == ScalePolicy.SEMIDEFINITE && kind.hasZero());
    double least = kind.bound(1 / MOST32);
    double most = kind.bound(MOST32);
    Checkpoint checkpoint = new Checkpoint();
    int rows = Math.max(1, ELEMENTS / dimension);
    // on one thread: 0.6 of the time is the copies' (1024 x 256, 100,000 x 64; Zen 3)
    for (int first = 0, i = 0; i < size(); first += rows) {
      int end = Math.min(size(), first + rows);
      boolean passed = isFinite(i, end, range) && isOrdinary(i, end, least, most, range);
      for (; i < end; i++) {
        sumLogStd(i, passed || check(i, least, most, mean.isDouble(), scale.isDouble()));
      }
      checkpoint.passUninterrupted((long) dimension * rows);
    }
  }

  /**
   * Makes a batch from means and scales, which are copied unless they are owned. All Gaussians share D scales, and N are one for each, in all its
   * dimensions, unless N = D, as they may be either.
   * If either is of double, the batch is.
   *
   * @param range checks a batch of floats
   */
  public static DiagonalBatch of(
      Elements mean,
      Elements scale,
      int dimension,
      Scale kind,
      ScalePolicy policy,
      RangeCheck range) {
    checkShape(mean.length(), scale.length(), dimension, kind);
    boolean isSpherical = scale.length() != mean.length() && scale.length() != dimension;
    return new DiagonalBatch(mean, scale, dimension, kind, policy, range, false, isSpherical);
  }

  /** Makes a batch of points, which are the means of Gaussians whose standard deviations are 0. */
  public static DiagonalBatch ofPoints(Elements points, int dimension, RangeCheck range) {
    checkDimension(dimension);
    checkRowsAreWhole(POINTS, points.length(), dimension);
    checkSize(points.length() / dimension, dimension, MOST_DIMENSIONS, mostRows(dimension));
    Elements zeros =
        points.isDouble()
            ? Elements.of(new double[dimension], POINTS)
            : Elements.of(new float[dimension], POINTS);
    return new DiagonalBatch(
        points, zeros.owned(), dimension, Scale.STD, ScalePolicy.SEMIDEFINITE, range, true, false);
  }

  /** A batch of rows that are yet to be filled. */
  private DiagonalBatch(
      int size, int dimension, Scale kind, boolean isDouble, boolean takesZero, boolean arePoints) {
    super(size, dimension, isDouble);
    this.kind = kind;
    this.takesZero = takesZero && kind.hasZero();
    int length = size * dimension;
    mean32 = isDouble ? null : new float[length];
    scale32 = isDouble ? null : new float[length];
    mean64 = isDouble ? new double[length] : null;
    scale64 = isDouble ? new double[length] : null;
    deterministic = false;
    this.arePoints = arePoints;
    scaleLength = dimension;
    hasAllScales = true;
  }

  /** Makes a batch of one row that one thread fills again and again; what kernels have made of it is forgotten then. */
  public static DiagonalBatch ofSlot(int dimension, Scale kind, boolean isDouble) {
    return ofSlot(dimension, kind, isDouble, false);
  }

  /**
   * Makes a slot.
   *
   * @param takesZero whether a σ may be 0, of a kind that can state it
   */
  public static DiagonalBatch ofSlot(
      int dimension, Scale kind, boolean isDouble, boolean takesZero) {
    checkShape(dimension, dimension, dimension, kind);
    return new DiagonalBatch(1, dimension, kind, isDouble, takesZero, false);
  }

  /** Makes a slot of one point of floats, whose scales are 0. */
  public static DiagonalBatch ofPointSlot(int dimension) {
    checkShape(dimension, dimension, dimension, Scale.STD);
    return new DiagonalBatch(1, dimension, Scale.STD, false, true, true);
  }

  /**
   * Makes a batch of rows that are written to its arrays, each of which {@link #takeRow(int, double, double, boolean)} is to be told of: rows of
   * batches that were checked when they were made. If they are to be written again, {@link #refill} is called before.
   */
  public static DiagonalBatch ofTaken(
      int size, int dimension, Scale kind, boolean isDouble, boolean takesZero) {
    checkSize(size, dimension, MOST_DIMENSIONS, mostRows(dimension));
    return new DiagonalBatch(size, dimension, kind, isDouble, takesZero, false);
  }

  /**
   * Fills a slot of floats. That of a point keeps its scales.
   *
   * @throws InvalidGaussianException as for a batch of one row
   */
  public void fill(float[] mean, int meanAt, float[] scale, int scaleAt) {
    int d = dimension();
    System.arraycopy(mean, meanAt, mean32(), 0, d);
    System.arraycopy(scale, scaleAt, scale32(), 0, arePoints() ? 0 : d);
    refill();
    double least = kind.bound(1 / MOST32);
    double most = kind.bound(MOST32);
    boolean passed =
        isFinite(0, 1, RangeCheck.PLAIN) && isOrdinary(0, 1, least, most, RangeCheck.PLAIN);
    sumLogStd(0, passed || check(0, least, most, false, false));
  }

  /** Fills a slot of doubles from the arrays' starts, as {@link #fill(float[], int, float[], int)}. */
  public void fill(double[] mean, double[] scale) {
    int d = dimension();
    System.arraycopy(mean, 0, mean64(), 0, d);
    System.arraycopy(scale, 0, scale64(), 0, d);
    refill();
    double least = kind.bound(1 / MOST32);
    double most = kind.bound(MOST32);
    boolean passed =
        isFinite(0, 1, RangeCheck.PLAIN) && isOrdinary(0, 1, least, most, RangeCheck.PLAIN);
    sumLogStd(0, passed || check(0, least, most, true, true));
  }

  /** Whether a slot of floats was filled with these. */
  public boolean holds(float[] mean, float[] scale) {
    return fills > 0 && Arrays.equals(mean, mean32()) && Arrays.equals(scale, scale32());
  }

  /** Whether a slot of doubles was filled with these. */
  public boolean holds(double[] mean, double[] scale) {
    return fills > 0 && Arrays.equals(mean, mean64()) && Arrays.equals(scale, scale64());
  }

  /**
   * Takes a row that was written to a slot's arrays: of a batch of its kind and precision, with this log-determinant.
   *
   * @param ordinary whether it certainly is not {@link #beyond32}
   */
  public void takeRow(double log, double bound, boolean ordinary) {
    refill();
    takeRow(0, log, bound, ordinary);
  }

  /** Takes row i of such a batch, as {@link #takeRow(double, double, boolean)} does. */
  public void takeRow(int i, double log, double bound, boolean ordinary) {
    logDet[i] = log;
    logDetBound[i] = bound;
    if (!ordinary
        && !isOrdinary(i, i + 1, kind.bound(1 / MOST32), kind.bound(MOST32), RangeCheck.PLAIN)) {
      beyond32.set(i);
      beyond64.set(
          i, !isOrdinary(i, i + 1, kind.bound(1 / MOST64), kind.bound(MOST64), RangeCheck.PLAIN));
    }
  }

  /** Forgets the rows of a slot, or of a batch {@linkplain #ofTaken that takes such}, for one thread that writes others. */
  public void refill() {
    fills++;
    owed = Long.MIN_VALUE / 2; // so that precisions are always computed one by one
    forget();
    singular.clear();
    singular.set(0, arePoints ? size() : 0);
    beyond32.clear();
    beyond64.clear();
  }

  @Override
  boolean isSlot() {
    return fills > 0;
  }

  /** Tells two contents of a slot apart; 0 for all other batches. */
  public int fills() {
    return fills;
  }

  /** Tells what the scales are. */
  public Scale kind() {
    return kind;
  }

  @Override
  public boolean isDeterministic() {
    return deterministic;
  }

  @Override
  public boolean arePoints() {
    return arePoints;
  }

  /** Raw means of a float batch. */
  public float[] mean32() {
    return Objects.requireNonNull(mean32);
  }

  /** Raw scales of a float batch, of which those of row i are {@link #rawLength} from {@link #scaleFrom} on. */
  public float[] scale32() {
    return Objects.requireNonNull(scale32);
  }

  /** Raw means in double, a fresh copy if the batch is of float. */
  public double[] mean64() {
    return mean64 != null ? mean64 : widen(mean32());
  }

  /** Raw scales in double, a fresh copy if the batch is of float, otherwise as {@link #scale32}. */
  public double[] scale64() {
    return scale64 != null ? scale64 : widen(scale32());
  }

  /** Returns where the scales of row i begin in the array of raw scales: for all rows at 0, if they share them. */
  public int scaleFrom(int i) {
    return isShared() ? 0 : i * scaleLength;
  }

  /** Numbers that state a row's scales in the array of raw ones: D, or 1 where that is the scale of all dimensions. */
  public int rawLength() {
    return scaleLength;
  }

  /** Whether there is one row of scales for all means, however many. */
  boolean isShared() {
    return !hasAllScales && scaleLength == dimension();
  }

  /** Whether a row states its scales, more than one, by one number. */
  private boolean isSpherical() {
    return scaleLength < dimension();
  }

  /** Whether each row has scales of its own, D of them, so that the array of raw ones is [N, D]. */
  public boolean hasAllScales() {
    return hasAllScales;
  }

  private int scaleCount() {
    return scale64 != null ? scale64.length : scale32().length;
  }

  /** Raw scales of a float batch, [N, D], a fresh copy if the batch keeps fewer. */
  public float[] allScales32() {
    float[] raw = scale32();
    if (hasAllScales) {
      return raw;
    }
    float[] scales = new float[size() * dimension()];
    for (int i = 0; i < size(); i++) {
      copyScales(raw, i, 0, scales, i * dimension(), dimension());
    }
    return scales;
  }

  /** Raw scales in double, [N, D], a fresh copy if the batch keeps fewer or is of float. */
  public double[] allScales64() {
    double[] raw = scale64();
    if (hasAllScales) {
      return raw;
    }
    double[] scales = new double[size() * dimension()];
    for (int i = 0; i < size(); i++) {
      copyScales(raw, i, 0, scales, i * dimension(), dimension());
    }
    return scales;
  }

  /** Copies n scales of row i from dimension h on, out of what {@link #scale32} returned. */
  public void copyScales(float[] raw, int i, int h, float[] to, int at, int n) {
    int from = scaleFrom(i);
    if (isSpherical()) {
      Arrays.fill(to, at, at + n, raw[from]);
    } else {
      System.arraycopy(raw, from + h, to, at, n);
    }
  }

  /** The same of {@link #scale64}. */
  public void copyScales(double[] raw, int i, int h, double[] to, int at, int n) {
    int from = scaleFrom(i);
    if (isSpherical()) {
      Arrays.fill(to, at, at + n, raw[from]);
    } else {
      System.arraycopy(raw, from + h, to, at, n);
    }
  }

  /**
   * Returns the first element from an index on, counted as the means are, whose scale was raised or lowered by {@link ScalePolicy#CLAMPED};
   * or −1, or one beyond the last.
   */
  public int nextClamped(int index) {
    int at = place(index);
    int next = clamped.nextSetBit(at);
    if (isSpherical()) {
      return next < 0 ? -1 : Math.max(index, next * dimension());
    }
    if (next < 0 && isShared()) {
      next = clamped.nextSetBit(0);
      return next < 0 ? -1 : index - at + dimension() + next;
    }
    return next < 0 ? -1 : index - at + next;
  }

  public double mean(int index) {
    return mean64 != null ? mean64[index] : mean32()[index];
  }

  /** Returns the scale of an element, counted as the means are. */
  public double scale(int index) {
    return raw(place(index));
  }

  private double raw(int place) {
    return scale64 != null ? scale64[place] : scale32()[place];
  }

  /** Returns the place of an element's scale: shared ones are repeated, and the one of a row. */
  private int place(int index) {
    return hasAllScales ? index : isShared() ? index % dimension() : index / dimension();
  }

  @Override
  public Scale form() {
    return kind;
  }

  @Override
  public int scaleLength() {
    return dimension();
  }

  @Override
  public void readMean(int i, double[] to) {
    int from = i * dimension();
    if (mean64 != null) {
      System.arraycopy(mean64, from, to, 0, dimension());
      return;
    }
    for (int h = 0; h < dimension(); h++) {
      to[h] = mean32()[from + h];
    }
  }

  @Override
  public void readScale(int i, double[] to) {
    if (scale64 != null) {
      copyScales(scale64, i, 0, to, 0, dimension());
      return;
    }
    int from = i * dimension();
    for (int h = 0; h < dimension(); h++) {
      to[h] = scale(from + h);
    }
  }

  @Override
  public double[] covariance(int i) {
    int d = dimension();
    if ((long) d * d > MOST_ELEMENTS) {
      throw new IllegalArgumentException(
          "a covariance of dimension %d does not fit an array; scale(i) gives what makes its diagonal"
              .formatted(d));
    }
    double[] covariance = new double[d * d];
    for (int h = 0; h < d; h++) {
      covariance[h * (d + 1)] = Variance.rounded(kind, scale(i * d + h));
    }
    return covariance;
  }

  /** Copies the rows of these indices, of which there may be none. */
  public DiagonalBatch select(int[] indices, RangeCheck range) {
    int d = dimension();
    checkRows(indices.length, d);
    int length = indices.length * d;
    int[] ofScales = isShared() ? new int[1] : indices;
    int scales = ofScales.length * scaleLength;
    Elements mean;
    Elements scale;
    if (isDouble()) {
      mean = Elements.of(rows(mean64(), indices, d, new double[length]), "mean");
      scale =
          Elements.of(rows(scale64(), ofScales, scaleLength, new double[scales]), kind.argument());
    } else {
      mean = Elements.of(rows(mean32(), indices, d, new float[length]), "mean");
      scale =
          Elements.of(rows(scale32(), ofScales, scaleLength, new float[scales]), kind.argument());
    }
    ScalePolicy policy =
        deterministic
            ? ScalePolicy.DETERMINISTIC_IF_ZERO
            : takesZero ? ScalePolicy.SEMIDEFINITE : ScalePolicy.STRICT; // clamped is valid
    DiagonalBatch selected =
        new DiagonalBatch(
            mean.owned(), scale.owned(), d, kind, policy, range, arePoints, isSpherical());
    for (int k = 0; k < scales && !clamped.isEmpty(); k++) {
      selected.clamped.set(
          k, clamped.get(ofScales[k / scaleLength] * scaleLength + k % scaleLength));
    }
    return selected;
  }

  /**
   * Makes vectors of 2D + 1 elements whose inner products {@code a(x)ᵀb(p)} are {@code −KL(x ‖ p)}, but for what depends on x alone: a of
   * queries, or b of references.
   */
  public float[] toInnerProducts(boolean ofQueries) {
    if (arePoints()) {
      checkDefinite("the batch");
    }
    int d = dimension();
    int width = 2 * d + 1;
    float[] vectors = new float[size() * width];
    Checkpoint checkpoint = new Checkpoint();
    for (int i = 0; i < size(); i++) {
      int to = i * width;
      double sum = 0;
      double greatest = -1;
      int farthest = 0;
      for (int h = 0; h < d; h++) {
        double m = mean(i * d + h);
        if (ofQueries) {
          double v = kind.variance(scale(i * d + h));
          String argument = v > m * m ? kind.argument() : "mean";
          vectors[to + h] = element(v + m * m, "σ² + μ²", argument, i, h);
          vectors[to + d + h] = (float) m;
        } else {
          double w = precision(i * d + h);
          vectors[to + h] = element(-0.5 * w, "-1/(2σ²)", kind.argument(), i, h);
          vectors[to + d + h] = element(m * w, "μ/σ²", "mean", i, h);
          double term = 0.5 * m * m * w;
          farthest = term > greatest ? h : farthest;
          greatest = Math.max(term, greatest);
          sum += term;
        }
      }
      vectors[to + 2 * d] =
          ofQueries ? 1 : element(-sum - logDet(i), SUM_OF_SQUARES, "mean", i, farthest);
      checkpoint.passUninterrupted(Checkpoint.ofPlain(d));
    }
    return vectors;
  }

  /** Rounds an element of a vector to float, or throws an exception that names the value at fault and says how to bring it within. */
  private float element(double value, String formula, String argument, int i, int h) {
    float rounded = (float) value;
    if (Math.abs(rounded) <= Float.MAX_VALUE) {
      return rounded;
    }
    double given = argument.equals("mean") ? mean(i * dimension() + h) : scale(i * dimension() + h);
    String reason =
        "is %s, but its vector's %s is %s, beyond float".formatted(given, formula, value);
    String scales =
        switch (kind) {
          case STD -> "standard deviations by c";
          case VARIANCE -> "variances by c²";
          case LOG_VARIANCE -> "add 2 ln c to the log-variances";
          case PRECISION -> "precisions by 1/c²";
        };
    String advice =
        kind.isZero(scale(i * dimension() + h))
            ? "; leave this Gaussian out, or give it a positive " + kind.argument()
            : formula.equals(SUM_OF_SQUARES)
                ? "; subtract one point amid the means from those of both batches, which changes no KL"
                : "; multiply the means of both batches by one c %s 1, and %s, which changes no KL"
                    .formatted(formula.startsWith("σ²") ? "below" : "above", scales);
    throw Constructors.INVALID_GAUSSIAN
        .get()
        .of(argument, i, h, "[" + h + "]", ", dimension " + h, reason, advice);
  }

  @Override
  int rank(int i) {
    int from = i * dimension(); // not of variances, which may underflow
    return (int) IntStream.range(from, from + dimension()).filter(k -> scale(k) != 0).count();
  }

  @Override
  double[] variances(int i) {
    int from = i * dimension();
    return IntStream.range(from, from + dimension())
        .mapToDouble(k -> kind.variance(scale(k)))
        .toArray();
  }

  /** Reads n elements, counted as the means are, from an index on to the start of two arrays. */
  public void read(int from, int n, double[] means, double[] scales) {
    if (mean64 != null) {
      System.arraycopy(mean64, from, means, 0, n);
    } else {
      widen(mean32(), from, n, means, 0);
    }
    for (int k = 0; k < n; ) { // in pieces, where rows do not have D scales each
      int at = place(from + k);
      int piece = hasAllScales ? n - k : Math.min(dimension() - (from + k) % dimension(), n - k);
      if (isSpherical()) {
        Arrays.fill(scales, k, k + piece, raw(at));
      } else if (scale64 != null) {
        System.arraycopy(scale64, at, scales, k, piece);
      } else {
        widen(scale32(), at, piece, scales, k);
      }
      k += piece;
    }
  }

  private static void widen(float[] from, int at, int n, double[] to, int start) {
    for (int k = 0; k < n; k++) {
      to[start + k] = from[at + k];
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

  /** Whether two rows have equal parameters, in whatever ways their batches state them. */
  public boolean isEqual(int i, DiagonalBatch p, int j) {
    int d = dimension();
    int a = i * d;
    int b = j * d;
    if (kind != p.kind || isDouble() != p.isDouble()) {
      int k = 0;
      while (k < d
          && mean(a + k) == p.mean(b + k)
          && Variance.areEqual(kind, scale(a + k), p.kind, p.scale(b + k))) {
        k++;
      }
      return k == d;
    }
    if (isSpherical() || p.isSpherical()) {
      int k = 0;
      while (k < d && mean(a + k) == p.mean(b + k) && scale(a + k) == p.scale(b + k)) {
        k++;
      }
      return k == d;
    }
    int s = scaleFrom(i);
    int t = p.scaleFrom(j);
    return mean64 != null
        ? DoubleEquality.areEqual(mean64(), a, p.mean64(), b, d)
            && DoubleEquality.areEqual(scale64(), s, p.scale64(), t, d)
        : FloatEquality.areEqual(mean32(), a, p.mean32(), b, d)
            && FloatEquality.areEqual(scale32(), s, p.scale32(), t, d);
  }

  /** 1/σ² in double, row-major [N, D]. */
  public double[] precisions() {
    return precisions.get(this, PRECISIONS.make());
  }

  /** Computes one of {@link #precisions}. */
  public double precision(int index) {
    return kind == Scale.PRECISION ? scale(index) : 1 / kind.variance(scale(index));
  }

  /**
   * {@link #precisions} for a pair, which it counts, or null: they take as much memory as a float batch's values, and most searches need
   * few rows.
   */
  public double @Nullable [] precisionsOfPair() {
    double[] made = precisions.made();
    if (made == null) {
      countPair();
      made = isWorthForms(0) ? precisions() : null;
    }
    return made;
  }

  /** Counts an entry that is computed by itself, for want of a form that serves such. */
  public void countPair() {
    owed += SHARE;
  }

  /** Counts entries that kernels compute, some of which they may compute again one by one. */
  public void countEntries(long n) {
    if (owed > 0) {
      owed = Math.max(0, owed - n);
    }
  }

  /**
   * Whether forms that serve entries computed again are worth their memory, if there are so many more at once: they are made in about the
   * time of as many entries as there are rows.
   */
  public boolean isWorthForms(int more) {
    return owed + (long) SHARE * more > (long) SHARE * Math.max(LEAST_ENTRIES, size());
  }

  @Override
  public boolean isExpandable() {
    return arePoints // which are not written out
        || (long) size() * dimension() * (dimension() + 3) / 2 <= MOST_EXPANDED;
  }

  @Override
  public FullBatch full() {
    return FULL.of(this);
  }

  /** Returns the same Gaussians with factors of rank 0. */
  LowRankBatch lowRank() {
    return LOW_RANK.of(this);
  }

  @Override
  long valueBytes() {
    long values =
        (isDouble() ? Double.BYTES : Float.BYTES) * ((long) size() * dimension() + scaleCount());
    long rows = 2L * Double.BYTES * size() + (beyond32.size() + beyond64.size()) / Byte.SIZE;
    return values + rows;
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
          String reason =
              "has log-variance %s; with a full covariance it must be in [-%s, %2$s]"
                  .formatted(s, MOST_LOG_VARIANCE);
          throw Constructors.INVALID_GAUSSIAN
              .get()
              .of(role, i, h, "", ", dimension " + h, reason, "");
        }
      }
    }
  }

  private double[] toPrecisions() {
    double[] r = new double[size() * dimension()];
    Checkpoint checkpoint = new Checkpoint();
    for (int i = 0; i < r.length; ) {
      for (int end = (int) Math.min((long) i + ELEMENTS, r.length); i < end; i++) {
        r[i] = precision(i);
      }
      checkpoint.pass(ELEMENTS);
    }
    return r;
  }

  private static double[] widen(float[] values) {
    double[] wide = new double[values.length];
    widen(values, 0, values.length, wide, 0);
    return wide;
  }

  private static void checkShape(long meanLength, long scaleLength, int dimension, Scale kind) {
    checkDimension(dimension);
    if (meanLength != scaleLength
        && scaleLength != dimension
        && meanLength != scaleLength * dimension) {
      throw new IllegalArgumentException(
          "mean has %d elements but %s has %d; both must be [N, %d], or %2$s [%4$d] for all, or [N], one number for each%s"
              .formatted(
                  meanLength,
                  kind.argument(),
                  scaleLength,
                  dimension,
                  scaleLength == meanLength * dimension && !kind.matrices().isEmpty()
                      ? " (matrices: ScaleKind.%s)".formatted(kind.matrices())
                      : ""));
    }
    checkRowsAreWhole("mean", meanLength, dimension);
    long n = meanLength / dimension;
    if (n == dimension && n > 1 && scaleLength == n) {
      throw new IllegalArgumentException(
          "%s has %d elements for %2$d Gaussians of dimension %2$d, one for each dimension or one for each Gaussian: write out [%2$d, %2$d], of the first the row %2$d times, of the second each element %2$d times"
              .formatted(kind.argument(), scaleLength));
    }
    checkSize(n, dimension, MOST_DIMENSIONS, mostRows(dimension));
  }

  private static void checkRowsAreWhole(String array, long length, int dimension) {
    if (length % dimension != 0) {
      throw new IllegalArgumentException(
          "%s has %d elements, which is not a multiple of the dimension %d"
              .formatted(array, length, dimension));
    }
  }

  /** Throws if so many Gaussians do not fit a batch. */
  public static void checkRows(int n, int dimension) {
    checkSize(n, dimension, MOST_DIMENSIONS, mostRows(dimension));
  }

  /** N of the largest batch; not positive where there is none. */
  public static int mostRows(int dimension) {
    return MOST_PACKED / dimension - (WIDEST_PANEL - 1);
  }

  private void clamp() {
    for (int i = 0; i < scaleCount(); i++) {
      double given = raw(i);
      double held = kind.clamp(given);
      clamped.set(i, held != given);
      if (scale64 != null) {
        scale64[i] = held;
      } else {
        scale32()[i] = (float) held;
      }
    }
  }

  private boolean isZero() {
    return size() > 0
        && kind.hasZero()
        && IntStream.range(0, scaleCount()).allMatch(i -> raw(i) == 0);
  }

  /**
   * Rejects a row that is not finite or not positive, and notes one that a kernel's precision cannot hold.
   *
   * @param meanIs64 whether the given means are doubles: with one array of double, values of both are kept as doubles, but printed as given
   * @param scaleIs64 whether the given scales are
   * @return whether its scales are ordinary
   */
  private boolean check(int row, double least, double most, boolean meanIs64, boolean scaleIs64) {
    int from = row * dimension();
    int to = from + dimension();
    if (!isFinite(row, row + 1, RangeCheck.PLAIN)) {
      int k = from;
      while (Math.abs(mean(k)) <= Double.MAX_VALUE) {
        k++;
      }
      throw rejected(
          arePoints ? POINTS : "mean",
          k,
          dimension(),
          Elements.text(mean(k), meanIs64),
          "it must be finite",
          "");
    }
    boolean ordinary = isOrdinary(row, row + 1, least, most, RangeCheck.PLAIN);
    if (!ordinary) {
      checkScale(row, from, to, scaleIs64);
    }
    return ordinary;
  }

  // Quick screens, of several rows and then of one; what does not pass is looked at value by value.

  private boolean isFinite(int first, int end, RangeCheck range) {
    int from = first * dimension();
    int to = end * dimension();
    return mean64 != null
        ? DoubleRange.contains(-Double.MAX_VALUE, Double.MAX_VALUE, mean64, from, to)
        : range.contains(-Double.MAX_VALUE, Double.MAX_VALUE, mean32(), from, to);
  }

  /** Whether the scales are valid, and the float kernels can hold them. */
  private boolean isOrdinary(int first, int end, double least, double most, RangeCheck range) {
    if (arePoints) {
      return true; // the scales are 0, and no kernel divides by them
    }
    int from = scaleFrom(first);
    int to = scaleFrom(end - 1) + scaleLength;
    return scale64 != null
        ? DoubleRange.contains(least, most, scale64, from, to)
        : range.contains(least, most, scale32(), from, to);
  }

  private void checkScale(int row, int from, int to, boolean is64) {
    boolean log = kind == Scale.LOG_VARIANCE;
    double valid = log ? -Double.MAX_VALUE : takesZero ? 0 : Double.MIN_VALUE;
    double least = Double.MAX_VALUE;
    double most = -Double.MAX_VALUE;
    for (int k = from; k < to; k++) {
      double s = scale(k);
      if (!(s >= valid && s <= Double.MAX_VALUE)) {
        String rule = log ? "it must be finite" : "it must be finite and > 0";
        throw rejected(
            kind.argument(), k, dimension(), Elements.text(s, is64), rule, log ? "" : advice(s));
      }
      least = Math.min(least, s);
      most = Math.max(most, s);
    }
    if (takesZero && least == 0) {
      singular.set(row);
    }
    if (least < kind.bound(1 / MOST32) || most > kind.bound(MOST32)) {
      beyond32.set(row);
    }
    if (least < kind.bound(1 / MOST64) || most > kind.bound(MOST64)) {
      beyond64.set(row);
    }
  }

  private String advice(double s) {
    if (s < 0 && s >= -Double.MAX_VALUE) {
      return "; are these log-variances (ofLogVariance)?";
    }
    if (s != 0) {
      return "";
    }
    if (kind == Scale.PRECISION) {
      return " (0 is an infinite variance: give a small positive one)";
    }
    return isSlot() ? "" : " (ScalePolicy.CLAMPED raises small ones)"; // a slot takes no policy
  }

  /**
   * Sets {@link #logDet} by one logarithm of the product, for log-variances by their compensated sum.
   *
   * @param ordinary whether the row's own scales are, not its neighbors': they alone may decide its bits
   */
  private void sumLogStd(int row, boolean ordinary) {
    int d = dimension();
    if (singular.get(row)) {
      logDet[row] = Double.NEGATIVE_INFINITY;
      return;
    }
    if (row > 0 && isShared()) {
      logDet[row] = logDet[0];
      logDetBound[row] = logDetBound[0];
      return;
    }
    if (kind == Scale.LOG_VARIANCE) {
      logDet[row] = 0.5 * sumScales(row * d, (row + 1) * d);
      logDetBound[row] = HALF_ULP * 2 * Math.abs(logDet[row]);
      return;
    }
    double log = scale64 != null ? log64(scale64, row, ordinary) : log32(row, ordinary);
    double factor = kind == Scale.STD ? 1 : kind == Scale.VARIANCE ? 0.5 : -0.5;
    logDet[row] = factor * log;
    logDetBound[row] = HALF_ULP * (dimension() + 16 + 4 * Math.abs(logDet[row]));
  }

  private double log32(int row, boolean ordinary) {
    int from = scaleFrom(row);
    float[] scales = scale32();
    if (isSpherical()) { // to the bit as if it was given D times
      scales = new float[dimension()];
      copyScales(scale32(), row, 0, scales, 0, scales.length);
      from = 0;
    }
    return FloatLogProduct.of(scales, from, from + dimension(), ordinary);
  }

  private double log64(double[] raw, int row, boolean ordinary) {
    int from = scaleFrom(row);
    double[] scales = raw;
    if (isSpherical()) {
      scales = new double[dimension()];
      copyScales(raw, row, 0, scales, 0, scales.length);
      from = 0;
    }
    return DoubleLogProduct.of(scales, from, from + dimension(), ordinary);
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
}
