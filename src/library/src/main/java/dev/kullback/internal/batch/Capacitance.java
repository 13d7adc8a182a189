package dev.kullback.internal.batch;

import dev.kullback.internal.numerics.Cholesky;
import dev.kullback.internal.numerics.Scale;
import java.util.Arrays;

/**
 * The capacitance matrix {@code M = I + WᵀV⁻¹W} of a low-rank Gaussian, {@code Σ = V + WWᵀ}, and its factor, {@code M = CCᵀ}: by the matrix
 * determinant lemma {@code det Σ = det V · det M}, and by Woodbury's identity {@code Σ⁻¹ = V⁻¹ − BᵀB} with {@code B = C⁻¹WᵀV⁻¹}. Holds the
 * working memory of one thread.
 */
public final class Capacitance {
  private double[] gram = {};
  private double[] factor = {};
  private double[] inverse = {};
  private int rank;

  /** Factors that of a Gaussian; columns of W beyond its rank, up to {@code rank}, count as 0. */
  public void set(LowRankBatch g, int i, int rank) {
    this.rank = rank;
    int n = rank * rank;
    if (gram.length < n) {
      gram = new double[n];
      factor = new double[n];
      inverse = new double[n];
    }
    Arrays.fill(gram, 0, n, 0);
    for (int a = 0, k = i * Cholesky.packedLength(g.rank()); a < g.rank(); a++) {
      for (int b = 0; b <= a; b++, k++) {
        gram[a * rank + b] = gram[b * rank + a] = g.gram()[k];
      }
    }
    factor();
    for (int a = 0; a < rank; a++) {
      Cholesky.invertRow(factor, rank, a, inverse);
    }
  }

  /**
   * Sums the WᵀV⁻¹W of Gaussian i, packed, to an index on, with the sums' rounding errors, so that an element errs by two roundings of its terms,
   * however many these are.
   *
   * @param low overwritten, r(r+1)/2
   */
  static void sumProducts(LowRankBatch g, int i, double[] high, int at, double[] low) {
    int d = g.dimension();
    int r = g.rank();
    double[] w = g.factor();
    Scale kind = g.diagonal().kind();
    Arrays.fill(low, 0);
    for (int h = 0; h < d; h++) {
      double v = kind.variance(g.diagonal().scale(i * d + h));
      int row = i * r * d + h;
      for (int a = 0, k = 0; a < r; a++) {
        double x = w[row + a * d] / v;
        for (int b = 0; b <= a; b++, k++) {
          double product = x * w[row + b * d];
          double s = high[at + k];
          double t = s + product;
          double back = t - s;
          high[at + k] = t;
          low[k] += (s - (t - back)) + (product - back);
        }
      }
    }
    for (int k = 0; k < low.length; k++) {
      high[at + k] += low[k];
    }
  }

  private void factor() {
    double[] c = factor;
    for (int a = 0; a < rank; a++) {
      for (int b = 0; b <= a; b++) {
        double sum = gram[a * rank + b] + (a == b ? 1 : 0);
        for (int k = 0; k < b; k++) {
          sum -= c[a * rank + k] * c[b * rank + k];
        }
        // a pivot of I + K is at least 1: it is not where roundings are larger
        c[a * rank + b] = a == b ? Math.sqrt(Math.max(1, sum)) : sum / c[b * rank + b];
      }
    }
  }

  /** Computes a column of B, {@code C⁻¹wᵀ/v}, of a row w of W, whose elements are a stride apart from an index on. */
  public void solve(double[] w, int at, int stride, double inverseVariance, double[] b) {
    for (int k = 0; k < rank; k++) {
      double sum = w[at + k * stride] * inverseVariance;
      for (int l = 0; l < k; l++) {
        sum -= factor[k * rank + l] * b[l];
      }
      b[k] = sum / factor[k * (rank + 1)];
    }
  }

  /** Number of rows. */
  public int rank() {
    return rank;
  }

  /** M − I, row-major. */
  public double[] gram() {
    return gram;
  }

  /** C⁻¹, row-major; what is above its diagonal is undefined. */
  public double[] inverse() {
    return inverse;
  }

  /** {@code ½ ln det M}. */
  public double halfLogDet() {
    double sum = 0;
    for (int a = 0; a < rank; a++) {
      sum += Math.log(factor[a * (rank + 1)]);
    }
    return sum;
  }

  /**
   * Returns {@code τ = Σ_a M_aa (M⁻¹)_aa ≥ r}: a change of M of δ√(M_aa M_bb) at most in each element changes {@code C⁻¹MC⁻ᵀ} by rτδ at most, in
   * Frobenius' norm.
   */
  public double spread() {
    double spread = 0;
    for (int a = 0; a < rank; a++) {
      double sum = 0;
      for (int k = a; k < rank; k++) {
        sum += inverse[k * rank + a] * inverse[k * rank + a];
      }
      spread += (1 + gram[a * (rank + 1)]) * sum;
    }
    return spread;
  }

  /** Bounds the relative error of {@link #spread}'s kind, for an M that is off by the roundings of its sums and of its factor. */
  public double error() {
    return 0x1p-53 * (rank + 4) * rank * spread();
  }

  /** {@code tr M · tr M⁻¹ / r}, at least r and M's condition number over r: what the contract for double multiplies by, up to 100. */
  public double condition() {
    double trace = 0;
    double inverses = 0;
    for (int a = 0; a < rank; a++) {
      trace += 1 + gram[a * (rank + 1)];
      for (int b = 0; b <= a; b++) {
        inverses += inverse[a * rank + b] * inverse[a * rank + b];
      }
    }
    return rank == 0 ? 1 : trace * inverses / rank;
  }
}
