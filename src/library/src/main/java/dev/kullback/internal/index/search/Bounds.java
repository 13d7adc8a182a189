package dev.kullback.internal.index.search;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.formula.Density;
import dev.kullback.internal.formula.Formula;
import dev.kullback.internal.index.store.Rounding;
import dev.kullback.internal.index.store.Segment;
import java.util.Arrays;

/**
 * Bounds the divergences of one query by the sums of a {@link dev.kullback.internal.kernel.PanelScan}, certainly. With {@code A = Σ_h [(x − m)² + v] p}, where v and p
 * are the variance of the first and the precision of the second Gaussian,
 *
 * <pre>
 * KL                             ½ (A − D) + Σ ln σ of the second − Σ ln σ of the first
 * squared Mahalanobis distance   A, where the first is a point, of v = 0
 * excess                         ½ A + Σ ln σ of the second − the least of all, likewise; see {@link Density}
 * </pre>
 *
 * All are {@link #factor}{@code (A − }{@link #less}{@code )}, and but for the distance a logarithm of the reference, and a number of the query.
 *
 * <p><b>Rounding of the given numbers.</b> The scan has x̂, m̂, p̂ ≤ p, and v̂ ≤ v or, for references in reverse, {@code v̂ = 1/p̂ ≤ (1 +
 * 2⁻²²) v}, if the row is not beyond. The vectors {@code ((x − m) p̂^½, (v̂ p̂)^½)} of 2D numbers and {@code ((x̂ − m̂) p̂^½, (v̂ p̂)^½)} have
 * a distance {@code e ≥ ‖(x − x̂) − (m − m̂)‖} in the metric p̂, and the second has the length √Ŝ, Ŝ the exact sum of the scan's terms. So
 * {@code A ≥ max(0, √Ŝ − e)²}, but for {@link #UNITS}, and if neither the row nor the query is beyond, {@code A ≤ (1 + 2⁻²¹)(√Ŝ + e)²}.
 * Of e, a row's part is its slack, and the query's, with {@code |x − x̂| ≤ 2⁻²⁴|x̂|}, is {@code 2⁻²⁴ ‖x̂‖ ≤ 2⁻²⁴ (√Ŝ + ‖m̂‖)}, where ‖m̂‖ is
 * the row's length. In reverse p̂ is the query's: its part is known, and a row's is {@code 2⁻²⁴ ‖m̂‖ ≤ 2⁻²⁴ (√Ŝ + ‖x̂‖)}. The parts with √Ŝ
 * are counted as errors of S.
 *
 * <p><b>Rounding of the sum.</b> The scan's S is within {@code γŜ + α} of Ŝ: γ is the relative error of D sums and, of the others, at most
 * {@link #UNITS}: 8 as a kernel may add them, 4 for v̂ = 1/p̂ in reverse, 2 for the part of e with √Ŝ, and 2 for what comes after, in double,
 * and for subnormal means. α is for results below float's least normal number: three in a dimension, each to 2⁻¹⁵⁰, times 2¹²⁸ at most. If
 * S overflowed, some {@code (x̂ − m̂)² + v̂} or some sum of the terms is at least 2¹²⁷, so {@code Ŝ ≥ 2¹²⁶ min(1, p̂)}: {@link #reach}.
 *
 * <p>A partial sum is a lower bound, too. Logarithms of determinants are known to their own bounds, and noise adds what double may lose
 * beside them, and the 10⁻¹³ that a computed divergence may differ from the exact one.
 */
final class Bounds {
  private static final int UNITS = 16;
  private static final double UNIT = 0x1p-24;

  /** Error γ from which on nothing is known. */
  private static final double MOST_ERROR = 0.25;

  /**
   * η of {@link #rests}, and 1 + η. The smaller, the more rows of double are left whose means are far from 0 beside σ: 64 queries among 20,000 × 64 took 20 ms with 2⁻²⁰
   * and 4.9 with this, at 20,000 σ (processor time, Intel, CPU family 6 model 167, 512 bits, JDK 25.0.3).
   */
  private static final double ETA = 0x1p-14;

  private static final double SPREAD = 1 + ETA;

  /** Below this part of what overflows, nothing has. */
  private static final double SURE = 1 - 0x1p-20;

  /** What A is multiplied by, after {@link #less} is subtracted: D, or 0 of points. */
  final double factor;

  double less;

  /** 1, or 0 where logarithms of determinants do not count. */
  final double logs;

  /** What the query, or the least Σ ln σ, adds. */
  double offset;

  /** {@code [h][2]}: x̂, and v̂ or in reverse p̂. */
  private float[] given = {};

  /** These numbers in the order of a segment's panels. */
  float[] query = {};

  boolean reverse;

  /** Whether nothing bounds divergences from above: v̂ or p̂ is far from the number it stands for. */
  private boolean beyond;

  /** Parts of e: the query's alone; in reverse, 2⁻²⁴ ‖x̂‖; what a row's length is multiplied by. */
  private double own;

  private double wide;
  private double perLength;

  /** Least p̂ of the query, in reverse. */
  private double leastPrecision;

  /** The error of {@link #offset}. */
  private double noise;

  private double gamma;
  private double alpha;

  /** Bounds what a formula computes, if that is KL or of points. */
  Bounds(Formula formula) {
    factor = formula.factor();
    logs = formula == Density.MAHALANOBIS ? 0 : 1;
  }

  /**
   * Prepares for row i of q.
   *
   * @param least least Σ ln σ of the references, where that of points counts
   */
  void set(DiagonalBatch q, int i, boolean reverse, double least) {
    this.reverse = reverse;
    int d = q.dimension();
    if (query.length < 2 * d) {
      given = new float[2 * d];
      query = new float[2 * d];
    }
    double error = (d + UNITS) * UNIT;
    boolean known = error < MOST_ERROR;
    gamma = Math.min(error, MOST_ERROR); // from 1 on, limits would change their sign
    alpha = d * 0x1p-20;
    boolean exact = true;
    beyond = false;
    double slack = 0;
    double length = 0;
    double precision = Double.POSITIVE_INFINITY;
    for (int h = 0; h < d; h++) {
      int at = i * d + h;
      double x = q.mean(at);
      double s = reverse ? q.precision(at) : q.kind().variance(q.scale(at));
      float mean = (float) Math.clamp(x, -Float.MAX_VALUE, Float.MAX_VALUE);
      float scale = Rounding.down(s);
      known &= Math.abs(x) <= Float.MAX_VALUE;
      exact &= x == mean;
      beyond |= !Rounding.isOrdinary(s) && !q.arePoints();
      slack += (x - mean) * (x - mean) * scale;
      length += (double) mean * mean * scale;
      precision = Math.min(precision, scale);
      given[2 * h] = mean;
      given[2 * h + 1] = scale;
    }
    double more = Rounding.more(d);
    own = !known ? Double.POSITIVE_INFINITY : reverse ? Math.sqrt(slack) * more : 0;
    wide = UNIT * Math.sqrt(length) * more;
    perLength = reverse || exact ? 0 : UNIT;
    leastPrecision = precision;
    double log = q.arePoints() ? logs * least : q.logDet(i);
    less = q.arePoints() ? 0 : d;
    offset = reverse ? log : -log;
    noise = logs * (q.logDetBound(i) + Rounding.NOISE * (Math.abs(log) + d));
  }

  /** Returns at least the number of which a reference's {@code 2 Σ ln σ}, if it counts, leaves the A with which its value is {@code value}, forward. */
  double base(double value) {
    return (value - offset + noise) / factor + less;
  }

  /** Prepares for the panels of a segment. */
  void order(Segment segment) {
    segment.order(given, query);
  }

  /** Certain lower bound of A where S overflowed; 0 if nothing is known. */
  private double reach(Block block) {
    double least = reverse ? leastPrecision : block.leastPrecision;
    return 0x1p126 * Math.min(1, least);
  }

  /** e of a row, without what is counted in γ. */
  private double slack(Block block, int row) {
    double s = reverse ? (block.isDouble ? wide : 0) : Math.abs(block.slack[row]);
    return own + s + (perLength == 0 ? 0 : perLength * block.length[row]);
  }

  private boolean isBeyond(Block block, int row) {
    return Float.floatToRawIntBits(block.slack[row]) < 0;
  }

  /** The row's offset with the query's, and by {@code way} of −1 or 1 the noise of both. */
  private double offset(Block block, int row, int way) {
    double log = logs * block.logDet[row];
    double all = noise + logs * block.bound[row] + Rounding.NOISE * Math.abs(log);
    return (reverse ? -log : log) + offset + way * all;
  }

  /**
   * Stores for rows [from, from + n) of a block the greatest S with which the lower bound may be at most {@code limit}, ∞ where none is
   * known, and −1 behind the last row. A sum beyond it decides, even ∞.
   */
  void most(Block block, int from, int n, double limit, float[] most) {
    double[] dets = block.logDet;
    double[] errors = block.bound;
    double base = base(limit);
    double counts = logs;
    double sign = counts * (reverse ? 2 : -2);
    double factor = factorOfSum();
    double more = alpha;
    float reach = (float) reach(block);
    int rows = Math.min(n, block.rows - from);
    if (isPlain(block)) {
      for (int r = 0; r < rows; r++) {
        double log = dets[from + r];
        double error = counts * Rounding.logError(log, errors[from + r]);
        float y = (float) (Math.max(0, base + sign * log + error) * factor + more);
        most[r] = y < reach ? y : Float.POSITIVE_INFINITY;
      }
    } else {
      for (int r = 0; r < rows; r++) {
        double log = dets[from + r];
        double error = counts * Rounding.logError(log, errors[from + r]);
        double x = Math.sqrt(Math.max(0, base + sign * log + error)) + slack(block, from + r);
        float y = (float) (x * x * factor + more);
        most[r] = y < reach ? y : Float.POSITIVE_INFINITY;
      }
    }
    if (reverse) {
      for (int r = 0; r < rows; r++) {
        if (isBeyond(block, from + r)) {
          most[r] = Float.POSITIVE_INFINITY;
        }
      }
    }
    Arrays.fill(most, rows, n, -1);
  }

  /**
   * Stores of each row of a block what it adds to the greatest sum with which its lower bound may be at most a limit, in float and rounded up; ∞ where none is
   * known. With {@code a = }{@link #base}{@code  + l} of a row's l, its part s of e and o of the query, that sum is {@code (√a + s + o)² f + α},
   * and at most {@code (1 + η)² f a + (1 + η)(1 + 1/η) f s² + (1 + 1/η) f o² + α}: what is not the row's is {@link #mostOfQuery}. Where a &lt; 0, the
   * row is beyond the limit whatever its sum. All queries of a formula, direction and precision share what is stored.
   *
   * @param areDouble whether queries are of double
   * @return the greatest number but for ∞
   */
  float rests(Block block, boolean areDouble, float[] rests) {
    double way = reverse ? 2 : -2;
    double factor = SPREAD * SPREAD * factorOfSum();
    double ofSlack = SPREAD / ETA * factor;
    double ofLength = areDouble ? UNIT : 0;
    float greatest = 0;
    for (int r = 0; r < block.rows; r++) {
      double log = logs * block.logDet[r];
      double error = logs * Rounding.logError(block.logDet[r], block.bound[r]);
      double s = reverse ? 0 : Math.abs(block.slack[r]) + ofLength * block.length[r];
      double rest = factor * (way * log + error) + ofSlack * s * s;
      boolean isKnown = !(reverse && isBeyond(block, r));
      rests[r] = isKnown ? Math.nextUp((float) rest) : Float.POSITIVE_INFINITY;
      greatest = rests[r] < Float.POSITIVE_INFINITY ? Math.max(greatest, rests[r]) : greatest;
    }
    return greatest;
  }

  /** Returns what the query and a limit add to that sum, and the difference from a sum of floats may exceed it by; ∞ where a sum may have overflowed. */
  float mostOfQuery(Block block, double limit, float greatestRest) {
    double o = own + (reverse && block.isDouble ? wide : 0);
    double f = factorOfSum();
    double most = SPREAD * SPREAD * f * base(limit) + SPREAD / ETA * f * o * o + alpha;
    double rounded = Math.nextUp((float) (most + 0x1p-22 * Math.abs(most)));
    return rounded + greatestRest < SURE * reach(block) ? (float) rounded : Float.POSITIVE_INFINITY;
  }

  private double factorOfSum() {
    return (1 + 0x1p-22) / (1 - gamma);
  }

  /** Whether e is 0 for all rows. */
  private boolean isPlain(Block block) {
    return !block.isDouble && own == 0 && perLength == 0;
  }

  /** A sum as far as it is a lower bound of Ŝ, but for its rounding. */
  double certain(Block block, int row, float sum) {
    if (Float.isNaN(sum) || (reverse && isBeyond(block, row))) {
      return 0;
    }
    return sum == Float.POSITIVE_INFINITY ? reach(block) : sum;
  }

  /** Bounds a row's divergence from below. */
  double lower(Block block, int row, float sum) {
    double s = Math.sqrt(Math.max(0, (certain(block, row, sum) - alpha) * (1 - gamma)));
    double y = Math.max(0, s - slack(block, row));
    return factor * (y * y - less) + offset(block, row, -1);
  }

  /** Bounds a row's divergence from above; ∞ if no bound is known. */
  double upper(Block block, int row, float sum) {
    if (beyond || isBeyond(block, row) || !(sum <= Float.MAX_VALUE)) {
      return Double.POSITIVE_INFINITY;
    }
    double y = Math.sqrt((sum + alpha) * (1 + 2 * gamma)) + slack(block, row);
    double a = (1 + 0x1p-21) * y * y;
    return Math.max(0, factor * (a - less) + offset(block, row, 1));
  }
}
