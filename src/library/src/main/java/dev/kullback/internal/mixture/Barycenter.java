package dev.kullback.internal.mixture;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.DiagonalBatch;
import dev.kullback.internal.batch.FullBatch;
import dev.kullback.internal.mixture.ReductionOptions.Rule;
import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.work.Checkpoint;
import java.util.Arrays;

/**
 * The Gaussian nearest to those of a mixture, for one mixture after another: its mean, and its covariance, {@code [D, D]}, or variances. With
 * shares {@code a_i = w_i/Σw}. Used by one thread.
 */
public final class Barycenter {
  /** Greatest relative distance of a fixed point's sides at which it is taken, and that at which it is as near as double has it. */
  private static final double NEAR = 1e-10;

  private static final double NEAREST = 1e-14;

  /** Steps after which a fixed point is given up. */
  private static final int MOST_STEPS = 1000;

  /** Rounds of rotations, which converge by squares: of ten or fewer, all but rounding is done. */
  private static final int MOST_ROUNDS = 40;

  private final Batch batch;
  private final double[] weights;
  private final int d;
  private final boolean isFull;
  private final Checkpoint checkpoint = new Checkpoint();

  /** Shares of the components of a mixture, from its first one on. */
  private double[] share = {};

  private int from;

  /** The barycenter's mean. */
  public final double[] mean;

  /** Its covariance, or its variances. */
  public final double[] scale;

  /** Makes room for a mixture's, of components with these weights. */
  public Barycenter(Batch batch, double[] weights) {
    this.batch = batch;
    this.weights = weights;
    d = batch.dimension();
    isFull = !(batch instanceof DiagonalBatch);
    mean = new double[d];
    scale = new double[isFull ? d * d : d];
  }

  /** Sets that of least {@code Σ a_i KL(N_i ‖ q)}, of the moments of the components [from, to). */
  public void ofMoments(int from, int to) {
    Components all = Components.of(batch);
    all.load(batch, weights, from, to, Rule.RUNNALLS);
    all.mergeAll();
    all.copyMean(0, mean, 0);
    double[] covariance = new double[all.length];
    all.copyCovariance(0, covariance, 0);
    for (int r = 0, k = 0; isFull && r < d; r++) {
      for (int c = 0; c <= r; c++, k++) {
        scale[r * d + c] = scale[c * d + r] = covariance[k];
      }
    }
    if (!isFull) {
      System.arraycopy(covariance, 0, scale, 0, d);
    }
  }

  /** Sets that of least {@code Σ a_i KL(q ‖ N_i)}: {@code P⁻¹ = Σ a_i P_i⁻¹}, {@code P⁻¹μ = Σ a_i P_i⁻¹μ_i}. */
  public void ofPrecisions(int from, int to) {
    int heaviest = begin(from, to);
    double[] first = read(heaviest);
    double[] own = new double[d];
    double[] shift = new double[d];
    double[] precision = new double[scale.length];
    for (int i = from; i < to; i++) {
      double a = share[i - from];
      double[] p = isFull ? inverseOfFactor(factor(i)) : inverse(covariance(i));
      batch.readMean(i, own);
      for (int r = 0; r < d; r++) {
        for (int c = isFull ? 0 : r; c < (isFull ? d : r + 1); c++) {
          double more = a * p[at(r, c)];
          precision[at(r, c)] += more;
          shift[r] += more * (own[c] - first[c]);
        }
      }
    }
    System.arraycopy(inverse(precision), 0, scale, 0, scale.length);
    for (int r = 0; r < d; r++) {
      double sum = 0;
      for (int c = isFull ? 0 : r; c < (isFull ? d : r + 1); c++) {
        sum += scale[at(r, c)] * shift[c];
      }
      mean[r] = first[r] + sum;
    }
  }

  /**
   * Sets that of the least {@code Σ a_i W₂²(N_i, q)}: {@code μ = Σ a_i μ_i} and {@code P = Σ a_i (P^½P_iP^½)^½}. With {@code P = LLᵀ}
   * and {@code H = Σ a_i (LᵀP_iL)^½}, P is right if {@code H = LᵀL}; otherwise, {@code L⁻ᵀH²L⁻¹} is nearer. It is the fixed point of P. C.
   * Álvarez-Esteban, E. del Barrio, J. A. Cuesta-Albertos and C. Matrán, "A fixed-point approach to barycenters in Wasserstein space",
   * Journal of Mathematical Analysis and Applications 441 (2016) 744–762, of which this is the same step: {@code L = P^½Q} with Q orthogonal.
   */
  public void ofTransport(int from, int to) {
    double[] first = read(begin(from, to));
    double[] own = new double[d];
    System.arraycopy(first, 0, mean, 0, d);
    Arrays.fill(scale, 0);
    for (int i = from; i < to; i++) {
      batch.readMean(i, own);
      double[] p = covariance(i);
      for (int h = 0; h < d; h++) {
        mean[h] += share[i - from] * (own[h] - first[h]);
      }
      for (int k = 0; k < scale.length; k++) {
        scale[k] += share[i - from] * (isFull ? p[k] : Math.sqrt(p[k]));
      }
    }
    if (!isFull) {
      Arrays.setAll(scale, h -> scale[h] * scale[h]);
      return;
    }
    double before = Double.POSITIVE_INFINITY;
    for (int step = 0; step < MOST_STEPS && !Double.isNaN(before); step++) {
      double[] l = factor(scale);
      double[] h = new double[d * d];
      for (int i = from; i < to; i++) {
        if (share[i - from] > 0) {
          double[] root = root(product(transposed(factor(i)), l));
          for (int k = 0; k < h.length; k++) {
            h[k] += share[i - from] * root[k];
          }
        }
      }
      double distance = distance(h, product(transposed(l), l));
      double[] inverse = inverseFactor(l);
      double[] half = product(h, inverse); // H L⁻¹
      System.arraycopy(product(transposed(half), half), 0, scale, 0, scale.length);
      if (distance <= NEAREST || (distance <= NEAR && distance >= 0.5 * before)) {
        return;
      }
      before = distance;
    }
    throw new IllegalArgumentException(
        "the barycenter of components [%d, %d) is not found to 1e-10: their covariances are too near to singular"
            .formatted(from, to));
  }

  /** Sets the shares; returns the heaviest component. */
  private int begin(int from, int to) {
    this.from = from;
    double sum = 0;
    int heaviest = from;
    for (int i = from; i < to; i++) {
      sum += weights[i];
      heaviest = weights[i] > weights[heaviest] ? i : heaviest;
    }
    double total = sum;
    share = new double[to - from];
    Arrays.setAll(share, k -> weights[this.from + k] / total);
    return heaviest;
  }

  private double[] read(int i) {
    double[] own = new double[d];
    batch.readMean(i, own);
    return own;
  }

  private double[] covariance(int i) {
    if (!(batch instanceof DiagonalBatch diagonal)) {
      return batch.covariance(i);
    }
    double[] variances = new double[d];
    Arrays.setAll(variances, h -> diagonal.kind().variance(diagonal.scale(i * d + h)));
    return variances;
  }

  private int at(int r, int c) {
    return isFull ? r * d + c : r;
  }

  // matrices [D, D]

  /** Returns the lower factor of a component's covariance. */
  private double[] factor(int i) {
    FullBatch full = (FullBatch) batch;
    double[] packed = full.scaleTril();
    double[] l = new double[d * d];
    for (int r = 0, k = full.factorFrom(i); r < d; r++) {
      for (int c = 0; c <= r; c++) {
        l[r * d + c] = packed[k++];
      }
    }
    return l;
  }

  /** Returns the lower factor of a covariance. */
  private double[] factor(double[] a) {
    double[] l = new double[d * d];
    for (int r = 0; r < d; r++) {
      pass();
      for (int c = 0; c <= r; c++) {
        double t = a[r * d + c];
        for (int k = 0; k < c; k++) {
          t -= l[r * d + k] * l[c * d + k];
        }
        l[r * d + c] = c < r ? t / l[c * d + c] : Math.sqrt(t);
      }
    }
    return l;
  }

  private double[] inverseFactor(double[] l) {
    double[] inverse = new double[d * d];
    for (int r = 0; r < d; r++) {
      pass();
      Cholesky.invertRow(l, d, r, inverse);
    }
    return inverse;
  }

  /** Returns the inverse of a covariance, or of variances. */
  private double[] inverse(double[] a) {
    if (!isFull) {
      return Arrays.stream(a).map(v -> 1 / v).toArray();
    }
    return inverseOfFactor(factor(a));
  }

  private double[] inverseOfFactor(double[] l) {
    double[] inverse = inverseFactor(l);
    return product(transposed(inverse), inverse);
  }

  private double[] transposed(double[] a) {
    double[] b = new double[a.length];
    for (int k = 0; k < a.length; k++) {
      b[k % d * d + k / d] = a[k];
    }
    return b;
  }

  private double[] product(double[] a, double[] b) {
    double[] ab = new double[d * d];
    for (int r = 0; r < d; r++) {
      pass();
      for (int k = 0; k < d; k++) {
        for (int c = 0; c < d; c++) {
          ab[r * d + c] += a[r * d + k] * b[k * d + c];
        }
      }
    }
    return ab;
  }

  /** Returns the greatest difference of elements, over the roots of the diagonal elements that they are between. */
  private double distance(double[] a, double[] b) {
    double most = 0;
    for (int r = 0; r < d; r++) {
      for (int c = 0; c < d; c++) {
        double unit = Math.sqrt(b[r * d + r] * b[c * d + c]);
        most = Math.max(most, Math.abs(a[r * d + c] - b[r * d + c]) / unit);
      }
    }
    return most;
  }

  /**
   * Returns {@code (AᵀA)^½ = VΣVᵀ} of {@code A = UΣVᵀ}, which keeps the digits that AᵀA would lose: rotations of A's columns, which it
   * overwrites, make them orthogonal (M. R. Hestenes, "Inversion of matrices by biorthogonalization and related results", Journal of the Society
   * for Industrial and Applied Mathematics 6, 1958).
   */
  private double[] root(double[] a) {
    double[] v = new double[d * d];
    for (int h = 0; h < d; h++) {
      v[h * d + h] = 1;
    }
    boolean isDone = false;
    for (int round = 0; round < MOST_ROUNDS && !isDone; round++) {
      isDone = true;
      for (int p = 0; p < d; p++) {
        pass();
        for (int q = p + 1; q < d; q++) {
          double x = columns(a, p, p);
          double y = columns(a, q, q);
          double xy = columns(a, p, q);
          if (Math.abs(xy) > 0x1p-50 * Math.sqrt(x * y)) {
            isDone = false;
            double theta = (y - x) / (2 * xy);
            double t = Math.copySign(1, theta) / (Math.abs(theta) + Math.sqrt(1 + theta * theta));
            rotate(a, p, q, t);
            rotate(v, p, q, t);
          }
        }
      }
    }
    double[] root = new double[d * d];
    for (int k = 0; k < d; k++) {
      double s = Math.sqrt(columns(a, k, k));
      for (int r = 0; r < d; r++) {
        for (int c = 0; c < d; c++) {
          root[r * d + c] += v[r * d + k] * s * v[c * d + k];
        }
      }
    }
    return root;
  }

  /** Returns the inner product of two columns. */
  private double columns(double[] a, int p, int q) {
    double sum = 0;
    for (int k = 0; k < d * d; k += d) {
      sum += a[k + p] * a[k + q];
    }
    return sum;
  }

  /** Rotates two columns by the angle of this tangent. */
  private void rotate(double[] a, int p, int q, double t) {
    double cos = 1 / Math.sqrt(1 + t * t);
    double sin = t * cos;
    for (int k = 0; k < d * d; k += d) {
      double x = a[k + p];
      double y = a[k + q];
      a[k + p] = cos * x - sin * y;
      a[k + q] = sin * x + cos * y;
    }
  }

  private void pass() {
    checkpoint.pass(Checkpoint.ofPlain((long) d * d));
  }
}
