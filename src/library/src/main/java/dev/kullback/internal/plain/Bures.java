package dev.kullback.internal.plain;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.numerics.Cholesky;
import java.util.Arrays;

/**
 * Computes the squared 2-Wasserstein distance of one pair with full covariances in double,
 *
 * <pre>
 * W² = ‖μq − μp‖² + B, B = tr Σq + tr Σp − 2 tr (√Σq Σp √Σq)^½
 * </pre>
 *
 * <p>(D. Dowson, B. Landau, "The Fréchet distance between multivariate normal distributions", Journal of Multivariate Analysis 12, 1982).
 * The last trace is the sum of the singular values of {@code L_aᵀ L_b}, which are right to some {@code D}
 * roundings of the greatest. Where B is small beside the traces, it is {@code tr (XΣbX)} of the symmetric X with {@code XΣb + ΣbX + XΣbX =
 * Σa − Σb}: the optimal map is I + X. In the axes of Σb, the equation without its last term is solved element by element; the last is
 * found by iteration. Nothing there cancels, as {@code Σa − Σb} is made of L_a − L_b. An order of the parameters decides which is b, so that
 * no bit depends on the roles. The relative error of B is some {@code D·cond(L)} roundings there, and {@code D·cond(L)²} where it is not
 * small in each direction but small beside the traces. Holds the working memory of one thread.
 */
final class Bures {
  /** Part of the traces above which B may be their difference from the singular values' sum. */
  private static final double FAR = 0.05;

  /** Greatest row sum of |X| with which the iteration begins. It converges for more. */
  private static final double NEAR = 0.5;

  private static final int MOST_ITERATIONS = 100;
  private static final int MOST_SWEEPS = 60;

  /** Steps for an eigenvalue, of which two or three suffice. */
  private static final int MOST_STEPS = 60;

  private static final double HALF_ULP = 0x1p-53;

  /** Cosine of two columns below which they count as orthogonal. */
  private static final double ORTHOGONAL = 0x1p-52;

  /** Change of X, relative and squared, with which iteration ends. */
  private static final double SETTLED = 0x1p-104;

  private final FullPair.Factor q = new FullPair.Factor();
  private final FullPair.Factor p = new FullPair.Factor();
  private int d;

  /** Matrices by columns, [D, D]: those rotated, the rotations, and what is made of them. */
  private double[] columns = {};

  private double[] rotations = {};
  private double[] first = {};
  private double[] second = {};
  private double[] third = {};
  private double[] norms = {};

  /** Of a symmetric matrix [2D, 2D]: what is beside its diagonal, and its eigenvalues. */
  private double[] off = {};

  private double[] diagonal = {};

  void clear() {
    q.clear();
    p.clear();
  }

  double distance(Batch batchQ, int i, Batch batchP, int j) {
    d = batchQ.dimension();
    if (norms.length < d) {
      norms = new double[d];
      off = new double[2 * d];
      diagonal = new double[2 * d];
      columns = new double[d * d];
      rotations = new double[d * d];
      first = new double[d * d];
      second = new double[d * d];
      third = new double[d * d];
    }
    q.set(batchQ, i);
    p.set(batchP, j);
    if (q.equals(p, d)) {
      return 0;
    }
    double means = 0;
    for (int h = 0; h < d; h++) {
      double x = q.mean(h) - p.mean(h);
      means += x * x;
    }
    boolean isBefore = q.isBefore(p, d);
    FullPair.Factor a = isBefore ? q : p;
    FullPair.Factor b = isBefore ? p : q;
    double most = 0;
    for (int k = 0; k < Cholesky.packedLength(d); k++) {
      most = Math.max(most, Math.max(Math.abs(a.high(k)), Math.abs(b.high(k))));
    }
    double scale = FullPair.inversePower(most);
    return means + bures(a, b, scale) / scale / scale;
  }

  /** Returns B of covariances scaled by a power of two. */
  private double bures(FullPair.Factor a, FullPair.Factor b, double scale) {
    double traces = 0;
    for (int k = 0; k < Cholesky.packedLength(d); k++) {
      double x = a.high(k) * scale;
      double y = b.high(k) * scale;
      traces += x * x + y * y;
    }
    product(a, b, scale);
    bidiagonalize();
    double far = Math.max(0, traces - 2 * sumOfSingularValues());
    double near = far > FAR * traces ? Double.NaN : near(a, b, scale);
    return Double.isNaN(near) ? far : near;
  }

  /** Sets the columns to L_aᵀ L_b. */
  private void product(FullPair.Factor a, FullPair.Factor b, double scale) {
    Arrays.fill(columns, 0, d * d, 0);
    for (int k = 0, row = 0; k < d; row += ++k) {
      for (int c = 0; c <= k; c++) {
        double y = b.high(row + c) * scale;
        for (int r = 0; r <= k; r++) {
          columns[c * d + r] += a.high(row + r) * scale * y;
        }
      }
    }
  }

  /**
   * Reflects columns and rows in turn until two diagonals are left, which go to {@link #off} one element after the other (G. Golub, W.
   * Kahan, "Calculating the singular values and pseudo-inverse of a matrix", 1965).
   */
  private void bidiagonalize() {
    double[] m = columns;
    double[] sums = norms;
    for (int k = 0; k < d; k++) {
      double norm = 0;
      for (int r = k; r < d; r++) {
        norm += m[k * d + r] * m[k * d + r];
      }
      double pivot = -Math.copySign(Math.sqrt(norm), m[k * d + k]);
      off[2 * k] = pivot;
      double half = norm - pivot * m[k * d + k]; // of the squared length of the reflection's vector
      m[k * d + k] -= pivot;
      for (int c = k + 1; c < d && half > 0; c++) {
        double sum = 0;
        for (int r = k; r < d; r++) {
          sum += m[k * d + r] * m[c * d + r];
        }
        sum /= half;
        for (int r = k; r < d; r++) {
          m[c * d + r] -= sum * m[k * d + r];
        }
      }
      if (k + 1 == d) {
        return;
      }
      norm = 0;
      for (int c = k + 1; c < d; c++) {
        norm += m[c * d + k] * m[c * d + k];
      }
      pivot = -Math.copySign(Math.sqrt(norm), m[(k + 1) * d + k]);
      off[2 * k + 1] = pivot;
      half = norm - pivot * m[(k + 1) * d + k];
      m[(k + 1) * d + k] -= pivot;
      Arrays.fill(sums, 0);
      for (int c = k + 1; c < d && half > 0; c++) {
        for (int r = k + 1; r < d; r++) {
          sums[r] += m[c * d + r] * m[c * d + k];
        }
      }
      for (int c = k + 1; c < d && half > 0; c++) {
        double x = m[c * d + k] / half;
        for (int r = k + 1; r < d; r++) {
          m[c * d + r] -= sums[r] * x;
        }
      }
    }
  }

  /**
   * Returns half the sum of the absolute eigenvalues of the symmetric matrix with the elements {@link #off} beside a diagonal of zeros:
   * each singular value of the two diagonals is one, and so is its negative. By the QL algorithm with implicit shifts (A. Dubrulle, 1970).
   */
  private double sumOfSingularValues() {
    int n = 2 * d;
    double[] e = off;
    double[] values = diagonal;
    Arrays.fill(values, 0, n, 0);
    e[n - 1] = 0;
    double size = 0;
    for (int k = 0; k < n; k++) {
      size = Math.max(size, Math.abs(e[k]));
    }
    double least = HALF_ULP * size;
    for (int l = 0; l < n; l++) {
      for (int step = 0; step < MOST_STEPS; step++) {
        int m = l;
        while (m < n - 1 && Math.abs(e[m]) > least) {
          m++;
        }
        if (m == l) {
          break;
        }
        double g = (values[l + 1] - values[l]) / (2 * e[l]);
        double r = Math.hypot(g, 1);
        g = values[m] - values[l] + e[l] / (g + Math.copySign(r, g));
        double sin = 1;
        double cos = 1;
        double shift = 0;
        int k = m - 1;
        for (; k >= l; k--) {
          double f = sin * e[k];
          double b = cos * e[k];
          r = Math.hypot(f, g);
          e[k + 1] = r;
          if (r == 0) {
            values[k + 1] -= shift;
            e[m] = 0;
            break;
          }
          sin = f / r;
          cos = g / r;
          g = values[k + 1] - shift;
          r = (values[k] - g) * sin + 2 * cos * b;
          shift = sin * r;
          values[k + 1] = g + shift;
          g = cos * r - b;
        }
        if (k < l) {
          values[l] -= shift;
          e[l] = g;
          e[m] = 0;
        }
      }
    }
    double sum = 0;
    for (int k = 0; k < n; k++) {
      sum += Math.abs(values[k]);
    }
    return 0.5 * sum;
  }

  /** Rotates pairs of columns until all are orthogonal, and sets their norms (M. Hestenes, 1958). */
  private void orthogonalize() {
    Arrays.fill(rotations, 0, d * d, 0);
    for (int k = 0; k < d; k++) {
      rotations[k * d + k] = 1;
    }
    boolean isDone = false;
    for (int sweep = 0; sweep < MOST_SWEEPS && !isDone; sweep++) {
      isDone = true;
      for (int k = 0; k < d; k++) {
        for (int l = k + 1; l < d; l++) {
          isDone &= !rotate(k * d, l * d);
        }
      }
    }
    for (int k = 0; k < d; k++) {
      norms[k] = Math.sqrt(dot(k * d, k * d));
    }
  }

  private double dot(int a, int b) {
    double sum = 0;
    for (int r = 0; r < d; r++) {
      sum += columns[a + r] * columns[b + r];
    }
    return sum;
  }

  /** Rotates two columns so that they are orthogonal; returns whether they were not. */
  private boolean rotate(int a, int b) {
    double aa = dot(a, a);
    double bb = dot(b, b);
    double ab = dot(a, b);
    if (!(Math.abs(ab) > ORTHOGONAL * Math.sqrt(aa) * Math.sqrt(bb))) {
      return false;
    }
    double zeta = (bb - aa) / (2 * ab);
    double tan = Math.copySign(1, zeta) / (Math.abs(zeta) + Math.hypot(1, zeta));
    double cos = 1 / Math.sqrt(1 + tan * tan);
    double sin = cos * tan;
    turn(columns, a, b, cos, sin);
    turn(rotations, a, b, cos, sin);
    return true;
  }

  private void turn(double[] of, int a, int b, double cos, double sin) {
    for (int r = 0; r < d; r++) {
      double x = of[a + r];
      double y = of[b + r];
      of[a + r] = cos * x - sin * y;
      of[b + r] = sin * x + cos * y;
    }
  }

  /** Returns B by the map X, or NaN where it is too far from 0. */
  private double near(FullPair.Factor a, FullPair.Factor b, double scale) {
    Arrays.fill(columns, 0, d * d, 0);
    for (int r = 0, row = 0; r < d; row += ++r) {
      for (int c = 0; c <= r; c++) {
        columns[c * d + r] = b.high(row + c) * scale;
      }
    }
    orthogonalize(); // L_b W = V S
    difference(a, b, scale);
    // Vᵀ (Σa − Σb) V = A S + S Aᵀ + A Aᵀ with A = Vᵀ (L_a − L_b) W, in first; X in second
    double widest = 0;
    for (int r = 0; r < d; r++) {
      double sum = 0;
      for (int c = 0; c < d; c++) {
        double x = first[r * d + c] / squares(r, c);
        second[r * d + c] = x;
        sum += Math.abs(x);
      }
      widest = Math.max(widest, sum);
    }
    if (!(widest <= NEAR)) {
      return Double.NaN;
    }
    for (int n = 0; n < MOST_ITERATIONS; n++) {
      double size = 0;
      double change = 0;
      for (int r = 0; r < d; r++) {
        for (int c = 0; c <= r; c++) {
          double x = first[r * d + c];
          for (int k = 0; k < d; k++) {
            x -= second[r * d + k] * norms[k] * (norms[k] * second[c * d + k]);
          }
          x /= squares(r, c);
          third[r * d + c] = x;
          third[c * d + r] = x;
          double step = x - second[r * d + c];
          double weight = r == c ? norms[r] * norms[r] : squares(r, c);
          size += x * x * weight;
          change += step * step * weight;
        }
      }
      double[] next = third;
      third = second;
      second = next;
      if (change <= SETTLED * size) {
        return size;
      }
    }
    return Double.NaN;
  }

  private double squares(int r, int c) {
    return norms[r] * norms[r] + norms[c] * norms[c];
  }

  /** Sets {@link #first} to Σa − Σb in the axes of Σb. */
  private void difference(FullPair.Factor a, FullPair.Factor b, double scale) {
    Arrays.fill(second, 0, d * d, 0); // (L_a − L_b) W by rows
    for (int r = 0, row = 0; r < d; row += ++r) {
      for (int c = 0; c <= r; c++) {
        int k = row + c;
        double x = (a.high(k) - b.high(k) + (a.low(k) - b.low(k))) * scale;
        for (int l = 0; l < d; l++) {
          second[r * d + l] += x * rotations[l * d + c];
        }
      }
    }
    for (int i = 0; i < d; i++) {
      for (int l = 0; l < d; l++) {
        double sum = 0;
        for (int r = 0; r < d; r++) {
          sum += columns[i * d + r] * second[r * d + l];
        }
        third[i * d + l] = sum / norms[i];
      }
    }
    for (int i = 0; i < d; i++) {
      for (int l = 0; l <= i; l++) {
        double sum = third[i * d + l] * norms[l] + norms[i] * third[l * d + i];
        for (int k = 0; k < d; k++) {
          sum += third[i * d + k] * third[l * d + k];
        }
        first[i * d + l] = sum;
        first[l * d + i] = sum;
      }
    }
  }
}
