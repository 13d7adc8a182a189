package dev.kullback.internal.formula;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.numerics.FastDoubleDouble;
import dev.kullback.internal.numerics.Scale;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Computes the divergence of diagonal Gaussians rounded to double, where a sum in some 75 bits decides the rounding:
 *
 * <pre>
 * KL = ½ (Σ_h [(μq − μp)² + σq²]/σp² − D + Σ_h ln σp² − Σ_h ln σq²)
 * </pre>
 *
 * <p>The rounding is undecided where the sum's error, 2⁻⁷² of the terms, leaves two results: for one KL ≈ D in 2¹⁸, for all that are small
 * beside D, and for extreme parameters. {@link DoubleDoubleKl}, which takes many times as long, decides these. Holds the working memory of
 * one thread.
 */
public final class RoundingFilter {
  /**
   * Error relative to the sum of the terms' magnitudes. A term has 2⁻⁷⁴: two exponentials to 2⁻⁷⁵·⁵, and some 2⁻¹⁰⁰. The sum's low part, D
   * errors of at most 2⁻⁵³ of the sum, has D²·2⁻¹⁰⁶, and so has a product's: 2⁻⁸² for D = {@link #MOST_DIMENSIONS}. A logarithm has 2⁻⁷⁵.
   */
  private static final double ERROR = 0x1p-72;

  private static final int MOST_DIMENSIONS = 4096;

  private static final int BLOCK = 64;

  /** Factors in [2⁻¹⁰⁰, 2¹⁰⁰] that are multiplied without a look at the exponent. */
  private static final int FACTORS = 8;

  private static final int CHAINS = 4;

  private final Side left = new Side();
  private final Side right = new Side();

  /** Terms of a block, in two parts. */
  private final double[] term = new double[BLOCK];

  private final double[] termLow = new double[BLOCK];
  private final FastDoubleDouble word = new FastDoubleDouble();

  /** {@code 2 KL} unrounded, and a bound on its error. */
  public double high;

  public double low;
  public double error;

  /** Returns {@code KL(q_i ‖ p_j)} rounded to nearest, or NaN where that is undecided. */
  public double kl(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    if (!compute(q, i, p, j)) {
      return Double.NaN;
    }
    boolean isDecided = high + (low + error) == high && high + (low - error) == high;
    return isDecided ? 0.5 * high : Double.NaN;
  }

  /** Drops the caller's batches. */
  public void clear() {
    left.batch = null;
    right.batch = null;
  }

  /** Computes {@code 2 KL}, NaN if it overflows; returns false for extreme parameters and too many dimensions. */
  public boolean compute(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    int d = q.dimension();
    if (d > MOST_DIMENSIONS || q.beyond32().get(i) || p.beyond32().get(j)) {
      return false;
    }
    double sum = 0;
    double rest = 0;
    for (int h = 0; h < d; h += BLOCK) {
      int n = Math.min(BLOCK, d - h);
      left.read(q, i, h, n, false);
      right.read(p, j, h, n, true);
      terms(n);
      for (int k = 0; k < n; k++) {
        double x = term[k];
        double s = sum + x;
        double y = s - sum;
        rest += sum - (s - y) + (x - y) + termLow[k];
        sum = s;
      }
    }
    word.set(sum, rest);
    word.add(-d, 0);
    left.finish();
    right.finish();
    word.add(right.logHigh, right.logLow);
    word.add(-left.logHigh, -left.logLow);
    double all = sum + d + 1 + left.logSize + right.logSize;
    high = word.high();
    low = word.low();
    error = ERROR * all;
    return true;
  }

  /** Computes {@code [(μq − μp)² + σq²]·1/σp²} of n dimensions, in several loops: C2 does not vectorize a single one. */
  private void terms(int n) {
    double[] mq = left.mean;
    double[] v = left.value;
    double[] vLow = left.valueLow;
    double[] mp = right.mean;
    double[] r = right.value;
    double[] rLow = right.valueLow;
    double[] high = term;
    double[] low = termLow;
    for (int k = 0; k < n; k++) {
      double a = mq[k];
      double b = mp[k];
      double x = a - b;
      double y = x - a;
      double xLow = a - (x - y) - (b + y);
      double square = x * x;
      high[k] = square;
      low[k] = Math.fma(x, x, -square) + 2 * x * xLow;
    }
    for (int k = 0; k < n; k++) {
      double square = high[k];
      double variance = v[k];
      double t = square + variance;
      double z = t - square;
      high[k] = t;
      low[k] = square - (t - z) + (variance - z) + (low[k] + vLow[k]);
    }
    for (int k = 0; k < n; k++) {
      double t = high[k];
      double precision = r[k];
      double product = t * precision;
      high[k] = product;
      low[k] = Math.fma(t, precision, -product) + (t * rLow[k] + low[k] * precision);
    }
  }

  /** One Gaussian's part. It is kept for the next pair if a block holds all dimensions. */
  private static final class Side {
    private @Nullable DiagonalBatch batch;
    private int row;
    private int fills;

    final double[] mean = new double[BLOCK];
    private final double[] scale = new double[BLOCK];

    /** σ² or 1/σ², in two parts. */
    final double[] value = new double[BLOCK];

    final double[] valueLow = new double[BLOCK];
    private final FastDoubleDouble word = new FastDoubleDouble();

    /** The product of the scales, {@code (high + low)·2^exponent} with {@code 1 ≤ high < 2}, or the sum of log-variances. */
    private double high;

    private double low;
    private long exponent;

    /** {@code Σ_h ln σ²} in two parts, and the magnitude of its terms. */
    double logHigh;

    double logLow;
    double logSize;
    private boolean isFinished;

    /** Reads dimensions [h, h + n) of row i. */
    void read(DiagonalBatch g, int i, int h, int n, boolean inverse) {
      if (g == batch && i == row && g.fills() == fills && n == g.dimension()) {
        return;
      }
      int at = i * g.dimension() + h;
      g.read(at, n, mean, scale);
      if (h == 0) {
        batch = g;
        row = i;
        fills = g.fills();
        high = g.kind() == Scale.LOG_VARIANCE ? 0 : 1;
        low = 0;
        exponent = 0;
        isFinished = false;
      }
      values(g.kind(), n, inverse);
      if (g.kind() == Scale.LOG_VARIANCE) {
        addScales(n);
      } else {
        multiplyScales(n);
      }
    }

    private void values(Scale kind, int n, boolean inverse) {
      switch (kind) {
        case STD -> {
          for (int k = 0; k < n; k++) {
            double s = scale[k];
            double square = s * s;
            value[k] = square;
            valueLow[k] = Math.fma(s, s, -square);
          }
        }
        case VARIANCE, PRECISION -> {
          System.arraycopy(scale, 0, value, 0, n);
          Arrays.fill(valueLow, 0, n, 0);
        }
        case LOG_VARIANCE -> {
          for (int k = 0; k < n; k++) {
            word.setExp(inverse ? -scale[k] : scale[k]);
            value[k] = word.high();
            valueLow[k] = word.low();
          }
        }
      }
      if (inverse ? kind == Scale.STD || kind == Scale.VARIANCE : kind == Scale.PRECISION) {
        for (int k = 0; k < n; k++) {
          double x = value[k];
          double r = 1 / x;
          valueLow[k] = r * (Math.fma(-r, x, 1) - r * valueLow[k]);
          value[k] = r;
        }
      }
    }

    private void addScales(int n) {
      for (int k = 0; k < n; k++) {
        double s = high + scale[k];
        double y = s - high;
        low += high - (s - y) + (scale[k] - y);
        high = s;
      }
    }

    /** Multiplies in chains of a few scales, four of which the processor computes at once: a single one waits for each product. */
    private void multiplyScales(int n) {
      int padded = Math.ceilDiv(n, CHAINS) * CHAINS;
      Arrays.fill(scale, n, padded, 1);
      for (int from = 0; from < padded; from += CHAINS * FACTORS) {
        int end = Math.min(padded, from + CHAINS * FACTORS);
        for (int chain = from; chain < from + CHAINS; chain++) {
          double x = 1;
          double xLow = 0;
          for (int k = chain; k < end; k += CHAINS) {
            double s = scale[k];
            double product = x * s;
            xLow = Math.fma(xLow, s, Math.fma(x, s, -product));
            x = product;
          }
          multiply(x, xLow);
        }
      }
    }

    private void multiply(double x, double xLow) {
      int e = Math.getExponent(x);
      double power = FastDoubleDouble.power(-e);
      double y = x * power;
      double product = high * y;
      double productLow = Math.fma(high, y, -product) + (high * (xLow * power) + low * y);
      int more = Math.getExponent(product); // 0 or 1; a branch would go either way
      double half = FastDoubleDouble.power(-more);
      high = product * half;
      low = productLow * half;
      exponent += e + more;
    }

    /** Takes the logarithm when all dimensions were read. */
    void finish() {
      if (isFinished) {
        return;
      }
      isFinished = true;
      Scale kind = Objects.requireNonNull(batch).kind();
      if (kind == Scale.LOG_VARIANCE) {
        logHigh = high;
        logLow = low;
        logSize = Math.abs(high);
        return;
      }
      int factor = kind == Scale.STD ? 2 : kind == Scale.VARIANCE ? 1 : -1;
      word.set(0, 0);
      logSize = word.addLog(factor, high, low, exponent);
      logHigh = word.high();
      logLow = word.low();
    }
  }
}
