package dev.kullback.internal.numerics;

import java.util.function.LongConsumer;

/**
 * Factors a symmetric matrix that is singular, or so nearly that rounding of its elements decides on which side, by Cholesky's method with
 * pivots of the greatest relative remainder, in double-double (N. J. Higham, "Analysis of the Cholesky decomposition of a semi-definite
 * matrix", 1990).
 *
 * <p>Whether a direction counts is decided by the variance λ of a combination of the coordinates, each scaled to the variance 1, whose
 * coefficients have squares of sum 1: a rounding of the elements by u changes λ by 2u or so in covariances of few samples, whatever D is,
 * and λ is 90 u and more in matrices of the condition number 1e-2/u, which is 1e14 for doubles. {@link #tolerance} is between them.
 */
public final class SemidefiniteFactor {
  /** What an eigenvalue below 0 may have more than one above has, in units of the tolerance: many of them, of which one is the least. */
  private static final double BELOW_ZERO = 4;

  /** Times λ that a pivot may be, relative to its diagonal element, where the first coordinates all but tell the last of them. */
  private static final double MOST_GROWTH = 0x1p30;

  private static final double MOST_SMALL = 0.125;

  /** Matrix, of which columns of the factor take the place: entry (i, j) of the pivot j that was taken before i. */
  private final double[] high;

  private final double[] low;
  private final int d;
  private final double tolerance;
  private final Cholesky cholesky = new Cholesky();

  /** Pivots in their order, whether a row was one or has no variance, and the step in which it was. */
  private final int[] order;

  private final boolean[] isDone;
  private final int[] place;

  /** Diagonal before the first step. */
  private final double[] diagonal;

  private final double[] coefficients;
  private int rank;

  /**
   * Takes a packed matrix, which it overwrites.
   *
   * @param tolerance of λ, by {@link #tolerance}
   */
  public SemidefiniteFactor(double[] high, double[] low, int d, double tolerance) {
    this.high = high;
    this.low = low;
    this.d = d;
    this.tolerance = tolerance;
    order = new int[d];
    place = new int[d];
    isDone = new boolean[d];
    diagonal = new double[d];
    coefficients = new double[d];
    for (int r = 0; r < d; r++) {
      diagonal[r] = high[at(r, r)];
      place[r] = d;
    }
  }

  /** Returns the λ up to which rounding of D × D elements of a type may have made it. */
  public static double tolerance(int d, boolean isFloat) {
    return (4 + Math.sqrt(d)) * (isFloat ? 0x1p-24 : 0x1p-53);
  }

  /**
   * Whether the matrix LLᵀ is singular but for rounding, of a packed factor with entries {@code stride} apart, from {@code from} on. Its
   * diagonal is in [1, 4). Where no pivot is small, it looks at these alone; else it takes steps of inverse iteration, of D² each.
   */
  public static boolean isSingular(double[] l, int from, int stride, int d, double tolerance) {
    double least = Double.POSITIVE_INFINITY;
    int row = 0;
    for (int r = 0, k = from; r < d; k += (++r + 1) * stride) {
      if (l[k] < least) {
        least = l[k];
        row = r;
      }
    }
    if (!(least * least < Math.min(MOST_SMALL, MOST_GROWTH * tolerance))) {
      return false;
    }
    double[] roots = new double[d];
    for (int r = 0, k = from; r < d; r++) {
      double squares = 0;
      for (int c = 0; c <= r; c++, k += stride) {
        squares += l[k] * l[k];
      }
      roots[r] = Math.sqrt(squares);
    }
    double[] x = new double[d];
    x[row] = 1;
    for (int step = 0; step < 3; step++) {
      if (step > 0) {
        solve(l, from, stride, roots, x);
      }
      solveTransposed(l, from, stride, roots, x);
      double norm = 0;
      for (double v : x) {
        norm += v * v;
      }
      norm = Math.sqrt(norm);
      if (step == 2) {
        return 1 / norm <= tolerance;
      }
      for (int r = 0; r < d; r++) {
        x[r] /= norm;
      }
    }
    throw new AssertionError();
  }

  /** Solves {@code R⁻¹L y = x}, in the place of x, with R the diagonal of roots. */
  private static void solve(double[] l, int from, int stride, double[] roots, double[] x) {
    for (int r = 0, k = from; r < x.length; r++, k += stride) {
      double t = x[r] * roots[r];
      for (int c = 0; c < r; c++, k += stride) {
        t -= l[k] * x[c];
      }
      x[r] = t / l[k];
    }
  }

  /** Solves {@code (R⁻¹L)ᵀ y = x}, likewise. */
  private static void solveTransposed(
      double[] l, int from, int stride, double[] roots, double[] x) {
    for (int r = x.length - 1; r >= 0; r--) {
      int k = from + Cholesky.packedLength(r) * stride;
      double t = x[r] / l[k + r * stride];
      x[r] = t * roots[r];
      for (int c = 0; c < r; c++, k += stride) {
        x[c] -= l[k] * t;
      }
    }
  }

  /**
   * Factors the matrix.
   *
   * @param progress takes the number of multiplications of each step before it
   * @return whether no eigenvalue is below 0 by more than rounding
   */
  public boolean factor(LongConsumer progress) {
    for (int r = 0; r < d; r++) {
      if (!(diagonal[r] >= 0) || (diagonal[r] == 0 && !isZero(r))) {
        return false;
      }
      isDone[r] = diagonal[r] == 0;
    }
    int left = d;
    for (int p = next(progress); p >= 0 && rank < d - 1; p = next(progress)) {
      progress.accept((long) left * left / 2);
      left--;
      take(p);
    }
    return isRestZero();
  }

  private boolean isZero(int r) {
    for (int c = 0; c < d; c++) {
      if (high[at(r, c)] != 0) {
        return false;
      }
    }
    return true;
  }

  /** Number of columns of the factor, less than D. */
  public int rank() {
    return rank;
  }

  /** Writes L, with {@code LLᵀ} the matrix: packed, D − rank of its columns 0, and no element of the diagonal below 0. */
  public void write(double[] to, int from) {
    double[] l = new double[high.length];
    double[] x = new double[d];
    for (int t = 0; t < rank; t++) {
      for (int r = 0; r < d; r++) {
        x[r] = place[r] < t ? 0 : high[at(r, order[t])];
      }
      Cholesky.update(l, x, 0, d);
    }
    System.arraycopy(l, 0, to, from, l.length);
  }

  /** Returns the next pivot, or −1 where all that is left is rounding. */
  private int next(LongConsumer progress) {
    int best = -1;
    double most = 0;
    for (int r = 0; r < d; r++) {
      double remainder = high[at(r, r)] / diagonal[r];
      if (!isDone[r] && remainder > most) {
        most = remainder;
        best = r;
      }
    }
    if (best < 0 || most > Math.min(MOST_SMALL, MOST_GROWTH * tolerance)) {
      return best;
    }
    progress.accept((long) (d - rank) * rank * rank / 2);
    most = tolerance;
    best = -1;
    for (int r = 0; r < d; r++) {
      double variance = isDone[r] ? 0 : high[at(r, r)] / growth(r);
      if (variance > most) {
        most = variance;
        best = r;
      }
    }
    return best;
  }

  /** Returns the sum of squares of the combination's coefficients whose variance is what is left of row r, that of r and the pivots. */
  private double growth(int r) {
    double sum = diagonal[r];
    for (int t = rank - 1; t >= 0; t--) {
      double w = high[at(r, order[t])];
      for (int s = t + 1; s < rank; s++) {
        w -= high[at(order[s], order[t])] * coefficients[s];
      }
      w /= high[at(order[t], order[t])];
      coefficients[t] = w;
      sum += w * w * diagonal[order[t]];
    }
    return sum;
  }

  private void take(int p) {
    int pivot = at(p, p);
    isDone[p] = true;
    cholesky.squareRoot(high, low, pivot);
    for (int r = 0; r < d; r++) {
      if (!isDone[r]) {
        cholesky.divide(high, low, at(r, p), pivot);
      }
    }
    for (int r = 0; r < d; r++) {
      for (int c = 0; c <= r && !isDone[r]; c++) {
        if (!isDone[c]) {
          cholesky.subtractProduct(high, low, at(r, c), at(r, p), at(c, p));
        }
      }
    }
    place[p] = rank;
    order[rank++] = p;
  }

  /** Whether what is left may be rounding. */
  private boolean isRestZero() {
    double[] roots = new double[d];
    for (int r = 0; r < d; r++) {
      roots[r] = isDone[r] ? 0 : Math.sqrt(growth(r));
    }
    for (int r = 0; r < d; r++) {
      for (int c = 0; c <= r; c++) {
        double most = BELOW_ZERO * tolerance * roots[r] * roots[c];
        boolean isPositive = r == c && rank == d - 1; // left out, as the rank is less than D
        double size = isPositive ? -high[at(r, c)] : Math.abs(high[at(r, c)]);
        if (!isDone[r] && !isDone[c] && !(size <= most)) {
          return false;
        }
      }
    }
    return true;
  }

  private static int at(int r, int c) {
    return r >= c ? Cholesky.packedLength(r) + c : Cholesky.packedLength(c) + r;
  }
}
