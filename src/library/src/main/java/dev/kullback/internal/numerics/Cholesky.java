package dev.kullback.internal.numerics;

import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Cholesky factors in double-double arithmetic (T. J. Dekker, "A floating-point technique for extending the available precision",
 * 1971), with compensated sums of products (T. Ogita, S. M. Rump, S. Oishi, "Accurate sum and dot product", 2005). Rounded to double, such
 * a factor is as good as one that the caller gave; a plain one would have an error of the matrix's condition number times the roundoff.
 */
public final class Cholesky implements Factorization {
  private static final double SPLITTER = 0x1p27 + 1;

  private final Variance power = new Variance();
  private double hi;
  private double lo;
  private int failed = -1;

  /** Entries of a packed triangle. */
  public static int packedLength(int dimension) {
    return dimension * (dimension + 1) / 2;
  }

  /**
   * Makes of a packed factor L that of {@code LLᵀ + xxᵀ}, by rotations. It forms no covariance, which would square the condition number (J.
   * Dongarra et al., LINPACK Users' Guide, 1979, DCHUD).
   *
   * @param l begins at 0
   * @param x overwritten; zero before the column
   */
  public static void update(double[] l, double[] x, int column, int dimension) {
    for (int c = column; c < dimension; c++) {
      if (x[c] == 0) {
        continue;
      }
      int k = packedLength(c) + c;
      double radius = Math.hypot(l[k], x[c]);
      double cos = l[k] / radius;
      double sin = x[c] / radius;
      l[k] = radius;
      for (int r = c + 1; r < dimension; r++) {
        k += r;
        double t = l[k];
        l[k] = cos * t + sin * x[r];
        x[r] = cos * x[r] - sin * t;
      }
    }
  }

  /**
   * Makes of a packed factor L that of {@code LLᵀ + s²MMᵀ}, likewise.
   *
   * @param l begins at 0
   * @param m another packed factor, from {@code at} on
   * @param x working memory
   * @param pass takes the number of products of each column
   */
  public static void add(
      double[] l, double[] m, int at, double s, int dimension, double[] x, LongConsumer pass) {
    for (int column = 0; column < dimension; column++) {
      int rest = dimension - column;
      pass.accept((long) rest * rest / 2);
      for (int r = column; r < dimension; r++) {
        x[r] = s * m[at + packedLength(r) + column];
      }
      update(l, x, column, dimension);
    }
  }

  @Override
  public int lanes() {
    return 1;
  }

  @Override
  public int failed(int i) {
    return failed;
  }

  @Override
  public double pivot(int i) {
    return hi;
  }

  @Override
  public boolean factor(double[] high, double[] low, int d, LongConsumer progress) {
    failed = -1;
    for (int i = 0, row = 0; i < d; row += ++i) {
      progress.accept((long) i * i / 2);
      for (int j = 0, column = 0; j <= i; column += ++j) {
        set(high[row + j], low[row + j]);
        for (int k = 0; k < j; k++) {
          subtractProduct(high[row + k], low[row + k], high[column + k], low[column + k]);
        }
        normalize(hi, lo);
        if (j < i) {
          divide(high[column + j], low[column + j]);
        } else if (hi > 0 && hi <= Double.MAX_VALUE) {
          squareRoot();
        } else {
          failed = i;
          return false;
        }
        high[row + j] = hi;
        low[row + j] = lo;
      }
    }
    return true;
  }

  /** High part of the number that {@link #std} or {@link #exp} computed. */
  public double high() {
    return hi;
  }

  public double low() {
    return lo;
  }

  /**
   * Returns a power of two near 1/√x, or 1 where x is not positive. Multiplying the rows and columns of a matrix by those of its diagonal
   * multiplies the rows of its factor by them, exactly, and keeps all that matters from underflow.
   */
  public static double inverseRoot(double x) {
    int exponent = x > 0 ? Math.getExponent(x) >> 1 : 0;
    return Double.longBitsToDouble((long) (Double.MAX_EXPONENT - exponent) << 52);
  }

  /** Computes σ of a diagonal Gaussian, with the bits that the factor of a diagonal matrix has. */
  public void std(Scale kind, double s) {
    set(s, 0);
    switch (kind) {
      case STD -> {}
      case VARIANCE -> {
        if (s != 0) {
          scaledSquareRoot();
        }
      }
      case PRECISION -> {
        scaledSquareRoot();
        setInverse(hi, lo);
      }
      case LOG_VARIANCE -> exp(0.5 * s);
    }
  }

  /** Computes row r of the inverse of a lower factor, both row-major [n, n], after the rows above. */
  public static void invertRow(double[] l, int n, int r, double[] inverse) {
    for (int c = 0; c <= r; c++) {
      double sum = c == r ? 1 : 0;
      for (int k = c; k < r; k++) {
        sum -= l[r * n + k] * inverse[k * n + c];
      }
      inverse[r * n + c] = sum / l[r * n + r];
    }
  }

  /** Computes e^x, which is to be within double's range. */
  public void exp(double x) {
    power.set(Scale.LOG_VARIANCE, x);
    set(power.toDouble(), power.restToDouble());
  }

  @Override
  public void invert(double[] high, double[] low, int d, LongConsumer progress) {
    for (int i = 0, row = 0; i < d; row += ++i) {
      progress.accept((long) i * i / 2);
      double pivotHigh = high[row + i];
      double pivotLow = low[row + i];
      for (int j = 0; j < i; j++) { // X_ij = −(Σ L_ik X_kj) / L_ii, over rows k of X above
        set(0, 0);
        for (int k = j, above = j * (j + 1) / 2; k < i; above += ++k) {
          subtractProduct(high[row + k], low[row + k], high[above + j], low[above + j]);
        }
        normalize(hi, lo);
        divide(pivotHigh, pivotLow);
        high[row + j] = hi;
        low[row + j] = lo;
      }
      setInverse(pivotHigh, pivotLow);
      high[row + i] = hi;
      low[row + i] = lo;
    }
  }

  /** Returns an element of LLᵀ, rounded, of a packed factor that begins at an index; its low part may be missing. */
  public double product(double[] high, double @Nullable [] low, int at, int r, int c) {
    set(0, 0);
    for (int k = 0, a = at + packedLength(r), b = at + packedLength(c); k <= c; k++, a++, b++) {
      subtractProduct(high[a], low == null ? 0 : low[a], high[b], low == null ? 0 : low[b]);
    }
    return 0 - (hi + lo); // a 0 without a sign
  }

  // steps of a factorization in another order, of entries of packed arrays

  void squareRoot(double[] high, double[] low, int k) {
    set(high[k], low[k]);
    squareRoot();
    store(high, low, k);
  }

  void divide(double[] high, double[] low, int k, int by) {
    set(high[k], low[k]);
    divide(high[by], low[by]);
    store(high, low, k);
  }

  void subtractProduct(double[] high, double[] low, int k, int a, int b) {
    set(high[k], low[k]);
    subtractProduct(high[a], low[a], high[b], low[b]);
    normalize(hi, lo);
    store(high, low, k);
  }

  private void store(double[] high, double[] low, int k) {
    high[k] = hi;
    low[k] = lo;
  }

  private void set(double high, double low) {
    hi = high;
    lo = low;
  }

  private void setInverse(double high, double low) {
    set(1, 0);
    divide(high, low);
  }

  private void subtractProduct(double ah, double al, double bh, double bl) {
    double p = ah * bh;
    double rest = productError(ah, bh, p) + (ah * bl + al * bh);
    double s = hi - p;
    double t = s - hi;
    double error = (hi - (s - t)) - (p + t);
    hi = s;
    lo += error - rest;
  }

  private void divide(double dh, double dl) {
    double x = hi / dh;
    double p = x * dh;
    double rest = (hi - p) - productError(x, dh, p) + (lo - x * dl);
    normalize(x, rest / dh);
  }

  /** Takes the square root of a high part of any magnitude, which has no low part. */
  private void scaledSquareRoot() {
    double t = inverseRoot(hi);
    hi = hi * t * t;
    squareRoot();
    hi /= t;
    lo /= t;
  }

  private void squareRoot() {
    double x = Math.sqrt(hi);
    double p = x * x;
    double rest = (hi - p) - productError(x, x, p) + lo;
    normalize(x, rest / (2 * x));
  }

  private void normalize(double a, double b) {
    hi = a + b;
    lo = b - (hi - a);
  }

  /** Returns a·b − p, where p is the rounded product. */
  private static double productError(double a, double b, double p) {
    if (Fma.IS_HARDWARE) {
      return Math.fma(a, b, -p);
    }
    double c = SPLITTER * a;
    double ah = c - (c - a);
    double al = a - ah;
    c = SPLITTER * b;
    double bh = c - (c - b);
    double bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
  }
}
