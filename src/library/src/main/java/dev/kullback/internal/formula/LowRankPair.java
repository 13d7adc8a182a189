package dev.kullback.internal.formula;

import dev.kullback.internal.batch.Batch;
import dev.kullback.internal.batch.LowRankBatch;
import dev.kullback.internal.work.Worker;

/**
 * Computes KL of one pair with low-rank covariances, {@code Σ = V + WWᵀ}, from differences. With V, U, M = CCᵀ and K = M − I of p, {@code
 * x = v_q/v_p − 1}, {@code c = x/v_q}, {@code G = W_q − U}, columns that one lacks being 0, {@code f(x) = x − ln(1+x)} and d = μ_q − μ_p,
 *
 * <pre>
 * Q = GᵀV⁻¹G, P = UᵀV⁻¹G, Q_c = GᵀcG, P_c = UᵀcG, U_c = UᵀcU, U_xc = UᵀxcU
 * I + A = C⁻¹M_qC⁻ᵀ = LLᵀ, A = C⁻¹(P + Pᵀ + Q − U_c − P_c − P_cᵀ − Q_c)C⁻ᵀ, e_k = L_kk² − 1
 *
 * 2 KL = Σ_h [f(x_h) + d_h²/v_h] − ‖C⁻¹UᵀV⁻¹d‖²
 *        + Σ_k f(e_k) + Σ_{r>c} L_rc² + tr M⁻¹KQ + tr M⁻¹Q_c − ‖C⁻¹P‖² + 2 tr M⁻¹P_c − tr M⁻¹U_xc
 * </pre>
 *
 * <p>It is {@code tr(Σ_p⁻¹Σ_q) − D − ln det(Σ_p⁻¹Σ_q) + dᵀΣ_p⁻¹d}, from which 1, x and P, the terms that are not of second order in the
 * differences, have been cancelled. So terms cancel as far as the condition of M and the differences' direction have them, not by how small they
 * are. Where the bound of that exceeds the contract, {@link LowRankExact} computes in twice the precision. Holds the working memory of one
 * thread.
 */
public final class LowRankPair implements Formula.Full {
  /** Least pivot 1 + e whose error the bound allows for. */
  private static final double LEAST_PIVOT = 0.125;

  /**
   * Rank up to which sums are plain, as a kernel's have whole vectors of columns: with rank 2, 16 x 16 near Gaussians take 468 instead of 626 µs at
   * D = 64 and 3.1 instead of 5.2 ms at D = 512, with 3 they take 773 instead of 638 µs and 4.7 instead of 5.0 ms (AVX-512, Intel, CPU family 6, JDK 25.0.3).
   */
  private static final int PLAIN_RANK = 2;

  private final Worker worker;
  private final LowRankSums ofMany;
  private final LowRankSums ofFew;

  /** Those of the pair at hand. */
  private LowRankSums sums;

  private final LowRankExact exact = new LowRankExact();

  /** A, which L replaces; and a matrix to multiply by. */
  private double[] a = {};

  private double[] spare = {};

  /** Σ f(e) and the squares of L below its diagonal. */
  private double excess;

  /** Bound of the last result's error; infinite if there is none. */
  private double error;

  LowRankPair(Worker worker) {
    this.worker = worker;
    ofFew = ofMany = sums = new LowRankPlainSums();
  }

  /** Makes one whose sums are a kernel's where it has columns for them. */
  public LowRankPair(Worker worker, LowRankSums sums) {
    this.worker = worker;
    this.sums = ofMany = sums;
    ofFew = new LowRankPlainSums();
  }

  @Override
  public void clear() {
    ofMany.clear();
    ofFew.clear();
  }

  @Override
  public double divergence(Batch qs, int i, Batch ps, int j) {
    LowRankBatch q = LowRankBatch.of(qs);
    LowRankBatch p = LowRankBatch.of(ps);
    if (q.isEqual(i, p, j)) {
      return 0;
    }
    sums = Math.max(q.rank(), p.rank()) <= PLAIN_RANK ? ofFew : ofMany;
    double squares = sums.sum(q, i, p, j);
    int n = sums.rank * sums.rank;
    if (a.length < n) {
      a = new double[n];
      spare = new double[n];
    }
    double diagonal = 2 * PairKl.stable(q.diagonal(), i, p.diagonal(), j);
    double kl = 0.5 * total(q.dimension(), diagonal, squares);
    double tolerance =
        qs.isDouble() || ps.isDouble()
            ? PairKl.DOUBLE_TOLERANCE * Math.clamp(sums.capacitance.condition(), 1, 100)
            : PairKl.REFINED_TOLERANCE;
    if (PairKl.isCertain(kl, error, tolerance - 0x1p-50)) {
      return kl;
    }
    worker.pass(32 * Batch.terms(qs, ps));
    double value = exact.kl(q, i, p, j);
    return exact.error() <= error || !(error < Double.POSITIVE_INFINITY) ? value : Math.max(0, kl);
  }

  /**
   * Returns 2 KL, and bounds the error of half of it. To first order, each sum of products errs by γ times the root of the product of the sums
   * of its factors' squares, γ = (D/64 + 64 + 2r + 16)·2⁻⁵³; that of C⁻¹ multiplies by 1 + {@link Capacitance#error}/γ at most.
   */
  private double total(int d, double diagonal, double squares) {
    int r = sums.rank;
    double[] w = sums.capacitance.inverse();
    double[] gram = sums.capacitance.gram();
    double[] inverse = sums.inverse;
    double[] ofUG = sums.ofUG;
    double[] ofGG = sums.ofGG;
    double[] sizeU = sums.sizeU;
    double[] sizeG = sums.sizeG;
    for (int k = 0; k < r; k++) {
      for (int l = 0; l <= k; l++) {
        a[k * r + l] = ofUG[k * r + l] + ofUG[l * r + k] + ofGG[k * r + l] - sums.ofWW[k * r + l];
        a[l * r + k] = a[k * r + l];
      }
    }
    double own = 0; // Σ_k K_kk M⁻¹_kk, of U; and so of the others
    double other = 0;
    double weighted = 0;
    double trace = 0;
    for (int k = 0; k < r; k++) {
      double x = inverse[k * (r + 1)];
      own += gram[k * (r + 1)] * x;
      other += ofGG[k * (r + 1)] * x;
      trace += ofGG[k * (r + 1)];
      double root = Math.sqrt(sizeU[k]) + Math.sqrt(sizeG[k]);
      weighted += root * root * x;
    }
    double size = 2 * Math.sqrt(own * other) + other + weighted;
    double sum = diagonal + sums.traceOfG - sums.traceOfU;
    double sizes = 8 * diagonal;
    for (int k = 0; k < r; k++) {
      for (int l = 0; l < r; l++) {
        double x = inverse[k * r + l];
        double y = 0;
        for (int m = 0; m < r; m++) {
          y += inverse[k * r + m] * gram[m * r + l];
        }
        sum += y * ofGG[l * r + k];
        sizes += Math.abs(y) * root(ofGG[k * (r + 1)], ofGG[l * (r + 1)]);
        sizes += Math.abs(x) * root(sizeG[k], sizeG[l]);
        sizes += 2 * Math.abs(x) * root(sizeU[k], sizeG[l]);
        sizes += Math.abs(x) * sums.mostExcess * root(sizeU[k], sizeU[l]);
      }
    }
    double product = solved(ofUG, r, r);
    double projected = solved(sums.ud, 1, r);
    sum -= product + projected;
    sizes += 2 * Math.sqrt(product * own * trace) + 2 * Math.sqrt(projected * own * squares);
    double norm = transform(r, w);
    double least = excesses(r);
    sum += excess;
    sizes += 2 * (norm + size * 0x1p-40) * size / least + excess;
    double unit =
        0x1p-53 * ((double) d / LowRankSums.BLOCK + LowRankSums.BLOCK + 2 * r + 16)
            + sums.capacitance.error();
    error = least >= LEAST_PIVOT ? 0.5 * unit * sizes : Double.POSITIVE_INFINITY;
    return sum;
  }

  private static double root(double x, double y) {
    return Math.sqrt(x * y);
  }

  /** Returns {@code ‖C⁻¹X‖²} of an X of so many columns. */
  private double solved(double[] x, int columns, int r) {
    double[] w = sums.capacitance.inverse();
    double squares = 0;
    for (int k = 0; k < r; k++) {
      for (int l = 0; l < columns; l++) {
        double sum = 0;
        for (int m = 0; m <= k; m++) {
          sum += w[k * r + m] * x[m * columns + l];
        }
        squares += sum * sum;
      }
    }
    return squares;
  }

  /** Replaces F by {@code A = C⁻¹FC⁻ᵀ}; returns its norm. */
  private double transform(int r, double[] w) {
    for (int k = 0; k < r; k++) {
      for (int l = 0; l < r; l++) {
        double sum = 0;
        for (int m = 0; m <= k; m++) {
          sum += w[k * r + m] * a[m * r + l];
        }
        spare[k * r + l] = sum;
      }
    }
    double squares = 0;
    for (int k = 0; k < r; k++) {
      for (int l = 0; l < r; l++) {
        double sum = 0;
        for (int m = 0; m <= l; m++) {
          sum += spare[k * r + m] * w[l * r + m];
        }
        a[k * r + l] = sum;
        squares += sum * sum;
      }
    }
    return Math.sqrt(squares);
  }

  /** Factors {@code I + A = LLᵀ} by the e_k; returns the least 1 + e_k. */
  private double excesses(int r) {
    double least = 1;
    excess = 0;
    for (int k = 0; k < r; k++) {
      double e = a[k * (r + 1)];
      for (int m = 0; m < k; m++) {
        double x = a[k * r + m];
        excess += x * x;
        e -= x * x;
      }
      least = Math.min(least, 1 + e);
      if (!(least >= LEAST_PIVOT)) {
        return -1;
      }
      excess += Math.abs(e) < 0.5 ? AlikeTerm.lessLog(e) : e - Math.log1p(e);
      double pivot = Math.sqrt(1 + e);
      for (int row = k + 1; row < r; row++) {
        double sum = a[row * r + k];
        for (int m = 0; m < k; m++) {
          sum -= a[row * r + m] * a[k * r + m];
        }
        a[row * r + k] = sum / pivot;
      }
    }
    return least;
  }
}
