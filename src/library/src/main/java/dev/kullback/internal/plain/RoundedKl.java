package dev.kullback.internal.plain;

import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.numerics.DoubleWord;
import dev.kullback.internal.numerics.Scale;

/**
 * The divergence of diagonal Gaussians rounded to double, where a sum in twice double's precision decides how:
 *
 * <pre>
 * KL = ½ (Σ_h [(μq − μp)² + σq²]/σp² − D + Σ_h ln σp² − Σ_h ln σq²)
 * </pre>
 *
 * <p>It is left undecided where a number between those that its error leaves, 2⁻⁷² of the terms, rounds otherwise: one in 2¹⁸ of KL ≈ D,
 * but all that are small beside D, and those with extreme parameters. {@link ExactKl}, which takes many times as long, decides
 * these. Working memory of a thread.
 */
public final class RoundedKl {
  /**
   * Error relative to the sum of what is added. A term has 2⁻⁷⁴: two exponentials to 2⁻⁷⁵·⁵, and some 2⁻¹⁰⁰. The sum's low part, of D errors
   * of at most 2⁻⁵³ of the sum, has D²·2⁻¹⁰⁶, and so have a product's, 2⁻⁸² for D = {@link #MOST_DIMENSIONS}; a logarithm has 2⁻⁷⁵.
   */
  private static final double ERROR = 0x1p-72;

  private static final int MOST_DIMENSIONS = 4096;

  private static final int BLOCK = 64;

  /** Factors in [2⁻¹⁰⁰, 2¹⁰⁰] that may be multiplied before the product's exponent is taken out. */
  private static final int FACTORS = 8;

  /** Of a block's dimensions, the scales as given, and {@code σq²} and {@code 1/σp²} in two parts. */
  private final double[] scale = new double[BLOCK];

  private final double[] v = new double[BLOCK];
  private final double[] vLow = new double[BLOCK];
  private final double[] r = new double[BLOCK];
  private final double[] rLow = new double[BLOCK];
  private final DoubleWord word = new DoubleWord();
  private final LogDet logDetQ = new LogDet();
  private final LogDet logDetP = new LogDet();

  /** {@code 2 KL} unrounded, and a bound on its error. */
  public double high;

  public double low;
  public double error;

  /** {@code KL(q_i ‖ p_j)} rounded to nearest, or NaN where it is not decided. */
  public double kl(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    if (!compute(q, i, p, j)) {
      return Double.NaN;
    }
    boolean isDecided = high + (low + error) == high && high + (low - error) == high;
    return isDecided ? 0.5 * high : Double.NaN;
  }

  /** Whether it can; what overflows is NaN. */
  public boolean compute(DiagonalBatch q, int i, DiagonalBatch p, int j) {
    int d = q.dimension();
    if (d > MOST_DIMENSIONS || q.beyond32().get(i) || p.beyond32().get(j)) {
      return false;
    }
    logDetQ.clear();
    logDetP.clear();
    double sum = 0;
    double rest = 0;
    for (int h = 0; h < d; h += BLOCK) {
      int n = Math.min(BLOCK, d - h);
      int a = i * d + h;
      int b = j * d + h;
      variances(q, a, n);
      precisions(p, b, n);
      for (int k = 0; k < n; k++) {
        double mq = q.mean(a + k);
        double mp = p.mean(b + k);
        double x = mq - mp;
        double y = x - mq;
        double xLow = mq - (x - y) - (mp + y);
        double square = x * x;
        double squareLow = Math.fma(x, x, -square) + 2 * x * xLow;
        double t = square + v[k];
        y = t - square;
        double tLow = square - (t - y) + (v[k] - y) + (squareLow + vLow[k]);
        double term = t * r[k];
        double termLow = Math.fma(t, r[k], -term) + (t * rLow[k] + tLow * r[k]);
        double s = sum + term;
        y = s - sum;
        rest += sum - (s - y) + (term - y) + termLow;
        sum = s;
      }
    }
    word.set(sum, rest);
    word.add(-d, 0);
    double terms =
        sum + d + 1 + logDetP.addTo(word, p.kind(), 1) + logDetQ.addTo(word, q.kind(), -1);
    high = word.high();
    low = word.low();
    error = ERROR * terms;
    return true;
  }

  /** v of n dimensions from {@code at} on. */
  private void variances(DiagonalBatch q, int at, int n) {
    read(q, at, n);
    switch (q.kind()) {
      case STD -> {
        for (int k = 0; k < n; k++) {
          double s = scale[k];
          v[k] = s * s;
          vLow[k] = Math.fma(s, s, -v[k]);
        }
      }
      case VARIANCE -> {
        for (int k = 0; k < n; k++) {
          v[k] = scale[k];
          vLow[k] = 0;
        }
      }
      case LOG_VARIANCE -> {
        for (int k = 0; k < n; k++) {
          word.setExp(scale[k]);
          v[k] = word.high();
          vLow[k] = word.low();
        }
      }
      case PRECISION -> {
        for (int k = 0; k < n; k++) {
          double s = scale[k];
          v[k] = 1 / s;
          vLow[k] = v[k] * Math.fma(-v[k], s, 1);
        }
      }
    }
    logDetQ.add(q.kind(), scale, n);
  }

  /** r of n dimensions from {@code at} on. */
  private void precisions(DiagonalBatch p, int at, int n) {
    read(p, at, n);
    switch (p.kind()) {
      case STD -> {
        for (int k = 0; k < n; k++) {
          double s = scale[k];
          double square = s * s;
          double squareLow = Math.fma(s, s, -square);
          r[k] = 1 / square;
          rLow[k] = r[k] * (Math.fma(-r[k], square, 1) - r[k] * squareLow);
        }
      }
      case VARIANCE -> {
        for (int k = 0; k < n; k++) {
          double s = scale[k];
          r[k] = 1 / s;
          rLow[k] = r[k] * Math.fma(-r[k], s, 1);
        }
      }
      case LOG_VARIANCE -> {
        for (int k = 0; k < n; k++) {
          word.setExp(-scale[k]);
          r[k] = word.high();
          rLow[k] = word.low();
        }
      }
      case PRECISION -> {
        for (int k = 0; k < n; k++) {
          r[k] = scale[k];
          rLow[k] = 0;
        }
      }
    }
    logDetP.add(p.kind(), scale, n);
  }

  private void read(DiagonalBatch g, int at, int n) {
    for (int k = 0; k < n; k++) {
      scale[k] = g.scale(at + k);
    }
  }

  /** {@code Σ_h ln σ²}: of the product of the scales, its exponent apart, or their sum. */
  private static final class LogDet {
    private double high;
    private double low;
    private long exponent;

    void clear() {
      high = 0;
      low = 0;
      exponent = 0;
    }

    void add(Scale kind, double[] scale, int n) {
      if (kind == Scale.LOG_VARIANCE) {
        for (int k = 0; k < n; k++) {
          double s = high + scale[k];
          double y = s - high;
          low += high - (s - y) + (scale[k] - y);
          high = s;
        }
        return;
      }
      double product = high == 0 ? 1 : high;
      double rest = low;
      for (int from = 0; from < n; from += FACTORS) {
        for (int k = from, end = Math.min(n, from + FACTORS); k < end; k++) {
          double s = scale[k];
          double x = product * s;
          rest = Math.fma(rest, s, Math.fma(product, s, -x));
          product = x;
        }
        int e = Math.getExponent(product);
        double power = DoubleWord.power(-e);
        product *= power;
        rest *= power;
        exponent += e;
      }
      high = product;
      low = rest;
    }

    /** Adds it, or subtracts it by a sign of −1, and returns how large what was added is. */
    double addTo(DoubleWord sum, Scale kind, int sign) {
      if (kind == Scale.LOG_VARIANCE) {
        sum.add(sign * high, sign * low);
        return Math.abs(high);
      }
      int factor = kind == Scale.STD ? 2 : kind == Scale.VARIANCE ? 1 : -1;
      return sum.addLog(sign * factor, high, low, exponent);
    }
  }
}
