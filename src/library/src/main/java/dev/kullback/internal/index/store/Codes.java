package dev.kullback.internal.index.store;

import dev.kullback.internal.kernel.CodeScan;
import dev.kullback.internal.work.Checkpoint;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * A segment's rows in codes of a quarter of the panels' bytes: what a search reads first. Codes are of {@link Coordinates}, for KL those of the D
 * dimensions, in the order of the panels: a mean and a precision, and so they are called here. Each has a grid: a mean is coded as the m̃ for which
 * {@code m̂ = center + unit·m̃} is near, and a precision p as the whole number p̃ of at most 255 for
 * which {@code p̂ = root²·p̃ ≤ p}; where root is 0, the coordinate adds nothing.
 *
 * <pre>
 * grid        double[coordinates][3], center, unit and root of each
 * panels      {@link CodeScan}: of each row r = ‖m − m̂‖ in the metric p̂, rounded up, and l, at least −2 Σ ln σ, or 0 of other coordinates
 *             than KL's; then words
 * </pre>
 *
 * <p>The one precision of {@link Coordinates#WASSERSTEIN_2} is chosen so that floats hold the sums, whatever the unit of the means:
 * {@link #scale}. The metric of {@link Coordinates#JEFFREYS} depends on the query, too; r is for queries of {@link #metric}.
 *
 * <p>Means range from the grid's −127 to 127 where a sample of rows has all but one in 512 on either side, and half as much again, so
 * that few outliers cost the others nothing: where a row's mean lies beyond, its p̃ is 0. The greatest p̃ stands for the precision that
 * one in 512 exceeds: there, what rounding down loses, half of a step in each row, and what the rows beyond lose are the least together.
 *
 * <p>r is for a sum in float: it counts {@link #MARGIN} of a unit more for each mean, as a search needs.
 */
public final class Codes {
  /**
   * Smaller segments, of which a scan of floats takes 3 µs, and fewer coordinates have no codes. From 1024 on instead, queries take 1.17
   * times as long while 1000 of 10,000 references with 128 dimensions are replaced a second (Zen 5).
   */
  private static final int LEAST_ROWS = 256;

  private static final int LEAST_COORDINATES = 8;

  private static final int LANES = CodeScan.LANES;

  /** What float may add to the distance of a mean from its code, in units of the grid. */
  private static final double MARGIN = 0x1p-14;

  /** Factor of the means of {@link CodeScan}. */
  public static final double SCALE = 0x1p-24;

  private static final int GREATEST = 255;

  /** Means that are farther from the ends of the grid, in its units, are not coded. */
  private static final double BEYOND = 4;

  /** Rows that decide the grid, at most. */
  private static final int MOST_SAMPLED = 4096;

  /** One row in {@value} may be beyond an end of the grid. */
  private static final int RARE = 512;

  /** Greatest precision of a grid, and the least as its reciprocal, with whose square roots double computes as with other numbers. */
  private static final double MOST_PRECISION = 0x1p200;

  /** Greatest unit of a grid in units of root, so that no sum of floats overflows. */
  private static final double MOST_UNIT = 0x1p30;

  /** Greatest exponent of a grid's root that all coordinates share. */
  private static final int MOST_SCALE = 100;

  private static final int GRID = 3;

  /** Least unit of a grid of other coordinates than KL's, by the greatest of them, whose roundings are then far below {@link #MARGIN}. */
  private static final double LEAST_UNIT = 0x1p-30;

  private final MemorySegment image;
  private final long grid;
  private final long panels;
  private final Coordinates coordinates;

  /** Number of coordinates. */
  private final int count;

  private final int words;

  /** The codes in a segment's image, at a given byte. */
  Codes(MemorySegment image, long at, Coordinates coordinates, int dimension) {
    this.image = image;
    this.coordinates = coordinates;
    count = coordinates.count(dimension);
    words = words(count);
    grid = at;
    panels = at + gridBytes(count);
  }

  static boolean areWorthwhile(int size, Coordinates coordinates, int dimension) {
    return size >= LEAST_ROWS && coordinates.count(dimension) >= LEAST_COORDINATES;
  }

  /** Returns how many bytes the codes of a segment take. */
  static long bytes(int size, Coordinates coordinates, int dimension) {
    int count = coordinates.count(dimension);
    return gridBytes(count) + Math.ceilDiv(size, LANES) * CodeScan.panelBytes(words(count));
  }

  private static int words(int count) {
    return Math.ceilDiv(count, 2);
  }

  private static long gridBytes(int count) {
    return Segment.aligned((long) Double.BYTES * GRID * count);
  }

  /** Number of coordinates. */
  public int count() {
    return count;
  }

  public int words() {
    return words;
  }

  public long panelBytes() {
    return CodeScan.panelBytes(words);
  }

  public long panelAt(int panel) {
    return panels + panel * panelBytes();
  }

  public double center(int h) {
    return grid(h, 0);
  }

  public double unit(int h) {
    return grid(h, 1);
  }

  public double root(int h) {
    return grid(h, 2);
  }

  /** Returns at least the common precision p̂ of the coordinates of the Wasserstein distance. */
  public double scale() {
    double root = 0;
    for (int c = 0; c < count; c++) {
      root = Math.max(root, root(c));
    }
    return GREATEST * root * root * (1 + 0x1p-40);
  }

  /** Returns by how much r counts p̂ of a coordinate of Jeffreys' divergence: twice the greatest weight, as if of the query; else 1. */
  public double metric(int c) {
    return coordinates == Coordinates.JEFFREYS && coordinates.isMean(c)
        ? 2 * GREATEST * root(c) * root(c)
        : 1;
  }

  private double grid(int h, int which) {
    return image.get(Segment.DOUBLE, grid + Double.BYTES * ((long) GRID * h + which));
  }

  /** Reads r of a row. */
  public float slack(int row) {
    return leading(row, 0);
  }

  /** Reads l of a row. */
  public float logs(int row) {
    return leading(row, 1);
  }

  private float leading(int row, int which) {
    long at = panelAt(row / LANES) + (long) Float.BYTES * (LANES * which + row % LANES);
    return image.get(Segment.FLOAT, at);
  }

  /** Reads the last word of a panel, which a file that was cut off has no more. */
  public int last(int panel) {
    return image.get(Segment.INT, panelAt(panel + 1) - Integer.BYTES);
  }

  /** Writes the codes of a segment's rows. */
  void make(Segment segment) {
    Checkpoint checkpoint = new Checkpoint();
    chooseGrid(segment, checkpoint);
    double[] center = new double[count];
    double[] unit = new double[count];
    double[] root = new double[count];
    double[] length = new double[count];
    for (int h = 0; h < count; h++) {
      center[h] = center(h);
      unit[h] = unit(h);
      root[h] = root(h);
      length[h] = root[h] * unit[h] * Math.sqrt(metric(h));
    }
    int[] panel = new int[Math.toIntExact(panelBytes() / Integer.BYTES)];
    int size = segment.size();
    for (int first = 0; first < size; first += LANES) {
      Arrays.fill(panel, 0);
      for (int row = first; row < Math.min(size, first + LANES); row++) {
        code(segment, row, center, unit, root, length, panel, row - first);
      }
      MemorySegment.copy(panel, 0, image, Segment.INT, panelAt(first / LANES), panel.length);
      checkpoint.pass(Checkpoint.ofPlain((long) count * LANES));
    }
  }

  private void chooseGrid(Segment segment, Checkpoint checkpoint) {
    int n = Math.min(segment.size(), MOST_SAMPLED);
    int rare = n / RARE;
    double[] lows = new double[rare + 1];
    double[] highs = new double[rare + 1]; // negated, as precisions
    double[] precisions = new double[rare + 1];
    for (int h = 0; h < count; h++) {
      Arrays.fill(lows, Double.POSITIVE_INFINITY);
      Arrays.fill(highs, Double.POSITIVE_INFINITY);
      Arrays.fill(precisions, Double.POSITIVE_INFINITY);
      for (int k = 0; k < n; k++) {
        int row = (int) ((long) segment.size() * k / n);
        double mean = segment.coordinate(row, h);
        keepLeast(lows, mean);
        keepLeast(highs, -mean);
        keepLeast(precisions, -segment.weight(row, h));
      }
      double greatest = -precisions[rare];
      double low = lows[rare] / 4;
      double high = -highs[rare] / 4;
      double margin = high - low;
      low = Math.max(lows[0] / 4, low - margin / 4);
      high = Math.min(-highs[0] / 4, high + margin / 4);
      double unit = Math.max((high - low) / 127 * 2, leastUnit(greatest, low, high));
      double root = Math.sqrt(greatest / GREATEST) * (1 - 0x1p-48);
      boolean isCoded = greatest >= 1 / MOST_PRECISION && greatest <= MOST_PRECISION && unit > 0;
      put(h, 2 * (low + high), isCoded ? unit : 1, isCoded ? root : 0);
      if (coordinates == Coordinates.WASSERSTEIN_2) {
        put(h, 2 * (low + high), unit, 0);
      } else if (!(root * unit * Math.sqrt(metric(h)) <= MOST_UNIT)) {
        put(h, 2 * (low + high), 1, 0);
      }
      checkpoint.pass(Checkpoint.ofPlain(n));
    }
    if (coordinates == Coordinates.WASSERSTEIN_2) {
      chooseScale();
    }
  }

  /** Returns the least unit, given the ends of the coordinates, by quarters. */
  private double leastUnit(double greatest, double low, double high) {
    if (coordinates == Coordinates.KL) {
      return 0x1p-9 / Math.sqrt(greatest); // of this part of σ, loses nothing that counts
    }
    double least = 4 * LEAST_UNIT * Math.max(Math.abs(low), Math.abs(high));
    return coordinates == Coordinates.JEFFREYS ? Math.max(LEAST_UNIT / greatest, least) : least;
  }

  /** Gives all coordinates one root, a power of two with which the greatest unit is about one; those that are not finite get none. */
  private void chooseScale() {
    double most = 0;
    for (int c = 0; c < count; c++) {
      most = isFinite(c) ? Math.max(most, unit(c)) : most;
    }
    int exponent = most == 0 ? 0 : Math.clamp(-Math.getExponent(most), -MOST_SCALE, MOST_SCALE);
    double root = Math.scalb(1.0, exponent) / Math.sqrt(GREATEST);
    for (int c = 0; c < count; c++) {
      double unit = unit(c) > 0 ? unit(c) : most == 0 ? 1 : most;
      boolean isCoded = isFinite(c) && root * unit <= MOST_UNIT;
      put(c, isCoded ? center(c) : 0, isCoded ? unit : 1, isCoded ? root : 0);
    }
  }

  /** Keeps the least of the numbers it is called with, ascending. */
  private static void keepLeast(double[] least, double value) {
    int at = least.length - 1;
    if (value < least[at]) {
      for (; at > 0 && least[at - 1] > value; at--) {
        least[at] = least[at - 1];
      }
      least[at] = value;
    }
  }

  private boolean isFinite(int c) {
    return Math.abs(center(c)) <= Double.MAX_VALUE && unit(c) <= Double.MAX_VALUE;
  }

  private void put(int h, double center, double unit, double root) {
    long at = grid + (long) Double.BYTES * GRID * h;
    image.set(Segment.DOUBLE, at, center);
    image.set(Segment.DOUBLE, at + Double.BYTES, unit);
    image.set(Segment.DOUBLE, at + 2 * Double.BYTES, root);
  }

  /** Codes a row in a lane of a panel. */
  private void code(
      Segment segment,
      int row,
      double[] center,
      double[] unit,
      double[] root,
      double[] length,
      int[] panel,
      int lane) {
    double slack = 0;
    for (int w = 0; w < words; w++) {
      int h = 2 * w;
      boolean isPair = h + 1 < count;
      double t0 = (segment.coordinate(row, h) - center[h]) / unit[h];
      double t1 = isPair ? (segment.coordinate(row, h + 1) - center[h + 1]) / unit[h + 1] : 0;
      int p0 = precision(t0, weight(segment, row, h, root[h]), root[h]);
      int p1 = isPair ? precision(t1, weight(segment, row, h + 1, root[h + 1]), root[h + 1]) : 0;
      // what stands behind a mean's point is known before the mean
      int word = p1 << 8 | p0;
      word |= mean(t0 - CodeScan.firstMean(word) * SCALE) << 16;
      word |= mean(t1 - CodeScan.secondMean(word) * SCALE) << 24;
      slack += square(t0 - CodeScan.firstMean(word) * SCALE, p0, length[h]);
      if (isPair) {
        slack += square(t1 - CodeScan.secondMean(word) * SCALE, p1, length[h + 1]);
      }
      panel[(CodeScan.LEADING + w) * LANES + lane] = word;
    }
    float r = Rounding.up(Math.sqrt(slack) * Rounding.more(count));
    float l =
        coordinates == Coordinates.KL
            ? Rounding.up(
                -2 * segment.logDet(row)
                    + Rounding.logError(segment.logDet(row), segment.logDetBound(row)))
            : 0;
    panel[lane] = Float.floatToRawIntBits(r);
    panel[LANES + lane] = Float.floatToRawIntBits(l);
  }

  /** Returns the weight of a coordinate; that of the Wasserstein distance makes p̃ the greatest. */
  private double weight(Segment segment, int row, int c, double root) {
    return coordinates == Coordinates.WASSERSTEIN_2
        ? (GREATEST + 1) * root * root
        : segment.weight(row, c);
  }

  /** Returns the p̃ of a precision p and of a mean that lies t units from the center. */
  private static int precision(double t, double p, double root) {
    if (root == 0 || !(Math.abs(t) <= 127 + BEYOND)) {
      return 0;
    }
    return (int) Math.min(GREATEST, p / (root * root) * (1 - 0x1p-49));
  }

  /** Returns the byte that is the nearest. */
  private static int mean(double t) {
    return (int) Math.clamp(Math.rint(t), -128, 127) & 0xFF;
  }

  private static double square(double distance, int p, double scale) {
    double y = (Math.abs(distance) + MARGIN) * scale;
    return p == 0 ? 0 : y * y * p;
  }
}
